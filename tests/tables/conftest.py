"""The awkward table in every form, each made once."""

import pytest

from lrm.testing.table import rows
from table_forms import ARROW_FORMS, FORMS, build


@pytest.fixture(scope="session")
def library(request, tmp_path_factory):
    """Makes the awkward table in a form, or finds the one that it made before."""
    tables = {}

    def find(form):
        if form not in tables:
            tables[form] = _made(request, form, rows(400, 0), tmp_path_factory.mktemp("awkward"))
        return tables[form]

    return find


def _made(request, form, made, folder):
    return build(form, made, folder, request.getfixturevalue("spark") if form == "spark" else None)


@pytest.fixture(autouse=True)
def _same_rows_of_each_person(fixed_key):
    """Engines are compared with each other, so each count makes the same choice."""


@pytest.fixture(params=FORMS)
def awkward(request, library):
    """The awkward table in one form, and its rows in plain Python."""
    return request.param, *library(request.param)


@pytest.fixture(params=[*FORMS, *ARROW_FORMS])
def empty(request, tmp_path):
    """The same table without rows."""
    return _made(request, request.param, [], tmp_path)[0]
