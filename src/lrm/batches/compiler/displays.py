"""HAVING, ORDER BY and LIMIT → how the noisy answers of a statement are displayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lrm.batches.compiler.chosen import counted
from lrm.batches.compiler.constants import is_constant, number
from lrm.batches.compiler.expressions import shown
from lrm.batches.compiler.refusals import only, refuse
from lrm.domain import Categories
from lrm.workload.display import Bound, Display, OrderKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lrm.domain import Attribute

__all__ = ["Wanted", "ascending", "union_display", "wanted"]

_OPERATIONS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.EQ: "=",
    exp.NEQ: "<>",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_MOST_CLAUSES = 64
_HAVING = "HAVING compares aggregates with numbers; write other conditions in WHERE"
_ORDER = "order by answers or by columns of GROUP BY"


Clause = list[tuple[exp.Expr, str, float]]
"""Comparisons of aggregates with numbers, one of which must hold."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """What HAVING, ORDER BY and LIMIT ask for, in expressions of the statement."""

    having: list[Clause] = field(default_factory=list)
    order: list[tuple[exp.Expr, bool, bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0

    @property
    def aggregates(self) -> list[exp.Expr]:
        """The aggregates that are compared and sorted by."""
        sorted_by = [node for node, _, _ in self.order if node.find(exp.AggFunc) is not None]
        return [node for clause in self.having for node, _, _ in clause] + sorted_by

    def display(
        self,
        queries: Sequence[str],
        names: Mapping[str, str],
        groups: Mapping[str, tuple[str, tuple[str, ...]]],
    ) -> Display:
        """Name what is asked for.

        Parameters
        ----------
        queries
            The answers that are displayed.
        names
            The name of each answer by its text.
        groups
            The name of each column of groups by its text, and its labels in ascending order.
        """
        having = tuple(
            tuple(Bound(names[shown(node)], said, value) for node, said, value in clause)
            for clause in self.having
        )
        order = []
        for node, descending, nulls_first in self.order:
            text = shown(node)
            if text in names:
                order.append(OrderKey(names[text], None, descending, nulls_first))
            elif text in groups:
                order.append(OrderKey(*groups[text], descending, nulls_first))
            elif not is_constant(node):
                raise refuse(f"ORDER BY {text}", _ORDER, node)
        used = {one.answer for clause in having for one in clause} | {
            one.column for one in order if one.labels is None
        }
        hidden = tuple(sorted(used.difference(queries)))
        return Display(tuple(queries), hidden, having, tuple(order), self.limit, self.offset)


def wanted(select: exp.Expr) -> Wanted | None:
    """Read HAVING, ORDER BY, LIMIT and OFFSET; None where a statement has none of them."""
    having, order = select.args.get("having"), select.args.get("order")
    limit, offset = select.args.get("limit"), select.args.get("offset")
    if having is None and order is None and limit is None and offset is None:
        return None
    found = Wanted(
        [] if having is None else _compared(having.this),
        [] if order is None else [_key(one) for one in order.expressions],
        None if limit is None else counted(limit),
        0 if offset is None else counted(offset),
    )
    if having is not None:
        only(having, "this")
    if order is not None:
        only(order, "expressions")
    return found


def union_display(parts: Sequence[exp.Expr], ending: exp.Expr) -> Display:
    """How the answers of all SELECTs that UNION ALL joins are displayed together."""
    clause = next(iter(ending.args.values()))
    if any(one.args.get(part) for one in parts for part in ("having", "order", "limit", "offset")):
        raise refuse("choosing in a part of UNION ALL and after it", "choose at the end", clause)
    first = parts[0].expressions
    names = [item.alias for item in first]
    texts = [
        {
            item.alias: item.this.name
            for item in part.expressions
            if type(item.unalias()) is exp.Literal
        }
        for part in parts
    ]
    queries = tuple(item.alias for item in first if item.find(exp.AggFunc) is not None)
    named = all(
        queries == tuple(one.alias for one in part.expressions if one.find(exp.AggFunc))
        for part in parts
    )
    if not all(queries) or not named or sum(not some for some in texts) > 1:
        way_out = "name the answers by AS, and each part by a text: SELECT 'a' AS part, …"
        raise refuse("ORDER BY or LIMIT after this UNION ALL", way_out, clause)
    found = wanted(ending)
    assert found is not None  # noqa: S101 - it has at least one clause
    order = []
    for node, descending, nulls_first in found.order:
        name = node.name
        if type(node) is exp.Literal and name.isdigit() and 0 < int(name) <= len(names):
            name = names[int(name) - 1]
        labels = tuple(sorted({some[name] for some in texts if name in some}))
        if name not in queries and not all(name in some for some in texts):
            raise refuse(f"ORDER BY {shown(node)} after UNION ALL", "order by an answer", node)
        kind = None if name in queries else labels
        order.append(OrderKey(name, kind, descending, nulls_first))
    return Display(queries, (), (), tuple(order), found.limit, found.offset)


def _compared(node: exp.Expr, *, negated: bool = False) -> list[Clause]:
    """A condition of HAVING as clauses that must all hold."""
    kind = type(node)
    if kind in {exp.Paren, exp.Not}:
        only(node, "this")
        return _compared(node.this, negated=negated is not (kind is exp.Not))
    if kind in {exp.And, exp.Or}:
        only(node, "this", "expression")
        left = _compared(node.this, negated=negated)
        right = _compared(node.expression, negated=negated)
        if (kind is exp.And) is not negated:
            return left + right
        if len(left) * len(right) > _MOST_CLAUSES:
            raise refuse("a HAVING with so many cases", "write it with fewer OR", node)
        return [one + two for one in left for two in right]
    if kind is exp.Between and is_constant(node.args["low"]):
        only(node, "this", "low", "high")
        ends = [(">=", node.args["low"]), ("<=", node.args["high"])]
        both = [_bound(node.this, said, end, negated=negated) for said, end in ends]
        return [both] if negated else [[one] for one in both]
    if kind in _OPERATIONS:
        only(node, "this", "expression")
        left, right, operation = node.this, node.expression, _OPERATIONS[kind]
        if is_constant(left):
            left, right, operation = right, left, _FLIPPED[operation]
        if is_constant(right):
            return [[_bound(left, operation, right, negated=negated)]]
    raise refuse(f"HAVING {shown(node)}", _HAVING, node)


def _bound(
    node: exp.Expr, operation: str, value: exp.Expr, *, negated: bool
) -> tuple[exp.Expr, str, float]:
    said = _OPPOSITE[operation] if negated else operation
    return _answer(node), said, float(number(value))


def _answer(node: exp.Expr) -> exp.Expr:
    while type(node) is exp.Paren:
        node = node.this
    if node.find(exp.AggFunc) is None:
        raise refuse(f"HAVING with {shown(node)}", _HAVING, node)
    return node


def _key(node: exp.Expr) -> tuple[exp.Expr, bool, bool]:
    only(node, "this", "desc", "nulls_first")
    key = node.this
    while type(key) is exp.Paren:
        key = key.this
    return key, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))


def ascending(attribute: Attribute) -> tuple[str, ...]:
    """The labels of an attribute's cells as ORDER BY sorts them; those of NULL are apart."""
    labels = attribute.labels
    regular: list[Any] = list(zip(labels, range(attribute.regular), strict=False))
    if isinstance(attribute, Categories):
        regular.sort(key=lambda one: attribute.values[one[1]])
    below = [label for label in labels[attribute.regular :] if label == "(below)"]
    after = [label for label in labels[attribute.regular :] if label != "(below)"]
    return (*below, *(label for label, _ in regular), *after)
