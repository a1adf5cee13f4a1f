"""Batches from Python: products, totals, ranges, prefixes and marginals over a domain.

Ranges are given in values of the attribute, and a range that cuts through a cell is refused with
the nearest edges, as in SQL. Batches over numbered cells are in `lrm.families`.
"""

from __future__ import annotations

import datetime as dt
import operator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lrm.domain import Attribute, Bins, Categories, Dates, Domain, Lookup, Numbers, SteppedAttribute
from lrm.domain.lookups import DIFFERENT, label_text
from lrm.errors import WorkloadError
from lrm.queries.maps.linear import LinearMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import cross_tabs, product_batch
from lrm.queries.maps.products.combine import (
    MANY_PRODUCTS,
    WRITTEN_CELLS,
    Product,
    cell_weights,
    check_rows,
    restricted,
)
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.ranges import RangeMap
from lrm.queries.maps.words import Word, make_factor
from lrm.queries.sql.atoms import TRUE, compare, nearest_edges, undivided
from lrm.queries.workload import LabelBlock, Labels, Uses, Workload
from lrm.queries.workload.families import stack
from lrm.queries.workload.products import check_importances, product_map, spread_importance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike


Bound = int | float | str | dt.date


def products(
    domain: Domain,
    terms: Iterable[Mapping[str, ArrayLike | Word]],
    *,
    importance: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Workload:
    """A batch of terms, each the product of one small query matrix per attribute.

    Parameters
    ----------
    terms
        For each term, the factors of some attributes by name: an array (queries × cells, one
        dimension is one query) or ``"identity"`` for every cell, ``"prefix"`` and
        ``"all-ranges"`` for running totals and ranges of declared cells, ``"total"``.
        Attributes that a term does not name are summed out.
    importance
        One number per term, or one per query; 1 by default.
    names
        One name per term; q1, q2, … by default.

    Examples
    --------
    >>> from lrm.domain import Categories, Domain, Integers
    >>> domain = Domain([Categories("sex", ["f", "m"]), Integers("age", 0, 99)])
    >>> batch = products(domain, [{"sex": "identity"}, {"sex": [1, 0], "age": "prefix"}])
    >>> batch.shape, batch.names[3]
    ((102, 200), 'q2[age=0..1]')
    """
    domain = domain.declared
    term_list = [dict(term) for term in terms]
    if names is not None and len(names) != len(term_list):
        raise WorkloadError(f"{len(term_list)} terms need {len(term_list)} names, got {len(names)}")
    parts = []
    for number, term in enumerate(term_list):
        term_factors = {name: _asked(domain, name, factor) for name, factor in term.items()}
        name = f"q{number + 1}" if names is None else str(names[number])
        parts.append(_term(domain, name, term_factors, ()))
    if not parts:
        raise WorkloadError("a batch needs at least one term")
    batch = stack(parts)
    each = [part.shape[0] for part in parts]
    return replace(batch, importance=spread_importance(importance, each))


def total(domain: Domain, *, name: str = "total") -> Workload:
    """One query: the number of rows."""
    return _term(domain.declared, name, {}, ())


def marginals(
    domain: Domain, ways: int | Iterable[int] | Iterable[Sequence[str]], *, name: str = "count"
) -> Workload:
    """Cross-tabs: one query for every combination of cells of some attributes.

    Parameters
    ----------
    ways
        A number k for all k-way marginals, several numbers such as ``range(3)`` for those of
        several orders, or the attributes, or columns of lookups, of each.

    Examples
    --------
    >>> from lrm.domain import Categories, Domain, Integers
    >>> domain = Domain([Categories("sex", ["f", "m"]), Integers("age", 0, 1)])
    >>> marginals(domain, 1).names
    ('count[sex=f]', 'count[sex=m]', 'count[age=0]', 'count[age=1]')
    """
    domain = domain.declared
    way_list: list[Any] = [ways] if isinstance(ways, int) else list(ways)
    if not way_list:
        raise WorkloadError("marginals need at least one list of attributes")
    if any(isinstance(way, str) for way in way_list):
        names = [way for way in way_list if isinstance(way, str)]
        raise WorkloadError(
            f"each table needs a list of its attributes, but {names[0]!r} is a name; write "
            f"[{names}] for one table of all of them, {[[way] for way in names]} for one table each"
        )
    if all(hasattr(way, "__index__") for way in way_list):
        return _all_marginals(domain, tuple(map(operator.index, way_list)), name)
    return stack([_term(domain, name, {}, tuple(way)) for way in way_list])


def _all_marginals(domain: Domain, orders: tuple[int, ...], name: str) -> Workload:
    for order in orders:
        if not 0 <= order <= len(domain.names):
            raise WorkloadError(
                f"{order}-way marginals need {order} attributes, but the domain has "
                f"{len(domain.names)}"
            )
    for attribute in domain.attributes:
        if isinstance(attribute, Numbers) and max(orders) > 0:
            raise WorkloadError(undivided(attribute, "part of all marginals"))
    batch = cross_tabs(domain.shape, orders)
    queries = product_map(batch)
    axes = tuple((attribute.name, attribute.labels) for attribute in domain.attributes)
    uses = Uses(batch.term_queries, batch.choice > 0)
    labels = Labels([LabelBlock(name, axes, orders=orders)])
    return Workload(queries, labels=labels, domain=domain, uses=uses)


def ranges(
    domain: Domain,
    attribute: str,
    bounds: Iterable[tuple[Bound, Bound]] | None = None,
    *,
    by: Sequence[str] = (),
    name: str = "count",
) -> Workload:
    """Count ranges of one attribute.

    Parameters
    ----------
    bounds
        Pairs (low, high) of values; both ends belong to the range, except for binned
        numbers, whose ranges are half-open like their cells. None asks for every range of
        declared cells.
    by
        Attributes to group by: each range is asked for in every group.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> batch = ranges(Domain([Integers("age", 0, 5)]), "age", [(0, 2), (3, 5)])
    >>> batch.names
    ('count[age=0..2]', 'count[age=3..5]')
    >>> batch.queries.dense().astype(int).tolist()
    [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    """
    domain = domain.declared
    declared = _ordered(domain, attribute)
    if bounds is None:
        factor = _asked(domain, attribute, "all-ranges")
    else:
        cells = [_cells(declared, low, high) for low, high in bounds]
        factor = _range_factor(domain, declared, cells)
    return _term(domain, name, {attribute: factor}, tuple(by))


def prefix(
    domain: Domain, attribute: str, *, by: Sequence[str] = (), name: str = "count"
) -> Workload:
    """Running totals: from the first declared cell to each.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> prefix(Domain([Integers("age", 0, 5, width=2)]), "age").names
    ('count[age=0..1]', 'count[age=0..3]', 'count[age=0..5]')
    """
    domain = domain.declared
    return _term(domain, name, {attribute: _asked(domain, attribute, "prefix")}, tuple(by))


def where(batch: Workload, condition: str) -> Workload:
    """Restrict every query of a batch to the rows that meet a SQL condition."""
    if batch.domain is None:
        raise WorkloadError("a condition is about the attributes of a domain; this batch has none")
    from lrm.queries.sql.compile import compile_condition  # noqa: PLC0415 - sqlglot is slow

    table = batch.domain.table or "t"
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    # Compiled, never executed; the only thing that the text could reach is this matrix.
    text = f"SELECT COUNT(*) FROM {quoted} WHERE {condition}"  # noqa: S608
    compiled = compile_condition(text, batch.domain)
    if compiled is None:
        raise WorkloadError(f"expected one condition, got {condition!r}")
    nothing: list[Product] = [(1.0, {0: np.zeros(batch.domain.shape[0])})]
    kept_products = compiled[0] or nothing
    uses = None if batch.uses is None else batch.uses.and_also(compiled[1])
    queries, few = batch.products, len(kept_products) <= MANY_PRODUCTS
    if queries is not None and (few or batch.domain.size > WRITTEN_CELLS):
        met = ProductMap(restricted(queries.batch, kept_products))
        return replace(batch, queries=met, uses=uses)
    cells = sp.diags_array(cell_weights(kept_products, batch.domain.shape))
    written = SparseMap(sp.csr_array(batch.queries.sparse() @ cells))
    return replace(batch, queries=written, uses=uses)


def with_importance(batch: Workload, importance: float) -> Workload:
    """Return the batch with an importance, a factor on its squared errors in planning."""
    if importance == 1:
        return replace(batch, importance=None)
    check_importances(batch.shape[0])
    return replace(batch, importance=np.full(batch.shape[0], importance))


def _ordered(domain: Domain, name: str) -> Attribute:
    attribute = domain.attribute(name)
    if isinstance(attribute, Categories):
        raise WorkloadError(f"ranges of {name!r} need an order, but it is declared as categories")
    return attribute


def _cells(attribute: Attribute, low: Bound, high: Bound) -> tuple[int, int]:
    """Return the first and last cell of a range of values, none of them cut."""
    half_open = isinstance(attribute, Bins) or (isinstance(attribute, Dates) and attribute.time)
    truths = (
        compare(attribute, ">=", _constant(attribute, low)),
        compare(attribute, "<" if half_open else "<=", _constant(attribute, high)),
    )
    low_truth, two = (truth[: attribute.regular] for truth in truths)
    cut = np.flatnonzero(
        ((low_truth & TRUE) & (two & TRUE)).astype(bool) & ((low_truth | two) != TRUE)
    )
    inside = np.flatnonzero((low_truth == TRUE) & (two == TRUE))
    text = f"the range {low} to {high} of {attribute.name!r}"
    if len(cut):
        cell = int(cut[0])
        raise WorkloadError(
            f"{text} cuts through the cell {attribute.labels[cell]}; "
            f"the nearest edges are {nearest_edges(attribute, cell)}"
        )
    if not len(inside):
        raise WorkloadError(f"{text} contains no declared cell")
    return int(inside[0]), int(inside[-1])


def _constant(attribute: Attribute, value: Bound) -> str | Decimal | dt.date:
    if isinstance(attribute, Dates):
        return value if isinstance(value, (str, dt.date)) else str(value)
    try:
        number = Decimal(repr(value) if isinstance(value, float) else str(value))
    except ArithmeticError:
        number = Decimal("NaN")
    if isinstance(value, (bool, str, dt.date)) or not number.is_finite():
        raise WorkloadError(f"a bound of {attribute.name!r} must be a number, not {value!r}")
    return number


_Asked = tuple[LinearMap, "list[str] | tuple[str, ...]"]
"""The rows that are asked of an attribute, and their labels; none for a single row."""


def _asked(domain: Domain, name: str, factor: ArrayLike | Word) -> _Asked:
    """What a word or an array asks of an attribute."""
    attribute = domain.attribute(name)
    if isinstance(attribute, Numbers) and isinstance(factor, str) and factor != "total":
        raise WorkloadError(undivided(attribute, "grouped by"))
    if isinstance(factor, str) and factor in {"prefix", "all-ranges"}:
        declared = _ordered(domain, name)
        last = range(declared.regular)
        cells = [(a, b) for a in (last if factor == "all-ranges" else [0]) for b in last[a:]]
        if declared.regular < declared.size:
            return _range_factor(domain, declared, cells)
        labels = [_range_label(declared, a, b) for a, b in cells]
        return make_factor(factor, declared.size), labels
    made = make_factor(factor, attribute.size)
    if made.kind == "identity":
        return made, attribute.labels
    return made, [] if len(made) == 1 else [f"row {i + 1}" for i in range(len(made))]


def _looked_up(domain: Domain, lookup: Lookup, column: str) -> _Asked:
    """One row for each value of a lookup's column: the cells that have it."""
    values = lookup.on_cells(domain.attribute(lookup.key), column)
    if DIFFERENT in values:
        raise WorkloadError(f"{lookup.name}.{column} is not constant on a cell of {lookup.key!r}")
    distinct = list(dict.fromkeys(values))
    rows = np.array(
        [[cell_value == value for cell_value in values] for value in distinct], dtype=np.float64
    )
    labels = [label_text(value) for value in distinct]
    return make_factor(rows, len(values)), labels


def _range_factor(domain: Domain, attribute: Attribute, cells: Sequence[tuple[int, int]]) -> _Asked:
    if not cells:
        raise WorkloadError("ranges need at least one (low, high) pair")
    first, last = np.array(cells, dtype=np.int64).T
    labels = [_range_label(attribute, a, b) for a, b in cells]
    asked = RangeMap.over(attribute.size, first, last)
    if len(domain.attributes) == 1:
        return asked, labels
    check_rows(len(cells), attribute.size)
    return make_factor(asked.dense(), attribute.size), labels


def _range_label(attribute: Attribute, first: int, last: int) -> str:
    if first == last:
        return attribute.labels[first]
    if isinstance(attribute, Bins):
        return f"{attribute.labels[first].split(', ')[0]}, {attribute.labels[last].split(', ')[1]}"
    if isinstance(attribute, SteppedAttribute) and not isinstance(attribute, Dates):
        return f"{attribute.starts[first]}..{attribute.ends[last]}"
    return f"{attribute.labels[first]}..{attribute.labels[last]}"


def _term(
    domain: Domain, name: str, term_factors: Mapping[str, _Asked], by: tuple[str, ...]
) -> Workload:
    """Multiply one factor per attribute: what is asked, every cell (grouped), or their sum."""
    every, shown = dict(term_factors), {}
    for key in by:
        lookup_pair = None if key in domain.names else domain.lookup_column(key)
        attribute_name = key if lookup_pair is None else lookup_pair[0].key
        if attribute_name in every:
            raise WorkloadError(f"attribute {attribute_name!r} is given twice")
        every[attribute_name] = (
            _looked_up(domain, *lookup_pair)
            if lookup_pair
            else _asked(domain, attribute_name, "identity")
        )
        shown[attribute_name] = key
    factors, axes = [], []
    for attribute in domain.attributes:
        factor = make_factor("total", attribute.size)
        labels: Sequence[str] = ()
        if attribute.name in every:
            factor, labels = every[attribute.name]
        factors.append(factor)
        if labels:
            axes.append((shown.get(attribute.name, attribute.name), tuple(labels)))
    if len(factors) == 1 and isinstance(factors[0], RangeMap):
        queries: LinearMap = factors[0]
    else:
        queries = product_map(product_batch(domain.shape, [factors]))
    used = [axis for axis, factor in enumerate(factors) if factor.kind != "total"]
    uses = Uses.alike(queries.shape[0], len(factors), used)
    named = Labels([LabelBlock(name, tuple(axes))])
    return Workload(queries, labels=named, domain=domain, uses=uses)
