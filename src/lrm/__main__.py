"""``lrm`` and ``python -m lrm``: the command line as a process of its own.

Ctrl-C ends it with one line and exit code 130 at any moment, also while modules are imported. So
nothing is imported here that takes time, and the handler comes first.
"""

import signal
import sys

__all__ = ["main"]


class Interrupt:
    """The handler of Ctrl-C: Python's own, which also remembers that it was called.

    Compiled modules that are being imported turn a KeyboardInterrupt into an ImportError, and
    DuckDB into an error of its own; callbacks lose it.
    """

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, number: int, frame: object) -> None:
        """Interrupt the main thread."""
        del number, frame
        self.pressed = True
        raise KeyboardInterrupt

    def again(self, lost: object) -> None:
        """Interrupt once more, in a moment, where a callback has lost a KeyboardInterrupt."""
        if issubclass(getattr(lost, "exc_type", Exception), KeyboardInterrupt):
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            sys.__unraisablehook__(lost)  # type: ignore[arg-type] # as Python calls it


def main() -> None:
    """Run the command and exit."""
    handler = Interrupt()
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            signal.signal(signal.SIGINT, handler)
            sys.unraisablehook = handler.again
        from lrm.cli import main as command  # noqa: PLC0415 - after the handler

        command(prog_name="lrm")
    except BaseException as reason:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rest takes no time
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        interrupted = handler.pressed or isinstance(reason, KeyboardInterrupt)
        if isinstance(reason, SystemExit) or not interrupted:
            raise
        sys.stderr.write("lrm: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
