"""Statements: which answers of a batch form one table, and how the table is labelled.

A statement of SQL is a table to the person who wrote it: some columns of groups, in the order of
SELECT, and one column per answer. The compiler attaches one `Statement` per SELECT to the batch;
a batch that was built in Python, or read from a matrix, has one per table of its labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Literal

from lrm.domain import Attribute, Categories, Dates, Domain, Integers
from lrm.errors import WorkloadError
from lrm.files.records import facts_of, read_record
from lrm.files.spelling import listed
from lrm.queries.workload.derived import Derived
from lrm.queries.workload.display import Display
from lrm.queries.workload.label_blocks import LabelBlock
from lrm.queries.workload.labels import Labels

Kind = Literal[
    "text", "integer", "number", "boolean", "date", "timestamp", "month", "year", "month_of_year"
]
"""What the labels of a column are.

``date`` is ``2023-05-31``, ``timestamp`` ``2023-05-31 00:00:00``, ``month`` ``2023-05``, ``year``
``2023``, ``month_of_year`` a number from 1 to 12. ``text`` has an order too, that of its labels.
"""

MOST_TABLES = 2000
"""Tables that are made from labels: readers find the answers of further ones in files."""


@dataclass(frozen=True)
class Column:
    """A column of groups."""

    name: str
    kind: Kind = "text"  # what its labels are
    # Its labels in ascending order; empty where the labels of the answers have that order.
    labels: tuple[str, ...] = ()

    as_list: ClassVar = True  # in files

    @classmethod
    def of(cls, attribute: Attribute, name: str | None = None) -> Column:
        """The column of an attribute of the domain, under its own name or another one.

        >>> Column.of(Integers("age", 0, 99)), Column.of(Integers("age", 0, 99, width=10)).kind
        (Column(name='age', kind='integer', labels=()), 'text')
        """
        return cls(attribute.name if name is None else name, _attribute_kind(attribute))


def _attribute_kind(attribute: Attribute) -> Kind:
    if isinstance(attribute, Categories):
        kinds: dict[str, Kind] = {"integer": "integer", "boolean": "boolean"}
        return kinds.get(attribute.value_type, "text")
    if isinstance(attribute, Integers):
        return "integer" if attribute.width == 1 else "text"
    if isinstance(attribute, Dates):
        periods: dict[str, Kind] = {"day": "date", "month": "month", "year": "year"}
        return periods.get(attribute.by, "timestamp")
    return "text"


def kind_of(values: Iterable[object]) -> Kind:
    """The kind of a column of computed values; None is NULL, which every kind has.

    >>> kind_of([2023, None]), kind_of([True]), kind_of(["a", 1])
    ('integer', 'boolean', 'text')
    """
    kinds: dict[str, Kind] = {
        "bool": "boolean",
        "int": "integer",
        "float": "number",
        "Decimal": "number",
        "date": "date",
        "datetime": "timestamp",
    }
    value_kinds = {kinds.get(type(value).__name__, "text") for value in values if value is not None}
    if value_kinds == {"integer", "number"}:
        return "number"
    return value_kinds.pop() if len(value_kinds) == 1 else "text"


@dataclass(frozen=True)
class Statement:
    """One table of answers.

    >>> Statement("n", "n by state", (Column("state"),), ("n",), (0, 50)).count
    50
    """

    name: str  # by which it is asked for; no two statements of a batch have the same
    title: str  # what a reader sees above the table
    columns: tuple[Column, ...] = ()  # the columns of groups in the order of SELECT
    # The names of the queries that are columns of the table, in the order of SELECT; empty for a
    # list of queries without groups, each of which is a row.
    answers: tuple[str, ...] = ()
    rows: tuple[int, int] = (0, 0)  # its range among the linear queries of the batch
    # Its range among the derived answers of the batch, which come after the linear ones.
    derived: tuple[int, int] = (0, 0)
    line: int | None = None  # where it begins in the text of the batch
    # The position of its display (HAVING, ORDER BY, LIMIT) among those of the batch.
    display: int | None = None
    # The size of a usual answer, where the author has stated one: ``-- expected: 500``.
    expected: float | None = None
    # How near answers must be, by their name; ``""`` is for all that are not named.
    within: tuple[tuple[str, float], ...] = ()
    may_lack: ClassVar = ("within",)

    def __post_init__(self) -> None:
        ranges = (self.rows, self.derived)
        sizes = [
            1.0 if self.expected is None else self.expected,
            *(size for _, size in self.within),
        ]
        if not (
            all(0 <= start <= stop for start, stop in ranges)
            and min(self.line or 0, self.display or 0) >= 0
            and all(0 < size < float("inf") for size in sizes)
        ):
            raise WorkloadError(f"statement {self.name!r} has a range or a size that none can have")

    @property
    def count(self) -> int:
        """Number of its linear answers."""
        return self.rows[1] - self.rows[0]

    def joined(self, other: Statement) -> Statement:
        """One statement of the answers of both, such as those of two parts of UNION ALL."""
        return replace(
            self,
            columns=group_columns([self, other]),
            answers=tuple(dict.fromkeys(self.answers + other.answers)),
            rows=_around(self.rows, other.rows),
            derived=_around(self.derived, other.derived),
            display=self.display if other.display is None else other.display,
            within=tuple((dict(self.within) | dict(other.within)).items()),
        )

    def facts(self) -> dict[str, Any]:
        """The statement as values that JSON can hold; `from_facts` reads them."""
        facts: dict[str, Any] = facts_of(self)
        return facts

    @classmethod
    def from_facts(cls, facts: Any) -> Statement:
        """Read what `facts` returned; anything else is an error."""
        return read_record(cls, facts)


def check_statements(
    statements: Sequence[Statement], queries: int, derived: int, displays: int
) -> None:
    """Raise an error where a statement has answers that the batch does not have."""
    for statement in statements:
        beyond = statement.rows[1] > queries or statement.derived[1] > derived
        if beyond or (statement.display is not None and statement.display >= displays):
            raise WorkloadError(
                f"statement {statement.name!r} has answers that the batch does not have"
            )
    if len({statement.name for statement in statements}) < len(statements):
        raise WorkloadError("two statements of a batch have the same name")


def shift(
    statements: Iterable[Statement], queries: int, derived: int, displays: int
) -> Iterator[Statement]:
    """The same statements where their answers come later in a larger batch."""
    for statement in statements:
        yield replace(
            statement,
            rows=(statement.rows[0] + queries, statement.rows[1] + queries),
            derived=(statement.derived[0] + derived, statement.derived[1] + derived),
            display=None if statement.display is None else statement.display + displays,
        )


def distinct_names(statements: Iterable[Statement]) -> list[Statement]:
    """Give each statement a name of its own: where others use it, with its columns or its number.

    No statement is called like an answer that several of them have: which one would be meant?

    >>> two = [Statement("n", ""), Statement("n", "", (Column("sex"),)), Statement("all", "")]
    >>> [one.name for one in distinct_names(two)]
    ['n_1', 'n_by_sex', 'all']
    """
    entries = list(statements)
    users = Counter(name for entry in entries for name in {entry.name, *entry.answers})
    taken: set[str] = set()
    renamed = []
    for position, statement in enumerate(entries, start=1):
        name = statement.name
        if users[name] > 1 and statement.columns:
            name = f"{name}_by_{'_'.join(column.name for column in statement.columns)}"
        number, stem = position, name
        while users[name] > 1 or name in taken:
            name, number = f"{stem}_{number}", number + 1
        taken.add(name)
        renamed.append(replace(statement, name=name))
    return renamed


MOST_NAMED = 5
"""Answers and columns that a title names."""


def title_of(answers: Sequence[str], columns: Sequence[str]) -> str:
    """A title made of the names of answers and columns.

    >>> title_of(["patients", "mean_age"], ["state", "sex"])
    'patients and mean age by state and sex'
    >>> title_of(["by_month"], ["hospital", "month"]), title_of(["by_month"], ["month"])
    ('by month and hospital', 'by month')
    """
    names = listed([spoken_name(name) for name in answers], most=MOST_NAMED)
    by = [spoken_name(name) for name in columns]
    if re.match(r"(?i)by\b", names):
        more = listed([name for name in by if name not in names], most=MOST_NAMED)
        return f"{names} and {more}" if more else names
    return f"{names} by {listed(by, most=MOST_NAMED)}" if by else names


def spoken_name(name: str) -> str:
    """What a reader sees of a name: its statement is left out where a name has it in front.

    >>> spoken_name("bed_days"), spoken_name("q2.n"), spoken_name("q2.1")
    ('bed days', 'n', 'q2.1')
    """
    return re.sub(r"^q\d+\.(?=\D)", "", name).replace("_", " ").strip() or name


def statements_of(
    labels: Labels, derived: Sequence[Derived], display: Sequence[Display], domain: Domain | None
) -> tuple[Statement, ...]:
    """The tables that the labels of a batch form: one per line of a text, else one per block.

    Queries without groups that follow each other are one list.
    """
    by_key: dict[object, Statement] = {}
    start = 0
    for block in islice(labels.tables(), MOST_TABLES):
        stop = start + len(block)
        if not block.hidden:
            _put(by_key, replace(_of_block(block, domain), rows=(start, stop)))
        start = stop
    for place, entry in enumerate(derived[:MOST_TABLES]):
        statement = replace(_of_block(entry.label, domain), answers=(entry.label.query,))
        _put(by_key, replace(statement, derived=(place, place + 1)))
    displayed = {name: place for place, entry in enumerate(display) for name in entry.queries}
    return tuple(distinct_names(_titled(entry, displayed) for entry in by_key.values()))


def _put(by_key: dict[object, Statement], statement: Statement) -> None:
    """Join a table to the statement that it belongs to, or begin a new one."""
    if statement.line is not None and statement.answers:
        by_key[statement.line] = (
            by_key[statement.line].joined(statement) if statement.line in by_key else statement
        )
        return
    last = next(reversed(by_key), None)
    if last is not None and _are_single(by_key[last], statement):
        by_key[last] = by_key[last].joined(statement)
    else:
        by_key[f"table {len(by_key)}"] = statement


def _are_single(left: Statement, other: Statement) -> bool:
    """Whether two statements are queries without groups that follow each other."""
    return not (left.answers or other.answers) and left.rows[1] == other.rows[0]


def _of_block(block: LabelBlock, domain: Domain | None) -> Statement:
    if not (block.axes or block.line):
        return Statement(block.query, "")
    columns = tuple(_column(domain, name, labels) for name, labels in block.axes)
    return Statement(block.query, "", columns, (block.query,), line=block.line)


def _column(domain: Domain | None, name: str, labels: Sequence[str]) -> Column:
    known = () if domain is None else domain.attributes
    attribute = next((candidate for candidate in known if candidate.name == name), None)
    # Ranges and running totals of an attribute have labels of their own.
    if attribute is None or tuple(labels[:3]) != attribute.labels[:3]:
        return Column(name)
    return Column.of(attribute)


def _around(left: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The range that holds both; an empty one adds nothing."""
    if left[0] == left[1] or other[0] == other[1]:
        return left if other[0] == other[1] else other
    return min(left[0], other[0]), max(left[1], other[1])


def _titled(statement: Statement, displayed: dict[str, int]) -> Statement:
    if not statement.answers:
        return replace(statement, title="Answers")
    title = title_of(statement.answers, [column.name for column in statement.columns])
    return replace(statement, title=title, display=displayed.get(statement.answers[0]))


def group_columns(tables: Iterable[Statement]) -> tuple[Column, ...]:
    """The columns of all statements by name; of text where statements disagree."""
    columns: dict[str, Column] = {}
    for statement in tables:
        for column in statement.columns:
            known = columns.setdefault(column.name, column)
            kind: Kind = known.kind if known.kind == column.kind else "text"
            labels = tuple(dict.fromkeys(known.labels + column.labels))
            columns[column.name] = Column(column.name, kind, labels)
    return tuple(columns.values())
