"""Columns of groups: each label once, the values that labels stand for, a code per answer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lrm.queries.workload.display import NULL
from lrm.queries.workload.finding import Codes, Span
from lrm.queries.workload.label_blocks import LabelBlock
from lrm.queries.workload.statements import Column, Kind


def _month(text: str) -> dt.date:
    return dt.date.fromisoformat(f"{text}-01")


def _whole(text: str) -> int:
    """A number of 64 bits: columns of data frames hold no larger ones."""
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError
    return number


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text]


_READERS: dict[Kind, Callable[[str], Any]] = {
    "integer": _whole,
    "year": _whole,
    "month_of_year": _whole,
    "number": float,
    "boolean": _truth,
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "month": _month,
}


def typed_values(labels: Sequence[str], kind: Kind) -> list[Any] | None:
    """The values that labels stand for; None for NULL. None where one stands for no value.

    >>> typed_values(["1", "(null)"], "integer"), typed_values(["1", "(above)"], "integer")
    ([1, None], None)
    >>> typed_values([str(2**63)], "integer")
    """
    if kind == "text":
        return None
    try:
        return [None if label == NULL else _READERS[kind](label) for label in labels]
    except (ValueError, KeyError):
        return None


def date_pattern(column: Column) -> Literal["month", "day", "second"]:
    """To what the labels of a column of dates or times are precise.

    Times that are all midnight are days, and days that are all the first of a month are months.

    >>> date_pattern(Column("m", "timestamp", ("2023-05-01 00:00:00", "2023-06-01 00:00:00")))
    'month'
    """
    if column.kind == "month":
        return "month"
    values = typed_values(column.labels, column.kind) if column.kind == "timestamp" else None
    known = [value for value in values or () if value is not None]
    if any(value.time() != dt.time() for value in known):
        return "second"
    return "month" if len(known) > 1 and all(value.day == 1 for value in known) else "day"


def file_texts(column: Column) -> list[str]:
    """The labels of a column as text files hold them: dates as ISO 8601, to their precision.

    >>> file_texts(Column("m", "timestamp", ("2023-05-01 00:00:00", "(null)")))
    ['2023-05-01', '(null)']
    """
    if column.kind != "timestamp":
        return list(column.labels)
    digits = {"month": 7, "day": 10, "second": None}[date_pattern(column)]
    values = typed_values(column.labels, column.kind)
    if values is None:
        return list(column.labels)
    return [
        label if value is None else label[:digits]
        for label, value in zip(column.labels, values, strict=True)
    ]


def plain_values(column: Column) -> list[str | int | float | None]:
    """The labels of a column as values of JSON: numbers, else texts; None for NULL of a type.

    >>> plain_values(Column("m", "month", ("2023-05", "(null)")))
    ['2023-05', None]
    """
    values = typed_values(column.labels, column.kind)
    if values is None:
        return list(column.labels)
    texts = file_texts(column)
    return [
        value if value is None or type(value) in {int, float} else text
        for value, text in zip(values, texts, strict=True)
    ]


MOST_HELD = 64
"""Columns whose values are kept."""

_HELD: dict[int, tuple[Column, Any]] = {}


def _arrow() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who write answers

    return pa


def arrow_values(column: Column) -> Any:
    """The labels of a column as an Arrow array: values of its type, else text; NULL is null.

    >>> arrow_values(Column("age", "integer", ("0", "1", "(null)"))).to_pylist()
    [0, 1, None]
    """
    known, values = _HELD.get(id(column), (None, None))
    if known is column:  # blocks of many answers share their columns
        return values
    pa = _arrow()
    typed = typed_values(column.labels, column.kind)
    kind = pa.string() if typed is None else _arrow_type(column.kind)
    values = pa.array(column.labels if typed is None else typed, kind)
    if len(_HELD) >= MOST_HELD:
        _HELD.clear()
    _HELD[id(column)] = column, values
    return values


def arrow_column(values: Any, codes: NDArray[Any], *, ordered: bool = True) -> Any:
    """Labels by their places: values of their type, else a dictionary of texts.

    Null where a code is −1.
    """
    pa = _arrow()
    missing = codes < 0
    places = pa.array(codes.astype(np.int32), mask=missing if missing.any() else None)
    if not pa.types.is_string(values.type):
        return values.take(places)
    return pa.DictionaryArray.from_arrays(places, values, ordered=ordered)


@dataclass(frozen=True, eq=False)
class LabelCoder:
    """The columns of groups of some tables of labels, and codes of their answers."""

    columns: tuple[Column, ...]  # each with every label of the answers
    _codes: tuple[dict[int, Codes], ...]  # of the labels of each vocabulary, by its id

    @classmethod
    def of(cls, blocks: Sequence[LabelBlock], groups: Sequence[Column] = ()) -> LabelCoder:
        """The columns of blocks; ``groups`` state what they are, and their order.

        A column has its own labels first, then others of the blocks as they appear; columns of
        which nothing is stated are text.
        """
        axes: dict[str, dict[int, Sequence[str]]] = {}
        for block in blocks:
            for name, labels in block.axes if block.attributes else ():
                axes.setdefault(name, {})[id(labels)] = labels
        stated = {group.name: group for group in groups}
        columns, codes = [], []
        for name in dict.fromkeys([*stated, *axes]):
            if name not in axes:
                continue
            column = stated.get(name, Column(name))
            every = dict.fromkeys(label for labels in axes[name].values() for label in labels)
            places = {label: k for k, label in enumerate(dict.fromkeys(column.labels) | every)}
            columns.append(replace(column, labels=tuple(places)))
            codes.append(
                {
                    key: np.array([places[label] for label in labels], dtype=np.int32)
                    for key, labels in axes[name].items()
                }
            )
        return cls(tuple(columns), tuple(codes))

    def codes(self, spans: Sequence[Span]) -> Codes:
        """The labels of each answer, by their places; −1 where it has no such group."""
        table = np.full((sum(map(len, spans)), len(self.columns)), -1, dtype=np.int32)
        names, start = [column.name for column in self.columns], 0
        for span in spans:
            stop = start + len(span)
            for axis, attribute in enumerate(span.block.attributes):
                k = names.index(attribute)
                codes = self._codes[k][id(span.block.axes[axis][1])]
                table[start:stop, k] = codes[span.places(axis)]
            start = stop
        return table


def query_column(spans: Sequence[Span]) -> tuple[Column, Codes]:
    """The names of the queries that some answers are of, without their groups."""
    names: dict[str, int] = {}
    parts = [np.empty(0, dtype=np.int32)]
    for span in spans:
        places = span.query_places()
        first = int(places[0])
        used = span.block.queries[first : int(places[-1]) + 1]
        codes = np.array([names.setdefault(name, len(names)) for name in used], dtype=np.int32)
        parts.append(codes[places - first])
    return Column("query", labels=tuple(names)), np.concatenate(parts)


def _arrow_type(kind: Kind) -> Any:
    pa = _arrow()
    types = {
        **dict.fromkeys(("integer", "year", "month_of_year"), pa.int64()),
        **dict.fromkeys(("date", "month"), pa.date32()),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us"),
    }
    return types[kind]
