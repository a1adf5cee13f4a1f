"""Mechanisms over products of attributes: the best known strategy, and the baselines.

Nothing here lists cells, except for the search over small tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lrm.errors import UsageError, WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.products.axes import Axis, axes_of, merged_axes
from lrm.planning.design.products.basis import MarginalBasis, ProductBasis
from lrm.planning.design.products.probing import check_support
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Group, Marginals, ProductStrategy, marginals_error
from lrm.planning.design.products.subsets import masks_of
from lrm.planning.limits import ARRAY
from lrm.planning.solvers import settings
from lrm.planning.solvers.bounds import ROUNDING, product_bound
from lrm.planning.solvers.products.gaussian import (
    optimise_gaussian_groups,
    solve_gaussian_groups,
)
from lrm.planning.solvers.products.optimise import optimise_products, solve_groups
from lrm.planning.solvers.race import Candidate
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies.base import Problem, ProductChoice, Search, check_effort
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.values import Reduction, merge_values
from lrm.queries.workload import Workload
from lrm.queries.workload.columns import statement_columns


def _batch(problem: Problem) -> ProductBatch:
    if problem.products is None:
        raise UsageError("marginals are measured for batches over several attributes; choose best")
    check_support(problem.products)
    if len(problem.products.idle_terms()) == problem.products.terms:
        raise WorkloadError(
            "no query of this batch counts any cell: every condition selects no declared value; "
            "ask for at least one that does"
        )
    return problem.products


def _searched_batch(problem: Problem) -> ProductBatch:
    """The batch that a search is about, once it is known to be one over products."""
    batch = _batch(problem)
    return problem.searched_products or batch


def best_products(problem: Problem, search: Search, *, effort: Effort = "normal") -> ProductChoice:
    """The best known strategy over products: weighted marginals, or residuals for Gaussian noise.

    `bounded` states how far it may be from the best of all.
    """
    batch, terms = _searched_batch(problem), terms_of_statements(problem)
    if search.is_gaussian:
        residuals = optimise_gaussian_groups(
            batch, clock=search.clock, statements=terms, limits=search.limits
        )
        return _searched("best", residuals, search, effort)
    several = effort == "normal" and len(problem.workload.statements) > 1
    # Seconds at normal effort for batches of several statements, whose plan is promised in 10 CPU
    # s. Of four reports, one had 0.2 % less error without this limit, the others none.
    seconds = 6.0 if several else settings.BUDGETS[effort].seconds
    seconds += settings.STATEMENT_SECONDS * len(terms)
    clock = search.clock.part(seconds)
    strategy = optimise_products(
        batch, effort=effort, seed=search.seed, clock=clock, statements=terms
    )
    return _searched("best", strategy, search, effort)


def products_in_groups(
    problem: Problem, search: Search, groups: list[frozenset[int]], effort: Effort
) -> ProductChoice:
    """The strategy that measures given groups of terms, each by itself."""
    batch = _searched_batch(problem)
    if search.is_gaussian:
        residuals = solve_gaussian_groups(batch, groups, clock=search.clock, limits=search.limits)
        return _searched("best", residuals, search, effort)
    found = solve_groups(batch, groups, seed=search.seed, clock=search.clock)
    return _searched("best", found, search, effort)


def _searched(
    mechanism: str, strategy: ProductStrategy, search: Search, effort: Effort
) -> ProductChoice:
    candidate = Candidate(strategy.name, strategy.error, 0)
    record = search.record(strategy.name, [candidate], effort)
    return ProductChoice(mechanism, strategy, record=record)


def terms_of_statements(problem: Problem) -> list[frozenset[int]]:
    """The terms of each statement that are of none before it; [] where there are not several."""
    workload, batch = problem.workload, problem.products
    if batch is None or len(workload.statements) < 2:
        return []
    columns = statement_columns(workload)
    # Terms that importances have split have their queries in the same order.
    of_term = columns.of_row[batch.term_ends - batch.term_queries]
    left, groups = set(range(batch.terms)), []
    idle = set(batch.idle_terms().tolist())  # alone they would be a group without measurements
    for members in columns.statements:
        terms = left.intersection(np.flatnonzero(np.isin(of_term, members)).tolist())
        if terms - idle:
            left -= terms
            groups.append(frozenset(terms))
    return [groups[0] | left, *groups[1:]] if groups else []


def bounded(choice: ProductChoice, problem: Problem) -> ProductChoice:
    """A choice with a number that no strategy for the weighted terms of a batch is below."""
    is_filled = problem.searched_products is not problem.products  # bounds are of other queries
    proven = 0.0 if is_filled else choice.found.bound * (1.0 - ROUNDING)
    return replace(choice, least_error=proven or product_bound(_batch(problem)))


def reweighed(choice: ProductChoice, found: ProductStrategy) -> ProductChoice:
    """A choice with what was found for other importances."""
    record = choice.record and replace(
        choice.record, candidates=(Candidate(choice.record.winner, found.error, 0),)
    )
    return replace(choice, found=found, record=record)


def product_of_bases(
    problem: Problem, mechanism: str, basis: Callable[[int, int], ProductBasis], **facts: Any
) -> ProductChoice:
    """One basis for each attribute, multiplied: by its number, and that of its merged values."""
    batch = _batch(problem)
    reduced = merge_values(batch)
    bases = [basis(i, n) for i, n in enumerate(reduced.batch.sizes)]
    group = _product(reduced.batch, np.arange(batch.terms), axes_of(reduced.labels), bases)
    return ProductChoice(mechanism, ProductStrategy((group,), group.error), facts=facts)


def noise_on_data(problem: Problem, search: Search) -> ProductChoice:
    """Measure every combination of merged values."""
    del search
    return product_of_bases(problem, "noise-on-data", lambda _, n: MarginalBasis.identity(n))


def wavelet(problem: Problem, search: Search) -> ProductChoice:
    """A Haar wavelet on every attribute, multiplied."""
    del problem, search
    raise UsageError(
        "the wavelet mechanism is for lists of cells, and the attributes of this batch have too "
        "many combinations; the hierarchical one measures the same blocks"
    )


def hierarchical(problem: Problem, search: Search, *, fanout: int = 2) -> ProductChoice:
    """A tree of totals on every attribute, multiplied."""
    del search
    if fanout < 2:
        raise UsageError(f"fanout must be at least 2, not {fanout}")
    return product_of_bases(
        problem, "hierarchical", lambda _, n: tree_basis(n, fanout), fanout=fanout
    )


def noise_on_results(problem: Problem, search: Search) -> ProductChoice:
    """Measure every query itself: one group for each term, answered from itself alone.

    All queries carry the same noise, so a term has a share of the sensitivity in proportion to the
    most that a record moves it by.
    """
    del search
    batch = _batch(problem)
    plain = batch.unweighted
    idle = frozenset(batch.idle_terms().tolist())
    asking = [term for term in range(batch.terms) if term not in idle]
    groups, moves = [], []
    for number, term in enumerate(asking):
        _, reduced = merged_axes(plain.take([term]))
        if not _are_disjoint(reduced):
            raise UsageError(
                "noise on results over products of attributes is measured where each record is in "
                "one answer of a statement at most; this batch has others, such as running totals"
            )
        moves.append(_largest_move(reduced))
        # Terms that count no cell are answered, as 0, by any group.
        terms = np.array(sorted([term, *(idle if number == 0 else ())]), dtype=np.int64)
        axes, own = merged_axes(batch.take(terms))
        identities = [MarginalBasis.identity(axis.size) for axis in axes]
        groups.append(_product(own, terms, axes, identities))
    shares = np.array(moves) / sum(moves)
    weighed = zip(groups, shares.tolist(), strict=True)
    groups = [replace(group, weight=weight) for group, weight in weighed]
    error = sum(group.error / group.weight**2 for group in groups)
    return ProductChoice("noise-on-results", ProductStrategy(tuple(groups), error))


def _product(
    reduced: ProductBatch, terms: Integers, axes: Sequence[Axis], bases: Sequence[ProductBasis]
) -> Group:
    """The group that measures one product of bases for some terms, ``reduced`` to its axes."""
    every = masks_of(np.ones((1, len(axes)), dtype=bool))
    marginals = Marginals(every, np.ones(1), tuple(bases))
    error = marginals_error(Quadratic(reduced), marginals)
    return Group(terms, tuple(axes), marginals, error)


def _are_disjoint(batch: ProductBatch) -> bool:
    """Whether each record is in one query at most, of a term over merged values."""
    return all(
        factor.kind in {"total", "identity"}
        or (
            not factor.is_word
            and math.prod(factor.shape) <= ARRAY * 2
            and np.count_nonzero(factor.dense(), axis=0).max() <= 1
        )
        for i, choices in enumerate(batch.factors)
        for factor in (choices[f] for f in batch.present(i).tolist())
    )


def _largest_move(batch: ProductBatch) -> float:
    """The most that a record moves the queries of one term by: at most, for a sum of products."""
    sizes = [
        abs(coefficient)
        * math.prod(float(factor.column_absolute_sums().max()) for factor in factors)
        for coefficient, factors in batch.summands(0)
    ]
    if len(sizes) > 1 and batch.queries * math.prod(batch.sizes) <= ARRAY * 2:
        return float(np.abs(batch.dense()).sum(axis=0).max())
    return sum(sizes)


def marginals(problem: Problem, search: Search, *, effort: Effort = "normal") -> ProductChoice:
    """Weighted marginals over identities: the classical choice."""
    check_effort(effort)
    _only_laplace(search, "marginals")
    strategy = optimise_products(
        _searched_batch(problem),
        effort=effort,
        seed=search.seed,
        clock=search.clock,
        classical=True,
    )
    return _searched("marginals", strategy, search, effort)


def _only_laplace(search: Search, name: str) -> None:
    if search.is_gaussian:
        raise UsageError(
            f"{name} over products of attributes is offered with Laplace noise; choose best"
        )


def flat_problem(problem: Problem) -> tuple[Problem, Reduction]:
    """The batch over the list of its merged cells."""
    batch = _batch(problem)
    reduced = merge_values(batch)
    plain = ProductMap(reduced.batch.unweighted)
    importance = np.repeat(batch.weights**2, batch.term_queries)
    return Problem(Workload(SparseMap(plain.sparse()), importance=importance)), reduced


def lift(cells: CellMap, reduction: Reduction) -> CellMap:
    """How all cells of a product become what a strategy for its merged cells measures."""
    number = np.zeros((1,), dtype=np.int64)
    counted = np.ones((1,), dtype=bool)
    for marks, size in zip(reduction.labels, reduction.batch.sizes, strict=True):
        number = (number[:, None] * size + np.maximum(marks, 0)).reshape(-1)
        counted = (counted[:, None] & (marks >= 0)).reshape(-1)
    factor = np.where(counted, cells.factor[number], 0)
    return CellMap(cells.merged_size, cells.index[number], factor)


def on_representatives(rows: Floats, flat: Problem) -> Floats:
    """A strategy over merged cells, kept at one cell of each class that queries distinguish."""
    merged = rows[:, flat.merged.representatives]
    return np.asarray(merged[np.any(merged != 0, axis=1)])


def merged_rows(choice: ProductChoice, reduction: Reduction) -> Floats:
    """What a small strategy measures, over the merged cells of its whole batch."""
    firsts = [
        np.array([int(np.flatnonzero(marks == value)[0]) for value in range(size)])
        for marks, size in zip(reduction.labels, reduction.batch.sizes, strict=True)
    ]
    sizes = [len(marks) for marks in reduction.labels]
    cells = np.zeros(1, dtype=np.int64)
    for first, size in zip(firsts, sizes, strict=True):
        cells = (cells[:, None] * size + first).reshape(-1)
    return np.asarray(choice.found.dense(sizes)[:, cells])


def tree_basis(n: int, branching: int) -> MarginalBasis:
    """The leaves of a tree and the totals of all its inner nodes."""
    nodes, blocks = 0, n
    while blocks > 1:
        blocks = math.ceil(blocks / branching)
        nodes += blocks
    if nodes * n > ARRAY * 2:
        raise UsageError(
            f"a tree over an attribute of {n:,} values has {nodes:,} inner nodes, and at most "
            f"{ARRAY * 2:,} of nodes × values can be held; choose a larger fanout, or best"
        )
    rows, width = [], branching
    while width < n * branching and n > 1:
        block = np.zeros((math.ceil(n / width), n))
        block[np.arange(n) // width, np.arange(n)] = 1.0
        rows.append(block)
        width *= branching
    return MarginalBasis.beside(np.vstack(rows) if rows else np.zeros((0, n)))
