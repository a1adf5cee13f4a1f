"""The queries themselves with weights, and what each cell has left: for few queries of many cells.

Problem: choose weights c > 0 of the rows of W (m × n) with ``|W|ᵀc ≤ 1``. Measuring the
weighted rows alone has the error ``Σ 1/c_i²``; that is a convex program. A cell whose column is
not full can be measured besides, with the weight ``d = 1 − |W|ᵀc`` that costs nothing. With
``N = W·diag(d)⁻²·Wᵀ`` and ``C = diag(c)``, least squares then have the error

    tr (C² + N⁻¹)⁻¹ = Σ 1/c_i² − tr C⁻²·(N + C⁻²)⁻¹·C⁻²,

which is at most that of the rows alone; a common factor of c is chosen by a search on a line,
whose ends are noise on data and the rows alone.

Cost: O(non-zeros) per round for the weights; O(non-zeros × queries of a cell + m³) per factor.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize_scalar

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver
from lrm.solvers import settings
from lrm.solvers.quasi_newton import descend

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class OwnRows:
    """A strategy ``[diag(cells); diag(rows)·W]`` and its error."""

    cells: Matrix
    rows: Matrix
    error: float
    iterations: int

    def strategy(self, W: sp.csr_array) -> sp.csr_array:
        """The strategy as a matrix; every column has at most the L1 norm 1."""
        query_rows = sp.diags_array(self.rows) @ W
        return sp.csr_array(sp.vstack([sp.diags_array(self.cells), query_rows]))


def optimise_own_rows(W: sp.csr_array, *, clock: Clock = UNLIMITED) -> OwnRows:
    """Weigh the rows of W and the cells for the least error.

    Examples
    --------
    >>> W = sp.csr_array(np.array([12 * [1.0] + 4 * [0.0], 4 * [0.0] + 12 * [1.0]]))
    >>> round(optimise_own_rows(W).error, 2)  # noise on data has 24, noise on results 8
    7.21
    """
    sizes = abs(W)
    run = _Run(clock)
    weights = run.weigh(sizes)
    fullest = float((sizes.T @ weights).max())
    weights /= fullest
    run.line(W, sizes, weights)
    rows = run.share * weights
    return OwnRows(1.0 - sizes.T @ rows, rows, run.error, run.rounds)


class _Run:
    """Rounds so far, and the best share of the rows."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.rounds = clock, 0
        self.error, self.share = np.inf, 0.0

    def _report(self) -> None:
        self.rounds += 1
        self._clock.tick(Step("own rows", self.rounds, self.error))

    def weigh(self, sizes: sp.csr_array) -> Matrix:
        """Weights of the rows alone, up to a factor."""
        z = np.zeros(sizes.shape[0])
        for power in settings.OWN_ROWS_POWERS:
            descent = descend(
                partial(_rows_error, sizes=sizes, power=power),
                z,
                on_round=lambda *_: self._report(),
                tolerance=1e-5,
                max_rounds=100,
            )
            z = descent.point
            if descent.interrupted:
                break
        return np.asarray(np.exp(z - z.max()), dtype=np.float64)

    def line(self, W: sp.csr_array, sizes: sp.csr_array, weights: Matrix) -> None:
        """The best common factor of weights that fill the fullest column."""
        used = sizes.T @ weights

        def value(share: float) -> float:
            error = _joint_error(W, share * weights, 1.0 - share * used)
            if error < self.error:
                self.error, self.share = error, share
            self._report()
            return error

        most = 1.0 - 1e-3  # full column rank, so that rounding loses nothing
        try:
            value(most)
            minimize_scalar(value, bounds=(0.0, most), method="bounded", options={"xatol": 0.01})
        except StopSolver:
            pass


def _rows_error(z: Matrix, *, sizes: sp.csr_array, power: float) -> tuple[float, Matrix]:
    """``log Σ c⁻² + 2·log(norm of the columns)`` at ``c = exp(z)``, and its gradient."""
    # Neither term depends on a common factor of c alone: each is taken where it cannot overflow.
    most, least = float(z.max()), float(z.min())
    c, inverse = np.exp(z - most), np.exp(2.0 * (least - z))
    columns = sizes.T @ c
    largest = columns.max()
    share = (columns / largest) ** power
    total = share.sum()
    value = np.log(inverse.sum()) + 2.0 * (most - least + np.log(largest) + np.log(total) / power)
    by_column = np.divide(share / total, columns, out=np.zeros_like(columns), where=columns > 0)
    gradient = -2.0 * inverse / inverse.sum() + 2.0 * c * (sizes @ by_column)
    return float(value), gradient


def _joint_error(W: sp.csr_array, rows: Matrix, cells: Matrix) -> float:
    """``tr (C² + N⁻¹)⁻¹``; for rows of weight 0 that of the cells alone.

    Infinite where float64 cannot tell.
    """
    scaled = W @ sp.diags_array(1.0 / cells)
    N = np.asarray((scaled @ scaled.T).toarray())
    if not rows.min() > 0:
        return float(np.trace(N))
    inverse = rows**-2.0
    N[np.diag_indices_from(N)] += inverse
    low, failed = lapack.dpotrf(N, lower=1, overwrite_a=1)
    if failed:  # not positive definite in float64
        return np.inf
    diagonal = np.diag(lapack.dpotri(low, lower=1, overwrite_c=1)[0])
    return float(np.sum(inverse * (1.0 - inverse * diagonal)))
