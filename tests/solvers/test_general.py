"""The start with fewer rows than cells: taken where it pays, left where it does not."""

import signal

import numpy as np
import pytest

import lrm
from lrm.batches import marginals
from lrm.domain import Categories, Domain, Integers
from lrm.errors import StopSolver
from lrm.solvers.general import general_start
from lrm.workload import families


def marginal_batch():
    domain = Domain([Categories("state", list("ABCD")), Integers("age", 0, 9)])
    return marginals(domain, 1)


def test_marginals_are_measured_with_few_rows():
    plan = lrm.plan(marginal_batch())
    assert plan.measurement_count < marginal_batch().shape[1]
    assert plan.strategy_error < 0.9 * lrm.plan(marginal_batch(), "noise-on-data").strategy_error


def test_it_is_left_where_the_rank_is_nearly_full_unless_it_is_cheap():
    rng = np.random.default_rng(0)
    assert general_start(np.tri(8), 36.0, work=1e12, rng=rng) is not None
    assert general_start(np.tri(8), 36.0, work=1e6, rng=rng) is None


def test_no_work_no_start():
    W = np.random.default_rng(0).standard_normal((4, 40))
    assert general_start(W, np.inf, work=1.0, rng=np.random.default_rng(0)) is None


@pytest.mark.usefixtures("plain_interrupts")
def test_ctrl_c_ends_the_whole_search_with_the_best_so_far():
    calls = []

    def once(step):
        calls.append(step)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    plan = lrm.plan(marginal_batch(), on_step=once)
    assert plan.details["interrupted"]
    assert len(calls) == 3
    assert plan.strategy_error <= lrm.plan(marginal_batch(), "noise-on-data").strategy_error


def test_stop_solver_too():
    def stop(step):
        raise StopSolver

    batch = families.wrange(8, 30, seed=0)
    plan = lrm.plan(batch, on_step=stop)
    for rival in ("noise-on-data", "noise-on-results", "wavelet", "hierarchical"):
        assert plan.strategy_error <= lrm.plan(batch, rival).strategy_error
