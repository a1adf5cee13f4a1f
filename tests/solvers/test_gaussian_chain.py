"""Chains: the O(n) solver agrees with the dense one, and takes nothing else for a chain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.solvers.gaussian import nuclear_bound, optimise_gaussian
from lrm.solvers.gaussian_chain import find_chain, optimise_chain
from lrm.strategies.base import Problem, Search
from lrm.strategies.best import has_fast_optimum
from lrm.workload import families


@st.composite
def chains(draw):
    """Factors R of Gram matrices with a tridiagonal inverse: weighted prefix sums and ranges."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 40))
    spread = draw(st.sampled_from([0.0, 0.5, 1.0]))
    R = np.exp(spread * rng.standard_normal(n))[:, None] * np.tril(np.ones((n, n)))
    R *= rng.choice([-1.0, 1.0], n)
    if draw(st.booleans()):
        cell = np.arange(n)
        gram = (np.minimum.outer(cell, cell) + 1.0) * (n - np.maximum.outer(cell, cell))
        R = np.linalg.cholesky(gram).T
    return R[:, np.sort(rng.permutation(n)[: draw(st.integers(2, n))])]


@settings(max_examples=60, deadline=None)
@given(chains())
def test_chains_reach_the_certificate_that_the_dense_solver_reaches(R):
    gram = R.T @ R
    chain = find_chain(gram)
    assert chain is not None or np.linalg.cond(gram) > 1e8  # more than its digits can tell
    if chain is None:
        return
    found, dense = optimise_chain(chain), optimise_gaussian(R)
    assert found.converged
    assert found.upper <= 1.001 * found.lower
    assert max(found.lower, dense.lower) <= min(found.upper, dense.upper) * (1 + 1e-6)
    assert np.isfinite(found.L).all()
    assert np.linalg.norm(found.L, axis=0).max() <= 1.0
    # The error of L, by other means than its own reconstruction.
    inverse = np.linalg.inv(found.L)
    assert np.linalg.norm(R @ inverse) ** 2 == pytest.approx(found.upper, rel=1e-5)
    assert found.lower <= nuclear_bound(R, found.weights) * (1 + 1e-6)


@pytest.mark.parametrize("n", [2, 3, 64, 257, 1000])
@pytest.mark.parametrize("family", [families.prefix, families.all_ranges])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_prefix_sums_and_all_ranges(family, n, tolerance):
    found = optimise_chain(find_chain(family(n).queries.gram()), tolerance=tolerance)
    assert found.converged
    assert found.lower <= found.upper <= (1 + tolerance) * found.lower * (1 + 1e-9)


def test_the_lower_bound_survives_weights_of_every_size():
    """Rounding is allowed for: the bound is below that of exact singular values."""
    n = 60
    chain = find_chain(families.prefix(n).queries.gram())
    found = optimise_chain(chain, tolerance=1e-12, max_rounds=40)
    assert found.lower <= nuclear_bound(np.tril(np.ones((n, n))), found.weights) * (1 + 1e-12)
    assert found.lower >= 282.2 * 60 / 64 * 0.8


@pytest.mark.parametrize(
    "gram",
    [
        np.eye(5) + 1.0,
        np.ones((3, 3)),
        np.diag([1.0, 0.0, 2.0]),
        np.array([[2.0]]),
        np.full((3, 3), np.nan),
        families.wrange(40, 30, seed=1).queries.gram() + np.eye(30),
        families.prefix(64).queries.gram() + 1e-5 * np.eye(64)[::-1],
    ],
    ids=["star", "singular", "zero column", "one cell", "nan", "random ranges", "nearly"],
)
def test_nothing_else_is_a_chain(gram):
    assert find_chain(gram) is None


def test_orthogonal_cells_are_a_chain_of_their_own():
    found = optimise_chain(find_chain(np.diag([1.0, 4.0, 9.0])))
    assert found.upper == pytest.approx(14.0, rel=1e-6)


@pytest.mark.parametrize("stop", [StopSolver])
def test_an_interrupt_returns_the_best_so_far(stop):
    def report(step):
        if step.iteration == 2:
            raise stop

    clock = Clock(on_step=report)
    found = optimise_chain(find_chain(families.prefix(128).queries.gram()), clock=clock)
    assert clock.interrupted
    assert not found.converged
    assert found.rounds == 2
    assert 0 < found.lower <= found.upper


@pytest.mark.parametrize("form", ["structured", "matrix"])
def test_plans_of_prefix_sums_are_certified_in_either_form(form):
    workload = families.prefix(150)
    plan = lrm.plan(
        workload if form == "structured" else workload.queries.dense(), noise="gaussian"
    )
    assert plan.at_most_above_best <= 1.00002  # only the solver for chains goes that near


def test_large_chains_are_solved_and_larger_ones_measured_by_trees():
    chosen = {
        (cells, effort, noise): has_fast_optimum(
            Problem(families.prefix(cells)), Search(noise=noise), effort
        )
        for cells in (1, 4096, 4097)
        for effort in ("quick", "normal")
        for noise in ("laplace", "gaussian")
    }
    assert [case for case, yes in chosen.items() if yes] == [(4096, "normal", "gaussian")]
    weighted = Problem(lrm.Workload(np.tri(8), importance=np.arange(1, 9)))
    assert not has_fast_optimum(weighted, Search(noise="gaussian"), "normal")
