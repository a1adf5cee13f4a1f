"""CSV files as a source of rows.

The record rule is in `lrm.tables.csv_lines`, the form of a line in `lrm.tables.csv_fields`, and
what a text means as a value in `lrm.tables.csv_values`. DuckDB receives the needed columns as text:
its own CSV reader lets a quote extend a record over lines, restarts inside quotes when it reads in
parallel, and raises errors on some bytes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrm.domain import CsvForm, Domain
from lrm.errors import TableError
from lrm.tables.base import Column, column_names, guarded, load_engine
from lrm.tables.csv_fields import Marks, fields_of, split_block
from lrm.tables.csv_lines import UNREADABLE, line_blocks, to_utf8
from lrm.tables.duckdb_reading import Needed, Reading, Source, reading_of
from lrm.tables.duckdb_sources import files_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class CsvFiles(Source):
    """CSV files with one header, each line of which is one record.

    Lines are written in ``form``; where None, as the domain declares, or as `CsvForm` does by
    default.
    """

    def __init__(self, pattern: str, form: CsvForm | None = None) -> None:
        self._files = files_of(pattern)
        self._form = form
        self.label = Path(pattern).name

    def _form_under(self, domain: Domain | None) -> CsvForm:
        declared = None if domain is None else domain.csv
        if self._form is not None and declared not in (None, self._form):
            raise TableError(
                f"table {self.label!r} was opened with a CSV form that the domain does not declare"
                "; declare it in one place"
            )
        return self._form or declared or CsvForm()

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:
        form = self._form_under(domain)
        return tuple(
            Column(name, "text (CSV)", "raw", csv=form) for name in _header(self._files[0], form)
        )

    def check(self, needed: Sequence[Column], domain: Domain) -> None:  # noqa: ARG002 - all columns are alike
        """Every file has the same header, and compressed ones are complete."""
        self._common_header(self._form_under(domain))
        for file in self._files:
            # Of the blocks nothing is looked at: that they can be unpacked is a fact about the
            # file as a whole, true of every file that a compressor wrote to its end.
            if file.lower().endswith(".gz"):
                _unpack(file)

    def _common_header(self, form: CsvForm) -> tuple[str, ...]:
        """Return the one header of all files: columns are found by their place."""
        header = _header(self._files[0], form)
        for file in self._files[1:]:
            if _header(file, form) != header:
                raise TableError(f"the header of {file!r} differs from that of {self._files[0]!r}")
        return header

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """Make the needed columns known as a stream of Arrow batches."""
        pa = load_engine("pyarrow")
        schema = pa.schema([(name, pa.string()) for name in column_names(needed)])
        form = self._form_under(domain)
        header = self._common_header(form)
        batches = iter(()) if empty else self._batches(form, header, schema)
        db.register("lrm_csv", pa.RecordBatchReader.from_batches(schema, batches))
        return reading_of(db, "lrm_csv", domain, needed, empty=False)

    def _batches(self, form: CsvForm, header: Sequence[str], schema: Any) -> Iterator[Any]:
        """Split blocks on all cores, a few ahead of the reader; NumPy and Arrow free the lock."""
        pa = load_engine("pyarrow")
        places = [header.index(name) for name in schema.names]

        def split(block: bytes, marks: Marks) -> Any:
            columns = split_block(to_utf8(block, form.encoding), marks, len(header), places)
            return pa.record_batch(columns, schema=schema)

        workers = os.cpu_count() or 1
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            for file in self._files:
                marks = _marks(form, file)
                for block in _records(file):
                    waiting.append(pool.submit(split, block, marks))
                    if len(waiting) > 2 * workers:
                        yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def _unpack(file: str) -> None:
    def look() -> None:
        for _ in line_blocks(file):
            pass

    guarded(f"reading {file!r}", look)


def _marks(form: CsvForm, file: str) -> Marks:
    quote = None if form.quote is None else form.quote.encode()
    return Marks(form.delimiter_of(file).encode(), quote)


def _records(file: str) -> Iterator[bytes]:
    """Blocks of lines without the header."""
    blocks = line_blocks(file)
    for first in blocks:
        yield first[first.index(b"\n") + 1 :]
        break
    yield from blocks


def _header(file: str, form: CsvForm) -> tuple[str, ...]:
    """Read the names of columns from the first line: public, unlike the lines that follow."""

    def look() -> bytes:
        block = next(line_blocks(file), b"\n")
        return block[: block.index(b"\n")].removesuffix(b"\r")

    line = to_utf8(guarded(f"reading the header of {file!r}", look), form.encoding)
    if b"\r" in line:
        raise TableError(
            f"the header of {file!r} contains a carriage return; lines must end with a line feed"
        )
    fields = None if UNREADABLE in line else fields_of(line, _marks(form, file))
    if fields is None:
        raise TableError(
            f"the header of {file!r} is not {form.encoding} text with fields in the declared form; "
            "declare delimiter, quote and encoding under csv in the domain"
        )
    header = tuple(field or "" for field in fields)
    if not line:
        raise TableError(f"the header of {file!r} is empty; name each column once")
    places: dict[str, int] = {}
    for place, name in enumerate(header, 1):
        if places.setdefault(name, place) != place:
            # By their places: where the header is missing, a name is a value of the first row.
            both = f"{places[name]} and {place}"
            raise TableError(f"the header of {file!r} names columns {both} alike; name each once")
    return header
