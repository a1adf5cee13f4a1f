"""The counted columns of Arrow tables, batches and pandas frames, as DuckDB reads them.

A column of pandas without a type of its own (Python objects, and categories of any values) may hold
values of all kinds, and guessing a type from them would let a count, or whether it succeeds, depend
on one value. So each value is placed by the plain Python rules of its attribute: slower, and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from lrm.domain import Attribute, Domain
from lrm.domain.attributes import is_nan
from lrm.domain.persons import person_name
from lrm.tables.arrow_columns import Conversion, conversion, person_conversion
from lrm.tables.base import Column, load_engine
from lrm.tables.duckdb_reading import Needed, Reading
from lrm.tables.open_values import OpenText


class ArrowRows:
    """Converts the columns that a domain needs, under names of their own.

    ``types`` are the Arrow types of columns by name; those of Python objects have none.
    """

    def __init__(self, domain: Domain, needed: Needed, types: Mapping[str, Any]) -> None:
        pa = load_engine("pyarrow")
        self._columns: list[tuple[str, Conversion]] = []  # each by the name of its source
        for place, attribute in enumerate(domain.attributes):
            name = f"a{place}"
            if isinstance(attribute, OpenText) and needed[attribute.name].kind == "cells":
                how = Conversion(Column(name, "BLOB", "bytes"), pa.large_binary(), object_texts)
            elif needed[attribute.name].kind == "cells":
                placed = partial(object_cells, attribute=attribute)
                how = Conversion(Column(name, "cells", "cells"), pa.int64(), placed)
            elif needed[attribute.name].kind == "raw":
                how = _as_it_is(name)
            else:
                how = conversion(attribute, types[attribute.source], name)
            self._columns.append((attribute.source, how))
        unit = domain.unit.column
        self._has_person = unit is not None
        if unit is not None and needed[unit].kind == "cells":
            column = Column("person", "BLOB", "cells")
            named = Conversion(column, pa.large_binary(), object_names)
            self._columns.append((unit, named))
        elif unit is not None and needed[unit].kind == "raw":
            self._columns.append((unit, _as_it_is("person")))
        elif unit is not None:
            self._columns.append((unit, person_conversion(needed[unit], types[unit])))

    @property
    def schema(self) -> Any:
        """The schema that DuckDB sees."""
        fields = [(how.column.name, how.type) for _, how in self._columns]
        return load_engine("pyarrow").schema(fields)

    def _converted(self, column: Callable[[str], Any]) -> list[Any]:
        return [how(column(name)) for name, how in self._columns]

    def table(self, column: Callable[[str], Any]) -> Any:
        """Convert whole columns, found by name."""
        return load_engine("pyarrow").table(self._converted(column), schema=self.schema)

    def reader(self, batches: Iterable[Any]) -> Any:
        """Convert batches as they are read."""
        pa, schema = load_engine("pyarrow"), self.schema

        def converted() -> Iterator[Any]:
            for batch in batches:
                yield pa.record_batch(self._converted(batch.column), schema=schema)

        return pa.RecordBatchReader.from_batches(schema, converted())

    def reading(self, relation: str) -> Reading:
        """Where DuckDB finds the columns in ``relation``."""
        columns = [how.column for _, how in self._columns]
        if not self._has_person:
            return Reading(relation, tuple(columns), None)
        return Reading(relation, tuple(columns[:-1]), columns[-1])


def _as_it_is(name: str) -> Conversion:
    """Texts of folders, which DuckDB reads as what the domain declares."""
    return Conversion(Column(name, "VARCHAR", "raw"), load_engine("pyarrow").string(), _unchanged)


def _unchanged(values: Any) -> Any:
    return values


def holds_objects(column: Any) -> bool:
    """Whether values of a pandas column may be of any kind."""
    dtype = column.dtype
    stored = getattr(dtype, "storage", "")  # of text: "python" or "pyarrow"
    return str(dtype) in {"object", "category"} or stored == "python"


def object_cells(column: Any, attribute: Attribute) -> Any:
    """The position of each value as an Arrow array; NULL where the row is dropped."""
    pandas = load_engine("pandas")
    missing = (None, pandas.NA, pandas.NaT)
    unreadable = attribute.special_cell(attribute.outside_labels[-1])

    def cell(value: object) -> int | None:
        try:
            return attribute.position_of(None if _is_null(value, missing) else value)
        except Exception:  # noqa: BLE001 - an object may raise anything when it is looked at
            return unreadable

    return _each(column, cell, load_engine("pyarrow").int64())


def _is_null(value: object, missing: tuple[object, ...]) -> bool:
    """Whether pandas means that there is no value: NaN too, whatever the column holds."""
    if any(value is nothing for nothing in missing):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, (float, np.floating, Decimal)):
        return is_nan(value)
    return False


def object_names(column: Any) -> Any:
    """The name of each person as an Arrow array; NULL for nobody."""

    def name(value: object) -> bytes | None:
        try:
            return person_name(value)
        except Exception:  # noqa: BLE001 - an object may raise anything when it is looked at
            return None

    return _each(column, name, load_engine("pyarrow").large_binary())


def object_texts(column: Any) -> Any:
    """The bytes of each text as an Arrow array; NULL for other objects."""

    def text(value: object) -> bytes | None:
        return person_name(value) if isinstance(value, str) else None

    return _each(column, text, load_engine("pyarrow").large_binary())


def _each(column: Any, convert: Callable[[object], object], arrow_type: Any) -> Any:
    pa = load_engine("pyarrow")
    if str(column.dtype) != "category":
        return pa.array([convert(value) for value in column], type=arrow_type)
    codes = column.cat.codes.to_numpy()  # -1 where there is no value
    converted = [convert(value) for value in column.cat.categories]
    return pa.array([*converted, convert(None)], type=arrow_type).take(
        pa.array(codes % (len(converted) + 1))
    )
