"""Spark's SQL, and the types of its columns.

Nothing here depends on the session's settings: neither its time zone, nor ANSI mode, nor
how it reads backslashes in literals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lrm.domain.ordered import DAY, MINUTES
from lrm.domain.persons import DIGEST_REPEATED, LONGEST_NAME, OFFSET_DIGITS
from lrm.tables.base import Column, Kind
from lrm.tables.dialect import BEYOND
from lrm.tables.joined_rows import JoiningDialect

_KINDS: dict[str, Kind] = {
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "float",
    "double": "float",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "instant",
    "timestamp_ntz": "timestamp",
    "binary": "bytes",
}
_LARGEST = 2**63 - 1
PADDED = "char"


def column_of(name: str, type_text: str, declared: str = "") -> Column:
    """Classify a column; ``declared`` is what Spark remembers of a CHAR(n)."""
    decimal = re.fullmatch(r"decimal\((\d+),(-?\d+)\)", type_text)
    if decimal:
        return Column(name, type_text, "decimal", int(decimal[1]), int(decimal[2]))
    if type_text.startswith(("string", "char(", "varchar(")):
        padded = type_text.startswith("char(") or declared.startswith("char(")
        loose = " collate " in type_text.lower()  # the default, by bytes, is not written out
        return Column(name, PADDED if padded else type_text, "text", loose=loose)
    return Column(name, type_text, _KINDS.get(type_text, "other"))


class SparkSql(JoiningDialect):
    """SQL of Spark."""

    def name(self, identifier: str) -> str:
        return "`" + identifier.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Write a text by its bytes, which no setting of the session reads otherwise."""
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def element(self, codes: Sequence[int | None], place: str) -> str:
        listed = ",".join("null" if code is None else str(code) for code in codes)
        return f"element_at(from_json('[{listed}]', 'array<int>'), CAST({place} AS INT))"

    def as_double(self, x: str, column: Column) -> str:
        return x if column.type_text == "double" else f"CAST({x} AS DOUBLE)"

    def as_text(self, x: str, column: Column) -> str:
        if column.type_text == PADDED:
            return f"rtrim({x})"
        return x if column.type_text == "string" else f"({x} COLLATE UTF8_BINARY)"

    def as_day(self, x: str, column: Column) -> str:
        if column.kind == "instant":  # a cast would take the day of the session's time zone
            return f"date_from_unix_date(CAST({_periods(x, DAY)} AS INT))"
        return x if column.kind == "date" else f"CAST({x} AS DATE)"

    def _minute_of_day(self, x: str, column: Column) -> str:
        if column.kind == "instant":
            return f"pmod({_periods(x, DAY // MINUTES)}, {MINUTES})"
        return f"CAST(hour({x}) * 60 + minute({x}) AS BIGINT)"

    def as_person(self, x: str, column: Column) -> str:
        if column.kind == "cells":  # the name itself
            return x
        if column.kind == "text":
            x = f"CAST({self.as_text(x, column)} AS BINARY)"
        elif column.kind != "bytes":
            x = f"CAST(CAST({x} AS STRING) AS BINARY)"
        digest = f"CAST(repeat(sha2({x}, 256), {DIGEST_REPEATED}) AS BINARY)"
        return f"CASE WHEN octet_length({x}) > {LONGEST_NAME} THEN {digest} ELSE {x} END"

    def group_name(self, what: str, group: str, person: str) -> str:
        before = f"concat({self.text(what + ':')}, CAST({group} AS STRING), {self.text(':')})"
        return f"concat(CAST({before} AS BINARY), {person})"

    def wide_sum(self, x: str) -> str:
        return f"sum(CAST({x} AS DECIMAL(20, 0)))"  # a sum of 64-bit integers wraps, or fails

    def person_hash(self, person: str, key: str) -> str:
        digits = f"left(sha2(concat({key}, {person}), 256), {OFFSET_DIGITS})"
        return f"CAST(conv({digits}, 16, 10) AS BIGINT)"

    def whole(self, x: str, column: Column) -> tuple[str, str]:
        if column.kind == "decimal":
            # floor and CAST raise errors on the largest decimals; try_cast never does.
            cut = f"try_cast({x} AS BIGINT)"
            end = f"CASE WHEN {x} < 0 THEN -{_LARGEST} WHEN {x} >= 0 THEN {_LARGEST} END"
            same = f"{x} = try_cast({cut} AS DECIMAL({column.precision}, {column.scale}))"
            beyond = f"{cut} >= {BEYOND} OR {cut} <= -{BEYOND}"
            return f"coalesce({cut}, {end})", f"({cut} IS NULL OR {same} OR {beyond})"
        return x, "TRUE"

    def is_whole_float(self, x: str) -> str:
        return f"rint({x}) = {x}"

    def as_bigint(self, x: str) -> str:
        return f"try_cast({x} AS BIGINT)"

    def quotient(self, x: str, divisor: int) -> str:
        return f"{x} div {divisor}"

    def days_since(self, x: str, iso: str) -> str:
        return f"datediff({x}, {self.day(iso)})"


def _periods(x: str, length: int) -> str:
    """SQL of the number of periods of some microseconds from 1970 to an instant, rounded down."""
    micros = f"unix_micros({x})"
    # Without a difference, which would not fit 64 bits near their end.
    before = f"({micros} + 1) div {length} - 1"
    return f"CASE WHEN {micros} < 0 THEN {before} ELSE {micros} div {length} END"
