"""Changes of rows, made where the counts of the rows come nearer to released answers.

What a change does to F = Σ weight·(W·counts − answers)² follows from the gradient by the counts of
all cells: to first order for each row alone, exactly for several rows at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.queries.maps.linear import Floats, Integers
from lrm.releases.cell_tables import Axes, QueryTerm, placed, term_matrix

LEAST_PART = 2
"""Rows that are changed at once, at least; with 16, F ended at 3 times the least at epsilon 1."""

MOST_PARTS = 100
"""Parts of the rows in which one attribute is changed, before the next attribute's turn."""

MOST_FAILURES = 10
"""Parts in turn that do not lower F, after which the next attribute has its turn."""

LONGER = 1.5
"""How much longer the next part is after one that lowered F; it is half as long after others."""


@dataclass(frozen=True, eq=False)
class Target:
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


class Neighbourhood:
    """The cells that an attribute's value decides between: one line per table and context.

    A context of a row is the combination of its other values in a table. All tables with the
    attribute are handled at once: their contexts are numbered one after the other. Without an
    attribute, contexts are the cells of all tables.
    """

    def __init__(self, attribute: int | None, targets: Sequence[Target]) -> None:
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


class Move:
    """Changes of one attribute, made in parts: each where it lowers F after those before it."""

    def __init__(
        self,
        near: Neighbourhood,
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
