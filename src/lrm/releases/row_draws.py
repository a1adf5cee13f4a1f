"""Rows that are drawn from consistent tables, one attribute after the other.

Each attribute is drawn given those already drawn of the table that tells most about it, by
systematic sampling within each group, so that groups have their shares up to less than one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.linear import Floats, Integers
from lrm.releases.consistent import ConsistentTable


def draw_rows(
    sizes: Sequence[int],
    attributes: Sequence[int],
    tables: Sequence[ConsistentTable],
    rows: int,
    random: np.random.Generator,
) -> NDArray[np.int32]:
    """Merged values of some attributes, one line per attribute; 0 for the others."""
    values = np.zeros((len(sizes), rows), dtype=np.int32)
    for table, parents, attribute in _order(_Spreads(sizes, tables), attributes):
        if table is None:
            values[attribute] = random.integers(0, sizes[attribute], rows)
            continue
        group = np.zeros(rows, dtype=np.int64)
        for parent in parents:
            group = group * sizes[parent] + values[parent]
        values[attribute] = _systematic(group, table.conditional(parents, attribute), random)
    return values


def _systematic(group: Integers, shares: Floats, random: np.random.Generator) -> Integers:
    """A value per row: within each group every value has its share of the rows."""
    count, size = len(group), shares.shape[1]
    order = np.argsort(group + random.random(count) * 0.5, kind="stable")
    sizes = np.bincount(group, minlength=len(shares))
    starts = np.cumsum(sizes) - sizes
    ordered = group[order]
    place = np.arange(count) - starts[ordered]
    first = random.random(len(shares))
    at = (place + first[ordered]) / sizes[ordered]
    ends = np.cumsum(shares, axis=1)
    ends /= ends[:, -1:]
    lines = (ends + np.arange(len(shares))[:, None]).reshape(-1)
    chosen = np.searchsorted(lines, np.minimum(at, 1 - 1e-9) + ordered, side="right")
    values = np.empty(count, dtype=np.int64)
    values[order] = np.minimum(chosen - ordered * size, size - 1)
    return values


def _order(
    spreads: _Spreads, attributes: Sequence[int]
) -> Iterator[tuple[_Spread | None, tuple[int, ...], int]]:
    """Yield each attribute with its table and the attributes of this that were drawn before."""
    drawn: list[int] = []
    for _ in attributes:
        table, parents, attribute = spreads.next(drawn, attributes)
        yield table, parents, attribute
        drawn.append(attribute)


class _Spread:
    """A consistent table over the merged values of the rows, which may be finer than its own."""

    def __init__(self, table: ConsistentTable, sizes: Sequence[int]) -> None:
        self.axes = table.axes
        self.counts = np.maximum(table.counts, 0.0)
        for k, (i, coarse) in enumerate(zip(table.axes, table.labels, strict=True)):
            members = np.bincount(coarse, minlength=self.counts.shape[k])
            self.counts = np.take(self.counts / _along(members, k, self.counts.ndim), coarse, k)
            if self.counts.shape[k] != sizes[i]:
                raise ValueError("a table is not over the merged values of the rows")

    def conditional(self, parents: Sequence[int], attribute: int) -> Floats:
        """Shares of the values of an attribute, one line per combination of its parents."""
        kept = [*parents, attribute]
        others = tuple(k for k, i in enumerate(self.axes) if i not in kept)
        table = self.counts.sum(axis=others)
        remaining = [i for i in self.axes if i in kept]
        table = np.transpose(table, [remaining.index(i) for i in kept])
        lines = table.reshape(-1, table.shape[-1])
        overall = lines.sum(axis=0) + 1e-300
        usual = overall / overall.sum()
        sums = lines.sum(axis=1, keepdims=True)
        shares: Floats = np.where(sums > 0, lines + 1e-9 * sums * usual, usual[None, :])
        return shares

    def information(self, parents: Sequence[int], attribute: int) -> float:
        """The mutual information of the parents and the attribute, in nats per row."""
        shares = self.conditional(parents, attribute)
        others = tuple(k for k, i in enumerate(self.axes) if i not in parents)
        table = self.counts.sum(axis=others)
        remaining = [i for i in self.axes if i in parents]
        sums = np.transpose(table, [remaining.index(i) for i in parents]).reshape(-1)
        if not sums.sum() > 0:
            return 0.0
        weights = sums / sums.sum()
        shares = shares / shares.sum(axis=1, keepdims=True)
        mean = weights @ shares
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(shares > 0, np.log(shares / mean), 0.0)
        return float(weights @ (shares * logs).sum(axis=1))


def _along(values: Integers, axis: int, dimensions: int) -> Integers:
    shape = [1] * dimensions
    shape[axis] = len(values)
    return values.reshape(shape)


class _Spreads:
    """All tables, and which attribute one of them tells most about."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[ConsistentTable]) -> None:
        self.tables = [_Spread(table, sizes) for table in tables]
        self.known: dict[tuple[int, tuple[int, ...], int], float] = {}

    def next(
        self, drawn: Sequence[int], attributes: Sequence[int]
    ) -> tuple[_Spread | None, tuple[int, ...], int]:
        """A table, the drawn attributes in it, and the attribute that they tell most about."""
        best: tuple[float, _Spread | None, tuple[int, ...], int] | None = None
        for number, table in enumerate(self.tables):
            parents = tuple(i for i in table.axes if i in drawn)
            if drawn and not parents:
                continue
            for i in table.axes:
                if i in drawn or i not in attributes:
                    continue
                gain = self._information(number, parents, i) if parents else len(table.axes)
                if best is None or gain > best[0]:
                    best = gain, table, parents, i
        if best is not None:
            return best[1:]
        attribute = next(i for i in attributes if i not in drawn)
        alone = next((table for table in self.tables if attribute in table.axes), None)
        return alone, (), attribute

    def _information(self, number: int, parents: tuple[int, ...], attribute: int) -> float:
        key = number, parents, attribute
        if key not in self.known:
            self.known[key] = self.tables[number].information(parents, attribute)
        return self.known[key]
