"""Every pair of what ordinary use combines, from the plan to further queries."""

import pytest

from long_runs import cases
from matrix.covering import covering_cases, random_cases
from matrix.laws import broken_laws
from matrix.walk import walk


@pytest.mark.parametrize("case", covering_cases(), ids=lambda case: case.id)
def test_every_pair_satisfies_the_laws(case, library, tmp_path):
    broken = broken_laws(walk(case, library, tmp_path))
    assert not broken, "\n".join([case.id, *broken])


@pytest.mark.long
@pytest.mark.parametrize("case", random_cases(cases(1000), 1), ids=lambda case: case.id)
def test_random_combinations_satisfy_the_laws(case, library, tmp_path):
    broken = broken_laws(walk(case, library, tmp_path))
    assert not broken, "\n".join([case.id, *broken])
