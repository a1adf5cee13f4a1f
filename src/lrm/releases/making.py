"""Making a release: one way from a plan, a guarantee and data to private answers.

All that is public is checked first. Then the budget is spent, and only then the data are looked
at, whatever they are: counts in memory, a file of counts, a table. What is wrong with the data
themselves is found after the charge, which stays.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from lrm.errors import PrivacyWarning, UsageError, note_charge
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.privacy.amounts import Amount, spell_amount
from lrm.privacy.budget import ZCDP, Privacy, PureDP
from lrm.privacy.mechanism import calibrate, measure
from lrm.privacy.noise import Calibrated
from lrm.privacy.unit import Neighbours, PrivacyUnit
from lrm.queries.workload import check_listable
from lrm.releases.core import Release, from_measurements
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

    Warns
    -----
    PrivacyWarning
        Where the guarantee is so weak that it protects nobody (ε or ρ above 20).

    Raises
    ------
    TableError, BudgetExceeded
        Where the table lacks what the domain declares, or too little is left: nothing
        is spent then, and no row is read.
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
    unit = plan.unit_with(neighbours, max_rows)
    return prepare(plan, data, privacy, unit, ledger, budget).run()


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
    unit = plan.unit_with(neighbours, max_rows)
    return prepare(plan, data, privacy, unit, ledger, budget).preview()


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
) -> Prepared:
    """Check all that is public, and calibrate the noise: all of a release that needs no data."""
    if not plan.reconstruction_map.is_blockwise:
        check_listable(plan.workload)
    _check_size(plan)
    noise = calibrate(plan.measured, privacy, plan.moved_counts(unit))
    source = source_of(plan, data)
    payer = _payer(source, ledger)
    if payer is None and budget is not None:
        raise UsageError("budget names a budget of a ledger; give the ledger too")
    name = budget or source.table or ""
    if payer is not None and not name:
        raise UsageError(
            "counts do not name their table; name the budget to charge (budget=, --budget)"
        )
    source.check()
    return Prepared(plan, noise, unit, source, payer, name)


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
class Prepared:
    """A release that could be made: its noise is calibrated, nothing is spent or read."""

    plan: Plan
    noise: Calibrated
    unit: PrivacyUnit
    source: Source
    ledger: Ledger | None
    budget: str

    @property
    def cost(self) -> PureDP | ZCDP:
        """What a ledger is charged.

        The ε asked for, with Laplace noise; with Gaussian noise the ρ of the noise's own
        privacy map, for an (ε, δ) guarantee too, since ρ adds up exactly and (ε, δ) does not.
        """
        privacy = self.noise.privacy
        return privacy if isinstance(privacy, PureDP) else ZCDP(self.noise.loss)

    def preview(self) -> Preview:
        """Return cost and accuracy; refused where the ledger would refuse."""
        after = None
        if self.ledger is not None:
            after = self.ledger.preview(self.budget, self.cost, unit=self.unit)
        privacy = self.noise.privacy
        accuracy = self.plan.accuracy(privacy, self.unit)
        return Preview(self.plan, privacy, self.cost, self.unit, accuracy, after)

    def run(self) -> Release:
        """Pay, then read the data, then measure with noise."""
        try:
            noise = self.noise.drawn()  # shaped noise may take seconds: Ctrl-C costs nothing yet
        except BaseException as reason:
            if self.ledger is not None:
                note_charge(reason, f"the budget of {self.budget!r} was not charged")
            raise
        entry = None
        if self.ledger is not None:
            purpose = f"plan {self.plan.digest[:16]}"
            entry = self.ledger.spend(self.budget, self.cost, unit=self.unit, purpose=purpose)
        # From here on the budget is gone, whatever happens: privacy may be wasted, never
        # overspent. So data is read behind this line alone.
        head = None if entry is None else f"{entry.sequence}:{entry.digest}"
        try:
            measured = measure(self.source.counts(), self.plan.measured, noise)
            return from_measurements(self.plan, measured, self.unit, head)
        except BaseException as reason:  # Ctrl-C too
            if entry is not None:
                note_charge(
                    reason,
                    f"the budget of {entry.table!r} was charged {spell_amount(entry.amount, 'up')} "
                    f"{entry.accounting.value} for this release, which it does not get back",
                )
            raise
