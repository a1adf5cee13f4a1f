"""Rows whose counts are near released answers: drawn one attribute after the other, then improved.

    minimise F = Σ weight·(W·counts(rows) − answers)²   over tables of N rows

The first rows are drawn attribute by attribute, each given those already drawn of the table that
tells most about it, by systematic sampling within each group. Then values of one attribute at a
time are changed in a part of the rows: where F falls to first order, for as many rows as an
exact line search says, and only if F falls indeed. Rows are also replaced by copies of others,
which changes several attributes at once: a husband who becomes a wife changes sex. This is close
to GUM of PrivSyn [1]_.

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
from numpy.typing import NDArray

from lrm.clock import Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.queries.maps.linear import Floats, Integers
from lrm.releases.cell_tables import Axes, QueryTerm, placed, term_matrix
from lrm.releases.consistent import ConsistentTable

ROWS_AT_ONCE = 10_000
"""Rows that a change of one attribute is tried in; more take memory and are no faster."""

MOST_SWEEPS = 400
"""Sweeps over all attributes; 20 to 100 are usual."""

LOOKED_BACK = 10
"""Sweeps over which the gain is judged, at least; a sweep over each row once, at least."""

SMALL_GAIN = 0.03
"""Fall of F over these sweeps at which the rows are as near as they become, relative to F or to
about its least value, if that is smaller: far above it, small gains of many sweeps add up."""

LEAST_PART = 2
"""Rows that are changed at once, at least; with 16, F ended at 3 times the least at epsilon 1."""

MOST_PARTS = 100
"""Parts of the rows in which one attribute is changed, before the next attribute's turn."""

MOST_FAILURES = 10
"""Parts in turn that do not lower F, after which the next attribute has its turn."""

LONGER = 1.5
"""How much longer the next part is after one that lowered F; it is half as long after others."""

REPLACEMENTS = 4
"""Times per sweep that rows are replaced by copies; with none, F stays above twice the least."""


@dataclass(frozen=True, eq=False)
class _Target:
    """The terms over one set of axes, and where its cells are among those of all targets."""

    axes: Axes
    shape: tuple[int, ...]
    terms: tuple[QueryTerm, ...]
    start: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def whole(self) -> tuple[float, Floats] | None:
        """Weight and mean answers where all terms are the table itself; else None."""
        if not all(term.is_table for term in self.terms):
            return None
        if not self.terms:
            return 0.0, np.zeros(self.size)
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

    def distance(self, counts: Floats) -> float:
        """The part of F that these terms are."""
        return sum(
            float(term.weights @ (term.apply(counts.reshape(self.shape)) - term.answers) ** 2)
            for term in self.terms
        )

    @cached_property
    def single(self) -> float:
        """The mean curvature of one row more in a cell."""
        if self.whole is not None:
            return self.whole[0]
        squares = self.matrix.power(2).T @ self.weights
        return float(np.mean(squares))


class _Neighbourhood:
    """The cells that an attribute's value decides between: one line per table and context.

    A context of a row is the combination of its other values in a table. All tables with the
    attribute are handled at once: their contexts are numbered one after the other. Without an
    attribute, contexts are the cells of all tables.
    """

    def __init__(self, attribute: int | None, targets: Sequence[_Target]) -> None:
        own = [target for target in targets if attribute is None or attribute in target.axes]
        self.singles = np.array([target.single for target in own])
        depth = max(len(target.axes) for target in own) - (attribute is not None)
        self.starts = np.zeros(len(own), dtype=np.int32)
        self.columns = np.zeros((depth, len(own)), dtype=np.intp)
        self.steps = np.zeros((depth, len(own)), dtype=np.int32)
        cells, weights, blocks, query_weights = [], [], [], []
        contexts = 0
        for k, target in enumerate(own):
            lines = np.arange(target.size, dtype=np.int32)[:, None]
            if attribute is not None:
                place = target.axes.index(attribute)
                lines = np.moveaxis(lines.reshape(target.shape), place, -1)
                lines = lines.reshape(-1, target.shape[place])
            cells.append(lines + np.int32(target.start))
            weights.append(np.full(target.size, 0.0 if target.whole is None else target.whole[0]))
            if target.whole is None:
                matrix = sp.csr_array(target.matrix[:, lines.reshape(-1)])
                blocks.append((matrix, contexts * lines.shape[1]))
                query_weights.append(target.weights)
            self.starts[k] = contexts
            contexts += len(lines)
            others = [(i, n) for i, n in zip(target.axes, target.shape, strict=True)]
            others = [(i, n) for i, n in others if i != attribute]
            for level, (i, _) in enumerate(others):
                self.columns[level, k] = i
                self.steps[level, k] = math.prod(n for _, n in others[level + 1 :])
        self.cells = np.concatenate(cells)
        self.weights = np.concatenate(weights)
        self.queries: sp.csr_array | None = None
        if blocks:
            wide = [placed(matrix, first, self.cells.size) for matrix, first in blocks]
            self.queries = sp.csr_array(sp.vstack(wide))
            self.query_weights = np.concatenate(query_weights)

    def contexts(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """The contexts of rows, one per table."""
        numbers = np.broadcast_to(self.starts, (len(values), len(self.starts)))
        for columns, steps in zip(self.columns, self.steps, strict=True):
            part = values.take(columns, axis=1)
            numbers = numbers + (part if np.all(steps == 1) else part * steps)
        return numbers

    def pulled(self, change: Floats) -> Floats:
        """Half of the change of F's gradient by a change of the counts."""
        pulled = self.weights * change
        if self.queries is not None:
            pulled += self.queries.T @ (self.query_weights * (self.queries @ change))
        return pulled


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
    impossible
        Queries that count no row.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        terms: Sequence[QueryTerm],
        rows: int,
        seed: int,
        impossible: Sequence[QueryTerm] = (),
    ) -> None:
        self.sizes, self.rows = tuple(sizes), rows
        by_axes: dict[Axes, list[QueryTerm]] = {}
        for term in terms:
            if term.axes:
                by_axes.setdefault(term.axes, []).append(term)
        self.targets: list[_Target] = []
        start = 0
        for axes, own in by_axes.items():
            shape = tuple(self.sizes[i] for i in axes)
            self.targets.append(_Target(axes, shape, tuple(own), start))
            start += self.targets[-1].size
        self.forbidden: list[tuple[_Target, NDArray[np.bool_]]] = []
        for term in impossible:
            shape = tuple(self.sizes[i] for i in term.axes)
            target = _Target(term.axes, shape, (), start)
            empty = term.transpose(np.ones(len(term.answers)), shape).reshape(-1) > 0
            self.forbidden.append((target, empty))
            start += target.size
        self.targets += [target for target, _ in self.forbidden]
        self.attributes = sorted({i for axes in by_axes for i in axes})
        self.values = np.zeros((len(self.sizes), rows), dtype=np.int32)
        self.random = np.random.default_rng(seed)
        self.gradient = np.zeros(start)  # half of that of F by the counts of all cells
        self.history: list[float] = []  # F after each sweep
        self._known: dict[int | None, _Neighbourhood] = {}

    def draw(self, tables: Sequence[ConsistentTable]) -> None:
        """Draw all attributes from consistent tables."""
        tree = _Order(self.sizes, tables)
        drawn: list[int] = []
        for _ in self.attributes:
            table, parents, attribute = tree.next(drawn, self.attributes)
            self._draw_attribute(table, parents, attribute)
            drawn.append(attribute)
        distance = 0.0
        for target in self.targets:
            counts = self._count(target)
            self.gradient[target.start : target.start + target.size] = target.gradient(counts)
            distance += target.distance(counts)
        self._forbid()
        self.history = [distance]

    def _forbid(self) -> None:
        """Give impossible cells a price per row that no fall of F by a change of a row exceeds."""
        price = 10.0 * len(self.targets) * float(np.abs(self.gradient).max(initial=1.0))
        for target, empty in self.forbidden:
            self.gradient[target.start : target.start + target.size] = price * empty

    @property
    def _impossible_rows(self) -> NDArray[np.bool_]:
        found = np.zeros(self.rows, dtype=bool)
        for target, empty in self.forbidden:
            found |= empty[self._cells(target)]
        return found

    def _expel(self) -> None:
        """Replace impossible rows by copies of possible ones."""
        impossible = self._impossible_rows
        if not impossible.any():
            return
        possible = np.flatnonzero(~impossible)
        if not len(possible):
            raise UsageError("the impossible conditions of the domain leave no possible row")
        places = np.flatnonzero(impossible)
        self.values[:, places] = self.values[:, self.random.choice(possible, len(places))]

    @property
    def distance(self) -> float:
        """F: the weighted sum of squared differences between counts of rows and answers."""
        return sum(target.distance(self._count(target)) for target in self.targets)

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

    def _cells(self, target: _Target) -> Integers:
        cells = np.zeros(self.rows, dtype=np.int64)
        for i, size in zip(target.axes, target.shape, strict=True):
            cells = cells * size + self.values[i]
        return cells

    def _count(self, target: _Target) -> Floats:
        return np.bincount(self._cells(target), minlength=target.size).astype(np.float64)

    def answers(self, term: QueryTerm) -> Floats:
        """What the rows answer to the queries of a term."""
        if not term.axes:
            return term.apply(np.array(float(self.rows)))
        shape = tuple(self.sizes[i] for i in term.axes)
        target = _Target(term.axes, shape, (term,), 0)
        return term.apply(self._count(target).reshape(shape))

    def improve(self, clock: Clock, least: float = math.inf) -> None:
        """Change values while F falls by more than a little; ``least`` is about its least value."""
        if not self.attributes:
            return
        self._improve(clock, least)
        self._expel()

    def _improve(self, clock: Clock, least: float) -> None:
        looked_back = max(LOOKED_BACK, math.ceil(self.rows / ROWS_AT_ONCE))
        with suppress(StopSolver):
            for _ in range(MOST_SWEEPS):
                self._sweep(clock)
                if len(self.history) > looked_back:
                    before = self.history[-1 - looked_back]
                    small = SMALL_GAIN * min(before, least)
                    if before - self.history[-1] <= small:
                        return

    def _sweep(self, clock: Clock) -> None:
        """Change every attribute of some rows, and replace rows."""
        start = int(self.random.integers(0, self.rows))
        rows = (start + np.arange(min(self.rows, ROWS_AT_ONCE))) % self.rows
        values = np.ascontiguousarray(self.values[:, rows].T)
        gained = 0.0
        try:
            for attribute in self.random.permutation(self.attributes).tolist():
                clock.tick(Step("rows", len(self.history), self.history[-1]))
                gained += self._change(attribute, values)
            gained += sum(self._replace(values) for _ in range(REPLACEMENTS))
        finally:
            self.values[:, rows] = values.T
            self.history.append(self.history[-1] - gained)

    def _replace(self, values: NDArray[np.int32]) -> float:
        """Replace rows by copies of others that are like them in some attributes.

        Of the rows that are alike, those in cells with too many rows become copies of those in
        cells with too few. Returns by how much F falls.
        """
        near = self._neighbourhood(None)
        contexts = near.contexts(values)
        gradient = self.gradient
        scores = gradient[contexts].sum(axis=1)
        count = int(self.random.integers(0, max(len(self.attributes) - 1, 1)))
        keys = np.zeros(len(values), dtype=np.int64)
        for i in self.random.permutation(self.attributes)[:count].tolist():
            keys = np.unique(keys * self.sizes[i] + values[:, i], return_inverse=True)[1]
        copied, replaced = _pairs(keys, scores)
        gains = scores[copied] - scores[replaced]
        gains += (contexts[copied] != contexts[replaced]) @ near.singles
        better = np.flatnonzero(gains < 0)
        if not len(better):
            return 0.0
        copied, replaced = copied[better], replaced[better]
        move = _Move(near, gradient, contexts[replaced], contexts[copied])
        made, fall = move.made(self.random)
        if fall > 0:
            values[replaced[made]] = values[copied[made]]
            self.gradient = move.gradient
        return fall

    def _neighbourhood(self, attribute: int | None) -> _Neighbourhood:
        if attribute not in self._known:
            self._known[attribute] = _Neighbourhood(attribute, self.targets)
        return self._known[attribute]

    def _change(self, attribute: int, values: NDArray[np.int32]) -> float:
        """Change an attribute in some of the rows; by how much F falls."""
        near = self._neighbourhood(attribute)
        contexts = near.contexts(values)
        gradient = self.gradient[near.cells]
        old = values[:, attribute]
        gains = _gains(contexts, gradient, old, float(near.singles.sum()))
        # Rows that are alike would all take the same value: its turn is partly left to chance.
        gains *= 0.5 + 0.5 * self.random.random(self.sizes[attribute])
        new = gains.argmin(axis=1)
        better = np.flatnonzero(gains[np.arange(len(gains)), new] < 0)
        if not len(better):
            return 0.0
        cells = contexts[better] * np.int32(self.sizes[attribute])
        move = _Move(
            near,
            gradient.reshape(-1),
            cells + old[better, None],
            cells + new[better, None].astype(np.int32),
        )
        made, fall = move.made(self.random)
        if fall > 0:
            values[better[made], attribute] = new[better[made]]
            self.gradient[near.cells] = move.gradient.reshape(near.cells.shape)
        return fall


def _gains(
    contexts: NDArray[np.int32], gradient: Floats, old: NDArray[np.int32], single: float
) -> Floats:
    """Half of the change of F for each row and each value of an attribute."""
    count, tables = contexts.shape
    pointers = np.arange(0, contexts.size + 1, tables, dtype=np.int32)
    shape = (count, len(gradient))
    lookup = sp.csr_array((np.ones(contexts.size), contexts.reshape(-1), pointers), shape=shape)
    scores = np.asarray(lookup @ gradient)
    lines = np.arange(count)
    scores += single - scores[lines, old][:, None]
    scores[lines, old] = 0.0
    return scores


def _pairs(keys: Integers, scores: Floats) -> tuple[Integers, Integers]:
    """Places with the same key: those with the lowest scores, and those with the highest.

    >>> low, high = _pairs(np.array([0, 1, 0, 0, 1]), np.array([3.0, 9.0, 1.0, 2.0, 4.0]))
    >>> low.tolist(), high.tolist()
    ([2, 4], [0, 1])
    """
    order = np.lexsort((scores, keys))
    sizes = np.bincount(keys)
    starts = np.cumsum(sizes) - sizes
    ordered = keys[order]
    place = np.arange(len(order)) - starts[ordered]
    low = np.flatnonzero(2 * place + 1 < sizes[ordered])
    return order[low], order[low + sizes[ordered[low]] - 1 - 2 * place[low]]


class _Move:
    """Changes of one attribute, made in parts: each where it lowers F after those before it."""

    def __init__(
        self,
        near: _Neighbourhood,
        gradient: Floats,
        before: NDArray[np.int32],
        after: NDArray[np.int32],
    ) -> None:
        self.near, self.gradient = near, gradient
        self.before, self.after = before, after

    def made(self, random: np.random.Generator) -> tuple[Integers, float]:
        """Which of the changes are made, and by how much F falls."""
        count = len(self.before)
        order = random.permutation(count)
        length = max(LEAST_PART, math.ceil(self._best_share() * count / 2.0))
        made, start, gained, failures = [], 0, 0.0, 0
        for _ in range(MOST_PARTS):
            part = order[start : start + length]
            if not len(part) or failures > MOST_FAILURES:
                break
            start += len(part)
            some = part[self._gains(part) < 0]
            fall = self._try(some)
            if fall > 0:
                gained += fall
                made.append(some)
                failures = 0
                length = int(length * LONGER)
            else:
                failures += 1
                length = max(LEAST_PART, length // 2)
        return np.concatenate([np.empty(0, np.intp), *made]), gained

    def _gains(self, part: Integers) -> Floats:
        """Half of the change of F by each change alone."""
        after, before = (self.gradient[cells[part]] for cells in (self.after, self.before))
        moved = self.before[part] != self.after[part]
        return np.asarray((after - before).sum(axis=1) + moved @ self.near.singles)

    def _try(self, part: Integers) -> float:
        """Make some changes at once if F falls; by how much."""
        if not len(part):
            return 0.0
        change = self._change(part)
        pulled = self.near.pulled(change)
        fall = -float((2.0 * self.gradient + pulled) @ change)
        if fall <= 0:
            return 0.0
        self.gradient = self.gradient + pulled
        return fall

    def _change(self, part: Integers | slice) -> Floats:
        """How the counts change."""
        size = len(self.gradient)
        gone = np.bincount(self.before[part].reshape(-1), minlength=size)
        come = np.bincount(self.after[part].reshape(-1), minlength=size)
        return (come - gone).astype(np.float64)

    def _best_share(self) -> float:
        """The share of random changes at which F is expected to be the lowest."""
        change, count = self._change(slice(None)), len(self.before)
        scatter = 2.0 * float(((self.before != self.after) @ self.near.singles).sum())
        slope = 2.0 * float(self.gradient @ change) + scatter
        bend = 2.0 * (float(self.near.pulled(change) @ change) - scatter)
        if slope >= 0:
            return min(1.0, 50.0 / count)
        return 1.0 if bend <= -slope else -slope / bend


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
