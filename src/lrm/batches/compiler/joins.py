"""JOIN to lookups of the domain → expressions of the attribute that is their key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.expressions import (
    LookedUp,
    attribute_column,
    columns_text,
    held,
    shown,
)
from lrm.batches.compiler.memory import any_true
from lrm.batches.compiler.refusals import ONE_TABLE, at_line, only, refuse

if TYPE_CHECKING:
    from lrm.domain import Domain, Lookup

__all__ = [
    "Joined",
    "all_columns",
    "among_keys",
    "any_column",
    "join_sides",
    "joined_lookup",
    "lookups_last",
    "own_column",
]


@dataclass(frozen=True)
class Joined:
    """A lookup in FROM, under its name or alias; rows without a match stay in a LEFT JOIN."""

    lookup: Lookup
    name: str
    left: bool

    @property
    def matched(self) -> exp.Expr:
        """Whether the key of a row is in the lookup."""
        return _looked_up(self.lookup, "")


def lookups_last(select: exp.Expr, domain: Domain) -> None:
    """Write ``FROM lookup JOIN t ON …`` as ``FROM t JOIN lookup ON …``.

    ``FROM t, lookup WHERE t.key = lookup.key`` becomes a JOIN too.
    """
    source, joins = select.args["from_"], select.args.get("joins") or []
    names = {one.name.casefold() for one in domain.lookups}
    first = source.this
    if joins and type(first) is exp.Table and first.name.casefold() in names:
        other, side = joins[0].this, joins[0].args.get("side") or ""
        if type(other) is exp.Table and other.name.casefold() not in names:
            if side == "LEFT":
                way_out = f"begin with the table: FROM {other.name} JOIN {first.name}"
                raise refuse(f"LEFT JOIN from {first.name!r}", way_out, joins[0])
            source.set("this", other)
            joins[0].set("this", first)
            joins[0].set("side", "LEFT" if side == "RIGHT" else side)
    for join in joins:
        if type(join.this) is exp.Table and join.this.name.casefold() in names:
            _take_condition(select, join, domain)


def _take_condition(select: exp.Expr, join: exp.Expr, domain: Domain) -> None:
    """Move the equality that a lookup without ON is joined by from WHERE to the JOIN."""
    where = select.args.get("where")
    if where is None or join.args.get("on") is not None or join.args.get("using"):
        return
    name = join.this.alias_or_name.casefold()
    lookup = next(one for one in domain.lookups if one.name.casefold() == join.this.name.casefold())
    key = name, lookup.key_column.casefold()
    parts = list(where.this.flatten()) if type(where.this) is exp.And else [where.this]
    for part in parts:
        sides = [part.this, part.expression] if type(part) is exp.EQ else []
        if any(type(one) is not exp.Column for one in sides):
            continue
        if key in [(one.table.casefold(), one.name.casefold()) for one in sides]:
            rest = [one.copy() for one in parts if one is not part]
            join.set("on", part.copy())
            join.set("kind", None)
            select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
            return


def joined_lookup(join: exp.Expr, domain: Domain) -> Joined:
    """The lookup that a JOIN names."""
    table = join.this
    named = [one for one in domain.lookups if _is_named(one, table)]
    if type(table) is not exp.Table or not named:
        names = ", ".join(one.name for one in domain.lookups)
        may = f"only lookups of the domain are joined: {names}" if names else ONE_TABLE
        raise refuse("JOIN", may, join)
    if join.args.get("method"):
        way_out = f"write JOIN {named[0].name} USING ({named[0].key_column})"
        raise refuse(f"{join.args['method']} JOIN", way_out, join)
    only(join, "this", "on", "using", "side", "kind")
    only(table, "this", "alias")
    side, kind = join.args.get("side") or "", join.args.get("kind") or ""
    if side not in {"", "LEFT"} or kind not in {"", "INNER", "OUTER"}:
        raise refuse(f"{side or kind} JOIN", "write JOIN or LEFT JOIN", join)
    return Joined(named[0], (table.alias or named[0].name).casefold(), side == "LEFT")


def join_sides(join: exp.Expr, joined: Joined) -> exp.Column:
    """The column of the table that a lookup is joined by, with the lookup's key."""
    lookup = joined.lookup
    way_out = f"join it by its key: {lookup.key} = {joined.name}.{lookup.key_column}"
    key = lookup.key_column.casefold()
    using, on = join.args.get("using") or [], join.args.get("on")
    if on is None and [one.name.casefold() for one in using] == [key]:
        return exp.column(using[0].name)
    if type(on) is not exp.EQ or not type(on.this) is type(on.expression) is exp.Column:
        raise refuse("this JOIN", way_out, join)
    both = [on.this, on.expression]
    theirs = [one for one in both if one.table.casefold() == joined.name]
    theirs = theirs or [one for one in both if not one.table and one.name.casefold() == key]
    if len(theirs) != 1 or theirs[0].name.casefold() != key:
        raise refuse(f"JOIN ON {shown(on)}", way_out, join)
    (other,) = (one for one in both if one is not theirs[0])
    return other


def own_column(node: exp.Column, joined: Joined) -> exp.Expr:
    """The column of a joined lookup."""
    lookup, name = joined.lookup, node.name.casefold()
    if name == lookup.key_column.casefold():
        key = attribute_column(lookup.key)
        if not joined.left:
            return key
        return exp.Case(ifs=[exp.If(this=joined.matched, true=key)])
    column = next((one for one in lookup.columns if one.casefold() == name), None)
    if column is None:
        names = ", ".join((lookup.key_column, *lookup.columns))
        raise at_line(
            node, f"lookup {lookup.name!r} has no column {node.name!r}; its columns are {names}"
        )
    return _looked_up(lookup, column)


def any_column(node: exp.Column, lookups: Iterable[Lookup]) -> exp.Expr | None:
    """The column of a lookup that a name means, if one has it."""
    table, name = node.table.casefold(), node.name.casefold()
    found = [
        (lookup, column)
        for lookup in lookups
        for column in lookup.columns
        if column.casefold() == name and table in {"", lookup.name.casefold()}
    ]
    if len(found) > 1:
        names = " and ".join(f"{lookup.name}.{column}" for lookup, column in found)
        raise at_line(node, f"{node.name!r} is a column of several lookups; write {names}")
    return _looked_up(*found[0]) if found else None


def among_keys(node: exp.Expr, domain: Domain) -> exp.Expr:
    """``key IN (SELECT key FROM lookup WHERE …)`` as a condition on the key."""
    way_out = "list the constants, or select the key of a lookup"
    select = node.args["query"].this
    source = select.args.get("from_") if type(select) is exp.Select else None
    table = None if source is None else source.this
    named = [one for one in domain.lookups if type(table) is exp.Table and _is_named(one, table)]
    if not named or type(node.this) is not exp.Column or table is None:
        raise refuse("a subquery", way_out, node)
    only(select, "expressions", "from_", "where")
    joined = Joined(named[0], table.alias_or_name.casefold(), left=False)
    asked = [one.name.casefold() for one in select.expressions if type(one) is exp.Column]
    keys = joined.lookup.key.casefold(), joined.lookup.key_column.casefold()
    if (node.this.name.casefold(), *asked) != keys or len(select.expressions) != 1:
        raise refuse("a subquery", way_out, node)
    condition = joined.matched
    where = select.args.get("where")
    if where is not None:
        if not _has_row(joined, where.this, domain):
            return exp.false()  # for NULL too
        for column in list(where.find_all(exp.Column)):
            column.replace(own_column(column, joined))
        condition = exp.and_(condition, held(where.this))
    missing = exp.If(this=exp.Is(this=node.this.copy(), expression=exp.Null()), true=exp.Null())
    known = exp.Coalesce(this=condition, expressions=[exp.false()])
    return exp.Paren(this=exp.Case(ifs=[missing], default=known))


def _has_row(joined: Joined, condition: exp.Expr, domain: Domain) -> bool:
    """Whether some row of a lookup, of a declared key or not, meets a condition on its columns."""
    lookup = joined.lookup
    for column in condition.find_all(exp.Column):
        own_column(column, joined)  # refuses columns of others
    names = [one.casefold() for one in (lookup.key_column, *lookup.columns)]
    text = columns_text(condition, {name: f"c{place}" for place, name in enumerate(names)})
    keys = lookup.keys(domain.attribute(lookup.key))
    others = [[row[place] for row in lookup.rows] for place in range(1, len(names))]
    return any_true(shown(condition), text, [keys, *others])


def _looked_up(lookup: Lookup, column: str) -> exp.Expr:
    names = [exp.Literal.string(name) for name in (lookup.name, column)]
    return LookedUp(this=attribute_column(lookup.key), expression=names[0], column=names[1])


def _is_named(lookup: Lookup, table: exp.Expr) -> bool:
    """Whether a table of FROM is a lookup, whatever the case of its name."""
    return bool(lookup.name.casefold() == table.name.casefold())


def all_columns(joined: Mapping[str, Joined]) -> dict[str, exp.Expr]:
    """The columns of joined lookups by their names."""
    return {
        column: _looked_up(one.lookup, column)
        for one in joined.values()
        for column in one.lookup.columns
    }
