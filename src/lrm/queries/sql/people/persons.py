"""Counts of different persons: each is of persons who have a row that meets the conditions."""

from __future__ import annotations

from sqlglot import exp

from lrm.domain.people import PrivateTable
from lrm.queries.sql.bind.scope import bare, folded
from lrm.queries.sql.people.features import conjunction, unqualified
from lrm.queries.sql.people.groups import MOST_GROUPS, group_values
from lrm.queries.sql.people.select import PeopleSelect, Tables, aggregates_in, value_of
from lrm.queries.sql.refusals import refuse


class CountedPersons(PeopleSelect):
    """A SELECT of ``COUNT(DISTINCT person)`` over events."""

    def counts_persons(self, table: PrivateTable) -> bool:
        """Whether the aggregates are counts of different persons; an error where only some are."""
        every = aggregates_in(self.node)
        distinct = [node for node in every if self._distinct_person(node, table) is not None]
        if distinct and len(distinct) < len(every):
            raise refuse(
                "aggregate",
                "COUNT(DISTINCT person) beside aggregates of rows",
                "persons and rows are answered at different levels; write two statements",
            )
        return bool(distinct)

    def _distinct_person(self, node: exp.Expr, table: PrivateTable) -> list[exp.Expr] | None:
        """The conditions of ``COUNT(DISTINCT [CASE WHEN … THEN] person [END])``; else None."""
        if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Distinct):
            return None
        values = node.this.expressions
        value = bare(values[0]) if len(values) == 1 else None
        conditions = []
        if (
            isinstance(value, exp.Case)
            and len(value.args["ifs"]) == 1
            and not value.args.get("default")
        ):
            branch = value.args["ifs"][0]
            conditions, value = [branch.this], bare(branch.args["true"])
        is_person = isinstance(value, exp.Column) and folded(value.name) == folded(table.person)
        return conditions if is_person else None

    def lower(self, table: PrivateTable, every: Tables) -> exp.Expr:
        """Rewrite the SELECT: one that counts persons, or one for each group of events."""
        rest, outer = self.split_where(self.node, table, every)
        group = self.node.args.get("group")
        groups = [] if group is None else [self._resolved(item) for item in group.expressions]
        of_events = [item for item in groups if self.is_about(item, table, every)]
        self.set_where(outer)
        for owner in every.values():
            if owner.is_single and owner is not self.people.singles[0]:
                self.conditions.append(self.features.want(owner, "exists"))
        if of_events:
            return self._by_group(of_events, groups, table, rest)
        for node in aggregates_in(self.node):
            self._replace_count(node, table, rest)
        return self.finish()

    def _resolved(self, item: exp.Expr) -> exp.Expr:
        """What an element of GROUP BY stands for: a position or an alias of the SELECT list."""
        plain = bare(item)
        if isinstance(plain, exp.Literal) and plain.name.isdigit():
            chosen: exp.Expr = value_of(self.node.expressions[int(plain.name) - 1])
            return chosen
        is_name = isinstance(plain, exp.Column) and not plain.table
        name: str = plain.name if is_name else ""
        for column in self.node.expressions if is_name else ():
            if isinstance(column, exp.Alias) and folded(column.alias) == folded(name):
                plain = column.this
        resolved: exp.Expr = plain
        return resolved

    def _replace_count(self, node: exp.Expr, table: PrivateTable, rest: list[exp.Expr]) -> None:
        conditions = self._distinct_person(node, table) or []
        target = node
        if isinstance(node.parent, exp.Filter):
            target = node.parent
            conditions = [*conditions, target.expression.this]
        extra = [unqualified(condition) for condition in conditions]
        column = self.features.want(table, "exists", None, conjunction([*rest, *extra]))
        count = exp.Count(this=exp.Star(), big_int=True)
        target.replace(exp.Filter(this=count, expression=exp.Where(this=column)))

    def _by_group(
        self,
        of_events: list[exp.Expr],
        groups: list[exp.Expr],
        table: PrivateTable,
        rest: list[exp.Expr],
    ) -> exp.Expr:
        """One SELECT per group of events: each counts the persons with a row in that group."""
        if len(of_events) > 1:
            raise refuse(
                "aggregate",
                "COUNT(DISTINCT person) by several columns of rows",
                "group by one column of the rows, and by columns of the person",
            )
        of_persons = [item.copy() for item in groups if item is not of_events[0]]
        values = group_values(of_events[0], table)
        if len(values) > MOST_GROUPS:
            raise refuse("size", f"a count of persons in {len(values):,} groups", "group by fewer")
        ending = {key: self.node.args.get(key) for key in ("order", "limit", "offset")}
        for key in ending:
            self.node.set(key, None)
        group = exp.Group(expressions=of_persons) if of_persons else None
        self.node.set("group", group)
        union: exp.Expr | None = None
        for label, condition in values:
            part = self._of_group(of_events[0], label)
            for node in aggregates_in(part):
                self._replace_count(node, table, [*rest, condition])
            part = self.finish(part)
            union = (
                part if union is None else exp.Union(this=union, expression=part, distinct=False)
            )
        assert union is not None  # noqa: S101 - an attribute has values
        for key, value in ending.items():
            if value is not None:
                union.set(key, value)
        return union

    def _of_group(self, group: exp.Expr, label: str) -> exp.Select:
        """The SELECT with the label of a group in the place of its column."""
        part = self.node.copy()
        part.set("with_", None)
        for item in part.expressions:
            value = value_of(item)
            if group in (value, self._resolved(value)):
                name = item.alias_or_name or value.name or "group"
                item.replace(exp.alias_(exp.Literal.string(label), name))
        return part
