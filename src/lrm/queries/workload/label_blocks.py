"""Labels of answers, as blocks: names of queries times a product of label vocabularies.

A batch of millions of answers has a handful of blocks (a statement with its groups, all cross-tabs
of some orders, a list of names, a numbering), and each is made of vocabularies, so that nothing
grows with the number of answers.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import isqrt
from typing import Any, Literal, TypeVar, get_args, overload

from lrm.errors import WorkloadError
from lrm.queries.maps.products.batch import MOST_QUERIES
from lrm.queries.maps.words import LARGEST_SIZE, Kind

T_co = TypeVar("T_co", covariant=True)

Group = tuple[tuple[str, str], ...]
"""The attributes that an answer is grouped by, each with the label of its cell."""

Axis = tuple[str, Sequence[str]]
"""A grouping attribute and its vocabulary: a tuple of labels, or labels made on demand."""

_QUERY = re.compile(r"q([1-9][0-9]{0,17})", re.ASCII)
_MEMBERS = {"query", "groups", "orders", "line", "hidden"}
_MOST_PLACES = 1 << 20
"""Upper bound on attributes times order of cross-tabs: the numbers kept to find one label."""


@dataclass(frozen=True, slots=True)
class Label:
    """What one answer is called.

    >>> Label("n", (("state", "NY"), ("age", "[0, 10)"))).name
    'n[state=NY, age=[0, 10)]'
    >>> Label("n", (("a", "x, b=1"),)).name
    'n[a="x, b=1"]'
    """

    query: str  # name of the query, without its group
    group: Group = ()  # attribute and label of each grouping attribute; empty where there is none
    line: int | None = None  # line of the batch's text where the query begins, where it has one

    @property
    def name(self) -> str:
        """One text for the whole label; different labels have different names.

        Parts that could be taken for the text around them are quoted as in JSON.
        """
        if not self.group:
            return _spell_alone(self.query)
        pairs = (pair_text(attribute, label) for attribute, label in self.group)
        return f"{query_text(self.query)}[{', '.join(pairs)}]"

    @property
    def facts(self) -> dict[str, Any]:
        """Name, query and group as values that JSON can hold."""
        return {"name": self.name, "query": self.query, "group": dict(self.group)}


def pair_text(attribute: str, label: str) -> str:
    """An attribute and its label as they stand in a name."""
    return f"{_spell(attribute, ',=')}={_spell(label, '=')}"


def query_text(query: str) -> str:
    """A query as it stands in a name, before its groups."""
    return _spell(query, "[")


def _spell(text: str, special: str) -> str:
    """Quote a text that holds a special character, a quotation mark or nothing readable."""
    plain = text.isprintable() and text == text.strip() and text
    if plain and '"' not in text and not any(mark in text for mark in special):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _spell_alone(query: str) -> str:
    """Quote a query without a group only if its name could be that of a grouped one."""
    grouped = query.endswith("]") and "[" in query[1:]
    return json.dumps(query, ensure_ascii=False) if grouped or query[:1] in {"", '"'} else query


class OnDemand(Sequence[T_co], ABC):
    """A sequence whose elements are made when they are asked for."""

    @abstractmethod
    def _at(self, place: int) -> T_co:
        """The element at a place, counted from 0."""

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        if isinstance(index, slice):
            return tuple(self._at(place) for place in range(*index.indices(len(self))))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        return self._at(place)


@dataclass(frozen=True, repr=False)
class NumberedLabels(OnDemand[str]):
    """A vocabulary of numbers, made on demand.

    >>> list(NumberedLabels("all-ranges", 3))
    ['0', '0..1', '0..2', '1', '1..2', '2']
    >>> list(NumberedLabels("prefix", 2)), list(NumberedLabels("rows", 2))
    (['0', '0..1'], ['row 1', 'row 2'])
    >>> queries = NumberedLabels("queries", 3, 7)
    >>> queries[0], "q9" in queries, "q10" in queries
    ('q7', True, False)
    """

    # ``"identity"`` labels values, ``"prefix"`` and ``"all-ranges"`` label ranges of them,
    # ``"rows"`` labels ``size`` rows of any weights, ``"queries"`` names queries.
    kind: Kind | Literal["queries"]
    size: int
    first: int = 1  # the number of the first query; of other kinds 1

    def __len__(self) -> int:
        return self.size * (self.size + 1) // 2 if self.kind == "all-ranges" else self.size

    def _at(self, number: int) -> str:
        match self.kind:
            case "identity":
                return str(number)
            case "rows":
                return f"row {number + 1}"
            case "queries":
                return f"q{self.first + number}"
            case "prefix":
                return _range(0, number)
            case _:
                # Counted from the end, the ranges that begin in the last k values are k(k+1)/2.
                after = len(self) - 1 - number
                k = (isqrt(8 * after + 1) - 1) // 2
                return _range(self.size - 1 - k, self.size - 1 - after + k * (k + 1) // 2)

    def __contains__(self, label: object) -> bool:
        if self.kind != "queries":
            return super().__contains__(label)
        match = _QUERY.fullmatch(label) if isinstance(label, str) else None
        return match is not None and 0 <= int(match[1]) - self.first < self.size

    def index(self, label: str, *_: Any) -> int:
        """The place of a label."""
        if self.kind != "queries":
            return super().index(label)
        return int(label.removeprefix("q")) - self.first


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


@dataclass(frozen=True)
class LabelBlock:
    """The labels of some queries in all of their groups.

    The queries vary slowest, then the tables, and within a table the last attribute varies fastest.

    >>> [label.name for label in LabelBlock("n", (("sex", ("f", "m")),))]
    ['n[sex=f]', 'n[sex=m]']
    >>> tabs = LabelBlock("n", (("sex", ("f", "m")), ("age", ("0", "1", "2"))), orders=(0, 1))
    >>> len(tabs), tabs.label(4).name
    (6, 'n[age=1]')
    """

    queries: Sequence[str]  # the name of the query, or several names
    # Each grouping attribute with its labels; without any, a query has one answer.
    axes: tuple[Axis, ...] = ()
    line: int | None = None  # line of the batch's text where it begins
    # Whether it is only an input of derived answers, and not shown with the others.
    hidden: bool = False
    # None for one table by all attributes. Else there are all tables by these numbers of
    # attributes: those of the first number first, in the order of `itertools.combinations`.
    orders: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.queries, str):
            object.__setattr__(self, "queries", (self.queries,))

    @property
    def query(self) -> str:
        """The name of the query, or of the first one."""
        return self.queries[0]

    @property
    def is_numbered(self) -> bool:
        """Whether its queries have numbers in place of names."""
        return isinstance(self.queries, NumberedLabels)

    @property
    def attributes(self) -> tuple[str, ...]:
        """What some answer is grouped by."""
        none = self.orders is not None and not any(self.orders)
        return () if none else tuple(attribute for attribute, _ in self.axes)

    @cached_property
    def each(self) -> int:
        """Number of answers of one query."""
        if self.orders is None:
            return math.prod(len(labels) for _, labels in self.axes)
        return sum(self._answers[order][0] for order in self.orders)

    @property
    def count(self) -> int:
        """Number of answers; `len` cannot return 2^63 or more."""
        return len(self.queries) * self.each

    def __len__(self) -> int:
        return self.count

    @cached_property
    def _answers(self) -> list[list[int]]:
        """``[k][i]``: the number of answers in all k-way tables of the attributes from i on."""
        sizes = [len(labels) for _, labels in self.axes]
        answers = [[1] * (len(sizes) + 1)]
        for _ in range(max(self.orders or (), default=0)):
            row = [0] * (len(sizes) + 1)
            for i in range(len(sizes) - 1, -1, -1):
                row[i] = row[i + 1] + sizes[i] * answers[-1][i + 1]
            answers.append(row)
        return answers

    def tables(self) -> Iterator[LabelBlock]:
        """Yield each table as a block of its own."""
        if self.orders is None:
            yield self
            return
        for query in self.queries:
            for order in self.orders:
                for axes in combinations(self.axes, order):
                    yield LabelBlock(query, axes, self.line, self.hidden)

    def of_query(self, place: int) -> LabelBlock:
        """The labels of one of the queries."""
        if len(self.queries) == 1:
            return self
        queries: Sequence[str] = (self.queries[place],)
        if isinstance(self.queries, NumberedLabels):
            queries = NumberedLabels("queries", 1, self.queries.first + place)
        return replace(self, queries=queries)

    def label(self, index: int) -> Label:
        """Make one label, in a time that follows the number of attributes."""
        place, index = divmod(index, self.each)
        axes = self.axes
        for order in self.orders or ():
            if index < self._answers[order][0]:
                axes, index = self._table(order, index)
                break
            index -= self._answers[order][0]
        pairs: list[tuple[str, str]] = []
        for attribute, labels in reversed(axes):
            index, position = divmod(index, len(labels))
            pairs.append((attribute, labels[position]))
        return Label(self.queries[place], tuple(reversed(pairs)), self.line)

    def _table(self, order: int, index: int) -> tuple[tuple[Axis, ...], int]:
        """The attributes of the table that an answer is in, and its place there."""
        table_axes: list[Axis] = []
        answers = 1  # of one table over the attributes that are chosen so far
        for i, axis in enumerate(self.axes):
            left = order - len(table_axes)
            if not left:
                break
            inside = answers * len(axis[1]) * self._answers[left - 1][i + 1]
            if index < inside:
                table_axes.append(axis)
                answers *= len(axis[1])
            else:
                index -= inside
        return tuple(table_axes), index

    def __iter__(self) -> Iterator[Label]:
        for table in self.tables():
            vocabularies = [labels for _, labels in table.axes]
            for query, *row in product(table.queries, *vocabularies):
                yield Label(query, tuple(zip(table.attributes, row, strict=True)), self.line)

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        return {attribute: frozenset(labels) for attribute, labels in self.axes}

    def repeats(self, other: LabelBlock) -> Label | None:
        """A label that both have, if there is one; its line is that of ``other``.

        Both are of one query, and that of ``other`` is the query of the label.
        """
        shared: list[tuple[str, str]] = []
        for attribute, labels in other.axes:
            known = self._known.get(attribute, frozenset())
            both = next((label for label in labels if label in known), None)
            if both is not None:
                shared.append((attribute, both))
        orders = (set(block.orders or {len(block.axes)}) for block in (self, other))
        for order in set.intersection(*orders):
            # A table by all attributes of a block needs a shared label of each of them.
            needed = [len(block.axes) for block in (self, other) if block.orders is None]
            if order <= len(shared) and all(length == len(shared) for length in needed):
                return Label(other.query, tuple(shared[:order]), other.line)
        return None

    # facts

    def facts(self, *, lines: bool) -> Iterator[dict[str, Any]]:
        """The block as values that JSON can hold; `blocks_from_facts` reads them."""
        if isinstance(self.queries, NumberedLabels):
            yield {"numbered": self.queries.size, "first": self.queries.first}
            return
        for query in self.queries:
            fact: dict[str, Any] = {"query": query}
            if self.orders is not None:
                fact["orders"] = list(self.orders)
            if self.axes or self.orders is not None:
                fact["groups"] = [_axis_facts(axis) for axis in self.axes]
            if lines and self.line is not None:
                fact["line"] = self.line
            if self.hidden:
                fact["hidden"] = True
            yield fact

    @classmethod
    def from_facts(cls, facts: Any) -> LabelBlock:
        """Read the label of one query, such as a derived answer has."""
        (block,) = blocks_from_facts([facts])
        if len(block.queries) > 1 or block.orders is not None or block.is_numbered:
            raise WorkloadError("a derived answer must have the label of one query")
        return block


def _axis_facts(axis: Axis) -> list[Any]:
    attribute, labels = axis
    if isinstance(labels, NumberedLabels):
        return [attribute, {labels.kind: labels.size}]
    return [attribute, list(labels)]


def blocks_from_facts(facts: Any) -> list[LabelBlock]:
    """Read the facts of several blocks; anything else is a WorkloadError."""
    if not isinstance(facts, list) or not facts:
        raise WorkloadError("labels must be a list of parts")
    blocks: list[LabelBlock] = []
    names: list[str] = []  # plain names that follow each other are one block
    for fact in facts:
        if isinstance(fact, dict) and set(fact) == {"query"} and isinstance(fact["query"], str):
            names.append(fact["query"])
            continue
        blocks += [LabelBlock(tuple(names))] if names else []
        names = []
        blocks.append(_block(fact))
    return [*blocks, LabelBlock(tuple(names))] if names else blocks


def _block(fact: Any) -> LabelBlock:
    if isinstance(fact, dict) and set(fact) == {"numbered", "first"}:
        count, first = fact["numbered"], fact["first"]
        if type(count) is type(first) is int and min(count, first) > 0 and count <= MOST_QUERIES:
            return LabelBlock(NumberedLabels("queries", count, first))
    elif isinstance(fact, dict) and {"query"} <= set(fact) <= _MEMBERS:
        query, line, hidden = fact["query"], fact.get("line"), fact.get("hidden", False)
        numbered = line is None or (type(line) is int and line >= 0)
        if isinstance(query, str) and numbered and type(hidden) is bool:
            axes = tuple(_axis(axis) for axis in _list(fact.get("groups", [])))
            if "orders" not in fact:
                return LabelBlock(query, axes, line, hidden)
            if not hidden:
                orders = _orders(fact["orders"], len(axes))
                return LabelBlock(query, axes, line, orders=orders)
    raise WorkloadError("a label must have a query, and may have groups, orders, line and hidden")


def _orders(orders: Any, attributes: int) -> tuple[int, ...]:
    order_list = _list(orders)
    if not order_list or not all(
        type(order) is int and 0 <= order <= attributes for order in order_list
    ):
        raise WorkloadError("the orders of cross-tabs must be numbers of attributes")
    if attributes * max(order_list) > _MOST_PLACES:
        raise WorkloadError(f"cross-tabs of {attributes:,} attributes are too many to be labelled")
    return tuple(order_list)


def _axis(axis: Any) -> Axis:
    pair = _list(axis)
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise WorkloadError("a group must be an attribute with its labels")
    if isinstance(pair[1], dict):
        return pair[0], _numbers(pair[1])
    labels = _list(pair[1])
    if not labels or not all(isinstance(label, str) for label in labels):
        raise WorkloadError("the labels of a group must be text")
    return pair[0], tuple(labels)


def _numbers(facts: dict[Any, Any]) -> NumberedLabels:
    kinds = [kind for kind in get_args(Kind) if kind in facts]
    if len(facts) == 1 and kinds:
        size = facts[kinds[0]]
        if type(size) is int and 1 <= size <= LARGEST_SIZE:
            return NumberedLabels(kinds[0], size)
    raise WorkloadError("the labels of a numbered attribute must be a kind and a size")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise WorkloadError("the groups of a label must be lists")
    return value
