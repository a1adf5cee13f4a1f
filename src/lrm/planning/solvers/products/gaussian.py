"""Gaussian noise on products: closed-form weights of residuals, optimised Gram per attribute.

With a Gram ``G_i = S_iᵀS_i`` of unit diagonal per attribute, ``H_i = G_i⁻¹``, ``κ_i = 1ᵀH_i1`` and
``v_A`` as for Laplace noise, measure for every subset A the residual
``ω_A · ⊗_{i∈A} R_i ⊗_{i∉A} 1ᵀ`` with ``R_iᵀR_i = G_i − 11ᵀ/κ_i``. Its columns have equal L2
norms, the best ``ω_A`` are closed, and ``err = (Σ_A sqrt(v_A·Π_{i∈A}(κ_i − 1)))²``. Where all
``G_i`` are the identity and all factors are totals or identities, this is the optimum over all
strategies [1]_.

Where queries add up products (``x + y <= c``, ``OR``), one Gram per attribute may be far from the
best for the part of the queries on a subset A. With the same u_i (``h_i/κ_i`` of the Grams) the
parts of different subsets do not overlap, so each can be measured by the optimum of its own convex
program, and the error is ``(Σ_A sqrt(err_A))²`` with the smaller of both errors for each A.

See ``docs/explanation/products.md``.

References
----------
.. [1] Xiao, He, Zhang, Kifer, "An optimal and scalable matrix mechanism for noisy marginals under
   convex loss functions" (ResidualPlanner), NeurIPS 2023, arXiv:2305.08175.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver
from lrm.planning.design.products.parts import OwnRows, PartGrams, centring
from lrm.planning.design.products.quadratic import DENSE_VALUES, PairGram, Quadratic
from lrm.planning.design.products.residuals import GaussianGroups, GaussianStrategy, GramBasis
from lrm.planning.design.products.strategy import merged_axes
from lrm.planning.design.products.subsets import members_of, sums_over, tuples_of
from lrm.planning.design.products.trees import is_tractable, level_spreads
from lrm.planning.solvers import settings
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.planning.solvers.products.grouping import group_terms, joint_terms, without_joint
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import TINY, Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch

Subset = tuple[int, ...]

#: What a level of a tree has of the errors, at least: each must be measured.
LEAST_SPREAD = 1e-8

#: Size of the rows that no query asks for; a hundredth costs 1e-4 of the error.
UNASKED = 0.01
#: Eigenvalues of a Gram below this share of the largest one are rounding.
LEAST_VALUE = 1e-10


class _Statistics:
    """r, s and κ of one attribute's Grams, and the gradient by S."""

    def __init__(self, basis: GramBasis, grams: Sequence[PairGram]) -> None:
        self.basis, self.grams = basis, grams
        h, kappa = basis.h, basis.kappa
        if basis.levels is not None:  # of a tree, which is not optimised any further
            spread, self.total = basis.residual().numbers(grams)
            self.residual = spread / basis.norm**2
            return
        if basis.columns is None:
            self.phi = np.array([float(g.squares.sum()) for g in grams])
            ones = np.ones((basis.size, 1))
            self._images = [g.times(ones)[:, 0] for g in grams]
        else:
            self.phi = np.array([float(np.vdot(basis.inverse, g.dense())) for g in grams])
            self._images = [g.dense() @ h for g in grams]
        self.psi = np.array([float(h @ image) for image in self._images])
        self.tells = np.array([g.tells for g in grams], dtype=bool)
        self.total = self.psi / kappa**2
        self.residual = np.where(self.tells, (self.phi - self.psi / kappa) / kappa, 0.0)

    def pull_back(self, by_residual: Floats, by_total: Floats, by_kappa: float) -> Floats:
        """The gradient by S (columns of norm 1 not yet enforced)."""
        kappa = self.basis.kappa
        by_residual = np.where(self.tells, by_residual, 0.0)
        alpha, beta = by_residual / kappa, (by_total - by_residual) / kappa**2
        gamma = by_kappa + float(
            by_residual @ (2 * self.psi / kappa - self.phi) / kappa**2
            - 2 * by_total @ self.psi / kappa**3
        )
        Y = np.full((self.basis.size, self.basis.size), gamma)
        for gram, image, a, b in zip(self.grams, self._images, alpha, beta, strict=True):
            Y += a * gram.dense() + b * (image[:, None] + image[None, :])
        H = self.basis.inverse
        assert self.basis.columns is not None  # noqa: S101 - the identity is not optimised
        return np.asarray(-2.0 * self.basis.columns @ (H @ Y @ H))


def _evaluate(
    quadratic: Quadratic, bases: Sequence[GramBasis], known: Mapping[int, _Statistics] | None = None
) -> tuple[dict[int, _Statistics], Floats, Floats, Floats, Floats]:
    statistics, residual, total = {}, np.zeros(len(quadratic.grams)), np.zeros(len(quadratic.grams))
    for i, basis in enumerate(bases):
        if numbers := quadratic.of_attribute(i):
            if known and known[i].basis is basis:
                statistics[i] = known[i]
            else:
                statistics[i] = _Statistics(basis, [quadratic.grams[g] for g in numbers])
            residual[numbers], total[numbers] = statistics[i].residual, statistics[i].total
    v = quadratic.demands(residual, total)
    return statistics, residual, total, v, _spread(quadratic, bases)


def _spread(quadratic: Quadratic, bases: Sequence[GramBasis]) -> Floats:
    """``Π_{i∈A}(κ_i − 1)`` of each subset A."""
    inside = members_of(quadratic.index.masks, quadratic.d)
    logs = np.log(np.maximum([basis.kappa - 1.0 for basis in bases], TINY))
    return np.asarray(np.exp(sums_over(inside, logs)))


def residual_demands(
    quadratic: Quadratic, strategy: GaussianStrategy, batch: ProductBatch | None = None
) -> Floats:
    """``v_A`` of each subset; of one with rows of its own, the v that leads to its error."""
    *_, v, spread = _evaluate(quadratic, strategy.bases)
    if strategy.own and batch is not None:
        parts = PartGrams(batch, strategy.centres)
        subsets = {subset: k for k, subset in enumerate(_subsets(quadratic))}
        for subset in strategy.own.keys() & subsets.keys():
            k = subsets[subset]
            v[k] = parts.error(subset, strategy.own[subset].estimator) / spread[k]
    return v


def _subsets(quadratic: Quadratic) -> list[tuple[int, ...]]:
    return tuples_of(members_of(quadratic.index.masks, quadratic.d))


def residual_shares(
    quadratic: Quadratic, bases: Sequence[GramBasis], v: Floats
) -> tuple[Floats, Floats]:
    """The best share of each subset in the squared L2 norm, and what 1 of v costs there."""
    spread = _spread(quadratic, bases)
    share = np.sqrt(v * spread)
    share /= share.sum()
    return share, np.divide(spread, share, out=np.zeros(len(v)), where=share > 0)


def residual_error(quadratic: Quadratic, bases: Sequence[GramBasis] | None = None) -> float:
    """``(Σ_A sqrt(v_A·Π_{i∈A}(κ_i − 1)))²``; identities by default."""
    if bases is None:
        bases = [GramBasis(n) for n in quadratic.sizes]
    *_, v, spread = _evaluate(quadratic, bases)
    return float(np.sqrt(v * spread).sum() ** 2)


def optimise_gaussian_products(
    batch: ProductBatch,
    *,
    clock: Clock = UNLIMITED,
    max_rounds: int = 300,
) -> GaussianStrategy:
    """Find the residual strategy of least error under Gaussian noise.

    The weights are closed; the Grams of attributes with other factors than totals and
    identities are optimised by L-BFGS over columns of norm 1, from each attribute's own optimum,
    or from identities where these are better than what it leads to. Where queries add up products,
    subsets may then have Grams of their own.

    Examples
    --------
    >>> from lrm.queries.maps.products.batch import cross_tabs
    >>> found = optimise_gaussian_products(cross_tabs([10, 8, 5], [1, 2]))
    >>> bool(found.error == found.bound)
    True
    """
    axes, reduced = merged_axes(batch)
    quadratic = Quadratic(reduced)
    needy = [
        i
        for i, n in enumerate(quadratic.sizes)
        if n <= DENSE_VALUES and quadratic.needs_basis(i) and quadratic.affords_basis(i, n)
    ]
    bases = _with_trees(quadratic, [GramBasis(n) for n in quadratic.sizes])
    optimal = not any(quadratic.needs_basis(i) for i in range(quadratic.d))
    if needy:
        own_columns = [_own_columns(quadratic, i) for i in needy]
        optimised = _optimise_bases(quadratic, bases, needy, own_columns, clock, max_rounds)
        if residual_error(quadratic, optimised) > residual_error(quadratic, bases):
            plain = [np.eye(quadratic.sizes[i]) for i in needy]
            optimised = _optimise_bases(quadratic, bases, needy, plain, clock, max_rounds)
        bases = optimised
    empty = np.zeros(0)
    start = GaussianStrategy(
        axes, tuple(bases), quadratic.index.masks[:0], empty, 0.0, float(optimal)
    )
    v = residual_demands(quadratic, start)
    if not reduced.simple and not optimal:
        roots = np.sqrt(v * _spread(quadratic, bases))
        nulls = {i: u for i in needy if (u := whole_null(bases[i].h)) is not None}
        start = replace(start, nulls=nulls)
        own_rows = find_own_rows(
            PartGrams(reduced, start.centres), _subsets(quadratic), roots, clock
        )
        mixed = {i for subset in own_rows for i in subset}
        start = replace(start, own=own_rows, nulls={i: nulls[i] for i in mixed & nulls.keys()})
        v = residual_demands(quadratic, start, reduced)
    return residual_strategy(quadratic, start, v)


def residual_strategy(
    quadratic: Quadratic, strategy: GaussianStrategy, v: Floats
) -> GaussianStrategy:
    """The strategy with the same bases whose weights are best for the demands ``v``."""
    share, variances = residual_shares(quadratic, strategy.bases, v)
    nonzero = v > 0
    subsets = quadratic.index.masks[nonzero]
    kappas = np.array([basis.kappa for basis in strategy.bases])
    inside = members_of(subsets, len(kappas))
    norms = np.exp(sums_over(inside, np.log(np.maximum(1.0 - 1.0 / kappas, TINY))))
    error = float(v @ variances)
    return replace(
        strategy,
        subsets=subsets,
        weights=np.sqrt(share[nonzero] / norms),
        error=error,
        bound=error if strategy.bound else 0.0,
    )


def _with_trees(quadratic: Quadratic, bases: list[GramBasis]) -> list[GramBasis]:
    """Differences along a tree in place of identities of many values, where that has less error."""
    for i, n in enumerate(quadratic.sizes):
        grams = [quadratic.grams[g] for g in quadratic.of_attribute(i)]
        if n <= DENSE_VALUES or not quadratic.needs_basis(i) or not all(map(is_tractable, grams)):
            continue
        spreads = sum(
            level_spreads(gram.left) / max(float(gram.squares.sum()), 1e-300)
            for gram in grams
            if gram.tells and gram.left is gram.right
        )
        weights = np.maximum(spreads, LEAST_SPREAD * np.max(spreads)) ** 0.25
        tree = GramBasis(n, levels=np.asarray(weights / np.linalg.norm(weights)))
        candidate = [*bases[:i], tree, *bases[i + 1 :]]
        if residual_error(quadratic, candidate) < residual_error(quadratic, bases):
            bases = candidate
    return bases


def optimise_gaussian_groups(
    batch: ProductBatch,
    *,
    clock: Clock = UNLIMITED,
    statements: Sequence[frozenset[int]] = (),
) -> GaussianGroups:
    """Find residual strategies for all terms together, or for groups of terms that share little.

    ``statements`` are the terms of each, which may be kept together. Tables and totals alone gain
    nothing from groups: one is the optimum.
    """
    joint = joint_terms(batch)
    rest, others = without_joint(batch, joint, statements)
    if joint and (groups := _groups(batch, clock, statements)):
        # All terms together would distinguish all combinations of long attributes.
        if not len(rest):
            return groups
        parts = [rest, *(np.array(sorted(terms)) for terms in joint)]
        solved = [
            optimise_gaussian_groups(batch.take(part), clock=clock, statements=own)
            for part, own in zip(parts, [others, *([()] * len(joint))], strict=True)
        ]
        terms = (part[own] for part, some in zip(parts, solved, strict=True) for own in some.terms)
        apart = GaussianGroups(tuple(terms), tuple(one for some in solved for one in some.groups))
        return min(groups, apart, key=lambda candidate: candidate.error)
    single_group = optimise_gaussian_products(batch, clock=clock)
    together = GaussianGroups((np.arange(batch.terms),), (single_group,), single_group.bound)
    if joint or clock.must_end() or single_group.bound:
        return together
    groups = _groups(batch, clock, statements)
    return together if groups is None or together.error <= groups.error else groups


def _groups(
    batch: ProductBatch, clock: Clock, statements: Sequence[frozenset[int]]
) -> GaussianGroups | None:
    """Residual strategies for groups of terms; None where one group is as good, or time is up."""
    solved: dict[frozenset[frozenset[int]], GaussianGroups] = {}
    with contextlib.suppress(StopSolver):
        for corners in (True, False):
            grouping = group_terms(batch, clock, _residual_root, statements, corners=corners)
            if grouping is not None and frozenset(grouping.groups) not in solved:
                groups = solve_gaussian_groups(batch, grouping.groups, clock=clock)
                solved[frozenset(grouping.groups)] = groups
    return min(solved.values(), key=lambda groups: groups.error, default=None)


def solve_gaussian_groups(
    batch: ProductBatch, groups: Sequence[frozenset[int]], *, clock: Clock = UNLIMITED
) -> GaussianGroups:
    """Residual strategies for given groups of terms."""
    terms = tuple(np.array(sorted(group)) for group in groups)
    parts = tuple(
        optimise_gaussian_products(batch.take(part_terms), clock=clock) for part_terms in terms
    )
    return GaussianGroups(terms, parts)


def _residual_root(batch: ProductBatch) -> float:
    return math.sqrt(residual_error(Quadratic(batch)))


def _optimise_bases(  # noqa: PLR0913, PLR0917 - one family of arguments
    quadratic: Quadratic,
    bases: list[GramBasis],
    needy: Sequence[int],
    starts: Sequence[Floats],
    clock: Clock,
    max_rounds: int,
) -> list[GramBasis]:
    shapes = [start.shape for start in starts]
    ends = np.cumsum([a * b for a, b in shapes])[:-1]
    inside = members_of(quadratic.index.masks, quadratic.d).astype(np.float64)
    best: list[tuple[float, list[GramBasis]]] = []
    known = _evaluate(quadratic, bases)[0]  # of the attributes that keep their bases

    def evaluate(x: Floats) -> tuple[float, Floats]:
        columns = [p.reshape(s) for p, s in zip(np.split(x, ends), shapes, strict=True)]
        norms = [np.sqrt((c * c).sum(axis=0)) for c in columns]
        current = list(bases)
        for i, c, norm in zip(needy, columns, norms, strict=True):
            current[i] = GramBasis(quadratic.sizes[i], c / norm)
        try:
            statistics, residual, total, v, spread = _evaluate(quadratic, current, known)
        except np.linalg.LinAlgError:  # a Gram that is not positive definite is no candidate
            clock.tick(Step("products", 0))
            return np.inf, np.zeros_like(x)
        roots = np.sqrt(v * spread)
        root_sum = roots.sum()
        value = 2 * float(np.log(root_sum))
        if not best or value < best[0][0]:
            best[:] = [(value, current)]
        clock.tick(Step.of_log("products", value))
        slope = np.sqrt(spread / np.maximum(v, TINY)) / root_sum
        slope[v <= 0] = 0.0
        by_r, by_s = quadratic.pull_back(residual, total, slope)
        by_log_spread = inside.T @ (roots / root_sum)
        gradients = []
        for i, norm in zip(needy, norms, strict=True):
            statistic, numbers = statistics[i], quadratic.of_attribute(i)
            by_kappa = float(by_log_spread[i]) / (statistic.basis.kappa - 1.0)
            raw = statistic.pull_back(by_r[numbers], by_s[numbers], by_kappa)
            S = np.asarray(statistic.basis.columns)
            gradients.append(((raw - S * np.einsum("ij,ij->j", S, raw)) / norm).ravel())
        return value, np.concatenate(gradients)

    with contextlib.suppress(StopSolver):
        minimize(
            evaluate,
            np.concatenate([start.ravel() for start in starts]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_rounds, "ftol": 1e-7, "gtol": 1e-9, "maxcor": 15},
        )
    return best[0][1] if best else bases


def _own_columns(quadratic: Quadratic, attribute: int) -> Floats:
    """The columns of ``M^(1/4)`` for the attribute's mean Gram, scaled to norm 1.

    Under Gaussian noise ``G ∝ M^(1/2)`` is the optimum where its diagonal is constant.
    """
    grams = [quadratic.grams[g] for g in quadratic.of_attribute(attribute) if quadratic.tells[g]]
    mix = sum((g.dense() / max(float(g.squares.sum()), TINY) for g in grams), np.zeros(()))
    values, vectors = np.linalg.eigh(np.asarray(mix))
    root = np.maximum(values, 1e-6 * values[-1]) ** 0.25
    columns = (vectors * root) @ vectors.T
    return np.asarray(columns / np.sqrt((columns * columns).sum(axis=0)))


def whole_null(h: Floats) -> Integers | None:
    """Small whole numbers near to h, on which own rows will be 0 exactly; None if they cancel."""
    integers = np.rint(h * (settings.OWN_NULL / np.abs(h).max())).astype(np.int64)
    return integers if integers.sum() > 0 else None


def find_own_rows(
    parts: PartGrams, subsets: Sequence[Subset], roots: Floats, clock: Clock
) -> dict[Subset, OwnRows]:
    """Rows for the subsets that have less error with a Gram of their own.

    ``roots`` are those of the error of each with one Gram per attribute, which subsets keep that
    are not looked at before the clock ends.
    """
    own: dict[Subset, OwnRows] = {}
    work = 0.0
    for subset, root in zip(subsets, roots.tolist(), strict=True):
        n = math.prod(len(parts.nulls[i]) for i in subset)
        if not 1 < n <= settings.OWN_CELLS or not parts.has_sums(subset):
            continue
        work += float(n) ** 3
        if work > settings.OWN_WORK or clock.must_end():
            break
        rows = _optimum(parts.of(subset), tuple(parts.nulls[i] for i in subset), clock)
        if rows is not None and parts.error(subset, rows.estimator) < settings.OWN_GAIN * root**2:
            own[subset] = rows
    return own


def _optimum(gram: Floats, nulls: tuple[Floats, ...], clock: Clock) -> OwnRows | None:
    """The best rows for the part of queries with this Gram; None where it is 0.

    A little of all that the queries do not ask for is measured too: rounded rows of less than full
    rank would not determine the answers.
    """
    projector = centring(nulls)
    values, vectors = np.linalg.eigh(projector.T @ gram @ projector)
    positive = values > LEAST_VALUE * values[-1]
    if not values[-1] > 0:
        return None
    part = np.sqrt(values[positive])[:, None] * vectors[:, positive].T
    optimum = optimise_gaussian(part, tolerance=settings.OWN_TOLERANCE, clock=clock)
    # An orthonormal basis of the other rows that are 0 on u along each axis.
    space = kronecker(_orthogonal(u) for u in nulls)
    inside = np.linalg.qr(space @ optimum.L.T)[0]
    complement = np.linalg.svd(inside, full_matrices=True)[0][:, inside.shape[1] :].T @ space
    rows = np.vstack([optimum.L, UNASKED * complement])
    return OwnRows(rows / np.linalg.norm(rows, axis=0).max(), nulls)


def _orthogonal(u: Floats) -> Floats:
    """An orthonormal basis of the rows that are 0 on u."""
    return np.linalg.svd(u[None, :], full_matrices=True)[2][1:]
