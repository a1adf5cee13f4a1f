"""`best` on batches that nobody tuned for: never above a baseline, whatever their kind."""

import pytest

import lrm
from benchmarks.gates.unseen import BASELINES, KINDS, ROUNDING, draw
from long_runs import cases
from lrm.errors import ConvergenceError
from lrm.planning.plan.proposals import search_record


@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
def test_best_is_never_above_a_baseline(number):
    assert_never_above_a_baseline(number, "quick")


@pytest.mark.long
@pytest.mark.parametrize("number", range(cases(len(KINDS))))
def test_best_with_more_effort_is_never_above_a_baseline(number):
    assert_never_above_a_baseline(number, "normal")


def assert_never_above_a_baseline(number, effort):
    _, workload = draw(7, number, largest=12)
    best = lrm.plan(workload, objective="total", effort=effort).strategy_error
    for baseline in BASELINES:
        try:
            theirs = lrm.plan(workload, baseline).strategy_error
        except ConvergenceError:
            continue
        assert best <= theirs * (1 + ROUNDING), baseline


def test_a_histogram_is_proven_to_be_best_measured_cell_by_cell_whatever_its_length():
    plan = lrm.plan(lrm.families.identity(200_000), noise="laplace")
    assert search_record(plan).winner == "noise-on-data"
    assert {candidate.name for candidate in search_record(plan).candidates} == {
        "noise-on-data",
        "noise-on-results",
    }
