"""Statements planned alone: what each would have under an even split of the budget.

With S statements, an even split gives each of them an S-th of the budget. For Laplace noise that is
S² times its squared error alone, for Gaussian noise S times (ρ adds up). The error of a statement
is the mean over its C columns of the mean squared error of the column, each relative to that of the
column planned alone, a_c, so that counts and sums of money count alike. With E_s of the statement
planned alone, its goal has ``G_sc = 1/(C·a_c·E_s·S²)``.

Importances c_s divide the budget unevenly: ``Σ c_s·r_s²``, with ``r_s = 1/(S·σ_s)`` under shares σ
of the budget (``r_s² = 1/(S·σ_s)`` for Gaussian noise), is least for ``σ_s ∝ c_s^⅓`` (``c_s^½``).
Statements are then compared with that split, and its shares take the place of 1/S in the formula.

Groups are disjoint, so that a statement has the error of one of them; cells that its queries do not
distinguish are merged. What is left is often a table of one cell, or the same small matrix as that
of another statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from lrm.clock import UNLIMITED, Clock
from lrm.errors import UsageError
from lrm.planning.plan.goals import Goals, Objective
from lrm.planning.solvers.hulls import list_facets
from lrm.planning.strategies import build_strategy
from lrm.planning.strategies.base import Problem, Search
from lrm.privacy.norms import Norm
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.values import KnownMerges, merge_values
from lrm.queries.workload import Workload
from lrm.queries.workload.columns import StatementColumns, statement_columns
from lrm.queries.workload.core import EXPLICIT_QUERIES

LISTED = 1 << 16
"""Weights of a statement's reduced queries up to which they are searched as one matrix."""


def even_split(
    workload: Workload,
    objective: Objective,
    norm: Norm,
    importances: tuple[float, ...] | None = None,
    clock: Clock = UNLIMITED,
) -> Goals | None:
    """The errors of statements compared with an even split; None for fewer than two of them.

    ``importances``, one per statement, divide the budget unevenly.
    """
    if len(workload.statements) < 2:
        if objective == "worst":
            raise UsageError("the worst statement can be planned for where there are several")
        return None
    if workload.shape[0] > EXPLICIT_QUERIES:
        return None
    columns = statement_columns(workload)
    if any(not members for members in columns.statements):
        return None
    search = Search(0, norm, clock.silent())
    parts = _ColumnQueries(workload, columns)
    alone = [
        parts.error([column], [1.0], search) / int(size)
        for column, size in enumerate(columns.sizes)
    ]
    if not all(error < math.inf for error in alone) or not any(alone):
        return None
    count = len(columns.statements)
    importance = np.ones(count) if importances is None else np.array(importances)
    budget = importance ** (1.0 / (norm.power + 1))
    split = (budget.sum() / budget) ** norm.power
    shares = sp.lil_array((count, len(alone)))
    for statement, of_statement in enumerate(columns.statements):
        members = [c for c in of_statement if alone[c] > 0]  # the others are 0 for every table
        if not members:
            continue
        weights = np.array(
            [1.0 / (len(members) * int(columns.sizes[c]) * alone[c]) for c in members]
        )
        error = 1.0 if len(members) == 1 else parts.error(members, weights, search)
        shares[statement, members] = weights * columns.sizes[members] / (error * split[statement])
    even = split / split.max()
    return Goals(objective, workload, columns, sp.csr_array(shares), None, None, importances, even)


def statement_importances(workload: Workload) -> tuple[float, ...] | None:
    """The importance of each statement; None where there are none, or several in one statement."""
    if workload.importance is None or len(workload.statements) < 2:
        return None
    columns = statement_columns(workload)
    means = columns.means(workload.importance)
    if not np.allclose(means[columns.of_row], workload.importance):
        return None
    if any(not members for members in columns.statements):
        return None
    return tuple(float(means[list(members)].mean()) for members in columns.statements)


class _ColumnQueries:
    """The queries of some columns by themselves."""

    def __init__(self, workload: Workload, columns: StatementColumns) -> None:
        self._queries, self._products = workload.queries, workload.products
        self._columns = columns
        self._merges: KnownMerges = {}
        if self._products is not None:
            starts = [rows.start for _, rows in self._products.term_slices()]
            self._terms = columns.of_row[starts]

    def error(self, some: Iterable[int], weights: Iterable[float], search: Search) -> float:
        """``‖B‖²·Δ²`` of the best strategy for some columns, with a weight for each."""
        of_column = np.zeros(len(self._columns.sizes))
        of_column[list(some)] = list(weights)
        if self._products is not None:
            terms = np.flatnonzero(of_column[self._terms] > 0)
            batch, groups = _without_groups(self._products.batch.take(terms), self._merges)
            importance = np.repeat(of_column[self._terms[terms]], batch.term_queries)
            return groups * _error(ProductMap(batch), importance, search)
        rows = np.flatnonzero(of_column[self._columns.of_row] > 0)
        matrix = self._queries.sparse()[rows]
        return _error(SparseMap(matrix), of_column[self._columns.of_row[rows]], search)


def _without_groups(batch: ProductBatch, known: KnownMerges) -> tuple[ProductBatch, int]:
    """The queries of one group, and the number of groups by which all of them are.

    Groups are disjoint: each has the error that it has alone.
    """
    reduced = merge_values(batch, known).batch
    choice, count = reduced.choice.copy(), 1
    for i, choices in enumerate(reduced.factors):
        chosen = np.unique(choice[:, i])
        if len(chosen) == 1 and _is_identity(choices[int(chosen[0])]):
            choice[:, i] = 0
            count *= choices[int(chosen[0])].shape[1]
    if count == 1:
        return reduced, 1
    plain = ProductBatch(
        reduced.factors, choice, reduced.coefficients, reduced.term_of, reduced.weights
    )
    return merge_values(plain).batch, count


def _is_identity(factor: LinearMap) -> bool:
    rows, cells = factor.shape
    if rows != cells or cells == 1:
        return False
    return factor.kind == "identity" or (
        cells * cells <= LISTED and np.array_equal(factor.dense(), np.eye(cells))
    )


def _error(queries: LinearMap, importance: Floats, search: Search) -> float:
    if math.prod(queries.shape) <= LISTED:
        return _matrix_error(queries.dense() * np.sqrt(importance)[:, None], search.norm)
    return _searched(Workload(queries, importance=importance), search)


def _matrix_error(matrix: Floats, norm: Norm) -> float:
    matrix = np.unique(matrix[:, np.any(matrix != 0, axis=0)], axis=1)
    if not matrix.size:
        return 0.0
    if np.all((matrix != 0).sum(axis=0) == 1):  # each record is in one answer: measure that
        return float((np.abs(matrix).max(axis=1) ** 2).sum())
    matrix = _corners(matrix)
    size = float(np.abs(matrix).max())
    rounded = np.round(matrix / size, 12) + 0.0
    return size**2 * _cached_error(norm, rounded.shape, rounded.tobytes())


def _corners(matrix: Floats) -> Floats:
    """The columns that are corners of the hull of ±columns: a strategy for them is one for all.

    Looked for among a few queries alone, where others are most.
    """
    rows, cells = matrix.shape
    # Queries among whose columns corners are looked for.
    if not 2 <= rows <= 4 or cells <= rows or np.linalg.matrix_rank(matrix) < rows:
        return matrix
    facets = list_facets(matrix.T)
    return matrix if facets is None else np.asarray(matrix[:, np.unique(np.abs(facets)) - 1])


@lru_cache(maxsize=512)
def _cached_error(norm: Norm, shape: tuple[int, int], data: bytes) -> float:
    """The error of a small matrix, which other statements and batches often share."""
    matrix = np.frombuffer(data, dtype=np.float64).reshape(shape)
    return _searched(Workload(matrix.copy()), Search(0, norm, Clock()))


def _searched(workload: Workload, search: Search) -> float:
    problem = Problem(workload)
    # Counted seconds of the search for one statement alone.
    limited = Search(search.seed, search.norm, search.clock.part(0.2))
    strategy = build_strategy("best", problem, limited, {"effort": "quick"})
    assert strategy.record is not None  # noqa: S101 - one that was searched for
    return strategy.record.error
