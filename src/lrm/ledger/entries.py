"""What a ledger holds, and how its history is checked.

A ledger is one chain of entries. Each entry's digest covers its own content and
the digest before it, so that nothing in the middle can be changed, left out or put
in another order without every later digest being wrong.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from lrm.errors import BudgetError, LedgerError
from lrm.privacy.amounts import check_exact, spell_amount
from lrm.privacy.budget import (
    LEAST_RHO,
    MOST_RHO,
    ZCDP,
    ApproxDP,
    Privacy,
    PureDP,
    rho_for,
    rho_of_pure,
)
from lrm.privacy.unit import PrivacyUnit

GENESIS = "0" * 64
_MOST_TEXT = 500
_LONGEST_SUM = 10**4000  # Python spells integers of at most 4,300 digits
_FRACTION = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?")


class Accounting(Enum):
    """What the losses of a budget are added up in."""

    EPSILON = "epsilon"
    """Pure differential privacy."""

    RHO = "rho"
    """Zero-concentrated differential privacy; pure releases are converted."""


class Kind(Enum):
    """What an entry records."""

    CREATE = "create"
    SPEND = "spend"


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as it is stored: text only, in the order of the digest's content."""

    sequence: int
    kind: str
    table: str
    accounting: str
    unit: str
    amount: str
    promise: str
    purpose: str
    time: str
    previous: str
    digest: str

    def expected_digest(self) -> str:
        """Return the SHA-256 that this content should carry."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "digest"}
        canonical = json.dumps({"lrm-ledger": 2, **content}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def values(self) -> tuple[int | str, ...]:
        """Return the fields in order, as a database takes them."""
        return tuple(getattr(self, f.name) for f in fields(self))

    def sealed(self) -> "Row":
        """Return the same row with its digest."""
        return replace(self, digest=self.expected_digest())


def stored_row(values: Sequence[object]) -> Row:
    """Take a row from a database, which may hold anything, and check its types."""
    sequence, *texts = values
    if type(sequence) is not int or not all(type(text) is str for text in texts):
        raise _tampered("a row holds values of another type")
    return Row(sequence, *map(str, texts))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a history: a budget that was created, or an amount that was spent.

    ``promise`` spells what was released, for example ``epsilon=1/10``, and ``unit`` says
    whom that protects; ``amount`` is what it costs for the unit of the budget. ``time``
    informs the reader and nothing else: order is given by ``sequence`` alone, so a clock
    that jumps does no harm.
    """

    sequence: int
    kind: Kind
    table: str
    accounting: Accounting
    unit: PrivacyUnit
    amount: Fraction
    promise: str
    purpose: str
    time: str
    digest: str


@dataclass(frozen=True, slots=True, repr=False)
class Budget:
    """A table's budget: whom it protects, its limit, and what has been spent of it."""

    table: str
    accounting: Accounting
    unit: PrivacyUnit
    limit: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What may still be spent."""
        return self.limit - self.spent

    def __repr__(self) -> str:
        spent, left = spell_amount(self.spent, "up"), spell_amount(self.remaining, "down")
        return (
            f"<Budget of {self.table}: {left} {self.accounting.value} left of "
            f"{spell_amount(self.limit)}, {spent} spent; protects {self.unit.words}>"
        )

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)

    def charged(self, cost: Fraction) -> "Budget":
        """Return the budget after a spend; refused if nobody could spell out its sum."""
        spent = self.spent + cost
        if spent.denominator > _LONGEST_SUM:
            raise LedgerError(
                f"what is spent of table '{self.table}' would be a fraction of more than 4,000 "
                "digits; spend amounts of few digits, such as 0.1 or 1/3"
            )
        return replace(self, spent=spent)

    def cost(self, privacy: Privacy, unit: PrivacyUnit) -> Fraction:
        """Return what a guarantee for ``unit`` costs in this budget, exactly.

        Where the budget's unit is ``steps`` steps of ``unit`` wide, group privacy makes
        ε ``steps`` times and ρ ``steps**2`` times as large.

        Raises
        ------
        LedgerError
            When the guarantee bounds nothing for the budget's unit, or cannot be added up.
        """
        steps = self.unit.steps_of(unit)
        if steps is None:
            raise LedgerError(_other_unit(self, unit))
        match privacy, self.accounting:
            case PureDP(), Accounting.EPSILON:
                return steps * privacy.epsilon
            case PureDP(), Accounting.RHO:
                return steps**2 * rho_of_pure(privacy).rho
            case ZCDP(), Accounting.RHO:
                return steps**2 * privacy.rho
            case ZCDP(), Accounting.EPSILON:
                raise LedgerError(_pure_only(self, "one in rho"))
            case ApproxDP(), _:
                raise LedgerError(_refuse_approximate(self, privacy))
        raise LedgerError(f"a {type(privacy).__name__} cannot be spent; give a PureDP or a ZCDP")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows of a ledger at one moment, and the head that is stored with them."""

    rows: tuple[Row, ...]
    count: int
    digest: str

    @property
    def head(self) -> str:
        """The count and digest of the history as one text, to be kept elsewhere."""
        return f"{self.count}:{self.digest}"


@dataclass(frozen=True, slots=True)
class History:
    """A history that has been checked: its entries and the budgets they add up to."""

    entries: tuple[Entry, ...]
    budgets: Mapping[str, Budget]
    head: str


def check_history(snapshot: Snapshot) -> History:
    """Check every row, link and sum of a ledger, and return what it says.

    Cost: one SHA-256 and one exact addition per entry, about 50 µs each, which is
    half a second for 10,000 releases.

    Raises
    ------
    LedgerError
        At the first entry that does not follow from those before it.
    """
    entries: list[Entry] = []
    budgets: dict[str, Budget] = {}
    previous = GENESIS
    for expected, row in enumerate(snapshot.rows, start=1):
        if row.sequence != expected:
            raise _tampered(f"entry {expected} is missing or out of order")
        if row.previous != previous or row.digest != row.expected_digest():
            raise _tampered(f"entry {expected} does not carry the digest of its content")
        entry = read_entry(row)
        _account(entry, budgets)
        entries.append(entry)
        previous = row.digest
    if (snapshot.count, snapshot.digest) != (len(entries), previous):
        raise _tampered(
            f"the head counts {snapshot.count} entries but the history ends at {len(entries)}"
        )
    return History(tuple(entries), budgets, snapshot.head)


def check_head(history: History, expected: str) -> None:
    """Refuse a history that does not contain the head that was noted elsewhere.

    A longer history is fine: the noted head only has to lie on the chain.
    """
    count, _, digest = expected.strip().partition(":")
    if not (count.isascii() and count.isdigit() and len(count) < 19 and len(digest) == 64):
        raise LedgerError(
            "an expected head is a count and 64 hexadecimal digits, such as 3:9f86…; "
            "copy it whole from `lrm budget verify`"
        )
    digests = (GENESIS, *(entry.digest for entry in history.entries))
    number = int(count)
    if number >= len(digests) or digests[number] != digest:
        raise _tampered(f"the expected head with {number} entries is not on its chain")


def promise_text(privacy: Privacy) -> str:
    """Spell a guarantee as a history keeps it."""
    return ", ".join(f"{name}={amount}" for name, amount in privacy.amounts.items())


def _exact(text: str) -> Fraction:
    """Read a fraction as it was spelled; ``1e999999999`` would fill the memory."""
    if not _FRACTION.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _promise_from(text: str) -> Privacy:
    """Read what ``promise_text`` wrote for a guarantee that can be charged."""
    name, _, amount = text.partition("=")
    value = _exact(amount)
    privacy: Privacy = PureDP(value) if name == "epsilon" else ZCDP(value)
    if promise_text(privacy) != text:
        raise ValueError("not in canonical form")
    return privacy


@lru_cache(maxsize=256)
def _unit_from(text: str) -> PrivacyUnit:
    unit = PrivacyUnit.from_facts(json.loads(text))
    if unit.text != text:
        raise ValueError("not in canonical form")
    return unit


def check_text(text: str, what: str) -> None:
    """Refuse a table name or purpose that is empty, long, or hides characters."""
    if not isinstance(text, str) or not text.strip() or len(text) > _MOST_TEXT:
        raise LedgerError(f"{what} must be a text of 1 to {_MOST_TEXT} characters")
    if not text.isprintable() or text != text.strip():
        raise LedgerError(
            f"{what} must have printable characters only and no blanks around it; retype it"
        )


def read_entry(row: Row) -> Entry:
    """Read the stored text of an entry whose digest has been checked."""
    try:
        amount = _exact(row.amount)
        entry = Entry(
            row.sequence,
            Kind(row.kind),
            row.table,
            Accounting(row.accounting),
            _unit_from(row.unit),
            amount,
            row.promise,
            row.purpose,
            row.time,
            row.digest,
        )
        check_exact(amount, "an amount", LEAST_RHO, MOST_RHO)
    except (ValueError, TypeError, ZeroDivisionError, RecursionError) as error:
        raise _tampered(f"entry {row.sequence} is unreadable") from error
    if str(amount) != row.amount:
        raise _tampered(f"entry {row.sequence} has an amount that is not in lowest terms")
    return entry


def _account(entry: Entry, budgets: dict[str, Budget]) -> None:
    """Add ``entry`` to the budgets, as :class:`lrm.ledger.Ledger` did when writing it."""
    budget = budgets.get(entry.table)
    if entry.kind is Kind.CREATE:
        if budget is not None:
            raise _tampered(f"entry {entry.sequence} creates a budget for the second time")
        budgets[entry.table] = Budget(
            entry.table, entry.accounting, entry.unit, entry.amount, Fraction(0)
        )
        return
    if budget is None or budget.accounting is not entry.accounting:
        raise _tampered(f"entry {entry.sequence} spends from a budget that does not exist")
    if entry.amount != _cost_again(budget, entry):
        raise _tampered(f"entry {entry.sequence} spends an amount that its guarantee does not cost")
    if entry.amount > budget.remaining:
        raise _tampered(f"entry {entry.sequence} spends more than was left")
    budgets[entry.table] = budget.charged(entry.amount)


def _cost_again(budget: Budget, entry: Entry) -> Fraction | None:
    try:
        return budget.cost(_promise_from(entry.promise), entry.unit)
    except (LedgerError, ValueError, ZeroDivisionError):
        return None


def _tampered(what: str) -> LedgerError:
    return LedgerError(
        f"the ledger has been changed from outside: {what}; spend nothing from it "
        "and restore a copy whose head you know"
    )


def _other_unit(budget: Budget, unit: PrivacyUnit) -> str:
    return (
        f"the budget of '{budget.table}' protects {budget.unit.words}, but this release "
        f"protects {unit.words}, from which nothing follows for the budget; release with the "
        "budget's unit, or spend from a budget of the release's unit"
    )


def _refuse_approximate(budget: Budget, privacy: ApproxDP) -> str:
    if budget.accounting is Accounting.EPSILON:
        return _pure_only(budget, "one with a delta")
    try:
        rho = rho_for(privacy.epsilon, privacy.delta)
    except BudgetError as error:
        return str(error)
    return (
        "an (epsilon, delta) guarantee alone implies no rho; scale the noise to a rho of at most "
        f"{spell_amount(rho, 'down')}, which implies that guarantee, and spend that rho"
    )


def _pure_only(budget: Budget, request: str) -> str:
    return (
        f"the budget of table '{budget.table}' is kept in epsilon and takes pure releases only, "
        f"not {request}; plan with Laplace noise and release with pure epsilon, or keep another "
        "budget in rho (`lrm budget create NAME --accounting rho`), which takes both kinds"
    )
