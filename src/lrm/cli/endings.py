"""What a command says on standard error: one line for a failure or a warning; exit codes."""

import errno
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from lrm.errors import (
    Charge,
    LrmError,
    PlanWarning,
    PrivacyWarning,
    ReleaseWarning,
    SqlWarning,
    TableWarning,
    UsageError,
    WorkloadWarning,
    note_charge,
)

PRIVATE_COMMANDS = frozenset({"release", "publish", "domain", "budget"})
"""Commands that open tables or databases: do not show the message of an unexpected exception."""

CODES: dict[Charge, int] = {"none": 1, "made": 3, "unknown": 4}
"""Exit codes of a failure, by whether a budget was charged before it."""

MESSAGES = "LRM_MESSAGES"
"""With the value ``json`` in the environment, warnings on standard error are objects of JSON."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end(reason: BaseException, arguments: Sequence[str]) -> int:
    """Report why a command failed, and return its exit code.

    Nothing that is printed holds a control character, or the address of a database that was
    given; with ``LRM_DEBUG`` it also says where in the code it happened.
    """
    received = _leave()
    if received or isinstance(reason, (click.Abort, KeyboardInterrupt)):
        # Nothing is imported here: what was interrupted may be the import of the same module.
        paid = _paid(reason) or _paid(reason.__cause__)
        code = 128 + (received or signal.SIGINT)  # as shells have it
        sentence = f"interrupted; no half-written file was left behind{paid}"
        with suppress(OSError):  # the terminal that was closed
            click.echo(f"lrm: {sentence}", err=True)
            if "--json" in arguments:
                charge = getattr(reason, "charge", getattr(reason.__cause__, "charge", "none"))
                text = f'"exit_code": {code}, "charge": "{charge}"'
                click.echo(f'{{"error": {{"message": "interrupted", {text}}}}}')
        return code
    if isinstance(reason, BrokenPipeError):  # the reader has seen enough
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until exit
        return 1
    if isinstance(reason, click.exceptions.NoArgsIsHelpError):  # `lrm budget` alone
        reason.show()
        return reason.exit_code
    from lrm.files.locations import redacted
    from lrm.files.spelling import visible

    debug = bool(os.environ.get("LRM_DEBUG")) and not isinstance(reason, click.ClickException)
    secrets = [*arguments, os.environ.get("LRM_LEDGER", "")]
    if debug:
        private = bool(PRIVATE_COMMANDS.intersection(arguments[:1]))
        shown = redacted(_frames(reason, private=private), secrets)
        click.echo(visible(shown, lines=True), err=True, nl=False)
    sentences, code = _outcome(reason, debug=debug)
    shown_sentences = [redacted(sentence, secrets) for sentence in sentences]
    for sentence in shown_sentences:
        click.echo(visible(f"lrm: {sentence}"), err=True)
    if "--json" in arguments:
        from lrm.cli.terminal import print_json

        print_json({"error": _error_facts(reason, shown_sentences, code)})
    return code


def _error_facts(reason: BaseException, sentences: list[str], code: int) -> dict[str, Any]:
    """An error as plain values, for programs that read standard output."""
    places = [
        {"line": each.line, "column": each.column, "field": each.field}
        for each in (reason.each if isinstance(reason, LrmError) else ())
    ]
    return {
        "message": "\n".join(sentences),
        "kind": type(reason).__name__,
        "exit_code": code,
        "charge": getattr(reason, "charge", "none"),
        "places": [place for place in places if any(place.values())],
    }


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print a warning as one line on standard error, without a place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # a printed plan states its warnings
        warnings.simplefilter("ignore", ReleaseWarning)  # and so does a printed release
        default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, (PrivacyWarning, SqlWarning, TableWarning, WorkloadWarning)):
                from lrm.files.spelling import visible

                sentence = visible(str(message))
                if os.environ.get(MESSAGES) == "json":
                    click.echo(json.dumps({"warning": sentence}), err=True)
                else:
                    click.echo(f"lrm: warning: {sentence}", err=True)
            else:
                default(message, category, *place, **more)

        warnings.showwarning = show
        yield


@contextmanager
def paying(ledger: str | None, places: Sequence[str | None]) -> Iterator[None]:
    """Say, where a release ends early, what was saved, or that its budget may be charged already.

    If it is known to be charged, the release itself has reported it. A file in ``places`` was saved
    if there is another one than before: each is written under another name and then renamed.
    """
    files = [place for place in places if place is not None]
    before = [_identity(file) for file in files]
    try:
        yield
    except BaseException as reason:
        pairs = zip(files, before, strict=True)
        saved = [file for file, old in pairs if _identity(file) not in {None, old}]
        if saved:
            sentence = f"the release was saved to {' and '.join(saved)}"
            reason.saved = sentence  # type: ignore[attr-defined] # read by `_paid`
            reason.add_note(sentence)
        elif _is_interrupted(reason) and ledger is not None and not _paid(reason):
            history = "`lrm budget history` shows it"
            sentence = f"the budget of this release may be charged; {history}"
            note_charge(reason, sentence, "unknown")
        raise


def _identity(file: str) -> tuple[int, int] | None:
    """What distinguishes a file from one that replaces it; None where there is none."""
    try:
        file_status = os.stat(file)  # noqa: PTH116 - nothing is imported while a signal is handled
    except (OSError, ValueError):
        return None
    return file_status.st_dev, file_status.st_ino


def _leave() -> int:
    """The signal that ended the process's own command, or 0; others are ignored from now on."""
    received = 0
    for number in SIGNALS:
        pressed = _pressed(number)
        if pressed is not None:
            received = pressed
            signal.signal(number, signal.SIG_IGN)
    return received


def _is_interrupted(reason: BaseException) -> bool:
    """Whether a signal ended the command; engines make errors of their own of it."""
    return isinstance(reason, KeyboardInterrupt) or any(map(_pressed, SIGNALS))


def _pressed(number: int) -> int | None:
    """The signal that the process's own handler has received, or 0; None for other handlers."""
    pressed: int | None = getattr(signal.getsignal(number), "pressed", None)
    return pressed


def _outcome(reason: BaseException, *, debug: bool) -> tuple[list[str], int]:
    """What went wrong, one sentence per error, and the exit code."""
    if isinstance(reason, click.UsageError):
        hint = f" (see '{reason.ctx.command_path} --help')" if reason.ctx else ""
        return [" ".join(reason.format_message().split()).rstrip(".") + hint], 2
    if isinstance(reason, click.ClickException):
        return [reason.format_message()], reason.exit_code
    if isinstance(reason, MemoryError):
        reason = LrmError("not enough memory; try a smaller workload or another mechanism")
    if isinstance(reason, OSError) and reason.errno == errno.ENAMETOOLONG:
        reason = UsageError("the name of a file is too long; give the name of a file that exists")
    failed = CODES[getattr(reason, "charge", "none")]
    if isinstance(reason, LrmError):
        *earlier, last = reason.sentences
        usage = isinstance(reason, UsageError) and failed == CODES["none"]
        return [*earlier, last + _paid(reason)], 2 if usage else failed
    where = traceback.extract_tb(reason.__traceback__)[-1]
    what = f"an error in lrm itself ({type(reason).__name__} in {where.name})"
    more = "" if debug else "; run again with LRM_DEBUG=1 to see where"
    return [f"{what}{more}; please report it{_paid(reason)}"], failed


def _paid(reason: BaseException | None) -> str:
    """What a release had spent or saved before it failed."""
    sentences = (getattr(reason, name, None) for name in ("charged", "saved"))
    return "".join(f"; {sentence}" for sentence in sentences if sentence)


def _frames(reason: BaseException, *, private: bool) -> str:
    """Where it happened; the message of an exception only if no counts are in memory."""
    if not private:
        return "".join(traceback.format_exception(reason))
    frames = "".join(traceback.format_tb(reason.__traceback__))
    return f"{frames}{type(reason).__name__} (its message is withheld)\n"
