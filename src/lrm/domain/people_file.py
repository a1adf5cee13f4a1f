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
        csv: {delimiter: ";"}     # may be left out, as in version 1
        attributes: [...]
    features:                     # one value per person, of all their rows; may be left out
      - {name: n_orders, of: orders, value: count, kind: integers, low: 0, high: 20}
      - {name: spend, of: orders, value: sum, column: amount, clip: [0, 500],
         kind: bins, edges: [0, 100, 1000, .inf]}
      - {name: first_day, of: orders, value: min, column: day}
      - {name: travels, of: orders, value: exists, where: "category = 'travel'"}
    lookups: [...]                # as in version 1

A plan and a release hold such a file too, with one further section, ``level``: the table that their
statements read.
"""

from __future__ import annotations

import pathlib
from typing import Any

from lrm.domain.attribute_file import (
    ATTRIBUTE_FIELDS,
    read_attribute,
    read_attributes,
    read_csv,
    read_lookup,
)
from lrm.domain.attributes import Attribute
from lrm.domain.core import Domain
from lrm.domain.people import VALUES, VERSION, Feature, Level, People, PrivateTable, flag, like
from lrm.errors import DomainError
from lrm.files.yaml_nodes import Node

_TABLE = {"name", "person", "rows", "attributes"}
_FEATURE = {"name", "of", "value"}
_RULES = {"column", "where", "clip", "order"}


def read_people(root: Node, folder: pathlib.Path | None) -> People | Domain:
    """Read a people, or the level of one, from the nodes of a file."""
    entries = root.fields(
        {"lrm-domain", "people", "tables"}, {"neighbours", "features", "lookups", "level"}
    )
    entries["lrm-domain"].check_version(VERSION)
    tables = [_table(node.at("")) for node in entries["tables"].items()]
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
    return _level(entries["level"], people, by_name) if "level" in entries else people


def _table(node: Node) -> PrivateTable:
    if node.is_mapping() and not node.has("rows"):
        node.fail(
            "field 'rows' is missing: how many rows may one person have? "
            "(rows: one, or rows: {most: 40})"
        )
    entries = node.fields(_TABLE, {"csv"})
    rows, most = entries["rows"], None
    if rows.is_mapping():
        most = rows.fields({"most"}, set())["most"].integer()
    elif rows.scalar() != "one":
        rows.fail("expected one, or {most: 40}")
    csv = read_csv(entries["csv"]) if "csv" in entries else None
    attributes = read_attributes(entries["attributes"])
    try:
        return PrivateTable(
            entries["name"].text(), entries["person"].text(), tuple(attributes), most, csv
        )
    except DomainError as error:
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
        return read_attribute(node, _FEATURE | _RULES, rules=False)
    source = None if column is None else table.attribute(column)
    if column is not None and source is None:
        node.fail(f"table {table.name!r} has no attribute {column!r}")
    if value in {"min", "max", "first", "last"} and source is not None:
        return like(source, name)
    return node.fail(
        "its values are not declared; add kind: integers, low and high, from public knowledge"
    )


def _level(node: Node, people: People, tables: dict[str, PrivateTable]) -> Domain:
    entries = node.fields({"columns"}, {"events", "features"})
    nodes = entries["features"].items() if "features" in entries else []
    try:
        return Level(
            people,
            entries["events"].text() if "events" in entries else None,
            tuple(item.text() for item in entries["columns"].items()),
            tuple(_feature(item.at(""), tables) for item in nodes),
        ).domain
    except DomainError as error:
        if str(error).startswith(node.source):
            raise
        node.fail(str(error))
