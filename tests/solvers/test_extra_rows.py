"""Rows in addition to the identity: gradients, exactness, optimality, scale, and interruption."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.planning.design.cells import reduce_rows
from lrm.planning.solvers.exact import checked_pair, factorise
from lrm.planning.solvers.extra_rows import RowsError, assemble, optimise_extra_rows
from lrm.planning.solvers.gram_operators import structured_gram
from lrm.queries.maps.ranges import RangeMap
from lrm.queries.maps.words import AllRanges, Prefix


def ranges(m, n, seed):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n, (m, 2)), axis=1)
    cells = np.arange(n)
    return ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)


def rows(p, n, seed=0):
    return np.random.default_rng(seed).standard_normal((p, n)) * 0.2


W = ranges(20, 30, 1)
ENDS = np.sort(np.random.default_rng(2).integers(0, 40, (25, 2)), axis=1).T


def slope(function, x, d):
    return (function(x + 1e-6 * d) - function(x - 1e-6 * d)) / 2e-6


def test_gradient_of_the_rounded_error_matches_differences():
    error = partial(RowsError.of(W).rounded, width=0.1)
    T, d = rows(3, 30), rows(3, 30, 1)
    np.testing.assert_allclose(
        np.vdot(error(T)[1], d), slope(lambda t: error(t)[0], T, d), rtol=1e-6
    )


def test_partial_derivatives_of_the_error_match_differences():
    T, d = rows(3, 30), rows(3, 30, 1)
    _, by_rows, by_size = RowsError.of(W).kinked(T)
    expected = slope(RowsError.of(W).value, T, d)
    np.testing.assert_allclose(np.vdot(by_rows + np.sign(T) * by_size, d), expected, rtol=1e-6)


def test_error_is_that_of_the_assembled_pair_and_of_the_dense_strategy():
    T = rows(4, 30)
    B, L = assemble(W, T)
    error = RowsError.of(W).value(T)
    np.testing.assert_allclose(abs(L).sum(axis=0), 1.0)
    assert checked_pair(W, B, L).error == pytest.approx(error)
    assert factorise(W, L).error == pytest.approx(error)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_result_is_stationary_and_no_worse_than_start_or_identity(nonnegative):
    start = np.abs(rows(3, 30)) if nonnegative else rows(3, 30)
    found = optimise_extra_rows(W, start, nonnegative=nonnegative, tolerance=1e-10)
    assert found.converged
    assert found.error <= min(RowsError.of(W).value(start), np.sum(W**2)) * (1 + 1e-12)
    T = found.rows
    _, by_rows, by_size = RowsError.of(W).kinked(T)
    alive = T != 0
    slopes = by_rows + np.where(alive, np.sign(T), 1.0) * by_size
    assert np.abs(slopes[alive]).max() <= 1e-2 * found.error
    if nonnegative:
        assert T.min(initial=0.0) >= 0
    else:
        assert np.all(np.abs(by_rows[~alive]) <= by_size[np.nonzero(~alive)[1]] * (1 + 1e-2))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_of_the_workload_changes_nothing_but_the_error(scale):
    one = optimise_extra_rows(W, rows(3, 30))
    other = optimise_extra_rows(W * scale, rows(3, 30))
    assert other.error == pytest.approx(one.error * scale**2, rel=1e-6)


def test_rows_of_very_different_scale_do_no_harm():
    scaled = W * np.logspace(-6, 6, len(W))[:, np.newaxis]
    found = optimise_extra_rows(scaled, rows(3, 30))
    assert found.error <= np.sum(scaled**2)
    assert checked_pair(scaled, *assemble(scaled, found.rows)).residual < 1e-12


def test_an_interrupted_run_returns_an_exact_result():
    def stop(step):
        if step.iteration == 5:
            raise StopSolver

    clock = Clock(on_step=stop)
    found = optimise_extra_rows(W, rows(3, 30), clock=clock)
    assert clock.interrupted
    assert not found.converged
    assert found.error == pytest.approx(RowsError.of(W).value(found.rows))


def test_reported_errors_never_rise():
    errors = []
    optimise_extra_rows(W, rows(3, 30), clock=Clock(on_step=lambda step: errors.append(step.error)))
    assert np.all(np.diff(errors) <= 0)


def test_a_zero_workload_costs_nothing():
    assert optimise_extra_rows(np.zeros((2, 5)), rows(1, 5)).error == 0.0


def test_rows_so_long_that_the_error_is_lost_are_infinitely_bad():
    W = np.ones((1, 12))
    rows = np.ones((2, 12)) * [[1e9], [1e9 + 1.0]]
    assert RowsError.of(W).value(rows) == np.inf
    found = optimise_extra_rows(W, rows)
    assert 1.0 <= found.error <= 12.0 * (1 + 1e-9)


@pytest.mark.parametrize("queries", [Prefix(40), AllRanges(40), RangeMap.over(40, *ENDS)])
def test_an_operator_leads_to_the_rows_that_the_matrix_leads_to(queries):
    W = reduce_rows(queries)
    by_matrix = optimise_extra_rows(W, rows(3, 40))
    by_operator = optimise_extra_rows(W, rows(3, 40), gram=structured_gram(queries))
    assert by_operator.error == pytest.approx(by_matrix.error, rel=1e-4)
    start = rows(3, 40)
    operator, unit = structured_gram(queries), float(np.vdot(W, W))
    assert RowsError(operator, unit).value(start) == pytest.approx(
        RowsError.of(W / np.sqrt(unit)).value(start)
    )
