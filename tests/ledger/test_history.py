"""How a history is checked, row by row: what right digests alone do not make right is refused."""

from dataclasses import replace
from fractions import Fraction

import pytest

from lrm.errors import LedgerError
from lrm.ledger import Accounting, Budget, Kind
from lrm.ledger.entries import (
    GENESIS,
    Row,
    Snapshot,
    check_head,
    check_history,
    check_text,
    stored_row,
)
from lrm.ledger.store import version_error
from lrm.privacy.budget import ZCDP, ApproxDP, PureDP
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()
FIVE = PrivacyUnit(max_rows=5)
CREATE = {"kind": "create", "amount": "1"}
SPEND = {"kind": "spend", "amount": "1/10", "promise": "epsilon=1/10"}


def chain(*changes):
    """A history whose digests are all right, whatever its rows say."""
    rows, previous = [], GENESIS
    for sequence, change in enumerate(changes, start=1):
        row = Row(sequence, "spend", "people", "epsilon", ROW.text, "1", "", "x", "", previous, "")
        rows.append(replace(row, **change).sealed())
        previous = rows[-1].digest
    return Snapshot(tuple(rows), len(rows), previous)


def test_a_history_adds_up():
    rho = {"accounting": "rho", "table": "visits"}
    history = check_history(
        chain(
            CREATE,
            CREATE | rho | {"unit": FIVE.text},
            SPEND,
            SPEND | {"amount": "9/10", "promise": "epsilon=9/10"},
            SPEND | rho | {"amount": "1/8"},
            SPEND | rho | {"amount": "5/8", "promise": "rho=1/40"},
        )
    )
    people, visits = history.budgets.values()
    assert (people.spent, people.remaining, people.unit) == (1, 0, ROW)
    assert (visits.spent, visits.limit, visits.unit) == (Fraction(3, 4), 1, FIVE)
    assert [entry.kind for entry in history.entries] == [Kind.CREATE] * 2 + [Kind.SPEND] * 4
    assert check_history(chain()).head == f"0:{GENESIS}"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ([CREATE, CREATE], "entry 2 creates a budget for the second time"),
        ([SPEND], "entry 1 spends from a budget that does not exist"),
        ([CREATE, SPEND | {"table": "other"}], "a budget that does not exist"),
        ([CREATE, SPEND | {"accounting": "rho"}], "a budget that does not exist"),
        ([CREATE | {"amount": "99/1000"}, SPEND], "spends more than was left"),
        ([CREATE, *[SPEND] * 11], "entry 12 spends more than was left"),
        ([CREATE | {"unit": FIVE.text}, SPEND], "its guarantee does not cost"),
        *(
            ([CREATE, SPEND | {"promise": promise}], "its guarantee does not cost")
            for promise in (
                *("epsilon=1/5", "epsilon=1/20", "rho=1/10", "epsilon=x", "", "1/10", "delta=1/10"),
                *("epsilon=2/20", "epsilon=0.1", "epsilon=1/0", " epsilon=1/10", "epsilon==1/10"),
            )
        ),
        ([CREATE | {"amount": "2/2"}], "entry 1 has an amount that is not in lowest terms"),
        *(
            ([CREATE, SPEND | change], "entry 2 is unreadable")
            for change in (
                *({"amount": text} for text in ("0", "1/0", "-1/10", "1e9", "0.1", "9" * 401, "")),
                *({"kind": text} for text in ("refund", "")),
                {"accounting": "delta"},
                *(
                    {"unit": text}
                    for text in (
                        *("", "{}", "[]", "1", "[" * 100_000, ROW.text.replace(":", ": ")),
                        ROW.text.replace("1", '"1"'),
                        ROW.text.replace("}", ',"more":1}'),
                    )
                ),
            )
        ),
        ([CREATE | {"sequence": 2}], "entry 1 is missing or out of order"),
        ([CREATE, SPEND | {"previous": GENESIS}], "entry 2 does not carry the digest"),
    ],
)
def test_rows_that_do_not_follow_are_refused(changes, sentence):
    with pytest.raises(LedgerError, match=sentence):
        check_history(chain(*changes))


@pytest.mark.parametrize(
    "change", [{"digest": "f" * 64}, {"purpose": "another"}, {"time": "2001"}, {"sequence": 3}]
)
def test_a_row_that_its_digest_does_not_cover_is_refused(change):
    snapshot = chain(CREATE, SPEND)
    rows = (snapshot.rows[0], replace(snapshot.rows[1], **change))
    with pytest.raises(LedgerError, match="changed from outside: entry 2"):
        check_history(replace(snapshot, rows=rows))


@pytest.mark.parametrize("change", [{"count": 1}, {"count": 3}, {"digest": GENESIS}])
def test_a_head_that_is_not_the_last_row_is_refused(change):
    with pytest.raises(LedgerError, match="the history ends at 2"):
        check_history(replace(chain(CREATE, SPEND), **change))


def test_a_noted_head_is_on_the_chain():
    snapshot = chain(CREATE, SPEND)
    history = check_history(snapshot)
    for head in (f"0:{GENESIS}", f"1:{snapshot.rows[0].digest}", f" {history.head}\n"):
        check_head(history, head)
    digest = snapshot.digest
    for head in (f"1:{digest}", f"3:{digest}", f"2:{GENESIS}", f"{'9' * 18}:{digest}"):
        with pytest.raises(LedgerError, match="is not on its chain"):
            check_head(history, head)
    for head in (
        "2",
        f"-1:{digest}",
        f"²:{digest}",
        f":{digest}",
        f"2:{digest}0",
        "9" * 19 + digest,
    ):
        with pytest.raises(LedgerError, match="an expected head is a count"):
            check_head(history, head)


def test_rows_of_a_database_have_one_number_and_texts():
    values = chain(CREATE).rows[0].values()
    assert stored_row(values).values() == values
    for wrong in (
        ("1", *values[1:]),
        (True, *values[1:]),
        (*values[:-1], b"x"),
        (*values[:-1], None),
    ):
        with pytest.raises(LedgerError, match="values of another type"):
            stored_row(wrong)


def test_names_are_short_and_hide_nothing():
    check_text("x" * 500, "a name")
    for wrong in ("x" * 501, "", "  ", " x", "x ", "a\tb", 5, None):
        with pytest.raises(LedgerError, match="a name must"):
            check_text(wrong, "a name")


EPSILON = Budget("people", Accounting.EPSILON, FIVE, Fraction(1), Fraction(0))
RHO = replace(EPSILON, accounting=Accounting.RHO)


def test_costs_follow_the_unit_by_group_privacy():
    tenth, rho = PureDP(Fraction(1, 10)), ZCDP(Fraction(1, 100))
    assert EPSILON.cost(tenth, ROW) == Fraction(1, 2)
    assert EPSILON.cost(tenth, FIVE) == Fraction(1, 10)
    assert RHO.cost(tenth, ROW) == Fraction(1, 8)
    assert RHO.cost(rho, ROW) == Fraction(1, 4)
    with pytest.raises(LedgerError, match="nothing follows for the budget"):
        EPSILON.cost(tenth, PrivacyUnit("person"))
    for budget, privacy, sentence in (
        (EPSILON, rho, "takes pure releases only, not one in rho"),
        (EPSILON, ApproxDP(Fraction(1), Fraction(1, 10**9)), "not one with a delta"),
        (RHO, ApproxDP(Fraction(1), Fraction(1, 10**9)), "alone implies no rho; scale the noise"),
        (RHO, ApproxDP(Fraction(1, 10**12), Fraction(1, 10**60)), "allows less rho than can be"),
        (RHO, 0.1, "a float cannot be spent"),
    ):
        with pytest.raises(LedgerError, match=sentence):
            budget.cost(privacy, ROW)


def test_a_sum_of_too_many_digits_is_refused():
    digits = 10**4000
    assert EPSILON.charged(Fraction(1, digits)).spent == Fraction(1, digits)
    with pytest.raises(LedgerError, match="more than 4,000 digits"):
        EPSILON.charged(Fraction(1, digits + 1))


def test_a_budget_never_looks_larger_than_it_is():
    third = Fraction(10**12, 3 * 10**12 + 1)
    shown = repr(replace(EPSILON, spent=third))
    assert "≈0.666666 epsilon left of 1, ≈0.333334 spent; protects one person" in shown


def test_ledgers_of_other_versions_are_named_with_what_to_do():
    assert "has format version 1, but this lrm knows version 2; create a new" in version_error(
        "x", 1
    )
    for version in (3, None, "2"):
        assert version_error("x", version).endswith("install the lrm that wrote it")
