"""Hole 13: ``time_limit=2`` took 10.5 s: reductions, baselines and the certificate saw no clock.

One deadline goes through all of them. What runs in rounds looks at it in every round; what cannot
be stopped is not begun where it would not end in time. No test here measures a time: clocks are
made up, or the functions that a call enters are noted.
"""

import functools
import itertools

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from benchmarks.gates.shape import walk
from lrm.cli import main
from lrm.clock import Clock, Timings
from lrm.domain import Categories, Domain
from lrm.errors import ConvergenceError, PlanWarning, UsageError
from lrm.planning.plan import planner
from lrm.planning.plan.comparison import compare
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.planning.strategies.base import Problem
from lrm.queries.builders import marginals
from lrm.queries.workload import Workload, families


def cross_tabs():
    """Tables by two of three attributes, which drop no row: residuals are their optimum."""
    attributes = [
        Categories(name, [f"v{i}" for i in range(size)], null="cell", outside="cell")
        for name, size in {"a": 8, "b": 8, "c": 48}.items()
    ]
    return marginals(Domain(attributes), 2)


BATCHES = {
    "prefix": lambda: families.prefix(2048),
    "all ranges": lambda: families.all_ranges(700),
    "random": lambda: Workload(np.random.default_rng(0).standard_normal((300, 3000))),
    "identity": lambda: families.identity(4000),
    "ranges": lambda: families.wrange(256, 1024, seed=0),
    "cross-tabs": cross_tabs,
}
DECOMPOSING = {
    "lrm.planning.design.cells.reduce_rows",
    "lrm.planning.design.cells.singular_values",
    "lrm.planning.solvers.gaussian.optimise_gaussian",
    "lrm.planning.solvers.gaussian.optimise_chain",
    "lrm.planning.solvers.families.search",
}
"""Functions that decompose matrices, and the search that begins with one."""

OPTIMA = [("identity", "laplace"), ("identity", "gaussian"), ("cross-tabs", "gaussian")]
"""What is optimal without a search."""


@pytest.mark.filterwarnings("ignore:noise-on-results has less error:lrm.errors.PlanWarning")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", BATCHES)
def test_nothing_that_cannot_be_stopped_begins_without_time(name, noise):
    """With a millisecond, `best` takes what needs no decomposition, and so does its bound."""
    plans = []
    entered = walk(lambda: plans.append(lrm.plan(BATCHES[name](), noise=noise, time_limit=1e-3)))
    (made,) = plans
    assert made.exact
    assert not DECOMPOSING & set(entered.functions)
    assert 1.0 - 1e-9 <= made.at_most_above_best < np.inf
    proved = made.at_most_above_best <= 1 + 1e-9  # in closed form, so that nothing is cut short
    assert proved or made.details["interrupted"]
    assert proved == ((name, noise) in OPTIMA)


class Ticks:
    """A clock that goes on by a second each time that somebody looks at it."""

    def __init__(self):
        self.looks = itertools.count()

    def __call__(self):
        return float(next(self.looks))


@pytest.mark.parametrize("mechanism", ["best", "lowrank", "matrix"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_solvers_stop_when_the_clock_says_so(mechanism, noise, monkeypatch):
    """Each look costs a second of a hundred: far fewer than a whole search would take."""
    clock = Ticks()
    monkeypatch.setattr(planner, "Clock", functools.partial(Clock, now=clock))
    batch = Workload(np.random.default_rng(0).standard_normal((20, 60)))
    made = lrm.plan(batch, mechanism, noise=noise, time_limit=100)
    assert next(clock.looks) < 160
    if mechanism != "best" or noise == "laplace":
        assert made.details["interrupted"]


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_limit_is_above_zero(limit):
    with pytest.raises(UsageError, match="above 0 seconds"):
        lrm.plan(np.eye(2), time_limit=limit)


def test_a_mechanism_that_cannot_be_in_time_is_refused_and_listed():
    batch = families.prefix(1500)
    with pytest.raises(ConvergenceError, match=r"lowrank needs about \d+ s .* allow more time"):
        lrm.plan(batch, "lowrank", time_limit=0.5)
    compared = compare(batch, ["noise-on-data", "lowrank", "matrix"], time_limit=0.5)
    assert [bool(outcome.plan) for outcome in compared.outcomes] == [True, False, False]
    assert "allow more time" in compared.outcomes[1].reason


def test_a_plan_without_time_for_singular_values_is_saved_and_explained(tmp_path):
    with pytest.warns(PlanWarning, match=r"noise-on-results has less error.* without a time limit"):
        made = lrm.plan(BATCHES["cross-tabs"](), time_limit=1e-3)
    assert made.spectrum is None
    assert made.workload_rank is None
    made.save(str(tmp_path / "plan.lrm"))
    again = lrm.load_plan(tmp_path / "plan.lrm")
    assert again.digest == made.digest
    assert again.spectrum is None
    for args in (["explain", "--epsilon", "1"], ["show"], ["report", "--force"]):
        result = CliRunner().invoke(main, [args[0], str(tmp_path / "plan.lrm"), *args[1:]])
        assert result.exit_code == 0, result.output


def test_the_details_say_where_the_time_went(tmp_path, monkeypatch):
    """By a clock that goes on when it is looked at; processor time counts other threads too."""
    ticks = Ticks()
    monkeypatch.setattr("lrm.clock.time.perf_counter", ticks)
    monkeypatch.setattr(planner, "Timings", functools.partial(Timings, clock=ticks))
    made = lrm.plan(np.tri(30), effort="quick")
    stages = made.details["timings"]
    assert list(stages) == ["reduction", "search", "rounding", "certificate"]
    assert all(seconds > 0 for seconds in stages.values())
    assert sum(stages.values()) <= made.details["seconds"]
    made.save(str(tmp_path / "plan.lrm"))
    result = CliRunner().invoke(main, ["show", str(tmp_path / "plan.lrm")])
    assert f"reduction {stages['reduction']:.1f} s, search " in " ".join(result.stdout.split())


def test_the_certificate_of_noise_on_data_for_every_cell_costs_nothing():
    """It took 78 s for 4,000 cells: two eigendecompositions to prove what is plain to see."""
    plans = []
    entered = walk(lambda: plans.append(lrm.plan(families.identity(4000), "noise-on-data")))
    assert plans[0].at_most_above_best == pytest.approx(1.0)
    assert not DECOMPOSING & set(entered.functions)


@pytest.mark.parametrize("batch", [families.identity(50), 3 * np.eye(4)])
def test_nothing_is_searched_where_noise_on_data_is_proven_to_be_the_best(batch):
    plans = []
    entered = walk(lambda: plans.append(lrm.plan(batch)))
    assert plans[0].at_most_above_best == pytest.approx(1.0)
    assert plans[0].details["converged"]
    assert "lrm.planning.solvers.families.search" not in entered.functions


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans(), st.booleans()
)
def test_the_quick_bound_is_a_bound(rows, cells, seed, whole, weighted):
    """No pair with columns in the L2 ball, and so none in the L1 ball, is below it."""
    rng = np.random.default_rng(seed)
    W = (
        rng.integers(-2, 3, (rows, cells)).astype(float)
        if whole
        else rng.normal(size=(rows, cells))
    )
    importance = rng.uniform(0.1, 10, rows) if weighted else None
    problem = Problem(Workload(W, importance=importance))
    found = optimise_gaussian(problem.reduced, tolerance=1e-4)
    assert problem.quick_bound <= found.upper * (1 + 1e-9)
