"""Counting on Spark: the work stays in the cluster, and only counts of entries leave it."""

from __future__ import annotations

import math
import secrets
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lrm.domain import Domain, persons
from lrm.domain.people import Level
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.privacy.mechanism import OccurringValues, TrueCounts
from lrm.queries.maps.products.tabulation import total
from lrm.tables.base import Column, Table, check_columns, guarded, load_engine, name_parts
from lrm.tables.cell_sql import bin_steps
from lrm.tables.count import Count, Wanted, count_of
from lrm.tables.dialect import case, sql_code
from lrm.tables.joined_rows import Integers, JoinedRows
from lrm.tables.joined_values import conditions, occurring
from lrm.tables.open_values import OpenValues
from lrm.tables.people_sql import LevelSql
from lrm.tables.spark_session import session
from lrm.tables.spark_sql import SparkSql, column_of
from lrm.tables.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SQL = SparkSql()
LEAST_VERSION = 4


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


@dataclass(frozen=True)
class Counting:
    """A frame of places and how many rows there are at each; ``add`` adds them to a tally."""

    frame: DataFrame
    add: Callable[[Tally, Integers, Integers], None]


class SparkCounted(Table):
    """What is counted in one Spark session."""

    @abstractmethod
    def _counted(self, count: Count, *, empty: bool) -> Counting:
        """A frame of what is counted, not yet computed."""

    def _check(self, domain: Domain, requested: Wanted) -> None:
        count = count_of(domain, requested)
        guarded(
            f"preparing the count of table {self.name!r} on Spark",
            lambda: self._counted(count, empty=True).frame.toArrow(),  # noqa: PLW0108 - guarded too
        )

    def _counts(self, domain: Domain, requested: Wanted) -> TrueCounts:
        count = count_of(domain, requested)

        def count_rows() -> TrueCounts:
            counting = self._counted(count, empty=False)
            result, tally = counting.frame.toArrow(), Tally(count)
            result = result.filter(result["place"].is_valid())
            counting.add(tally, result["place"].to_numpy(), result["n"].to_numpy())
            return tally.true_counts()

        return guarded(f"counting table {self.name!r} on Spark", count_rows)


class SparkTable(SparkCounted):
    """A Spark frame, with whatever its session makes of it."""

    def __init__(self, frame: DataFrame, name: str) -> None:
        super().__init__(name)
        version = guarded("asking Spark for its version", lambda: str(frame.sparkSession.version))
        if int(version.partition(".")[0]) < LEAST_VERSION:
            raise TableError(
                f"this is Spark {version}, and lrm needs Spark {LEAST_VERSION}.0 or later"
            )
        self._frame = frame
        # Spark Connect looks only now whether there is such a table.
        fields = guarded(f"reading the schema of {name!r} on Spark", lambda: frame.schema.fields)
        self._columns = tuple(
            column_of(
                field.name,
                field.dataType.simpleString(),
                (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", ""),
            )
            for field in fields
        )

    @classmethod
    def of_level(cls, level: Level, tables: Mapping[str, Table]) -> Table:
        return SparkLevel(level, {n: t for n, t in tables.items() if isinstance(t, cls)})

    @property
    def session(self) -> SparkSession:
        """The session of its frame."""
        return self._frame.sparkSession

    def _described(self) -> tuple[Column, ...]:
        return self._columns

    def _counted(self, count: Count, *, empty: bool) -> Counting:
        domain = count.domain
        needed = check_columns(self.name, domain, self._columns)
        rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
        person = None if domain.unit.column is None else needed[domain.unit.column]
        frame = self.reading(rows, person, empty=empty)
        if not is_scan(self._frame):
            frame = _evaluated_once(frame)
        return _limited(_worded(frame, rows, person), rows, person)

    def check_values(self, wanted: OpenValues) -> None:
        wanted.check()
        guarded(
            f"preparing to read values of table {self.name!r} on Spark",
            lambda: self._pairs(wanted, empty=True).collect(),
        )

    def values(self, wanted: OpenValues) -> OccurringValues:
        return guarded(
            f"reading values of table {self.name!r} on Spark",
            lambda: occurring(self._pairs(wanted, empty=False).toLocalIterator(), wanted),
        )

    def _pairs(self, wanted: OpenValues, *, empty: bool) -> DataFrame:
        """The different pairs of a person and a value, in the order of the persons."""
        domain = wanted.domain
        needed = check_columns(self.name, domain, self._columns)
        count = count_of(domain, [total(domain.shape)])
        rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
        person = None if domain.unit.column is None else needed[domain.unit.column]
        frame = _evaluated_once(self.reading(rows, person, empty=empty))
        value = f"CAST({SQL.as_text('c0', needed[domain.names[0]])} AS BINARY) AS v"
        frame = _worded(frame, rows, person, [value])
        for condition in conditions(wanted):
            frame = frame.where(condition)
        if person is None:
            return frame.select("v")
        return frame.select("person", "v").distinct().orderBy("person")

    def reading(self, rows: JoinedRows, person: Column | None, *, empty: bool) -> DataFrame:
        """The rows of the table, as ``c0``, ``c1`` … and ``person``."""
        frame = self._frame.limit(0) if empty else self._frame
        return frame.selectExpr(*rows.selected(person))


class SparkLevel(SparkCounted):
    """The rows of a level of a people, from its tables in one session."""

    def __init__(self, level: Level, tables: Mapping[str, SparkTable]) -> None:
        super().__init__(level.people.name)
        sessions = [table.session for table in tables.values()]
        if any(other is not sessions[0] for other in sessions):
            raise TableError(
                f"the tables of {level.people.name!r} are frames of several Spark sessions; give "
                "frames of one"
            )
        self._session, self._tables = sessions[0], tables
        columns = {name: table.described for name, table in tables.items()}
        # Names that no view of the session has.
        self._sql = LevelSql(level, columns, SQL, f"lrm_{secrets.token_hex(8)}")

    def _described(self) -> tuple[Column, ...]:
        return (*self._sql.columns(), self._sql.person)

    def _counted(self, count: Count, *, empty: bool) -> Counting:
        try:
            for name, rows in self._sql.tables.items():
                person = rows.needed[rows.table.person]
                columns = [rows.needed[attribute.name] for attribute in rows.domain.attributes]
                joined = JoinedRows(SQL, rows.count, columns)
                read = self._tables[name].reading(joined, person, empty=empty)
                # Now, not when it is needed: two stages that need it could each compute it.
                frame = _evaluated_once(read, eager=True)
                frame = _worded(frame, joined, person, rows.further())
                for test in ("person", rows.dated):
                    frame = frame.where(f"{test} IS NOT NULL") if test else frame
                frame.createOrReplaceTempView(rows.name)
            # The views are looked up here; what is computed later is their frames.
            level = self._session.sql(self._sql.relation(count.domain))
        finally:
            for rows in self._sql.tables.values():
                self._session.catalog.dropTempView(rows.name)
        placed = JoinedRows(SQL, count, self._sql.columns())
        counted = self._sql.person if self._sql.is_limited else None
        frame = level.selectExpr(*placed.selected(counted))
        return _limited(_worded(frame, placed, counted), placed, counted)


def _worded(
    frame: DataFrame, rows: JoinedRows, person: Column | None, further: Sequence[str] = ()
) -> DataFrame:
    """The rows of a frame with columns ``c0`` …, as their words and persons."""
    known_classes = rows.joined()
    for wide in rows.wide():
        frame = _bucketed(frame, rows, wide)
        known_classes[wide] = _wide(rows, wide)
    frame = _joined(frame, rows)
    listed = [*rows.words(known_classes), *further, *(["person"] if person else [])]
    return frame.selectExpr(*listed)


def _limited(frame: DataFrame, rows: JoinedRows, person: Column | None) -> Counting:
    """What is counted, from the words and persons of rows."""
    if person is not None:
        frame = frame.where(rows.counted).where("person IS NOT NULL")
        pa = load_engine("pyarrow")
        # The value of a sub-select: plans, which Spark logs and shows, have literals but no rows.
        keys = frame.sparkSession.createDataFrame(pa.table({"key": [persons.fresh_key()]}))
        key = keys.scalar()
        for listed, kept in rows.limits("key"):
            frame = frame.withColumn("key", key).selectExpr(*listed)
            frame = frame.withColumn("key", key).where(kept)
    return _entries(frame, rows)


def is_scan(frame: DataFrame) -> bool:
    """Whether a frame is files as they are: its values are the same however often they are read."""
    try:
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no other way to look
        while _class_name(plan) in {"SubqueryAlias", "View", "Project"}:
            if _class_name(plan) == "Project":
                listed = plan.projectList()
                if not all(_is_column(listed.apply(i)) for i in range(listed.size())):
                    return False
            plan = plan.children().head()
        is_relation = _class_name(plan) == "LogicalRelation"
        return is_relation and _class_name(plan.relation()) == "HadoopFsRelation"
    except Exception:  # noqa: BLE001 - Spark Connect has no plan to look at
        return False


def _is_column(expression: Any) -> bool:
    if _class_name(expression) == "Alias":
        expression = expression.child()
    return _class_name(expression) == "AttributeReference"


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _evaluated_once(frame: DataFrame, *, eager: bool = False) -> DataFrame:
    """The same rows behind a step that Spark's optimiser moves nothing across.

    Otherwise a function of the frame is called once for a filter and again for a value, and a row
    whose values differ between calls is in several cells.
    """
    # If a worker is lost, the count of a local checkpoint fails instead of computing rows again.
    return frame.localCheckpoint(eager=eager)


def _entries(frame: DataFrame, rows: JoinedRows) -> Counting:
    """What is counted, from the words of rows; one of NULL is of a row that does not count."""
    number = "count(1) AS n"
    if rows.groups_only:  # without a filter, which would find the words of a row a second time
        frame = frame.selectExpr(f"{rows.group} AS place").groupBy("place").agg(_expr(number))
        return Counting(frame, rows.add_groups)
    frame = frame.where(rows.counted)
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
    entries = f"explode(array({', '.join(rows.entries())})) AS place"
    frame = frame.selectExpr(entries, *(["n"] if weighed else []))
    frame = frame.where("place IS NOT NULL").groupBy("place").agg(_expr(number))
    return Counting(frame, Tally.add_entries)


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
