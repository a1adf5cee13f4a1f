"""What an engine counts: the values that distinguish rows, and the entries to which a row adds 1.

A row is seen as a few whole numbers, its *words*. Counts of all cells need one word, the number of
the row's cell; tabulations need one word per attribute, as the cells of a product may be far too
many for a number of 64 bits. Compared word by word, rows are in the order of their cells either
way, so that the same rows of a person are chosen. Of numbers by knots a word is the position, and
a row is divided into pieces (`lrm.tables.shares`) before its entries are found.

An entry is a place among the counts that leave the engine. A row has one entry in each marginal,
found from its words, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Bins, Domain, Numbers
from lrm.errors import TableError
from lrm.queries.maps.products.tabulation import NOT_COUNTED, Tabulation, tabulate
from lrm.tables.axes import Axis, classes, flat_axes, plain_axis
from lrm.tables.shares import divided_attributes

Integers = NDArray[np.int64]

Wanted = Sequence[Tabulation] | None
"""What a caller asks for: tabulations by attributes, one by all cells in a list, or every cell."""

MAX_ENTRIES = 100_000_000
"""Counts that are kept: 800 MB of integers."""


@dataclass(frozen=True, eq=False)
class Part:
    """The merged value of one word of a row."""

    word: int
    size: int  # number of merged values
    # The merged value of each value of the word, or `NOT_COUNTED`; None where it is the word.
    labels: Integers | None = None

    @property
    def skips(self) -> bool:
        """Whether rows with some values of the word are not counted."""
        return self.labels is not None and bool(self.labels.min() == NOT_COUNTED)


@dataclass(frozen=True)
class Marginal:
    """Entries that are next to each other, in C order over some parts."""

    start: int  # the first entry
    # Which of `Count.parts` the entries are by, the last varying fastest. A part of one value may
    # be among them to say which rows are not counted.
    parts: tuple[int, ...]
    size: int  # number of entries


@dataclass(frozen=True, eq=False)
class Count:
    """What is counted."""

    domain: Domain  # attributes and the privacy unit
    axes: tuple[Axis, ...]  # the attributes with the classes of their cells
    # The attributes that each word of a row is made of, by their places.
    words: tuple[tuple[int, ...], ...]
    parts: tuple[Part, ...]  # parts, marginals: where a row adds 1
    marginals: tuple[Marginal, ...]
    of_cells: bool  # whether counts of all cells were asked for
    # The entry of each cell that was asked for, of merged cells in a list.
    labels: Integers | None = None

    @property
    def size(self) -> int:
        """Number of entries."""
        return sum(marginal.size for marginal in self.marginals)

    @cached_property
    def numbers(self) -> dict[int, Numbers]:
        """Attributes between whose cells a row is divided, by their places, which are words too."""
        return divided_attributes(self.axes)

    @property
    def joint_size(self) -> int:
        """Number of different rows, as the words distinguish them."""
        return prod(axis.size for axis in self.axes)

    @property
    def dropped_values(self) -> list[tuple[int, int, int, int]]:
        """Where a row has a value that its attribute drops: word, stride, size and value.

        It has one where ``word // stride % size`` is the value, for one of them. Rows of persons
        have all of their cells, so that no classes are merged.
        """
        tests = []
        for word, places in enumerate(self.words):
            strides = self.strides(word)
            for place in places:
                attribute = self.axes[place].attribute
                if attribute.rest:
                    size = attribute.position_count if len(places) == 1 else attribute.size
                    tests.append((word, strides[place], size, size - 1))
        return tests

    @property
    def group(self) -> tuple[int, int, int] | None:
        """Where the unit limits rows by group: word, stride and size.

        The group of a row is ``word // stride % size``, the cell of the attribute.
        """
        by = self.domain.unit.by
        if by is None:
            return None
        word = next(i for i, places in enumerate(self.words) if by.axis in places)
        return word, self.strides(word)[by.axis], self.axes[by.axis].size

    def strides(self, word: int) -> dict[int, int]:
        """What each attribute's class is multiplied by in a word, by the attribute's place."""
        places = self.words[word]
        sizes = [self.axes[place].size for place in places]
        return {place: prod(sizes[i + 1 :]) for i, place in enumerate(places)}

    def spread(self, entries: Integers) -> Integers:
        """The counts that were asked for; of a list of cells, from those of classes of cells."""
        if not self.of_cells:
            return entries
        counts = entries.reshape([axis.size for axis in self.axes])
        if not all(axis.plain for axis in self.axes):  # each class on its first cell
            counts = np.zeros(self.domain.shape, dtype=np.int64)
            counts[np.ix_(*(axis.firsts for axis in self.axes))] = entries.reshape(
                [axis.size for axis in self.axes]
            )
        if self.labels is None:
            return counts.reshape(-1)
        return tabulate([Tabulation((self.labels,), by=(0,))], counts, (self.domain.size,))


def count_of(domain: Domain, requested: Wanted, *, lists: bool = True) -> Count:
    """Decide what is counted, from public facts alone.

    Parameters
    ----------
    domain
        Says which cell each row is in.
    requested
        What is asked for.
    lists
        Whether the engine looks merged values up in lists. Where it does not, only numbers among
        edges are merged for tabulations, and cells only where comparisons tell which.

    Examples
    --------
    >>> from lrm.domain import Integers
    >>> domain = Domain([Integers("a", 1, 2), Integers("b", 1, 3)])
    >>> count_of(domain, None).marginals
    (Marginal(start=0, parts=(0,), size=6),)
    >>> rows = Tabulation((np.array([0, 1]), np.array([0, 0, -1])), by=(0,))
    >>> total = Tabulation((np.zeros(2, dtype=int), np.zeros(3, dtype=int)), by=())
    >>> count_of(domain, [rows, total]).marginals
    (Marginal(start=0, parts=(0, 1), size=2), Marginal(start=2, parts=(), size=1))
    """
    listed = requested is not None and _is_listed(domain, requested)
    if requested is None or listed:
        _check_size(
            domain.size, "the domain has", "cells", "declare wider cells or fewer attributes"
        )
        labels = None if requested is None else requested[0].labels[0]
        axes = flat_axes(domain, labels, lists=lists)
        size = prod(axis.size for axis in axes)
        if domain.record_bits:
            words = tuple((place,) for place in range(len(axes)))
            parts = tuple(Part(place, axis.size) for place, axis in enumerate(axes))
            marginals = (Marginal(0, tuple(range(len(axes))), size),)
            return Count(domain, axes, words, parts, marginals, labels=labels, of_cells=True)
        row = (tuple(range(len(axes))),)
        every = (Marginal(0, (0,), size),)
        return Count(domain, axes, row, (Part(0, size),), every, labels=labels, of_cells=True)
    _check_tables(domain, requested)
    return _tabulated(domain, requested, lists=lists)


def _is_listed(domain: Domain, tables: Sequence[Tabulation]) -> bool:
    """Whether one tabulation by all cells in a list is asked for."""
    return len(tables) == 1 and tables[0].sizes == (domain.size,) and tables[0].by == (0,)


def _check_size(size: int, what: str, unit: str, advice: str) -> None:
    if size > MAX_ENTRIES:
        raise TableError(
            f"{what} {size:,} {unit} and counts are kept for at most {MAX_ENTRIES:,}; {advice}"
        )


def _check_tables(domain: Domain, tables: Sequence[Tabulation]) -> None:
    if not tables:
        raise TableError("there is nothing to count: expected at least one tabulation")
    for table in tables:
        if table.sizes != domain.shape:
            raise TableError(
                "the tabulations do not fit the attributes of the domain; "
                "were they built for another domain?"
            )
    size = sum(table.size for table in tables)
    _check_size(size, "the marginals to count have", "entries", "measure smaller marginals")


def _tabulated(domain: Domain, tables: Sequence[Tabulation], *, lists: bool) -> Count:
    versions = [_Versions(tables, place) for place in range(len(domain.attributes))]
    axes = []
    for attribute, version in zip(domain.attributes, versions, strict=True):
        # With a privacy unit, the cells of a person's rows decide which of them stay.
        merged = domain.unit.column is None and not isinstance(attribute, Numbers)
        if merged and (lists or isinstance(attribute, Bins)):
            axes.append(classes(attribute, np.stack(version.distinct, axis=1)))
        else:
            axes.append(plain_axis(attribute))
    parts: list[Part] = []
    numbers: list[dict[int, int]] = []  # for each attribute, the part of each of its versions
    for place, (axis, version) in enumerate(zip(axes, versions, strict=True)):
        numbers.append({})
        for i, labels in enumerate(version.distinct):
            part = _part(place, axis, labels)
            if part.size > 1 or part.skips:
                numbers[place][i] = len(parts)
                parts.append(part)
    marginals = []
    start = 0
    for t, table in enumerate(tables):
        order = [*table.by, *(i for i in range(len(axes)) if i not in table.by)]
        part_numbers = [numbers[i].get(versions[i].of[t]) for i in order]
        size = table.size
        marginals.append(
            Marginal(start, tuple(part for part in part_numbers if part is not None), size)
        )
        start += size
    words = tuple((place,) for place in range(len(axes)))
    return Count(domain, tuple(axes), words, tuple(parts), tuple(marginals), of_cells=False)


class _Versions:
    """The different ways in which tabulations merge the values of one attribute."""

    def __init__(self, tables: Sequence[Tabulation], place: int) -> None:
        self.distinct: list[Integers] = []
        self.of: list[int] = []
        same_array: dict[tuple[int, bool], int] = {}  # tabulations mostly share their arrays
        same_bytes: dict[bytes, int] = {}
        for table in tables:
            labels, is_shown = table.labels[place], place in table.by
            version = same_array.get((id(labels), is_shown))
            if version is None:
                merged = labels if is_shown else np.minimum(labels, 0)
                version = same_bytes.setdefault(merged.tobytes(), len(self.distinct))
                if version == len(self.distinct):
                    self.distinct.append(merged)
                same_array[id(labels), is_shown] = version
            self.of.append(version)


def _part(place: int, axis: Axis, labels: Integers) -> Part:
    size = int(labels.max()) + 1
    of_classes = labels[axis.firsts]
    same = np.array_equal(of_classes, np.arange(axis.size))
    return Part(place, max(size, 1), None if same and size == axis.size else of_classes)
