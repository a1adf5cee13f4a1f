"""Records as values that JSON can hold, written and read by the declared types of their fields."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from lrm.errors import FileFormatError

T = TypeVar("T")


def facts_of(value: Any, *left_out: str) -> Any:
    """A record as an object of JSON, or as a list where its class has ``as_list``.

    Infinite numbers, which JSON does not have, are text. A class may have ``to_facts`` and
    ``from_facts`` of its own, and name fields in ``may_lack`` that older files do not have.
    """
    if isinstance(value, tuple):
        return [facts_of(part) for part in value]
    if hasattr(value, "to_facts"):
        return value.to_facts()
    if is_dataclass(value):
        names = [part.name for part in fields(value) if part.name not in left_out]
        facts = {name: facts_of(getattr(value, name)) for name in names}
        return list(facts.values()) if getattr(value, "as_list", False) else facts
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def read_record(kind: type[T], facts: Any) -> T:
    """Read what `facts_of` returned; anything else is an error that names the fact.

    >>> from lrm.queries.workload.display import OrderKey
    >>> facts = {"column": "n", "labels": None, "descending": 1, "nulls_first": False}
    >>> read_record(OrderKey, facts)
    Traceback (most recent call last):
    ...
    lrm.errors.FileFormatError: the fact 'descending' of OrderKey has the wrong type
    """
    declared: Any = kind  # whose hash mypy does not see
    types, required = _declared(declared)
    if getattr(kind, "as_list", False) and isinstance(facts, list) and len(facts) == len(types):
        facts = dict(zip(types, facts, strict=True))
    if not isinstance(facts, dict) or not required <= set(facts) <= set(types):
        raise FileFormatError(f"the facts of {kind.__name__} are missing or not known")
    values = {}
    for name, fact in facts.items():
        try:
            values[name] = _read(types[name], fact)
        except TypeError:
            sentence = f"the fact {name!r} of {kind.__name__} has the wrong type"
            raise FileFormatError(sentence) from None
    return kind(**values)


@cache
def _declared(kind: Any) -> tuple[dict[str, Any], set[str]]:
    """The types of the fields by name, and the fields that no file lacks."""
    hints, names = get_type_hints(kind), [part.name for part in fields(kind)]
    return {name: hints[name] for name in names}, set(names) - set(getattr(kind, "may_lack", ()))


def _read(kind: Any, fact: Any) -> Any:  # noqa: PLR0911 - one per kind
    origin, options = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:  # with None: there are no others
        (other,) = (option for option in options if option is not NoneType)
        return None if fact is None else _read(other, fact)
    if origin is tuple and isinstance(fact, list):
        if options[-1] is Ellipsis:
            return tuple(_read(options[0], part) for part in fact)
        if len(options) == len(fact):
            return tuple(map(_read, options, fact))
    elif hasattr(kind, "from_facts"):
        return kind.from_facts(fact)
    elif is_dataclass(kind):
        return read_record(kind, fact)  # type: ignore[arg-type]
    elif kind is float and isinstance(fact, str) and fact in {"inf", "-inf"}:
        return float(fact)
    elif type(fact) is kind or (origin is Literal and isinstance(fact, str) and fact in options):
        return fact
    raise TypeError(kind)
