"""Matrices that look like a table of records, which someone passed for a file of queries.

A plan states figures that follow from the matrix, and names of queries: those of a private table
must not be printed unnoticed. The rule errs on the side of a warning.
"""

from __future__ import annotations

import warnings

import numpy as np

from lrm.errors import WorkloadWarning
from lrm.queries.maps.linear import Floats


def warn_of_records(matrix: Floats, source: str, *, header: bool = False) -> None:
    """Warn where a matrix of queries looks like a table of records; no entry is quoted.

    Parameters
    ----------
    matrix
        One row per query, one column per cell.
    source
        The file, for the warning.
    header
        Whether a line of words stands above the numbers.
    """
    reason = _reason(matrix, header=header)
    if reason is not None:
        warnings.warn(
            f"{source} looks like a table of records and not like queries: {reason}. What is "
            "planned and printed follows from its numbers: if they are private, keep no output, "
            "write the queries in SQL, and pass the table to `lrm release --table`",
            WorkloadWarning,
            stacklevel=2,
        )


def _reason(matrix: Floats, *, header: bool) -> str | None:
    """Why a matrix may hold records, in words that state no entry.

    Queries have weights of 0, 1 and −1 for the most part, and a query is asked once. A column of a
    table has other numbers in most rows, and rows of flags repeat.
    """
    if matrix.ndim != 2 or 0 in matrix.shape:
        return None
    rows, columns = matrix.shape
    if rows < 2 or not (rows > columns or header):
        return None
    other = ~np.isin(matrix, (-1, 0, 1))
    lowest = np.where(other, matrix, np.inf).min(axis=0)
    highest = np.where(other, matrix, -np.inf).max(axis=0)
    varied = (2 * other.sum(axis=0) > rows) & (lowest < highest)
    if varied.any():
        number = int(np.argmax(varied)) + 1
        return f"most numbers of column {number} are not 0, 1 or −1, and they differ"
    if rows > max(columns, 9) and 2 * len(np.unique(matrix, axis=0)) < rows:
        return f"it has {rows:,} rows of {columns:,} numbers, and most of them repeat another one"
    return None
