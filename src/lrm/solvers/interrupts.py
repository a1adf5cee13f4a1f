"""Ctrl-C during a search: the first ends it with the best so far, the second ends the program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lrm.solvers.progress import Deadline

__all__ = ["stop_on_interrupt"]


@contextmanager
def stop_on_interrupt(deadline: Deadline) -> Iterator[None]:
    """Let the first Ctrl-C within the block stop ``deadline``; a second one interrupts as usual.

    Only the main thread receives signals, and a handler that other code has set stays in place.
    """
    main = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT)
    # The command line has a handler of its own, which does the same and remembers it.
    if not main or not (usual is signal.default_int_handler or hasattr(usual, "pressed")):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, usual)
        del number, frame
        deadline.stop()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
