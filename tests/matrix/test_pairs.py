"""Every pair of what ordinary use combines, and random combinations, from the plan to outputs."""

import datetime as dt

import pytest

from long_runs import cases, new_cases
from matrix.covering import covering_cases, random_cases
from matrix.laws import broken_laws
from matrix.walk import walk

DRAWN = dt.datetime.now(dt.UTC).toordinal() if new_cases() else 1
"""The seed of random cases: all processes of a run draw the same ones, and another day others."""


@pytest.mark.parametrize("case", covering_cases(), ids=lambda case: case.id)
def test_every_pair_satisfies_the_laws(case, library, tmp_path):
    check(case, library, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", random_cases(cases(300), DRAWN), ids=lambda case: case.id)
def test_random_combinations_satisfy_the_laws(case, library, tmp_path):
    check(case, library, tmp_path)


def check(case, library, folder):
    """Do everything with a case, and fail with all laws that it breaks."""
    broken = broken_laws(walk(case, library, folder))
    assert not broken, "\n".join([repr(case), *broken])
