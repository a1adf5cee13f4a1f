"""`best` on batches that nobody tuned for: never above a rival, whatever their kind and scale."""

import pytest

import lrm
from benchmarks.unseen import KINDS, RIVALS, ROUNDING, draw
from long_runs import cases
from lrm.errors import ConvergenceError


@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
def test_best_is_never_above_a_rival(number):
    assert_never_above_a_rival(number, "quick")


@pytest.mark.long
@pytest.mark.parametrize("number", range(cases(len(KINDS))))
def test_best_with_more_effort_is_never_above_a_rival(number):
    assert_never_above_a_rival(number, "normal")


def assert_never_above_a_rival(number, effort):
    _, workload = draw(7, number, largest=12)
    best = lrm.plan(workload, effort=effort).strategy_error
    for rival in RIVALS:
        try:
            theirs = lrm.plan(workload, rival).strategy_error
        except ConvergenceError:
            continue
        assert best <= theirs * (1 + ROUNDING), rival
