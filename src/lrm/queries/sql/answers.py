"""One answer of a statement → linear queries, or a formula of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lrm.domain import Domain
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import UNBOUNDED
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.forms import squares_added
from lrm.queries.sql.groups import (
    GroupBlock,
    GroupingSet,
    Keys,
    count_groups,
    group_numbers,
    number_of_group,
)
from lrm.queries.sql.inputs import DerivedAnswer, Part, QuantileAnswer, reach
from lrm.queries.sql.quantiles import quantile_answer
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.statistics import Asked, Centre, Leaf, Size, Steps
from lrm.queries.sql.tables import Truth, Weighed, Weights, multiplied, products_of
from lrm.queries.sql.windows import KeyGroup, Window, window_of
from lrm.queries.terms import Cells as Cells_
from lrm.queries.terms import Names, Rows
from lrm.queries.workload import Formula, LabelBlock, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.queries.maps.products.combine import Product
    from lrm.queries.sql.cells import Cells


@dataclass(frozen=True, eq=False)
class Answer:
    """One aggregate of a statement, over the groups of its grouping sets."""

    names: Names
    blocks: list[GroupBlock]
    products: list[Product]

    @property
    def query(self) -> str:
        """What it is called, without its groups."""
        return self.names.query

    @property
    def parts(self) -> list[Part]:
        """The linear queries that it needs: itself."""
        return [Part(axes, self.products, rows) for axes, rows in self.blocks]

    def labels(self, domain: Domain) -> list[LabelBlock]:
        """What it is called in its groups."""
        return [self.names.label(domain, axes, rows) for axes, rows in self.blocks]

    def moved(self, lines: int) -> Answer:
        """The same some lines further down."""
        return replace(self, names=replace(self.names, line=(self.names.line or 0) + lines))


_Way = tuple["Steps", "list[list[Product]]", "Steps | None"]

Weighted = tuple[Weights, Weights | None]
"""The weights of a leaf, and where it adds up numbers in bins how far each may be off."""


@dataclass(frozen=True, eq=False)
class Grouped:
    """What a statement is grouped by."""

    sets: list[GroupingSet]  # attributes of each grouping set
    keys: Keys  # expressions that all sets are by
    # groups, blocks: the groups of the expressions, and for each the groups of the attributes that
    # are there.
    groups: Sequence[KeyGroup]
    blocks: Sequence[list[GroupBlock]]
    # The same without the conditions that are tested after windows: what windows look at.
    wholes: Sequence[list[GroupBlock]]
    conditions: Sequence[Truth]  # what decides which are there


@dataclass(frozen=True, eq=False)
class Piece:
    """Some groups of a block, of which each window function adds up as many groups."""

    block: GroupBlock
    whole: GroupBlock
    sizes: dict[Expr, float]

    def cells(self, axis: int) -> tuple[Cells_ | None, Cells_ | None]:
        """The cells of an attribute here and in the whole block; None for all."""
        cell_orders = [
            next((axis_rows.order for axis_rows in rows if axis_rows.axis == axis), None)
            for _, rows in (self.block, self.whole)
        ]
        return cell_orders[0], cell_orders[1]


@dataclass(frozen=True, eq=False)
class Compiled:
    """An answer that was decomposed, with the weights of its leaves."""

    names: Names
    asked: Asked
    weights: list[Weighted]
    cells: Cells
    grouped: Grouped

    def answers(
        self, group: KeyGroup, blocks: list[GroupBlock]
    ) -> list[Answer | DerivedAnswer | QuantileAnswer]:
        """The answers in one group of the expressions that the statement is grouped by.

        ``blocks`` are the groups of its attributes that are there.
        """
        names = replace(self.names, fixed=(*self.names.fixed, *group.labels))
        if not blocks:
            return []
        if self.asked.quantile is not None:
            products = self._products(self.weights[0][0], group.tables)
            return [
                quantile_answer(self.asked.quantile, block, names, products, self.cells)
                for block in blocks
            ]
        binning = self._binning(group)
        if self.asked.is_linear and binning is None:
            products = self._products(self.weights[0][0], group.tables)
            return [Answer(names, blocks, products)]
        ways = [self._way(group, centred=False)]
        if any(leaf.counted is not None for leaf in self.asked.leaves):
            ways.append(self._way(group, centred=True))
        pieces = [piece for block in blocks for piece in self._pieces(group, block)]
        derived_answers = [self._derived(piece, names, ways, binning) for piece in pieces]
        sets = self.grouped.sets
        plain = binning is None and len(sets) == 1
        if plain and all(_is_part(derived_part, sets[0]) for derived_part in derived_answers):
            parts = [part.ways[0][1][0] for part in derived_answers]  # running totals are linear
            return [
                Answer(names, [(derived_part.axes, derived_part.rows)], derived_part.products)
                for derived_part in parts
            ]
        return list(derived_answers)

    def _pieces(self, group: KeyGroup, block: GroupBlock) -> list[Piece]:
        """The groups of a block by how many groups each window function adds up for them."""
        sizes: dict[Expr, float] = {
            step.of: self._count(step.of, group, block)
            for step in self.asked.steps
            if isinstance(step, Size) and isinstance(step.of, ir.GroupCount)
        }
        windows = {
            element.node: element for element in self._windows.values() if element.counts_groups
        }
        lengths: dict[int, dict[Expr, NDArray[np.float64]]] = {}
        for node in self._group_numbers:
            self._add_number(node, group, block, sizes, lengths)
        asked_block = block
        if windows:
            block = self._whole(group, next(iter(windows)))
        axes, kept_rows = block
        rows_by_axis = {element.axis: element for element in kept_rows}
        shape = self.cells.domain.shape
        for node, window in windows.items():
            outside_axes = [axis for axis in axes if axis not in window.within]
            base = math.prod(
                len(rows_by_axis[element]) if element in rows_by_axis else shape[element]
                for element in outside_axes
            )
            if self.grouped.keys:
                there = window.held(group) if window.by_keys else np.array(window.present)
                base *= int(there.sum())
            if window.axis is None:
                sizes[node] = float(base)
                if window.needs_some and not base:
                    return []
            elif window.needs_some:
                cells = rows_by_axis[window.axis].order if window.axis in rows_by_axis else None
                rows = window.rows(cells)
                length = (rows.last - rows.first + 1).astype(np.float64)
                lengths.setdefault(window.axis, {})[node] = np.where(length, base * length, np.nan)
        pieces = self._even(Piece(block, block, sizes), lengths)
        if block is not asked_block:
            pieces = [part for piece in pieces for part in self._restricted(piece, asked_block)]
        return pieces

    def _count(self, node: ir.GroupCount, group: KeyGroup, block: GroupBlock) -> float:
        """How many groups of a sub-select there are in a group, or in all of them."""
        if not node.apart:
            return count_groups(node.keys, group, block, self.grouped.conditions, self.cells)
        conditions = list(map(self.cells.truths, node.where))
        return count_groups(node.keys, KeyGroup((), (), ()), ((), ()), conditions, self.cells)

    def _even(
        self, whole: Piece, lengths: dict[int, dict[Expr, NDArray[np.float64]]]
    ) -> list[Piece]:
        """The parts of a piece in which every number is the same; none where one is NULL."""
        pieces = [] if any(map(math.isnan, whole.sizes.values())) else [whole]
        for axis, by_node in lengths.items():
            pieces = [part for piece in pieces for part in self._split(piece, axis, by_node)]
        return pieces

    @cached_property
    def _group_numbers(self) -> list[Expr]:
        """The columns of groups, and of lookups by them, that the formula has."""
        nodes = (step.of for step in self.asked.steps if isinstance(step, Size))
        counts = ir.GroupCount | ir.Window
        return list(dict.fromkeys(node for node in nodes if not isinstance(node, counts)))

    def _add_number(
        self,
        node: Expr,
        group: KeyGroup,
        block: GroupBlock,
        sizes: dict[Expr, float],
        lengths: dict[int, dict[Expr, NDArray[np.float64]]],
    ) -> None:
        """Note what a column of groups is in a block: one number, or one per cell."""
        keys = self.grouped.keys
        outer, kept_rows = block
        if len(node.axes) == 1 and node.axes <= set(outer):
            (axis,) = node.axes
            rows = next((rows.order for rows in kept_rows if rows.axis == axis), None)
            numbers = group_numbers(node, self.cells)
            lengths.setdefault(axis, {})[node] = numbers if rows is None else numbers[rows]
            return
        sizes[node] = number_of_group(node, keys, group, self.cells)

    def _split(
        self, piece: Piece, axis: int, lengths: dict[Expr, NDArray[np.float64]]
    ) -> list[Piece]:
        """The parts of a piece whose cells of one attribute have the same numbers of groups."""
        table = np.stack(list(lengths.values()))
        different, codes = np.unique(table, axis=1, return_inverse=True)
        cells = piece.cells(axis)[0]
        every = np.arange(self.cells.domain.shape[axis]) if cells is None else cells
        labels = self.cells.domain.attributes[axis].labels
        axes, kept_rows = piece.block
        pieces = []
        for code, column in enumerate(different.T.tolist()):
            if any(map(math.isnan, column)):
                continue  # LAG has no answer in the first group
            inside = every[codes.reshape(-1) == code]
            rows = kept_rows
            if len(inside) < len(every):
                other_rows = [axis_rows for axis_rows in kept_rows if axis_rows.axis != axis]
                rows = tuple(
                    sorted(
                        [*other_rows, Rows.single(axis, inside, labels)],
                        key=lambda axis_rows: axis_rows.axis,
                    )
                )
            sizes = {**piece.sizes, **dict(zip(lengths, column, strict=True))}
            pieces.append(Piece((axes, rows), piece.whole, sizes))
        return pieces

    def _whole(self, group: KeyGroup, node: Expr) -> GroupBlock:
        """The groups of attributes that windows look at: the same in all groups of expressions."""
        here = next(place for place, known in enumerate(self.grouped.groups) if known is group)
        block = self.grouped.wholes[here][0]
        expected = [(element.axis, element.key) for element in block[1]]
        for blocks in self.grouped.wholes:
            for element in blocks:
                if len(blocks) > 1 or [(rows.axis, rows.key) for rows in element[1]] != expected:
                    construct = "LAG, AVG or ROWS in OVER (…) where WHERE leaves uneven groups"
                    raise refuse("window", construct, "filter each column for itself", node)
        return block

    def _restricted(self, piece: Piece, block: GroupBlock) -> list[Piece]:
        """The groups of a piece that are in a block; none where it has none of them."""
        axes, kept_rows = piece.block
        rows_by_axis = {rows.axis: rows for rows in kept_rows}
        for rows in block[1]:
            known = rows_by_axis.get(rows.axis)
            order = rows.order if known is None else np.intersect1d(known.order, rows.order)
            if not len(order):
                return []
            labels = self.cells.domain.attributes[rows.axis].labels
            rows_by_axis[rows.axis] = Rows.single(rows.axis, order, labels)
        both = tuple(rows_by_axis[axis] for axis in sorted(rows_by_axis))
        return [replace(piece, block=(axes, both))]

    def _derived(
        self,
        piece: Piece,
        names: Names,
        ways: Sequence[_Way],
        binning: float | None,
    ) -> DerivedAnswer:
        axes, kept_rows = piece.block
        label = names.label(self.cells.domain, axes, kept_rows)

        def known(steps: Steps) -> list[Step]:
            return [
                piece.sizes[step.of] if isinstance(step, Size) else _known(step) for step in steps
            ]

        made = [
            (
                known(steps),
                [self._part(place, products, piece) for place, products in enumerate(parts)],
                None if undivided is None else known(undivided),
            )
            for steps, parts, undivided in ways
        ]
        return DerivedAnswer(label, axes, made, binning, not self.asked.is_average)

    def _binning(self, group: KeyGroup) -> float | None:
        """How far representatives of bins may move what one row adds, or a whole average."""
        bounds = [
            None
            if error is None
            else max(map(abs, reach(self._products(error, self._tables(place, group)))))
            for place, (_, error) in enumerate(self.weights)
        ]
        known = [bound for bound in bounds if bound]
        if not known:
            return None
        if max(known) >= UNBOUNDED**0.5:
            return math.inf
        if any(leaf.square for leaf in self.asked.leaves) and self.asked.is_average:
            return math.sqrt(2.0) * max(known)  # n/(n − 1) is at most 2 in a sample
        if not self.asked.is_average:
            return max(known)
        # A linear combination of averages: its gradient is the same everywhere.
        counts = {leaf.counted for leaf in self.asked.leaves}
        inputs = np.array([[1.0 if k in counts else 0.0] for k in range(len(bounds))])
        steps, *_ = self._way(group, centred=False)
        formula = Formula(tuple(1.0 if isinstance(step, Size) else _known(step) for step in steps))
        (value, gradient), _ = formula.core.dual(inputs)
        moved = sum(abs(float(gradient[k, 0])) * (bound or 0.0) for k, bound in enumerate(bounds))
        return moved * float(formula.steepness(value)[0])

    def _part(self, place: int, products: list[Product], piece: Piece) -> Part:
        axes, kept_rows = piece.block
        window = self._windows.get(place)
        if window is None:
            is_apart = self.asked.leaves[place].apart
            return Part((), products, fixed=False) if is_apart else Part(axes, products, kept_rows)
        rows = {
            axis_rows.axis: axis_rows for axis_rows in kept_rows if axis_rows.axis in window.within
        }
        if window.axis is not None:
            cells, block_cells = piece.cells(window.axis)
            running = window.rows(block_cells if window.counts_groups else None)
            if cells is not None:
                every = block_cells if window.counts_groups else None
                at = cells if every is None else np.searchsorted(every, cells)
                running = running.taken(at)
            rows[window.axis] = running
        part_rows = tuple(sorted(rows.values(), key=lambda axis_rows: axis_rows.axis))
        return Part(tuple(sorted(window.within)), products, part_rows, fixed=window.by_keys)

    @cached_property
    def _windows(self) -> dict[int, Window]:
        """What each leaf with a window adds up over."""
        leaf_windows = {}
        for place, leaf in enumerate(self.asked.leaves):
            if leaf.window is None:
                continue
            if leaf.apart and leaf.window.name != "SUM":
                advice = "write it in the statement itself"
                raise refuse("window", "OVER in a subquery", advice, leaf.window)
            by = self.grouped
            (axes,) = by.sets  # `Select` refuses a window beside several
            there = [bool(blocks) for blocks in by.wholes]
            domain = self.cells.domain
            leaf_windows[place] = window_of(leaf.window, axes, by.keys, by.groups, there, domain)
        return leaf_windows

    def _tables(self, place: int, group: KeyGroup) -> Sequence[Weighed]:
        """The cells of the groups that a leaf is of."""
        window = self._windows.get(place)
        if window is not None:
            return window.tables(group)
        return () if self.asked.leaves[place].apart else group.tables

    def _products(self, weights: Weights, tables: Sequence[Weighed]) -> list[Product]:
        return products_of(tuple(summand.times(tables) for summand in weights), self.cells)

    def _way(self, group: KeyGroup, *, centred: bool) -> _Way:
        """Formula, products, and the formula without what dividing numbers may add to squares.

        Numbers of averages are added up from their centre where wanted.

        Noise on a sum of numbers far from 0 would be out of proportion to that of the counts.
        """
        leaves = self.asked.leaves
        weights = [leaf_weights for leaf_weights, _ in self.weights]
        parts = [
            self._products(leaf_weights, self._tables(place, group))
            for place, leaf_weights in enumerate(weights)
        ]
        centres: dict[int, float] = {}
        for place, leaf in enumerate(leaves):
            if centred and leaf.counted is not None:
                first = next(
                    k for k, other_leaf in enumerate(leaves) if other_leaf.counted == leaf.counted
                )
                low, high = reach(parts[first])
                centres[place] = (low + high) / 2 if max(-low, high) > 1 else 0.0
        moved = [
            self._products(
                _moved(leaf, place, weights, centres[place], first=leaves),
                self._tables(place, group),
            )
            if centres.get(place)
            else parts[place]
            for place, leaf in enumerate(leaves)
        ]
        steps: Steps = []
        for step in self.asked.steps:
            if isinstance(step, Centre):
                steps.append(centres.get(step.leaf, 0.0))
            else:
                steps.append(step)
        steps = _without_zero(steps)
        return steps, moved, self._undivided(steps, centres)

    def _undivided(self, steps: Steps, centres: dict[int, float]) -> Steps | None:
        """The formula with the least squares that numbers by knots can have; None without any.

        Between both formulas lies every answer, as the squares occur once and what they move is
        monotone: otherwise, the formula is refused.
        """
        replaced: Steps = list(steps)
        for place, leaf in enumerate(self.asked.leaves):
            if not leaf.square:
                continue
            assert isinstance(leaf.node, ir.Aggregate)  # noqa: S101 - a sum of squares
            added = squares_added(leaf.node.args[0], self.cells)
            if added is None:
                continue
            if replaced != steps or not _rises_or_falls(steps, place):
                advice = "it is known up to what division adds; select it by itself, or by AVG"
                construct = f"this formula of a variance of {shown(leaf.node.args[0])} by knots"
                raise refuse("formula", construct, advice, leaf.node)
            slope, offset = added
            offset += slope * centres.get(place, 0.0)
            counted = leaf.counted
            assert counted is not None  # noqa: S101 - squares are of variances
            total = next(k for k, other in enumerate(self.asked.leaves) if other.counted == counted)
            least: Steps = [place, 1.0 - slope**2, "*", total, 2 * slope * offset, "*", "-"]
            least += [counted, offset**2, "*", "-"]
            at = steps.index(place)
            replaced[at : at + 1] = least
        return None if replaced == steps else replaced


def _rises_or_falls(steps: Steps, place: int) -> bool:
    """Whether a formula has an input once, and is monotone in it whatever the others are."""
    formula = Formula(tuple(1.0 if isinstance(step, Size) else _known(step) for step in steps))
    probe = np.linspace(1.0, 2.0, formula.inputs)[:, None]
    below = any(gradient[place].any() for _, gradient in formula.core.dual(probe)[1])
    return steps.count(place) == 1 and "abs" not in steps and not below


def _is_part(derived_answer: DerivedAnswer, axes: GroupingSet) -> bool:
    """Whether a derived answer is one of its linear parts."""
    (steps, parts, _), *_ = derived_answer.ways
    return steps == [0] and parts[0].axes == axes


def _moved(
    leaf: Leaf, place: int, weights: Sequence[Weights], centre: float, first: Sequence[Leaf]
) -> Weights:
    """``Σ(x − c)``, or ``Σ(x − c)² = Σx² − 2c·Σx + c²·n``, of the numbers that a leaf adds up."""
    assert leaf.counted is not None  # noqa: S101 - asked of averages
    counts = weights[leaf.counted]
    if not leaf.square:
        return (*weights[place], *multiplied(counts, -centre))
    plain = next(k for k, other_leaf in enumerate(first) if other_leaf.counted == leaf.counted)
    return (
        *weights[place],
        *multiplied(weights[plain], -2 * centre),
        *multiplied(counts, centre**2),
    )


def _known(step: Step | Centre | Size) -> Step:
    assert not isinstance(step, Centre | Size)  # noqa: S101 - both were replaced
    return step


def _without_zero(steps: Steps) -> Steps:
    """The same formula without adding 0."""
    nonzero_steps: Steps = []
    for step in steps:
        if (
            step == "+"
            and nonzero_steps
            and nonzero_steps[-1] == 0.0
            and isinstance(nonzero_steps[-1], float)
        ):
            nonzero_steps.pop()
        else:
            nonzero_steps.append(step)
    return nonzero_steps
