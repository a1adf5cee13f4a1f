"""A domain file as a form: the text of each field, and where in the file it stands.

A change puts one text in place of another. Comments, the order of fields and all other texts stay
as they are written, and so do errors in them: a form can be made of a file that is not finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lrm.domain.attribute_file import KINDS as FIELDS
from lrm.domain.draft import KINDS, entry_of
from lrm.errors import DomainError
from lrm.files.yaml_nodes import Node, parse

RULES = ("null", "outside")
"""Fields of every attribute: what happens to rows with NULL, and to undeclared values."""

TODO = "TODO"


@dataclass(frozen=True)
class FormField:
    """A field of a domain file, as it is written there; without text where it is not there."""

    name: str
    text: str = ""


@dataclass(frozen=True)
class FormEntry:
    """An attribute, whose kind decides its fields; or the unit, which has no name."""

    name: str
    kind: str
    line: int
    fields: tuple[FormField, ...]


@dataclass(frozen=True)
class DomainForm:
    r"""The table, whom the guarantee protects, and the attributes.

    >>> entry = "{name: age, kind: integers, low: 0}"
    >>> text = f"lrm-domain: 1\nunit: row\nattributes:\n  - {entry}\n"
    >>> form = DomainForm.of(text)
    >>> form.unit.kind, form.attributes[0].name, form.attributes[0].fields[0]
    ('row', 'age', FormField(name='low', text='0'))
    >>> print(form.with_field(0, "high", "99"), end="")
    lrm-domain: 1
    unit: row
    attributes:
      - {name: age, kind: integers, low: 0, high: 99}
    """

    text: str
    table: str
    unit: FormEntry
    attributes: tuple[FormEntry, ...]

    @classmethod
    def of(cls, text: str, source: str = "domain.yaml") -> DomainForm:
        """Read a form; a file of several tables or of attributes in one line has none."""
        root = parse(text, source, DomainError)
        parts = _mapping(root.tree)
        listed = parts.get("attributes")
        if listed is None or not _is_list(listed) or listed.flow_style or "people" in parts:
            raise DomainError(
                f"{source} has no list of attributes, one below the other, for a form"
            )
        written = parts.get("unit")
        inside = {} if written is None else _mapping(written)
        shown = "" if written is None or inside else _shown(text, written)
        limits = tuple(
            FormField(name, _shown(text, inside[name]) if name in inside else "")
            for name in ("column", "max_rows")
        )
        unit = FormEntry("", "person" if inside else "row" if shown == "row" else "", 0, limits)
        attributes = tuple(_entry(text, item) for item in listed.value if _mapping(item))
        table = _shown(text, parts["table"]) if "table" in parts else ""
        return cls(text, table, unit, attributes)

    @property
    def _root(self) -> Node:
        return parse(self.text, "domain.yaml", DomainError)

    def _items(self) -> list[Any]:
        return [item for item in _mapping(self._root.tree)["attributes"].value if _mapping(item)]

    def with_table(self, name: str) -> str:
        """The text with another name of the table."""
        return _written(self.text, self._root.tree, "table", name, _text)

    def with_unit(self, kind: str, column: str = "", max_rows: str = "") -> str:
        """The text with another unit: a row, or a person with at most ``max_rows`` rows."""
        root = self._root.tree
        if kind not in {"row", "person"}:
            return self.text
        if kind == "row":
            return _written(self.text, root, "unit", "row")
        unit = _mapping(root).get("unit")
        if unit is None or not _mapping(unit):
            person, most = (
                _text(column) if column else TODO,
                _scalar(max_rows) if max_rows else TODO,
            )
            pair = f"{{column: {person}, max_rows: {most}}}"
            return _written(self.text, root, "unit", pair, str)
        text = _written(self.text, unit, "column", column, _text)
        unit = _mapping(parse(text, "domain.yaml", DomainError).tree)["unit"]
        return _written(text, unit, "max_rows", max_rows)

    def with_field(self, place: int, name: str, value: str) -> str:
        """The text with another value of a field; a list may be without its brackets."""
        item = self._item(place)
        if name == "kind":
            return self._with_kind(item, value)
        known = {"name", *RULES, *(field.name for field in self.attributes[place].fields)}
        if name not in known:
            raise DomainError(
                f"expected one of the fields {', '.join(sorted(known))}, not {name!r}"
            )
        spell = _SPELLINGS.get(name, _scalar)
        return _written(self.text, item, name, value, spell)

    def without(self, place: int) -> str:
        """The text without an attribute."""
        start, end = self._span(self._item(place))
        return self.text[:start] + self.text[end:]

    def with_attribute(self, name: str, kind: str) -> str:
        """The text with another attribute, whose values are still to be filled in."""
        items = self._items()
        if not items:
            raise DomainError("the list of attributes is empty; draft the file from a table")
        _, end = self._span(items[-1])
        head = self.text[:end]
        head += "" if head.endswith("\n") else "\n"
        return head + _draft(name, kind, _dash(items[-1])) + self.text[end:]

    def _item(self, place: int) -> Any:
        items = self._items()
        if not 0 <= place < len(items):
            raise DomainError(f"the file has {len(items)} attributes")
        return items[place]

    def _with_kind(self, item: Any, kind: str) -> str:
        start, end = self._span(item)
        name = str(_mapping(item)["name"].value) if "name" in _mapping(item) else TODO
        return self.text[:start] + _draft(name, kind, _dash(item)) + self.text[end:]

    def _span(self, item: Any) -> tuple[int, int]:
        """The lines of an entry of a list, with the comments that are set in below it."""
        start = self.text.rfind("\n", 0, item.start_mark.index) + 1
        end = _line_end(self.text, _end(item))
        while end < len(self.text):
            line = self.text[end : _line_end(self.text, end)]
            inside = len(line) - len(line.lstrip()) > _dash(item)
            if not (inside and line.lstrip().startswith("#")):
                break
            end += len(line)
        return start, end


def _entry(text: str, item: Any) -> FormEntry:
    parts = _mapping(item)
    kind = str(parts["kind"].value) if "kind" in parts else ""
    required, optional = FIELDS.get(kind, (set(), set()))
    usual = ("values", "low", "high", "width", "edges", "knots", "start", "end", "by", "time")
    names = [name for name in usual if name in required or name in optional]
    fields = tuple(
        FormField(name, _shown(text, parts[name]) if name in parts else "")
        for name in (*names, *RULES)
    )
    name = str(parts["name"].value) if "name" in parts else ""
    return FormEntry(name, kind, item.start_mark.line + 1, fields)


def _is_list(tree: Any) -> bool:
    return isinstance(tree.value, list) and not tree.tag.endswith("map")


def _mapping(tree: Any) -> dict[str, Any]:
    """The values of a mapping by key; empty where it is none."""
    if not isinstance(tree.value, list) or not tree.tag.endswith("map"):
        return {}
    return {str(key.value): value for key, value in tree.value}


def _end(tree: Any) -> int:
    """Where a value ends: what stands in lines of its own ends with the last of its parts."""
    if isinstance(tree.value, list) and tree.value and not tree.flow_style:
        last = tree.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(tree.end_mark.index)


def _line_end(text: str, place: int) -> int:
    """Where the line of a place ends, its line break included."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def _dash(item: Any) -> int:
    """How far the dash of an entry is set in."""
    return int(item.start_mark.column) - 2


def _shown(text: str, tree: Any) -> str:
    """A value as it is written; a list without its brackets, and nothing for what is to be done."""
    if _is_list(tree):
        return ", ".join(text[part.start_mark.index : _end(part)] for part in tree.value)
    if isinstance(tree.value, list):
        return text[tree.start_mark.index : _end(tree)]
    return "" if tree.value == TODO else str(tree.value)


def _scalar(value: str) -> str:
    """A value as YAML writes it: plain where that is read back as it is, else in quotes."""
    return value if _plain_tag(value) else _quoted(value)


def _text(value: str) -> str:
    """A text as YAML writes it: a number is in quotes."""
    return value if _plain_tag(value).endswith(":str") else _quoted(value)


def _plain_tag(value: str) -> str:
    """What YAML takes a value for that is written as it is; empty where it is read otherwise."""
    if not value.isprintable() or any(mark in value for mark in ",[]{}"):
        return ""
    try:
        tree = parse(f"a: {value}", "a", DomainError).tree.value[0][1]
    except DomainError:
        return ""
    return str(tree.tag) if tree.value == value and not tree.style else ""


def _quoted(text: str) -> str:
    """A text in quotes; YAML has no control characters but by their numbers."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _list(value: str) -> str:
    """A list as YAML writes it, of what stands between commas."""
    inside = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    try:
        tree = parse(f"a: [{inside}]", "a", DomainError).tree.value[0][1]
        whole = inside.isprintable() and tree.end_mark.index == len(inside) + 5
        whole = whole and _is_list(tree) and not any(isinstance(x.value, list) for x in tree.value)
    except DomainError:
        whole = False
    if whole:
        return f"[{inside}]"
    return f"[{', '.join(_scalar(part.strip()) for part in inside.split(','))}]"


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "name": _text,
    **dict.fromkeys(("values", "edges", "knots"), _list),
}
"""How the values of fields are written, where not as plain values."""


def _written(
    text: str, tree: Any, name: str, value: str, spell: Callable[[str], str] = _scalar
) -> str:
    """The text in which a field of a mapping has a value; the last one where it is new."""
    parts, given = _mapping(tree), value.strip()
    if name in parts and _shown(text, parts[name]) == given:
        return text
    new = spell(given) if given else TODO
    if name in parts:
        old = parts[name]
        return text[: old.start_mark.index] + new + text[_end(old) :]
    if tree.flow_style:
        end = int(tree.end_mark.index) - 1
        return f"{text[:end].rstrip()}, {name}: {new}{text[end:]}"
    place = _line_end(text, _end(tree))
    head = text[:place]
    head += "" if head.endswith("\n") else "\n"
    return f"{head}{' ' * tree.value[0][0].start_mark.column}{name}: {new}\n{text[place:]}"


def _draft(name: str, kind: str, column: int) -> str:
    """The lines of a new attribute, set in like the others."""
    if kind not in KINDS:
        raise DomainError(f"a kind must be one of {', '.join(KINDS)}, not {kind!r}")
    return "".join(f"{' ' * column}{line[2:]}\n" for line in entry_of(name, kind).splitlines())
