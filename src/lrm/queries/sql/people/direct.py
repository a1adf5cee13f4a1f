"""SELECTs whose FROM names private tables: persons, or events with the columns of their persons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from lrm.domain.private_tables import PrivateTable
from lrm.errors import SqlError
from lrm.queries.sql.bind.scope import bare, flat, folded, place
from lrm.queries.sql.people.features import conjunction, inside
from lrm.queries.sql.people.persons import CountedPersons
from lrm.queries.sql.people.select import (
    Lowered,
    PeopleSelect,
    Tables,
    check_parts,
    is_person,
    value_of,
)
from lrm.queries.sql.people.sub_selects import PerPersonSelect
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.source import DUCKDB

PER_PERSON = "answers per person are not published; count persons with a condition instead"


_ABOUT_ONE = frozenset({"expressions", "from_", "where", "order", "distinct"})
_LISTED = _ABOUT_ONE | {"group", "having"}


class DirectSelect(PeopleSelect):
    """A SELECT over tables."""

    def lower(self, named: Mapping[str, exp.Expr]) -> Lowered:
        """Rewrite the SELECT; ``named`` are the sub-selects that WITH names."""
        source = self.node.args["from_"].this
        table = self.table_of(source)
        if table is None:
            names = ", ".join(known.name for known in self.people.tables)
            found = source.name or source.sql(dialect=DUCKDB)
            sentence = f"table {found!r} is unknown; {self.people.name!r} has {names}"
            raise SqlError(sentence, code="unknown-table", found=found, at=place(source))
        every: Tables = {folded(source.alias_or_name): table}
        joins, inner = [], [] if not table.is_single else [table]
        outer: list[PrivateTable] = []
        for join in self.node.args.get("joins") or []:
            other = self.table_of(join.this)
            if other is None:
                if not self._join_sub_select(join, table, named):
                    joins.append(join)  # a lookup, or an error of the compiler
                continue
            if other.is_single and (join.args.get("side") or "").upper() != "LEFT":
                inner.append(other)
            every[folded(join.this.alias_or_name)] = other
            self.check_join(join, table, other)
            if not other.is_single and (join.args.get("side") or ""):
                outer.append(other)
        self.tables = every
        events = [one for one in every.values() if not one.is_single]
        events = self._without_missing(every, events)
        if any(one in outer for one in events):
            raise refuse(
                "join",
                f"LEFT JOIN {events[0].name}",
                f"write JOIN {events[0].name}; of persons without such rows, NOT EXISTS",
            )
        self.node.set("joins", joins)
        if len(events) > 1:
            names = " with ".join(one.name for one in events)
            raise refuse(
                "join",
                f"JOIN {names}",
                "both have many rows per person; count each by itself, or use EXISTS for one",
            )
        self._check_no_persons(every)
        if not events:
            self._lower_conditions(every)
            return Lowered(self.finish(), (None,))
        return self._of_events(events[0], every, inner)

    def _of_events(
        self, table: PrivateTable, every: Tables, inner: Sequence[PrivateTable]
    ) -> Lowered:
        """A SELECT over one table of events: of rows, of different persons, or of both."""
        self.check_windows(self.node, table)
        counted = CountedPersons(self.features, self.node, self.conditions, every)
        persons, rows = counted.aggregates_of(table)
        if persons and not rows:
            return Lowered(counted.lower(table, every), (None,))
        known = [
            self.features.want(single, "exists")
            for single in inner
            if not self._uses(single, every)
        ]
        if persons:
            return Lowered(counted.lower(table, every, known), (None, table.name))
        self.conditions += known
        return Lowered(self.finish(), (table.name,))

    def _join_sub_select(
        self, join: exp.Expr, table: PrivateTable, named: Mapping[str, exp.Expr]
    ) -> bool:
        """Join rows with what a sub-select says of their persons, if ``join`` names such a one."""
        inner, name = join.this, folded(join.this.alias_or_name)
        if isinstance(inner, exp.Table) and folded(inner.name) in named:
            inner = named[folded(inner.name)]
        select = bare(inner.this) if isinstance(inner, (exp.CTE, exp.Subquery)) else None
        clause = select.args.get("from_") if isinstance(select, exp.Select) else None
        owner = None if clause is None else self.table_of(clause.this)
        if owner is None or not isinstance(select, exp.Select) or not select.args.get("group"):
            return False
        if (join.args.get("side") or "") or not self.on_persons(join, table, owner):
            raise refuse("join", f"JOIN {name}", f"write JOIN {name} USING ({table.person})")
        sub_select = PerPersonSelect(self.features, self.node, self.conditions)
        columns = sub_select.joined_columns(select.copy(), owner)
        for column in list(self.node.find_all(exp.Column)):
            value = columns.get(folded(column.name))
            own = folded(column.table) == name or (
                not column.table and table.attribute(column.name) is None
            )
            if value is None or not own or folded(column.name) == folded(table.person):
                continue
            replacement: exp.Expr = exp.paren(value.copy())
            if column.parent is self.node:
                replacement = exp.alias_(replacement, column.name)
            column.replace(replacement)
        return True

    def _uses(self, single: PrivateTable, every: Tables) -> bool:
        """Whether the SELECT uses a column of a table that no row without a person has."""
        names = {folded(a.name) for a in single.attributes if a.null != "cell"}
        owners = {alias for alias, table in every.items() if table is single}
        return any(
            folded(column.name) in names and (not column.table or folded(column.table) in owners)
            for column in self.node.find_all(exp.Column)
        )

    def _without_missing(self, every: Tables, events: list[PrivateTable]) -> list[PrivateTable]:
        """Take ``LEFT JOIN orders … WHERE orders.customer IS NULL`` for persons without orders."""
        rest, parts = [], self.where_parts()
        for part in parts:
            test = bare(part)
            is_null = isinstance(test, exp.Is) and isinstance(test.expression, exp.Null)
            column = test.this if is_null else None
            owner = every.get(folded(column.table)) if isinstance(column, exp.Column) else None
            is_person = owner in events and folded(test.this.name) == folded(owner.person)
            if owner is not None and is_person:
                self.conditions.append(exp.Not(this=self.features.want(owner, "exists")))
                events = [table for table in events if table is not owner]
            else:
                rest.append(part)
        if len(rest) < len(parts):
            self.set_where(rest)
        return events

    def _check_no_persons(self, every: Tables) -> None:
        """Refuse names of persons among the columns of a result."""
        persons = {folded(table.person) for table in every.values()}
        group = self.node.args.get("group")
        listed = [*self.node.expressions, *([] if group is None else group.expressions)]
        for item in listed:
            plain = value_of(item)
            if isinstance(plain, exp.Column) and folded(plain.name) in persons:
                raise refuse("group-by", f"column {plain.name!r}", PER_PERSON, at=place(plain))

    # Conditions on persons.

    def _lower_conditions(self, every: Tables) -> None:
        """Replace EXISTS, IN and scalar sub-selects over events by columns of features."""
        for node in list(self.node.find_all(exp.Exists, exp.In, exp.Subquery)):
            if isinstance(node, exp.Exists):
                node.replace(self._exists(bare(node.this), every))
            elif isinstance(node, exp.In) and node.args.get("query") is not None:
                node.replace(self._in(node, every))
            elif _is_scalar(node):
                node.replace(self._scalar(bare(node.this), every))
        singles = [table for table in every.values() if table.is_single]
        base = (*self.people.singles, *self.people.tables)[0]
        for table in singles:
            if table is not base:
                self.conditions.append(self.features.want(table, "exists"))

    def _exists(self, select: Any, every: Tables) -> exp.Expr:
        table, rest = self._correlated(select, every)
        return self.features.want(table, "exists", None, conjunction(rest))

    def _scalar(self, select: exp.Select, every: Tables) -> exp.Expr:
        table, rest = self._correlated(select, every)
        if len(select.expressions) != 1:
            raise refuse("subquery", "this sub-select", "select one aggregate per person")
        return self.aggregates(value_of(select.expressions[0]), table, rest)

    def _correlated(self, select: Any, every: Tables) -> tuple[PrivateTable, list[exp.Expr]]:
        """The table of a sub-select about one person, and its conditions but for the person."""
        clause = select.args.get("from_") if isinstance(select, exp.Select) else None
        source = exp.Expr() if clause is None else clause.this
        table = self.table_of(source)
        if table is None or select.args.get("joins") or select.args.get("group"):
            raise refuse("subquery", "this sub-select", "it may read one private table alone")
        limit = select.args.get("limit")
        number = None if limit is None else bare(limit.expression)
        some = isinstance(number, exp.Literal) and number.name.isdigit() and int(number.name) > 0
        known = _ABOUT_ONE | ({"limit"} if some else set())
        check_parts(select, known, "{} in a sub-select about one person")
        where = select.args.get("where")
        parts = [] if where is None else flat(where.this)
        alias = folded(source.alias_or_name)
        rest = [part for part in parts if not self._joins_persons(part, table, alias, every)]
        if len(rest) == len(parts):
            persons = " or ".join(sorted({one.person for one in every.values()}))
            raise refuse(
                "subquery",
                "a sub-select that is not about one person",
                f"compare the persons: WHERE {alias}.{table.person} = {persons}",
            )
        return table, [inside(part, alias) for part in rest]

    def _joins_persons(
        self, part: exp.Expr, table: PrivateTable, alias: str, every: Tables
    ) -> bool:
        test = bare(part)
        if not isinstance(test, exp.EQ):
            return False
        sides = [test.this, test.expression]
        if not all(isinstance(side, exp.Column) for side in sides):
            return False
        for inner_side, outside in (sides, sides[::-1]):
            inner = folded(inner_side.table) in {alias, ""} and folded(inner_side.name) == folded(
                table.person
            )
            owner = (
                every.get(folded(outside.table)) if outside.table else next(iter(every.values()))
            )
            if inner and owner is not None and folded(outside.name) == folded(owner.person):
                return True
        return False

    def _in(self, node: exp.In, every: Tables) -> exp.Expr:
        """``person IN (SELECT person FROM orders WHERE …)``."""
        query = node.args["query"]
        select = bare(query.this if isinstance(query, exp.Subquery) else query)
        clause = select.args.get("from_") if isinstance(select, exp.Select) else None
        source = exp.Expr() if clause is None else clause.this
        table = self.table_of(source)
        column = bare(node.this)
        persons = {folded(one.person) for one in every.values()}
        of_person = isinstance(column, exp.Column) and folded(column.name) in persons
        if table is None or not of_person or select.args.get("joins"):
            raise refuse("subquery", "IN with this sub-select", "write person IN (SELECT person …)")
        item = value_of(select.expressions[0])
        if not isinstance(item, exp.Column) or folded(item.name) != folded(table.person):
            raise refuse("subquery", "IN with this sub-select", f"select {table.person} in it")
        check_parts(select, _LISTED, "{} in a sub-select of persons")
        alias = folded(source.alias_or_name)
        where = select.args.get("where")
        rest = [] if where is None else [inside(part, alias) for part in flat(where.this)]
        known = self.features.want(table, "exists", None, conjunction(rest))
        having, group = select.args.get("having"), select.args.get("group")
        if having is None:
            return known
        keys = [] if group is None else group.expressions
        if len(keys) != 1 or not is_person(keys[0], table, select):
            raise refuse("subquery", "HAVING in this sub-select", f"GROUP BY {table.person} alone")
        return exp.paren(exp.and_(known, self.aggregates(having.this, table, rest)))


def _is_scalar(node: exp.Expr) -> bool:
    """Whether a node is a sub-select in the place of a value."""
    among = (exp.Exists, exp.In, exp.From, exp.Join)
    is_select = isinstance(node, exp.Subquery) and isinstance(bare(node.this), exp.Select)
    return is_select and not isinstance(node.parent, among)
