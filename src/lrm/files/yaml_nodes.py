"""YAML as nodes that know their line, so that errors can name line and field.

Plain scalars are read by the rules of YAML 1.2 (``yes``, ``no``, ``on`` and ``2024-01-31``
are text), and a number with leading zeros stays text: a list of codes must not lose them.
The plain word ``TODO`` marks what a person still has to fill in.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from lrm.errors import FileFormatError, UsageError
from lrm.files.reading import TEXT_LIMIT, read_bytes
from lrm.privacy.amounts import spell

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterator

LONGEST = 1 << 23
"""Most characters of a YAML text (8 million): each value becomes an object of about 1 kB."""

DEEPEST = 32
"""Most levels of lists and fields."""

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_TODO = "!todo"
_TEXT = "tag:yaml.org,2002:str"
_RESOLVERS: tuple[tuple[str, str, str], ...] = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
    (_TODO, r"TODO", "T"),
)


@cache
def _yaml() -> Any:
    import yaml  # noqa: PLC0415 - only those who read or write YAML import it

    return yaml


@cache
def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, first in _RESOLVERS:
        for letter in first:
            key = "" if letter == "\0" else letter
            table.setdefault(key, []).append((tag, re.compile(rf"^(?:{pattern})$")))
    return table


@cache
def _loader() -> Any:
    """PyYAML's loader in C, which takes a tenth of the time; in Python where C is not built in."""
    yaml = _yaml()
    parent = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    methods = {"descend_resolver": _descend, "ascend_resolver": _ascend, "depth": 0}
    return type("Loader", (parent,), {"yaml_implicit_resolvers": _resolvers(), **methods})


def _descend(loader: Any, parent: Any, _: Any) -> None:
    """Count the levels; PyYAML calls this before it reads a node below ``parent``."""
    loader.depth += 1
    if loader.depth > DEEPEST + 1:  # the time grows with the square of it
        problem = "nested too deeply"
        raise _yaml().MarkedYAMLError(problem=problem, problem_mark=parent.start_mark)


def _ascend(loader: Any) -> None:
    loader.depth -= 1


def _refuse_aliases(text: str) -> None:
    yaml = _yaml()
    for event in yaml.parse(text, _loader()):
        if isinstance(event, yaml.AliasEvent):
            problem = "aliases (*name) are not supported; write the value out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


@cache
def _scalar_readers() -> dict[str, Callable[[Any], Any]]:
    """How values that are not text are made of their nodes, by tag."""
    constructor = _yaml().constructor.SafeConstructor()
    return {
        "tag:yaml.org,2002:bool": constructor.construct_yaml_bool,
        "tag:yaml.org,2002:null": constructor.construct_yaml_null,
        "tag:yaml.org,2002:int": constructor.construct_yaml_int,
        "tag:yaml.org,2002:float": _float,
    }


def _float(node: Any) -> float:
    text = node.value.lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


@cache
def _dumper() -> Any:
    dumper = type("Dumper", (_yaml().SafeDumper,), {"yaml_implicit_resolvers": _resolvers()})
    dumper.add_representer(str, _text)  # type: ignore[attr-defined]
    return dumper


def _text(dumper: Any, text: str) -> Any:
    # YAML folds line breaks (U+0085 among them) in every style but the escaped one.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def read_text(path: pathlib.Path) -> str:
    """Read a UTF-8 file; an unreadable one is an error with the way out."""
    data = read_bytes(path, "file", TEXT_LIMIT)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def dump(data: Any) -> str:
    """Write plain lists, dicts and scalars as YAML that `parse` reads back the same."""
    dumped: str = _yaml().dump(
        data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=None
    )
    return dumped


def parse(text: str, source: str, error: type[UsageError]) -> Node:
    """Parse one YAML document into nodes.

    ``source`` names the file in errors, which are of the class ``error``.
    """
    if len(text) > LONGEST:
        raise error(f"{source} has more than {LONGEST:,} characters")
    yaml = _yaml()
    try:
        if "*" in text:
            _refuse_aliases(text)
        tree = yaml.compose(text, _loader())
    except UnicodeEncodeError:
        raise error(f"{source} is not text: half of a surrogate pair cannot be stored") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        number = None if mark is None else mark.line + 1
        line = "" if number is None else f" line {number}"
        what = getattr(problem, "problem", None) or "unexpected character"
        sentence = f"cannot parse the YAML: {what}"
        raise error(f"{source}{line}: {sentence}", line=number, plain=sentence) from None
    if tree is None:
        raise error(f"{source} is empty; see the format's documentation for an example")
    if not isinstance(tree, yaml.MappingNode):
        raise error(
            f"{source} holds no fields such as `table: visits`, so it is not the file that is "
            "expected here (its text is not shown: it may be data)"
        )
    return Node(tree, source, error)


@dataclass(frozen=True, eq=False)
class Node:
    """A value of a YAML file, its line, and what it is called in errors."""

    tree: Any
    source: str
    error: type[UsageError]
    where: str = ""

    @property
    def line(self) -> int:
        """Line of the file, from 1."""
        return int(self.tree.start_mark.line) + 1

    def fail(self, sentence: str) -> NoReturn:
        """Raise the file's error with line and field."""
        place = f", {self.where}" if self.where else ""
        named = f"{self.where}: {sentence}" if self.where else sentence
        raise self.error(
            f"{self.source} line {self.line}{place}: {sentence}",
            line=self.line,
            field=self.where or None,
            plain=named,
        ) from None

    def at(self, where: str) -> Node:
        """Return the same node under another name."""
        return Node(self.tree, self.source, self.error, where)

    def below(self, tree: Any, name: str) -> Node:
        """Return a part of this node, called ``name`` within it."""
        return Node(tree, self.source, self.error, f"{self.where}, {name}".removeprefix(", "))

    def fields(self, required: set[str], optional: set[str]) -> dict[str, Node]:
        """Return a mapping's values by key, having checked that the keys are the known ones."""
        if not isinstance(self.tree, _yaml().MappingNode):
            self.fail(f"expected fields ({', '.join(sorted(required))}), not {self._kind()}")
        nodes_by_name: dict[str, Node] = {}
        for key, value in self.tree.value:
            name = str(key.value) if isinstance(key.value, str) else "?"
            at = Node(key, self.source, self.error, self.where)
            if name not in required | optional:
                some = sorted(required | optional)
                known = ", ".join(some[:20]) + (" …" if len(some) > 20 else "")
                at.fail(f"unknown field {name!r}; known are {known}")
            if name in nodes_by_name:
                at.fail(f"field {name!r} is given twice")
            nodes_by_name[name] = self.below(value, f"field {name!r}")
        missing = sorted(required - set(nodes_by_name))
        if missing:
            names = ", ".join(map(repr, missing))
            self.fail(
                f"field {names} is missing" if len(missing) == 1 else f"fields {names} are missing"
            )
        return nodes_by_name

    def pairs(self) -> list[tuple[str, Node]]:
        """Return keys, which are texts, and values of a mapping whose keys are not known."""
        if not isinstance(self.tree, _yaml().MappingNode):
            self.fail(f"expected fields, not {self._kind()}")
        nodes_by_name: dict[str, Node] = {}
        for key, value in self.tree.value:
            name = Node(key, self.source, self.error, self.where).text()
            if name in nodes_by_name:
                self.fail(f"{name!r} is given twice")
            nodes_by_name[name] = self.below(value, repr(name))
        return list(nodes_by_name.items())

    def written(self) -> str:
        """Return a text, or a number or truth as it is written: ``1`` and ``true`` are texts."""
        value = self.scalar()
        if value is None:
            self.fail("expected text, not nothing")
        return str(self.tree.value)

    def has(self, name: str) -> bool:
        """Tell whether this is a mapping with such a key."""
        return isinstance(self.tree, _yaml().MappingNode) and any(
            key.value == name for key, _ in self.tree.value
        )

    def items(self) -> list[Node]:
        """Return the entries of a list."""
        return [Node(item, self.source, self.error, self.where) for item in self._entries()]

    def _entries(self) -> list[Any]:
        if not isinstance(self.tree, _yaml().SequenceNode):
            self.fail(f"expected a list, not {self._kind()}")
        entries: list[Any] = self.tree.value
        return entries

    def scalar(self) -> Any:
        """Return text, a number, a truth or None."""
        return self._scalar(self.tree)

    def scalars(self) -> list[Any]:
        """Return the entries of a list of values; one may have 300,000."""
        return [self._scalar(tree) for tree in self._entries()]

    def _scalar(self, tree: Any) -> Any:
        if not isinstance(tree, _yaml().ScalarNode):
            entry = replace(self, tree=tree)
            entry.fail(f"expected one value, not {entry._kind()}")  # noqa: SLF001 - of this class
        tag, text = tree.tag, tree.value
        if tag == _TODO:
            replace(self, tree=tree).fail("is not filled in yet (TODO)")
        if not text.isascii() and _HALF_PAIR.search(text):
            replace(self, tree=tree).fail(
                f"{text!r} is not text: half of a surrogate pair cannot be stored"
            )
        if tag == _TEXT:
            return text
        try:
            return _scalar_readers()[tag](tree)
        except (_yaml().YAMLError, ValueError, KeyError):
            replace(self, tree=tree).fail(f"expected a plain value, not {spell(text)}")

    def text(self) -> str:
        """Return a text."""
        value = self.scalar()
        if not isinstance(value, str):
            self.fail(f"expected text, not {value!r} (quote it if it is text)")
        return value

    def integer(self) -> int:
        """Return an integer."""
        value = self.scalar()
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"expected an integer, not {spell(value)}")
        return value

    def check_version(self, expected: int) -> None:
        """Refuse another version of the format than the expected one."""
        version = self.integer()
        if version != expected:
            hint = "; a newer lrm wrote it" if version > expected else ""
            self.fail(f"expected version {expected}, not {version}{hint}")

    def number(self) -> float:
        """Return a number."""
        return self._number(self.tree)

    def numbers(self) -> list[float]:
        """Return the entries of a list of numbers."""
        return [self._number(tree) for tree in self._entries()]

    def _number(self, tree: Any) -> float:
        value = self._scalar(tree)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            replace(self, tree=tree).fail(f"expected a number, not {spell(value)}")
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            replace(self, tree=tree).fail(f"expected a number of 64 bits, not {spell(value)}")
        return value

    def is_mapping(self) -> bool:
        """Tell whether this holds fields."""
        return isinstance(self.tree, _yaml().MappingNode)

    def is_sequence(self) -> bool:
        """Tell whether this is a list."""
        return isinstance(self.tree, _yaml().SequenceNode)

    def unfilled(self) -> Iterator[Node]:
        """Yield every TODO below this node, named by the fields that lead to it."""
        if isinstance(self.tree, _yaml().MappingNode):
            named = [v.value for k, v in self.tree.value if k.value == "name"]
            label = f"attribute {named[0]!r}" if named and isinstance(named[0], str) else self.where
            for key, value in self.tree.value:
                yield from self.at(label).below(value, f"field {key.value!r}").unfilled()
        elif isinstance(self.tree, _yaml().SequenceNode):
            scalar = _yaml().ScalarNode
            for item in self.tree.value:
                if item.tag == _TODO or not isinstance(item, scalar):
                    yield from replace(self, tree=item).unfilled()
        elif self.tree.tag == _TODO:
            yield self

    def _kind(self) -> str:
        if isinstance(self.tree, _yaml().SequenceNode):
            return "a list"
        if isinstance(self.tree, _yaml().MappingNode):
            return "fields"
        return spell(self.tree.value) if self.tree.value else "nothing"
