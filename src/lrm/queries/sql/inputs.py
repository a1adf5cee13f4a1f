"""Derived answers of a batch: their inputs are asked once, hidden where nobody asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from typing import TYPE_CHECKING, Self

import numpy as np

from lrm.queries.sql.refusals import taken_name
from lrm.queries.terms import FlatRows, Names, Rows, Terms
from lrm.queries.workload import (
    Block,
    Computed,
    Derived,
    Formula,
    LabelBlock,
    Method,
    Quantile,
    Step,
)

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.queries.maps.products.combine import Product

Vectors = tuple[tuple[int, bytes], ...]
Key = tuple[frozenset[int], tuple[int, ...], tuple[tuple[float, Vectors], ...]]
"""What a linear query asks, without its scale and its groups' cells.

The attributes that decide which rows are dropped, those that it is grouped by, and products.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """A linear aggregate of a derived answer: its groups, and its products.

    ``rows`` are those of attributes of which not every single cell is asked. ``fixed`` says whether
    it is restricted to one group of the expressions that a statement is grouped by.
    """

    axes: tuple[int, ...]
    products: list[Product]
    rows: tuple[Rows, ...] = ()
    fixed: bool = True


@dataclass(frozen=True, eq=False)
class _Computed:
    """An answer that is computed from linear ones, over the groups of one grouping set."""

    label: LabelBlock
    # The attributes that it is grouped by, after the fixed groups of expressions.
    axes: tuple[int, ...]

    @property
    def query(self) -> str:
        """What it is called, without its groups."""
        return self.label.query

    def labels(self, _: Domain) -> list[LabelBlock]:
        """What it is called in its groups."""
        return [self.label]

    def moved(self, lines: int) -> Self:
        """The same some lines further down."""
        return replace(self, label=replace(self.label, line=(self.label.line or 0) + lines))


@dataclass(frozen=True, eq=False)
class DerivedAnswer(_Computed):
    """A formula; ``binning`` and ``per_row`` are those of `lrm.queries.workload.Computed`."""

    # Formula, parts, and the formula ``undivided`` of `lrm.queries.workload.Computed`: several; the
    # first whose parts are all asked anyway is taken, or else the last.
    ways: Sequence[tuple[Sequence[Step], Sequence[Part], Sequence[Step] | None]]
    binning: float | None = None
    per_row: bool = False

    @property
    def parts(self) -> list[Part]:
        """The linear queries that it may need."""
        return [part for _, way, _ in self.ways for part in way]


@dataclass(frozen=True, eq=False)
class QuantileAnswer(_Computed):
    """A quantile, from running totals."""

    level: float
    part: Part
    axis: int
    method: Method
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def parts(self) -> list[Part]:
        """The linear queries that it needs: its running totals."""
        return [self.part]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Queries of a batch: what they ask, where they begin, and their factor."""

    part: Part
    start: int
    scale: float

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many queries further the next group of each attribute is."""
        sizes = {axis_rows.axis: len(axis_rows) for axis_rows in self.part.rows}
        axis_strides, size = [], 1
        for axis in reversed(self.part.axes):
            axis_strides.append(size)
            size *= sizes.get(axis, shape[axis])
        return tuple(reversed(axis_strides))

    def offset(self, part: Part, shape: Sequence[int]) -> int | None:
        """How many queries after the first one those of a part begin; None if they are others."""
        mine, part_rows = ({rows.axis: rows for rows in each.rows} for each in (self.part, part))
        total_offset = 0
        for axis, stride in zip(self.part.axes, self.strides(shape), strict=True):
            axis_rows, other = mine.get(axis), part_rows.get(axis)
            if axis_rows is other or (
                axis_rows is not None and other is not None and axis_rows.key == other.key
            ):
                continue
            cells = np.arange(shape[axis]) if axis_rows is None else axis_rows.single_cells
            part_cells = np.arange(shape[axis]) if other is None else other.single_cells
            if cells is None or part_cells is None or not 0 < len(part_cells) <= len(cells):
                return None
            at = int(np.argmax(cells == part_cells[0]))
            if not np.array_equal(cells[at : at + len(part_cells)], part_cells):
                return None
            total_offset += at * stride
        return total_offset


@dataclass(eq=False)
class Inputs:
    """The queries of a batch, to find again what was asked before."""

    rows: FlatRows | Terms
    known: dict[Key, list[_Asked]] = field(default_factory=dict)

    def note(self, part: Part, used: frozenset[int]) -> None:
        """Remember a query that is about to be added, whose statement uses some attributes."""
        key, scale = self._key(part, used)
        self.known.setdefault(key, []).append(_Asked(part, self.rows.count, scale))

    def _key(self, part: Part, used: frozenset[int]) -> tuple[Key, float]:
        dropping = [axis for axis in used if self.rows.domain.attributes[axis].drops]
        products, scale = _normal(part)
        return (frozenset(dropping), part.axes, products), scale

    def _find(self, part: Part, used: frozenset[int]) -> Block | None:
        """Where the queries of a part are among those that are asked, with their own strides.

        They may be some of those of another part: LAG asks for the group before.
        """
        key, scale = self._key(part, used)
        shape = self.rows.domain.shape
        for known_part in self.known.get(key, ()):
            offset = known_part.offset(part, shape)
            if offset is not None:
                strides = known_part.strides(shape)
                return Block(known_part.start + offset, strides, scale / known_part.scale)
        return None

    def derived(self, answer: DerivedAnswer | QuantileAnswer, used: frozenset[int]) -> Derived:
        """The derived answer, whose inputs are added to the batch where they are new.

        ``used`` are the attributes that its statement uses.
        """
        clash = self.rows.taken.add(answer.label)
        if clash is not None:
            raise taken_name(clash)
        if isinstance(answer, QuantileAnswer):
            block = self._block(answer.part, answer, 1, used)
            name = self.rows.domain.attributes[answer.axis].name
            ends = answer.lows, answer.highs
            return Quantile(answer.label, answer.level, block, *ends, name, answer.method)
        known_ways = (way for way in answer.ways if all(self._find(part, used) for part in way[1]))
        steps, parts, undivided = next(known_ways, answer.ways[-1])
        order = list(dict.fromkeys(step for step in steps if isinstance(step, int)))
        formula, other = (
            tuple(order.index(step) if isinstance(step, int) else step for step in each)
            for each in (steps, undivided or ())
        )
        blocks = [self._block(parts[k], answer, place + 1, used) for place, k in enumerate(order)]
        return Computed(
            answer.label,
            Formula(formula),
            tuple(blocks),
            answer.binning,
            answer.per_row,
            Formula(other) if other else None,
        )

    def _block(
        self,
        part: Part,
        answer: DerivedAnswer | QuantileAnswer,
        number: int,
        used: frozenset[int],
    ) -> Block:
        block_strides = self._find(part, used)
        if block_strides is None:
            key, scale = self._key(part, used)
            Block(0, (), scale).check((), 1)
            self.known.setdefault(key, []).append(_Asked(part, self.rows.count, 1.0))
            products = [(coefficient / scale, vectors) for coefficient, vectors in part.products]
            self._hide(answer, replace(part, products=products), number, used)
            block_strides = self._find(part, used)
        assert block_strides is not None  # noqa: S101 - it was just added
        strides = dict(zip(part.axes, block_strides.strides, strict=True))
        fixed = len(answer.label.axes) - len(answer.axes)
        row_counts = [0] * fixed + [strides.get(axis, 0) for axis in answer.axes]
        if isinstance(answer, QuantileAnswer):
            row_counts.append(strides[answer.axis])
        return replace(block_strides, strides=tuple(row_counts))

    def _hide(
        self,
        answer: DerivedAnswer | QuantileAnswer,
        part: Part,
        number: int,
        used: frozenset[int],
    ) -> None:
        label = answer.label
        count = len(label.axes) - len(answer.axes) if part.fixed else 0
        fixed = tuple((name, labels[0]) for name, labels in label.axes[:count])
        # Parts of other groups may have the same name and groups: a number distinguishes them.
        for again in count_from(0):
            more = f".{again}" if again else ""
            names = Names(f"{label.query} (part {number}{more})", label.line, fixed)
            clash = self.rows.add(
                names, part.axes, part.products, part.rows, used=used, hidden=True
            )
            if clash is None:
                return


def _normal(part: Part) -> tuple[tuple[tuple[float, Vectors], ...], float]:
    """The products of a part, with weights at most 1, and the factor that this took out."""
    normal: list[tuple[float, tuple[tuple[int, bytes], ...]]] = []
    for factor, vectors in part.products:
        coefficient = factor
        axis_vectors: list[tuple[int, bytes]] = []
        for axis, vector in sorted(vectors.items()):
            largest = float(np.abs(vector).max()) or 1.0
            coefficient *= largest
            if np.any(vector != vector[0]):
                axis_vectors.append((axis, (vector / largest).tobytes()))
            else:
                coefficient *= float(np.sign(vector[0]))
        if coefficient:
            normal.append((coefficient, tuple(axis_vectors)))
    normal.sort()
    scale = max((abs(coefficient) for coefficient, _ in normal), default=1.0)
    products = tuple((coefficient / scale, axis_vectors) for coefficient, axis_vectors in normal)
    return products, scale


def reach(products: Sequence[Product]) -> tuple[float, float]:
    """Between which numbers the weight of a cell lies, as far as the products tell."""
    low = high = 0.0
    for coefficient, vectors in products:
        ends = [coefficient, coefficient]
        for vector in vectors.values():
            corners = [end * float(v) for end in ends for v in (vector.min(), vector.max())]
            ends = [min(corners), max(corners)]
        low, high = low + ends[0], high + ends[1]
    return low, high
