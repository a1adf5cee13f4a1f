"""PostgreSQL's SQL, and the types of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from lrm.domain.persons import DIGEST_REPEATED, LONGEST_NAME, OFFSET_DIGITS
from lrm.tables.base import Column, Kind
from lrm.tables.dialect import BEYOND
from lrm.tables.joined_rows import JoiningDialect

_KINDS: dict[str, Kind] = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "real": "float",
    "double precision": "float",
    "boolean": "boolean",
    "date": "date",
    "text": "text",
    "name": "text",
    "citext": "text",
    "character varying": "text",
    "character": "text",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "instant",
    "uuid": "uuid",
    "bytea": "bytes",
}
_LARGEST_FINITE = 10**308
_SMALLEST = f"0.{5**1075:01075d}"  # 2^-1075, to its last digit: from here on down float64 has 0


def column_of(name: str, type_text: str, category: str, loose: bool) -> Column:
    """Classify a column by PostgreSQL's text of its type; ``category`` E is an enumeration.

    ``loose`` says that the type or its collation treats different texts as equal.
    """
    numeric = re.fullmatch(r"numeric(?:\((\d+),(-?\d+)\))?", type_text)
    if numeric:
        precision, scale = (int(part or 0) for part in numeric.groups())
        return Column(name, type_text, "decimal", precision, scale)
    # "timestamp(3) without time zone" and "character(5)" carry a length.
    plain = re.sub(r"\(\d+\)", "", type_text)
    kind = "text" if category == "E" else _KINDS.get(plain, "other")
    return Column(name, type_text, kind, loose=loose)


class PostgresSql(JoiningDialect):
    """SQL of PostgreSQL. A CASE evaluates a branch only for the rows that reach it."""

    double: ClassVar[str] = "double precision"

    def text(self, value: str) -> str:
        """Write a text; E'' reads alike whatever ``standard_conforming_strings`` says."""
        quoted = super().text(value)
        return "E" + quoted.replace("\\", "\\\\") if "\\" in quoted else quoted

    def element(self, codes: Sequence[int | None], place: str) -> str:
        # In an array that contains NULL, the server walks through all elements before the wanted.
        listed = ",".join("-1" if code is None else str(code) for code in codes)
        return f"nullif(('{{{listed}}}'::integer[])[{place}], -1)"

    def as_double(self, x: str, column: Column) -> str:
        """Convert as PostgreSQL does, by way of text, without its errors on huge and tiny."""
        if column.kind == "float":
            return x if column.type_text == "double precision" else f"CAST({x} AS double precision)"
        cast = f"CAST({x} AS double precision)"
        if column.kind != "decimal" or (0 < column.precision <= 300 and 0 <= column.scale <= 300):
            return cast
        return (
            f"(CASE WHEN {x} = 'NaN' THEN 'NaN' "
            f"WHEN {x} > {_LARGEST_FINITE} THEN {_nearest(x, 'Infinity')} "
            f"WHEN {x} < -{_LARGEST_FINITE} THEN {_nearest(x, '-Infinity')} "
            f"WHEN {x} BETWEEN -{_SMALLEST} AND {_SMALLEST} THEN 0 ELSE {cast} END)"
        )

    def as_text(self, x: str, column: Column) -> str:  # noqa: ARG002 - all texts are alike
        # The cast drops the blanks that pad CHAR(n), and a collation that joins letters.
        return f'(CAST({x} AS text) COLLATE "C")'

    def as_day(self, x: str, column: Column) -> str:
        if column.kind == "date":
            return x
        return f"CAST({self._local(x, column)} AS date)"

    @staticmethod
    def _local(x: str, column: Column) -> str:
        return f"({x} AT TIME ZONE 'UTC')" if column.kind == "instant" else x

    def _minute_of_day(self, x: str, column: Column) -> str:
        local = self._local(x, column)
        return self.as_bigint(f"(EXTRACT(HOUR FROM {local}) * 60 + EXTRACT(MINUTE FROM {local}))")

    def as_person(self, x: str, column: Column) -> str:
        if column.kind == "cells":  # the name itself
            return x
        if column.kind != "bytes":
            x = self._stored(x)
        digest = f"convert_to(repeat(encode(sha256({x}), 'hex'), {DIGEST_REPEATED}), 'UTF8')"
        return f"(CASE WHEN octet_length({x}) > {LONGEST_NAME} THEN {digest} ELSE {x} END)"

    def group_name(self, what: str, group: str, person: str) -> str:
        return f"(convert_to('{what}:' || CAST({group} AS text) || ':', 'UTF8') || {person})"

    def own_person(self, x: str, column: Column) -> str:
        """Whole numbers, UUIDs and texts without conversion, which takes a third of the time."""
        if column.kind in {"integer", "uuid"}:
            return x
        if column.kind != "text":
            return self.as_person(x, column)
        x = f"CAST({x} AS text)"
        digest = f"encode(sha256({self._stored(x)}), 'hex')"
        short = f"CASE WHEN octet_length({x}) > {LONGEST_NAME} THEN"
        return f'({short} repeat({digest}, {DIGEST_REPEATED}) ELSE {x} END) COLLATE "C"'

    def own_name(self, person: str, column: Column) -> str:
        if column.kind in {"integer", "uuid"}:  # digits, which every encoding stores alike
            return f"CAST(CAST({person} AS text) AS bytea)"
        return self._stored(person) if column.kind == "text" else person

    @staticmethod
    def _stored(x: str) -> str:
        """The bytes of a text as the database stores it, whatever its encoding."""
        return f"convert_to(CAST({x} AS text), getdatabaseencoding())"

    def person_hash(self, person: str, key: str) -> str:
        hashed = f"encode(sha256({key} || {person}), 'hex')"
        bits = f"CAST('x' || left({hashed}, {OFFSET_DIGITS}) AS bit({4 * OFFSET_DIGITS}))"
        return f"CAST({bits} AS bigint)"

    def whole(self, x: str, column: Column) -> tuple[str, str]:
        if column.kind == "decimal":
            return x, f"({x} = trunc({x}) OR abs({x}) > {BEYOND})"
        return x, "TRUE"

    def is_nan(self, x: str) -> str:
        return f"{x} = 'NaN'"

    def is_exact_nan(self, x: str, column: Column) -> str:
        return f"{x} = 'NaN'" if column.kind == "decimal" else "FALSE"

    def as_bigint(self, x: str) -> str:
        return f"CAST({x} AS bigint)"

    def quotient(self, x: str, divisor: int) -> str:
        return f"{x} / {divisor}"

    def days_since(self, x: str, iso: str) -> str:
        return f"{x} - {self.day(iso)}"


def _nearest(x: str, infinity: str) -> str:
    """Float64 nearest to a number of 308 digits or more: the largest one, or infinite."""
    limit = 2**1024 - 2**970  # halfway from the largest float64 to 2^1024; a tie goes up
    beyond = f"{x} >= {limit}" if infinity == "Infinity" else f"{x} <= -{limit}"
    return f"CASE WHEN {beyond} THEN '{infinity}' ELSE CAST({x} AS double precision) END"
