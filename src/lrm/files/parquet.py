"""Parquet files in memory, batch by batch and up to a limit."""

from __future__ import annotations

from typing import Any

from lrm.errors import FileFormatError
from lrm.files.reading import FILE_LIMIT

MOST_VALUES = FILE_LIMIT // 8
"""Values of a table: as float64 they take 1 GiB."""

_BATCH_VALUES = 1 << 20


def parse_parquet(data: bytes) -> Any:
    """Return the table that the bytes of a Parquet file hold, of at most 2^27 values.

    A few bytes may encode any number of equal values, so the unpacked values are counted.
    """
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for this kind of file only
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        width = max(1, len(file.schema_arrow))
        if file.metadata.num_rows * width > MOST_VALUES:
            raise FileFormatError(f"it holds more than {MOST_VALUES:,} values")
        batches, values, size = [], 0, 0
        for batch in file.iter_batches(_BATCH_VALUES // width + 1, use_threads=False):
            batch.validate(full=True)
            batches.append(batch)
            values += batch.num_rows * width
            size += batch.nbytes
            if values > MOST_VALUES or size > FILE_LIMIT:  # more than the file says of itself
                raise FileFormatError(f"it holds more than {MOST_VALUES:,} values")
        return pa.Table.from_batches(batches, schema=file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileFormatError("it is not a whole Parquet file") from None
