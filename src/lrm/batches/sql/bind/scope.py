"""Names of a statement of sqlglot, and refusals of what no table of the compiler takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.refusals import ADVICE, AGGREGATES, PREDICATES, refuse
from lrm.batches.sql.source import DUCKDB, nulls_are_small
from lrm.errors import SqlError


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
        name, advice = ADVICE.get(key, (key.strip("_").upper().replace("_", " "), AGGREGATES))
        values: Iterable[object] = value if isinstance(value, list) else [value]
        first = next((item for item in values if isinstance(item, exp.Expr)), node)
        raise refuse("clause", name, advice, at=place(first))


def refuse_node(node: exp.Expr, advice: str, code: str = "") -> SqlError:
    """Refuse a node that no table takes, named as SQL names it."""
    usual = AGGREGATES if isinstance(node, exp.AggFunc) else advice
    name, better = ADVICE.get(node.key, ("", usual))
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
    text = name or repr(node.sql(dialect="duckdb"))
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


class Binds(Protocol):
    """What builds the expressions of one SELECT."""

    scope: Scope

    def expr(self, node: exp.Expr) -> Expr:
        """Build an expression."""

    def at(self, node: exp.Expr, *children: Expr) -> int | None:
        """Where an expression begins."""


@dataclass(frozen=True, eq=False)
class Source:
    """A table, lookup or sub-select in FROM: its columns by their folded names."""

    alias: str
    columns: Mapping[str, Expr]
    kind: str = "table"


class Scope(ABC):
    """The names that an expression of one SELECT may use.

    Parameters
    ----------
    dialect, guessed
        The dialect that the statement is read in, and whether it is not declared.
    """

    def __init__(self, dialect: str = DUCKDB, *, guessed: bool = False) -> None:
        self.dialect, self.guessed = dialect, guessed
        self.sources: list[Source] = []  # what FROM names; names of the first one come first
        self.aliases: dict[str, Expr] = {}  # columns of SELECT that were named so far
        self.windows: dict[str, exp.Expr] = {}

    @abstractmethod
    def elsewhere(self, table: str, name: str) -> Expr | None:
        """A column of a lookup that is not in FROM; None where there is no such column."""

    @abstractmethod
    def unknown(self, node: exp.Expr) -> SqlError:
        """The error for a name that nothing has."""

    @abstractmethod
    def scalar(self, node: exp.Expr) -> Expr:
        """Build a sub-select in an expression."""

    @abstractmethod
    def among(self, this: Expr | None, query: exp.Expr) -> Expr:
        """Build ``key IN (SELECT …)``, or ``EXISTS (SELECT …)`` where there is no key."""

    @abstractmethod
    def counts_persons(self, node: exp.Expr) -> bool:
        """Whether ``COUNT(DISTINCT …)`` of a column counts every row once."""

    def nulls_first(self, node: exp.Expr) -> bool:
        """Whether a key of ORDER BY puts NULL first.

        Where the dialect is not declared, what a dialect does of itself means nothing.
        """
        is_first = bool(node.args.get("nulls_first"))
        usual = nulls_are_small(self.dialect) != bool(node.args.get("desc"))
        return is_first and not (self.guessed and usual)

    def column(self, node: exp.Expr, *, alias_first: bool = False) -> Expr:
        """What a column stands for."""
        if type(node.this) is not exp.Identifier:
            raise refuse_node(node.this, PREDICATES)
        only(node, "this", "table", "db", "catalog")
        name, table = folded(node.name), folded(node.text("table"))
        at = (node.args.get("table") or node.this).meta.get("start")
        expression = self._found(name, table, at, alias_first=alias_first)
        if expression is None:
            raise self.unknown(node)
        return _moved(expression, at)

    def _found(self, name: str, table: str, at: int | None, *, alias_first: bool) -> Expr | None:
        if table:
            table_source = next((source for source in self.sources if source.alias == table), None)
            return (
                self.elsewhere(table, name)
                if table_source is None
                else table_source.columns.get(name)
            )
        if alias_first and name in self.aliases:
            return self.aliases[name]
        first, *other_sources = self.sources or [Source("", {})]
        if name in first.columns:
            return first.columns[name]
        several = [source for source in other_sources if name in source.columns]
        if len({source.columns[name] for source in several}) > 1:
            names = " and ".join(f"{source.alias}.{name}" for source in several)
            kinds = {source.kind for source in several}
            what = "lookups" if kinds == {"lookup"} else "sub-selects"
            raise SqlError(
                f"{name!r} is a column of several {what}; write {names}",
                code="unknown-column",
                at=at,
            )
        if several:
            return several[0].columns[name]
        return self.aliases.get(name) or self.elsewhere("", name)


def _moved(node: Expr, at: int | None) -> Expr:
    """An expression that is written elsewhere, at the place of the name that stands for it."""
    if isinstance(node, ir.Attribute):
        return ir.Attribute(node.axis, node.name, at=at)
    if isinstance(node, ir.Column):
        return ir.Column(node.table, node.name, at=at)
    if isinstance(node, ir.LookedUp):
        return ir.LookedUp(node.key, node.lookup, node.column, at=at)
    return node
