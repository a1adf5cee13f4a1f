"""Whether answers over products are those of the batch: every factor, and a table without noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lrm.errors import WorkloadError
from lrm.planning.design.products.axes import on_axes
from lrm.planning.design.products.information import Information
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.words import Prefix

if TYPE_CHECKING:  # which is probed
    from lrm.planning.design.groups import MeasuredGroup
    from lrm.planning.design.products.reconstruction import ProductReconstruction


MOST_SUPPORT = 20
"""Attributes of one query that are not summed out; each subset of them is a step of its answer."""


def check_support(batch: ProductBatch) -> None:
    """Refuse queries over more attributes than can be answered in reasonable time."""
    if batch.support().sum(axis=1).max(initial=0) > MOST_SUPPORT:
        raise WorkloadError(
            f"a query over products may distinguish values of at most {MOST_SUPPORT} attributes"
        )


def check_group(batch: ProductBatch, group: MeasuredGroup) -> None:
    """Refuse merged values that some term distinguishes, or dropped ones that it counts.

    Looks at every factor once, so that no term is left out. Classes and corners are checked with
    the terms.
    """
    group_batch = batch.take(group.terms)
    for axis in group.axes:
        for place, i in enumerate(axis.attributes):
            for f in group_batch.present(i).tolist():
                if not axis.keeps(place, batch.factors[i][f]):
                    raise WorkloadError(
                        "the strategy merges values that its own queries distinguish, or drops "
                        "values that they count"
                    )
    if not all(axis.is_plain for axis in group.axes):
        on_axes(group_batch, group.axes)


def largest_error(reconstruction: ProductReconstruction) -> float:
    """The largest error of answers to a table without noise, relative to their size.

    The table is a product of random vectors, so that its tabulations and true answers are known for
    any number of cells. Answers to a product are products of what each axis makes of its vector, so
    all factors are looked at axis by axis. Small tables are measured and answered besides.
    """
    rng, measured = np.random.default_rng(0), reconstruction.measured
    x = [rng.uniform(0.5, 1.5, n) / n for n in reconstruction.batch.sizes]
    tables = [_merged(group, x) for group in measured.groups]
    parts = zip(
        measured.groups,
        reconstruction.groups_by_subset,
        reconstruction.reduced,
        tables,
        strict=True,
    )
    worst = [_axes_error(*part) for part in parts]
    # Tables that are measured as a whole: few sets of axes, and measurements.
    are_few = len(measured.tabulations) <= (1 << 10)
    if are_few and measured.measurement_count <= (1 << 20):
        values = [
            group.measure(_counts(group.sets[b], table), b).astype(np.float64)
            for group, table in zip(measured.groups, tables, strict=True)
            for b in range(len(group.sets))
        ]
        worst.append(
            _answers_error(reconstruction, np.concatenate(values) * 2.0**-measured.bits, x)
        )
    return max(worst)


def _merged(group: MeasuredGroup, x: Sequence[Floats]) -> list[Floats]:
    """The vectors of a table over the combinations of merged values of each axis of a group."""
    merged = []
    for axis in group.axes:
        vector: Floats = np.ones(1)
        for i, marks, size in zip(axis.attributes, axis.labels, axis.merged_sizes, strict=True):
            is_marked = marks >= 0
            sums = np.bincount(marks[is_marked], x[i][is_marked], size)
            vector = np.asarray(np.kron(vector, sums), dtype=np.float64)
        merged.append(vector)
    return merged


def _counts(members: Sequence[int], table: Sequence[Floats]) -> Floats:
    """The tabulation of some axes, in C order."""
    rest = math.prod(float(vector.sum()) for k, vector in enumerate(table) if k not in members)
    return rest * kronecker(table[k][:, None] for k in members)[:, 0]


def _axes_error(
    group: MeasuredGroup, by_subset: Information, batch: ProductBatch, table: Sequence[Floats]
) -> float:
    """The largest error of a product of factors, from those of each axis and mixed set."""
    errors, images = np.zeros(len(table)), []
    for k, basis in enumerate(group.product_bases):
        vector = group.axes[k].by_value(table[k][:, None]).astype(np.float64)
        images.append(basis.apply(vector).astype(np.float64) / basis.scale)
        back = basis.projector_times(basis.transpose_times(images[k]))
        back += basis.h[:, None] * (vector.sum() / basis.kappa)
        factors = [batch.factors[k][f] for f in batch.present(k).tolist()]
        # Every range is the difference of two prefixes.
        distinct = {Prefix(basis.size) if f.is_word else f for f in factors}
        gaps = [_relative(factor.apply(back), factor.apply(vector)) for factor in distinct]
        if not by_subset.residual:  # totals of a table follow from each set that it is in
            total = basis.average @ images[k] * basis.kappa
            gaps.append(_relative(total, vector.sum(axis=0)))
        errors[k] = max(gaps, default=0.0)
    worst = float((group.members @ errors).max(initial=0.0))
    for b, mix in group.mixes.items():
        values = kronecker(images[k] for k in group.sets[b])[:, 0]
        worst = max(worst, _relative(group.unmixing[b] @ (mix @ values), values))
    return worst


def _answers_error(
    reconstruction: ProductReconstruction, measurements: Floats, x: Sequence[Floats]
) -> float:
    """The largest error of some terms that are answered as a release would answer them."""
    batch, answers = reconstruction.batch, reconstruction.answering(measurements)
    # Terms whose answers are compared with the truth on a table without noise.
    terms = np.random.default_rng(0).permutation(batch.terms)[:120]
    # Queries of all probed terms.
    terms = terms[np.cumsum(batch.term_queries[terms]) <= (1 << 20)]
    worst = 0.0
    for term in np.sort(terms).tolist():
        end = int(batch.term_ends[term])
        truth = _product_truth(batch.summands(term), x)
        worst = max(worst, _relative(answers(end - len(truth), end), truth))
    return worst


def _relative(values: Floats, truth: Floats) -> float:
    """The largest difference, relative to the largest true value."""
    size = float(np.abs(truth).max(initial=0.0)) or 1.0
    error = float(np.abs(values - truth).max(initial=0.0)) / size
    return error if math.isfinite(error) else math.inf


def _product_truth(
    summands: Sequence[tuple[float, list[LinearMap]]], x: Sequence[Floats]
) -> Floats:
    total: Floats | float = 0.0
    for coefficient, factors in summands:
        table = np.full((), coefficient)
        for factor, vector in zip(factors, x, strict=True):
            # Flat: an array has at most 64 axes, and a table may have more attributes.
            table = np.multiply.outer(table, factor.apply(vector[:, None])[:, 0]).reshape(-1)
        total = total + table
    return np.asarray(total).reshape(-1)
