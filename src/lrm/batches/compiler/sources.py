"""WITH, sub-selects, aliases and positions → one SELECT over the columns of the declared table.

A sub-select that only filters, renames or computes columns is written into the statement that
reads it: its columns become expressions over the declared table, and its WHERE is joined by AND.
A SELECT that only chooses, orders or filters the answers of a sub-select becomes that one, with
ORDER BY, LIMIT and HAVING.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.expressions import LookedUp, shown
from lrm.batches.compiler.joins import (
    Joined,
    all_columns,
    among_keys,
    any_column,
    join_sides,
    joined_lookup,
    own_column,
)
from lrm.batches.compiler.refusals import ONE_TABLE, at_line, only, refuse, refuse_node

if TYPE_CHECKING:
    from lrm.domain import Domain

__all__ = ["Plain", "plain_select"]

_PARTS = ("expressions", "from_", "where", "group", "having", "order", "limit", "offset")
_COMPUTED = "a sub-select may filter, rename and compute columns"
_HELD = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Func)
"""What needs no parentheses inside another expression."""


@dataclass(frozen=True, eq=False)
class Plain:
    """A SELECT over one table, without sub-selects, aliases or positions in its clauses."""

    table: str
    select: exp.Expr


@dataclass(frozen=True, eq=False)
class _Source:
    """What FROM offers: names of columns for expressions over the declared table.

    With ``whole`` all attributes are offered too. ``answers`` is a SELECT with aggregates whose
    columns these are.
    """

    table: str
    qualifier: str
    columns: Mapping[str, exp.Expr]
    whole: bool
    condition: exp.Expr | None = None
    answers: exp.Expr | None = None
    joined: Mapping[str, Joined] = field(default_factory=dict)


def plain_select(select: exp.Expr, domain: Domain) -> Plain:
    """Write everything that a SELECT reads into one SELECT of the declared table."""
    return _Reader(domain, {}).plain(select)


class _Reader:
    """Reads one SELECT: the names that WITH gave, and the attributes."""

    def __init__(self, domain: Domain, known: Mapping[str, Plain]) -> None:
        self.domain = domain
        self.known = dict(known)
        self.attributes = {name.casefold() for name in domain.names}

    def plain(self, select: exp.Expr) -> Plain:
        """Write what a SELECT reads into the SELECT itself."""
        if type(select) is not exp.Select:
            raise refuse_node(select, "a batch holds only SELECT statements")
        if select.args.get("from_") is None:
            raise refuse("SELECT without FROM", "name the table")
        only(select, *_PARTS, "with_", "joins")
        self._read_with(select)
        source = self._source(select.args["from_"])
        for join in select.args.get("joins") or ():
            source = self._joined(join, source)
        select.set("joins", None)
        if source.answers is not None:
            _check_chooses(select)
        self._resolve(select, source)
        if source.answers is not None:
            answers = _chosen(select, source.answers)
            if source.condition is not None:
                _restrict(answers, "where", source.condition)
            return Plain(source.table, answers)
        if source.condition is not None:
            _restrict(select, "where", source.condition.copy())
        return Plain(source.table, select)

    def _read_with(self, select: exp.Expr) -> None:
        clause = select.args.get("with_")
        if clause is None:
            return
        only(clause, "expressions")
        for table in clause.expressions:
            only(table, "this", "alias")
            only(table.args["alias"], "this")
            self.known[table.alias.casefold()] = _Reader(self.domain, self.known).plain(table.this)
        select.set("with_", None)

    def _source(self, clause: exp.Expr) -> _Source:
        only(clause, "this")
        node = clause.this
        if type(node) is exp.Subquery:
            only(node, "this", "alias")
            _check_alias(node)
            inner = _Reader(self.domain, self.known).plain(node.this)
            return self._offered(inner, node.alias)
        if type(node) is not exp.Table:
            raise refuse_node(node, ONE_TABLE)
        name, alias = _table(node)
        known = self.known.get(name.casefold())
        if known is not None:
            return self._offered(Plain(known.table, known.select.copy()), alias or name)
        return _Source(name, alias or name.split(".")[-1], {}, whole=True)

    def _joined(self, join: exp.Expr, source: _Source) -> _Source:
        """The columns of FROM with those of a lookup."""
        joined = joined_lookup(join, self.domain)
        if joined.name in source.joined or joined.name == source.qualifier.casefold():
            raise refuse(f"two tables called {joined.name!r}", "give one an alias", join)
        side = join_sides(join, joined)
        key = self._column(side, source, {})
        if type(key) is not exp.Column or key.name.casefold() != joined.lookup.key.casefold():
            way_out = f"lookup {joined.lookup.name!r} is of {joined.lookup.key!r}"
            raise refuse(f"JOIN by {shown(side)}", way_out, join)
        condition = source.condition
        if not joined.left:
            condition = joined.matched if condition is None else exp.and_(condition, joined.matched)
        return replace(source, condition=condition, joined={**source.joined, joined.name: joined})

    def _offered(self, inner: Plain, qualifier: str) -> _Source:
        """The columns of a sub-select."""
        select, whole = inner.select, False
        answers = select if _has_answers(select) else None
        if answers is None:
            for part in ("having", "limit", "offset"):
                if select.args.get(part) is not None:
                    raise refuse(f"{part.upper()} in a sub-select", _COMPUTED, select.args[part])
        columns: dict[str, exp.Expr] = {}
        for item in select.expressions:
            if type(item) is exp.Star:
                only(item)
                whole = True
            elif item.alias_or_name:
                name = item.alias_or_name.casefold()
                if name in columns:
                    raise refuse(f"two columns called {item.alias_or_name!r}", _COMPUTED, item)
                columns[name] = item.this if type(item) is exp.Alias else item
        for name, column in columns.items():
            if whole and name in self.attributes and column.name.casefold() != name:
                raise refuse(f"a second column called {name!r}", "give it another name", select)
        where = select.args.get("where")
        condition = where.this if where is not None and answers is None else None
        return _Source(inner.table, qualifier, columns, whole, condition, answers)

    def _resolve(self, select: exp.Expr, source: _Source) -> None:
        """Put expressions over the declared table for columns, aliases and positions."""
        aliases: dict[str, exp.Expr] = {}
        items: list[exp.Expr] = []
        for item in list(select.expressions):
            if _is_star(item):
                items += _all_columns(item, source)
                continue
            name = item.name if type(item) is exp.Column else ""
            found = self._settle(item, source, aliases)
            if type(found) is exp.Alias:
                only(found, "this", "alias")
                aliases.setdefault(found.alias.casefold(), found.this)
            items.append(_aliased(found, name) if name else found)
        select.set("expressions", items)
        for part in ("where", "group", "having", "order"):
            if select.args.get(part) is not None:
                self._settle(select.args[part], source, aliases)
        _resolve_places(select)  # what it puts there stands for itself already

    def _settle(self, root: exp.Expr, source: _Source, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        """Replace the columns of an expression by what they stand for."""
        for among in list(root.find_all(exp.In)):
            if among.args.get("query") is not None:
                condition = among_keys(among, self.domain)
                among.replace(condition)
                root = condition if among is root else root
        for node in list(root.find_all(exp.Column)):
            if type(node.this) is not exp.Identifier:
                continue  # refused by whoever reads it
            given = self._column(node, source, aliases)
            if given is node:
                continue
            given = given.copy()
            top = node is root or type(node.parent) in {exp.Alias, exp.Group, exp.Ordered}
            held = given if top or isinstance(given, _HELD) else exp.Paren(this=given)
            node.replace(held)
            if node is root:
                root = held
        return root

    def _column(
        self, node: exp.Column, source: _Source, aliases: Mapping[str, exp.Expr]
    ) -> exp.Expr:
        name, table = node.name.casefold(), node.table.casefold()
        if table in source.joined:
            return own_column(node, source.joined[table])
        if table in {"", source.qualifier.casefold()}:
            offered = self._offers(source, name)
            if not table and name in aliases and (_in_order(node) or not offered):
                return aliases[name]
            node.set("table", None)
            if offered:
                return source.columns.get(name, node)
        keys = [one for one in source.joined.values() if one.lookup.key_column.casefold() == name]
        if keys and not table:
            return own_column(node, keys[0])
        lookups = [one.lookup for one in source.joined.values()]
        if source.whole and not lookups:
            lookups = list(self.domain.lookups)
        found = any_column(node, lookups)
        if found is not None:
            return found
        if node.table:
            only(node, "this", "table")
            raise refuse(f"table {node.table!r}", f"the statement reads {source.qualifier!r}", node)
        if not source.whole:
            names = ", ".join(source.columns)
            raise at_line(
                node, f"the sub-select has no column {node.name!r}; its columns are {names}"
            )
        return node  # whoever reads it says that there is no such attribute

    def _offers(self, source: _Source, name: str) -> bool:
        return name in source.columns or (source.whole and name in self.attributes)


def _table(table: exp.Expr) -> tuple[str, str]:
    """The name of a table, and its alias or nothing."""
    if type(table.this) is not exp.Identifier:
        raise refuse("a table function", ONE_TABLE, table)
    only(table, "this", "db", "catalog", "alias")
    _check_alias(table)
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    if any(part is not None and type(part) is not exp.Identifier for part in parts):
        raise at_line(table, "the table's name must be plain")
    return ".".join(part.name for part in parts if part is not None), table.alias


def _check_alias(node: exp.Expr) -> None:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")


def _has_answers(select: exp.Expr) -> bool:
    return select.args.get("group") is not None or any(
        item.find(exp.AggFunc) is not None for item in select.expressions
    )


def _check_chooses(select: exp.Expr) -> None:
    """Check that a SELECT only chooses, orders and filters the answers of its sub-select."""
    way_out = "choose, filter and order the answers of the sub-select"
    for part in ("group", "having"):
        if select.args.get(part) is not None:
            raise refuse(f"{part.upper()} of answers", way_out, select.args[part])
    for item in select.expressions:
        found = item.find(exp.AggFunc)
        if found is not None and found.find_ancestor(exp.Window) is None:
            raise refuse("an aggregate of answers", way_out, found)


def _chosen(select: exp.Expr, answers: exp.Expr) -> exp.Expr:
    """The sub-select itself, with what the SELECT around it chooses."""
    where = select.args.get("where")
    cut = next((answers.args[part] for part in ("limit", "offset") if answers.args.get(part)), None)
    if cut is not None and any(select.args.get(part) for part in ("where", "order", "limit")):
        raise refuse("choosing from answers that LIMIT cuts", "use one LIMIT, at the end", cut)
    answers.set("expressions", select.expressions)
    for item in select.expressions:  # columns of lookups follow from what is grouped by
        named = item.this if type(item) is exp.Alias else item
        if type(named) is LookedUp and answers.args.get("group") is not None:
            answers.args["group"].append("expressions", named.copy())
    if where is not None:
        _restrict(answers, "having", where.this)
    for part in ("order", "limit", "offset"):
        if select.args.get(part) is not None:
            answers.set(part, select.args[part])
    return answers


def _restrict(select: exp.Expr, part: str, condition: exp.Expr) -> None:
    """Add a condition to WHERE or HAVING."""
    present = select.args.get(part)
    if present is not None:
        both = [one if isinstance(one, _HELD) else exp.Paren(this=one) for one in (condition,)]
        condition = exp.And(this=both[0], expression=exp.Paren(this=present.this))
    select.set(part, (exp.Where if part == "where" else exp.Having)(this=condition))


def _resolve_places(select: exp.Expr) -> None:
    """Put expressions for the positions and ALL of GROUP BY and ORDER BY."""
    items = [item.this if type(item) is exp.Alias else item for item in select.expressions]
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None:
        only(group, "expressions", "all", "rollup", "cube", "grouping_sets")
        if group.args.get("all"):
            group.set("all", None)
            plain = [item for item in items if not _is_answer(item)]
            group.set("expressions", [item.copy() for item in plain])
        for node in list(group.expressions):
            _put_item(node, items, "GROUP BY")
    for key in order.expressions if order is not None else ():
        _put_item(key.this, items, "ORDER BY")
    if order is not None and shown(order.expressions[0].this).casefold() == "all":
        kind = order.expressions[0].args
        every = [exp.Ordered(**{**kind, "this": item.copy()}) for item in items]
        order.set("expressions", every)


def _is_answer(item: exp.Expr) -> bool:
    return item.find(exp.AggFunc) is not None or isinstance(item, exp.Literal)


def _put_item(node: exp.Expr, items: list[exp.Expr], clause: str) -> None:
    if type(node) is not exp.Literal or node.is_string or not str(node.this).isdigit():
        return
    place = int(str(node.this))
    if not 1 <= place <= len(items):
        raise at_line(node, f"{clause} {place}: the SELECT list has {len(items)} items")
    node.replace(items[place - 1].copy())


def _is_star(item: exp.Expr) -> bool:
    return type(item) is exp.Star or (type(item) is exp.Column and type(item.this) is exp.Star)


def _all_columns(item: exp.Expr, source: _Source) -> list[exp.Expr]:
    """What ``*`` stands for: the columns of a sub-select, and ``*`` for those of the table."""
    star = item if type(item) is exp.Star else item.this
    kept: list[exp.Expr] = [star] if source.whole else []
    columns = {**source.columns, **(all_columns(source.joined) if star is item else {})}
    return kept + [_aliased(one.copy(), name) for name, one in columns.items()]


def _aliased(node: exp.Expr, name: str) -> exp.Expr:
    if type(node) is exp.Column and not node.table and node.name.casefold() == name.casefold():
        return node
    return exp.Alias(this=node, alias=exp.to_identifier(name))


def _in_order(node: exp.Expr) -> bool:
    """Whether a column is a key of ORDER BY by itself, where an alias comes before a column."""
    return type(node.parent) is exp.Ordered
