"""The table of the matrix, in every form, made once."""

import pytest

from matrix.visits import Library


@pytest.fixture(scope="session")
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    return Library(folder, lambda: request.getfixturevalue("spark"))
