"""Formats of dates in several dialects → text that DuckDB evaluates.

Only what every label is sure to be spelt like is read: years, months, weeks, days and their names.
"""

from __future__ import annotations

import re

__all__ = ["FormatError", "date_pieces"]

_NUMBERS = {"YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d"}
_POSTGRES = {
    **_NUMBERS,
    **{one.lower(): two for one, two in _NUMBERS.items()},
    "DDD": "%j",
    "ddd": "%j",
    "IYYY": "%G",
    "iyyy": "%G",
    "IW": "%V",
    "iw": "%V",
    "ID": "%u",
    "FMMM": "%-m",
    "FMDD": "%-d",
    "FMMonth": "%B",
    "FMDay": "%A",
    "Mon": "%b",
    "Dy": "%a",
    "MON": "UPPER %b",
    "mon": "LOWER %b",
    "DY": "UPPER %a",
    "dy": "LOWER %a",
    "Q": "QUARTER",
    "q": "QUARTER",
    "FMMONTH": "UPPER %B",
    "FMDAY": "UPPER %A",
}
_SNOWFLAKE = {**_NUMBERS, "MON": "%b", "MMMM": "%B", "DY": "%a"}
_MYSQL = {
    "%Y": "%Y",
    "%y": "%y",
    "%m": "%m",
    "%c": "%-m",
    "%d": "%d",
    "%e": "%-d",
    "%b": "%b",
    "%M": "%B",
    "%a": "%a",
    "%W": "%A",
    "%j": "%j",
    "%v": "%V",
    "%x": "%G",
    "%%": "%%",
}
_JAVA = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%-d",
    "E": "%a",
    "EE": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "DDD": "%j",
}
_NET = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%-d",
    "ddd": "%a",
    "dddd": "%A",
}
_STRFTIME = {f"%{one}": f"%{one}" for one in "YymdbBaAjuVG%"} | {"%Q": "QUARTER", "%e": "%-d"}

_CODES: dict[tuple[str, str], dict[str, str]] = {
    ("to_char", "postgres"): _POSTGRES,
    ("to_char", "redshift"): _POSTGRES,
    ("to_char", "snowflake"): _SNOWFLAKE,
    ("to_varchar", "snowflake"): _SNOWFLAKE,
    ("to_char", "duckdb"): _NUMBERS,  # where all agree
    ("date_format", "mysql"): _MYSQL,
    ("date_format", "spark"): _JAVA,
    ("date_format", "duckdb"): {key: _JAVA[key] for key in ("yyyy", "yy", "MM", "dd")},
    ("format", "tsql"): _NET,
    ("format_date", "bigquery"): _STRFTIME,
}
_PLAIN = re.compile(r"[-/., :_()]+|[0-9]+")
_QUOTED = re.compile(r"\"([^\"'%]*)\"|'([^'%]*)'")
_LETTERS = re.compile(r"([A-Za-z])\1*")


class FormatError(ValueError):
    """A format that is not read; its text says what to write."""


def date_pieces(text: str, function: str, dialect: str) -> str:
    """The text of a function that writes a day, which stands as 0 between two NULs, in a format.

    >>> date_pieces("YYYY-MM", "to_char", "postgres").replace(chr(0), "|")
    "STRFTIME(|0|, '%Y-%m')"
    >>> date_pieces('YYYY"-Q"Q', "to_char", "postgres").replace(chr(0), "|")
    "(STRFTIME(|0|, '%Y-Q') || QUARTER(|0|))"
    """
    codes = _CODES.get((function, dialect))
    if codes is None:
        raise FormatError("write STRFTIME(day, '%Y-%m'), or declare the dialect of the batch")
    if dialect == "snowflake":
        text = text.upper()
    known = sorted(codes, key=len, reverse=True)
    parts: list[str] = [""]  # formats of STRFTIME, and other functions between them
    place = 0
    while place < len(text):
        code = next((one for one in known if text.startswith(one, place)), None)
        run = _LETTERS.match(text, place)
        whole = dialect in {"spark", "tsql"}  # where the length of a run matters
        if code is not None and not (whole and run is not None and run[0] != code):
            place += len(code)
            if codes[code].startswith("%"):
                parts[-1] += codes[code]
            else:
                parts += [codes[code], ""]
            continue
        other = _PLAIN.match(text, place) or _QUOTED.match(text, place)
        if other is None:
            listed = ", ".join(sorted(codes, key=str.lower))
            raise FormatError(f"write years, months and days by {listed}")
        parts[-1] += other[0].strip("\"'")
        place = other.end()
    if len(text) < 2:  # .NET and Java take a single letter for a format by itself
        raise FormatError("write a year, a month and a day: 'yyyy-MM-dd'")
    return _joined(parts)


def _joined(parts: list[str]) -> str:
    found = []
    for number, part in enumerate(parts):
        function, _, inner = part.partition(" ") if number % 2 else ("", "", part)
        if number % 2 and not inner:
            found.append(f"{function}(\x000\x00)")
        elif inner:
            text = f"STRFTIME(\x000\x00, '{inner}')"
            found.append(f"{function}({text})" if function else text)
    return found[0] if len(found) == 1 else f"({' || '.join(found)})"
