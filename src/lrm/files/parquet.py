"""Parquet files in memory, batch by batch and up to a limit."""

from __future__ import annotations

from typing import Any

from lrm.errors import FileFormatError
from lrm.files.reading import FILE_LIMIT

__all__ = ["parse_parquet"]

_BATCH_ROWS = 1 << 14


def parse_parquet(data: bytes) -> Any:
    """Return the table that the bytes of a Parquet file hold, of at most 1 GiB.

    A few bytes may stand for any number of equal values, so what is unpacked is counted.
    """
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for this kind of file only
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    batches, size = [], 0
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
            batch.validate(full=True)
            batches.append(batch)
            size += batch.nbytes
            if size > FILE_LIMIT:
                break
        table = pa.Table.from_batches(batches, schema=file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileFormatError("it is not a whole Parquet file") from None
    if size > FILE_LIMIT:
        raise FileFormatError(f"it unpacks to more than {FILE_LIMIT >> 20:,} MiB")
    return table
