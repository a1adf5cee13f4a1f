"""Public knowledge about a table, for consistent answers: tables published elsewhere.

A known table is an SQL statement over the domain, the counts that it displays, and where they
were published. A file has several of them:

.. code-block:: yaml

    lrm-known: 1
    tables:
      - sql: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
        rows: [[f, 300], [m, 200]]
        source: Yearbook 2024, table 3

Each row has the labels of a group, as the statement displays them, and its count. Groups that
have no row are not known.
"""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lrm.errors import UsageError
from lrm.files.yaml_nodes import Node, parse, read_text
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.sql import sql
from lrm.queries.sql.impossible import impossible_queries
from lrm.queries.workload import Workload
from lrm.releases.consistent import KnownCounts

VERSION = 1
"""Version of the files of known tables."""


@dataclass(frozen=True, init=False)
class KnownTable:
    """Counts that were published exactly elsewhere.

    Never pass counts that are not public: whoever sees the consistent answers sees them.

    Parameters
    ----------
    sql
        A statement of counts over the columns of the domain.
    rows
        For each group its labels, as the statement displays them, and its count.
    source
        Where the counts were published; pages and files state it.

    Examples
    --------
    >>> KnownTable("SELECT COUNT(*) AS n FROM people", [[500]], "Yearbook 2024, table 1").rows
    (((), 500.0),)
    """

    sql: str
    rows: tuple[tuple[tuple[str, ...], float], ...]
    source: str

    def __init__(self, sql: str, rows: Iterable[Sequence[object]], source: str) -> None:
        object.__setattr__(self, "sql", sql)
        object.__setattr__(self, "rows", tuple(self._row(row) for row in rows))
        object.__setattr__(self, "source", source)
        if not (isinstance(sql, str) and sql.strip()):
            raise UsageError("a known table needs the SQL statement of its counts")
        if not (isinstance(source, str) and source.strip()):
            raise UsageError(
                "a known table needs its source, such as 'Yearbook 2024, table 3': only counts "
                "that are public may be used"
            )
        if not self.rows:
            raise UsageError("a known table needs rows: the labels of a group, and its count")

    @staticmethod
    def _row(row: Sequence[object]) -> tuple[tuple[str, ...], float]:
        *labels, count = row
        is_number = isinstance(count, int | float | np.number) and not isinstance(count, bool)
        if not is_number or not math.isfinite(float(count)) or float(count) < 0:  # type: ignore[arg-type]
            raise UsageError(
                f"the last value of a row of a known table must be a count from 0 on, not {count!r}"
            )
        return tuple(_label(label) for label in labels), float(count)  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """What is known, and from where, as a sentence."""
        counts = "1 count is" if len(self.rows) == 1 else f"{len(self.rows):,} counts are"
        return f"{counts} known from: {self.source}."


def _label(label: object) -> str:
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def read_known(path: str | os.PathLike[str]) -> tuple[KnownTable, ...]:
    """Read a file of known tables; errors name its lines."""
    path = pathlib.Path(path)
    root = parse(read_text(path), path.name, UsageError)
    entries = root.fields({"lrm-known", "tables"}, set())
    entries["lrm-known"].check_version(VERSION)
    return tuple(_table(node) for node in entries["tables"].items())


def _table(node: Node) -> KnownTable:
    fields = node.fields({"sql", "rows", "source"}, set())
    rows = [row.scalars() for row in fields["rows"].items()]
    try:
        return KnownTable(fields["sql"].text(), rows, fields["source"].text())
    except UsageError as error:
        node.fail(str(error))


def known_counts(planned: Workload, tables: Iterable[KnownTable]) -> list[KnownCounts]:
    """Known tables and impossible combinations as queries over the cells of a planned batch."""
    tables, domain = tuple(tables), planned.domain
    if domain is None:
        if tables:
            raise UsageError("known tables are SQL statements: they need a release with a domain")
        return []
    facts = [_counts(table, planned) for table in tables]
    empty = [_over_cells(queries, planned) for queries in impossible_queries(domain)]
    return [*facts, *(KnownCounts(queries, np.zeros(1)) for queries in empty)]


def known_words(planned: Workload, tables: Iterable[KnownTable]) -> str:
    """What was known from elsewhere and its sources; empty for nothing."""
    sentences = [table.words for table in tables]
    if planned.domain is not None and planned.domain.impossible:
        sentences.append(f"Declared impossible: {'; '.join(planned.domain.impossible)}.")
    return " ".join(sentences)


def _counts(table: KnownTable, planned: Workload) -> KnownCounts:
    batch = sql(table.sql, planned.domain)  # type: ignore[arg-type] # it has one: see known_counts
    if batch.derived or len({label.query for label in batch.labels}) != 1:
        raise UsageError(
            f"the known table {table.sql!r} must be one statement that displays one count: "
            "its groups, and COUNT(*)"
        )
    places = {tuple(text for _, text in label.group): row for row, label in enumerate(batch.labels)}
    values = np.full(len(places), np.nan)
    for labels, count in table.rows:
        if labels not in places:
            groups = ", ".join(repr(list(group)) for group in list(places)[:3])
            raise UsageError(
                f"the known table {table.sql!r} has no group {list(labels)!r}; its groups are "
                f"{groups}{', …' if len(places) > 3 else ''}"
            )
        values[places[labels]] = count
    return KnownCounts(_over_cells(batch, planned), values)


def _over_cells(batch: Workload, planned: Workload) -> Workload:
    """Queries over all cells of a planned batch, as products or as a list as this has them."""
    domain = planned.domain
    if domain is not None:
        batch = batch.over_all_rows(domain.rest_axes)
    if planned.products is None and batch.products is not None:
        return Workload(SparseMap(sp.csr_array(batch.queries.sparse())))
    return batch
