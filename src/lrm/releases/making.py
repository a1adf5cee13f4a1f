"""Making a release: one way from a plan, a guarantee and data to private answers.

All that is public is checked first. Then the budget is spent, and only then the data are looked
at, whatever they are: counts in memory, a file of counts, a table. What is wrong with the data
themselves is found after the charge, which stays.
"""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lrm.errors import PrivacyWarning, ReleaseWarning, UsageError, note_charge
from lrm.ledger.entries import already_charged, promise_text
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.planning.plan.levels import LevelsPlan
from lrm.privacy.amounts import Amount, spell, spell_amount
from lrm.privacy.budget import ZCDP, Privacy, PureDP
from lrm.privacy.mechanism import calibrate, measure
from lrm.privacy.noise import Calibrated
from lrm.privacy.periods import example_of
from lrm.privacy.unit import Neighbours, PrivacyUnit
from lrm.queries.workload import check_listable
from lrm.releases.core import Release, from_measurements, states_results, waiting
from lrm.releases.levels import LevelsRelease
from lrm.releases.sources import Source, source_of

if TYPE_CHECKING:
    from lrm.ledger import Budget, Ledger


class NotGiven(Enum):
    """Marks that no ledger argument was given, which differs from ``ledger=None``."""

    NOT_GIVEN = "not given"


NOT_GIVEN = NotGiven.NOT_GIVEN


MOST_MEASUREMENTS = 1 << 28
"""Numbers that a release may measure: 2 GiB of integers."""


def release(  # noqa: PLR0913 - what is asked, of what, for whom, and what is charged
    plan: Plan,
    data: Any,
    epsilon: Amount | None = None,
    *,
    delta: Amount | None = None,
    rho: Amount | None = None,
    ledger: Ledger | str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
    budget: str | None = None,
    neighbours: Neighbours | None = None,
    max_rows: int | None = None,
    key: str | None = None,
    edition: str | None = None,
    progress: bool = True,
) -> Release:
    """Answer the plan's batch on private data under differential privacy.

    Everything public is checked first, then the ledger is charged, then the data are read: an error
    before the charge costs nothing; after it the charge stays, and a note on the error states it.

    Parameters
    ----------
    plan
        Made by ``lrm.plan``.
    data
        One of:

        - how many records fall in each cell: whole numbers, not negative, and no more in all
          than the plan admits;
        - a table: what ``lrm.open_table`` returned, a frame of pandas, Polars, Arrow or Spark,
          or an address such as ``"visits.parquet"``. The plan needs a domain then;
        - a file of counts that is read after the charge:
          ``lrm.releases.counts_file.CountsFile(path)``.
    epsilon, delta, rho
        The guarantee: epsilon for Laplace plans; rho, or epsilon with delta, for Gaussian ones.
        A float is taken at its decimal spelling: 0.1 is 1/10.
    ledger
        What is charged: an ``lrm.Ledger``, or its file or URL. A release of a table must say
        ``ledger=None`` if nothing is to record what is spent; for counts that is the default.
    budget
        Name of the budget; by default what the domain calls its table, else the table's own name.
    neighbours
        ``"add-remove"`` (default) or ``"substitute"``, for a plan without a domain. A domain
        declares it, and is not contradicted.
    max_rows
        Records that one person may have in the counts (1), for a plan without a domain.
    key
        The name of a job that may be repeated: the ledger is charged once for it. A second call
        raises an error, since the noise of a charge is drawn once.
    edition
        Of a report that is published period after period: the edition whose rows are read and
        whose account is charged, such as ``"2025-03"``; by default that of the plan's domain.
    progress
        Whether a release that takes more than two seconds shows a line, where a person watches.

    Warns
    -----
    PrivacyWarning
        Where the guarantee is so weak that it protects nobody (ε or ρ above 20).
    ReleaseWarning
        Where no answer is distinguishable from zero.

    Raises
    ------
    TableError, BudgetExceeded, AlreadyCharged
        Where the table lacks what the domain declares, too little is left, or the key
        was charged before: nothing is spent then, and no row is read.
    CountsError
        Where counts that the caller passes do not fit the plan.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, -1]], "noise-on-data")
    >>> len(lrm.release(plan, [120, 80], epsilon="0.5").answers)
    2
    """
    privacy = _privacy(plan, epsilon, delta, rho)
    plan = plan if edition is None else plan.at(edition)
    unit = plan.unit_with(neighbours, max_rows)
    with waiting("counting, and adding noise", progress):
        made = prepare(plan, data, privacy, unit, ledger, budget, key).run()
    # The budget is spent: with warnings as errors, the release must not be lost.
    with suppress(Exception):
        for sentence in made.warnings if _is_quick(made) else ():
            warnings.warn(sentence, ReleaseWarning, stacklevel=2)
    return made


def _is_quick(made: Release) -> bool:
    """Whether the errors of a release take no time, so that no Ctrl-C comes in between."""
    bodies = [level.measured.body for level in made.plan.levels]
    return states_results(made) and not any(body and body.simulated for body in bodies)


def preview(  # noqa: PLR0913 - the same as for a release
    plan: Plan,
    data: Any,
    epsilon: Amount | None = None,
    *,
    delta: Amount | None = None,
    rho: Amount | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    budget: str | None = None,
    neighbours: Neighbours | None = None,
    max_rows: int | None = None,
    key: str | None = None,
    edition: str | None = None,
) -> Preview:
    """Make all checks of ``release``, and return cost and errors; spends and reads nothing.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, -1]], "noise-on-data")
    >>> preview(plan, [120, 80], epsilon="0.5").cost
    PureDP(epsilon=0.5)
    """
    privacy = _privacy(plan, epsilon, delta, rho)
    plan = plan if edition is None else plan.at(edition)
    unit = plan.unit_with(neighbours, max_rows)
    return prepare(plan, data, privacy, unit, ledger, budget, key).preview()


def _privacy(
    plan: Plan, epsilon: Amount | None, delta: Amount | None, rho: Amount | None
) -> Privacy:
    if not isinstance(plan, Plan):
        raise UsageError(
            f"a release needs a Plan, not {type(plan).__name__}; "
            "make one with lrm.plan, or read one with lrm.load_plan"
        )
    privacy = plan.privacy(epsilon, delta, rho)
    weak = privacy.concern
    if weak is not None:
        warnings.warn(weak, PrivacyWarning, stacklevel=3)  # the caller of release or preview
    return privacy


def prepare(  # noqa: PLR0913, PLR0917 - what is asked, of what, for whom, and what is charged
    plan: Plan,
    data: Any,
    privacy: Privacy,
    unit: PrivacyUnit,
    ledger: Ledger | str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
    budget: str | None = None,
    key: str | None = None,
) -> Prepared:
    """Check all that is public, and calibrate the noise: all of a release that needs no data."""
    if not plan.reconstruction_map.is_blockwise:
        check_listable(plan.workload)
    _check_size(plan)
    _check_edition(plan)
    parts = []
    for level, guarantee in plan.releases(privacy):
        own = unit if level is plan else level.unit
        noise = calibrate(level.measured, guarantee, own, level.record_bits)
        parts.append(PreparedPart(level, noise, own, source_of(level, data)))
    source = parts[0].source
    payer = _payer(source, ledger)
    if payer is None and (budget is not None or key is not None):
        which = "key names a charge in a ledger" if budget is None else "budget names a budget"
        raise UsageError(f"{which}; give the ledger too")
    name = budget or source.table or ""
    if payer is not None and not name:
        raise UsageError(
            "counts do not name their table; name the budget to charge (budget=, --budget)"
        )
    prepared = Prepared(plan, privacy, tuple(parts), unit, payer, name, key)
    prepared.check_key()
    for part in parts:
        part.source.check()
    return prepared


def _check_edition(plan: Plan) -> None:
    """Refuse a release of a report whose edition nobody named."""
    editions = None if plan.workload.domain is None else plan.workload.domain.editions
    if editions is not None and editions.edition is None:
        raise UsageError(
            f"the domain has an edition for each {editions.by}; name the one to release "
            f"(edition=, --edition {example_of(editions.by)})"
        )


def _check_size(plan: Plan) -> None:
    """Refuse a release whose measurements would not fit into memory."""
    count = max(plan.measured.measurement_count, plan.measured.cell_count)
    if count > MOST_MEASUREMENTS:
        raise UsageError(
            f"the plan measures {count:,} numbers, and a release admits {MOST_MEASUREMENTS:,}; "
            "ask for smaller tables, or for fewer of them"
        )


def _payer(
    source: Source, ledger: Ledger | str | os.PathLike[str] | NotGiven | None
) -> Ledger | None:
    from lrm.ledger import Ledger  # noqa: PLC0415 - only where one is given

    if isinstance(ledger, NotGiven):
        if source.needs_ledger:
            raise UsageError(
                "a release of a table needs ledger=, which is charged for it; pass ledger=None if "
                "nothing is to record what is spent"
            )
        return None
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    return Ledger.open(os.fspath(ledger))


@dataclass(frozen=True)
class Preview:
    """What a release would cost, and how accurate it would be.

    Parameters
    ----------
    plan
        What would be answered.
    privacy
        The guarantee.
    cost
        What a ledger would be charged: ε, or ρ for Gaussian noise.
    unit
        Whom the guarantee protects.
    accuracy
        Errors and intervals of the noise that would be drawn.
    budget
        The budget as it would be afterwards; None without a ledger.
    """

    plan: Plan
    privacy: Privacy
    cost: PureDP | ZCDP
    unit: PrivacyUnit
    accuracy: Accuracy
    budget: Budget | None


@dataclass(frozen=True, eq=False)
class PreparedPart:
    """One of the plans that are released together, with its noise and its source."""

    plan: Plan
    noise: Calibrated
    unit: PrivacyUnit
    source: Source

    def run(self, ledger_head: str | None) -> Release:
        """Read the data, then measure with noise: once the budget is spent."""
        measured = measure(self.source.counts(), self.plan.measured, self.noise)
        return from_measurements(self.plan, measured, self.unit, ledger_head)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A release that could be made: its noise is calibrated, nothing is spent or read."""

    plan: Plan
    privacy: Privacy
    parts: tuple[PreparedPart, ...]
    unit: PrivacyUnit
    ledger: Ledger | None
    budget: str
    key: str | None = None

    def check_key(self) -> None:
        """Refuse a key that was charged before; for another release, with another sentence."""
        if self.ledger is None or self.key is None:
            return
        entry = self.ledger.charged_with(self.budget, self.key)
        if entry is None:
            return
        charged = (entry.purpose, entry.promise, entry.editions)
        if charged != (self._purpose, promise_text(self.cost), self.editions):
            raise UsageError(
                f"key {spell(self.key)} was charged for another release (entry {entry.sequence}: "
                f"{entry.purpose}, {entry.promise}); give each release a key of its own"
            )
        raise already_charged(entry)

    @property
    def editions(self) -> tuple[str, ...]:
        """The editions that are read, each of which is charged."""
        domain = self.plan.workload.domain
        return () if domain is None or domain.editions is None else domain.editions.names

    @property
    def _purpose(self) -> str:
        return f"plan {self.plan.digest[:16]}"

    @property
    def cost(self) -> PureDP | ZCDP:
        """What a ledger is charged.

        The ε asked for, with Laplace noise; with Gaussian noise the ρ of the noise's own
        privacy map, for an (ε, δ) guarantee too, since ρ adds up exactly and (ε, δ) does not.
        """
        if isinstance(self.privacy, PureDP):
            return self.privacy
        return ZCDP(sum((part.noise.loss for part in self.parts), Fraction(0)))

    def preview(self) -> Preview:
        """Return cost and accuracy; refused where the ledger would refuse."""
        after = None
        if self.ledger is not None:
            after = self.ledger.preview(
                self.budget, self.cost, unit=self.unit, editions=self.editions, key=self.key
            )
        accuracy = self.plan.accuracy(self.privacy, self.unit)
        return Preview(self.plan, self.privacy, self.cost, self.unit, accuracy, after)

    def run(self) -> Release:
        """Pay, then read the data, then measure with noise."""
        try:
            # Shaped noise may take seconds: Ctrl-C costs nothing yet.
            parts = [replace(part, noise=part.noise.drawn()) for part in self.parts]
        except BaseException as reason:
            if self.ledger is not None:
                note_charge(reason, f"the budget of {self.budget!r} was not charged")
            raise
        entry = None
        if self.ledger is not None:
            entry = self.ledger.spend(
                self.budget,
                self.cost,
                unit=self.unit,
                purpose=self._purpose,
                editions=self.editions,
                key=self.key,
            )
        # From here on the budget is gone, whatever happens: privacy may be wasted, never
        # overspent. So data is read behind this line alone.
        head = None if entry is None else entry.head
        try:
            made = [part.run(head) for part in parts]
            if isinstance(self.plan, LevelsPlan):
                return LevelsRelease.of(self.plan, made, self.privacy, self.unit, head)
            return made[0]
        except BaseException as reason:  # Ctrl-C too
            if entry is not None:
                note_charge(
                    reason,
                    f"the budget of {entry.table!r} was charged {spell_amount(entry.amount, 'up')} "
                    f"{entry.accounting.value} for this release, which it does not get back",
                    "made",
                )
            raise
