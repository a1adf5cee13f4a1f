"""Simulated releases: fast noise from a seed, for studies alone, and stamped as such.

The noise has the law of the real one (discrete Laplace on the integers that are measured)
but comes from a seeded generator and floating-point arithmetic: it protects nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lrm.budget import PureDP
from lrm.plans import Plan
from lrm.releases import Release

__all__ = ["Simulation", "discrete_laplace", "error_spread", "simulate", "simulated_release"]

FALSE_ALARM_Z = 4.9
"""Standard deviations of the tolerance: one right row in a million is outside."""

SQUARED_LAPLACE_SKEW = 2.96
"""Skewness over coefficient of variation of one squared Laplace variable: 6.62/√5.

Sums of squares of many variables have less (2 for squared normal ones).
"""


def discrete_laplace(
    scale: float, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw integers with ``P(X = k) ∝ exp(−|k|/scale)``.

    The difference of two geometric variables. Simulated: see the module.

    >>> discrete_laplace(2.0, (4,), np.random.default_rng(0)).dtype
    dtype('int64')
    """
    success = -math.expm1(-1.0 / scale)
    return np.asarray(rng.geometric(success, shape) - rng.geometric(success, shape))


@dataclass(frozen=True)
class Simulation:
    """Mean squared error of simulated releases, beside what the formula says.

    Parameters
    ----------
    measured
        Mean over repetitions of the squared L2 distance of noisy and exact answers.
    expected
        The same by formula: noise and, for a relaxed plan, its bias on these counts.
    bias_squared
        The part of ``expected`` that is bias.
    low, high
        Between which ``measured`` lies, but for one right row in a million.
    """

    measured: float
    expected: float
    bias_squared: float
    low: float
    high: float
    simulated: bool = True

    @property
    def agrees(self) -> bool:
        """Whether the measured error lies inside the tolerance."""
        return self.low <= self.measured <= self.high


def simulated_release(
    plan: Plan,
    true_values: NDArray[np.int64],
    epsilon: Fraction,
    rng: np.random.Generator,
) -> Release:
    """A release whose noise is simulated; ``Release.simulated`` says so.

    ``true_values`` are the plan's integers on counts that are not private.
    """
    scale = plan.measured.sensitivity / float(epsilon)
    noisy = true_values + discrete_laplace(scale, true_values.shape, rng)
    law = "simulated discrete Laplace"
    return Release(plan, noisy, PureDP(epsilon), epsilon, law, scale, simulated=True)


def simulate(  # noqa: PLR0913 - what a simulation consists of
    plan: Plan,
    counts: NDArray[np.int64],
    epsilon: str,
    *,
    repetitions: int,
    rng: np.random.Generator,
    spread: float | None = None,
) -> Simulation:
    """Release ``repetitions`` times and compare the errors with their expectation.

    ``spread`` is the plan's ``error_spread``, where it is known already.
    """
    amount = Fraction(epsilon)
    exact = plan.workload.queries.apply(counts.astype(np.float64))
    true_values = plan.measured.measure(counts)
    total = 0.0
    for _ in range(repetitions):
        gap = simulated_release(plan, true_values, amount, rng).answers - exact
        total += float(gap @ gap)
    bias = _bias(plan, true_values, exact)
    noise = plan.expected_squared_error(amount)
    relative = error_spread(plan) if spread is None else spread
    # bias and noise: E|b + e|² = |b|² + E|e|², with a cross term of variance at most 4|b|²E|e|²
    deviation = math.hypot(noise * relative, 2 * math.sqrt(bias * noise))
    low, high = _tolerance(noise + bias, deviation, repetitions)
    return Simulation(total / repetitions, noise + bias, bias, low, high)


def _bias(plan: Plan, true_values: NDArray[np.int64], exact: NDArray[np.float64]) -> float:
    if plan.exact:
        return 0.0
    rebuilt = plan.rebuild.apply(true_values.astype(np.float64) * 2.0**-plan.measured.bits)
    return float(np.sum((rebuilt - exact) ** 2))


def error_spread(plan: Plan) -> float:
    """Standard deviation of a release's squared error, over its expectation.

    The error is ``ηᵀMη`` with ``M = BᵀB`` and independent η of kurtosis κ = 6, so that
    ``Var = v²·((κ − 3)·Σ M_ii² + 2‖M‖_F²)`` and ``E = v·tr M``. The kurtosis of the discrete
    law exceeds 6 by one over its variance, which is beyond 2^20 on a plan's integers.
    """
    rows = [plan.rebuild.rows(start, stop) for start, stop in plan.rebuild.row_ranges()]
    B = np.vstack(rows)
    columns = np.einsum("ij,ij->j", B, B)
    gram = B @ B.T if B.shape[0] <= B.shape[1] else B.T @ B
    variance = 3.0 * float(columns @ columns) + 2.0 * float(np.vdot(gram, gram))
    mean = float(columns.sum())
    return math.sqrt(variance) / mean if mean else 0.0


def _tolerance(expected: float, deviation: float, repetitions: int) -> tuple[float, float]:
    """Limits of a mean of squared errors: normal ones, the upper widened for skewness.

    The first term of Cornish and Fisher with the skewness that one squared Laplace variable
    has at this coefficient of variation, which is the most that a sum of them can have.
    Rounding in the rebuilt answers adds 1e-9 of the expectation.
    """
    if not expected:
        return 0.0, 0.0
    relative = deviation / expected / math.sqrt(repetitions)
    z = FALSE_ALARM_Z
    up = z + SQUARED_LAPLACE_SKEW * relative * (z**2 - 1) / 6
    slack = 1e-9 * expected
    return max(0.0, expected * (1 - z * relative) - slack), expected * (1 + up * relative) + slack
