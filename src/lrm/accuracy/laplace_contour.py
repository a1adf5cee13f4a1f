"""Contour integrals that invert the moment generating functions of Laplace sums.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrm.errors import ConvergenceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lrm.accuracy.laplace_cgf import LaplaceSums

__all__ = ["Contour", "Saddle", "integrate", "saddle_of_tail"]

Vector = NDArray[np.float64]
ComplexVector = NDArray[np.complex128]
ComplexMatrix = NDArray[np.complex128]

# The hyperbola, its width at the saddle point in standard deviations, and the first step.
# Measured over 9 kinds of rows × 8 confidences: angles 0.45 and 0.52 need a 1.5 times finer
# step for the same 1e-7, because a sum of many terms is nearly Gaussian and exp(s²) grows
# towards the real axis; an angle near 0 would damp a single term too slowly.
ANGLE = 0.3
WIDTH = 1.4
STEP = 0.125
# Halving the step squares the error of the trapezoid rule. Accepting a row when the coarser
# rule (every second node) is within 1e-3 therefore asks for about 1e-6 of the finer one.
COARSE_TOLERANCE = 1e-3
REFINEMENTS = 6
# Terms below this part of the largest one so far end the sum of a row.
TRUNCATION = 1e-12
# |s| grows like exp(u). No row needs more than u ≈ 30 (a single term, confidence 1e-9).
LONGEST_ARC = 80.0
# The crossing need not be the saddle point exactly: 13 bisections give it to 0.2 %.
BISECTIONS = 13
# The saddle point of one term at a tail of exp(−140) lies below 1/(1 + exp(−5)), and more
# terms, or a larger tail, only move it towards 0.
FURTHEST_LOGIT = 5.0


@dataclass(frozen=True)
class Saddle:
    """Where the integrand ``exp(K(s) − s·h)/s`` is least on (0, 1), for each row.

    Attributes
    ----------
    crossing
        c, the saddle point.
    log_mgf
        K(c).
    curvature
        ``K''(c) + 1/c²``, the second derivative of the logarithm of the integrand.
    half_width
        h, in units of the row's scale: the one whose saddle point is c.
    """

    crossing: Vector
    log_mgf: Vector
    curvature: Vector
    half_width: Vector

    @classmethod
    def at(cls, sums: LaplaceSums, crossing: Vector) -> Saddle:
        """Return the saddle whose point is ``crossing``; its half-width is ``K'(c) − 1/c``."""
        value, first, second = sums.cumulants(crossing)
        return cls(crossing, value, second + crossing**-2, first - 1.0 / crossing)

    def log_tail(self) -> Vector:
        """Return the saddle point approximation of ``log P(S > h)``, right to a few per cent."""
        exponent = self.log_mgf - self.crossing * self.half_width - np.log(self.crossing)
        return np.asarray(exponent - 0.5 * np.log(2.0 * np.pi * self.curvature))


def saddle_of_tail(sums: LaplaceSums, log_tail: float) -> Saddle:
    """Return saddles of about the half-widths h ≥ 0 with ``log P(S > h) = log_tail``."""
    furthest = np.full(len(sums.scale), FURTHEST_LOGIT)
    return _bisect(sums, furthest, lambda at: (at.half_width < 0) | (at.log_tail() > log_tail))


def _bisect(
    sums: LaplaceSums, furthest: Vector, is_left: Callable[[Saddle], NDArray[np.bool_]]
) -> Saddle:
    """Bisect for the crossing on the logit scale, which resolves both ends of (0, 1)."""
    # h = 0 has c·K'(c) = 1, and 2x·c²/(1 − x·c²) ≤ 2x·c²/(1 − c²) gives c² ≥ 1/(1 + 2Σx).
    squares = sums.squares if sums.counts is None else sums.squares * sums.counts
    least = 1.0 / np.sqrt(1.0 + 2.0 * squares.sum(axis=0))
    low = np.log(least) - np.log1p(-least)
    high = np.maximum(furthest, low)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        left = is_left(Saddle.at(sums, _logistic(middle)))
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return Saddle.at(sums, _logistic(high))


def _logistic(logit: Vector) -> Vector:
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


@dataclass(frozen=True)
class Contour:
    r"""Nodes s and masses w of a quadrature rule for each row, one column per row.

    ``P(S > h) = exp(K(c) − c·h)·Re Σ w·exp(−(s − c)·h)`` and, where ``narrow``, in its place
    ``P(0 < S ≤ h) = exp(K(c))·Re Σ w·(1 − exp(−s·h))``, which keeps its relative accuracy as h → 0.
    """

    crossing: Vector
    log_mgf: Vector
    nodes: ComplexMatrix
    masses: ComplexMatrix
    narrow: bool

    @classmethod
    def trace(cls, sums: LaplaceSums, saddle: Saddle, step: float, reach: float | None) -> Contour:
        """Lay nodes at distance ``step`` along the hyperbola through the saddle points.

        ``reach`` is None for a rule for tails, else the rule is ``narrow`` and serves h ≥ 1/reach.
        Rows end where their terms have become negligible; the nodes go on until all have.
        """
        width = WIDTH / np.sqrt(saddle.curvature)
        alive = np.ones(len(width), dtype=np.bool_)
        peak = np.zeros(len(width))
        nodes: list[ComplexVector] = []
        masses: list[ComplexVector] = []
        while alive.any() and len(nodes) * step < LONGEST_ARC:
            angle = ANGLE + 1j * step * len(nodes)
            # A row that has ended stays at c, where nothing can overflow, with mass 0.
            offset = np.where(alive, width * (np.sin(angle) - np.sin(ANGLE)), 0.0)
            s: ComplexVector = (saddle.crossing + offset).astype(np.complex128)
            growth = np.exp(sums.log_mgf(s * s) - saddle.log_mgf)
            slope = width * np.cos(angle) * (step / np.pi)
            mass: ComplexVector = np.where(alive, growth * slope / s, 0.0)
            if reach is None:
                term = np.abs(mass) * np.exp((saddle.crossing - s.real) * saddle.half_width)
            else:
                term = np.abs(mass) * np.minimum(np.abs(s), reach)
            peak = np.maximum(peak, term)
            alive &= term > TRUNCATION * peak
            nodes.append(s)
            # The other half of the contour mirrors this one, and both share the first node.
            masses.append(mass if masses else 0.5 * mass)
        if alive.any():
            raise ConvergenceError(
                "expected the contour integral of a noise sum to end, but its terms do not decay; "
                "please report these weights"
            )
        return cls(
            saddle.crossing, saddle.log_mgf, np.array(nodes), np.array(masses), reach is not None
        )

    def evaluate(self, half_width: Vector) -> tuple[Vector, Vector]:
        """Return the logarithm of the probability at h and its derivative in h."""
        shifted = np.exp((self.crossing - self.nodes) * half_width)
        density = (self.masses * self.nodes * shifted).sum(axis=0).real
        if self.narrow:
            centre = -(self.masses * np.expm1(-self.nodes * half_width)).sum(axis=0).real
            return self.log_mgf + np.log(centre), density * np.exp(
                -self.crossing * half_width
            ) / centre
        tail = (self.masses * shifted).sum(axis=0).real
        return self.log_mgf - self.crossing * half_width + np.log(tail), -density / tail

    def density_at_zero(self) -> Vector:
        """Return the density of S at 0, its largest value."""
        return np.asarray(np.exp(self.log_mgf) * (self.masses * self.nodes).sum(axis=0).real)

    def coarser(self) -> Contour:
        """Return the rule of twice the step, on every second node."""
        nodes, masses = self.nodes[::2], 2.0 * self.masses[::2]
        return Contour(self.crossing, self.log_mgf, nodes, masses, self.narrow)


def integrate(
    sums: LaplaceSums, saddle: Saddle, reach: float | None, solve: Callable[[Contour], Vector]
) -> tuple[Vector, Vector]:
    """Return ``h = solve(contour)`` and the log-probability there, on a fine enough contour.

    The rule is compared with its coarser half at h, and its step halved until they agree.
    """
    for level in range(REFINEMENTS):
        contour = Contour.trace(sums, saddle, STEP / 2**level, reach)
        half_width = solve(contour)
        value = contour.evaluate(half_width)[0]
        rough = contour.coarser().evaluate(half_width)[0]
        if np.all(np.abs(np.expm1(rough - value)) <= COARSE_TOLERANCE):
            return half_width, value
    raise ConvergenceError(
        f"expected the contour integral of a noise sum to settle within {REFINEMENTS} refinements, "
        "but it did not; please report these weights"
    )
