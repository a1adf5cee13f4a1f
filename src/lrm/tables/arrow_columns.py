"""Columns of Arrow, turned into a form in which DuckDB can read every value.

Arrow arrays may hold what DuckDB refuses or misreads: text that is not UTF-8, timestamps whose
microseconds exceed 64 bits, decimals beyond their precision, texts larger than memory admits. An
error would reveal that such a value exists. So each counted column is converted first, by
operations that are defined for all bits:

==================  =======================================================================
declared            handed to DuckDB
==================  =======================================================================
text categories     the cell, found by comparing bytes; NULL where the row is dropped
dates               the day: an instant's in UTC, and beyond DuckDB's range its first or last;
                    of cells shorter than a day, the cell
numbers, booleans   as they are; a decimal by the bits that DuckDB has for its precision
person              an integer, or the bytes of the name (`lrm.domain.persons`)
==================  =======================================================================
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lrm.domain import Attribute, Categories, Dates
from lrm.domain.ordered import EPOCH, MINUTES
from lrm.domain.persons import DIGEST_REPEATED, LONGEST_NAME
from lrm.tables.base import Column, Kind, load_engine
from lrm.tables.open_values import OpenText

_INTEGERS = {
    f"{sign}int{bits}": (f"{sign.upper()}{word}", bits)
    for sign in ("", "u")
    for word, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64))
}
_FLOATS = {"halffloat": "FLOAT", "float": "FLOAT", "double": "DOUBLE"}
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_LAST_DAY = 2**31 - 1  # later days are above every declared one too
_INFINITE = 2**63 - 1  # a timestamp at either end of its range is infinite to DuckDB


@dataclass(frozen=True)
class Conversion:
    """How a column reaches DuckDB."""

    column: Column  # its name and type there
    type: Any  # its Arrow type there
    array: Callable[[Any], Any]  # converts one array; defined for all values

    def __call__(self, values: Any) -> Any:
        """Convert an array, or all chunks of one."""
        pa = load_engine("pyarrow")
        if not isinstance(values, pa.ChunkedArray):
            return self.array(values)
        return pa.chunked_array([self.array(chunk) for chunk in values.chunks], type=self.type)


def column_of(name: str, arrow_type: Any) -> Column:
    """Classify a column by its Arrow type."""
    text = str(arrow_type)
    plain = _plain(arrow_type)
    types = load_engine("pyarrow").types
    if str(plain) in _INTEGERS:
        return Column(name, text, "integer", bits=_INTEGERS[str(plain)][1])
    if types.is_decimal(plain):
        fits = plain.precision <= 38 and 0 <= plain.scale <= plain.precision
        kind: Kind = "decimal" if fits else "other"
        return Column(name, text, kind, plain.precision, plain.scale)
    return Column(name, text, _kind(plain))


def _kind(plain: Any) -> Kind:
    types = load_engine("pyarrow").types
    tests: tuple[tuple[Kind, Callable[[Any], bool]], ...] = (
        ("text", lambda kind: types.is_string(kind) or types.is_large_string(kind)),
        ("text", types.is_string_view),
        ("bytes", lambda kind: types.is_binary(kind) or types.is_large_binary(kind)),
        ("bytes", lambda kind: types.is_binary_view(kind) or types.is_fixed_size_binary(kind)),
        ("boolean", types.is_boolean),
        ("float", types.is_floating),
        ("date", types.is_date),
        ("timestamp", types.is_timestamp),
        ("uuid", lambda kind: getattr(kind, "extension_name", "") == "arrow.uuid"),
    )
    return next((kind for kind, holds in tests if holds(plain)), "other")


def _plain(arrow_type: Any) -> Any:
    """Return the type of the values, however they are encoded."""
    types = load_engine("pyarrow").types
    while types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        arrow_type = arrow_type.value_type
    return arrow_type


def conversion(attribute: Attribute, arrow_type: Any, name: str) -> Conversion:
    """How values of an attribute that are stored as ``arrow_type`` reach DuckDB, as ``name``."""
    pa = load_engine("pyarrow")
    plain = _plain(arrow_type)
    if isinstance(attribute, OpenText):
        return Conversion(
            Column(name, "BLOB", "bytes"), pa.large_binary(), partial(_decoded, _names, None)
        )
    if isinstance(attribute, Categories) and attribute.value_type == "text":
        placed = partial(_decoded, partial(_text_cells, attribute), _null_cell(attribute))
        return Conversion(Column(name, "cells", "cells"), pa.int64(), placed)
    if isinstance(attribute, Dates) and attribute.minutes < MINUTES:
        placed = partial(_decoded, partial(_time_cells, attribute), _null_cell(attribute))
        return Conversion(Column(name, "cells", "cells"), pa.int64(), placed)
    if isinstance(attribute, Dates):
        days = partial(_decoded, _days, None)
        return Conversion(Column(name, "DATE", "date"), pa.date32(), days)
    return _number(plain, name)


def _number(plain: Any, name: str) -> Conversion:
    pa = load_engine("pyarrow")
    if str(plain) in _INTEGERS:
        type_text, bits = _INTEGERS[str(plain)]
        column = Column(name, type_text, "integer", bits=bits)
        return Conversion(column, plain, partial(_decoded, _same, None))
    if pa.types.is_decimal(plain):
        wide = pa.decimal128(plain.precision, plain.scale)
        text = f"DECIMAL({plain.precision},{plain.scale})"
        column = Column(name, text, "decimal", plain.precision, plain.scale)
        return Conversion(column, wide, partial(_decoded, partial(_decimals, wide), None))
    if pa.types.is_boolean(plain):
        column = Column(name, "BOOLEAN", "boolean")
        return Conversion(column, plain, partial(_decoded, _same, None))
    seen = pa.float32() if pa.types.is_float16(plain) else plain
    column = Column(name, _FLOATS[str(plain)], "float")
    return Conversion(column, seen, partial(_decoded, lambda values: values.cast(seen), None))


def person_conversion(column: Column, arrow_type: Any) -> Conversion:
    """How a person's names that are stored as ``arrow_type`` reach DuckDB."""
    pa = load_engine("pyarrow")
    if column.kind in {"integer", "decimal"}:
        return _number(_plain(arrow_type), "person")
    named = partial(_decoded, _uuid_names if column.kind == "uuid" else _names, None)
    return Conversion(Column("person", "BLOB", "cells"), pa.large_binary(), named)


def _same(values: Any) -> Any:
    return values


def _decoded(convert: Callable[[Any], Any], null: Any, values: Any) -> Any:
    """Convert an array whose values may be encoded; ``null`` is what becomes of a missing one."""
    pa, compute = load_engine("pyarrow"), load_engine("pyarrow.compute")
    if pa.types.is_run_end_encoded(values.type):
        values = compute.run_end_decode(values)
    if not pa.types.is_dictionary(values.type):
        return convert(values)
    decoded = _decoded(convert, null, values.dictionary).take(values.indices)
    if null is None:
        return decoded
    return compute.if_else(values.indices.is_valid(), decoded, null)


def _null_cell(attribute: Attribute) -> Any:
    pa = load_engine("pyarrow")
    return pa.scalar(attribute.special_cell("(null)"), type=pa.int64())


def _text_cells(attribute: Categories, texts: Any) -> Any:
    pa, compute = load_engine("pyarrow"), load_engine("pyarrow.compute")
    declared, places = zip(*attribute.spelled, strict=True)
    value_set = pa.array(declared, type=pa.large_string()).view(pa.large_binary())
    positions = compute.index_in(_as_large(texts), value_set=value_set)
    other = pa.scalar(attribute.special_cell("(other)"), type=pa.int64())
    cells = compute.coalesce(pa.array(places, type=pa.int64()).take(positions), other)
    return compute.if_else(texts.is_valid(), cells, _null_cell(attribute))


def _as_large(texts: Any) -> Any:
    """Text or bytes of any Arrow type as bytes; nothing is decoded."""
    pa = load_engine("pyarrow")
    if pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.binary_view())
    return texts.cast(pa.large_binary())


def _days(values: Any) -> Any:
    """Days of dates and timestamps, by arithmetic on the integers that they are."""
    pa = load_engine("pyarrow")
    if pa.types.is_date32(values.type):
        return values
    days = np.clip(_periods(values, 1), -_LAST_DAY, _LAST_DAY).astype(np.int32)
    return pa.array(days, mask=_missing(values)).view(pa.date32())


def _periods(values: Any, of_day: int) -> Any:
    """Days from 1970 to dates and timestamps, or other parts of days, of which a day has some."""
    pa = load_engine("pyarrow")
    if pa.types.is_date32(values.type):
        days = values.view(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        return days.astype(np.int64) * of_day
    per_day = _PER_DAY["ms" if pa.types.is_date64(values.type) else values.type.unit]
    numbers = values.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    periods = numbers // (per_day // of_day)
    periods[numbers == _INFINITE] = _INFINITE
    periods[numbers == -_INFINITE] = -_INFINITE
    return periods


def _missing(values: Any) -> Any:
    return values.is_null().to_numpy(zero_copy_only=False)


def _time_cells(attribute: Dates, values: Any) -> Any:
    """The cells of timestamps, by arithmetic on the integers that they are."""
    pa = load_engine("pyarrow")
    first = (attribute.start.toordinal() - EPOCH) * MINUTES
    last = (attribute.end.toordinal() - EPOCH + 1) * MINUTES - 1
    minutes = _periods(values, MINUTES)
    cells = (np.clip(minutes, first, last) - first) // attribute.minutes
    missing = np.zeros(len(cells), dtype=bool)
    for label, places in (
        ("(below)", minutes < first),
        ("(above)", minutes > last),
        ("(null)", _missing(values)),
    ):
        cell = attribute.special_cell(label)
        cells[places] = 0 if cell is None else cell
        missing[places] = cell is None
    return pa.array(cells, mask=missing)


def _decimals(wide: Any, values: Any) -> Any:
    """Decimals with the bits that DuckDB has for their precision.

    A value beyond the declared precision is what DuckDB reads from Parquet: its lowest bits.
    """
    pa = load_engine("pyarrow")
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        missing = values.is_null().to_numpy(zero_copy_only=False)
        numbers = [
            0 if gone else number for gone, number in zip(missing, _raw(values), strict=True)
        ]
        fitted = b"".join(_fitted(number, wide.precision) for number in numbers)
        valid = pa.array(~missing).buffers()[1]
        return pa.Array.from_buffers(wide, len(values), [valid, pa.py_buffer(fitted)])
    return values.cast(wide)


def _raw(values: Any) -> list[int]:
    """The integers that decimals are stored as."""
    width = values.type.bit_width // 8
    stored = values.buffers()[1].to_pybytes()
    starts = range(width * values.offset, width * (values.offset + len(values)), width)
    return [int.from_bytes(stored[at : at + width], "little", signed=True) for at in starts]


def _fitted(number: int, precision: int) -> bytes:
    bits = next((bits for most, bits in ((4, 16), (9, 32), (18, 64)) if precision <= most), 128)
    number = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    return number.to_bytes(16, "little", signed=True)


def _names(values: Any) -> Any:
    """The bytes of names, long ones by their digest."""
    pa, compute = load_engine("pyarrow"), load_engine("pyarrow.compute")
    names = _as_large(values)
    is_long = compute.fill_null(compute.greater(compute.binary_length(names), LONGEST_NAME), False)  # noqa: FBT003
    if not compute.any(is_long).as_py():
        return names
    digests = [
        hashlib.sha256(name.as_buffer()).hexdigest().encode() * DIGEST_REPEATED
        for name in names.filter(is_long)
    ]
    return compute.replace_with_mask(names, is_long, pa.array(digests, type=pa.large_binary()))


def _uuid_names(values: Any) -> Any:
    pa = load_engine("pyarrow")
    stored = getattr(values, "storage", values).to_pylist()
    names = [None if raw is None else str(uuid.UUID(bytes=raw)).encode() for raw in stored]
    return pa.array(names, type=pa.large_binary())
