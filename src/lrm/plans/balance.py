"""How the error is divided among the statements of a batch.

A statement is compared with what it would have under an *even split*: planned alone, with an S-th
of the budget for each of S statements. For Laplace noise that is S² times its squared error alone,
for Gaussian noise S times (ρ adds up). The error of a statement is the mean over its columns of the
mean squared error of the column, each relative to that of the column planned alone, so that counts
and sums of money count alike.

``balanced`` minimises the sum over statements of their squared ratios. That is a weighted total:
the weight of a query of column c is ``Σ 1/(C·n_c·a_c·E_s)`` over the statements s that it serves,
with C columns of n_c queries, a_c the error of the column alone and E_s that of the statement.
``worst`` minimises the largest ratio, by raising the weights of statements above the others.
See docs/explanation/statements.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from lrm.clock import Clock
from lrm.errors import UsageError, WorkloadError
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import SparseMap
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.factors import Factor
from lrm.maps.products.map import ProductMap
from lrm.maps.products.values import merge_values
from lrm.privacy.budget import Noise
from lrm.strategies import Problem, Search, build_strategy
from lrm.workload import Workload
from lrm.workload.columns import StatementColumns, statement_columns
from lrm.workload.core import EXPLICIT_QUERIES

__all__ = ["OBJECTIVES", "Balance", "Objective", "balance_of"]

Objective = Literal["total", "balanced", "worst"]
OBJECTIVES = ("total", "balanced", "worst")

LISTED = 1 << 16
"""Weights of a statement's reduced queries up to which they are searched as one matrix."""

FEW_QUERIES = 4
"""Queries among whose columns corners are looked for."""

ALONE_WORK = 0.2
"""Counted seconds of the search for one statement alone."""


@dataclass(frozen=True, eq=False)
class Balance:
    """What statements are compared with, and what was minimised.

    Parameters
    ----------
    objective
        ``"balanced"`` or ``"worst"``.
    columns
        a_c of each column: its mean squared error when planned alone, as ``‖B‖²·Δ²``.
    statements
        E_s of each statement, planned alone: its error relative to its columns.
    """

    objective: Objective
    columns: tuple[float, ...]
    statements: tuple[float, ...]

    def __post_init__(self) -> None:
        positive = all(0 < one < math.inf for one in (*self.columns, *self.statements))
        if self.objective not in OBJECTIVES[1:] or len(self.statements) < 2 or not positive:
            raise WorkloadError("the errors of statements alone must be numbers above 0")

    @property
    def facts(self) -> dict[str, object]:
        """As a plan file holds it."""
        return {
            "objective": self.objective,
            "columns": list(self.columns),
            "statements": list(self.statements),
        }

    @classmethod
    def from_facts(cls, facts: object) -> Balance | None:
        """Read what `facts` returned, or None; anything else is a WorkloadError."""
        if facts is None:
            return None
        keys = {"objective", "columns", "statements"}
        if not isinstance(facts, dict) or set(facts) != keys:
            raise WorkloadError("'balance' must be an object of JSON with three facts")
        lists = [facts["columns"], facts["statements"]]
        if not all(
            isinstance(one, list) and all(type(x) in {int, float} for x in one) for one in lists
        ):
            raise WorkloadError("'balance' must hold lists of numbers")
        columns, statements = (tuple(map(float, one)) for one in lists)
        return cls(facts["objective"], columns, statements)

    def check(self, columns: StatementColumns) -> None:
        """Refuse numbers that are not those of a batch with these columns."""
        if (len(self.columns), len(self.statements)) != (
            len(columns.sizes),
            len(columns.statements),
        ):
            raise WorkloadError("the errors of statements alone are not those of the batch")

    def ratios(self, columns: StatementColumns, errors: Floats, noise: Noise) -> Floats:
        """The standard error of each statement beside that under an even split.

        ``errors`` is ``‖B‖²·Δ²`` of each query.
        """
        return np.sqrt(self.squared_ratios(columns, columns.means(errors), noise))

    def squared_ratios(self, columns: StatementColumns, means: Floats, noise: Noise) -> Floats:
        """The squares of `ratios`, from the mean error of each column."""
        count = len(self.statements)
        split = count if noise == "gaussian" else count**2
        relative = means / np.array(self.columns)
        own = np.array([relative[list(one)].mean() for one in columns.statements])
        return np.asarray(own / (split * np.array(self.statements)))

    def importance(self, columns: StatementColumns, emphasis: Floats) -> Floats:
        """The weight of each column's queries, the largest being 1.

        ``emphasis`` multiplies that of each statement.
        """
        weights = np.zeros(len(self.columns))
        for one, error, more in zip(columns.statements, self.statements, emphasis, strict=True):
            own = list(one)
            divisor = len(own) * columns.sizes[own] * np.array(self.columns)[own]
            weights[own] += more / (divisor * error)
        weights[weights == 0] = weights[weights > 0].min()
        return np.asarray(weights / weights.max())


def balance_of(
    workload: Workload, objective: Objective, noise: Noise, clock: Clock
) -> tuple[Balance, StatementColumns] | None:
    """Find what the statements of a batch would have alone; None where there is one at most."""
    if len(workload.statements) < 2:
        if objective == "worst":
            raise UsageError("the worst statement can be planned for where there are several")
        return None
    if workload.shape[0] > EXPLICIT_QUERIES:
        return None
    columns = statement_columns(workload)
    if any(not one for one in columns.statements):
        return None
    search = Search(0, noise, clock.silent())
    parts = _Parts(workload.queries, columns)
    alone = [
        parts.error([column], [1.0], search) / int(size)
        for column, size in enumerate(columns.sizes)
    ]
    if not all(0 < one < math.inf for one in alone):
        return None
    errors = []
    for own in columns.statements:
        weights = [1.0 / (len(own) * int(columns.sizes[c]) * alone[c]) for c in own]
        errors.append(1.0 if len(own) == 1 else parts.error(own, weights, search))
    return Balance(objective, tuple(alone), tuple(errors)), columns


class _Parts:
    """The queries of some columns by themselves."""

    def __init__(self, queries: LinearMap, columns: StatementColumns) -> None:
        self._queries, self._columns = queries, columns
        if isinstance(queries, ProductMap):
            starts = [own.start for _, own in queries.term_slices()]
            self._terms = columns.of_row[starts]

    def error(self, some: Iterable[int], weights: Iterable[float], search: Search) -> float:
        """``‖B‖²·Δ²`` of the best strategy for some columns, with a weight for each."""
        of_column = np.zeros(len(self._columns.sizes))
        of_column[list(some)] = list(weights)
        if isinstance(self._queries, ProductMap):
            terms = np.flatnonzero(of_column[self._terms] > 0)
            batch, groups = _without_groups(self._queries.batch.take(terms))
            importance = of_column[self._terms[terms]]
            return groups * _product_error(batch, importance, search)
        rows = np.flatnonzero(of_column[self._columns.of_row] > 0)
        matrix = self._queries.sparse()[rows]
        return _flat_error(SparseMap(matrix), of_column[self._columns.of_row[rows]], search)


def _without_groups(batch: ProductBatch) -> tuple[ProductBatch, int]:
    """The queries of one group, and the number of groups by which all of them are.

    Groups are disjoint: each has the error that it has alone.
    """
    reduced = merge_values(batch).batch
    choice, count = reduced.choice.copy(), 1
    for i, choices in enumerate(reduced.factors):
        chosen = np.unique(choice[:, i])
        if len(chosen) == 1 and _is_identity(choices[int(chosen[0])]):
            choice[:, i] = 0
            count *= choices[int(chosen[0])].size
    if count == 1:
        return reduced, 1
    plain = ProductBatch(
        reduced.factors, choice, reduced.coefficients, reduced.term_of, reduced.weights
    )
    return merge_values(plain).batch, count


def _is_identity(factor: Factor) -> bool:
    if factor.kind == "identity":
        return factor.size > 1
    rows = factor.rows
    return (
        rows is not None
        and rows.shape[0] == rows.shape[1] > 1
        and np.array_equal(rows, np.eye(len(rows)))
    )


def _product_error(batch: ProductBatch, importance: Floats, search: Search) -> float:
    plain = ProductMap(batch)
    each = np.repeat(importance, batch.term_queries())
    if math.prod(batch.sizes) * plain.shape[0] <= LISTED:
        return _flat_error(SparseMap(plain.sparse()), each, search)
    return _searched(Workload(plain, importance=each), search)


def _flat_error(queries: SparseMap, importance: Floats, search: Search) -> float:
    rows, cells = queries.shape
    if rows * cells > LISTED:
        return _searched(Workload(queries, importance=importance), search)
    matrix = queries.dense() * np.sqrt(importance)[:, None]
    matrix = np.unique(matrix[:, np.any(matrix != 0, axis=0)], axis=1)
    if not matrix.size:
        return 0.0
    if np.all((matrix != 0).sum(axis=0) == 1):  # each record is in one answer: measure that
        return float((np.abs(matrix).max(axis=1) ** 2).sum())
    matrix = _corners(matrix)
    size = float(np.abs(matrix).max())
    rounded = np.round(matrix / size, 12) + 0.0
    return size**2 * _cached_error(search.noise, rounded.shape, rounded.tobytes())


def _corners(matrix: Floats) -> Floats:
    """The columns that are corners of the hull of ±columns: a strategy for them is one for all.

    Looked for among a few queries alone, where others are most.
    """
    rows, cells = matrix.shape
    if not 2 <= rows <= FEW_QUERIES or cells <= rows or np.linalg.matrix_rank(matrix) < rows:
        return matrix
    both = np.hstack([matrix, -matrix]).T
    try:
        hull = ConvexHull(both)
    except QhullError:
        return matrix
    return np.asarray(matrix[:, np.unique(hull.vertices % cells)])


@lru_cache(maxsize=512)
def _cached_error(noise: Noise, shape: tuple[int, int], data: bytes) -> float:
    """The error of a small matrix, which other statements and batches often share."""
    matrix = np.frombuffer(data, dtype=np.float64).reshape(shape)
    return _searched(Workload(matrix.copy()), Search(0, noise, Clock()))


def _searched(workload: Workload, search: Search) -> float:
    from lrm.plans.planner import plan_of  # noqa: PLC0415 - which divides errors by this module

    problem = Problem(workload)
    limited = Search(search.seed, search.noise, search.clock.part(ALONE_WORK))
    strategy = build_strategy("best", problem, limited, {"effort": "quick"})
    return plan_of(
        problem, strategy, noise=search.noise, bounds=(0.0, None)
    ).weighted_strategy_error
