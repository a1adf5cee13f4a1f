"""Accuracy before data: what a plan's noise will be, as a function of privacy alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lrm.accuracy.noise_sums import gaussian_half_widths, laplace_sum_half_widths
from lrm.errors import BudgetError
from lrm.maps.linear import Floats
from lrm.privacy.amounts import LEAST_AMOUNT, MOST_AMOUNT, parse_amount
from lrm.privacy.budget import (
    LEAST_RHO,
    MOST_RHO,
    ZCDP,
    Amount,
    ApproxDP,
    Noise,
    Privacy,
    PureDP,
    parse_delta,
    zcdp_of,
)
from lrm.reconstruction import Reconstruction

__all__ = [
    "amount_for_error",
    "half_widths",
    "noise_deviation",
    "noise_scale",
    "privacy_of",
]


def privacy_of(
    noise: Noise,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    rho: Amount | None = None,
) -> Privacy:
    """Read the promise that someone asks for, and check that the noise can keep it.

    >>> privacy_of("laplace", 0.1)
    PureDP(epsilon=Fraction(1, 10))
    """
    if noise == "laplace":
        if delta is not None or rho is not None:
            raise BudgetError(
                "a Laplace plan promises pure differential privacy: give epsilon alone, "
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


def noise_scale(privacy: Privacy, sensitivity: float) -> float:
    """Scale of the noise on one measurement: Laplace b = Δ/ε, or Gaussian σ = Δ/√(2ρ)."""
    if isinstance(privacy, PureDP):
        return sensitivity / float(privacy.epsilon)
    return sensitivity / math.sqrt(2 * float(zcdp_of(privacy).rho))


def noise_deviation(privacy: Privacy, sensitivity: float) -> float:
    """Standard deviation of the noise on one measurement."""
    scale = noise_scale(privacy, sensitivity)
    return math.sqrt(2.0) * scale if isinstance(privacy, PureDP) else scale


def half_widths(
    rebuild: Reconstruction, privacy: Privacy, sensitivity: float, confidence: float
) -> Floats:
    """Half the width of the two-sided interval of every answer.

    The noise of an answer is a weighted sum of independent Laplace (or Gaussian) variables
    with the weights of its row of B; for Laplace its quantiles are computed as such.
    """
    if not 0 < confidence < 1:
        raise BudgetError(
            f"confidence must lie between 0 and 1, but {confidence} came; 0.95 is usual"
        )
    scale = noise_scale(privacy, sensitivity)
    if not isinstance(privacy, PureDP):
        return gaussian_half_widths(scale * np.sqrt(rebuild.row_squared_norms), confidence)
    parts = [
        laplace_sum_half_widths(rebuild.rows(start, stop), confidence)
        for start, stop in rebuild.row_ranges()
    ]
    return scale * np.concatenate(parts)


def amount_for_error(noise: Noise, unit_error: float, wanted: float) -> Fraction:
    """The least ε (Laplace) or ρ (Gaussian) for a total squared error of ``wanted``.

    ``unit_error`` is ‖B‖²·Δ². Rounded up to six digits, so that the error is kept.
    """
    if not (math.isfinite(wanted) and wanted > 0):
        raise BudgetError(f"a wanted error must be a number above 0, but {wanted} came")
    exact = math.sqrt(2 * unit_error / wanted) if noise == "laplace" else unit_error / (2 * wanted)
    if exact == 0:
        raise BudgetError("this batch has no error at any epsilon: all its weights are 0")
    if not LEAST_AMOUNT <= exact <= MOST_AMOUNT:
        raise BudgetError(
            f"no epsilon (or rho) between {float(LEAST_AMOUNT):.0e} and {float(MOST_AMOUNT):.0e} "
            "gives this error; ask for one nearer to what the plan can have"
        )
    digits = 5 - math.floor(math.log10(exact))
    step = Fraction(10) ** -digits
    # A rounding error of the square root must not cost a step: 0.1, not 0.100001.
    return math.ceil(Fraction(exact) * (1 - Fraction(1, 10**12)) / step) * step
