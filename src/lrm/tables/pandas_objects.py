"""Columns of pandas without a type of their own: Python objects, and categories of any values.

Such a column may hold values of all kinds, and guessing a type from them would let a count, or
whether it succeeds, depend on one value. So each value is placed by the plain Python rules of its
attribute: slower, and exact.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from lrm.domain import Attribute
from lrm.domain.attributes import is_nan
from lrm.domain.persons import person_name
from lrm.tables.base import load_engine


def holds_objects(column: Any) -> bool:
    """Whether values of a pandas column may be of any kind."""
    dtype = column.dtype
    stored = getattr(dtype, "storage", "")  # of text: "python" or "pyarrow"
    return str(dtype) in {"object", "category"} or stored == "python"


def cells(column: Any, attribute: Attribute) -> Any:
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


def names(column: Any) -> Any:
    """The name of each person as an Arrow array; NULL for nobody."""

    def name(value: object) -> bytes | None:
        try:
            return person_name(value)
        except Exception:  # noqa: BLE001 - an object may raise anything when it is looked at
            return None

    return _each(column, name, load_engine("pyarrow").large_binary())


def _each(column: Any, convert: Callable[[object], object], arrow_type: Any) -> Any:
    pa = load_engine("pyarrow")
    if str(column.dtype) != "category":
        return pa.array([convert(value) for value in column], type=arrow_type)
    codes = column.cat.codes.to_numpy()  # -1 where there is no value
    converted = [convert(value) for value in column.cat.categories]
    return pa.array([*converted, convert(None)], type=arrow_type).take(
        pa.array(codes % (len(converted) + 1))
    )
