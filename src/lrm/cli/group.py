"""A group of commands that are loaded when called, and the one place where errors are told."""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from lrm.errors import LrmError, UsageError

__all__ = ["LazyGroup"]

PRIVATE_COMMANDS = frozenset({"release", "domain"})
"""Commands that open private tables: what an unexpected exception says stays untold."""


PAID = "the budget of "
"""How the note begins that a release leaves on an error after it has paid."""


class LazyGroup(click.Group):
    """Commands by ``name: ("module:function", short help)``, imported on first use."""

    def __init__(
        self, *args: Any, commands_by_name: Mapping[str, tuple[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(commands_by_name)
        _keep_lines(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table: that of a user's way."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        module, function = self._lazy[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), function)
        _keep_lines(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name those that there are."""
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            ctx.fail(f"no command is called {args[0]!r}; there are {', '.join(self._lazy)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in self._lazy.items()])

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end with the exit code and the sentence that belong to what happened."""
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        for stream in (sys.stdout, sys.stderr):
            # A terminal that has no ε shows a question mark; that is no reason to fail.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        given = list(sys.argv[1:] if args is None else args)
        try:
            result = super().main(given, prog_name or "lrm", standalone_mode=False, **extra)
            sys.stdout.flush()
        except Exception as reason:  # noqa: BLE001 - the one place where errors are told
            _end(reason, private=bool(given) and given[0] in PRIVATE_COMMANDS)
        sys.exit(result if isinstance(result, int) else 0)


def _keep_lines(command: click.Command) -> None:
    r"""Turn ``\b`` of raw docstrings into the mark by which click leaves examples unwrapped."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _keep_lines(inner)


def _end(reason: Exception, *, private: bool) -> NoReturn:
    """Tell what went wrong in one sentence, and exit."""
    if isinstance(reason, BrokenPipeError):  # the reader has seen enough
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until exit
        sys.exit(1)
    if isinstance(reason, click.Abort):
        _say("interrupted; no half-written file was left behind" + _paid(reason.__cause__))
        sys.exit(130)
    if isinstance(reason, click.UsageError):
        _say(reason.format_message().replace("\n", " ").rstrip("."), hint=_hint(reason))
        sys.exit(2)
    if isinstance(reason, click.ClickException):
        _say(reason.format_message())
        sys.exit(reason.exit_code)
    debug = bool(os.environ.get("LRM_DEBUG"))
    if debug:
        _show_frames(reason, private=private)
    if isinstance(reason, LrmError):
        _say(str(reason) + _paid(reason))
        sys.exit(2 if isinstance(reason, UsageError) else 1)
    if isinstance(reason, MemoryError):
        _say("this needs more memory than there is; try a smaller workload or another mechanism")
        sys.exit(1)
    where = traceback.extract_tb(reason.__traceback__)[-1]
    kind = type(reason).__name__
    more = "" if debug else "; run again with LRM_DEBUG=1 to see where"
    paid = _paid(reason)
    _say(f"an error in lrm itself ({kind} in {where.name}){more}; please report it{paid}")
    sys.exit(1)


def _paid(reason: BaseException | None) -> str:
    """What a release had paid before it failed; other notes may be of a library's making."""
    notes = getattr(reason, "__notes__", ())
    return "".join(f"; {note}" for note in notes if note.startswith(PAID))


def _say(sentence: str, hint: str = "") -> None:
    """Print one line, whatever the sentence quotes from a file or a table's columns."""
    from lrm.spelling import visible

    click.echo(visible(f"lrm: {sentence}{hint}"), err=True)


def _hint(reason: click.UsageError) -> str:
    if reason.ctx is None:
        return ""
    return f" (see '{reason.ctx.command_path} --help')"


def _show_frames(reason: BaseException, *, private: bool) -> None:
    """Show where it happened; what an exception says only where no counts are in hand."""
    from lrm.cli.output import echo

    if private:
        shown = traceback.format_tb(reason.__traceback__)
        shown.append(f"{type(reason).__name__} (its message is withheld)\n")
    else:
        shown = traceback.format_exception(reason)
    echo("".join(shown), err=True, nl=False)
