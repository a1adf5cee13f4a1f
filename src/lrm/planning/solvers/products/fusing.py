"""Attributes fused into one axis: a basis over the combinations of their values.

Under L1 sensitivity a product of bases is not the best basis for a product of factors: for prefix
sums over three attributes of eight values, one over all 512 combinations has three quarters of
the error. Where tables alone are asked for, fusing gains nothing.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import numpy as np

from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.planning.design.products.axes import Axis, on_axes
from lrm.planning.design.products.basis import MarginalBasis, ProductBasis
from lrm.planning.design.products.corners import MOST_PARTS, fused_parts
from lrm.planning.design.products.information import FixedBases
from lrm.planning.design.products.quadratic import FactorPairs, PairGram, Quadratic
from lrm.planning.design.products.strategy import Group, Marginals
from lrm.planning.limits import BLOCK
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.descents import LONGEST, MixedGram, rows_of
from lrm.planning.solvers.products.search import SetSearch
from lrm.planning.solvers.settings import Budget, Effort
from lrm.planning.solvers.sparse_rows import Stage, optimise_sparse_rows
from lrm.queries.maps.linear import TINY, Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch

#: Most queries of a term over a long one: each is answered through all rows of its basis.
MOST_QUERIES = 20_000


def fuse_axes(
    batch: ProductBatch, group: Group, effort: Effort, rng: np.random.Generator, clock: Clock
) -> Group:
    """A group of single attributes with some of them fused, where that has less error."""
    if any(axis.classes is not None for axis in group.axes):
        return group
    group_batch = batch.take(group.terms)
    budget = settings.BUDGETS[effort]
    fusing = _Fusing(group_batch, budget, rng, clock)
    differing = best = group
    with contextlib.suppress(StopSolver):
        first, last = _differing(group_batch, group.axes)
        if math.prod(axis.size for axis in group.axes[first:last]) <= budget.fused:
            differing = fusing.fused(group, first, last)
        # From the last to the first, so that the places of the others stay as they are.
        for first, last in reversed(list(_needy_runs(group_batch, group.axes, budget.fused))):
            best = fusing.fused(best, first, last)
    return min(differing, best, key=lambda candidate: candidate.error)


def fuse_long_axes(
    batch: ProductBatch, group: Group, effort: Effort, rng: np.random.Generator, clock: Clock
) -> Group:
    """Fuse axes of thousands of combinations, through Grams that are not written out."""
    group_batch = batch.take(group.terms)
    if (
        not group_batch.simple
        or not all(axis.is_plain for axis in group.axes)
        or any(_queries(group_batch, axis) > MOST_QUERIES for axis in group.axes)
    ):
        return group
    budget = settings.BUDGETS[effort]
    fusing = _Fusing(group_batch, budget, rng, clock.part(budget.long_fused_seconds))
    best = group
    with contextlib.suppress(StopSolver):
        for first, last in reversed(list(_needy_runs(group_batch, group.axes, budget.long_fused))):
            together = group.axes[first:last]
            queries = math.prod(_queries(group_batch, axis) for axis in together)
            # Share of a group's queries that must be about several of the attributes of a long one.
            if _share_of_several(group_batch, together) < 0.5:
                continue
            if queries <= MOST_QUERIES and math.prod(a.size for a in together) > budget.fused:
                best = fusing.fused(best, first, last)
    return best


def _queries(batch: ProductBatch, axis: Axis) -> int:
    """The most queries that a term asks of an axis."""
    return math.prod(
        max(len(batch.factors[i][f]) for f in batch.present(i)) for i in axis.attributes
    )


def _share_of_several(batch: ProductBatch, axes: Sequence[Axis]) -> float:
    """The share of the queries, by weight, that select values on two or more of some axes."""
    on = np.array([batch.choice[:, list(axis.attributes)].any(axis=1) for axis in axes])
    several = np.zeros(batch.terms, dtype=bool)
    np.logical_or.at(several, batch.term_of, on.sum(axis=0) > 1)
    size = batch.weights**2 * batch.term_queries
    return float(size[several].sum() / max(float(size.sum()), TINY))


def _differing(batch: ProductBatch, axes: Sequence[Axis]) -> tuple[int, int]:
    """Where the axes begin and end that terms ask for differently.

    Those that all terms ask for alike stay separate, but only the first and the last ones: answers
    are in the order of the attributes, so those that are fused must be consecutive.
    """
    alike = [axis.size > 1 and len(batch.present(axis.attributes[0])) == 1 for axis in axes]
    if all(alike):
        return 0, 0
    return alike.index(False), len(alike) - alike[::-1].index(False)


def _needy_runs(batch: ProductBatch, axes: Sequence[Axis], most: int) -> Iterator[tuple[int, int]]:
    """Yield where consecutive axes begin and end that need a basis, with ``most`` combinations."""
    special = [
        any(f.kind not in {"total", "identity"} for f in choices) for choices in batch.factors
    ]
    if sum(special) < 2:
        return
    quadratic = Quadratic(on_axes(batch, axes))
    first, size = 0, 1
    for k, axis in enumerate(axes):
        needy = axis.size == 1 or quadratic.needs_basis(k)
        if not needy or size * axis.size > most:
            yield first, k
            first, size = (k, axis.size) if needy else (k + 1, 1)
        else:
            size *= axis.size
    yield first, len(axes)


class _Fusing:
    """Bases over fused axes for the terms of one group."""

    def __init__(
        self, batch: ProductBatch, budget: Budget, rng: np.random.Generator, clock: Clock
    ) -> None:
        self.own, self.budget, self.rng, self.clock = batch, budget, rng, clock

    def fused(self, group: Group, first: int, last: int) -> Group:
        """The group with the axes ``first:last`` as one, where that has less error."""
        together = group.axes[first:last]
        several = sum(axis.size > 1 for axis in together) > 1
        entries = math.prod(axis.size * axis.combinations for axis in together)
        whole = math.prod(axis.whole for axis in together)
        cornered = any(axis.parts is not None for axis in together)
        if not several or whole > MOST_PARTS or (cornered and entries > BLOCK):
            return group
        axis = Axis(
            tuple(i for part_axis in together for i in part_axis.attributes),
            tuple(marks for part_axis in together for marks in part_axis.labels),
            parts=fused_parts([_parts(part_axis) for part_axis in together]) if cornered else None,
        )
        axes = (*group.axes[:first], axis, *group.axes[last:])
        reduced = on_axes(self.own, axes)
        quadratic, best = Quadratic(reduced), group
        bases = [*group.marginals.bases]
        bases[first:last] = [MarginalBasis.identity(axis.size)]
        for rows in self._bases(MixedGram(_shares(reduced, first, bases))):
            bases[first] = MarginalBasis.beside(np.minimum(rows, LONGEST))
            search = SetSearch(FixedBases.at(quadratic, bases), self.rng)
            family = search.climb(search.descend(search.starts()[0], np.ones(1)))
            if family.error < best.error:
                marginals = Marginals(family.sets, family.weights, tuple(bases))
                best = Group(group.terms, axes, marginals, family.error)
        return best

    def _bases(self, gram: MixedGram) -> Iterator[Floats]:
        """Yield the extra rows of some bases."""
        n = gram.cells
        if n > self.budget.fused:
            rows = settings.LONG_ROWS * math.isqrt(n)
            stage = Stage(1, *self.budget.long_fused_descent)
            sparse_rows = optimise_sparse_rows(gram, rows, (stage,), rng=self.rng, clock=self.clock)
            yield sparse_rows.rows.toarray()
            return
        counts = [max(2, n // share) for share in self.budget.fused_shares]
        tried = rows_of(gram, counts, self.rng, self.clock, tolerance=1e-6, max_rounds=800)
        yield from (candidate.rows for candidate in tried)


def _parts(axis: Axis) -> Integers:
    """The parts of an axis, of which every value is a corner where it has none."""
    return np.eye(axis.size, dtype=np.int64) if axis.parts is None else axis.parts


def _shares(
    reduced: ProductBatch, place: int, bases: Sequence[ProductBasis]
) -> list[tuple[float, PairGram]]:
    """The Grams of one axis, weighted by what the other axes make of each under one product."""
    pairs = FactorPairs.of(reduced)
    weights = pairs.coefficients
    for k, basis in enumerate(bases):
        if k != place:
            grams, of = pairs.on(k)
            weights = weights * basis.statistics(grams).phi[of]
    grams, of = pairs.on(place)
    return list(zip(np.bincount(of, weights).tolist(), grams, strict=True))
