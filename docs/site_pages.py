"""MkDocs hook: the help of every command, and indices in formulas.

Formulas are plain text, ``Σ_B θ_B``, which is read as it is in a terminal; on the site ``B`` is an
index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from lrm.cli import main

PLACE = "<!-- the help of every command -->"

CODE = re.compile(r"(^```.*?^```$|^ {4}.*?$|`[^`\n]*`|\]\([^)]*\))", re.MULTILINE | re.DOTALL)
INDEX = re.compile(
    r"(?:(?<=vol)|(?<=max)|(?<=[^\W_]|[⊗‖∫])(?<![a-z]{3}))_(?:\{([^{}]*)\}|([a-zA-Z0-9]{1,2})(?![a-zA-Z0-9_]))"
)
POWER = re.compile(r"(?<=[\w)|])\^(?:\(([^()]*)\)|([−-]?(?:\d+\.\d+|\w+|[⅓½])))")


def helps(command: click.Command, context: click.Context, level: int = 3) -> Iterator[str]:
    """A section for a command, then for those below it."""
    heading = f"{'#' * min(level, 4)} {context.command_path}"
    yield f"{heading}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from helps(below, click.Context(below, context, info_name=name), level + 1)


def with_indices(markdown: str) -> str:
    """The text with indices and powers outside of code."""
    parts = CODE.split(markdown)
    for place in range(0, len(parts), 2):
        lowered = INDEX.sub(lambda found: f"<sub>{found[1] or found[2]}</sub>", parts[place])
        parts[place] = POWER.sub(lambda found: f"<sup>{found[1] or found[2]}</sup>", lowered)
    return "".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page before it is rendered."""
    if PLACE not in markdown:
        return with_indices(markdown)
    context = click.Context(main, info_name="lrm", terminal_width=80, max_content_width=80)
    return markdown.replace(PLACE, "\n".join(helps(main, context)))
