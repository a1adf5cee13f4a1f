"""Stored releases of every shape: they can be read, and show the same as when they were made."""

import json
import warnings

import pytest

from stored_releases import CASES, FOLDER, TABLES, stored, table_facts


def test_every_case_has_a_file_and_every_file_a_case():
    assert {path.stem for path in FOLDER.glob("*.lrm")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_labels_answers_and_errors_are_those_that_were_stated(name):
    stated = json.loads(TABLES.read_text())[name]
    assert table_facts(stored(name)) == stated


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_still_the_batch_of_its_file(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workload = CASES[name].workload
    assert stored(name).plan.workload.unweighted_digest == workload.unweighted_digest
