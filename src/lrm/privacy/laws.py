"""Laws of the integer noise: its variance and generating functions, without drawing any."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.privacy.budget import Noise

__all__ = ["NoiseLaw"]

Floats = NDArray[np.float64]

_SMOOTH = 4.0
"""From this σ on the discrete Gaussian has variance σ² to 1e-130 of it (Poisson summation)."""


@dataclass(frozen=True)
class NoiseLaw:
    """The law of the noise on one measured integer.

    ``P(k) ∝ exp(−|k|/scale)`` (discrete Laplace) or ``P(k) ∝ exp(−k²/(2·scale²))`` (discrete
    Gaussian), on all integers k.

    Parameters
    ----------
    noise
        ``"laplace"`` or ``"gaussian"``.
    scale
        The scale that the sampler is given.

    Examples
    --------
    >>> round(NoiseLaw("laplace", 1.0).variance, 6), round(NoiseLaw("gaussian", 0.3).variance, 6)
    (1.841347, 0.007673)
    """

    noise: Noise
    scale: float

    @property
    def distribution(self) -> str:
        """Its name."""
        return "discrete Laplace" if self.noise == "laplace" else "discrete Gaussian"

    @cached_property
    def variance(self) -> float:
        """Variance: ``2q/(1 − q)²`` with ``q = exp(−1/scale)``, or the sum of ``k²·P(k)``."""
        if self.noise == "laplace":
            half = 0.5 / self.scale
            return 0.5 / math.sinh(half) ** 2 if half < 300 else 0.0
        if self.scale >= _SMOOTH:
            return self.scale**2
        k, mass = self._atoms
        return float(2.0 * (k**2 * mass).sum())

    @property
    def independent(self) -> bool:
        """Whether the noise on each integer is independent of that on others."""
        return True

    def covariance(self, weights: Floats, counts: Floats | None = None) -> Floats:
        """Covariance of ``weights @ noise`` for groups × inputs × measurements.

        ``counts`` (groups × measurements) says for how many measurements each column stands.
        """
        often = weights if counts is None else weights * counts[:, None]
        return np.asarray(np.matmul(often, weights.transpose(0, 2, 1)) * self.variance)

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)

    @cached_property
    def _atoms(self) -> tuple[Floats, Floats]:
        """The integers k ≥ 1 that matter with their probabilities, for the discrete Gaussian."""
        k = np.arange(1.0, math.ceil(10 * self.scale) + 4)
        weight = np.exp(-0.5 * (k / self.scale) ** 2)
        return k, weight / (1.0 + 2.0 * weight.sum())

    def log_characteristic(self, angles: Floats) -> Floats:
        """``log E exp(i·u·η)`` at angles u; the expectation is positive for both laws."""
        if self.noise == "laplace":
            q = math.exp(-1.0 / self.scale)
            spread = 4.0 * q * np.sin(angles / 2.0) ** 2
            return np.asarray(-np.log1p(spread / math.expm1(-1.0 / self.scale) ** 2))
        k, mass = self._atoms
        gap = np.zeros_like(angles)
        for integer, probability in zip(k, mass, strict=True):
            gap += 4.0 * probability * np.sin(integer * angles / 2.0) ** 2
        return np.log(np.maximum(1.0 - gap, np.finfo(float).tiny))

    def log_mgf(self, t: Floats) -> Floats:
        """``log E exp(t·η)``, or an upper bound on it; infinite where it does not exist.

        The discrete Gaussian is sub-Gaussian with parameter σ² (Canonne, Kamath and Steinke,
        *The Discrete Gaussian for Differential Privacy*, 2020).
        """
        if self.noise == "gaussian":
            return np.asarray(0.5 * (self.scale * t) ** 2)
        q = math.exp(-1.0 / self.scale)
        size = np.abs(t) * self.scale
        ratio = 4.0 * q * np.sinh(np.minimum(np.abs(t), 1.0 / self.scale) / 2.0) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            value = -np.log1p(-ratio / math.expm1(-1.0 / self.scale) ** 2)
        return np.where(size < 1.0, value, np.inf)
