"""Expressions as SQL: the only way back to text, which parenthesises every operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr

Names = Callable[[Expr], "str | None"]
"""The text of a node that stands for something else, or None."""


def shown(node: Expr) -> str:
    """An expression as errors name it."""
    return render(node, lambda part: part.name or None if isinstance(part, ir.Case) else None)


def render(node: Expr, names: Names = lambda _: None) -> str:
    """Write an expression in DuckDB's SQL.

    >>> either = ir.Or((ir.Boolean(True), ir.Not(ir.Boolean(False))))
    >>> render(ir.And((either, ir.Binary("<", ir.Column("t", "x"), ir.Number("-1")))))
    '(TRUE OR (NOT FALSE)) AND (x < (-1))'
    """
    named = names(node)
    if named is not None:
        return named
    kind = type(node)
    if kind in _LITERALS:
        return _LITERALS[kind](node)

    def inside(expression: Expr) -> str:
        text = render(expression, names)
        atom = names(expression) is not None or type(expression) in _CLOSED
        return f"({text})" if not atom or text.startswith("-") else text

    def listed(items: tuple[Expr, ...]) -> str:
        return ", ".join(render(expression, names) for expression in items)

    writer = _WRITERS[kind]
    return writer(node, inside, listed)


_Inside = Callable[[Expr], str]
_Listed = Callable[[tuple[Expr, ...]], str]


def _case(node: Any, inside: _Inside, _: _Listed) -> str:
    pairs = zip(node.conditions, node.results, strict=True)
    branches = " ".join(f"WHEN {inside(condition)} THEN {inside(two)}" for condition, two in pairs)
    other = "" if node.default is None else f" ELSE {inside(node.default)}"
    return f"CASE {branches}{other} END"


def _call(node: Any, inside: _Inside, listed: _Listed) -> str:
    if node.pieces is None:
        return f"{node.name}({listed(node.args)})"
    text = node.pieces[0]
    for argument, after in zip(node.args, node.pieces[1:], strict=True):
        alone = text.endswith(("(", ", ")) and after.startswith((")", ","))
        text += (listed((argument,)) if alone else inside(argument)) + after
    return str(text)


def _aggregate(node: Any, inside: _Inside, listed: _Listed) -> str:
    distinct = "DISTINCT " if node.distinct else ""
    inner = listed(node.args) or ("*" if node.name == "COUNT" else "")
    level = "" if node.level is None else f", {node.level:g}"
    where = "" if node.where is None else f" FILTER (WHERE {inside(node.where)})"
    return f"{node.name}({distinct}{inner}{level}){where}"


def _window(node: Any, _: _Inside, listed: _Listed) -> str:
    parts = [f"PARTITION BY {listed(node.partition)}"] if node.partition else []
    parts += [f"ORDER BY {listed(node.order)}"] if node.order else []
    return f"{node.name}({listed(node.args)}) OVER ({' '.join(parts)})"


def _sort_key(node: Any, inside: _Inside, _: _Listed) -> str:
    nulls = " NULLS FIRST" if node.nulls_first else ""
    return f"{inside(node.this)}{' DESC' if node.descending else ''}{nulls}"


_LITERALS: dict[type[Expr], Callable[[Any], str]] = {
    ir.Column: lambda node: str(node.name),
    ir.Attribute: lambda node: str(node.name),
    ir.LookedUp: lambda node: f"{node.lookup}.{node.column}" if node.column else node.lookup,
    ir.Number: lambda node: str(node.text),
    ir.Text: lambda node: "'" + node.value.replace("'", "''") + "'",
    ir.Boolean: lambda node: "TRUE" if node.value else "FALSE",
    ir.Null: lambda _: "NULL",
    ir.Scalar: lambda _: "(SELECT …)",
}
_WRITERS: dict[type[Expr], Callable[[Any, _Inside, _Listed], str]] = {
    ir.CellLabel: lambda node, _, listed: listed((node.this,)),
    ir.OneValue: lambda node, inside, _: inside(node.this),
    ir.Negative: lambda node, inside, _: f"-{inside(node.this)}",
    ir.Binary: lambda node, inside, _: (
        f"{inside(node.left)} {node.op.replace('div', '/')} {inside(node.right)}"
    ),
    ir.And: lambda node, inside, _: " AND ".join(map(inside, node.items)),
    ir.Or: lambda node, inside, _: " OR ".join(map(inside, node.items)),
    ir.Not: lambda node, inside, _: f"NOT {inside(node.this)}",
    ir.IsNull: lambda node, inside, _: f"{inside(node.this)} IS NULL",
    ir.In: lambda node, inside, listed: f"{inside(node.this)} IN ({listed(node.items)})",
    ir.Between: lambda node, inside, _: (
        f"{inside(node.this)} BETWEEN {inside(node.low)} AND {inside(node.high)}"
    ),
    ir.Row: lambda node, _, listed: f"({listed(node.items)})",
    ir.Case: _case,
    ir.Cast: lambda node, _, listed: (
        f"{'TRY_CAST' if node.safe else 'CAST'}({listed((node.this,))} AS {node.to})"
    ),
    ir.Call: _call,
    ir.Aggregate: _aggregate,
    ir.SortKey: _sort_key,
    ir.Window: _window,
    ir.Apart: lambda node, _, listed: f"(SELECT {listed((node.this,))})",
    ir.GroupCount: lambda node, _, listed: f"(number of groups by {listed(node.keys)})",
}
_CLOSED = frozenset(
    {*_LITERALS, ir.Row, ir.Cast, ir.Call, ir.Aggregate, ir.Apart, ir.CellLabel, ir.GroupCount}
)
"""What needs no parentheses inside another expression, unless it has a sign."""
