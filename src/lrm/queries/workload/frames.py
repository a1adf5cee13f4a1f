"""The answers of one statement as data: columns of groups, and numbers about each answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Domain
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.answer_table import (
    Picture,
    arrow_to_pandas,
    arrow_to_polars,
    group_titles,
)
from lrm.queries.workload.display import NULL
from lrm.queries.workload.label_blocks import Group
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

Codes = NDArray[np.int64]

PARTS = ("answer", "standard_error", "low", "high", "processed")
"""The numbers about an answer, in the order of their columns."""

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


@dataclass(frozen=True, eq=False)
class AnswerFrame:
    """The table of one statement: one row per group, and some numbers for each answer.

    Parameters
    ----------
    statement
        Which statement it is: its name, and the title that readers see.
    columns
        The columns of groups in the order of SELECT, each with all of its labels.
    names
        The answers that are columns of the table, then those that are only sorted by.
    codes
        For each row, the label of each column; −1 where the row is not grouped by it, as in a
        total.
    positions
        For each row, where each answer stands among those that the batch shows; −1 where there
        is none.
    numbers
        ``answer``, ``standard_error``, ``low``, ``high`` and perhaps ``processed``: one row per
        group, one column per answer, NaN where there is none. Empty before they are computed.
    confidence
        The probability with which an interval holds the true answer.
    domain
        The domain of the batch: what labels a column may have.
    caveats
        What the intervals do not cover.
    stated
        The guarantee, in words.
    simulated
        True where nothing is guaranteed.
    counts
        The places of the answers that are counts, whose usual size a statement may state.
    """

    statement: Statement
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    codes: Codes
    positions: Codes
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    confidence: float = 0.95
    domain: Domain | None = None
    caveats: tuple[Caveat, ...] = ()
    stated: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    counts: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def name(self) -> str:
        """The name of the statement."""
        return self.statement.name

    @property
    def title(self) -> str:
        """What a reader sees above the table."""
        return self.statement.title

    @property
    def answers(self) -> tuple[str, ...]:
        """The names of the answers that are columns of the table."""
        return self.names[: len(self.statement.answers) or 1]

    @property
    def note(self) -> str:
        """What HAVING, ORDER BY and LIMIT leave out; empty where the table is whole."""
        return ". ".join(entry.sentence for entry in self.caveats if entry.kind == "display")

    @property
    def count(self) -> int:
        """Number of answers in columns of the table."""
        return int((self.positions[:, : len(self.answers)] >= 0).sum())

    def taken(self, rows: Sequence[int] | Codes) -> AnswerFrame:
        """Some of the rows, in the order given."""
        row_numbers = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
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
        """The numbers by the names of their columns, such as ``n``, ``n_standard_error``."""
        parts = [part for part in PARTS if part in self.numbers]
        return {
            name if part == "answer" else f"{name}_{part}": self.numbers[part][:, place]
            for place, name in enumerate(column_names(self.answers))
            for part in parts
        }

    def group_titles(self) -> list[str]:
        """The names of the columns of groups, different from those of the numbers."""
        return group_titles([column.name for column in self.columns], list(self.number_columns()))

    def to_arrow(self) -> pa.Table:
        """One row per group as a ``pyarrow.Table``: columns of groups, then of numbers.

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
        facts = {
            "statement": self.name,
            "title": self.title,
            "confidence": repr(self.confidence),
            **self.stated,
        }
        caveats = "; ".join(entry.sentence for entry in self.caveats)
        return {**facts, **({"caveats": caveats} if caveats else {})}

    def _arrow_group(self, column: Column, codes: Codes) -> Any:
        declared = self._declared(column)
        is_text = typed_values(declared.labels, declared.kind) is None
        if is_text and not (codes < 0).any():
            declared = replace(declared, labels=tuple(x for x in declared.labels if x != NULL))
        place_of = {label: place for place, label in enumerate(declared.labels)}
        places = [*(place_of.get(label, -1) for label in column.labels), -1]
        return arrow_column(arrow_values(declared), np.array(places, dtype=np.int32)[codes])

    def _declared(self, column: Column) -> Column:
        """The column with all labels that its attribute has, in their order."""
        known = () if self.domain is None else self.domain.attributes
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
        """One row per group as a ``pandas.DataFrame``, with the columns of `to_arrow`."""
        frame = arrow_to_pandas(self.to_arrow())
        frame.attrs = self.stated_facts()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """One row per group as a ``polars.DataFrame``, with the columns of `to_arrow`."""
        return arrow_to_polars(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns of `to_arrow`, for every library that reads Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

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

    def plot(self, ax: Any = None) -> Picture:
        """Draw the answers with their intervals, as `AnswerTable.plot` does."""
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
