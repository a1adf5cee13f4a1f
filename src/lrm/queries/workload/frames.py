"""Answers as data: columns of groups, and numbers about each answer."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lrm.errors import MissingExtra, UnknownName, WorkloadError
from lrm.files.spelling import in_percent, many
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.core import Workload
from lrm.queries.workload.display import NULL
from lrm.queries.workload.finding import Span, find_answers
from lrm.queries.workload.label_blocks import Group, Label
from lrm.queries.workload.label_columns import (
    arrow_column,
    arrow_values,
    plain_values,
    typed_values,
)
from lrm.queries.workload.statements import Column, Statement

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Codes = NDArray[np.int64]

PARTS = (
    *("answer", "standard_error", "low", "high", "processed"),
    *("change", "change_low", "change_high"),
    *("year_change", "year_change_low", "year_change_high"),
)
"""The numbers about an answer of a statement, in the order of their columns.

Changes are those of a series: since the edition before, and since that of the year before.
"""

MOST_DECLARED = 100_000
"""Labels of an attribute that a column lists although its answers do not have all of them."""

CaveatKind = Literal["limit", "dropped", "clipped", "approximate", "display"]
"""What a caveat is about: rows beyond the limit of a person, rows that a rule of the domain drops,
clipped numbers, averages and quantiles of binned numbers, and groups that are not displayed."""


@dataclass(frozen=True)
class Caveat:
    """What the intervals of a table do not cover, in one sentence.

    >>> Caveat("clipped", "days above 30 count as 30").answer
    ''
    """

    kind: CaveatKind
    sentence: str
    answer: str = ""  # the answer that it is about; empty where it is about all of them

    @property
    def facts(self) -> dict[str, str | None]:
        """The caveat as an object of JSON."""
        return {"kind": self.kind, "answer": self.answer or None, "sentence": self.sentence}


class Picture(Protocol):
    """A drawing that a notebook shows."""

    @property
    def figure(self) -> Figure:
        """The figure of Matplotlib."""

    @property
    def axes(self) -> Axes:
        """The axes of its first panel."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.svg`` or ``.png`` file, whole or not at all."""


@dataclass(frozen=True, eq=False)
class AnswerFrame:
    """Answers as a table: columns of groups, and numbers about each answer.

    That of a statement has one row per group, and some columns for each answer. In the long form
    there is one row per answer, whatever statement it is of: its groups stand between a column
    ``statement`` and a column ``query``.

    Parameters
    ----------
    batch
        The batch that the answers are of.
    columns
        The columns of groups in the order of SELECT, each with all of its labels.
    names
        The answers that are columns of the table, then those that are only sorted by. One without
        a name in the long form.
    codes
        For each row, the label of each column; −1 where the row is not grouped by it, as in a
        total.
    positions
        For each row, where each answer stands among those that the batch shows; −1 where there
        is none.
    statement
        Which statement it is: its name, and the title that readers see. None in the long form.
    numbers
        ``answer``, ``standard_error``, ``low``, ``high`` and perhaps others of `PARTS`: one row per
        group, one column per answer, NaN where there is none. Empty before they are computed.
    confidence
        The probability with which an interval holds the true answer.
    amount
        The guarantee, in a few symbols.
    caveats
        What the intervals do not cover.
    stated
        The guarantee, in words.
    simulated
        True where nothing is guaranteed.
    counts
        The places of the answers that are counts, whose usual size a statement may state.
    spans
        The labels of the rows, in the long form.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan(lrm.Workload([[1, 1], [1, 0]], names=["all", "young"]), "noise-on-data")
    >>> plan.errors(epsilon="0.1")
    2 answers at ε = 0.1, with 95 % intervals
    query  standard_error  half_width
    ─────  ──────────────  ──────────
    all                20       41.13
    young           14.14       29.96
    """

    batch: Workload
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    codes: NDArray[Any]
    positions: Codes
    statement: Statement | None = None
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    confidence: float = 0.95
    amount: str = ""
    caveats: tuple[Caveat, ...] = ()
    stated: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    counts: tuple[int, ...] = ()
    spans: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        for name, table in self.numbers.items():
            if table.shape != self.positions.shape:
                raise WorkloadError(
                    f"the numbers {name!r} have the shape {table.shape}, and the answers "
                    f"{self.positions.shape}"
                )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def name(self) -> str:
        """The name of the statement."""
        return "" if self.statement is None else self.statement.name

    @property
    def title(self) -> str:
        """What a reader sees above the table."""
        return self.caption if self.statement is None else self.statement.title

    @property
    def caption(self) -> str:
        """How many answers these are, and at which guarantee."""
        percent = in_percent(self.confidence)
        words = f" at {self.amount}, with {percent} intervals" if self.amount else ""
        return many(self.count, "answer", "answers") + words

    @property
    def answers(self) -> tuple[str, ...]:
        """The names of the answers that are columns of the table."""
        if self.statement is None:
            return self.names
        return self.names[: len(self.statement.answers) or 1]

    @property
    def note(self) -> str:
        """What HAVING, ORDER BY and LIMIT leave out; empty where the table is whole."""
        return ". ".join(entry.sentence for entry in self.caveats if entry.kind == "display")

    @property
    def caveat_sentences(self) -> list[str]:
        """What the intervals do not cover, each once; `note` has what is not displayed."""
        words = (entry.sentence for entry in self.caveats if entry.kind != "display")
        return list(dict.fromkeys(words))

    @property
    def count(self) -> int:
        """Number of answers in columns of the table."""
        return int((self.positions[:, : len(self.answers)] >= 0).sum())

    def labels(self, most: int | None = None) -> Iterator[Label]:
        """What the answer of each row is called, in the long form; of the first ``most`` rows."""
        every = (
            span.block.label(place) for span in self.spans for place in range(span.first, span.last)
        )
        return islice(every, most)

    def of(self, query: str) -> AnswerFrame:
        """The rows of the answers of one query, or of one statement, in all of their groups.

        Where several statements have an answer of this name, ``q2.n`` is that of the second.
        """
        _, ranges = find_answers(self.batch, query)
        wanted = np.concatenate([np.arange(start, stop) for start, stop in ranges])
        rows = np.flatnonzero(np.isin(self.positions, wanted).any(axis=1))
        if not len(rows):
            raise UnknownName(f"none of these answers is of {query!r}")
        return self.taken(rows).trimmed()

    def trimmed(self) -> AnswerFrame:
        """The same rows in the long form, without columns and labels of groups that none has."""
        columns, codes = [self.columns[0]], [self.codes[:, 0]]
        for place, column in enumerate(self.columns[1:], start=1):
            used = np.unique(self.codes[:, place])
            used = used[used >= 0]
            if len(used):
                labels = tuple(column.labels[code] for code in used.tolist())
                columns.append(replace(column, labels=labels))
                new = np.searchsorted(used, self.codes[:, place])
                codes.append(np.where(self.codes[:, place] < 0, -1, new))
        return replace(self, columns=tuple(columns), codes=np.column_stack(codes))

    def taken(self, rows: Sequence[int] | Codes) -> AnswerFrame:
        """Some of the rows, in the order given."""
        row_numbers = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            spans=_spans_at(self.spans, row_numbers) if self.spans else (),
            codes=self.codes[row_numbers],
            positions=self.positions[row_numbers],
            numbers={name: table[row_numbers] for name, table in self.numbers.items()},
        )

    def groups(self) -> list[Group]:
        """The group of each row, as labels have it."""
        return [
            tuple(
                (column.name, column.labels[code])
                for column, code in zip(self.columns, row, strict=True)
                if code >= 0
            )
            for row in self.codes.tolist()
        ]

    # as columns

    def number_columns(self) -> dict[str, Floats]:
        """The numbers by the names of their columns, such as ``n``, ``n_standard_error``.

        In the long form these are ``answer``, ``standard_error``, ``low`` and ``high``.
        """
        if self.statement is None:
            return {part: table[:, 0] for part, table in self.numbers.items()}
        parts = [part for part in PARTS if part in self.numbers]
        return {
            name if part == "answer" else f"{name}_{part}": self.numbers[part][:, place]
            for place, name in enumerate(column_names(self.answers))
            for part in parts
        }

    def group_titles(self) -> list[str]:
        """The names of the columns of groups, different from those of the numbers."""
        names, numbers = [column.name for column in self.columns], list(self.number_columns())
        if self.statement is not None:
            return group_titles(names, numbers)
        first, *groups, last = names
        return [first, *group_titles(groups, [first, last, *numbers]), last]

    def to_arrow(self) -> pa.Table:
        """The rows as a ``pyarrow.Table``: columns of groups, then of numbers.

        The type of a column of groups depends on the domain alone. NULL and the groups of a total
        are null; where a table has both, NULL of a text stays ``(null)``. The column of an
        answer has its name, those of its error and interval have it with an ending. The metadata
        of the schema are the guarantee, the title and the caveats.
        """
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

        groups = [
            self._arrow_group(column, self.codes[:, place])
            for place, column in enumerate(self.columns)
        ]
        numbers = self.number_columns()
        table = pa.table(
            [*groups, *map(pa.array, numbers.values())], names=[*self.group_titles(), *numbers]
        )
        return table.replace_schema_metadata(self.stated_facts())

    def stated_facts(self) -> dict[str, str]:
        """What the metadata of a frame say: title, confidence, guarantee and caveats."""
        if self.statement is None:
            return dict(self.stated)
        facts = {
            "statement": self.name,
            "title": self.title,
            "confidence": repr(self.confidence),
            **self.stated,
        }
        caveats = "; ".join(entry.sentence for entry in self.caveats)
        return {**facts, **({"caveats": caveats} if caveats else {})}

    def _arrow_group(self, column: Column, codes: Codes) -> Any:
        if self.statement is None:
            ordered = column is not self.columns[0] and column is not self.columns[-1]
            return arrow_column(arrow_values(column), codes, ordered=ordered)
        declared = self._declared(column)
        is_text = typed_values(declared.labels, declared.kind) is None
        if is_text and not (codes < 0).any():
            declared = replace(declared, labels=tuple(x for x in declared.labels if x != NULL))
        place_of = {label: place for place, label in enumerate(declared.labels)}
        places = [*(place_of.get(label, -1) for label in column.labels), -1]
        return arrow_column(arrow_values(declared), np.array(places, dtype=np.int32)[codes])

    def _declared(self, column: Column) -> Column:
        """The column with all labels that its attribute has, in their order."""
        known = () if self.batch.domain is None else self.batch.domain.attributes
        attribute = next((entry for entry in known if entry.name == column.name), None)
        if attribute is None or column.kind != Column.of(attribute).kind:
            return column
        if len(attribute.labels) > MOST_DECLARED:
            return column
        labels = dict.fromkeys(attribute.labels)
        if any(label not in labels for label in column.labels):
            return column
        return replace(column, labels=tuple(labels))

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a ``pandas.DataFrame``; integers and booleans are nullable."""
        pandas, pa = _needed("pandas"), _needed("pyarrow")
        nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        frame: pd.DataFrame = self.to_arrow().to_pandas(types_mapper=nullable.get)
        frame.attrs = self.stated_facts()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a ``polars.DataFrame``: texts of groups are ``polars.Enum``."""
        polars, pa = _needed("polars"), _needed("pyarrow")
        table = self.to_arrow()
        frame: pl.DataFrame = polars.from_arrow(table)
        ordered = {
            name: polars.Enum(column.chunk(0).dictionary.to_pylist())
            for name, column in zip(table.column_names, table.columns, strict=True)
            if pa.types.is_dictionary(column.type) and column.num_chunks
        }
        return frame.with_columns(
            polars.col(name).cast(polars.String).cast(kind) for name, kind in ordered.items()
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns of `to_arrow`, for every library that reads Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """The columns of `to_arrow`, for every library that reads the interchange protocol."""
        return self.to_arrow().__dataframe__(nan_as_null, allow_copy)

    def pivot(self, values: str = "answer") -> pd.DataFrame:
        """Return a wide ``pandas.DataFrame`` of one of the numbers.

        The groups are its rows. Several answers are its columns, else the labels of the last group
        are.

        Parameters
        ----------
        values
            Which numbers: ``answer``, ``standard_error``, ``low``, ``high``, ``half_width``.
        """
        if values not in self.numbers:
            raise WorkloadError(
                f"there are no numbers {values!r}; choose {', '.join(self.numbers)}"
            )
        columns, groups = self.number_columns(), self.group_titles()
        frame = self.to_pandas()
        if self.statement is None:
            groups = groups[1:-1]
            if len(frame["query"].unique()) > 1 or not groups:
                return frame.pivot(index=groups or None, columns="query", values=values)  # noqa: PD010 - one value each
            columns = {values: columns[values]}
        else:
            columns = {
                name: columns[name if values == "answer" else f"{name}_{values}"]
                for name in column_names(self.answers)
            }
        wide = frame[groups].assign(**columns)
        if len(groups) > 1 and len(columns) == 1:
            return wide.pivot(index=groups[:-1], columns=groups[-1], values=next(iter(columns)))  # noqa: PD010 - same
        return wide.set_index(groups) if groups else wide

    def rows(self) -> list[list[Any]]:
        """The rows as values: of groups by their type, then numbers, nothing rounded.

        A group that a row is not of, as in a total, is None, and so is a number that does not
        exist.
        """
        return self._rows(
            [
                typed_values(column.labels, column.kind) or list(column.labels)
                for column in self.columns
            ]
        )

    def plain_rows(self) -> list[list[str | int | float | None]]:
        """The rows of `rows` as text files hold them: dates, times and booleans are texts."""
        return self._rows([plain_values(column) for column in self.columns])

    def _rows(self, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        numbers = [column.tolist() for column in self.number_columns().values()]
        return [
            [
                *(
                    None if code < 0 else column_values[code]
                    for column_values, code in zip(values, codes, strict=True)
                ),
                *(None if math.isnan(column[row]) else column[row] for column in numbers),
            ]
            for row, codes in enumerate(self.codes.tolist())
        ]

    @property
    def header(self) -> list[str]:
        """The names of the columns of `rows`."""
        return [*self.group_titles(), *self.number_columns()]

    # views

    def plot(self, ax: Axes | None = None) -> Picture:
        """Draw the answers with their intervals.

        Returns a drawing that a notebook shows. It has the ``figure`` and the ``axes`` of
        Matplotlib, and ``save`` writes it to a ``.svg`` or ``.png`` file.

        Parameters
        ----------
        ax
            Axes of Matplotlib to draw on; new ones by default.
        """
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.drawing(self, ax)

    def __repr__(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.text(self)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)


def column_names(answers: Sequence[str]) -> list[str]:
    """The names of answers in the table of their statement, which is not named again.

    >>> column_names(["q2.n", "revenue"]), column_names(["q2.1", "q2.2"])
    (['n', 'revenue'], ['q2.1', 'q2.2'])
    """
    short = [re.sub(r"^q\d+\.(?=\D)", "", name) for name in answers]
    return short if len(set(short)) == len(short) else list(answers)


def _spans_at(spans: Sequence[Span], rows: Codes) -> tuple[Span, ...]:
    """The labels of some of the rows, in the order given."""
    ends = np.cumsum([len(span) for span in spans])
    owners = np.searchsorted(ends, rows, side="right")
    cuts = np.flatnonzero((np.diff(rows) != 1) | (np.diff(owners) != 0)) + 1
    parts = []
    for run in np.split(rows, cuts) if len(rows) else ():
        place = int(np.searchsorted(ends, run[0], side="right"))
        first = spans[place].last - int(ends[place]) + int(run[0])
        parts.append(Span(spans[place].block, first, first + len(run)))
    return tuple(parts)


def group_titles(attributes: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Titles of the columns of groups, different from the other columns and from each other.

    >>> group_titles(["state", "answer"], ["query", "answer"])
    ['state', 'answer_group']
    """
    fixed = set(taken)
    seen = {*taken, *attributes}
    titles = []
    for name in attributes:
        title = name
        while title in fixed or (title != name and title in seen):
            title += "_group"
        seen.add(title)
        titles.append(title)
    return titles


def _needed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(
            f"this needs the package {package}, which is not installed; run: pip install {package}"
        ) from None
