"""A private table that is passed to `lrm plan` for a file of queries is noticed, never quoted."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lrm
from lrm.errors import WorkloadWarning
from lrm.queries.files import parse_questions
from lrm.queries.workload.families import all_ranges, prefix
from lrm.queries.workload.file import read_workload

RNG = np.random.default_rng(3)
PEOPLE = 40
TABLES = {
    "an id, ages and pay": np.column_stack(
        [np.arange(70001, 70001 + PEOPLE), RNG.integers(18, 90, PEOPLE), 523.25 * np.ones(PEOPLE)]
    ),
    "flags": RNG.integers(0, 2, (PEOPLE, 3)),
    "flags and a score": np.column_stack(
        [RNG.integers(0, 2, (PEOPLE, 5)), RNG.normal(size=PEOPLE).round(2)]
    ),
    "one column": RNG.integers(18, 90, (PEOPLE, 1)),
}


def written(matrix, kind):
    """The matrix in a file of a kind; the name of the file."""
    names = [f"c{i}" for i in range(matrix.shape[1])]
    frame = pd.DataFrame(matrix, columns=names)
    if kind == "npy":
        np.save("t.npy", matrix)
        return "t.npy"
    if kind == "npz":
        np.savez("t.npz", matrix)
        return "t.npz"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), "t.parquet")
        return "t.parquet"
    frame.to_csv("t.csv", index=False, header=kind == "csv")
    return "t.csv"


@pytest.mark.filterwarnings("always")  # printed, as the command does
@pytest.mark.parametrize("kind", ["csv", "csv without a header", "npy", "npz", "parquet"])
@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_records_is_noticed_before_figures_are_printed(run, in_folder, table, kind):
    del in_folder
    name = written(TABLES[table], kind)
    result = run("plan", name, "--effort", "quick")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"lrm: warning: {name} looks like a table of records")
    assert not re.search(r"700\d\d|523", result.stderr)


@pytest.mark.filterwarnings("always")
def test_a_table_with_names_and_few_rows_is_noticed_by_its_header(run, in_folder):
    text = "person,age,pay,visits,code\nMeier,41,5200,3,91\nHuber,37,4100,2,92\n"
    (in_folder / "t.csv").write_text(text, encoding="utf-8")
    result = run("plan", "t.csv", "--effort", "quick")
    assert "looks like a table of records" in result.stderr
    assert not re.search("Meier|Huber|5200|4100", result.stderr)


def test_standard_input_and_frames_are_looked_at():
    frame = pd.DataFrame({"age": [30, 41, 52, 67], "pay": [100, 200, 300, 400]})
    with pytest.warns(WorkloadWarning, match="the frame looks like a table of records"):
        lrm.plan(frame, effort="quick")
    with pytest.warns(WorkloadWarning, match="standard input looks like"):
        parse_questions(frame.to_csv(index=False), None, "standard input")


@pytest.mark.parametrize("kind", ["csv", "csv without a header", "npy", "npz", "parquet"])
@pytest.mark.parametrize(
    "matrix",
    [
        all_ranges(8).queries.dense(),
        prefix(9).queries.dense(),
        RNG.choice([-1, 0, 1], (12, 30)),
        np.vstack([np.eye(20), np.arange(20)]),  # counts, and a sum
        np.vstack([np.eye(6), 0.5 * np.eye(6), 2 * np.ones(6)]),
    ],
    ids=["ranges", "prefix", "signs", "a sum", "weights"],
)
def test_ordinary_queries_are_read_without_a_warning(in_folder, matrix, kind):
    del in_folder
    name = written(matrix, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read_workload(name).queries.dense(), matrix)
