"""PIVOT as a SELECT with one aggregate per value."""

from __future__ import annotations

from itertools import product
from typing import Any

from sqlglot import exp

from lrm.domain import Categories, Domain
from lrm.queries.sql.bind.scope import folded, only, place
from lrm.queries.sql.refusals import refuse

_ADVICE = "write one SUM(CASE WHEN … THEN … END) per column"


def unpivoted(node: exp.Expr, columns: list[str], domain: Domain) -> exp.Expr:
    """``t PIVOT (SUM(x) FOR a IN (1, 2))`` as a sub-select that groups by all other columns."""
    pivots = node.args["pivots"]
    pivot = pivots[0]
    if len(pivots) > 1 or pivot.args.get("unpivot") or pivot.args.get("group") is not None:
        raise refuse("clause", "this PIVOT", _ADVICE, at=place(node))
    fields = pivot.args.get("fields") or []
    if any(type(expression) is not exp.In or not expression.expressions for expression in fields):
        raise refuse("clause", "PIVOT without listed values", _ADVICE, at=place(node))
    values = [_listed(expression, domain) for expression in fields]
    read = {folded(expression.name) for expression in pivot.find_all(exp.Column)}
    group_names = [name for name in columns if name and folded(name) not in read]
    groups = [exp.column(name, quoted=True) for name in group_names]
    names = [expression.name for expression in pivot.args.get("columns") or []]
    items = _answers(list(product(*values)), pivot.expressions, names, node)
    alias: Any = pivot.args.get("alias") or node.args.get("alias")
    source: exp.Expr = node.copy()
    source.set("pivots", None)
    select: exp.Expr = exp.Select(expressions=[*groups, *items], from_=exp.From(this=source))
    if groups:
        select.set("group", exp.Group(expressions=[expression.copy() for expression in groups]))
    made: exp.Expr = exp.Subquery(this=select, alias=None if alias is None else alias.copy())
    return made


def pivot_statement(node: exp.Expr, domain: Domain) -> exp.Expr:
    """``PIVOT t ON a USING SUM(x) GROUP BY b`` of DuckDB, over the declared values of ``a``."""
    only(node, "this", "expressions", "using", "group", "unpivot")
    values: list[list[tuple[exp.Expr, exp.Expr]]] = []
    for expression in node.expressions:
        if type(expression) is exp.In and expression.expressions:
            values.append(_listed(expression, domain))
            continue
        names = {folded(name): name for name in domain.names}
        name = names.get(folded(expression.name)) if type(expression) is exp.Column else None
        attribute = None if name is None else domain.attribute(name)
        if not isinstance(attribute, Categories):
            advice = f"name a column of categories, or list the values: ON {expression.name} IN (…)"
            raise refuse("clause", "PIVOT ON this column", advice, at=place(expression))
        values.append([(expression, exp.convert(value)) for value in attribute.values])
    using, group = node.args.get("using") or [], node.args.get("group")
    if node.args.get("unpivot") or not using or group is None:
        advice = "write PIVOT t ON a USING SUM(x) GROUP BY b"
        raise refuse("clause", "this PIVOT", advice, at=place(node))
    items = _answers(list(product(*values)), using, [], node)
    groups = [expression.copy() for expression in group.expressions]
    select: exp.Expr = exp.Select(expressions=[*groups, *items], from_=exp.From(this=node.this))
    select.set("group", group.copy())
    return select


def _listed(node: exp.Expr, domain: Domain) -> list[tuple[exp.Expr, exp.Expr]]:
    """The column of ``a IN (1, 2 AS b)`` with each of its values, as in ``a IN ([1], [2])``."""
    names = {folded(name): name for name in domain.names}
    name = names.get(folded(node.this.name))
    attribute = None if name is None else domain.attribute(name)
    texts = isinstance(attribute, Categories) and attribute.value_type == "text"
    values = (value.this if type(value) is exp.PivotAlias else value for value in node.expressions)
    listed = []
    for value in values:
        literal = value
        if type(value) is exp.Column and not value.table:
            number = value.name.isdigit() and not texts
            literal = exp.Literal(this=value.name, is_string=not number)
        listed.append((node.this, literal))
    return listed


def _answers(
    cells: list[tuple[tuple[exp.Expr, exp.Expr], ...]],
    aggregates: list[exp.Expr],
    names: list[str],
    node: exp.Expr,
) -> list[exp.Expr]:
    """One aggregate per combination of values and aggregate, filtered by the values."""
    answers: list[exp.Expr] = []
    for cell in cells:
        for aggregate_node in aggregates:
            inner = aggregate_node.this if type(aggregate_node) is exp.Alias else aggregate_node
            if not isinstance(inner, exp.AggFunc):
                raise refuse("clause", "PIVOT without an aggregate", _ADVICE, at=place(node))
            equal = [exp.EQ(this=column.copy(), expression=value.copy()) for column, value in cell]
            condition = exp.and_(*equal)
            aggregate = exp.Filter(this=inner.copy(), expression=exp.Where(this=condition))
            name = "_".join(value.name for _, value in cell)
            if len(aggregates) > 1 or type(aggregate_node) is exp.Alias:
                name = f"{name}_{aggregate_node.alias or inner.sql(dialect='duckdb')}"
            name = names[len(answers)] if len(answers) < len(names) else name
            answers.append(exp.alias_(aggregate, name, quoted=True))
    return answers
