"""Answers over products come by blocks: the same numbers, the same files, little memory."""

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.optimize

import lrm
from lrm.errors import UsageError
from lrm.planning.design.products import reconstruction
from lrm.releases import core
from lrm.releases.postprocess import process
from lrm.views.plans import worst_queries

SIZES = [6, 5, 4, 3]


@pytest.fixture(scope="module")
def release():
    batch = lrm.families.products(
        SIZES,
        [
            ["identity", "identity", "total", "total"],
            ["total", "prefix", "identity", "total"],
            ["total", "total", "total", "total"],
            ["total", "identity", "identity", "identity"],
        ],
        names=["=a,b", 'say "b"', "total", "three"],
    )
    plan = lrm.plan(batch, "marginals", effort="quick")
    counts = np.random.default_rng(0).integers(0, 40, int(np.prod(SIZES)))
    return lrm.release(plan, counts, epsilon=1)


def test_blocks_are_the_whole(release, monkeypatch):
    whole = release.table()
    monkeypatch.setattr(reconstruction, "BLOCK_ANSWERS", 7)  # terms are cut along their first axis
    blocks = list(release.plan.reconstruction_map.row_ranges())
    assert len(blocks) > 10
    assert [start for start, _ in blocks[1:]] == [stop for _, stop in blocks[:-1]]
    some = list(release.plan.reconstruction_map.row_ranges(3, 50))
    assert (some[0][0], some[-1][1]) == (3, 50)
    for name, column in whole.number_columns().items():
        parts = [release.numbers(start, stop)[name] for start, stop in blocks]
        np.testing.assert_allclose(np.concatenate(parts), column, rtol=1e-9, atol=1e-9)
        odd = release.numbers(3, 50)[name]
        np.testing.assert_allclose(odd, column[3:50], rtol=1e-9, atol=1e-9)


def test_one_query_is_part_of_the_table(release):
    whole = release.table()
    for query in ["=a,b", "total", "three"]:
        own, part = release[query], whole.of(query)
        assert list(own.labels()) == list(part.labels())
        for name, column in part.numbers.items():
            np.testing.assert_allclose(own.numbers[name], column)
    head = release.head(4)
    assert [label.name for label in head.labels()] == list(release.names)[:4]
    np.testing.assert_allclose(head.numbers["low"], whole.numbers["low"][:4])


def test_files_hold_the_table(release, tmp_path, monkeypatch):
    whole = release.to_arrow()
    monkeypatch.setattr(reconstruction, "BLOCK_ANSWERS", 30)
    release.write(tmp_path / "answers.parquet")
    read = pq.read_table(tmp_path / "answers.parquet")
    assert read.schema.names == whole.schema.names
    for name in whole.schema.names:
        one, other = whole.column(name).to_pylist(), read.column(name).to_pylist()
        if name in {"answer", "standard_error", "low", "high"}:
            np.testing.assert_allclose(one, other)
        else:
            assert one == other
    release.write(tmp_path / "answers.csv", confidence=0.9)
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # A name that a spreadsheet would run has an apostrophe before it.
    names = [f"'{name}" if name.startswith("=") else name for name in release.names]
    assert [row["name"] for row in rows] == names
    np.testing.assert_allclose([float(row["answer"]) for row in rows], release.answers)
    assert {row["confidence"] for row in rows} == {"0.9"}
    with pytest.raises(UsageError, match=r"a file ending in \.csv"):
        release.write(tmp_path / "answers.txt")


def test_a_file_of_many_answers_states_measurements_alone(release, tmp_path, monkeypatch):
    release.save(tmp_path / "small.lrm")
    monkeypatch.setattr(core, "STATED_ANSWERS", 10)
    release.save(tmp_path / "large.lrm")
    loaded = lrm.load_release(tmp_path / "large.lrm")
    np.testing.assert_allclose(loaded.answers, release.answers)
    monkeypatch.undo()
    with pytest.raises(lrm.errors.FileFormatError, match="answers"):
        lrm.load_release(tmp_path / "large.lrm")  # results are missing where they must be stated


def test_the_worst_queries_are_found_by_blocks(release, monkeypatch):
    accuracy = release.accuracy
    expected = worst_queries(release.plan, accuracy, 0.95, 5)
    monkeypatch.setattr("lrm.views.plans.EXPLICIT_QUERIES", 10)
    monkeypatch.setattr(reconstruction, "BLOCK_ANSWERS", 7)
    found = worst_queries(release.plan, accuracy, 0.95, 5)
    assert [label.name for label, *_ in found] == [label.name for label, *_ in expected]
    assert worst_queries(release.plan, accuracy, 0.95, None) == []


def test_more_answers_than_an_array_holds_are_refused_with_advice(release, monkeypatch):
    monkeypatch.setattr("lrm.releases.core.MOST_LISTED", 10)
    with pytest.raises(lrm.errors.WorkloadError, match=r"release\.write"):
        release.table()
    assert len(release["total"]) == 1


def test_consistent_answers_are_those_of_the_nearest_table(release):
    queries = release.plan.workload.queries.dense()
    cells = scipy.optimize.nnls(queries, release.answers)[0]
    nearest, fixed = queries @ cells, release.consistent().answers
    before = np.linalg.norm(nearest - release.answers)
    rounding = 1e-6 * np.abs(nearest).max()
    assert np.linalg.norm(fixed - release.answers) <= before * (1 + 1e-6) + rounding
    assert fixed[np.all(queries >= 0, axis=1)].min() >= 0
    whole = process(release, ["integer"]).answers
    np.testing.assert_allclose(whole, np.rint(release.answers))


def test_post_processing_of_a_table_of_a_billion_cells():
    batch = lrm.families.marginals([10] * 12, [1])
    plan = lrm.plan(batch, "marginals", effort="quick")
    release = lrm.releases.core.Release(
        plan,
        np.full(plan.measurement_count, 1 << plan.bits, dtype=np.int64),
        plan.privacy(1),
        plan.privacy(1).epsilon,
        "discrete Laplace",
        plan.accuracy(plan.privacy(1)).law.scale,
        simulated=True,
    )
    totals = release.consistent().answers.reshape(12, 10).sum(axis=1)
    np.testing.assert_allclose(totals, totals[0], rtol=1e-9)


def test_intervals_cover_simulated_noise(release):
    rng = np.random.default_rng(3)
    accuracy, runs = release.accuracy, 400
    reconstruction = release.plan.reconstruction_map
    count = len(release.names)
    half = accuracy.half_widths(0.9)
    scale = accuracy.law.scale * accuracy.step
    gaps = [
        reconstruction.apply(rng.laplace(0, scale, release.plan.measurement_count))
        for _ in range(runs)
    ]
    inside = np.mean(np.abs(gaps) <= half)
    # Answers of a run share measurements: 400 runs alone count as independent (4.5 deviations).
    assert abs(inside - 0.9) < 4.5 * np.sqrt(0.09 / runs) + 1e-3
    assert np.std(gaps, axis=0) == pytest.approx(accuracy.errors_of(0, count), rel=0.25)


def test_rows_of_some_queries_are_those_of_the_whole(release):
    reconstruction = release.plan.reconstruction_map
    whole = reconstruction.matrix()
    rng = np.random.default_rng(0)
    for _ in range(50):
        start, stop = np.sort(rng.integers(0, len(whole) + 1, 2)).tolist()
        rows = reconstruction.rows(start, stop)
        np.testing.assert_allclose(rows, whole[start:stop], rtol=1e-9, atol=1e-12)
