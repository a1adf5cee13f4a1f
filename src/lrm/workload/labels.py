"""Labels of queries: what each answer is called, kept as data; names are made from them.

A batch of millions of answers has a handful of parts (a statement with its groups, a list of
names, a numbering), so labels are held by part and made when they are asked for.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, overload

from lrm.errors import WorkloadError
from lrm.workload.cross_tabs import CrossTabs
from lrm.workload.label_facts import label_facts, parts_from_facts
from lrm.workload.label_parts import Grouped, Label, Named, Numbered
from lrm.workload.taken_labels import Part, TakenLabels

__all__ = ["Labels", "Names"]


@dataclass(frozen=True)
class Labels(Sequence[Label]):
    """One label per query of a batch, made on demand.

    Examples
    --------
    >>> labels = Labels([Grouped("n", (("sex", ("f", "m")),)), Named(("total",))])
    >>> len(labels), labels[1].group, list(labels.names)
    (3, (('sex', 'm'),), ['n[sex=f]', 'n[sex=m]', 'total'])
    """

    parts: tuple[Part, ...]

    def __init__(self, parts: Iterable[Part]) -> None:
        object.__setattr__(self, "parts", tuple(parts))
        taken = TakenLabels()
        for part in self.parts:
            clash = taken.add(part)
            if clash is not None:
                raise WorkloadError(f"duplicate query name: {clash.name!r}")

    @classmethod
    def numbered(cls, count: int) -> Labels:
        """Return q1, q2, … as labels."""
        return cls([Numbered(count)])

    @classmethod
    def named(cls, names: Iterable[object]) -> Labels:
        """Return labels of queries that have names and no groups."""
        return cls([Named(tuple(str(name) for name in names))])

    @classmethod
    def joined(cls, several: Sequence[Labels]) -> Labels:
        """Return the labels of several batches one after the other, numbers counted through."""
        parts: list[Part] = []
        first = 1
        for part in chain.from_iterable(labels.parts for labels in several):
            if not isinstance(part, Numbered):
                parts.append(part)
                continue
            last = parts[-1] if parts else None
            if isinstance(last, Numbered):
                parts[-1] = replace(last, count=last.count + part.count)
            else:
                parts.append(Numbered(part.count, first))
            first += part.count
        return cls(parts)

    def at_line(self, line: int) -> Labels:
        """Return the same labels, those with groups and lines moved to one line."""
        return Labels(
            replace(part, line=line) if isinstance(part, Grouped | CrossTabs) else part
            for part in self.parts
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that some query is grouped by, in order of appearance."""
        grouped = (part for part in self.parts if isinstance(part, Grouped | CrossTabs))
        return tuple(dict.fromkeys(name for part in grouped for name in part.attributes))

    def tables(self) -> Iterator[Numbered | Named | Grouped]:
        """Yield the parts, each cross-tab as one of its own."""
        for part in self.parts:
            if isinstance(part, CrossTabs):
                yield from part.tables()
            else:
                yield part

    @property
    def names(self) -> Names:
        """The labels as text."""
        return Names(self)

    def of_query(self, query: str) -> tuple[Labels, list[tuple[int, int]]]:
        """The labels of one query's answers, and the ranges of their positions.

        Both are empty where no query has this name.
        """
        parts: list[Part] = []
        ranges: list[tuple[int, int]] = []
        for part, end in zip(self.parts, self._ends, strict=True):
            start = end - len(part)
            if isinstance(part, Grouped | CrossTabs):
                if part.query == query:
                    parts.append(part)
                    ranges.append((start, end))
            elif isinstance(part, Named):
                query_places = [start + i for i, name in enumerate(part.queries) if name == query]
                parts += [Named((query,))] * len(query_places)
                ranges += [(i, i + 1) for i in query_places]
            elif part.clash(query):
                number = int(query.removeprefix("q"))
                parts.append(Numbered(1, number))
                ranges.append((start + number - part.first, start + number - part.first + 1))
        return Labels(parts), ranges

    def shown_ranges(self) -> list[tuple[int, int]]:
        """The ranges of positions of all labels that are not hidden, ascending and disjoint."""
        ranges: list[tuple[int, int]] = []
        for part, end in zip(self.parts, self._ends, strict=True):
            if isinstance(part, Grouped) and part.hidden:
                continue
            start = end - len(part)
            if ranges and ranges[-1][1] == start:
                ranges[-1] = ranges[-1][0], end
            else:
                ranges.append((start, end))
        return ranges

    def is_hidden(self, position: int) -> bool:
        """Whether the label at a position is hidden."""
        part = self.parts[bisect_right(self._ends, position)]
        return isinstance(part, Grouped) and part.hidden

    def shown_parts(self) -> list[Part]:
        """The parts that are not hidden."""
        return [part for part in self.parts if not (isinstance(part, Grouped) and part.hidden)]

    def first(self, count: int) -> Labels:
        """The labels of the first queries alone."""
        if count >= len(self):
            return self
        return Labels(
            Grouped(label.query, tuple((a, (value,)) for a, value in label.group), label.line)
            for label in self[:count]
        )

    def query_names(self) -> list[str]:
        """The names of all queries, each once; of numbered ones the first alone."""
        names: dict[str, None] = {}
        for part in self.parts:
            if isinstance(part, Named):
                names.update(dict.fromkeys(part.queries))
            else:
                names[part.query if not isinstance(part, Numbered) else f"q{part.first}"] = None
        return list(names)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(part) for part in self.parts))

    def __len__(self) -> int:
        return self._ends[-1] if self.parts else 0

    @overload
    def __getitem__(self, index: int) -> Label: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Label, ...]: ...
    def __getitem__(self, index: int | slice) -> Label | tuple[Label, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        place = bisect_right(self._ends, number)
        before = self._ends[place - 1] if place else 0
        return self.parts[place].label(number - before)

    def __iter__(self) -> Iterator[Label]:
        return chain.from_iterable(self.parts)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the labels without their lines; its cost follows the number of parts."""
        seal = hashlib.sha256()
        for part in self.parts:
            for fact in label_facts(part, lines=False):
                seal.update(json.dumps(fact).encode() + b"\n")
        return seal.hexdigest()

    def facts(self) -> list[dict[str, Any]]:
        """The labels as values that JSON can hold; `from_facts` reads them."""
        return [fact for part in self.parts for fact in label_facts(part, lines=True)]

    @classmethod
    def from_facts(cls, facts: Any) -> Labels:
        """Read what `facts` returned; anything else is a WorkloadError."""
        return cls(parts_from_facts(facts))


@dataclass(frozen=True, eq=False, repr=False)
class Names(Sequence[str]):
    """The names of labels, made on demand; equal to any sequence of the same names."""

    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(label.name for label in self.labels[index])
        return self.labels[index].name

    def __iter__(self) -> Iterator[str]:
        return (label.name for label in self.labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(
            left == two for left, two in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment] # equal to lists, which have none

    def __repr__(self) -> str:
        if len(self) > 1000:
            return f"<{len(self):,} names: {self[0]!r}, {self[1]!r}, …>"
        return repr(tuple(self))
