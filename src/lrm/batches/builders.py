"""Batches from Python: totals, ranges, prefixes and marginals over a domain of attributes.

Ranges are given in values of the attribute, and a range that cuts through a cell is refused with
the nearest edges, as in SQL. Batches over numbered cells are in `lrm.families`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from lrm.batches.compiler import sql
from lrm.batches.compiler.atoms import TRUE, compare, nearest_edges
from lrm.domain import Bins, Categories, Dates, SteppedAttribute
from lrm.errors import WorkloadError
from lrm.maps.matrices import SparseMap
from lrm.workload import Grouped, Labels, Workload
from lrm.workload.families import range_rows, stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lrm.domain import Attribute, Domain

__all__ = ["marginals", "prefix", "ranges", "total", "where", "with_importance"]

MAX_WEIGHTS = 1 << 28
"""Non-zero weights of one part: 3 GB. Beyond it an error is better than a full memory."""

Bound = int | float | str | dt.date


def total(domain: Domain, *, name: str = "total") -> Workload:
    """One query: the number of rows within the domain."""
    return marginals(domain, [()], name=name)


def marginals(
    domain: Domain, ways: int | Iterable[Sequence[str]], *, name: str = "count"
) -> Workload:
    """Cross-tabs: one query for every combination of cells of some attributes.

    Parameters
    ----------
    ways
        A number k for all k-way marginals, or the attributes of each.

    Examples
    --------
    >>> from lrm.domain import Categories, Domain, Integers
    >>> domain = Domain([Categories("sex", ["f", "m"]), Integers("age", 0, 1)])
    >>> marginals(domain, 1).names
    ('count[sex=f]', 'count[sex=m]', 'count[age=0]', 'count[age=1]')
    """
    if isinstance(ways, int):
        if not 0 <= ways <= len(domain.names):
            raise WorkloadError(
                f"{ways}-way marginals need {ways} attributes, but the domain has "
                f"{len(domain.names)}"
            )
        ways = list(combinations(domain.names, ways))
    parts = [_rows(domain, name, {}, tuple(way)) for way in ways]
    if not parts:
        raise WorkloadError("marginals need at least one list of attributes")
    return stack(parts)


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
    declared = _ordered(domain, attribute)
    if bounds is None:
        cells = [(a, b) for a in range(declared.regular) for b in range(a, declared.regular)]
    else:
        cells = [_cells(declared, low, high) for low, high in bounds]
    return _cell_ranges(domain, attribute, cells, by, name)


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
    cells = [(0, last) for last in range(_ordered(domain, attribute).regular)]
    return _cell_ranges(domain, attribute, cells, by, name)


def where(batch: Workload, condition: str) -> Workload:
    """Restrict every query of a batch to the rows that meet a SQL condition."""
    if batch.domain is None:
        raise WorkloadError("a condition is about the attributes of a domain; this batch has none")
    table = batch.domain.table or "t"
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    # Compiled, never executed; the only thing that the text could reach is this matrix.
    compiled = sql(f"SELECT COUNT(*) FROM {quoted} WHERE {condition}", batch.domain)  # noqa: S608
    if compiled.shape[0] != 1 or compiled.labels[0].group:
        raise WorkloadError(f"expected one condition, got {condition!r}")
    kept = sp.diags_array(compiled.queries.dense()[0])
    return replace(batch, queries=SparseMap(sp.csr_array(batch.queries.sparse() @ kept)))


def with_importance(batch: Workload, importance: float) -> Workload:
    """Say how much the error of each of these queries counts for."""
    return replace(batch, importance=np.full(batch.shape[0], importance))


def _ordered(domain: Domain, name: str) -> Attribute:
    attribute = domain.attribute(name)
    if isinstance(attribute, Categories):
        raise WorkloadError(f"ranges of {name!r} need an order, but it is declared as categories")
    return attribute


def _cells(attribute: Attribute, low: Bound, high: Bound) -> tuple[int, int]:
    """Return the first and last cell of a range of values, none of them cut."""
    half_open = isinstance(attribute, Bins)
    truths = (
        compare(attribute, ">=", _constant(attribute, low)),
        compare(attribute, "<" if half_open else "<=", _constant(attribute, high)),
    )
    one, two = (truth[: attribute.regular] for truth in truths)
    cut = np.flatnonzero(((one & TRUE) & (two & TRUE)).astype(bool) & ((one | two) != TRUE))
    inside = np.flatnonzero((one == TRUE) & (two == TRUE))
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


def _cell_ranges(
    domain: Domain,
    attribute: str,
    cells: Sequence[tuple[int, int]],
    by: Sequence[str],
    name: str,
) -> Workload:
    if not cells:
        raise WorkloadError("ranges need at least one (low, high) pair")
    declared = domain.attribute(attribute)
    first, last = np.array(cells, dtype=np.int64).T
    _check_size(int((last - first + 1).sum()) * (domain.size // declared.size))
    block = range_rows(first, last, declared.size)
    labels = [_range_label(declared, a, b) for a, b in cells]
    return _rows(domain, name, {attribute: (block, labels)}, tuple(by))


def _range_label(attribute: Attribute, first: int, last: int) -> str:
    if first == last:
        return attribute.labels[first]
    if isinstance(attribute, Bins):
        return f"{attribute.labels[first].split(', ')[0]}, {attribute.labels[last].split(', ')[1]}"
    if isinstance(attribute, SteppedAttribute) and not isinstance(attribute, Dates):
        return f"{attribute.starts[first]}..{attribute.ends[last]}"
    return f"{attribute.labels[first]}..{attribute.labels[last]}"


def _check_size(weights: int) -> None:
    if weights > MAX_WEIGHTS:
        raise WorkloadError(
            f"this part of the batch has {weights:,} weights, more than {MAX_WEIGHTS:,}; "
            "ask for fewer queries, or declare wider cells"
        )


def _rows(
    domain: Domain,
    name: str,
    blocks: dict[str, tuple[sp.csr_array, list[str]]],
    by: tuple[str, ...],
) -> Workload:
    """Multiply one factor per attribute: its block, every cell (grouped), or their sum."""
    for key in by:
        domain.axis(key)
        if key in blocks or by.count(key) > 1:
            raise WorkloadError(f"attribute {key!r} is given twice")
    matrix, axes = sp.csr_array(np.ones((1, 1))), []
    _check_size(domain.size)
    for attribute in domain.attributes:
        if attribute.name in blocks:
            factor, labels = blocks[attribute.name]
        elif attribute.name in by:
            factor, labels = sp.eye_array(attribute.size, format="csr"), list(attribute.labels)
        else:
            factor, labels = sp.csr_array(np.ones((1, attribute.size))), []
        matrix = sp.csr_array(sp.kron(matrix, factor, format="csr"))
        if labels:
            axes.append((attribute.name, tuple(labels)))
    return Workload(matrix, labels=Labels([Grouped(name, tuple(axes))]), domain=domain)
