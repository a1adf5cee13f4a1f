"""A connection that is lost at any message of a charge: each outcome is named rightly."""

import time
from fractions import Fraction

import pytest

from engines import empty_postgres_database
from lrm.errors import ChargeUnknown, LedgerError
from lrm.ledger import Ledger
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit
from proxy import Proxy

COMMIT = b"COMMIT\x00"
TENTH = PureDP(Fraction(1, 10))


@pytest.fixture(scope="module")
def url():
    made = empty_postgres_database()
    Ledger.open(made).create("people", 1)
    return made


def charge(proxy, timeout=5):
    ledger = Ledger.open(proxy.url, timeout=timeout)
    return ledger.spend("people", TENTH, unit=PrivacyUnit(), purpose="a release")


@pytest.fixture(scope="module")
def messages(url):
    """How many requests a charge sends; the last two are COMMIT and the end of the connection."""
    with Proxy(url, stop=None) as proxy:
        charge(proxy)
        sent = list(proxy.requests)
    assert any(COMMIT in request for request in sent)
    return sent


def spent(url):
    return len(Ledger.open(url).history("people")) - 1


def test_a_connection_that_is_cut_at_each_message(url, messages):
    """The charge is made or not made, as it says, whichever side of the message is lost."""
    outcomes = set()
    for when in ("before", "after"):
        for stop in range(len(messages)):
            before = spent(url)
            with Proxy(url, stop, when=when) as proxy:
                try:
                    charge(proxy)
                    made = True
                except ChargeUnknown as error:
                    pytest.fail(f"the ledger can be asked again, and says: {error}")
                except LedgerError:
                    made = False
            assert spent(url) - before == made, (when, stop)
            outcomes.add((made, COMMIT in messages[stop], when))
            remaining = Ledger.open(url).remaining("people")
            if remaining < Fraction(2, 10):
                Ledger.open(url).verify()
                url = empty_postgres_database()
                Ledger.open(url).create("people", 1)
    assert {(True, True, "after"), (False, True, "before"), (False, False, "after")} <= outcomes


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_ledger_that_cannot_be_asked_again(when):
    url = empty_postgres_database()
    Ledger.open(url).create("people", 1)
    with (
        Proxy(url, COMMIT, when=when, then="refuse") as proxy,
        pytest.raises(ChargeUnknown, match="it may be charged; `lrm budget history` shows an") as e,
    ):
        charge(proxy)
    assert e.value.charge == "unknown"
    assert "127.0.0.1" not in str(e.value)
    time.sleep(0.2)
    assert spent(url) == (when == "after")


def test_a_ledger_that_falls_silent():
    """The wait ends: the timeout is one second, and the socket is still acknowledged."""
    url = empty_postgres_database()
    Ledger.open(url).create("people", 1)
    for stop in (b"pg_advisory", COMMIT):
        with (
            Proxy(url, stop, when="before", how="silent") as proxy,
            pytest.raises(LedgerError, match="nothing was charged"),
        ):  # though the silent side still acknowledges what it receives
            charge(proxy, timeout=1)
        assert spent(url) == 0
