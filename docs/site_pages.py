"""MkDocs hook: the help of every command, as ``lrm COMMAND --help`` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from lrm.cli import main

PLACE = "<!-- the help of every command -->"


def helps(command: click.Command, context: click.Context, level: int = 3) -> Iterator[str]:
    """A section for a command, then for those below it."""
    heading = f"{'#' * min(level, 4)} {context.command_path}"
    yield f"{heading}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from helps(below, click.Context(below, context, info_name=name), level + 1)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page before it is rendered."""
    if PLACE not in markdown:
        return markdown
    context = click.Context(main, info_name="lrm", terminal_width=80, max_content_width=80)
    return markdown.replace(PLACE, "\n".join(helps(main, context)))
