"""A batch of SQL → answers, each a sum of products of one weight vector per attribute."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.remarks import remarks_before
from lrm.batches.sql import expr as ir
from lrm.batches.sql.answers import Answer, Compiled, Weighted
from lrm.batches.sql.binned import middle, sums_bins
from lrm.batches.sql.build import build, same_table, unknown_table
from lrm.batches.sql.cells import Cells, Context
from lrm.batches.sql.displays import union_display, wanted
from lrm.batches.sql.expr import Expr, shown
from lrm.batches.sql.formulas import Asked, Leaf, asked
from lrm.batches.sql.groups import (
    Grouping,
    Labels,
    check_groups,
    groupings,
    key_groups,
    key_values,
    own_name,
    sorted_labels,
    table_columns,
)
from lrm.batches.sql.inputs import DerivedAnswer, Inputs, Part, QuantileAnswer
from lrm.batches.sql.plan import UnionAll
from lrm.batches.sql.present import GroupBlock, group_blocks
from lrm.batches.sql.refusals import fail, in_statement, placed, refuse
from lrm.batches.sql.rewrite import Answers, normal
from lrm.batches.sql.source import Chunk, split
from lrm.batches.sql.summands import filtered
from lrm.batches.sql.tables import Truth, all_of
from lrm.batches.sql.weights import weights
from lrm.batches.sql.windows import KeyGroup
from lrm.batches.sql.words import AGGREGATES
from lrm.batches.terms import FlatRows, Names, Terms
from lrm.errors import SqlError, SqlWarning, WorkloadError
from lrm.workload import Column, Grouped, Statement
from lrm.workload.statements import distinct_names, title_of

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.maps.products.combine import Product
    from lrm.workload import Derived, Workload
    from lrm.workload.display import Display

__all__ = ["compile_batch", "compile_condition"]

MOST_RUNNING = 1 << 23
"""Weights of running totals over a single attribute that are written out, row by row."""

AnyAnswer = Answer | DerivedAnswer | QuantileAnswer
"""An answer of a statement: linear, or computed from linear ones."""


@dataclass(frozen=True, eq=False)
class Made:
    """One statement, compiled.

    Parameters
    ----------
    selects
        For each SELECT that UNION ALL joins: its answers, how they are displayed, and the table
        that they form.
    warnings
        What was noticed, with lines.
    table
        The table that it reads.
    """

    selects: list[tuple[list[AnyAnswer], Display | None, Statement]]
    warnings: list[str]
    table: str

    @property
    def answers(self) -> list[AnyAnswer]:
        """The answers of all its SELECTs."""
        return [one for answers, *_ in self.selects for one in answers]


def compile_batch(text: str, domain: Domain) -> Workload:
    """Compile a batch of SELECT statements; see `lrm.sql`."""
    chunks = split(text)
    every = _compiled(chunks, domain)
    single = len(domain.attributes) == 1 and not any(_is_long(made) for _, made in every)
    rows = FlatRows(domain) if single else Terms(domain)
    inputs = Inputs(rows)
    waiting: list[tuple[Chunk, DerivedAnswer | QuantileAnswer]] = []
    displays: list[Display] = []
    tables: list[Statement] = []
    for chunk, made in every:
        for answers, display, table in made.selects:
            displays += [] if display is None else [display]
            before = rows.count, len(waiting)
            for answer in answers:
                if not isinstance(answer, Answer):
                    waiting.append((chunk, answer))  # what is asked anyway comes first
                    continue
                for axes, own in answer.blocks:
                    with in_statement(chunk):
                        inputs.note(Part(axes, answer.products, own))
                        _add(rows, answer, (axes, own))
            here = replace(
                table,
                rows=(before[0], rows.count),
                derived=(before[1], len(waiting)),
                display=None if display is None else len(displays) - 1,
            )
            # A later part of UNION ALL has no name: it continues the table of the first.
            tables[-1:] = [*tables[-1:], here] if here.name else [tables[-1].joined(here)]
    derived = tuple(_derived(inputs, answer, chunk) for chunk, answer in waiting)
    statements = tuple(distinct_names(tables))
    batch = replace(
        rows.finished(), derived=derived, display=tuple(displays), statements=statements
    )
    return _weighed(batch, chunks)


def compile_condition(text: str, domain: Domain) -> list[Product] | None:
    """The products that a batch of one ungrouped answer adds up; None for any other batch."""
    found = [one for _, made in _compiled(split(text), domain) for one in made.answers]
    answer = found[0]
    if len(found) != 1 or not isinstance(answer, Answer):
        return None
    return None if answer.blocks != [((), ())] or answer.names.fixed else answer.products


def _is_long(made: Made) -> bool:
    """Whether some answers need running totals that are too many to be written out."""
    parts: list[Part] = []
    for answer in made.answers:
        if isinstance(answer, Answer):
            parts += [Part(axes, answer.products, own) for axes, own in answer.blocks]
        elif isinstance(answer, QuantileAnswer):
            parts.append(answer.part)
        else:
            parts += [part for _, way in answer.ways for part in way]
    return any(own.weights > MOST_RUNNING for part in parts for own in part.rows)


@dataclass(frozen=True, eq=False)
class _Read:
    """One statement, read and rewritten: its SELECTs in normal form, and the first one's number."""

    chunk: Chunk
    union: UnionAll
    selects: list[Answers]
    table: str
    number: int


def _compiled(chunks: list[Chunk], domain: Domain) -> list[tuple[Chunk, Made]]:
    """Compile the statements of a batch; their errors are raised together."""
    if not chunks:
        sentence = "the batch is empty; write at least one SELECT COUNT(*) FROM …"
        raise SqlError(sentence, code="empty")
    context = Context(domain)
    errors: list[SqlError] = []
    read: list[_Read] = []
    number, table = 1, domain.table
    for chunk in chunks:
        try:
            with in_statement(chunk):
                built = build(chunk, domain)
                if table is not None and not same_table(built.table, table):
                    raise unknown_table(built.table, table, declared=domain.table is not None)
                selects = [normal(plan, domain) for plan in built.plan.parts]
        except SqlError as error:
            errors.append(error)
            number += 1
            continue
        table = table or built.table
        read.append(_Read(chunk, built.plan, selects, built.table, number))
        number += len(selects)
    shared = _shared_names(read)
    made: list[tuple[Chunk, Made]] = []
    for one in read:
        try:
            made.append((one.chunk, _compile_statement(one, context, shared)))
        except SqlError as error:
            errors.append(error)
    if errors:
        raise _together(sorted(errors, key=lambda error: (error.line or 0, error.column or 0)))
    for told in dict.fromkeys(told for _, one in made for told in one.warnings):
        warnings.warn(told, SqlWarning, stacklevel=4)
    return made


def _shared_names(read: list[_Read]) -> set[str]:
    """The aliases that several statements use for answers with the same columns of groups.

    Parts of UNION ALL are one statement.
    """
    users: dict[str, dict[frozenset[str] | None, set[int]]] = {}
    for statement in read:
        for select in statement.selects:
            groups = _group_names(select)
            for item in select.items:
                if item.name and item.expr.has(ir.Aggregate):
                    own = users.setdefault(item.name, {}).setdefault(groups, set())
                    own.add(statement.number)
    return {
        name
        for name, own in users.items()
        if len(set().union(*own.values())) > 1
        and (None in own or any(len(numbers) > 1 for numbers in own.values()))
    }


def _group_names(select: Answers) -> frozenset[str] | None:
    """What the columns of groups are called; None for several grouping sets."""
    if len(select.sets) > 1:
        return None
    named = {item.expr: item.name for item in select.items if item.name}
    return frozenset(named.get(one) or own_name(one) for one in select.sets[0])


def _together(errors: list[SqlError]) -> SqlError:
    """The first of several errors, with the others."""
    first, *others = errors
    if not others:
        return first
    return SqlError(
        first.sentence,
        code=first.code,
        line=first.line,
        column=first.column,
        found=first.found,
        advice=first.advice,
        others=tuple(others),
    )


def _add(rows: FlatRows | Terms, answer: Answer, block: GroupBlock) -> None:
    try:
        clash = rows.add(answer.names, block[0], answer.products, block[1])
    except WorkloadError as error:
        raise SqlError(str(error), code="size") from None
    if clash is not None:
        sentence = (
            f"the name {clash.name!r} is already taken on line {clash.line}; "
            "give each answer its own name with AS"
        )
        raise SqlError(sentence, code="name")


def _derived(inputs: Inputs, answer: DerivedAnswer | QuantileAnswer, chunk: Chunk) -> Derived:
    with in_statement(chunk):
        try:
            return inputs.derived(answer)
        except WorkloadError as error:
            raise SqlError(str(error), code="size") from None


def _weighed(batch: Workload, chunks: list[Chunk]) -> Workload:
    """Give each answer the importance of its statement."""
    from lrm.workload.products import MOST_IMPORTANCES  # noqa: PLC0415 - only where it is needed

    values = [chunk.importance for chunk in chunks]
    if all(value == 1 for value in values):
        return batch
    if batch.shape[0] > MOST_IMPORTANCES:
        raise WorkloadError(
            f"at most {MOST_IMPORTANCES:,} queries may have an importance, "
            f"but the batch has {batch.shape[0]:,}"
        )
    for one, other in pairwise(chunks):
        if one.line == other.line and one.importance != other.importance:
            raise SqlError(
                "two statements share this line, and the comment before it says "
                "the importance of one; begin each statement on a line of its own",
                code="importance",
                line=one.line,
            )
    lines = np.array([chunk.line for chunk in chunks])

    def importance(line: int | None) -> float:
        return values[max(0, int(np.searchsorted(lines, line or 0, "right")) - 1)]

    parts = []
    for part in batch.labels.parts:
        hidden = isinstance(part, Grouped) and part.hidden  # as important as what needs it
        value = 0.0 if hidden else importance(getattr(part, "line", 0))
        parts.append(np.full(len(part), value))
    found = np.concatenate(parts)
    for answer in batch.derived:  # a derived answer is as good as its inputs
        for rows in answer.input_rows():
            found[rows] = np.maximum(found[rows], importance(answer.label.line))
    found[found == 0.0] = 1.0  # sums of NULL beside running totals: nobody needs them
    return replace(batch, importance=found)


def _compile_statement(statement: _Read, context: Context, shared: set[str]) -> Made:
    chunk, union = statement.chunk, statement.union
    with in_statement(chunk):
        seen: set[str] = set()
        selects: list[tuple[list[AnyAnswer], Display | None, Statement]] = []
        told: list[str] = []
        remarks = remarks_before(chunk.whole, chunk.start)
        for number, answers in enumerate(statement.selects):
            at = union.places[number] or chunk.start
            line = chunk.line + chunk.whole.count("\n", chunk.start, at)
            select = _Select(answers, Cells(context), statement.number, number, line)
            found = select.answers(seen, shared)
            display = select.display()
            if union.ends and number + 1 == len(union.parts):
                display = union_display(statement.selects, union)
            table = select.table()
            title = remarks.title or title_of(table.answers, [one.name for one in table.columns])
            name = "" if number else table.answers[0]
            table = replace(table, name=name, title=title, expected=remarks.expected)
            selects.append((found, display, table))
            for sentence, node in select.cells.warnings.items():
                told.append(str(placed(fail("constant", sentence, node), chunk)))
    return Made(selects, told, statement.table)


class _Select:
    """One SELECT: its columns, and the answers that it compiles to."""

    def __init__(
        self, answers: Answers, cells: Cells, statement: int, part: int, line: int
    ) -> None:
        self.normal, self.cells, self.line = answers, cells, line
        self.statement, self.part = statement, part
        self.variants = groupings(answers)
        self.constants: list[tuple[str, str]] = []
        self.renamed: dict[int, str] = {}
        self.columns: list[tuple[str | None, Expr]] = []
        self._read_columns()
        self.wanted = wanted(answers)
        self.named: dict[str, Expr] = {}
        self.labels: dict[Expr, tuple[str, Labels]] = {}
        self.groups: dict[Expr, tuple[str, Column]] = {}

    def _read_columns(self) -> None:
        """Split SELECT's list into columns of groups (checked) and answers."""
        grouped = {axis for one in self.variants for axes in one.sets for axis in axes}
        keys = {key for one in self.variants for key in one.keys}
        for item in self.normal.items:
            node = item.expr
            if node in keys:
                continue
            if item.alias is not None and isinstance(node, ir.Text | ir.Number):
                text = node.value if isinstance(node, ir.Text) else node.text
                self.constants.append((item.alias, text))
                continue
            if isinstance(node, ir.Attribute) and node.axis in grouped:
                if item.alias is not None:
                    self.renamed[node.axis] = item.alias
                elif item.name != node.name:
                    self.renamed.setdefault(node.axis, item.name)
                continue
            if isinstance(node, ir.Attribute | ir.LookedUp):
                sentence = f"column {shown(node)!r} must appear in GROUP BY or inside an aggregate"
                raise fail("group-by", sentence, node)
            self.columns.append((item.name or None, node))
        if not self.columns:
            first = self.normal.items[0].expr if self.normal.items else None
            raise refuse("no-answer", "a SELECT without an aggregate", AGGREGATES, first)

    def answers(self, seen: set[str], shared: set[str]) -> list[AnyAnswer]:
        """Compile the answers."""
        cells = self.cells
        self._name_answers(seen, shared)
        split_up = [
            (name, asked(node, partial(middle, cells=cells))) for name, node in self.named.items()
        ]
        leaves = [leaf for _, answer in split_up for leaf in answer.leaves]
        windows = [leaf.window for leaf in leaves if leaf.window is not None]
        if len(self.normal.sets) > 1 and windows:
            advice = "write one statement per set"
            raise refuse("window", "OVER beside several grouping sets", advice, windows[0])
        self._weigh(leaves)
        for part_later in self.normal.later:
            cells.truths(part_later)
        for one in self.variants:
            key_groups(key_values(one.keys, cells), one.keys, cells)
        cells.merge()
        weighed, where = self._weigh(leaves)
        conditions = [] if where is None else [where]
        conditions += [cells.truths(one) for one in self.normal.later]
        found: list[AnyAnswer] = []
        for one in self.variants:
            values = key_values(one.keys, cells)
            groups = key_groups(values, one.keys, cells)
            check_groups(groups, where, cells)
            self.labels |= sorted_labels(one, self.renamed, values, cells)
            self.groups |= table_columns(one, self.renamed, values, cells)
            blocks = [group_blocks(one.sets, group, conditions, cells) for group in groups]
            found += self._of_groups(one, list(zip(groups, blocks, strict=True)), split_up, weighed)
        if not found:
            sentence = (
                "the conditions of the statement leave none of its declared groups: it has no rows"
            )
            raise SqlError(sentence, code="no-answer")
        return found

    def _of_groups(
        self,
        one: Grouping,
        groups: list[tuple[KeyGroup, list[GroupBlock]]],
        split_up: list[tuple[str, Asked]],
        weighed: list[Weighted],
    ) -> list[AnyAnswer]:
        compiled = iter(weighed)
        every = [group for group, _ in groups]
        found: list[AnyAnswer] = []
        for name, answer in split_up:
            own = [next(compiled) for _ in answer.leaves]
            names = Names(name, self.line, tuple(self.constants), self.renamed)
            made = Compiled(names, one.sets, answer, own, self.cells, one.keys, every)
            for group, blocks in groups:
                found += made.answers(group, blocks)
        return found

    def _name_answers(self, seen: set[str], shared: set[str]) -> None:
        """Give every answer a name: its alias, or its place; those only sorted by come last.

        An alias that several statements use is named with its statement: ``q2.n``.
        """
        several = len(self.columns) > 1
        query = f"q{self.statement + self.part}"
        for position, (alias, node) in enumerate(self.columns, start=1):
            name = alias or query + (f".{position}" if several else "")
            if alias in shared:
                name = f"q{self.statement}.{alias}"
            if name in seen and not self.constants:  # in another SELECT of a UNION ALL
                name = f"{name}.{self.part + 1}"
            if name in self.named:
                sentence = f"two answers are called {name!r}; give each its own name with AS"
                raise fail("name", sentence, node)
            self.named[name] = node
        seen.update(self.named)
        for node in [] if self.wanted is None else self.wanted.aggregates:
            if node not in self.named.values():
                self.named[f"{query}.sort{len(set(self.named.values())) + 1}"] = node

    def display(self) -> Display | None:
        """How the answers are displayed."""
        if self.wanted is None:
            return None
        names = {node: name for name, node in reversed(self.named.items())}
        return self.wanted.display(list(self.named)[: len(self.columns)], names, self.labels)

    def table(self) -> Statement:
        """The table that the answers form: its columns of groups in the order of SELECT."""
        found = dict(self.groups.values())
        order: dict[str, None] = {}
        for item in self.normal.items:
            if item.expr in self.groups:
                order.setdefault(self.groups[item.expr][0])
            elif item.alias is not None and isinstance(item.expr, ir.Text | ir.Number):
                text = dict(self.constants)[item.alias]
                found.setdefault(item.alias, Column(item.alias, labels=(text,)))
                order.setdefault(item.alias)
        order |= dict.fromkeys(found)
        columns = tuple(found[name] for name in order)
        answers = tuple(self.named)[: len(self.columns)]
        return Statement("", "", columns, answers, line=self.line)

    def _weigh(self, leaves: list[Leaf]) -> tuple[list[Weighted], Truth | None]:
        cells = self.cells
        parts = [cells.truths(one) for one in self.normal.where]
        kept = all_of(parts) if parts else None
        compiled: list[Weighted] = []
        for leaf in leaves:
            own = weights(leaf.node, cells, "square" if leaf.square else "value")
            error = weights(leaf.node, cells, "binning") if sums_bins(leaf.node, cells) else None
            if kept is not None and not leaf.apart:
                own = filtered(own, kept)
                error = None if error is None else filtered(error, kept)
            compiled.append((own, error))
        return compiled, kept
