"""Where the answers of a batch stand, and what finds them by name."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.errors import UnknownName, UsageError, WorkloadError
from lrm.queries.workload.core import Workload
from lrm.queries.workload.label_blocks import LabelBlock
from lrm.queries.workload.labels import Labels
from lrm.queries.workload.statements import Statement

Codes = NDArray[np.int32]
Positions = NDArray[np.int64]

_LISTED = 5
"""Names of queries that an error lists."""


@dataclass(frozen=True)
class Span:
    """Some consecutive answers of one table: ``first:last`` of the labels of ``block``."""

    block: LabelBlock
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    def places(self, axis: int) -> Codes:
        """Which label of an axis each answer has."""
        sizes = [len(labels) for _, labels in self.block.axes]
        return self._digits(math.prod(sizes[axis + 1 :]), sizes[axis])

    def query_places(self) -> Codes:
        """Which of the queries each answer is of."""
        return self._digits(self.block.each, len(self.block.queries))

    def _digits(self, faster: int, size: int) -> Codes:
        return (np.arange(self.first, self.last) // faster % size).astype(np.int32)


def spans_of(labels: Labels, ranges: Iterable[tuple[int, int]]) -> Iterator[list[Span]]:
    """Yield the labels of each of some ranges, which are ascending and disjoint.

    The tables are gone through once, however many ranges there are.
    """
    tables = labels.tables()
    table: LabelBlock | None = None
    begin = end = 0
    for start, stop in ranges:
        spans = []
        place = start
        while place < stop:
            while end <= place:
                table = next(tables)
                begin, end = end, end + len(table)
            assert table is not None  # noqa: S101 - the loop above has set it
            last = min(stop, end)
            spans.append(Span(table, place - begin, last - begin))
            place = last
        yield spans


def find_answers(batch: Workload, name: str) -> tuple[Labels, list[tuple[int, int]]]:
    """The labels of an answer or of a statement's answers, and the ranges of their positions.

    ``q2.n`` is the answer n of the second statement. Raises an error that lists such names where
    several statements have an answer of this name.
    """
    shown = batch.shown
    if not isinstance(name, str):
        raise UnknownName(f"an answer is named by a text, not {name!r}")
    if name in shown.query_names():
        _check_one(batch, name)
        return shown.of_query(name)
    statement, answer = _qualified(batch, name)
    if statement is None and any(table.name == name for table in batch.tables):
        return statement_labels(batch, find_statement(batch, name))
    if statement is None:
        return find_query(shown, name)
    labels, ranges = statement_labels(batch, statement)
    answer_labels, inner = labels.of_query(answer)
    starts = np.cumsum([0, *(stop - start for start, stop in ranges)]).tolist()
    positions = []
    for start, stop in inner:
        place = int(np.searchsorted(starts, start, side="right")) - 1
        positions.append(
            (start + ranges[place][0] - starts[place], stop + ranges[place][0] - starts[place])
        )
    return answer_labels, positions


def _users(batch: Workload, name: str) -> list[int]:
    """The numbers of the statements that have an answer of this name, counted from 1."""
    return [number for number, table in enumerate(batch.tables, 1) if name in table.answers]


def _check_one(batch: Workload, name: str) -> None:
    users = _users(batch, name)
    if len(users) > 1:
        listed = listed_names([f"q{number}.{name}" for number in users])
        raise WorkloadError(f"several statements have an answer {name!r}; write one of {listed}")


def _qualified(batch: Workload, name: str) -> tuple[Statement | None, str]:
    """The statement and the answer of ``q2.n``; no statement where it is not such a name."""
    parts = re.fullmatch(r"q([1-9][0-9]{0,8})\.(.+)", name, re.DOTALL)
    if parts is not None and int(parts[1]) in _users(batch, parts[2]):
        return batch.tables[int(parts[1]) - 1], parts[2]
    return None, name


def find_statement(batch: Workload, name: str | int | Statement | None) -> Statement:
    """The statement that is called so, or has such an answer or title.

    A number is that of a statement, counted from 1; ``q2.n`` is the second, which has an answer n.
    Without a name it is the only one.
    """
    tables = batch.tables
    if isinstance(name, Statement):
        return name
    if name is None:
        if len(tables) != 1:
            listed = listed_names([table.name for table in tables])
            raise UsageError(f"the batch has {len(tables)} statements; name one of {listed}")
        return tables[0]
    name = str(name)
    _check_one(batch, name)
    for table in tables:
        if table.name == name:
            return table
    statement, _ = _qualified(batch, name)
    users = _users(batch, name)
    if statement is not None or users:
        return statement or tables[users[0] - 1]
    if name.isascii() and name.isdigit() and 0 < int(name) <= len(tables):
        return tables[int(name) - 1]
    titled = [table for table in tables if _folded(table.title) == _folded(name)]
    if len(titled) == 1:
        return titled[0]
    raise UnknownName(
        f"no statement is called {name!r}; {_near(name, [table.name for table in tables])}"
    )


def _folded(title: str) -> str:
    """A title as one may type it: ``by_age`` is ``By age``."""
    return " ".join(re.findall(r"\w+", title.casefold().replace("_", " ")))


def count_ranges(batch: Workload) -> list[tuple[int, int]]:
    """The answers that are counts, as ranges of linear queries; all queries of a matrix."""
    return [
        rows for table in batch.tables for _, rows, counts in linear_answers(batch, table) if counts
    ]


def linear_answers(
    batch: Workload, statement: Statement
) -> Iterator[tuple[str, tuple[int, int], bool]]:
    """The linear queries that are answers of a statement, by the name of their query.

    With each range of them comes whether they are counts; a matrix has queries of any kind.
    """
    start = statement.rows[0]
    for span in linear_spans(batch, *statement.rows):
        rows = start, start + len(span)
        start = rows[1]
        if not span.block.hidden:
            yield span.block.query, rows, not statement.answers or batch.is_count(rows[0])


def linear_spans(batch: Workload, start: int, stop: int) -> list[Span]:
    """The labels of the linear queries ``start:stop``."""
    return next(spans_of(batch.labels, [(start, stop)])) if start < stop else []


def statement_labels(batch: Workload, statement: Statement) -> tuple[Labels, list[tuple[int, int]]]:
    """The labels of a statement's answers, and the ranges of their positions among those shown."""
    ranges = shown_ranges(batch, statement)
    spans = [span for part in spans_of(batch.shown, ranges) for span in part]
    return Labels(span.block for span in spans), ranges


def shown_ranges(batch: Workload, statement: Statement) -> list[tuple[int, int]]:
    """The positions of a statement's answers among those shown: linear ones, then derived ones."""
    start, stop = (shown_place(batch, row) for row in statement.rows)
    first = derived_place(batch, statement)
    derived_count = sum(piece.label.count for piece in batch.derived[slice(*statement.derived)])
    ranges = ((start, stop), (first, first + derived_count))
    return [piece for piece in ranges if piece[0] < piece[1]]


def shown_place(batch: Workload, row: int) -> int:
    """How many answers are shown before a linear query."""
    return int(_shown_places(batch, np.array([row]))[0])


def _shown_places(batch: Workload, rows: Positions) -> Positions:
    """How many answers are shown before each of some linear queries."""
    shown = np.array([(0, 0), *batch.labels.shown_ranges()], dtype=np.int64)
    before = np.cumsum([0, *(shown[:, 1] - shown[:, 0])])
    part = np.searchsorted(shown[:, 0], rows, side="right") - 1
    places: Positions = before[part] + np.minimum(rows, shown[part, 1]) - shown[part, 0]
    return places


def derived_place(batch: Workload, statement: Statement) -> int:
    """How many answers are shown before the derived ones of a statement."""
    earlier = batch.derived[: statement.derived[0]]
    return shown_place(batch, batch.shape[0]) + sum(answer.label.count for answer in earlier)


@dataclass(frozen=True, eq=False)
class StatementIndex:
    """Which statement each shown answer of a batch is of."""

    names: tuple[str, ...]  # of all statements
    edges: Positions  # positions where the answers of another statement begin, ascending
    owners: Codes  # the statement before the first edge, and from each edge on; −1 for none

    @classmethod
    def of(cls, batch: Workload) -> StatementIndex:
        """Index the statements of a batch; of too many tables, those that are not listed have none.

        >>> import lrm
        >>> index = StatementIndex.of(lrm.Workload([[1, 1], [1, 0]]))
        >>> index.names, index.codes(0, 2).tolist()
        (('q1',), [0, 0])
        """
        tables = batch.tables
        linear = np.array([table.rows for table in tables], dtype=np.int64).reshape(-1, 2)
        derived = np.array([table.derived for table in tables], dtype=np.int64).reshape(-1, 2)
        sizes = [answer.label.count for answer in batch.derived]
        ends = shown_place(batch, batch.shape[0]) + np.cumsum([0, *sizes])
        ranges = np.concatenate([_shown_places(batch, linear), ends[derived]])
        known = ranges[:, 0] < ranges[:, 1]
        owner = np.tile(np.arange(len(tables)), 2)[known]
        edges = ranges[known].T.reshape(-1)
        owners = np.concatenate([owner, np.full(len(owner), -1)])
        order = np.lexsort((owners, edges))  # where one range ends and another begins: that one
        after = np.array([-1, *owners[order]], dtype=np.int32)
        return cls(tuple(table.name for table in tables), edges[order], after)

    def codes(self, start: int, stop: int) -> Codes:
        """The statements of the shown answers ``start:stop``, by their place among `names`."""
        return self.owners[np.searchsorted(self.edges, np.arange(start, stop), side="right")]


def find_query(labels: Labels, query: str) -> tuple[Labels, list[tuple[int, int]]]:
    """The labels of one query's answers and the ranges of their positions."""
    query_labels, ranges = labels.of_query(query)
    if not ranges:
        raise _unknown(query, labels)
    return query_labels, ranges


def _unknown(query: str, labels: Labels) -> WorkloadError:
    names = labels.query_names()
    several = [name for name in names if re.fullmatch(r"q[1-9][0-9]*\.", name.removesuffix(query))]
    if query and len(several) > 1:
        listed = listed_names(several)
        return WorkloadError(f"several statements have an answer {query!r}; write one of {listed}")
    return UnknownName(f"no query is called {query!r}; {_near(query, names)}")


def _near(name: str, names: list[str]) -> str:
    """The names that are near one that does not exist, or the first ones."""
    near = difflib.get_close_matches(name, names, _LISTED)
    if len(near) == 1:
        return f"near it is {listed_names(near)}"
    return f"near it are {listed_names(near)}" if near else f"there are {listed_names(names)}"


def listed_names(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are.

    >>> listed_names(["a", "b"]), listed_names([f"q{i}" for i in range(9)])
    ("'a', 'b'", "'q0', 'q1', 'q2', 'q3', 'q4' and 4 more")
    """
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more
