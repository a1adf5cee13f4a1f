"""Answers that add up and count no negative number of rows, nearest to the released ones.

The released answers a are projected on the answers that tables without negative counts have,

    minimise Σ weight·(W·z − a)²   over tables z ≥ 0 that agree wherever they overlap.

The true tables are among them, so that the weighted sum of squared errors over the batch never
grows (the projection on a convex set that holds the truth). It may grow for one statement.

Few cells are one joint table. More are the tables that the statements are about, whose
cells are merged to those that the statements distinguish (`lrm.releases.cell_tables`); they
are found by an interior-point method (`lrm.releases.interior`). Many whole tables, and those that
form cycles, take ADMM in residual coordinates (`lrm.releases.residual_tables`). Where tables form a
cycle, one table of all attributes with these answers need not exist; tables of three attributes
that close cycles are added where they are small, which brings the answers closer to such a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lrm.errors import ConvergenceError, UsageError
from lrm.files.spelling import how_many
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.workload import Workload
from lrm.releases.cell_tables import (
    Axes,
    MergedTables,
    QueryTerm,
    batch_terms,
    closing_sets,
    largest_sets,
    merged_attributes,
    value_counts,
)
from lrm.releases.interior import nearest_counts
from lrm.releases.residual_tables import Coordinates, ResidualTables, WholeTables

JOINT_CELLS = 1024
"""Merged cells up to which one joint table is found (0.2 s)."""

INTERIOR_CELLS = 20_000
"""Cells of all tables up to which the interior-point method is used (2 s)."""

INTERIOR_ENTRIES = 2_000_000
"""Non-zero weights of all queries over them up to which it is used."""

CLOSING_CELLS = 100_000
"""Cells of tables that close cycles, all together (3 s)."""

NO_COUNT = 1e-10
"""Answers that are smaller than this share of the largest are 0."""

MOST_CELLS = 1 << 23
"""Cells of all tables together, up to which they are held (64 MB per copy)."""


CONTRADICTION = (
    "the known counts contradict each other: no table without negative counts has all of them; "
    "compare the totals that they have in common"
)


@dataclass(frozen=True, eq=False)
class KnownCounts:
    """Counts that are known exactly, such as published totals or impossible combinations.

    Values that are not known are NaN.
    """

    queries: Workload
    values: Floats


@dataclass(frozen=True, eq=False)
class ConsistentTable:
    """Counts by merged values of some attributes.

    Parameters
    ----------
    axes
        Numbers of the attributes.
    labels
        Of each attribute, the number of the merged value of every value.
    counts
        One count per combination of merged values.
    """

    axes: Axes
    labels: tuple[Integers, ...]
    counts: Floats


@dataclass(frozen=True, eq=False)
class ConsistentTables:
    """Tables that agree where they overlap, and the answers that they give."""

    answers: Floats
    tables: tuple[ConsistentTable, ...]

    def __post_init__(self) -> None:
        largest = max(1.0, float(np.abs(self.answers).max(initial=0.0)))
        self.answers[np.abs(self.answers) < NO_COUNT * largest] = 0.0


def consistent_answers(
    workload: Workload,
    answers: Floats,
    total: float | None = None,
    known: Sequence[KnownCounts] = (),
) -> Floats:
    """The answers of tables without negative counts that are nearest to the given ones.

    ``total`` is a number of rows that is known from elsewhere, and ``known`` are other counts
    over the same cells that the tables must have.

    >>> batch = Workload([[1, 1], [1, 0], [0, 1]])
    >>> consistent_answers(batch, np.array([9.0, 10.0, -4.0])).round(6).tolist()
    [9.5, 9.5, 0.0]
    """
    return consistent_tables(workload, answers, total, known).answers


def consistent_tables(
    workload: Workload,
    answers: Floats,
    total: float | None = None,
    known: Sequence[KnownCounts] = (),
) -> ConsistentTables:
    """The nearest tables without negative counts, and their answers."""
    if total is not None and not (math.isfinite(total) and total >= 0):
        raise UsageError("a known total must be a number of rows, which is not negative")
    with threadpool_limits(1):  # several threads of linear algebra wait for each other
        return _Problem.of(workload, answers, total, known).solution()


@dataclass(frozen=True, eq=False)
class _Problem:
    counts: tuple[int, ...]
    terms: list[QueryTerm]
    known: list[QueryTerm]

    @classmethod
    def of(
        cls,
        workload: Workload,
        answers: Floats,
        total: float | None,
        known: Sequence[KnownCounts],
    ) -> _Problem:
        terms = batch_terms(workload, answers, workload.importance)
        exact = [term for facts in known for term in batch_terms(facts.queries, facts.values)]
        if total is not None:
            exact.append(QueryTerm((), ((1.0, ()),), np.ones(1), np.array([float(total)])))
        return cls(value_counts(workload), terms, exact)

    @property
    def _every(self) -> list[QueryTerm]:
        return [*self.terms, *self.known]

    def solution(self) -> ConsistentTables:
        labels = merged_attributes(self.counts, self._every)
        sizes = tuple(int(each.max()) + 1 for each in labels)
        axes = tuple(sorted({i for term in self._every for i in term.axes}))
        if math.prod(sizes[i] for i in axes) <= JOINT_CELLS:
            return self._interior(MergedTables(self.counts, self._every, [axes]))
        sets = largest_sets([term.axes for term in self._every])
        whole = all(term.is_table for term in self._every)
        closing = _affordable(closing_sets(sets), sizes) if whole else []
        every = largest_sets([*sets, *closing])
        if closing and not any(np.any(np.isnan(term.answers)) for term in self.known):
            return self._whole(labels, sizes, every)  # 0.2 s where the other method takes 7 s
        tables = MergedTables(self.counts, self._every)
        if self._fits(tables):
            return self._interior(tables)
        return self._whole(labels, sizes, every)

    def _fits(self, tables: MergedTables) -> bool:
        if tables.cells > INTERIOR_CELLS:
            return False
        return tables.entry_count(self._every) <= INTERIOR_ENTRIES

    def _interior(self, tables: MergedTables) -> ConsistentTables:
        rows = tables.matrix(self._every)
        count = sum(len(term.answers) for term in self.terms)
        queries, exact = sp.csr_array(rows[:count]), sp.csr_array(rows[count:])
        values = np.concatenate([np.empty(0), *(term.answers for term in self.known)])
        possible = ~_empty_cells(exact, values)
        stated = np.flatnonzero(np.nan_to_num(values))
        agreement = tables.agreement()
        equations = sp.csr_array(sp.vstack([agreement, exact[stated]]))
        right = np.concatenate([np.zeros(agreement.shape[0]), values[stated]])
        counted = sp.vstack([queries, equations]).tocsr().indices
        possible &= np.bincount(counted, minlength=tables.cells) > 0
        queries, equations = (sp.csr_array(m[:, possible]) for m in (queries, equations))
        answers = np.concatenate([term.answers for term in self.terms])
        weights = np.concatenate([term.weights for term in self.terms])
        counts = np.zeros(np.count_nonzero(possible))
        if len(counts):
            try:
                counts = nearest_counts(queries, answers, weights, equations, right)
            except ConvergenceError as error:
                if _contradict(equations, right):
                    raise UsageError(CONTRADICTION) from error
                raise
        elif np.any(right):
            raise UsageError(CONTRADICTION)
        every = np.zeros(tables.cells)
        every[possible] = counts
        return ConsistentTables(
            np.asarray(queries @ counts),
            tuple(
                ConsistentTable(
                    table.axes,
                    table.labels,
                    every[table.start : table.start + table.size].reshape(table.shape),
                )
                for table in tables.tables
            ),
        )

    def _whole(
        self, labels: list[Integers], sizes: tuple[int, ...], sets: list[Axes]
    ) -> ConsistentTables:
        cells = sum(math.prod(sizes[i] for i in axes) for axes in sets)
        if cells > MOST_CELLS:
            raise UsageError(
                f"the tables that the statements are about have {how_many(cells)} cells, more "
                f"than the {MOST_CELLS:,} that consistent answers can be computed for; ask for "
                "consistent answers of a release with smaller tables"
            )
        merged = [term.merged([labels[i] for i in term.axes]) for term in self.terms]
        known = [term.merged([labels[i] for i in term.axes]) for term in self.known]
        coordinates = Coordinates(sizes, sets)
        fixed = _fixed([term for term in known if np.any(term.answers)], coordinates)
        tables_of_terms = [term.axes for term in merged]
        empty = [term for term in known if not np.any(term.answers)]
        impossible = _impossible(empty, sizes, [*sets, *tables_of_terms])
        answers, tables = WholeTables(sizes, merged, sets, fixed, impossible).nearest()
        return ConsistentTables(
            np.concatenate(answers),
            tuple(
                ConsistentTable(axes, tuple(labels[i] for i in axes), counts)
                for axes, counts in tables.items()
            ),
        )


def _affordable(sets: Sequence[Axes], sizes: Sequence[int]) -> list[Axes]:
    """All the sets where their tables are small enough together, else none."""
    cells = sum(math.prod(sizes[i] for i in axes) for axes in sets)
    return list(sets) if cells <= CLOSING_CELLS else []


def _empty_cells(rows: sp.csr_array, values: Floats) -> NDArray[np.bool_]:
    """Cells of which a query with positive weights and the known answer 0 counts any rows."""
    empty = np.zeros(rows.shape[1], dtype=bool)
    for row in np.flatnonzero(values == 0):
        part = slice(*rows.indptr[row : row + 2].tolist())
        if np.all(rows.data[part] >= 0):
            empty[rows.indices[part][rows.data[part] > 0]] = True
    return empty


def _contradict(equations: sp.csr_array, values: Floats) -> bool:
    """Whether no counts from 0 on satisfy the equations."""
    from scipy.optimize import linprog  # noqa: PLC0415 - 0.2 s, for those whose facts are wrong

    result = linprog(np.zeros(equations.shape[1]), A_eq=equations, b_eq=values)
    return bool(result.status == 2)  # "infeasible"


def _fixed(known: Sequence[QueryTerm], coordinates: Coordinates) -> tuple[Integers, Floats]:
    """The coordinates that known tables determine, and their values."""
    values = np.full(coordinates.count, np.nan)
    for term in known:
        if not term.is_table or np.any(np.isnan(term.answers)):
            raise UsageError(
                "in a batch of this size, known counts must be whole tables: one count for every "
                "combination of values of some attributes"
            )
        table = ResidualTables(coordinates, [term.axes])
        own = table.diagonal([1.0])
        some = own > 0
        stated = table.transpose(term.answers)[some] / own[some]
        differences = np.abs(values[some] - stated)
        if np.nanmax(differences, initial=0.0) > 1e-6 * max(1.0, float(term.answers.max())):
            raise UsageError(CONTRADICTION)
        values[some] = stated
    places = np.flatnonzero(~np.isnan(values))
    return places, values[places]


def _impossible(
    known: Sequence[QueryTerm], sizes: Sequence[int], sets: Sequence[Axes]
) -> dict[Axes, NDArray[np.bool_]]:
    """Cells of tables that are known to be empty."""
    masks: dict[Axes, NDArray[np.bool_]] = {}
    for term in known:
        shape = tuple(sizes[i] for i in term.axes)
        empty = term.transpose(np.ones(len(term.answers)), shape) > 0
        for axes in sets:
            if set(term.axes) <= set(axes):
                wide = [sizes[i] if i in term.axes else 1 for i in axes]
                mask = np.broadcast_to(empty.reshape(wide), [sizes[i] for i in axes])
                masks[axes] = masks.get(axes, np.zeros(mask.shape, dtype=bool)) | mask
    return masks
