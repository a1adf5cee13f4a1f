"""Groups that choose their noise: small tables with shaped noise beside groups with Laplace noise.

Yes/no counts and small one-way tables have half the error with noise shaped to all of them. Beside
statements of other kinds they have it as a group of their own: groups with errors e_g at the whole
budget have ``(Σ e_g^⅓)³`` together, whatever the noise of each (`lrm.privacy.bodies.sums`).
See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lrm.errors import ConvergenceError, WorkloadError
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.rounding import round_products
from lrm.planning.design.products.strategy import ProductStrategy
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.grouping import Grouping
from lrm.planning.solvers.products.optimise import solve_groups
from lrm.planning.solvers.race import Candidate
from lrm.planning.strategies.base import Choice, Problem, ProductChoice, Search
from lrm.planning.strategies.shaped_tables import TableGroups, TablesChoice, tables_strategy
from lrm.privacy.bodies.sums import Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.norms import BodyNorm, Norm
from lrm.queries.maps.linear import Integers
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.values import merge_values
from lrm.queries.workload import Workload


@dataclass(frozen=True, eq=False)
class MixedChoice(Choice):
    """Groups with Laplace noise, and tables with a body.

    Parameters
    ----------
    plain
        The groups with Laplace noise, by the numbers of ``rest``.
    rest
        The terms that these answer.
    tables, terms
        The tables with a body, and the terms that they answer.
    error
        Half of the expected total squared error at ε = 1.
    """

    plain: ProductStrategy
    rest: Integers
    tables: TablesChoice
    terms: Integers
    error: float

    @property
    def share(self) -> float:
        """The share of the budget of the groups with Laplace noise: by the cube roots of errors."""
        return float(np.cbrt(self.plain.error / self.error))

    def round(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        del norm  # that of the bodies
        assert problem.products is not None  # noqa: S101 - made for such a problem
        laplace = round_products(problem.products.take(self.rest), self.plain, max_records).measured
        groups = [replace(group, terms=self.rest[group.terms]) for group in laplace.groups]
        group = self._tables(laplace.bits)
        count = laplace.measurement_count
        try:
            first = Tables((count,), (False,), laplace.sensitivity)
            shares = (
                self.share,
                *((1.0 - self.share) * share for share in self.tables.shape.shares),
            )
            bodies = tuple(
                replace(body, unit=1 << laplace.bits) for body in self.tables.shape.bodies
            )
            body = Groups((first, *bodies), TableGroups.whole_shares(shares))
            measured = Measured(laplace.sizes, (*groups, group), laplace.bits, BodyNorm(body))
        except WorkloadError as reason:
            raise ConvergenceError(f"the groups have no body together: {reason}") from reason
        workload = problem.workload
        return measured, measured.planned_reconstruction(workload.queries, workload.importance)

    def _tables(self, bits: int) -> MeasuredGroup:
        """The last group: its tables in the order of their bodies."""
        labels, tables = self.tables.labels, self.tables.tables
        (group,) = Measured.of_tables(
            labels, tables, bits, self.tables.shape.body(1 << bits)
        ).groups
        return replace(group, terms=self.terms)


def mixed_strategy(
    problem: Problem, search: Search, laplace: ProductChoice, error: float
) -> MixedChoice | None:
    """Small one-way tables as a group with a body beside Laplace groups; None without a gain.

    Parameters
    ----------
    laplace, error
        The best strategy with Laplace noise, and its error.
    """
    batch, found = problem.products, laplace.found
    if batch is None or search.clock.ended or found.residual:
        return None
    if not error > 0:
        return None
    best: MixedChoice | None = None
    looks = Grouping(batch, search.clock)
    every = [frozenset(group.terms.tolist()) for group in found.groups]
    for terms in _small_tables(batch):
        # What the other terms would have, as rough looks find it: often no less than all terms.
        part = frozenset(terms.tolist())
        left = sum(looks.root(group - part) for group in every) / sum(map(looks.root, every))
        if left > 0.97:
            continue
        tables = tables_strategy(_part(problem, batch, terms), search, error)
        if tables is None or not tables.is_one_way:
            continue
        if np.cbrt(tables.error) + left * np.cbrt(error) > np.cbrt(error):
            continue
        rest = np.setdiff1d(np.arange(batch.terms), terms)
        plain = _without(batch, found, rest, search)
        total = float(np.cbrt(tables.error) + np.cbrt(plain.error)) ** 3
        # Intervals of joint laws take longer.
        if total < 0.99 * error and (best is None or total < best.error):
            record = search.record("groups with a body", [Candidate("mixed", total, 0)], "quick")
            best = MixedChoice("best", plain, rest, tables, terms, total, record=record)
    return best


def _small_tables(batch: ProductBatch) -> Iterator[Integers]:
    """Yield terms about one small attribute each, with more and more values, but not all terms."""
    if not batch.simple:
        return
    support = batch.support()[np.argsort(batch.term_of)]
    single = np.flatnonzero(support.sum(axis=1) == 1)
    if not len(single):
        return
    attribute = support[single].argmax(axis=1)
    sizes = np.array(merge_values(batch.take(single)).batch.sizes)[attribute]
    seen = 0
    for most in settings.MIXED_VALUES:
        terms = single[sizes <= most]
        # Attributes whose tables are looked at together: the hull of two has little less error.
        few = len(np.unique(attribute[sizes <= most])) < 3
        if len(terms) > seen and len(terms) < batch.terms and not few:
            yield terms
        seen = max(seen, len(terms))


def _part(problem: Problem, batch: ProductBatch, terms: Integers) -> Problem:
    part = batch.take(terms)
    importance = np.repeat(part.weights**2, part.term_queries)
    return Problem(Workload(ProductMap(part.unweighted), importance=importance), problem.timings)


def _without(
    batch: ProductBatch, found: ProductStrategy, rest: Integers, search: Search
) -> ProductStrategy:
    """The Laplace groups of the other terms: those that lose some are searched again."""
    part = batch.take(rest)
    number = {term: place for place, term in enumerate(rest.tolist())}
    kept, changed = [], []
    for group in found.groups:
        own = [number[term] for term in group.terms.tolist() if term in number]
        if len(own) == len(group.terms):
            kept.append(replace(group, terms=np.array(own)))
        elif own:
            changed.append(frozenset(own))
    solved = solve_groups(part, changed, seed=search.seed, clock=search.clock).groups
    return ProductStrategy.combine([*kept, *solved])
