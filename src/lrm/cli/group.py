"""A group of commands that are loaded when called."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from lrm.cli.endings import end, one_line_warnings


class LazyGroup(click.Group):
    """Commands by ``name: ("module:function", short help)``, imported on first use."""

    def __init__(
        self, *args: Any, commands_by_name: Mapping[str, tuple[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(commands_by_name)
        _keep_lines(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a user needs them."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        place, short_help = self._lazy[cmd_name]
        module, function = place.split(":")
        command: click.Command = getattr(import_module(module), function)
        command.short_help = short_help
        _keep_lines(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or list the existing ones."""
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            ctx.fail(f"no command is called {args[0]!r}; commands are {', '.join(self._lazy)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in self._lazy.items()])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments."""
        with _aborting():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Load the command and run it."""
        with _aborting():
            return super().invoke(ctx)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit with the code and the message of what happened."""
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        for stream in (sys.stdout, sys.stderr):
            # A terminal without ε shows a question mark instead of failing.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            with one_line_warnings():
                result = super().main(arguments, prog_name or "lrm", standalone_mode=False, **extra)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as reason:  # noqa: BLE001 - all are reported here
            sys.exit(end(reason, arguments))
        sys.exit(result if isinstance(result, int) else 0)


@contextmanager
def _aborting() -> Iterator[None]:
    """Raise click's own exception at Ctrl-C: for Python's, click prints an empty line."""
    try:
        yield
    except KeyboardInterrupt as reason:
        raise click.Abort from reason


def _keep_lines(command: click.Command) -> None:
    r"""Turn ``\b`` of raw docstrings into the mark by which click leaves examples unwrapped."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _keep_lines(inner)
