"""What all SELECTs over private tables share: their tables, joins, and aggregates per person."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from lrm.domain import Attribute, Categories, Dates, Integers
from lrm.domain.people import PERSONS, SOURCE, People
from lrm.domain.private_tables import PrivateTable
from lrm.queries.sql.bind.scope import bare, flat, folded, place
from lrm.queries.sql.people.features import Features, conjunction, unqualified
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.source import DUCKDB

Tables = dict[str, PrivateTable]
"""The private tables of a SELECT, by the names that it gives them."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """What takes the place of a SELECT, and which level it reads."""

    tree: exp.Expr
    bases: tuple[str | None, ...]  # the table of events, or None for persons; of a ratio both


def condition_of(base: str | None) -> exp.Expr:
    """The condition that a row among those of several levels is of one of them."""
    label = PERSONS if base is None else base
    return exp.EQ(this=exp.column(SOURCE, quoted=True), expression=exp.Literal.string(label))


@dataclass(eq=False)
class PeopleSelect:
    """One SELECT, which is rewritten in place: ``conditions`` are added to its WHERE."""

    features: Features
    node: exp.Select
    conditions: list[exp.Expr] = field(default_factory=list)
    tables: Tables = field(default_factory=dict)

    @property
    def people(self) -> People:
        """Whose tables are read."""
        return self.features.people

    def table_of(self, node: Any) -> PrivateTable | None:
        """The private table that a part of FROM names, if it does."""
        table = table_of(self.people, node)
        if table is not None:
            check_parts(node, _TABLE_PARTS, f"{{}} of table {table.name!r}")
            alias = node.args.get("alias")
            if alias is not None and alias.args.get("columns"):
                raise refuse("clause", f"new names of columns of {table.name!r}", "use its own")
        return table

    def finish(self, node: exp.Select | None = None) -> exp.Select:
        """Read the one table of the level, without names of other tables, and add conditions."""
        node = self.node if node is None else node
        table = exp.Table(this=exp.to_identifier(self.people.name, quoted=True))
        node.args["from_"].set("this", table)
        lookups = {folded(lookup.name) for lookup in self.people.lookups}
        joined = {
            folded(join.this.alias_or_name)
            for join in node.args.get("joins") or []
            if folded(join.this.name) in lookups
        }
        for column in list(node.find_all(exp.Column)):
            if folded(column.table) not in joined:
                self._name_in_level(column, node)
        for condition in self.conditions:
            node.where(condition.copy(), copy=False)
        return node

    def _name_in_level(self, column: exp.Column, node: exp.Select) -> None:
        """Write a column as the level calls it, without its table.

        A name that several tables have is that of the events, else of the first table of persons
        (`lrm.domain.people.Level`); the columns of others are called ``table.column`` there.
        """
        if column.name in self.features.names or self._is_output_name(column, node):
            return
        owner = self.owner_of(column)
        attribute = None if owner is None else owner.attribute(column.name)
        column.set("table", None)
        if owner is None or attribute is None:
            return
        rows = [table for table in self.tables.values() if not table.is_single]
        order = [*rows, *self.people.singles]
        if next(table for table in order if table.attribute(column.name)) is owner:
            return
        if column.parent is node and column.arg_key == "expressions":
            column.replace(exp.alias_(column.copy(), column.name))
            column = node.expressions[[value_of(e) for e in node.expressions].index(column)].this
        column.set("this", exp.to_identifier(f"{owner.name}.{attribute.name}", quoted=True))

    def _is_output_name(self, column: exp.Column, node: exp.Select) -> bool:
        """Whether a name in ORDER BY, or one that several tables have, is that of a result."""
        plain = (exp.column(column.name), exp.column(column.name, quoted=True))
        names = {folded(e.alias_or_name) for e in node.expressions if value_of(e) not in plain}
        if column.table or folded(column.name) not in names:
            return False
        return column.find_ancestor(exp.Order) is not None or len(self._owners(column)) > 1

    def _owners(self, column: exp.Column) -> list[PrivateTable]:
        """The tables of the SELECT that have a column of this name."""
        every = dict.fromkeys(self.tables.values())
        return [table for table in every if table.attribute(column.name) is not None]

    def owner_of(self, column: exp.Column) -> PrivateTable | None:
        """The table of a column; None of others, such as a lookup's; an error for two of a name."""
        if column.table:
            return self.tables.get(folded(column.table))
        owners = self._owners(column)
        if len(owners) > 1:
            names = " and ".join(table.name for table in owners)
            raise refuse(
                "unknown-column",
                f"column {column.name!r}",
                f"{names} have a column of this name; write which one",
                at=place(column),
            )
        return owners[0] if owners else None

    def of_rows(self, condition: exp.Expr, table: PrivateTable) -> exp.Expr:
        """A condition on rows of one table, without table names; an error for other tables."""
        for column in condition.find_all(exp.Column):
            owner = self.tables.get(folded(column.table)) if column.table else None
            if owner is not None and owner is not table:
                raise refuse(
                    "subquery",
                    f"{column.sql(dialect=DUCKDB)!r} in a condition on rows of {table.name!r}",
                    "put conditions on the person in WHERE",
                    at=place(column),
                )
        return unqualified(condition)

    def where_parts(self) -> list[exp.Expr]:
        """The conditions that AND joins in WHERE."""
        where = self.node.args.get("where")
        return [] if where is None else flat(where.this)

    def set_where(self, parts: Sequence[exp.Expr]) -> None:
        """Replace WHERE by AND of conditions."""
        self.node.set("where", exp.Where(this=exp.and_(*parts)) if parts else None)

    def split_where(
        self, select: exp.Select, table: PrivateTable, every: Tables
    ) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """The conditions of a SELECT on columns of events, and those on columns of persons."""
        where = select.args.get("where")
        own: list[exp.Expr] = []
        outer: list[exp.Expr] = []
        for part in [] if where is None else flat(where.this):
            if self.is_about(part, table, every):
                own.append(unqualified(part))
            else:
                outer.append(part.copy())
        return own, outer

    def is_about(self, node: exp.Expr, table: PrivateTable, every: Tables) -> bool:
        """Whether a condition is on columns of the events; an error where it mixes both."""
        owners = set()
        for column in node.find_all(exp.Column):
            if column.name in self.features.names:
                owners.add("")  # of the person
                continue
            owner = every.get(folded(column.table)) if column.table else self.owner_of(column)
            if owner is None:
                known = [one for one in (table, *every.values()) if one.attribute(column.name)]
                owner = known[0] if known else table
            owners.add(owner.name)
        if len(owners) > 1 and table.name in owners:
            raise refuse(
                "aggregate",
                f"{node.sql(dialect=DUCKDB)!r}",
                "a condition is on columns of the person or of the rows, not on both",
                at=place(node),
            )
        return table.name in owners

    def check_join(self, join: exp.Expr, table: PrivateTable, other: PrivateTable) -> None:
        check_parts(join, _JOIN_PARTS, f"{{}} of a JOIN with {other.name!r}")
        side, kind = ((join.args.get(key) or "").upper() for key in ("side", "kind"))
        if side not in {"", "LEFT"} or kind not in {"", "INNER", "OUTER"}:
            raise refuse(
                "join",
                f"{' '.join(filter(None, (side, kind)))} JOIN of {other.name!r}",
                "write JOIN or LEFT JOIN; of persons with or without such rows, [NOT] EXISTS",
            )
        if not self.on_persons(join, table, other):
            on = join.args.get("on")
            using = ", ".join(column.name for column in join.args.get("using") or ())
            condition = f" USING ({using})" if using else ""
            if on is not None:
                condition = f" ON {on.sql(dialect=DUCKDB)}"
            raise refuse(
                "join",
                f"JOIN {other.name}{condition}",
                f"private tables are joined by the person alone: ON {table.name}.{table.person} = "
                f"{other.name}.{other.person}",
                at=place(join.this),
            )

    def on_persons(self, join: exp.Expr, table: PrivateTable, other: PrivateTable) -> bool:
        """Whether a join compares the persons of two tables, and nothing else."""
        using = [folded(column.name) for column in join.args.get("using") or []]
        on = join.args.get("on")
        persons = {folded(table.person), folded(other.person)}
        if using == [folded(table.person)] and len(persons) == 1:
            return True
        condition = None if on is None else bare(on)
        return (
            isinstance(condition, exp.EQ)
            and isinstance(condition.this, exp.Column)
            and isinstance(condition.expression, exp.Column)
            and {folded(condition.this.name), folded(condition.expression.name)} == persons
        )

    def aggregates(self, node: exp.Expr, table: PrivateTable, rest: Sequence[exp.Expr]) -> exp.Expr:
        """An expression of aggregates per person, with a feature in the place of each."""
        holder = exp.Paren(this=node.copy())
        for aggregate in aggregates_in(holder):
            target, conditions = aggregate, list(rest)
            if isinstance(aggregate.parent, exp.Filter):
                target = aggregate.parent
                conditions.append(self.of_rows(target.expression.this, table))
            target.replace(self.feature(aggregate, table, conditions))
        features = self.features.names
        for column in list(holder.find_all(exp.Column)):
            if column.name in features:
                continue
            owner = self.owner_of(column) or (table if table.attribute(column.name) else None)
            if owner is not None and not owner.is_single:
                raise refuse(
                    "group-by",
                    f"{column.sql(dialect=DUCKDB)!r} beside aggregates per person",
                    f"a person may have several in {table.name!r}; use it inside an aggregate, "
                    "such as MIN, or in a condition",
                    at=place(column),
                )
        result: exp.Expr = holder.this
        return result

    def check_windows(self, select: exp.Expr, table: PrivateTable) -> None:
        """Refuse windows over rows, but for ROW_NUMBER() that takes a person's first row.

        Windows over groups are computed from their answers.
        """
        for window in select.find_all(exp.Window):
            partition = window.args.get("partition_by") or []
            if any(is_person(item, table, self.node) for item in partition):
                raise refuse(
                    "window",
                    f"{window.this.sql(dialect=DUCKDB)} over the rows of a person",
                    "rows of one person are compared by features alone, such as MIN, MAX and COUNT "
                    "with a condition",
                    at=place(window),
                )
            group = (window.parent_select or select).args.get("group")
            keys = [] if group is None else group.expressions
            of_persons = any(is_person(key, table, self.node) for key in keys)
            if aggregates_in(window) and (of_persons or not keys):
                raise refuse(
                    "window",
                    f"{window.this.sql(dialect=DUCKDB)} over rows of several persons",
                    "what is counted of a person may depend on that person's rows alone; group by "
                    "the number, and rank the groups",
                    at=place(window),
                )

    def feature(  # noqa: PLR0911 - one per aggregate
        self, node: exp.Expr, table: PrivateTable, rest: Sequence[exp.Expr]
    ) -> exp.Column:
        """The feature that one aggregate over the rows of a person is."""
        want = self.features.want
        inner = bare(node.this) if node.this is not None else None
        counted = _counted_condition(node)
        if counted is not None:
            return want(table, "count", None, conjunction([*rest, self.of_rows(counted, table)]))
        if isinstance(node, exp.LogicalOr):
            condition = self.of_rows(node.this, table)
            return want(table, "exists", None, conjunction([*rest, condition]))
        if isinstance(node, exp.Count) and isinstance(inner, exp.Star):
            return want(table, "count", None, conjunction(rest))
        distinct = isinstance(inner, exp.Distinct)
        value = bare(inner.expressions[0]) if isinstance(inner, exp.Distinct) else inner
        attribute = None
        if isinstance(value, exp.Column):
            owner = self.tables.get(folded(value.table)) if value.table else table
            attribute = table.attribute(value.name) if owner in {None, table} else None
        is_person = isinstance(value, exp.Column) and folded(value.name) == folded(table.person)
        if isinstance(node, exp.Count) and is_person and not distinct:
            return want(table, "count", None, conjunction(rest))
        kinds: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Min: "min", exp.Max: "max"}
        if attribute is not None and isinstance(node, exp.Count):
            if distinct:
                _check_single_values(attribute, node)
                return want(table, "distinct", attribute.name, conjunction(rest))
            known = exp.Not(this=exp.Is(this=exp.column(attribute.name), expression=exp.Null()))
            return want(table, "count", None, conjunction([*rest, known]))
        if attribute is not None and type(node) in kinds and not distinct:
            if isinstance(attribute, Categories):
                _check_in_order(attribute, node)
            return want(table, kinds[type(node)], attribute.name, conjunction(rest))
        raise refuse(
            "subquery",
            f"{node.sql(dialect=DUCKDB)} per person",
            "features are COUNT, COUNT(DISTINCT x), SUM, MIN, MAX and BOOL_OR of one column",
            at=place(node),
        )


_TABLE_PARTS = frozenset({"this", "alias", "db", "catalog"})
_JOIN_PARTS = frozenset({"this", "on", "using", "side", "kind"})


def check_parts(node: exp.Expr, known: Collection[str], what: str) -> None:
    """Refuse a part of a clause that none of what follows looks at; ``what`` has its place."""
    for key, value in node.args.items():
        if value and key not in known:
            name = key.strip("_").replace("_", " ").upper()
            raise refuse("clause", what.format(name), "leave it out", at=place(node))


def _check_single_values(attribute: Attribute, node: exp.Expr) -> None:
    """Refuse to count different values of a column by cells that hold several of them."""
    if not (isinstance(attribute, Categories) or orders_rows(attribute)):
        raise refuse(
            "aggregate",
            f"{node.sql(dialect=DUCKDB)} per person",
            f"the cells of {attribute.name!r} hold several values each, so that different values "
            "are not known; declare it by day, or with width 1",
            at=place(node),
        )


def _check_in_order(attribute: Categories, node: exp.Expr) -> None:
    """Refuse MIN and MAX of values that are declared in another order than that of SQL."""
    values: list[Any] = list(attribute.values)
    if values != sorted(values):
        raise refuse(
            "aggregate",
            f"{node.sql(dialect=DUCKDB)} per person",
            f"the values of {attribute.name!r} are not declared in ascending order; count rows "
            "with a condition, or declare them in that order",
            at=place(node),
        )


def orders_rows(attribute: Attribute) -> bool:
    """Whether each cell of an attribute has one value, in the order of values."""
    if isinstance(attribute, Dates):
        return attribute.by == "day" and not attribute.time
    return isinstance(attribute, Integers) and attribute.width == 1


def table_of(people: People, node: Any) -> PrivateTable | None:
    """The private table that a part of FROM names, if it does."""
    return people.table(node.name) if isinstance(node, exp.Table) else None


def is_person(node: Any, table: PrivateTable, select: exp.Select) -> bool:
    """Whether an expression, or the column at a position, names the person of a row."""
    node = bare(node)
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        position = int(node.name) - 1
        if 0 <= position < len(select.expressions):
            node = value_of(select.expressions[position])
    return isinstance(node, exp.Column) and folded(node.name) == folded(table.person)


def value_of(item: exp.Expr) -> Any:
    """An element of the SELECT list without its alias."""
    return bare(item.this if isinstance(item, exp.Alias) else item)


def resolved_group(select: exp.Select, item: exp.Expr) -> exp.Expr:
    """What an element of GROUP BY stands for: a position or an alias of the SELECT list."""
    plain = bare(item)
    if isinstance(plain, exp.Literal) and plain.name.isdigit() and not plain.is_string:
        place = int(plain.name) - 1
        if 0 <= place < len(select.expressions):
            plain = value_of(select.expressions[place])
    is_name = isinstance(plain, exp.Column) and not plain.table
    for column in select.expressions if is_name else ():
        if isinstance(column, exp.Alias) and folded(column.alias) == folded(plain.name):
            plain = bare(column.this)
    resolved: exp.Expr = plain
    return resolved


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression that are not inside of another one."""
    every = node.find_all(exp.AggFunc)
    return [one for one in every if one.find_ancestor(exp.AggFunc) is None]


def numbered(select: exp.Select) -> Iterator[tuple[exp.Window, str | None]]:
    """Windows ``ROW_NUMBER() OVER (PARTITION BY …)`` of a SELECT, with the alias of each."""
    for node in [*select.expressions, select.args.get("qualify")]:
        for window in () if node is None else node.find_all(exp.Window):
            if isinstance(window.this, exp.RowNumber) and window.args.get("partition_by"):
                yield window, node.alias if isinstance(node, exp.Alias) else None


def _counted_condition(node: exp.Expr) -> exp.Expr | None:
    """The condition of ``COUNT_IF(c)`` and of ``SUM(CASE WHEN c THEN 1 ELSE 0 END)``."""
    if isinstance(node, exp.CountIf):
        condition: exp.Expr = node.this
        return condition
    case = bare(node.this) if isinstance(node, exp.Sum) else None
    if isinstance(case, exp.Case) and len(case.args["ifs"]) == 1 and case.this is None:
        branch, default = case.args["ifs"][0], case.args.get("default")
        zero = default is None or bare(default).name == "0"
        if bare(branch.args["true"]).name == "1" and zero:
            found: exp.Expr = branch.this
            return found
    return None
