"""Exact errors of level trees, without the matrix of the tree or of its inverse.

With ``G⁻¹ = Σ_ℓ (1/λ_ℓ)(A_ℓ − A_{ℓ+1})`` (see `levels`) the squared norm of B, and of each
of its rows, follows from how much of W each block average sees:
``‖B‖² = Σ_ℓ (1/λ_ℓ)(a_ℓ − a_{ℓ+1})`` with ``a_ℓ = tr(W A_ℓ Wᵀ)``. For a matrix a_ℓ takes the sums
over blocks, each from those of the level below: O(m·n) for all levels together, O(entries) for
each level of a sparse one. For ranges it takes O(m) for each level. For prefix sums and all ranges
a_ℓ is a sum of polynomials over blocks: O(n) for all levels together.
"""

from __future__ import annotations

from math import prod

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.maps.linear import Floats, LinearMap

__all__ = ["level_energies", "level_sizes", "range_energy", "range_squared_norms"]

SPARSE_PAYS = 8
"""How many times fewer entries than places a matrix must have to be summed by its entries."""


def level_sizes(fanouts: tuple[int, ...]) -> tuple[int, ...]:
    """Block sizes of the levels, from the leaves up.

    >>> level_sizes((2, 3))
    (1, 2, 6)
    """
    return tuple(prod(fanouts[:level]) for level in range(len(fanouts) + 1))


def _matrix_energies(rows: Floats, fanouts: tuple[int, ...]) -> Floats:
    """``a_ℓ`` of a few queries, for every level."""
    leaves = prod(fanouts)
    sums = np.zeros((len(rows), leaves))
    sums[:, : rows.shape[1]] = rows
    seen = [np.vdot(sums, sums)]
    for fanout, size in zip(fanouts, level_sizes(fanouts)[1:], strict=True):
        sums = sum((sums[:, child::fanout] for child in range(1, fanout)), sums[:, ::fanout])
        seen.append(np.vdot(sums, sums) / size)
    return np.array(seen)


def _sparse_energies(matrix: sp.csr_array, fanouts: tuple[int, ...]) -> Floats:
    """Energies of all queries of a sparse matrix, from its entries alone."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    column, sums = matrix.indices, matrix.data
    seen = [np.vdot(sums, sums)]
    for fanout, size in zip(fanouts, level_sizes(fanouts)[1:], strict=True):
        column = column // fanout
        first = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(column, prepend=-1))
        sums = np.add.reduceat(sums, first) if len(first) else sums
        row, column = row[first], column[first]
        seen.append(np.vdot(sums, sums) / size)
    return np.array(seen)


def level_energies(queries: LinearMap, fanouts: tuple[int, ...]) -> Floats:
    """``a_ℓ − a_{ℓ+1}`` of every level, leaves first."""
    ends = None if queries.has_closed_forms else queries.range_ends()
    if queries.has_closed_forms:
        seen = np.array([queries.block_energy(size) for size in level_sizes(fanouts)])
    elif ends is not None:
        seen = np.array([range_energy(*ends, size).sum() for size in level_sizes(fanouts)])
    elif SPARSE_PAYS * queries.entry_count < prod(queries.shape):
        seen = _sparse_energies(queries.sparse(), fanouts)
    else:
        blocks = queries.row_blocks(width=prod(fanouts))
        parts = (_matrix_energies(rows, fanouts) for _, rows in blocks)
        seen = np.sum([*parts], axis=0)
    return -np.diff(seen, append=0.0)


def range_squared_norms(
    first: NDArray[np.int64], last: NDArray[np.int64], fanouts: tuple[int, ...], eigenvalues: Floats
) -> Floats:
    """Squared norm of the row of B for each range of cells [first, last]."""
    inverse = np.diff(1.0 / eigenvalues, prepend=0.0)
    result = np.zeros(len(first))
    for size, step in zip(level_sizes(fanouts), inverse, strict=True):
        result += step * range_energy(first, last, size)
    return result


def range_energy(first: NDArray[np.int64], last: NDArray[np.int64], size: int) -> Floats:
    """``wᵀA w`` for the ranges [first, last]: whole blocks, and the two ends."""
    low, high = first // size, last // size
    inside = (last - first + 1) ** 2 / size
    head = (low + 1) * size - first
    tail = last + 1 - high * size
    across = (head**2 + tail**2) / size + (high - low - 1) * size
    return np.asarray(np.where(low == high, inside, across), dtype=np.float64)
