"""Stored plans: what follows from their integers is the same in every version of the code.

The files and ``golden/expected.json`` are written by ``python -m benchmarks golden --store``. No
search is involved: a failure means that the algebra has changed.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import lrm
from benchmarks.gates.golden import CASES, NO_SEARCH, RESULTS, facts_of, file_name

FOLDER = Path(__file__).with_name("golden")
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
EXACT = ("sensitivity", "sensitivity_of_noise", "max_records", "measurements", "merged_cells")
TOLERANCE = 1e-10
LOOSE = {
    "91-queries-by-region.lrm": 1e-6,
    "population-pyramid.lrm": 1e-6,
    "unseen-cross-tabs.lrm": 1e-6,
}
"""Answers to measurements that no table has, from strategies whose condition is above 1e4: these
depend on the order of summation, which differs between processors."""


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_stored_plan_means_what_it_meant(name):
    """Integers give the same sensitivity, norms and answers as when the plan was stored."""
    plan, expected = lrm.load_plan(FOLDER / name), EXPECTED[name]
    facts = facts_of(plan)
    assert facts.keys() == expected.keys()
    for key in (*EXACT, "unit", "rows"):
        assert facts[key] == expected[key], key
    for key in ("squared_norm", "row_squared_norms", "answers"):
        wanted = np.asarray(expected[key])
        scale = np.abs(wanted).max(initial=0.0)
        bound = LOOSE.get(name, TOLERANCE) if key == "answers" else TOLERANCE
        np.testing.assert_allclose(facts[key], wanted, bound, bound * scale, err_msg=key)
    # Sums with signs, in which all rows count: beside the sum of sizes, not beside themselves.
    queries = plan.workload.shape[0]
    bound = TOLERANCE * expected["squared_norm"]
    assert facts["all_row_squared_norms"] == pytest.approx(
        expected["all_row_squared_norms"], rel=TOLERANCE, abs=bound
    )
    bound = LOOSE.get(name, TOLERANCE) * np.abs(expected["answers"]).max() * queries
    assert facts["all_answers"] == pytest.approx(expected["all_answers"], rel=0, abs=bound)


def test_every_stored_plan_is_expected():
    """No file without expectations, none missing, and all from cases of the benchmark."""
    files = {path.name for path in FOLDER.glob("*.lrm")}
    assert files == set(EXPECTED)
    assert len(files) >= 60
    assert files <= {file_name(name) for name in CASES}


def test_the_benchmark_has_a_figure_for_each_case():
    """Each case of the benchmark has a stored error and time, and its name a file of its own."""
    assert set(json.loads(RESULTS.read_text())["cases"]) == set(CASES)
    assert len({file_name(name) for name in CASES}) == len(CASES)


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.mechanism in NO_SEARCH])
def test_a_mechanism_without_search_measures_the_stored_integers(name):
    """Mechanisms that do not search give the same measurements on every machine."""
    stored = json.loads(RESULTS.read_text())["cases"][name]["measured"]
    assert CASES[name].plan().measured.digest == stored
