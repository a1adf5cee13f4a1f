"""JSON as RFC 8259 has it, read strictly and within limits."""

from __future__ import annotations

import json
import math
from typing import Any

from lrm.errors import FileFormatError
from lrm.files.reading import TEXT_LIMIT

MOST_DEPTH = 16
"""Levels of lists and objects; ours have eight."""


def parse_json(data: bytes) -> Any:
    """Parse JSON text; what other readers might understand differently is refused.

    Refused are NaN and Infinity, numbers beyond float64, integers of thousands of digits, keys
    that occur twice, text that is not Unicode (lone surrogates) and deep nesting.

    >>> parse_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    if len(data) > TEXT_LIMIT:
        raise FileFormatError(f"its JSON has more than {TEXT_LIMIT >> 20} MiB")
    try:
        value = json.loads(
            data.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_once,
        )
    except RecursionError:
        raise FileFormatError("its JSON is nested too deeply") from None
    except ValueError:  # of the syntax, the encoding, or an integer of too many digits
        raise FileFormatError("its JSON cannot be read") from None
    _check(value)
    return value


def _refuse_constant(name: str) -> Any:
    raise FileFormatError(f"its JSON holds {name}, which is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FileFormatError("its JSON holds a number beyond the range of float64")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique_pairs = dict(pairs)
    if len(unique_pairs) != len(pairs):
        raise FileFormatError("its JSON has the same key twice")
    return unique_pairs


def _check(value: Any) -> None:
    """Refuse deep nesting and broken text, without recursion of our own."""
    level = [value]
    for _ in range(MOST_DEPTH):
        texts = [item for item in level if isinstance(item, str)]
        _check_text("".join(texts))
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise FileFormatError("its JSON is nested too deeply")


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise FileFormatError("its JSON holds text that is not Unicode") from None
