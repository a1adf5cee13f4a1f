"""What JSON of a file or of a request holds, each piece with the type that it must have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError, LrmError

T = TypeVar("T")

_MOST_TEXT = 1 << 24
_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can write and no text can hold."""

_WHOLE = re.compile(r"0|[1-9][0-9]{0,99}", re.ASCII)
_RATIO = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399}|\.[0-9]{1,400})?", re.ASCII)


class Facts:
    """An object of JSON that is read with a declared type for each of its values.

    Parameters
    ----------
    values
        What JSON held: anything.
    names
        Exactly the keys that it must have; any, where a reader has a default for what is missing.
    where
        What it is called in errors.
    error
        The class of the errors.

    >>> facts = Facts({"bits": 30}, ["bits"])
    >>> facts.integer("bits", 0, 62)
    30
    >>> Facts({"bits": True}, ["bits"]).integer("bits", 0, 62)
    Traceback (most recent call last):
    ...
    lrm.errors.FileFormatError: 'bits' must be an integer
    """

    def __init__(
        self,
        values: Any,
        names: Sequence[str] | None,
        where: str = "",
        error: type[LrmError] = FileFormatError,
    ) -> None:
        self._where, self._error = where, error
        if not isinstance(values, dict):
            raise error(f"{where or 'the facts'} must be an object of JSON")
        for name in names or ():
            if name not in values:
                raise error(f"{self._name(name)} is missing")
        known = values if names is None else names
        for name in values:
            if name not in known:
                raise error(f"{where or 'it'} has a fact that is not known")
        self._values: dict[str, Any] = values

    def _name(self, name: str) -> str:
        return f"{name!r} of {self._where}" if self._where else repr(name)

    def _fail(self, name: str, expected: str) -> LrmError:
        return self._error(f"{self._name(name)} must be {expected}")

    def any(self, name: str) -> Any:
        """A value of any type, for a reader of its own."""
        return self._values[name]

    def has(self, name: str) -> bool:
        """Whether a value is something else than null."""
        return self._values[name] is not None

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """What ``read`` makes of the value, or None for null."""
        return read(name) if self.has(name) else None

    def text(self, name: str, pattern: str | None = None, *, default: str | None = None) -> str:
        """A text, of the form of a regular expression where one is given."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or len(value) > _MOST_TEXT or _HALVES.search(value):
            raise self._fail(name, "text")
        if pattern is not None and not re.fullmatch(pattern, value, re.ASCII):
            raise self._fail(name, "text of another form")
        return value

    def choice(self, name: str, *options: str, default: str | None = None) -> str:
        """One of a few words."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or value not in options:
            raise self._fail(name, " or ".join(map(repr, options)))
        return value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """True or false."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self._fail(name, "true or false")
        return value

    def integer(self, name: str, least: int, most: int) -> int:
        """An integer within limits."""
        return self._integer(name, self._values[name], least, most)

    def _integer(self, name: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._fail(name, "an integer")
        if not least <= value <= most:
            raise self._fail(name, f"between {least:,} and {most:,}")
        return value

    def number(self, name: str, least: float = 0.0, *, default: float | None = None) -> float:
        """A finite number of at least ``least``."""
        return self._number(name, self._values.get(name, default), least)

    def _number(self, name: str, value: Any, least: float = -1e300) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._fail(name, "a number")
        if not least <= value <= 1e300:
            raise self._fail(name, f"a finite number of at least {least:g}")
        return float(value)

    def integers(self, name: str, least: int, most: int) -> tuple[int, ...]:
        """A list of integers within limits."""
        return tuple(self._integer(name, value, least, most) for value in self._list(name))

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(self._number(name, value) for value in self._list(name))

    def _list(self, name: str) -> list[Any]:
        value = self._values[name]
        if not isinstance(value, list):
            raise self._fail(name, "a list")
        return value

    def whole(self, name: str) -> int:
        """A whole number that is spelled as text, since it may pass 2^53."""
        value = self._values[name]
        if not isinstance(value, str) or not _WHOLE.fullmatch(value):
            raise self._fail(name, "a whole number as text")
        return int(value)

    def fraction(self, name: str) -> Fraction:
        """An exact amount that is spelled as text: ``"0.1"`` or ``"1/3"``."""
        value = self._values[name]
        if not isinstance(value, str) or not _RATIO.fullmatch(value):
            raise self._fail(name, "an exact amount as text")
        return Fraction(value)

    def part(self, name: str, names: Sequence[str]) -> Facts:
        """An object within this one, with exactly these keys."""
        return Facts(self._values[name], names, self._name(name))

    def kind(self, name: str) -> str:
        """The ``kind`` of an object within this one, which decides its other keys."""
        value = self._values[name]
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            raise self._fail(name, "an object with a kind")
        return str(value["kind"])


class Arrays:
    """The arrays of a file, each taken once and with the type and shape that it must have."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._taken: set[str] = set()

    def length(self, name: str) -> int:
        """The first side of an array, which is not taken yet."""
        if name not in self._arrays:
            raise FileFormatError(f"the array {name!r} is missing")
        return len(np.atleast_1d(self._arrays[name]))

    def take(self, name: str, kind: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of float64 (``"f8"``) or int64 (``"i8"``); None means any length."""
        if name not in self._arrays:
            raise FileFormatError(f"the array {name!r} is missing")
        array = self._arrays[name]
        self._taken.add(name)
        if array.dtype != np.dtype(f"<{kind}"):
            raise FileFormatError(f"the array {name!r} must be of type <{kind}, not {array.dtype}")
        fits = len(shape) == array.ndim and all(
            side is None or side == actual_side
            for side, actual_side in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise FileFormatError(f"the array {name!r} has the wrong shape {array.shape}")
        if kind == "f8" and not np.all(np.isfinite(array)):
            raise FileFormatError(f"the array {name!r} holds NaN or infinity")
        return array

    def part(self, prefix: str) -> Arrays:
        """The arrays whose names begin so, without the prefix: all of them belong to one record."""
        own = {name: array for name, array in self._arrays.items() if name.startswith(prefix)}
        self._taken.update(own)
        return Arrays({name.removeprefix(prefix): array for name, array in own.items()})

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def check_all_taken(self) -> None:
        """Refuse a file with an array that nothing asked for."""
        if set(self._arrays) - self._taken:
            raise FileFormatError("it has an array that does not belong to it")
