"""Cumulant generating functions of weighted sums of Laplace variables, many rows at a time.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lrm.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LaplaceSums", "as_rows", "row_blocks"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
ComplexVector = NDArray[np.complex128]
Rows = NDArray[np.intp]

# The largest weights of a row are treated one by one, the others through their power sums.
HEAD = 64
# Below this many weights the head alone is cheaper than head and power sums together.
LONG_ROW = 96
# |log(1 − y) + Σ_{k≤16} y^k/k| < 2e-11·|y| for |y| ≤ 1/4: far below the quadrature error.
SERIES_TERMS = 16
SERIES_RADIUS = 0.25
# Eight factors |1 − x·z| with |z| ≤ 1e37 cannot overflow, and one log serves all eight.
FACTORS = 8
# Rows × weights of one block (4 MB), and rows of one block (for the nodes kept for each row).
BLOCK_ENTRIES = 2**19
BLOCK_ROWS = 4096
# Complex factors that are multiplied at a time: 256 KB stay in the cache.
PIECE_ENTRIES = 2**14


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

    scale: Vector
    squares: Matrix
    head: Matrix
    power_sums: Matrix
    radius: Vector
    counts: Matrix | None = None
    head_counts: Matrix | None = None

    @classmethod
    def from_weights(cls, weights: Matrix, counts: Matrix | None = None) -> LaplaceSums:
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
        if length <= LONG_ROW:
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
        radius = SERIES_RADIUS / np.maximum(tail.max(axis=1), np.finfo(float).tiny)
        head = np.ascontiguousarray(ordered[:, length - HEAD :].T)
        columns = np.ascontiguousarray(squares.T)
        often = None if often is None else np.ascontiguousarray(often.T)
        return cls(scale, columns, head, power_sums, radius, often, head_counts)

    def log_mgf(self, z: ComplexVector) -> ComplexVector:
        """Return ``K(√z)`` for one complex ``z = s²`` a row, up to a multiple of 2πi.

        >>> LaplaceSums.from_weights(np.array([[2.0]])).log_mgf(np.array([0.75 + 0j])).round(6)
        array([1.386294+0.j])
        """
        near = bool(np.all(np.abs(z) <= self.radius))
        squares = self.head if near else self.squares
        counts = self.head_counts if near else self.counts
        total: ComplexVector = np.zeros(z.shape, dtype=np.complex128)
        height = FACTORS * max(1, PIECE_ENTRIES // (FACTORS * len(z)))
        for start in range(0, len(squares), height):
            factors = 1.0 - squares[start : start + height] * z
            if counts is None:
                eights = np.arange(0, len(factors), FACTORS)
                logs = np.log(np.multiply.reduceat(factors, eights, axis=0))
            else:
                logs = counts[start : start + height] * np.log(factors)
            total -= logs.sum(axis=0)
        if near and len(self.power_sums):
            series = np.zeros_like(total)
            for k in range(SERIES_TERMS, 0, -1):
                series = (series + self.power_sums[k - 1] / k) * z
            total += series
        return total

    def cumulants(self, c: Vector) -> tuple[Vector, Vector, Vector]:
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


def as_rows(weights: Any) -> Any:
    """Return ``weights`` as a finite float64 matrix: an array, or a CSR array if it is sparse."""
    matrix: Any
    if sparse.issparse(weights):
        matrix = sparse.csr_array(weights, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        values = matrix.data
    else:
        matrix = values = np.asarray(weights, dtype=np.float64)
    if matrix.ndim != 2:
        raise UsageError(
            f"expected a matrix of weights, one row per sum, got an array of {matrix.ndim} "
            "dimensions; write weights[np.newaxis, :] for a single sum"
        )
    if not np.isfinite(values).all():
        raise UsageError("expected finite weights, got NaN or infinity; check the reconstruction")
    return matrix


def row_blocks(matrix: Any, counts: Matrix | None = None) -> Iterator[tuple[Rows, LaplaceSums]]:
    """Yield the rows of what :func:`as_rows` returned in blocks, without those that are zero.

    A block holds at most 2^19 weights (or one row) and 4,096 rows, whatever the size of the
    matrix. Sparse rows are sorted by length first, so that padding them to equal length
    wastes little. ``counts``, for arrays alone, says how often each weight occurs.
    """
    if sparse.issparse(matrix):
        yield from _sparse_blocks(matrix)
        return
    step = _rows_of_a_block(matrix.shape[1])
    for start in range(0, len(matrix), step):
        block = matrix[start : start + step]
        nonzero_rows = np.flatnonzero(block.any(axis=1))
        if nonzero_rows.size:
            often = None if counts is None else counts[start : start + step][nonzero_rows]
            yield nonzero_rows + start, LaplaceSums.from_weights(block[nonzero_rows], often)


def _sparse_blocks(matrix: Any) -> Iterator[tuple[Rows, LaplaceSums]]:
    lengths = np.diff(matrix.indptr)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        rows = order[start : start + _rows_of_a_block(longest)]
        filled = np.arange(longest) < lengths[rows][:, np.newaxis]
        position = matrix.indptr[rows][:, np.newaxis] + np.arange(longest)
        padded = np.zeros(filled.shape)
        padded[filled] = matrix.data[position[filled]]
        yield rows, LaplaceSums.from_weights(padded)
        start += len(rows)


def _rows_of_a_block(length: int) -> int:
    return max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // max(length, 1)))
