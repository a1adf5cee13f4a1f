"""Rows of results: one record a point, kept in Parquet as they finish."""

from __future__ import annotations

import dataclasses
import fcntl
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrm.errors import FileFormatError
from lrm.files.writing import write_bytes

__all__ = ["DONE", "FAILED", "STOPPED", "Row", "RowStore"]

DONE, STOPPED, FAILED = "done", "stopped", "failed"
"""How a case ended: as asked; at its time limit; with the reason that the row holds."""


@dataclass(frozen=True)
class Row:
    """One point of one series on one data set at one ε.

    ``error_measured`` and ``error_expected`` are squared L2 distances over the whole batch,
    ``cpu_seconds`` is the time of one core for the plan, ``simulated`` says that the noise
    was. What does not apply is NaN, −1 or empty.
    """

    case: str
    scale: str
    figure: int
    x: float
    workload: str
    queries: int
    cells: int
    s: int
    workload_seed: int
    label: str
    mechanism: str
    options: str
    status: str
    reason: str = ""
    rank: int = -1
    measurements: int = -1
    data: str = ""
    data_source: str = ""
    noise: str = "laplace"
    epsilon: float = math.nan
    delta: float = 0.0
    repetitions: int = 0
    noise_seed: int = -1
    simulated: bool = True
    error_measured: float = math.nan
    error_expected: float = math.nan
    bias_squared: float = math.nan
    tolerance_low: float = math.nan
    tolerance_high: float = math.nan
    lower_bound: float = math.nan
    seconds: float = math.nan
    cpu_seconds: float = math.nan
    estimated_seconds: float = math.nan
    time_limit: float = math.nan
    peak_memory_mb: float = math.nan
    rounds: int = -1
    converged: bool = False
    interrupted: bool = False
    plan_digest: str = ""
    code: str = ""
    versions: str = ""
    machine: str = ""

    @property
    def agrees(self) -> bool:
        """Whether measured and expected error agree within the stated tolerance."""
        return self.tolerance_low <= self.error_measured <= self.tolerance_high


_KINDS = {"str": "string", "int": "int64", "float": "float64", "bool": "bool_"}


def _schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - 0.2 s, needed only where rows are read or written

    return pa.schema([(f.name, getattr(pa, _KINDS[f.type])()) for f in dataclasses.fields(Row)])  # type: ignore[index]


class RowStore:
    """A folder of rows: one small file a finished case, and one file of all when a run ends.

    A file appears whole or not at all, so a killed run leaves nothing half-written; what is
    there when the next run begins is not computed again.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._parts = self.folder / "parts"
        self._whole = self.folder / "rows.parquet"

    def append(self, case: str, rows: Sequence[Row]) -> None:
        """Write the rows of one case, replacing what it had."""
        self._parts.mkdir(parents=True, exist_ok=True)
        _write(self._parts / f"{case}.parquet", rows)

    def load(self) -> list[Row]:
        """All rows; those of a case's own file replace older ones."""
        rows = _read(self._whole) if self._whole.exists() else []
        for part in sorted(self._parts.glob("*.parquet")) if self._parts.is_dir() else ():
            rows = [row for row in rows if row.case != part.stem] + _read(part)
        return rows

    def compact(self) -> None:
        """Put all rows into one file. A crash in between leaves rows twice, never lost."""
        parts = list(self._parts.iterdir()) if self._parts.is_dir() else []
        rows = self.load()
        if not rows:
            return
        rows.sort(key=lambda r: (r.figure, r.workload, r.x, r.label, r.data, r.epsilon))
        _write(self._whole, rows)
        for part in parts:
            part.unlink()  # what a killed run was about to write, too

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder: two would take each other's rows away."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / ".lock").open("w", encoding="ascii")
        except OSError as reason:
            raise FileFormatError(
                f"cannot write to {self.folder}: {reason.strerror}; choose another --out"
            ) from reason
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as reason:
                raise FileFormatError(
                    f"another run is at work in {self.folder}; wait for it, or choose another --out"
                ) from reason
            yield


def _write(path: Path, rows: Iterable[Row]) -> None:
    import pyarrow as pa  # noqa: PLC0415 - see _schema
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    table = pa.Table.from_pylist([dataclasses.asdict(row) for row in rows], schema=_schema())
    written = io.BytesIO()
    pq.write_table(table, written, compression="zstd")
    write_bytes(path, written.getvalue())


def _read(path: Path) -> list[Row]:
    import pyarrow as pa  # noqa: PLC0415 - see _schema
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    try:
        table = pq.ParquetFile(path).read()
        return [Row(**record) for record in table.to_pylist()]
    except (pa.ArrowException, TypeError, OSError) as reason:
        raise FileFormatError(
            f"{path} holds no rows of this version of the study; move it away and run again"
        ) from reason
