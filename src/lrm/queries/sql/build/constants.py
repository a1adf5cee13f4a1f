"""Tables whose rows a statement writes out: VALUES, and SELECTs of constants without FROM.

``WITH params AS (SELECT DATE '2024-01-01' AS first_day) … WHERE day >= first_day`` has the constant
where the name stands. Several rows are joined by their key, as CASE: ``JOIN (VALUES ('o', 'open'),
('c', 'closed')) AS s (code, name) ON t.code = s.code``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from lrm.queries.sql import expr as ir
from lrm.queries.sql.bind.scope import bare, folded, place
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import refuse

MOST_ROWS = 1000
"""Rows of a table of constants that is joined by its key."""


@dataclass(frozen=True, eq=False)
class Constants:
    """A table of constants: the names of its columns, and its rows."""

    names: tuple[str, ...]
    rows: tuple[tuple[Expr, ...], ...]

    def renamed(self, names: Sequence[str]) -> Constants:
        """The same table, its first columns called by other names."""
        return replace(self, names=(*names, *self.names[len(names) :])) if names else self

    def columns(self) -> dict[str, Expr]:
        """The columns of the only row, by their folded names."""
        return dict(zip(map(folded, self.names), self.rows[0], strict=True))

    def joined(
        self, keys: Sequence[tuple[str, Expr]], at: int | None
    ) -> tuple[dict[str, Expr], Expr]:
        """The columns as CASE of other columns, and whether there is a row for them.

        ``keys`` are the columns of the table that are compared, by their folded names, each with
        what it is equal to.
        """
        if len(self.rows) > MOST_ROWS:
            advice = f"write at most {MOST_ROWS:,}, or declare a lookup in the domain"
            raise refuse("size", f"JOIN of {len(self.rows):,} constants", advice, at=at)
        places = {folded(name): number for number, name in enumerate(self.names)}
        values = [tuple(row[places[name]] for name, _ in keys) for row in self.rows]
        if len(set(values)) < len(values):
            names = ", ".join(name for name, _ in keys)
            advice = "each row of the table would count several times; write each key once"
            raise refuse("join", f"VALUES with the same {names} in several rows", advice, at=at)
        conditions = tuple(
            _every([ir.Binary("=", other, value, at=at) for (_, other), value in pairs])
            for pairs in (list(zip(keys, row, strict=True)) for row in values)
        )
        columns: dict[str, Expr] = {}
        for name, number in places.items():
            own = next((other for key, other in keys if key == name), None)
            results = tuple(row[number] for row in self.rows)
            columns[name] = own or ir.Case(conditions, results, name=name, at=at)
        return columns, ir.Or(conditions, at=at) if len(conditions) > 1 else conditions[0]


def _every(conditions: list[Expr]) -> Expr:
    return ir.And(tuple(conditions)) if len(conditions) > 1 else conditions[0]


def constants_of(  # noqa: PLR0911 - one per kind
    node: exp.Expr, expr: Callable[[exp.Expr], Expr]
) -> Constants | None:
    """The table that VALUES or SELECTs without FROM write out; None for any other node."""
    while type(node) is exp.Subquery:
        node = node.this
    if type(node) is exp.Union:
        parts = [constants_of(part, expr) for part in (node.this, node.expression)]
        first, last = parts
        if first is None or last is None or node.args.get("distinct"):
            return None
        return _checked(Constants(first.names, (*first.rows, *last.rows)), node)
    if type(node) is exp.Values:
        rows = [row.expressions if type(row) is exp.Tuple else [row] for row in node.expressions]
        names = tuple(f"col{number}" for number in range(len(rows[0])))
        if node.find(exp.Column, exp.Subquery) is not None:
            raise _no_constants(node)
        return _checked(Constants(names, tuple(tuple(map(expr, row)) for row in rows)), node)
    if type(node) is not exp.Select:
        return None
    source = node.args.get("from_")
    others = (part for part, value in node.args.items() if value and part != "expressions")
    if source is not None:
        whole = type(source.this) is exp.Values and set(others) == {"from_"}
        star = [type(item) for item in node.expressions] == [exp.Star]
        return constants_of(source.this, expr) if whole and star else None
    if any(others) or any(
        item.find(exp.Subquery, exp.AggFunc, exp.Column) for item in node.expressions
    ):
        return None
    names = tuple(item.alias_or_name for item in node.expressions)
    return _checked(
        Constants(names, (tuple(expr(item.unalias()) for item in node.expressions),)), node
    )


def _checked(table: Constants, node: exp.Expr) -> Constants:
    values = [value for row in table.rows for value in row]
    uneven = any(len(one) != len(two) for one, two in pairwise(table.rows))
    if uneven or any(value.has(ir.Aggregate, ir.Window, ir.OneValue) for value in values):
        raise _no_constants(node)
    return table


def _no_constants(node: exp.Expr) -> Exception:
    advice = "write a constant for each column of each row"
    return refuse("clause", "a table of something else than constants", advice, at=place(node))


def names_of(node: exp.Expr) -> list[str]:
    """The names of columns that ``AS t (a, b)`` gives."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [bare(column).name for column in columns or []]
