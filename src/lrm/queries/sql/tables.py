"""Small tables over the merged cells of a few attributes, multiplied without being joined.

A condition is kept as a conjunction of tables over different attributes, so that its size follows
the attributes that it names, never the domain. Only what joins attributes (OR, NOT of several)
is written out over their merged cells, and only where that is small. What one row adds to an
aggregate is a sum of products of such tables, which becomes few products of one vector per
attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lrm.errors import SqlError
from lrm.files.spelling import how_many
from lrm.queries.maps.products.combine import MANY_PRODUCTS, MOST_PRODUCTS, WRITTEN_CELLS, Product
from lrm.queries.sql.atoms import AND, FALSE, NOT, TRUE, Truths
from lrm.queries.sql.evaluation import MAX_VALUES

if TYPE_CHECKING:
    from lrm.queries.sql.cells import Cells

MAX_ENTRIES = 1 << 20
"""Merged cells of attributes that OR or NOT joins."""

MAX_ENTRIES_OF_MANY = 1 << 13
"""The same for more than eight attributes, which take longer to distinguish."""

TOO_MANY = (
    "OR, NOT or CASE over these attributes would need too many products; "
    "write it as several statements"
)


@dataclass(frozen=True, eq=False)
class Table:
    """Values over the merged cells of some attributes, one dimension per attribute."""

    axes: tuple[int, ...]
    values: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Truth:
    """Possible truths of a condition over cells.

    It is the conjunction of ``tables``, over different attributes, and of the negations of some
    conjunctions that are too large to be written out as one table.
    """

    tables: tuple[Table, ...] = ()
    negations: tuple[tuple[Table, ...], ...] = ()


AnyTable = TypeVar("AnyTable", bound=Table)


def fits(tables: Sequence[Table]) -> bool:
    """Whether tables are small enough to be joined to one."""
    sides: dict[int, int] = {}
    for table in tables:
        sides |= dict(zip(table.axes, table.values.shape, strict=True))
    limit = MAX_ENTRIES if len(sides) <= 8 else MAX_ENTRIES_OF_MANY
    return math.prod(sides.values()) <= limit


def aligned(table: Table, axes: Sequence[int]) -> NDArray[Any]:
    """The values of a table with one dimension for each of ``axes``, 1 where it has none."""
    sides = dict(zip(table.axes, table.values.shape, strict=True))
    return table.values.reshape([sides.get(axis, 1) for axis in axes])


def joined(tables: Sequence[Table], combine: Callable[[Any, Any], NDArray[Any]]) -> Table:
    """One table over all attributes of several, combined two by two."""
    if len(tables) == 1:
        return tables[0]
    if not fits(tables):
        raise SqlError(TOO_MANY, code="size")
    axes = tuple(sorted({axis for table in tables for axis in table.axes}))
    values = aligned(tables[0], axes)
    for table in tables[1:]:
        values = combine(values, aligned(table, axes))
    return Table(axes, values)


def _share(table: Table, other: Table) -> bool:
    """Whether two tables share an attribute, or both have none."""
    return table.axes == other.axes or not set(table.axes).isdisjoint(other.axes)


def disjoint(
    tables: Iterable[AnyTable], join: Callable[[list[AnyTable]], AnyTable]
) -> list[AnyTable]:
    """The same product of tables, with those that share an attribute joined."""
    separate: list[AnyTable] = []
    for table in tables:
        sharing = [other for other in separate if _share(other, table)]
        separate = [other for other in separate if other not in sharing]
        separate.append(join([*sharing, table]))
    return separate


def _and(left_truth: Any, two: Any) -> Truths:
    return np.asarray(AND[left_truth, two])


def all_of(parts: Sequence[Truth]) -> Truth:
    """AND of conditions."""
    every = (table for part in parts for table in part.tables)
    tables = disjoint(every, partial(joined, combine=_and))
    return Truth(tuple(tables), tuple(clause for part in parts for clause in part.negations))


def negated(truth: Truth) -> Truth:
    """NOT of a condition."""
    if not truth.negations:
        if len(truth.tables) > 1 and not fits(truth.tables):
            return Truth((), (truth.tables,))
        joined_table = joined(truth.tables, _and)
        return Truth((Table(joined_table.axes, NOT[joined_table.values]),))
    if not truth.tables and len(truth.negations) == 1:
        return Truth(truth.negations[0])
    raise SqlError(TOO_MANY, code="size")


def any_of(parts: Sequence[Truth]) -> Truth:
    """OR of conditions."""
    return negated(all_of([negated(part) for part in parts]))


@dataclass(frozen=True, eq=False)
class Weighed(Table):
    """What one row adds to an answer, over the merged cells of some attributes.

    ``undecided`` marks cells whose rows do not all add the same: they must be filtered
    away before the weights can be used.
    """

    undecided: NDArray[np.bool_]

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Where a row may add something other than 0."""
        return np.asarray(self.values != 0.0) | self.undecided


@dataclass(frozen=True, eq=False)
class Summand:
    """A constant times tables over different attributes."""

    coefficient: float
    tables: tuple[Weighed, ...] = ()

    def times(self, tables: Iterable[Weighed], factor: float = 1.0) -> Summand:
        """Multiply by further tables."""
        every = disjoint([*self.tables, *tables], _product)
        return Summand(self.coefficient * factor, tuple(every))

    def undecided(self) -> dict[int, int] | None:
        """A merged cell of each attribute on which the weight is undecided, if there is one."""
        if not all(table.possible.any() for table in self.tables):
            return None
        cut = [table for table in self.tables if table.undecided.any()]
        if not cut:
            return None
        place: dict[int, int] = {}
        for table in self.tables:
            matters = table.undecided if table is cut[0] else table.possible
            at = np.unravel_index(int(np.argmax(matters)), matters.shape)
            place |= dict(zip(table.axes, map(int, at), strict=True))
        return place


Weights = tuple[Summand, ...]
"""An aggregate: the sum of these."""


def _product(tables: Sequence[Weighed]) -> Weighed:
    if len(tables) == 1:
        return tables[0]
    values = joined([Table(table.axes, table.values) for table in tables], np.multiply)
    possible = joined([Table(table.axes, table.possible) for table in tables], np.logical_and)
    cut = joined([Table(table.axes, table.undecided) for table in tables], np.logical_or)
    return Weighed(values.axes, values.values, possible.values & cut.values)


def multiplied(inner: Weights, factor: float) -> Weights:
    """The same times a constant."""
    return tuple(Summand(summand.coefficient * factor, summand.tables) for summand in inner)


def filtered(inner: Weights, truth: Truth) -> Weights:
    """Keep the weights where a condition is true; null is not true."""
    true_tables = [_weighed(table, table.values == TRUE, TRUE) for table in truth.tables]
    summands = [summand.times(true_tables) for summand in inner]
    for clause in truth.negations:
        # NOT (a AND b …) is 1 − (a is not false)(b is not false)…
        possible_tables = [_weighed(table, table.values != FALSE, FALSE) for table in clause]
        summands += [summand.times(possible_tables, -1.0) for summand in summands]
    return tuple(summands)


def _weighed(table: Table, values: NDArray[np.bool_], open_truth: int) -> Weighed:
    """Weights 1 and 0; cells where ``open_truth`` is one of several possible are undecided."""
    possible = (table.values & open_truth).astype(bool)
    return Weighed(table.axes, values.astype(np.float64), possible & (table.values != open_truth))


Floats = NDArray[np.float64]
_FEW = 1 << 14
"""Entries of a table whose slices are compared as one text."""

Vectors = tuple[float, dict[int, Floats]]
"""A coefficient, and one weight per merged cell of some attributes: the others weigh 1."""


def decompose(table: Table) -> list[Vectors]:
    """Write a table as a sum of products, cut into slices or taken from a constant.

    Cells are cut along the attribute that needs the fewest different slices, so that most
    products weigh different cells, and the weights are those of the table, not rounded. Where
    the weights are whole numbers, the table may also be a constant less a few products:
    ``a OR b OR c`` is 1 − (not a)(not b)(not c).

    >>> either = np.array([[1.0, 1.0], [1.0, 0.0]])
    >>> for coefficient, vectors in decompose(Table((0, 1), either)):
    ...     print(coefficient, {axis: vector.tolist() for axis, vector in vectors.items()})
    1.0 {0: [1.0, 0.0]}
    1.0 {0: [0.0, 1.0], 1: [1.0, 0.0]}
    """
    terms = slices(table.values, table.axes)
    if len(terms) <= 2 or not np.all(table.values == np.rint(table.values)):
        return terms
    values, counts = np.unique(table.values, return_counts=True)
    constant = float(values[np.argmax(counts)])
    rest = slices(table.values - constant, table.axes) if constant else terms
    return [(constant, {}), *rest] if len(rest) + 1 < len(terms) else terms


def slices(values: Floats, axes: tuple[int, ...]) -> list[Vectors]:
    """A table as a sum of products of which no two weigh the same cell."""
    if values.ndim == 0:
        return [(float(values), {})] if values else []
    if values.ndim == 1:
        constant = bool(np.all(values == values[0]))
        return slices(values[0], ()) if constant else [(1.0, {axes[0]: values})]
    every = [_groups(values, side) for side in range(values.ndim)]
    if not every[0]:
        return []  # it is 0 everywhere
    varying_sides = [
        side
        for side, groups in enumerate(every)
        if len(groups) > 1 or len(groups[0]) < values.shape[side]
    ]
    if len(varying_sides) < values.ndim:  # the same all along some sides
        first = tuple(slice(None) if side in varying_sides else 0 for side in range(values.ndim))
        return slices(np.asarray(values[first]), tuple(axes[side] for side in varying_sides))
    side = min(varying_sides, key=lambda candidate: len(every[candidate]))
    rest = (*axes[:side], *axes[side + 1 :])
    terms: list[Vectors] = []
    for members in every[side]:
        inside = np.zeros(values.shape[side])
        inside[members] = 1.0
        for coefficient, vectors in slices(np.asarray(values.take(members[0], axis=side)), rest):
            terms.append((coefficient, {axes[side]: inside, **vectors}))
    return terms


def _groups(values: Floats, side: int) -> list[list[int]]:
    """The places along one side with equal slices that are not all 0."""
    rows = np.moveaxis(values, side, 0).reshape(values.shape[side], -1)
    groups: dict[bytes, list[int]] = {}
    if values.size <= _FEW:  # one call instead of one for each row
        text = np.ascontiguousarray(rows).tobytes()
        step = len(text) // len(rows)
        for place in range(len(rows)):
            groups.setdefault(text[place * step : (place + 1) * step], []).append(place)
        groups.pop(bytes(step), None)
        return list(groups.values())
    for place in np.flatnonzero(rows.any(axis=1)).tolist():
        groups.setdefault(rows[place].tobytes(), []).append(place)
    return list(groups.values())


def _multiplied_out(parts: list[list[Vectors]], coefficient: float) -> list[Vectors]:
    """The product of sums over different attributes, as one sum."""
    terms: list[Vectors] = []
    for combination in product(*parts):
        weight = coefficient
        vectors: dict[int, Floats] = {}
        for factor, some in combination:
            weight *= factor
            vectors |= some
        terms.append((weight, vectors))
    return terms


def products_of(compiled: Weights, cells: Cells) -> list[Product]:
    """Write an aggregate as few products of one vector per attribute, over the domain's cells."""
    for summand in compiled:
        undecided = summand.undecided()
        if undecided is not None:
            raise cells.explain(undecided)
    limit = _most_products(compiled, cells.domain.shape)
    product_list = _few([_summand_products(summand, limit) for summand in compiled], compiled)
    if len(product_list) > limit:
        raise SqlError(
            f"the answer is a sum of {len(product_list):,} products of attributes, and at most "
            f"{limit} are supported over a domain of {how_many(cells.domain.size)} cells; "
            "use OR and NOT across fewer attributes, or write several statements",
            code="size",
        )
    return [
        (coefficient, {axis: cells.over_cells(vector, axis) for axis, vector in vectors.items()})
        for coefficient, vectors in product_list
    ]


def _most_products(compiled: Weights, sizes: Sequence[int]) -> int:
    """Products that an answer may be the sum of."""
    if math.prod(sizes) <= WRITTEN_CELLS:
        return WRITTEN_CELLS
    tables = [table for summand in compiled for table in summand.tables if len(table.axes) > 1]
    joined = {axis for table in tables for axis in table.axes}
    few = math.prod(sizes[axis] for axis in joined) <= MAX_VALUES
    return MOST_PRODUCTS if few else MANY_PRODUCTS


def _summand_products(summand: Summand, limit: int) -> list[Vectors]:
    parts = [decompose(Table(table.axes, table.values + 0.0)) for table in summand.tables]
    count = math.prod(map(len, parts))
    if count > limit:
        raise SqlError(
            f"the answer is a sum of {count:,} products of attributes, and at most "
            f"{limit:,} are supported; use OR and NOT across fewer attributes, "
            "or write several statements",
            code="size",
        )
    return _multiplied_out(parts, summand.coefficient) if summand.coefficient else []


def _few(each: list[list[Vectors]], compiled: Weights) -> list[Vectors]:
    """The products of all summands, or of their sum cell by cell where that has no more."""
    separate = [single_product for products in each for single_product in products]
    if len(separate) <= 1:
        return separate
    tables = [table for summand in compiled for table in summand.tables]
    if not fits(tables):
        return separate
    axes = tuple(sorted({axis for table in tables for axis in table.axes}))
    total_values = np.zeros((1,) * len(axes))
    for summand in compiled:
        values = np.full((1,) * len(axes), summand.coefficient)
        for table in summand.tables:
            values = values * aligned(table, axes)
        total_values = total_values + values
    together = decompose(Table(axes, total_values + 0.0))
    return together if len(together) <= len(separate) else separate
