"""Gaussian noise for chains: workloads whose Gram matrix has a tridiagonal inverse.

Prefix sums and all ranges are chains, with or without some of their cells. For them a round
of the solver costs O(n), not O(n³).

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh_tridiagonal, lapack

from lrm.clock import UNLIMITED, Clock
from lrm.maps.linear import Floats
from lrm.solvers.gaussian import (
    EPS,
    GaussianResult,
    WeightAscent,
    optimise_gaussian,
)

LARGEST_SLACK = 1e-6
"""A Gram matrix farther from ``T⁻¹`` is not taken for a chain; this much the bound may lose."""

NEAR_ENOUGH = 1e-5
"""The largest final distance of both bounds, whatever tolerance is allowed."""

ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Chain:
    """A tridiagonal T with ``G = T⁻¹`` nearly, and how nearly.

    Parameters
    ----------
    diagonal, beside
        The entries of T.
    squares
        The diagonal of G.
    slack
        At least ``‖G·T − I‖_∞``. Each eigenvalue of ``D·G·D`` is within ``1 ± slack`` times
        that of ``D·T⁻¹·D``, for any diagonal D: both are ``M^½(I + F)M^½``
        (Ostrowski) with F similar to ``G·T − I`` for G, and F = 0 for ``T⁻¹``.
    """

    diagonal: Floats
    beside: Floats
    squares: Floats
    slack: float


def find_chain(gram: Floats) -> Chain | None:
    """Return the tridiagonal inverse of ``gram``, or None if there is none (or one cell).

    Method: if G has one, it is the sum of the inverses of the 2×2 blocks along the diagonal
    less ``1/G_jj`` where blocks overlap; ``G·T`` shows whether G has one. Cost: O(n²), or O(n)
    where the first rows are not those of the identity.

    Examples
    --------
    >>> prefix = 4.0 - np.maximum.outer(np.arange(4), np.arange(4))
    >>> find_chain(prefix).diagonal
    array([1., 2., 2., 2.])
    >>> find_chain(np.eye(4) + 1.0) is None
    True
    """
    squares, beside = np.diag(gram).copy(), np.diag(gram, 1)
    minors = squares[:-1] * squares[1:] - beside**2
    if not (len(minors) and np.all(squares > 0) and np.all(minors > 0)):
        return None
    diagonal = np.zeros(len(gram))
    diagonal[:-1] += squares[1:] / minors
    diagonal[1:] += squares[:-1] / minors
    diagonal[1:-1] -= 1.0 / squares[1:-1]
    chain = Chain(diagonal, -beside / minors, squares, 0.0)
    slack = 0.0
    for start in range(0, len(gram), ROWS_AT_ONCE):
        slack = max(slack, _slack(gram, chain, start))
        if not slack <= LARGEST_SLACK:
            return None
    return Chain(chain.diagonal, chain.beside, squares, slack)


def _slack(gram: Floats, chain: Chain, start: int) -> float:
    """Return the largest absolute sum of some rows of ``G·T − I``, with what rounding hides."""
    rows = gram[start : start + ROWS_AT_ONCE]
    product = rows * chain.diagonal
    size = np.abs(product)
    for into, out in ((np.s_[:, 1:], np.s_[:, :-1]), (np.s_[:, :-1], np.s_[:, 1:])):
        part = rows[out] * chain.beside
        product[into] += part
        size[into] += np.abs(part)
    index = np.arange(len(rows))
    product[index, start + index] -= 1.0
    return float((np.abs(product) + 4 * EPS * (1.0 + size)).sum(axis=1).max())


def optimise_chain(
    chain: Chain,
    *,
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    clock: Clock = UNLIMITED,
) -> GaussianResult:
    """Minimise ``‖B‖_F²`` over ``R = BL`` with columns of L in the unit L2 ball, ``RᵀR = T⁻¹``.

    The program and the ascent are those of ``lrm.solvers.gaussian.optimise_gaussian``. With
    ``D = diag(v)`` the slopes are

        ``d_j = [(D^-½·T·D^-½)^-½]_jj / v_j = 2/π·∫₀^∞ [(T + t²D)⁻¹]_jj dt``,

    where each inverse is tridiagonal: its diagonal takes O(n). A hundred points of the
    trapezoidal rule in log t give 8 digits. B and L come in the basis in which B is diagonal.

    Cost: O(n) a round (0.1 s for n = 4,096), and one tridiagonal eigendecomposition,
    O(n²), in the end.

    Examples
    --------
    >>> cell = np.arange(64)
    >>> found = optimise_chain(find_chain(64.0 - np.maximum.outer(cell, cell)))
    >>> 282.1 < found.lower <= found.upper < 282.5, found.converged
    (True, True)
    """
    ascent = _ChainAscent.of(chain.squares, chain=chain)
    # Rounds are cheap, so the end is nearer to the optimum than was asked for.
    nearer = min(0.25, NEAR_ENOUGH / tolerance)
    certified = ascent.run(tolerance, max_rounds, nearer, 1.0, clock)
    v = ascent.spread
    root = np.sqrt(v)
    values, basis = eigh_tridiagonal(chain.diagonal / v, chain.beside / (root[1:] * root[:-1]))
    fourth = values**-0.25
    L = basis.T
    L *= fourth[:, np.newaxis]
    L /= root
    # Shrunk by the rounding of the norms, so that no column is outside its ball.
    stretch = float(np.sqrt(np.einsum("ij,ij->j", L, L).max())) * (1.0 + 4 * EPS)
    L /= stretch
    B = np.diag(fourth * stretch)
    upper = float(np.vdot(B, B)) * (1.0 + chain.slack)
    lower = min(certified * (1.0 - 8 * EPS), upper)
    converged = upper <= (1.0 + tolerance) * lower * (1.0 + 1e-9)
    return GaussianResult(L, B, upper, lower, ascent.weights, ascent.rounds, converged)


def optimise_gaussian_gram(
    gram: Floats | None,
    rows: Callable[[], Floats],
    *,
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    clock: Clock = UNLIMITED,
) -> GaussianResult:
    """Solve ``optimise_gaussian`` by way of ``G = WᵀW`` where that is a chain's.

    Else the program is solved for ``rows``: W, or any other matrix with this Gram.

    Examples
    --------
    >>> n = np.arange(8)
    >>> ranges = (np.minimum.outer(n, n) + 1.0) * (8 - np.maximum.outer(n, n))
    >>> found = optimise_gaussian_gram(ranges, lambda: np.linalg.cholesky(ranges).T)
    >>> bool(found.upper <= 1.001 * found.lower)
    True
    """
    chain = None if gram is None else find_chain(gram)
    if chain is not None:
        optimum = optimise_chain(chain, tolerance=tolerance, max_rounds=max_rounds, clock=clock)
        if optimum.converged or clock.must_end():
            return optimum
    return optimise_gaussian(rows(), tolerance=tolerance, max_rounds=max_rounds, clock=clock)


@dataclass(slots=True, kw_only=True)
class _ChainAscent(WeightAscent):
    chain: Chain
    spread: Floats = field(default_factory=lambda: np.zeros(0))
    """The weights of the least upper bound."""

    def evaluate(self, v: Floats) -> tuple[float, Floats]:
        """Integrate the slopes; the eigenvalues of ``D^-½·T·D^-½`` say where."""
        chain = self.chain
        least = 1.0 / float(v @ chain.squares)
        most = 4.0 * float((chain.diagonal / np.maximum(v, 1e-26)).max())
        # 1/√x = 2/π·∫ e^s/(e^2s + x) ds: poles at distance π/2 make the error of steps of ½
        # e^(-2π²) = 3e-9; what is beyond ±20 is e^-20 of the whole.
        points = np.exp(np.arange(0.5 * np.log(least) - 20, 0.5 * np.log(most) + 20, 0.5))
        d = _inverse_diagonals(chain, v, points**2) @ (points / np.pi)
        phi = float(v @ d)
        if phi * float(d.max()) < self.upper:
            self.spread = v
        return phi, d

    def certified(self, tolerance: float) -> float:
        """Bound ``tr S^½`` by eigenvalues that are known to relative accuracy.

        Entries of ``D^-½·T·D^-½`` are off by some eps each, so its eigenvalues, relatively, by as
        much over the least eigenvalue of T scaled to a unit diagonal, whatever D; and
        dpteqr adds n·eps to each, relatively.
        """
        del tolerance
        chain, v = self.chain, np.maximum(self.weights, 1e-26)
        root = np.sqrt(chain.diagonal)
        links = chain.beside / (root[1:] * root[:-1])
        eigenvalues = eigh_tridiagonal(
            np.ones(len(root)), links, eigvals_only=True, select="i", select_range=(0, 0)
        )
        least = float(eigenvalues[0]) - 8 * len(root) * EPS
        if not least > 0:
            return 0.0
        root = np.sqrt(v)
        values, _, _, failed = lapack.dpteqr(
            chain.diagonal / v, chain.beside / (root[1:] * root[:-1]), np.zeros((1, 1)), compute_z=0
        )
        if failed or not np.all(values > 0):
            return 0.0
        margin = (64.0 / least + 16.0 * len(v)) * EPS + chain.slack
        total = float((values**-0.5).sum()) ** 2 / float(v.sum())
        return total * max(0.0, 1.0 - margin)


def _inverse_diagonals(chain: Chain, v: Floats, shifts: Floats) -> Floats:
    """Return the diagonal of ``(T + p·diag(v))⁻¹``, one column for each p.

    By elimination from both ends: what is left at j, of both, is the inverse of the entry.
    """
    middle = chain.diagonal[:, np.newaxis] + v[:, np.newaxis] * shifts
    squares = chain.beside**2
    left = middle.copy()
    for j in range(1, len(v)):
        left[j] -= squares[j - 1] / left[j - 1]
    pivot = middle[-1].copy()
    for j in range(len(v) - 2, -1, -1):
        taken = squares[j] / pivot
        left[j] -= taken
        pivot = middle[j] - taken
    return np.asarray(1.0 / left)
