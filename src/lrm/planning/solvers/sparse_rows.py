"""Rows in addition to the identity over thousands of cells, without a dense ``WᵀW``.

Problem: that of `lrm.planning.solvers.extra_rows`, where a workload is known by ``WᵀW`` as an
operator.

Method: from coarse to fine. Rows that are constant on blocks of neighbouring cells have an error
of the same form over the blocks, with ``M = I + Θ·diag(widths)·Θᵀ``. The first descent is over a
few hundred blocks, the last one over cells; each starts from the rows of the one before.
The best rows are sparse (2 to 4 % of their entries for prefix sums), so a descent moves only the
entries that are not 0 or that the gradient opens, and looks for further ones when it has ended.

Cost: O(n·p + entries·p + p³) per round; O(n·p²) to find the entries of a descent.

Over tens of thousands of cells rows in addition to the identity would have to be thousands. So the
cells of each block of 16 are measured by one basis S, with L1 columns of norm 1, and the rows
Θ over the blocks see the totals of these. With ``H = (SᵀS)⁻¹``, ``h = H·1`` and ``s = 1 + Σ|Θ|``
the error has this form over blocks, with ``widths = 1ᵀH1``, energies
``tr(H·G_cc)`` of the diagonal blocks G_cc of WᵀW, and ``WᵀW`` summed over blocks with weights h.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver
from lrm.planning.design.plus_rows import BLOCK_CELLS, PlusRows, beside_identity, trace_gradient
from lrm.planning.limits import ARRAY, BLOCK
from lrm.planning.solvers import settings
from lrm.planning.solvers.extra_rows import ExtraRows, RowsError, assemble, optimise_extra_rows
from lrm.planning.solvers.gram_operators import ChainGram, GramOperator
from lrm.planning.solvers.quasi_newton import Descent, descend_orthantwise
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.words import chain_blocks


def row_count(cells: int) -> int:
    """How many rows to measure in addition to the cells.

    >>> row_count(1024), row_count(4096), row_count(65_536)
    (128, 256, 512)
    """
    return max(16, min(settings.MOST_SPARSE_ROWS, 4 * isqrt(cells), (ARRAY * 2) // cells))


@dataclass(frozen=True, slots=True)
class Stage:
    """One resolution of the search: cells of a block, and when to go on to the next.

    A descent ends after ``rounds`` rounds, or when a round gains less than ``tolerance`` of the
    error; the stage ends after ``descents`` of them, or when the last gained next to nothing.
    """

    block: int
    tolerance: float
    rounds: int = 100
    descents: int = 10


def stages(cells: int, rows: int) -> tuple[Stage, ...]:
    """Ever smaller blocks: at first about one per row, at last single cells.

    >>> [stage.block for stage in stages(4096, 256)]
    [16, 4, 1]
    """
    block, fewer = 1, 4  # times fewer blocks at each coarser resolution
    while cells >= fewer * block * rows:
        block *= fewer
    stage_list = [Stage(block, 1e-4, 75, 4)]
    while block > 1:
        block //= fewer
        stage_list.append(Stage(block, 3e-5, 75, 2) if block > 1 else Stage(1, 3e-5, 40, 1))
    return tuple(stage_list)


class _Resolution:
    """Errors and derivatives at one resolution, beside noise on data; entries are cells × rows."""

    def __init__(self, gram: GramOperator, *, nonnegative: bool) -> None:
        self.gram, self.nonnegative = gram, nonnegative
        self.unit = float(gram.energies.sum())
        self.function = RowsError(gram, self.unit)

    def _plus(self, X: sp.csr_array, scale: Floats) -> PlusRows:
        """The inverse of ``[I; Xᵀ]·D``."""
        return beside_identity(sp.csr_array(X.T), scale, self.function.widths)

    def error(self, X: sp.csr_array) -> float:
        """``‖W·L⁺‖²``."""
        scale = _sizes(X)
        try:
            plus = self._plus(X, scale)
        except LinAlgError:
            return np.inf
        image = self.gram.times(plus.dense_rows.T)
        gain = float(np.vdot(plus.solve_inner(np.eye(X.shape[1])), plus.scaled @ image))
        return self.function.share(gain, scale) * self.unit

    def of_entries(self, x: Floats, *, support: Support) -> tuple[float, Floats, Floats]:
        """The error and its derivatives by the entries of a support and by their sizes.

        ``Q = G·Aᵀ·M⁻¹`` in one product with G; the error is a sum over the entries of A and Q.
        """
        cell, gram = support.cell, self.gram
        X = support.matrix(x)
        scale = _sizes(X)
        try:
            plus = self._plus(X, scale)
        except LinAlgError:
            return np.inf, np.zeros_like(x), np.zeros_like(x)
        inverse = plus.solve_inner(np.eye(X.shape[1]))
        image = gram.times(np.asarray(plus.scaled.T @ inverse))
        Q = image[cell, support.row]
        middle = inverse @ np.asarray(plus.scaled @ image)
        gain = float(np.dot(x * scale[cell], Q))
        unit = 2.0 / self.unit
        by_scale: Floats = gram.energies * scale
        by_scale -= np.bincount(cell, weights=Q * x, minlength=gram.cells)
        by_entry = gram.widths[cell] * support.products(x, middle) - scale[cell] * Q
        return self.function.share(gain, scale), unit * by_entry, unit * by_scale[cell]

    def opened(self, X: sp.csr_array, clock: Clock, step: Step) -> Support:
        """The entries that are not 0, and those that the steepest descent moves away from 0."""
        scale = _sizes(X)
        plus = self._plus(X, scale)
        image = self.gram.times(plus.dense_rows.T)
        middle = plus.solve_inner(plus.solve_inner(plus.scaled @ image).T)
        cells, rows = X.shape
        positions, height = [], max(1, BLOCK // rows)
        for start in range(0, cells, height):
            clock.tick(step)
            piece = slice(start, min(start + height, cells))
            values = X[piece].toarray()
            by_rows, by_scale = trace_gradient(
                values.T,
                scale[piece],
                self.gram.energies[piece],
                plus.solve_inner(image[piece].T),
                middle,
                self.gram.widths[piece],
            )
            moves = by_rows + by_scale < 0 if self.nonnegative else np.abs(by_rows) > by_scale
            cell, row = np.nonzero(moves.T | (values != 0))
            positions.append((cell + start, row))
        cell, row = (np.concatenate(part) for part in zip(*positions, strict=True))
        return Support(cell, row, (cells, rows))


@dataclass(frozen=True, eq=False)
class Support:
    """Which entries of cells × rows may differ from 0, in the order of the cells."""

    cell: Integers
    row: Integers
    shape: tuple[int, int]

    @cached_property
    def starts(self) -> Integers:
        """Where the entries of each cell begin, and where the last ones end."""
        counts = np.bincount(self.cell, minlength=self.shape[0])
        return np.concatenate([[0], np.cumsum(counts)])

    def matrix(self, x: Floats) -> sp.csr_array:
        """The entries in their places."""
        return sp.csr_array((x, self.row, self.starts), shape=self.shape)

    def products(self, x: Floats, matrix: Floats) -> Floats:
        """The entries of ``X @ matrix`` in the places of the support."""
        counts = np.diff(self.starts)
        if int(counts @ counts) > ARRAY:
            return self._products_by_pieces(x, matrix)
        first, second = self.pairs
        weights = x[first] * matrix[self.row[first], self.row[second]]
        return np.asarray(np.bincount(second, weights=weights, minlength=len(x)), dtype=np.float64)

    def _products_by_pieces(self, x: Floats, matrix: Floats) -> Floats:
        """``products`` through the rows of X written out, a few cells at a time."""
        X, products = self.matrix(x), np.empty(len(x))
        cells, rows = self.shape
        height = max(1, BLOCK // rows)
        for start in range(0, cells, height):
            stop = min(start + height, cells)
            some = slice(self.starts[start], self.starts[stop])
            image = X[start:stop].toarray() @ matrix
            products[some] = image[self.cell[some] - start, self.row[some]]
        return products

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """All pairs of entries of the same cell."""
        counts = np.bincount(self.cell, minlength=self.shape[0])
        partners = counts[self.cell]
        first = np.repeat(np.arange(len(self.cell)), partners)
        within = np.arange(len(first)) - np.repeat(np.cumsum(partners) - partners, partners)
        return first, self.starts[self.cell[first]] + within


def _sizes(X: Floats | sp.csr_array) -> Floats:
    """``1 + Σ|θ|`` of each cell."""
    return np.asarray(1.0 + abs(X).sum(axis=1), dtype=np.float64).ravel()


def sparse_rows_error(gram: GramOperator, rows: sp.csr_array) -> float:
    """``‖W·L⁺‖²`` for ``L = [I; Θ]·D`` over single cells.

    >>> from lrm.queries.maps.matrices import DenseMap
    >>> from lrm.planning.solvers.gram_operators import gram_operator
    >>> ones = np.ones((1, 3))
    >>> round(sparse_rows_error(gram_operator(DenseMap(ones)), sp.csr_array(ones)), 12)
    3.0
    """
    X = sp.csr_array(rows.T)
    return _Resolution(gram, nonnegative=False).error(X)


def optimise_sparse_rows(  # noqa: PLR0913 - each is a choice of the caller
    gram: GramOperator,
    rows: int,
    stages: tuple[Stage, ...],
    *,
    rng: np.random.Generator,
    start: sp.csr_array | None = None,
    nonnegative: bool = True,
    hopeless: float = np.inf,
    clock: Clock = UNLIMITED,
    name: str = "sparse rows",
) -> ExtraRows[sp.csr_array]:
    """Optimise ``rows`` extra rows through stages of ever smaller blocks.

    Each block is a multiple of the next one. The first rows are random, or those of ``start`` over
    single cells, where the first block is one. With ``nonnegative`` entries of Θ may not be
    negative: enough for workloads without negative weights. Above an error of ``hopeless`` after
    the first stage there are no others.

    Examples
    --------
    >>> from lrm.queries.maps.words import Prefix
    >>> from lrm.planning.solvers.gram_operators import gram_operator
    >>> stages = (Stage(2, 1e-4), Stage(1, 1e-5))
    >>> found = optimise_sparse_rows(
    ...     gram_operator(Prefix(64)), 16, stages, rng=np.random.default_rng(0))
    >>> bool(found.error < 930), found.rows.shape
    (True, (16, 64))
    """
    run = _Run(clock, name)
    X: Floats | sp.csr_array | None = None if start is None else sp.csr_array(start.T)
    block, converged = 1, True
    for stage in stages:
        level = _Resolution(gram.coarser(stage.block), nonnegative=nonnegative)
        if X is None:
            X = settings.FIRST_SUM / rows * rng.random((level.gram.cells, rows))
            X = X if nonnegative else X - settings.FIRST_SUM / rows / 2
        else:
            X = _finer(X, block // stage.block, level.gram.cells)
        block = stage.block
        X, converged = run.descend(level, X, stage)
        if clock.must_end() or (stage is stages[0] and run.error > hopeless):
            break
    assert X is not None  # noqa: S101 - there is a stage
    # Rows that are constant on blocks have the same error over blocks and over cells.
    error = level.error(sp.csr_array(X))
    fine = sp.csr_array(_finer(X, block, gram.cells).T)
    return ExtraRows(fine, error, run.rounds, converged)


def _finer(X: Floats | sp.csr_array, factor: int, cells: int) -> sp.csr_array:
    """Rows with each block split into ``factor``."""
    return sp.csr_array(sp.csr_array(X)[np.arange(cells) // factor])


class _Run:
    """Rounds and error so far."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock, self._name = clock, name
        self.rounds, self.error = 0, np.inf

    def descend(
        self, level: _Resolution, X: Floats | sp.csr_array, stage: Stage
    ) -> tuple[Floats | sp.csr_array, bool]:
        """Descend at one resolution; return the rows, and whether nothing more is to gain."""
        last = np.inf
        for _ in range(stage.descents):
            try:
                run, X = self._once(level, X, stage)
            except StopSolver:
                return X, False
            if run.interrupted:
                return X, False
            if run.converged and last - run.value < stage.tolerance * run.rounds * run.value:
                return X, True
            last = run.value
        return X, False

    def _once(
        self, level: _Resolution, X: Floats | sp.csr_array, stage: Stage
    ) -> tuple[Descent, Floats | sp.csr_array]:
        def report(iteration: int, value: float) -> None:
            self.error = min(self.error, value * level.unit)
            # Seconds of counted work per entry of Θ and round, over prefix sums of 400 to 5,000
            # values.
            self._clock.spend(1.1e-7 * X.shape[0] * X.shape[1])
            self._clock.tick(Step(self._name, self.rounds + iteration, self.error))

        descend = partial(
            descend_orthantwise,
            on_round=report,
            nonnegative=level.nonnegative,
            tolerance=stage.tolerance,
            max_rounds=stage.rounds,
        )
        entries = X if isinstance(X, np.ndarray) else X.data
        if np.count_nonzero(entries) > settings.DENSE_SHARE * X.shape[0] * X.shape[1]:
            T = X.T if isinstance(X, np.ndarray) else X.T.toarray()
            run = descend(level.function.kinked, np.ascontiguousarray(T))
            X = run.point.T
        else:
            step = Step(self._name, self.rounds, self.error)
            support = level.opened(sp.csr_array(X), self._clock, step)
            if not len(support.cell):  # no row is worth anything: only the identity is left
                value = level.error(sp.csr_array(X)) / level.unit
                return Descent(X, value, 1, converged=True, interrupted=False), X
            start = np.asarray(sp.csr_array(X)[support.cell, support.row]).ravel()
            run = descend(partial(level.of_entries, support=support), start)
            X = support.matrix(run.point)
            X.eliminate_zeros()
        self.rounds += run.rounds
        return run, X


def local_basis() -> Floats:
    """A basis for the prefix sums within a block and its total, of L1 columns of norm 1.

    >>> np.abs(local_basis()).sum(axis=0).round(9).tolist() == BLOCK_CELLS * [1.0]
    True
    """
    W = np.vstack([np.tri(BLOCK_CELLS), np.full((1, BLOCK_CELLS), settings.LOCAL_TOTAL_WEIGHT)])
    rng = np.random.default_rng(0)
    tried = [
        optimise_extra_rows(
            W, 0.5 * rng.random((settings.LOCAL_BASIS_ROWS, BLOCK_CELLS)), nonnegative=True
        )
        for _ in range(3)  # milliseconds each
    ]
    best = min(tried, key=lambda candidate: candidate.error)
    return np.asarray(assemble(W, best.rows)[1].toarray())


def local_gram(chain: tuple[Floats, Floats], basis: Floats) -> ChainGram:
    """``WᵀW`` of prefix sums or all ranges (`LinearMap.gram_chain`), over blocks."""
    inverse = np.linalg.inv(basis.T @ basis)
    weights = inverse.sum(axis=1)
    blocks = chain_blocks(*chain, BLOCK_CELLS)
    left, right = (values.reshape(-1, BLOCK_CELLS) @ weights for values in chain)
    energies = np.einsum("cij,ij->c", blocks, inverse)
    inside = np.einsum("cij,i,j->c", blocks, weights, weights)
    widths = np.full(len(blocks), weights.sum())
    return ChainGram(widths, energies, left, right, inside - left * right)


def local_strategy(rows: sp.csr_array, basis: Floats) -> sp.csr_array:
    """The basis over each block, and the rows over blocks spread over their cells."""
    blocks = rows.shape[1]
    shares = np.repeat(1.0 / (1.0 + np.asarray(abs(rows).sum(axis=0)).ravel()), BLOCK_CELLS)
    local = sp.kron(sp.eye_array(blocks), sp.csr_array(basis), format="csr")
    busy = np.flatnonzero(np.diff(rows.indptr))
    spread = sp.csr_array(rows)[busy][:, np.repeat(np.arange(blocks), BLOCK_CELLS)]
    return sp.csr_array(sp.vstack([local, spread]) @ sp.diags_array(shares))
