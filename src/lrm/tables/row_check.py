"""How a table fits its domain, row by row: exact counts, for the data owner's eyes only.

A release cannot say why rows are missing. Who may read the table anyway can count, before any
budget is spent, how many rows each attribute would keep. Nothing here is private, and nothing of
it goes into a plan or a release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Attribute, Bins, Categories, Dates, Domain, Integers, Numbers, PrivacyUnit
from lrm.privacy.mechanism import shown_to_owner
from lrm.queries.maps.products.tabulation import Tabulation, total
from lrm.tables.base import Table

_KINDS = ("declared", "null", "nan", "outside", "unreadable")
_SPECIAL = {"(null)": 1, "(nan)": 2, "(other)": 3, "(below)": 3, "(above)": 3, "(invalid)": 4}
_ANY_NUMBER = 10**9


@dataclass(frozen=True)
class ValueCounts:
    """Rows by what they hold of one attribute, and whether its rules keep them.

    A text that is no declared category is ``outside``; one that is no number, date or boolean
    where one is declared is ``unreadable``.
    """

    name: str
    declared: int
    null: int
    nan: int
    outside: int
    unreadable: int
    kept: int


@dataclass(frozen=True)
class RowCheck:
    """Rows of a table, those in the domain, and each attribute alone.

    ``nobody`` are rows whose person is NULL or cannot be read; None where rows are protected.
    """

    rows: int
    counted: int
    nobody: int | None
    attributes: tuple[ValueCounts, ...]


def check_rows(table: Table, domain: Domain) -> RowCheck:
    """Count the rows of ``table`` as the rules of ``domain`` see them: exact, and not private."""
    every = tuple(map(_with_all_cells, domain.attributes))
    seen = Domain(every, domain.table, csv=domain.csv)
    kinds = list(map(_kinds, every))
    tables = [
        total(seen.shape),
        *(_by_kind(seen, place, value_kinds) for place, value_kinds in enumerate(kinds)),
    ]
    totals = shown_to_owner(table.counts(seen, tables))
    rows, start, by_kind = int(totals[0]), 1, []
    for value_kinds, counting in zip(kinds, tables[1:], strict=True):
        counts = [0] * len(_KINDS)
        for kind, count in zip(
            np.unique(value_kinds), totals[start : start + counting.size], strict=True
        ):
            counts[kind] = int(count)
        by_kind.append(counts)
        start += counting.size
    counted = shown_to_owner(table.counts(domain, [total(domain.shape)]))
    nobody = None
    if domain.unit.column is not None:
        persons = PrivacyUnit(domain.unit.column, _ANY_NUMBER)
        named = Domain(every, domain.table, persons, domain.csv)
        nobody = rows - int(shown_to_owner(table.counts(named, [total(named.shape)]))[0])
    attributes = map(_value_counts, domain.attributes, by_kind)
    return RowCheck(rows, int(counted[0]) >> domain.record_bits, nobody, tuple(attributes))


def _value_counts(attribute: Attribute, counts: list[int]) -> ValueCounts:
    declared, null, nan, outside, unreadable = counts
    counted = declared
    counted += null if attribute.null == "cell" else 0
    counted += nan if attribute.nan == "cell" else 0
    counted += outside + unreadable if attribute.outside == "cell" else 0
    counted += outside if attribute.outside == "clip" else 0
    return ValueCounts(attribute.name, declared, null, nan, outside, unreadable, counted)


def _kinds(attribute: Attribute) -> NDArray[np.int64]:
    """Which of `_KINDS` the values of each cell are."""
    kinds = np.zeros(attribute.size, dtype=np.int64)
    # Two truths leave nothing to be outside of them.
    truth = isinstance(attribute, Categories) and attribute.value_type == "boolean"
    for label, kind in _SPECIAL.items():
        cell = attribute.special_cell(label)
        if cell is not None:
            kinds[cell] = 4 if truth and label == "(other)" else kind
    return kinds


def _by_kind(domain: Domain, place: int, kinds: NDArray[np.int64]) -> Tabulation:
    """Rows by the kind of one attribute's value, those kinds alone that it has cells for."""
    labels = [np.zeros(size, dtype=np.int64) for size in domain.shape]
    labels[place] = np.searchsorted(np.unique(kinds), kinds)
    return Tabulation(tuple(labels), by=(place,))


def _with_all_cells(attribute: Attribute) -> Attribute:
    """An attribute of these values, with a cell for everything that is not declared."""
    if isinstance(attribute, Categories):
        spellings = dict(attribute.spellings or ())
        return Categories(attribute.name, attribute.values, spellings, null="cell", outside="cell")
    if isinstance(attribute, Dates):
        span = (attribute.start, attribute.end, attribute.by)
        return Dates(attribute.name, *span, time=attribute.time, null="cell", outside="cell")
    if isinstance(attribute, Numbers):
        ends = (attribute.knots[0], math.nextafter(attribute.knots[-1], math.inf))
        return Bins(attribute.name, ends, null="cell", nan="cell", outside="cell")
    if isinstance(attribute, Bins):
        return Bins(attribute.name, attribute.edges, null="cell", nan="cell", outside="cell")
    assert isinstance(attribute, Integers)  # noqa: S101 - all kinds of attribute are above
    span_of = (attribute.low, attribute.high, attribute.width)
    return Integers(attribute.name, *span_of, null="cell", nan="cell", outside="cell")
