"""Places of files and databases, shown without the secrets that they may hold.

A password can be almost anywhere in the address of a database, and badly written addresses
(an ``@`` or ``/`` in the password, a blank before the scheme) put it where a parser expects the
host. So of an address nothing is shown but its scheme, and of a driver's message about it only
which of a few known reasons it gives.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*(?::[A-Za-z][A-Za-z0-9+.-]*)*)://")
_ADDRESS = re.compile(
    r"://"  # any URL
    r"|(?:^|[\s;?&])(?:host|hostaddr|dbname|user|service)\s*=.*\s\w+\s*="  # libpq's key=value
    r"|(?:password|passwd|passfile|pwd|secret|token)\w*\s*="
    r"|^[^/]*:/?[^/]*@",  # user:password@host; and what pathlib makes of a URL
    re.IGNORECASE | re.DOTALL,
)
_REASONS = (
    (r"password authentication failed|no password supplied", "it did not accept this password"),
    (r'role ".*" does not exist', "it does not know this user"),
    (r'database ".*" does not exist', "it has no such database"),
    (r"no pg_hba\.conf entry", "it does not admit this user from here"),
    (r"translate host name|not known|resolve", "the name of its host is unknown"),
    (r"Connection refused", "nothing answers at this host and port"),
    (r"No such file or directory", "no server listens at this socket"),
    (r"timeout|timed out", "it did not answer in time"),
    (r"too many", "it has no connection to spare"),
    (r"starting up|shutting down", "it is starting or stopping"),
    (r"SSL|certificate", "no secure connection could be agreed on"),
)


def is_address(location: str) -> bool:
    """Tell whether this is the address of a database or server, and not the path of a file."""
    return _ADDRESS.search(location) is not None


def shown(location: str | os.PathLike[str]) -> str:
    """Return a path as it is, and of an address its scheme alone.

    >>> shown("data/visits.csv"), shown(" Postgresql://bob:p@ss@host/db")
    ('data/visits.csv', 'Postgresql://…')
    >>> shown("host=db password=secret"), shown("bob:secret@host/db")
    ('an address (withheld)', 'an address (withheld)')
    """
    text = os.fspath(location)
    if not is_address(text):
        return text
    scheme = _SCHEME.match(text)
    return f"{scheme[1]}://…" if scheme else "an address (withheld)"


def redacted(sentence: str, secrets: Iterable[str]) -> str:
    """Return a sentence in which no address among the given texts is quoted.

    ``secrets`` are what the user typed; ``--option=value`` is looked at in parts as well.
    """
    for text in secrets:
        for value in (text, *text.split("=", 1)):
            if value and is_address(value):
                # pathlib writes // as /
                for form in (value, value.strip(), os.path.normpath(value), repr(value)[1:-1]):
                    sentence = sentence.replace(form, shown(value))
    return sentence


def unescaped_password(url: str) -> bool:
    """Tell whether a URL has an ``@`` more than it should: a password that is not escaped.

    >>> unescaped_password("postgresql://bob:p@ss@host/db")
    True
    >>> unescaped_password("postgresql://bob:p%40ss@host/db?table=a")
    False
    """
    address = url.partition("://")[2].partition("?")[0]
    return address.count("@") > 1 or "@" in address.partition("/")[2]


def why_unreachable(message: str) -> str:
    """Return the reason that a PostgreSQL driver gives, in words that hold no part of the URL."""
    for pattern, reason in _REASONS:
        if re.search(pattern, message):
            return reason
    return "the connection failed; check host, port, database and user"
