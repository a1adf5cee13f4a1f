"""Labels of all cross-tabs of some orders, as one part that lists nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations

from lrm.workload.label_parts import Axis, Grouped, Label

__all__ = ["CrossTabs"]


@dataclass(frozen=True)
class CrossTabs:
    """One query in every cross-tab of the given numbers of attributes.

    Parameters
    ----------
    query
        Its name, the same in all tables.
    axes
        Every attribute with its labels.
    orders
        Numbers of attributes; tables of the first order come first. Tables of one order are in
        the order of `itertools.combinations`, and the last attribute of a table varies fastest.
    line
        Line of the batch's text where it begins.

    Examples
    --------
    >>> tabs = CrossTabs("n", (("sex", ("f", "m")), ("age", ("0", "1", "2"))), (0, 1))
    >>> len(tabs), tabs.label(4).name
    (6, 'n[age=1]')
    """

    query: str
    axes: tuple[Axis, ...]
    orders: tuple[int, ...]
    line: int | None = None

    @property
    def count(self) -> int:
        """Number of answers; `len` cannot return 2^63 or more."""
        return sum(self._answers[order][0] for order in self.orders)

    def __len__(self) -> int:
        return self.count

    @property
    def attributes(self) -> tuple[str, ...]:
        """What some table is grouped by."""
        return tuple(attribute for attribute, _ in self.axes) if any(self.orders) else ()

    @cached_property
    def _answers(self) -> list[list[int]]:
        """``[k][i]``: the number of answers in all k-way tables of the attributes from i on."""
        sizes = [len(labels) for _, labels in self.axes]
        answers = [[1] * (len(sizes) + 1)]
        for _ in range(max(self.orders, default=0)):
            row = [0] * (len(sizes) + 1)
            for i in range(len(sizes) - 1, -1, -1):
                row[i] = row[i + 1] + sizes[i] * answers[-1][i + 1]
            answers.append(row)
        return answers

    def tables(self) -> Iterator[Grouped]:
        """Yield each table as a part of its own."""
        for order in self.orders:
            for axes in combinations(self.axes, order):
                yield Grouped(self.query, axes, self.line)

    def label(self, index: int) -> Label:
        """Make one label, in a time that follows the number of attributes."""
        for order in self.orders:
            if index < self._answers[order][0]:
                return self._table(order, index)
            index -= self._answers[order][0]
        raise IndexError(index)

    def _table(self, order: int, index: int) -> Label:
        table_axes: list[Axis] = []
        answers = 1  # of one table over the attributes that are chosen so far
        for i, axis in enumerate(self.axes):
            left = order - len(table_axes)
            if not left:
                break
            inside = answers * len(axis[1]) * self._answers[left - 1][i + 1]
            if index < inside:
                table_axes.append(axis)
                answers *= len(axis[1])
            else:
                index -= inside
        return Grouped(self.query, tuple(table_axes), self.line).label(index)

    def __iter__(self) -> Iterator[Label]:
        return chain.from_iterable(self.tables())

    def repeats(self, other: Grouped | CrossTabs) -> Label | None:
        """A label that both parts have, if there is one; its line is that of ``other``."""
        if other.query != self.query:
            return None
        own_axes = dict(self.axes)
        shared: list[tuple[str, str]] = []
        for attribute, labels in other.axes:
            known = frozenset(own_axes.get(attribute, ()))
            both = next((label for label in labels if label in known), None)
            if both is not None:
                shared.append((attribute, both))
        if isinstance(other, Grouped):
            orders = {len(other.axes)} if len(shared) == len(other.axes) else set()
        else:
            orders = {order for order in other.orders if order <= len(shared)}
        for order in orders & set(self.orders):
            return Label(self.query, tuple(shared[:order]), other.line)
        return None
