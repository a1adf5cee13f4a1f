"""One label, and the parts that the labels of a batch are made of."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from lrm.errors import WorkloadError

__all__ = ["Group", "Grouped", "Label", "Named", "Numbered", "Part", "TakenLabels"]

Group = tuple[tuple[str, str], ...]
"""The attributes that an answer is grouped by, each with the label of its cell."""

_NUMBERED = re.compile(r"q([1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Label:
    """What one answer is called.

    Parameters
    ----------
    query
        Name of the query, without its group.
    group
        Attribute and label of each grouping attribute; empty where there is none.
    line
        Line of the batch's text where the query begins, where it has one.

    Examples
    --------
    >>> Label("n", (("state", "NY"), ("age", "[0, 10)"))).name
    'n[state=NY, age=[0, 10)]'
    >>> Label("n", (("a", "x, b=1"),)).name
    'n[a="x, b=1"]'
    """

    query: str
    group: Group = ()
    line: int | None = None

    @property
    def name(self) -> str:
        """One text for the whole label; different labels have different names.

        Parts that could be taken for the text around them are quoted as in JSON.
        """
        if not self.group:
            return _spell_alone(self.query)
        pairs = (
            f"{_spell(attribute, ',=')}={_spell(label, '=')}" for attribute, label in self.group
        )
        return f"{_spell(self.query, '[')}[{', '.join(pairs)}]"

    @property
    def facts(self) -> dict[str, Any]:
        """Name, query and group as values that JSON can hold."""
        return {"name": self.name, "query": self.query, "group": dict(self.group)}


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


@dataclass(frozen=True)
class Numbered:
    """Queries without names: q1, q2, …, or from a later number on."""

    count: int
    first: int = 1

    def __len__(self) -> int:
        return self.count

    def label(self, index: int) -> Label:
        """Make one label."""
        return Label(f"q{self.first + index}")

    def __iter__(self) -> Iterator[Label]:
        return (self.label(index) for index in range(self.count))

    def clash(self, query: str) -> bool:
        """Whether ``query`` is the name of one of these."""
        match = _NUMBERED.fullmatch(query)
        return match is not None and self.first <= int(match[1]) < self.first + self.count


@dataclass(frozen=True)
class Named:
    """Queries with names of their own and no groups."""

    queries: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.queries)

    def label(self, index: int) -> Label:
        """Make one label."""
        return Label(self.queries[index])

    def __iter__(self) -> Iterator[Label]:
        return (Label(query) for query in self.queries)


@dataclass(frozen=True)
class Grouped:
    """One query in every combination of its groups, the last attribute varying fastest.

    Parameters
    ----------
    query
        Its name.
    axes
        Each grouping attribute with its labels; without any, the query has one answer.
    line
        Line of the batch's text where it begins.
    """

    query: str
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    line: int | None = None

    def __len__(self) -> int:
        return math.prod(len(labels) for _, labels in self.axes)

    @property
    def attributes(self) -> tuple[str, ...]:
        """What the query is grouped by."""
        return tuple(attribute for attribute, _ in self.axes)

    def label(self, index: int) -> Label:
        """Make one label."""
        pairs: list[tuple[str, str]] = []
        for attribute, labels in reversed(self.axes):
            index, position = divmod(index, len(labels))
            pairs.append((attribute, labels[position]))
        return Label(self.query, tuple(reversed(pairs)), self.line)

    def column(self, attribute: str) -> list[str]:
        """The label of one grouping attribute in each answer."""
        axis = self.attributes.index(attribute)
        faster = math.prod(len(labels) for _, labels in self.axes[axis + 1 :])
        run = [label for label in self.axes[axis][1] for _ in range(faster)]
        return run * (len(self) // len(run))

    def __iter__(self) -> Iterator[Label]:
        for row in product(*(labels for _, labels in self.axes)):
            yield Label(self.query, tuple(zip(self.attributes, row, strict=True)), self.line)


Part = Numbered | Named | Grouped


@dataclass
class TakenLabels:
    """Labels seen so far, by part: tells whether another part repeats one of them."""

    _numbered: list[Numbered] = field(default_factory=list)
    _single: dict[tuple[str, frozenset[tuple[str, str]]], Label] = field(default_factory=dict)
    _products: dict[tuple[str, frozenset[str]], list[Grouped]] = field(default_factory=dict)

    def add(self, part: Part) -> Label | None:
        """Take a part's labels; return the earlier label that one of them repeats, if any."""
        if isinstance(part, Numbered):
            return self._add_numbered(part)
        if isinstance(part, Named):
            clashes = (self._add_single(label) for label in part)
            return next((clash for clash in clashes if clash is not None), None)
        _check_axes(part)
        if len(part) == 1:
            return self._add_single(part.label(0))
        return self._add_product(part)

    def _add_numbered(self, part: Numbered) -> Label | None:
        for other in self._numbered:
            if max(part.first, other.first) < min(part.first + len(part), other.first + len(other)):
                return Label(f"q{max(part.first, other.first)}")
        self._numbered.append(part)
        singles = (label for label in self._single.values() if not label.group)
        return next((label for label in singles if part.clash(label.query)), None)

    def _add_single(self, label: Label) -> Label | None:
        if not label.group and any(part.clash(label.query) for part in self._numbered):
            return label
        earlier = self._single.setdefault((label.query, frozenset(label.group)), label)
        if earlier is not label:
            return earlier
        attributes = frozenset(attribute for attribute, _ in label.group)
        for other in self._products.get((label.query, attributes), ()):
            axes = dict(other.axes)
            if all(value in axes[attribute] for attribute, value in label.group):
                return replace(label, line=other.line)
        return None

    def _add_product(self, part: Grouped) -> Label | None:
        attributes = frozenset(part.attributes)
        bucket = self._products.setdefault((part.query, attributes), [])
        axes = {attribute: set(labels) for attribute, labels in part.axes}
        for label in self._single.values():
            same = label.query == part.query and {name for name, _ in label.group} == attributes
            if same and all(value in axes[attribute] for attribute, value in label.group):
                return label
        for other in bucket:
            shared = [
                (attribute, next((value for value in labels if value in axes[attribute]), None))
                for attribute, labels in other.axes
            ]
            if all(value is not None for _, value in shared):
                group = tuple((attribute, str(value)) for attribute, value in shared)
                return Label(part.query, group, other.line)
        bucket.append(part)
        return None


def _check_axes(part: Grouped) -> None:
    if len(set(part.attributes)) != len(part.attributes):
        raise WorkloadError(f"query {part.query!r} is grouped by an attribute twice")
    for attribute, labels in part.axes:
        if not labels or len(set(labels)) != len(labels):
            raise WorkloadError(f"the labels of {attribute!r} must differ, and there must be some")
