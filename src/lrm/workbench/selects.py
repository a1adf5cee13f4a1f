"""The statements of a batch, with the tables and the answers that they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lrm.spelling import many
from lrm.workload import Computed, Derived, Grouped, Labels, Workload

__all__ = ["Part", "Rows", "Select", "parts_by_select", "scale_of", "selects"]

SHOWN = 3
"""Names in the title of a statement."""

Rows = list[tuple[int, int]]
"""Ranges of positions among the linear queries of a batch."""


class Part(NamedTuple):
    """Linear queries, and the multiple of them that some answers of a statement are."""

    rows: Rows
    scale: float


@dataclass(frozen=True)
class Select:
    """One SELECT, or one entry of a YAML batch.

    Parameters
    ----------
    line
        Where it stands in the text; 0 where it has no line.
    tables
        Each query with what it is grouped by, and its number of answers.
    """

    line: int
    tables: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        """Number of answers."""
        return sum(size for _, size in self.tables)

    @property
    def title(self) -> str:
        """The names of its tables, where there are few of them."""
        names = list(dict.fromkeys(name for name, _ in self.tables))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return "; ".join(names[:SHOWN]) + more

    @property
    def facts(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        listed = [f"{name}: {many(size, 'answer', 'answers')}" for name, size in self.tables[:50]]
        return {"line": self.line, "title": self.title, "count": self.count, "tables": listed}


def selects(shown: Labels) -> list[Select]:
    """Group the answers that a batch shows by the line of their statement, in its order.

    >>> two = [Grouped("n", (("sex", ("f", "m")),), line=1), Grouped("total", line=3)]
    >>> [(one.title, one.count) for one in selects(Labels(two))]
    [('n by sex', 2), ('total', 1)]
    """
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for key, title, start, stop, _ in _tables(shown):
        found.setdefault(key, []).append((title, stop - start))
    return [Select(key[0], tuple(found[key])) for key in sorted(found)]


def _tables(labels: Labels) -> Iterator[tuple[tuple[int, int], str, int, int, bool]]:
    """Each part: line (and number, where it has none), title, positions, whether it is hidden."""
    start = 0
    for number, part in enumerate(labels.tables()):
        stop = start + len(part)
        if isinstance(part, Grouped):
            by = f" by {', '.join(part.attributes)}" if part.attributes else ""
            key = (part.line, 0) if part.line else (0, number)
            yield key, f"{part.query}{by}", start, stop, part.hidden
        else:
            more = " …" if len(part) > 1 else ""
            yield (0, number), labels[start].query + more, start, stop, False
        start = stop


def parts_by_select(batch: Workload) -> list[tuple[list[Part], bool]]:
    """Which linear queries the answers of each statement are, in the order of `selects`.

    Linear answers are rows, each times a scale: a sum over bins is a count with other weights,
    times the largest of them. Where a statement has no linear answer, the queries that its derived
    answers are computed from, and True.
    """
    linear: dict[tuple[int, int], list[Part]] = {}
    for key, _, start, stop, hidden in _tables(batch.labels):
        if not hidden:
            linear.setdefault(key, []).append(Part([(start, stop)], 1.0))
    inputs: dict[tuple[int, int], set[int]] = {}
    for one in batch.derived:
        key = (one.label.line or 0, 0)
        scale = scale_of(one)
        rows = set(_inputs(one))
        if scale is None:
            inputs.setdefault(key, set()).update(rows)
        else:
            linear.setdefault(key, []).append(Part(_ranges(sorted(rows)), scale))
    derived = {key: [Part(_ranges(sorted(places)), 1.0)] for key, places in inputs.items()}
    keys = sorted({key for key, *_ in _tables(batch.shown)})
    return [(linear[key], False) if key in linear else (derived[key], True) for key in keys]


def scale_of(one: Derived) -> float | None:
    """The multiple of one query that an answer is, perhaps with a constant added; None for others.

    >>> from lrm.workload import Block, Formula
    >>> twice = Computed(Grouped("n"), Formula((0, -2.0, "*", 5.0, "+")), (Block(0, (), 3.0),))
    >>> scale_of(twice)
    6.0
    """
    if not isinstance(one, Computed) or one.formula.core.steps != (0,):
        return None
    scale = float(one.inputs[0].scale)
    for step, constant in one.formula.tail:
        if step not in {"+", "-", "*", "/"}:
            return None
        scale = scale * constant if step == "*" else scale / constant if step == "/" else scale
    return abs(scale)


def _inputs(one: Derived) -> Iterator[int]:
    """The linear queries that derived answers are computed from."""
    if isinstance(one, Computed):
        for block in one.inputs:
            yield from block.rows(one.shape).tolist()
    else:
        yield from one.totals.rows((*one.shape, len(one.lows))).tolist()


def _ranges(places: list[int]) -> Rows:
    """Positions in ascending order as ranges."""
    if not places:
        return []
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    parts = np.split(np.array(places), cuts)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]
