"""Rows whose counts are near released answers: drawn one attribute after the other, then improved.

    minimise F = Σ weight·(W·counts(rows) − answers)²   over tables of N rows

The first rows are drawn attribute by attribute (`lrm.releases.row_draws`). Then values of one
attribute at a time are changed in a part of the rows (`lrm.releases.row_moves`): where F falls to
first order, for as many rows as an exact line search says, and only if F falls indeed. Rows are
also replaced by copies of others, which changes several attributes at once: a husband who becomes a
wife changes sex. This is close to GUM of PrivSyn [1]_.

References
----------
.. [1] "PrivSyn: Differentially private data synthesis", https://arxiv.org/abs/2012.15128.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.clock import Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.queries.maps.linear import Floats, Integers
from lrm.releases.cell_tables import Axes, QueryTerm
from lrm.releases.consistent import ConsistentTable
from lrm.releases.row_draws import draw_rows
from lrm.releases.row_moves import Move, Neighbourhood, Target

ROWS_AT_ONCE = 10_000
"""Rows that a change of one attribute is tried in; more take memory and are no faster."""

MOST_SWEEPS = 400
"""Sweeps over all attributes; 20 to 100 are usual."""

LOOKED_BACK = 10
"""Sweeps over which the gain is judged, at least; a sweep over each row once, at least."""

SMALL_GAIN = 0.03
"""Fall of F over these sweeps at which the rows are as near as they become, relative to F or to
about its least value, if that is smaller: far above it, small gains of many sweeps add up."""

REPLACEMENTS = 4
"""Times per sweep that rows are replaced by copies; with none, F stays above twice the least."""


@dataclass(frozen=True, eq=False)
class Goal:
    """Distances of the rows from the answers at which the search may end.

    Parameters
    ----------
    enough
        Of F.
    terms
        The terms with weights of their own, such as one over the squared error of each answer.
    enough_each
        Of the weighted sum of squared differences from each of these.
    """

    enough: float
    terms: Sequence[QueryTerm]
    enough_each: Floats

    def is_met(self, fit: RowFit) -> bool:
        """Whether the rows are as near; to count them anew takes as long as a sweep or two."""
        if fit.history[-1] > self.enough:
            return False
        return all(
            term.weights @ (fit.answers(term) - term.answers) ** 2 <= enough
            for term, enough in zip(self.terms, self.enough_each.tolist(), strict=True)
        )


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
        self.targets: list[Target] = []
        start = 0
        for axes, own in by_axes.items():
            shape = tuple(self.sizes[i] for i in axes)
            self.targets.append(Target(axes, shape, tuple(own), start))
            start += self.targets[-1].size
        self.forbidden: list[tuple[Target, NDArray[np.bool_]]] = []
        for term in impossible:
            shape = tuple(self.sizes[i] for i in term.axes)
            target = Target(term.axes, shape, (), start)
            empty = term.transpose(np.ones(len(term.answers)), shape).reshape(-1) > 0
            self.forbidden.append((target, empty))
            start += target.size
        self.targets += [target for target, _ in self.forbidden]
        self.attributes = sorted({i for axes in by_axes for i in axes})
        self.values = np.zeros((len(self.sizes), rows), dtype=np.int32)
        self.random = np.random.default_rng(seed)
        self.gradient = np.zeros(start)  # half of that of F by the counts of all cells
        self.history: list[float] = []  # F after each sweep
        self._known: dict[int | None, Neighbourhood] = {}

    def draw(self, tables: Sequence[ConsistentTable]) -> None:
        """Draw all attributes from consistent tables."""
        self.values = draw_rows(self.sizes, self.attributes, tables, self.rows, self.random)
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

    def _cells(self, target: Target) -> Integers:
        cells = np.zeros(self.rows, dtype=np.int64)
        for i, size in zip(target.axes, target.shape, strict=True):
            cells = cells * size + self.values[i]
        return cells

    def _count(self, target: Target) -> Floats:
        return np.bincount(self._cells(target), minlength=target.size).astype(np.float64)

    def answers(self, term: QueryTerm) -> Floats:
        """What the rows answer to the queries of a term."""
        if not term.axes:
            return term.apply(np.array(float(self.rows)))
        shape = tuple(self.sizes[i] for i in term.axes)
        target = Target(term.axes, shape, (term,), 0)
        return term.apply(self._count(target).reshape(shape))

    def improve(self, clock: Clock, least: float = math.inf, goal: Goal | None = None) -> None:
        """Change values while F falls by more than a little, until the rows meet a goal.

        ``least`` is about the least value of F.
        """
        if not self.attributes:
            return
        self._improve(clock, least, goal)
        self._expel()

    def _improve(self, clock: Clock, least: float, goal: Goal | None) -> None:
        looked_back = max(LOOKED_BACK, math.ceil(self.rows / ROWS_AT_ONCE))
        with suppress(StopSolver):
            for _ in range(MOST_SWEEPS):
                if goal is not None and goal.is_met(self):
                    return
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
        move = Move(near, gradient, contexts[replaced], contexts[copied])
        made, fall = move.made(self.random)
        if fall > 0:
            values[replaced[made]] = values[copied[made]]
            self.gradient = move.gradient
        return fall

    def _neighbourhood(self, attribute: int | None) -> Neighbourhood:
        if attribute not in self._known:
            self._known[attribute] = Neighbourhood(attribute, self.targets)
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
        move = Move(
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
