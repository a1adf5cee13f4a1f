"""Chains: the O(n) solver agrees with the dense one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.planning.solvers.gaussian import Chain, nuclear_bound, optimise_chain, optimise_gaussian
from lrm.planning.strategies.base import Problem, Search
from lrm.planning.strategies.best import has_fast_optimum
from lrm.privacy.norms import L2, norm_of
from lrm.queries.workload import families


@st.composite
def chains(draw):
    """Vectors u, v of Grams ``u_i·v_j`` (i ≤ j): u/v grows, as for prefix sums."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, spread = draw(st.integers(2, 40)), draw(st.sampled_from([0.0, 0.5, 1.0]))
    size = np.exp(spread * rng.standard_normal(n))
    ratio = np.cumsum(np.exp(spread * rng.standard_normal(n)))
    return size * np.sqrt(ratio), size / np.sqrt(ratio)


@settings(max_examples=60, deadline=None)
@given(chains())
def test_chains_reach_the_certificate_that_the_dense_solver_reaches(chain):
    left, right = chain
    upper = np.triu(np.outer(left, right))
    R = np.linalg.cholesky(upper + np.triu(upper, 1).T).T
    found, dense = optimise_chain(left, right), optimise_gaussian(R)
    assert found.converged
    assert found.upper <= 1.001 * found.lower
    assert max(found.lower, dense.lower) <= min(found.upper, dense.upper) * (1 + 1e-6)
    assert np.isfinite(found.L).all()
    assert np.linalg.norm(found.L, axis=0).max() <= 1.0
    # The error of L, by other means than its own reconstruction.
    inverse = np.linalg.inv(found.L)
    assert np.linalg.norm(R @ inverse) ** 2 == pytest.approx(found.upper, rel=1e-5)
    assert found.lower <= nuclear_bound(R, found.weights) * (1 + 1e-6)


@pytest.mark.parametrize("family", [families.prefix, families.all_ranges])
@pytest.mark.parametrize("n", [2, 3, 64, 1000])
def test_a_chain_is_the_inverse_of_its_gram(family, n):
    queries = family(n).queries
    chain = Chain.of(*queries.gram_chain())
    T = np.diag(chain.diagonal) + np.diag(chain.beside, 1) + np.diag(chain.beside, -1)
    assert np.abs(queries.gram() @ T - np.eye(n)).max() < 1e-9


@pytest.mark.parametrize("n", [2, 3, 64, 257, 1000])
@pytest.mark.parametrize("family", [families.prefix, families.all_ranges])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_prefix_sums_and_all_ranges(family, n, tolerance):
    found = optimise_chain(*family(n).queries.gram_chain(), tolerance=tolerance)
    assert found.converged
    assert found.lower <= found.upper <= (1 + tolerance) * found.lower * (1 + 1e-9)


def test_the_lower_bound_survives_weights_of_every_size():
    """Rounding is allowed for: the bound is below that of exact singular values."""
    n = 60
    chain = families.prefix(n).queries.gram_chain()
    found = optimise_chain(*chain, tolerance=1e-12, max_rounds=40)
    assert found.lower <= nuclear_bound(np.tril(np.ones((n, n))), found.weights) * (1 + 1e-12)
    assert found.lower >= 282.2 * 60 / 64 * 0.8


@pytest.mark.parametrize("stop", [StopSolver])
def test_an_interrupt_returns_the_best_so_far(stop):
    def report(step):
        if step.iteration == 2:
            raise stop

    clock = Clock(on_step=report)
    found = optimise_chain(*families.prefix(128).queries.gram_chain(), clock=clock)
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
    # Only the solver for chains goes nearer than it must.
    assert plan.at_most_above_best <= (1.00002 if form == "structured" else 1.001)


def test_large_chains_are_solved_and_larger_ones_measured_by_trees():
    chosen = {
        (cells, effort, noise): has_fast_optimum(
            Problem(families.prefix(cells)), Search(norm=norm_of(noise)), effort
        )
        for cells in (1, 4096, 4097)
        for effort in ("quick", "normal")
        for noise in ("laplace", "gaussian")
    }
    assert [case for case, yes in chosen.items() if yes] == [(4096, "normal", "gaussian")]
    weighted = Problem(lrm.Workload(np.tri(8), importance=np.arange(1, 9)))
    assert not has_fast_optimum(weighted, Search(norm=L2()), "normal")
