"""The key of a job: charged once, however often the job is repeated and by how many at once."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import lrm
from lrm.errors import AlreadyCharged, LedgerError, UsageError
from lrm.ledger import Ledger
from lrm.ledger.entries import Purpose
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit

TENTH = PureDP(Fraction(1, 10))
ROW = PrivacyUnit()


def spend(ledger, key, table="people"):
    return ledger.spend(table, TENTH, unit=ROW, purpose="a release", key=key)


def test_a_key_is_charged_once(ledger):
    entry = spend(ledger, "nightly")
    with pytest.raises(AlreadyCharged, match=r"key 'nightly' was charged 0\.1 epsilon of 'people'"):
        spend(ledger, "nightly")
    with pytest.raises(AlreadyCharged) as caught:
        ledger.preview("people", TENTH, unit=ROW, key="nightly")
    assert caught.value.head == entry.head
    assert ledger.charged_with("people", "nightly") == ledger.history("people")[-1]
    assert ledger.charged_with("people", "weekly") is None
    spend(ledger, "weekly")
    ledger.spend("visits", TENTH, unit=ROW, purpose="another budget", key="nightly")
    assert ledger.remaining("people") == Fraction(8, 10)
    ledger.verify()


def test_many_jobs_with_one_key(location):
    Ledger.open(location).create("people", 1)

    def attempt(number):
        try:
            return spend(Ledger.open(location), "nightly").digest
        except AlreadyCharged:
            return None

    with ThreadPoolExecutor(8) as pool:
        digests = [digest for digest in pool.map(attempt, range(16)) if digest]
    assert len(digests) == 1
    assert Ledger.open(location).remaining("people") == Fraction(9, 10)


@pytest.mark.parametrize("key", ["", " nightly", "a\nb", "x" * 501, 7])
def test_a_key_is_a_readable_text(ledger, key):
    with pytest.raises(LedgerError, match="a key must"):
        spend(ledger, key)
    assert ledger.remaining("people") == 1


def test_words_that_look_like_a_record_are_words(ledger):
    with pytest.raises(LedgerError, match="must not begin with a brace"):
        ledger.spend("people", TENTH, unit=ROW, purpose='{"key":"k"}')
    for text in ("{", "{}", '{"lrm":1,"purpose":7}', '{"key":"k", "lrm":1,"purpose":"p"}'):
        assert Purpose.of(text) == Purpose(text)
    full = Purpose("plan 1", ("2025-01", "2025-02"), "k")
    assert Purpose.of(full.text) == full


def test_a_release_with_a_key_is_made_once(location):
    ledger = Ledger.open(location)
    ledger.create("people", 1)
    plan = lrm.plan([[1, 1], [1, -1]], "noise-on-data")
    ask = {"epsilon": "0.1", "ledger": ledger, "budget": "people", "key": "nightly"}
    release = lrm.release(plan, [3, 4], **ask)
    assert release.ledger_head == ledger.charged_with("people", "nightly").head
    with pytest.raises(AlreadyCharged) as caught:
        lrm.release(plan, [3, 4], **ask)
    assert caught.value.head == release.ledger_head
    with pytest.raises(UsageError, match="was charged for another release"):
        lrm.release(plan, [3, 4], **{**ask, "epsilon": "0.2"})
    with pytest.raises(UsageError, match="key names a charge in a ledger"):
        lrm.release(plan, [3, 4], epsilon="0.1", key="nightly")
    assert ledger.remaining("people") == Fraction(9, 10)
