"""Ranges as differences of running totals: all that they answer is what their matrix does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lrm
from lrm.errors import FileFormatError, WorkloadError
from lrm.planning.design.cells import merge_cells, over_merged
from lrm.planning.solvers.gram_operators import gram_operator
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.ranges import MOST_WRITTEN, RangeMap, range_minima
from lrm.queries.workload import families
from tests.support.forging import resealed

seeds = st.integers(0, 10_000)


def drawn(seed: int, *, may_be_empty: bool = True) -> RangeMap:
    """A few ranges of a few cells, with weights."""
    rng = np.random.default_rng(seed)
    cells, queries = int(rng.integers(1, 30)), int(rng.integers(1, 12))
    ends = np.sort(rng.integers(0, cells + may_be_empty, (queries, 2)), axis=1)
    weights = rng.choice([1.0, 2.0, -1.0, 0.5], queries)
    return RangeMap(cells, ends[:, 0], ends[:, 1] + (not may_be_empty), weights)


@given(seeds)
def test_cells_of_ranges_are_merged_as_those_of_their_matrix(seed: int) -> None:
    ranges = drawn(seed)
    merged, listed = merge_cells(ranges), merge_cells(SparseMap(ranges.sparse()))
    assert isinstance(merged.queries, RangeMap)
    used = listed.cell_map.factor != 0
    np.testing.assert_array_equal(merged.cell_map.factor, listed.cell_map.factor)
    np.testing.assert_array_equal(merged.cell_map.index[used], listed.cell_map.index[used])
    np.testing.assert_array_equal(merged.queries.dense(), listed.queries.dense())
    again = over_merged(ranges, merged.cell_map)
    assert again is not None
    np.testing.assert_array_equal(again.dense(), merged.queries.dense())
    columns = {tuple(column) for column in ranges.dense().T.tolist()}
    assert len(set(ranges.column_labels.tolist())) == len(columns)


@given(seeds, st.integers(0, 29), st.integers(0, 29), st.integers(0, 1))
def test_ranges_over_other_merged_cells_are_refused(
    seed: int, cell: int, place: int, factor: int
) -> None:
    """One cell that is merged with others, or dropped, is seen, as it is in the matrix."""
    ranges = drawn(seed)
    merged = merge_cells(ranges)
    index, factors = merged.cell_map.index.copy(), merged.cell_map.factor.copy()
    index[cell % ranges.cells] = place % merged.cell_map.merged_size
    factors[cell % ranges.cells] = factor
    listed = DenseMap(ranges.dense()).is_expansion_of(merged.queries, index, factors, 1e-12)
    assert ranges.is_expansion_of(merged.queries, index, factors, 1e-12) == listed


@given(seeds, st.integers(1, 4), st.integers(1, 4))
def test_the_gram_operator_of_ranges_is_that_of_their_matrix(
    seed: int, first: int, second: int
) -> None:
    ranges = drawn(seed, may_be_empty=False)
    operator, listed = gram_operator(ranges), gram_operator(DenseMap(ranges.dense()))
    for factor in (1, first, second):
        operator, listed = operator.coarser(factor), listed.coarser(factor)
        columns = np.random.default_rng(seed).standard_normal((operator.cells, 2))
        np.testing.assert_allclose(operator.times(columns), listed.times(columns), atol=1e-9)
        np.testing.assert_allclose(operator.energies, listed.energies)
        np.testing.assert_array_equal(operator.widths, listed.widths)


@given(seeds)
def test_entrywise_products_of_ranges(seed: int) -> None:
    left, rng = drawn(seed), np.random.default_rng(seed + 1)
    ends = np.sort(rng.integers(0, left.cells + 1, (len(left), 2)), axis=1)
    right = RangeMap(left.cells, ends[:, 0], ends[:, 1], rng.choice([1.0, 3.0], len(left)))
    x = rng.standard_normal((left.cells, 2))
    for other in (left, right, DenseMap(right.dense())):
        expected = (left.dense() * other.dense()) @ x
        np.testing.assert_allclose(left.entrywise_apply(other, x), expected, atol=1e-9)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), seeds)
def test_least_values_of_ranges(values: list[int], seed: int) -> None:
    ends = np.sort(np.random.default_rng(seed).integers(0, len(values) + 1, (20, 2)), axis=1)
    least = range_minima(np.array(values), ends[:, 0], ends[:, 1])
    for (start, stop), value in zip(ends.tolist(), least.tolist(), strict=True):
        assert value == min(values[start:stop], default=np.iinfo(np.int64).max)


def test_a_thousand_ranges_of_a_million_cells_are_planned_released_and_saved(tmp_path) -> None:
    cells = 1_000_000
    ends = np.sort(np.random.default_rng(1).integers(0, cells, (60, 2)), axis=1)
    batch = families.ranges(cells, [(int(a), int(b)) for a, b in ends])
    plan = lrm.plan(batch, effort="quick", noise="laplace")
    plan.save(tmp_path / "plan.lrm")
    assert (tmp_path / "plan.lrm").stat().st_size < 1 << 20
    loaded = lrm.load_plan(tmp_path / "plan.lrm")
    assert loaded.digest == plan.digest
    counts = np.ones(cells, dtype=np.int64)
    answers = lrm.release(loaded, counts, epsilon=20).answers
    away = np.abs(answers - (ends[:, 1] - ends[:, 0] + 1))
    # A Laplace sum is 40 of its standard deviations away with a probability below e^-40.
    assert np.all(away <= 40 * loaded.standard_errors(epsilon=20))


def test_importances_of_ranges_change_the_plan_as_those_of_a_matrix_do() -> None:
    ends, importance = [(0, 99), (20, 30), (25, 60)], [1.0, 9.0, 4.0]
    ranges = families.ranges(100, ends)
    weighted = [
        lrm.Workload(queries, importance=importance)
        for queries in (ranges.queries, ranges.queries.dense())
    ]
    errors = [
        lrm.plan(batch, noise="laplace", objective="total").strategy_error for batch in weighted
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


def test_joined_ranges_stay_ranges() -> None:
    joined = families.stack([families.ranges(9, [(1, 4)]), families.prefix(9), families.total(9)])
    assert joined.queries.kind == "ranges"
    parts = [families.ranges(9, [(1, 4)]), families.prefix(9), families.total(9)]
    rows = np.vstack([part.queries.dense() for part in parts])
    np.testing.assert_array_equal(joined.queries.dense(), rows)


def test_a_matrix_of_ranges_is_bounded_before_it_is_made() -> None:
    cells = MOST_WRITTEN // 8
    ranges = families.ranges(cells, [(0, cells - 1 - i) for i in range(9)]).queries
    with pytest.raises(WorkloadError, match="at most 134,217,728 are written out"):
        ranges.sparse()


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("starts", [-1, 8]),
        ("starts", [40, 8]),
        ("stops", [32, 65]),
        ("stops", [32]),
        ("weights", [np.nan, 1.0]),
        ("weights", [1e200, 1.0]),
    ],
)
def test_ranges_of_a_file_are_not_believed(tmp_path, key, values) -> None:
    plan = lrm.plan(families.ranges(64, [(0, 31), (8, 40)]), "noise-on-data")
    plan.save(tmp_path / "plan.lrm")

    def change(facts, arrays):
        del facts
        kind = arrays[f"workload-{key}"].dtype
        arrays[f"workload-{key}"] = np.array(values, dtype=kind)

    changed = resealed(tmp_path / "plan.lrm", change, tmp_path / "changed.lrm")
    with pytest.raises((WorkloadError, FileFormatError)):
        lrm.load_plan(changed)
