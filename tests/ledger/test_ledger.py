"""Laws of spending, on both databases."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from lrm.errors import BudgetError, BudgetExceeded, LedgerError
from lrm.ledger import Accounting, Kind, Ledger
from lrm.privacy.budget import ZCDP, ApproxDP, PureDP, rho_for
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()

TENTH = PureDP(Fraction(1, 10))


def test_ten_tenths_are_one_and_an_eleventh_is_refused(ledger):
    for number in range(10):
        entry = ledger.spend("people", TENTH, unit=ROW, purpose=f"release {number}")
        assert entry.amount == Fraction(1, 10)
    assert ledger.remaining("people") == 0
    with pytest.raises(
        BudgetExceeded, match=r"has 0 epsilon left of 1, but this release costs 0.1"
    ):
        ledger.spend("people", TENTH, unit=ROW, purpose="one too many")
    with pytest.raises(BudgetExceeded):
        ledger.spend("people", PureDP(Fraction(1, 10**12)), unit=ROW, purpose="however small")
    assert ledger.remaining("people") == 0
    assert len(ledger.history("people")) == 11


def test_tables_do_not_share(ledger):
    ledger.spend("people", PureDP(Fraction(1)), unit=ROW, purpose="all of it")
    assert ledger.remaining("people") == 0
    assert ledger.remaining("visits") == Fraction(1, 2)


def test_a_pure_release_costs_half_its_square_in_rho(ledger):
    entry = ledger.spend("visits", TENTH, unit=ROW, purpose="pure")
    assert (entry.amount, entry.accounting, entry.promise) == (
        Fraction(1, 200),
        Accounting.RHO,
        "epsilon=1/10",
    )
    ledger.spend("visits", ZCDP(Fraction(99, 200)), unit=ROW, purpose="the rest")
    assert ledger.remaining("visits") == 0


def test_what_cannot_be_counted_is_refused_with_the_way_out(ledger):
    with pytest.raises(LedgerError, match="kept in epsilon and takes pure releases only"):
        ledger.spend("people", ZCDP(Fraction(1, 10)), unit=ROW, purpose="gaussian")
    promise = ApproxDP(Fraction(1, 10), Fraction(1, 10**9))
    with pytest.raises(LedgerError, match=r"release with pure epsilon, or .* --accounting rho"):
        ledger.spend("people", promise, unit=ROW, purpose="gaussian")
    rho = rho_for(promise.epsilon, promise.delta)
    with pytest.raises(LedgerError, match=r"alone implies no rho; scale the noise to a rho "):
        ledger.spend("visits", promise, unit=ROW, purpose="gaussian")
    with pytest.raises(LedgerError, match="a float cannot be spent"):
        ledger.spend("people", 0.1, unit=ROW, purpose="a bare number")
    assert ledger.spend("visits", ZCDP(rho), unit=ROW, purpose="the way out").amount == rho
    assert len(ledger.history()) == 3


def test_amounts_of_many_digits_are_told_short_and_on_the_safe_side(ledger):
    """What is left is rounded down and what it would cost up: the sentence stays true."""
    odd = Fraction(29_946_115_347_177, 3 * 10**15 + 7)
    ledger.spend("visits", ZCDP(Fraction(1, 2) - odd), unit=ROW, purpose="nearly all")
    wanted = ZCDP(odd + Fraction(1, 10**20))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.spend("visits", wanted, unit=ROW, purpose="one grain more than is left")
    said = str(refused.value)
    assert "/" not in said
    left, cost = (Fraction(number) for number in re.findall(r"≈([0-9.]+)", said))
    assert left <= odd < wanted.rho <= cost
    ledger.create("thirds", Fraction(10**40, 3 * 10**40 + 1), "rho")
    with pytest.raises(LedgerError, match=r"already has a budget of ≈0\.333333 rho"):
        ledger.create("thirds", 1, "rho")


def test_preview_is_what_spend_would_do(ledger):
    assert ledger.preview("people", TENTH, unit=ROW).remaining == Fraction(9, 10)
    assert ledger.remaining("people") == 1
    with pytest.raises(BudgetExceeded):
        ledger.preview("people", PureDP(Fraction(11, 10)), unit=ROW)


def test_history_tells_everything_in_order(ledger):
    ledger.spend("people", TENTH, unit=ROW, purpose="counts by age")
    ledger.spend(
        "visits", TENTH, unit=ROW, purpose="visits by month, 'quoted' [bracketed] — ünïcode"
    )
    entries = ledger.history()
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4]
    assert [entry.kind for entry in entries] == [Kind.CREATE] * 2 + [Kind.SPEND] * 2
    assert [entry.table for entry in entries] == ["people", "visits", "people", "visits"]
    assert entries[3].purpose == "visits by month, 'quoted' [bracketed] — ünïcode"
    assert ledger.history("visits") == (entries[1], entries[3])
    assert all(datetime.fromisoformat(entry.time).tzinfo == UTC for entry in entries)
    assert [budget.table for budget in ledger.budgets()] == ["people", "visits"]


def test_a_budget_is_made_once(ledger, location):
    with pytest.raises(LedgerError, match="already has a budget of 1 epsilon"):
        Ledger.open(location).create("people", 5, Accounting.RHO)
    assert ledger.budget("people").limit == 1


@pytest.mark.parametrize(
    ("table", "limit", "unit", "error"),
    [
        ("", 1, "epsilon", LedgerError),
        (" people", 1, "epsilon", LedgerError),
        ("a\nb", 1, "epsilon", LedgerError),
        ("a\x00b", 1, "epsilon", LedgerError),
        ("\ud800", 1, "epsilon", LedgerError),
        ("a" * 501, 1, "epsilon", LedgerError),
        ("other", 0, "epsilon", BudgetError),
        ("other", float("inf"), "epsilon", BudgetError),
        ("other", 1, "delta", LedgerError),
    ],
)
def test_malformed_budgets_are_refused(ledger, table, limit, unit, error):
    with pytest.raises(error):
        ledger.create(table, limit, unit)
    assert len(ledger.budgets()) == 2


@pytest.mark.parametrize("purpose", ["", "  ", "two\nlines", "nul\x00", "x" * 501])
def test_a_spend_needs_a_purpose(ledger, purpose):
    with pytest.raises(LedgerError, match="a purpose must"):
        ledger.spend("people", TENTH, unit=ROW, purpose=purpose)


def test_an_unknown_table_is_named_with_those_that_exist(ledger):
    for ask in (
        ledger.remaining,
        ledger.history,
        lambda t: ledger.spend(t, TENTH, unit=ROW, purpose="x"),
    ):
        with pytest.raises(LedgerError, match=r"'People' \(it has: 'people', 'visits'\)"):
            ask("People")


def test_a_missing_ledger_is_not_made_by_a_typing_error(location):
    absent = Ledger.open(location)
    for ask in (
        absent.verify,
        absent.budgets,
        lambda: absent.spend("people", TENTH, unit=ROW, purpose="x"),
    ):
        with pytest.raises(LedgerError, match=r"there is no ledger at .* `lrm budget create`"):
            ask()
    absent.create("people", 1, "epsilon")
    assert absent.remaining("people") == 1


def test_a_clock_that_jumps_changes_nothing(ledger):
    jumps = [timedelta(days=-36500), timedelta(0), timedelta(days=36500), timedelta(days=-1)]
    now = datetime(2026, 3, 29, 1, 59, tzinfo=UTC)
    for jump in jumps:
        shifted = Ledger(ledger._store, clock=lambda jump=jump: now + jump)
        shifted.spend("people", TENTH, unit=ROW, purpose="at some time")
    ledger.verify()
    assert ledger.remaining("people") == Fraction(6, 10)
    assert [e.time[:4] for e in ledger.history("people")[1:]] == ["1926", "2026", "2126", "2026"]


def test_ctrl_c_within_a_spend_leaves_no_trace(ledger):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ledger(ledger._store, clock=interrupt).spend(
            "people", TENTH, unit=ROW, purpose="interrupted"
        )
    assert ledger.remaining("people") == 1
    ledger.spend("people", TENTH, unit=ROW, purpose="the lock is free again")
    ledger.verify()


def test_threads_share_one_ledger(ledger):
    def attempt(number):
        try:
            return ledger.spend("people", TENTH, unit=ROW, purpose=f"thread {number}").digest
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        digests = [digest for digest in pool.map(attempt, range(24)) if digest]
    assert len(set(digests)) == 10
    assert {entry.digest for entry in ledger.history("people")[1:]} == set(digests)
    ledger.verify()


def test_a_noted_head_stays_on_the_chain(ledger):
    heads = [ledger.head()]
    for number in range(3):
        ledger.spend("people", TENTH, unit=ROW, purpose=str(number))
        heads.append(ledger.verify())
    assert len(set(heads)) == 4
    for head in heads:
        assert ledger.verify(expected_head=f" {head}\n") == heads[-1]
    count, digest = heads[-1].split(":")
    for wrong in (f"9:{digest}", f"2:{digest}", f"{count}:{'0' * 64}"):
        with pytest.raises(LedgerError, match="is not on its chain"):
            ledger.verify(expected_head=wrong)
    for malformed in (
        "",
        "3",
        digest,
        f"-1:{digest}",
        f"3:{digest[:-1]}",
        f"{'9' * 5000}:{digest}",
    ):
        with pytest.raises(LedgerError, match="an expected head is a count and 64"):
            ledger.verify(expected_head=malformed)


def test_locations_and_units_that_are_none_are_refused(tmp_path, monkeypatch):
    with pytest.raises(LedgerError, match="must not contain the NUL character"):
        Ledger.open("a\0b")
    made = Ledger.open(tmp_path / "ledger.sqlite")
    assert repr(made) == f"<Ledger {tmp_path / 'ledger.sqlite'}>"
    made.create("people", 1)
    for ask in (
        lambda: made.create("others", 1, unit="row"),
        lambda: made.spend("people", TENTH, unit="row", purpose="x"),
        lambda: made.preview("people", TENTH, unit="row"),
    ):
        with pytest.raises(LedgerError, match="unit must be a PrivacyUnit, not str"):
            ask()
    assert len(made.history()) == 1
    with pytest.raises(LedgerError, match="URL, not mysql://"):
        Ledger.open("mysql://host/db")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"needs the package psycopg; .*'psycopg\[binary\]'"):
        Ledger.open("postgresql://host/db")
