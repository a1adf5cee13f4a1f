"""The statements of a batch with the tables and the answers that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lrm.showing.spelling import many
from lrm.workload import Grouped, Labels

__all__ = ["Select", "selects"]

SHOWN = 3
"""Names in the title of a statement."""


@dataclass(frozen=True)
class Select:
    """One SELECT, or one entry of a YAML batch.

    Parameters
    ----------
    line
        Where it stands in the text; 0 where it has no line.
    tables
        Each query with what it is grouped by, and its number of answers.
    start, stop
        Which answers of the batch are its own.
    """

    line: int
    tables: tuple[tuple[str, int], ...]
    start: int
    stop: int

    @property
    def count(self) -> int:
        """Number of answers."""
        return self.stop - self.start

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


def selects(labels: Labels) -> list[Select]:
    """Group the answers of a batch by the line of their statement.

    >>> two = [Grouped("n", (("sex", ("f", "m")),), line=1), Grouped("total", line=3)]
    >>> [(one.title, one.start, one.stop) for one in selects(Labels(two))]
    [('n by sex', 0, 2), ('total', 2, 3)]
    """
    found: list[Select] = []
    start = 0
    for part in labels.tables():
        stop = start + len(part)
        if isinstance(part, Grouped):
            by = f" by {', '.join(part.attributes)}" if part.attributes else ""
            line, title = part.line or 0, f"{part.query}{by}"
        else:
            line, title = 0, labels[start].query + (" …" if len(part) > 1 else "")
        last = found[-1] if found else None
        if last is not None and line and last.line == line:
            found[-1] = Select(line, (*last.tables, (title, stop - start)), last.start, stop)
        else:
            found.append(Select(line, ((title, stop - start),), start, stop))
        start = stop
    return found
