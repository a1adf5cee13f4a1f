"""δ beside ρ: charged exactly, per edition, and only in budgets that were made for it."""

from fractions import Fraction

import pytest

from lrm.errors import BudgetExceeded, LedgerError
from lrm.ledger import Ledger
from lrm.ledger.entries import Row, Snapshot, check_history
from lrm.privacy.budget import ZCDP, ApproxZCDP
from lrm.privacy.unit import PrivacyUnit

PERSON = PrivacyUnit("who", 4)
MONTHLY = PrivacyUnit("who", 4, period="month")
STEP = ApproxZCDP(Fraction(1, 100), Fraction(1, 10**7))


def spend(ledger, privacy=STEP, unit=PERSON, editions=()):
    return ledger.spend("shop", privacy, unit=unit, purpose="values of tag", editions=editions)


def test_rho_and_delta_add_up_and_neither_passes_its_limit(location):
    ledger = Ledger.open(location)
    ledger.create("shop", "0.035", "rho", unit=PERSON, delta_limit="2e-7")
    for _ in range(2):
        spend(ledger)
    budget = ledger.budget("shop")
    assert (budget.spent, budget.delta.spent) == (Fraction(1, 50), Fraction(2, 10**7))
    with pytest.raises(BudgetExceeded, match="0 delta left, but discovering these values costs"):
        spend(ledger)
    spend(ledger, ZCDP(Fraction(1, 100)))  # a release needs none
    with pytest.raises(BudgetExceeded, match=r"has 0\.005 rho left"):
        spend(ledger)
    ledger.verify()
    assert ledger.budget("shop").delta.spent == Fraction(2, 10**7)


def test_each_edition_has_its_own_delta(location):
    ledger = Ledger.open(location)
    ledger.create("shop", 1, "rho", unit=MONTHLY, delta_limit="1e-7")
    spend(ledger, unit=MONTHLY, editions=("2025-01",))
    spend(ledger, unit=MONTHLY, editions=("2025-02",))
    with pytest.raises(BudgetExceeded, match="delta left"):
        spend(ledger, unit=MONTHLY, editions=("2025-02", "2025-03"))
    assert ledger.remaining("shop", "2025-03") == 1
    account = ledger.budget("shop", "2025-02")
    assert (account.spent, account.delta.spent) == (Fraction(1, 100), Fraction(1, 10**7))


def test_budgets_without_delta_refuse_values(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("shop", 1, "rho", unit=PERSON)
    with pytest.raises(LedgerError, match=r"has no delta, .* --delta-limit"):
        spend(ledger)
    ledger.create("pure", 1, "epsilon", unit=PERSON)
    with pytest.raises(LedgerError, match="is kept in epsilon, and discovering values needs rho"):
        ledger.spend("pure", STEP, unit=PERSON, purpose="values")
    with pytest.raises(LedgerError, match="delta_limit is for budgets in rho"):
        ledger.create("other", 1, "epsilon", delta_limit="1e-6")
    wide = PrivacyUnit(max_rows=3)
    ledger.create("rows", 1, "rho", unit=wide, delta_limit="1e-6")
    with pytest.raises(LedgerError, match="for a smaller unit"):
        ledger.spend("rows", STEP, unit=PrivacyUnit(), purpose="values")
    assert [entry.kind.value for entry in ledger.history()] == ["create"] * 3


def test_a_forged_delta_is_noticed(tmp_path):
    """Entries that carry right digests, but promise what their budget does not allow."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("shop", 1, "rho", unit=PERSON, delta_limit="1e-7")
    spend(ledger)
    rows = ledger._store.read().rows
    check_history(snapshot(rows))
    for place, promise in [
        (1, "rho=1/100, delta=1/1000000"),
        (1, "delta=1/10000000, rho=1/100"),
        (1, "rho=1/100"),
        (0, ""),
        (0, "delta=1/20000000"),
        (0, "delta=2"),
        (0, "anything"),
    ]:
        changed = list(rows)
        changed[place] = Row(**{**fields(rows[place]), "promise": promise})
        if promise == "rho=1/100":  # less than was promised is what a ZCDP release costs
            check_history(snapshot(changed))
            continue
        with pytest.raises(LedgerError, match="has been changed from outside"):
            check_history(snapshot(changed))


def fields(row):
    return {name: getattr(row, name) for name in Row.__slots__}


def snapshot(rows):
    sealed, previous = [], "0" * 64
    for row in rows:
        sealed.append(Row(**{**fields(row), "previous": previous}).sealed())
        previous = sealed[-1].digest
    return Snapshot(tuple(sealed), len(sealed), previous)
