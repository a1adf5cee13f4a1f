"""Ctrl-C and time limits at random moments: the best so far, soon, never worse than plain noise.

Moments and reactions are in CPU time, so that a busy machine changes neither.
"""

import signal
import time
from functools import partial

import numpy as np
import pytest

import lrm
from benchmarks.table_batches import TABLES
from lrm.workload import families

BATCHES = {
    "population pyramid": (TABLES["population pyramid"], 0.3),
    "cumulative cases": (TABLES["cumulative cases"], 0.3),
    "web visits": (TABLES["web visits"], 0.3),
    "one-way 10×8×5×2×2": (TABLES["one-way 10×8×5×2×2"], 1.0),
    "prefix 500": (partial(families.prefix, 500), 0.3),
    "ranges": (partial(families.wrange, 128, 512, seed=1), 0.3),
    "low rank": (partial(families.wrelated, 64, 900, s=8, seed=1), 0.3),
}
"""Name → batch, and the seconds within which a search on it stops."""


def is_no_worse_than_plain_noise(plan, workload):
    for baseline in ("noise-on-data", "noise-on-results"):
        if plan.strategy_error > lrm.plan(workload, baseline).strategy_error * (1 + 1e-9):
            return False
    return True


@pytest.mark.usefixtures("plain_interrupts")
@pytest.mark.parametrize("name", BATCHES)
def test_ctrl_c_at_a_random_moment(name):
    make, seconds = BATCHES[name]
    workload, asked = make(), []

    def interrupt(number, frame):
        del number, frame
        asked.append(time.process_time())
        signal.raise_signal(signal.SIGINT)

    lrm.plan(np.eye(2))  # what is imported late is imported
    usual = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, np.random.default_rng().uniform(0.02, 1.0))
    try:
        plan = lrm.plan(workload, objective="total")
        ended = time.process_time()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, usual)
    assert is_no_worse_than_plain_noise(plan, workload)
    if asked:  # the search may have been over
        assert ended - asked[0] < seconds


@pytest.mark.parametrize("name", ["population pyramid", "ranges"])
def test_a_random_time_limit(name):
    make, seconds = BATCHES[name]
    lrm.plan(np.eye(2))
    workload, limit = make(), np.random.default_rng().uniform(0.05, 0.5)
    began = time.process_time()
    plan = lrm.plan(workload, time_limit=limit, objective="total")
    assert time.process_time() - began < limit + seconds
    assert is_no_worse_than_plain_noise(plan, workload)
