"""SELECTs over a sub-select with one row per person: its columns are features of persons."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lrm.domain.private_tables import PrivateTable
from lrm.queries.sql.bind.scope import bare, folded
from lrm.queries.sql.people.features import conjunction
from lrm.queries.sql.people.groups import group_values, union_by_group
from lrm.queries.sql.people.select import (
    Lowered,
    PeopleSelect,
    Tables,
    aggregates_in,
    check_parts,
    is_person,
    numbered,
    orders_rows,
    resolved_group,
    value_of,
)
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.source import DUCKDB

_GROUPED = frozenset({"expressions", "from_", "joins", "where", "group", "having", "order"})
_FIRST_ROWS = frozenset({"expressions", "from_", "joins", "where", "qualify", "order"})


class PerPersonSelect(PeopleSelect):
    """``FROM (SELECT person, … GROUP BY person)``, or the first row of each person."""

    def lower(self, inner: exp.Select) -> Lowered:
        """Rewrite the SELECT, whose FROM is ``inner``."""
        source = inner.args["from_"].this
        table = self.table_of(source)
        assert table is not None  # noqa: S101 - the caller looked
        check_parts(
            inner,
            _GROUPED if inner.args.get("group") is not None else _FIRST_ROWS,
            "{} in a sub-select per person",
        )
        every: Tables = {folded(source.alias_or_name): table}
        for join in inner.args.get("joins") or []:
            other = self.table_of(join.this)
            if other is None or not other.is_single:
                raise refuse("join", "this JOIN in a sub-select per person", "join persons alone")
            every[folded(join.this.alias_or_name)] = other
            self.check_join(join, table, other)
        self.tables = every
        rest, outer = self.split_where(inner, table, every)
        groups = self._further_groups(inner, table, every)
        if groups:
            return Lowered(self._by_group(inner, table, rest, outer, groups), (None,))
        first = next(iter(numbered(inner)), None)
        if first is not None and inner.args.get("group") is None:
            columns = self._first_rows(inner, table, rest, *first)
        else:
            columns = self._grouped(inner, table, rest)
        if not table.is_single:
            self.conditions.append(self.features.want(table, "exists", None, conjunction(rest)))
        self.conditions += outer
        self.substitute(columns, table)
        return Lowered(self.finish(), (None,))

    def joined_columns(self, inner: exp.Select, table: PrivateTable) -> dict[str, exp.Expr]:
        """The columns of a sub-select per person that rows are joined with.

        That a person has a row in it becomes a condition.
        """
        check_parts(inner, _GROUPED, "{} in a sub-select per person")
        every: Tables = {folded(inner.args["from_"].this.alias_or_name): table}
        self.tables = every
        rest, outer = self.split_where(inner, table, every)
        if outer or inner.args.get("joins") or self._further_groups(inner, table, every):
            raise refuse(
                "join", "this sub-select in a JOIN", "let it read one table and group by person"
            )
        if not table.is_single:
            self.conditions.append(self.features.want(table, "exists", None, conjunction(rest)))
        return self._grouped(inner, table, rest)

    def _further_groups(
        self, inner: exp.Select, table: PrivateTable, every: Tables
    ) -> list[exp.Expr]:
        """The columns of rows that a sub-select is grouped by, in addition to the person."""
        group = inner.args.get("group")
        others = [] if group is None else group.expressions
        resolved = [resolved_group(inner, item) for item in others]
        return [
            item
            for item in resolved
            if not is_person(item, table, inner) and self.is_about(item, table, every)
        ]

    def _by_group(
        self,
        inner: exp.Select,
        table: PrivateTable,
        rest: list[exp.Expr],
        outer: list[exp.Expr],
        groups: list[exp.Expr],
    ) -> exp.Expr:
        """One SELECT per value of a column of rows: each is over persons with rows of that value.

        A person has several rows in such a sub-select, at most one per value; so the result must be
        grouped by the value.
        """
        (item, *more) = groups
        name = next(
            (folded(one.alias_or_name) for one in inner.expressions if value_of(one) == item), ""
        )
        group = self.node.args.get("group")
        listed = [] if group is None else group.expressions
        of_value = [g for g in listed if _names(resolved_group(self.node, g), name)]
        if more or not of_value:
            raise refuse(
                "subquery",
                f"a sub-select per person and {item.sql(dialect=DUCKDB)}",
                "a person may have several rows in it: group it by the person and one column of "
                "the rows, and group the outer SELECT by that column too",
            )
        kept = [g for g in listed if g not in of_value]
        self.node.set("group", exp.Group(expressions=[g.copy() for g in kept]) if kept else None)
        return union_by_group(
            self.node,
            group_values(item, table),
            lambda part, label, condition: self._part(
                part, inner, table, [*rest, condition], outer, {name: label}
            ),
        )

    def _part(  # noqa: PLR0913, PLR0917 - one SELECT of several
        self,
        node: exp.Select,
        inner: exp.Select,
        table: PrivateTable,
        rest: list[exp.Expr],
        outer: list[exp.Expr],
        labels: dict[str, str],
    ) -> exp.Expr:
        """The outer SELECT over persons with rows of one value."""
        part = PerPersonSelect(self.features, node, list(self.conditions), self.tables)
        columns = part._grouped(inner, table, rest, labels)
        part.conditions += [self.features.want(table, "exists", None, conjunction(rest)), *outer]
        part.substitute(columns, table)
        return part.finish()

    def _grouped(
        self,
        inner: exp.Select,
        table: PrivateTable,
        rest: list[exp.Expr],
        labels: Mapping[str, str] | None = None,
    ) -> dict[str, exp.Expr]:
        """The columns of a sub-select grouped by person; HAVING becomes a condition.

        ``labels`` are the values of columns that have one.
        """
        self.check_windows(inner, table)
        columns: dict[str, exp.Expr] = {}
        for item in inner.expressions:
            value = value_of(item)
            name = folded(item.alias_or_name)
            if name in (labels or {}):
                columns[name] = exp.Literal.string((labels or {})[name])
            elif is_person(value, table, inner):
                columns[name] = exp.Literal.number(1)
            else:
                columns[name] = self.aggregates(value, table, rest)
        having = inner.args.get("having")
        if having is not None:
            self.conditions.append(self.aggregates(having.this, table, rest))
        return columns

    def _first_rows(
        self,
        inner: exp.Select,
        table: PrivateTable,
        rest: list[exp.Expr],
        window: exp.Window,
        alias: str | None,
    ) -> dict[str, exp.Expr]:
        """The columns of the first row of each person, by ``ROW_NUMBER() … = 1``."""
        order = window.args.get("order")
        keys = [] if order is None else order.expressions
        by = bare(keys[0].this) if len(keys) == 1 else None
        partition = window.args["partition_by"]
        by_person = len(partition) == 1 and is_person(partition[0], table, inner)
        if not by_person or not isinstance(by, exp.Column) or table.attribute(by.name) is None:
            raise refuse(
                "window", "this ROW_NUMBER()", "PARTITION BY the person ORDER BY one column"
            )
        value = "last" if keys[0].args.get("desc") else "first"
        if inner.args.get("qualify") is None:
            self._take_first(alias or "")
        else:
            test = bare(inner.args["qualify"].this)
            if not (isinstance(test, exp.EQ) and bare(test.expression).name == "1"):
                raise refuse("window", "this QUALIFY", "write ROW_NUMBER() OVER (…) = 1")
        ordering = table.attribute(by.name)
        assert ordering is not None  # noqa: S101 - looked up above
        if not orders_rows(ordering):
            raise refuse(
                "subquery",
                f"ROW_NUMBER() ORDER BY {by.name}",
                f"the cells of {by.name!r} hold several values each, so the first row of a person "
                "is not known; declare it by day, or with width 1",
            )
        return {
            folded(attribute.name): self.features.want(
                table,
                value,
                attribute.name,
                conjunction(rest),
                ordering.name,
            )
            for attribute in table.attributes
            if self._mentions(attribute.name)
        }

    def _mentions(self, name: str) -> bool:
        return any(folded(column.name) == folded(name) for column in self.node.find_all(exp.Column))

    def _take_first(self, alias: str) -> None:
        """Take ``WHERE rn = 1`` out of the outer SELECT."""
        parts = self.where_parts()
        tests = [
            part
            for part in parts
            if isinstance(bare(part), exp.EQ)
            and folded(getattr(bare(part).this, "name", "")) == folded(alias)
            and bare(part).expression.name == "1"
        ]
        if len(tests) != 1:
            raise refuse(
                "window", "ROW_NUMBER() per person", f"select its first: WHERE {alias} = 1"
            )
        rest = [part for part in parts if part is not tests[0]]
        self.set_where(rest)

    def substitute(self, columns: dict[str, exp.Expr], table: PrivateTable) -> None:
        """Put features in the place of the columns of the sub-select."""
        for node in aggregates_in(self.node):
            inner = node.this
            distinct = isinstance(inner, exp.Distinct)
            value = bare(inner.expressions[0]) if distinct else bare(inner)
            person = isinstance(value, exp.Column) and (
                columns.get(folded(value.name)) == exp.Literal.number(1)
                or folded(value.name) == folded(table.person)
            )
            if isinstance(node, exp.Count) and person:
                node.replace(exp.Count(this=exp.Star(), big_int=True))
        for item in self.node.expressions:
            if isinstance(item, exp.Column) and folded(item.name) in columns:
                item.replace(exp.alias_(item.copy(), item.name))
        for node in list(self.node.find_all(exp.Column)):
            value = columns.get(folded(node.name))
            if value is not None and not self._is_output(node):
                node.replace(
                    exp.paren(value.copy()) if not isinstance(value, exp.Column) else value.copy()
                )

    def _is_output(self, node: exp.Expr) -> bool:
        """Whether a name in ORDER BY is that of a column of the result."""
        order = node.find_ancestor(exp.Order)
        return order is not None and any(
            isinstance(item, exp.Alias) and folded(item.alias) == folded(node.name)
            for item in self.node.expressions
        )


def _names(node: exp.Expr, name: str) -> bool:
    """Whether an expression is a column of a name."""
    return isinstance(node, exp.Column) and folded(node.name) == name
