"""Exact errors of level trees, without the matrix of the tree or of its inverse.

With ``G⁻¹ = Σ_ℓ (1/λ_ℓ)(A_ℓ − A_{ℓ+1})`` (see ``level_maps``) the squared norm of B, and of each
of its rows, follows from how much of W each block average sees:
``‖B‖² = Σ_ℓ (1/λ_ℓ)(a_ℓ − a_{ℓ+1})`` with ``a_ℓ = tr(W A_ℓ Wᵀ)``. For a matrix a_ℓ takes the sums
over blocks, each from those of the level below: O(m·n) for all levels together. For prefix sums
and all ranges a_ℓ is a sum of polynomials over blocks: O(n) for all levels together.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from lrm.maps.levels import LevelMap, level_sizes
from lrm.maps.linear import AllRanges, Floats, LinearMap, Prefix

__all__ = ["level_energies", "row_squared_norms", "squared_norm"]


def _block_energy(queries: Prefix | AllRanges, size: int) -> float:
    """``tr(W A Wᵀ) = Σ_blocks ‖W·1_block‖² / size``; cells past the end count nothing."""
    n = queries.cells
    first = np.arange(0, n, size, dtype=np.float64)
    width = np.minimum(size, n - first)
    sum1 = width * (width - 1) / 2  # Σ a over a < width
    sum2 = width * (width - 1) * (2 * width - 1) / 6  # Σ a²
    if isinstance(queries, Prefix):
        rising = sum2 + 2 * sum1 + width  # Σ (a+1)²: totals that end inside the block
        energy = rising + width**2 * (n - first - width)
    else:
        left, right = first + 1, n - first  # W'W between cells i ≤ j is (i+1)(n−j)
        own = width * left * right + (right - left) * sum1 - sum2
        pairs = left * right * sum1 - left * sum2 + right * ((width - 1) * sum1 - sum2)
        energy = own + 2 * (pairs - (sum1**2 - sum2) / 2)
    return float(energy.sum() / size)


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


def level_energies(queries: LinearMap, fanouts: tuple[int, ...]) -> Floats:
    """``a_ℓ − a_{ℓ+1}`` of every level, leaves first."""
    if isinstance(queries, Prefix | AllRanges):
        seen = np.array([_block_energy(queries, size) for size in level_sizes(fanouts)])
    else:
        blocks = queries.row_blocks(width=prod(fanouts))
        parts = (_matrix_energies(rows, fanouts) for _, rows in blocks)
        seen = np.sum([*parts], axis=0)
    return -np.diff(seen, append=0.0)


def squared_norm(queries: LinearMap, tree: LevelMap) -> float:
    """``‖B‖_F²`` of the least-squares reconstruction from ``tree``."""
    return float(np.sum(level_energies(queries, tree.fanouts) / tree.eigenvalues()))


def row_squared_norms(queries: Prefix | AllRanges, tree: LevelMap) -> Floats:
    """Squared norm of each row of B."""
    if isinstance(queries, Prefix):
        first = np.zeros(queries.cells, dtype=np.int64)
        last = np.arange(queries.cells, dtype=np.int64)
    else:
        first, last = queries.bounds(0, queries.shape[0])
    inverse = np.diff(1.0 / tree.eigenvalues(), prepend=0.0)
    result = np.zeros(len(first))
    for size, step in zip(level_sizes(tree.fanouts), inverse, strict=True):
        result += step * _range_energy(first, last, size)
    return result


def _range_energy(first: NDArray[np.int64], last: NDArray[np.int64], size: int) -> Floats:
    """``wᵀA w`` for the ranges [first, last]: whole blocks, and the two ends."""
    low, high = first // size, last // size
    inside = (last - first + 1) ** 2 / size
    head = (low + 1) * size - first
    tail = last + 1 - high * size
    across = (head**2 + tail**2) / size + (high - low - 1) * size
    return np.asarray(np.where(low == high, inside, across), dtype=np.float64)
