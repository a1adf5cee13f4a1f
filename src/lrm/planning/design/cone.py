"""What tables without noise can give: combinations ``L·x`` of columns with x ≥ 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lrm.errors import UsageError
from lrm.planning.design.cells import over_merged
from lrm.planning.design.integers import CellBasis
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.strategy import on_axes
from lrm.queries.maps.kron import along
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.products.batch import Products
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.words import Total


def cone(measured: Measured, queries: LinearMap) -> tuple[Floats, Callable[[Floats], Floats]]:
    """The columns of L over merged cells, and the answers ``W·x`` to their combinations.

    For the queries of a plan, and few merged cells. Several groups of measurements, each with an
    estimate of its own, are a `UsageError`.
    """
    if len(measured.groups) > 1:
        raise UsageError(
            "the nearest non-negative table is looked for where all answers follow from one group "
            "of measurements, and this release has several; process the answers yourself"
        )
    if measured.cells is None and isinstance(queries, ProductMap):
        return _of_products(measured, queries)
    flat = measured.flat()
    assert flat.cells is not None  # noqa: S101 - it is flat
    return _of_cells(flat.cells, flat.real_map, queries)


def _of_cells(
    basis: CellBasis, strategy: LinearMap, queries: LinearMap
) -> tuple[Floats, Callable[[Floats], Floats]]:
    cells = basis.cell_map
    # A merged cell sums counts with factors: those of one sign only fix the sign of the sum.
    low, high = np.zeros(cells.merged_size), np.zeros(cells.merged_size)
    np.minimum.at(low, cells.index, cells.factor)
    np.maximum.at(high, cells.index, cells.factor)
    upward, downward = np.flatnonzero(high > 0), np.flatnonzero(low < 0)
    rows = strategy.sparse().toarray()
    merged = over_merged(queries, cells)
    assert merged is not None  # noqa: S101 - the plan does not merge what its queries distinguish

    def answers(solution: Floats) -> Floats:
        estimate = np.zeros(cells.merged_size)
        estimate[upward] += solution[: len(upward)]
        estimate[downward] -= solution[len(upward) :]
        return merged.apply(estimate)

    return np.hstack([rows[:, upward], -rows[:, downward]]), answers


def _of_products(
    measured: Measured, queries: ProductMap
) -> tuple[Floats, Callable[[Floats], Floats]]:
    (group,) = measured.groups
    rows = [group.rows(b) for b in range(len(group.sets))]
    batch = on_axes(queries.batch, group.axes)

    def answers(solution: Floats) -> Floats:
        cells = solution.reshape(batch.sizes)
        return np.concatenate([_on_cells(batch.products(t), cells) for t in range(batch.terms)])

    return np.vstack(rows) * 2.0**-measured.bits, answers


def _on_cells(products: Products, cells: Floats) -> Floats:
    """The answers of a sum of products on counts of the merged cells."""
    term_answers: Floats | float = 0.0
    for coefficient, factors in products:
        part = cells
        for k in range(cells.ndim):
            part = along(part, k, factors.get(k, Total(part.shape[k])).apply)
        term_answers = term_answers + coefficient * part
    return np.asarray(term_answers).reshape(-1)
