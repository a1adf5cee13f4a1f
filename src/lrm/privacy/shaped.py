"""Noise shaped by a body: its law on the measured integers, and its calibration.

The noise on the measured integers has density ∝ exp(−Δ·‖z‖_K/scale) before it is rounded, where Δ
is the sensitivity that the strategy states (a record moves the measurements by norm 1 at most).
So scale and sensitivity mean what they mean for Laplace noise: ``scale = Δ·factor/ε``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv

from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.drawing import SYSTEM, Bits
from lrm.privacy.bodies.patterns import (
    MOST_RATE,
    draw_pattern,
    pattern_variance,
    simulate_patterns,
)
from lrm.privacy.budget import PureDP
from lrm.privacy.laws import COARSE, NoiseLaw
from lrm.privacy.noise import Calibrated, check_scale, laplace_scale

Floats = NDArray[np.float64]

LIMIT = 1 << 62
"""Noisy integers beyond it are clamped, after the noise is added."""

STEP, CLASSES = 0.002, 7000
"""Relative width of the classes into which sizes of directions are put, and their number."""

DRAWS, ROUNDING = 1 << 17, 1e-6
"""Simulated draws on a lattice, and what is added to whole steps, in steps."""

ERRORS = 3.0
"""Standard errors of the simulated coverage by which half-widths are wider than estimated."""


@dataclass(frozen=True)
class ShapedLaw(NoiseLaw):
    """The joint law of the noise on all measured integers.

    Parameters
    ----------
    noise, scale
        ``"shaped"``, and the scale in units of the sensitivity.
    body
        The body K.
    sensitivity
        The sensitivity Δ that the scale is relative to.
    lattice
        The noise consists of multiples of this; 0 where it is rounded to all integers.
    """

    body: Body
    sensitivity: int
    lattice: int = 0

    @property
    def distribution(self) -> str:
        return "shaped on a lattice" if self.lattice else "shaped"

    @property
    def steps(self) -> tuple[int, ...]:
        return (max(self.lattice, 1),)

    @property
    def fine(self) -> ShapedLaw:
        return replace(self, lattice=0)

    def on_lattice(self, divisors: NDArray[np.int64]) -> ShapedLaw:
        """The law of the same scale on the lattice of yes/no counts, where that is coarse."""
        unit = self.body.pattern_unit
        if not unit or not COARSE <= self._rate <= MOST_RATE or np.any(divisors % unit):
            return self.fine
        return replace(self, lattice=unit)

    @property
    def _rate(self) -> Fraction:
        """The probability of a vector falls by e^−rate with each unit of its norm."""
        return self.sensitivity / Fraction(self.scale)

    @cached_property
    def _variance_ratio(self) -> float:
        """Variances on the lattice relative to those on all integers, the same for all answers."""
        if not self.lattice:
            return 1.0
        k, rate = self.body.size, float(self._rate)
        return pattern_variance(k, rate) * 6.0 * rate**2 / ((k + 2.0) * (k + 3.0))

    @cached_property
    def _covariance(self) -> Floats:
        """Covariance of the noise on the integers."""
        ratio = self._variance_ratio * (self.scale / self.sensitivity) ** 2
        return np.asarray(self.body.covariance * ratio)

    @cached_property
    def _simulated(self) -> Floats:
        """Simulated noise on the lattice, always the same."""
        rng = np.random.default_rng(25)
        return simulate_patterns(self.body.size, float(self._rate), DRAWS, rng) * self.lattice

    @cached_property
    def variance(self) -> float:
        """That of Laplace noise, less what a lattice saves: what norms of rows are relative to."""
        return 2.0 * self.scale**2 * self._variance_ratio

    @property
    def smooth(self) -> bool:
        return not self.lattice

    @property
    def independent(self) -> bool:
        return False

    def covariance(self, weights: Floats, counts: Floats | None = None) -> Floats:
        """Covariance of ``weights @ noise`` for groups × inputs × measurements, each once."""
        del counts
        return np.asarray(
            np.matmul(np.matmul(weights, self._covariance), weights.transpose(0, 2, 1))
        )

    def same_law(self, rows: Floats) -> Floats:
        return self.body.same_law(rows)

    def half_widths(self, weights: Floats, confidence: float) -> Floats:
        """For each row b an h with ``P(|b·noise| ≤ h) ≥ confidence``.

        The noise is ``S·d``, where S has a Gamma distribution and does not depend on the direction
        d. So ``P(|b·noise| ≤ h)`` is the mean of ``F(h/|b·d|)`` over directions, F the distribution
        function of S: smooth, and exact but for the simulated directions, for which some standard
        errors are added. The sizes |b·d| are made to have the mean square that the covariance
        gives them, which is known better than by their sample. Rounding to integers moves an
        answer by at most half the sum of |b|.

        On a lattice it is one of the ordered sizes of simulated draws.
        """
        if self.lattice:
            return self._simulated_half_widths(weights, confidence)
        size = self.scale / self.sensitivity
        widths = np.empty(len(weights))
        rounding = 0.5 * np.abs(weights).sum(axis=1)
        step = max(1, (1 << 22) // len(self.body.directions))
        shape = self.body.variables
        table = _gamma_table(shape, confidence)
        squares = np.einsum("bc,cd,bd->b", weights, self.body.covariance, weights, optimize=True)
        weighting = self.body.direction_weights
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            sizes = np.abs(weights[part] @ self.body.directions.T)
            means = np.average(sizes**2, axis=1, weights=weighting) * shape * (shape + 1.0)
            factors = np.sqrt(squares[part] / np.where(means > 0, means, 1.0))
            widths[part] = factors * [
                _half_width(row_sizes, table, confidence, weighting) for row_sizes in sizes
            ]
        return np.asarray(widths * size + rounding)

    def _simulated_half_widths(self, weights: Floats, confidence: float) -> Floats:
        errors = ERRORS * math.sqrt(confidence * (1.0 - confidence) / DRAWS)
        place = math.ceil((DRAWS + 1) * min(confidence + errors, 1.0))
        if place > DRAWS:  # too few draws for so large a confidence
            return self.widest_half_widths(weights[:, None], confidence)[:, 0]
        widths = np.empty(len(weights))
        for row, row_weights in enumerate(weights):
            sizes = np.abs(self._simulated @ row_weights)
            widths[row] = np.partition(sizes, place - 1)[place - 1]
        # Answers from whole steps have rounding errors.
        rounding = ROUNDING * self.lattice * np.abs(weights).max(axis=1, initial=0.0)
        return np.asarray(widths + rounding)

    def widest_half_widths(self, weights: Floats, confidence: float) -> Floats:
        """Half-widths from standard deviations alone, for groups × inputs × measurements.

        Sums of the noise are symmetric with a log-concave density, so ``−ln P(|S| ≥ t)`` is convex
        and 0 at 0. If it is a at h, then ``P(|S| ≥ t) ≥ exp(−a·t/h)`` up to h, and the variance
        is at least ``∫_0^h 2t·exp(−a·t/h) dt = 2h²·(1 − (1 + a)·e^−a)/a²``.
        """
        squares = np.einsum("gkc,cd,gkd->gk", weights, self._covariance, weights, optimize=True)
        if self.lattice:  # Chebyshev's inequality
            return np.asarray(np.sqrt(np.maximum(squares, 0.0) / (1.0 - confidence)))
        a = -math.log1p(-confidence)
        ratio = a / math.sqrt(2.0 * (1.0 - (1.0 + a) * math.exp(-a)))
        rounding = 0.5 * np.abs(weights).sum(axis=2)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)) * ratio + rounding)


@lru_cache(maxsize=16)
def _gamma_table(shape: int, confidence: float) -> Floats:
    """The distribution function of S at ``top·exp(−STEP·i)``, i = 0, 1, …; the first is the top.

    The top is where no direction of the largest size is beyond with a chance that matters.
    """
    top = float(gammaincinv(shape, 1.0 - (1.0 - confidence) * 1e-4))
    values = top * np.exp(-STEP * np.arange(CLASSES))
    return np.concatenate([[top], gammainc(shape, values)])


def _half_width(
    sizes: Floats, table: Floats, confidence: float, weights: Floats | None = None
) -> float:
    """The h at which the mean of ``F(h/size)``, less some standard errors, is ``confidence``.

    Sizes are put into classes on a logarithmic scale, each rounded up to the end of its class. At
    ``h = top·largest·exp(−STEP·j)`` the class c, of size ``largest·exp(−STEP·c)``, has the value of
    F at ``top·exp(−STEP·(j − c))``.
    """
    largest = float(sizes.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    logs = -np.log(np.maximum(sizes / largest, math.exp(-STEP * (CLASSES - 1)))) / STEP
    classes = np.maximum(logs - 1e-9, 0.0).astype(np.int64)
    size_weights = np.full(len(sizes), 1.0 / len(sizes)) if weights is None else weights
    chances = np.bincount(classes, size_weights)
    number = 1.0 / float((size_weights**2).sum())
    top, values = float(table[0]), table[1:]

    def covered(j: int) -> float:
        below = values[np.maximum(j - np.arange(len(chances)), 0)]
        mean = float(chances @ below)
        spread = math.sqrt(max(float(chances @ below**2) - mean**2, 0.0) / number)
        # Far in the tail the error of the mean is in proportion to what is missing.
        return mean - min(ERRORS * spread, 0.1 * (1.0 - mean))

    low, high = 0, CLASSES - 1  # enough at low, too little at high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if covered(middle) >= confidence else (low, middle)
    enough, little = covered(low), covered(high)
    part = (enough - confidence) / (enough - little) if enough > little else 0.0
    return top * largest * math.exp(-STEP * (low + max(0.0, min(1.0, part))))


@dataclass(frozen=True)
class ShapedNoise(Calibrated):
    """Noise of a body; ``sampler`` holds what was drawn ahead, which is used once."""

    def draw(self, bits: Bits = SYSTEM) -> list[int]:
        """One vector of noise; tests give bits of their own."""
        law = self.law
        assert isinstance(law, ShapedLaw)  # noqa: S101 - by construction
        if law.lattice:
            rate = law.sensitivity / Fraction(law.scale)
            return [law.lattice * w for w in draw_pattern(law.body.size, rate, bits)]
        return law.body.draw(Fraction(law.scale) / law.sensitivity, bits)

    def drawn(self) -> ShapedNoise:
        return replace(self, sampler=[self.draw()])

    def add_to(self, true_values: NDArray[np.generic]) -> NDArray[np.int64]:
        """Add the noise in integers of any size; then clamp the sums to 62 bits.

        Clamping looks at noisy values alone. Clamped true values could differ more in the norm of
        the body than those of neighbours may.
        """
        noise = self.sampler.pop() if self.sampler else self.draw()
        (step,) = self.law.steps
        most = LIMIT // step * step
        sums = (int(x) + z for x, z in zip(true_values.tolist(), noise, strict=True))
        return np.array([max(-most, min(most, x)) for x in sums], dtype=np.int64)


def calibrate_shaped(
    body: Body, sensitivity: int, moved: int, privacy: PureDP, divisors: NDArray[np.int64]
) -> ShapedNoise:
    """Noise for a unit that moves the measurements by norm ``moved/Δ`` at most.

    The scale is a float64 that is rounded up; the noise has exactly this scale, and its loss is
    ``moved/scale``.

    >>> from lrm.privacy.bodies.tables import Tables
    >>> noise = calibrate_shaped(
    ...     Tables((2, 2), (True, True), 1), 1, 3, PureDP(Fraction(1, 10)), np.ones(1, dtype=int)
    ... )
    >>> noise.scale, noise.loss
    (30.0, Fraction(1, 10))
    """
    scale = laplace_scale(moved, privacy.epsilon)
    check_scale(scale, 0, "epsilon")
    law = ShapedLaw("shaped", scale, body, sensitivity).on_lattice(divisors)
    return ShapedNoise(law, privacy, Fraction(moved) / Fraction(scale), None)
