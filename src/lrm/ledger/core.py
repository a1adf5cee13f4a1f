"""The ledger itself: budgets per table, spent before data is read."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from lrm.errors import BudgetExceeded, LedgerError
from lrm.files.locations import is_address, shown
from lrm.ledger.entries import (
    NO_DELTA,
    Accounting,
    Budget,
    Charge,
    DeltaAccount,
    Entry,
    History,
    Kind,
    Purpose,
    Row,
    Snapshot,
    already_charged,
    check_head,
    check_history,
    check_text,
    delta_text,
    promise_text,
    read_entry,
)
from lrm.ledger.store import DEFAULT_TIMEOUT, Store
from lrm.privacy.amounts import Amount, parse_amount, spell, spell_amount
from lrm.privacy.budget import LEAST_DELTA, ApproxZCDP
from lrm.privacy.unit import PrivacyUnit


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """Budgets of tables, and everything that was ever spent from them.

    Each operation checks the whole history first and refuses to go on from one that
    was changed from outside. A spend is checked, written and committed in one
    transaction; a process that is killed in between leaves no trace, or an entry that was never
    reported: privacy may be wasted, never overspent.

    What :meth:`verify` cannot detect: anyone who can write the file can replace it
    as a whole by another consistent history, such as an older copy of itself. Note
    :meth:`head` in another place after a release, and check it with
    ``verify(expected_head=…)``.

    Examples
    --------
    >>> import tempfile
    >>> from fractions import Fraction
    >>> from lrm.privacy.budget import PureDP
    >>> from lrm.privacy.unit import PrivacyUnit
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(f"{folder.name}/ledger.sqlite")
    >>> person = PrivacyUnit("person_id", max_rows=3)
    >>> ledger.create("people", limit="1", unit=person).remaining
    Fraction(1, 1)
    >>> guarantee = PureDP(Fraction(1, 10))
    >>> entry = ledger.spend("people", guarantee, unit=person, purpose="counts by age")
    >>> ledger.remaining("people")
    Fraction(9, 10)
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, *, clock: Callable[[], datetime] = _utc_now) -> None:
        self._store = store
        self._clock = clock

    @classmethod
    def open(cls, location: str | Path, *, timeout: float = DEFAULT_TIMEOUT) -> "Ledger":
        """Return the ledger at a SQLite file or PostgreSQL URL; nothing is read yet.

        Parameters
        ----------
        location
            A path, or a URL such as ``postgresql://user@host/database``.
        timeout
            For how many seconds to wait while another process is writing.
        """
        if "\0" in str(location):
            raise LedgerError("the name of a ledger must not contain the NUL character")
        if not is_address(str(location)):
            from lrm.ledger.sqlite import SqliteStore  # noqa: PLC0415 - loads only what is used

            return cls(SqliteStore(Path(location), timeout=timeout))
        if not str(location).startswith(("postgresql://", "postgres://")):
            raise LedgerError(
                f"a ledger must be a file or a postgresql:// URL, not {shown(location)}"
            )
        from lrm.ledger.postgres import PostgresStore  # noqa: PLC0415 - needs an extra

        return cls(PostgresStore(str(location), timeout=timeout))

    @property
    def name(self) -> str:
        """Where the ledger is; holds no password."""
        return self._store.name

    def __repr__(self) -> str:
        return f"<Ledger {self.name}>"

    def create(
        self,
        table: str,
        limit: Amount,
        accounting: Accounting | str = Accounting.EPSILON,
        *,
        unit: PrivacyUnit | None = None,
        delta_limit: Amount | None = None,
    ) -> Budget:
        """Give ``table`` a budget, once and for all; creates the ledger if there is none.

        Neither limit nor unit can be changed later: what was promised to the people in the
        table would change.

        Parameters
        ----------
        table
            The name of the budget.
        limit
            The most that may be spent, exactly.
        accounting
            ``"epsilon"`` for pure releases only, ``"rho"`` for Gaussian and pure ones.
        unit
            Whom the limit protects; by default one row, added or removed.
        delta_limit
            Of a budget in rho: the most δ that may be spent on discovering values; none by default.
        """
        check_text(table, "a table name")
        kept_in = _accounting(accounting)
        amount = parse_amount(limit, f"the limit in {kept_in.value}")
        protected = PrivacyUnit() if unit is None else _checked_unit(unit)
        delta = None if delta_limit is None else _delta_account(delta_limit, kept_in)
        budget = Budget(table, kept_in, protected, amount, Fraction(0), delta=delta)
        self._store.prepare()

        def decide(snapshot: Snapshot) -> Row:
            existing = check_history(snapshot).budgets.get(table)
            if existing is not None:
                limit = f"{spell_amount(existing.limit, 'down')} {existing.accounting.value}"
                raise LedgerError(
                    f"table '{table}' already has a budget of {limit} in this ledger, "
                    "and limits never change; spend from it"
                )
            return self._row(snapshot, budget, amount, protected)

        self._store.append(decide)
        return budget

    def spend(  # noqa: PLR0913 - the parts of one entry
        self,
        table: str,
        privacy: Charge,
        *,
        unit: PrivacyUnit,
        purpose: str,
        editions: Sequence[str] = (),
        key: str | None = None,
    ) -> Entry:
        """Spend what a release with this guarantee costs; call it before reading data.

        Parameters
        ----------
        table
            The name under which the budget was created.
        privacy
            What the release guarantees. In a budget kept in rho, a pure release costs
            epsilon²/2.
        unit
            Whom the release protects. Where the budget protects more, such as five rows
            instead of one, the release costs more; where nothing follows for the unit of
            the budget, it is refused.
        purpose
            What the release is for, in words or as a digest of its plan.
        editions
            Of a budget per period: the editions that the release reads, whose accounts are each
            charged.
        key
            The key of a job, under which the budget is charged once, however often the job is
            repeated.

        Returns
        -------
        Entry
            The entry, which is on disk by now.

        Raises
        ------
        BudgetExceeded
            When less is left; nothing is spent then.
        AlreadyCharged
            When the key was charged before; nothing is spent then.
        LedgerError
            When the ledger cannot be written or trusted, has no such budget, or
            cannot count such a guarantee; no data may be read then.
        """
        check_text(purpose, "a purpose")
        if purpose.startswith("{"):
            raise LedgerError("a purpose must not begin with a brace; write it in words")
        if key is not None:
            check_text(key, "a key")
        _checked_unit(unit)
        stored = Purpose(purpose, tuple(editions), key or "")

        def decide(snapshot: Snapshot) -> Row:
            history = check_history(snapshot)
            budget = self._budget(history, table)
            _refuse_charged(history, table, key)
            cost = _affordable(budget, privacy, unit, stored.editions)
            return self._row(snapshot, budget, cost, unit, privacy, stored.text)

        return read_entry(self._store.append(decide))

    def preview(
        self,
        table: str,
        privacy: Charge,
        *,
        unit: PrivacyUnit,
        editions: Sequence[str] = (),
        key: str | None = None,
    ) -> Budget:
        """Return the budget as it would be after a spend; raises the same errors as `spend`."""
        history = self._history()
        budget = self._budget(history, table)
        _refuse_charged(history, table, key)
        cost = _affordable(budget, privacy, _checked_unit(unit), editions)
        return budget.charged(cost, editions, _delta_of(privacy))

    def charged_with(self, table: str, key: str) -> Entry | None:
        """Return the entry that a key was charged with in the budget of ``table``, if any."""
        history = self._history()
        self._budget(history, table)
        return _charged_with(history, table, key)

    def budget(self, table: str, edition: str | None = None) -> Budget:
        """Return the budget of ``table``, or the account of one of its editions."""
        budget = self._budget(self._history(), table)
        if edition is None:
            return budget
        budget.left((edition,))
        return budget.account(edition)

    def budgets(self) -> tuple[Budget, ...]:
        """Return all budgets, in the order in which they were created."""
        return tuple(self._history().budgets.values())

    def remaining(self, table: str, edition: str | None = None) -> Fraction:
        """Return what is left of the budget of ``table``, or of one edition, in ε or ρ."""
        budget = self.budget(table)
        return budget.left(() if edition is None else (edition,))

    def history(self, table: str | None = None) -> tuple[Entry, ...]:
        """Return the entries of ``table``, or of all tables, oldest first."""
        history = self._history()
        if table is None:
            return history.entries
        self._budget(history, table)
        return tuple(entry for entry in history.entries if entry.table == table)

    def head(self) -> str:
        """Return count and digest of the history, to be noted in another place."""
        return self._history().head

    def verify(self, expected_head: str | None = None) -> str:
        """Check every entry, link and sum; return the head.

        Parameters
        ----------
        expected_head
            A head that was noted earlier. The history may have grown since, but must
            contain it: this also finds a file that was replaced as a whole.

        Raises
        ------
        LedgerError
            When the history is not what was written.
        """
        history = self._history()
        if expected_head is not None:
            check_head(history, expected_head)
        return history.head

    def _history(self) -> History:
        return check_history(self._store.read())

    def _budget(self, history: History, table: str) -> Budget:
        budget = history.budgets.get(table)
        if budget is None:
            known = ", ".join(f"'{name}'" for name in list(history.budgets)[:5]) or "none"
            raise LedgerError(
                f"ledger {self.name} has no budget for table {spell(table)} (it has: {known}); "
                "check the name, or make one with `lrm budget create`"
            )
        return budget

    def _row(  # noqa: PLR0913, PLR0917 - the parts of one entry
        self,
        snapshot: Snapshot,
        budget: Budget,
        amount: Fraction,
        unit: PrivacyUnit,
        privacy: Charge | None = None,
        purpose: str = "",
    ) -> Row:
        """Make the row that follows the head: a spend, or the creation of a budget."""
        return Row(
            sequence=snapshot.count + 1,
            kind=(Kind.CREATE if privacy is None else Kind.SPEND).value,
            table=budget.table,
            accounting=budget.accounting.value,
            unit=unit.text,
            amount=str(amount),
            promise=_created(budget) if privacy is None else promise_text(privacy),
            purpose=purpose,
            time=self._clock().astimezone(UTC).isoformat(timespec="microseconds"),
            previous=snapshot.digest,
            digest="",
        ).sealed()


def _charged_with(history: History, table: str, key: str) -> Entry | None:
    found = (entry for entry in history.entries if entry.table == table and entry.key == key)
    return next(found, None)


def _refuse_charged(history: History, table: str, key: str | None) -> None:
    """Refuse a key that was charged before."""
    entry = None if key is None else _charged_with(history, table, key)
    if entry is not None:
        raise already_charged(entry)


def _affordable(
    budget: Budget, privacy: Charge, unit: PrivacyUnit, editions: Sequence[str]
) -> Fraction:
    """Return what the guarantee costs, unless it is more than what is left."""
    cost = budget.cost(privacy, unit)
    remaining = budget.left(editions)
    if cost > remaining:
        name = budget.accounting.value
        least = min(editions, key=lambda each: budget.account(each).remaining, default="")
        account = f" in {least}" if least else ""
        raise BudgetExceeded(
            f"table '{budget.table}' has {spell_amount(remaining, 'down')} {name} left of "
            f"{spell_amount(budget.limit, 'down')}{account}, but this release costs "
            f"{spell_amount(cost, 'up')}; ask for less, or do not release"
        )
    left, delta = budget.delta_left(privacy, editions), _delta_of(privacy)
    if left is not None and delta > left:
        raise BudgetExceeded(
            f"table '{budget.table}' has {spell_amount(left, 'down')} delta left, but discovering "
            f"these values costs {spell_amount(delta, 'up')}; ask for less, or do not discover them"
        )
    budget.charged(cost, editions, delta)
    return cost


def _delta_of(privacy: Charge) -> Fraction:
    return privacy.delta if isinstance(privacy, ApproxZCDP) else NO_DELTA


def _created(budget: Budget) -> str:
    """What the entry that creates a budget states in addition to its limit."""
    return delta_text(None if budget.delta is None else budget.delta.limit)


def _delta_account(limit: Amount, accounting: Accounting) -> DeltaAccount:
    if accounting is not Accounting.RHO:
        raise LedgerError(
            "delta_limit is for budgets in rho, in which values are discovered; a budget in "
            "epsilon takes pure releases only"
        )
    return DeltaAccount(parse_amount(limit, "delta", least=LEAST_DELTA, most=Fraction(1, 2)))


def _accounting(accounting: Accounting | str) -> Accounting:
    try:
        return Accounting(accounting)
    except ValueError:
        raise LedgerError(
            f"a budget is kept in 'epsilon' or 'rho', not in {spell(accounting)}"
        ) from None


def _checked_unit(unit: PrivacyUnit) -> PrivacyUnit:
    if not isinstance(unit, PrivacyUnit):
        raise LedgerError(f"unit must be a PrivacyUnit, not {type(unit).__name__}")
    return unit
