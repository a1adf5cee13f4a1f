"""Accuracy: what the noise does to the answers, from the law of the integers that carry it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from lrm.errors import BudgetError
from lrm.planning.accuracy.intervals import half_widths
from lrm.planning.design.reconstruction import Reconstruction, WeighedReconstruction
from lrm.privacy.amounts import LEAST_AMOUNT, MOST_AMOUNT, Amount, parse_amount
from lrm.privacy.budget import (
    LEAST_RHO,
    MOST_RHO,
    ZCDP,
    ApproxDP,
    Privacy,
    PureDP,
    parse_delta,
)
from lrm.privacy.laws import LatticeLaw, NoiseLaw
from lrm.privacy.norms import norm_of
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats


def privacy_of(
    noise: str,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    rho: Amount | None = None,
) -> Privacy:
    """Read the guarantee that someone asks for, and check that the noise can keep it.

    >>> privacy_of("laplace", 0.1)
    PureDP(epsilon=0.1)
    """
    if norm_of(noise).guarantee is PureDP:
        if delta is not None or rho is not None:
            raise BudgetError(
                "a Laplace plan guarantees pure differential privacy: give epsilon alone, "
                'or plan with noise="gaussian" for delta and rho'
            )
        if epsilon is None:
            raise BudgetError("epsilon is missing; give epsilon alone, such as 0.1")
        return PureDP(parse_amount(epsilon, "epsilon"))
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise BudgetError("give either rho, or epsilon with delta, not both")
        return ZCDP(parse_amount(rho, "rho", least=LEAST_RHO, most=MOST_RHO))
    if epsilon is None or delta is None:
        raise BudgetError("a Gaussian plan needs rho, or epsilon together with delta")
    return ApproxDP(parse_amount(epsilon, "epsilon"), parse_delta(delta))


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Errors and intervals of a batch's answers: the one place that states them.

    Made by ``plan.accuracy(privacy)``, of the noise that would be drawn, and by
    ``release.accuracy``, of the noise that was.

    Parameters
    ----------
    reconstruction
        How the answers follow from the measurements.
    law
        The noise on each measured integer.
    step
        What one integer counts for: 2^−bits.
    privacy
        The guarantee.
    unit
        Whom it protects.
    least_total
        A number that ``‖B‖²·Δ²`` of no strategy for the batch is below.
    """

    reconstruction: Reconstruction
    law: NoiseLaw
    step: float
    privacy: Privacy
    unit: PrivacyUnit
    least_total: float

    def __post_init__(self) -> None:
        ratios = self.law.ratios
        if ratios is not None:
            weighed = WeighedReconstruction(self.reconstruction, lambda: ratios)
            object.__setattr__(self, "reconstruction", weighed)

    @property
    def nominal(self) -> Accuracy:
        """The accuracy with noise on all integers, whose errors at any two ε have one ratio."""
        plain = self.reconstruction
        if self.law.ratios is not None and isinstance(plain, WeighedReconstruction):
            plain = plain.plain
        return replace(self, law=self.law.fine, reconstruction=plain)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on one measurement; where they differ, the largest."""
        return self.law.deviation * self.step

    @property
    def squared_error(self) -> float:
        """Expected squared error, summed over the batch."""
        return self.reconstruction.squared_norm * self.deviation**2

    @property
    def root_mean_squared_error(self) -> float:
        """The root of the mean squared error: the error of a typical query."""
        return math.sqrt(self.squared_error / self.reconstruction.shape[0])

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard error of each answer."""
        errors = np.sqrt(self.reconstruction.row_squared_norms) * self.deviation
        errors.flags.writeable = False
        return errors

    def errors_of(self, start: int, stop: int) -> Floats:
        """Standard errors of the answers ``start:stop``."""
        return np.sqrt(self.reconstruction.squared_norms(start, stop)) * self.deviation

    def half_widths(self, confidence: float = 0.95, rows: Sequence[int] | None = None) -> Floats:
        """Half the width of each answer's two-sided interval; of some rows, where they are given.

        The noise of an answer is within it with at least the probability ``confidence``.
        """
        if rows is None:
            return self.half_widths_of(0, self.reconstruction.shape[0], confidence)
        return self._half_widths(((row, row + 1) for row in rows), confidence)

    def half_widths_of(self, start: int, stop: int, confidence: float = 0.95) -> Floats:
        """Half-widths of the answers ``start:stop``, which are kept for the next caller."""
        # Answers whose half-widths are kept (32 MB).
        if self.reconstruction.shape[0] > (1 << 22):
            return self._half_widths([(start, stop)], confidence)
        held = self._held_widths
        if confidence not in held:
            if len(held) >= 4:
                held.clear()
            held[confidence] = np.full(self.reconstruction.shape[0], math.nan)
        widths = held[confidence][start:stop]
        missing = np.flatnonzero(np.isnan(widths))
        if len(missing):
            cuts = np.flatnonzero(np.diff(missing) > 1) + 1
            ranges = [
                (start + int(part[0]), start + int(part[-1]) + 1)
                for part in np.split(missing, cuts)
            ]
            widths[missing] = self._half_widths(ranges, confidence)
        return widths.copy()

    @cached_property
    def _held_widths(self) -> dict[float, Floats]:
        """Half-widths of all answers by confidence, NaN where nobody has asked for them."""
        return {}

    def _half_widths(self, ranges: Iterable[tuple[int, int]], confidence: float) -> Floats:
        if not 0 < confidence < 1:
            raise BudgetError(
                f"confidence must be between 0 and 1, not {confidence}; 0.95 is usual"
            )
        return half_widths(self.reconstruction, self.law, confidence, ranges) * self.step

    def ideal_deviation(self, sensitivity: float) -> float:
        """Standard deviation of noise on real numbers, for a strategy of this sensitivity."""
        norm = norm_of(self.law.noise)
        return norm.ideal_deviation(self.privacy, self.unit, sensitivity)

    @property
    def lower_bound(self) -> float:
        """No strategy has a smaller squared error with such noise: on real numbers, or on lattices.

        The step of a measurement is at most the sensitivity, so that the variance on its lattice
        is at least ``(x / sinh x)²`` of that on real numbers, with ``x = ε/2`` for one record.
        """
        bound = self.least_total * self.ideal_deviation(1.0) ** 2
        if isinstance(self.law, LatticeLaw) and isinstance(self.privacy, PureDP):
            x = min(0.5 * float(self.privacy.epsilon) / self.unit.factor, 300.0)
            bound *= (x / math.sinh(x)) ** 2
        return bound


def amount_for_error(error_at: Callable[[Fraction], float], target_error: float) -> Fraction:
    """The least amount whose error is at most ``target_error``, rounded up to six digits.

    Parameters
    ----------
    error_at
        The error at an amount (ε or ρ); falls with it.
    target_error
        The error that is wanted.

    Examples
    --------
    >>> amount_for_error(lambda epsilon: 2 / float(epsilon) ** 2, 200)
    Fraction(1, 10)
    """
    if not (math.isfinite(target_error) and target_error > 0):
        raise BudgetError(f"the wanted error must be a number above 0, not {target_error}")
    if error_at(Fraction(1)) == 0 == error_at(Fraction(1, 1000)):
        raise BudgetError("this batch has no error at any epsilon: all its weights are 0")
    low, high = math.log10(LEAST_AMOUNT), math.log10(MOST_AMOUNT)
    # A rounding error of the error must not cost a step: 0.1, not 0.100001.
    most = target_error * (1 + 1e-12)
    if error_at(round_up(10.0**high)) > most or error_at(round_up(10.0**low)) <= most:
        raise BudgetError(
            f"no epsilon (or rho) between {float(LEAST_AMOUNT):.0e} and {float(MOST_AMOUNT):.0e} "
            "gives this error; ask for one nearer to what the plan can have"
        )
    while high - low > 1e-13 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if error_at(round_up(10.0**middle)) <= most else (middle, high)
    return round_up(10.0**high)


def round_up(amount: float) -> Fraction:
    """An amount rounded up to six digits.

    >>> round_up(0.12345601)
    Fraction(123457, 1000000)
    """
    # An amount found for a wanted error is rounded up to this number of digits.
    step = Fraction(10) ** (math.floor(math.log10(amount)) + 1 - 6)
    rounded = math.ceil(Fraction(amount) * (1 - Fraction(1, 10**12)) / step) * step
    return min(max(rounded, LEAST_AMOUNT), MOST_AMOUNT)
