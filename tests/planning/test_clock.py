"""The clock of a search: its end, its reports, its counted work, and its parts."""

import itertools
import math
import threading
from dataclasses import replace

import pytest

import lrm
from benchmarks.batches.products import prefix_tables
from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.planning.solvers import settings
from lrm.queries.maps.products.map import ProductMap

STEP = Step("a", 1, 1.0)


class Ticks:
    """A clock whose every look is a second later."""

    def __init__(self):
        self.looks = itertools.count()

    def __call__(self):
        return float(next(self.looks))


def test_steps_are_passed_on_until_the_time_is_up():
    seen = []
    clock = Clock(6.5, seen.append, now=Ticks())
    for _ in range(3):
        clock.tick(STEP)
    assert not clock.interrupted
    with pytest.raises(StopSolver):
        clock.tick(STEP)
    assert clock.interrupted
    assert seen == [STEP] * 3


def test_a_search_that_was_asked_to_stop_stays_stopped():
    seen = []

    def stop(step):
        seen.append(step)
        raise StopSolver

    clock = Clock(on_step=stop)
    for one in (clock, clock, clock.part(9.0), clock.reserve(9.0), clock.silent()):
        with pytest.raises(StopSolver):
            one.tick(STEP)
    assert len(seen) == 1
    assert clock.stopped
    assert clock.interrupted


def test_a_part_ends_with_the_whole():
    clock = Clock()
    parts = clock.part(10.0), clock.reserve(1.0), clock.share(0.5), clock.part(5.0).share(0.5)
    assert not any(part.ended for part in parts)
    parts[0].stop()
    assert clock.ended
    assert all(part.ended for part in parts)


def test_a_part_that_has_done_its_work_is_not_cut_short():
    clock = Clock()
    part = clock.part(1.0)
    part.spend(0.5)
    part.tick(STEP)
    part.spend(0.5)
    with pytest.raises(StopSolver):
        part.tick(STEP)
    assert not clock.interrupted
    assert clock.work == 1.0
    clock.tick(STEP)


def test_work_in_a_part_counts_for_every_whole():
    clock = Clock()
    inner = clock.part(3.0).part(5.0)
    assert inner.remaining_work() == 3.0
    inner.spend(1.0)
    assert (clock.work, inner.remaining_work()) == (1.0, 2.0)
    assert inner.share(0.5).remaining_work() == 1.0
    inner.spend(2.0)
    assert inner.ended
    assert not clock.ended


def test_a_share_is_one_of_the_time_as_well():
    now = [0.0]
    clock = Clock(10.0, now=lambda: now[0])
    half = clock.share(0.5)
    now[0] = 5.0
    assert half.must_end()
    assert not clock.ended
    assert clock.interrupted  # for want of time


def test_nothing_is_remembered_by_the_clock_that_all_callers_share():
    UNLIMITED.spend(1e9)
    UNLIMITED.tick(STEP)
    assert UNLIMITED.work == 0.0
    assert UNLIMITED.remaining_work() == math.inf
    for part in (UNLIMITED.part(1.0), UNLIMITED.silent().part(1.0), UNLIMITED.share(0.5).part(1.0)):
        part.spend(1.0)
        assert part.ended
    assert not UNLIMITED.part(1.0).ended
    with pytest.raises(RuntimeError):
        UNLIMITED.stop()


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan])
def test_a_time_limit_is_above_zero(seconds):
    with pytest.raises(UsageError, match="above 0 seconds"):
        Clock(seconds)


def burn(stop):
    while not stop.is_set():
        sum(range(1000))


def test_a_plan_under_load_is_the_same_plan(monkeypatch):
    """A search over products that its work limit ends: seconds used to decide when it ends."""
    budget = settings.BUDGETS["normal"]
    monkeypatch.setitem(settings.BUDGETS, "normal", replace(budget, seconds=0.25))
    batch = prefix_tables([24, 20, 9, 5], [2], 2)
    steps = []
    first = lrm.plan(lrm.Workload(ProductMap(batch)), seed=5, on_step=steps.append)
    stop = threading.Event()
    others = [threading.Thread(target=burn, args=(stop,)) for _ in range(1)]
    for other in others:
        other.start()
    try:
        second = lrm.plan(lrm.Workload(ProductMap(batch)), seed=5)
    finally:
        stop.set()
        for other in others:
            other.join()
    assert not first.details["interrupted"]
    assert second.digest == first.digest
    monkeypatch.setitem(settings.BUDGETS, "normal", replace(budget, seconds=0.5))
    longer = []
    lrm.plan(lrm.Workload(ProductMap(batch)), seed=5, on_step=longer.append)
    assert len(longer) > len(steps)  # the limit did end the first two
