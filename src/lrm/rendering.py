"""How records reach what draws them.

A plan or a release can show itself in a notebook and write its page, but what draws them knows
all records and so comes after them in the order of imports. The package itself, which comes
last, connects the two (`lrm/__init__.py`); a record calls the functions here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Renderer(Protocol):
    """What draws records: the module ``lrm.views.notebook``."""

    def text(self, record: Any) -> str:
        """The record as plain text."""
        ...

    def snippet(self, record: Any) -> str:
        """A part of a page, for a notebook."""
        ...

    def compare(self, record: Any, mechanisms: Sequence[str] | None, limit: float | None) -> Any:
        """Other mechanisms compared with a plan."""
        ...

    def figure(self, record: Any) -> Any:
        """A figure of Matplotlib."""
        ...

    def write(self, record: Any, path: str | os.PathLike[str], **choices: Any) -> None:
        """Write a whole page."""
        ...


_loaders: list[Callable[[], Renderer]] = []


def connect(load: Callable[[], Renderer]) -> None:
    """Say what draws records; it is loaded when it is first needed."""
    _loaders[:] = [load]


def text_of(record: Any) -> str:
    """The record as plain text, where that is more than a line."""
    return _loaders[0]().text(record)


def html_of(record: Any) -> str:
    """The record for a notebook."""
    return _loaders[0]().snippet(record)


def figure_of(record: Any) -> Any:
    """The record as a figure of Matplotlib."""
    return _loaders[0]().figure(record)


def compare_with(record: Any, mechanisms: Sequence[str] | None, limit: float | None) -> Any:
    """Other mechanisms compared with a plan, which come after it in the order of imports too."""
    return _loaders[0]().compare(record, mechanisms, limit)


def write_page(record: Any, path: str | os.PathLike[str], **choices: Any) -> None:
    """Write the page of a record."""
    _loaders[0]().write(record, path, **choices)
