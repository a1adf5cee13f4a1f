"""Attributes, CSV forms and lookups in domain files: read from YAML nodes, written as facts."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, NoReturn

from lrm.domain.attributes import Attribute, Categories
from lrm.domain.bins import Bins
from lrm.domain.csv_form import CsvForm
from lrm.domain.discovery import Discovery
from lrm.domain.editions import Editions
from lrm.domain.lookups import Lookup, lookup_rows
from lrm.domain.numbers import Numbers
from lrm.domain.ordered import Dates, Integers
from lrm.errors import DomainError
from lrm.files.yaml_nodes import Node, read_text

KINDS: dict[str, tuple[set[str], set[str]]] = {
    "categories": ({"values"}, {"spellings", "discovered"}),
    "integers": ({"low", "high"}, {"width", "nan"}),
    "bins": ({"edges"}, {"nan", "representatives"}),
    "numbers": ({"knots"}, {"nan", "bins"}),
    "dates": ({"start", "by"}, {"end", "time"}),
}
"""The fields of each kind of attribute: those that it must have, and those that it may have."""

_COMMON = {"name", "kind", "null", "outside"}
_OPTIONAL = {"dropped", "column"}
_CLASSES: dict[str, Callable[..., Attribute]] = {
    attribute.kind: attribute for attribute in (Categories, Integers, Bins, Numbers, Dates)
}


def _spellings(node: Node) -> dict[str, list[str]]:
    return {value: [item.text() for item in texts.items()] for value, texts in node.pairs()}


def _discovered(node: Node) -> list[Discovery]:
    """How values of an attribute were discovered."""
    needed = {"count", "rho", "delta", "most", "least", "scale", "length"}
    readers: dict[str, Callable[[Node], Any]] = {
        **dict.fromkeys(("count", "most", "least", "length"), Node.integer),
        **dict.fromkeys(("rho", "delta"), Node.written),
        **dict.fromkeys(("pattern", "edition", "head"), Node.text),
        "scale": Node.number,
    }
    records = []
    for item in node.items():
        entries = item.fields(needed, {"pattern", "edition", "head"})
        try:
            records.append(Discovery(**{k: readers[k](entry) for k, entry in entries.items()}))
        except DomainError as error:
            if str(error).startswith(node.source):
                raise
            item.fail(str(error))
    return records


_READERS: dict[str, Callable[[Node], Any]] = {
    "values": Node.scalars,
    "spellings": _spellings,
    "discovered": _discovered,
    **dict.fromkeys(("edges", "representatives", "knots", "bins"), Node.numbers),
    **dict.fromkeys(("low", "high", "width"), Node.integer),
    **dict.fromkeys(("start", "end", "by", "column"), Node.text),
    **dict.fromkeys(("null", "nan", "outside", "time"), Node.scalar),
}
"""How the fields of attributes are read."""


def read_lookup(node: Node, attributes: list[Attribute], folder: pathlib.Path | None) -> Lookup:
    """Read one lookup, whose rows may be in a CSV file of ``folder``."""
    optional = {"key_column", "columns", "rows", "csv"}
    entries = node.fields({"name", "key"}, optional)
    name, key = entries["name"].text(), entries["key"].text()
    key_column = entries["key_column"].text() if "key_column" in entries else None
    try:
        if "csv" not in entries:
            inline = node.fields({"name", "key", "columns", "rows"}, {"key_column"})
            columns = [item.text() for item in inline["columns"].items()]
            rows = [row.scalars() for row in inline["rows"].items()]
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


def read_csv(node: Node) -> CsvForm:
    """Read how CSV files are written."""
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
        blame(entries, node, str(error).removeprefix("csv: "))


def read_attributes(node: Node, editions: Editions | None = None) -> list[Attribute]:
    """All attributes; the errors of all of them are reported together.

    Where a report has ``editions``, dates may start with the edition.
    """
    attributes, errors = [], []
    for item in node.items():
        try:
            attributes.append(read_attribute(item.at(""), editions=editions))
        except DomainError as error:
            errors.append(error)
    if errors:
        raise DomainError(*errors)
    return attributes


ATTRIBUTE_FIELDS = (_COMMON | _OPTIONAL).union(
    *(required | optional for required, optional in KINDS.values())
)
"""All fields that attributes of some kind have."""


def read_attribute(
    node: Node,
    ignored: Collection[str] = (),
    *,
    rules: bool = True,
    editions: Editions | None = None,
) -> Attribute:
    """Read one attribute.

    Fields that are ``ignored`` say other things. Without ``rules`` null and outside need not be
    written.
    """
    anything = ATTRIBUTE_FIELDS | set(ignored)
    entries = node.fields({"name", "kind"}, anything)
    name = entries["name"].text()
    node = node.at(f"attribute {name!r}")
    kind = node.fields({"name", "kind"}, anything)["kind"]
    if kind.text() not in KINDS:
        hint = "; write a yes/no column as categories with values: [true, false]"
        hint = hint if kind.text().startswith("bool") else ""
        kind.fail(f"expected {', '.join(KINDS)}, not {kind.text()!r}{hint}")
    required, optional = KINDS[kind.text()]
    missing = [rule for rule in ("null", "outside") if not node.has(rule)]
    if missing and rules:
        outside = "clip" if kind.text() == "numbers" else "drop"
        names = " and ".join(map(repr, missing))
        node.fail(
            f"{names} must say what happens to rows with NULL or other values, "
            f"for example null: drop, outside: {outside}"
        )
    needed = required | (_COMMON if rules else {"name", "kind"})
    entries = node.fields(needed, optional | _COMMON | _OPTIONAL | set(ignored))
    try:
        known = [key for key in entries if key in _READERS and key not in ignored]
        facts = {key: _READERS[key](entries[key]) for key in known}
        if kind.text() == "dates":
            facts |= _ends_of_edition(entries, node, editions)
        attribute = _CLASSES[kind.text()](name, **facts)
        if "dropped" not in entries:
            return attribute
        if entries["dropped"].scalar() != "cell":
            entries["dropped"].fail("expected cell: plans count dropped values so, unseen")
        return attribute.with_rest()
    except DomainError as error:
        if str(error).startswith(node.source):
            raise
        blame(entries, node, str(error).removeprefix(f"attribute {name!r}: "))


def _ends_of_edition(
    entries: dict[str, Node], node: Node, editions: Editions | None
) -> dict[str, Any]:
    """Start and end of dates that start with the edition; of others, nothing."""
    if entries["start"].text() != "edition":
        if "end" not in entries:
            node.fail("field 'end' is missing")
        return {}
    if editions is None:
        entries["start"].fail(
            "the domain has no editions; declare them: editions: {by: month, date: COLUMN}"
        )
    if "end" in entries:
        entries["end"].fail("dates that start with the edition end with it; leave end out")
    return {"start": editions.first, "end": editions.last, "relative": True}


def blame(entries: dict[str, Node], node: Node, sentence: str) -> NoReturn:
    """Raise ``sentence`` at the field that it names first, or at the whole record."""
    aliases = {"edge": "edges", "value": "values", "integer": "values", "an": "edges"}
    word = sentence.split(maxsplit=1)[0]
    entries.get(aliases.get(word, word), node).fail(sentence)


def attribute_facts(attribute: Attribute) -> dict[str, object]:
    """An attribute as plain values for YAML, with every rule written out."""
    rules = ("null", "nan", "outside") if attribute.numeric else ("null", "outside")
    own_facts = {
        item.name: _plain(getattr(attribute, item.name))
        for item in fields(attribute)
        if item.name not in {"name", "null", "nan", "outside", "rest"}
        and getattr(attribute, item.name) is not None
    }
    if own_facts.pop("relative", False) is True:
        own_facts["start"] = "edition"
        del own_facts["end"]
    rule_facts = {rule: getattr(attribute, rule) for rule in rules}
    if attribute.rest:
        rule_facts["dropped"] = "cell"
    return {"name": attribute.name, "kind": attribute.kind, **own_facts, **rule_facts}


def _plain(value: object) -> object:
    if isinstance(value, tuple) and value and isinstance(value[0], Discovery):
        return [entry.facts for entry in value]
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):  # spellings
        return {name: list(other_texts) for name, other_texts in value}
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (int, str)) else str(value)
