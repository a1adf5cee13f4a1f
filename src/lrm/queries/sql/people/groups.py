"""The groups of a count of different persons: values of one column of events."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lrm.domain import Categories, Dates, Integers
from lrm.domain.private_tables import PrivateTable
from lrm.queries.sql.bind.scope import bare, place
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.source import DUCKDB

MOST_GROUPS = 400
"""Groups of a count of different persons: each is a yes/no feature of its own."""


def group_values(node: exp.Expr, table: PrivateTable) -> list[tuple[str, exp.Expr]]:
    """The groups of a column of events: the label of each, and the condition of its rows."""
    plain = bare(node)
    period = None
    if isinstance(plain, (exp.DateTrunc, exp.TimestampTrunc)):
        period = str(plain.args["unit"].name).lower()
        plain = bare(plain.this)
    if isinstance(plain, exp.Cast):
        plain = bare(plain.this)
    attribute = table.attribute(plain.name) if isinstance(plain, exp.Column) else None
    if isinstance(plain, exp.Column) and attribute is None:
        raise refuse(
            "unknown-column",
            f"GROUP BY {plain.name}",
            f"table {table.name!r} declares no attribute {plain.name!r}; its values must be public",
            at=place(node),
        )
    column = exp.column(attribute.name) if attribute is not None else None
    if column is not None and isinstance(attribute, Categories) and period is None:
        return [
            (str(value), exp.EQ(this=column.copy(), expression=exp.convert(value)))
            for value in attribute.values
        ]
    if column is not None and isinstance(attribute, Integers) and attribute.width == 1:
        return [
            (str(value), exp.EQ(this=column.copy(), expression=exp.convert(value)))
            for value in range(attribute.low, attribute.high + 1)
        ]
    if column is not None and isinstance(attribute, Dates):
        return _period_values(attribute, column, period)
    raise refuse(
        "aggregate",
        f"COUNT(DISTINCT person) GROUP BY {node.sql(dialect=DUCKDB)}",
        "group by a column of categories, whole numbers or dates, or by date_trunc of one",
        at=place(node),
    )


def union_by_group(
    node: exp.Select,
    values: list[tuple[str, exp.Expr]],
    part_of: Callable[[exp.Select, str, exp.Expr], exp.Expr],
) -> exp.Expr:
    """UNION ALL of one SELECT per group, which ``part_of`` makes of a copy; ORDER BY comes last."""
    if len(values) > MOST_GROUPS:
        raise refuse("size", f"persons in {len(values):,} groups", "group by fewer")
    ending = {key: node.args.get(key) for key in ("order", "limit", "offset")}
    for key in ending:
        node.set(key, None)
    union: exp.Expr | None = None
    for label, condition in values:
        copied = node.copy()
        copied.set("with_", None)
        part = part_of(copied, label, condition)
        union = part if union is None else exp.Union(this=union, expression=part, distinct=False)
    assert union is not None  # noqa: S101 - an attribute has values
    for key, value in ending.items():
        if value is not None:
            union.set(key, value)
    return union


def _period_values(
    attribute: Dates, column: exp.Column, period: str | None
) -> list[tuple[str, exp.Expr]]:
    """Periods of a column of dates, the declared ones or longer ones."""
    lengths = ("day", "month", "year")
    period = period or attribute.by
    shorter = attribute.by not in lengths or period not in lengths
    if shorter or lengths.index(period) < lengths.index(attribute.by):
        raise refuse(
            "aggregate", f"date_trunc({period!r})", f"{attribute.name!r} is by {attribute.by}"
        )
    values: list[tuple[str, exp.Expr]] = []
    start = attribute.start
    while start <= attribute.end and len(values) <= MOST_GROUPS:
        year, month = start.year, start.month
        if period == "day":
            following = start.fromordinal(start.toordinal() + 1)
        elif period == "month":
            following = start.replace(year=year + month // 12, month=month % 12 + 1, day=1)
        else:
            following = start.replace(year=year + 1, month=1, day=1)
        low = exp.GTE(this=column.copy(), expression=exp.Literal.string(start.isoformat()))
        high = exp.LT(this=column.copy(), expression=exp.Literal.string(following.isoformat()))
        label = start.isoformat()[: {"day": 10, "month": 7, "year": 4}[period]]
        values.append((label, exp.and_(low, high)))
        start = following
    return values
