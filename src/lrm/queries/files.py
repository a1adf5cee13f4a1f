"""What is accepted as a batch: SQL or YAML over a domain, in files too, or a matrix of weights.

In YAML:

.. code-block:: yaml

    lrm-batch: 1
    queries:
      - {kind: total, importance: 5, within: 50}
      - {kind: marginals, of: [[state], [state, age]], name: cross}    # or ways: [1, 2]
      - {kind: ranges, attribute: age, of: [[0, 17], [18, 64]], by: [state], name: groups}
      - {kind: prefix, attribute: income, where: "age >= 18", name: cumulated}
      - {kind: products, of: [{state: identity, age: prefix}, {age: [1, 1, 0]}], name: terms}
      - kind: sql
        text: |
          SELECT state, COUNT(*) AS n FROM visits GROUP BY state;
          SELECT SUM(age) AS years FROM visits;
        importance: {n: 2, years: 0.5}     # by name; or one number for all

A name is ``q1``, ``q2`` … by the position in the list where none is given. Importance says
how much the error of a query counts for when noise is shared out; it changes no answer. ``within``
says how near answers must be (``50``, ``5 % of 20000``, or by name), and ``expected`` their size.
"""

from __future__ import annotations

import os
import pathlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.domain import Domain
from lrm.errors import SqlError, UsageError, WorkloadError
from lrm.files.yaml_nodes import Node, parse, read_text
from lrm.queries.builders import (
    marginals,
    prefix,
    products,
    ranges,
    total,
    where,
    with_importance,
)
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.remarks import tolerance
from lrm.queries.sql import sql
from lrm.queries.workload import Computed, TakenLabels, Workload, check_listable
from lrm.queries.workload.csv_text import parse_csv
from lrm.queries.workload.families import stack
from lrm.queries.workload.file import read_workload
from lrm.queries.workload.suspicion import warn_of_records

if TYPE_CHECKING:
    from lrm.domain.people import Declared

VERSION = 1
"""Version of the format that this code reads."""

_SHARED = {"name", "importance", "where", "within", "expected"}
_KINDS: dict[str, tuple[set[str], set[str]]] = {
    "total": (set(), _SHARED),
    "marginals": (set(), {"of", "ways", *_SHARED}),
    "ranges": ({"attribute"}, {"of", "by", *_SHARED}),
    "prefix": ({"attribute"}, {"by", *_SHARED}),
    "products": ({"of"}, _SHARED),
    "sql": ({"text"}, {"importance", "within", "expected"}),
}


_WRITTEN = (".sql", ".yaml", ".yml")
"""Endings of files whose queries are written over the attributes of a domain."""

_YAML = re.compile(r"\s*(#[^\n]*\n\s*|---\s*\n)*[\"']?lrm-batch\b")
_SQL = re.compile(
    r"\s*(--[^\n]*\n\s*|/\*.*?\*/\s*)*(\(\s*)*(select|with)\b", re.DOTALL | re.IGNORECASE
)


def as_batch(queries: Any, domain: Declared | None = None) -> Workload:
    """Take a workload, a matrix or SQL for a batch of queries.

    Parameters
    ----------
    queries
        A `Workload`, as every builder returns it; anything that one can be made of: an array, a
        SciPy sparse matrix, a frame; or the text of SQL statements, which need ``domain``.
    domain
        The domain whose cells are counted. A workload that has one keeps it.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> domain = Domain([Integers("age", 0, 1)], "people")
    >>> as_batch("SELECT COUNT(*) AS n FROM people GROUP BY age", domain).names
    ('n[age=0]', 'n[age=1]')
    >>> as_batch([[1, 1]], domain).domain == domain
    True
    """
    if isinstance(queries, os.PathLike) or (isinstance(queries, str) and len(queries.split()) == 1):
        raise WorkloadError(
            f"expected queries, got the file name {str(queries)!r}; "
            "read the file with lrm.read_batch"
        )
    if isinstance(queries, str):
        if domain is None:
            raise WorkloadError(
                "SQL asks about attributes, which a domain declares; give the domain too "
                "(domain=), or compile the text with lrm.sql(text, domain)"
            )
        return sql(queries, domain)
    domain = _single(domain, "a matrix of queries")
    batch = queries if isinstance(queries, Workload) else Workload(queries)
    if hasattr(queries, "columns") and isinstance(batch.queries, DenseMap):
        warn_of_records(batch.queries.dense(), "the frame")
    if domain is None or batch.domain == domain:
        return batch
    if batch.domain is not None:
        raise WorkloadError("the queries were written for a domain other than the one given")
    is_declared = batch.shape[1] == domain.declared.size
    return replace(batch, domain=domain.declared if is_declared else domain)


def read_batch(source: str | os.PathLike[str], domain: Declared | None = None) -> Workload:
    """Read a batch of queries from a file; errors name the line.

    Parameters
    ----------
    source
        A ``.sql`` or ``.yaml`` file of queries over the attributes of a domain; a file with one
        row per query and one column per cell (``.csv``, ``.npy``, ``.npz``, ``.parquet``); or a
        family, such as ``"prefix:64"``.
    domain
        The domain. A matrix or a family needs none; with one, its plan can be released on a table.

    Examples
    --------
    >>> read_batch("prefix:64")
    <Workload: 64 queries over 64 cells (prefix)>
    """
    path = pathlib.Path(source)
    if path.suffix.lower() not in _WRITTEN:
        matrix = read_workload(source)
        single = _single(domain, str(source))
        return matrix if single is None else replace(matrix, domain=single)
    text = read_text(path)
    needed = _needed(domain, str(source))
    if path.suffix.lower() == ".sql":
        return _statements(text, needed, path.name)
    return parse_batch(text, _one_table(needed, path.name), path.name)


def parse_questions(text: str, domain: Declared | None, source: str) -> Workload:
    r"""Read a batch from text in SQL, YAML or CSV, recognised by how it begins.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> domain = Domain([Integers("age", 0, 9)])
    >>> parse_questions("-- all\nSELECT COUNT(*) AS n FROM people", domain, "-").names
    ('n',)
    >>> parse_questions("1,1,0\n0,1,1", None, "-").shape
    (2, 3)
    """
    if _SQL.match(text):
        return _statements(text, _needed(domain, source), source)
    if _YAML.match(text):
        return parse_batch(text, _one_table(_needed(domain, source), source), source)
    matrix = parse_csv(text, source)
    single = _single(domain, source)
    return matrix if single is None else replace(matrix, domain=single)


def _single(domain: Declared | None, source: str) -> Domain | None:
    return None if domain is None else _one_table(domain, source)


def _one_table(domain: Declared, source: str) -> Domain:
    """Refuse a people, whose tables only SQL can name."""
    if isinstance(domain, Domain):
        return domain
    raise UsageError(
        f"{source} is about the cells of one table, and the domain declares several tables of "
        f"{domain.name!r}; write the queries in SQL"
    )


def _needed(domain: Declared | None, source: str) -> Declared:
    if domain is None:
        raise UsageError(
            f"{source} asks about attributes, which a domain file declares; add --domain "
            "domain.yaml, or domain= in Python (`lrm domain init TABLE` drafts one)"
        )
    return domain


def _statements(text: str, domain: Declared, source: str) -> Workload:
    try:
        return sql(text, domain)
    except SqlError as error:
        raise error.in_file(source) from None


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
    entries["lrm-batch"].check_version(VERSION)
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
        for block in (
            *parts[-1].labels.blocks,
            *(derived_answer.label for derived_answer in parts[-1].derived),
        ):
            clash = taken.add(block)
            if clash is not None:
                node.fail(f"duplicate query name: {clash.name!r}; give this query its own")
    if not parts:
        entries["queries"].fail("expected at least one query")
    return stack(parts)


def _part(node: Node, number: int, domain: Domain) -> Workload:
    anything = {"kind"}.union(*(part_entry | two for part_entry, two in _KINDS.values()))
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
    derived = tuple(
        replace(entry, label=replace(entry.label, line=node.line)) for entry in part.derived
    )
    statements = tuple(replace(part_entry, line=node.line) for part_entry in part.statements)
    labels = part.labels.at_line(node.line)
    part = replace(part, labels=labels, derived=derived, statements=statements)
    if "within" in entries or "expected" in entries:
        part = _with_tolerances(part, entries)
    return _weighted(part, entries["importance"]) if "importance" in entries else part


def _build(kind: str, name: str, entries: dict[str, Node], domain: Domain) -> Workload:
    if kind == "sql":
        return sql(entries["text"].text(), domain)
    if kind == "total":
        return total(domain, name=name)
    if kind == "marginals":
        return marginals(domain, _ways(entries), name=name)
    if kind == "products":
        return _products(name, entries["of"], domain)
    by = [item.text() for item in entries["by"].items()] if "by" in entries else []
    attribute = entries["attribute"].text()
    if kind == "prefix":
        return prefix(domain, attribute, by=by, name=name)
    bounds = [_pair(item) for item in entries["of"].items()] if "of" in entries else None
    return ranges(domain, attribute, bounds, by=by, name=name)


def _products(name: str, node: Node, domain: Domain) -> Workload:
    """Terms by attribute names: words, or lists of weights."""
    terms: list[dict[str, Any]] = [
        {key: _factor(value) for key, value in item.fields(set(), set(domain.names)).items()}
        for item in node.items()
    ]
    names = [name] if len(terms) == 1 else [f"{name}.{i + 1}" for i in range(len(terms))]
    return products(domain, terms, names=names)


def _factor(node: Node) -> str | list[Any]:
    if not node.is_sequence():
        return node.text()
    return [
        [float(number_node.number()) for number_node in item.items()]
        if item.is_sequence()
        else float(item.number())
        for item in node.items()
    ]


def _ways(entries: dict[str, Node]) -> list[int] | list[list[str]]:
    """Numbers of attributes, or the attributes of each table."""
    if ("of" in entries) == ("ways" in entries):
        entries["kind"].fail("marginals need either of (lists of attributes) or ways")
    if "of" in entries:
        return [[name_node.text() for name_node in way.items()] for way in entries["of"].items()]
    node = entries["ways"]
    return [item.integer() for item in node.items()] if node.is_sequence() else [node.integer()]


def _pair(node: Node) -> tuple[Any, Any]:
    pair = [item.scalar() for item in node.items()]
    if len(pair) != 2:
        node.fail(f"expected a pair [low, high], not {len(pair)} values")
    return pair[0], pair[1]


def _weighted(part: Workload, node: Node) -> Workload:
    """Give a part its importance: one number, or numbers by a query's or a row's name."""
    if not node.is_mapping():
        return with_importance(part, _above_zero("importance", node))
    check_listable(part)
    known = {text for label in part.shown for text in (label.name, label.query)}
    importances = {
        key: _above_zero("importance", value) for key, value in node.fields(set(), known).items()
    }
    values = np.array(
        [importances.get(label.name, importances.get(label.query, 1.0)) for label in part.labels]
    )
    for derived_answer in part.derived:  # a derived answer is as good as its inputs
        if derived_answer.label.query in importances:
            for rows in derived_answer.input_rows():
                values[rows] = np.maximum(values[rows], importances[derived_answer.label.query])
    return replace(part, importance=values)


def _with_tolerances(part: Workload, entries: dict[str, Node]) -> Workload:
    """Give the tables of a part their tolerances and the expected size of their answers."""
    expected = _above_zero("expected", entries["expected"]) if "expected" in entries else None
    limits: dict[str, Node] = {}
    if "within" in entries:
        node = entries["within"]
        known = {name for table in part.tables for name in table.answers}
        limits = node.fields(set(), known) if node.is_mapping() else {"": node}
    tables = []
    rates = {
        answer.label.query if answer.label.query in limits else ""
        for answer in part.derived
        if isinstance(answer, Computed) and "/" in answer.formula.steps
    }
    for table in part.tables:
        size = table.expected if expected is None else expected
        within = dict(table.within)
        for name, limit in limits.items():
            if name and name not in table.answers:
                continue
            try:
                within[name] = tolerance(str(limit.scalar()), None if name in rates else size)
            except WorkloadError as error:
                limit.fail(str(error))
        tables.append(replace(table, expected=size, within=tuple(within.items())))
    return replace(part, statements=tuple(tables))


def _above_zero(name: str, node: Node) -> float:
    value = float(node.number())
    if not 0 < value < float("inf"):
        node.fail(f"{name} must be a finite number above 0, not {value}")
    return value
