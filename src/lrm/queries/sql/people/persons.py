"""Counts of different persons: each is of persons who have a row that meets the conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from lrm.domain.private_tables import PrivateTable
from lrm.queries.sql.bind.scope import bare, folded
from lrm.queries.sql.people.features import conjunction
from lrm.queries.sql.people.groups import group_values, union_by_group
from lrm.queries.sql.people.select import (
    PeopleSelect,
    Tables,
    aggregates_in,
    condition_of,
    resolved_group,
    value_of,
)
from lrm.queries.sql.refusals import refuse


@dataclass(eq=False)
class CountedPersons(PeopleSelect):
    """A SELECT with ``COUNT(DISTINCT person)`` over events.

    Where it has aggregates of rows too, it reads two levels: each aggregate has the condition that
    its rows are of one of them, and ``known`` are further conditions on rows.
    """

    known: Sequence[exp.Expr] | None = None

    def aggregates_of(self, table: PrivateTable) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """The aggregates that count different persons, and those of rows."""
        every = aggregates_in(self.node)
        persons = [node for node in every if self._distinct_person(node, table) is not None]
        return persons, [node for node in every if node not in persons]

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

    def lower(
        self, table: PrivateTable, every: Tables, known: Sequence[exp.Expr] | None = None
    ) -> exp.Expr:
        """Rewrite the SELECT: one that counts persons, or one for each group of events."""
        self.known = known
        rest, outer = self.split_where(self.node, table, every)
        group = self.node.args.get("group")
        groups = (
            [] if group is None else [resolved_group(self.node, item) for item in group.expressions]
        )
        of_events = [item for item in groups if self.is_about(item, table, every)]
        self.set_where(outer)
        for owner in every.values():
            if owner.is_single and owner is not self.people.singles[0]:
                self.conditions.append(self.features.want(owner, "exists"))
        if of_events:
            return self._by_group(of_events, groups, table, rest)
        self._replace_aggregates(self.node, table, rest)
        return self.finish()

    def _replace_aggregates(
        self, select: exp.Expr, table: PrivateTable, rest: list[exp.Expr]
    ) -> None:
        """Let each aggregate be of persons or of rows, under conditions on rows."""
        for node in aggregates_in(select):
            if self._distinct_person(node, table) is not None:
                self._replace_count(node, table, rest)
            elif self.known is not None:
                self._restrict(node, [condition_of(table.name), *rest, *self.known])

    def _restrict(self, node: exp.Expr, conditions: Sequence[exp.Expr]) -> None:
        """Add conditions to those of an aggregate of rows."""
        target = node
        if isinstance(node.parent, exp.Filter):
            target = node.parent
            conditions = [*conditions, target.expression.this.copy()]
        where = exp.Where(this=conjunction(conditions))
        target.replace(exp.Filter(this=node.copy(), expression=where))

    def _replace_count(self, node: exp.Expr, table: PrivateTable, rest: list[exp.Expr]) -> None:
        conditions = self._distinct_person(node, table) or []
        target = node
        if isinstance(node.parent, exp.Filter):
            target = node.parent
            conditions = [*conditions, target.expression.this]
        extra = [self.of_rows(condition, table) for condition in conditions]
        column: exp.Expr = self.features.want(table, "exists", None, conjunction([*rest, *extra]))
        if self.known is not None:
            column = exp.and_(condition_of(None), column)
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
        group = exp.Group(expressions=of_persons) if of_persons else None
        self.node.set("group", group)
        return union_by_group(
            self.node,
            group_values(of_events[0], table),
            lambda part, label, condition: self._of_group(
                part, of_events[0], label, table, [*rest, condition]
            ),
        )

    def _of_group(
        self,
        part: exp.Select,
        group: exp.Expr,
        label: str,
        table: PrivateTable,
        rest: list[exp.Expr],
    ) -> exp.Expr:
        """The SELECT of one group, with the label in the place of its column."""
        for item in part.expressions:
            value = value_of(item)
            if group in (value, resolved_group(part, value)):
                name = item.alias_or_name or value.name or "group"
                item.replace(exp.alias_(exp.Literal.string(label), name))
        self._replace_aggregates(part, table, rest)
        return self.finish(part)
