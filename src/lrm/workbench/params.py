"""The parameters of a request, which may be anything, and the warnings while it is answered."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lrm.errors import UsageError
from lrm.files.facts import Facts

_CATCHING = threading.RLock()
"""All threads share the state of `warnings`: two that catch at once would get each other's."""


class Params(Facts):
    """The parameters of a request, of which any may be missing.

    >>> Params({"name": "a.sql"}).text("name")
    'a.sql'
    """

    def __init__(self, values: Any) -> None:
        super().__init__(values, None, "a request", UsageError)


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
