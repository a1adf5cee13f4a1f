"""The server of the page: the standard library's, on the loopback address.

Starlette and uvicorn took 0.17 s to import where ``http.server`` takes 0.05 s, and the page needs
nothing that they have. Everything of lrm that takes time to import is imported by the first
request, or by a thread that begins as soon as the server listens.
"""

from __future__ import annotations

import json
import secrets
import threading
import traceback
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lrm.errors import FileConflict, LrmError
from lrm.files.locations import redacted
from lrm.views.html import SEARCH
from lrm.views.style import CSS
from lrm.workbench.checks import KEY_HEADER, Keys, Visitors
from lrm.workbench.folder import MOST_TEXT

if TYPE_CHECKING:
    from lrm.workbench.actions import Actions

MOST_BYTES = 4 * MOST_TEXT
"""Bytes of a request: it may have two texts, and JSON escapes them."""

MOST_ENTERING = 1024
"""Bytes of the request that exchanges the token for a key: anyone may send one."""

HOST = "127.0.0.1"
"""Nobody on another machine can reach it; ``ssh -L`` forwards a port to those who must."""

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
SCRIPTS = ("app", "codemirror", "domain", "editor", "elements", "errors", "release")
PAGE = frozenset({"/", "/style.css", "/views.css", "/search.js", *(f"/{x}.js" for x in SCRIPTS)})
"""What anybody may read."""

NONCE = "$nonce"
"""Stands in the page for the secret with which the editors may add styles."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-$nonce'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "sandbox allow-scripts; frame-ancestors 'none'"
"""A report has a policy of its own in addition to this one, and must not reach the workbench."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Listens from its creation on; port 0 takes a free one.

    ``root`` is the folder, and ``ledger`` the one that the page offers first.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, root: Path, port: int, ledger: str) -> None:
        super().__init__((HOST, port), Handler)
        self.root, self.ledger = root, ledger
        self.keys = Keys()
        self.visitors = Visitors(self.server_address[1])
        self._loading = threading.Lock()

    @property
    def address(self) -> str:
        """What to open in a browser. What follows ``#`` is never sent, logged or referred to."""
        return f"http://{HOST}:{self.visitors.port}/#token={self.keys.token}"

    @cached_property
    def _actions(self) -> Actions:
        from lrm.workbench.actions import Actions  # noqa: PLC0415 - takes half a second

        return Actions(self.root, self.ledger)

    @property
    def actions(self) -> Actions:
        """What the page can ask for."""
        with self._loading:
            return self._actions

    def warm_up(self) -> None:
        """Import what the first request will need, in the background."""

        def load() -> None:
            self.actions.warm_up()

        threading.Thread(target=load, daemon=True).start()

    def close_all(self) -> None:
        """Stop listening, and end the search; a release that is being made goes on.

        Threads of open connections keep the server: what it has opened in DuckDB must not stay.
        """
        self.server_close()
        actions = self.__dict__.pop("_actions", None)
        if actions is not None:
            actions.planner.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away is no error, and what is one was answered."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "lrm"
    sys_version = ""
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing: addresses of downloads are secrets."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what no page sends, such as another method, with the headers of all answers."""
        del explain
        self._refuse(code, message or "this request is not understood")

    def do_GET(self) -> None:
        """Send a file of the page, or one that was asked for."""
        refusal = self.server.visitors.refusal(self.headers)
        if refusal is not None:
            self._refuse(403, refusal)
        elif self.path in PAGE:
            self._send_page(self.path.removeprefix("/") or "index.html")
        elif self.path.startswith("/once/") and not self.server.visitors.foreign(self.headers):
            self._send_once(self.path.removeprefix("/once/"))
        else:
            self._refuse(404, "there is nothing at this address")

    def _send_page(self, name: str) -> None:
        nonce = secrets.token_urlsafe(16)
        kind = _TYPES.get(Path(name).suffix, "text/html; charset=utf-8")
        if name == "views.css":
            data = CSS.encode()
        elif name == "search.js":
            data = f"export const search = {SEARCH};\n".encode()
        else:
            data = (files("lrm.workbench") / "page" / name).read_bytes()
        if name == "index.html":
            data = data.replace(NONCE.encode(), nonce.encode())
        self._send(200, data, kind, {"Content-Security-Policy": POLICY.replace(NONCE, nonce)})

    def _send_once(self, key: str) -> None:
        try:
            download = self.server.actions.fetch(key)
        except (LrmError, OSError) as reason:
            self._refuse(400, _sentence(reason))
            return
        if download is None:
            self._refuse(404, "this address was used already; ask for the file again")
            return
        name, kind, data = download
        if kind.startswith("text/html"):
            extra = {"Content-Security-Policy": REPORT_POLICY}
        else:
            extra = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        self._send(200, data, kind, extra)

    def do_POST(self) -> None:
        """Do what the page asks for."""
        visitors, headers = self.server.visitors, self.headers
        refusal = visitors.refusal(headers)
        if refusal is None and visitors.foreign(headers):
            refusal = "requests from other pages are refused"
        if refusal is not None:
            self._refuse(403, refusal)
            return
        entering = self.path == "/api/enter"
        if not entering and not self.server.keys.knows(headers.get(KEY_HEADER)):
            # Of a visitor who was not let in, nothing is read but the headers.
            self._refuse(401, "this page is not signed in; open the address that lrm has printed")
            return
        body = self._body(MOST_ENTERING if entering else MOST_BYTES)
        if body is None:
            return
        try:
            values = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(400, "a request must be JSON")
            return
        if entering:
            self._enter(values)
        elif self.path.startswith("/api/"):
            self._answer(self.path.removeprefix("/api/"), values)
        else:
            self._refuse(404, "there is nothing at this address")

    def _body(self, most: int) -> bytes | None:
        if self.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            self._refuse(415, "a request must be JSON")
            return None
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._refuse(411, "a request must state its length")
            return None
        if len(length) > 18 or int(length) > most:
            self._refuse(413, f"a request may have at most {most:,} bytes")
            return None
        return self.rfile.read(int(length))

    def _enter(self, values: Any) -> None:
        token = values.get("token") if isinstance(values, dict) else None
        key = self.server.keys.admit(token if isinstance(token, str) else "")
        if key is None:
            self._refuse(401, "this address is not valid, or was used already; start lrm again")
        else:
            self._send_json(200, {"key": key})

    def _answer(self, name: str, values: Any) -> None:
        from lrm.workbench.params import Params  # noqa: PLC0415 - after the server listens

        try:
            answer = self.server.actions.call(name, Params(values))
        except FileConflict as reason:
            self._refuse(409, str(reason), close=False)
        except LrmError as reason:
            inputs = values.values() if isinstance(values, dict) else ()
            texts = [value for value in inputs if isinstance(value, str)]
            sentence = redacted(_sentence(reason), [*texts, self.server.ledger])
            self._refuse(400, sentence, close=False)
        except OSError as reason:  # a name too long for a file, a folder without rights
            why = reason.strerror or type(reason).__name__
            self._refuse(400, f"a file cannot be read or written: {why}", close=False)
        except Exception as reason:  # noqa: BLE001 - the page shows that it happened
            self._refuse(500, _internal(reason), close=False)
        else:
            self._send_json(200, answer)

    def _refuse(self, status: int, sentence: str, *, close: bool = True) -> None:
        """Send a sentence; close where the body of the request was perhaps not read."""
        self.close_connection = self.close_connection or close
        self._send_json(status, {"error": sentence})

    def _send_json(self, status: int, values: dict[str, Any]) -> None:
        data = json.dumps(values, ensure_ascii=False, allow_nan=False, default=str).encode()
        self._send(status, data, "application/json")

    def _send(
        self, status: int, data: bytes, kind: str, extra: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        shared = {"Content-Type": kind, "Content-Length": str(len(data)), **HEADERS}
        for name, value in {**shared, **(extra or {})}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)


def _sentence(reason: BaseException) -> str:
    """An error of ours with its notes; of any other one nothing but its kind."""
    if not isinstance(reason, LrmError):
        return f"the file cannot be read ({type(reason).__name__})"
    return "; ".join([str(reason), *getattr(reason, "__notes__", ())])


def _internal(reason: Exception) -> str:
    """Where it happened: its message may hold anything."""
    where = traceback.extract_tb(reason.__traceback__)[-1]
    return f"an error in lrm itself ({type(reason).__name__} in {where.name}); please report it"
