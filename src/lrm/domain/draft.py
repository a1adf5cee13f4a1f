"""A draft of a domain file, from names and types of columns alone."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from lrm.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lrm.domain.csv_form import CsvForm

KINDS = ("categories", "boolean", "integers", "bins", "numbers", "dates", "times")
"""Kinds of attributes that a draft can be asked for."""

_HEADER = """\
# Draft of a domain file, made from the names and types of the table's columns; no
# value was read. Complete it from public knowledge (a codebook, a form, a law), never by
# looking at the rows: what you saw there would show in every release.
# Replace each TODO. Delete the attributes that no query needs: cells multiply.
lrm-domain: 1
"""

_UNTYPED = """\
# A CSV file does not say what its columns hold, so each column is drafted as categories. For
# other kinds draft again, for example: lrm domain init TABLE --kinds age=integers,day=dates
"""

_UNIT = """\
# Who is protected: `row`, or a person, identified by a column, with at most max_rows rows:
#   {column: person_id, max_rows: 3, neighbours: add-remove}   (or substitute)
unit: TODO
"""

_RULES = """\
    null: drop        # or cell: NULL gets a cell of its own
    outside: drop     # or cell: values that are not declared get a cell of their own
"""

_FORMATS = """\
# How the file writes dates and booleans, where not as 2024-05-03, true and false (from its
# documentation): csv: {dates: "%d.%m.%Y", true: [ja], false: [nein]}
"""

_NAN = "    nan: drop         # or cell: NaN gets a cell of its own\n"

_DATES = (
    "    kind: dates\n    start: TODO       # e.g. 2024-01-01\n    end: TODO         # included\n"
)

_BODIES = {
    "categories": "    kind: categories\n    values: TODO      # e.g. [NY, NJ, CT]\n" + _RULES,
    "boolean": "    kind: categories\n    values: [true, false]\n" + _RULES,
    "integers": "    kind: integers\n    low: TODO\n    high: TODO\n"
    "    width: 1          # integers per cell\n" + _RULES + _NAN,
    "bins": "    kind: bins\n    edges: TODO       # e.g. [0, 10, 20]: cells [0, 10), [10, 20)\n"
    + _RULES
    + _NAN
    + "    # For sums and averages alone, numbers by knots have no binning error: kind: numbers,\n"
    "    # knots: [LOW, …, HIGH] from public knowledge, outside: clip (numbers beyond them)\n",
    "numbers": "    kind: numbers\n"
    "    knots: TODO       # e.g. [0, 7, 30, 200]: the range, and growing steps between\n"
    "    null: drop        # or cell: NULL gets a cell of its own\n"
    "    outside: clip     # or drop; clip: numbers beyond the range count as its nearest end\n"
    + _NAN,
    "dates": _DATES + "    by: TODO          # day, month or year\n" + _RULES,
    "times": _DATES + "    by: TODO          # hour, 15 minutes, day, month or year\n"
    "    time: true        # or false: queries see the day of each time alone\n" + _RULES,
}

_TYPES = {
    "boolean": "BOOL BOOLEAN BIT",
    "integers": "TINYINT SMALLINT INT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINT UINTEGER "
    "UBIGINT UHUGEINT LONG SHORT BYTE SERIAL BIGSERIAL",
    "bins": "DOUBLE FLOAT REAL DECIMAL NUMERIC HALFFLOAT",
    "dates": "DATE",
    "times": "TIMESTAMP DATETIME",
    "categories": "VARCHAR CHAR CHARACTER TEXT STRING LARGE_STRING STR UTF BPCHAR ENUM UUID "
    "OBJECT CATEGORY CATEGORICAL DICTIONARY",
}
"""First words of types, without digits: INT4 and INT64 are INT."""


def draft(
    columns: Sequence[tuple[str, str]],
    table: str | None = None,
    csv: CsvForm | None = None,
    kinds: Mapping[str, str] | None = None,
) -> str:
    """Return a draft of a domain file for a person to complete.

    Parameters
    ----------
    columns
        Names and types of the table's columns: a draft is made from nothing else.
    table
        The table's name.
    csv
        The form of its CSV files, where it was declared to read their header.
    kinds
        Kinds of attributes by column, one of `KINDS` each, where the column's type does not say
        it. A CSV file has no types, and finding them out would mean reading values.

    Examples
    --------
    >>> text = draft([("age", "BIGINT"), ("photo", "BLOB")], "people")
    >>> print(text[text.index("attributes:"):], end="")
    attributes:
      - name: "age"       # BIGINT
        kind: integers
        low: TODO
        high: TODO
        width: 1          # integers per cell
        null: drop        # or cell: NULL gets a cell of its own
        outside: drop     # or cell: values that are not declared get a cell of their own
        nan: drop         # or cell: NaN gets a cell of its own
      # left out: "photo", whose type "BLOB" has no cells
    """
    declared = dict(kinds or {})
    _check_kinds(declared, [name for name, _ in columns])
    named = "" if table is None else f"table: {_quoted(table)}\n"
    written = "" if csv is None else f"csv: {json.dumps(csv.facts)}\n"
    entries = [_entry(name, type_, declared.get(name)) for name, type_ in columns]
    untyped = any(_is_csv(type_) and name not in declared for name, type_ in columns)
    header = _HEADER.replace("lrm-domain", _UNTYPED + "lrm-domain") if untyped else _HEADER
    spelled = {"dates", "boolean"} & {
        declared.get(name) for name, type_ in columns if _is_csv(type_)
    }
    formats = _FORMATS if spelled else ""
    return header + named + _UNIT + written + formats + "attributes:\n" + "".join(entries)


_PEOPLE_HEADER = """\
# Draft of a domain file of several tables of the same persons, made from the names and types of
# their columns; no value was read. Complete it from public knowledge (a codebook, a form, a law),
# never by looking at the rows: what you saw there would show in every release.
# Replace each TODO. Delete the attributes that no query needs, and those that name persons.
lrm-domain: 2
people: {people}
neighbours: add-remove   # or substitute, where the number of persons is public
tables:
"""

_TABLE = """\
  - name: {name}
{person}{csv}    attributes:
"""

_PERSON = """\
    person: TODO      # the column that names the person: the same names in every table
    rows: TODO        # one (a row per person), or {most: 40}: rows of a person that are counted
"""

_PERSON_BY_KEY = """\
    person: {person}  # by the keys of the database: check that it names the person
    rows: {rows}
"""

_FEATURES = """\
# One value per person, from all their rows in one table, for queries that group by it or add it up:
# features:
#   - {{name: n_rows, of: {name}, value: count, kind: integers, low: 0, high: 20}}
"""


def draft_people(
    tables: Mapping[str, Sequence[tuple[str, str]]],
    people: str,
    csv: Mapping[str, CsvForm | None] | None = None,
    kinds: Mapping[str, str] | None = None,
    persons: Mapping[str, tuple[str, bool]] | None = None,
) -> str:
    """Return a draft of a domain file for several tables of the same persons.

    Parameters
    ----------
    tables
        Names and types of the columns of each table, by its name.
    people
        Name of the people, and of its budget.
    csv, kinds
        As for `draft`; kinds are those of columns of that name in any table.
    persons
        The column that names the person in some tables, where the keys of a database name one, and
        whether no two rows have the same person.

    Examples
    --------
    >>> text = draft_people({"orders": [("customer", "BIGINT"), ("amount", "BIGINT")]}, "shop")
    >>> text.count("kind: integers"), "name: orders" in text
    (3, True)
    """
    declared = dict(kinds or {})
    _check_kinds(declared, [name for columns in tables.values() for name, _ in columns])
    parts = [_PEOPLE_HEADER.format(people=_quoted(people))]
    for name, columns in tables.items():
        form = (csv or {}).get(name)
        written = "" if form is None else f"    csv: {json.dumps(form.facts)}\n"
        person, unique = (persons or {}).get(name, (None, False))
        by_key = _PERSON_BY_KEY.format(
            person=_quoted(person or ""),
            rows="one" if unique else "TODO        # {most: 40}: rows of a person that are counted",
        )
        keys = _PERSON if person is None else by_key
        parts.append(_TABLE.format(name=name, person=keys, csv=written))
        for column, type_ in columns:
            if column == person:  # whose values are the names of persons
                continue
            entry = _entry(column, type_, declared.get(column))
            parts += [f"    {line}\n" for line in entry.splitlines()]
    return "".join([*parts, _FEATURES.format(name=next(iter(tables)))])


def columns_of(frame: Any) -> list[tuple[str, str]]:
    """Names and types of the columns of a frame of pandas, Polars, Arrow or DuckDB.

    >>> import pandas as pd
    >>> columns_of(pd.DataFrame({"age": [1]}))
    [('age', 'int64')]
    """
    schema: Any = getattr(frame, "schema", None)
    if hasattr(frame, "iloc"):  # pandas
        pairs = list(zip(frame.columns, frame.dtypes, strict=True))
    elif hasattr(schema, "names") and hasattr(schema, "types"):  # pyarrow
        pairs = list(zip(schema.names, schema.types, strict=True))
    elif hasattr(schema, "items"):  # polars
        pairs = list(schema.items())
    elif hasattr(frame, "columns") and hasattr(frame, "types"):  # a relation of DuckDB
        pairs = list(zip(frame.columns, frame.types, strict=True))
    else:
        raise DomainError(
            "expected a frame of pandas, Polars, Arrow or DuckDB to draft a domain from, got "
            f"{type(frame).__name__}; for files use lrm domain init"
        )
    return [(str(name), str(type_)) for name, type_ in pairs]


def _check_kinds(declared: Mapping[str, str], names: Sequence[str]) -> None:
    for name, kind in declared.items():
        if name not in names:
            raise DomainError(f"the table has no column {name!r}; it has {', '.join(names)}")
        if kind not in KINDS:
            raise DomainError(f"kind of {name!r} must be one of {', '.join(KINDS)}, not {kind!r}")


def _entry(name: str, type_: str, declared: str | None) -> str:
    kind = declared or _kind(type_)
    if kind is None:
        return f"  # left out: {_quoted(name)}, whose type {_quoted(type_)} has no cells\n"
    return entry_of(name, kind, type_)


def entry_of(name: str, kind: str, type_: str = "") -> str:
    """The draft of one attribute, with the type of its column as a comment."""
    comment = "".join(letter for letter in type_ if letter.isprintable())
    named = (
        f"  - {'name: ' + _quoted(name):<17} # {comment}"
        if comment
        else f"  - name: {_quoted(name)}"
    )
    return f"{named}\n{_BODIES[kind]}"


TABLE_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def sql_name(name: str) -> str | None:
    """The name that SQL batches would use for a file or table, where it is a plain word.

    >>> sql_name("visits.csv.gz"), sql_name("public.visits"), sql_name("part-*.parquet")
    ('visits', 'visits', None)
    """
    ending = next((end for end in TABLE_ENDINGS if name.lower().endswith(end)), None)
    word = name[: -len(ending)] if ending else name.rpartition(".")[2]
    return word if re.fullmatch(r"[A-Za-z_]\w*", word) else None


def _is_csv(type_: str) -> bool:
    return type_.endswith("(CSV)")


def _kind(type_: str) -> str | None:
    """Find the kind of attribute for a type of DuckDB, PostgreSQL, Spark, Arrow or pandas."""
    word = type_.upper().strip()
    if word.endswith("]") or word.startswith(("STRUCT", "MAP", "LIST", "ARRAY", "UNION")):
        return None
    word = word.split("(")[0].split("[")[0].split()[0].rstrip("0123456789") if word else ""
    return next((kind for kind, words in _TYPES.items() if word in words.split()), None)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
