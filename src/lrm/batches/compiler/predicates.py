"""Conditions of SQL → possible truths over cells, by SQL's three-valued logic.

A comparison of an attribute with a constant is answered by its cells; any other expression is
evaluated on declared values (see `lrm.batches.compiler.evaluation`). A condition is a conjunction
of small tables (see `lrm.batches.compiler.tables`). Cells of an attribute that a statement cannot
tell apart are merged before anything is joined: a statement is walked twice, first to see which
cells its comparisons tell apart.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lrm.batches.compiler import in_bins
from lrm.batches.compiler.atoms import (
    FALSE,
    TRUE,
    Constant,
    Truths,
    among,
    compare,
    is_null,
    nearest_edges,
    undeclared,
)
from lrm.batches.compiler.constants import constant, is_constant
from lrm.batches.compiler.cuts import Cut
from lrm.batches.compiler.evaluation import CellColumn, Evaluator, Values, as_constant
from lrm.batches.compiler.expressions import CellLabel, LookedUp, question, shown
from lrm.batches.compiler.refusals import PREDICATES, at_line, only, refuse, refuse_node
from lrm.batches.compiler.tables import Table, Truth, all_of, any_of, negated
from lrm.domain import Categories
from lrm.domain.lookups import DIFFERENT
from lrm.errors import SqlError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Domain

__all__ = ["Context", "Scope"]

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


Measure = Literal["value", "square", "binning", "presence"]
"""What is added up of an expression: itself, its square, how far bins are off, or one."""


@dataclass(frozen=True, eq=False)
class Context:
    """What the statements of a batch share: they repeat comparisons and expressions."""

    domain: Domain
    comparisons: dict[tuple[int, str, type, Constant], Truths] = field(default_factory=dict)
    expressions: dict[str, Values] = field(default_factory=dict)
    on_cells: dict[str, CellColumn] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Evaluates expressions on declared values."""
        return Evaluator(self.domain)


class Scope:
    """The names that one statement may use, its merged cells, and the cuts made so far."""

    def __init__(self, context: Context) -> None:
        self.domain = context.domain
        self.cuts: list[Cut] = []
        self.measure: Measure = "value"
        self.context = context
        self._merged = False
        self._texts: dict[int, tuple[exp.Expr, str]] = {}
        self._seen: dict[int, list[NDArray[Any]]] = {}
        self._classes: dict[int, NDArray[np.intp]] = {}
        self._first: dict[int, NDArray[np.intp]] = {}
        self._axes = {name.casefold(): axis for axis, name in enumerate(self.domain.names)}

    def declares(self, name: str) -> bool:
        """Whether an attribute has this name."""
        return name.casefold() in self._axes

    def axis(self, node: exp.Expr) -> int:
        """Return the attribute that a column names, whatever its case, as SQL does."""
        if type(node) is not exp.Column:
            raise refuse_node(node, PREDICATES)
        only(node, "this")
        if type(node.this) is not exp.Identifier:
            raise refuse_node(node.this, PREDICATES)
        axis = self._axes.get(node.name.casefold())
        if axis is None:
            names = ", ".join(self.domain.names)
            near = difflib.get_close_matches(node.name, self.domain.names, 1, 0.7)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise at_line(
                node, f"no attribute is called {node.name!r}; {hint}the attributes are {names}"
            )
        return axis

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

    def values(self, node: exp.Expr, said: str = "") -> Values:
        """Evaluate an expression on declared values; cells without one value are noted as cut."""
        if id(node) not in self._texts:  # a statement is walked twice
            self._texts[id(node)] = node, shown(node)
        _, text = self._texts[id(node)]
        found = self.context.expressions.get(text)
        if found is None:
            asked = question(node, self)
            try:
                found = self.context.evaluator.values(asked)
            except SqlError as error:
                raise at_line(node, str(error)) from None
            self.context.expressions[text] = found
        sides = range(len(found.axes))
        for side, (axis, classes) in enumerate(zip(found.axes, found.classes, strict=True)):
            others = tuple(one for one in sides if one != side)
            cells = (found.undecided.any(axis=others) & found.several[side])[classes]
            if cells.any():
                self.cuts.append(Cut(node, f"{said or text} has no one value on", axis, cells))
        return found

    def cell_column(self, node: exp.Expr) -> CellColumn | None:
        """What is known of an expression cell by cell, without its attribute's values."""
        if type(node) is CellLabel:
            axis = self.axis(node.this)
            labels = self.domain.attributes[axis].labels
            return CellColumn(axis, pa.array(labels), np.arange(len(labels)))
        if type(node) is LookedUp:
            return self._looked_up(node)
        return in_bins.column(self, node)

    def _looked_up(self, node: exp.Expr) -> CellColumn:
        axis = self.axis(node.this)
        name, column = node.expression.name, node.args["column"].name
        lookup = next(one for one in self.domain.lookups if one.name == name)
        values = lookup.on_cells(self.domain.attributes[axis], column or None)
        distinct = [one for one in dict.fromkeys(values) if one not in {None, DIFFERENT}]
        order = {one: place for place, one in enumerate(distinct)} | {None: -1, DIFFERENT: -2}
        return CellColumn(axis, pa.array(distinct), np.array([order[one] for one in values]))

    def cut(
        self, node: exp.Expr, axis: int, truths: Truths, text: str = "", hint: str = ""
    ) -> bool:
        """Note the cells on which a comparison may be true and may be false."""
        cells = truths & (TRUE | FALSE) == TRUE | FALSE
        if cells.any():
            self.cuts.append(Cut(node, text or f"{shown(node)} cuts through", axis, cells, hint))
        return bool(cells.any())

    def merge(self) -> None:
        """Merge the cells of each attribute that the noted values do not tell apart."""
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
        return values[self._classes[axis]]

    def truths(self, node: exp.Expr) -> Truth:
        """Return the possible truths of a condition."""
        kind = type(node)
        if kind in (exp.And, exp.Or):
            parts = [self.truths(part) for part in _chain(node)]
            return all_of(parts) if kind is exp.And else any_of(parts)
        if kind is exp.Not:
            only(node, "this")
            return negated(self.truths(node.this))
        if kind is exp.Paren:
            only(node, "this")
            return self.truths(node.this)
        atom = self.atom(node)
        if atom is not None:
            axis, truths = atom
            return Truth((self.spread(truths, axis),))
        if kind is exp.Column:
            return self._flag(node)
        found = self.values(node)
        if found.kind not in {"BOOLEAN", ""}:  # none where it is known on no cell
            raise refuse(f"{shown(node)} as a condition", "compare it with a constant", node)
        return Truth((self.placed(found, found.truths()),))

    def _flag(self, node: exp.Expr) -> Truth:
        """A boolean attribute as a condition."""
        axis = self.axis(node)
        attribute = self.domain.attributes[axis]
        if isinstance(attribute, Categories) and attribute.value_type == "boolean":
            return Truth((self.spread(self._compared(node, axis, "=", value=True), axis),))
        name, example = node.name, attribute.labels[0]
        if isinstance(attribute, Categories):
            quote = "'" if attribute.value_type == "text" else ""
            example = f"{name} = {quote}{example}{quote}"
        else:
            example = nearest_edges(attribute, 0).split(" or ")[0]
        raise refuse(f"{name!r} as a condition", f"compare it: {example}", node)

    def atom(self, node: exp.Expr) -> tuple[int, Truths] | None:
        """Answer a comparison of one attribute with constants by cells; None if it is another."""
        kind = type(node)
        if kind is exp.Is and type(node.this) is exp.Column and type(node.expression) is exp.Null:
            only(node, "this", "expression")
            axis = self.axis(node.this)
            return axis, is_null(self.domain.attributes[axis])
        if kind is exp.In and type(node.this) is exp.Column and node.expressions:
            only(node, "this", "expressions")
            if all(_is_fixed(item) for item in node.expressions):
                return self._in(node)
        if kind in (exp.In, exp.Between) and type(node.this) is not exp.Column:
            return in_bins.spread(self, node)
        if kind is exp.Between and type(node.this) is exp.Column:
            only(node, "this", "low", "high")
            if _is_fixed(node.args["low"]) and _is_fixed(node.args["high"]):
                axis = self.axis(node.this)
                low = self._compared(node, axis, ">=", self._constant(node.args["low"]))
                high = self._compared(node, axis, "<=", self._constant(node.args["high"]))
                return axis, in_bins.joined_truths(all_of, axis, [low, high])
        if kind in _COMPARISONS:
            return self._comparison(node)
        return None

    def _comparison(self, node: exp.Expr) -> tuple[int, Truths] | None:
        only(node, "this", "expression")
        left, right, operation = node.this, node.expression, _COMPARISONS[type(node)]
        if type(right) is exp.Column:
            left, right, operation = right, left, _FLIPPED[operation]
        if type(left) is not exp.Column or not _is_fixed(right):
            return in_bins.compared(self, node)
        axis = self.axis(left)
        return axis, self._compared(node, axis, operation, self._constant(right))

    def _constant(self, node: exp.Expr) -> Constant:
        """Read a constant, or compute one such as ``2 * 500``."""
        if is_constant(node) and (type(node) is not exp.Cast or node.to.is_type(exp.DType.DATE)):
            return constant(node)
        found = self.values(node)
        value: Constant | None = as_constant(found.distinct)
        if value is None:
            raise refuse(f"the constant {shown(node)}", PREDICATES, node)
        return value

    def _compared(self, node: exp.Expr, axis: int, operation: str, value: Constant) -> Truths:
        key = (axis, operation, type(value), value)
        truths = self.context.comparisons.get(key)
        attribute = self.domain.attributes[axis]
        if truths is None:
            try:
                truths = compare(attribute, operation, value)
            except SqlError as error:
                raise at_line(node, str(error)) from None
            self.context.comparisons[key] = truths
        strange = undeclared(attribute, value) if operation in {"=", "<>"} else None
        said = ("", "") if strange is None else (f"{strange[0]}: it cuts through", strange[1])
        if not self.cut(node, axis, truths, *said) and strange is not None:
            told = at_line(node, f"{strange[0]}, so that no row equals it; {strange[1]}")
            self.context.warnings[str(told)] = None
        return truths

    def _in(self, node: exp.Expr) -> tuple[int, Truths]:
        axis = self.axis(node.this)
        values = list(dict.fromkeys(self._constant(item) for item in node.expressions))
        attribute = self.domain.attributes[axis]
        try:
            found = among(attribute, values)
        except SqlError as error:
            raise at_line(node, str(error)) from None
        if found is None:
            each = [self._compared(node, axis, "=", value) for value in values]
            return axis, in_bins.joined_truths(any_of, axis, each)
        truths, strange = found
        for value in strange:
            self._compared(node, axis, "=", value)  # notes the cut, or warns
        self.cut(node, axis, truths)
        return axis, truths

    def explain(self, undecided: dict[int, int]) -> SqlError:
        """Name the first comparison that leaves a cell undecided, and the nearest edges.

        Parameters
        ----------
        undecided
            The merged cell of each attribute that matters.
        """
        for cut in self.cuts:
            if cut.axis not in undecided:
                continue  # this answer does not ask about that attribute
            at = int(self._first[cut.axis][undecided[cut.axis]])
            if cut.cells[at]:
                attribute = self.domain.attributes[cut.axis]
                edges = f"the nearest edges are {nearest_edges(attribute, at)}"
                return at_line(
                    cut.node,
                    f"{cut.sentence} the cell {attribute.labels[at]} of {attribute.name!r}, "
                    f"which is counted as one; {cut.hint or edges}",
                )
        raise AssertionError(undecided)  # pragma: no cover - an undecided cell was cut


def _is_fixed(node: exp.Expr) -> bool:
    """Whether an expression reads no column."""
    return node.find(exp.Column) is None


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """Unroll ``((a AND b) AND c) …`` without recursion: batches hold long chains."""
    parts, kind = [], type(node)
    while type(node) is kind:
        only(node, "this", "expression")
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]
