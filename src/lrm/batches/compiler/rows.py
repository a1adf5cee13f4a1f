"""A batch of SQL → answers, each a sum of products of one weight vector per attribute."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.aggregates import Weighed, Weights, filtered, weights
from lrm.batches.compiler.compiled import Answer, Compiled
from lrm.batches.compiler.derivations import Leaf, asked
from lrm.batches.compiler.evaluation import Values
from lrm.batches.compiler.expressions import shown
from lrm.batches.compiler.grouping import GroupingSet, Keys, grouping_sets, split_keys
from lrm.batches.compiler.inputs import DerivedAnswer, Inputs, Part, QuantileAnswer
from lrm.batches.compiler.predicates import Context, Scope
from lrm.batches.compiler.refusals import AGGREGATES, in_statement, only, refuse
from lrm.batches.compiler.statements import Statement, statements
from lrm.batches.terms import FlatRows, Terms
from lrm.errors import SqlError, SqlWarning, WorkloadError

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.maps.products.combine import Product
    from lrm.workload import Derived, Workload

__all__ = ["compile_batch", "compile_condition"]

MOST_GROUPS = 1000
"""Groups that expressions of one statement may have."""

Answers = list[tuple[str | None, exp.Expr]]
"""The aggregates of one statement, each with its name if it has one."""


AnyAnswer = Answer | DerivedAnswer | QuantileAnswer
"""An answer of a statement: linear, or computed from linear ones."""


def compile_batch(text: str, domain: Domain) -> Workload:
    """Compile a batch of SELECT statements; see `lrm.sql`."""
    single = len(domain.attributes) == 1
    rows = FlatRows(domain) if single else Terms(domain)
    inputs = Inputs(rows)
    waiting: list[DerivedAnswer | QuantileAnswer] = []
    for answer in _compiled(text, domain):
        if not isinstance(answer, Answer):
            waiting.append(answer)  # what is asked anyway comes first
            continue
        for axes in answer.sets:
            with in_statement(answer.line):
                inputs.note(Part(axes, answer.products, answer.running))
                _add(rows, answer, axes)
    derived = tuple(_derived(inputs, answer) for answer in waiting)
    return replace(rows.finished(), derived=derived)


def _derived(inputs: Inputs, answer: DerivedAnswer | QuantileAnswer) -> Derived:
    with in_statement(answer.label.line or 0):
        try:
            return inputs.derived(answer)
        except WorkloadError as error:
            raise SqlError(str(error)) from None


def _add(rows: FlatRows | Terms, answer: Answer, axes: GroupingSet) -> None:
    try:
        clash = rows.add(
            answer.query, answer.line, axes, answer.products, answer.fixed, running=answer.running
        )
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
    answer = answers[0]
    if len(answers) != 1 or not isinstance(answer, Answer):
        return None
    return None if answer.sets != [()] or answer.fixed else answer.products


def _compiled(text: str, domain: Domain) -> Iterator[AnyAnswer]:
    context = Context(domain)
    for statement in statements(text, domain.table):
        with in_statement(statement.line):
            found = _compile_statement(statement, context)
        yield from found
    for told in context.warnings:
        warnings.warn(told, SqlWarning, stacklevel=4)


def _compile_statement(statement: Statement, context: Context) -> list[AnyAnswer]:
    select = statement.select
    scope = Scope(context, statement.qualifier)
    group, keys = split_keys(select, scope)
    sets = grouping_sets(group, scope)
    grouped = {axis for axes in sets for axis in axes}
    answers = [(alias, asked(node)) for alias, node in _answers(select, scope, grouped, keys)]
    leaves = [leaf for _, answer in answers for leaf in answer.leaves]
    where = select.args.get("where")
    found_keys = _key_values(keys, grouped, scope)
    _weigh(leaves, where, scope)
    _groups(found_keys, keys, scope)
    scope.merge()
    compiled = iter(_weigh(leaves, where, scope))
    groups = _groups(_key_values(keys, grouped, scope), keys, scope)
    found: list[AnyAnswer] = []
    for position, (alias, answer) in enumerate(answers, start=1):
        unnamed = f"q{statement.number}" + (f".{position}" if len(answers) > 1 else "")
        own = [next(compiled) for _ in answer.leaves]
        made = Compiled(alias or unnamed, statement.line, sets, answer, own, scope)
        for fixed, tables in groups:
            found += made.answers(fixed, tables)
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


def _weigh(leaves: list[Leaf], where: exp.Expr | None, scope: Scope) -> list[Weights]:
    compiled = []
    for leaf in leaves:
        scope.measure = "square" if leaf.square else "value"
        compiled.append(weights(leaf.node, scope))
    if where is None:
        return compiled
    only(where, "this")
    kept = scope.truths(where.this)
    return [filtered(one, kept) for one in compiled]


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
