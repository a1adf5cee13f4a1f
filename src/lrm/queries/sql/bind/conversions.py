"""CAST, CONVERT and formats of dates in several dialects → text that DuckDB evaluates.

Of formats, only what every label is sure to be spelt like is read: years, months, weeks, days and
their names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.queries.sql import expr as ir
from lrm.queries.sql.bind.scope import folded, only, place, refuse_node
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import EXPRESSIONS, refuse

if TYPE_CHECKING:
    from lrm.queries.sql.bind import Binder

_TYPES: dict[exp.DType, str] = {
    **dict.fromkeys(
        (
            *(exp.DType.BOOLEAN, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.DATE),
            *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
            *(exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.INT128),
            *(exp.DType.CHAR, exp.DType.NVARCHAR, exp.DType.NCHAR),
        ),
        "",
    ),
    exp.DType.BIT: "BOOLEAN",
    exp.DType.BIGDECIMAL: "DOUBLE",
    # Times with a zone are counted in UTC.
    **dict.fromkeys(
        (
            *(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ),
            *(exp.DType.TIMESTAMPLTZ, exp.DType.DATETIME, exp.DType.DATETIME2),
            exp.DType.SMALLDATETIME,
        ),
        "TIMESTAMP",
    ),
}
"""Types that CAST may name, and what DuckDB calls those that sqlglot does not write as needed."""

_WHOLE = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT})
TRUNCATING = frozenset({"spark", "tsql"})
"""Dialects in which CAST to an integer drops the fraction; the others round."""

_STYLES = {"23": "%Y-%m-%d", "111": "%Y/%m/%d", "112": "%Y%m%d", "120": "%Y-%m-%d"}
_STYLES |= {"121": "%Y-%m-%d", "126": "%Y-%m-%d"}
_DAY, _LONG = len("2024-01-31"), len("2024-01-31 10:00:00")
_TIMED = {
    "120": {13: "%Y-%m-%d %H", 16: "%Y-%m-%d %H:%M", _LONG: "%Y-%m-%d %H:%M:%S"},
    "121": {13: "%Y-%m-%d %H", 16: "%Y-%m-%d %H:%M"},
    "126": {13: "%Y-%m-%dT%H", 16: "%Y-%m-%dT%H:%M", _LONG: "%Y-%m-%dT%H:%M:%S"},
}
"""What CONVERT writes of a time in a number of characters, by its style."""


def _cut(form: str, size: int) -> str:
    """The part of a format that writes a number of characters; nothing where it cuts a number.

    >>> _cut("%Y-%m-%d", 7), _cut("%Y%m%d", 6), _cut("%Y-%m-%d", 6)
    ('%Y-%m', '%Y%m', '')
    """
    written = ""
    for code in re.findall(r"%[A-Za-z]|.", form):
        if size <= 0:
            break
        size -= {"%Y": 4}.get(code, len(code))
        written += code
    return "" if size < 0 else written


def _letters(text: str) -> dict[str, str]:
    """What the letters of a format stand for: a code of STRFTIME, a function, or both."""
    return dict(pair.split("=") for pair in text.split())


_NUMBERS = _letters("YYYY=%Y YY=%y MM=%m DD=%d HH24=%H MI=%M SS=%S")
_POSTGRES = _NUMBERS | _letters(
    "yyyy=%Y yy=%y mm=%m dd=%d DDD=%j ddd=%j IYYY=%G iyyy=%G IW=%V iw=%V ID=%u FMMM=%-m FMDD=%-d "
    "FMMonth=%B FMDay=%A Mon=%b Dy=%a MON=UPPER:%b mon=LOWER:%b DY=UPPER:%a dy=LOWER:%a Q=QUARTER "
    "q=QUARTER FMMONTH=UPPER:%B FMDAY=UPPER:%A"
)
_SNOWFLAKE = _NUMBERS | _letters("MON=%b MMMM=%B DY=%a")
_MYSQL = _letters(
    "%Y=%Y %y=%y %m=%m %c=%-m %d=%d %e=%-d %b=%b %M=%B %a=%a %W=%A %j=%j %v=%V %x=%G %%=%% "
    "%H=%H %k=%-H %i=%M %s=%S %S=%S"
)
_YEAR_TO_DAY = _letters(
    "yyyy=%Y yy=%y MM=%m M=%-m MMM=%b MMMM=%B dd=%d d=%-d HH=%H H=%-H mm=%M ss=%S"
)
"""Letters of years, months, days and times that Java and .NET share."""

_JAVA = _YEAR_TO_DAY | _letters("E=%a EE=%a EEE=%a EEEE=%A DDD=%j")
_NET = _YEAR_TO_DAY | _letters("ddd=%a dddd=%A")
_STRFTIME = {f"%{key}": f"%{key}" for key in "YymdbBaAjuVGHMS%"} | {"%Q": "QUARTER", "%e": "%-d"}

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
        code = next(
            (known_code for known_code in known if text.startswith(known_code, place)), None
        )
        run = _LETTERS.match(text, place)
        is_run_exact = dialect in {"spark", "tsql"}  # where the length of a run matters
        if code is not None and not (is_run_exact and run is not None and run[0] != code):
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
    if len(text) < 2 and dialect == "tsql":  # .NET takes a letter for a format by itself
        raise FormatError("write a year, a month and a day: 'yyyy-MM-dd'")
    return _joined(parts)


def _joined(parts: list[str]) -> str:
    calls = []
    for number, part in enumerate(parts):
        function, _, inner = part.partition(":") if number % 2 else ("", "", part)
        if number % 2 and not inner:
            calls.append(f"{function}(\x000\x00)")
        elif inner:
            text = f"STRFTIME(\x000\x00, '{inner}')"
            calls.append(f"{function}({text})" if function else text)
    return calls[0] if len(calls) == 1 else f"({' || '.join(calls)})"


def pieces_call(name: str, text: str, args: list[Expr], at: int | None) -> Expr:
    """A function by its text, in which its argument k stands as k between two NULs."""
    segments = re.split('"?\x00(\\d+)\x00"?', text)
    ordered = tuple(args[int(number)] for number in segments[1::2])
    return ir.Call(name, ordered, tuple(segments[::2]), at=at)


def cast(bind: Binder, node: exp.Expr) -> Expr:
    """Build CAST and TRY_CAST."""
    only(node, "this", "to", "_type", "safe")
    return _as_type(bind, node.this, node.args["to"], safe=type(node) is exp.TryCast)


def _as_type(bind: Binder, node: exp.Expr, kind: exp.Expr, *, safe: bool) -> Expr:
    this = bind.expr(node)
    if kind.this not in _TYPES:
        raise refuse("function", f"CAST to {kind.sql(dialect='duckdb')}", EXPRESSIONS, this)
    to = _TYPES[kind.this] or kind.sql(dialect="duckdb")
    if kind.this == exp.DType.DECIMAL and not kind.expressions and bind.scope.dialect == "postgres":
        to = "DOUBLE"  # PostgreSQL's numeric rounds nothing; DuckDB's has three digits
    if kind.this in _WHOLE and bind.scope.dialect in TRUNCATING:
        to = ir.TRUNCATED + to  # `rewrite` knows which expressions have fractions
    return ir.Cast(this, to, safe, at=this.at)


def converted(bind: Binder, node: exp.Expr) -> Expr:
    """``CONVERT(type, x)`` of SQL Server, and ``CONVERT(VARCHAR(7), day, 120)``."""
    only(node, "this", "expression", "style", "safe")
    kind, style = node.this, node.args.get("style")
    if style is None:
        return _as_type(bind, node.expression, kind, safe=bool(node.args.get("safe")))
    sizes = [size_node.this.name for size_node in kind.expressions]
    form = _STYLES.get(style.name)
    if form is None or kind.this not in _TYPES or sizes != [*filter(str.isdigit, sizes)]:
        advice = f"its styles are {', '.join(sorted(_STYLES))}"
        raise refuse("function", "this CONVERT()", advice, at=place(node))
    this = bind.expr(node.expression)
    size = int(sizes[0]) if sizes else _LONG
    if style.name in _TIMED and size > _DAY and not isinstance(this, ir.Attribute):
        advice = "write CONVERT(VARCHAR(10), …), or convert the column of the table itself"
        raise refuse("function", "this CONVERT()", advice, at=place(node))
    if style.name in _TIMED and size > _DAY and bind.scope.is_time(this):
        form = _TIMED[style.name].get(size, "")
        if not form:
            advice = f"its sizes are {', '.join(map(str, _TIMED[style.name]))}"
            raise refuse("function", "this CONVERT() of times", advice, at=place(node))
    text = f"STRFTIME(\x000\x00, '{_cut(form, size) or form}')"
    text = text if _cut(form, size) or size >= _DAY else f"LEFT({text}, {size})"
    return pieces_call("STRFTIME", text, [this], bind.at(node, this))


def as_text(bind: Binder, node: exp.Expr) -> Expr:
    """A day as text: ``TO_CHAR(day, 'YYYY-MM')`` and what other dialects call it."""
    name = folded(node.name)
    if name == "format" and bind.scope.dialect != "tsql":
        raise refuse_node(node, EXPRESSIONS)
    day, form = node.expressions
    if name == "format_date":
        day, form = form, day
    text = form.name if type(form) is exp.Literal and form.is_string else "?"
    try:
        pieces = date_pieces(text, name, bind.scope.dialect)
    except FormatError as error:
        construct = f"the format {text!r} of {name.upper()}()"
        raise refuse("function", construct, str(error), at=place(node)) from None
    this = bind.expr(day)
    return pieces_call("STRFTIME", pieces, [this], bind.at(node, this))
