"""Weighted identity plus rows, ``L = [N; Θ]``: everything that follows from ``H = (LᵀL)⁻¹``.

N measures cells alone, or small blocks of neighbouring cells, so ``K = NᵀN`` is diagonal or block
diagonal. With ``A = Θ·K⁻¹`` and ``M = I + Θ·K⁻¹·Θᵀ``, the Woodbury identity [1]_ gives

    H = K⁻¹ − Aᵀ·M⁻¹·A.

M is as large as the number of rows Θ: an array where these are few, a band where there are
thousands that each meet only a few others. Left inverses of integer strategies (`PlusRowsInverse`),
the bases of attributes (`lrm.planning.design.products.basis`) and the descents over rows
(`lrm.planning.solvers.extra_rows`) all use this module. See *How strategies are found* in
``docs/explanation/best.md``.

References
----------
.. [1] W. W. Hager, "Updating the inverse of a matrix", SIAM Review 31 (1989),
   doi:10.1137/1031049.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from lrm.planning.limits import MEMORY, SIDE
from lrm.queries.maps.linear import (
    BLOCK_ENTRIES,
    CANCELLED,
    Floats,
    Integers,
    LeftInverse,
    LinearMap,
    RowWeights,
    WeightedRanges,
    equal_columns,
)
from lrm.queries.maps.words import chain_blocks

Rows: TypeAlias = "Floats | sp.csr_array"

BLOCK_CELLS = 16
"""Cells of a block, where the cells are too many to be measured alone."""

SPARSE_SHARE = 0.1
"""Rows with a smaller share of entries are kept sparse."""

NARROW = 4
"""How many times more rows there must be than the bandwidth of M."""


def lower_factor(rows: Rows, weights: Floats | None = None) -> Floats:
    """The lower Cholesky factor of ``I + rows·diag(weights)·rowsᵀ``.

    Raises ``LinAlgError`` where the matrix is not positive definite in float64.
    """
    scaled = rows if weights is None else scale_columns(rows, weights)
    inner = _as_array(scaled @ rows.T)
    inner[np.diag_indices_from(inner)] += 1.0
    return np.asarray(la.cholesky(inner, lower=True, check_finite=False, overwrite_a=True))


@dataclass(frozen=True, eq=False)
class Band:
    """A banded M, with its Cholesky factor in the upper band form of LAPACK."""

    matrix: sp.csr_array
    upper: Floats

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Band | None:
        """The band of a symmetric matrix, where it is narrow."""
        entries = sp.coo_array(sp.triu(matrix))
        width = int((entries.col - entries.row).max())
        if NARROW * width > matrix.shape[0]:
            return None
        upper = np.zeros((width + 1, matrix.shape[0]))
        upper[width + entries.row - entries.col, entries.col] = entries.data
        return cls(matrix, la.cholesky_banded(upper, check_finite=False))

    def forms(self, V: sp.csr_array) -> Floats | None:
        """``vᵀ·M⁻¹·v`` of each row v of V, whose entries must be near each other."""
        V.sort_indices()
        busy = np.flatnonzero(np.diff(V.indptr))
        spans = V.indices[V.indptr[busy + 1] - 1] - V.indices[V.indptr[busy]]
        # Smaller blocks take no less time, larger ones too much memory.
        size = max(32, len(self.upper), int(spans.max(initial=0)) + 1)
        if size > 2048:
            return None
        near = inverse_band(self.matrix, size)
        block = V.indices[V.indptr[busy]] // size
        forms = np.zeros(V.shape[0])
        step = max(1, BLOCK_ENTRIES // (2 * size))
        for number in np.unique(block):
            within = busy[block == number]
            for start in range(0, len(within), step):
                some = within[start : start + step]
                part = V[some][:, number * size : (number + 2) * size].toarray()
                inverse = near[number, : part.shape[1], : part.shape[1]]
                forms[some] = np.einsum("ij,ij->i", part @ inverse, part)
        return forms


@dataclass(frozen=True, eq=False)
class PlusRows:
    """``H = K⁻¹ − Aᵀ·M⁻¹·A`` of a weighted identity plus rows.

    Parameters
    ----------
    base
        K⁻¹: a number per cell, or blocks × 16 × 16.
    scaled
        A, rows × cells.
    inner
        The lower Cholesky factor of M, or its band.
    """

    base: Floats
    scaled: Rows
    inner: Floats | Band

    @property
    def dense_rows(self) -> Floats:
        """A as an array."""
        return _as_array(self.scaled)

    def base_times(self, X: Floats) -> Floats:
        """``K⁻¹·X``."""
        if self.base.ndim == 1:
            return self.base[:, None] * X
        return np.asarray((self.base @ X.reshape(len(self.base), BLOCK_CELLS, -1)).reshape(X.shape))

    def solve_inner(self, X: Floats) -> Floats:
        """``M⁻¹·X``."""
        if not self.scaled.shape[0]:
            return X
        if isinstance(self.inner, Band):
            banded = la.cho_solve_banded((self.inner.upper, False), X, check_finite=False)
            return np.asarray(banded)
        return np.asarray(la.cho_solve((self.inner, True), X, check_finite=False))

    def inverse_times(self, X: Floats) -> Floats:
        """``H·X``."""
        base_product = self.base_times(X)
        if not self.scaled.shape[0]:
            return base_product
        return np.asarray(base_product - self.scaled.T @ self.solve_inner(self.scaled @ X))

    @cached_property
    def _whitened(self) -> Floats:
        """``C⁻¹·A``, rows × cells, C the Cholesky factor of M."""
        return np.asarray(
            la.solve_triangular(self.inner, self.dense_rows, lower=True, check_finite=False)
        )

    def whitened_pieces(self, width: int) -> Iterator[Floats]:
        """Yield ``C⁻¹·A`` a few rows at a time, so that ``width`` times as many fit in memory."""
        step = max(1, BLOCK_ENTRIES // width)
        for start in range(0, self.scaled.shape[0], step):
            yield self._whitened[start : start + step]

    def whitened_by(self, queries: LinearMap) -> Floats:
        """``C⁻¹·A·Wᵀ``, rows × queries."""
        count, cells = self.scaled.shape
        image = np.empty((count, queries.shape[0]))
        step = max(1, BLOCK_ENTRIES // max(cells, 1))
        for start in range(0, count, step):
            piece = slice(start, start + step)
            image[piece] = queries.apply(_as_array(self.scaled[piece]).T).T
        return np.asarray(la.solve_triangular(self.inner, image, lower=True, check_finite=False))


def beside_identity(rows: Rows, scale: Floats, widths: Floats | None = None) -> PlusRows:
    """H of ``L = [I; Θ]·D``, with ``A = Θ·D⁻¹`` and ``M = I + ΘΘᵀ``.

    ``scale`` is the diagonal of D⁻¹. Where a column stands for ``widths`` equal ones,
    ``M = I + Θ·diag(widths)·Θᵀ``.
    """
    low = lower_factor(rows, widths)
    return PlusRows(scale * scale, scale_columns(rows, scale), low)


def trace_gradient(  # noqa: PLR0913, PLR0917 - each is a part of the formula
    rows: Floats,
    scale: Floats,
    slopes: Floats,
    Q: Floats,
    middle: Floats,
    widths: Floats | None = None,
) -> tuple[Floats, Floats]:
    """The derivatives of ``tr(Y·H)`` for ``L = [I; Θ]·D``: by Θ at fixed D, and by D⁻¹.

    Parameters
    ----------
    rows, scale
        Θ and the diagonal of D⁻¹, for all cells or for some of them.
    slopes
        The diagonal of the symmetric matrix Y.
    Q, middle
        ``M⁻¹·A·Y``, which is overwritten, and ``M⁻¹·A·Y·Aᵀ·M⁻¹``.
    widths
        How many equal columns each column stands for; one by default.
    """
    by_scale = 2.0 * (scale * slopes - np.einsum("ij,ij->j", Q, rows))
    by_rows = middle @ rows
    if widths is not None:
        by_rows *= widths
    Q *= scale
    by_rows -= Q
    by_rows *= 2.0
    return by_rows, by_scale


@dataclass(frozen=True, eq=False)
class _CellKinds:
    """Cells that are measured alike: the kind of each."""

    labels: Integers

    @cached_property
    def first(self) -> Integers:
        """One cell of each kind."""
        return np.unique(self.labels, return_index=True)[1]

    @cached_property
    def sizes(self) -> Floats:
        """Number of cells of each kind."""
        return np.bincount(self.labels).astype(np.float64)

    @cached_property
    def sums(self) -> Floats:
        """How many of the first k cells are of each kind: kinds × (cells + 1)."""
        counts = np.zeros((len(self.sizes), len(self.labels) + 1))
        counts[self.labels, np.arange(1, len(self.labels) + 1)] = 1.0
        return np.cumsum(counts, axis=1)

    def columns(self, rows: Rows) -> Floats:
        """The columns of one cell of each kind."""
        return _as_array(rows[:, self.first])


@dataclass(frozen=True, eq=False)
class PlusRowsInverse(LeftInverse):
    """``L⁺ = H·Lᵀ`` of a strategy with a row for each cell, or several for each block of cells.

    Parameters
    ----------
    alone, extra
        The rows N and Θ of L.
    order
        Their numbers in L: first those of N.
    plus
        H.
    """

    alone: sp.csr_array
    extra: Rows
    order: Integers
    plus: PlusRows

    @property
    def is_closed_form(self) -> bool:
        """Whether every cell is measured alone, and nothing else is."""
        return not self.extra.shape[0]

    def _measure(self, cells: Floats) -> Floats:
        """``[N; Θ] @ cells``."""
        return np.vstack([self.alone @ cells, self.extra @ cells])

    def _transposed(self, placed: Floats) -> Floats:
        """``[N; Θ]ᵀ @ placed``."""
        count = self.alone.shape[0]
        return np.asarray(self.alone.T @ placed[:count] + self.extra.T @ placed[count:])

    def rows_times(self, rows: Floats) -> Floats:
        right = np.ascontiguousarray(rows.T)
        placed = self._measure(self.plus.inverse_times(right))
        # One step of refinement: Woodbury's formula is a difference.
        residual = right - self._transposed(placed)
        placed += self._measure(self.plus.inverse_times(residual))
        result = np.empty((len(rows), len(self.order)))
        result[:, self.order] = placed.T
        return result

    def estimate(self, measurements: Floats) -> Floats:
        placed = measurements[self.order][:, None]
        first = self.plus.inverse_times(self._transposed(placed))
        placed = placed - self._measure(first)  # refined once, as rows are
        return (first + self.plus.inverse_times(self._transposed(placed)))[:, 0]

    def row_squared_norms(self, queries: LinearMap) -> Floats | None:
        """``wᵀ·K⁻¹·w − ‖C⁻¹·A·w‖²`` of each query w, where that has digits left."""
        base_norms = self._base_forms(queries)
        if base_norms is None:
            return None
        plus, norms = self.plus, base_norms.copy()
        if isinstance(plus.inner, Band):
            if queries.entry_count > MEMORY:
                return None
            forms = plus.inner.forms(sp.csr_array(queries.sparse() @ plus.scaled.T))
            if forms is None:
                return None
            norms -= forms
        elif queries.shape[0] * self.extra.shape[0] <= BLOCK_ENTRIES:
            norms -= (plus.whitened_by(queries) ** 2).sum(axis=0)
        else:
            for piece in plus.whitened_pieces(max(queries.shape)):
                norms -= (queries.apply(piece.T) ** 2).sum(axis=1)
        return norms if np.all(norms >= CANCELLED * base_norms) else None

    def squared_norm(self, queries: LinearMap) -> float | None:
        """The sum of ``row_squared_norms``, through ``WᵀW`` applied to columns."""
        if isinstance(self.plus.inner, Band):
            return None
        if self.plus.base.ndim == 1:
            base_norm = float(np.dot(queries.column_squared_sums(), self.plus.base))
        elif (chain := queries.gram_chain()) is not None:
            base_norm = float(np.vdot(chain_blocks(*chain, BLOCK_CELLS), self.plus.base))
        else:
            return None
        norm = base_norm
        if queries.shape[0] * self.extra.shape[0] <= BLOCK_ENTRIES:
            norm -= float((self.plus.whitened_by(queries) ** 2).sum())
        else:
            for piece in self.plus.whitened_pieces(queries.shape[1]):
                norm -= float(np.vdot(piece.T, queries.gram_times(piece.T)))
        return norm if norm >= CANCELLED * base_norm else None

    def weight_count(self, queries: LinearMap) -> int | None:
        """Cells that are measured alike and not asked about share a weight, as those in a range."""
        if self.plus.base.ndim != 1:
            return None
        ranges = self._range_weight_count(queries)
        sparse = self._sparse_weight_count(queries)
        return sparse if ranges is None else min(ranges, sparse)

    def _range_weight_count(self, queries: LinearMap) -> int | None:
        kinds, rows = len(self._kinds.sizes), self.extra.shape[0]
        if queries.weighted_ranges(0, 0) is None:
            return None
        if (kinds + rows) * self.alone.shape[1] > MEMORY // 2:
            return None
        return int(queries.shape[0] * ((2 if rows else 1) * kinds + rows))

    def _sparse_weight_count(self, queries: LinearMap) -> int:
        rows = self.extra.shape[0]
        each = len(self._kinds.sizes) + rows if rows else 0
        return queries.entry_count + queries.shape[0] * each

    def row_weights(self, queries: LinearMap, start: int, stop: int) -> RowWeights:
        """Weights by kinds of cells.

        With ``v = M⁻¹·A·w`` a cell that is measured with the weight a has
        ``a·(w/a² − A_jᵀ·v)``, and the rows Θ have v.
        """
        ranges = self._range_weight_count(queries)
        if ranges is not None and ranges <= self._sparse_weight_count(queries):
            return self._range_weights(queries, start, stop)
        return self._sparse_weights(queries.sparse_rows(start, stop))

    def _sparse_weights(self, rows: sp.csr_array) -> RowWeights:
        place, lengths = np.arange(rows.shape[0]), np.diff(rows.indptr).astype(np.int64)
        kinds, scales = self._kinds, self._scales
        inside = rows.data * scales[rows.indices]
        if not self.extra.shape[0]:
            return RowWeights(np.abs(inside), None, np.cumsum(lengths), place)
        solved = self.plus.solve_inner(_as_array(self.plus.scaled @ rows.T)).T
        moved = solved @ kinds.columns(self.plus.scaled) / scales[kinds.first]
        row, kind = np.repeat(place, lengths), kinds.labels[rows.indices]
        inside = inside - moved[row, kind]
        asked = np.bincount(row * len(kinds.sizes) + kind, minlength=moved.size)
        # In each row the cells that are asked about, then all others by kind, then the rows Θ.
        others = np.hstack([moved, solved])
        ends = np.cumsum(lengths + others.shape[1])
        values, counts = np.empty(ends[-1]), np.ones(ends[-1])
        behind = ends[:, None] + np.arange(-others.shape[1], 0)
        is_cell = np.ones(len(values), dtype=bool)
        is_cell[behind] = False
        values[is_cell], values[behind] = inside, others
        counts[behind[:, : len(kinds.sizes)]] = kinds.sizes - asked.reshape(moved.shape)
        return RowWeights(np.abs(values), counts, ends, place)

    def _range_weights(self, queries: LinearMap, start: int, stop: int) -> RowWeights:
        ranges = queries.weighted_ranges(start, stop)
        assert ranges is not None  # noqa: S101 - by weight_count
        kinds, scales = self._kinds, self._scales[self._kinds.first]
        inside = kinds.sums[:, ranges.last + 1].T - kinds.sums[:, ranges.first].T
        factors = ranges.weights[:, None]
        if not self.extra.shape[0]:
            return RowWeights.of_rows(factors * scales, inside)
        sums = self._scaled_sums
        solved = self.plus.solve_inner(sums[:, ranges.last + 1] - sums[:, ranges.first]).T
        moved = solved @ kinds.columns(self.plus.scaled) / scales
        return RowWeights.of_rows(
            factors * np.hstack([scales - moved, moved, solved]),
            np.hstack([inside, kinds.sizes - inside, np.ones(solved.shape)]),
        )

    @cached_property
    def _scales(self) -> Floats:
        """1/a of each cell, which is measured with the weight a."""
        return np.asarray(np.sqrt(self.plus.base))

    @cached_property
    def _kinds(self) -> _CellKinds:
        stacked = sp.vstack([sp.csr_array(self._scales[None]), sp.csr_array(self.extra)])
        matrix = sp.csc_array(stacked)
        matrix.sort_indices()
        return _CellKinds(equal_columns(matrix))

    @cached_property
    def _scaled_sums(self) -> Floats:
        """Running sums of A along the cells."""
        return np.pad(np.cumsum(self.plus.dense_rows, axis=1), [(0, 0), (1, 0)])

    def _base_forms(self, queries: LinearMap) -> Floats | None:
        """``wᵀ·K⁻¹·w`` of each query w; over blocks only of ranges."""
        if self.plus.base.ndim == 1:
            return queries.squared().apply(self.plus.base)
        ranges = queries.weighted_ranges()
        return None if ranges is None else _range_forms(self.plus.base, ranges)


def _range_forms(blocks: Floats, ranges: WeightedRanges) -> Floats:
    """``wᵀ·K⁻¹·w`` for ranges w of cells: complete blocks, and the two ends."""
    first, last = ranges.first, ranges.last
    corner = np.zeros((len(blocks), BLOCK_CELLS + 1, BLOCK_CELLS + 1))
    corner[:, 1:, 1:] = blocks.cumsum(axis=1).cumsum(axis=2)
    before = np.concatenate([[0.0], np.cumsum(corner[:, -1, -1])])

    def part(block: Integers, start: Integers, stop: Integers) -> Floats:
        both = corner[block, stop, stop] + corner[block, start, start]
        return np.asarray(both - corner[block, start, stop] - corner[block, stop, start])

    low, high = first // BLOCK_CELLS, last // BLOCK_CELLS
    start, stop = first % BLOCK_CELLS, last % BLOCK_CELLS + 1
    inside = part(low, start, stop)
    full, none = np.full_like(start, BLOCK_CELLS), np.zeros_like(start)
    across = part(low, start, full) + part(high, none, stop) + before[high] - before[low + 1]
    return np.asarray(np.where(low == high, inside, across) * ranges.weights**2)


def diagonal_plus_rows(matrix: sp.csr_array, owner: Integers) -> PlusRowsInverse | None:
    """The left inverse of a strategy that measures every cell alone, where M is small.

    Parameters
    ----------
    matrix
        L.
    owner
        For each cell a row of L that holds this cell alone.
    """
    cells = len(owner)
    is_extra = np.ones(matrix.shape[0], dtype=bool)
    is_extra[owner] = False
    extra_rows = np.flatnonzero(is_extra)
    alone, extra = sp.csr_array(matrix[owner]), sp.csr_array(matrix[extra_rows])
    base = np.asarray(alone.sum(axis=1)).ravel() ** -2.0
    order = _by_place(extra)
    if order is not None:
        local = sp.csr_array(extra[order])
        scaled = scale_columns(local, base)
        band = Band.of(sp.csr_array(scaled @ local.T + sp.eye_array(len(extra_rows))))
        if band is not None:
            rows = np.concatenate([owner, extra_rows[order]])
            return PlusRowsInverse(alone, local, rows, PlusRows(base, scaled, band))
    if len(extra_rows) > min(cells // 2, SIDE):
        return None
    few: Rows = extra
    if extra.nnz >= SPARSE_SHARE * len(extra_rows) * cells:
        few = np.asarray(extra.toarray())
    plus = PlusRows(base, scale_columns(few, base), lower_factor(extra, base))
    return PlusRowsInverse(alone, few, np.concatenate([owner, extra_rows]), plus)


def _by_place(rows: sp.csr_array) -> Integers | None:
    """The order of the rows along the cells, where M can be a band."""
    count = rows.shape[0]
    # Rows that share a cell are neighbours in any order: a bound on the bandwidth.
    # Fewer rows always have an array for M.
    if count < 128 or NARROW * np.bincount(rows.indices, minlength=1).max() > count:
        return None
    lengths = np.diff(rows.indptr)
    row = np.repeat(np.arange(count), lengths)
    middle = np.bincount(row, rows.indices, minlength=count) / np.maximum(lengths, 1)
    return np.argsort(middle, kind="stable")


def blocks_plus_rows(matrix: sp.csr_array) -> PlusRowsInverse | None:
    """The left inverse of a strategy whose rows are nearly all within one block of cells."""
    cells = matrix.shape[1]
    busy = np.flatnonzero(np.diff(matrix.indptr))
    if cells % BLOCK_CELLS or not len(busy):
        return None
    block = matrix.indices // BLOCK_CELLS
    starts = matrix.indptr[busy]
    is_wide = np.zeros(matrix.shape[0], dtype=bool)
    is_wide[busy] = np.minimum.reduceat(block, starts) != np.maximum.reduceat(block, starts)
    wide = np.flatnonzero(is_wide)
    if not 0 < len(wide) <= SIDE or len(wide) * cells > MEMORY // 2:
        return None
    narrow = np.flatnonzero(~is_wide)
    local, few = sp.csr_array(matrix[narrow]), sp.csr_array(matrix[wide])
    gram = sp.coo_array(local.T @ local)
    blocks = np.zeros((cells // BLOCK_CELLS, BLOCK_CELLS, BLOCK_CELLS))
    blocks[gram.row // BLOCK_CELLS, gram.row % BLOCK_CELLS, gram.col % BLOCK_CELLS] = gram.data
    base = np.linalg.inv(blocks)
    across = few.T.toarray().reshape(len(base), BLOCK_CELLS, -1)
    scaled = np.ascontiguousarray((base @ across).reshape(cells, -1).T)
    inner = np.eye(len(wide)) + few @ scaled.T
    low = la.cholesky(inner, lower=True, check_finite=False)
    plus = PlusRows(base, scaled, low)
    return PlusRowsInverse(local, few, np.concatenate([narrow, wide]), plus)


def inverse_band(matrix: sp.csr_array, size: int) -> Floats:
    """The entries of ``matrix⁻¹`` near the diagonal: of each block of rows and the next one.

    The matrix must be symmetric and positive definite, and its bandwidth at most ``size``, the
    number of rows of a block. The result is blocks × 2·size × 2·size, the identity past the end.
    By block elimination forth and back, in O(rows × size²).

    >>> M = sp.diags_array([[1.0, 1.0], [3.0, 3.0, 3.0], [1.0, 1.0]], offsets=[-1, 0, 1])
    >>> near = inverse_band(sp.csr_array(M), 2)[0, :3, :3]
    >>> bool(np.allclose(near, np.linalg.inv(M.toarray())))
    True
    """
    rows = matrix.shape[0]
    count = -(-rows // size)
    entries = sp.coo_array(matrix)
    block = entries.row // size
    upper = entries.col >= block * size
    block, row, col = block[upper], entries.row[upper] % size, entries.col[upper]
    upper_blocks = np.zeros((count + 1, size, 2 * size))  # each with the one on its right
    upper_blocks[block, row, col - block * size] = entries.data[upper]
    tail = np.arange(rows, (count + 1) * size)
    upper_blocks[tail // size, tail % size, tail % size] = 1.0
    mixed, schur = np.zeros((count, size, size)), upper_blocks[:, :, :size]
    for i in range(count):
        mixed[i] = np.linalg.solve(schur[i], upper_blocks[i, :, size:])
        schur[i + 1] -= upper_blocks[i, :, size:].T @ mixed[i]
    diagonal_blocks = np.linalg.inv(schur)
    near = np.empty((count, 2 * size, 2 * size))
    for i in range(count - 1, -1, -1):
        beside = -mixed[i] @ diagonal_blocks[i + 1]
        diagonal_blocks[i] -= beside @ mixed[i].T
        near[i] = np.block([[diagonal_blocks[i], beside], [beside.T, diagonal_blocks[i + 1]]])
    return near


def scale_columns(rows: Rows, factors: Floats) -> Rows:
    """Rows with each cell multiplied by a factor."""
    if isinstance(rows, np.ndarray):
        return rows * factors
    data = rows.data * factors[rows.indices]
    return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def _as_array(X: Rows) -> Floats:
    return X if isinstance(X, np.ndarray) else np.asarray(X.toarray())
