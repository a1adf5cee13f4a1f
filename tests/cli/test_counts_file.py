"""Counts from every kind of file are the same counts, and stay hidden."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.errors import CountsError, FileFormatError
from lrm.planning.plan.planner import plan
from lrm.releases import release
from lrm.releases.counts_file import read_counts

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")

COUNTS = [8213, 0, 9127]


def opened(counts):
    """What the counts are, seen through a release with hardly any noise."""
    made = plan(np.eye(3), "noise-on-data")
    return np.rint(release(made, counts, epsilon=1000).answers).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "8213\n0\n9127\n",
        "8213\n0\n9127",
        "count\n8213\n0\n9127\n\n",
        "\ufeffn. of people\r\n8213\r\n0\r\n9127\r\n",
        '"8213"\n"0"\n"9127"\n',
        "8213.0\n+0\n 9127 \n",
    ],
)
def test_counts_in_csv(in_folder, text):
    (in_folder / "c.csv").write_text(text, encoding="utf-8")
    counts = read_counts("c.csv")
    assert opened(counts) == COUNTS
    assert "8213" not in repr(counts)


def test_counts_in_arrays_and_parquet():
    np.save("c.npy", np.array(COUNTS, dtype=np.uint16))
    assert opened(read_counts("c.npy")) == COUNTS
    pq.write_table(pa.table({"n": COUNTS}), "c.parquet")
    assert opened(read_counts("c.parquet")) == COUNTS


@pytest.mark.parametrize(
    "columns",
    [
        {"n": [8213, None]},
        {"n": [8213.5, 1.0]},
        {"n": ["8213"]},
        {"n": [8213], "m": [9127]},
        {"n": pa.array([], pa.int64())},
        {"n": [-8213]},
    ],
)
def test_wrong_parquet_tells_no_count(columns):
    pq.write_table(pa.table(columns), "c.parquet")
    with pytest.raises(CountsError) as caught:
        read_counts("c.parquet")
    assert "8213" not in str(caught.value)


def test_a_first_line_that_is_a_mistyped_count_is_no_header(in_folder):
    (in_folder / "c.csv").write_text("82l3\n0\n9127\n")
    with pytest.raises(CountsError, match="line 1 is not a whole number"):
        read_counts("c.csv")


@given(st.binary(max_size=200), st.sampled_from([".csv", ".npy", ".parquet"]))
def test_no_error_holds_what_stands_in_the_file(tmp_path_factory, data, suffix):
    secret = b"8213secret"
    path = tmp_path_factory.mktemp("counts") / f"c{suffix}"
    path.write_bytes(data[:50] + secret + data[50:])
    with pytest.raises((CountsError, FileFormatError)) as caught:
        read_counts(path)
    reason = caught.value
    while reason is not None:
        assert "8213" not in str(reason)
        assert "secret" not in str(reason)
        reason = reason.__cause__ or reason.__context__
