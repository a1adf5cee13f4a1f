"""FROM, JOIN and the names that they offer → plans."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql import plan as rel
from lrm.queries.sql.bind import Binder
from lrm.queries.sql.bind.scope import (
    Source,
    bare,
    equality,
    flat,
    folded,
    moved_to,
    only,
    place,
    refuse_node,
    table_name,
)
from lrm.queries.sql.build import lookups
from lrm.queries.sql.build.constants import Constants, names_of
from lrm.queries.sql.build.lookups import View, lookup_source, whole
from lrm.queries.sql.build.pivots import unpivoted
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.plan import has_answers, items_of
from lrm.queries.sql.refusals import ADVICE, ONE_TABLE, OTHER_NAMES, PREDICATES, refuse
from lrm.queries.sql.source import nulls_are_small
from lrm.queries.sql.times import is_time

if TYPE_CHECKING:
    from lrm.domain import Lookup
    from lrm.queries.sql.build import Builder

_COMPUTED = "a sub-select may filter, rename and compute columns"

Known = Mapping[str, rel.Plan]
"""Sub-selects that WITH names."""


class From:
    """Builds FROM and its JOINs, and resolves the names of one SELECT."""

    def __init__(self, builder: Builder, known: Known, where: exp.Expr | None = None) -> None:
        self.builder, self.known, self.where = builder, known, where
        self.domain, self.dialect = builder.domain, builder.dialect
        self.sources: list[Source] = []  # what FROM names; names of the first one come first
        self.aliases: dict[str, Expr] = {}  # columns of SELECT that were named so far
        self.windows: dict[str, exp.Expr] = {}
        self.taken: set[int] = set()  # conditions of WHERE that join a lookup

    def plan(self, clause: exp.Expr, joins: list[exp.Expr]) -> rel.Plan:
        """Build FROM and its JOINs."""
        only(clause, "this")
        first = clause.this
        swapped = None
        if joins and self._is_public(first) and not self._is_public(joins[0].this):
            first, swapped = joins[0].this, first
        plan = self._first(first)
        for number, join in enumerate(joins):
            other = swapped if swapped is not None and number == 0 else join.this
            turned = swapped is not None and number == 0
            plan = self._join(plan, join, other, turned=turned)
        return plan

    def _is_public(self, node: exp.Expr) -> bool:
        return self.lookup(node) is not None or self.constants(node) is not None

    def lookup(self, node: exp.Expr) -> Lookup | None:
        """The lookup of the domain that a table of FROM is; None for any other."""
        if type(node) is not exp.Table or folded(node.name) in self.known:
            return None
        return self.builder.lookups.get(folded(node.name))

    def _first(self, node: exp.Expr) -> rel.Plan:
        if node.args.get("pivots"):
            node = unpivoted(node, self._pivoted_columns(node), self.domain)
        if type(node) is exp.Subquery:
            only(node, "this", "alias", "with_")
            known = self.builder.with_names(node, self.known)
            plan = rel.renamed(self.builder.query(node.this, known), names_of(node))
            return self._named(plan, node.alias)
        if type(node) is not exp.Table or self._is_public(node):
            name = node.name or "this table of constants"
            if self._is_public(node):
                advice = "what everybody knows needs no noise; join it to the declared table"
                raise refuse("no-answer", f"a statement over {name} alone", advice, at=place(node))
            raise refuse_node(node, ONE_TABLE)
        name, alias = table_name(node)
        inner = self.known.get(folded(name))
        if inner is not None:
            return self._named(inner, alias or name)
        self.builder.read(name, node)
        self.sources.append(
            Source(folded(alias or name.rpartition(".")[2]), self.builder.attributes, "whole")
        )
        return rel.Scan()

    def _pivoted_columns(self, node: exp.Expr) -> list[str]:
        """The columns that PIVOT is over."""
        plain = type(node) is exp.Table
        inner = self.known.get(folded(node.name)) if plain else None
        if not plain:
            inner = self.builder.query(node.this, self.builder.with_names(node, self.known))
        return list(self.domain.names) if inner is None else [item.name for item in items_of(inner)]

    def _named(self, plan: rel.Plan, alias: str) -> rel.Plan:
        columns = self._columns(plan, alias)
        self.sources.append(Source(folded(alias), columns, "sub-select"))
        return rel.Named(plan, alias)

    def _columns(self, plan: rel.Plan, alias: str) -> dict[str, Expr]:
        columns: dict[str, Expr] = {}
        seen: dict[str, Expr] = {}
        for item in items_of(plan):
            key = folded(item.name)
            if not key:
                continue
            if key in seen and seen[key] != item.expr:
                found_ = f"two columns called {item.name!r}"
                raise refuse("name", found_, _COMPUTED, item.expr)
            seen[key] = item.expr
            columns[key] = ir.Column(alias, item.name)
        return columns

    def _join(self, plan: rel.Plan, join: exp.Expr, other: exp.Expr, *, turned: bool) -> rel.Plan:
        inner = None
        table = self.constants(other)
        if table is not None:
            return self._join_constants(plan, join, other, table)
        view = self._view(other)
        if view is not None:
            return self._join_lookup(plan, join, other, view, turned=turned)
        if type(other) is exp.Subquery:
            inner = self.builder.query(other.this, self.builder.with_names(other, self.known))
            inner = rel.renamed(inner, names_of(other))
        elif type(other) is exp.Table:
            inner = self.known.get(folded(other.name))
        if inner is not None and has_answers(inner):
            return self._beside(plan, join, inner)
        names = ", ".join(table.name for table in self.domain.lookups)
        may = f"only lookups of the domain are joined: {names}" if names else ONE_TABLE
        if type(other) is exp.Table and same_name(other.name, self.domain.table):
            may = "of other groups of the table, LAG(n) OVER (ORDER BY month) is the one before"
            raise refuse("join", "JOIN of the table with itself", may, at=place(join))
        raise refuse("join", "JOIN", may, at=place(join))

    def _join_constants(
        self, plan: rel.Plan, join: exp.Expr, other: exp.Expr, table: Constants
    ) -> rel.Plan:
        """A table that the statement writes out beside FROM: one row, or joined by its key."""
        only(join, "this", "on", "using", "side", "kind")
        side, at = join.args.get("side") or "", place(join)
        if side not in {"", "LEFT"}:
            raise refuse("join", f"{side} JOIN of constants", "write JOIN or LEFT JOIN", at=at)
        alias = folded(other.alias_or_name)
        on, using = join.args.get("on"), join.args.get("using") or []
        keys = [(folded(name.name), self.column(exp.column(name.copy()))) for name in using]
        waiting = [] if on is None else flat(bare(on))
        if on is None and not using and len(table.rows) > 1 and self.where is not None:
            waiting = [part for part in flat(self.where.this) if self._pair(part, alias, table)]
            self.taken.update(map(id, waiting))
        pairs = [(part, self._pair(part, alias, table)) for part in waiting]
        keys += [
            (name, Binder(self).expr(value)) for _, pair in pairs if pair for name, value in [pair]
        ]
        rest = [part for part, pair in pairs if pair is None]
        single = len(table.rows) == 1 and not keys
        if not keys and not single:
            advice = f"compare a column of it by =: ON column = {alias or 'name'}.{table.names[0]}"
            raise refuse("join", "this JOIN of constants", advice, at=at)
        columns, match = (table.columns(), None) if single else table.joined(keys, at)
        self.sources.append(Source(alias, columns, "sub-select"))
        conditions = [*([] if match is None else [match]), *map(Binder(self).expr, rest)]
        if side == "LEFT" and conditions:
            known = ir.And(tuple(conditions)) if len(conditions) > 1 else conditions[0]
            columns = {
                name: ir.Case((known,), (value,), name=name) for name, value in columns.items()
            }
            self.sources[-1] = Source(alias, columns, "sub-select")
            return plan
        for condition in conditions:
            plan = rel.Filter(plan, condition)
        return plan

    def _pair(self, part: exp.Expr, alias: str, table: Constants) -> tuple[str, exp.Expr] | None:
        """The column of a table of constants that a condition compares by =, and the other side."""
        names = set(map(folded, table.names))
        taken = {name for source in self.sources for name in source.columns}
        sides = (part.this, part.expression) if type(part) is exp.EQ else ()
        for own, value in (sides, sides[::-1]) if sides else ():
            bound = type(own) is exp.Column and folded(own.name) in names
            of_table = bound and folded(own.table) == alias
            of_table = of_table or (bound and not own.table and folded(own.name) not in taken)
            if of_table and all(folded(one.table) != alias for one in value.find_all(exp.Column)):
                return folded(own.name), value
        return None

    def _view(self, node: exp.Expr) -> View | None:
        """A lookup, or a sub-select of one that chooses columns and rows; None for others."""
        if type(node) is exp.Subquery:
            return self.builder.view(node.this, names_of(node))
        if type(node) is not exp.Table:
            return None
        known = self.builder.views.get(folded(node.name))
        lookup = self.lookup(node)
        if known is not None or lookup is None:
            return known
        return whole(lookup)

    def _join_lookup(
        self, plan: rel.Plan, join: exp.Expr, other: exp.Expr, view: View, *, turned: bool
    ) -> rel.Plan:
        lookup = view.lookup
        shared = self.sources[0].columns.keys() & set(map(folded, lookup.columns))
        if join.args.get("method") and (join.args["method"] != "NATURAL" or shared):
            advice = f"write JOIN {lookup.name} USING ({lookup.key_column})"
            raise refuse("join", f"{join.args['method']} JOIN", advice, at=place(join))
        only(join, "this", "on", "using", "side", "kind", "method")
        only(other, "this", "alias", "with_")
        side, kind = join.args.get("side") or "", join.args.get("kind") or ""
        side = {"RIGHT": "LEFT", "LEFT": "RIGHT"}.get(side, side) if turned else side
        every = side == "RIGHT"  # the rows of the lookup stay, and groups without rows have 0
        side = "" if every else side
        if side not in {"", "LEFT"} or kind not in {"", "INNER", "OUTER", "CROSS"}:
            advice = "write JOIN or LEFT JOIN"
            raise refuse("join", f"{side or kind} JOIN", advice, at=place(join))
        alias = folded(other.alias or other.name or lookup.name)
        if any(table.alias == alias for table in self.sources):
            construct = f"two tables called {alias!r}"
            raise refuse("join", construct, "give one an alias", at=place(join))
        key, rest = self._key(join, view, alias)
        self.sources.append(lookup_source(view, alias, key, left=side == "LEFT"))
        conditions = list(map(Binder(self).expr, rest))
        if view.where is not None:
            scope = self.inner(lookup_source(whole(lookup), view.alias, key, left=False))
            conditions.append(Binder(scope).expr(view.where))
        flags = side == "LEFT", every
        joined: rel.Plan = rel.LookupJoin(plan, lookup.name, key, *flags, place(join))
        for condition, part in zip(conditions, rest, strict=False):
            if every and condition.has(ir.LookedUp):
                advice = "it keeps rows of the lookup that it is not true of; write it in WHERE"
                construct = f"{part.sql(dialect='duckdb')} in this JOIN"
                raise refuse("join", construct, advice, at=place(part))
        if conditions and side == "LEFT":  # rows stay, without the columns of the lookup
            condition = ir.And(tuple(conditions)) if len(conditions) > 1 else conditions[0]
            columns = {
                name: ir.Case((condition,), (column,))
                for name, column in self.sources[-1].columns.items()
            }
            self.sources[-1] = Source(alias, columns, "lookup")
            return joined
        for condition in conditions:
            joined = rel.Filter(joined, condition)
        return joined

    def _key(self, join: exp.Expr, view: View, alias: str) -> tuple[Expr, list[exp.Expr]]:
        """The column that a lookup is joined by, with the lookup's key, and other conditions."""
        lookup = view.lookup
        named = next((name for name, own in view.columns.items() if own == lookup.key_column), "")
        advice = f"join it by its key: {lookup.key} = {alias}.{named or lookup.key_column}"
        key = folded(named)
        using, on = join.args.get("using") or [], join.args.get("on")
        if on is None and [folded(column.name) for column in using] == [key]:
            return self.column(exp.column(using[0].copy())), []
        if join.args.get("method"):
            return self.column(exp.column(exp.to_identifier(lookup.key_column))), []
        on = on if on is not None or using else self._condition(alias, key)
        parts = [] if on is None else flat(bare(on))
        known = [(part, equality(bare(part), alias, key)) for part in parts]
        sides = next((sides for _, sides in known if sides is not None), None)
        if on is None or not any(type(bare(part)) is exp.EQ for part in parts):
            raise refuse("join", "this JOIN", advice, at=place(join))
        if sides is None:
            construct = f"JOIN ON {on.sql(dialect='duckdb')}"
            raise refuse("join", construct, advice, at=place(join))
        first = next(part for part, each in known if each is sides)
        return self.column(sides[1]), [part for part in parts if part is not first]

    def _condition(self, alias: str, key: str) -> exp.Expr | None:
        """The equality in WHERE that joins a lookup without ON."""
        for part in [] if self.where is None else flat(self.where.this):
            sides = equality(part, alias)
            if sides is not None and folded(sides[0].name) == key:
                self.taken.add(id(part))
                return part
        return None

    def _beside(self, plan: rel.Plan, join: exp.Expr, inner: rel.Plan) -> rel.Plan:
        """Answers of a sub-select beside FROM: of one row, or with the same groups."""
        alias = join.this.alias_or_name
        if not alias or any(element.alias == folded(alias) for element in self.sources):
            construct = "JOIN of a sub-select without its own name"
            raise refuse("join", construct, "give it an alias", at=place(join))
        using, on = join.args.get("using") or [], join.args.get("on")
        columns = self._columns(inner, alias)
        here = Source(folded(alias), columns, "sub-select")
        if not using and on is None:
            only(join, "this", "kind")
            self.sources.append(here)
            return rel.CrossAnswers(plan, inner, alias, place(join))
        only(join, "this", "on", "using", "side", "kind")
        side = join.args.get("side") or ""
        if side not in {"", "LEFT", "FULL"}:
            advice = "write JOIN, FULL JOIN, or LEFT JOIN with the other one first"
            raise refuse("join", f"{side} JOIN of answers", advice, at=place(join))
        pairs = []
        for element in using:
            outer_column = self.column(exp.column(element.copy()))
            pairs.append((outer_column, columns.get(folded(element.name), ir.Null())))
        advice = "compare the columns of groups"
        for part in [] if on is None else flat(on):
            sides = equality(part, folded(alias))
            if sides is None or folded(sides[0].name) not in columns:
                construct = f"JOIN ON {part.sql(dialect='duckdb')}"
                moved = type(part) is exp.EQ and part.find(exp.Add, exp.Sub) is not None
                if moved and has_answers(plan):
                    advice = "of the group before, write LAG(n) OVER (ORDER BY …)"
                raise refuse("join", construct, advice, at=place(join))
            pairs.append((self.column(sides[1]), columns[folded(sides[0].name)]))
        self.sources.append(here)
        ends = place(join), side == "FULL"
        return rel.JoinAnswers(plan, inner, alias, tuple(pairs), side != "", *ends)

    # names

    def nulls_first(self, node: exp.Expr) -> bool:
        """Whether a key of ORDER BY puts NULL first.

        Where the dialect is not declared, what a dialect does of itself means nothing.
        """
        is_first = bool(node.args.get("nulls_first"))
        usual = nulls_are_small(self.dialect) != bool(node.args.get("desc"))
        return is_first and not (self.builder.guessed and usual)

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
        return moved_to(expression, at)

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

    def elsewhere(self, table: str, name: str) -> Expr | None:
        """A column of a lookup that is not joined, by the key in the first table of FROM."""
        if not self.sources or any(element.kind == "lookup" for element in self.sources):
            return None
        first = self.sources[0].columns
        lookup_columns = []
        for lookup in self.domain.lookups:
            if table not in {"", folded(lookup.name)} or folded(lookup.key) not in first:
                continue
            key = first[folded(lookup.key)]
            named = {folded(element): element for element in lookup.columns}
            if name in named:
                lookup_columns.append(ir.LookedUp(key, lookup.name, named[name]))
        if len(lookup_columns) > 1:
            names = " and ".join(f"{element.lookup}.{element.column}" for element in lookup_columns)
            sentence = f"{name!r} is a column of several lookups; write {names}"
            raise SqlError(sentence, code="unknown-column")
        return lookup_columns[0] if lookup_columns else None

    def unknown(self, node: exp.Expr) -> SqlError:
        """The error for a name that nothing has."""
        name, table, at = node.name, folded(node.text("table")), place(node)
        source = next((candidate for candidate in self.sources if candidate.alias == table), None)
        if self.is_person(node):
            sentence = (
                f"{name!r} names the person, and answers per person are not published; count rows "
                "by the columns that the domain declares"
            )
            return SqlError(sentence, code="unknown-column", at=at)
        if not self.sources:
            return refuse("clause", "SELECT without FROM", "name the table", at=at)
        if OTHER_NAMES.get(folded(name)) in {"currentdate", "currenttimestamp"}:
            return refuse("function", name.upper(), ADVICE["currentdate"][1], at=at)
        code, quote = "unknown-column", ""
        if getattr(node.this, "args", {}).get("quoted"):
            code, quote = "quotes", "; use single quotes for text"
        if table and source is None:
            reads = self.sources[0].alias
            return refuse(
                code, f"table {node.text('table')!r}", f"the statement reads {reads!r}", at=at
            )
        source = source or self.sources[0]
        if source.kind == "lookup":
            names = ", ".join(source.columns)
            sentence = f"lookup {source.alias!r} has no column {name!r}; its columns are {names}"
        elif source.kind == "sub-select":
            names = ", ".join(source.columns)
            sentence = f"the sub-select has no column {name!r}; its columns are {names}"
        else:
            near = difflib.get_close_matches(name, self.domain.names, 1, 0.7)
            hint = f"did you mean {near[0]!r}? " if near else ""
            names = ", ".join(self.domain.names)
            sentence = f"no attribute is called {name!r}; {hint}the attributes are {names}"
        return SqlError(sentence + quote, code=code, found=name, at=at)

    def chosen(self, plan: rel.Plan, node: exp.Expr) -> rel.Plan | None:
        """``key IN (SELECT key … GROUP BY key ORDER BY COUNT(*) DESC LIMIT 3)`` as a join."""
        inner = bare(node)
        query = inner.args.get("query") if type(inner) is exp.In else None
        select = None if query is None else bare(query.this)
        source = select.args.get("from_") if type(select) is exp.Select else None
        if query is None or source is None or self._view(source.this) is not None:
            return None
        other = self.builder.query(query.this, self.builder.with_names(query, self.known))
        if not has_answers(other):
            return None
        alias = f"({place(query)})"
        columns = list(self._columns(other, alias).values())
        if len(columns) != 1:
            raise refuse("subquery", "IN with several columns", "select one", at=place(query))
        pair = (Binder(self).expr(inner.this), columns[0])
        return rel.JoinAnswers(plan, other, alias, (pair,), left=False, at=place(query))

    # sub-selects in expressions

    def inner(self, source: Source) -> From:
        """A sub-select that reads one source alone."""
        scope = From(self.builder, {})
        scope.sources.append(source)
        return scope

    def scalar(self, node: exp.Expr) -> Expr:
        """A sub-select in an expression."""
        value = self._constant(node) or lookups.looked_up(self, node)
        if value is not None:
            return value
        return ir.Scalar(self.builder.query(node.this, self.known), at=place(node))

    def chooses_rows(self, node: exp.Expr) -> bool:
        """Whether a node is the key of a row of a lookup: ``(SELECT key FROM lookup WHERE …)``."""
        read = lookups.of_lookup(self, node) if type(node) is exp.Subquery else None
        return read is not None and self.constants(node) is None

    def _constant(self, node: exp.Expr) -> Expr | None:
        """The value of ``(SELECT first_day FROM params)``; None for other sub-selects."""
        select = node.this
        source = select.args.get("from_") if type(select) is exp.Select else None
        table = self.constants(node)
        if table is None and source is not None:
            table = self.constants(source.this)
        else:
            source = None
        if table is None:
            return None
        if len(table.rows) != 1 or len(select.expressions) != 1:
            advice = "it must have one row and one column"
            raise refuse("subquery", "this subquery of constants", advice, at=place(node))
        if source is None:
            return table.rows[0][0]
        only(select, "expressions", "from_")
        alias = folded(source.this.alias_or_name)
        scope = self.inner(Source(alias, table.columns(), "sub-select"))
        return Binder(scope).expr(select.expressions[0].unalias())

    def among(self, this: Expr | None, query: exp.Expr) -> Expr:
        """``key IN (SELECT key FROM lookup WHERE …)`` as a condition on the key, and EXISTS."""
        table = None if this is None else self.constants(query)
        if this is None or table is None:
            return lookups.among(self, this, query)
        if len(table.names) != 1:
            raise refuse("subquery", "IN with several columns", "select one", this)
        return ir.In(this, tuple(row[0] for row in table.rows), at=this.at)

    def constants(self, node: exp.Expr) -> Constants | None:
        """A table that the statement writes out, here or in WITH; None for any other."""
        if type(node) is not exp.Table:
            found = self.builder.constants(node)
        else:
            named = self.builder.written.get(folded(node.name))
            found = None if node.args.get("db") or folded(node.name) in self.known else named
        return None if found is None else found.renamed(names_of(node))

    def is_time(self, node: Expr) -> bool:
        """Whether an expression is a column of times of the table."""
        return is_time(node, self.domain)

    def is_person(self, node: exp.Expr) -> bool:
        """Whether a column identifies the person of a row."""
        unit = self.domain.unit
        is_whole_table = bool(self.sources) and self.sources[0].kind == "whole"
        if type(node) is not exp.Column or unit.column is None or not is_whole_table:
            return False
        return folded(node.name) == folded(unit.column)


def same_name(name: str, table: str | None) -> bool:
    """Whether a name is that of the declared table, without its schema."""
    return table is not None and folded(name) == folded(table.rpartition(".")[2])
