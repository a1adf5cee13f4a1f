"""Information: λ of each subset of attributes, the error, and its gradients, for both norms.

The queries of a batch ask ``v_A`` of each subset A (`Quadratic.demands`, by the r and s of the
bases), and the error of a strategy of sensitivity 1 is ``Σ_A v_A/λ_A``. What is measured decides λ:

===========================  ==============================  =================================
norm, what is measured       sets that inform about A        λ_A
===========================  ==============================  =================================
L1, marginals                those that contain it, ⊇        ``Σ_{B⊇A} θ_B²·Π_{i∈B} 1/κ_i``
L1, folded marginals         those of them of its parity     twice that
L2, residuals                itself alone, =                 ``ω_A²·Π_{i∈A} 1/κ_i``
===========================  ==============================  =================================

The weights θ of marginals are found by descent (`SetWeights`; `Neighbours` scores others), those
of residuals have a closed form (`ResidualShares`). What a group tells, in real or in whole
numbers, is its `Information`.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lrm.errors import UnsupportedQuery
from lrm.planning.design.products.basis import (
    BasisStatistics,
    GramForms,
    MarginalBasis,
    ProductBasis,
)
from lrm.planning.design.products.parts import PartGrams
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.subsets import (
    Masks,
    SubsetIndex,
    contained,
    masks_of,
    members_of,
    sums_over,
    tuples_of,
)
from lrm.planning.limits import Held
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import Factors, ProductBatch

Subset = tuple[int, ...]

MANY_AXES = 6
"""From this number of axes on, all subsets of a product are answered at once, not one by one."""

#: Logarithm of the least weight, as a share of the largest, that a descent looks at.
LEAST_LOG = -25.0


@dataclass(frozen=True, eq=False)
class FixedBases:
    """Everything that θ is chosen by, at fixed bases: v per subset, and 1/κ per attribute."""

    quadratic: Quadratic
    bases: tuple[ProductBasis, ...]
    statistics: list[GramForms]
    residual: Floats
    total: Floats
    v: Floats
    log_kappa: Floats

    @classmethod
    def at(cls, quadratic: Quadratic, bases: Sequence[ProductBasis] | None = None) -> FixedBases:
        """The point of some bases; identities by default."""
        if bases is None:
            bases = [MarginalBasis.identity(n) for n in quadratic.sizes]
        statistics = [basis.statistics(quadratic.grams_of(i)) for i, basis in enumerate(bases)]
        residual, total = quadratic.gathered([(s.residual, s.total) for s in statistics])
        # Rows of a million times a cell leave no digits of κ; such a point is far from any good.
        # κ of every basis with columns of L1 norm 1 is at least 1, but for rounding.
        kappas = np.maximum([basis.kappa for basis in bases], 0.5)
        v = quadratic.demands(residual, total)
        return cls(quadratic, tuple(bases), statistics, residual, total, v, np.log(kappas))

    def set_factors(self, sets: Masks) -> Floats:
        """``w_B = Π_{i∈B} 1/κ_i`` of each set, twice that if it is folded."""
        factors = np.exp(-sums_over(members_of(sets, len(self.log_kappa)), self.log_kappa))
        if self.quadratic.folded:
            factors = np.where(self.quadratic.unfolded(sets), factors, 2.0 * factors)
        return np.asarray(factors)


class SetWeights:
    """The error as a function of the weights θ of some sets, at a fixed point."""

    def __init__(self, point: FixedBases, sets: Masks) -> None:
        self.point, self.sets = point, sets
        self.inside = point.quadratic.index.inside(sets)
        self.factors = point.set_factors(sets)

    def information(self, theta: Floats) -> Floats:
        """λ of every subset."""
        return np.asarray(self.inside @ (theta * theta * self.factors))

    def error(self, theta: Floats) -> float:
        """``(Σθ)²·Σ v/λ``; infinite where a subset that is asked for is in no set."""
        information = self.information(theta)
        v = self.point.v
        if np.any((information <= 0) & (v > 0)):
            return np.inf
        needed = v > 0
        return float(theta.sum() ** 2 * np.sum(v[needed] / information[needed]))

    def error_and_gain(self, theta: Floats) -> tuple[float, Floats]:
        """``F = Σ v/λ`` and ``g_B = w_B·Σ_{A⊆B} v_A/λ_A²``, so that ``∂F/∂θ_B = −2·θ_B·g_B``."""
        information = self.information(theta)
        needed = self.point.v > 0
        information = np.where(needed, np.maximum(information, 1e-140), 1.0)
        share = np.where(needed, self.point.v / information, 0.0)
        slope = share / information
        return float(share.sum()), np.asarray(self.factors * (self.inside.T @ slope))

    def log_error(self, logs: Floats) -> tuple[float, Floats]:
        """The logarithm of the error, and its gradient by log θ."""
        # A smaller weight changes nothing that float64 shows, and its square might underflow.
        theta = np.exp(np.maximum(logs - logs.max(), LEAST_LOG))
        cost, gain = self.error_and_gain(theta)
        theta_sum = theta.sum()
        return (
            float(2 * np.log(theta_sum) + np.log(cost)),
            np.asarray(2 * theta / theta_sum - 2 * theta * theta * gain / cost),
        )

    def basis_gradients(self, theta: Floats) -> tuple[float, Floats, list[Floats]]:
        """The log error, its gradient by log θ, and by the extra rows of each basis."""
        point = self.point
        value, by_logs = self.log_error(np.log(theta))
        information = self.information(theta)
        cost = float(np.exp(value)) / theta.sum() ** 2
        needed = point.v > 0
        inverse = np.divide(1.0, information, out=np.zeros_like(information), where=needed)
        by_r, by_s = point.quadratic.pull_back(point.residual, point.total, inverse / cost)
        # −Σ_A v/λ² · θ_B²·w_B, spread over the members of B, is the slope by log κ, negated.
        slope = self.inside.T @ (point.v * inverse**2)
        by_set = theta**2 * self.factors * slope / cost
        by_log_kappa = by_set @ members_of(self.sets, len(point.log_kappa))
        gradients = []
        for i, statistic in enumerate(point.statistics):
            assert isinstance(statistic, BasisStatistics)  # noqa: S101 - what a search moves
            numbers = point.quadratic.of_attribute(i)
            by_kappa = float(by_log_kappa[i]) / statistic.basis.kappa
            gradients.append(statistic.pull_back(by_r[numbers], by_s[numbers], by_kappa))
        return value, by_logs, gradients


class Neighbours:
    """The error after each of many changes of one family: sets go, and one comes.

    What `SetWeights` is for one family, over the subsets that are asked for alone, with a column
    for each change.
    """

    def __init__(self, point: FixedBases, sets: Masks) -> None:
        needed = point.v > 0
        self._point, self._masks = point, point.quadratic.index.masks[needed]
        self._v = point.v[needed, None]
        self._inside = contained(self._masks, sets).astype(np.float64)
        self._factors = point.set_factors(sets)[:, None]

    def chunks(self, changes: int) -> Iterator[slice]:
        """Yield ranges of changes whose arrays stay in the cache."""
        width = max(1, (1 << 18) // max(1, len(self._masks)))
        for first in range(0, changes, width):
            yield slice(first, first + width)

    def _informed(self, added: Masks) -> tuple[Floats, Floats]:
        """Which subsets each added set contains, and its factor."""
        return contained(self._masks, added).astype(np.float64), self._point.set_factors(added)

    def _log_error(self, theta_sum: Floats, share: Floats) -> Floats:
        """``2·log Σθ + log Σ v/λ``, of each column."""
        return np.asarray(2 * np.log(theta_sum) + np.log(share.sum(axis=0)))

    def scored(
        self, theta: Floats, removed: Integers, added: Masks, steps: Floats
    ) -> tuple[Floats, Floats]:
        """The least log error for some weights of the added set, and that weight.

        Of sets with weights θ up to two go (−1: none); ``steps`` is changes x weights. The weights
        of the others stay.
        """
        # A row of zeros stands for "nothing removed".
        part_of = np.hstack([self._inside * (theta**2 * self._factors[:, 0]), 0 * self._v])
        shares, information = np.append(theta, 0.0), part_of.sum(axis=1)[:, None]
        left = theta.sum() - shares[removed].sum(axis=1)
        base = information - part_of[:, removed[:, 0]] - part_of[:, removed[:, 1]]
        base[base < 1e-9 * information] = 0.0
        new, factor = self._informed(added)
        with np.errstate(divide="ignore"):
            tried = [
                self._log_error(left + step, self._v / (base + new * (step**2 * factor)))
                for step in steps.T
            ]
        best = np.argmin(tried, axis=0)
        each = np.arange(len(best))
        return np.array(tried)[best, each], steps[each, best]

    def settled(self, theta: Floats, added: Masks, start: Floats, rounds: int) -> Floats:
        """Log errors after a few rounds of separable minimisation.

        Change c leaves the sets with the weights ``theta[:, c]`` (0: removed), and adds
        ``added[c]`` with the weight ``start[c]`` (0: none).
        """
        new, new_factors = self._informed(added)
        weights, best = np.vstack([theta, start]), np.full(len(added), np.inf)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for step in range(rounds + 1):
                squares = weights * weights
                information = self._inside @ (squares[:-1] * self._factors)
                information += new * (squares[-1] * new_factors)
                share = self._v / information
                best = self._log_error(weights.sum(axis=0), share)
                if step == rounds:
                    break
                slope = share / information
                pulled = new_factors * np.einsum("ac,ac->c", new, slope)
                gain = np.vstack([self._factors * (self._inside.T @ slope), pulled])
                weights = weights * np.cbrt(weights * np.nan_to_num(gain, posinf=0.0))
                weights = weights / weights.sum(axis=0)
        return np.where(np.isfinite(best), best, np.inf)


class Limits(Protocol):
    """Limits of a person's rows by group."""

    def shares(
        self, roots: Floats, bases: Sequence[ProductBasis], members: NDArray[np.bool_], /
    ) -> Floats:
        """The best ω² of subsets by the `roots` of their errors."""
        ...


class ResidualShares:
    """The best shares of residuals in the squared L2 norm, which have a closed form.

    With bases whose columns have norm 1, subset A measured with the share ω_A² of the sensitivity
    has the information ``λ_A = ω_A²/Π_{i∈A} κ_i``, and ``Σ v_A/λ_A`` is least,
    ``(Σ_A sqrt(v_A·Π κ_i))²``, where ω_A² is in proportion to these roots. It is for the L2 norm
    what `SetWeights` is for L1.

    Parameters
    ----------
    quadratic
        What the queries ask of each subset.
    bases
        One per attribute, in real numbers or rounded.
    demands
        v where it is known: of other weights of terms, or of subsets with rows of their own.
    limits
        Limits of a person's rows by group, under which the shares have no closed form.
    """

    def __init__(
        self,
        quadratic: Quadratic,
        bases: Sequence[ProductBasis],
        demands: Floats | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.quadratic, self._bases, self._demands = quadratic, list(bases), demands
        self._limits = limits
        self._inside = members_of(quadratic.index.masks, quadratic.d)
        self._kappas = np.array([basis.kappa for basis in bases])

    @cached_property
    def _numbers(self) -> list[tuple[Floats, Floats]]:
        grams_of = self.quadratic.grams_of
        return [basis.numbers(grams_of(i)) for i, basis in enumerate(self._bases)]

    def put(self, i: int, basis: ProductBasis) -> None:
        """Set the basis of one attribute."""
        self._numbers[i] = basis.numbers(self.quadratic.grams_of(i))
        self._kappas[i] = basis.kappa

    @property
    def demands(self) -> Floats:
        """``v_A`` of each subset."""
        if self._demands is not None:
            return self._demands
        return self.quadratic.demands(*self.quadratic.gathered(self._numbers))

    @property
    def spreads(self) -> Floats:
        """``Π_{i∈A} κ_i`` of each subset."""
        return np.asarray(np.exp(sums_over(self._inside, np.log(self._kappas))))

    @property
    def roots(self) -> Floats:
        """``sqrt(v_A·Π κ_i)`` of each subset, whose sum is the root of the least error."""
        return np.asarray(np.sqrt(self.demands * self.spreads))

    @property
    def shares(self) -> Floats:
        """ω² of each subset."""
        roots = self.roots
        if self._limits is not None and roots.any():
            return self._limits.shares(roots, self._bases, self._inside)
        return np.asarray(roots / roots.sum())

    @property
    def variances(self) -> Floats:
        """``1/λ_A`` of each subset, 0 where nothing is asked for."""
        shares = self.shares
        return np.divide(self.spreads, shares, out=np.zeros(len(shares)), where=shares > 0)

    def error(self) -> float:
        """The least error with these bases."""
        if self._limits is None:
            return float(self.roots.sum() ** 2)
        return float(self.demands @ self.variances)


class Information:
    """The information λ of the measured sets of a group on each subset of its axes.

    A set of marginals informs about every subset of it; a set of residuals (``residual``) about
    itself alone. ``unmixing`` leads from what is measured of a mixed set to what the product of its
    bases would measure.
    """

    def __init__(  # noqa: PLR0913 - one family of arguments
        self,
        bases: Sequence[ProductBasis],
        members: NDArray[np.bool_],
        weights: Floats,
        *,
        residual: bool = False,
        folds: Integers | None = None,
        unmixing: Mapping[int, Floats] | None = None,
    ) -> None:
        self.unmixing = {} if unmixing is None else unmixing
        self.bases, self.weights, self.residual = tuple(bases), weights, residual
        self.folds = np.zeros(len(weights), dtype=np.int64) if folds is None else folds
        self._mirrored = np.array([basis.mirrored for basis in self.bases])
        self._inside = np.ascontiguousarray(members.T)
        self._sizes = members.sum(axis=1)
        kappas = np.array([basis.kappa for basis in self.bases])
        self.factors = np.exp(-sums_over(members, np.log(kappas))) * np.where(self.folds, 2, 1)
        self._known: dict[Subset, float] = {}
        # Pairs of factors whose quadratic forms are kept.
        self._forms: Held[tuple[int, LinearMap, LinearMap], tuple[Floats, Floats]] = Held(
            4096, lambda _: 1
        )
        # Weak keys: the rows of a long factor are written out in pieces of 32 MB, each a map.
        self._cancels: WeakKeyDictionary[LinearMap, dict[int, bool]] = WeakKeyDictionary()
        self._spectral: dict[int, Floats] = {}
        self._estimators: dict[int, Floats] = {}

    @cached_property
    def sets(self) -> list[frozenset[int]]:
        """The axes of each set."""
        return [frozenset(members) for members in tuples_of(self._inside.T)]

    @cached_property
    def _number(self) -> dict[frozenset[int], int]:
        return {axis_set: b for b, axis_set in enumerate(self.sets)}

    def signs(self, axes: Subset) -> Integers:
        """The fold that informs about each subset of some axes, an array like that of ``over``."""
        signs = np.ones((), dtype=np.int64)
        for i in axes:  # odd for an odd number of mirrored ones
            signs = np.multiply.outer(signs, np.array([1, -1 if self._mirrored[i] else 1]))
        return signs

    def is_symmetric(self, i: int) -> bool:
        """Whether exchanging two values of an axis exchanges measurements, and nothing else."""
        if self.residual or self.unmixing or self.folds.any():
            return False
        return self.bases[i].plain

    def mirrored(self, b: int) -> list[int]:
        """Places of the mirrored axes among those of a set."""
        return [place for place, i in enumerate(sorted(self.sets[b])) if self._mirrored[i]]

    def telling(self, subset: Subset) -> list[int]:
        """Numbers of the sets that hold information about a subset."""
        if self.residual:
            number = self._number.get(frozenset(subset))
            return [] if number is None else [number]
        sign = -1 if self._mirrored[list(subset)].sum() % 2 else 1
        inside = (self.folds == 0) | (self.folds == sign)
        inside &= np.logical_and.reduce(self._inside[list(subset)], axis=0)
        return [int(b) for b in np.flatnonzero(inside)]

    def __getitem__(self, subset: Subset) -> float:
        if subset not in self._known:
            set_numbers = self.telling(subset)
            self._known[subset] = float(
                np.sum(self.weights[set_numbers] ** 2 * self.factors[set_numbers])
            )
        return self._known[subset]

    def over(self, axes: Subset) -> Floats:
        """λ of all subsets of some axes, as an array with an axis of length 2 for each of them."""
        informations: Floats = np.zeros((2,) * len(axes))
        if len(axes) < MANY_AXES:
            for inside in itertools.product((0, 1), repeat=len(axes)):
                informations[inside] = self[tuple(itertools.compress(axes, inside))]
            return informations
        place = 2 ** np.arange(len(axes))[::-1] @ self._inside[list(axes)]
        weights = self.weights**2 * self.factors
        if self.residual:
            weights = np.where(self._inside[list(axes)].sum(axis=0) == self._sizes, weights, 0.0)
            return np.asarray(
                np.bincount(place, weights, informations.size).reshape(informations.shape)
            )
        signs = self.signs(axes)
        for sign in np.unique(self.folds):
            of_sign = self.folds == sign
            part = np.bincount(place[of_sign], weights[of_sign], informations.size).reshape(
                informations.shape
            )
            for axis in range(len(axes)):  # what is known about a set is known about its subsets
                first, last = (np.take(part, k, axis) for k in (0, 1))
                part = np.stack([first + last, last], axis)
            informations += np.where((sign == 0) | (signs == sign), part, 0.0)
        return informations

    def inverses(self, factors: Factors) -> Floats:
        """``1/λ`` of all subsets that a product asks about, 0 for the others, as in ``over``."""
        support = support_of(factors)
        needed = np.ones((2,) * len(support), dtype=bool)
        for place, i in enumerate(support):
            if self.cancels(i, factors[i]):
                needed[(slice(None),) * place + (0,)] = False
        informations = self.over(support)
        if np.any(informations[needed] <= 0):
            raise UnsupportedQuery("no measured marginal contains all attributes of the query")
        return np.divide(1.0, informations, out=np.zeros(informations.shape), where=needed)

    def inverses_in(self, b: int, axes: Subset) -> Floats:
        """``1/λ`` of the subsets of some axes of a set that it informs about, 0 for the others."""
        informations = self.over(axes)
        if self.residual:
            told = np.zeros(informations.shape, dtype=bool)
            told[(1,) * len(axes)] = len(axes) == len(self.sets[b])
        else:
            told = np.asarray((self.folds[b] == 0) | (self.signs(axes) == self.folds[b]))
        return np.divide(1.0, informations, out=np.zeros(informations.shape), where=told)

    def spectral(self, i: int) -> Floats:
        """A matrix Q with ``Q·Qᵀ = H`` whose first column is ``h/sqrt(κ)``, computed once."""
        if i not in self._spectral:
            basis = self.bases[i]
            C = np.linalg.cholesky(basis.inverse_times(np.eye(basis.size)))
            first = np.linalg.solve(C, basis.h) / np.sqrt(basis.kappa)
            # A reflection that takes the first unit vector to ``first``.
            first[0] -= 1.0
            size = float(first @ first)
            Q = C if size < 1e-28 else C - np.outer(C @ first, first) * (2.0 / size)
            self._spectral[i] = np.asarray(Q)
        return self._spectral[i]

    def forms(self, i: int, factor: LinearMap, other: LinearMap) -> tuple[Floats, Floats]:
        """``diag(W·P·Vᵀ)/κ`` and ``(W·h)·(V·h)/κ²`` on one axis, row by row, computed once."""
        return self._forms.find((i, factor, other), lambda: self.bases[i].forms(factor, other))

    @cached_property
    def _most_mixed(self) -> int:
        return max((len(self.sets[b]) for b in self.unmixing), default=0)

    def mixed_sets(self, products: Sequence[Factors]) -> list[int]:
        """The mixed sets that inform about a sum of products."""
        if not self.unmixing:
            return []
        supports = {support_of(product) for product in products}
        subsets = {
            subset
            for support in supports
            for size in range(1, self._most_mixed + 1)
            for subset in itertools.combinations(support, size)
        }
        numbers = (self._number.get(frozenset(subset), -1) for subset in subsets)
        return sorted(b for b in numbers if b in self.unmixing)

    def estimator(self, b: int) -> Floats:
        """E with the part ``w·E·y`` of weights w over a mixed set, for unit noise on y."""
        if b not in self._estimators:
            bases = [self.bases[i] for i in sorted(self.sets[b])]
            inverses = [basis.times(basis.projector_times(np.eye(basis.size))).T for basis in bases]
            self._estimators[b] = kronecker(inverses) @ self.unmixing[b] / self.weights[b]
        return self._estimators[b]

    def cancels(self, i: int, factor: LinearMap) -> bool:
        """Whether no query of a factor asks about the total: all have ``W·h = 0``."""
        if factor.is_word:
            return False  # counts of values, all of one sign
        known = self._cancels.setdefault(factor, {})
        if i not in known:
            h = self.bases[i].h
            # Totals of queries below this, relative to their weights, are rounding errors.
            size = 1e-13 * factor.entry_range[1] * np.abs(h).sum()
            known[i] = bool(np.abs(factor.apply(h[:, None])).max() <= size)
        return known[i]

    def counts_nothing(self, factors: Factors) -> bool:
        """Whether all weights of a product are 0: no query of it asks about any subset."""
        support = support_of(factors)
        return any(i not in support and self.cancels(i, factors[i]) for i in factors)

    def asked(self, factors: Factors) -> Iterator[Subset]:
        """Yield the subsets of the axes that a product asks about.

        An axis on which all its queries cancel is in all of them.
        """
        support = support_of(factors)
        fixed = {i for i in support if self.cancels(i, factors[i])}
        for subset in _subsets(support):
            if fixed.issubset(subset):
                yield subset

    def error(self, batch: ProductBatch) -> float:
        """``Σ_A v_A/λ_A`` of terms over the axes; infinite where a subset is not measured."""
        quadratic = Quadratic(batch)
        numbers = [basis.numbers(quadratic.grams_of(i)) for i, basis in enumerate(self.bases)]
        v = quadratic.values(*quadratic.gathered(numbers))
        information = self.informations(quadratic.index)
        needed = v > 0
        if np.any(information[needed] <= 0):
            return math.inf
        errors = np.divide(v, information, out=np.zeros(len(v)), where=needed)
        if self.unmixing:
            parts = PartGrams(batch, [basis.h / basis.kappa for basis in self.bases])
            places = quadratic.index.find(masks_of(self._inside.T))
            for b in self.unmixing:
                if places[b] >= 0:
                    members = tuple(sorted(self.sets[b]))
                    errors[places[b]] = parts.error(members, self.estimator(b))
        return float(errors.sum())

    def informations(self, index: SubsetIndex) -> Floats:
        """λ of all subsets of an index."""
        masks = masks_of(self._inside.T)
        weights = self.weights**2 * self.factors
        if self.residual:
            place = index.find(masks)
            sums = np.zeros(len(index))
            np.add.at(sums, place[place >= 0], weights[place >= 0])
            return sums
        odd = members_of(index.masks, len(self.bases))[:, self._mirrored].sum(axis=1) % 2 == 1
        sums = np.zeros(len(index))
        for sign in np.unique(self.folds):
            of_sign = self.folds == sign
            is_informed = (sign == 0) | (odd == (sign < 0))
            sums += np.where(is_informed, index.inside(masks[of_sign]) @ weights[of_sign], 0.0)
        return sums


def support_of(factors: Factors) -> Subset:
    """The axes on which a product distinguishes values."""
    return tuple(i for i, factor in factors.items() if factor.total_factor is None)


def _subsets(support: Subset) -> Iterator[Subset]:
    for size in range(len(support) + 1):
        yield from itertools.combinations(support, size)
