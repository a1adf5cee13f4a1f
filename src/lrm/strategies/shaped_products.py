"""Bodies for tables of one or more attributes each, over a product of any size.

Tables any two of which have the same attributes in common are measured with the noise of their hull
(`Tables` where they have none, else `SharedTables`): one-way tables, or A×B, A×C and A×D. A batch
of tables is divided into such groups with shares of ε, and answers come from all groups by
generalised least squares. Cells of the product are never listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import ConvergenceError
from lrm.exact.measured import Measured
from lrm.exact.reconstruction import Reconstruction
from lrm.exact.rounding import DEFAULT_MAX_RECORDS, most_bits
from lrm.exact.shaped import product_rows, table_places, table_rows
from lrm.maps.linear import Floats
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.values import merge_values
from lrm.privacy.bodies.shared import SharedTables, shared_attributes
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import Noise
from lrm.strategies.base import Problem, Search
from lrm.strategies.shaped_tables import GroupErrors, Grouping, TableGroups, partitions_of

Attributes = tuple[int, ...]

MOST_TABLE_CELLS = 400
"""Cells of all tables for which a body is looked for: a second for their covariances."""

MOST_CHOICES = 1 << 22
"""Products of a batch times attributes that are looked at."""

MOST_CENTRES = 12
"""Attributes whose tables are tried as a group of their own."""

MOST_STEPS = 200
"""Other places of one table that are tried."""


@dataclass(frozen=True, eq=False)
class TablesChoice:
    """Tables of attributes, and a body for their noise; members as in `ShapedChoice`."""

    mechanism: str
    labels: tuple[NDArray[np.int64], ...]
    tables: tuple[Attributes, ...]
    shape: TableGroups
    error: float
    exact: bool = True
    is_simulated: bool = False
    least_error: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def is_one_way(self) -> bool:
        """Whether each table has one attribute."""
        return all(len(table) == 1 for table in self.tables)

    def rounded(
        self, problem: Problem, noise: Noise, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        """The integers that will be measured, with their body, and how answers follow."""
        del noise
        bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
        measured = Measured.of_tables(self.labels, self.tables, bits, self.shape.body(1 << bits))
        reconstruction = measured.reconstruction_of(problem.workload.queries)
        if reconstruction is None:
            raise ConvergenceError("the tables do not answer the queries")
        return measured, reconstruction


def tables_strategy(
    problem: Problem, search: Search, laplace_error: float, worth: float = 0.998
) -> TablesChoice | None:
    """Tables for a batch over a product of any size; None where Laplace noise is as good.

    Parameters
    ----------
    problem, search
        The workload, and the search settings.
    laplace_error
        Half of the expected total squared error at ε = 1 of the best Laplace strategy.
    worth
        The error must be below this share of it.
    """
    batch = problem.products
    if batch is None or batch.choice.size > MOST_CHOICES:
        return None
    labels = merge_values(batch).labels
    sizes = [int(marks.max()) + 1 for marks in labels]
    tables = _largest_sets(batch, sizes)
    if sum(math.prod(sizes[i] for i in table) for table in tables) > MOST_TABLE_CELLS:
        return None
    rows = table_rows(batch, labels, tables) if tables else None
    if rows is None:
        return None
    weighted = rows * np.repeat(batch.weights, batch.term_queries)[:, None]
    groups = _TableSearch(np.asarray(np.linalg.qr(weighted, mode="r")), tables, sizes)
    best = groups.best(search)
    if best is None or not best.error < worth * laplace_error:
        return None
    details = {
        "winner": "tables",
        "candidates": [{"name": "tables", "error": best.error, "iterations": 0}],
        "effort": "quick",
        "interrupted": False,
    }
    ordered_tables = tuple(groups.tables[i] for i in best.order)
    return TablesChoice("best", labels, ordered_tables, best.shape, best.error, details=details)


def _largest_sets(batch: ProductBatch, sizes: Sequence[int]) -> list[Attributes]:
    """The sets of attributes that products of the batch count by, without those within others."""
    kept = np.unique((batch.choice != 0) & (np.array(sizes) > 1), axis=0)
    sets = sorted({tuple(np.flatnonzero(row).tolist()) for row in kept}, key=len, reverse=True)
    largest: list[Attributes] = []
    for attributes in sets:
        if attributes and not any(set(attributes) <= set(other) for other in largest):
            if math.prod(sizes[i] for i in attributes) > MOST_TABLE_CELLS:
                return []
            largest.append(attributes)
    return sorted(largest)


class _TableSearch:
    """Partitions of the tables of a batch into groups, and larger tables in place of some."""

    def __init__(self, target: Floats, tables: list[Attributes], sizes: Sequence[int]) -> None:
        self.tables, self._sizes, self._asked = list(tables), sizes, len(tables)
        self._places = table_places(tables, sizes)
        self._errors = GroupErrors(target, self._group_of)

    def best(self, search: Search) -> Grouping | None:
        """The partition of least error that is found, with its best shares."""
        best = self._errors.best(self._partitions(), search.clock)
        if best is None:
            return None
        steps = iter(range(MOST_STEPS))
        while not search.clock.ended:
            nearby = [partition for partition, _ in zip(self._moves(best.groups), steps)]  # noqa: B905
            other = self._errors.best(nearby, search.clock)
            if other is None or not other.error < best.error * (1 - 1e-9):
                break
            best = other
        return self._errors.with_better_shares(best)

    def _cells(self, table: Attributes) -> int:
        return math.prod(self._sizes[i] for i in table)

    def _group_of(self, group: Sequence[int]) -> tuple[Floats, Tables | SharedTables]:
        """Rows of a group by the coordinates of the batch, then by those of larger tables."""
        tables = [self.tables[i] for i in group]
        places = table_places([*self.tables[: self._asked], *tables], self._sizes)
        parts = [product_rows({i: np.eye(self._sizes[i]) for i in t}, places) for t in tables]
        rows = np.vstack(parts)
        further = [places[subset] for subset in places if subset not in self._places]
        order = [places[subset] for subset in self._places] + further
        rows = np.hstack([rows[:, place] for place in order])
        if len(tables) == 1 or not shared_attributes(tables):
            sizes = tuple(self._cells(table) for table in tables)
            return rows, Tables(sizes, (True,) * len(sizes), 1)
        return rows, SharedTables(
            tuple(tuple((i, self._sizes[i]) for i in table) for table in tables), 1
        )

    def _fits(self, group: Sequence[int]) -> bool:
        return len(group) == 1 or shared_attributes([self.tables[i] for i in group]) is not None

    def _packed(self, numbers: Sequence[int]) -> list[list[int]]:
        """Tables in few groups, small ones first, each in the first that it fits into."""
        groups: list[list[int]] = []
        for i in sorted(numbers, key=lambda i: self._cells(self.tables[i])):
            group = next((group for group in groups if self._fits([*group, i])), None)
            if group is None:
                groups.append([i])
            else:
                group.append(i)
        return groups

    def _partitions(self) -> Iterator[list[list[int]]]:
        """All tables, as they are or `_joined`, in few groups, with parts of the first by size.

        Further, the tables of one attribute, and the others joined.
        """
        numbers = range(self._asked)
        for tables in (numbers, self._joined(numbers)):
            first, *others = self._packed(tables)
            for parts in partitions_of([self._cells(self.tables[i]) for i in first]):
                yield [[first[place] for place in part] for part in parts] + others
        counts = np.bincount([i for number in numbers for i in self.tables[number]])
        for centre in np.argsort(-counts, kind="stable")[:MOST_CENTRES].tolist():
            own = [i for i in numbers if centre in self.tables[i]]
            rest = [i for i in numbers if centre not in self.tables[i]]
            if len(own) > 1 and rest:
                yield self._packed(own) + self._packed(self._joined(rest))

    def _joined(self, numbers: Sequence[int]) -> list[int]:
        """One table of all attributes in place of tables that are connected by common ones."""
        unions: list[set[int]] = []
        for number in numbers:
            union = set(self.tables[number])
            for other in [other for other in unions if other & union]:
                unions.remove(other)
                union |= other
            unions.append(union)
        if sum(self._cells(tuple(union)) for union in unions) > MOST_TABLE_CELLS:
            return list(numbers)
        joined = [tuple(sorted(union)) for union in unions]
        self.tables += [table for table in joined if table not in self.tables]
        return [self.tables.index(table) for table in joined]

    def _moves(self, groups: list[list[int]]) -> Iterator[list[list[int]]]:
        """One table moved to another group, or to one of its own; of those of one size, the first.

        They are alike where they have no attributes in common with others.
        """
        known = set()
        for source, group in enumerate(groups):
            for i in group:
                left = [number for number in group if number != i]
                for target in range(len(groups) + 1):
                    move = source, self._cells(self.tables[i]), target
                    into = [*(groups[target] if target < len(groups) else []), i]
                    if target == source or move in known or not self._fits(into):
                        continue
                    known.add(move)
                    moved = [g for g in groups[:target] + groups[target + 1 :] if g is not group]
                    yield [g for g in [*moved, left, into] if g]
