"""What a ledger holds, and how its history is checked.

A ledger is one chain of entries. Each entry's digest covers its own content and
the digest before it, so that nothing in the middle can be changed, left out or put
in another order without every later digest being wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from lrm.errors import AlreadyCharged, BudgetError, LedgerError
from lrm.privacy.amounts import check_exact, spell, spell_amount
from lrm.privacy.budget import (
    LEAST_DELTA,
    LEAST_RHO,
    MOST_RHO,
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Privacy,
    PureDP,
    rho_for,
    rho_of_pure,
)
from lrm.privacy.periods import example_of, parse_edition
from lrm.privacy.unit import PrivacyUnit

GENESIS = "0" * 64
_MOST_TEXT = 500
_LONGEST_SUM = 10**4000  # Python spells integers of at most 4,300 digits
_FRACTION = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?")


def _canonical(facts: Mapping[str, object]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


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
        canonical = _canonical({"lrm-ledger": 2, **content})
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def values(self) -> tuple[int | str, ...]:
        """Return the fields in order, as a database takes them."""
        return tuple(getattr(self, f.name) for f in fields(self))

    def sealed(self) -> Row:
        """Return the same row with its digest."""
        return replace(self, digest=self.expected_digest())


def stored_row(values: Sequence[object]) -> Row:
    """Take a row from a database, which may hold anything, and check its types."""
    sequence, *texts = values
    if type(sequence) is not int or not all(type(text) is str for text in texts):
        raise _tampered("a row holds values of another type")
    return Row(sequence, *map(str, texts))


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a release was for, the editions that it reads, and the key of the job that made it.

    It is stored in one column: the words alone, or one line of JSON where there is more, so that
    ledgers without editions and keys are as they always were.

    Parameters
    ----------
    words
        What the release is for.
    editions
        Of a budget per period: the editions whose accounts are charged.
    key
        The key under which the release is charged once; empty where it has none.

    Examples
    --------
    >>> Purpose("plan 0123").text
    'plan 0123'
    >>> Purpose("plan 0123", key="nightly 7").text
    '{"key":"nightly 7","lrm":1,"purpose":"plan 0123"}'
    >>> Purpose.of(Purpose("plan 0123", ("2025-03",)).text).editions
    ('2025-03',)
    """

    words: str
    editions: tuple[str, ...] = ()
    key: str = ""

    @property
    def text(self) -> str:
        """The text of the column."""
        facts: dict[str, object] = {"lrm": 1, "purpose": self.words}
        if self.editions:
            facts["editions"] = list(self.editions)
        if self.key:
            facts["key"] = self.key
        return self.words if len(facts) == 2 else _canonical(facts)

    @classmethod
    def of(cls, text: str) -> Purpose:
        """Read what `text` wrote; words that only look like JSON are words."""
        if not text.startswith("{"):
            return cls(text)
        try:
            facts = json.loads(text)
            purpose = cls(facts["purpose"], tuple(facts.get("editions", ())), facts.get("key", ""))
        except (ValueError, TypeError, KeyError, RecursionError):
            return cls(text)
        texts = (purpose.words, purpose.key, *purpose.editions)
        if not all(isinstance(part, str) for part in texts) or purpose.text != text:
            return cls(text)
        return purpose


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a history: a budget that was created, or an amount that was spent.

    ``promise`` spells what was released, for example ``epsilon=1/10``, and ``unit`` says
    whom that protects; ``amount`` is what it costs for the unit of the budget, in each of its
    ``editions`` where it has accounts. ``time`` informs the reader and nothing else: order is given
    by ``sequence`` alone, so a clock that jumps does no harm.
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
    editions: tuple[str, ...] = ()
    key: str = ""

    @property
    def head(self) -> str:
        """Count and digest of the history up to this entry, as a release keeps it."""
        return f"{self.sequence}:{self.digest}"


NO_DELTA = Fraction(0)

Charge = Privacy | ApproxZCDP
"""What a budget can be charged for: a release, or values that are discovered."""


@dataclass(frozen=True, slots=True)
class DeltaAccount:
    """How much δ may be spent beside ρ, and what has been: in each edition where there are any.

    >>> account = DeltaAccount(Fraction(1, 10**6)).charged(Fraction(1, 10**8), ("2025-02",))
    >>> account.left(("2025-01",)) - account.left(("2025-02",))
    Fraction(1, 100000000)
    """

    limit: Fraction
    spent: Fraction = NO_DELTA
    accounts: Mapping[str, Fraction] = field(default_factory=dict)

    def of(self, editions: Sequence[str]) -> DeltaAccount:
        """The account of those of some editions from which most is spent."""
        spent = max(self.accounts.get(name, NO_DELTA) for name in editions)
        return DeltaAccount(self.limit, spent)

    def left(self, editions: Sequence[str]) -> Fraction:
        """What may still be spent in each of these editions, or at all where there are none."""
        return self.limit - (self.of(editions).spent if editions else self.spent)

    def charged(self, delta: Fraction, editions: Sequence[str]) -> DeltaAccount:
        """The account after a spend."""
        if not editions:
            return replace(self, spent=self.spent + delta)
        added = {name: self.accounts.get(name, NO_DELTA) + delta for name in editions}
        accounts = {**self.accounts, **added}
        return DeltaAccount(self.limit, max(accounts.values()), accounts)


@dataclass(frozen=True, slots=True, repr=False)
class Budget:
    """A table's budget: whom it protects, its limit, and what has been spent of it.

    A budget per period has an account for each edition, and the limit holds for each of them:
    they never add up, since a person's rows of one period are in one edition alone. ``spent``
    is then that of the account that has spent most. ``delta`` is what discovered values may
    spend in addition; None where there is none.
    """

    table: str
    accounting: Accounting
    unit: PrivacyUnit
    limit: Fraction
    spent: Fraction
    accounts: Mapping[str, Fraction] = field(default_factory=dict)
    delta: DeltaAccount | None = None

    @property
    def remaining(self) -> Fraction:
        """What may still be spent."""
        return self.limit - self.spent

    def account(self, edition: str) -> Budget:
        """The account of one edition, as a budget of its own."""
        delta = None if self.delta is None else self.delta.of((edition,))
        return replace(
            self, spent=self.accounts.get(edition, Fraction(0)), accounts={}, delta=delta
        )

    def __repr__(self) -> str:
        spent, left = spell_amount(self.spent, "up"), spell_amount(self.remaining, "down")
        return (
            f"<Budget of {self.table}: {left} {self.accounting.value} left of "
            f"{spell_amount(self.limit)}, {spent} spent; protects {self.unit.words}>"
        )

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)

    def charged(
        self, cost: Fraction, editions: Sequence[str] = (), delta: Fraction = NO_DELTA
    ) -> Budget:
        """Return the budget after a spend; refused if nobody could spell out its sum."""
        if delta and self.delta is not None:
            return replace(self, delta=self.delta.charged(delta, editions)).charged(cost, editions)
        if editions:
            added = {name: self.account(name).charged(cost).spent for name in editions}
            accounts = {**self.accounts, **added}
            return replace(self, spent=max(accounts.values()), accounts=accounts)
        spent = self.spent + cost
        if spent.denominator > _LONGEST_SUM:
            raise LedgerError(
                f"what is spent of table '{self.table}' would be a fraction of more than 4,000 "
                "digits; spend amounts of few digits, such as 0.1 or 1/3"
            )
        return replace(self, spent=spent)

    def left(self, editions: Sequence[str]) -> Fraction:
        """What may still be spent in each of these editions, or at all where there are none.

        Raises
        ------
        LedgerError
            Where a budget per period is charged without an edition, or another one with one, or
            where an edition is none of the period.
        """
        period = self.unit.period
        if period is None:
            if editions:
                raise LedgerError(
                    f"the budget of '{self.table}' has no accounts per period, so that no edition "
                    "can be charged; create one with `lrm budget create NAME --per month`"
                )
            return self.remaining
        if not editions:
            raise LedgerError(
                f"the budget of '{self.table}' has an account for each {period}; name the edition "
                f"to charge, such as {example_of(period)}"
            )
        for name in editions:
            parse_edition(period, name)
        return min(self.account(name).remaining for name in editions)

    def delta_left(self, privacy: Charge, editions: Sequence[str]) -> Fraction | None:
        """How much δ is left for a guarantee, or None where it needs none."""
        if not isinstance(privacy, ApproxZCDP):
            return None
        return NO_DELTA if self.delta is None else self.delta.left(editions)

    def cost(self, privacy: Charge, unit: PrivacyUnit) -> Fraction:
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
            case ApproxZCDP(), _:
                return self._cost_of_discovery(privacy, steps)
            case ApproxDP(), _:
                raise LedgerError(_refuse_approximate(self, privacy))
        raise LedgerError(f"a {type(privacy).__name__} cannot be spent; give a PureDP or a ZCDP")

    def _cost_of_discovery(self, privacy: ApproxZCDP, steps: int) -> Fraction:
        """The ρ of values that are discovered, whose δ has an account of its own."""
        if self.accounting is Accounting.EPSILON or self.delta is None:
            has = "is kept in epsilon" if self.accounting is Accounting.EPSILON else "has no delta"
            raise LedgerError(
                f"the budget of '{self.table}' {has}, and discovering values needs rho and delta; "
                "create a budget with both: `lrm budget create NAME --accounting rho --delta-limit "
                "1e-6`"
            )
        if steps != 1:
            raise LedgerError(
                f"the budget of '{self.table}' protects {self.unit.words}, and values are "
                "discovered for a smaller unit; discover them for the budget's unit"
            )
        return privacy.rho


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


def promise_text(privacy: Charge) -> str:
    """Spell a guarantee as a history keeps it."""
    return ", ".join(f"{name}={amount}" for name, amount in privacy.amounts.items())


def _exact(text: str) -> Fraction:
    """Read a fraction as it was spelled; ``1e999999999`` would fill the memory."""
    if not _FRACTION.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _promise_from(text: str) -> Charge:
    """Read what ``promise_text`` wrote for a guarantee that can be charged."""
    amounts = {}
    for part in text.split(", "):
        name, _, amount = part.partition("=")
        amounts[name] = _exact(amount)
    privacy: Charge
    match amounts:
        case {"epsilon": epsilon}:
            privacy = PureDP(epsilon)
        case {"rho": rho, "delta": delta}:
            privacy = ApproxZCDP(rho, delta)
        case _:
            privacy = ZCDP(amounts["rho"])
    if promise_text(privacy) != text:
        raise ValueError("not in canonical form")
    return privacy


def delta_text(limit: Fraction | None) -> str:
    """Spell the most δ of a budget as the entry that creates it keeps it; nothing where none is."""
    return "" if limit is None else f"delta={limit}"


def delta_from(entry: Entry) -> DeltaAccount | None:
    """Read what `delta_text` wrote."""
    if not entry.promise:
        return None
    limit = _exact(entry.promise.removeprefix("delta="))
    if delta_text(limit) != entry.promise or entry.accounting is not Accounting.RHO:
        raise ValueError("not in canonical form")
    check_exact(limit, "delta", LEAST_DELTA, Fraction(1, 2))
    return DeltaAccount(limit)


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
        purpose = Purpose.of(row.purpose)
        entry = Entry(
            row.sequence,
            Kind(row.kind),
            row.table,
            Accounting(row.accounting),
            _unit_from(row.unit),
            amount,
            row.promise,
            purpose.words,
            row.time,
            row.digest,
            purpose.editions,
            purpose.key,
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
        try:
            delta = delta_from(entry)
        except (ValueError, ZeroDivisionError, BudgetError) as error:
            raise _tampered(f"entry {entry.sequence} has a limit that none can have") from error
        budgets[entry.table] = Budget(
            entry.table, entry.accounting, entry.unit, entry.amount, Fraction(0), delta=delta
        )
        return
    if budget is None or budget.accounting is not entry.accounting:
        raise _tampered(f"entry {entry.sequence} spends from a budget that does not exist")
    privacy, cost = _cost_again(budget, entry)
    if privacy is None or entry.amount != cost:
        raise _tampered(f"entry {entry.sequence} spends an amount that its guarantee does not cost")
    spent_delta = privacy.delta if isinstance(privacy, ApproxZCDP) else NO_DELTA
    try:
        left = budget.left(entry.editions)
        delta_left = budget.delta_left(privacy, entry.editions)
    except (LedgerError, BudgetError) as error:
        raise _tampered(f"entry {entry.sequence} charges accounts that do not exist") from error
    if entry.amount > left or (delta_left is not None and spent_delta > delta_left):
        raise _tampered(f"entry {entry.sequence} spends more than was left")
    budgets[entry.table] = budget.charged(entry.amount, entry.editions, spent_delta)


def _cost_again(budget: Budget, entry: Entry) -> tuple[Charge | None, Fraction]:
    try:
        privacy = _promise_from(entry.promise)
        return privacy, budget.cost(privacy, entry.unit)
    except (LedgerError, ValueError, KeyError, ZeroDivisionError):
        return None, Fraction(0)


def already_charged(entry: Entry) -> AlreadyCharged:
    """The error of a key that was charged before."""
    return AlreadyCharged(
        f"key {spell(entry.key)} was charged {spell_amount(entry.amount, 'up')} "
        f"{entry.accounting.value} of '{entry.table}' before (entry {entry.sequence}, "
        f"{entry.time[:19]}); nothing was charged again",
        entry.head,
    )


def _tampered(what: str) -> LedgerError:
    return LedgerError(
        f"the ledger has been changed from outside: {what}; spend nothing from it "
        "and restore a copy whose head you know"
    )


def _other_unit(budget: Budget, unit: PrivacyUnit) -> str:
    if budget.unit.period != unit.period:
        return (
            f"the budget of '{budget.table}' protects {budget.unit.words}, but this release "
            f"protects {unit.words}: a person in several periods loses in each of them, and "
            "nothing bounds in how many one is; release with the budget's unit, or create "
            "another budget for this one"
        )
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
