"""The parameters of a request, which may be anything, and the warnings while it is answered."""

from __future__ import annotations

import math
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lrm.errors import UsageError

_CATCHING = threading.RLock()
"""All threads share the state of `warnings`: two that catch at once would get each other's."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can write and no file can hold."""


class Params:
    """Values of JSON by name, each taken at the type that is expected.

    >>> Params({"name": "a.sql"}).text("name")
    'a.sql'
    """

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise UsageError("a request must be an object of JSON")
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        """A text; ``default`` where there is none."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or _SURROGATE.search(value):
            raise UsageError(f"{name} must be a text")
        return value

    def choice(self, name: str, *choices: str) -> str:
        """One of a few words."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise UsageError(f"{name} must be one of {', '.join(choices)}, not {value[:40]!r}")
        return value

    def flag(self, name: str) -> bool:
        """Whether it is true."""
        return self._values.get(name) is True

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{name} must be a number such as 12")
        try:
            number = float(value)
        except OverflowError:  # JSON has integers of any length
            number = math.inf
        if not math.isfinite(number):
            raise UsageError(f"{name} must be a finite number")
        return number


@contextmanager
def caught() -> Iterator[list[str]]:
    """Yield a list that holds the warnings of the block after its end.

    >>> with caught() as told:
    ...     warnings.warn("mind the gap")
    >>> told
    ['mind the gap']
    """
    messages: list[str] = []
    with _CATCHING, warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        try:
            yield messages
        finally:
            messages += [str(record.message) for record in records]
