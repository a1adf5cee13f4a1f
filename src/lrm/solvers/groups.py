"""The queries of a batch as their own strategy: groups of disjoint rows, weighted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from lrm.clock import UNLIMITED, Clock, Step
from lrm.maps.linear import TINY
from lrm.solvers import settings
from lrm.solvers.quasi_newton import descend

__all__ = ["disjoint_groups", "weighted_groups"]

Matrix = NDArray[np.float64]


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
        shares = (loads / top) ** settings.GROUPS_POWER
        total = float(shares.sum())
        by_row = -2.0 * c * c * np.square(C @ S).sum(axis=1) / trace
        by_row += 2.0 * c * (sizes @ (shares / np.maximum(loads, TINY))) / total
        value = np.log(trace) + 2.0 * (np.log(top) + np.log(total) / settings.GROUPS_POWER)
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
    is_alive = weights[group] > settings.DEAD_GROUP
    return np.asarray(A[is_alive] * weights[group][is_alive, np.newaxis])
