"""The counted columns of Arrow tables, batches and pandas frames, as DuckDB reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from lrm.domain import Domain
from lrm.tables import pandas_objects
from lrm.tables.arrow_columns import Conversion, conversion, person_conversion
from lrm.tables.base import Column, load_engine
from lrm.tables.duckdb_reading import Needed, Reading


class ArrowRows:
    """Converts the columns that a domain needs, under names of their own.

    Parameters
    ----------
    domain
        Attributes and the privacy unit.
    needed
        Their columns.
    types
        Arrow types of columns by name; those of Python objects have none.
    """

    def __init__(self, domain: Domain, needed: Needed, types: Mapping[str, Any]) -> None:
        pa = load_engine("pyarrow")
        self._sources: list[str] = []
        self._conversions: list[Conversion] = []
        for place, attribute in enumerate(domain.attributes):
            name = f"a{place}"
            if needed[attribute.name].kind == "cells":
                placed = partial(pandas_objects.cells, attribute=attribute)
                how = Conversion(Column(name, "cells", "cells"), pa.int64(), placed)
            else:
                how = conversion(attribute, types[attribute.name], name)
            self._add(attribute.name, how)
        unit = domain.unit.column
        if unit is not None and needed[unit].kind == "cells":
            column = Column("person", "BLOB", "cells")
            self._add(unit, Conversion(column, pa.large_binary(), pandas_objects.names))
        elif unit is not None:
            self._add(unit, person_conversion(needed[unit], types[unit], "person"))
        self._has_person = unit is not None

    def _add(self, source: str, how: Conversion) -> None:
        self._sources.append(source)
        self._conversions.append(how)

    @property
    def schema(self) -> Any:
        """The schema that DuckDB sees."""
        fields = [(how.column.name, how.type) for how in self._conversions]
        return load_engine("pyarrow").schema(fields)

    def table(self, column: Callable[[str], Any]) -> Any:
        """Convert whole columns, found by name."""
        arrays = [
            how(column(name)) for name, how in zip(self._sources, self._conversions, strict=True)
        ]
        return load_engine("pyarrow").table(arrays, schema=self.schema)

    def reader(self, batches: Iterable[Any]) -> Any:
        """Convert batches as they are read."""
        pa, schema = load_engine("pyarrow"), self.schema

        def converted() -> Iterator[Any]:
            for batch in batches:
                arrays = [
                    how(batch.column(name))
                    for name, how in zip(self._sources, self._conversions, strict=True)
                ]
                yield pa.record_batch(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, converted())

    def reading(self, relation: str) -> Reading:
        """Where DuckDB finds the columns in ``relation``."""
        columns = [how.column for how in self._conversions]
        if not self._has_person:
            return Reading(relation, tuple(columns), None)
        return Reading(relation, tuple(columns[:-1]), columns[-1])
