"""Rows in addition to the identity, through ``WᵀW`` as an operator: against arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lrm
from lrm.clock import UNLIMITED, Step
from lrm.planning.design.plus_rows import blocks_plus_rows
from lrm.planning.plan.proposals import Proposal, search_record
from lrm.planning.solvers import own_rows, sparse_rows
from lrm.planning.solvers.extra_rows import RowsError, with_cells
from lrm.planning.solvers.gram_operators import gram_operator
from lrm.planning.solvers.own_rows import optimise_own_rows
from lrm.planning.solvers.sparse_rows import (
    Stage,
    _Resolution,
    local_basis,
    local_gram,
    local_strategy,
    optimise_sparse_rows,
    sparse_rows_error,
)
from lrm.planning.strategies import large
from lrm.planning.strategies.base import Problem, Search, Strategy
from lrm.planning.strategies.baselines import baselines, best_baseline
from lrm.planning.strategies.large import add_rows
from lrm.privacy.norms import L1
from lrm.queries.maps.linear import LinearMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.words import AllRanges, Prefix
from lrm.queries.workload import Workload, families

seeds = st.integers(0, 10_000)


def _some_map(rng: np.random.Generator) -> LinearMap:
    cells = int(rng.integers(4, 14))
    ends = np.sort(rng.integers(0, cells, (20, 2)), axis=1)
    dense = rng.standard_normal((7, cells))
    makers = [
        lambda: Prefix(cells),
        lambda: AllRanges(cells),
        lambda: families.ranges(cells, ends.tolist()).queries,
        lambda: DenseMap(dense),
        lambda: SparseMap(sp.csr_array(np.where(np.abs(dense) > 1.3, dense, 0.0))),
    ]
    return makers[rng.integers(len(makers))]()


def _some_rows(rng: np.random.Generator, count: int, cells: int) -> np.ndarray:
    return rng.standard_normal((count, cells)) * (rng.random((count, cells)) < 0.5)


@given(seeds, st.integers(1, 5))
def test_blocks_of_a_gram_matrix_are_its_sums(seed: int, factor: int) -> None:
    queries = _some_map(np.random.default_rng(seed))
    gram = queries.dense().T @ queries.dense()
    starts = np.arange(0, len(gram), factor)
    coarse = gram_operator(queries).coarser(factor)
    sums = np.add.reduceat(np.add.reduceat(gram, starts, axis=0), starts, axis=1)
    np.testing.assert_allclose(coarse.times(np.eye(len(starts))), sums, atol=1e-9)
    np.testing.assert_allclose(coarse.energies, np.add.reduceat(np.diag(gram), starts))
    np.testing.assert_allclose(queries.gram_times(np.eye(len(gram))), gram, atol=1e-9)


@given(seeds, st.integers(1, 4))
def test_the_error_of_rows_over_blocks_is_that_of_the_same_rows_over_cells(
    seed: int, factor: int
) -> None:
    rng = np.random.default_rng(seed)
    queries = _some_map(rng)
    gram = gram_operator(queries)
    coarse = gram.coarser(factor)
    rows = _some_rows(rng, 3, coarse.cells)
    spread = rows[:, np.arange(gram.cells) // factor]
    wanted = RowsError.of(queries.dense()).value(spread)
    np.testing.assert_allclose(sparse_rows_error(coarse, sp.csr_array(rows)), wanted, rtol=1e-8)
    np.testing.assert_allclose(sparse_rows_error(gram, sp.csr_array(spread)), wanted, rtol=1e-8)


@given(seeds, st.integers(1, 3))
def test_derivatives_are_the_slopes_of_the_error(seed: int, factor: int) -> None:
    rng = np.random.default_rng(seed)
    level = _Resolution(gram_operator(_some_map(rng)).coarser(factor), nonnegative=False)
    T = rng.standard_normal((3, level.gram.cells))
    value, by_rows, by_size = level.function.kinked(T)
    direction = rng.standard_normal(T.shape)
    step = 1e-6 * direction
    slope = (level.function.value(T + step) - level.function.value(T - step)) / 2e-6
    expected = float(np.vdot(direction, by_rows + np.sign(T) * by_size))
    assert slope == pytest.approx(expected, rel=1e-5, abs=1e-7 * value)


@given(seeds)
def test_a_support_of_all_entries_has_the_derivatives_of_the_array(seed: int) -> None:
    rng = np.random.default_rng(seed)
    level = _Resolution(gram_operator(_some_map(rng)), nonnegative=False)
    X = _some_rows(rng, 3, level.gram.cells).T
    support = level.opened(sp.csr_array(X), UNLIMITED, Step("", 1, 0.0))
    value, by_entry, by_size = level.of_entries(X[support.cell, support.row], support=support)
    whole, by_rows, by_sizes = level.function.kinked(np.ascontiguousarray(X.T))
    assert value == pytest.approx(whole)
    np.testing.assert_allclose(by_entry, by_rows[support.row, support.cell], atol=1e-9)
    np.testing.assert_allclose(by_size, by_sizes[support.cell], atol=1e-9)
    opened = np.zeros(X.shape, dtype=bool)
    opened[support.cell, support.row] = True
    np.testing.assert_array_equal(opened, (X != 0) | (np.abs(by_rows) > by_sizes).T)


def test_the_result_has_the_error_that_it_states() -> None:
    queries = Prefix(96)
    found = optimise_sparse_rows(
        gram_operator(queries),
        24,
        (Stage(4, 1e-4), Stage(1, 1e-4)),
        rng=np.random.default_rng(0),
    )
    L = with_cells(found.rows).toarray()
    assert np.abs(L).sum(axis=0).max() == pytest.approx(1.0)
    assert np.sum((queries.dense() @ np.linalg.pinv(L)) ** 2) == pytest.approx(found.error)
    assert found.error < 0.45 * queries.squared_norm()


@pytest.mark.parametrize("family", [families.prefix, families.all_ranges])
def test_a_long_plan_is_exact_and_states_its_error(family: Callable[[int], Workload]) -> None:
    """Nothing of queries × cells is built, and all that is stated agrees with what is built."""
    problem = Problem(family(1_050))
    gram = gram_operator(problem.workload.queries)
    found = optimise_sparse_rows(gram, 16, (Stage(128, 1e-3),), rng=np.random.default_rng(0))
    matrix = SparseMap(with_cells(found.rows))
    plan = Proposal(problem, Strategy("best", problem.merged.cell_map, matrix), L1()).plan()
    assert plan.strategy_error == pytest.approx(found.error, rel=1e-6)
    flat = plan.measured.flat()
    assert plan.measured.sensitivity == abs(flat.cells.matrix.sparse()).sum(axis=0).max()
    counts = np.random.default_rng(0).integers(0, 1_000, 1_050)
    exact = plan.measured.measure(plan.measured.counts_of(counts)) * 2.0**-flat.bits
    answers = plan.reconstruction_map.apply(exact)
    np.testing.assert_allclose(
        answers, problem.workload.queries.apply(counts.astype(float)), atol=1e-6
    )
    rows = plan.reconstruction_map.rows(100, 104)
    norms = plan.reconstruction_map.squared_norms(100, 104)
    np.testing.assert_allclose((rows**2).sum(axis=1), norms)
    total = plan.reconstruction_map.row_squared_norms.sum()
    assert plan.reconstruction_map.squared_norm == pytest.approx(total)


@settings(max_examples=10)
@given(seeds)
def test_own_rows_are_no_worse_than_the_rows_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = sp.csr_array((rng.random((4, 30)) < 0.3) * rng.standard_normal((4, 30)))
    assume(np.all(np.diff(W.indptr) > 0))
    found = optimise_own_rows(W)
    L = found.strategy(W).toarray()
    assert np.abs(L).sum(axis=0).max() <= 1 + 1e-12
    assert np.sum((W.toarray() @ np.linalg.pinv(L)) ** 2) == pytest.approx(found.error)
    assert found.error <= 1.01 * 4 * abs(W).sum(axis=0).max() ** 2


def test_many_cells_and_few_queries_get_a_strategy_below_every_baseline() -> None:
    """Sparse rows that do not merge: the queries with weights, and cells besides."""
    rng = np.random.default_rng(0)
    problem = Problem(Workload(sp.csr_array((rng.random((40, 3_000)) < 0.1).astype(float))))
    offers = baselines(problem, Search())
    found = add_rows(problem, Search(), "normal", best_baseline(offers))
    plan = Proposal(problem, found, L1()).plan()
    errors = {one.name: one.error for one in search_record(plan).candidates}
    assert plan.strategy_error < 0.9 * min(offer.error for offer in offers)
    assert plan.strategy_error == pytest.approx(min(errors.values()), rel=1e-3)
    assert {"own rows", "sparse rows"} < set(errors)


@pytest.mark.parametrize("queries", [Prefix(192), AllRanges(192)])
def test_a_basis_for_blocks_has_the_error_that_it_states(queries: LinearMap) -> None:
    chain, basis = queries.gram_chain(), local_basis()
    assert chain is not None
    gram = local_gram(chain, basis)
    found = optimise_sparse_rows(gram, 6, (Stage(1, 1e-3),), rng=np.random.default_rng(0))
    L = local_strategy(found.rows, basis)
    assert abs(L).sum(axis=0).max() == pytest.approx(1.0)
    inverse = blocks_plus_rows(L)
    assert inverse is not None
    B = queries.dense() @ np.linalg.pinv(L.toarray())
    np.testing.assert_allclose(inverse.rows_times(queries.dense()), B, atol=1e-9)
    np.testing.assert_allclose(inverse.row_squared_norms(queries), (B**2).sum(axis=1))
    assert inverse.squared_norm(queries) == pytest.approx(np.sum(B**2))
    assert found.error == pytest.approx(np.sum(B**2))
    counts = np.random.default_rng(0).random(192)
    np.testing.assert_allclose(inverse.estimate(L @ counts), counts)


def test_many_pairs_of_entries_are_multiplied_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Entries of X·M in the places of a support, with and without a list of all pairs."""
    rng = np.random.default_rng(0)
    places = np.nonzero(rng.random((90, 7)) < 0.4)
    support = sparse_rows.Support(*places, (90, 7))
    x, matrix = rng.random(len(places[0])), rng.random((7, 7))
    wanted = (support.matrix(x).toarray() @ matrix)[places]
    np.testing.assert_allclose(support.products(x, matrix), wanted)
    monkeypatch.setattr(sparse_rows, "ARRAY", 0)
    monkeypatch.setattr(sparse_rows, "BLOCK", 50)
    few = sparse_rows.Support(*places, (90, 7))
    np.testing.assert_allclose(few.products(x, matrix), wanted)
    assert "pairs" not in vars(few)


def test_weights_of_own_rows_do_not_overflow() -> None:
    """The error of weighted rows does not depend on their common factor, however large."""
    sizes = sp.csr_array(np.abs(np.random.default_rng(0).standard_normal((4, 9))))
    z = np.array([0.0, 1.0, -1.0, 0.5])
    value, gradient = own_rows._rows_error(z, sizes=sizes, power=20.0)
    with np.errstate(all="raise", under="ignore"):
        for shift in (900.0, -900.0):
            moved, slope = own_rows._rows_error(z + shift, sizes=sizes, power=20.0)
            assert moved == pytest.approx(value)
            np.testing.assert_allclose(slope, gradient, atol=1e-12)
        far, _ = own_rows._rows_error(np.array([0.0, 400.0]), sizes=sizes[:2], power=20.0)
    assert far == pytest.approx(800.0, rel=0.01)


def test_norms_that_cancel_are_not_stated() -> None:
    """Where wide rows answer nearly all, the difference of Woodbury's formula has no digits."""
    cells = 32
    wide = sp.csr_array(np.ones((1, cells)))
    L = sp.csr_array(sp.vstack([1e-6 * sp.eye_array(cells), 1e6 * wide]))
    inverse = blocks_plus_rows(L)
    assert inverse is not None
    total = families.ranges(cells, [(0, cells - 1)]).queries
    assert inverse.row_squared_norms(total) is None


def test_polished_segments_are_kept_only_if_they_are_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = families.width_ranges(4096, 32)
    wanted = lrm.plan(batch, effort="quick").strategy_error
    monkeypatch.setattr(large, "polish_segments", lambda W, rows, reach, clock: rows[:3])
    assert lrm.plan(batch).strategy_error <= wanted * (1 + 1e-6)
