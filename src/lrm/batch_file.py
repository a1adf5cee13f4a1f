"""Batch files: the questions, in YAML or in SQL.

.. code-block:: yaml

    lrm-batch: 1
    queries:
      - {kind: total, importance: 5}
      - {kind: marginals, of: [[state], [state, age]], name: cross}    # or ways: 2
      - {kind: ranges, attribute: age, of: [[0, 17], [18, 64]], by: [state], name: groups}
      - {kind: prefix, attribute: income, where: "age >= 18", name: cumulated}
      - kind: sql
        text: |
          SELECT state, COUNT(*) AS n FROM visits GROUP BY state;
          SELECT SUM(age) AS years FROM visits;
        importance: {n: 2, years: 0.5}     # by name; or one number for all

A name is ``q1``, ``q2`` … by the position in the list where none is given. Importance says
how much the error of a query counts for when noise is shared out; it changes no answer.
"""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.batches import marginals, prefix, ranges, total, where, with_importance
from lrm.errors import SqlError, UsageError, WorkloadError
from lrm.sql import compile_sql
from lrm.workload import TakenLabels, Workload
from lrm.workload.families import stack
from lrm.yaml_nodes import Node, parse, read_text

if TYPE_CHECKING:
    from lrm.domain import Domain

__all__ = ["parse_batch", "read_batch"]

VERSION = 1
"""Version of the format that this code reads."""

_SHARED = {"name", "importance", "where"}
_KINDS: dict[str, tuple[set[str], set[str]]] = {
    "total": (set(), _SHARED),
    "marginals": (set(), {"of", "ways", *_SHARED}),
    "ranges": ({"attribute"}, {"of", "by", *_SHARED}),
    "prefix": ({"attribute"}, {"by", *_SHARED}),
    "sql": ({"text"}, {"importance"}),
}


def read_batch(path: str | pathlib.Path, domain: Domain) -> Workload:
    """Read a batch from a ``.sql`` or ``.yaml`` file; errors name the line."""
    path = pathlib.Path(path)
    text = read_text(path)
    if path.suffix.lower() != ".sql":
        return parse_batch(text, domain, path.name)
    try:
        return compile_sql(text, domain)
    except SqlError as error:
        raise SqlError(f"{path.name} {error}") from None


def parse_batch(text: str, domain: Domain, source: str = "batch.yaml") -> Workload:
    """Read a batch from YAML text.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> domain = Domain([Integers("age", 0, 9)])
    >>> batch = parse_batch('''
    ... lrm-batch: 1
    ... queries:
    ...   - {kind: total, importance: 4}
    ...   - {kind: ranges, attribute: age, of: [[0, 4], [5, 9]]}
    ... ''', domain)
    >>> batch.names, batch.importance
    (('q1', 'q2[age=0..4]', 'q2[age=5..9]'), array([4., 1., 1.]))
    """
    root = parse(text, source, WorkloadError)
    entries = root.fields({"lrm-batch", "queries"}, set())
    version = entries["lrm-batch"].integer()
    if version != VERSION:
        hint = "; a newer lrm wrote it" if version > VERSION else ""
        entries["lrm-batch"].fail(f"expected version {VERSION}, not {version}{hint}")
    parts: list[Workload] = []
    taken = TakenLabels()
    for number, item in enumerate(entries["queries"].items(), start=1):
        node = item.at(f"query {number}")
        try:
            parts.append(_part(node, number, domain))
        except UsageError as error:
            if str(error).startswith(f"{source} "):
                raise
            node.fail(str(error))
        for part in parts[-1].labels.parts:
            clash = taken.add(part)
            if clash is not None:
                node.fail(f"duplicate query name: {clash.name!r}; give this query its own")
    if not parts:
        entries["queries"].fail("expected at least one query")
    return stack(parts)


def _part(node: Node, number: int, domain: Domain) -> Workload:
    anything = {"kind"}.union(*(one | two for one, two in _KINDS.values()))
    kind = node.fields({"kind"}, anything)["kind"]
    if kind.text() not in _KINDS:
        kind.fail(f"expected {', '.join(_KINDS)}, not {kind.text()!r}")
    required, optional = _KINDS[kind.text()]
    entries = node.fields({"kind", *required}, optional)
    name = entries["name"].text() if "name" in entries else f"q{number}"
    try:
        part = _build(kind.text(), name, entries, domain)
        if "where" in entries:
            part = where(part, entries["where"].text())
    except SqlError as error:
        entries.get("text", entries.get("where", node)).fail(str(error))
    part = replace(part, labels=part.labels.at_line(node.line))
    return _weighted(part, entries["importance"]) if "importance" in entries else part


def _build(kind: str, name: str, entries: dict[str, Node], domain: Domain) -> Workload:
    if kind == "sql":
        return compile_sql(entries["text"].text(), domain)
    if kind == "total":
        return total(domain, name=name)
    if kind == "marginals":
        if ("of" in entries) == ("ways" in entries):
            entries["kind"].fail("marginals need either of (lists of attributes) or ways")
        if "ways" in entries:
            return marginals(domain, entries["ways"].integer(), name=name)
        ways = [[one.text() for one in way.items()] for way in entries["of"].items()]
        return marginals(domain, ways, name=name)
    by = [item.text() for item in entries["by"].items()] if "by" in entries else []
    attribute = entries["attribute"].text()
    if kind == "prefix":
        return prefix(domain, attribute, by=by, name=name)
    bounds = [_pair(item) for item in entries["of"].items()] if "of" in entries else None
    return ranges(domain, attribute, bounds, by=by, name=name)


def _pair(node: Node) -> tuple[Any, Any]:
    pair = [item.scalar() for item in node.items()]
    if len(pair) != 2:
        node.fail(f"expected a pair [low, high], not {len(pair)} values")
    return pair[0], pair[1]


def _weighted(part: Workload, node: Node) -> Workload:
    """Give a part its importance: one number, or numbers by a query's or a row's name."""
    if not node.is_mapping():
        return with_importance(part, _importance(node))
    known = {text for label in part.labels for text in (label.name, label.query)}
    given = {key: _importance(value) for key, value in node.fields(set(), known).items()}
    values = [given.get(label.name, given.get(label.query, 1.0)) for label in part.labels]
    return replace(part, importance=np.array(values))


def _importance(node: Node) -> float:
    value = float(node.number())
    if not 0 < value < float("inf"):
        node.fail(f"importance must be a finite number above 0, not {value}")
    return value
