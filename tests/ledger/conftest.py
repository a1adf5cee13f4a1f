"""Fixtures of the ledger's tests: the same laws hold on both databases."""

import pytest

from engines import empty_postgres_database
from lrm.ledger import Ledger


@pytest.fixture(params=["sqlite", "postgres"])
def location(request, tmp_path):
    """Where a ledger can be made, on each engine in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return empty_postgres_database()


@pytest.fixture
def ledger(location):
    """A ledger in which 'people' may spend epsilon 1 and 'visits' rho 1/2."""
    made = Ledger.open(location)
    made.create("people", "1", "epsilon")
    made.create("visits", "1/2", "rho")
    return made
