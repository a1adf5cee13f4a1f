"""Domain files: the public facts of a table, in YAML.

.. code-block:: yaml

    lrm-domain: 1
    table: visits                 # the name that SQL batches use; may be left out
    unit:                         # or `unit: row`: each row is its own unit
      column: patient_id
      max_rows: 3
      neighbours: add-remove      # or substitute; add-remove where left out
      by: {day: 1}                # also the most rows in each cell of an attribute,
      groups: 2                   # and the most of its cells; both may be left out
    csv: {delimiter: ";", quote: '"', encoding: latin-1, decimal: ",",    # may be left out
          dates: "%d.%m.%Y", true: [ja], false: [nein]}
    attributes:
      - {name: state, kind: categories, values: [NY, NJ], null: drop, outside: cell,
         spellings: {NY: [N.Y., new york]}}
      - {name: age, kind: integers, low: 0, high: 99, width: 1, null: cell, outside: drop}
      - {name: income, kind: bins, edges: [0, 1000, .inf], null: drop, nan: cell, outside: cell}
      - {name: stay, kind: numbers, knots: [0, 7, 30, 200], null: drop, nan: drop, outside: clip}
      - {name: day, kind: dates, start: 2024-01-01, end: 2024-12-31, by: month, null: drop,
         outside: drop}
    editions: {by: month, date: day}  # may be left out; an attribute then has `start: edition`
    lookups:                      # public tables, may be left out; or `csv: FILE` for columns, rows
      - {name: regions, key: state, columns: [region], rows: [[NY, east], [NJ, east]]}
    impossible:                   # SQL conditions that no row can satisfy, may be left out
      - state = 'NJ' AND age < 3

What happens to NULL and to values outside must be declared for each attribute, ``drop`` or ``cell``
(see `lrm.domain.attributes`); integers and bins may say it of NaN too, which is dropped by default.
Bins may have ``representatives``, one number per cell, by which sums count their rows.
Numbers by ``knots`` are for sums and averages without binning error (see `lrm.domain.Numbers`).
Section ``csv`` says how the table's CSV files are written, each field of it where that differs
from the default (see `lrm.domain.CsvForm`); files without quotes have ``quote: none``. A lookup
gives further columns to the values of an attribute (see `lrm.domain.Lookup`).
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

from lrm.domain.attribute_file import (
    attribute_facts,
    blame,
    read_attributes,
    read_csv,
    read_lookup,
)
from lrm.domain.core import Domain
from lrm.domain.people import Declared, People, level_facts, people_facts
from lrm.domain.people_file import read_editions, read_limit, read_people
from lrm.domain.private_tables import limit_facts
from lrm.errors import BudgetError, DomainError
from lrm.files.writing import write_text
from lrm.files.yaml_nodes import Node, dump, parse, read_text
from lrm.privacy.unit import PrivacyUnit

VERSION = 1
"""Version of the format that this code writes, and the newest that it reads."""


def read_domain(path: str | os.PathLike[str]) -> Declared:
    """Read a domain file; errors name line and field.

    A file of version 2 declares a people with several tables (`lrm.domain.people_file`).
    """
    path = pathlib.Path(path)
    return parse_declared(read_text(path), path.name, path.parent)


def parse_declared(
    text: str, source: str = "domain.yaml", folder: pathlib.Path | None = None
) -> Declared:
    """Read a domain, or a people with several tables, from YAML text."""
    root = parse(text, source, DomainError)
    _refuse_draft(root)
    return read_people(root, folder) if root.has("people") else _domain(root, folder)


def parse_domain(
    text: str, source: str = "domain.yaml", folder: pathlib.Path | None = None
) -> Domain:
    """Read the domain of one table from YAML text; CSV files of lookups are in ``folder``.

    Examples
    --------
    >>> text = '''
    ... lrm-domain: 1
    ... unit: row
    ... attributes:
    ...   - {name: age, kind: integers, low: 0, high: 99, null: drop, outside: drop}
    ... '''
    >>> parse_domain(text).size
    100
    >>> parse_domain(text.replace("99", "-1"))
    Traceback (most recent call last):
    ...
    lrm.errors.DomainError: domain.yaml line 5, attribute 'age', field 'low': low must be at \
most high, but 0 > -1
    """
    declared = parse_declared(text, source, folder)
    if isinstance(declared, Domain):
        return declared
    raise DomainError(
        f"{source} declares several tables of {declared.name!r}; one is expected here"
    )


def _domain(root: Node, folder: pathlib.Path | None) -> Domain:
    entries = root.fields(
        {"lrm-domain", "unit", "attributes"}, {"table", "csv", "lookups", "editions", "impossible"}
    )
    entries["lrm-domain"].check_version(VERSION)
    table = entries["table"].text() if "table" in entries else None
    editions = None
    if "editions" in entries:
        editions = read_editions(entries["editions"], {"by", "date"})
    attributes = read_attributes(entries["attributes"], editions)
    unit = _unit(entries["unit"])
    csv = read_csv(entries["csv"]) if "csv" in entries else None
    lookup_nodes = entries["lookups"].items() if "lookups" in entries else []
    lookups = [read_lookup(item.at(""), attributes, folder) for item in lookup_nodes]
    impossible = (
        [item.text() for item in entries["impossible"].items()] if "impossible" in entries else []
    )
    try:
        return Domain(
            attributes, table, unit, csv, lookups, editions=editions, impossible=impossible
        )
    except DomainError as error:
        section = "lookups" if str(error).startswith("lookup ") else "attributes"
        entries[section].fail(str(error))


def _refuse_draft(root: Node) -> None:
    todo = list(root.unfilled())
    if todo:
        places = "; ".join(f"line {node.line}, {node.where}" for node in todo)
        each = [
            DomainError(
                f"line {node.line}, {node.where} is TODO: it must be completed",
                line=node.line,
                plain=f"{node.where} is TODO: fill it in",
            )
            for node in todo
        ]
        raise DomainError(f"{root.source} is a draft that must be completed: {places}", each=each)


def _unit(node: Node) -> PrivacyUnit:
    if not node.has("column") and not node.has("neighbours") and not node.has("max_rows"):
        if node.scalar() != "row":
            node.fail("expected row, or fields column, max_rows, neighbours")
        return PrivacyUnit()
    entries = node.fields(set(), {"column", "max_rows", "neighbours", "by", "groups"})
    if "column" in entries and "max_rows" not in entries:
        node.fail("field 'max_rows' is missing: how many rows may one person have?")
    if "column" not in entries and "max_rows" in entries:
        node.fail("field 'column' is missing: which column identifies the person?")
    by = read_limit(entries, node)
    facts: dict[str, Any] = {
        key: entry.scalar() for key, entry in entries.items() if key not in {"by", "groups"}
    }
    try:
        return PrivacyUnit(**facts, by=by)
    except BudgetError as error:
        blame(entries, node, str(error))


def write_domain(domain: Declared, path: str | pathlib.Path) -> None:
    """Write a domain file that `read_domain` reads back as an equal domain."""
    write_text(path, domain_text(domain))


def domain_text(domain: Declared) -> str:
    """Return a domain as YAML text, with every rule written out.

    Examples
    --------
    >>> from lrm.domain.attributes import Categories
    >>> print(domain_text(Domain([Categories("sex", ["f", "m"])], "people")), end="")
    lrm-domain: 1
    table: people
    unit: {neighbours: add-remove}
    attributes:
    - name: sex
      kind: categories
      values: [f, m]
      'null': drop
      outside: drop
    """
    if isinstance(domain, People):
        return dump(people_facts(domain))
    if domain.level is not None:
        rest = [domain.names[axis] for axis in domain.rest_axes]
        return dump(level_facts(domain.level, rest))
    unit = domain.unit.facts
    if domain.unit.column is None:
        unit = {"neighbours": domain.unit.neighbours}
    for name in ("period", "periods"):  # those of the editions
        unit.pop(name, None)
    if unit.pop("by", None) is not None and domain.unit.by is not None:
        unit |= limit_facts(domain.unit.by)
    editions = domain.editions
    facts = {
        "lrm-domain": VERSION,
        **({} if domain.table is None else {"table": domain.table}),
        "unit": unit,
        **({} if domain.csv is None else {"csv": domain.csv.facts}),
        **({} if editions is None else {"editions": editions.facts}),
        "attributes": [attribute_facts(attribute) for attribute in domain.attributes],
        **({"lookups": [lookup.facts for lookup in domain.lookups]} if domain.lookups else {}),
        **({"impossible": list(domain.impossible)} if domain.impossible else {}),
    }
    return dump(facts)
