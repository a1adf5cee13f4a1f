"""Strategies that a batch itself suggests: its queries with weights, and its extreme columns.

For few queries of many cells: choose weights c > 0 of the rows of W (m × n) with ``|W|ᵀc ≤ 1``.
Measuring the weighted rows alone has the error ``Σ 1/c_i²``; that is a convex program. A cell whose
column is not full can be measured besides, with the weight ``d = 1 − |W|ᵀc`` that costs nothing.
With ``N = W·diag(d)⁻²·Wᵀ`` and ``C = diag(c)``, least squares then have the error

    tr (C² + N⁻¹)⁻¹ = Σ 1/c_i² − tr C⁻²·(N + C⁻²)⁻¹·C⁻²,

which is at most that of the rows alone; a common factor of c is chosen by a search on a line,
whose ends are noise on data and the rows alone.

Cost: O(non-zeros) per round for the weights; O(non-zeros × queries of a cell + m³) per factor.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_solve, cholesky, lapack
from scipy.optimize import linprog, minimize_scalar

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver
from lrm.planning.solvers.quasi_newton import descend, log_power_mean
from lrm.queries.maps.linear import TINY, Floats, Integers


@dataclass(frozen=True, eq=False, slots=True)
class OwnRows:
    """A strategy ``[diag(cells); diag(rows)·W]`` and its error."""

    cells: Floats
    rows: Floats
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
    sizes, rounds, best = abs(W), 0, (np.inf, 0.0)

    def report() -> None:
        nonlocal rounds
        rounds += 1
        clock.tick(Step("own rows", rounds, best[0]))

    z = np.zeros(W.shape[0])
    # Powers of the norms that stand in for the largest column, one after the other.
    for power in (20.0, 100.0, 500.0):
        descent = descend(
            partial(_rows_error, sizes=sizes, power=power),
            z,
            on_round=lambda *_: report(),
            tolerance=1e-5,
            max_rounds=100,
        )
        z = descent.point
        if descent.interrupted:
            break
    weights = np.exp(z - z.max())
    weights /= float((sizes.T @ weights).max())
    used = sizes.T @ weights

    def value(share: float) -> float:
        nonlocal best
        error = _joint_error(W, share * weights, 1.0 - share * used)
        best = min(best, (error, share))
        report()
        return error

    most = 1.0 - 1e-3  # full column rank, so that rounding loses nothing
    with suppress(StopSolver):
        value(most)
        minimize_scalar(value, bounds=(0.0, most), method="bounded", options={"xatol": 0.01})
    error, share = best
    rows = share * weights
    return OwnRows(1.0 - sizes.T @ rows, rows, error, rounds)


def _rows_error(z: Floats, *, sizes: sp.csr_array, power: float) -> tuple[float, Floats]:
    """``log Σ c⁻² + 2·log(norm of the columns)`` at ``c = exp(z)``, and its gradient."""
    # Neither term depends on a common factor of c alone: each is taken where it cannot overflow.
    most, least = float(z.max()), float(z.min())
    c, inverse = np.exp(z - most), np.exp(2.0 * (least - z))
    columns = sizes.T @ c
    largest, slopes = log_power_mean(columns, power)
    value = np.log(inverse.sum()) + 2.0 * (most - least + largest)
    by_column = slopes / np.maximum(columns, TINY)
    gradient = -2.0 * inverse / inverse.sum() + 2.0 * c * (sizes @ by_column)
    return float(value), gradient


def _joint_error(W: sp.csr_array, rows: Floats, cells: Floats) -> float:
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


def extreme_columns(W: Floats) -> Floats:
    """Return the strategy that measures only the corners of the hull of ±columns of W.

    A column ``w = Σ λ·(other columns)`` with ``Σ|λ| ≤ 1`` needs no row of its own: its column of
    L is λ. One linear program a column: milliseconds each, for ranks of about ten.

    Examples
    --------
    >>> extreme_columns(np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 0.5]])).tolist()
    [[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]]
    """
    n = W.shape[1]
    corner, inside = np.ones(n, dtype=bool), {}
    for column in range(n):
        other_columns = np.flatnonzero(corner & (np.arange(n) != column))
        if not len(other_columns):
            break
        both = np.hstack([W[:, other_columns], -W[:, other_columns]])
        solution = linprog(
            np.ones(2 * len(other_columns)), A_eq=both, b_eq=W[:, column], method="highs"
        )
        if solution.status == 0 and solution.fun <= 1.0:
            corner[column] = False
            inside[column] = (
                other_columns,
                solution.x[: len(other_columns)] - solution.x[len(other_columns) :],
            )
    strategy = np.eye(n)
    for column, (other_columns, shares) in reversed(inside.items()):
        # Later ones first: an earlier column may lean on a corner that was then found inside.
        strategy[:, column] = strategy[:, other_columns] @ shares
    return strategy[corner]


def disjoint_groups(rows: Floats) -> Integers:
    """The group of each row: one after the other, as long as no two share a cell.

    The rows of one ``GROUP BY`` are such a group: together their sensitivity is that of one row.

    Examples
    --------
    >>> disjoint_groups(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]])).tolist()
    [0, 0, 1, 1]
    """
    group, number = np.zeros(len(rows), dtype=np.int64), 0
    covered = np.zeros(rows.shape[1], dtype=bool)
    for i, touched in enumerate(rows != 0):
        if (covered & touched).any():
            number, covered = number + 1, np.zeros_like(covered)
        group[i] = number
        covered |= touched
    return group


def weighted_groups(
    W: Floats, rows: Floats, group: Integers, clock: Clock = UNLIMITED
) -> Floats | None:
    """Rows that span those of W (k x n), each group of them with its best weight.

    Minimises ``log tr(W·(Σ c_g²·A_gᵀA_g)⁺·Wᵀ) + 2·log max_j Σ c_g·|A_g|_j`` over the weights
    c, by a quasi-Newton descent over their logarithms with a power mean for the maximum. None where
    the rows do not span those of W. Cost: O(rows·k² + rows·n) per round.
    """
    size = np.abs(rows).max(axis=1)
    A, group = rows[size > 0] / size[size > 0, np.newaxis], group[size > 0]
    basis = np.linalg.qr(W.T)[0]
    C, R, sizes = A @ basis, W @ basis, np.abs(A)
    power = 60.0  # of the mean that stands in for the largest column

    def error(logs: Floats) -> tuple[float, Floats]:
        # The error does not depend on the scale of all weights; a long step must not overflow.
        c = np.exp(logs - logs.max())[group]
        gram = (C * (c * c)[:, np.newaxis]).T @ C
        gram[np.diag_indices_from(gram)] += 1e-12 * np.trace(gram) / len(gram)
        try:
            low = cholesky(gram, lower=True, check_finite=False), True
        except LinAlgError:
            return np.inf, np.zeros_like(logs)
        S = cho_solve(low, R.T, check_finite=False)
        trace = float(np.vdot(S, R.T))
        loads = c @ sizes
        largest, slopes = log_power_mean(loads, power)
        by_row = -2.0 * c * c * np.square(C @ S).sum(axis=1) / trace
        by_row += 2.0 * c * (sizes @ (slopes / np.maximum(loads, TINY)))
        value = float(np.log(trace)) + 2.0 * largest
        return value, np.bincount(group, by_row, minlength=len(logs)).astype(np.float64)

    descent = descend(
        error,
        # Groups of rows of large weights are measured better: c ∝ s^⅔ where all share a cell.
        np.log(np.bincount(group, size[size > 0]) / np.bincount(group)) * (2 / 3),
        on_round=lambda i, _: clock.tick(Step("own rows", i, np.inf)),
        tolerance=1e-4,
        max_rounds=200,
    )
    if not np.isfinite(descent.value):
        return None
    weights = np.exp(descent.point - descent.point.max())
    is_alive = weights[group] > 1e-3
    return np.asarray(A[is_alive] * weights[group][is_alive, np.newaxis])
