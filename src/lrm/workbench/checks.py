"""Who may speak to the workbench: the page that it served, in the browser that was let in.

Any web page may send requests to a local address, and a name can be made to lead to it (DNS
rebinding). So a request must name this server as its host, must not come from another origin,
and must carry a key that only a visitor with the printed address has.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from dataclasses import dataclass, field
from email.message import Message

KEY_HEADER = "X-Lrm-Key"
"""A header of its own: another origin cannot send it without asking, and is refused."""

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True)
class Visitors:
    """The requests that are meant for this server.

    >>> here = Visitors(8417)
    >>> here.refusal({"Host": "127.0.0.1:8417"})
    >>> here.refusal({"Host": "rebound.example:8417"})
    'this server is not rebound.example:8417'
    >>> here.refusal({"Host": "localhost:8417", "Origin": "http://elsewhere.example"})
    'requests from other pages are refused'
    """

    port: int

    def refusal(self, headers: Message[str, str] | dict[str, str]) -> str | None:
        """Say why a request is refused, or None where it is not."""
        host = headers.get("Host") or ""
        name, _, port = host.rpartition(":")
        if port != str(self.port) or name not in LOOPBACK_NAMES:
            return f"this server is not {host[:100] or 'what the request is for'}"
        origin = headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            return "requests from other pages are refused"
        return None

    def foreign(self, headers: Message[str, str] | dict[str, str]) -> bool:
        """Whether a browser says that another page has asked for this."""
        return headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}


@dataclass(eq=False)
class Keys:
    """The token of the printed address, which lets one browser in, and the keys of visitors."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _used: bool = False
    _keys: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admit(self, token: str) -> str | None:
        """Exchange the token for a key, once; None where it is wrong or was used before."""
        # JSON can write half of a character, which has no bytes of its own.
        encoded = token.encode(errors="surrogatepass")
        right = hmac.compare_digest(encoded, self.token.encode())
        with self._lock:
            if not right or self._used:
                return None
            self._used = True
            key = secrets.token_urlsafe(32)
            self._keys.append(key)
            return key

    def knows(self, key: str | None) -> bool:
        """Whether a visitor with this key was let in."""
        encoded = (key or "").encode()
        with self._lock:
            same = [hmac.compare_digest(encoded, known.encode()) for known in self._keys]
        return any(same)
