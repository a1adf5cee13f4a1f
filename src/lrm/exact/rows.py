"""Reduction of rows: all that a solver needs to know of the queries.

The error of a strategy depends on W only through WᵀW, so W may be replaced by any factor R
with RᵀR = WᵀW that has as many rows as W has rank.

See ``docs/explanation/reductions.md``.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from lrm.errors import ConvergenceError
from lrm.maps.linear import Floats, LinearMap

__all__ = ["reduce_rows", "reduction_seconds", "singular_values"]

GRAM_ENTRIES = 1 << 27
"""Largest n×n array of all ranges (1 GiB)."""

SECONDS_PER_STEP = 0.9e-9
"""Seconds per step of a singular value decomposition with vectors, on one core."""


def reduce_rows(queries: LinearMap) -> Floats:
    """A factor R (k×n, k = rank) with RᵀR = WᵀW: all that a solver needs to know of W.

    >>> from lrm.maps.matrices import DenseMap
    >>> reduce_rows(DenseMap(np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))).shape
    (1, 2)
    """
    if queries.is_known_by_gram:
        cells = queries.shape[1]
        if cells**2 > GRAM_ENTRIES:
            raise ConvergenceError(
                f"{queries.kind} over {cells:,} cells is too large for a strategy of this form; "
                "choose a tree"
            )
        square, _, basis = _eigen_factor(queries.gram())
        return square[:, None] * basis
    _, values, basis = la.svd(_few_rows(queries), full_matrices=False, check_finite=False)
    rank = _rank(values, queries.shape)
    return np.asarray(values[:rank, None] * basis[:rank])


def reduction_seconds(queries: LinearMap) -> float:
    """About how long ``reduce_rows`` takes on one core: it is one call that cannot be stopped.

    Measured from 256×1,024 to 2,048×2,048: 0.6 to 0.9 ns for each of the k²·n steps of a
    decomposition with k = min(m, n), and a tenth of that for the m·n² of the triangle before it.

    >>> from lrm.maps.matrices import DenseMap
    >>> reduction_seconds(DenseMap(np.zeros((1000, 1000)))) < 1.0
    True
    """
    m, n = queries.shape
    if queries.is_known_by_gram:
        return SECONDS_PER_STEP * n**3
    k = min(m, n)
    triangle = 0.1 * m * n * n if m > n else 0.0
    return SECONDS_PER_STEP * (k * k * n + triangle)


def singular_values(queries: LinearMap) -> Floats:
    """The singular values of W above rounding, largest first.

    >>> from lrm.maps.matrices import DenseMap
    >>> singular_values(DenseMap(np.array([[3.0, 0.0], [4.0, 0.0]]))).round(6).tolist()
    [5.0]
    """
    values = la.svdvals(_few_rows(queries), check_finite=False)
    return np.asarray(values[: _rank(values, queries.shape)])


def _few_rows(queries: LinearMap) -> Floats:
    """A matrix with the same ``WᵀW`` and at most n rows: the triangle of a QR factorisation."""
    m, n = queries.shape
    matrix = queries.dense()
    return matrix if m <= n else la.qr(matrix, mode="r", check_finite=False)[0][:n]


def _rank(values: Floats, shape: tuple[int, int]) -> int:
    """How many singular values rounding does not explain; at least one."""
    return max(1, int(np.sum(values > values[0] * max(shape) * np.finfo(float).eps)))


def _eigen_factor(gram: Floats) -> tuple[Floats, int, Floats]:
    values, vectors = la.eigh(gram, check_finite=False)
    rank = int(np.sum(values > values[-1] * len(gram) * np.finfo(float).eps))
    top = slice(len(values) - 1, len(values) - 1 - rank if rank < len(values) else None, -1)
    return np.sqrt(values[top]), rank, vectors[:, top].T
