"""Release: private answers, with everything a reader needs to judge them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrm import accuracy
from lrm.budget import Amount, Neighbours, Privacy, sensitivity_factor
from lrm.errors import BudgetError, WorkloadError
from lrm.linear_maps import Floats
from lrm.mechanism import Measurements, TrueCounts, calibrate, measure
from lrm.plans import Plan
from lrm.workload import EXPLICIT_QUERIES

__all__ = ["Release", "release"]


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
    neighbours, max_rows
        Which tables the promise makes hard to tell apart.
    simulated
        True where the noise was made for a study, and nothing is promised.
    """

    plan: Plan
    noisy_measurements: NDArray[np.int64]
    privacy: Privacy
    loss: Fraction
    distribution: str
    scale: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    max_rows: int = 1
    simulated: bool = False
    software: str = field(default_factory=lambda: f"lrm {version('lrm')}")

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

    @property
    def _sensitivity(self) -> float:
        return self.plan.sensitivity * sensitivity_factor(self.neighbours, self.max_rows)

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard error of each answer, from the noise alone."""
        deviation = accuracy.noise_deviation(self.privacy, self._sensitivity)
        return np.sqrt(self.plan.rebuild.row_squared_norms) * deviation

    def intervals(self, confidence: float = 0.95) -> Floats:
        """Lower and upper end of each answer's interval, as an m×2 array.

        They cover the noise alone: not rows that were dropped or lie outside the domain.
        """
        half = accuracy.half_widths(self.plan.rebuild, self.privacy, self._sensitivity, confidence)
        return np.column_stack([self.answers - half, self.answers + half])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file that ``lrm.load_release`` reads."""
        from lrm.release_file import save_release  # noqa: PLC0415 - files know releases

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
    neighbours: str | None = None,
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
        ``"add-remove"`` or ``"substitute"``; by default what the plan's domain says,
        else add/remove.
    max_rows
        Records that one person may have in the counts; by default what the domain says,
        else 1.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, -1]], "noise-on-data")
    >>> len(lrm.release(plan, [120, 80], epsilon="0.5").answers)
    2
    """
    privacy = plan.privacy(epsilon, delta, rho)
    check_listable(plan)
    relation, rows = _unit(plan, neighbours, max_rows)
    noise = calibrate(plan.measured, privacy, sensitivity_factor(relation, rows))
    hidden = counts if isinstance(counts, TrueCounts) else TrueCounts(counts)
    return from_measurements(plan, measure(hidden, plan.measured, noise), relation, rows)


def from_measurements(
    plan: Plan, measured: Measurements, neighbours: Neighbours, max_rows: int
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
        neighbours,
        max_rows,
    )


def check_listable(plan: Plan) -> None:
    """Refuse a batch whose answers could not be listed, before any data is read."""
    if plan.workload.shape[0] > EXPLICIT_QUERIES:
        raise WorkloadError(
            f"a release lists its answers, and {plan.workload.shape[0]:,} of them are too many; "
            f"plan a batch of at most {EXPLICIT_QUERIES:,} queries"
        )


def _unit(plan: Plan, neighbours: str | None, max_rows: int | None) -> tuple[Neighbours, int]:
    domain = plan.workload.domain
    if neighbours is None:
        neighbours = domain.unit.neighbours if domain else "add-remove"
    if max_rows is None:
        max_rows = domain.unit.max_rows if domain else 1
    try:
        return Neighbours(neighbours), max_rows
    except ValueError:
        raise BudgetError(
            f"neighbours must be 'add-remove' or 'substitute', but {neighbours!r} came"
        ) from None
