"""How often the intervals of derived answers hold the truth, over simulated releases.

The seeds are fixed. With 1,500 releases the share of intervals that hold has a standard
deviation of 0.0056, with 4,000 one of 0.0034.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import lrm
from long_runs import cases

_spec = importlib.util.spec_from_file_location(
    "derived_coverage", pathlib.Path(__file__).with_name("coverage.py")
)
coverage = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = coverage
_spec.loader.exec_module(coverage)

RATIOS = ("share", "mean", "part")
OTHERS = ("sd", "variance", "diff")
QUANTILES = ("middle", "p90")


def _check(noise, mechanism, per_cell, repetitions, names):
    plan = lrm.plan(coverage.BATCH, mechanism, noise=noise)
    counts = coverage.counts_of(per_cell, 3)
    privacy = plan.privacy(**coverage.PRIVACY[noise])
    many = coverage.Releases(plan, counts, privacy, repetitions, np.random.default_rng(7))
    for name in names:
        held, unbounded = many.coverage(name)
        case = noise, mechanism, per_cell, name, held, unbounded
        print(*case)
        assert held >= 0.935, case
        if name in QUANTILES:  # those are read from whole cells, and hold more often
            continue
        denominator = many.denominator(name)
        if denominator >= 5:
            # Of more than 2,048 answers at once, some intervals of noise on lattices are wider.
            assert held <= (0.98 if repetitions > 2048 and noise == "laplace" else 0.965), case
            assert unbounded < 0.02, case
        elif name == "share" and denominator < 3:
            assert unbounded > 0.01, case


@pytest.mark.parametrize(
    ("noise", "per_cell", "names"),
    [
        ("laplace", 1.0, ("share", "diff", "middle")),
        ("laplace", 3.0, ("share", "mean", "p90")),
        ("gaussian", 1.0, (*RATIOS, *OTHERS, *QUANTILES)),
        ("gaussian", 3.0, (*RATIOS, *OTHERS, *QUANTILES)),
        ("gaussian", 30.0, (*RATIOS, *OTHERS, *QUANTILES)),
    ],
)
def test_intervals_hold_as_often_as_they_say(noise, per_cell, names):
    _check(noise, "noise-on-data", per_cell, 1500, names)


@pytest.mark.long
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("mechanism", ["noise-on-data", "best"])
@pytest.mark.parametrize("per_cell", [10.0, 1.0, 50.0, 0.5, 3.0][: cases(5)])
def test_many_intervals_hold_as_often_as_they_say(noise, mechanism, per_cell):
    _check(noise, mechanism, per_cell, 4_000, (*RATIOS, *OTHERS, *QUANTILES))
