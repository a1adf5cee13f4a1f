"""Workloads from every kind of file are the same workload."""

import re
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from lrm.errors import FileFormatError, LrmError, WorkloadError
from lrm.queries.workload import Workload
from lrm.queries.workload.csv_text import read_csv
from lrm.queries.workload.families import all_ranges, wdiscrete, width_ranges, wrange, wrelated
from lrm.queries.workload.file import read_workload

MATRIX = np.array([[1.0, 0.0, -2.5], [0.0, 1.0, 1e-3]])


def written(name):
    if name == "w.npy":
        np.save(name, MATRIX)
    elif name == "dense.npz":
        np.savez(name, MATRIX)
    elif name == "sparse.npz":
        sp.save_npz(name, sp.csr_array(MATRIX))
    elif name == "w.parquet":
        pq.write_table(pa.table({f"c{j}": MATRIX[:, j] for j in range(3)}), name)
    else:
        np.savetxt(name, MATRIX, delimiter=",")
    return name


@pytest.mark.parametrize("name", ["w.npy", "dense.npz", "sparse.npz", "w.parquet", "w.csv"])
def test_every_kind_of_file_gives_the_same_workload(name):
    workload = read_workload(written(name))
    np.testing.assert_array_equal(workload.queries.dense(), MATRIX)
    assert list(workload.names) == ["q1", "q2"]


def test_sparse_files_stay_sparse():
    assert read_workload(written("sparse.npz")).queries.kind == "sparse"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,0\n0,1\n", ["q1", "q2"]),
        ("a,b\n1,0\n0,1\n", ["q1", "q2"]),
        ("young,1,0\nold,0,1\n", ["young", "old"]),
        ("query,a,b\nyoung,1,0\nold,0,1\n", ["young", "old"]),
        (",0,1\n2019,1,0\n2020,0,1\n", ["2019", "2020"]),
        ("\ufeffa,b\r\n1,0\r\n\r\n0,1\r\n", ["q1", "q2"]),
        ('"x, y",1,0\n"z",0, 1 \n', ["x, y", "z"]),
    ],
)
def test_labels_and_names_in_csv(in_folder, text, names):
    path = in_folder / "w.csv"
    path.write_text(text, encoding="utf-8")
    workload = read_workload(path)
    assert list(workload.names) == names
    np.testing.assert_array_equal(workload.queries.dense(), np.eye(2))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("all,1,1\nnorth,1,Meier\n", "line 2, column 3 is not a number"),
        ("all,1,1\nnorth,1,\n", "line 2, column 3 is empty"),
        ("all,1,1\nnorth,1,Infinity\n", "line 2, column 3 is not a finite number"),
        ("1,1,Meier\n1,0,1\n", "line 1 has numbers, but column 3 is not a number"),
        ("1,1\nMeier,0\n", "line 2 does not begin with a number"),
        ("name\nMeier\n", "line 2 has a single field"),
        ("name,a\nMeier,1\nall,1\nMeier,0\n", "lines 2 and 4 have the same name in column 1"),
        ('name,a\nMeier,1\n"Infinity,1\n', "line 3 is not valid CSV"),
        ("name,a\nMeier,1\nMeier,0,0\n", "line 3 has 3 fields but line 1 has 2"),
        ("Meier,1e101\n", "between 1e-100 and 1e100"),
    ],
)
def test_errors_say_where_and_never_quote_the_file(run, in_folder, text, place):
    """The file may be a private table that was passed by mistake."""
    (in_folder / "w.csv").write_text(text, encoding="utf-8")
    with pytest.raises((WorkloadError, FileFormatError), match=re.escape(place)) as caught:
        read_workload("w.csv")
    trace = "".join(traceback.format_exception(caught.value))
    printed = run("plan", "w.csv").output
    for shown in (trace, printed):
        assert not re.search("Meier|Infinity|1e101", shown)


def test_errors_do_not_quote_bytes_tables_or_arrays(in_folder):
    (in_folder / "w.csv").write_bytes(b"Meier,\xff\n")
    pq.write_table(pa.table({"query": ["Meier", "Meier"], "a": [1, 0]}), "w.parquet")
    np.save("w.npy", np.array([["Meier", "1"]]))
    pairs = pd.MultiIndex.from_tuples([("Meier", 1), ("Meier", 1)])
    makers = (
        lambda: read_workload("w.csv"),
        lambda: read_workload("w.parquet"),
        lambda: read_workload("w.npy"),
        lambda: Workload([["Meier", 1]]),
        lambda: Workload([[1], [0]], names=["Meier", "Meier"]),
        lambda: Workload(pd.DataFrame({"a": [1, 0]}, index=["Meier", "Meier"])),
        lambda: Workload(pd.DataFrame({"a": [1, 0]}, index=pairs)),
    )
    for make in makers:
        with pytest.raises((WorkloadError, FileFormatError)) as caught:
            make()
        last = "".join(traceback.format_exception(caught.value.with_traceback(None)))
        assert not re.search("Meier|0xff", last)


def test_names_in_parquet():
    pq.write_table(
        pa.table({"query": ["young", "old"], "a": [1, 0], "b": [True, False]}), "w.parquet"
    )
    workload = read_workload("w.parquet")
    assert list(workload.names) == ["young", "old"]
    np.testing.assert_array_equal(workload.queries.dense(), [[1, 1], [0, 0]])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1, None]}, "empty places"),
        ({"a": [1.0, float("nan")]}, "finite"),
        ({"a": [1, 2], "b": ["x", "y"]}, "'b'"),
        ({"query": ["x", None], "a": [1, 2]}, "row 2"),
        ({"query": ["x", "y"]}, "got none"),
    ],
)
def test_wrong_parquet(columns, words):
    pq.write_table(pa.table(columns), "w.parquet")
    with pytest.raises(WorkloadError, match=words):
        read_workload("w.parquet")


@pytest.mark.parametrize(
    ("spelling", "same"),
    [
        ("all-ranges:6", all_ranges(6)),
        ("width-ranges:9x3", width_ranges(9, 3)),
        ("wrange:5x8", wrange(5, 8, seed=0)),
        ("WDiscrete:5x8:seed=3", wdiscrete(5, 8, seed=3)),
        ("wrelated:5x8:s=2:seed=7", wrelated(5, 8, seed=7, s=2)),
    ],
)
def test_families_are_those_of_the_library(spelling, same):
    assert read_workload(spelling).digest == same.digest


def test_a_file_with_a_familys_name_wins(in_folder):
    (in_folder / "prefix:3.csv").write_text("1,0\n")
    assert read_workload("prefix:3.csv").shape == (1, 2)


@pytest.mark.filterwarnings("ignore::lrm.errors.WorkloadWarning")
@given(
    arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-9e9, 9e9))
)
def test_csv_round_trip(tmp_path_factory, matrix):
    matrix = np.where(np.abs(matrix) < 1e-90, 0.0, matrix)
    path = tmp_path_factory.mktemp("csv") / "w.csv"
    path.write_text("\n".join(",".join(map(repr, row)) for row in matrix.tolist()))
    np.testing.assert_array_equal(read_csv(path).queries.dense(), matrix)


@given(st.binary(max_size=300), st.sampled_from([".csv", ".npy", ".npz", ".parquet"]))
def test_any_bytes_are_a_workload_or_a_clear_error(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("bytes") / f"w{suffix}"
    path.write_bytes(data)
    try:
        read_workload(path)
    except LrmError as reason:
        assert str(path) in str(reason)  # noqa: PT017 - a workload is fine too


@pytest.mark.filterwarnings("ignore::lrm.errors.WorkloadWarning")  # some look like records
@given(st.text(alphabet="0123456789.,-+e\n\r\"'; aNx", max_size=60))
def test_any_text_is_a_workload_or_a_clear_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "w.csv"
    path.write_text(text, newline="")
    try:
        read_csv(path)
    except (WorkloadError, FileFormatError) as reason:
        assert "\n" not in str(reason)  # noqa: PT017 - a workload is fine too
