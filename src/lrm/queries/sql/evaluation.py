"""Expressions over declared values, evaluated by DuckDB on a little table of those values.

Declared values are public. An expression that has one value on every value of a cell has one value
on the cell; where it does not, or where a cell holds values that nobody declared, it is undecided.
The private table is never read here.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lrm.domain import Attribute, Categories, Dates, Domain, SteppedAttribute
from lrm.errors import SqlError
from lrm.queries.sql.atoms import FALSE, NULL, TRUE, Intervals, Truths


@cache
def memory_database() -> Any:
    """An empty database in memory that reads nothing but what it is given."""
    import duckdb  # noqa: PLC0415 - it takes a while, and most batches need none

    connection = duckdb.connect(":memory:")
    for setting in (
        "threads = 1",
        "enable_external_access = false",
        "python_enable_replacements = false",
        "GLOBAL TimeZone = 'UTC'",  # without GLOBAL, not for its cursors
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def reason_of(error: Exception) -> str:
    """What the database says of an expression, in one line."""
    first = str(error).splitlines()[0]
    first = first.partition(" when casting from source column")[0]
    return first.split("Error: ", 1)[-1].rstrip(".")


def rows_of(
    shown: str, items: str, clauses: str, columns: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """``SELECT items FROM … clauses`` of the public columns c0, c1 …, which errors call ``shown``.

    Both hold nothing but functions of an allow-list.
    """
    import duckdb  # noqa: PLC0415 - as above

    database = memory_database().cursor()
    names = [f"c{place}" for place in range(len(columns))]
    database.register("looked_up", pa.table(list(map(pa.array, columns)), names))
    try:
        found: list[tuple[Any, ...]] = database.execute(
            f"SELECT {items} FROM looked_up{clauses}"  # noqa: S608 - rows of a lookup
        ).fetchall()
    except duckdb.Error as error:
        raise SqlError(
            f"{shown} cannot be evaluated: {reason_of(error)}", code="evaluation"
        ) from None
    finally:
        database.close()
    return found


MAX_VALUES = 1 << 17
"""Declared values of one attribute, and joint values of several, that are evaluated."""

_TYPES = {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_()}
_NULL, _UNKNOWN = -1, -2  # places of NULL and of values that nobody declared
_ANY = TRUE | FALSE | NULL

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CellColumn:
    """A value for every cell of an attribute."""

    axis: int
    values: pa.Array
    # For each cell, the place of its value; −1 for NULL, −2 where it is not constant.
    places: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Question:
    """An expression in DuckDB's SQL, over columns that stand for attributes and conditions."""

    shown: str  # the expression as it is written in the batch
    # The same with a column ``a3`` for the value of attribute 3, and ``p0`` for condition 0.
    text: str
    raw: frozenset[int]  # attributes whose values are used
    conditions: tuple[tuple[int, Truths], ...]  # attribute and possible truths of each condition
    # What is known cell by cell: ``c0`` stands for the first of these.
    columns: tuple[CellColumn, ...] = ()

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """All attributes that the expression reads."""
        condition_axes = {axis for axis, _ in self.conditions} | {
            cell_column.axis for cell_column in self.columns
        }
        return tuple(sorted(self.raw | condition_axes))


@dataclass(frozen=True, eq=False)
class Values:
    """The values of an expression over classes of cells that it does not distinguish."""

    axes: tuple[int, ...]  # the attributes that it reads
    classes: tuple[Ints, ...]  # for each of them, the class of every cell
    # Place of the value in ``distinct`` by classes, one dimension per attribute; −1 where it is
    # undecided.
    codes: NDArray[np.int64]
    # For each attribute, whether a class of its cells holds several values, or undeclared ones.
    several: tuple[NDArray[np.bool_], ...]
    distinct: tuple[Any, ...]  # the different values, in the order of the cells
    kind: str  # DuckDB's name of their type

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Classes on which the expression is not constant."""
        return np.asarray(self.codes < 0)

    def truths(self) -> Truths:
        """Possible truths of a condition."""
        bits = [NULL if value is None else TRUE if value else FALSE for value in self.distinct]
        return np.array([*bits, _ANY], dtype=np.uint8)[self.codes]

    def numbers(self) -> NDArray[np.float64]:
        """The values as numbers, where they are numbers; NULL and undecided ones are 0."""
        number_list = [0.0 if value is None else float(value) for value in self.distinct]
        return np.array([*number_list, 0.0])[self.codes]

    def present(self) -> NDArray[np.float64]:
        """1 where there is a value, 0 where it is NULL or undecided."""
        flags = [0.0 if value is None else 1.0 for value in self.distinct]
        return np.array([*flags, 0.0])[self.codes]


class Evaluator:
    """Evaluates expressions over the declared values of one domain."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._declared: dict[int, pa.Array] = {}
        self._grids: dict[tuple[int, ...], _Grid] = {}
        self._registered: pa.Table | None = None

    @cached_property
    def _connection(self) -> Any:
        return memory_database().cursor()

    def values(self, question: Question) -> Values:
        """Evaluate an expression on all declared values of its attributes."""
        grid = self._grid(question)
        sides, known = grid.sides, grid.known
        row_values, kind = self._ask(question, grid.table)
        distinct: dict[Hashable, int] = {}
        codes = np.full(len(known), -1, dtype=np.int64)
        codes[known] = [distinct.setdefault(row_value, len(distinct)) for row_value in row_values]
        joint = codes.reshape([len(side.known) for side in sides])
        for dimension, side in enumerate(sides):
            joint = side.reduced(joint, dimension)
        return Values(
            question.axes,
            tuple(side.classes for side in sides),
            joint,
            tuple(side.several for side in sides),
            tuple(distinct),
            kind,
        )

    def _grid(self, question: Question) -> _Grid:
        """All combinations of declared values; those of values alone are made once."""
        plain = not question.conditions and not question.columns
        if plain and question.axes in self._grids:
            return self._grids[question.axes]
        sides = [self._side(axis, question) for axis in question.axes]
        count = math.prod(len(side.known) for side in sides)
        if count > MAX_VALUES:
            raise SqlError(
                f"{question.shown} has {count:,} combinations of declared values, and at most "
                f"{MAX_VALUES:,} are evaluated; compare each attribute with constants, or have the "
                "owner of the table add a column for it",
                code="size",
            )
        rows = np.indices([len(side.known) for side in sides]).reshape(len(sides), count)
        known = np.ones(count, dtype=bool)
        columns: dict[str, pa.Array] = {}
        for side, places in zip(sides, rows, strict=True):
            known &= side.known[places]
        for side, places in zip(sides, rows, strict=True):
            for name, column in side.columns.items():
                columns[name] = column.take(pa.array(places[known]))
        columns["i"] = pa.array(np.arange(int(known.sum())))
        grid = _Grid(sides, known, pa.table(columns))
        if plain:
            self._grids[question.axes] = grid
        return grid

    def on_cells(self, shown: str, text: str, axis: int) -> CellColumn:
        """Evaluate a monotone expression of a number in bins: known where both ends agree.

        A column of whole numbers may be stored as integers, which DuckDB computes with
        differently: they must agree too.
        """
        attribute = self._domain.attributes[axis]
        question = Question(shown, text, frozenset([axis]), ())
        sides = Intervals.of(attribute).computed_ends()
        cells = len(sides[0])
        special = attribute.labels[cells:]
        beyond = [np.nan if special_value == "(nan)" else None for special_value in special]
        ends = pa.array(np.concatenate(sides[:2]))
        column = [ends, pa.array(beyond, ends.type)]
        end_values = self._on(question, pa.concat_arrays(column))
        known = [end_values[:cells], end_values[cells : 2 * cells]]
        special_values = end_values[2 * cells :]
        if len(sides) > 2:
            end_values = self._on(question, pa.array(np.concatenate(sides[2:])))
            known += [end_values[:cells], end_values[cells:]]
        places: dict[Hashable, int] = {None: _NULL}
        codes = [
            places.setdefault(row[0], len(places) - 1)
            if all(value == row[0] for value in row)
            else _UNKNOWN
            for row in (
                *zip(*known, strict=True),
                *((special_value,) for special_value in special_values),
            )
        ]
        values = pa.array(list(places)[1:], None if len(places) > 1 else ends.type)
        return CellColumn(axis, values, np.array(codes))

    def _on(self, question: Question, column: pa.Array) -> list[Any]:
        """Evaluate an expression of one attribute on some values."""
        (axis,) = question.raw
        places = pa.array(np.arange(len(column)))
        return self._ask(question, pa.table({f"a{axis}": column, "i": places}))[0]

    def _ask(self, question: Question, table: pa.Table) -> tuple[list[Any], str]:
        import duckdb  # noqa: PLC0415 - as above

        try:
            return self._run(question.text, table)
        except duckdb.Error as error:
            reason = reason_of(error)
        # Find a value on which it fails, by halves; none is to blame where no row is needed.
        first, last = 0, len(table)
        if last == 0 or self._fails(question.text, table.slice(0, 0)):
            raise SqlError(f"{question.shown} cannot be evaluated: {reason}", code="evaluation")
        while last - first > 1:
            middle = (first + last) // 2
            if self._fails(question.text, table.slice(first, middle - first)):
                last = middle
            else:
                first = middle
        values = ", ".join(
            f"{self._domain.names[axis]} = {table.column(f'a{axis}')[first].as_py()!s}"
            for axis in sorted(question.raw)
        )
        where = f" on the declared value {values}" if values else ""
        raise SqlError(f"{question.shown} fails{where}: {reason}", code="evaluation")

    def _fails(self, text: str, table: pa.Table) -> bool:
        import duckdb  # noqa: PLC0415 - as above

        try:
            self._run(text, table)
        except duckdb.Error:
            return True
        return False

    def _run(self, text: str, table: pa.Table) -> tuple[list[Any], str]:
        if table is not self._registered:
            self._connection.register("declared", table)
            self._registered = table
        # Only functions of an allow-list, over declared values: see `expressions`.
        query = f"SELECT i, ({text}) AS v, typeof(v) FROM declared"  # noqa: S608
        rows = sorted(self._connection.execute(query).fetchall(), key=lambda row: row[0])
        return [row[1] for row in rows], rows[0][2] if rows else ""

    def _side(self, axis: int, question: Question) -> _Side:
        attribute = self._domain.attributes[axis]
        cells: Ints = np.arange(attribute.size, dtype=np.intp)
        places = np.zeros(attribute.size, dtype=np.int64)
        if axis in question.raw:
            cells, places = _places(attribute)
        columns: dict[str, NDArray[np.int64]] = {f"a{axis}": places} if axis in question.raw else {}
        axis_columns = {
            f"c{number}": cell_column
            for number, cell_column in enumerate(question.columns)
            if cell_column.axis == axis
        }
        columns |= {name: cell_column.places[cells] for name, cell_column in axis_columns.items()}
        for number, (cell_column, truths) in enumerate(question.conditions):
            if cell_column != axis:
                continue
            truth_places = [np.flatnonzero(truths[cells] & bit) for bit in (TRUE, FALSE, NULL)]
            order = np.concatenate(truth_places)
            columns = {name: column[order] for name, column in columns.items()}
            columns[f"p{number}"] = np.repeat(
                [TRUE, FALSE, NULL], [len(some) for some in truth_places]
            )
            cells = cells[order]
        column_values = {name: cell_column.values for name, cell_column in axis_columns.items()}
        if axis in question.raw:
            column_values[f"a{axis}"] = self._values(axis)
        return _Side.of(cells, columns, column_values)

    def _values(self, axis: int) -> pa.Array:
        if axis not in self._declared:
            self._declared[axis] = _declared(self._domain.attributes[axis])
        return self._declared[axis]


@dataclass(frozen=True, eq=False)
class _Side:
    """One attribute in an expression: the different rows that its cells may hold."""

    columns: dict[str, pa.Array]
    known: NDArray[np.bool_]
    classes: Ints
    members: Ints
    starts: Ints

    @classmethod
    def of(
        cls, cells: Ints, columns: dict[str, NDArray[np.int64]], declared: dict[str, pa.Array]
    ) -> _Side:
        """Distinguish rows and cells by their columns."""
        merged = np.zeros(len(cells), dtype=np.int64)
        first: Ints = np.zeros(1, dtype=np.intp)
        for column in columns.values():
            joined = merged * (int(column.max()) + 3) + column + 2
            _, first, merged = np.unique(joined, return_index=True, return_inverse=True)
        shown: dict[str, pa.Array] = {}
        known = np.ones(len(first), dtype=bool)
        for name, column in columns.items():
            column_codes = column[first]
            if name.startswith("p"):
                shown[name] = pa.array(column_codes == TRUE, mask=column_codes == NULL)
            else:
                known &= column_codes != _UNKNOWN
                shown[name] = declared[name].take(pa.array(column_codes, mask=column_codes < 0))
        classes, members, starts = _classes(cells, merged)
        return cls(shown, known, classes, members, starts)

    @property
    def several(self) -> NDArray[np.bool_]:
        """Classes that hold several rows, or values that nobody declared."""
        ends = np.append(self.starts[1:], len(self.members))
        unknown = np.logical_or.reduceat(~self.known[self.members], self.starts)
        return np.asarray((ends - self.starts > 1) | unknown)

    def reduced(self, codes: NDArray[np.int64], dimension: int) -> NDArray[np.int64]:
        """Codes by classes of cells: −1 where the rows of a class have different ones."""
        spread = codes.take(self.members, axis=dimension)
        low = np.minimum.reduceat(spread, self.starts, axis=dimension)
        high = np.maximum.reduceat(spread, self.starts, axis=dimension)
        return np.where(low == high, low, -1)


@dataclass(frozen=True, eq=False)
class _Grid:
    """All combinations of the rows of some attributes: those that are known, as a table."""

    sides: list[_Side]
    known: NDArray[np.bool_]
    table: pa.Table


def _classes(cells: Ints, rows: NDArray[np.int64]) -> tuple[Ints, Ints, Ints]:
    """The class of each cell by the rows that it may hold; the rows of each class, and starts."""
    if np.array_equal(cells, np.arange(len(cells))):  # one row per cell
        every = np.arange(int(rows.max()) + 1)
        return rows, every, every
    pairs = np.unique(np.stack([cells, rows], axis=1), axis=0)
    cuts = np.flatnonzero(np.diff(pairs[:, 0])) + 1
    seen: dict[bytes, int] = {}
    members: list[Ints] = []
    class_numbers = []
    for part in np.split(pairs[:, 1], cuts):
        number = seen.setdefault(part.tobytes(), len(seen))
        if number == len(members):
            members.append(part)
        class_numbers.append(number)
    starts = np.cumsum([0, *(len(part) for part in members[:-1])])
    return np.array(class_numbers), np.concatenate(members), starts


def _places(attribute: Attribute) -> tuple[Ints, NDArray[np.int64]]:
    """Cells and the places of their declared values, one row per value."""
    special = np.arange(attribute.regular, attribute.size, dtype=np.intp)
    null = attribute.special_cell("(null)")
    beyond = np.where(special == null, _NULL, _UNKNOWN) if null is not None else special * 0 - 2
    lengths = np.ones(attribute.regular, dtype=np.int64)
    if isinstance(attribute, SteppedAttribute):
        lengths = attribute.ends - attribute.starts + 1
    count = int(lengths.sum())
    if count > MAX_VALUES:
        raise SqlError(
            f"{attribute.name!r} has {count:,} declared values, and at most {MAX_VALUES:,} are "
            "evaluated in an expression; compare it with constants instead",
            code="size",
        )
    cells = np.concatenate([np.repeat(np.arange(attribute.regular), lengths), special])
    return cells, np.concatenate([np.arange(count), beyond])


def _declared(attribute: Attribute) -> pa.Array:
    """The declared values as DuckDB holds them: VARCHAR, BIGINT, BOOLEAN or DATE."""
    if isinstance(attribute, Categories):
        return pa.array(attribute.values, _TYPES[attribute.value_type])
    if not isinstance(attribute, SteppedAttribute):  # pragma: no cover - `expressions` refuses bins
        raise TypeError(attribute.kind)
    steps = np.arange(int(attribute.starts[0]), attribute.last + 1)
    if isinstance(attribute, Dates):
        days = steps - dt.date(1970, 1, 1).toordinal()
        return pa.array(days.astype(np.int32)).cast(pa.date32())
    return pa.array(steps)


def as_constant(values: Sequence[Any]) -> Any:
    """A value that DuckDB computed, as a constant of the batch; None if it is none."""
    (value,) = values
    if isinstance(value, dt.datetime) and (value.tzinfo is not None or value.time() == dt.time()):
        return value.date() if value.tzinfo is None else None
    if isinstance(value, bool | str | dt.date | Decimal):
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return Decimal(repr(value))
    return None
