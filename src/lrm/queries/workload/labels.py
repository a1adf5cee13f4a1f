"""Labels of a batch: what each answer is called, kept as blocks; names are made from them."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

from lrm.errors import WorkloadError
from lrm.queries.maps.products.batch import MOST_QUERIES
from lrm.queries.workload.label_blocks import (
    Label,
    LabelBlock,
    NumberedLabels,
    OnDemand,
    blocks_from_facts,
)


def repeated_name(names: Sequence[Hashable]) -> tuple[int, int] | None:
    """The places of the first name that occurs twice, or None where all names differ.

    >>> repeated_name(["all", "north", "all"])
    (0, 2)
    """
    places: dict[Hashable, int] = {}
    for place, name in enumerate(names):
        if name in places:
            return places[name], place
        places[name] = place
    return None


@dataclass(frozen=True)
class Labels(OnDemand[Label]):
    """One label per query of a batch, made on demand.

    >>> labels = Labels([LabelBlock("n", (("sex", ("f", "m")),)), LabelBlock("total")])
    >>> len(labels), labels[1].group, list(labels.names)
    (3, (('sex', 'm'),), ['n[sex=f]', 'n[sex=m]', 'total'])
    """

    blocks: tuple[LabelBlock, ...]

    def __init__(self, blocks: Iterable[LabelBlock]) -> None:
        object.__setattr__(self, "blocks", tuple(blocks))
        taken = TakenLabels()
        for block in self.blocks:
            clash = taken.add(block)
            if clash is not None:
                raise WorkloadError(f"duplicate query name: {clash.name!r}")

    @classmethod
    def numbered(cls, count: int) -> Labels:
        """Return q1, q2, … as labels."""
        return cls([LabelBlock(NumberedLabels("queries", count))])

    @classmethod
    def named(cls, names: Iterable[object]) -> Labels:
        """Return labels of queries that have names and no groups.

        The names may be a column of a private table that was passed by mistake: an error counts
        the queries and quotes none.
        """
        queries = tuple(str(name) for name in names)
        repeated = repeated_name(queries)
        if repeated is not None:
            raise WorkloadError(
                f"queries {repeated[0] + 1} and {repeated[1] + 1} have the same name; every query "
                "needs a name of its own"
            )
        return cls([LabelBlock(queries)])

    @classmethod
    def joined(cls, several: Sequence[Labels]) -> Labels:
        """Return the labels of several batches one after the other, numbers counted through."""
        blocks: list[LabelBlock] = []
        first = 1
        for block in chain.from_iterable(labels.blocks for labels in several):
            if not block.is_numbered:
                blocks.append(block)
                continue
            count = block.count
            if blocks and blocks[-1].is_numbered:
                before = blocks.pop().count
                first, count = first - before, before + count
            blocks.append(LabelBlock(NumberedLabels("queries", count, first)))
            first += count
        return cls(blocks)

    def at_line(self, line: int) -> Labels:
        """Return the same labels at one line; lists of queries have none."""
        return Labels(
            block if block.is_numbered or len(block.queries) > 1 else replace(block, line=line)
            for block in self.blocks
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that some query is grouped by, in order of appearance."""
        return tuple(dict.fromkeys(name for block in self.blocks for name in block.attributes))

    def tables(self) -> Iterator[LabelBlock]:
        """Yield the blocks, each cross-tab as one of its own."""
        return chain.from_iterable(block.tables() for block in self.blocks)

    @property
    def names(self) -> Names:
        """The labels as text."""
        return Names(self)

    def of_query(self, query: str) -> tuple[Labels, list[tuple[int, int]]]:
        """The labels of one query's answers, and the ranges of their positions.

        Both are empty where no query has this name.
        """
        blocks: list[LabelBlock] = []
        ranges: list[tuple[int, int]] = []
        for block, end in zip(self.blocks, self._ends, strict=True):
            if query in block.queries:
                place = block.queries.index(query)
                start = end - len(block) + place * block.each
                blocks.append(block.of_query(place))
                ranges.append((start, start + block.each))
        return Labels(blocks), ranges

    def shown_ranges(self) -> list[tuple[int, int]]:
        """The ranges of positions of all labels that are not hidden, ascending and disjoint."""
        ranges: list[tuple[int, int]] = []
        for block, end in zip(self.blocks, self._ends, strict=True):
            if block.hidden:
                continue
            start = end - len(block)
            if ranges and ranges[-1][1] == start:
                ranges[-1] = ranges[-1][0], end
            else:
                ranges.append((start, end))
        return ranges

    def is_hidden(self, position: int) -> bool:
        """Whether the label at a position is hidden."""
        return self.blocks[bisect_right(self._ends, position)].hidden

    def shown_blocks(self) -> list[LabelBlock]:
        """The blocks that are not hidden."""
        return [block for block in self.blocks if not block.hidden]

    def first(self, count: int) -> Labels:
        """The labels of the first queries alone."""
        if count >= len(self):
            return self
        return Labels(_alone(label) for label in self[:count])

    def query_names(self) -> list[str]:
        """The names of all queries, each once; of numbered ones the first alone."""
        names: dict[str, None] = {}
        for block in self.blocks:
            names.update(dict.fromkeys(block.queries[:1] if block.is_numbered else block.queries))
        return list(names)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(block) for block in self.blocks))

    def __len__(self) -> int:
        return self._ends[-1] if self.blocks else 0

    def _at(self, number: int) -> Label:
        place = bisect_right(self._ends, number)
        before = self._ends[place - 1] if place else 0
        return self.blocks[place].label(number - before)

    def __iter__(self) -> Iterator[Label]:
        return chain.from_iterable(self.blocks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the labels without their lines; its cost follows the number of blocks."""
        seal = hashlib.sha256()
        for block in self.blocks:
            for fact in block.facts(lines=False):
                seal.update(json.dumps(fact).encode() + b"\n")
        return seal.hexdigest()

    def facts(self) -> list[dict[str, Any]]:
        """The labels as values that JSON can hold; `from_facts` reads them."""
        return [fact for block in self.blocks for fact in block.facts(lines=True)]

    @classmethod
    def from_facts(cls, facts: Any) -> Labels:
        """Read what `facts` returned; anything else is a WorkloadError."""
        return cls(blocks_from_facts(facts))


@dataclass(frozen=True, eq=False, repr=False)
class Names(OnDemand[str]):
    """The names of labels, made on demand; equal to any sequence of the same names."""

    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def _at(self, place: int) -> str:
        return self.labels[place].name

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


_Key = tuple[str, frozenset[str]]
"""A query's name and the attributes that it is grouped by."""


@dataclass
class TakenLabels:
    """The labels of a batch so far, by block, to find one that another block repeats."""

    _numbered: list[LabelBlock] = field(default_factory=list)
    _single: dict[_Key, dict[frozenset[tuple[str, str]], Label]] = field(default_factory=dict)
    _products: dict[_Key, list[LabelBlock]] = field(default_factory=dict)
    _tabs: dict[str, list[LabelBlock]] = field(default_factory=dict)
    _distinct: dict[int, Sequence[str]] = field(default_factory=dict)

    def add(self, block: LabelBlock) -> Label | None:
        """Take a block's labels; return the earlier label that one of them repeats, if any."""
        if block.is_numbered:
            return self._add_numbered(block)
        self._check_axes(block)
        if block.each == 1 and block.orders is None:
            clashes = (self._add_single(label) for label in block)
        else:
            queries = range(len(block.queries))
            clashes = (self._add_product(block.of_query(place)) for place in queries)
        return next((clash for clash in clashes if clash is not None), None)

    def _add_numbered(self, block: LabelBlock) -> Label | None:
        numbers = block.queries
        for other in self._numbered:
            # Of two ranges that overlap, one holds the first number of the other.
            for query, other_numbers in ((block.query, other.queries), (other.query, numbers)):
                if query in other_numbers:
                    return Label(query)
        self._numbered.append(block)
        totals = (tabs.query for several in self._tabs.values() for tabs in several if _total(tabs))
        singles = (query for query, attributes in self._single if not attributes)
        return next((Label(query) for query in (*singles, *totals) if query in numbers), None)

    def _is_number(self, query: str) -> bool:
        return any(query in block.queries for block in self._numbered)

    def _add_single(self, label: Label) -> Label | None:
        if not label.group and self._is_number(label.query):
            return label
        key = label.query, frozenset(attribute for attribute, _ in label.group)
        earlier = self._single.setdefault(key, {}).setdefault(frozenset(label.group), label)
        if earlier is not label:
            return earlier
        blocks = (*self._tabs.get(label.query, ()), *self._products.get(key, ()))
        return _first_repeat(blocks, _alone(label)) if blocks else None

    def _add_product(self, block: LabelBlock) -> Label | None:
        """Take a block of one query and several answers."""
        if _total(block) and self._is_number(block.query):
            return Label(block.query)
        tabs = self._tabs.setdefault(block.query, [])
        key = block.query, frozenset(block.attributes)
        if block.orders is None:
            bucket = self._products.setdefault(key, [])
            blocks = [*tabs, *bucket]
            singles = list(self._single.get(key, {}).values())
        else:
            bucket = tabs
            earlier = [some for (query, _), some in self._products.items() if query == block.query]
            blocks = [*tabs, *chain.from_iterable(earlier)]
            known = [some for (query, _), some in self._single.items() if query == block.query]
            singles = [label for some in known for label in some.values()]
        clash = _first_repeat([*blocks, *map(_alone, singles)], block)
        bucket.append(block)
        return clash

    def _check_axes(self, block: LabelBlock) -> None:
        names = [attribute for attribute, _ in block.axes]
        if len(set(names)) != len(names):
            raise WorkloadError(f"query {block.query!r} is grouped by an attribute twice")
        if block.orders is not None and len(set(block.orders)) != len(block.orders):
            raise WorkloadError(f"query {block.query!r} has all tables of an order twice")
        for attribute, labels in block.axes:
            if id(labels) in self._distinct or isinstance(labels, NumberedLabels):
                continue
            if not labels or len(set(labels)) != len(labels):
                raise WorkloadError(
                    f"the labels of {attribute!r} must differ, and there must be at least one"
                )
            self._distinct[id(labels)] = labels  # kept: an id is unique only while it lives
        if block.count > MOST_QUERIES:
            raise WorkloadError(
                f"query {block.query!r} has more than 2^53 answers; group it by fewer attributes"
            )


def _total(block: LabelBlock) -> bool:
    return block.orders is not None and 0 in block.orders


def _alone(label: Label) -> LabelBlock:
    """The block that one label is."""
    axes = tuple((attribute, (value,)) for attribute, value in label.group)
    return LabelBlock(label.query, axes, label.line)


def _first_repeat(others: Iterable[LabelBlock], block: LabelBlock) -> Label | None:
    """The label of an earlier block that a block has too."""
    clashes = (block.repeats(other) for other in others)
    return next((clash for clash in clashes if clash is not None), None)
