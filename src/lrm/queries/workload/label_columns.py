"""Labels of many answers as Arrow columns: each label once, and a code per answer."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lrm.queries.workload.display import NULL
from lrm.queries.workload.label_blocks import LabelBlock, pair_text, query_text
from lrm.queries.workload.labels import Labels
from lrm.queries.workload.statements import Column, Kind

Codes = NDArray[np.int32]


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


def _month(text: str) -> dt.date:
    return dt.date.fromisoformat(f"{text}-01")


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text]


_READERS: dict[Kind, Callable[[str], Any]] = {
    "integer": int,
    "year": int,
    "month_of_year": int,
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


def _arrow() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who write answers

    return pa


def arrow_values(column: Column) -> Any:
    """The labels of a column as an Arrow array: values of its type, else text; NULL is null.

    >>> arrow_values(Column("age", "integer", ("0", "1", "(null)"))).to_pylist()
    [0, 1, None]
    """
    pa = _arrow()
    typed = typed_values(column.labels, column.kind)
    if typed is None:
        return pa.array(column.labels, pa.string())
    return pa.array(typed, _arrow_type(column.kind))


def arrow_places(codes: Codes) -> Any:
    """Codes as Arrow indices; null where one is −1."""
    missing = codes < 0
    return _arrow().array(codes.astype(np.int32), mask=missing if missing.any() else None)


def arrow_column(values: Any, codes: Codes) -> Any:
    """Labels by their places: values of their type, else an ordered dictionary of texts.

    Null where a code is −1.
    """
    pa = _arrow()
    places = arrow_places(codes)
    if not pa.types.is_string(values.type):
        return values.take(places)
    return pa.DictionaryArray.from_arrays(places, values, ordered=True)


@dataclass(frozen=True, eq=False)
class _Vocabulary:
    """The labels of one column of groups."""

    column: Column  # with every label of the answers: its own first, then others as they appear
    codes: dict[int, Codes]  # of the labels of each vocabulary of the blocks, by its id

    @cached_property
    def values(self) -> Any:
        """One entry per code: values of their type, else text."""
        return arrow_values(self.column)


@dataclass
class LabelColumns:
    """Columns for spans of the labels of a batch."""

    # All labels that there are, by block: a column has one type and one dictionary, whatever
    # the span.
    blocks: Sequence[LabelBlock]
    # What the columns of groups are; those of text where nothing is stated.
    groups: Sequence[Column] = ()
    spell: Callable[[str], str] = str  # what is done to each text, such as quoting
    _vocabularies: dict[str, _Vocabulary] = field(default_factory=dict)
    _texts: dict[str, Any] = field(default_factory=dict)
    _pairs: dict[tuple[str, int], Any] = field(default_factory=dict)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of groups: in the order of SELECT, where the answers come from SQL."""
        known = dict.fromkeys(name for block in self.blocks for name in block.attributes)
        stated = (group.name for group in self.groups if group.name in known)
        return tuple(dict.fromkeys([*stated, *known]))

    def column(self, attribute: str) -> Column:
        """A column of groups with every label of the answers."""
        return self._vocabulary(attribute).column

    def _vocabulary(self, attribute: str) -> _Vocabulary:
        if attribute in self._vocabularies:
            return self._vocabularies[attribute]
        known = {group.name: group for group in self.groups}
        column = known.get(attribute, Column(attribute))
        axes = {
            id(labels): labels
            for block in self.blocks
            for name, labels in block.axes
            if name == attribute
        }
        every = dict.fromkeys(label for labels in axes.values() for label in labels)
        order = dict.fromkeys(column.labels) | every
        places = {label: code for code, label in enumerate(order)}
        codes = {
            key: np.array([places[label] for label in labels], dtype=np.int32)
            for key, labels in axes.items()
        }
        self._vocabularies[attribute] = _Vocabulary(replace(column, labels=tuple(order)), codes)
        return self._vocabularies[attribute]

    def codes(self, spans: Sequence[Span], attribute: str) -> Codes:
        """The place of each answer's label; −1 where it is not grouped by the attribute."""
        codes = self._vocabulary(attribute).codes
        parts = [np.empty(0, dtype=np.int32)]
        for span in spans:
            if attribute in span.block.attributes:
                axis = span.block.attributes.index(attribute)
                parts.append(codes[id(span.block.axes[axis][1])][span.places(axis)])
            else:
                parts.append(np.full(len(span), -1, dtype=np.int32))
        return np.concatenate(parts)

    def group(self, spans: Sequence[Span], attribute: str) -> Any:
        """The labels of one attribute as values of their type, else as an ordered dictionary.

        Null where an answer is not grouped by it.
        """
        return arrow_column(self._vocabulary(attribute).values, self.codes(spans, attribute))

    def group_texts(self, spans: Sequence[Span], attribute: str) -> Any:
        """The labels of one attribute as text, spelt; null where there is none."""
        pa = _arrow()
        if attribute not in self._texts:
            labels = file_texts(self.column(attribute))
            self._texts[attribute] = pa.array([self.spell(label) for label in labels], pa.string())
        codes = self.codes(spans, attribute)
        return self._texts[attribute].take(arrow_places(codes))

    def queries(self, spans: Sequence[Span]) -> Any:
        """The name of each answer's query, without its group, as a dictionary."""
        pa = _arrow()
        parts = []
        for span in spans:
            places = span.query_places()
            first = int(places[0]) if len(places) else 0
            names = span.block.queries[first : int(places[-1]) + 1 if len(places) else 0]
            texts = pa.array([self.spell(name) for name in names], pa.string())
            parts.append(pa.DictionaryArray.from_arrays(pa.array(places - first), texts))
        kind = pa.dictionary(pa.int32(), pa.string())
        return pa.chunked_array(parts, kind).unify_dictionaries().combine_chunks()

    def names(self, spans: Sequence[Span], quote: Callable[[str], str]) -> Any:
        """One text for each whole label.

        ``quote`` is applied to the parts of a name that has several: it must do to them what
        ``spell`` would do to the whole, without what it puts around it.
        """
        pa = _arrow()
        parts = [self._names(span, quote) for span in spans]
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def _names(self, span: Span, quote: Callable[[str], str]) -> Any:
        import pyarrow.compute as pc  # noqa: PLC0415 - as in `_arrow`

        pa = _arrow()
        block = span.block
        if len(block.queries) > 1 or len(block.axes) < 2:
            names = (block.label(i).name for i in range(span.first, span.last))
            return pa.array([self.spell(name) for name in names], pa.string())
        # The text around a name of several groups is that of its first one.
        first = block.label(span.first).name
        before, _, after = self.spell(first).partition(quote(first))
        pieces: list[Any] = [before + quote(query_text(block.query)) + "["]
        for axis, (attribute, labels) in enumerate(block.axes):
            key = attribute, id(labels)
            if key not in self._pairs:
                pairs = [quote(pair_text(attribute, label)) for label in labels]
                self._pairs[key] = pa.array(pairs, pa.string())
            texts = self._pairs[key].take(pa.array(span.places(axis)))
            pieces += [", "] * (axis > 0) + [texts]
        return pc.binary_join_element_wise(*pieces, "]" + after, "")


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
