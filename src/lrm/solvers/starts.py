"""Strategies and extra rows to start a search from, as pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

__all__ = ["extreme_columns", "random_rows", "rotation"]

Matrix = NDArray[np.float64]


def random_rows(count: int, cells: int, rng: np.random.Generator, *, size: float = 0.2) -> Matrix:
    """Return ``count`` signed rows, large enough not to die at once next to an identity.

    Examples
    --------
    >>> random_rows(2, 3, np.random.default_rng(0)).shape
    (2, 3)
    """
    return size * rng.standard_normal((count, cells))


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
