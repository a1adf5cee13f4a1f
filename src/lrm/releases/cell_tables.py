"""Batches as queries over tables of merged cells, which overlap in some of their attributes.

A term of a batch concerns the table of a few attributes. Tables that lie in others are left out,
and of each attribute a table distinguishes only the values that its queries distinguish. Two tables
agree where the sums of their cells over the attributes and values that both have are the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from lrm.queries.maps.kron import along
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.workload import Workload

Axes = tuple[int, ...]
"""Numbers of attributes, ascending."""

Product = tuple[float, tuple[LinearMap, ...]]
"""A coefficient and one factor per axis."""


@dataclass(frozen=True, eq=False)
class QueryTerm:
    """Queries over the table of some axes, each a sum of products, with their answers."""

    axes: Axes
    products: tuple[Product, ...]
    weights: Floats  # of the squared error of each query
    answers: Floats

    def apply(self, table: Floats) -> Floats:
        """The answers of a table with the axes of the term."""
        total: Floats | float = 0.0
        for coefficient, factors in self.products:
            part = table
            for k, factor in enumerate(factors):
                part = along(part, k, factor.apply)
            total = total + coefficient * part
        return np.asarray(total).reshape(-1)

    def transpose(self, values: Floats, shape: tuple[int, ...]) -> Floats:
        """The transposed map of `apply`."""
        total: Floats | float = 0.0
        for coefficient, factors in self.products:
            part = values.reshape([len(factor) for factor in factors])
            for k, factor in enumerate(factors):
                part = along(part, k, factor.apply_transpose)
            total = total + coefficient * part
        return np.asarray(total).reshape(shape)

    @cached_property
    def is_table(self) -> bool:
        """Whether the queries are the cells of the table, with equal weights."""
        (coefficient, factors), *more = self.products
        if more or coefficient != 1.0 or not all(f.kind == "identity" for f in factors):
            return False
        return bool(np.all(self.weights == self.weights[0]))

    def merged(self, labels: Sequence[Integers]) -> QueryTerm:
        """The same queries over merged values of each axis."""
        sizes = [int(each.max()) + 1 for each in labels]
        merged = tuple(
            (
                coefficient,
                tuple(
                    factor.merged_columns(each, size)
                    for factor, each, size in zip(factors, labels, sizes, strict=True)
                ),
            )
            for coefficient, factors in self.products
        )
        return QueryTerm(self.axes, merged, self.weights, self.answers)

    def entry_count(self, labels: Sequence[Integers]) -> int:
        """Non-zero weights of the queries over merged values, at most."""
        return sum(
            math.prod(
                min(len(factor) * (int(each.max()) + 1), factor.entry_count)
                for factor, each in zip(factors, labels, strict=True)
            )
            for _, factors in self.products
        )


def batch_terms(
    workload: Workload, answers: Floats, importance: Floats | None = None
) -> list[QueryTerm]:
    """The terms of a batch with their answers; a list of cells is one term of one axis."""
    weights = importance if importance is not None else np.ones(len(answers))
    if workload.products is None:
        return [QueryTerm((0,), ((1.0, (workload.queries,)),), weights, answers)]
    batch = workload.products.batch
    terms, begin = [], 0
    for term, end in enumerate(batch.term_ends.tolist()):
        numbers = batch.summand_numbers(term)
        axes = tuple(np.flatnonzero(batch.choice[numbers].any(axis=0)).tolist())
        products = tuple(
            (
                float(batch.coefficients[s]),
                tuple(batch.factors[i][batch.choice[s, i]] for i in axes),
            )
            for s in numbers.tolist()
        )
        rows = slice(begin, end)
        terms.append(QueryTerm(axes, products, weights[rows], answers[rows]))
        begin = end
    return terms


def value_counts(workload: Workload) -> tuple[int, ...]:
    """Number of values of each axis of `batch_terms`."""
    if workload.products is None:
        return (workload.shape[1],)
    return workload.products.batch.sizes


def largest_sets(sets: Sequence[Axes]) -> list[Axes]:
    """The sets of axes that lie in no other, without repetition.

    >>> largest_sets([(0,), (0, 1), (1, 2), (1, 0)[::-1]])
    [(0, 1), (1, 2)]
    """
    largest: list[Axes] = []
    for axes in sorted(set(sets), key=lambda axes: (-len(axes), axes)):
        if not any(set(axes) <= set(other) for other in largest):
            largest.append(axes)
    return largest


def closing_sets(sets: Sequence[Axes]) -> list[Axes]:
    """Three axes each, every two of which lie in one of the sets: they close a cycle of tables.

    >>> closing_sets([(0, 1), (1, 2), (0, 2), (2, 3)])
    [(0, 1, 2)]
    """
    pairs = {pair for axes in sets for pair in itertools.combinations(axes, 2)}
    followers: dict[int, set[int]] = {}
    for low, high in pairs:
        followers.setdefault(low, set()).add(high)
    triples = sorted(
        (a, b, c) for a, b in pairs for c in followers.get(a, set()) & followers.get(b, set())
    )
    return [t for t in triples if not any(set(t) <= set(axes) for axes in sets if len(axes) > 2)]


def merged_values(factors: Sequence[LinearMap], size: int) -> Integers:
    """Numbers of the values of an attribute, equal for values that no factor distinguishes."""
    labels = np.zeros(size, dtype=np.int64)
    for factor in factors:
        if factor.kind != "total":
            labels = refined(labels, factor.column_labels)
    return labels


def merged_attributes(counts: Sequence[int], terms: Sequence[QueryTerm]) -> list[Integers]:
    """Merged values of each attribute: those that no query distinguishes have one number."""
    factors: list[dict[int, LinearMap]] = [{} for _ in counts]
    for term in terms:
        for _, product in term.products:
            for i, factor in zip(term.axes, product, strict=True):
                factors[i][id(factor)] = factor
    return [
        merged_values(list(each.values()), count)
        for each, count in zip(factors, counts, strict=True)
    ]


def refined(labels: Integers, others: Integers) -> Integers:
    """The classes of values that are alike in both labellings."""
    keys = labels * (int(others.max()) + 1) + others
    numbers: Integers = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def _classes(labels: Integers) -> int:
    return int(labels.max()) + 1


@dataclass(frozen=True, eq=False)
class MergedTable:
    """A table of some axes with merged values, and where its cells are among all cells."""

    axes: Axes
    labels: tuple[Integers, ...]
    start: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of merged values of each axis."""
        return tuple(_classes(each) for each in self.labels)

    @cached_property
    def size(self) -> int:
        """Number of its merged cells."""
        return math.prod(self.shape)

    def labels_of(self, axis: int) -> Integers:
        """Numbers of the merged values of an axis."""
        return self.labels[self.axes.index(axis)]


class MergedTables:
    """Tables for the terms of a batch, each in the smallest table that has its axes.

    Where the merged values of an attribute overlap in two tables, as weeks and months do, both
    must agree with one that distinguishes the values of either: a table of that attribute alone
    where they have no other attribute in common, else themselves.
    """

    def __init__(
        self, counts: Sequence[int], terms: Sequence[QueryTerm], further: Sequence[Axes] = ()
    ) -> None:
        sets = largest_sets([*(term.axes for term in terms), *further])
        sizes = [math.prod(counts[i] for i in axes) for axes in sets]
        self.term_tables = []
        for term in terms:
            places = [k for k, axes in enumerate(sets) if set(term.axes) <= set(axes)]
            self.term_tables.append(min(places, key=lambda k: sizes[k]))
        labels = self._nested(counts, sets, terms)
        self.tables: list[MergedTable] = []
        start = 0
        for axes in sets:
            table = MergedTable(axes, tuple(labels[axes][i] for i in axes), start)
            self.tables.append(table)
            start += table.size
        for i, finest in self._hubs(labels):
            self.tables.append(MergedTable((i,), (finest,), start))
            start += self.tables[-1].size
        self.cells = start

    @staticmethod
    def _hubs(labels: dict[Axes, dict[int, Integers]]) -> Iterator[tuple[int, Integers]]:
        """Attributes whose merged values overlap, with the values that any table distinguishes."""
        for i in sorted({i for axes in labels for i in axes}):
            several = {id(own[i]): own[i] for own in labels.values() if i in own}
            finest = next(iter(several.values()))
            for other in several.values():
                finest = refined(finest, other)
            if _classes(finest) > max(map(_classes, several.values())):
                yield i, finest

    def _nested(
        self, counts: Sequence[int], sets: Sequence[Axes], terms: Sequence[QueryTerm]
    ) -> dict[Axes, dict[int, Integers]]:
        """Merged values by table and axis; of two tables, one distinguishes all that both do."""
        factors: dict[tuple[int, int], dict[int, LinearMap]] = {}
        for term, k in zip(terms, self.term_tables, strict=True):
            for _, product in term.products:
                for i, factor in zip(term.axes, product, strict=True):
                    factors.setdefault((k, i), {})[id(factor)] = factor
        known: dict[tuple[int, frozenset[int]], Integers] = {}
        labels: dict[Axes, dict[int, Integers]] = {axes: {} for axes in sets}
        for k, axes in enumerate(sets):
            for i in axes:
                choices = factors.get((k, i), {})
                key = i, frozenset(choices)
                if key not in known:
                    known[key] = merged_values(list(choices.values()), counts[i])
                labels[axes][i] = known[key]
        asked = [sets[k] for k in sorted(set(self.term_tables))]
        for i in sorted({i for axes in sets for i in axes}):
            _make_nested(labels, [axes for axes in asked if i in axes], i)
        for axes in set(sets) - set(asked):
            labels[axes] = _neighbours(labels, asked, axes)
        return labels

    def matrix(self, terms: Sequence[QueryTerm]) -> sp.csr_array:
        """The queries of all terms over all cells."""
        blocks = []
        for term, k in zip(terms, self.term_tables, strict=True):
            table = self.tables[k]
            own = term.merged([table.labels_of(i) for i in term.axes])
            blocks.append(
                placed(term_matrix(own, table.axes, table.shape), table.start, self.cells)
            )
        return sp.csr_array(sp.vstack(blocks))

    def entry_count(self, terms: Sequence[QueryTerm]) -> int:
        """Non-zero weights of `matrix`, at most."""
        count = 0
        for term, k in zip(terms, self.term_tables, strict=True):
            table = self.tables[k]
            summed = math.prod(
                n for i, n in zip(table.axes, table.shape, strict=True) if i not in term.axes
            )
            count += summed * term.entry_count([table.labels_of(i) for i in term.axes])
        return count

    def agreement(self) -> sp.csr_array:
        """Equations that hold where the tables agree, those left out that follow from others."""
        links = sorted(
            (self._link(s, t) for s, t in itertools.combinations(range(len(self.tables)), 2)),
            key=lambda link: (-len(link.axes), -link.size),
        )
        blocks = [sp.csr_array((0, self.cells))]
        used: list[_Link] = []
        for link in links:
            if linked(used, link):
                continue
            used.append(link)
            first, second = (self.tables[k] for k in link.tables)
            blocks.append(
                placed(_summed(first, link), first.start, self.cells)
                - placed(_summed(second, link), second.start, self.cells)
            )
        return sp.csr_array(sp.vstack(blocks))

    def _link(self, s: int, t: int) -> _Link:
        first, second = self.tables[s], self.tables[t]
        common = tuple(i for i in first.axes if i in second.axes)
        labels = tuple(_coarser(first.labels_of(i), second.labels_of(i)) for i in common)
        return _Link((s, t), common, labels)


@dataclass(frozen=True, eq=False)
class _Link:
    """What two tables have in common: axes, and the coarser merged values of each."""

    tables: tuple[int, int]
    axes: Axes
    labels: tuple[Integers, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(_classes(each) for each in self.labels)

    def implies(self, other: _Link) -> bool:
        """Whether the tables of the other agree where those of this link do."""
        if not set(other.axes) <= set(self.axes):
            return False
        return all(
            _classes(self.labels[self.axes.index(i)]) >= _classes(each)
            for i, each in zip(other.axes, other.labels, strict=True)
        )


def _coarser(first: Integers, second: Integers) -> Integers:
    """The merged values that are unions of those of both; a single one where these overlap."""
    coarse, fine = sorted((first, second), key=_classes)
    if _classes(refined(first, second)) > _classes(fine):
        return np.zeros_like(coarse)  # a table of this attribute alone says the rest
    return coarse


def linked(links: Sequence[_Link], new: _Link) -> bool:
    """Whether a link follows from a chain of others."""
    reached, waiting = {new.tables[0]}, [new.tables[0]]
    edges = [link.tables for link in links if link.implies(new)]
    while waiting:
        place = waiting.pop()
        for s, t in edges:
            for near, far in ((s, t), (t, s)):
                if near == place and far not in reached:
                    reached.add(far)
                    waiting.append(far)
    return new.tables[1] in reached


def _make_nested(
    labels: dict[Axes, dict[int, Integers]], holders: Sequence[Axes], axis: int
) -> None:
    changed = True
    while changed:
        changed = False
        for one, other in itertools.combinations(holders, 2):
            first, second = labels[one][axis], labels[other][axis]
            if first is second or len(set(one) & set(other)) == 1:
                continue
            both = refined(first, second)
            if _classes(both) > max(_classes(first), _classes(second)):
                labels[one][axis] = labels[other][axis] = both
                changed = True


def _neighbours(
    labels: dict[Axes, dict[int, Integers]], asked: Sequence[Axes], axes: Axes
) -> dict[int, Integers]:
    """Merged values of a table without queries: those that its neighbours distinguish."""
    merged = dict(labels[axes])
    for other in asked:
        common = set(other) & set(axes)
        if len(common) > 1:
            for i in common:
                merged[i] = refined(merged[i], labels[other][i])
    return merged


def term_matrix(term: QueryTerm, axes: Axes, shape: tuple[int, ...]) -> sp.csr_array:
    """The queries of a term over the cells of a table, whose further axes are summed out."""
    total: sp.csr_array | None = None
    for coefficient, factors in term.products:
        part = sp.csr_array([[coefficient]])
        by_axis = dict(zip(term.axes, factors, strict=True))
        for i, size in zip(axes, shape, strict=True):
            factor = by_axis[i].sparse() if i in by_axis else sp.csr_array(np.ones((1, size)))
            part = sp.csr_array(sp.kron(part, factor, format="csr"))
        total = part if total is None else sp.csr_array(total + part)
    if total is None:
        raise ValueError("a term has no products")
    return total


def _summed(table: MergedTable, link: _Link) -> sp.csr_array:
    """The sums of a table over the cells that a link names."""
    part = sp.csr_array([[1.0]])
    by_axis = dict(zip(link.axes, link.labels, strict=True))
    for i, labels, size in zip(table.axes, table.labels, table.shape, strict=True):
        if i not in by_axis:
            factor = sp.csr_array(np.ones((1, size)))
        else:
            coarse = np.zeros(size, dtype=np.int64)
            coarse[labels] = by_axis[i]
            factor = sp.csr_array(
                (np.ones(size), (coarse, np.arange(size))), shape=(_classes(by_axis[i]), size)
            )
        part = sp.csr_array(sp.kron(part, factor, format="csr"))
    return part


def placed(matrix: sp.csr_array, start: int, cells: int) -> sp.csr_array:
    """A matrix over some of the cells as one over all."""
    return sp.csr_array(
        (matrix.data, matrix.indices + start, matrix.indptr), shape=(matrix.shape[0], cells)
    )
