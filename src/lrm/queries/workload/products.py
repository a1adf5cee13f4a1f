"""Batches over tables with several numbered attributes: stacks of products, and cross-tabs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from lrm.errors import WorkloadError
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import ProductBatch, cross_tabs, product_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.words import Kind, Word, kind_of
from lrm.queries.workload.core import Workload
from lrm.queries.workload.label_blocks import Axis, LabelBlock, NumberedLabels
from lrm.queries.workload.labels import Labels

MOST_IMPORTANCES = 1 << 27
"""Queries that may have an importance each: 1 GB of numbers."""


def products(
    sizes: Sequence[int],
    terms: Iterable[Sequence[ArrayLike | Word]],
    *,
    importance: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Workload:
    """A batch of terms over the product of several attributes.

    A term is the product of one small query matrix per attribute: a query for every combination of
    their rows, in C order (the last attribute's row varies fastest). Nothing has
    the size of the product of the attributes.

    Parameters
    ----------
    sizes
        Number of values of each attribute.
    terms
        Lists of one factor per attribute: an array (queries × values; one dimension is one
        query), ``"total"``, ``"identity"``, ``"prefix"`` or ``"all-ranges"``.
    importance
        One number per term, or one per query; 1 by default.
    names
        One name per term; q1, q2, … by default. The attributes are called a1, a2, …

    Examples
    --------
    >>> batch = products([2, 10], [["identity", "total"], [[1, 0], "prefix"]])
    >>> batch
    <Workload: 12 queries over 20 cells (products)>
    >>> batch.names[:3]
    ('q1[a1=0]', 'q1[a1=1]', 'q2[a2=0]')
    """
    batch = product_batch(attribute_sizes(sizes), list(terms))
    if not batch.terms:
        raise WorkloadError("a batch needs at least one term")
    if names is not None and len(names) != batch.terms:
        raise WorkloadError(f"{batch.terms} terms need {batch.terms} names, got {len(names)}")
    queries = product_map(batch)
    axes = [[_axis(i, factor) for factor in choices] for i, choices in enumerate(batch.factors)]
    labels = Labels(
        LabelBlock(
            f"q{term + 1}" if names is None else str(names[term]),
            tuple(axis for i, f in enumerate(row) if (axis := axes[i][f]) is not None),
        )
        for term, row in enumerate(batch.choice.tolist())
    )
    weights = spread_importance(importance, batch.term_queries.tolist())
    return Workload(queries, labels=labels, importance=weights)


def marginals(
    sizes: Sequence[int],
    orders: int | Iterable[int],
    *,
    factor: Word | Sequence[Word] = "identity",
    name: str = "count",
) -> Workload:
    """All cross-tabs of the given numbers of attributes; the others are summed out.

    Parameters
    ----------
    sizes
        Number of values of each attribute.
    orders
        Numbers of attributes, such as ``range(4)`` for all tables of up to three.
    factor
        What is asked of an attribute in a table: ``"identity"``, ``"prefix"`` or
        ``"all-ranges"``; one for all attributes, or one for each.
    name
        Name of the query, the same in all tables. The attributes are called a1, a2, …

    Examples
    --------
    >>> batch = marginals([10] * 100, range(4))
    >>> batch.shape[0], batch.names[-1]
    (162196001, 'count[a98=9, a99=9, a100=9]')
    """
    checked = attribute_sizes(sizes)
    order_numbers = (orders,) if isinstance(orders, int) else tuple(map(operator.index, orders))
    kinds = [factor] * len(checked) if isinstance(factor, str) else list(factor)
    if len(kinds) != len(checked) or "total" in kinds:
        raise WorkloadError(
            "expected one factor, 'identity', 'prefix' or 'all-ranges', or one per attribute"
        )
    batch = cross_tabs(checked, order_numbers, kinds)
    queries = product_map(batch)
    axes = tuple(_axis(i, choices[1], always=True) for i, choices in enumerate(batch.factors))
    table_axes = tuple(axis for axis in axes if axis)
    labels = Labels([LabelBlock(name, table_axes, orders=order_numbers)])
    return Workload(queries, labels=labels)


def attribute_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of attributes as Python integers, checked to be whole numbers."""
    try:
        return tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise WorkloadError("the sizes of attributes must be a list of whole numbers") from None


def spread_importance(importance: ArrayLike | None, queries: Sequence[int]) -> Floats | None:
    """Importance per query, from one number per query or per term.

    ``queries`` are the numbers of queries of the terms.
    """
    if importance is None:
        return None
    values, count = np.asarray(importance, dtype=np.float64), sum(queries)
    if values.shape == (count,):
        return values
    if values.shape != (len(queries),):
        raise WorkloadError(
            f"importance must be one number per term ({len(queries):,}) or per query "
            f"({count:,}), not an array of the shape {values.shape}"
        )
    if np.all(values == 1.0):
        return None
    check_importances(count)
    return np.repeat(values, queries)


def check_importances(count: int) -> None:
    """Refuse a batch of more queries than may have an importance each."""
    if count > MOST_IMPORTANCES:
        raise WorkloadError(
            f"at most {MOST_IMPORTANCES:,} queries may have an importance, "
            f"but the batch has {count:,}"
        )


def product_map(batch: ProductBatch) -> LinearMap:
    """The map of a batch; over a single attribute, a map over its values.

    Examples
    --------
    >>> product_map(product_batch([8], [["prefix"]])).kind
    'prefix'
    """
    linear_map = ProductMap(batch)
    if len(batch.sizes) > 1:
        return linear_map
    if batch.terms == 1 and batch.simple and batch.coefficients[0] == 1.0:
        (factor,) = batch.summands(0)[0][1]
        if factor.has_closed_forms:
            return factor
        if factor.kind == "identity":
            return SparseMap(factor.sparse())
    return SparseMap(linear_map.sparse()) if linear_map.is_flat else linear_map


def _axis(attribute: int, factor: LinearMap, *, always: bool = False) -> Axis | None:
    """Labels of a factor's rows; None for a single row, which a term is not grouped by."""
    if factor.kind == "total" or (len(factor) == 1 and not always):
        return None
    size = factor.shape[1] if factor.is_word else len(factor)
    kind = cast("Kind", kind_of(factor))
    return f"a{attribute + 1}", NumberedLabels(kind, size)
