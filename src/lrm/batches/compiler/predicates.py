"""Conditions of SQL → possible truths over cells, by SQL's three-valued logic.

Each comparison touches one attribute, and a condition is a conjunction of small tables (see
`lrm.batches.compiler.tables`). Cells of an attribute that a statement cannot tell apart are
merged before anything is joined: a statement is walked twice, first to see which cells its
comparisons tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import (
    FALSE,
    TRUE,
    Constant,
    Truths,
    compare,
    is_null,
    nearest_edges,
)
from lrm.batches.compiler.constants import constant, is_constant
from lrm.batches.compiler.refusals import PREDICATES, at_line, only, refuse, refuse_node
from lrm.batches.compiler.tables import Table, Truth, all_of, any_of, negated
from lrm.errors import SqlError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Domain

__all__ = ["Cut", "Scope"]

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, eq=False)
class Cut:
    """A comparison or sum that some cells do not answer, and its place in the statement."""

    node: exp.Expr
    sentence: str
    axis: int
    cells: NDArray[np.bool_]


Known = dict[tuple[int, str, type, Constant], Truths]
"""Comparisons made so far in a batch: statements repeat them. (TRUE and 1 are equal in Python.)"""


class Scope:
    """The names that one statement may use, its merged cells, and the cuts made so far."""

    def __init__(self, domain: Domain, table: str, known: Known) -> None:
        self.domain = domain
        self.table = table
        self.cuts: list[Cut] = []
        self._known = known
        self._merged = False
        self._seen: dict[int, list[NDArray[Any]]] = {}
        self._classes: dict[int, NDArray[np.intp]] = {}
        self._first: dict[int, NDArray[np.intp]] = {}
        self._axes = {name.casefold(): axis for axis, name in enumerate(domain.names)}

    def axis(self, node: exp.Expr) -> int:
        """Return the attribute that a column names, whatever its case, as SQL does."""
        if type(node) is not exp.Column:
            raise refuse_node(node, PREDICATES)
        only(node, "this", "table")
        if type(node.this) is not exp.Identifier:
            raise refuse_node(node.this, PREDICATES)
        if node.table and node.table.casefold() != self.table.split(".")[-1].casefold():
            raise refuse(f"table {node.table!r}", f"the batch reads only {self.table!r}", node)
        axis = self._axes.get(node.name.casefold())
        if axis is None:
            names = ", ".join(self.domain.names)
            raise at_line(node, f"no attribute is called {node.name!r}; the attributes are {names}")
        return axis

    def spread(self, values: NDArray[Any], axis: int) -> Table:
        """A table of one attribute's values over its merged cells.

        Before `merge`, the values are only noted, and one of them represents all.
        """
        if not self._merged:
            self._seen.setdefault(axis, []).append(values)
            return Table((), values[0])
        return Table((axis,), values[self._first[axis]])

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

    def over_cells(self, values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        """Values of merged cells, one for every cell of their attribute."""
        return values[self._classes[axis]]

    def truths(self, node: exp.Expr) -> Truth:  # noqa: PLR0911 - one per kind of node
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
        if kind is exp.Is:
            return self._is_null(node)
        if kind is exp.In:
            return self._in(node)
        if kind is exp.Between:
            return self._between(node)
        if kind in _COMPARISONS:
            return self._comparison(node)
        if kind in (exp.Column, exp.Boolean, exp.Literal):
            raise refuse(
                f"{node.sql(dialect='duckdb')!r} as a condition",
                "compare it: smoker = TRUE",
                node,
            )
        raise refuse_node(node, PREDICATES)

    def _comparison(self, node: exp.Expr) -> Truth:
        only(node, "this", "expression")
        left, right, operation = node.this, node.expression, _COMPARISONS[type(node)]
        if is_constant(left):
            left, right, operation = right, left, _FLIPPED[operation]
        if is_constant(left):
            raise refuse("a comparison of constants", PREDICATES, node)
        axis = self.axis(left)
        if type(right) is exp.Column:
            raise refuse("a comparison of two columns", PREDICATES, node)
        return self._atom(node, axis, operation, constant(right))

    def _atom(self, node: exp.Expr, axis: int, operation: str, value: Constant) -> Truth:
        key = (axis, operation, type(value), value)
        truths = self._known.get(key)
        if truths is None:
            try:
                truths = compare(self.domain.attributes[axis], operation, value)
            except SqlError as error:
                raise at_line(node, str(error)) from None
            self._known[key] = truths
        cells = truths == TRUE | FALSE
        if cells.any():
            text = f"{node.sql(dialect='duckdb')} cuts through"
            self.cuts.append(Cut(node, text, axis, cells))
        return Truth((self.spread(truths, axis),))

    def _is_null(self, node: exp.Expr) -> Truth:
        only(node, "this", "expression")
        if type(node.expression) is not exp.Null:
            raise refuse(f"IS {node.expression.sql(dialect='duckdb')}", PREDICATES, node)
        axis = self.axis(node.this)
        return Truth((self.spread(is_null(self.domain.attributes[axis]), axis),))

    def _in(self, node: exp.Expr) -> Truth:
        only(node, "this", "expressions")
        axis = self.axis(node.this)
        if not node.expressions:
            raise refuse("IN without constants", PREDICATES, node)
        return any_of([self._atom(node, axis, "=", constant(item)) for item in node.expressions])

    def _between(self, node: exp.Expr) -> Truth:
        only(node, "this", "low", "high")
        axis = self.axis(node.this)
        low = self._atom(node, axis, ">=", constant(node.args["low"]))
        return all_of([low, self._atom(node, axis, "<=", constant(node.args["high"]))])

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
                return at_line(
                    cut.node,
                    f"{cut.sentence} the cell {attribute.labels[at]} of {attribute.name!r}, "
                    "which is counted as one; "
                    f"the nearest edges are {nearest_edges(attribute, at)}",
                )
        raise AssertionError(undecided)  # pragma: no cover - an undecided cell was cut


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """Unroll ``((a AND b) AND c) …`` without recursion: batches hold long chains."""
    parts, kind = [], type(node)
    while type(node) is kind:
        only(node, "this", "expression")
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]
