"""``lrm`` and ``python -m lrm``: the command line as a process of its own.

Ctrl-C, SIGTERM and SIGHUP end it with one line and exit code 130, 143 or 129 at any moment, also
while modules are imported. So nothing is imported here that takes time, and the handler comes
first.
"""

import os
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command in an orderly way: Ctrl-C, `kill`, and a terminal that is closed."""


class Interrupt:
    """The handler of `SIGNALS`: Python's own of Ctrl-C, which also remembers its signal.

    Compiled modules that are being imported turn a KeyboardInterrupt into an ImportError, and
    DuckDB into an error of its own; callbacks lose it.
    """

    def __init__(self) -> None:
        self.pressed = 0

    def __call__(self, number: int, frame: object) -> None:
        """Interrupt the main thread."""
        del frame
        if number != signal.SIGALRM:  # which repeats another one
            self.pressed = number
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
    # One BLAS thread unless asked, before NumPy is imported: with two on a busy machine, `lrm show`
    # of a release took 76 s instead of 7.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    handler = Interrupt()
    try:
        usual = (signal.default_int_handler, signal.SIG_DFL)
        for number in SIGNALS:
            if signal.getsignal(number) in usual:  # else it is ignored, as SIGHUP by nohup
                signal.signal(number, handler)
                sys.unraisablehook = handler.again
        from lrm.cli import main as command  # noqa: PLC0415 - after the handler

        command(prog_name="lrm")
    except BaseException as reason:
        for number in (*SIGNALS, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)  # the rest takes no time
        interrupted = handler.pressed or isinstance(reason, KeyboardInterrupt)
        if isinstance(reason, SystemExit) or not interrupted:
            raise
        sys.stderr.write("lrm: interrupted\n")
        sys.exit(128 + (handler.pressed or signal.SIGINT))


if __name__ == "__main__":
    main()
