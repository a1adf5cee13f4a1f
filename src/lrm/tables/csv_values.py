"""What the text of a CSV field means as a value, as DuckDB's SQL.

A CSV file has no types. Guessing them from rows would make a column's type, and with it
every count, depend on the data; so every column is text, and each is read as what the domain
declares. A text that does not have the form of a number or of a date is an invalid value of such
an attribute, and so is a NUL character, which stands for what could not be read as text. Neither
is NULL: NULL is a field with nothing in it, not even quotes.

====================  =================================================================
declared              read
====================  =================================================================
text categories       as it is: blanks, case and quotes' contents are kept
numbers               digits as an exact whole number, other decimal forms, ``nan`` and
                      ``inf`` as float64, with the declared decimal mark; blanks around are
                      ignored
booleans              ``true``, ``t``, ``false``, ``f``, or what `CsvForm` declares, in either case;
                      blanks around are ignored
dates                 ``2024-01-31``, or with a time, and then perhaps a zone; or in the form that
                      `CsvForm` declares, and in no other then; blanks around are ignored
====================  =================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

from lrm.domain import Attribute, Bins, Categories, CsvForm, Dates, Numbers
from lrm.domain.csv_form import date_pattern
from lrm.tables.base import Column

NAN = 10**35
"""Marks NaN among whole numbers: no other number is read as one so large."""

WHOLE_TYPE = "HUGEINT read from text"
"""Type of whole numbers that may be `NAN`."""

_HUGE = "1e30"
_WHOLE = r"'\s*[+-]?[0-9]{1,30}\s*'"
_NUMBER = (
    r"'\s*[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,6})?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*'"
)
_DAY = r"'\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?\s*'"
_INSTANT = (
    r"'\s*[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
    r"\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)\s*'"
)


def reading(attribute: Attribute, x: str, csv: CsvForm | None = None) -> tuple[str, Column]:
    """Return the SQL that reads text ``x`` as a value of ``attribute``, and that value's type."""
    name = attribute.name
    form = csv or CsvForm()
    decimal_mark = form.decimal
    if isinstance(attribute, Bins | Numbers):
        return _double(x, decimal_mark), Column(name, "DOUBLE", "float")
    if isinstance(attribute, Dates):
        kind = "TIMESTAMP" if attribute.time else "DATE"
        read = _day(x, form.dates, kind) if form.dates is not None else _iso_day(x, kind)
        return read, Column(name, kind, "timestamp" if attribute.time else "date")
    if isinstance(attribute, Categories) and attribute.value_type == "text":
        return x, Column(name, "VARCHAR", "text")
    if isinstance(attribute, Categories) and attribute.value_type == "boolean":
        truth = (
            f"CASE WHEN lower(trim({x})) IN ({_listed(form.true_texts)}) THEN TRUE "
            f"WHEN lower(trim({x})) IN ({_listed(form.false_texts)}) THEN FALSE END"
        )
        return truth, Column(name, "BOOLEAN", "boolean")
    return _whole(x, decimal_mark), Column(name, WHOLE_TYPE, "integer", bits=128)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(f"lower({_text(text)})" for text in texts)


def _iso_day(x: str, kind: str) -> str:
    """A date or time in ISO 8601; of dates only the day is read."""
    text = f"left(ltrim({x}), 10)" if kind == "DATE" else f"trim({x})"
    return (
        f"CASE WHEN regexp_full_match({x}, {_DAY}) THEN TRY_CAST({text} AS {kind}) "
        f"WHEN regexp_full_match({x}, {_INSTANT}) "
        f"THEN CAST(TRY_CAST(trim({x}) AS TIMESTAMPTZ) AS {kind}) END"
    )


def _day(x: str, dates: str, kind: str) -> str:
    """A date or time in a declared form, put together as DuckDB's own; NULL where none is so."""
    pattern, groups = date_pattern(dates)
    form = _text(rf"\s*{pattern}\s*")
    parts = {letter: f"regexp_extract({x}, {form}, {place})" for letter, place in groups.items()}
    year = parts.get("Y") or (
        f"CASE WHEN {parts['y']} >= '69' THEN '19' ELSE '20' END || {parts['y']}"
    )
    day = f"({year}) || '-' || lpad({parts['m']}, 2, '0') || '-' || lpad({parts['d']}, 2, '0')"
    if kind == "TIMESTAMP":
        clock = " || ':' || ".join(
            f"lpad({parts[letter]}, 2, '0')" if letter in parts else "'00'" for letter in "HMS"
        )
        day = f"{day} || ' ' || {clock}"
    return f"CASE WHEN regexp_full_match({x}, {form}) THEN TRY_CAST({day} AS {kind}) END"


def _double(x: str, decimal_mark: str) -> str:
    form = _NUMBER.replace("[.]", f"[{decimal_mark}]")
    number = x if decimal_mark == "." else f"replace({x}, '{decimal_mark}', '.')"
    return f"CASE WHEN regexp_full_match({x}, {form}) THEN TRY_CAST({number} AS DOUBLE) END"


def _whole(x: str, decimal_mark: str) -> str:
    """A whole number of any size; larger ones and infinities as ±1e30, which is outside."""
    number = _double(x, decimal_mark)
    return (
        f"CASE WHEN regexp_full_match({x}, {_WHOLE}) THEN TRY_CAST(trim({x}) AS HUGEINT) "
        f"WHEN isnan({number}) THEN {NAN} "
        f"WHEN trunc({number}) = {number} "
        f"THEN TRY_CAST(greatest(least({number}, {_HUGE}), -{_HUGE}) AS HUGEINT) END"
    )
