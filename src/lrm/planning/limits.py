"""Memory: how many entries an array may have.

There is one budget, ``MEMORY``. What has no other form may fill it, what only saves time an eighth,
and what is computed piece by piece a thirty-second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lrm.queries.maps.linear import BLOCK_ENTRIES

MEMORY = 1 << 27
"""Entries of the largest arrays (1 GiB)."""

ARRAY = MEMORY // 8
"""Entries of an array that is written out where there is another way (128 MB)."""

SIDE = 1 << 12
"""Rows of such an array that is square: matrices that are factored."""

BLOCK = BLOCK_ENTRIES
"""Entries of a piece that is worked on at a time, or kept for the next use (32 MB)."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Held(Generic[Key, Value]):
    """What was computed for some keys, up to ``most`` numbers in all; the oldest goes first."""

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self._most, self._size, self._held = most, size, 0
        self._known: dict[Key, Value] = {}

    def find(self, key: Key, make: Callable[[], Value]) -> Value:
        """What belongs to a key, computed where it is not held."""
        if key not in self._known:
            value = make()
            self._held += self._size(value)
            while self._held > self._most and self._known:
                self._held -= self._size(self._known.pop(next(iter(self._known))))
            self._known[key] = value
        return self._known[key]
