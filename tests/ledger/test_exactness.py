"""Whatever is spent in whatever order, the ledger's sums are those of exact arithmetic."""

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lrm.errors import BudgetExceeded, LedgerError
from lrm.ledger import Ledger
from lrm.privacy.amounts import LEAST_AMOUNT
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()

amounts = st.fractions(min_value=LEAST_AMOUNT, max_value=1, max_denominator=10**15)
pures = amounts.map(PureDP)
concentrated = amounts.map(ZCDP)


class Spending(RuleBasedStateMachine):
    """A ledger beside a dictionary of exact sums."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger.open(self.folder / "ledger.sqlite")
        self.left = {}
        self.entries = 0
        self.head = None

    def teardown(self):
        shutil.rmtree(self.folder)

    @initialize(limits=st.lists(amounts, min_size=2, max_size=2))
    def create(self, limits):
        for unit, limit in zip(("epsilon", "rho"), limits, strict=True):
            self.ledger.create(unit, limit, unit)
            self.left[unit] = limit
            self.entries += 1

    def _spend(self, table, privacy, cost):
        if cost > self.left[table]:
            with pytest.raises(BudgetExceeded):
                self.ledger.spend(table, privacy, unit=ROW, purpose="too much")
            return
        assert self.ledger.spend(table, privacy, unit=ROW, purpose="some").amount == cost
        self.left[table] -= cost
        self.entries += 1

    @rule(privacy=pures)
    def spend_pure(self, privacy):
        self._spend("epsilon", privacy, privacy.epsilon)

    @rule(privacy=pures)
    def spend_pure_from_rho(self, privacy):
        self._spend("rho", privacy, privacy.epsilon**2 / 2)

    @rule(privacy=concentrated)
    def spend_rho(self, privacy):
        self._spend("rho", privacy, privacy.rho)

    @rule()
    def spend_what_is_left(self):
        left = self.left["epsilon"]
        if left >= LEAST_AMOUNT:
            self._spend("epsilon", PureDP(left), left)

    @rule()
    def spend_a_little_more_than_is_left(self):
        more = self.left["epsilon"] + LEAST_AMOUNT
        self._spend("epsilon", PureDP(more), more)

    @rule(privacy=concentrated)
    def refuse_rho_from_epsilon(self, privacy):
        with pytest.raises(LedgerError, match="kept in epsilon"):
            self.ledger.spend("epsilon", privacy, unit=ROW, purpose="wrong unit")

    @invariant()
    def sums_are_exact(self):
        if not self.left:
            return
        budgets = {budget.table: budget for budget in self.ledger.budgets()}
        for table, left in self.left.items():
            assert budgets[table].remaining == left
            assert Fraction(0) <= budgets[table].spent <= budgets[table].limit
        assert len(self.ledger.history()) == self.entries
        self.head = self.ledger.verify(self.head)


TestSpending = Spending.TestCase
TestSpending.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_a_sum_can_always_be_spelled_out(tmp_path):
    """Amounts of a hundred digits each add up to a fraction that Python refuses to print."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("people", "1")

    def spend_many():
        for number in range(1, 100, 2):
            amount = PureDP(Fraction(10**90, 10**99 + number))
            ledger.spend("people", amount, unit=ROW, purpose="many digits")

    with pytest.raises(LedgerError, match="more than 4,000 digits"):
        spend_many()
    (kept,) = ledger.budgets()
    assert len(ledger.history()) > 20
    assert str(kept.remaining)
    assert "spent" in repr(kept)
