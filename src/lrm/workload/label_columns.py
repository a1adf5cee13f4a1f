"""Labels of many answers as columns of text, without a Python object per answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.workload.label_parts import Grouped, Named, Numbered, pair_text, query_text
from lrm.workload.labels import Labels

__all__ = ["LabelColumns", "Span", "spans_of"]

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Span:
    """Some consecutive answers of one table: ``first:last`` of the labels of ``part``."""

    part: Numbered | Named | Grouped
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    def places(self, axis: int) -> Codes:
        """Which label of an axis of a grouped part each answer has."""
        assert isinstance(self.part, Grouped)  # noqa: S101 - asked of these
        sizes = [len(labels) for _, labels in self.part.axes]
        faster = math.prod(sizes[axis + 1 :])
        place = np.arange(self.first, self.last) // faster % sizes[axis]
        return place.astype(np.int32)


def spans_of(labels: Labels, ranges: Iterable[tuple[int, int]]) -> Iterator[list[Span]]:
    """Yield the labels of each of some ranges, which are ascending and disjoint.

    The tables are gone through once, however many ranges there are.
    """
    tables = labels.tables()
    table: Numbered | Named | Grouped | None = None
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


@dataclass
class LabelColumns:
    """Columns of text for spans of labels: each distinct text is spelt once.

    Parameters
    ----------
    spell
        What is done to each text, such as quoting.
    """

    spell: Callable[[str], str] = str
    _texts: dict[tuple[str, int], tuple[Any, Sequence[str]]] = field(default_factory=dict)

    def group(self, spans: Sequence[Span], attribute: str) -> Any:
        """The labels of one attribute; null where an answer is not grouped by it."""
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who write answers

        parts = []
        for span in spans:
            if not isinstance(span.part, Grouped) or attribute not in span.part.attributes:
                parts.append(pa.nulls(len(span), pa.string()))
                continue
            axis = span.part.attributes.index(attribute)
            texts = self._spelt("", span.part.axes[axis][1], self.spell)
            parts.append(texts.take(pa.array(span.places(axis))))
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def queries(self, spans: Sequence[Span]) -> Any:
        """The name of each answer's query, without its group."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        parts = [
            pa.repeat(pa.scalar(self.spell(span.part.query)), len(span))
            if isinstance(span.part, Grouped)
            else pa.array(
                [self.spell(span.part.label(i).query) for i in range(span.first, span.last)]
            )
            for span in spans
        ]
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def names(self, spans: Sequence[Span], quote: Callable[[str], str]) -> Any:
        """One text for each whole label.

        ``quote`` is applied to the parts of a name that has several: it must do to them what
        ``spell`` would do to the whole, without what it puts around it.
        """
        import pyarrow as pa  # noqa: PLC0415 - as above

        parts = [self._names(span, quote) for span in spans]
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def _names(self, span: Span, quote: Callable[[str], str]) -> Any:
        import pyarrow as pa  # noqa: PLC0415 - as above
        import pyarrow.compute as pc  # noqa: PLC0415 - as above

        part = span.part
        if not isinstance(part, Grouped) or len(part.axes) < 2:
            names = (part.label(i).name for i in range(span.first, span.last))
            return pa.array([self.spell(name) for name in names], pa.string())
        # The text around a name of several groups is that of its first one.
        first = part.label(span.first).name
        before, _, after = self.spell(first).partition(quote(first))
        pieces: list[Any] = [before + quote(query_text(part.query)) + "["]
        for axis, (attribute, labels) in enumerate(part.axes):
            spell = partial(_quoted_pair, quote, attribute)
            texts = self._spelt(attribute, labels, spell)
            pieces += [", "] * (axis > 0) + [texts.take(pa.array(span.places(axis)))]
        return pc.binary_join_element_wise(*pieces, "]" + after, "")

    def _spelt(self, use: str, labels: Sequence[str], spell: Callable[[str], str]) -> Any:
        import pyarrow as pa  # noqa: PLC0415 - as above

        key = use, id(labels)  # the empty use is for columns of groups
        if key not in self._texts:  # the labels are kept: an id is unique only while they live
            self._texts[key] = pa.array([spell(label) for label in labels], pa.string()), labels
        return self._texts[key][0]


def _quoted_pair(quote: Callable[[str], str], attribute: str, label: str) -> str:
    return quote(pair_text(attribute, label))
