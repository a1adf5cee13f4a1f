"""Warnings of the library, caught for the request that they are about.

All threads share the state of `warnings`: two that catch at once would get each other's.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_CATCHING = threading.RLock()


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
