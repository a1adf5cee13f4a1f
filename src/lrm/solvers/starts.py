"""Strategies to start a search from, as pure functions.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.optimize import linprog

from lrm.clock import UNLIMITED, Clock, Step
from lrm.maps.linear import TINY
from lrm.solvers.quasi_newton import descend

Matrix = NDArray[np.float64]


def rotation(W: Matrix, rows: int, rng: np.random.Generator) -> Matrix:
    """Return a mixing X (rows x k) for ``L = X·W``: a random rotation of ``Σ^(-1/2)·Uᵀ``.

    With ``W = UΣVᵀ`` that X balances ‖X⁺‖ against ‖X·W‖; every rotation of it does, and
    which one is good under an L1 norm is found out by trying.

    Examples
    --------
    >>> rotation(np.eye(3), 4, np.random.default_rng(0)).shape
    (4, 3)
    """
    # Squaring halves the digits of small singular values: no matter for a start, and
    # eight to ten times cheaper than an SVD (k = 256 and 512, n = 8k).
    squares, U = np.linalg.eigh(W @ W.T)
    safe = np.maximum(squares, 1e-14 * max(float(squares[-1]), np.finfo(np.float64).tiny))
    Q = np.linalg.qr(rng.standard_normal((rows, W.shape[0])))[0]
    return np.asarray(Q @ (U * safe**-0.25).T, dtype=np.float64)


def extreme_columns(W: Matrix) -> Matrix:
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


def disjoint_groups(rows: Matrix) -> NDArray[np.int64]:
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
    W: Matrix, rows: Matrix, group: NDArray[np.int64], clock: Clock = UNLIMITED
) -> Matrix | None:
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

    def error(logs: Matrix) -> tuple[float, Matrix]:
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
        top = float(loads.max())
        shares = (loads / top) ** power
        total = float(shares.sum())
        by_row = -2.0 * c * c * np.square(C @ S).sum(axis=1) / trace
        by_row += 2.0 * c * (sizes @ (shares / np.maximum(loads, TINY))) / total
        value = np.log(trace) + 2.0 * (np.log(top) + np.log(total) / power)
        return float(value), np.bincount(group, by_row, minlength=len(logs)).astype(np.float64)

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
