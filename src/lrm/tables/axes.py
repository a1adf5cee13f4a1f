"""Which cells of a domain an engine counts as one.

A batch of queries often distinguishes far fewer cells than a domain has. Where cells of one
attribute are never distinguished, whatever the other attributes say, they form one class,
and the engine counts the product of the classes: fewer groups to keep and to send.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Attribute, Bins, Domain

DROPPED = -1
"""Class of the cells that no query looks at."""

FEW_RUNS = 16
"""Runs of cells of one class up to which SQL compares with their ends; beyond, it needs a list."""


@dataclass(frozen=True, eq=False)
class Axis:
    """An attribute with the class of each of its cells."""

    attribute: Attribute  # what places a value in a cell
    # Class of each cell, numbered by first appearance; `DROPPED` for cells that no query uses.
    codes: NDArray[np.int64]
    firsts: NDArray[np.int64]  # first cell of each class

    @property
    def size(self) -> int:
        """Number of classes."""
        return len(self.firsts)

    @property
    def plain(self) -> bool:
        """Whether each cell is its own class."""
        return self.size == self.attribute.size

    @property
    def is_constant(self) -> bool:
        """Whether every value, also one that is not declared, has the same class."""
        labels = ["(null)", *self.attribute.outside_labels]
        labels += ["(nan)"] if self.attribute.numeric else []
        kept = all(self.attribute.special_cell(label) is not None for label in labels)
        return self.size == 1 and kept and not bool((self.codes == DROPPED).any())

    @property
    def needs_list(self) -> bool:
        """Whether SQL must look the class of a cell up in a list; bins are compared with edges."""
        if self.plain or isinstance(self.attribute, Bins):
            return False
        return bool(np.count_nonzero(np.diff(self.codes)) >= FEW_RUNS)

    def code(self, cell: int | None) -> int | None:
        """Return the class of a cell, or None where its rows are not counted."""
        if cell is None or self.codes[cell] == DROPPED:
            return None
        return int(self.codes[cell])

    def special(self, label: str) -> int | None:
        """Return the class of ``(null)``, ``(below)`` …, or None where it is not counted."""
        return self.code(self.attribute.special_cell(label))


def plain_axis(attribute: Attribute) -> Axis:
    """An attribute each of whose cells is a class of its own."""
    every = np.arange(attribute.size, dtype=np.int64)
    return Axis(attribute, every, every)


def flat_axes(
    domain: Domain, labels: NDArray[np.int64] | None, *, lists: bool = True
) -> tuple[Axis, ...]:
    """Return the attributes of ``domain`` with the classes that labels of all cells permit.

    Cells with one label are counted together, and those labelled `DROPPED` nowhere.

    With a privacy unit, the cells of a person's rows decide which of them stay, so none are
    merged. Without ``lists``, neither are those whose classes SQL would look up in a list; nor any
    where records are divided between cells.

    Examples
    --------
    >>> from lrm.domain import Integers
    >>> domain = Domain([Integers("a", 1, 2), Integers("b", 1, 3)])
    >>> merged = np.array([0, 0, 1, 0, 0, 1])
    >>> [axis.codes.tolist() for axis in flat_axes(domain, merged)]
    [[0, 0], [0, 0, 1]]
    """
    needs_cells = domain.unit.column is not None or domain.record_bits > 0
    if labels is None or needs_cells or np.array_equal(labels, np.arange(domain.size)):
        return tuple(map(plain_axis, domain.attributes))
    block = labels.reshape(domain.shape)
    axes = []
    for place, attribute in enumerate(domain.attributes):
        axis = classes(attribute, np.moveaxis(block, place, 0).reshape(attribute.size, -1))
        axis = plain_axis(attribute) if axis.needs_list and not lists else axis
        axes.append(axis)
        block = np.take(block, axis.firsts, axis=place)  # the next attribute has less to compare
    return tuple(axes)


def classes(attribute: Attribute, slices: NDArray[np.int64]) -> Axis:
    """Put cells with equal rows of ``slices`` in one class, and those of `DROPPED` in none."""
    _, first, inverse = np.unique(slices, axis=0, return_index=True, return_inverse=True)
    looked_at = np.any(slices[first] != DROPPED, axis=1)
    order = np.argsort(first)
    order = order[looked_at[order]]
    if not len(order):  # no query looks at any cell: keep one class, so that nothing is empty
        order = np.zeros(1, dtype=np.int64)
    rank = np.full(len(first), DROPPED, dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Axis(attribute, rank[inverse.ravel()], first[order])
