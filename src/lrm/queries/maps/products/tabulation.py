"""Tabulations: what must be counted of a table so that a strategy over products can be measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from lrm.errors import WorkloadError
from lrm.queries.maps.linear import Integers

NOT_COUNTED = -1
"""The label of values whose records are in no entry of a tabulation."""


class ValueLabels(tuple[Integers, ...]):
    """The merged value of each value of each attribute, checked once for all tabulations."""

    __slots__ = ()

    def __new__(cls, labels: Iterable[Integers]) -> Self:
        """Check the labels, and make them read-only."""
        checked = super().__new__(cls, labels)
        for marks in checked:
            if marks.ndim != 1 or not len(marks) or marks.dtype != np.int64:
                raise WorkloadError("a tabulation needs one integer label for each value")
            if marks.min() < NOT_COUNTED or marks.max() >= len(marks):
                raise WorkloadError("a label of a tabulation is out of range")
            marks.setflags(write=False)
        return checked


@dataclass(frozen=True, eq=False)
class Tabulation:
    """Counts of records by the merged values of some attributes.

    A record with a value that is labelled `NOT_COUNTED`, in any attribute, is counted nowhere;
    every other record adds 1 to one entry.

    Parameters
    ----------
    labels
        For each attribute, the merged value of each of its values.
    by
        The attributes that entries distinguish. Entries are in C order, the last varying fastest.

    Examples
    --------
    >>> table = Tabulation((np.array([0, 0, 1]), np.array([0, -1])), by=(0,))
    >>> table.shape
    (2,)
    >>> tabulate([table], np.array([5, 1, 0, 2, 3, 4]), (3, 2)).tolist()
    [5, 3]
    """

    labels: tuple[Integers, ...]
    by: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.by)) != len(self.by) or not all(0 <= i < len(self.labels) for i in self.by):
            raise WorkloadError("a tabulation must be by different attributes of the table")
        if not isinstance(self.labels, ValueLabels):
            object.__setattr__(self, "labels", ValueLabels(self.labels))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of merged values of each attribute in ``by``."""
        return tuple(int(self.labels[i].max()) + 1 for i in self.by)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each attribute; of a list of cells, their number alone."""
        return tuple(map(len, self.labels))

    def depends_on(self, attribute: int, shape: tuple[int, ...]) -> bool:
        """Whether the entry of a record follows from its value of an attribute, among others.

        ``shape`` holds the numbers of values of all attributes. The tabulation may have one axis
        for all cells, in C order.
        """
        if self.sizes != shape:
            cells = self.labels[0].reshape(shape)
            return bool(np.any(cells != cells.take([0], axis=attribute)))
        return attribute in self.by or int(self.labels[attribute].min()) == NOT_COUNTED


def total(sizes: Sequence[int]) -> Tabulation:
    """The tabulation that counts all records, whatever their values."""
    return Tabulation(tuple(np.zeros(size, dtype=np.int64) for size in sizes), by=())


def tabulate(tables: Sequence[Tabulation], counts: Integers, sizes: Sequence[int]) -> Integers:
    """The entries of all tabulations, one after the other, from counts of all cells."""
    return np.concatenate([_entries(table, counts.reshape(tuple(sizes))) for table in tables])


def _entries(table: Tabulation, counts: Integers) -> Integers:
    for i, marks in enumerate(table.labels):
        size = int(marks.max()) + 1 if i in table.by else 1
        merged = np.zeros((size, *np.delete(counts.shape, i)), dtype=np.int64)
        counted = np.flatnonzero(marks != NOT_COUNTED)
        place = marks[counted] if i in table.by else np.zeros(len(counted), dtype=np.int64)
        np.add.at(merged, place, np.moveaxis(counts, i, 0)[counted])
        counts = np.moveaxis(merged, 0, i)
    rest = [i for i in range(len(table.labels)) if i not in table.by]
    return np.asarray(np.transpose(counts, (*table.by, *rest)).reshape(-1))
