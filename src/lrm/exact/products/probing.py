"""Whether answers over products are those of the batch: every factor, and a table without noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.errors import UnsupportedQuery, WorkloadError
from lrm.exact.products.answers import HELD_NUMBERS, Estimate, Held, Lattice, Subset
from lrm.exact.products.pieces import Piece
from lrm.exact.products.strategy import on_axes
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import DenseMap
from lrm.maps.products.batch import ProductBatch

if TYPE_CHECKING:  # which is probed
    from lrm.exact.groups import MeasuredGroup
    from lrm.exact.products.reconstruction import ProductReconstruction


PROBED_TERMS = 120
"""Terms whose answers are compared with the truth on a table without noise."""

PROBED_QUERIES = 1 << 20
"""Terms with more queries are compared in a few of them."""

PROBED_IN_ALL = 1 << 20
"""Queries of all probed terms, beyond the first ones."""

FEWEST_TERMS = 30
"""Terms that are probed whatever the number of their queries."""

PROBED_ROWS = 32
"""Rows of each factor of such terms."""

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

    Looks at every factor once, so that no term is left out.
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


def largest_error(reconstruction: ProductReconstruction) -> float:
    """The largest error of answers to a table without noise, relative to their size.

    The table is a product of random vectors, so that its tabulations and true answers are
    known for any number of cells.
    """
    rng = np.random.default_rng(0)
    x = [rng.uniform(0.5, 1.5, n) / n for n in reconstruction.batch.sizes]
    terms = rng.permutation(reconstruction.batch.terms)[:PROBED_TERMS]
    # Large tables are many alike: after some of them the rest would take longer than the search.
    enough = np.cumsum(reconstruction.batch.term_queries[terms]) > PROBED_IN_ALL
    terms = np.sort(terms[~enough | (np.arange(len(terms)) < FEWEST_TERMS)])
    estimates = [
        _Probe(lattice, _Noiseless(group, lattice, x))
        for group, lattice in zip(
            reconstruction.measured.groups, reconstruction.lattices, strict=True
        )
    ]
    worst, answers_of, ends = (
        0.0,
        reconstruction.answers_of(estimates),
        reconstruction.batch.term_ends,
    )
    for term in terms.tolist():
        batch, g = reconstruction.batch.take([term]), reconstruction.group_of(term)
        if batch.queries <= PROBED_QUERIES or reconstruction.combination is not None:
            answers = answers_of(Piece(term, int(ends[term]) - batch.queries, int(ends[term])))
        else:
            batch = _thinned(batch)
            axes = reconstruction.measured.groups[g].axes
            answers = estimates[g].term(on_axes(batch, axes).products(0))
        truth = _product_truth(batch.summands(0), x)
        size = float(np.abs(truth).max(initial=0.0)) or 1.0
        error = float(np.abs(answers - truth).max(initial=0.0)) / size
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


class _Noiseless(Sequence[Floats]):
    """What each set of a group measures of a table that is the product of ``x``, made when used."""

    def __init__(self, group: MeasuredGroup, lattice: Lattice, x: Sequence[Floats]) -> None:
        self.group, self.scales = group, group.weights(0)
        self.merged: list[Floats] = []
        self._tables: Held[int, Floats] = Held(HELD_NUMBERS, np.size)
        for axis in group.axes:
            vector: Floats = np.ones(1)
            for i, marks, size in zip(axis.attributes, axis.labels, axis.merged_sizes, strict=True):
                is_marked = marks >= 0
                sums = np.bincount(marks[is_marked], x[i][is_marked], size)
                vector = np.asarray(np.kron(vector, sums), dtype=np.float64)
            self.merged.append(vector)
        self.images = [
            basis.times(vector[:, None])[:, 0]
            for basis, vector in zip(lattice.bases, self.merged, strict=True)
        ]
        self.totals = [float(vector.sum()) for vector in self.merged]

    def __len__(self) -> int:
        return len(self.group.sets)

    def __getitem__(self, b: Any) -> Any:
        return self._tables.find(b, lambda: self._table(b))

    def _table(self, b: int) -> Floats:
        members = self.group.sets[b]
        counts = np.full(1, math.prod(t for k, t in enumerate(self.totals) if k not in members))
        for k in members:
            counts = np.multiply.outer(counts, self.merged[k]).reshape(-1)
        return self.group.table(self.group.measure(counts, b) / self.scales[b], b)


class _Probe(Estimate):
    """Estimates from a table that is a product, of which no large array is needed."""

    def __init__(self, lattice: Lattice, table: _Noiseless) -> None:
        super().__init__(lattice, table)
        self._table = table
        self._means = [
            float(basis.average @ image)
            for basis, image in zip(lattice.bases, table.images, strict=True)
        ]
        self._scales: dict[Subset, float] = {}

    def _scale(self, subset: Subset) -> float:
        """The sum over sets, computed once: all terms ask about the total."""
        if subset not in self._scales:
            lattice, numbers = self.lattice, self.lattice.telling(subset)
            if not lattice[subset] > 0:
                raise UnsupportedQuery("no measured marginal contains all attributes of the query")
            known = np.where(self._table.group.members[numbers], self._means, self._table.totals)
            known[:, list(subset)] = 1.0
            weights = lattice.weights[numbers] ** 2 * np.where(lattice.folds[numbers], 2.0, 1.0)
            self._scales[subset] = float(np.sum(weights * known.prod(axis=1)) / lattice[subset])
        return self._scales[subset]

    def residual(self, subset: Subset) -> Floats:
        """``z_A``, whose sum over sets is a number, and its arrays a product."""
        lattice = self.lattice
        if any(b in lattice.unmixing for b in lattice.telling(subset)):
            return super().residual(subset)
        outer_product = np.full((), self._scale(subset))
        for i in subset:
            image = lattice.bases[i].transpose_times(self._table.images[i][:, None])
            outer_product = np.multiply.outer(outer_product, image[:, 0])
        return outer_product


def _thinned(batch: ProductBatch) -> ProductBatch:
    """The terms of a batch with a few rows of each factor."""
    factors = tuple(tuple(map(_some_rows, choices)) for choices in batch.factors)
    return replace(batch, factors=factors)


def _some_rows(factor: LinearMap) -> LinearMap:
    """About ``PROBED_ROWS`` queries, evenly spread; all of them where there are fewer."""
    if factor.shape[0] <= PROBED_ROWS:
        return factor
    places = np.linspace(0, factor.shape[0] - 1, PROBED_ROWS).astype(np.int64).tolist()
    return DenseMap(np.vstack([factor.rows(place, place + 1) for place in places]))


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
