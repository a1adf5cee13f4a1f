"""What commands print: JSON for programs, documents that fit a terminal for people."""

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from lrm.files.spelling import escape_controls, visible

if TYPE_CHECKING:
    from lrm.views.blocks import Document


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines, their control characters made visible."""
    # With a stream of its own choice click writes UTF-8 to terminals that are not UTF-8.
    stream = sys.stderr if err else sys.stdout
    click.echo(visible(text, lines=True), file=stream, nl=nl)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are not finite become null."""
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    # Only a string can hold a control character, and there its escape means the same.
    click.echo(escape_controls(text, lambda control: json.dumps(control)[1:-1], lines=True))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _width() -> int:
    from rich.console import Console

    return Console().width


def print_document(document: "Document") -> None:
    """Print a document that fits the terminal."""
    from lrm.views.text import to_text

    echo(to_text(document, _width()))
