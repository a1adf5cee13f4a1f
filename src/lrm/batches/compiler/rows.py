"""A batch of SQL → answers, each a sum of products of one weight vector per attribute."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.aggregates import weights
from lrm.batches.compiler.asked import Leaf
from lrm.batches.compiler.binned import middle, sums_bins
from lrm.batches.compiler.compiled import Answer, Compiled, Weighted
from lrm.batches.compiler.derivations import asked
from lrm.batches.compiler.displays import Wanted, ascending, union_display, wanted
from lrm.batches.compiler.evaluation import Values
from lrm.batches.compiler.expressions import Apart, CellLabel, LookedUp, attribute_column, shown
from lrm.batches.compiler.grouping import Grouping, Keys, groupings
from lrm.batches.compiler.inputs import DerivedAnswer, Inputs, Part, QuantileAnswer
from lrm.batches.compiler.places import SEVERAL_SETS
from lrm.batches.compiler.predicates import Context, Scope
from lrm.batches.compiler.present import GroupBlock, group_blocks
from lrm.batches.compiler.refusals import AGGREGATES, in_statement, only, refuse
from lrm.batches.compiler.statements import Statement, statements
from lrm.batches.compiler.summands import Summand, Weighed, Weights, filtered
from lrm.batches.compiler.table_columns import TableColumns
from lrm.batches.compiler.windows import KeyGroup
from lrm.batches.remarks import remarks_before
from lrm.batches.terms import FlatRows, Names, Terms
from lrm.domain.lookups import label_text
from lrm.errors import SqlError, SqlWarning, WorkloadError
from lrm.workload import Statement as Table
from lrm.workload.statements import distinct_names, title_of

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.maps.products.combine import Product
    from lrm.workload import Derived, Workload
    from lrm.workload.display import Display

__all__ = ["compile_batch", "compile_condition"]

MOST_RUNNING = 1 << 23
"""Weights of running totals over a single attribute that are written out, row by row."""

MOST_GROUPS = 1000
"""Groups that expressions of one statement may have."""

Answers = dict[str, exp.Expr]
"""The aggregates of one statement by their names."""

Fixed = tuple[tuple[str, str], ...]
"""Names and labels of columns that have one value in a group."""

AnyAnswer = Answer | DerivedAnswer | QuantileAnswer
"""An answer of a statement: linear, or computed from linear ones."""

Made = tuple[list[AnyAnswer], "Display | None", "Table"]
"""The answers of one SELECT, how they are displayed, and the table that they form."""


def compile_batch(text: str, domain: Domain) -> Workload:
    """Compile a batch of SELECT statements; see `lrm.sql`."""
    every = list(_compiled(text, domain))
    single = len(domain.attributes) == 1 and not any(_is_long(one) for one, _, _ in every)
    rows = FlatRows(domain) if single else Terms(domain)
    inputs = Inputs(rows)
    waiting: list[DerivedAnswer | QuantileAnswer] = []
    displays: list[Display] = []
    tables: list[Table] = []
    for answers, display, table in every:
        displays += [display] if display is not None else []
        before = rows.count, len(waiting)
        for answer in answers:
            if not isinstance(answer, Answer):
                waiting.append(answer)  # what is asked anyway comes first
                continue
            for axes, own in answer.blocks:
                with in_statement(answer.names.line or 0):
                    inputs.note(Part(axes, answer.products, own))
                    _add(rows, answer, (axes, own))
        placed = replace(
            table,
            rows=(before[0], rows.count),
            derived=(before[1], len(waiting)),
            display=None if display is None else len(displays) - 1,
        )
        # A later part of UNION ALL has no name: it continues the table of the first.
        tables[-1:] = [*tables[-1:], placed] if placed.name else [tables[-1].joined(placed)]
    derived = tuple(_derived(inputs, answer) for answer in waiting)
    statements = tuple(distinct_names(tables))
    return replace(rows.finished(), derived=derived, display=tuple(displays), statements=statements)


def _is_long(answers: list[AnyAnswer]) -> bool:
    """Whether some answers need running totals that are too many to be written out."""
    parts: list[Part] = []
    for answer in answers:
        if isinstance(answer, Answer):
            parts += [Part(axes, answer.products, own) for axes, own in answer.blocks]
        elif isinstance(answer, QuantileAnswer):
            parts.append(answer.part)
        else:
            parts += [part for _, way in answer.ways for part in way]
    return any(own.weights > MOST_RUNNING for part in parts for own in part.rows)


def _derived(inputs: Inputs, answer: DerivedAnswer | QuantileAnswer) -> Derived:
    with in_statement(answer.label.line or 0):
        try:
            return inputs.derived(answer)
        except WorkloadError as error:
            raise SqlError(str(error)) from None


def _add(rows: FlatRows | Terms, answer: Answer, block: GroupBlock) -> None:
    axes, own = block
    try:
        clash = rows.add(answer.names, axes, answer.products, own)
    except WorkloadError as error:
        raise SqlError(str(error)) from None
    if clash is not None:
        raise SqlError(
            f"the name {clash.name!r} is already taken on line {clash.line}; "
            "give each answer its own name with AS"
        )


def compile_condition(text: str, domain: Domain) -> list[Product] | None:
    """The products that a batch of one ungrouped answer adds up; None for any other batch."""
    answers = [answer for answers, *_ in _compiled(text, domain) for answer in answers]
    answer = answers[0]
    if len(answers) != 1 or not isinstance(answer, Answer):
        return None
    return None if answer.blocks != [((), ())] or answer.names.fixed else answer.products


def _compiled(text: str, domain: Domain) -> Iterator[Made]:
    context = Context(domain)
    seen: set[str] = set()
    parts: list[exp.Expr] = []
    every = statements(text, domain)
    shared = _shared_names(every)
    for statement in every:
        seen, parts = (seen, parts) if statement.part > 1 else (set(), [])
        parts.append(statement.select)
        with in_statement(statement.line):
            found, display, table = _compile_statement(statement, context, seen, shared)
            if statement.ending is not None:
                display = union_display(parts, statement.ending)
        remarks = remarks_before(text, statement.start)
        title = remarks.title or title_of(table.answers, [one.name for one in table.columns])
        name = table.answers[0] if statement.part == 1 else ""
        yield (
            found,
            display,
            replace(table, name=name, title=title, expected=remarks.expected),
        )
    for told in context.warnings:
        warnings.warn(told, SqlWarning, stacklevel=4)


def _compile_statement(
    statement: Statement, context: Context, seen: set[str], shared: set[str]
) -> Made:
    select = statement.select
    scope = Scope(context)
    variants = groupings(select, scope)
    columns = _columns(select, scope, variants)
    displayed = wanted(select)
    named = _named_answers(statement, columns, displayed, seen, shared)
    answers = [(name, asked(node, partial(middle, scope=scope))) for name, node in named.items()]
    leaves = [leaf for _, answer in answers for leaf in answer.leaves]
    windows = [leaf.window for leaf in leaves if leaf.window is not None]
    if len(variants) > 1 and windows:
        raise refuse("OVER beside several grouping sets", "write one statement per set", windows[0])
    where = select.args.get("where")
    asked_of_groups = [one for one in (where, select.args.get("qualify")) if one is not None]
    _weigh(leaves, where, scope)
    for one in asked_of_groups:
        scope.truths(one.this)
    for one in variants:
        _groups(_key_values(one.keys, scope), one.keys, scope)
    scope.merge()
    weighed = _weigh(leaves, where, scope)
    conditions = [scope.truths(one.this) for one in asked_of_groups]
    found: list[AnyAnswer] = []
    labels: dict[str, tuple[str, Labels]] = {}
    groups_of = TableColumns(select, scope, columns.renamed)
    for one in variants:
        values = _key_values(one.keys, scope)
        groups = _groups(values, one.keys, scope)
        _check_groups(groups, where, scope)
        blocks = [group_blocks(one.sets, group, conditions, scope) for group in groups]
        labels |= _sorted_labels(one, columns, values, scope)
        compiled = iter(weighed)
        for name, answer in answers:
            own = [next(compiled) for _ in answer.leaves]
            names = Names(name, statement.line, columns.constants, columns.renamed)
            made = Compiled(names, one.sets, answer, own, scope, one.keys, groups)
            for group, own_blocks in zip(groups, blocks, strict=True):
                found += made.answers(group, own_blocks)
        groups_of.add(one, values)
    if not found:
        raise SqlError(
            "the conditions of the statement leave none of its declared groups: it has no rows"
        )
    display = None if displayed is None else _display(displayed, named, columns, labels)
    asked_for = tuple(named)[: len(columns.answers)]
    table = Table("", "", groups_of.ordered(), asked_for, line=statement.line)
    return found, display, table


def _shared_names(every: list[Statement]) -> set[str]:
    """The aliases that several statements use for answers with the same columns of groups.

    Parts of UNION ALL are one statement.
    """
    users: dict[str, dict[frozenset[str] | None, set[int]]] = {}
    for statement in every:
        groups = _group_names(statement.select)
        for item in statement.select.expressions:
            if item.alias and item.find(exp.AggFunc, Apart) is not None:
                first = statement.number - statement.part + 1
                users.setdefault(item.alias, {}).setdefault(groups, set()).add(first)
    return {
        name
        for name, own in users.items()
        if len(set().union(*own.values())) > 1
        and (None in own or any(len(numbers) > 1 for numbers in own.values()))
    }


def _group_names(select: exp.Expr) -> frozenset[str] | None:
    """What the columns of groups are called; None for several grouping sets."""
    group = select.args.get("group")
    nodes = [] if group is None else group.expressions
    if any(type(one) in SEVERAL_SETS for one in nodes):
        return None
    named = {shown(item.this): item.alias for item in select.expressions if item.alias}
    return frozenset(named.get(shown(one), one.name or shown(one)) for one in nodes)


def _named_answers(
    statement: Statement,
    columns: Columns,
    asked: Wanted | None,
    seen: set[str],
    shared: set[str],
) -> Answers:
    """Give every answer a name: its alias, or its place; those only sorted by come last.

    An alias that several statements use is named with its statement: ``q2.n``.
    """
    found: Answers = {}
    several = len(columns.answers) > 1
    for position, (alias, node) in enumerate(columns.answers, start=1):
        name = alias or f"q{statement.number}" + (f".{position}" if several else "")
        if alias in shared:
            name = f"q{statement.number - statement.part + 1}.{alias}"
        if name in seen and not columns.constants:  # in another SELECT of a UNION ALL
            name = f"{name}.{statement.part}"
        if name in found:
            raise SqlError(f"two answers are called {name!r}; give each its own name with AS")
        found[name] = node
    seen.update(found)
    extra = [] if asked is None else asked.aggregates
    texts = {shown(node) for node in found.values()} if extra else set()
    for node in extra:
        if shown(node) not in texts:
            texts.add(shown(node))
            found[f"q{statement.number}.sort{len(texts)}"] = node
    return found


def _display(
    asked: Wanted, answers: Answers, columns: Columns, labels: dict[str, tuple[str, Labels]]
) -> Display:
    names = {shown(node): name for name, node in reversed(answers.items())}
    return asked.display(list(answers)[: len(columns.answers)], names, labels)


Labels = tuple[str, ...]


def _sorted_labels(
    grouping: Grouping, columns: Columns, values: Values | None, scope: Scope
) -> dict[str, tuple[str, Labels]]:
    """The columns of groups by their text: their names, and their labels in ascending order."""
    found: dict[str, tuple[str, Labels]] = {}
    for axis in {axis for axes in grouping.sets for axis in axes}:
        attribute = scope.domain.attributes[axis]
        name = columns.renamed.get(axis, attribute.name)
        found[shown(attribute_column(attribute.name))] = name, ascending(attribute)
    for place, (text, (name, node)) in enumerate(grouping.keys.items()):
        if type(node) is CellLabel:
            attribute = scope.domain.attributes[scope.axis(node.this)]
            found[text] = name, ascending(attribute)
            continue
        different = {row[place] for row in values.distinct} if values is not None else set()
        kept = sorted(value for value in different if value is not None)
        found[text] = name, tuple(map(label_text, kept))
    return found


def _key_values(keys: Keys, scope: Scope) -> Values | None:
    """The values of all expressions that a statement is grouped by, together, as row values."""
    if not keys:
        return None
    nodes = [one for _, one in keys.values()]
    node = exp.Tuple(expressions=[one.copy() for one in (*nodes, nodes[0])])
    said = shown(exp.Tuple(expressions=node.expressions[:-1]))[1:-1]
    found = scope.values(node, said)
    if not found.distinct:
        raise refuse(f"GROUP BY {said}", "it has no one value on any cell", node)
    if len(found.distinct) > MOST_GROUPS:
        raise refuse(f"GROUP BY an expression of {len(found.distinct):,} values", "use fewer")
    return found


def _groups(values: Values | None, keys: Keys, scope: Scope) -> list[KeyGroup]:
    if values is None:
        return [KeyGroup((), (), ())]
    found: list[KeyGroup] = []
    cut = scope.placed(values, values.undecided)
    computed = {name for name, node in keys.values() if type(node) is not CellLabel}
    for code, row in enumerate(values.distinct):
        labels = tuple(
            (name, label_text(value))
            for (name, node), value in zip(keys.values(), row[:-1], strict=True)
            if type(node) is not CellLabel or name not in computed  # UPPER(a) AS a, by a
        )
        inside = scope.placed(values, (values.codes == code).astype(np.float64))
        cells = Weighed(inside.axes, inside.values, cut.values)
        found.append(KeyGroup(labels, row[:-1], [cells]))
    if len({one.labels for one in found}) < len(found):
        raise SqlError(
            "two groups of an expression have the same label; give the column a name of its own"
        )
    return found


def _check_groups(groups: list[KeyGroup], where: exp.Expr | None, scope: Scope) -> None:
    """Refuse cells whose rows are in different groups, even if they add nothing to an answer.

    Otherwise a group of theirs might be missing.
    """
    rows: Weights = (Summand(1.0),)
    if not groups[0].tables:
        return
    if where is not None:
        rows = filtered(rows, scope.truths(where.this))
    (key,) = groups[0].tables
    several = Weighed(key.axes, key.undecided.astype(np.float64), key.undecided)
    for summand in rows:
        undecided = summand.times([several]).undecided()
        if undecided is not None:
            raise scope.explain(undecided)


def _weigh(leaves: list[Leaf], where: exp.Expr | None, scope: Scope) -> list[Weighted]:
    compiled = []
    for leaf in leaves:
        scope.measure = "square" if leaf.square else "value"
        own, error = weights(leaf.node, scope), None
        if sums_bins(leaf.node, scope):
            scope.measure = "binning"
            error = weights(leaf.node, scope)
        compiled.append((own, error))
    if where is None:
        return compiled
    only(where, "this")
    kept = scope.truths(where.this)
    return [
        (own, error)
        if leaf.apart
        else (filtered(own, kept), None if error is None else filtered(error, kept))
        for leaf, (own, error) in zip(leaves, compiled, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Columns:
    """The SELECT list: answers with their aliases, constants, and aliases of attributes."""

    answers: list[tuple[str | None, exp.Expr]]
    constants: Fixed
    renamed: dict[int, str]


def _columns(select: exp.Expr, scope: Scope, variants: list[Grouping]) -> Columns:
    """Split SELECT's list into columns of groups (checked) and answers."""
    grouped = {axis for one in variants for axes in one.sets for axis in axes}
    keys = {text for one in variants for text in one.keys}
    answers: list[tuple[str | None, exp.Expr]] = []
    constants: list[tuple[str, str]] = []
    renamed: dict[int, str] = {}
    for item in select.expressions:
        alias, node = None, item
        if type(item) is exp.Alias:
            alias, node = item.alias, item.this
        if keys and shown(node) in keys:
            continue
        if alias is not None and type(node) is exp.Literal:
            constants.append((alias, str(node.this)))
            continue
        if type(node) is LookedUp:
            raise refuse(f"column {shown(node)!r} outside GROUP BY", "add it to GROUP BY", select)
        if type(node) is not exp.Column:
            answers.append((alias, node))
            continue
        name = scope.domain.names[axis := scope.axis(node)]
        if axis not in grouped:
            raise refuse(f"column {name!r} outside GROUP BY", f"add it: GROUP BY {name}", node)
        if alias is not None and renamed.setdefault(axis, alias) != alias:
            raise refuse(f"column {name!r} under two names", "use one of them", node)
    if not answers:
        raise refuse("a SELECT without an aggregate", AGGREGATES, select)
    return Columns(answers, tuple(constants), renamed)
