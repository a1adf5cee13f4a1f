"""WITH, sub-selects, aliases and positions → one SELECT over the columns of the declared table.

A sub-select that only filters, renames or computes columns is written into the statement that
reads it: its columns become expressions over the declared table, and its WHERE is joined by AND.
A SELECT that only chooses, orders or filters the answers of a sub-select becomes that one, with
ORDER BY, LIMIT and HAVING. A sub-select of one row may stand in an expression, or beside the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.chosen import (
    adds_up,
    apart,
    beside,
    check_join,
    check_sums,
    chosen,
    has_answers,
    known,
    put_sums,
    restrict,
    scalar,
    split_having,
)
from lrm.batches.compiler.expressions import Apart, attribute_column, held, shown
from lrm.batches.compiler.joins import (
    Joined,
    all_columns,
    among_keys,
    any_column,
    join_sides,
    joined_lookup,
    lookups_last,
    own_column,
)
from lrm.batches.compiler.places import complete_groups, drop_scalars, resolve_places
from lrm.batches.compiler.refusals import ONE_TABLE, at_line, only, refuse, refuse_node

if TYPE_CHECKING:
    from lrm.domain import Domain

__all__ = ["Plain", "plain_select", "same_table"]

_DEFAULT = re.compile(r"^(main|public|default|dbo)\.")
"""Schemas of DuckDB, PostgreSQL, Spark and SQL Server where none is written."""

_PARTS = ("expressions", "from_", "where", "group", "having", "order", "limit", "offset")
_COMPUTED = "a sub-select may filter, rename and compute columns"

_UNEVEN = "which groups both sides have depends on the table; add up before joining"

MOST_WRITTEN = 10_000
"""Parts of all that is written for the columns of one expression: a second's work."""


@dataclass(frozen=True, eq=False)
class Plain:
    """A SELECT over one table, without sub-selects, aliases or positions in its clauses.

    ``uneven`` says that it joins answers over different rows: which groups both have is not known.
    """

    table: str
    select: exp.Expr
    uneven: bool = False


@dataclass(frozen=True, eq=False)
class _Source:
    """What FROM offers: names of columns for expressions over the declared table.

    With ``whole`` all attributes are offered too. ``answers`` is a SELECT with aggregates whose
    columns these are. ``others`` are the columns of further sub-selects in FROM, by their names.
    """

    table: str
    qualifier: str
    columns: Mapping[str, exp.Expr]
    whole: bool
    condition: exp.Expr | None = None
    answers: exp.Expr | None = None
    joined: Mapping[str, Joined] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, exp.Expr]] = field(default_factory=dict)
    uneven: bool = False


def same_table(name: str, expected: str) -> bool:
    """Whether two names mean one table: schemas that need not be written tell none apart."""
    one, two = (_DEFAULT.sub("", text.casefold()) for text in (name, expected))
    return one == two


def plain_select(select: exp.Expr, domain: Domain) -> Plain:
    """Write everything that a SELECT reads into one SELECT of the declared table."""
    return _Reader(domain, {}).plain(select)


class _Reader:
    """Reads one SELECT: the names that WITH gave, and the attributes."""

    def __init__(self, domain: Domain, known: Mapping[str, Plain]) -> None:
        self.domain = domain
        self.known = dict(known)
        self.attributes = {name.casefold(): name for name in domain.names}

    def plain(self, select: exp.Expr) -> Plain:
        """Write what a SELECT reads into the SELECT itself."""
        if type(select) is not exp.Select:
            raise refuse_node(select, "a batch holds only SELECT statements")
        only(select, *_PARTS, "with_", "joins")
        self._read_with(select)
        if select.args.get("from_") is None:
            return self._without_table(select)
        lookups_last(select, self.domain)
        source = self._source(select.args["from_"])
        for join in select.args.get("joins") or ():
            source = self._joined(join, source)
        select.set("joins", None)
        sums = source.answers is not None and adds_up(select)
        if sums:
            source = _added_up(select, source)
        sorted_by = [one for one in (select.args.get("order"),) if one is not None]
        over = any(one.find(exp.Window) is not None for one in (*select.expressions, *sorted_by))
        self._resolve(select, source)
        if sums:
            put_sums(select)
        finished = _finished(select, source, over=over)
        complete_groups(finished)
        return Plain(source.table, finished, source.uneven)

    def _without_table(self, select: exp.Expr) -> Plain:
        """Read a SELECT of answers of sub-selects alone."""
        only(select, "expressions")
        tables = set()
        for node in list(select.find_all(exp.Subquery)):
            inner = _Reader(self.domain, self.known).plain(node.this)
            tables.add(inner.table)
            node.replace(apart(inner.select))
        if len(tables) != 1:
            raise refuse("SELECT without FROM", "name the table")
        (table,) = tables
        return Plain(table, select)

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
            return self._offered(replace(known, select=known.select.copy()), alias or name)
        return _Source(name, alias or name.split(".")[-1], {}, whole=True)

    def _joined(self, join: exp.Expr, source: _Source) -> _Source:
        """The columns of FROM with those of a lookup, or of another sub-select."""
        node = join.this
        known = self.known.get(node.name.casefold()) if type(node) is exp.Table else None
        if type(node) is exp.Subquery:
            known = _Reader(self.domain, self.known).plain(node.this)
        if known is not None and has_answers(known.select):
            return self._beside(join, source, known)
        joined = joined_lookup(join, self.domain)
        if joined.name in source.joined or joined.name == source.qualifier.casefold():
            raise refuse(f"two tables called {joined.name!r}", "give one an alias", join)
        side = join_sides(join, joined)
        key = self._column(side, source, {})
        if type(key) is not exp.Column or key.name.casefold() != joined.lookup.key.casefold():
            way_out = f"lookup {joined.lookup.name!r} is of {joined.lookup.key!r}"
            raise refuse(f"JOIN by {shown(side)}", way_out, join)
        condition = source.condition
        if not (joined.left or self._is_complete(joined)):
            condition = joined.matched if condition is None else exp.and_(condition, joined.matched)
        return replace(source, condition=condition, joined={**source.joined, joined.name: joined})

    def _is_complete(self, joined: Joined) -> bool:
        """Whether every declared cell of its key has a row in a lookup."""
        attribute = self.domain.attribute(joined.lookup.key)
        return all(one is True for one in joined.lookup.on_cells(attribute, None))

    def _beside(self, join: exp.Expr, source: _Source, inner: Plain) -> _Source:
        """The columns of FROM with answers of a sub-select: of one row, or with the same groups."""
        name = join.this.alias_or_name.casefold()
        if name in {"", source.qualifier.casefold(), *source.others}:
            raise refuse("JOIN of a sub-select without its own name", "give it an alias", join)
        _check_same(inner, source, join)
        select = inner.select.copy()
        items = {item.alias_or_name.casefold(): item.unalias() for item in select.expressions}
        by = {one.name.casefold() for one in join.args.get("using") or []}
        if not by and join.args.get("on") is None:
            only(join, "this", "kind")
            columns = {own: scalar(select, item) for own, item in items.items()}
            return replace(source, others={**source.others, name: columns})
        only(join, "this", "on", "using", "side", "kind")
        if source.answers is None or join.args.get("side") not in {None, "", "LEFT"}:
            raise refuse("JOIN of answers", "join answers with the same groups", join)
        groups = {own: item for own, item in items.items() if item.find(exp.AggFunc) is None}
        left = join.args.get("side") == "LEFT"
        check_join(join, by, groups, (source.qualifier.casefold(), source.columns), name)
        for key in filter(self._may_be_null, groups.values()):  # NULL equals no NULL
            for one in (select,) if left else (select, source.answers):
                over = any(item.find(exp.Window) for item in one.expressions)
                restrict(one, "qualify" if over else "where", known(key))
        answers, theirs, differ = beside(source.answers, select, left=left)
        ours = {one.alias_or_name.casefold(): one.unalias() for one in answers.expressions}
        added = {one.alias_or_name.casefold(): one.unalias() for one in theirs}
        others = {**source.others, name: added}
        uneven = differ or source.uneven or inner.uneven
        return replace(source, answers=answers, columns=ours, others=others, uneven=uneven)

    def _may_be_null(self, key: exp.Expr) -> bool:
        """Whether a group may be that of NULL, as far as its form tells."""
        names = [one.casefold() for one in self.domain.names]
        if type(key) is not exp.Column or key.name.casefold() not in names:
            return True
        attribute = self.domain.attributes[names.index(key.name.casefold())]
        return attribute.special_cell("(null)") is not None

    def _offered(self, inner: Plain, qualifier: str) -> _Source:
        """The columns of a sub-select."""
        select, whole = inner.select, False
        answers = select if has_answers(select) else None
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
        return _Source(
            inner.table, qualifier, columns, whole, condition, answers, uneven=inner.uneven
        )

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
        drop_scalars(select)
        resolve_places(select)  # what it puts there stands for itself already

    def _settle(self, root: exp.Expr, source: _Source, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        """Replace the columns of an expression by what they stand for."""
        every = list(root.find_all(exp.In, exp.Subquery, exp.Column))
        for among in [one for one in every if type(one) is exp.In]:
            if among.args.get("query") is not None:
                condition = among_keys(among, self.domain)
                among.replace(condition)
                root = condition if among is root else root
                every = list(root.find_all(exp.Subquery, exp.Column))
        inner = {id(one) for sub in every if type(sub) is exp.Subquery for one in sub.walk()}
        room = MOST_WRITTEN
        for node in every:
            if type(node) is exp.Subquery and type(node.parent) is not exp.Subquery:
                answer = self._apart(node, root, source)
                node.replace(answer)
                root = answer if node is root else root
            if type(node) is not exp.Column or id(node) in inner:
                continue
            if type(node.this) is not exp.Identifier:
                continue  # refused by whoever reads it
            given = self._column(node, source, aliases)
            if given is node:
                continue
            room -= sum(1 for _ in given.walk())
            if room < 0:  # columns of columns of columns may grow without end
                raise refuse("so long an expression", f"{node.name!r} stands for too much", node)
            given = given.copy()
            top = node is root or type(node.parent) in {exp.Alias, exp.Group, exp.Ordered}
            written = given if top else held(given)
            node.replace(written)
            if node is root:
                root = written
        return root

    def _apart(self, node: exp.Expr, root: exp.Expr, source: _Source) -> exp.Expr:
        """The answer of a sub-select that stands in an expression."""
        if type(root) in {exp.Where, exp.Group}:
            raise refuse("a subquery in a condition", "write the constant", node)
        inner = _Reader(self.domain, self.known).plain(node.this.copy())
        _check_same(inner, source, node)
        return apart(inner.select)

    def _column(
        self, node: exp.Column, source: _Source, aliases: Mapping[str, exp.Expr]
    ) -> exp.Expr:
        name, table = node.name.casefold(), node.table.casefold()
        if table in source.joined:
            return own_column(node, source.joined[table])
        theirs = _theirs(node, source)
        if theirs is not None and (table or not self._offers(source, name)):
            return theirs
        if table in {"", source.qualifier.casefold()}:
            offered = self._offers(source, name)
            if not table and name in aliases and (_in_order(node) or not offered):
                return aliases[name]
            for part in ("table", "db"):
                node.set(part, None)
            if name in source.columns:
                return source.columns[name]
            if offered:
                return _spelt(node, self.attributes[name])
        return self._elsewhere(node, source)

    def _elsewhere(self, node: exp.Column, source: _Source) -> exp.Expr:
        """The column of a lookup; or the node itself, where whoever reads it knows better."""
        name, table = node.name.casefold(), node.table.casefold()
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


def _theirs(node: exp.Column, source: _Source) -> exp.Expr | None:
    """The column of a further sub-select in FROM that a name means, if one has it."""
    name, table = node.name.casefold(), node.table.casefold()
    found = [one[name] for own, one in source.others.items() if table in {"", own} and name in one]
    if len(found) > 1:
        raise at_line(node, f"{node.name!r} is a column of several sub-selects; write which one")
    return found[0] if found else None


def _check_same(inner: Plain, source: _Source, node: exp.Expr) -> None:
    if not same_table(inner.table, source.table):
        raise refuse(f"a subquery of {inner.table!r}", ONE_TABLE, node)


def _added_up(select: exp.Expr, source: _Source) -> _Source:
    """The rows that a sub-select's answers are of, for a SELECT that adds up the answers."""
    answers = source.answers
    assert answers is not None  # noqa: S101 - asked of answers
    check_sums(select, answers, source.columns)
    if source.uneven:
        raise refuse("SUM over a JOIN of answers over different rows", _UNEVEN, select)
    clauses = (answers.args.get(part) for part in ("where", "qualify"))
    rows = [one.this for one in clauses if one is not None]
    rows = rows if source.condition is None else [source.condition, *rows]
    condition = exp.and_(*(one.copy() for one in rows)) if rows else None
    return replace(source, answers=None, condition=condition)


def _finished(select: exp.Expr, source: _Source, *, over: bool) -> exp.Expr:
    """A SELECT whose columns are resolved, with the conditions of what it reads.

    ``over`` says whether it adds up over groups itself: those that were chosen before.
    """
    if source.answers is not None:
        if over and source.uneven:
            raise refuse("OVER a JOIN of answers over different rows", _UNEVEN, select)
        return chosen(select, source.answers, source.condition, over=over)
    _check_one_row(select)
    split_having(select)
    if over and select.args.get("having"):
        way_out = "sums over groups are of those that HAVING keeps; filter a sub-select instead"
        raise refuse("OVER beside HAVING", way_out, select.args["having"])
    if source.condition is not None:
        restrict(select, "where", source.condition.copy())
    return select


def _check_one_row(select: exp.Expr) -> None:
    """Refuse a SELECT of sub-selects alone: it has a row for every row of the table."""
    items = select.expressions
    own = any(
        one.find_ancestor(Apart) is None for item in items for one in item.find_all(exp.AggFunc)
    )
    if select.args.get("group") is None and not own and any(item.find(Apart) for item in items):
        raise refuse("a subquery beside every row", "leave out FROM, or GROUP BY", select)


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


def _spelt(node: exp.Column, name: str) -> exp.Column:
    """The column of an attribute as it is declared, whatever its case and quotes in the text."""
    declared = attribute_column(name).this
    declared.meta.update(node.this.meta)
    node.set("this", declared)
    return node


def _in_order(node: exp.Expr) -> bool:
    """Whether a column is a key of ORDER BY by itself, where an alias comes before a column."""
    return type(node.parent) is exp.Ordered
