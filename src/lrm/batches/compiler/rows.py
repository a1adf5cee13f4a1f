"""A batch of SQL → answers, each a sum of products of one weight vector per attribute."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.aggregates import Summand, Weighed, Weights, filtered, weights
from lrm.batches.compiler.decompose import Vectors, decompose, multiplied
from lrm.batches.compiler.evaluation import Values
from lrm.batches.compiler.expressions import shown
from lrm.batches.compiler.grouping import GroupingSet, Keys, grouping_sets, split_keys
from lrm.batches.compiler.predicates import Context, Scope
from lrm.batches.compiler.refusals import AGGREGATES, in_statement, only, refuse
from lrm.batches.compiler.statements import Statement, statements
from lrm.batches.compiler.tables import Table, aligned, fits
from lrm.batches.terms import FlatRows, Terms
from lrm.errors import SqlError, SqlWarning, WorkloadError
from lrm.maps.products.combine import MANY_PRODUCTS, Product
from lrm.showing.spelling import how_many

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.workload import Workload

__all__ = ["compile_batch", "compile_condition"]

FLAT_CELLS = 1 << 16
"""Cells up to which an answer of more products is written out cell by cell."""

MOST_GROUPS = 1000
"""Groups that expressions of one statement may have."""

Answers = list[tuple[str | None, exp.Expr]]
"""The aggregates of one statement, each with its name if it has one."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One aggregate of a statement, over all groups of its grouping sets."""

    query: str
    line: int
    sets: list[GroupingSet]
    products: list[Product]
    fixed: tuple[tuple[str, str], ...] = ()


def compile_batch(text: str, domain: Domain) -> Workload:
    """Compile a batch of SELECT statements; see `lrm.sql`."""
    single = len(domain.attributes) == 1
    rows = FlatRows(domain) if single else Terms(domain)
    for answer in _compiled(text, domain):
        for axes in answer.sets:
            with in_statement(answer.line):
                _add(rows, answer, axes)
    return rows.finished()


def _add(rows: FlatRows | Terms, answer: Answer, axes: GroupingSet) -> None:
    try:
        clash = rows.add(answer.query, answer.line, axes, answer.products, answer.fixed)
    except WorkloadError as error:
        raise SqlError(str(error)) from None
    if clash is not None:
        raise SqlError(
            f"the name {clash.name!r} is already taken on line {clash.line}; "
            "give each answer its own name with AS"
        )


def compile_condition(text: str, domain: Domain) -> list[Product] | None:
    """The products that a batch of one ungrouped answer adds up; None for any other batch."""
    answers = list(_compiled(text, domain))
    if len(answers) != 1 or answers[0].sets != [()] or answers[0].fixed:
        return None
    return answers[0].products


def _compiled(text: str, domain: Domain) -> Iterator[Answer]:
    context = Context(domain)
    for statement in statements(text, domain.table):
        with in_statement(statement.line):
            found = _compile_statement(statement, context)
        yield from found
    for told in context.warnings:
        warnings.warn(told, SqlWarning, stacklevel=4)


def _compile_statement(statement: Statement, context: Context) -> list[Answer]:
    select = statement.select
    scope = Scope(context, statement.qualifier)
    group, keys = split_keys(select, scope)
    sets = grouping_sets(group, scope)
    grouped = {axis for axes in sets for axis in axes}
    answers = _answers(select, scope, grouped, keys)
    where = select.args.get("where")
    found_keys = _key_values(keys, grouped, scope)
    _weigh(answers, where, scope)
    _groups(found_keys, keys, scope)
    scope.merge()
    compiled = _weigh(answers, where, scope)
    groups = _groups(_key_values(keys, grouped, scope), keys, scope)
    found = []
    for position, ((alias, _), answer) in enumerate(zip(answers, compiled, strict=True), start=1):
        unnamed = f"q{statement.number}" + (f".{position}" if len(answers) > 1 else "")
        for fixed, tables in groups:
            products = _products(tuple(one.times(tables) for one in answer), scope)
            found.append(Answer(alias or unnamed, statement.line, sets, products, fixed))
    return found


def _key_values(keys: Keys, grouped: set[int], scope: Scope) -> Values | None:
    """The values of all expressions that a statement is grouped by, together."""
    if not keys:
        return None
    nodes = [node for _, node in keys.values()]
    found = scope.values(exp.Tuple(expressions=[node.copy() for node in (*nodes, nodes[0])]))
    shared = grouped.intersection(found.axes)
    if shared:
        name = scope.domain.names[min(shared)]
        raise refuse(f"GROUP BY {name} beside an expression of it", "group by one of them")
    if len(found.distinct) > MOST_GROUPS:
        raise refuse(f"GROUP BY an expression of {len(found.distinct):,} values", "use fewer")
    return found


Group = tuple[tuple[tuple[str, str], ...], list[Weighed]]
"""The names and labels of one group of expressions, and the cells that are in it."""


def _groups(values: Values | None, keys: Keys, scope: Scope) -> list[Group]:
    if values is None:
        return [((), [])]
    found: list[Group] = []
    cut = scope.placed(values, values.undecided)
    for code, row in enumerate(values.distinct):
        labels = tuple(
            (name, _label(value)) for (name, _), value in zip(keys.values(), row[:-1], strict=True)
        )
        inside = scope.placed(values, (values.codes == code).astype(np.float64))
        found.append((labels, [Weighed(inside.axes, inside.values, cut.values)]))
    if len({labels for labels, _ in found}) < len(found):
        raise SqlError("two groups of an expression have the same label")
    return found


def _label(value: object) -> str:
    if value is None:
        return "(null)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _weigh(answers: Answers, where: exp.Expr | None, scope: Scope) -> list[Weights]:
    if where is None:
        return [weights(node, scope) for _, node in answers]
    only(where, "this")
    kept = scope.truths(where.this)
    return [filtered(weights(node, scope), kept) for _, node in answers]


def _answers(select: exp.Expr, scope: Scope, grouped: set[int], keys: Keys) -> Answers:
    """Split SELECT's list into group labels (checked) and answers (returned)."""
    answers: Answers = []
    for item in select.expressions:
        alias, node = None, item
        if type(item) is exp.Alias:
            only(item, "this", "alias")
            alias, node = item.alias, item.this
        if shown(node) in keys:
            continue
        if type(node) is not exp.Column:
            answers.append((alias, node))
            continue
        name = scope.domain.names[axis := scope.axis(node)]
        if axis not in grouped:
            raise refuse(f"column {name!r} outside GROUP BY", f"add it: GROUP BY {name}", node)
        if alias is not None:
            raise refuse("AS on a group's column", "answers are labelled by the attribute", node)
    if not answers:
        raise refuse("a SELECT without an aggregate", AGGREGATES, select)
    return answers


def _products(compiled: Weights, scope: Scope) -> list[Product]:
    """Write an aggregate as few products of one vector per attribute, over the domain's cells."""
    for summand in compiled:
        undecided = summand.undecided()
        if undecided is not None:
            raise scope.explain(undecided)
    limit = MANY_PRODUCTS if scope.domain.size > FLAT_CELLS else FLAT_CELLS
    found = _few([_summand_products(summand, limit) for summand in compiled], compiled)
    if len(found) > limit:
        raise SqlError(
            f"the answer is a sum of {len(found):,} products of attributes, and at most "
            f"{MANY_PRODUCTS} are compiled over a domain of {how_many(scope.domain.size)} cells; "
            "use OR and NOT across fewer attributes, or write several statements"
        )
    return [
        (coefficient, {axis: scope.over_cells(vector, axis) for axis, vector in vectors.items()})
        for coefficient, vectors in found
    ]


def _summand_products(summand: Summand, limit: int) -> list[Vectors]:
    parts = [decompose(Table(one.axes, one.values + 0.0)) for one in summand.tables]
    count = math.prod(map(len, parts))
    if count > max(limit, MANY_PRODUCTS):
        raise SqlError(
            f"the answer is a sum of {count:,} products of attributes, and at most "
            f"{MANY_PRODUCTS} are compiled; use OR and NOT across fewer attributes, "
            "or write several statements"
        )
    return multiplied(parts, summand.coefficient) if summand.coefficient else []


def _few(each: list[list[Vectors]], compiled: Weights) -> list[Vectors]:
    """The products of all summands, or of their sum cell by cell where that has no more."""
    apart = [one for products in each for one in products]
    if len(apart) <= 1:
        return apart
    tables = [table for summand in compiled for table in summand.tables]
    if not fits(tables):
        return apart
    axes = tuple(sorted({axis for table in tables for axis in table.axes}))
    whole = np.zeros((1,) * len(axes))
    for summand in compiled:
        values = np.full((1,) * len(axes), summand.coefficient)
        for table in summand.tables:
            values = values * aligned(table, axes)
        whole = whole + values
    together = decompose(Table(axes, whole + 0.0))
    return together if len(together) <= len(apart) else apart
