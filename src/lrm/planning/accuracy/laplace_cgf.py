"""Cumulant generating functions of weighted sums of Laplace variables, and their inversion.

Many rows at a time; contour integrals give the tails.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.errors import ConvergenceError
from lrm.queries.maps.linear import Floats, Integers

Complexes = NDArray[np.complex128]

# The largest weights of a row are treated one by one, the others through their power sums.
HEAD = 64
# |log(1 − y) + Σ_{k≤16} y^k/k| < 2e-11·|y| for |y| ≤ 1/4: far below the quadrature error.
SERIES_TERMS = 16
# Eight factors |1 − x·z| with |z| ≤ 1e37 cannot overflow, and one log serves all eight.
FACTORS = 8
# The hyperbola, its width at the saddle point in standard deviations, and the first step.
# Measured over 9 kinds of rows × 8 confidences: angles 0.45 and 0.52 need a 1.5 times finer
# step for the same 1e-7, because a sum of many terms is nearly Gaussian and exp(s²) grows
# towards the real axis; an angle near 0 would damp a single term too slowly.
ANGLE = 0.3

WIDTH = 1.4

STEP = 0.125

REFINEMENTS = 6


@dataclass(frozen=True)
class LaplaceSums:
    r"""Sums ``S_i = Σ_j a_ij Z_j`` of iid standard Laplace variables, in units of each row's scale.

    With ``x_j = (a_j / max|a|)²`` in [0, 1], the cumulant generating function of a row is

        K(s) = log E exp(s·S) = −Σ_j log(1 − x_j s²),   poles at s = ±1/√x_j, |s| ≥ 1.

    The power series ``−log(1 − y) = Σ_k y^k/k`` turns all weights with ``|x_j s²| ≤ 1/4`` into
    16 power sums ``Σ_j x_j^k``, so that a value of K costs 64 + 16 operations for a row of
    any length: near the saddle point of a sum of thousands of terms nearly all are that small.

    Attributes
    ----------
    scale
        Largest ``|a_ij|`` of each row, positive.
    squares
        ``x``, one column per row of weights (so that products run along memory).
    head
        The 64 largest of them.
    counts, head_counts
        How often each of these occurs in its row; None where all occur once.
    power_sums
        ``Σ_j x_j^k`` over all others, k = 1 … 16, one column per row of weights.
    radius
        Largest ``|s²|`` of each row for which head and power sums may stand for all weights.
    """

    scale: Floats
    squares: Floats
    head: Floats
    power_sums: Floats
    radius: Floats
    counts: Floats | None = None
    head_counts: Floats | None = None

    @classmethod
    def from_weights(cls, weights: Floats, counts: Floats | None = None) -> LaplaceSums:
        """Prepare rows of weights, none of them all zero, each with how often it occurs.

        Examples
        --------
        >>> sums = LaplaceSums.from_weights(np.array([[3.0, -4.0]]))
        >>> sums.scale.tolist(), sums.squares.ravel().tolist()
        ([4.0], [0.5625, 1.0])
        """
        size = np.abs(weights)
        scale = size.max(axis=1)
        squares = np.square(size / scale[:, np.newaxis])
        length = squares.shape[1]
        # For as few weights the head alone is cheaper than head and power sums together.
        if length <= 96:
            columns = np.ascontiguousarray(squares.T)
            no_sums = np.zeros((0, len(scale)))
            often = None if counts is None else np.ascontiguousarray(counts.T)
            no_radius = np.full(len(scale), np.inf)
            return cls(scale, columns, columns, no_sums, no_radius, often, often)
        if counts is None:
            ordered = np.partition(squares, length - HEAD, axis=1)
            often = head_counts = None
        else:
            order = np.argpartition(squares, length - HEAD, axis=1)
            ordered = np.take_along_axis(squares, order, axis=1)
            often = np.take_along_axis(counts, order, axis=1)
            head_counts = np.ascontiguousarray(often[:, length - HEAD :].T)
            squares = ordered
        tail = ordered[:, : length - HEAD]
        power = tail.copy() if often is None else tail * often[:, : length - HEAD]
        power_sums = np.empty((SERIES_TERMS, len(scale)))
        for k in range(SERIES_TERMS):
            power_sums[k] = power.sum(axis=1)
            power *= tail
        # A tail of zeros has no radius of convergence to respect; its sums are all zero.
        radius = 0.25 / np.maximum(tail.max(axis=1), np.finfo(float).tiny)
        head = np.ascontiguousarray(ordered[:, length - HEAD :].T)
        columns = np.ascontiguousarray(squares.T)
        often = None if often is None else np.ascontiguousarray(often.T)
        return cls(scale, columns, head, power_sums, radius, often, head_counts)

    def log_mgf(self, z: Complexes) -> Complexes:
        """Return ``K(√z)`` for one complex ``z = s²`` a row, up to a multiple of 2πi.

        >>> LaplaceSums.from_weights(np.array([[2.0]])).log_mgf(np.array([0.75 + 0j])).round(6)
        array([1.386294+0.j])
        """
        near = bool(np.all(np.abs(z) <= self.radius))
        squares = self.head if near else self.squares
        counts = self.head_counts if near else self.counts
        total: Complexes = np.zeros(z.shape, dtype=np.complex128)
        # Complex factors that are multiplied at a time: 256 KB stay in the cache.
        height = FACTORS * max(1, (2**14) // (FACTORS * len(z)))
        for start in range(0, len(squares), height):
            part = squares[start : start + height]
            if counts is None:
                factors = 1.0 - part * z
                eights = np.arange(0, len(factors), FACTORS)
                total -= np.log(np.multiply.reduceat(factors, eights, axis=0)).sum(axis=0)
                continue
            # Size and angle by themselves: NumPy takes ten times as long for complex logarithms.
            real, imaginary = 1.0 - part * z.real, part * -z.imag
            often = counts[start : start + height]
            total.imag -= (often * np.arctan2(imaginary, real)).sum(axis=0)
            real *= real
            imaginary *= imaginary
            real += imaginary
            total.real -= 0.5 * (often * np.log(real)).sum(axis=0)
        if near and len(self.power_sums):
            series = np.zeros_like(total)
            for k in range(SERIES_TERMS, 0, -1):
                series = (series + self.power_sums[k - 1] / k) * z
            total += series
        return total

    def cumulants(self, c: Floats) -> tuple[Floats, Floats, Floats]:
        """Return ``K(c), K'(c), K''(c)`` at one real 0 < c < 1 a row.

        >>> sums = LaplaceSums.from_weights(np.array([[2.0]]))
        >>> [round(float(k[0]), 6) for k in sums.cumulants(np.array([0.5]))]
        [0.287682, 1.333333, 4.444444]
        """
        z = c * c
        near = bool(np.all(z <= self.radius))
        squares = self.head if near else self.squares
        counts = self.head_counts if near else self.counts
        y = squares * z
        d = 1.0 - y
        logs = np.log(d)
        if counts is not None:
            logs *= counts
        value = -logs.sum(axis=0)
        y /= d
        if counts is not None:
            y *= counts
        first = 2.0 * y.sum(axis=0)
        second = 2.0 * (y * (2.0 / d - 1.0)).sum(axis=0)
        if near and len(self.power_sums):
            power = np.ones_like(z)
            for k in range(1, SERIES_TERMS + 1):
                power = power * z
                term = self.power_sums[k - 1] * power
                value += term / k
                first += 2.0 * term
                second += 2.0 * (2 * k - 1) * term
        return value, first / c, second / z


def row_blocks(
    matrix: Floats, counts: Floats | None = None
) -> Iterator[tuple[Integers, LaplaceSums]]:
    """Yield the rows of a matrix of weights in blocks, without those that are zero.

    A block holds at most 2^19 weights (or one row) and 4,096 rows, whatever the size of the
    matrix. ``counts`` says how often each weight occurs, if at all.
    """
    # Rows × weights of one block (4 MB), and rows of one block (for the nodes kept for each row).
    step = max(1, min(4096, (1 << 19) // max(matrix.shape[1], 1)))
    for start in range(0, len(matrix), step):
        block = matrix[start : start + step]
        some = None if counts is None else counts[start : start + step]
        if some is not None:
            block = np.where(some > 0, block, 0.0)  # the largest is the scale of a row
        nonzero_rows = np.flatnonzero(block.any(axis=1))
        if nonzero_rows.size:
            often = None if some is None else some[nonzero_rows]
            yield nonzero_rows + start, LaplaceSums.from_weights(block[nonzero_rows], often)


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

    crossing: Floats
    log_mgf: Floats
    curvature: Floats
    half_width: Floats

    @classmethod
    def at(cls, sums: LaplaceSums, crossing: Floats) -> Saddle:
        """Return the saddle whose point is ``crossing``; its half-width is ``K'(c) − 1/c``."""
        value, first, second = sums.cumulants(crossing)
        return cls(crossing, value, second + crossing**-2, first - 1.0 / crossing)

    def log_tail(self) -> Floats:
        """Return the saddle point approximation of ``log P(S > h)``, right to a few per cent."""
        exponent = self.log_mgf - self.crossing * self.half_width - np.log(self.crossing)
        return np.asarray(exponent - 0.5 * np.log(2.0 * np.pi * self.curvature))


def saddle_of_tail(sums: LaplaceSums, log_tail: float) -> Saddle:
    """Return saddles of about the half-widths h ≥ 0 with ``log P(S > h) = log_tail``."""
    # The saddle point of one term at a tail of exp(−140) lies below 1/(1 + exp(−5)), and more
    # terms, or a larger tail, only move it towards 0.
    furthest = np.full(len(sums.scale), 5.0)
    return bisect(sums, furthest, lambda at: (at.half_width < 0) | (at.log_tail() > log_tail))


def bisect(
    sums: LaplaceSums, furthest: Floats, is_left: Callable[[Saddle], NDArray[np.bool_]]
) -> Saddle:
    """Bisect for the crossing on the logit scale, which resolves both ends of (0, 1)."""
    # h = 0 has c·K'(c) = 1, and 2x·c²/(1 − x·c²) ≤ 2x·c²/(1 − c²) gives c² ≥ 1/(1 + 2Σx).
    squares = sums.squares if sums.counts is None else sums.squares * sums.counts
    least = 1.0 / np.sqrt(1.0 + 2.0 * squares.sum(axis=0))
    low = np.log(least) - np.log1p(-least)
    high = np.maximum(furthest, low)
    # The crossing need not be the saddle point exactly: 13 bisections give it to 0.2 %.
    for _ in range(13):
        middle = 0.5 * (low + high)
        left = is_left(Saddle.at(sums, _logistic(middle)))
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return Saddle.at(sums, _logistic(high))


def _logistic(logit: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


@dataclass(frozen=True)
class Contour:
    r"""Nodes s and masses w of a quadrature rule for each row, one column per row.

    ``P(S > h) = exp(K(c) − c·h)·Re Σ w·exp(−(s − c)·h)`` and, where ``narrow``, in its place
    ``P(0 < S ≤ h) = exp(K(c))·Re Σ w·(1 − exp(−s·h))``, which keeps its relative accuracy as h → 0.
    """

    crossing: Floats
    log_mgf: Floats
    nodes: Complexes
    masses: Complexes
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
        nodes: list[Complexes] = []
        masses: list[Complexes] = []
        # |s| grows like exp(u). No row needs more than u ≈ 30 (a single term, confidence 1e-9).
        while alive.any() and len(nodes) * step < 80.0:
            angle = ANGLE + 1j * step * len(nodes)
            # A row that has ended stays at c, where nothing can overflow, with mass 0.
            offset = np.where(alive, width * (np.sin(angle) - np.sin(ANGLE)), 0.0)
            s: Complexes = (saddle.crossing + offset).astype(np.complex128)
            growth = np.exp(sums.log_mgf(s * s) - saddle.log_mgf)
            slope = width * np.cos(angle) * (step / np.pi)
            mass: Complexes = np.where(alive, growth * slope / s, 0.0)
            if reach is None:
                term = np.abs(mass) * np.exp((saddle.crossing - s.real) * saddle.half_width)
            else:
                term = np.abs(mass) * np.minimum(np.abs(s), reach)
            peak = np.maximum(peak, term)
            # Terms below this part of the largest one so far end the sum of a row.
            alive &= term > 1e-12 * peak
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

    def evaluate(self, half_width: Floats) -> tuple[Floats, Floats]:
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

    def density_at_zero(self) -> Floats:
        """Return the density of S at 0, its largest value."""
        return np.asarray(np.exp(self.log_mgf) * (self.masses * self.nodes).sum(axis=0).real)

    def coarser(self) -> Contour:
        """Return the rule of twice the step, on every second node."""
        nodes, masses = self.nodes[::2], 2.0 * self.masses[::2]
        return Contour(self.crossing, self.log_mgf, nodes, masses, self.narrow)


def integrate(
    sums: LaplaceSums, saddle: Saddle, reach: float | None, solve: Callable[[Contour], Floats]
) -> tuple[Floats, Floats]:
    """Return ``h = solve(contour)`` and the log-probability there, on a fine enough contour.

    The rule is compared with its coarser half at h, and its step halved until they agree.
    """
    for level in range(REFINEMENTS):
        contour = Contour.trace(sums, saddle, STEP / 2**level, reach)
        half_width = solve(contour)
        value = contour.evaluate(half_width)[0]
        rough = contour.coarser().evaluate(half_width)[0]
        # Halving the step squares the error of the trapezoid rule. Accepting a row when the coarser
        # rule (every second node) is within 1e-3 therefore asks for about 1e-6 of the finer one.
        if np.all(np.abs(np.expm1(rough - value)) <= 1e-3):
            return half_width, value
    raise ConvergenceError(
        f"expected the contour integral of a noise sum to settle within {REFINEMENTS} refinements, "
        "but it did not; please report these weights"
    )
