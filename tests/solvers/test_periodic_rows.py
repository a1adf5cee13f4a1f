"""Rows that repeat along the cells, and the inverse of the identity with thousands of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.errors import StopSolver
from lrm.planning.design.inverses import left_inverse
from lrm.planning.design.plus_rows import Band, PlusRowsInverse, inverse_band
from lrm.planning.plan.proposals import search_record
from lrm.planning.solvers.extra_rows import with_cells
from lrm.planning.solvers.gram_operators import gram_operator
from lrm.planning.solvers.periodic_rows import (
    RingGram,
    along,
    optimise_periodic_rows,
    polish_segments,
    range_correlation,
)
from lrm.planning.solvers.sparse_rows import sparse_rows_error
from lrm.queries.maps.levels import level_energies
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.workload import Workload, families

seeds = st.integers(0, 10_000)


@settings(max_examples=15)
@given(seeds, st.sampled_from([1, 2, 4]))
def test_a_ring_has_the_gram_of_its_ranges_written_out(seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    width, cells = int(rng.integers(2, 7)), 24
    windows = (np.arange(cells) + np.arange(width)[:, None]) % cells
    W = np.zeros((cells, cells))
    W[np.arange(cells), windows] = 1.0
    blocks = np.kron(np.eye(cells // block), np.ones((1, block)))
    ring = RingGram(range_correlation(np.array([width]), np.ones(1), 1), cells).coarser(block)
    columns = rng.standard_normal((cells // block, 3))
    np.testing.assert_allclose(ring.times(columns), blocks @ W.T @ W @ blocks.T @ columns)
    np.testing.assert_allclose(ring.energies, blocks @ np.square(W).sum(axis=0))


def test_rings_one_after_the_other_have_the_error_of_one_ring_for_each_cell() -> None:
    correlation = range_correlation(np.array([24]), np.ones(1), 1)
    ring = optimise_periodic_rows(correlation, rng=np.random.default_rng(0))
    cells = 16 * ring.rows.shape[1]
    queries = families.width_ranges(cells, 24).queries
    error = sparse_rows_error(gram_operator(queries), along(ring.rows, cells))
    assert error / len(queries) == pytest.approx(ring.error / ring.rows.shape[1], rel=5e-3)


@settings(max_examples=20)
@given(seeds, st.integers(1, 40), st.integers(1, 6))
def test_the_band_of_an_inverse_is_that_of_the_whole(seed: int, rows: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    gap = np.arange(rows) - np.arange(rows)[:, None]
    random = np.triu(rng.standard_normal((rows, rows)), 1)
    matrix = np.where(np.abs(gap) <= size, random + random.T, 0.0) + 8 * size * np.eye(rows)
    near = inverse_band(sp.csr_array(matrix), size)
    whole = np.linalg.inv(matrix)
    for number, pair in enumerate(near):
        part = slice(number * size, (number + 2) * size)
        wanted = whole[part, part]
        np.testing.assert_allclose(pair[: len(wanted), : len(wanted)], wanted, atol=1e-12)


def test_an_inverse_of_local_rows_is_that_of_the_matrix() -> None:
    rng = np.random.default_rng(0)
    queries = families.width_ranges(600, 9).queries
    offsets = range(0, 590, 4)
    rows = sp.csr_array((len(offsets), 600)).tolil()
    for number, first in enumerate(offsets):
        rows[number, first : first + 9] = rng.random(9)
    L = with_cells(sp.csr_array(rows))
    shuffled = SparseMap(sp.csr_array(L[rng.permutation(L.shape[0])]))
    inverse = left_inverse(shuffled)
    assert isinstance(inverse, PlusRowsInverse)
    assert isinstance(inverse.plus.inner, Band)
    B = queries.dense() @ np.linalg.pinv(shuffled.dense())
    np.testing.assert_allclose(inverse.rows_times(queries.dense()), B, atol=1e-9)
    np.testing.assert_allclose(inverse.row_squared_norms(queries), (B**2).sum(axis=1))
    counts = rng.random(600)
    np.testing.assert_allclose(inverse.estimate(shuffled.apply(counts)), counts)


def test_polishing_lowers_the_error_at_both_ends_and_in_between() -> None:
    W = families.width_ranges(1_600, 24).queries.sparse()
    correlation = range_correlation(np.array([24]), np.ones(1), 1)
    rows = along(optimise_periodic_rows(correlation, rng=np.random.default_rng(0)).rows, 1_600)
    gram = gram_operator(SparseMap(W))
    polished = polish_segments(W, rows, 24)
    assert sparse_rows_error(gram, polished) < sparse_rows_error(gram, rows)


def test_ranges_that_no_row_is_worth_anything_for_have_none() -> None:
    plan = lrm.plan(families.width_ranges(2_400, 4), noise="laplace")
    assert plan.strategy_error == pytest.approx(4 * 2_397)


def test_windows_over_thousands_of_cells_are_far_below_noise_on_data() -> None:
    """The search from random rows came to 0.975 × noise on data."""
    plan = lrm.plan(families.width_ranges(4_096, 32), effort="quick")
    errors = {one.name: one.error for one in search_record(plan).candidates}
    assert plan.strategy_error < 0.642 * errors["noise-on-data"]
    assert plan.strategy_error == pytest.approx(errors["periodic rows"], rel=1e-6)


def test_a_search_that_is_stopped_at_once_still_has_rows() -> None:
    calls = 0

    def stop(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise StopSolver

    batch = Workload(families.width_ranges(2_400, 32).queries.sparse() * 2.0)
    plan = lrm.plan(batch, on_step=stop)
    assert plan.details["interrupted"]
    assert plan.strategy_error <= 1.001 * 4 * 32 * 2_369


@settings(max_examples=20)
@given(seeds, st.integers(2, 4), st.booleans())
def test_trees_see_as_much_of_sparse_queries_as_of_dense_ones(
    seed: int, fanout: int, ranges: bool
) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 70, 9)
    ends = [(int(a), int(a + b)) for a, b in zip(first, rng.integers(0, 9, 9), strict=True)]
    sparse = families.ranges(80, [*ends, (3, 8)]).queries.sparse()
    sparse = sparse * (2.0 if ranges else np.arange(1.0, 81.0))
    queries = SparseMap(sp.csr_array(sparse))
    assert (queries.weighted_ranges() is None) != ranges
    fanouts = (fanout,) * 7
    seen = level_energies(queries, fanouts)
    np.testing.assert_allclose(seen, level_energies(DenseMap(queries.dense()), fanouts), atol=1e-9)
