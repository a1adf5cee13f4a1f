"""Conditions and expressions → truths and values over cells, by SQL's three-valued logic.

A comparison of an attribute with a constant is answered by its cells; any other expression is
evaluated on declared values (see `lrm.queries.sql.evaluation`). A condition is a conjunction of
small tables (see `lrm.queries.sql.tables`). Cells of an attribute that a statement cannot
distinguish are merged before anything is joined: a statement is walked twice, first to see which
cells its comparisons distinguish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lrm.domain import Bins, Categories, Domain, Numbers
from lrm.domain.lookups import DIFFERENT
from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import (
    FALSE,
    NOT,
    NULL,
    TRUE,
    Constant,
    Intervals,
    Truths,
    among,
    compare,
    date,
    finer_cells,
    half_open,
    is_binned,
    is_null,
    nearest_edges,
    undeclared,
    undivided,
)
from lrm.queries.sql.evaluation import CellColumn, Evaluator, Question, Values, as_constant
from lrm.queries.sql.expr import COMPARISONS, Expr
from lrm.queries.sql.forms import chain, check_lengths, turning
from lrm.queries.sql.refusals import ADVICE, PREDICATES, fail, refuse
from lrm.queries.sql.render import render, shown
from lrm.queries.sql.tables import Table, Truth, all_of, any_of, negated
from lrm.queries.sql.times import begins, clocked, depends_on_time, is_time

if TYPE_CHECKING:
    from numpy.typing import NDArray


_UNKNOWN = -2  # the place of a value that differs within a cell


@dataclass(frozen=True, eq=False)
class Cut:
    """A comparison or sum that some cells do not answer, and its place in the statement."""

    node: Expr
    sentence: str
    axis: int
    cells: NDArray[np.bool_]
    hint: str = ""
    varies: bool = False  # an expression with several values on a cell, which no edge would mend


@dataclass(frozen=True, eq=False)
class Context:
    """What the statements of a batch share: they repeat comparisons and expressions."""

    domain: Domain
    comparisons: dict[tuple[int, str, type, Constant], Truths] = field(default_factory=dict)
    expressions: dict[Expr, Values] = field(default_factory=dict)
    on_cells: dict[Expr, CellColumn] = field(default_factory=dict)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Evaluates expressions on declared values."""
        return Evaluator(self.domain)


class Cells:
    """The cells of one statement: those that it merges, and the cuts made so far."""

    def __init__(self, context: Context) -> None:
        self.domain = context.domain
        self.context = context
        self.cuts: list[Cut] = []
        self.warnings: dict[str, Expr] = {}
        self._merged = False
        self._seen: dict[int, list[NDArray[Any]]] = {}
        self._classes: dict[int, NDArray[np.intp]] = {}
        self._first: dict[int, NDArray[np.intp]] = {}

    # merged cells

    def spread(self, values: NDArray[Any], axis: int) -> Table:
        """A table of one attribute's values over its merged cells.

        Before `merge`, the values are only noted, and one of them represents all.
        """
        if not self._merged:
            self._seen.setdefault(axis, []).append(values)
            return Table((), values[0])
        return Table((axis,), values[self._first[axis]])

    def placed(self, values: Values, joint: NDArray[Any]) -> Table:
        """A table of an expression's values, given by its classes, over merged cells."""
        if not self._merged:
            for axis, classes in zip(values.axes, values.classes, strict=True):
                self._seen.setdefault(axis, []).append(classes)
            return Table((), joint.flat[0])
        places = [
            classes[self._first[axis]]
            for axis, classes in zip(values.axes, values.classes, strict=True)
        ]
        return Table(values.axes, joint[np.ix_(*places)] if places else joint)

    def merge(self) -> None:
        """Merge the cells of each attribute that the noted values do not distinguish."""
        for axis, seen in self._seen.items():
            merged = np.zeros(self.domain.shape[axis], dtype=np.intp)
            first = np.zeros(1, dtype=np.intp)
            for values in seen:
                codes = values
                if values.dtype != np.uint8:  # truths are small numbers already
                    codes = np.unique(values, return_inverse=True)[1]
                joined = merged * (int(codes.max()) + 1) + codes
                _, first, merged = np.unique(joined, return_index=True, return_inverse=True)
            self._classes[axis], self._first[axis] = merged, first
        self._merged = True
        self.cuts.clear()

    def over_cells(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Values of merged cells, one for every cell of their attribute."""
        return np.asarray(values[self._classes[axis]])

    # expressions

    def values(self, node: Expr, description: str = "") -> Values:
        """Evaluate an expression on declared values; cells without one value are noted as cut."""
        node_values = self.context.expressions.get(node)
        if node_values is None:
            question = self._question(node, description or shown(node))
            try:
                node_values = self.context.evaluator.values(question)
            except SqlError as error:
                raise error.replaced(at=node.at) from None
            self.context.expressions[node] = node_values
        sides = range(len(node_values.axes))
        for side, (axis, classes) in enumerate(
            zip(node_values.axes, node_values.classes, strict=True)
        ):
            other_sides = tuple(other_side for other_side in sides if other_side != side)
            cells = (node_values.undecided.any(axis=other_sides) & node_values.several[side])[
                classes
            ]
            if cells.any():
                sentence = f"{description or shown(node)} is not constant on"
                self.cuts.append(Cut(node, sentence, axis, cells, varies=True))
        return node_values

    def _question(self, node: Expr, description: str) -> Question:
        """Put columns for what cells answer: conditions, labels, lookups and monotone chains."""
        check_lengths(node)
        node = clocked(node, self.domain)
        raw: set[int] = set()
        conditions: list[tuple[int, Truths]] = []
        columns: list[CellColumn] = []
        seen: dict[Expr, str | None] = {}  # equal conditions have the same truth on a row

        def named(inner_node: Expr) -> str | None:
            if inner_node not in seen:
                seen[inner_node] = new_name(inner_node)
            return seen[inner_node]

        def new_name(inner_node: Expr) -> str | None:
            atom = self.atom(inner_node)
            if atom is not None:
                conditions.append(atom)
                return f"p{len(conditions) - 1}"
            column = self._cell_column(inner_node)
            if column is not None:
                columns.append(column)
                return f"c{len(columns) - 1}"
            if isinstance(inner_node, ir.Attribute):
                self._check_points(inner_node, node, description)
                raw.add(inner_node.axis)
                return f"a{inner_node.axis}"
            return None

        text = render(node, named)
        return Question(description, text, frozenset(raw), tuple(conditions), tuple(columns))

    def _check_points(self, column: ir.Attribute, node: Expr, description: str) -> None:
        attribute = self.domain.attributes[column.axis]
        if isinstance(attribute, Numbers):
            raise fail("cut", undivided(attribute, f"used in {description}"), node)
        if is_time(column, self.domain):
            raise depends_on_time(column, description, self.domain, node)
        if isinstance(attribute, Bins):
            edges = [edge for edge in attribute.edges if abs(edge) != float("inf")]
            example = f"{column.name} < {edges[len(edges) // 2]:g}"
            sentence = (
                f"{description} is not constant on the cells of {attribute.name!r}, which are "
                f"intervals; compare the column itself with an edge, such as {example}"
            )
            raise fail("cut", sentence, node)

    def _cell_column(self, node: Expr) -> CellColumn | None:
        """What is known of an expression cell by cell, without its attribute's values."""
        if isinstance(node, ir.CellLabel) and isinstance(node.this, ir.Attribute):
            axis = node.this.axis
            labels = self.domain.attributes[axis].labels
            return CellColumn(axis, pa.array(labels), np.arange(len(labels)))
        if isinstance(node, ir.LookedUp):
            return self._looked_up(node)
        if isinstance(node, ir.OneValue) and isinstance(node.this, ir.Attribute):
            return self._cell_order(node.this.axis)
        time = begins(node, self.domain)
        if time is not None:
            return self._on_cells(node, time.axis)
        axis_of = None if isinstance(node, ir.Attribute) else self._chain_axis(node)
        return None if axis_of is None else self._on_cells(node, axis_of)

    def _cell_order(self, axis: int) -> CellColumn | None:
        """The place of each cell of numbers in bins in their order, which MIN(x) sorts by."""
        attribute = self.domain.attributes[axis]
        if not is_binned(attribute):
            return None
        order = Intervals.of(attribute).ascending()[0]
        places = np.full(attribute.size, -1)
        places[order] = np.arange(len(order))
        return CellColumn(axis, pa.array(np.arange(len(order))), places)

    def _looked_up(self, node: ir.LookedUp) -> CellColumn:
        assert isinstance(node.key, ir.Attribute)  # noqa: S101 - `rewrite` checks it
        axis = node.key.axis
        lookup = next(entry for entry in self.domain.lookups if entry.name == node.lookup)
        values = lookup.on_cells(self.domain.attributes[axis], node.column or None)
        distinct = [entry for entry in dict.fromkeys(values) if entry not in {None, DIFFERENT}]
        order = {entry: place for place, entry in enumerate(distinct)} | {None: -1, DIFFERENT: -2}
        return CellColumn(axis, pa.array(distinct), np.array([order[entry] for entry in values]))

    def _chain_axis(self, node: Expr) -> int | None:
        """The attribute in bins of which a node is a chain of monotone functions."""
        if isinstance(node, ir.LookedUp | ir.CellLabel) or ir.is_constant(node):
            return None
        chain_column = chain(node)
        if chain_column is None or not isinstance(self.domain.attributes[chain_column.axis], Bins):
            return None
        return chain_column.axis

    def _on_cells(self, node: Expr, axis: int) -> CellColumn:
        """The values of a monotone expression, cell by cell."""
        cell_column = self.context.on_cells.get(node)
        if cell_column is None:
            cell_column = self._at_ends(node, axis)
            for condition in turning(node):
                turns = self._at_ends(condition, axis).places == _UNKNOWN
                cell_column = replace(
                    cell_column, places=np.where(turns, _UNKNOWN, cell_column.places)
                )
            self.context.on_cells[node] = cell_column
        return cell_column

    def _at_ends(self, node: Expr, axis: int) -> CellColumn:
        text = render(
            node, lambda inner_node: f"a{axis}" if isinstance(inner_node, ir.Attribute) else None
        )
        try:
            return self.context.evaluator.on_cells(shown(node), text, axis)
        except SqlError as error:
            raise error.replaced(at=node.at) from None

    # conditions

    def truths(self, node: Expr) -> Truth:
        """Return the possible truths of a condition."""
        if isinstance(node, ir.And | ir.Or):
            parts = [self.truths(part) for part in node.items]
            return all_of(parts) if isinstance(node, ir.And) else any_of(parts)
        if isinstance(node, ir.Not):
            return negated(self.truths(node.this))
        atom = self.atom(node)
        if atom is not None:
            axis, truths = atom
            return Truth((self.spread(truths, axis),))
        if isinstance(node, ir.Attribute):
            return self._flag(node)
        node_values = self.values(node)
        if node_values.kind not in {"BOOLEAN", ""}:  # none where it is known on no cell
            what = f"{shown(node)} as a condition"
            raise refuse("constant", what, "compare it with a constant", node)
        return Truth((self.placed(node_values, node_values.truths()),))

    def _flag(self, node: ir.Attribute) -> Truth:
        """A boolean attribute as a condition."""
        attribute = self.domain.attributes[node.axis]
        if isinstance(attribute, Categories) and attribute.value_type == "boolean":
            truths = self._compared(node, node.axis, "=", value=True)
            return Truth((self.spread(truths, node.axis),))
        name, example = node.name, attribute.labels[0]
        if isinstance(attribute, Categories):
            quote = "'" if attribute.value_type == "text" else ""
            example = f"{name} = {quote}{example}{quote}"
        else:
            example = nearest_edges(attribute, 0).split(" or ")[0]
        raise refuse("constant", f"{name!r} as a condition", f"compare it: {example}", node)

    def atom(self, node: Expr) -> tuple[int, Truths] | None:
        """Answer a comparison of one attribute with constants by cells; None if it is another."""
        if isinstance(node, ir.IsNull) and isinstance(node.this, ir.Attribute):
            axis = node.this.axis
            return axis, is_null(self.domain.attributes[axis])
        if isinstance(node, ir.In):
            return self._in(node)
        if isinstance(node, ir.Between):
            sides = [("<=", node.high), (">=", node.low)][::-1]
            before = len(self.cuts)
            comparisons = [self._comparison(node, op, node.this, value) for op, value in sides]
            self._hint(node, before)
            return _joined(all_of, comparisons)
        if isinstance(node, ir.Binary) and node.op in COMPARISONS:
            left, right, operation = node.left, node.right, node.op
            if isinstance(right, ir.Attribute) or not left.axes:
                left, right, operation = right, left, COMPARISONS[operation]
            return self._comparison(node, operation, left, right)
        return None

    def _hint(self, node: ir.Between, first: int) -> None:
        """Say what to write where BETWEEN cuts the cell that begins with its end."""
        if len(self.cuts) == first or not isinstance(node.this, ir.Attribute):
            return
        attribute = self.domain.attributes[node.this.axis]
        ends = half_open(attribute, self._constant(node.low, node), self._constant(node.high, node))
        if ends is not None:
            name = node.this.name
            hint = f"its end is in another cell: write {name} >= {ends[0]} AND {name} < {ends[1]}"
            self.cuts[first:] = [replace(cut, hint=hint) for cut in self.cuts[first:]]

    def _comparison(
        self, node: Expr, operation: str, left: Expr, right: Expr
    ) -> tuple[int, Truths] | None:
        """Compare an attribute, or a monotone expression of one, with a constant."""
        if right.has(ir.Attribute) or not left.has(ir.Attribute):
            return None
        if isinstance(left, ir.Attribute):
            value = self._constant(right, node)
            return left.axis, self._compared(node, left.axis, operation, value)
        axis = self._chain_axis(left)
        if axis is None or isinstance(left, ir.Row):
            return None
        if isinstance(right, ir.Null):
            raise refuse("null", *ADVICE["null"], node)
        # = and <> are not monotone, but <= and >= are.
        parts = ["<=", ">="] if operation in {"=", "<>"} else [operation]
        axis_truths = []
        for part in parts:
            compared = ir.Binary(part, left, right, at=node.at)
            known = self._on_cells(compared, axis)
            bits = [TRUE if is_true else FALSE for is_true in known.values.to_pylist()]
            truths = np.array([*bits, TRUE | FALSE, NULL], dtype=np.uint8)[known.places]
            axis_truths.append((axis, truths))
        _, truths = _joined(all_of, axis_truths) or axis_truths[0]
        truths = NOT[truths] if operation == "<>" else truths
        comparison = node if isinstance(node, ir.Binary) else ir.Binary(operation, left, right)
        self._cut(node, axis, truths, lambda: f"{shown(comparison)} cuts through")
        return axis, truths

    def _in(self, node: ir.In) -> tuple[int, Truths] | None:
        if any(item.has(ir.Attribute) for item in node.items):
            return None
        if not isinstance(node.this, ir.Attribute):
            if self._chain_axis(node.this) is None or isinstance(node.this, ir.Row):
                return None
            comparisons = [
                self._comparison(node, "=", node.this, candidate) for candidate in node.items
            ]
            return _joined(any_of, comparisons)
        axis = node.this.axis
        attribute = self.domain.attributes[axis]
        constants = [self._constant(item, node) for item in node.items]
        values = list(dict.fromkeys((type(candidate), candidate) for candidate in constants))
        try:
            truths = among(attribute, [value for _, value in values])
        except SqlError as error:
            raise error.replaced(at=node.at) from None
        self._note(node, axis, truths, [value for _, value in values])
        return axis, truths

    def _constant(self, node: Expr, outer_node: Expr) -> Constant:
        """Read a constant of a condition, or compute one such as ``2 * 500``."""
        if isinstance(node, ir.Number):
            return Decimal(node.text)
        if isinstance(node, ir.Text | ir.Boolean):
            return node.value
        if isinstance(node, ir.Null):
            raise refuse("null", *ADVICE["null"], outer_node)
        if isinstance(node, ir.Cast) and node.to == "DATE" and isinstance(node.this, ir.Text):
            try:
                return date(node.this.value)
            except SqlError as error:
                raise error.replaced(at=node.at) from None
        constant_values = self.values(node)
        value: Constant | None = as_constant(constant_values.distinct)
        if value is None:
            raise refuse("constant", f"the constant {shown(node)}", PREDICATES, node)
        return value

    def _compared(self, node: Expr, axis: int, operation: str, value: Constant) -> Truths:
        key = (axis, operation, type(value), value)
        truths = self.context.comparisons.get(key)
        if truths is None:
            try:
                truths = compare(self.domain.attributes[axis], operation, value)
            except SqlError as error:
                raise error.replaced(at=node.at) from None
            self.context.comparisons[key] = truths
        self._note(node, axis, truths, [value] if operation in {"=", "<>"} else [])
        return truths

    def _note(self, node: Expr, axis: int, truths: Truths, values: Sequence[Constant]) -> None:
        """Note the cells that a comparison cuts, and constants that are not declared."""
        attribute = self.domain.attributes[axis]
        strange = undeclared(attribute, values)
        sentence: Callable[[], str] = lambda: f"{shown(node)} cuts through"  # noqa: E731 - shorter
        hint = ""
        if strange:
            sentence, hint = lambda: f"{strange[0][0]}: it cuts through", strange[0][1]
        if not self._cut(node, axis, truths, sentence, hint):
            for what, way_out in strange:
                self.warnings[f"{what}, so that no row equals it; {way_out}"] = node

    def _cut(
        self, node: Expr, axis: int, truths: Truths, sentence: Callable[[], str], hint: str = ""
    ) -> bool:
        """Note the cells on which a comparison may be true and may be false."""
        cells = truths & (TRUE | FALSE) == TRUE | FALSE
        if cells.any():
            self.cuts.append(Cut(node, sentence(), axis, cells, hint))
        return bool(cells.any())

    def explain(self, undecided: dict[int, int]) -> SqlError:
        """Name the first comparison that leaves a cell undecided, and the nearest edges.

        ``undecided`` has the merged cell of each attribute that matters.
        """
        for cut in self.cuts:
            if cut.axis not in undecided:
                continue  # this answer does not ask about that attribute
            at = int(self._first[cut.axis][undecided[cut.axis]])
            if cut.cells[at]:
                attribute = self.domain.attributes[cut.axis]
                edges = f"the nearest edges are {nearest_edges(attribute, at)}"
                advice = finer_cells(attribute, at) if cut.varies else edges
                sentence = (
                    f"{cut.sentence} the cell {attribute.labels[at]} of {attribute.name!r}, "
                    f"which is counted as one; {cut.hint or advice}"
                )
                return fail("cut", sentence, cut.node)
        raise AssertionError(undecided)  # pragma: no cover - an undecided cell was cut


def _joined(
    combine: Callable[[Sequence[Truth]], Truth], parts: Sequence[tuple[int, Truths] | None]
) -> tuple[int, Truths] | None:
    """AND or OR of conditions on one attribute, cell by cell; None where one has no truths."""
    known = [axis_truths for axis_truths in parts if axis_truths is not None]
    if len(known) < len(parts) or not known:
        return None
    axis = known[0][0]
    (table,) = combine([Truth((Table((axis,), truths),)) for _, truths in known]).tables
    return axis, np.asarray(table.values)
