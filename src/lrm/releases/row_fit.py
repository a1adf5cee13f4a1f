"""Rows whose counts are near released answers: drawn one attribute after the other, then improved.

    minimise F = Σ weight·(W·counts(rows) − answers)²   over tables of N rows

The first rows are drawn attribute by attribute, each given those already drawn of the table that
tells most about it, by systematic sampling within each group. Then values of one attribute at a
time are changed in a part of the rows: where F falls to first order, for as many rows as an
exact line search says, and only if F falls indeed. This is close to GUM of PrivSyn [1]_.

References
----------
.. [1] "PrivSyn: Differentially private data synthesis", https://arxiv.org/abs/2012.15128.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from lrm.clock import Clock, Step
from lrm.errors import StopSolver
from lrm.queries.maps.linear import Floats, Integers
from lrm.releases.cell_tables import Axes, QueryTerm, term_matrix
from lrm.releases.consistent import ConsistentTable

ROWS_AT_ONCE = 10_000
"""Rows that a change of one attribute is tried in; more take memory and are no faster."""

MOST_SWEEPS = 400
"""Sweeps over all attributes; 20 to 100 are usual."""

LOOKED_BACK = 10
"""Sweeps over which the gain is judged."""

SMALL_GAIN = 0.03
"""Relative fall of F over these sweeps at which the rows are as near as they become."""

LEAST_PART = 16
"""Rows that are changed at once, at least."""

MOST_PARTS = 40
"""Parts of the rows in which one attribute is changed, before the next attribute's turn."""

MOST_FAILURES = 3
"""Parts in turn that do not lower F, after which the next attribute has its turn."""


@dataclass(frozen=True, eq=False)
class _Target:
    """The terms over one set of axes: what F and its gradient are made of."""

    axes: Axes
    shape: tuple[int, ...]
    terms: tuple[QueryTerm, ...]

    @cached_property
    def whole(self) -> tuple[float, Floats] | None:
        """Weight and mean answers where all terms are the table itself; else None."""
        if not all(term.is_table for term in self.terms):
            return None
        weights = [float(term.weights[0]) for term in self.terms]
        total = sum(weights)
        mean = sum(w * term.answers for w, term in zip(weights, self.terms, strict=True)) / total
        return total, np.asarray(mean)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """All queries over the cells."""
        rows = [term_matrix(term, self.axes, self.shape) for term in self.terms]
        return sp.csr_array(sp.vstack(rows))

    @cached_property
    def weights(self) -> Floats:
        """The weight of each query."""
        return np.concatenate([term.weights for term in self.terms])

    @cached_property
    def answers(self) -> Floats:
        """The answer to each query."""
        return np.concatenate([term.answers for term in self.terms])

    def gradient(self, counts: Floats) -> Floats:
        """Half of the gradient of F by the counts of the cells."""
        if self.whole is not None:
            weight, answers = self.whole
            return weight * (counts - answers)
        errors = self.weights * (self.matrix @ counts - self.answers)
        return np.asarray(self.matrix.T @ errors)

    def curvature(self, change: Floats) -> float:
        """The second-order part of F along a change of the counts."""
        if self.whole is not None:
            return self.whole[0] * float(change @ change)
        return float(self.weights @ (self.matrix @ change) ** 2)

    def distance(self, counts: Floats) -> float:
        """The part of F that these terms are."""
        return float(self.weights @ (self.matrix @ counts - self.answers) ** 2)

    @cached_property
    def single(self) -> float:
        """The mean curvature of one row more in a cell."""
        if self.whole is not None:
            return self.whole[0]
        squares = self.matrix.power(2).T @ self.weights
        return float(np.mean(squares))


class RowFit:
    """Rows of merged values, and how far their counts are from the released answers.

    Parameters
    ----------
    sizes
        Number of merged values of each attribute.
    terms
        Queries over merged values with the answers to aim at.
    rows
        Number of rows.
    seed
        For all random choices.
    """

    def __init__(
        self, sizes: Sequence[int], terms: Sequence[QueryTerm], rows: int, seed: int
    ) -> None:
        self.sizes, self.rows = tuple(sizes), rows
        by_axes: dict[Axes, list[QueryTerm]] = {}
        for term in terms:
            if term.axes:
                by_axes.setdefault(term.axes, []).append(term)
        self.targets = [
            _Target(axes, tuple(self.sizes[i] for i in axes), tuple(own))
            for axes, own in by_axes.items()
        ]
        self.attributes = sorted({i for axes in by_axes for i in axes})
        self.values = np.zeros((len(self.sizes), rows), dtype=np.int32)
        self.random = np.random.default_rng(seed)
        self.counts: list[Floats] = []
        self.gradients: list[Floats] = []
        self.history: list[float] = []  # F after each sweep

    def draw(self, tables: Sequence[ConsistentTable]) -> None:
        """Draw all attributes from consistent tables."""
        tree = _Order(self.sizes, tables)
        drawn: list[int] = []
        for _ in self.attributes:
            table, parents, attribute = tree.next(drawn, self.attributes)
            self._draw_attribute(table, parents, attribute)
            drawn.append(attribute)
        self.counts = [self._count(target, slice(None)) for target in self.targets]
        self.gradients = [
            target.gradient(counts)
            for target, counts in zip(self.targets, self.counts, strict=True)
        ]
        self.history = [self.distance]

    @property
    def distance(self) -> float:
        """F: the weighted sum of squared differences between counts of rows and answers."""
        return sum(
            target.distance(counts)
            for target, counts in zip(self.targets, self.counts, strict=True)
        )

    def _draw_attribute(
        self, table: _Spread | None, parents: tuple[int, ...], attribute: int
    ) -> None:
        """Values of an attribute by systematic sampling within each group of its parents."""
        size = self.sizes[attribute]
        if table is None:
            self.values[attribute] = self.random.integers(0, size, self.rows)
            return
        shares = table.conditional(parents, attribute)
        group = np.zeros(self.rows, dtype=np.int64)
        for parent in parents:
            group = group * self.sizes[parent] + self.values[parent]
        order = np.argsort(group + self.random.random(self.rows) * 0.5, kind="stable")
        sizes = np.bincount(group, minlength=len(shares))
        starts = np.cumsum(sizes) - sizes
        ordered = group[order]
        place = np.arange(self.rows) - starts[ordered]
        first = self.random.random(len(shares))
        at = (place + first[ordered]) / sizes[ordered]
        ends = np.cumsum(shares, axis=1)
        ends /= ends[:, -1:]
        lines = (ends + np.arange(len(shares))[:, None]).reshape(-1)
        chosen = np.searchsorted(lines, np.minimum(at, 1 - 1e-9) + ordered, side="right")
        self.values[attribute, order] = np.minimum(chosen - ordered * size, size - 1)

    def _cells(self, target: _Target, rows: Integers | slice) -> Integers:
        cells = np.zeros_like(self.values[0, rows], dtype=np.int64)
        for i, size in zip(target.axes, target.shape, strict=True):
            cells = cells * size + self.values[i, rows]
        return cells

    def _count(self, target: _Target, rows: Integers | slice) -> Floats:
        cells = self._cells(target, rows)
        return np.bincount(cells, minlength=math.prod(target.shape)).astype(np.float64)

    def answers(self, term: QueryTerm) -> Floats:
        """What the rows answer to the queries of a term."""
        if not term.axes:
            return term.apply(np.array(float(self.rows)))
        shape = tuple(self.sizes[i] for i in term.axes)
        target = _Target(term.axes, shape, (term,))
        return term.apply(self._count(target, slice(None)).reshape(shape))

    def improve(self, clock: Clock) -> None:
        """Change values while F falls by more than a little."""
        with suppress(StopSolver):
            for sweep in range(MOST_SWEEPS):
                gained = 0.0
                for attribute in self.random.permutation(self.attributes).tolist():
                    clock.tick(Step("rows", sweep + 1, self.history[-1]))
                    gained += self._change(attribute)
                self.history.append(self.history[-1] - gained)
                if len(self.history) > LOOKED_BACK:
                    before = self.history[-1 - LOOKED_BACK]
                    if before - self.history[-1] <= SMALL_GAIN * before:
                        return

    def _change(self, attribute: int) -> float:
        """Change an attribute in some of the rows; by how much F falls."""
        concerned = [k for k, t in enumerate(self.targets) if attribute in t.axes]
        rows: Integers | slice = slice(None)
        if self.rows > ROWS_AT_ONCE:
            start = int(self.random.integers(0, self.rows))
            rows = (start + np.arange(ROWS_AT_ONCE)) % self.rows
        gains = self._gains(attribute, concerned, rows)
        old = self.values[attribute, rows].astype(np.int64)
        # Rows that are alike would all take the same value: its turn is partly left to chance.
        gains *= 0.5 + 0.5 * self.random.random(self.sizes[attribute])
        new = gains.argmin(axis=1)
        better = np.flatnonzero(gains[np.arange(len(gains)), new] < 0)
        if not len(better):
            return 0.0
        places = better if isinstance(rows, slice) else rows[better]
        return self._move(attribute, concerned, places, old[better], new[better])

    def _gains(self, attribute: int, concerned: Sequence[int], rows: Integers | slice) -> Floats:
        """Half of the change of F for each row and each value of the attribute."""
        size = self.sizes[attribute]
        count = len(self.values[0, rows])
        blocks, columns, start, single = [], [], 0, 0.0
        for k in concerned:
            target = self.targets[k]
            place = target.axes.index(attribute)
            gradient = np.moveaxis(self.gradients[k].reshape(target.shape), place, -1)
            blocks.append(gradient.reshape(-1, size))
            others = np.full(count, 0, dtype=np.int64)
            for i, n in zip(target.axes, target.shape, strict=True):
                if i != attribute:
                    others = others * n + self.values[i, rows]
            columns.append(others + start)
            start += len(blocks[-1])
            single += target.single
        indices = np.stack(columns, axis=1).reshape(-1).astype(np.int32)
        pointers = np.arange(0, len(indices) + 1, len(concerned), dtype=np.int32)
        lookup = sp.csr_array(
            (np.ones(len(indices), dtype=np.float64), indices, pointers), shape=(count, start)
        )
        scores = np.asarray(lookup @ np.vstack(blocks))
        old = self.values[attribute, rows]
        lines = np.arange(count)
        scores += single - scores[lines, old][:, None]
        scores[lines, old] = 0.0
        return scores

    def _move(
        self,
        attribute: int,
        concerned: Sequence[int],
        rows: Integers,
        old: Integers,
        new: Integers,
    ) -> float:
        """Make changes in parts, each only where it still lowers F after those before it."""
        share = self._best_share(attribute, concerned, rows, old, new)
        length = max(LEAST_PART, math.ceil(share * len(rows) / 2.0))
        order = self.random.permutation(len(rows))
        start, gained, failures = 0, 0.0, 0
        for _ in range(MOST_PARTS):
            part = order[start : start + length]
            if not len(part) or failures > MOST_FAILURES:
                break
            start += len(part)
            cells = self._both_cells(attribute, concerned, rows[part], old[part], new[part])
            gains = self._current_gains(concerned, cells)
            some = gains < 0
            pairs = [(before[some], after[some]) for before, after in cells]
            fall = self._try(attribute, concerned, rows[part][some], new[part][some], pairs)
            gained += fall
            if fall > 0:
                failures = 0
            else:
                failures += 1
                length = max(LEAST_PART, length // 2)
        return gained

    def _current_gains(
        self, concerned: Sequence[int], cells: Sequence[tuple[Integers, Integers]]
    ) -> Floats:
        """Half of the change of F by each change alone."""
        gains = np.zeros(len(cells[0][0]))
        for k, (before, after) in zip(concerned, cells, strict=True):
            gradient = self.gradients[k]
            gains += gradient[after] - gradient[before] + self.targets[k].single
        return gains

    def _try(
        self,
        attribute: int,
        concerned: Sequence[int],
        rows: Integers,
        new: Integers,
        cells: Sequence[tuple[Integers, Integers]],
    ) -> float:
        """Make some changes at once if F falls; by how much."""
        if not len(rows):
            return 0.0
        changes = self._changes(concerned, cells)
        first, second = self._orders(concerned, changes)
        fall = -(2.0 * first + second)
        if fall <= 0:
            return 0.0
        self.values[attribute, rows] = new
        for k, change in zip(concerned, changes, strict=True):
            self.counts[k] += change
            self.gradients[k] = self.targets[k].gradient(self.counts[k])
        return fall

    def _both_cells(
        self,
        attribute: int,
        concerned: Sequence[int],
        rows: Integers,
        old: Integers,
        new: Integers,
    ) -> list[tuple[Integers, Integers]]:
        """The cells of each table in which rows are before and after a change."""
        pairs = []
        step = new.astype(np.int64) - old
        for k in concerned:
            target = self.targets[k]
            place = target.axes.index(attribute)
            before = self._cells(target, rows)
            pairs.append((before, before + step * math.prod(target.shape[place + 1 :])))
        return pairs

    def _best_share(
        self,
        attribute: int,
        concerned: Sequence[int],
        rows: Integers,
        old: Integers,
        new: Integers,
    ) -> float:
        """The share of random changes at which F is expected to be the lowest."""
        pairs = self._both_cells(attribute, concerned, rows, old, new)
        changes = self._changes(concerned, pairs)
        first, second = self._orders(concerned, changes)
        scatter = 2.0 * len(rows) * sum(self.targets[k].single for k in concerned)
        slope, bend = 2.0 * first + scatter, 2.0 * (second - scatter)
        if slope >= 0:
            return min(1.0, 50.0 / len(rows))
        return 1.0 if bend <= -slope else -slope / bend

    def _changes(
        self, concerned: Sequence[int], cells: Sequence[tuple[Integers, Integers]]
    ) -> list[Floats]:
        """How the counts of each table change."""
        changes = []
        for k, (before, after) in zip(concerned, cells, strict=True):
            size = len(self.counts[k])
            gone = np.bincount(before, minlength=size)
            changes.append((np.bincount(after, minlength=size) - gone).astype(np.float64))
        return changes

    def _orders(self, concerned: Sequence[int], changes: Sequence[Floats]) -> tuple[float, float]:
        first = second = 0.0
        for k, change in zip(concerned, changes, strict=True):
            first += float(self.gradients[k] @ change)
            second += self.targets[k].curvature(change)
        return first, second


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
        """How much the parents tell about the attribute, in nats per row."""
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


class _Order:
    """In which order attributes are drawn, and from which tables."""

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
