"""Domain files: the public facts of a table, in YAML.

.. code-block:: yaml

    lrm-domain: 1
    table: visits                 # the name that SQL batches use; may be left out
    unit:                         # or `unit: row`: each row is its own unit
      column: patient_id
      max_rows: 3
      neighbours: add-remove      # or substitute; add-remove where left out
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
    lookups:                      # public tables, may be left out; or `csv: FILE` for columns, rows
      - {name: regions, key: state, columns: [region], rows: [[NY, east], [NJ, east]]}

What happens to NULL and to values outside must be declared for each attribute, ``drop`` or ``cell``
(see `lrm.domain.attributes`); integers and bins may say it of NaN too, which is dropped by default.
Bins may have ``representatives``, one number per cell, by which sums count their rows.
Numbers by ``knots`` are for sums and averages without binning error (see `lrm.domain.Numbers`).
Section ``csv`` says how the table's CSV files are written, each field of it where that differs
from the default (see `lrm.domain.CsvForm`); files without quotes have ``quote: none``. A lookup
gives further columns to the values of an attribute (see `lrm.domain.Lookup`).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn

from lrm.domain.attributes import Attribute, Categories
from lrm.domain.bins import Bins
from lrm.domain.core import Domain
from lrm.domain.csv_form import CsvForm
from lrm.domain.lookups import Lookup, lookup_rows
from lrm.domain.numbers import Numbers
from lrm.domain.ordered import Dates, Integers
from lrm.errors import BudgetError, DomainError
from lrm.files.writing import write_text
from lrm.files.yaml_nodes import Node, dump, parse, read_text
from lrm.privacy.unit import PrivacyUnit

VERSION = 1
"""Version of the format that this code writes, and the newest that it reads."""

_KINDS: dict[str, tuple[set[str], set[str]]] = {
    "categories": ({"values"}, {"spellings"}),
    "integers": ({"low", "high"}, {"width", "nan"}),
    "bins": ({"edges"}, {"nan", "representatives"}),
    "numbers": ({"knots"}, {"nan"}),
    "dates": ({"start", "end", "by"}, set()),
}
_COMMON = {"name", "kind", "null", "outside"}
_CLASSES: dict[str, Callable[..., Attribute]] = {
    attribute.kind: attribute for attribute in (Categories, Integers, Bins, Numbers, Dates)
}


def _numbers(node: Node) -> list[float]:
    return [item.number() for item in node.items()]


def _spellings(node: Node) -> dict[str, list[str]]:
    return {value: [item.text() for item in texts.items()] for value, texts in node.pairs()}


_READERS: dict[str, Callable[[Node], Any]] = {
    "values": lambda node: [item.scalar() for item in node.items()],
    "spellings": _spellings,
    **dict.fromkeys(("edges", "representatives", "knots"), _numbers),
    **dict.fromkeys(("low", "high", "width"), Node.integer),
    **dict.fromkeys(("start", "end", "by"), Node.text),
    **dict.fromkeys(("null", "nan", "outside"), Node.scalar),
}
"""How the fields of attributes are read."""


def read_domain(path: str | pathlib.Path) -> Domain:
    """Read a domain file; errors name line and field."""
    path = pathlib.Path(path)
    return parse_domain(read_text(path), path.name, path.parent)


def parse_domain(
    text: str, source: str = "domain.yaml", folder: pathlib.Path | None = None
) -> Domain:
    """Read a domain from YAML text; CSV files of lookups are in ``folder``.

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
    root = parse(text, source, DomainError)
    _refuse_draft(root)
    entries = root.fields({"lrm-domain", "unit", "attributes"}, {"table", "csv", "lookups"})
    entries["lrm-domain"].check_version(VERSION)
    table = entries["table"].text() if "table" in entries else None
    attributes = _attributes(entries["attributes"])
    unit = _unit(entries["unit"])
    csv = _csv(entries["csv"]) if "csv" in entries else None
    lookup_nodes = entries["lookups"].items() if "lookups" in entries else []
    lookups = [_lookup(item.at(""), attributes, folder) for item in lookup_nodes]
    try:
        return Domain(attributes, table, unit, csv, lookups)
    except DomainError as error:
        section = "lookups" if str(error).startswith("lookup ") else "attributes"
        entries[section].fail(str(error))


def _lookup(node: Node, attributes: list[Attribute], folder: pathlib.Path | None) -> Lookup:
    optional = {"key_column", "columns", "rows", "csv"}
    entries = node.fields({"name", "key"}, optional)
    name, key = entries["name"].text(), entries["key"].text()
    key_column = entries["key_column"].text() if "key_column" in entries else None
    try:
        if "csv" not in entries:
            inline = node.fields({"name", "key", "columns", "rows"}, {"key_column"})
            columns = [item.text() for item in inline["columns"].items()]
            rows = [
                [candidate.scalar() for candidate in row.items()] for row in inline["rows"].items()
            ]
            return Lookup(name, key, columns, rows, key_column)
        node.fields({"name", "key", "csv"}, {"key_column"})
        attribute = next((candidate for candidate in attributes if candidate.name == key), None)
        if attribute is None or folder is None:
            why = "its key is not an attribute" if folder else "a CSV file needs a domain file"
            entries["csv"].fail(f"lookup {name!r}: {why}")
        text = read_text(folder / entries["csv"].text())
        return Lookup(name, key, *lookup_rows(text, key_column or key, attribute), key_column)
    except DomainError as error:
        if str(error).startswith(node.source):
            raise
        node.fail(str(error))


def _refuse_draft(root: Node) -> None:
    todo = list(root.unfilled())
    if todo:
        places = "; ".join(f"line {node.line}, {node.where}" for node in todo)
        raise root.error(f"{root.source} is a draft that must be completed: {places}")


def _unit(node: Node) -> PrivacyUnit:
    if not node.has("column") and not node.has("neighbours") and not node.has("max_rows"):
        if node.scalar() != "row":
            node.fail("expected row, or fields column, max_rows, neighbours")
        return PrivacyUnit()
    entries = node.fields(set(), {"column", "max_rows", "neighbours"})
    if "column" in entries and "max_rows" not in entries:
        node.fail("field 'max_rows' is missing: how many rows may one person have?")
    if "column" not in entries and "max_rows" in entries:
        node.fail("field 'column' is missing: which column identifies the person?")
    facts: dict[str, Any] = {key: entry.scalar() for key, entry in entries.items()}
    try:
        return PrivacyUnit(**facts)
    except BudgetError as error:
        _blame(entries, node, str(error))


def _csv(node: Node) -> CsvForm:
    entries = node.fields(set(), {item.name for item in fields(CsvForm)})
    lists = {"true", "false"}
    facts: dict[str, Any] = {
        key: [item.written() for item in entry.items()] if key in lists else entry.text()
        for key, entry in entries.items()
    }
    if facts.get("quote") == "none":
        facts["quote"] = None
    try:
        return CsvForm(**facts)
    except DomainError as error:
        _blame(entries, node, str(error).removeprefix("csv: "))


def _attributes(node: Node) -> list[Attribute]:
    """All attributes; the errors of all of them are reported together."""
    attributes, errors = [], []
    for item in node.items():
        try:
            attributes.append(_attribute(item.at("")))
        except DomainError as error:
            errors.append(str(error))
    if errors:
        raise DomainError(*errors)
    return attributes


def _attribute(node: Node) -> Attribute:
    anything = _COMMON.union(*(required_keys | two for required_keys, two in _KINDS.values()))
    entries = node.fields({"name", "kind"}, anything)
    name = entries["name"].text()
    node = node.at(f"attribute {name!r}")
    kind = node.fields({"name", "kind"}, anything)["kind"]
    if kind.text() not in _KINDS:
        hint = "; write a yes/no column as categories with values: [true, false]"
        hint = hint if kind.text().startswith("bool") else ""
        kind.fail(f"expected {', '.join(_KINDS)}, not {kind.text()!r}{hint}")
    required, optional = _KINDS[kind.text()]
    missing = [rule for rule in ("null", "outside") if not node.has(rule)]
    if missing:
        outside = "clip" if kind.text() == "numbers" else "drop"
        names = " and ".join(map(repr, missing))
        node.fail(
            f"{names} must say what happens to rows with NULL or other values, "
            f"for example null: drop, outside: {outside}"
        )
    entries = node.fields(required | _COMMON, optional)
    try:
        facts = {key: _READERS[key](entry) for key, entry in entries.items() if key in _READERS}
        return _CLASSES[kind.text()](name, **facts)
    except DomainError as error:
        if str(error).startswith(node.source):
            raise
        _blame(entries, node, str(error).removeprefix(f"attribute {name!r}: "))


def _blame(entries: dict[str, Node], node: Node, sentence: str) -> NoReturn:
    """Raise ``sentence`` at the field that it names first, or at the whole record."""
    aliases = {"edge": "edges", "value": "values", "integer": "values", "an": "edges"}
    word = sentence.split(maxsplit=1)[0]
    entries.get(aliases.get(word, word), node).fail(sentence)


def write_domain(domain: Domain, path: str | pathlib.Path) -> None:
    """Write a domain file that `read_domain` reads back as an equal domain."""
    write_text(path, domain_text(domain))


def domain_text(domain: Domain) -> str:
    """Return a domain as YAML text, with every rule written out.

    Examples
    --------
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
    unit = domain.unit.facts
    if domain.unit.column is None:
        unit = {"neighbours": domain.unit.neighbours}
    facts = {
        "lrm-domain": VERSION,
        **({} if domain.table is None else {"table": domain.table}),
        "unit": unit,
        **({} if domain.csv is None else {"csv": domain.csv.facts}),
        "attributes": [_facts(attribute) for attribute in domain.attributes],
        **({"lookups": [lookup.facts for lookup in domain.lookups]} if domain.lookups else {}),
    }
    return dump(facts)


def _facts(attribute: Attribute) -> dict[str, object]:
    rules = ("null", "nan", "outside") if attribute.numeric else ("null", "outside")
    own_facts = {
        item.name: _plain(getattr(attribute, item.name))
        for item in fields(attribute)
        if item.name not in {"name", "null", "nan", "outside"}
        and getattr(attribute, item.name) is not None
    }
    rule_facts = {rule: getattr(attribute, rule) for rule in rules}
    return {"name": attribute.name, "kind": attribute.kind, **own_facts, **rule_facts}


def _plain(value: object) -> object:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):  # spellings
        return {name: list(other_texts) for name, other_texts in value}
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (int, str)) else str(value)
