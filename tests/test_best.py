"""`best` on batches that nobody tuned for: never above a rival, whatever their kind and scale."""

import pytest
from benchmarks.unseen import KINDS, RIVALS, ROUNDING, draw

import lrm
from lrm.errors import ConvergenceError


@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
def test_best_is_never_above_a_rival(number):
    _, workload = draw(7, number, largest=12)
    best = lrm.plan(workload).strategy_error
    for rival in RIVALS:
        try:
            theirs = lrm.plan(workload, rival).strategy_error
        except ConvergenceError:
            continue
        assert best <= theirs * (1 + ROUNDING), rival
