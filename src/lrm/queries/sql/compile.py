"""A batch of SQL → a workload, statement by statement.

What was compiled is remembered: a person changes one statement at a time, on a page or in a
notebook, and what holds between statements (the names that they share) is checked each time.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.errors import SqlError, SqlWarning, WorkloadError
from lrm.queries.remarks import Remarks, remarks_before, tolerance
from lrm.queries.sql import expr as ir
from lrm.queries.sql.answers import Answer
from lrm.queries.sql.build import Built, build, other_readings, same_table, unknown_table
from lrm.queries.sql.cells import Cells, Context
from lrm.queries.sql.displays import union_display
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.formulas import is_linear
from lrm.queries.sql.groups import own_name
from lrm.queries.sql.inputs import DerivedAnswer, Inputs, QuantileAnswer
from lrm.queries.sql.plan import Answers, UnionAll
from lrm.queries.sql.readings import changed
from lrm.queries.sql.refusals import fail, in_statement, placed, taken_name
from lrm.queries.sql.render import shown
from lrm.queries.sql.rewrite import normal
from lrm.queries.sql.select import AnyAnswer, Select
from lrm.queries.sql.source import DUCKDB, Chunk, split
from lrm.queries.terms import FlatRows, Terms
from lrm.queries.workload import LabelBlock, Labels, Statement, Workload
from lrm.queries.workload.products import check_importances
from lrm.queries.workload.statements import distinct_names, title_of

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.queries.maps.products.combine import Product
    from lrm.queries.workload.display import Display

MOST_RUNNING = 1 << 23
"""Weights of running totals over a single attribute that are written out, row by row."""

REMEMBERED = 4000
"""Statements that are remembered."""

MOST_VALUES = 20_000
"""Comparisons and expressions whose values are remembered."""


@dataclass(frozen=True, eq=False)
class MadeSelect:
    """One SELECT, compiled: its answers, their display, and the table they form.

    ``used`` are the attributes that it uses: rows that one of them drops are in none of its
    answers, and rows that another attribute drops are.
    """

    answers: list[AnyAnswer]
    display: Display | None
    table: Statement
    used: frozenset[int]

    def moved(self, lines: int) -> MadeSelect:
        """The same SELECT some lines further down."""
        answers = [answer.moved(lines) for answer in self.answers]
        table = replace(self.table, line=(self.table.line or 0) + lines)
        return replace(self, answers=answers, table=table)


@dataclass(frozen=True, eq=False)
class Made:
    """One statement, compiled; ``warnings`` are what was noticed, with lines."""

    selects: list[MadeSelect]
    warnings: list[SqlError]

    @property
    def answers(self) -> list[AnyAnswer]:
        """The answers of all its SELECTs."""
        return [answer for select in self.selects for answer in select.answers]

    def labels(self, domain: Domain) -> list[LabelBlock]:
        """What its answers are called in their groups: linear ones first."""
        order = sorted(self.answers, key=lambda answer: not isinstance(answer, Answer))
        return [label for answer in order for label in answer.labels(domain)]

    def moved(self, lines: int) -> Made:
        """The same statement some lines further down."""
        selects = [select.moved(lines) for select in self.selects]
        return Made(selects, [_moved_error(error, lines) for error in self.warnings])


def _moved_error(error: SqlError, lines: int) -> SqlError:
    return error if error.line is None else error.replaced(line=error.line + lines)


@dataclass(frozen=True, eq=False)
class _Read:
    """One statement, read and rewritten: its SELECTs in normal form."""

    chunk: Chunk
    union: UnionAll
    selects: list[Answers]
    table: str
    # What other dialects mean by it, where none is declared: their names, and their readings.
    others: tuple[tuple[list[str], _Read], ...] = ()


class Memory:
    """Statements of one domain that were compiled before, and the values of their expressions."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._context: Context | None = None
        self._known: OrderedDict[Any, Any] = OrderedDict()

    @property
    def context(self) -> Context:
        """What the statements over the domain share."""
        assert self._context is not None  # noqa: S101 - it begins with a domain
        return self._context

    def begin(self, domain: Domain) -> None:
        """Take a domain; another one than before means to forget everything."""
        known = self._context
        if known is not None and known.domain != domain:
            self._known.clear()
            known = None
        if known is None or len(known.comparisons) + len(known.expressions) > MOST_VALUES:
            self._context = Context(domain)

    def find(self, key: Any, line: int) -> Any:
        """What is remembered, or None; lines are those of a statement that begins at ``line``."""
        if key not in self._known:
            return None
        self._known.move_to_end(key)
        first, value = self._known[key]
        if first == line or isinstance(value, _Read):
            return value
        if isinstance(value, SqlError):
            return _moved_error(value, line - first)
        return value.moved(line - first)

    def keep(self, key: Any, line: int, value: _Read | Made | SqlError) -> None:
        """Remember something, in place of what was not asked for longest."""
        self._known[key] = line, value
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one statement: it is made, or has an error, or is left for the next time."""

    chunk: Chunk
    made: Made | None = None
    error: SqlError | None = None


_MEMORY = Memory()


def compile_batch(text: str, domain: Domain) -> Workload:
    """Compile a batch of SELECT statements; see `lrm.sql`."""
    domain = domain.declared
    every = _all_made(text, domain)
    return _weighed(_batch(every, domain), [chunk for chunk, _ in every])


def _batch(every: list[tuple[Chunk, Made]], domain: Domain) -> Workload:
    """The answers of compiled statements as one batch, all of the same importance."""
    single = len(domain.attributes) == 1 and not any(_is_long(made) for _, made in every)
    rows = FlatRows(domain) if single else Terms(domain)
    inputs = Inputs(rows)
    waiting: list[tuple[Chunk, DerivedAnswer | QuantileAnswer, frozenset[int]]] = []
    displays: list[Display] = []
    tables: list[Statement] = []
    for chunk, made in every:
        for select in made.selects:
            displays += [] if select.display is None else [select.display]
            before = rows.count, len(waiting)
            for answer in select.answers:
                if not isinstance(answer, Answer):
                    waiting.append((chunk, answer, select.used))  # what is asked anyway comes first
                    continue
                for part in answer.parts:
                    with in_statement(chunk):
                        inputs.note(part, select.used)
                        clash = rows.add(
                            answer.names, part.axes, part.products, part.rows, used=select.used
                        )
                        if clash is not None:
                            raise taken_name(clash)
            here = replace(
                select.table,
                rows=(before[0], rows.count),
                derived=(before[1], len(waiting)),
                display=None if select.display is None else len(displays) - 1,
            )
            # A later part of UNION ALL has no name: it continues the table of the first.
            tables[-1:] = [*tables[-1:], here] if here.name else [tables[-1].joined(here)]
    derived = []
    for chunk, answer, used in waiting:
        with in_statement(chunk):
            derived.append(inputs.derived(answer, used))
    statements = tuple(distinct_names(tables))
    return replace(
        rows.finished(), derived=tuple(derived), display=tuple(displays), statements=statements
    )


def compile_condition(text: str, domain: Domain) -> tuple[list[Product], frozenset[int]] | None:
    """The products that a batch of one ungrouped answer adds up, and the attributes that it uses.

    None for any other batch.
    """
    selects = [select for _, made in _all_made(text, domain) for select in made.selects]
    answers = [answer for select in selects for answer in select.answers]
    answer = answers[0]
    if len(answers) != 1 or not isinstance(answer, Answer):
        return None
    if answer.blocks != [((), ())] or answer.names.fixed:
        return None
    return answer.products, selects[0].used


def _all_made(text: str, domain: Domain) -> list[tuple[Chunk, Made]]:
    """Compile the statements of a batch; their errors are raised together."""
    chunks = split(text)
    if not chunks:
        sentence = "the batch is empty; write at least one SELECT COUNT(*) FROM …"
        raise SqlError(sentence, code="empty")
    every = outcomes(chunks, domain, _MEMORY)
    errors = [outcome.error for outcome in every if outcome.error is not None]
    if errors:
        first, *other_errors = errors
        raise first.beside(other_errors)
    made = [(outcome.chunk, outcome.made) for outcome in every if outcome.made is not None]
    for warning_text in dict.fromkeys(
        str(warning_text) for _, outcome in made for warning_text in outcome.warnings
    ):
        warnings.warn(warning_text, SqlWarning, stacklevel=4)
    return made


def outcomes(
    chunks: Sequence[Chunk], domain: Domain, memory: Memory, seconds: float = math.inf
) -> list[Outcome]:
    """Compile the statements of a batch that are not remembered, as far as time allows.

    After ``seconds`` of processor time, statements are left for the next time.
    """
    end = time.thread_time() + seconds
    with memory.lock:
        memory.begin(domain)
        numbers: list[int] = []
        read: list[_Read | SqlError | None] = []
        number, table = 1, domain.table
        for chunk in chunks:
            numbers.append(number)
            statement = _read(chunk, memory, end)
            if isinstance(statement, _Read):
                if table is not None and not same_table(statement.table, table):
                    error = unknown_table(statement.table, table, declared=domain.table is not None)
                    statement = placed(error, chunk)
                else:
                    table = table or statement.table
                    number += len(statement.selects)
            number += 0 if isinstance(statement, _Read) else 1
            read.append(statement)
        shared = _shared_names(read, numbers)
        outcome_list = []
        for chunk, statement, first in zip(chunks, read, numbers, strict=True):
            if not isinstance(statement, _Read):
                outcome_list.append(Outcome(chunk, error=statement))
            elif time.thread_time() > end:
                outcome_list.append(Outcome(chunk))
            else:
                outcome_list.append(_made(chunk, statement, first, shared, memory))
        return outcome_list


def _read(chunk: Chunk, memory: Memory, end: float) -> _Read | SqlError | None:
    key = ("read", chunk.dialect, chunk.text)
    known: _Read | SqlError | None = memory.find(key, chunk.line)
    if known is not None or time.thread_time() > end:
        return known
    try:
        with in_statement(chunk):
            built = build(chunk, memory.context.domain)
            selects = [normal(plan, memory.context.domain) for plan in built.plan.parts]
        read = _Read(built.chunk.alone(), built.plan, selects, built.table)
        known = replace(read, others=tuple(_others(built, read, memory.context.domain)))
    except SqlError as error:
        known = error
    memory.keep(key, chunk.line, known)
    return known


def _others(built: Built, read: _Read, domain: Domain) -> Iterator[tuple[list[str], _Read]]:
    """The statement as other dialects read it, where they can mean something else."""
    for plan, dialects in other_readings(built, domain):
        with suppress(SqlError):
            selects = [normal(part, domain) for part in plan.parts]
            yield dialects, replace(read, union=plan, selects=selects)


def _made(chunk: Chunk, read: _Read, number: int, shared: set[str], memory: Memory) -> Outcome:
    """Compile one statement, unless it is remembered."""
    remarks = remarks_before(chunk.whole, chunk.start)
    names = {item.name for select in read.selects for item in select.items}
    key = ("made", chunk.dialect, chunk.text, remarks, frozenset(names & shared))
    places = (None, number)  # what has no name by its number is the same wherever it stands
    known = [memory.find((*key, place), chunk.line) for place in places]
    made: Made | SqlError | None = known[0] or known[1]
    if made is None:
        place: int | None = number
        try:
            made = _compile_statement(read, number, remarks, shared, memory)
            differing_dialects: list[str] = []
            doubtful: list[Expr] = []
            for dialects, other in read.others:
                with suppress(SqlError):
                    other_made = _compile_statement(other, number, remarks, shared, memory)
                    if not _same_answers(made, other_made, read.chunk, memory.context.domain):
                        differing_dialects += dialects
                        doubtful += changed(read.union, other.union)
            if differing_dialects:
                made.warnings.append(_doubt(read, doubtful[0], sorted(differing_dialects)))
            names_used = [answer.query for answer in made.answers]
            names_used += [name for name, _ in remarks.within if name]
            if not any(name[0] == "q" for name in names_used):
                place = None
        except SqlError as error:
            made = error
        memory.keep((*key, place), read.chunk.line, made)
        made = memory.find((*key, place), chunk.line)
    return Outcome(chunk, error=made) if isinstance(made, SqlError) else Outcome(chunk, made)


def _doubt(read: _Read, node: Expr, dialects: list[str]) -> SqlError:
    """The warning that dialects read an operator of a statement differently."""
    sentence = (
        f"{shown(node)} is read as DuckDB does, and {', '.join(dialects)} would give other "
        f"answers; declare the dialect before the first statement, -- dialect: {dialects[0]}, "
        f"or -- dialect: {DUCKDB} if this is meant"
    )
    return placed(fail("dialect", sentence, node), read.chunk)


def _same_answers(made: Made, other: Made, chunk: Chunk, domain: Domain) -> bool:
    """Whether two readings have the same answers; ``2.0`` and ``2`` are the same group."""
    batches = [_batch([(chunk, reading)], domain) for reading in (made, other)]
    digests = {
        replace(batch, labels=Labels(map(_plain_block, batch.labels.blocks))).digest
        for batch in batches
    }
    return len(digests) == 1


def _plain_block(block: LabelBlock) -> LabelBlock:
    """A block whose labels that are whole numbers have no fraction."""
    axes = tuple(
        (name, tuple(label.removesuffix(".0") for label in vocabulary))
        for name, vocabulary in block.axes
    )
    return replace(block, axes=axes)


def _compile_statement(
    read: _Read, first: int, remarks: Remarks, shared: set[str], memory: Memory
) -> Made:
    chunk, union = read.chunk, read.union
    with in_statement(chunk):
        seen: set[str] = set()
        selects: list[MadeSelect] = []
        notices: list[SqlError] = []
        compiled: list[Select] = []
        for number, answers in enumerate(read.selects):
            at = union.places[number] or chunk.start
            line = chunk.line + chunk.text.count("\n", 0, at - chunk.start)
            select = Select(answers, Cells(memory.context), first, number, line)
            select_answers = select.answers(seen, shared)
            display = select.display
            table = select.table()
            title = remarks.title or title_of(
                table.answers, [column.name for column in table.columns]
            )
            name = "" if number else table.answers[0]
            table = replace(table, name=name, title=title, expected=remarks.expected)
            compiled.append(select)
            if union.ends and number + 1 == len(union.parts):
                columns = [
                    {column.name: labels for column, labels in one.groups.values()}
                    for one in compiled
                ]
                display = union_display(read.selects, union, columns)
            selects.append(MadeSelect(select_answers, display, table, answers.axes))
            for sentence, node in select.cells.warnings.items():
                notices.append(placed(fail("constant", sentence, node), chunk))
        notices += [placed(fail("within", doubt), chunk) for doubt in remarks.doubts]
        selects = [
            replace(select, table=replace(select.table, within=within))
            for select, within in zip(selects, _within(remarks, compiled), strict=True)
        ]
    return Made(selects, notices)


def _within(remarks: Remarks, selects: Sequence[Select]) -> list[tuple[tuple[str, float], ...]]:
    """The tolerances of each SELECT, by the names that its answers have in the batch.

    A comment may name an answer by its alias, by its name in the batch, and as in ``q2.n``.
    """
    names = [select.names_by_alias for select in selects]
    spellings = {
        spelling: alias
        for select, by_alias in zip(selects, names, strict=True)
        for alias, name in by_alias.items()
        for spelling in (name, f"q{select.statement}.{alias}")
    }
    spellings |= {alias: alias for by_alias in names for alias in by_alias}
    spellings[""] = ""
    texts: dict[str, str] = {}
    for spelling, text in remarks.within:
        if spelling not in spellings:
            sentence = f"no answer of this statement is called {spelling!r}, as its tolerance says"
            raise SqlError(sentence, code="within")
        alias = spellings[spelling]
        if alias in texts:
            which = f"the answer {alias!r}" if alias else "the answers"
            sentence = f"two tolerances are stated for {which} of this statement; keep one"
            raise SqlError(sentence, code="within")
        texts[alias] = text
    # Of a rate, the expected size is that of what it divides by.
    rates = {
        alias if alias in texts else ""
        for select, by_alias in zip(selects, names, strict=True)
        for alias, name in by_alias.items()
        if _divides(select.named[name])
    }
    try:
        limits = {
            alias: tolerance(text, None if alias in rates else remarks.expected)
            for alias, text in texts.items()
        }
    except WorkloadError as error:
        raise SqlError(str(error), code="within") from None
    return [
        tuple(
            (by_alias.get(alias, ""), limit)
            for alias, limit in limits.items()
            if not alias or alias in by_alias
        )
        for by_alias in names
    ]


def _divides(expr: Expr) -> bool:
    """Whether an answer is neither a sum nor a quantile."""
    return not (is_linear(expr) or (isinstance(expr, ir.Aggregate) and expr.level is not None))


def _shared_names(read: Sequence[_Read | SqlError | None], numbers: Sequence[int]) -> set[str]:
    """The aliases that several statements use for answers with the same columns of groups.

    Parts of UNION ALL are one statement.
    """
    users: dict[str, dict[frozenset[str] | None, set[int]]] = {}
    for statement, number in zip(read, numbers, strict=True):
        for select in statement.selects if isinstance(statement, _Read) else ():
            groups = _group_names(select)
            for item in select.items:
                if item.name and item.expr.has(ir.Aggregate):
                    users.setdefault(item.name, {}).setdefault(groups, set()).add(number)
    return {
        name
        for name, group_users in users.items()
        if len(set().union(*group_users.values())) > 1
        and (None in group_users or any(len(numbers) > 1 for numbers in group_users.values()))
    }


def _group_names(select: Answers) -> frozenset[str] | None:
    """What the columns of groups are called; None for several grouping sets."""
    if len(select.sets) > 1:
        return None
    named = {item.expr: item.name for item in select.items if item.name}
    return frozenset(named.get(group_expr) or own_name(group_expr) for group_expr in select.sets[0])


def _is_long(made: Made) -> bool:
    """Whether some answers need running totals that are too many to be written out."""
    every = (part for answer in made.answers for part in answer.parts)
    return any(rows.weights > MOST_RUNNING for part in every for rows in part.rows)


def _weighed(batch: Workload, chunks: list[Chunk]) -> Workload:
    """Give each answer the importance of its statement."""
    values = [chunk.importance for chunk in chunks]
    if all(value == 1 for value in values):
        return batch
    check_importances(batch.shape[0])
    for previous, other in pairwise(chunks):
        if previous.line == other.line and previous.importance != other.importance:
            raise SqlError(
                "two statements share this line, and the comment before it says "
                "the importance of one; begin each statement on a line of its own",
                code="importance",
                line=previous.line,
            )
    lines = np.array([chunk.line for chunk in chunks])

    def importance(line: int | None) -> float:
        return values[max(0, int(np.searchsorted(lines, line or 0, "right")) - 1)]

    parts = []
    for block in batch.labels.blocks:  # what is hidden is as important as what needs it
        value = 0.0 if block.hidden else importance(block.line)
        parts.append(np.full(len(block), value))
    importances = np.concatenate(parts)
    for answer in batch.derived:  # a derived answer is as good as its inputs
        for rows in answer.input_rows():
            importances[rows] = np.maximum(importances[rows], importance(answer.label.line))
    importances[importances == 0.0] = 1.0  # sums of NULL beside running totals: nobody needs them
    return replace(batch, importance=importances)
