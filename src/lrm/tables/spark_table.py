"""Counting on Spark: the work stays in the cluster, and only counts of entries leave it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lrm.domain import Domain, persons
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.privacy.mechanism import TrueCounts
from lrm.tables.base import Column, Table, check_columns, guarded, load_engine, name_parts
from lrm.tables.cell_sql import bin_steps
from lrm.tables.count import Count, Wanted, count_of
from lrm.tables.dialect import case, sql_code
from lrm.tables.joined_rows import JoinedRows
from lrm.tables.spark_session import session
from lrm.tables.spark_sql import SparkSql, column_of
from lrm.tables.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SQL = SparkSql()


def open_source(source: object, name: str | None = None) -> SparkTable | None:
    """Open ``spark:TABLE``, ``spark:FILE.parquet`` or a Spark frame; None for anything else."""
    kind = type(source)
    if kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame":
        return SparkTable(source, name or "frame")  # type: ignore[arg-type] # as its name says
    if not isinstance(source, str) or not source.startswith("spark:"):
        return None
    place = source.removeprefix("spark:").removeprefix("//")
    if place.lower().startswith("jdbc:"):
        raise TableError(
            "spark: takes the name of a table or the path of Parquet files, not a JDBC address; "
            "make it a table of the session, or pass a Spark frame to lrm.open_table"
        )
    spark = session()
    if "/" in place or place.endswith(".parquet"):
        frame = guarded(f"opening {shown(place)!r} on Spark", lambda: spark.read.parquet(place))
    else:
        quoted = ".".join(SQL.name(part) for part in name_parts(place))
        frame = guarded(f"opening table {shown(place)!r} on Spark", lambda: spark.table(quoted))
    return SparkTable(frame, name or place.partition("?")[0].rstrip("/").rpartition("/")[2])


class SparkTable(Table):
    """A Spark frame, with whatever its session makes of it."""

    def __init__(self, frame: DataFrame, name: str) -> None:
        super().__init__(name)
        self._frame = frame
        self._columns = tuple(
            column_of(
                field.name,
                field.dataType.simpleString(),
                (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", ""),
            )
            for field in frame.schema.fields
        )

    def _described(self) -> tuple[Column, ...]:
        return self._columns

    def check(self, domain: Domain, requested: Wanted = None) -> None:
        count = count_of(domain, requested)
        needed = check_columns(self.name, domain, self._columns)
        nothing = self._frame.limit(0)
        guarded(
            f"preparing the count of table {self.name!r} on Spark",
            lambda: _counted(nothing, count, needed).toArrow(),
        )

    def counts(self, domain: Domain, requested: Wanted = None) -> TrueCounts:
        count = count_of(domain, requested)
        needed = check_columns(self.name, domain, self._columns)

        def count_rows() -> TrueCounts:
            result = _counted(self._frame, count, needed).toArrow()
            tally = Tally(count)
            tally.add_entries(result["entry"].to_numpy(), result["n"].to_numpy())
            return tally.true_counts()

        return guarded(f"counting table {self.name!r} on Spark", count_rows)


def _counted(frame: DataFrame, count: Count, needed: dict[str, Column]) -> DataFrame:
    """A frame of entries and their counts, not yet computed."""
    domain = count.domain
    rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
    person = None if domain.unit.column is None else needed[domain.unit.column]
    frame = _evaluated_once(frame.selectExpr(*rows.selected(person)))
    known_classes = rows.joined()
    for wide in rows.wide():
        frame = _bucketed(frame, rows, wide)
        known_classes[wide] = _wide(rows, wide)
    frame = _joined(frame, rows)
    frame = frame.selectExpr(*rows.words(known_classes), *(["person"] if person else []))
    frame = frame.where(rows.counted)
    if person is not None:
        frame = frame.where("person IS NOT NULL").selectExpr(*rows.ranked)
        frame = frame.where(rows.kept(persons.fresh_key()))
    return _entries(frame, rows)


def _evaluated_once(frame: DataFrame) -> DataFrame:
    """The same rows behind a step that Spark's optimiser moves nothing across.

    Otherwise a function of the frame is called once for a filter and again for a value, and a row
    whose values differ between calls is in several cells.
    """
    # If a worker is lost, the count of a local checkpoint fails instead of computing rows again.
    return frame.localCheckpoint(eager=False)


def _entries(frame: DataFrame, rows: JoinedRows) -> DataFrame:
    """A frame of entries and their counts, from the words of rows that count."""
    number = "count(1) AS n"
    if rows.count.numbers:
        frame = frame.selectExpr(*rows.shares)
        frame = frame.selectExpr("*", f"explode(array_distinct(array({rows.starts}))) AS start")
        frame = frame.selectExpr(*rows.pieces)
        number = "sum(n) AS n"
    weighed = rows.groups_first or bool(rows.count.numbers)
    if rows.groups_first:
        frame = frame.groupBy(*rows.word_names).agg(_expr(number))
        number = "sum(n) AS n"
    frame = frame.selectExpr(*rows.parts(), *(["n"] if weighed else []))
    entries = f"explode(array({', '.join(rows.entries())})) AS entry"
    frame = frame.selectExpr(entries, *(["n"] if weighed else []))
    return frame.where("entry IS NOT NULL").groupBy("entry").agg(_expr(number))


def _expr(text: str) -> Any:
    return load_engine("pyspark.sql.functions", "spark").expr(text)


def _joined(frame: DataFrame, rows: JoinedRows) -> DataFrame:
    """Join long lists of categories, which every worker receives as a whole."""
    functions = load_engine("pyspark.sql.functions", "spark")
    for place, keys in rows.joins.items():
        pairs = ", ".join(f"({literal}, {code})" for literal, code in keys.pairs)
        listed = frame.sparkSession.sql(f"SELECT * FROM VALUES {pairs} AS pairs(value, code)")  # noqa: S608
        frame = frame.join(
            functions.broadcast(listed).alias(f"keys{place}"),
            functions.expr(f"keys{place}.value = {keys.value}"),
            "left",
        )
    return frame


def _finite(edges: Sequence[float]) -> list[float]:
    return [edge for edge in edges if math.isfinite(edge)]


def _bucketed(frame: DataFrame, rows: JoinedRows, place: int) -> DataFrame:
    """Add the number of finite edges at or below a value, by Spark's own bisection."""
    feature: Any = load_engine("pyspark.ml.feature", "spark")
    edges = _finite(bin_steps(rows.axes[place])[0].tolist())
    bucketizer = feature.Bucketizer(
        splits=[-math.inf, *edges, math.inf],
        inputCol=f"x{place}",
        outputCol=f"bucket{place}",
        handleInvalid="keep",
    )
    # Adding zero makes -0.0 into 0.0: Bucketizer would put it below an edge at 0.
    x = f"{SQL.as_double(f'c{place}', rows.columns[place])} + {SQL.number(0.0)}"
    bucketed: DataFrame = bucketizer.transform(frame.selectExpr("*", f"{x} AS x{place}"))
    return bucketed


def _wide(rows: JoinedRows, place: int) -> str:
    """The class of a number whose bucket is known; NaN and the infinite have none."""
    axis, x = rows.axes[place], f"x{place}"
    edges, codes = bin_steps(axis)
    skipped = int(edges[0] == -math.inf)
    bucket_codes = codes[skipped : skipped + len(_finite(edges.tolist())) + 1]
    return case(
        [
            (f"isnan({x})", sql_code(axis.special("(nan)"))),
            (f"{x} = {SQL.number(math.inf)}", sql_code(codes[-1])),
            (f"{x} IS NOT NULL", SQL.lookup(bucket_codes, f"bucket{place}")),
            (f"c{place} IS NULL", sql_code(axis.special("(null)"))),
        ]
    )
