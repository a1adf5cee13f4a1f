"""A proxy before a database that loses the connection at a chosen message."""

import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit, urlunsplit


def _start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


class Proxy:
    """Passes messages on to a PostgreSQL server, up to the one at which it stops.

    ``stop`` is the number of a request of the first connection, counted from 0, or what the request
    holds, before which (``when="before"``) or after which (``"after"``) the connection is ``"cut"``
    or falls ``"silent"``. Later connections are served while ``then`` is ``"serve"``, and else
    refused.
    """

    def __init__(self, url, stop, *, when="after", how="cut", then="serve"):
        self.stop, self.when, self.how, self.then = stop, when, how, then
        self.requests = []
        self._parts = urlsplit(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = [self._listener]
        self._first = True
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        """The address of the proxy."""
        port = self._listener.getsockname()[1]
        place = f"{self._parts.username or 'postgres'}@127.0.0.1:{port}"
        plain = "sslmode=disable&gssencmode=disable"
        return urlunsplit(("postgresql", place, self._parts.path, plain, ""))

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _server(self):
        query = dict(pair.split("=", 1) for pair in self._parts.query.split("&") if pair)
        host = query.get("host", self._parts.hostname or "localhost").replace("%2F", "/")
        port = int(query.get("port", self._parts.port or 5432))
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, port))

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            first, self._first = self._first, False
            if not first and self.then != "serve":
                client.close()
                continue
            server = self._server()
            self._open += [client, server]
            state = {"silent": False}
            _start(self._requests, client, server, first, state)
            _start(self._answers, server, client, state)

    def _answers(self, server, client, state):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if not state["silent"]:
                    client.sendall(data)
            if not state["silent"]:
                client.close()

    def _requests(self, client, server, first, state):
        number = 0
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if state["silent"]:
                    continue
                found = self.stop in data if isinstance(self.stop, bytes) else number == self.stop
                stops = first and found
                if first:
                    self.requests.append(data)
                if stops:
                    # From here on the client hears nothing, whatever the server answers.
                    state["silent"] = True
                    if self.when == "after":
                        server.sendall(data)
                        server.settimeout(20)
                    if self.how == "cut":
                        client.shutdown(socket.SHUT_RDWR)
                        break
                else:
                    server.sendall(data)
                number += 1
        if self.how == "cut" and self.when == "after":
            time.sleep(0.1)  # the server reads what was sent before it finds the connection closed
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
