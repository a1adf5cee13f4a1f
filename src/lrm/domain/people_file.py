"""Domain files of version 2: people with several private tables, in YAML.

.. code-block:: yaml

    lrm-domain: 2
    people: shop                  # name of the budget: one per group of persons
    neighbours: add-remove        # or substitute; may be left out
    tables:
      - name: customers
        person: id                # the column that names the person
        rows: one                 # one row per person
        attributes: [...]         # as in version 1
      - name: orders
        person: customer
        rows: {most: 12}          # the most rows of a person that statements over orders count
        # rows: {most: 40, by: {month: 4}, groups: 10}: also at most 4 in each month, in 10 months
        csv: {delimiter: ";"}     # may be left out, as in version 1
        attributes: [...]
        # date: day               # with editions: {by: month} above: the column that dates a row
    features:                     # one value per person, of all their rows; may be left out
      - {name: n_orders, of: orders, value: count, kind: integers, low: 0, high: 20}
      - {name: spend, of: orders, value: sum, column: amount, clip: [0, 500],
         kind: bins, edges: [0, 100, 1000, .inf]}
      - {name: first_day, of: orders, value: min, column: day}
      - {name: travels, of: orders, value: exists, where: "category = 'travel'"}
    lookups: [...]                # as in version 1

A plan and a release hold such a file too, with one further section: ``level``, the table that their
statements read, or ``levels``, a list of several.
"""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Any

from lrm.domain.attribute_file import (
    ATTRIBUTE_FIELDS,
    blame,
    read_attribute,
    read_attributes,
    read_csv,
    read_lookup,
)
from lrm.domain.attributes import Attribute
from lrm.domain.core import Domain
from lrm.domain.editions import Editions
from lrm.domain.features import VALUES, Feature, flag, like
from lrm.domain.people import VERSION, Level, Levels, People
from lrm.domain.private_tables import PrivateTable
from lrm.errors import BudgetError, DomainError
from lrm.files.yaml_nodes import Node
from lrm.privacy.periods import PERIODS
from lrm.privacy.unit import GroupLimit

_TABLE = {"name", "person", "rows", "attributes"}
_FEATURE = {"name", "of", "value"}
_RULES = {"column", "where", "clip", "order"}


def read_people(root: Node, folder: pathlib.Path | None) -> People | Domain:
    """Read a people, or the level or levels of one, from the nodes of a file."""
    entries = root.fields(
        {"lrm-domain", "people", "tables"},
        {"neighbours", "editions", "features", "lookups", "level", "levels", "rest"},
    )
    entries["lrm-domain"].check_version(VERSION)
    editions = read_editions(entries["editions"], {"by"}) if "editions" in entries else None
    tables = [_table(node.at(""), editions) for node in entries["tables"].items()]
    by_name = {table.name: table for table in tables}
    nodes = entries["features"].items() if "features" in entries else []
    features = [_feature(node.at(""), by_name) for node in nodes]
    attributes = [attribute for table in tables for attribute in table.attributes]
    nodes = entries["lookups"].items() if "lookups" in entries else []
    lookups = [read_lookup(node.at(""), attributes, folder) for node in nodes]
    neighbours: Any = entries["neighbours"].text() if "neighbours" in entries else "add-remove"
    if neighbours not in {"add-remove", "substitute"}:
        entries["neighbours"].fail("expected add-remove or substitute")
    try:
        people = People(entries["people"].text(), tables, features, lookups, neighbours)
    except DomainError as error:
        root.fail(str(error))
    if "levels" not in entries and "level" not in entries:
        if "rest" in entries:
            entries["rest"].fail("only the level of a plan has cells for what is dropped")
        return people
    try:
        if "levels" in entries:
            levels = [_level(node.at(""), people, by_name) for node in entries["levels"].items()]
            domain = Levels(tuple(levels)).domain
        else:
            domain = _level(entries["level"], people, by_name).domain
        rest = entries["rest"].items() if "rest" in entries else []
        return domain.with_rest([domain.axis(node.text()) for node in rest])
    except DomainError as error:
        if str(error).startswith(root.source):
            raise
        root.fail(str(error))


def read_editions(node: Node, needed: set[str]) -> Editions:
    """The editions of a domain file: of a people, each table names its date."""
    entries = node.fields(needed, {"edition"})
    facts = {key: entry.text() for key, entry in entries.items()}
    if facts["by"] not in PERIODS:
        entries["by"].fail(f"expected {', '.join(PERIODS)}, not {facts['by']!r}")
    try:
        return Editions(**{"date": None, **facts})  # type: ignore[arg-type] # checked above
    except DomainError as error:
        blame(entries, node, str(error))


def _table(node: Node, editions: Editions | None) -> PrivateTable:
    if node.is_mapping() and not node.has("rows"):
        node.fail(
            "field 'rows' is missing: how many rows may one person have? "
            "(rows: one, or rows: {most: 40})"
        )
    entries = node.fields(_TABLE, {"csv", "date"})
    dated = None
    if "date" in entries:
        if editions is None:
            entries["date"].fail(
                "the file has no editions; declare them: editions: {by: month}, or leave date out"
            )
        dated = replace(editions, date=entries["date"].text())
    rows, most, by = entries["rows"], None, None
    if rows.is_mapping():
        limits = rows.fields({"most"}, {"by", "groups"})
        most, by = limits["most"].integer(), read_limit(limits, rows)
    elif rows.scalar() != "one":
        rows.fail("expected one, or {most: 40}")
    csv = read_csv(entries["csv"]) if "csv" in entries else None
    attributes = read_attributes(entries["attributes"], editions)
    try:
        return PrivateTable(
            entries["name"].text(),
            entries["person"].text(),
            tuple(attributes),
            most,
            csv,
            by,
            dated,
        )
    except DomainError as error:
        node.fail(str(error))


def read_limit(entries: dict[str, Node], node: Node) -> GroupLimit | None:
    """The limit by group among the fields of a domain file, if there is one."""
    if "by" not in entries:
        if "groups" in entries:
            entries["groups"].fail("groups limits the cells of an attribute; give by too")
        return None
    counts = entries["by"].pairs() if entries["by"].is_mapping() else []
    if len(counts) != 1:
        entries["by"].fail("expected one attribute and a number, such as {month: 4}")
    ((attribute, most),) = counts
    groups = entries["groups"].integer() if "groups" in entries else None
    try:
        return GroupLimit(attribute, most.integer(), groups)
    except BudgetError as error:
        node.fail(str(error))


def _feature(node: Node, tables: dict[str, PrivateTable]) -> Feature:
    entries = node.fields(_FEATURE, _RULES | ATTRIBUTE_FIELDS)
    name, of = entries["name"].text(), entries["of"].text()
    value: Any = entries["value"].text()
    node = node.at(f"feature {name!r}")
    if value not in VALUES:
        entries["value"].fail(f"expected one of {', '.join(VALUES)}, not {value!r}")
    if of not in tables:
        entries["of"].fail(f"no table is called {of!r}; the tables are {', '.join(tables)}")
    texts = {key: entries[key].text() for key in ("column", "where", "order") if key in entries}
    clip = None
    if "clip" in entries:
        ends = [item.number() for item in entries["clip"].items()]
        if len(ends) != 2:
            entries["clip"].fail("expected [least, most]")
        clip = (ends[0], ends[1])
    try:
        attribute = _values(node, name, value, tables[of], texts.get("column"))
        return Feature(
            attribute, of, value, texts.get("column"), texts.get("where"), clip, texts.get("order")
        )
    except DomainError as error:
        if str(error).startswith(node.source):
            raise
        node.fail(str(error).removeprefix(f"feature {name!r}: "))


def _values(
    node: Node, name: str, value: str, table: PrivateTable, column: str | None
) -> Attribute:
    """The declared values of a feature, or those that follow from its column."""
    if value == "exists":
        return flag(name)
    if node.has("kind"):
        return read_attribute(node, _FEATURE | _RULES, rules=False, editions=table.editions)
    source = None if column is None else table.attribute(column)
    if column is not None and source is None:
        node.fail(f"table {table.name!r} has no attribute {column!r}")
    if value in {"min", "max", "first", "last"} and source is not None:
        return like(source, name)
    return node.fail(
        "its values are not declared; add kind: integers, low and high, from public knowledge"
    )


def _level(node: Node, people: People, tables: dict[str, PrivateTable]) -> Level:
    entries = node.fields({"columns"}, {"events", "features"})
    nodes = entries["features"].items() if "features" in entries else []
    try:
        return Level(
            people,
            entries["events"].text() if "events" in entries else None,
            tuple(item.text() for item in entries["columns"].items()),
            tuple(_feature(item.at(""), tables) for item in nodes),
        )
    except DomainError as error:
        if str(error).startswith(node.source):
            raise
        node.fail(str(error))
