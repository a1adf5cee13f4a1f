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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver
from lrm.planning.design.products.axes import Axis
from lrm.planning.design.products.basis import GramForms, ProductBasis, gram_factor
from lrm.planning.design.products.information import Limits, ResidualShares
from lrm.planning.design.products.parts import OwnRows, PartGrams, centring
from lrm.planning.design.products.quadratic import DENSE_VALUES, PairGram, Quadratic
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.planning.design.products.strategy import Group, Marginals, ProductStrategy
from lrm.planning.design.products.subsets import members_of, sums_over, tuples_of
from lrm.planning.design.products.trees import TreeBasis, is_tractable, level_spreads
from lrm.planning.solvers import settings
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.planning.solvers.products.grouping import (
    best_axes,
    group_terms,
    joint_terms,
    without_joint,
)
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import TINY, Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch

Subset = tuple[int, ...]

LimitsOn = Callable[[Sequence[Axis]], Limits | None]
"""The limits of a person's rows by group as some axes see them; None where these do not."""


@dataclass(frozen=True, eq=False)
class Gram:
    """What is optimised for one attribute: ``G = SᵀS`` with columns of S (r x n) of L2 norm 1."""

    columns: Floats

    @cached_property
    def matrix(self) -> Floats:
        """G."""
        return np.asarray(self.columns.T @ self.columns)

    @cached_property
    def inverse(self) -> Floats:
        """``H = G⁻¹``; a ``LinAlgError`` where it has no right digit."""
        low = np.tril(lapack.dpotri(gram_factor(self.matrix), lower=1)[0])
        return np.asarray(low + np.tril(low, -1).T, dtype=np.float64)

    def basis(self) -> ResidualBasis:
        """The residual basis that is measured."""
        return ResidualBasis.of_gram(self.matrix, self.inverse)


class GramStatistics(GramForms):
    """The Grams of one attribute under G, and the gradient by the columns of S."""

    def __init__(self, optimised: Gram, grams: Sequence[PairGram]) -> None:
        self.optimised = optimised
        h = optimised.inverse.sum(axis=1)
        phi = [float(np.vdot(optimised.inverse, gram.dense())) for gram in grams]
        self._images = [gram.dense() @ h for gram in grams]
        psi = [float(h @ image) for image in self._images]
        super().__init__(grams, float(h.sum()), np.array(phi), np.array(psi))

    def pull_back(self, by_residual: Floats, by_total: Floats, by_kappa: float) -> Floats:
        """The gradient by S (columns of norm 1 not yet enforced)."""
        alpha, beta, gamma = self.slopes(by_residual, by_total, by_kappa)
        Y = np.full(self.optimised.matrix.shape, gamma)
        for gram, image, a, b in zip(self.grams, self._images, alpha, beta, strict=True):
            Y += a * gram.dense() + b * (image[:, None] + image[None, :])
        H = self.optimised.inverse
        return np.asarray(-2.0 * self.optimised.columns @ (H @ Y @ H))


def residual_demands(
    quadratic: Quadratic, residuals: Marginals, batch: ProductBatch | None = None
) -> Floats:
    """``v_A`` of each subset; of one with rows of its own, the v that leads to its error."""
    shares = ResidualShares(quadratic, residuals.bases)
    demands = shares.demands
    if residuals.own and batch is not None:
        parts = PartGrams(batch, residuals.centres)
        subsets = {subset: k for k, subset in enumerate(_subsets(quadratic))}
        for subset in residuals.own.keys() & subsets.keys():
            k = subsets[subset]
            demands[k] = parts.error(subset, residuals.own[subset].estimator) / shares.spreads[k]
    return demands


def _subsets(quadratic: Quadratic) -> list[tuple[int, ...]]:
    return tuples_of(members_of(quadratic.index.masks, quadratic.d))


def residual_error(quadratic: Quadratic, bases: Sequence[ProductBasis] | None = None) -> float:
    """``(Σ_A sqrt(v_A·Π_{i∈A} κ_i))²``; identities by default."""
    identities = [ResidualBasis(n) for n in quadratic.sizes]
    return ResidualShares(quadratic, identities if bases is None else bases).error()


def optimise_gaussian_products(
    batch: ProductBatch,
    *,
    clock: Clock = UNLIMITED,
    max_rounds: int = 300,
    limits: LimitsOn | None = None,
) -> Group:
    """Find the residuals of least error under Gaussian noise, as one group of all terms.

    The weights are closed; the Grams of attributes with other factors than totals and
    identities are optimised by L-BFGS over columns of norm 1, from each attribute's own optimum,
    or from identities where these are better than what it leads to. Where queries add up products,
    subsets may then have Grams of their own. The weights are the best for ``limits`` of rows by
    group.

    Examples
    --------
    >>> from lrm.queries.maps.products.batch import cross_tabs
    >>> found = optimise_gaussian_products(cross_tabs([10, 8, 5], [1, 2]))
    >>> bool(found.error == found.bound)
    True
    """
    axes, reduced = best_axes(batch, _residual_root)
    quadratic = Quadratic(reduced)
    needy = [
        i
        for i, n in enumerate(quadratic.sizes)
        if n <= DENSE_VALUES and quadratic.needs_basis(i) and quadratic.affords_basis(i, n)
    ]
    bases = _with_trees(quadratic, [ResidualBasis(n) for n in quadratic.sizes])
    optimal = not any(quadratic.needs_basis(i) for i in range(quadratic.d))
    if needy:
        own_columns = [_own_columns(quadratic, i) for i in needy]
        optimised = _optimise_bases(quadratic, bases, needy, own_columns, clock, max_rounds)
        if residual_error(quadratic, optimised) > residual_error(quadratic, bases):
            plain = [np.eye(quadratic.sizes[i]) for i in needy]
            optimised = _optimise_bases(quadratic, bases, needy, plain, clock, max_rounds)
        bases = optimised
    start = Marginals(quadratic.index.masks[:0], np.zeros(0), tuple(bases))
    v = residual_demands(quadratic, start)
    if not reduced.simple and not optimal:
        roots = ResidualShares(quadratic, bases, v).roots
        nulls = {i: u for i in needy if (u := whole_null(bases[i].h)) is not None}
        start = replace(start, nulls=nulls)
        own_rows = find_own_rows(
            PartGrams(reduced, start.centres), _subsets(quadratic), roots, clock
        )
        mixed = {i for subset in own_rows for i in subset}
        start = replace(start, own=own_rows, nulls={i: nulls[i] for i in mixed & nulls.keys()})
        v = residual_demands(quadratic, start, reduced)
    limited = None if limits is None else limits(axes)
    start, optimal = replace(start, limits=limited), optimal and limited is None
    group = Group(np.arange(batch.terms), axes, start, 0.0, bound=float(optimal))
    return reweighed_residuals(quadratic, group, v)


def reweighed_residuals(quadratic: Quadratic, group: Group, v: Floats) -> Group:
    """The group with the same bases whose weights are best for the demands ``v``."""
    residuals = ResidualShares(quadratic, group.marginals.bases, v, group.marginals.limits)
    asked, error = v > 0, residuals.error()
    marginals = replace(
        group.marginals,
        sets=quadratic.index.masks[asked],
        weights=np.sqrt(residuals.shares[asked]),
        folds=np.zeros(int(asked.sum()), dtype=np.int64),
    )
    return replace(group, marginals=marginals, error=error, bound=error if group.bound else 0.0)


def _with_trees(quadratic: Quadratic, bases: list[ProductBasis]) -> list[ProductBasis]:
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
        # What a level of a tree has of the errors, at least: each must be measured.
        weights = np.maximum(spreads, 1e-8 * np.max(spreads)) ** 0.25
        tree = TreeBasis(n, np.asarray(weights / np.linalg.norm(weights)))
        candidate = [*bases[:i], tree, *bases[i + 1 :]]
        if residual_error(quadratic, candidate) < residual_error(quadratic, bases):
            bases = candidate
    return bases


def optimise_gaussian_groups(
    batch: ProductBatch,
    *,
    clock: Clock = UNLIMITED,
    statements: Sequence[frozenset[int]] = (),
    limits: LimitsOn | None = None,
) -> ProductStrategy:
    """Find residuals for all terms together, or for groups of terms that share little.

    ``statements`` are the terms of each, which may be kept together. Tables and totals alone gain
    nothing from groups: one is the optimum.
    """
    joint = joint_terms(batch)
    rest, others = without_joint(batch, joint, statements)
    if joint and (groups := _groups(batch, clock, statements, limits)):
        # All terms together would distinguish all combinations of long attributes.
        if not len(rest):
            return groups
        parts = [rest, *(np.array(sorted(terms)) for terms in joint)]
        apart = [
            replace(group, terms=part[group.terms])
            for part, own in zip(parts, [others, *([()] * len(joint))], strict=True)
            for group in optimise_gaussian_groups(
                batch.take(part), clock=clock, statements=own, limits=limits
            ).groups
        ]
        separate = ProductStrategy.combine(apart)
        return min(groups, separate, key=lambda candidate: candidate.error)
    together = ProductStrategy.combine(
        [optimise_gaussian_products(batch, clock=clock, limits=limits)]
    )
    if joint or clock.must_end() or together.bound:
        return together
    groups = _groups(batch, clock, statements, limits)
    return together if groups is None or together.error <= groups.error else groups


def _groups(
    batch: ProductBatch,
    clock: Clock,
    statements: Sequence[frozenset[int]],
    limits: LimitsOn | None,
) -> ProductStrategy | None:
    """Residuals for groups of terms; None where one group is as good, or time is up."""
    solved: dict[frozenset[frozenset[int]], ProductStrategy] = {}
    with contextlib.suppress(StopSolver):
        for corners in (True, False):
            grouping = group_terms(batch, clock, _residual_root, statements, corners=corners)
            if grouping is not None and frozenset(grouping.groups) not in solved:
                groups = solve_gaussian_groups(batch, grouping.groups, clock=clock, limits=limits)
                solved[frozenset(grouping.groups)] = groups
    return min(solved.values(), key=lambda groups: groups.error, default=None)


def solve_gaussian_groups(
    batch: ProductBatch,
    groups: Sequence[frozenset[int]],
    *,
    clock: Clock = UNLIMITED,
    limits: LimitsOn | None = None,
) -> ProductStrategy:
    """Residuals for given groups of terms."""
    solved = []
    for terms in map(np.array, map(sorted, groups)):
        group = optimise_gaussian_products(batch.take(terms), clock=clock, limits=limits)
        solved.append(replace(group, terms=terms))
    return ProductStrategy.combine(solved)


def _residual_root(batch: ProductBatch) -> float:
    return math.sqrt(residual_error(Quadratic(batch)))


def _optimise_bases(  # noqa: PLR0913, PLR0917 - one family of arguments
    quadratic: Quadratic,
    bases: list[ProductBasis],
    needy: Sequence[int],
    starts: Sequence[Floats],
    clock: Clock,
    max_rounds: int,
) -> list[ProductBasis]:
    shapes = [start.shape for start in starts]
    ends = np.cumsum([a * b for a, b in shapes])[:-1]
    inside = members_of(quadratic.index.masks, quadratic.d)
    best: list[tuple[float, list[Gram]]] = []
    # Attributes that keep their bases keep their numbers, too.
    others = {i: basis for i, basis in enumerate(bases) if i not in needy}
    numbers_of = {i: basis.numbers(quadratic.grams_of(i)) for i, basis in others.items()}
    spread_of = np.array([basis.kappa for basis in bases])

    def evaluate(x: Floats) -> tuple[float, Floats]:
        columns = [p.reshape(s) for p, s in zip(np.split(x, ends), shapes, strict=True)]
        norms = [np.sqrt((c * c).sum(axis=0)) for c in columns]
        current = [Gram(c / norm) for c, norm in zip(columns, norms, strict=True)]
        try:
            statistics = {
                i: GramStatistics(gram, quadratic.grams_of(i))
                for i, gram in zip(needy, current, strict=True)
            }
        except np.linalg.LinAlgError:  # a Gram that is not positive definite is no candidate
            clock.tick(Step("products", 0))
            return np.inf, np.zeros_like(x)
        for i, each in statistics.items():
            numbers_of[i] = each.residual, each.total
            spread_of[i] = max(each.kappa - 1.0, TINY)
        residual, total = quadratic.gathered([numbers_of[i] for i in range(quadratic.d)])
        v = quadratic.demands(residual, total)
        spread = np.exp(sums_over(inside, np.log(spread_of)))
        roots = np.sqrt(v * spread)
        root_sum = roots.sum()
        value = 2 * float(np.log(root_sum))
        if not best or value < best[0][0]:
            best[:] = [(value, current)]
        clock.tick(Step.of_log("products", value))
        slope = np.sqrt(spread / np.maximum(v, TINY)) / root_sum
        slope[v <= 0] = 0.0
        by_r, by_s = quadratic.pull_back(residual, total, slope)
        by_log_spread = (roots / root_sum) @ inside
        gradients = []
        for i, norm in zip(needy, norms, strict=True):
            statistic, numbers = statistics[i], quadratic.of_attribute(i)
            by_kappa = float(by_log_spread[i]) / (statistic.kappa - 1.0)
            raw = statistic.pull_back(by_r[numbers], by_s[numbers], by_kappa)
            S = statistic.optimised.columns
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
    if not best:
        return bases
    found = dict(zip(needy, best[0][1], strict=True))
    return [found[i].basis() if i in found else basis for i, basis in enumerate(bases)]


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
    # Finer ones gain nothing, and leave fewer bits for the rows.
    integers = np.rint(h * (64 / np.abs(h).max())).astype(np.int64)
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
        # About 20 CPU s (`python -m benchmarks products affine`).
        if work > 4e9 or clock.must_end():
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
    # Eigenvalues of a Gram below this share of the largest one are rounding.
    positive = values > 1e-10 * values[-1]
    if not values[-1] > 0:
        return None
    part = np.sqrt(values[positive])[:, None] * vectors[:, positive].T
    optimum = optimise_gaussian(part, tolerance=2e-3, clock=clock)
    # An orthonormal basis of the other rows that are 0 on u along each axis.
    space = kronecker(_orthogonal(u) for u in nulls)
    inside = np.linalg.qr(space @ optimum.L.T)[0]
    complement = np.linalg.svd(inside, full_matrices=True)[0][:, inside.shape[1] :].T @ space
    # Size of the rows that no query asks for; a hundredth costs 1e-4 of the error.
    rows = np.vstack([optimum.L, 0.01 * complement])
    return OwnRows(rows / np.linalg.norm(rows, axis=0).max(), nulls)


def _orthogonal(u: Floats) -> Floats:
    """An orthonormal basis of the rows that are 0 on u."""
    return np.linalg.svd(u[None, :], full_matrices=True)[2][1:]
