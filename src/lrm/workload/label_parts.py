"""One label, and the simple parts that the labels of a batch are made of."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

__all__ = ["Axis", "Group", "Grouped", "Label", "Named", "Numbered", "pair_text", "query_text"]

Group = tuple[tuple[str, str], ...]
"""The attributes that an answer is grouped by, each with the label of its cell."""

Axis = tuple[str, Sequence[str]]
"""A grouping attribute and the labels of its cells, a tuple or a sequence made on demand."""

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
    hidden
        Whether it is only an input of derived answers, and not shown with the others.
    """

    query: str
    axes: tuple[Axis, ...] = ()
    line: int | None = None
    hidden: bool = False

    @property
    def count(self) -> int:
        """Number of answers; `len` cannot return 2^63 or more."""
        return math.prod(len(labels) for _, labels in self.axes)

    def __len__(self) -> int:
        return self.count

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

    def __iter__(self) -> Iterator[Label]:
        for row in product(*(labels for _, labels in self.axes)):
            yield Label(self.query, tuple(zip(self.attributes, row, strict=True)), self.line)
