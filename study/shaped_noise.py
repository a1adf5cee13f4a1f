"""Simulated noise of a body, and how far the squared errors of such noise may scatter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammainccinv

from lrm.planning.plan import Plan
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.sampling import Sample, sample_hull
from lrm.privacy.bodies.split import SplitHull

__all__ = ["ShapedSpread", "simulated_noise"]

Floats = NDArray[np.float64]

CLASSES, NODES, TILTS = 200, 800, 60
"""Classes of directions by their error, values of the radius, and exponents that are tried."""


@lru_cache(maxsize=1)
def _another_sample(body: SplitHull) -> Sample:
    """Not the sample that the body states its errors by."""
    return sample_hull(body.points, body.leaves, np.random.default_rng(7))


def simulated_noise(body: Body, rng: np.random.Generator) -> Floats:
    """One draw at scale 1 in float64, which does not depend on what states the errors."""
    if not isinstance(body, SplitHull):
        return np.asarray(body.simulate(1, rng)[0][0])
    sample = _another_sample(body)
    direction = sample.directions[rng.choice(len(sample.weights), p=sample.weights)]
    return np.asarray(direction * rng.standard_gamma(body.size) * rng.choice([-1.0, 1.0]))


@dataclass(frozen=True, eq=False)
class ShapedSpread:
    """The law of a release's squared error: ``S²·q``, S of a Gamma distribution, q of a direction.

    Parameters
    ----------
    shape
        The shape of the Gamma distribution.
    squares, chances
        Classes of q with their probabilities, such that the expectation of ``S²·q`` is 1.
    """

    shape: int
    squares: Floats
    chances: Floats

    @classmethod
    def of(cls, plan: Plan, body: Body) -> ShapedSpread:
        """From the directions of the body, each with the squared error of the answers there."""
        answers = plan.reconstruction_map.apply(np.asarray(body.directions.T))
        squares = np.einsum("ij,ij->j", answers, answers)
        weights = body.direction_weights
        chances = np.full(len(squares), 1 / len(squares)) if weights is None else weights
        order = np.argsort(squares)
        parts = [part for part in np.array_split(order, CLASSES) if len(part)]
        sums = np.array([chances[part].sum() for part in parts])
        means = np.array([chances[part] @ squares[part] for part in parts])
        some, k = sums > 0, body.variables
        return cls(k, means[some] / sums[some] / (means.sum() * k * (k + 1)), sums[some])

    def limits(self, repetitions: int, false_alarm: float) -> tuple[float, float]:
        """Limits of the mean of so many squared errors over their expectation, one on each side.

        Chernoff's bound; for the upper limit, whose exponential moments are infinite, on errors up
        to a level that one of them passes with half of the probability, and the union of the two.
        """
        values, chances, level = self._cells(false_alarm / 2 / repetitions)
        low = self._least(values, chances, -math.log(false_alarm) / repetitions, -1.0)
        high = self._least(values, chances, -math.log(false_alarm / 2) / repetitions, 1.0 / level)
        return float(max(0.0, low)), float(high)

    def _cells(self, rare: float) -> tuple[Floats, Floats, float]:
        """Values of the squared error with their probabilities, and the level that is rare."""
        low, high = 0.0, float(self.squares.max()) * gammainccinv(self.shape, rare) ** 2
        for _ in range(60):
            level = (low + high) / 2
            passed = gammaincc(self.shape, np.sqrt(level / self.squares)) @ self.chances
            low, high = (low, level) if passed < rare else (level, high)
        edges = np.linspace(0.0, gammainccinv(self.shape, rare / 1e3), NODES + 1)
        values = np.multiply.outer(self.squares, ((edges[1:] + edges[:-1]) / 2) ** 2)
        chances = np.multiply.outer(self.chances, np.diff(gammainc(self.shape, edges)))
        kept = values <= high
        return values[kept], chances[kept], high

    @staticmethod
    def _least(values: Floats, chances: Floats, exponent: float, unit: float) -> float:
        """The x with ``min_λ ln E[exp(λ·(Y − x))] = −exponent``, λ of the sign of ``unit``.

        ``x = (ln E[exp(λ·Y)] + exponent)/λ``, at its least for λ > 0 and at its largest for λ < 0.
        """
        found: list[float] = []
        for tilt in unit * np.geomspace(0.05, 100.0, TILTS):
            top = float((tilt * values).max())
            moment = math.log(float(chances @ np.exp(tilt * values - top))) + top
            found.append((moment + exponent) / float(tilt))
        return min(found) if unit > 0 else max(found)
