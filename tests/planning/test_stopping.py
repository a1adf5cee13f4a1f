"""Ctrl-C and time limits at random moments: the best so far, soon, never worse than plain noise.

How soon is counted in calls of functions, so that a busy machine changes nothing.
"""

import signal
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import lrm
from benchmarks.batches.tables import TABLES
from lrm.planning.plan.planner import PlanInterrupted
from lrm.queries.workload import families

BATCHES = {
    "population pyramid": TABLES["population pyramid"],
    "cumulative cases": TABLES["cumulative cases"],
    "web visits": TABLES["web visits"],
    "one-way 10×8×5×2×2": TABLES["one-way 10×8×5×2×2"],
    "prefix 500": partial(families.prefix, 500),
    "ranges": partial(families.wrange, 128, 512, seed=1),
    "low rank": partial(families.wrelated, 64, 900, s=8, seed=1),
}

MOST_CALLS = 300_000
"""Within so many calls of functions a search stops; a whole one has 2 million and more."""


class Calls:
    """Counts the calls of functions from `begin` to the end of the block."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        sys.setprofile(None)

    def begin(self):
        sys.setprofile(self._count)

    def _count(self, frame, event, argument):
        del frame, argument
        self.count += event in {"call", "c_call"}


def is_no_worse_than_plain_noise(plan, workload):
    for baseline in ("noise-on-data", "noise-on-results"):
        if plan.strategy_error > lrm.plan(workload, baseline).strategy_error * (1 + 1e-9):
            return False
    return True


@contextmanager
def after(seconds, timer, act):
    """Call ``act`` once, after so many seconds; never after the block."""
    kind = {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}[timer]
    usual = signal.signal(kind, lambda number, frame: act())
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0.0)
        signal.signal(kind, usual)


@pytest.mark.usefixtures("plain_interrupts")
@pytest.mark.parametrize("name", BATCHES)
def test_ctrl_c_at_a_random_moment(name):
    workload, calls = BATCHES[name](), Calls()

    def interrupt():
        # Before the search has taken over Ctrl-C, and after it, Python itself is interrupted.
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            calls.begin()
            signal.raise_signal(signal.SIGINT)

    lrm.plan(np.eye(2))  # what is imported late is imported
    moment = np.random.default_rng().uniform(0.02, 1.0)
    with calls, after(moment, signal.ITIMER_PROF, interrupt):
        try:
            plan = lrm.plan(workload, objective="total")
        except PlanInterrupted as interruption:
            plan = interruption.plan
    assert is_no_worse_than_plain_noise(plan, workload)
    assert calls.count < MOST_CALLS  # none where the search was over before


@pytest.mark.parametrize("name", ["population pyramid", "ranges"])
def test_a_random_time_limit(name):
    workload, calls = BATCHES[name](), Calls()
    lrm.plan(np.eye(2))
    limit = np.random.default_rng().uniform(0.05, 0.5)
    with calls, after(limit, signal.ITIMER_REAL, calls.begin):
        plan = lrm.plan(workload, time_limit=limit, objective="total")
    assert is_no_worse_than_plain_noise(plan, workload)
    assert calls.count < MOST_CALLS
