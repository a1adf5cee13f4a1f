"""The statements of a batch, with the tables and the answers that they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lrm.spelling import many
from lrm.workload import Computed, Derived, Grouped, Labels, Workload

__all__ = ["Rows", "Select", "rows_by_select", "scales_by_select", "selects"]

SHOWN = 3
"""Names in the title of a statement."""

Rows = list[tuple[int, int]]
"""Ranges of positions among the linear queries of a batch."""


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


def rows_by_select(batch: Workload) -> list[tuple[Rows, bool]]:
    """Which linear queries the answers of each statement are, in the order of `selects`.

    Where a statement has none of its own, those that its derived answers are computed from, and
    True.
    """
    own: dict[tuple[int, int], Rows] = {}
    for key, _, start, stop, hidden in _tables(batch.labels):
        if not hidden:
            own.setdefault(key, []).append((start, stop))
    inputs: dict[tuple[int, int], set[int]] = {}
    for one in batch.derived:
        key = (one.label.line or 0, 0)
        if key not in own:
            inputs.setdefault(key, set()).update(_inputs(one))
    derived = {key: _ranges(sorted(places)) for key, places in inputs.items()}
    keys = sorted({key for key, *_ in _tables(batch.shown)})
    return [(own[key], False) if key in own else (derived.get(key, []), True) for key in keys]


def scales_by_select(batch: Workload) -> list[float | None]:
    """For each statement whose answers are all linear: the multiple of its queries that they are.

    A sum over bins is a count with other weights, times a scale. None where an answer is not
    linear, or where answers have several scales.
    """
    own = {key for key, _, _, _, hidden in _tables(batch.labels) if not hidden}
    scales: dict[tuple[int, int], set[float | None]] = {}
    for one in batch.derived:
        linear = isinstance(one, Computed) and one.formula.steps == (0,) and len(one.inputs) == 1
        scale = abs(float(one.inputs[0].scale)) if linear and isinstance(one, Computed) else None
        scales.setdefault((one.label.line or 0, 0), set()).add(scale)
    keys = sorted({key for key, *_ in _tables(batch.shown)})
    found = [{1.0} if key in own else scales.get(key, {None}) for key in keys]
    return [next(iter(one)) if len(one) == 1 else None for one in found]


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
