"""Lookups in FROM and in sub-selects: their columns by the key, and their rows as constants."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.bind import Binder
from lrm.queries.sql.bind.scope import Source, bare, equality, flat, folded, only, place, row_count
from lrm.queries.sql.build.constants import Constants
from lrm.queries.sql.evaluation import rows_of
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.forms import check_lengths
from lrm.queries.sql.refusals import fail, refuse
from lrm.queries.sql.render import render, shown

if TYPE_CHECKING:
    from lrm.domain import Lookup
    from lrm.queries.sql.build.joins import From

_COMPUTED = ("group", "order", "limit", "offset", "distinct")
_ONE = (
    "take a column for a row of the table, (SELECT {0}.{1} FROM {0} WHERE {0}.{2} = {3}.{2}), or "
    "add up its rows, (SELECT COUNT(*) FROM {0})"
)


@dataclass(frozen=True, eq=False)
class View:
    """A lookup as FROM has it: its columns by the names that they have there, and its rows."""

    lookup: Lookup
    columns: Mapping[str, str]
    where: exp.Expr | None = None
    alias: str = ""  # what the lookup is called in that condition

    def renamed(self, names: Sequence[str]) -> View:
        """The same, its first columns called by other names."""
        old = list(self.columns)
        both = zip([*names, *old[len(names) :]], self.columns.values(), strict=True)
        return replace(self, columns=dict(both))


def whole(lookup: Lookup) -> View:
    """A lookup by itself."""
    return View(lookup, {column: column for column in (lookup.key_column, *lookup.columns)})


def _read_by(node: exp.Expr, lookups: Mapping[str, Lookup]) -> tuple[exp.Expr, Lookup] | None:
    """A SELECT of one lookup, and that lookup; None for any other node."""
    while type(node) is exp.Subquery:
        node = node.this
    source = node.args.get("from_") if type(node) is exp.Select else None
    table = None if source is None else source.this
    lookup = lookups.get(folded(table.name)) if type(table) is exp.Table else None
    alone = lookup is not None and not node.args.get("joins")
    return (node, lookup) if alone and lookup is not None else None


def view_of(node: exp.Expr, lookups: Mapping[str, Lookup]) -> View | None:
    """A SELECT that chooses columns and rows of a lookup; None for any other."""
    read = _read_by(node, lookups)
    if read is None:
        return None
    node, lookup = read
    only(node, "expressions", "from_", "where")
    own = {folded(column): column for column in (lookup.key_column, *lookup.columns)}
    columns: dict[str, str] = {}
    for item in node.expressions:
        inner = item.unalias()
        if type(inner) is exp.Star:
            columns |= {column: column for column in own.values()}
        elif type(inner) is exp.Column and folded(inner.name) in own:
            columns[item.alias_or_name] = own[folded(inner.name)]
        else:
            names, name = ", ".join(own.values()), inner.name
            sentence = f"lookup {lookup.name!r} has no column {name!r}; its columns are {names}"
            raise SqlError(sentence, code="unknown-column", found=name, at=place(item))
    where = node.args.get("where")
    alias = folded(node.args["from_"].this.alias_or_name)
    return View(lookup, columns, None if where is None else where.this, alias)


def lookup_source(view: View, alias: str, key: Expr, *, left: bool) -> Source:
    """The columns of a lookup in FROM; rows without a match stay where ``left``."""
    lookup = view.lookup
    key_expr: Expr = key
    if left:
        key_expr = ir.Case((ir.LookedUp(key, lookup.name, ""),), (key,))
    columns: dict[str, Expr] = {
        folded(name): key_expr
        if column == lookup.key_column
        else ir.LookedUp(key, lookup.name, column)
        for name, column in view.columns.items()
    }
    return Source(alias, columns, "lookup")


# rows as constants


def constants_of(scope: From, node: exp.Expr, lookups: Mapping[str, Lookup]) -> Constants | None:
    """``SELECT region, SUM(people) … GROUP BY region`` of a lookup, as DuckDB computes its rows.

    None for any other node: what chooses columns and rows alone is joined by the key.
    """
    read = _read_by(node, lookups)
    if read is None:
        return None
    node, lookup = read
    plain = all(type(item.unalias()) in {exp.Column, exp.Star} for item in node.expressions)
    if plain and not any(node.args.get(part) for part in _COMPUTED):
        return None
    only(node, "expressions", "from_", "where", *_COMPUTED)
    key = ir.Attribute(scope.domain.names.index(lookup.key), lookup.key)
    alias = folded(node.args["from_"].this.alias_or_name)
    inner = scope.inner(lookup_source(whole(lookup), alias, key, left=False))
    rows = _RowsOf(inner, node, lookup, key).rows(_columns(scope, lookup))
    names = tuple(item.alias_or_name for item in node.expressions)
    return Constants(names, tuple(tuple(map(_constant, row)) for row in rows))


class _RowsOf:
    """A SELECT of a lookup in DuckDB's SQL, over the columns c0, c1 and so on."""

    def __init__(self, scope: From, node: exp.Expr, lookup: Lookup, key: Expr) -> None:
        self.scope, self.node, self.lookup, self.key = scope, node, lookup, key
        self.bind, self.named = Binder(scope), _places(lookup, key)
        self.items = [self.text(item.unalias()) for item in node.expressions]

    def rows(self, columns: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Its rows."""
        args, clauses = self.node.args, ""
        if args.get("where") is not None:
            clauses += f" WHERE {self.text(args['where'].this)}"
        if args.get("group") is not None:
            only(args["group"], "expressions")
            clauses += f" GROUP BY {', '.join(map(self.column, args['group'].expressions))}"
        if args.get("order") is not None:
            clauses += f" ORDER BY {', '.join(map(self._key, args['order'].expressions))}"
        for word in ("limit", "offset"):
            if args.get(word) is not None:
                clauses += f" {word.upper()} {row_count(args[word])}"
        distinct = "DISTINCT " if args.get("distinct") else ""
        found = f"this sub-select of {self.lookup.name}"
        return rows_of(found, distinct + ", ".join(self.items), clauses, columns)

    def text(self, node: exp.Expr) -> str:
        """An expression of the lookup's columns."""
        built = self.bind.expr(node)
        others = {part.lookup for part in built.walk() if isinstance(part, ir.LookedUp)}
        apart = built.has(ir.Column, ir.Scalar, ir.Window) or not built.axes <= self.key.axes
        if apart or others - {self.lookup.name}:
            advice = f"it may read the columns of {self.lookup.name} alone"
            found = f"this sub-select of {self.lookup.name}"
            raise refuse("subquery", found, advice, at=place(node))
        check_lengths(built)
        return render(built, self.named)

    def column(self, node: exp.Expr) -> str:
        """What GROUP BY or ORDER BY names: a column of SELECT, its place, or an expression."""
        aliases = [folded(item.alias) for item in self.node.expressions]
        if type(node) is exp.Column and not node.table and folded(node.name) in aliases:
            return self.items[aliases.index(folded(node.name))]
        number = type(node) is exp.Literal and not node.is_string and node.name.isdigit()
        if number and 1 <= int(node.name[:4]) <= len(self.items):
            return self.items[int(node.name[:4]) - 1]
        return self.text(node)

    def _key(self, node: exp.Expr) -> str:
        nulls = "FIRST" if self.scope.nulls_first(node) else "LAST"
        down = " DESC" if node.args.get("desc") else ""
        return f"{self.column(node.this)}{down} NULLS {nulls}"


def _places(lookup: Lookup, key: Expr) -> Callable[[Expr], str | None]:
    """The columns of a lookup as c0, its key, and c1, c2 and so on."""
    places = {name: f"c{number + 1}" for number, name in enumerate(lookup.columns)}

    def named(part: Expr) -> str | None:
        if isinstance(part, ir.OneValue):
            return f"{part.name}({render(part.this, named)})"
        if part == key:
            return "c0"
        return places[part.column] if isinstance(part, ir.LookedUp) else None

    return named


def _constant(value: Any) -> Expr:
    if value is None:
        return ir.Null()
    if isinstance(value, bool):
        return ir.Boolean(value)
    if isinstance(value, str):
        return ir.Text(value)
    if isinstance(value, dt.date):
        kind = "TIMESTAMP" if isinstance(value, dt.datetime) else "DATE"
        return ir.Cast(ir.Text(str(value)), kind)
    if isinstance(value, float) and not math.isfinite(value):
        raise fail("evaluation", f"a sub-select of a lookup has the value {value}; filter it away")
    return ir.Number(repr(value) if isinstance(value, float) else str(value))


def _columns(scope: From, lookup: Lookup) -> list[list[Any]]:
    """The key and the columns of all rows of a lookup, of a declared key or not."""
    keys = lookup.keys(scope.domain.attribute(lookup.key))
    numbers = range(1, len(lookup.columns) + 1)
    return [list(keys), *([row[number] for row in lookup.rows] for number in numbers)]


# sub-selects in expressions


def of_lookup(scope: From, node: exp.Expr) -> tuple[exp.Expr, Lookup] | None:
    """The SELECT of a sub-select that reads a lookup of the domain, and that lookup."""
    select = bare(node.this)
    source = select.args.get("from_") if type(select) is exp.Select else None
    lookup = None if source is None else scope.lookup(source.this)
    return None if lookup is None else (select, lookup)


def looked_up(scope: From, node: exp.Expr) -> Expr | None:
    """``(SELECT z.name FROM zones z WHERE z.zone = t.zone)`` as the column by the key.

    None for what reads no lookup.
    """
    read = of_lookup(scope, node)
    if read is None:
        return None
    select, lookup = read
    only(select, "expressions", "from_", "where")
    alias, where = folded(select.args["from_"].this.alias_or_name), select.args.get("where")
    key, rest = _outer_key(scope, lookup, alias, [] if where is None else flat(where.this))
    if key is None or rest or len(select.expressions) != 1:
        first, outer = (*lookup.columns, lookup.key_column)[0], scope.sources[0].alias
        advice = _ONE.format(lookup.name, first, lookup.key_column, outer)
        raise refuse("subquery", f"this sub-select of {lookup.name}", advice, at=place(node))
    inner = scope.inner(lookup_source(whole(lookup), alias, key, left=True))
    return Binder(inner).expr(select.expressions[0].unalias())


def among(scope: From, this: Expr | None, query: exp.Expr) -> Expr:
    """``key IN (SELECT key FROM lookup WHERE …)`` as a condition on the key, and EXISTS."""
    advice = "list the constants, or select the key of a lookup"
    refused = refuse("subquery", "a subquery", advice, this, at=place(query))
    read = of_lookup(scope, query)
    if read is None:
        raise refused
    select, lookup = read
    only(select, "expressions", "from_", "where")
    alias = folded(select.args["from_"].this.alias_or_name)
    where = select.args.get("where")
    rest = [] if where is None else flat(where.this)
    there = None
    if this is None:
        there, rest = _outer_key(scope, lookup, alias, rest)
    key = this or there
    if not isinstance(key, ir.Attribute | ir.Column):
        raise refused
    inner = scope.inner(lookup_source(whole(lookup), alias, key, left=False))
    items = [column for column in select.expressions if type(column) is exp.Column]
    selected_columns = [inner.column(column) for column in items]
    if this is not None and (selected_columns != [this] or len(select.expressions) != 1):
        raise refused
    condition: Expr = ir.LookedUp(key, lookup.name, "", at=key.at)
    if rest:
        row_condition = ir.And(tuple(map(Binder(inner).expr, rest)), at=key.at)
        if not _has_row(scope, lookup, key, row_condition):
            return ir.Boolean(value=False, at=key.at)  # for NULL too
        condition = ir.And((condition, *row_condition.items), at=key.at)
    known = ir.Call("COALESCE", (condition, ir.Boolean(value=False)), at=key.at)
    if this is None:
        return known  # EXISTS is never NULL
    return ir.Case((ir.IsNull(key, at=key.at),), (ir.Null(),), known, at=key.at)


def _outer_key(
    scope: From, lookup: Lookup, alias: str, parts: list[exp.Expr]
) -> tuple[Expr | None, list[exp.Expr]]:
    """The column of FROM that a sub-select compares with the key of a lookup, and other parts."""
    for part in parts:
        sides = equality(part, alias, folded(lookup.key_column))
        if sides is not None:
            return scope.column(sides[1]), [other for other in parts if other is not part]
    return None, parts


def _has_row(scope: From, lookup: Lookup, key: Expr, condition: Expr) -> bool:
    """Whether some row of a lookup, of a declared key or not, meets a condition on it."""
    clauses = f" WHERE {render(condition, _places(lookup, key))} LIMIT 1"
    return bool(rows_of(shown(condition), "1", clauses, _columns(scope, lookup)))
