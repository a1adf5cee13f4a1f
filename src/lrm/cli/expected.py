"""The error of a plan's answers at a promise, for whom the promise protects."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lrm.cli.promises import Promise

if TYPE_CHECKING:
    from fractions import Fraction

    from lrm.maps.linear import Floats
    from lrm.plans import Plan
    from lrm.privacy.budget import Privacy
    from lrm.privacy.unit import PrivacyUnit

__all__ = ["Expected", "amount_for"]


@dataclass(frozen=True)
class Expected:
    """What a release with these amounts will be like.

    Parameters
    ----------
    plan
        The plan.
    promise
        The amounts.
    unit
        Whom the promise protects; by default the plan's unit.
    """

    plan: "Plan"
    promise: Promise
    unit: "PrivacyUnit | None" = None

    @property
    def privacy(self) -> "Privacy":
        """The promise, checked against the plan's noise."""
        return self.plan.privacy(**self.promise.amounts)

    @cached_property
    def factor(self) -> int:
        """How many records the privacy unit counts for."""
        return (self.unit or self.plan.unit).factor

    def _deviation(self, sensitivity: float) -> float:
        from lrm.accuracy import noise_deviation

        return noise_deviation(self.privacy, sensitivity * self.factor)

    @cached_property
    def squared_error(self) -> float:
        """Expected squared error, summed over the batch."""
        return self.plan.rebuild.squared_norm * self._deviation(self.plan.sensitivity) ** 2

    @property
    def root_mean_squared_error(self) -> float:
        """That of a typical query."""
        return float((self.squared_error / self.plan.workload.shape[0]) ** 0.5)

    @property
    def lower_bound(self) -> float:
        """No strategy has a smaller squared error."""
        return self.plan.least_total * self._deviation(1.0) ** 2

    @cached_property
    def standard_errors(self) -> "Floats":
        """Standard error of each answer."""
        import numpy as np

        errors = np.sqrt(self.plan.rebuild.row_squared_norms)
        return np.asarray(errors * self._deviation(self.plan.sensitivity))

    def half_widths(self, order: "Sequence[int]", confidence: float) -> "Floats":
        """Half the width of the intervals of some answers."""
        import numpy as np

        from lrm.accuracy import half_widths, noise_scale
        from lrm.accuracy.noise_sums import laplace_sum_half_widths

        plan, sensitivity = self.plan, self.plan.sensitivity * self.factor
        if plan.noise == "gaussian" or len(order) == plan.workload.shape[0]:
            every = half_widths(plan.rebuild, self.privacy, sensitivity, confidence)
            return np.asarray(every[list(order)])
        if not len(order):
            return np.zeros(0)
        # quantiles of sums of Laplace variables cost time: only those asked for
        rows = np.vstack([plan.rebuild.rows(i, i + 1) for i in order])
        scale = noise_scale(self.privacy, sensitivity)
        return np.asarray(scale * laplace_sum_half_widths(rows, confidence))


def amount_for(plan: "Plan", squared_error: float) -> "Fraction":
    """The least ε (ρ for Gaussian noise) with this total squared error, for the plan's unit."""
    from lrm.accuracy import amount_for_error

    factor = Expected(plan, Promise()).factor
    return amount_for_error(plan.noise, plan.unit_error * factor**2, squared_error)
