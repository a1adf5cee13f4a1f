"""The ascent of weights that both solvers for Gaussian noise share, and what they return.

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from lrm.clock import Clock, Step
from lrm.errors import StopSolver
from lrm.maps.linear import TINY

__all__ = ["GaussianResult", "WeightAscent"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GaussianResult:
    """A strategy with L2 columns, and how far from optimal it can be.

    Parameters
    ----------
    L
        Strategy, k x n, its columns in the unit L2 ball.
    B
        Reconstruction, m x k, with ``W = B·L``.
    upper
        ``‖B‖_F²``, the error of this pair.
    lower
        No pair of any rank has a smaller ``‖B‖_F²·Δ(L)²``, be Δ the largest L2 or L1 norm
        of a column; proved by ``weights``, see ``nuclear_bound``.
    weights
        The weights of the cells behind ``lower``; they add up to 1.
    rounds
        Weights that were tried.
    """

    L: Matrix
    B: Matrix
    upper: float
    lower: float
    weights: Vector
    rounds: int
    converged: bool

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.L, self.B, self.weights):
            array.setflags(write=False)


@dataclass(slots=True)
class WeightAscent(ABC):
    """The ascent of ``φ(v) = tr S^½`` in x = log v, and the best of both bounds.

    With ``d_j = ‖X w_j‖²``, whose mean under v is φ, ``v_j ← v_j·(d_j/φ)^δ`` is a
    fixed-point map. δ = 1 never lowers φ; δ = 2 is exact for orthogonal columns and halves
    the rounds; Anderson's mixing of the last six steps in log v, weighted by v
    (columns that are about to vanish have no say), takes 3 to 40 rounds where δ = 1 takes
    6 to 200. A step that lowers φ is replaced by one with δ = 1 from the best weights.
    """

    x: Vector
    rounds: int = 0
    lower: float = 0.0
    upper: float = float("inf")
    weights: Vector = field(default_factory=lambda: np.zeros(0))
    points: list[Vector] = field(default_factory=list)
    moves: list[Vector] = field(default_factory=list)

    @abstractmethod
    def evaluate(self, v: Vector) -> tuple[float, Vector]:
        """Return φ and the slopes d at v. Sees each v before ``lower`` and ``upper`` do."""

    @abstractmethod
    def certified(self, tolerance: float) -> float:
        """Return a lower bound, from ``weights``, that rounding cannot have raised."""

    def run(
        self, tolerance: float, max_rounds: int, margin: float, scale: float, clock: Clock
    ) -> float:
        """Advance until both bounds meet; return the certified one.

        φ itself overstates by rounding: the certificate is asked for when the bounds are within
        ``margin`` of the tolerance.
        """
        try:
            while self.rounds < max_rounds:
                self._advance()
                clock.tick(Step("gaussian", self.rounds, self.upper * scale**2))
                if self.upper <= (1.0 + margin * tolerance) * self.lower:
                    certified = self.certified(tolerance)
                    if self.upper <= (1.0 + tolerance) * certified:
                        return certified
        except StopSolver:
            pass
        return self.certified(tolerance)

    def _advance(self) -> None:
        """Evaluate both bounds at x, then choose the next x."""
        v = np.exp(self.x - self.x.max())
        v /= v.sum()
        phi, d = self.evaluate(v)
        self.rounds += 1
        fell = phi**2 < self.lower * (1.0 - 1e-9)
        if phi**2 > self.lower:
            self.lower, self.weights = phi**2, v
        self.upper = min(self.upper, phi * float(d.max()))
        if fell and self.points:
            self.x = self.points[-1] + 0.5 * self.moves[-1]
            self.points, self.moves = [], []
            return
        # Logarithms below -60 are weights of nothing, and would only upset the mixing.
        point = np.log(np.maximum(v, 1e-26))
        move = 2.0 * np.log(np.maximum(d / phi, 1e-26))
        self.points = [*self.points[-6:], point]
        self.moves = [*self.moves[-6:], move]
        self.x = point + np.clip(self._mixed(v), -2.0, 2.0)

    def _mixed(self, v: Vector) -> Vector:
        """Return the last move, less what a combination of earlier ones explains of it."""
        if len(self.points) < 2:
            return self.moves[-1]
        turns = np.diff(np.array(self.moves), axis=0)
        steps = np.diff(np.array(self.points), axis=0)
        weighted = turns * v
        normal = weighted @ turns.T
        normal[np.diag_indices_from(normal)] += 1e-10 * np.trace(normal) + TINY
        share = solve(normal, weighted @ self.moves[-1], assume_a="pos")
        return np.asarray(self.moves[-1] - share @ (steps + turns))
