"""A batch over several levels of a people as one batch for each level, and back.

Every query of such a batch counts the rows of one level: its factor of the attribute that says of
which level a row is (`lrm.domain.people.Levels`) weighs one level alone. So its queries are those
of the levels, each over the attributes of its own level, and the matrix of the whole batch is

    W = | W_persons     0     |
        |     0      W_orders |    with its rows in the order of the statements.

Answers that are computed from queries of two levels, such as an amount per person, stay with the
whole batch; the levels have their inputs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lrm.domain.people import Level, Levels
from lrm.errors import WorkloadError
from lrm.queries.maps.linear import Integers, LinearMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload.core import Workload
from lrm.queries.workload.derived import Block, Computed, Derived, Quantile
from lrm.queries.workload.formulas import Formula
from lrm.queries.workload.label_blocks import LabelBlock
from lrm.queries.workload.labels import Labels
from lrm.queries.workload.statements import Statement
from lrm.queries.workload.uses import levels_of_terms


@dataclass(frozen=True)
class Places:
    """Which level each query of a batch is of, in runs of queries that follow each other.

    >>> places = Places(((0, 3), (1, 2), (0, 1)))
    >>> list(places.pieces(2, 6))
    [(0, 2, 3), (1, 0, 2), (0, 3, 4)]
    """

    runs: tuple[tuple[int, int], ...]  # the level, and the number of queries

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((length for _, length in self.runs), initial=0))

    @cached_property
    def _own_starts(self) -> list[int]:
        """Where each run begins among the queries of its level."""
        ends: dict[int, int] = {}
        starts = []
        for level, length in self.runs:
            starts.append(ends.get(level, 0))
            ends[level] = starts[-1] + length
        return starts

    def __len__(self) -> int:
        return self._starts[-1]

    def before(self, level: int, row: int) -> int:
        """How many queries of a level come before a query of the batch."""
        run = min(bisect_right(self._starts, row) - 1, len(self.runs) - 1)
        earlier = sum(length for owner, length in self.runs[:run] if owner == level)
        inside = self.runs[run][0] == level
        return earlier + (row - self._starts[run] if inside else 0)

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield the queries ``start:stop`` in order: the level, and the range of its queries."""
        run = max(bisect_right(self._starts, start) - 1, 0)
        while start < stop:
            level, length = self.runs[run]
            first = start - self._starts[run]
            last = min(length, stop - self._starts[run])
            yield level, self._own_starts[run] + first, self._own_starts[run] + last
            start, run = self._starts[run] + last, run + 1

    def of(self, rows: Integers) -> tuple[Integers, Integers]:
        """The level of each of some queries, and their numbers among the queries of that level."""
        run = np.searchsorted(self._starts[1:], rows, side="right")
        levels = np.array([level for level, _ in self.runs], dtype=np.int64)
        moved = np.array(self._own_starts) - np.array(self._starts[:-1])
        return levels[run], rows + moved[run]


@dataclass(frozen=True, eq=False)
class SplitBatch:
    """The batches of those levels that have queries.

    Parameters
    ----------
    numbers
        Which of the levels of the domain each is.
    batches
        Their queries.
    places
        Which of these batches each query of the whole batch is of.
    """

    numbers: tuple[int, ...]
    batches: tuple[Workload, ...]
    places: Places


def split_levels(batch: Workload) -> SplitBatch:
    """The batch of each level, and where the queries of the whole batch are among these.

    Raises a `WorkloadError` where a query is about several levels.
    """
    domain = batch.domain
    levels = None if domain is None else domain.level
    if batch.products is None or not isinstance(levels, Levels):
        raise WorkloadError("a batch over several levels must consist of products over them")
    terms = batch.products.batch
    axes = [levels.axes(level) for level in levels.levels]
    owners, weights = levels_of_terms(terms, axes)
    numbers, owners = np.unique(owners, return_inverse=True)
    runs: list[tuple[int, int]] = []
    for owner, length in zip(owners.tolist(), terms.term_queries.tolist(), strict=True):
        if runs and runs[-1][0] == owner:
            runs[-1] = owner, runs[-1][1] + length
        else:
            runs.append((owner, length))
    places = Places(tuple(runs))
    batches = [
        _level_batch(
            batch,
            levels.levels[number],
            _level_map(terms, np.flatnonzero(owners == place), weights, axes[number]),
            place,
            places,
        )
        for place, number in enumerate(numbers.tolist())
    ]
    return SplitBatch(tuple(numbers.tolist()), tuple(batches), places)


def _level_map(
    terms: ProductBatch,
    numbers: Integers,
    weights: NDArray[np.float64],
    axes: tuple[int, ...],
) -> LinearMap:
    """The queries of some terms over the attributes of their level."""
    weighed = replace(terms, coefficients=terms.coefficients * weights).take(numbers)
    factors = tuple(terms.factors[axis] for axis in axes)
    queries = ProductMap(weighed.over(factors, weighed.choice[:, list(axes)]))
    return SparseMap(queries.sparse()) if len(axes) == 1 else queries


def _level_batch(
    batch: Workload, level: Level, queries: LinearMap, number: int, places: Places
) -> Workload:
    labels, start = [], 0
    for block in batch.labels.blocks:
        stop = start + block.count
        owner = {piece[0] for piece in places.pieces(start, stop)}
        if len(owner) > 1:
            raise WorkloadError("the labels of a query are of several levels")
        if owner == {number}:
            labels.append(block)
        start = stop
    derived, ends = _derived(batch, number, level.label, places)
    assert batch.domain is not None  # noqa: S101 - the caller looked
    rest = {batch.domain.names[axis] for axis in batch.domain.rest_axes}
    own = level.domain
    return Workload(
        queries,
        labels=Labels(labels),
        importance=_importance(batch, number, places),
        domain=own.with_rest([i for i, name in enumerate(own.names) if name in rest]),
        derived=derived,
        statements=_statements(batch, number, places, ends),
    )


def _importance(batch: Workload, number: int, places: Places) -> NDArray[np.float64] | None:
    if batch.importance is None:
        return None
    return np.asarray(batch.importance[places.of(np.arange(batch.shape[0]))[0] == number])


def _derived(
    batch: Workload, number: int, label: str, places: Places
) -> tuple[list[Derived], list[int]]:
    """The derived answers of one level, and how many of these come before each of the batch.

    Of one that has inputs of several levels, the inputs of this one are answers here.
    """
    derived: list[Derived] = []
    ends = [0]
    for answer in batch.derived:
        blocks = [answer.totals] if isinstance(answer, Quantile) else list(answer.inputs)
        owners = [int(places.of(np.array([block.start]))[0][0]) for block in blocks]
        if set(owners) == {number}:
            moved = [_moved(block, places) for block in blocks]
            if isinstance(answer, Quantile):
                derived.append(replace(answer, totals=moved[0]))
            else:
                derived.append(replace(answer, inputs=tuple(moved)))
        elif number in owners:
            for place, (owner, block) in enumerate(zip(owners, blocks, strict=True), start=1):
                if owner == number:
                    name = f"{answer.label.query} ({label}, part {place})"
                    input_label = LabelBlock(name, answer.label.axes, answer.label.line)
                    derived.append(Computed(input_label, Formula((0,)), (_moved(block, places),)))
        ends.append(len(derived))
    return derived, ends


def _moved(block: Block, places: Places) -> Block:
    return replace(block, start=int(places.of(np.array([block.start]))[1][0]))


def _statements(
    batch: Workload, number: int, places: Places, ends: Sequence[int]
) -> Iterator[Statement]:
    """The statements of one level: those that it has answers of, or inputs of their answers."""
    for statement in batch.statements:
        first, last = (places.before(number, row) for row in statement.rows)
        derived = ends[statement.derived[0]], ends[statement.derived[1]]
        if first < last or derived[0] < derived[1]:
            yield replace(statement, rows=(first, last), derived=derived, display=None)
