"""Answers that add up and count no negative number of rows, nearest to the released ones.

The released answers a are projected on the answers that tables without negative counts have,

    minimise Σ weight·(W·x − a)²   over tables x ≥ 0 that agree wherever they overlap.

The true table is among them, so that the weighted sum of squared errors over the batch never grows
(the projection on a convex set that holds the truth). It may grow for one statement.

Unknowns are the residual coordinates of every set of attributes below a table, in an orthonormal
basis whose first vector is constant [1]_: all tables of given coordinates agree, and nothing has
the size of the domain. Values of an attribute that no query distinguishes are one value. Few cells
are solved by an active-set method; more by ADMM, whose step is diagonal where every statement is
a whole table and takes conjugate gradients otherwise. Where tables form cycles, ADMM keeps
each table without negative counts, but one table of all attributes need not exist.

References
----------
.. [1] "GReM: ReM and marginals from noisy residuals", https://arxiv.org/abs/2410.01091.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lrm.errors import ConvergenceError, UsageError
from lrm.files.spelling import how_many
from lrm.queries.maps.kron import along
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.workload import Workload

FEW_CELLS = 256
"""Merged cells up to which the joint table is found by an active-set method (0.1 s)."""

MOST_CELLS = 1 << 23
"""Cells of all tables together, up to which they are held (64 MB per copy)."""

MOST_ROUNDS = 4000
"""Rounds of ADMM; batches of tables take 50 to 500."""

CLOSE = 1e-7
"""Relative change of the tables below which ADMM ends."""

RELAXATION = 1.6
"""Over-relaxation of ADMM, as usual in the literature."""

Axes = tuple[int, ...]
Summands = list[tuple[float, tuple[LinearMap, ...]]]


@dataclass(frozen=True)
class _Term:
    """Queries over the table of some axes: a sum of products of one factor per axis."""

    axes: Axes
    summands: Summands
    weights: Floats  # of the squared error of each query
    targets: Floats  # released answers

    def apply(self, table: Floats) -> Floats:
        total: Floats | float = 0.0
        for coefficient, factors in self.summands:
            part = table
            for k, factor in enumerate(factors):
                part = along(part, k, factor.apply)
            total = total + coefficient * part
        return np.asarray(total).reshape(-1)

    def transpose(self, values: Floats, shape: tuple[int, ...]) -> Floats:
        total: Floats | float = 0.0
        for coefficient, factors in self.summands:
            part = values.reshape([len(factor) for factor in factors])
            for k, factor in enumerate(factors):
                part = along(part, k, factor.apply_transpose)
            total = total + coefficient * part
        return np.asarray(total).reshape(shape)

    @property
    def is_table(self) -> bool:
        """Whether the queries are the cells of the table, with equal weights."""
        (_, factors), *more = self.summands
        whole = all(f.kind == "identity" for f in factors)
        return not more and whole and bool(np.all(self.weights == self.weights[0]))


class _Tables:
    """Tables over sets of axes as functions of their common residual coordinates."""

    def __init__(self, sizes: Sequence[int], sets: Sequence[Axes]) -> None:
        self.sizes = tuple(sizes)
        subsets = {a for s in sets for a in _subsets(s)}
        self.subsets = sorted(subsets, key=lambda a: (len(a), a))
        self.shapes = [tuple(self.sizes[i] - 1 for i in a) for a in self.subsets]
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        starts = [0, *ends.tolist()]
        self.slices = {
            a: slice(*ends)
            for a, ends in zip(self.subsets, itertools.pairwise(starts), strict=True)
        }
        self.count = int(ends[-1])

    def shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.sizes[i] for i in axes)

    def _scale(self, axes: Axes, subset: Axes) -> float:
        return 1.0 / math.sqrt(math.prod(self.sizes[i] for i in axes if i not in subset))

    def _place(self, axes: Axes, subset: Axes) -> tuple[slice, ...]:
        return tuple(slice(1, None) if i in subset else slice(0, 1) for i in axes)

    def table(self, axes: Axes, coordinates: Floats) -> Floats:
        """The table of some axes."""
        made = np.zeros(self.shape(axes))
        for subset in _subsets(axes):
            place = self._place(axes, subset)
            block = coordinates[self.slices[subset]].reshape(made[place].shape)
            made[place] = block * self._scale(axes, subset)
        return _reflected(made)

    def coordinates(self, axes: Axes, table: Floats, into: Floats) -> None:
        """Add the transpose of `table` to coordinates."""
        turned = _reflected(table)
        for subset in _subsets(axes):
            part = turned[self._place(axes, subset)].reshape(-1)
            into[self.slices[subset]] += part * self._scale(axes, subset)

    def diagonal(self, axes: Axes, into: Floats, weight: float = 1.0) -> None:
        """Add the squared norm of a table, which is diagonal, to one number per coordinate."""
        for subset in _subsets(axes):
            into[self.slices[subset]] += weight * self._scale(axes, subset) ** 2


def _subsets(axes: Axes) -> list[Axes]:
    return [a for k in range(len(axes) + 1) for a in itertools.combinations(axes, k)]


def _reflected(table: Floats) -> Floats:
    """The table in an orthonormal basis of each axis whose first vector is constant.

    A Householder reflection, its own inverse, in O(cells) for each axis.
    """
    for k, size in enumerate(table.shape):
        if size == 1:
            continue
        vector = np.full(size, -(size**-0.5))
        vector[0] += 1.0
        vector /= np.linalg.norm(vector)
        shape = [1] * table.ndim
        shape[k] = size
        wide = vector.reshape(shape)
        table = table - 2.0 * wide * (table * wide).sum(axis=k, keepdims=True)
    return table


@dataclass(frozen=True)
class _Problem:
    sizes: tuple[int, ...]
    terms: list[_Term]
    total: float | None

    @cached_property
    def sets(self) -> list[Axes]:
        """Sets of axes of tables that lie in no other."""
        asked = sorted({term.axes for term in self.terms}, key=len, reverse=True)
        largest: list[Axes] = []
        for axes in asked:
            if not any(set(axes) <= set(other) for other in largest):
                largest.append(axes)
        return largest

    def answers(self) -> Floats:
        used = sorted({i for axes in self.sets for i in axes})
        joint = math.prod(self.sizes[i] for i in used)
        if joint <= FEW_CELLS and self.total is None:
            return self._joint(tuple(used))
        cells = sum(math.prod(self.sizes[i] for i in axes) for axes in self.sets)
        if cells > MOST_CELLS:
            raise UsageError(
                f"the tables that the statements are about have {how_many(cells)} cells, more "
                f"than the {MOST_CELLS:,} that consistent answers can be computed for; ask for "
                "consistent answers of a release with smaller tables"
            )
        return self._separate()

    def _joint(self, used: Axes) -> Floats:
        """Answers of the nearest joint table, by an active-set method."""
        from scipy.optimize import nnls  # noqa: PLC0415 - 0.1 s, for those who repair answers

        shape = tuple(self.sizes[i] for i in used)
        cells = np.eye(math.prod(shape)).reshape(*shape, -1)
        blocks = []
        for term in self.terms:
            others = tuple(k for k, i in enumerate(used) if i not in term.axes)
            table = cells.sum(axis=others)
            columns = table.reshape(*(self.sizes[i] for i in term.axes), -1)
            blocks.append(
                np.stack([term.apply(columns[..., j]) for j in range(columns.shape[-1])], axis=1)
            )
        matrix = np.vstack(blocks)
        roots = np.sqrt(np.concatenate([term.weights for term in self.terms]))
        targets = np.concatenate([term.targets for term in self.terms])
        try:
            counts, _ = nnls(matrix * roots[:, None], targets * roots, maxiter=50 * matrix.shape[1])
        except RuntimeError:
            raise ConvergenceError("the search for the nearest table did not end") from None
        return np.asarray(matrix @ counts)

    def _separate(self) -> Floats:
        """Answers of the nearest tables that agree where they overlap, by ADMM."""
        tables = _Tables(self.sizes, self.sets)
        solver = _Steps(tables, self)
        place = solver.solve(np.zeros(tables.count), 0.0)
        counts = [np.maximum(tables.table(axes, place), 0.0) for axes in self.sets]
        duals = [np.zeros_like(table) for table in counts]
        penalty = solver.usual_ratio
        for round_number in range(MOST_ROUNDS):
            pull = np.zeros(tables.count)
            for axes, table, dual in zip(self.sets, counts, duals, strict=True):
                tables.coordinates(axes, table - dual, pull)
            place = solver.solve(pull, penalty, place)
            primal = dual_change = size = 0.0
            for k, axes in enumerate(self.sets):
                made = tables.table(axes, place)
                relaxed = RELAXATION * made + (1.0 - RELAXATION) * counts[k]
                projected = np.maximum(relaxed + duals[k], 0.0)
                duals[k] += relaxed - projected
                primal += float(np.sum((made - projected) ** 2))
                dual_change += float(np.sum((projected - counts[k]) ** 2))
                size += float(np.sum(projected**2))
                counts[k] = projected
            if max(primal, dual_change) <= CLOSE**2 * max(size, 1.0):
                break
            if round_number % 20 == 19:
                ratio = math.sqrt((primal + 1e-300) / (dual_change + 1e-300))
                if not 0.2 < ratio < 5.0:
                    factor = min(max(math.sqrt(ratio), 0.2), 5.0)
                    penalty *= factor
                    duals = [dual / factor for dual in duals]
        return self._of_tables(tables, self._inside(tables, place))

    def _inside(self, tables: _Tables, place: Floats) -> Floats:
        """The coordinates moved so little towards equal counts that no count is negative."""
        total = max(float(place[0]), 0.0)
        even = np.zeros_like(place)
        even[0] = total
        share = 0.0
        for axes in self.sets:
            table = tables.table(axes, place)
            least, middle = float(table.min()), total / table.size
            margin = 1e-13 * total
            if least < margin and middle > least:
                share = max(share, min(1.0, (margin - least) / (middle - least)))
        return (1.0 - share) * place + share * even

    def _of_tables(self, tables: _Tables, place: Floats) -> Floats:
        made = {axes: np.maximum(tables.table(axes, place), 0.0) for axes in self.sets}
        answers = []
        for term in self.terms:
            axes = next(axes for axes in self.sets if set(term.axes) <= set(axes))
            others = tuple(k for k, i in enumerate(axes) if i not in term.axes)
            answers.append(term.apply(made[axes].sum(axis=others)))
        return np.concatenate(answers)


class _Steps:
    """The quadratic steps of ADMM: diagonal for whole tables, else by conjugate gradients."""

    def __init__(self, tables: _Tables, problem: _Problem) -> None:
        self.tables, self.total = tables, problem.total
        self.penalised = np.zeros(tables.count)
        for axes in problem.sets:
            tables.diagonal(axes, self.penalised)
        self.diagonal = np.zeros(tables.count)
        self.others: list[_Term] = []
        self.right = np.zeros(tables.count)
        estimate = np.zeros(tables.count)
        for term in problem.terms:
            shape = tables.shape(term.axes)
            tables.coordinates(
                term.axes, term.transpose(term.weights * term.targets, shape), self.right
            )
            if term.is_table:
                tables.diagonal(term.axes, self.diagonal, float(term.weights[0]))
                continue
            self.others.append(term)
            weights = term.weights.mean() * len(term.weights) / math.prod(shape)
            tables.diagonal(term.axes, estimate, float(weights))
        self.estimate = self.diagonal + estimate
        self.usual_ratio = float(np.median(self.estimate / self.penalised))

    def solve(self, pull: Floats, penalty: float, start: Floats | None = None) -> Floats:
        """Coordinates that minimise the distance to the answers plus the penalty."""
        right = self.right + penalty * pull
        direct = self.diagonal + penalty * self.penalised
        if not self.others:
            place = np.divide(right, direct, out=np.zeros_like(right), where=direct > 0)
        else:
            place = self._conjugate(right, direct, penalty, start)
        if self.total is not None:
            place[0] = self.total
        return place

    def _times(self, direct: Floats, place: Floats) -> Floats:
        product = direct * place
        for term in self.others:
            values = term.weights * term.apply(self.tables.table(term.axes, place))
            self.tables.coordinates(
                term.axes, term.transpose(values, self.tables.shape(term.axes)), product
            )
        return product

    def _conjugate(
        self, right: Floats, direct: Floats, penalty: float, start: Floats | None
    ) -> Floats:
        place = np.zeros_like(right) if start is None else start.copy()
        free = np.ones_like(right)
        if self.total is not None:
            place[0], free[0] = self.total, 0.0
        usual = self.estimate + penalty * self.penalised
        scale = free / np.where(usual > 0, usual, 1.0)
        residual = (right - self._times(direct, place)) * free
        target = 1e-9 * float(np.linalg.norm(right * np.sqrt(scale))) + 1e-300
        moved = scale * residual
        direction, inner = moved, float(residual @ moved)
        for _ in range(200):
            if math.sqrt(max(inner, 0.0)) <= target:
                break
            product = self._times(direct, direction) * free
            curvature = float(direction @ product)
            if curvature <= 0:
                break
            length = inner / curvature
            place = place + length * direction
            residual = residual - length * product
            moved = scale * residual
            inner, before = float(residual @ moved), inner
            direction = moved + (inner / before) * direction
        return place


def consistent_answers(workload: Workload, answers: Floats, total: float | None = None) -> Floats:
    """The answers of tables without negative counts that are nearest to the given ones.

    ``total`` is a number of rows that is known from elsewhere.

    >>> batch = Workload([[1, 1], [1, 0], [0, 1]])
    >>> consistent_answers(batch, np.array([9.0, 10.0, -4.0])).tolist()
    [9.5, 9.5, 0.0]
    """
    if total is not None and not (math.isfinite(total) and total >= 0):
        raise UsageError("a known total must be a number of rows, which is not negative")
    importance = np.ones(len(answers)) if workload.importance is None else workload.importance
    products = workload.products
    if products is None:
        problem = _list_problem(workload.queries, answers, importance, total)
    else:
        problem = _product_problem(products.batch, answers, importance, total)
    made = problem.answers()
    made[np.abs(made) < 1e-12 * max(1.0, float(np.abs(made).max()))] = 0.0
    return made


def _list_problem(
    queries: LinearMap, answers: Floats, importance: Floats, total: float | None
) -> _Problem:
    labels = queries.column_labels
    size = int(labels.max()) + 1
    merged = queries.merged_columns(labels, size)
    return _Problem((size,), [_Term((0,), [(1.0, (merged,))], importance, answers)], total)


def _product_problem(
    batch: ProductBatch, answers: Floats, importance: Floats, total: float | None
) -> _Problem:
    labels = [
        _merged_values([choices[f] for f in batch.present(i)])
        for i, choices in enumerate(batch.factors)
    ]
    sizes = tuple(int(values.max()) + 1 for values in labels)
    made: dict[tuple[int, int], LinearMap] = {}

    def merged(attribute: int, factor: LinearMap, number: int) -> LinearMap:
        if (attribute, number) not in made:
            made[attribute, number] = factor.merged_columns(labels[attribute], sizes[attribute])
        return made[attribute, number]

    terms, begin = [], 0
    for term, end in enumerate(batch.term_ends.tolist()):
        summands: Summands = []
        numbers = batch.summand_numbers(term)
        axes = tuple(np.flatnonzero(batch.choice[numbers].any(axis=0)).tolist())
        for s in numbers.tolist():
            factors = tuple(
                merged(i, batch.factors[i][batch.choice[s, i]], int(batch.choice[s, i]))
                for i in axes
            )
            summands.append((float(batch.coefficients[s]), factors))
        rows = slice(begin, end)
        terms.append(_Term(axes, summands, importance[rows], answers[rows]))
        begin = end
    return _Problem(sizes, terms, total)


def _merged_values(factors: Sequence[LinearMap]) -> Integers:
    """Numbers of the values of an attribute, equal for values that no factor distinguishes."""
    labels = np.zeros(factors[0].shape[1], dtype=np.int64)
    for factor in factors:
        if factor.kind == "total":
            continue
        both = np.stack([labels, factor.column_labels])
        labels = np.unique(both, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return labels
