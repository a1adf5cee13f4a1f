"""Release: private answers, with everything a reader needs to judge them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.accuracy import Accuracy
from lrm.errors import BudgetError, UsageError
from lrm.maps.linear import Floats
from lrm.plans import Plan
from lrm.privacy.budget import Privacy, PureDP
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.mechanism import (
    Measurements,
    check_calibration,
)
from lrm.privacy.unit import PrivacyUnit
from lrm.releases.further import answer_further
from lrm.releases.saving import save_release
from lrm.showing import html_of, write_page
from lrm.showing.spelling import many, parameter_words
from lrm.workload import AnswerTable

__all__ = ["Release", "from_measurements"]


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
        if values.dtype != np.int64 or values.shape != (self.plan.measurement_count,):
            raise UsageError(
                f"the plan has {self.plan.measurement_count} measurements, which are 64-bit "
                f"integers; got an array of {values.dtype.name} and shape {values.shape}"
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
                raise BudgetError("the scale of the simulated noise is not the stated one")
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
        """One answer per query: unbiased, not rounded, not clipped."""
        values = self.plan.reconstruction_map.apply(
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

    def table(self, confidence: float = 0.95) -> AnswerTable:
        """The answers with their labels, standard errors and intervals."""
        low, high = self.intervals(confidence).T
        numbers = {
            "answer": self.answers,
            "standard_error": self.standard_errors,
            "low": low,
            "high": high,
        }
        at = f"at {parameter_words(self.privacy)}, with {100 * confidence:.4g} % intervals"
        return AnswerTable(self.plan.workload.labels, numbers, at)

    def __getitem__(self, query: str) -> AnswerTable:
        """The answers of one query, in all of its groups."""
        return self.table().of(query)

    def to_arrow(self, confidence: float = 0.95) -> Any:
        """One row per answer as a ``pyarrow.Table``.

        Columns are the grouping attributes (null where an answer has no such group), ``query``,
        ``answer``, ``standard_error``, and ``low`` and ``high``, the ends of the interval.
        """
        return self.table(confidence).to_arrow()

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """The same as a ``pandas.DataFrame``."""
        return self.table(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> Any:
        """The same as a ``polars.DataFrame``."""
        return self.table(confidence).to_polars()

    def query(self, queries: Any) -> Release:
        """Answer further queries from the same measurements: this costs no privacy.

        Parameters
        ----------
        queries
            SQL over the release's domain, a ``Workload``, or a matrix with one row per query.
            A query that the measurements do not determine is an ``UnsupportedQuery``.
        """
        return answer_further(self, queries)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file that ``lrm.load_release`` reads."""
        save_release(self, path)

    def report(self, path: str | os.PathLike[str], confidence: float = 0.95) -> None:
        """Write one HTML page of the release, which needs no network and reads without script.

        Where there are more than 2,000 answers, a CSV file of the same name has all of them.
        """
        write_page(self, path, confidence=confidence)

    def _repr_html_(self) -> str:
        return html_of(self)

    def __repr__(self) -> str:
        made = "SIMULATED release" if self.simulated else "Release"
        answers = many(len(self.names), "answer", "answers")
        words = f"{answers} at {parameter_words(self.privacy)}, protects {self.unit.words}"
        return f"<{made}: {words}>"


def from_measurements(
    plan: Plan, measurements: Measurements, unit: PrivacyUnit, ledger_head: str | None = None
) -> Release:
    """A release of measurements that carry their noise already."""
    noise = measurements.noise
    return Release(
        plan,
        measurements.noisy_values,
        noise.privacy,
        noise.loss,
        noise.distribution,
        noise.scale,
        unit,
        ledger_head=ledger_head,
    )
