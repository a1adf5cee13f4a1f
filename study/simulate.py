"""Simulated releases: fast noise from a seed, for studies alone, and stamped as such.

The noise has the law of the real one (on the integers that are measured) but comes from a
seeded generator and floating-point arithmetic: it protects nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from lrm.planning.plan import Plan
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.shaped import ShapedLaw
from lrm.releases import Release
from study.shaped_noise import ShapedSpread, simulated_noise

__all__ = [
    "Simulation",
    "Spread",
    "discrete_laplace",
    "error_spread",
    "simulate",
    "simulated_release",
]

FALSE_ALARM = 5e-7
"""Probability that a right row is outside its tolerance on one side."""


def discrete_laplace(
    law: NoiseLaw, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw integers with ``P(X = k·g) ∝ exp(−|k|·g/scale)``, g the step of each measurement.

    The difference of two geometric variables. Simulated: see the module.

    >>> discrete_laplace(NoiseLaw("laplace", 2.0), (4,), np.random.default_rng(0)).dtype
    dtype('int64')
    """
    steps = np.array(law.steps)
    success = -np.expm1(-steps / law.scale)
    return np.asarray((rng.geometric(success, shape) - rng.geometric(success, shape)) * steps)


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
    delta: Fraction | None,
    rng: np.random.Generator,
) -> Release:
    """A release whose noise is simulated; ``Release.simulated`` says so.

    ``true_values`` are the plan's integers on counts that are not private.
    """
    privacy = plan.privacy(epsilon, delta)
    law = plan.accuracy(privacy).law
    scale = law.scale
    if plan.noise == "laplace":
        noise = discrete_laplace(law, true_values.shape, rng)
    elif isinstance(law, ShapedLaw):  # on all integers: no low-rank batch has a lattice
        values = simulated_noise(law.body, rng) * (scale / law.sensitivity)
        noise = np.rint(values).astype(np.int64)
    else:  # a rounded normal variable: σ is beyond 2^20 on a plan's integers
        noise = np.rint(rng.normal(0.0, scale, true_values.shape)).astype(np.int64)
    name = f"simulated {law.distribution}"
    return Release(plan, true_values + noise, privacy, epsilon, name, scale, simulated=True)


def simulate(  # noqa: PLR0913 - what a simulation consists of
    plan: Plan,
    counts: NDArray[np.int64],
    epsilon: str,
    *,
    repetitions: int,
    rng: np.random.Generator,
    delta: str | None = None,
    spread: Spread | ShapedSpread | None = None,
) -> Simulation:
    """Release ``repetitions`` times and compare the errors with their expectation.

    ``spread`` is the plan's ``error_spread``, where it is known already.
    """
    amount, failure = Fraction(epsilon), None if delta is None else Fraction(delta)
    exact = plan.workload.queries.apply(counts.astype(np.float64))
    true_values = plan.measured.measure(plan.measured.counts_of(counts))
    total = 0.0
    for _ in range(repetitions):
        gap = simulated_release(plan, true_values, amount, failure, rng).answers - exact
        total += float(gap @ gap)
    bias = _bias(plan, true_values, exact)
    noise = plan.expected_squared_error(amount, delta=failure)
    known = error_spread(plan) if spread is None else spread
    if isinstance(known, ShapedSpread):  # of an exact plan
        low, high = (noise * limit for limit in known.limits(repetitions, FALSE_ALARM))
        return Simulation(total / repetitions, noise, bias, low, high)
    # bias and noise: E|b + e|² = |b|² + E|e|², with a cross term of variance at most 4|b|²E|e|²
    deviation = math.hypot(noise * known.relative, 2 * math.sqrt(bias * noise))
    low, high = tolerance(noise + bias, deviation, known, repetitions)
    return Simulation(total / repetitions, noise + bias, bias, low, high)


def _bias(plan: Plan, true_values: NDArray[np.int64], exact: NDArray[np.float64]) -> float:
    if plan.exact:
        return 0.0
    rebuilt = plan.reconstruction_map.apply(
        true_values.astype(np.float64) * 2.0**-plan.measured.bits
    )
    return float(np.sum((rebuilt - exact) ** 2))


@dataclass(frozen=True, eq=False)
class Spread:
    """How a release's squared error scatters about its expectation.

    Parameters
    ----------
    relative
        Its standard deviation over its expectation.
    largest
        The largest eigenvalue of its quadratic form, over the sum of all.
    shares
        What part of the expectation comes from each measurement's noise.
    """

    relative: float
    largest: float
    shares: NDArray[np.float64]


def error_spread(plan: Plan) -> Spread | ShapedSpread:
    """The spread of a plan's squared error, from its reconstruction.

    The error is ``ηᵀMη`` with ``M = BᵀB`` and independent η of kurtosis κ (6, normal: 3), so
    that ``Var = v²·((κ − 3)·Σ M_ii² + 2‖M‖_F²)`` and ``E = v·tr M``. The kurtosis of the discrete
    law exceeds 6 by one over its variance, which is beyond 2^20 on a plan's integers.
    The noise of a body has a joint law of its own.
    """
    if plan.measured.body is not None:
        return ShapedSpread.of(plan, plan.measured.body)
    rows = [
        plan.reconstruction_map.rows(start, stop)
        for start, stop in plan.reconstruction_map.row_ranges()
    ]
    B = np.vstack(rows)
    columns = np.einsum("ij,ij->j", B, B)
    gram = B @ B.T if B.shape[0] <= B.shape[1] else B.T @ B
    excess = 3.0 if plan.noise == "laplace" else 0.0
    variance = excess * float(columns @ columns) + 2.0 * float(np.vdot(gram, gram))
    mean = float(columns.sum())
    if not mean:
        return Spread(0.0, 0.0, columns)
    top = len(gram) - 1
    largest = float(eigvalsh(gram, subset_by_index=(top, top))[0])
    return Spread(math.sqrt(variance) / mean, largest / mean, columns / mean)


def tolerance(
    expected: float, deviation: float, spread: Spread, repetitions: int
) -> tuple[float, float]:
    """Limits of the mean of ``repetitions`` squared errors, at ``FALSE_ALARM`` a side.

    For normal noise the two-sided bound of [1]_: with ``t = ln(1/FALSE_ALARM)`` the mean is
    within ``√(2t/T)`` deviations, and above by ``2tλ/T`` more, where λ is the largest eigenvalue:
    one that dominates makes the law a χ² of few degrees. For Laplace noise the upper limit
    also has the largest jump of a single variable, for their squares have tails ``exp(−√x)``
    and one can outweigh all others together; that sum is not a theorem; a test checks it.

    References
    ----------
    .. [1] Laurent, Massart, "Adaptive estimation of a quadratic functional by model selection",
       Annals of Statistics 2000, Lemma 1.
    """
    if not expected:
        return 0.0, 0.0
    t = -math.log(FALSE_ALARM) / repetitions
    usual = math.sqrt(2 * t) * deviation / expected
    rounding = 1e-9  # of floating-point answers that are rebuilt from exact integers
    low = max(0.0, 1 - usual - rounding)
    skew = 2 * t * spread.largest + _jump(spread.shares, repetitions)
    return expected * low, expected * (1 + usual + skew + rounding)


def _jump(shares: NDArray[np.float64], repetitions: int) -> float:
    """The d with ``Σ_j T·P(w_j·X²/E[X²] > d·T) = FALSE_ALARM`` for Laplace X, by bisection.

    ``P(X²/E[X²] > y) = exp(−√(2y))``.
    """
    weights = shares[shares > 0]
    low, high = 0.0, float(len(weights)) * 1e3
    for _ in range(60):
        middle = (low + high) / 2
        tails = np.exp(-np.sqrt(2 * middle * repetitions / weights))
        low, high = (low, middle) if repetitions * tails.sum() < FALSE_ALARM else (middle, high)
    return high
