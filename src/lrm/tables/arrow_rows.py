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

    ``types`` are the Arrow types of columns by name; those of Python objects have none.
    """

    def __init__(self, domain: Domain, needed: Needed, types: Mapping[str, Any]) -> None:
        pa = load_engine("pyarrow")
        self._columns: list[tuple[str, Conversion]] = []  # each by the name of its source
        for place, attribute in enumerate(domain.attributes):
            name = f"a{place}"
            if needed[attribute.name].kind == "cells":
                placed = partial(pandas_objects.cells, attribute=attribute)
                how = Conversion(Column(name, "cells", "cells"), pa.int64(), placed)
            else:
                how = conversion(attribute, types[attribute.name], name)
            self._columns.append((attribute.name, how))
        unit = domain.unit.column
        self._has_person = unit is not None
        if unit is not None and needed[unit].kind == "cells":
            column = Column("person", "BLOB", "cells")
            named = Conversion(column, pa.large_binary(), pandas_objects.names)
            self._columns.append((unit, named))
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
