"""Numbers about the answers of a batch, with their labels: one row per answer."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lrm.errors import MissingExtra, UnknownName, WorkloadError
from lrm.files.spelling import beside, many, number
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.label_columns import Codes, LabelColumns, arrow_places, spans_of
from lrm.queries.workload.labels import Labels
from lrm.queries.workload.statements import Column

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

SHOWN = 20
"""Rows of a table that is printed or shown in a notebook."""

_LISTED = 5
"""Names of queries that an error lists."""


class Picture(Protocol):
    """A drawing that a notebook shows."""

    @property
    def figure(self) -> Any:
        """The figure of Matplotlib."""

    @property
    def axes(self) -> Any:
        """The axes of its first panel."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.svg`` or ``.png`` file, whole or not at all."""


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """One row per answer: the labels of its group, its query, and numbers about it.

    Parameters
    ----------
    labels
        What each answer is called.
    numbers
        Columns of numbers by name, such as ``answer``, ``standard_error``, ``low``, ``high``.
    at
        The guarantee and the confidence level, in a few words.
    groups
        The columns of groups, with what their labels are; those of text where nothing is stated.
    statements
        The names of the statements, and which of them each answer is of, where there are any.
    find
        Finds the labels and positions of the answers of a name, for a table of a whole batch;
        else they are those of the queries of this name.

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

    labels: Labels
    numbers: Mapping[str, Floats]
    at: str = ""
    groups: Sequence[Column] = ()
    statements: tuple[tuple[str, ...], Codes] | None = None
    find: Callable[[str], tuple[Labels, list[tuple[int, int]]]] | None = None

    def __post_init__(self) -> None:
        for name, column in self.numbers.items():
            if column.shape != (len(self.labels),):
                raise WorkloadError(
                    f"column {name!r} has {len(column)} numbers for {len(self.labels)} answers"
                )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def caption(self) -> str:
        """How many answers these are, and at which guarantee."""
        return f"{many(len(self), 'answer', 'answers')} {self.at}".rstrip()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of groups: in the order of SELECT, where the answers come from SQL."""
        return LabelColumns(self.labels.blocks, self.groups).attributes

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: grouping attributes, ``query``, then the numbers."""
        return (*group_titles(self.attributes, self._taken), "query", *self.numbers)

    @property
    def _taken(self) -> tuple[str, ...]:
        """Names that a column of groups cannot have."""
        return ("statement", "query", *self.numbers)

    def of(self, query: str) -> AnswerTable:
        """The answers of one query, in all of its groups.

        Where several statements have an answer of this name, ``q2.n`` is that of the second.
        """
        find = self.find or partial(find_query, self.labels)
        labels, ranges = find(query)
        numbers = {
            name: np.concatenate([column[start:stop] for start, stop in ranges])
            for name, column in self.numbers.items()
        }
        statements = None
        if self.statements is not None:
            names, codes = self.statements
            statements = names, np.concatenate([codes[start:stop] for start, stop in ranges])
        return AnswerTable(labels, numbers, self.at, self.groups, statements)

    def facts(self) -> list[dict[str, Any]]:
        """One record per answer as values that JSON can hold: labels, then numbers.

        A number that does not exist, or is infinite, is None.
        """
        columns = [column.tolist() for column in self.numbers.values()]
        return [
            {**label.facts, **dict(zip(self.numbers, map(_finite, row), strict=True))}
            for label, *row in zip(self.labels, *columns, strict=True)
        ]

    def to_arrow(self) -> pa.Table:
        """Return a ``pyarrow.Table``; a group that an answer does not have is null.

        Integers, numbers, booleans, dates and times are columns of these types; other labels are
        dictionaries in their declared order. The first column is the ``statement`` of each answer.
        """
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

        spans = next(spans_of(self.labels, [(0, len(self))]))
        columns = LabelColumns(self.labels.blocks, self.groups)
        arrays = [columns.group(spans, name) for name in self.attributes]
        arrays += [columns.queries(spans)]
        arrays += [pa.array(column) for column in self.numbers.values()]
        names = list(self.columns)
        if self.statements is not None:
            arrays.insert(0, statement_column(*self.statements))
            names.insert(0, "statement")
        return pa.table(arrays, names=names)

    def to_pandas(self) -> pd.DataFrame:
        """Return a ``pandas.DataFrame``; integers and booleans are nullable."""
        return arrow_to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Return a ``polars.DataFrame``."""
        return arrow_to_polars(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns of `to_arrow`, for every library that reads Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def pivot(self, values: str = "answer") -> pd.DataFrame:
        """Return a wide ``pandas.DataFrame`` of one of the numbers.

        The groups are its rows. Several queries are its columns, else the labels of the last group
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
        frame = self.to_pandas()
        groups = list(self.columns[: len(self.attributes)])
        if len(self.labels.query_names()) > 1 or not groups:
            return frame.pivot(index=groups or None, columns="query", values=values)  # noqa: PD010 - one value each
        if len(groups) == 1:
            return frame.set_index(groups)[[values]]
        return frame.pivot(index=groups[:-1], columns=groups[-1], values=values)  # noqa: PD010 - same

    def plot(self, ax: Any = None) -> Picture:
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

    def rows(self, limit: int = SHOWN) -> list[list[str]]:
        """The first rows as text, numbers rounded to the digits that their error leaves."""
        errors = self.numbers.get("standard_error")
        rows = []
        for i, label in enumerate(self.labels[:limit]):
            group = dict(label.group)
            error = 0.0 if errors is None else float(errors[i])
            cells = [group.get(attribute, "") for attribute in self.attributes]
            rows.append([*cells, label.query, *(self._spelt(n, i, error) for n in self.numbers)])
        return rows

    def _spelt(self, name: str, row: int, error: float) -> str:
        value = float(self.numbers[name][row])
        return number(value) if name in {"standard_error", "half_width"} else beside(value, error)

    @property
    def words(self) -> tuple[str, ...]:
        """Names of the columns that hold text."""
        return self.columns[: len(self.columns) - len(self.numbers)]

    def __repr__(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.text(self)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)


def statement_column(names: Sequence[str], codes: Codes) -> Any:
    """The statement of each answer as an Arrow dictionary; null where it has none."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    return pa.DictionaryArray.from_arrays(arrow_places(codes), pa.array(names, pa.string()))


def arrow_to_pandas(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a ``pandas.DataFrame`` whose integers and booleans are nullable."""
    pandas = _needed("pandas")
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)


def arrow_to_polars(table: pa.Table) -> pl.DataFrame:
    """An Arrow table as a ``polars.DataFrame``: ordered dictionaries are ``polars.Enum``."""
    polars = _needed("polars")
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    frame: pl.DataFrame = polars.from_arrow(table)
    ordered = {
        name: polars.Enum(column.chunk(0).dictionary.to_pylist())
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_dictionary(column.type) and column.num_chunks
    }
    return frame.with_columns(
        polars.col(name).cast(polars.String).cast(kind) for name, kind in ordered.items()
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    near = difflib.get_close_matches(query, names, _LISTED)
    some = f"near it are {listed_names(near)}" if near else f"there are {listed_names(names)}"
    return UnknownName(f"no query is called {query!r}; {some}")


def listed_names(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are.

    >>> listed_names(["a", "b"]), listed_names([f"q{i}" for i in range(9)])
    ("'a', 'b'", "'q0', 'q1', 'q2', 'q3', 'q4' and 4 more")
    """
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more


def _needed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(
            f"this needs the package {package}, which is not installed; run: pip install {package}"
        ) from None
