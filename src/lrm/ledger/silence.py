"""An end to waiting for a database that no longer answers.

TCP reports neither a cable that was pulled nor a firewall that forgets: a client then waits for
minutes. Keepalives find some of these, but none behind a proxy that still acknowledges what it
does not pass on. So the socket is shut down from here, and the driver sees a lost connection.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

_STEP = 0.1


class Watch:
    """Shuts a connection down once one of its requests has had no answer for ``seconds``."""

    def __init__(self, db: psycopg.Connection[Any], seconds: float) -> None:
        self._db = db
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        reason: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        waiting_since = None
        while not self._ended.wait(_STEP):
            if not self._is_waiting():
                waiting_since = None
            elif waiting_since is None:
                waiting_since = time.monotonic()
            elif time.monotonic() - waiting_since > self._seconds:
                self._shut_down()
                return

    def _is_waiting(self) -> bool:
        """Whether a request was sent and is not answered."""
        return self._db.info.transaction_status.name == "ACTIVE"

    def _shut_down(self) -> None:
        """Shut the socket down; the descriptor stays the driver's own."""
        with suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._db.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)
