"""Release: private answers, with everything a reader needs to judge them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrm.accuracy import Accuracy
from lrm.errors import BudgetError, UsageError, WorkloadError
from lrm.maps.linear import Floats
from lrm.plans import Plan
from lrm.privacy.budget import ZCDP, Amount, Privacy, PureDP
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.mechanism import (
    Measurements,
    TrueCounts,
    calibrate,
    check_calibration,
    check_fit,
    check_total,
    measure,
)
from lrm.privacy.noise import Calibrated
from lrm.privacy.unit import Neighbours, PrivacyUnit
from lrm.spelling import spell_amount
from lrm.workload import EXPLICIT_QUERIES

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.ledger import Ledger
    from lrm.tables import Table

__all__ = ["Intent", "Release", "domain_of", "intend", "release", "release_table"]


SIMULATED_SCALE = 1e-6
"""How far the scale of simulated noise may lie from what is stated."""


@dataclass(frozen=True, eq=False)
class Release:
    """The answers of a plan's batch, under a stated guarantee.

    Everything follows from the plan (public) and the noisy measurements (private no more):
    the answers, their errors, and any further query that the strategy supports.

    Parameters
    ----------
    plan
        What was measured, and how answers follow.
    noisy_measurements
        The integers that left the mechanism.
    privacy
        The promise that was asked for.
    loss
        What the noise's own privacy map says was spent; at most what was asked for.
    distribution, scale
        The noise on each integer.
    unit
        Whom the promise protects.
    simulated
        True where the noise was made for a study, and nothing is promised.
    ledger_head
        Head of the ledger right after this release was paid for, where one was kept:
        ``lrm budget verify --expected-head`` finds it on the ledger's chain.
    """

    plan: Plan
    noisy_measurements: NDArray[np.int64]
    privacy: Privacy
    loss: Fraction
    distribution: str
    scale: float
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    simulated: bool = False
    software: str = field(default_factory=lambda: f"lrm {version('lrm')}")
    ledger_head: str | None = None

    def __post_init__(self) -> None:
        self.plan.check_unit(self.unit)
        self._check_noise()
        values = np.array(self.noisy_measurements)
        if values.dtype != np.int64 or values.shape != (self.plan.rank,):
            raise UsageError(
                f"the plan has {self.plan.rank} measurements, which are 64-bit integers; got an "
                f"array of {values.dtype.name} and shape {values.shape}"
            )
        values.flags.writeable = False
        object.__setattr__(self, "noisy_measurements", values)

    def _check_noise(self) -> None:
        """Refuse noise that is not what the promise needs, for this plan and this unit."""
        if isinstance(self.privacy, PureDP) != (self.plan.noise == "laplace"):
            raise BudgetError(f"{self.plan.noise} noise cannot keep this promise")
        if self.simulated:  # it promises nothing, and states errors all the same
            nominal = self.plan.accuracy(self.privacy, self.unit).law.scale
            if not abs(self.scale / nominal - 1) < SIMULATED_SCALE:
                raise BudgetError("the simulated noise has another scale than is stated")
            return
        check_calibration(
            self.plan.measured,
            self.privacy,
            self.unit.factor,
            self.distribution,
            self.scale,
            self.loss,
        )

    @property
    def names(self) -> Sequence[str]:
        """Names of the queries."""
        return self.plan.workload.names

    @cached_property
    def answers(self) -> Floats:
        """One answer a query: unbiased, not rounded, not clipped."""
        values = self.plan.rebuild.apply(
            self.noisy_measurements.astype(np.float64) * 2.0**-self.plan.measured.bits
        )
        values.flags.writeable = False
        return values

    @cached_property
    def accuracy(self) -> Accuracy:
        """Errors and intervals of the answers: of the noise that was drawn, at its real scale."""
        law = NoiseLaw(self.plan.noise, self.scale)
        return replace(self.plan.accuracy(self.privacy, self.unit), law=law)

    @property
    def standard_errors(self) -> Floats:
        """Standard error of each answer, from the noise alone."""
        return self.accuracy.standard_errors

    def intervals(self, confidence: float = 0.95) -> Floats:
        """Lower and upper end of each answer's interval, as an m×2 array.

        They cover the noise alone: not rows that were dropped or lie outside the domain.
        """
        half = self.accuracy.half_widths(confidence)
        return np.column_stack([self.answers - half, self.answers + half])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file that ``lrm.load_release`` reads."""
        from lrm.releases.file import save_release  # noqa: PLC0415 - files know releases

        save_release(self, path)

    def __repr__(self) -> str:
        made = "SIMULATED release" if self.simulated else "Release"
        return f"<{made} of {len(self.names):,} answers, {self.privacy}>"


def release(  # noqa: PLR0913 - the promise has these parts
    plan: Plan,
    counts: ArrayLike | TrueCounts,
    epsilon: Amount | None = None,
    *,
    delta: Amount | None = None,
    rho: Amount | None = None,
    neighbours: Neighbours | None = None,
    max_rows: int | None = None,
) -> Release:
    """Answer the plan's batch on ``counts`` under differential privacy.

    Parameters
    ----------
    plan
        Made by ``lrm.plan``.
    counts
        How many records fall in each cell: whole numbers, not negative.
    epsilon, delta, rho
        The promise: epsilon for Laplace plans; rho, or epsilon with delta, for Gaussian ones.
        A float is taken at its decimal spelling: 0.1 is 1/10.
    neighbours
        ``"add-remove"`` (default) or ``"substitute"``, for a plan without a domain. A domain
        declares it, and is not contradicted.
    max_rows
        Records that one person may have in the counts (1), for a plan without a domain.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, -1]], "noise-on-data")
    >>> len(lrm.release(plan, [120, 80], epsilon="0.5").answers)
    2
    """
    intent = intend(plan, epsilon, delta=delta, rho=rho, neighbours=neighbours, max_rows=max_rows)
    hidden = counts if isinstance(counts, TrueCounts) else TrueCounts(counts)
    check_fit(hidden, plan.measured)
    check_total(hidden, plan.measured)
    return intent.carry_out(lambda: hidden)


def release_table(  # noqa: PLR0913 - the promise and who pays for it
    plan: Plan,
    table: Table,
    *,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    rho: Amount | None = None,
    ledger: Ledger | None,
    budget: str | None = None,
) -> Release:
    """Answer the plan's batch on a table, paid for from a ledger before a row is read.

    Parameters
    ----------
    plan
        Made for queries over a domain, which says whom the promise protects.
    table
        Opened by ``lrm.tables.open_table``.
    epsilon, delta, rho
        The promise, as for ``release``.
    ledger
        Where the budget is kept; None, said out loud, where nothing shall keep it.
    budget
        Name of the budget; by default the name that the domain gives its table, else
        the table's own.

    Raises
    ------
    TableError, BudgetExceeded
        Where the table has not what the domain declares, or too little is left: nothing
        is spent then, and no row is read.
    """
    intent = intend(plan, epsilon, delta=delta, rho=rho)
    domain = domain_of(plan)
    table.check(domain)
    return intent.carry_out(
        lambda: table.counts(domain, plan.measured.cells),
        ledger,
        budget or domain.table or table.name,
    )


def domain_of(plan: Plan) -> Domain:
    """The domain that says how a plan's cells are counted on a table."""
    if plan.workload.domain is None:
        raise UsageError(
            "this plan has no domain, which says how a table's rows fall into cells; "
            "plan the queries with a domain, or give the counts of the cells themselves"
        )
    return plan.workload.domain


def intend(  # noqa: PLR0913 - the promise has these parts
    plan: Plan,
    epsilon: Amount | None = None,
    *,
    delta: Amount | None = None,
    rho: Amount | None = None,
    neighbours: Neighbours | None = None,
    max_rows: int | None = None,
) -> Intent:
    """Check a promise and calibrate its noise: all of a release that needs no data."""
    if not isinstance(plan, Plan):
        raise UsageError(
            f"a release needs a Plan, but {type(plan).__name__} came; "
            "make one with lrm.plan, or read one with lrm.load_plan"
        )
    privacy = plan.privacy(epsilon, delta, rho)
    check_listable(plan)
    unit = plan.unit_with(neighbours, max_rows)
    return Intent(plan, calibrate(plan.measured, privacy, unit.factor), unit)


@dataclass(frozen=True)
class Intent:
    """A release that could be made: its noise is calibrated, nothing is spent or read."""

    plan: Plan
    noise: Calibrated
    unit: PrivacyUnit

    @property
    def cost(self) -> PureDP | ZCDP:
        """What a ledger is charged.

        The ε asked for, with Laplace noise; with Gaussian noise the ρ of the noise's own
        privacy map, for an (ε, δ) promise too, since ρ adds up exactly and (ε, δ) does not.
        """
        privacy = self.noise.privacy
        return privacy if isinstance(privacy, PureDP) else ZCDP(self.noise.loss)

    def carry_out(
        self, count: Callable[[], TrueCounts], ledger: Ledger | None = None, budget: str = ""
    ) -> Release:
        """Pay from ``budget`` of ``ledger``, then count, then measure with noise."""
        purpose = f"plan {self.plan.digest[:16]}"
        entry = (
            None
            if ledger is None
            else ledger.spend(budget, self.cost, unit=self.unit, purpose=purpose)
        )
        # From here on the budget is gone, whatever happens: privacy may be wasted, never
        # overspent. So data is read behind this line alone.
        try:
            measured = measure(count(), self.plan.measured, self.noise)
        except BaseException as reason:  # Ctrl-C too
            if entry is not None:
                reason.add_note(
                    f"the budget of {entry.table!r} has paid {spell_amount(entry.amount, 'up')} "
                    f"{entry.accounting.value} for this release, which it does not get back"
                )
            raise
        head = None if entry is None else f"{entry.sequence}:{entry.digest}"
        return from_measurements(self.plan, measured, self.unit, head)


def from_measurements(
    plan: Plan, measured: Measurements, unit: PrivacyUnit, ledger_head: str | None = None
) -> Release:
    """A release of measurements that carry their noise already."""
    noise = measured.noise
    return Release(
        plan,
        measured.noisy_values,
        noise.privacy,
        noise.loss,
        noise.distribution,
        noise.scale,
        unit,
        ledger_head=ledger_head,
    )


def check_listable(plan: Plan) -> None:
    """Refuse a batch whose answers could not be listed, before any data is read."""
    if plan.workload.shape[0] > EXPLICIT_QUERIES:
        raise WorkloadError(
            f"a release lists its answers, and {plan.workload.shape[0]:,} of them are too many; "
            f"plan a batch of at most {EXPLICIT_QUERIES:,} queries"
        )
