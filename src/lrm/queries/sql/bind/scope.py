"""How nodes of sqlglot are read: their names and places, and refusals of what no table takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import ADVICE, AGGREGATES, ONE_TABLE, OTHER_NAMES, refuse


def folded(name: str) -> str:
    """A name as names are compared: SQL has no upper and lower case here."""
    return name.casefold()


def bare(node: Any) -> Any:
    """A node without the parentheses around it."""
    while type(node) is exp.Paren:
        node = node.this
    return node


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse every argument of ``node`` that is set and not in ``allowed``."""
    for key, value in node.args.items():
        if key in allowed or value is None or value is False or value == []:
            continue
        words = key.strip("_").upper().replace("_", " ")
        name, advice = ADVICE.get(key, (words, "write the statement without it"))
        values: Iterable[object] = value if isinstance(value, list) else [value]
        first = next((item for item in values if isinstance(item, exp.Expr)), node)
        raise refuse("clause", name, advice, at=place(first))


def refuse_node(node: exp.Expr, advice: str, code: str = "") -> SqlError:
    """Refuse a node that no table takes, named as SQL names it."""
    usual = AGGREGATES if isinstance(node, exp.AggFunc) else advice
    called = folded(node.name) if isinstance(node, exp.Anonymous) else ""
    name, better = ADVICE.get(node.key, ADVICE.get(OTHER_NAMES.get(called, ""), ("", usual)))
    name = f"{called.upper()}()" if called else name
    if not name and isinstance(node, exp.Func):
        name = f"{(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()}()"
    kinds = {
        exp.AggFunc: "aggregate",
        exp.Window: "window",
        exp.Null: "null",
        exp.Query: "subquery",
    }
    default_code = next(
        (kind for node_type, kind in kinds.items() if isinstance(node, node_type)), "function"
    )
    text = name or repr(node.sql(dialect="duckdb", comments=False))
    return refuse(code or default_code, text, better, at=place(node))


_MOST_DIGITS = 18  # of LIMIT, a BIGINT


def row_count(node: exp.Expr) -> int:
    """The number of LIMIT or OFFSET."""
    word = "OFFSET" if type(node) is exp.Offset else "LIMIT"
    value = node.args.get("expression") or node.args.get("count")
    options = node.args.get("limit_options")
    ties = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    text = str(value.this) if type(value) is exp.Literal and not value.is_string else ""
    if ties:
        advice = "which groups are equal depends on noise; write a number of groups"
        raise refuse("display", "WITH TIES or PERCENT", advice, at=place(node))
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        sentence = f"{word} must be a whole number, such as {word} 10"
        raise SqlError(sentence, code="display", at=place(node))
    return int(text)


def place(node: exp.Expr | None) -> int | None:
    """Where the first word of a node begins in the text, if sqlglot knows."""
    starts = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta] if node else []
    return min(starts) if starts else None


@dataclass(frozen=True, eq=False)
class Source:
    """A table, lookup or sub-select in FROM: its columns by their folded names."""

    alias: str
    columns: Mapping[str, Expr]
    kind: str = "table"


def equality(node: exp.Expr, alias: str, key: str = "") -> tuple[exp.Expr, exp.Expr] | None:
    """The column of a source that a condition compares with another column, and that one.

    A column without a table is one of the source where it is called ``key``; with a key, no other
    column of the source counts. None for any other condition.
    """
    sides = [node.this, node.expression] if type(node) is exp.EQ else []
    columns = [side for side in sides if type(side) is exp.Column]
    inner = [side for side in columns if folded(side.table) == alias]
    inner = inner or [side for side in columns if not side.table and folded(side.name) == key]
    if len(columns) < 2 or len(inner) != 1 or (key and folded(inner[0].name) != key):
        return None
    return inner[0], next(side for side in columns if side is not inner[0])


def flat(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins."""
    parts: list[exp.Expr] = []
    while type(node) is exp.And:
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]


def table_name(table: exp.Expr) -> tuple[str, str]:
    """The name of a table, and its alias or nothing."""
    if type(table.this) is not exp.Identifier:
        raise refuse("join", "a table function", ONE_TABLE, at=place(table))
    only(table, "this", "db", "catalog", "alias", "hints")  # a hint changes no answer
    alias = alias_of(table)
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    if any(part is not None and type(part) is not exp.Identifier for part in parts):
        raise SqlError("the table's name must be plain", code="syntax", at=place(table))
    return ".".join(part.name for part in parts if part is not None), alias


def alias_of(node: exp.Expr) -> str:
    """The alias of a table, or nothing."""
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
    return str(node.alias)


def moved_to(node: Expr, at: int | None) -> Expr:
    """An expression that is written elsewhere, at the place of the name that stands for it."""
    named = isinstance(node, ir.Attribute | ir.Column | ir.LookedUp)
    return replace(node, at=at) if named else node
