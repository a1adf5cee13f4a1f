"""From strategies over products in real numbers to integers, whose sensitivity is exact.

All bits are shared: the entries of the bases of a set multiply, and what they leave of 2^bits is
the resolution of the set's weight. So the entries are as large as the number of bases that are
no identity allows, and the error is computed again from the integers.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lrm.errors import ConvergenceError, CountsError
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.integers import ProductBasis
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.basis import AnyBasis
from lrm.planning.design.products.integers import ResidualBasis, round_basis
from lrm.planning.design.products.parts import OwnRows, PartGrams
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.reconstruction import ProductReconstruction
from lrm.planning.design.products.residual_rounding import round_residual
from lrm.planning.design.products.residuals import GaussianGroups, GaussianStrategy, GramBasis
from lrm.planning.design.products.strategy import Axis, Group, ProductStrategy, on_axes
from lrm.planning.design.products.subsets import members_of, sums_over, tuples_of
from lrm.planning.design.products.trees import TreeBasis
from lrm.planning.design.reconstruction import EXACTNESS
from lrm.planning.design.rounding import (
    DEFAULT_MAX_RECORDS,
    FINE_MAX_RECORDS,
    FINEST_MAX_RECORDS,
    most_bits,
)
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch

WEIGHT_BITS = (9, 6, 4, 2)
"""Bits of 2^bits that are kept for the weight of a set, the usual number first."""

MOST_ENTRY_BITS = 10
"""Bits of the entries of a basis: more gained less than 1e-5 of the error."""

COARSE_BITS = (8, 6)
"""Bits of the entries of a basis where none of the usual numbers answers the queries."""

TREE_BITS = 12
"""Bits of the largest weight of a tree; the others follow it to 1/4096."""

BLENDS = (0.0, 1e-4, 1e-3, 1e-2)
"""Shares of the identity in a Gram that is rounded, where less of it costs too much."""

BLENDED_FROM = 1.003
"""What rounding one basis must cost at least before another share is tried."""

MIX_BITS = 8
"""Bits of 2^bits that are kept for the entries of a mix, beside those for the weight of its set."""

COST = 1.001
"""By how much rounding may raise the error before more bits are spent."""


def round_products(
    batch: ProductBatch, strategy: ProductStrategy, max_records: int | None = None
) -> ProductReconstruction:
    """Round weighted marginals for Laplace noise.

    Parameters
    ----------
    batch
        The terms, weighted by the roots of their importances.
    strategy
        Groups in real numbers.
    max_records
        The declared largest number of records of a table.
    """

    def build(bits: int, entry_bits: int) -> Measured:
        sums = min(MOST_ENTRY_BITS, entry_bits)
        groups = tuple(_marginal_group(group, bits, sums) for group in strategy.groups)
        return Measured(batch.sizes, groups, bits, residual=False, combined=strategy.combined)

    rooms = {
        room
        for group in strategy.groups
        for room in zip(
            sums_over(
                group.marginals.members,
                np.array([float(not basis.plain) for basis in group.marginals.bases]),
            ).tolist(),
            sums_over(group.marginals.members, _part_bits(group.axes)).tolist(),
            strict=True,
        )
    }
    return _least_error(batch, build, rooms, strategy.error, max_records)


def round_gaussian(
    batch: ProductBatch, strategy: GaussianGroups, max_records: int | None = None
) -> ProductReconstruction:
    """Round residuals for Gaussian noise.

    Where no rounding answers the queries, since an optimised Gram is nearly singular, it is that
    of identities, which always does.
    """
    try:
        return _rounded_gaussian(batch, strategy, max_records)
    except (ConvergenceError, np.linalg.LinAlgError):
        groups = [
            _with_identities(batch.take(terms), group)
            for terms, group in zip(strategy.terms, strategy.groups, strict=True)
        ]
        return _rounded_gaussian(batch, replace(strategy, groups=tuple(groups)), max_records)


def _with_identities(batch: ProductBatch, group: GaussianStrategy) -> GaussianStrategy:
    """A group with the same axes whose Grams are identities, with the best weights for these."""
    quadratic = Quadratic(on_axes(batch, group.axes))
    bases = tuple(GramBasis(axis.size) for axis in group.axes)
    shares = _ResidualShares(quadratic, [basis.residual() for basis in bases])
    subset_shares = shares.of_subsets()
    subsets = quadratic.index.masks[subset_shares > 0]
    logs = np.log([basis.norm for basis in bases])
    norms = np.exp(sums_over(members_of(subsets, len(bases)), logs))
    weights = np.sqrt(subset_shares[subset_shares > 0] / subset_shares.sum()) / norms
    return replace(
        group,
        bases=bases,
        subsets=subsets,
        weights=weights,
        error=shares.error(),
        bound=0.0,
        own={},
    )


def _rounded_gaussian(
    batch: ProductBatch, strategy: GaussianGroups, max_records: int | None
) -> ProductReconstruction:
    parts = list(zip(strategy.terms, strategy.groups, strict=True))

    @cache
    def rounded(
        entry_bits: int,
    ) -> list[tuple[list[ProductBasis], Floats, dict[tuple[int, ...], OwnRows]]]:
        return [_rounded_residuals(batch.take(terms), group, entry_bits) for terms, group in parts]

    def build(bits: int, entry_bits: int) -> Measured:
        groups = []
        for (terms, group), share, (bases, targets, own) in zip(
            parts, strategy.shares.tolist(), rounded(entry_bits), strict=True
        ):
            members = members_of(group.subsets, len(bases))
            products = _group(terms, group.axes, bases, members, share * targets, bits)
            groups.append(_with_mixes(products, own, share * targets, bits))
        return Measured(batch.sizes, tuple(groups), bits, residual=True)

    rooms = {room for group in strategy.groups for room in _residual_rooms(group)}
    return _least_error(batch, build, rooms, strategy.error, max_records)


def _part_bits(axes: Sequence[Axis]) -> Floats:
    """The bits that the parts of corners take of the measurements with each axis."""
    return np.log2([float(axis.whole) for axis in axes])


def _residual_rooms(group: GaussianStrategy) -> Iterator[tuple[float, float]]:
    """Yield, for each subset, how many bases share its bits, and the bits that identities take."""
    members = members_of(group.subsets, len(group.bases))
    needy = np.array([not basis.plain for basis in group.bases])
    # An identity without its mean has entries up to n; the others share what is left.
    log_sizes = np.where(needy, 0.0, np.log2([basis.size for basis in group.bases]))
    log_sizes += _part_bits(group.axes)
    counts, taken = (sums_over(members, each) for each in (needy.astype(float), log_sizes))
    mixed = np.array([subset in group.own for subset in tuples_of(members)], dtype=bool)
    taken[mixed] += MIX_BITS - np.log2(group.norms[mixed])
    yield from zip(counts.tolist(), taken.tolist(), strict=True)


def _with_mixes(
    group: MeasuredGroup, own: Mapping[tuple[int, ...], OwnRows], targets: Floats, bits: int
) -> MeasuredGroup:
    """A group whose subsets with own rows measure these, with columns of norm ``targets``."""
    factors, mixes = list(group.factors), {}
    for b, subset in enumerate(group.sets):
        if subset in own:
            parts = math.prod(group.axes[k].whole for k in subset)
            rows = float(targets[b]) * 2.0**bits / parts * own[subset].rows
            mixes[b] = _mix(rows, [group.product_bases[k] for k in subset])
            factors[b] = 1
    return replace(group, factors=tuple(factors), mixes=mixes)


def _mix(rows: Floats, bases: Sequence[ProductBasis]) -> Integers:
    """The integer matrix that is nearest to rows when multiplied by the product of bases.

    Whatever it is rounded to, the null vectors of the bases are those of the result.
    """
    inverses = [np.asarray(np.linalg.pinv(basis.dense()), dtype=np.float64) for basis in bases]
    return np.asarray(np.rint(rows @ kronecker(inverses)), dtype=np.int64)


def _rounded_residuals(
    batch: ProductBatch, strategy: GaussianStrategy, entry_bits: int
) -> tuple[list[ProductBasis], Floats, dict[tuple[int, ...], OwnRows]]:
    """Integer bases by the error of the whole batch, and the best weights for these bases.

    Rows of subsets' own are moved to the null vectors of these bases.
    """
    if not strategy.own and all(basis.plain for basis in strategy.bases):
        return [ResidualBasis(basis.size) for basis in strategy.bases], strategy.norms, {}
    axes_batch = on_axes(batch, strategy.axes)
    shares = _ResidualShares(Quadratic(axes_batch), [b.residual() for b in strategy.bases])
    rounded: list[ProductBasis] = []
    for i, basis in enumerate(strategy.bases):
        best: ResidualBasis | TreeBasis = ResidualBasis(basis.size)
        if basis.levels is not None:
            largest = (1 << min(entry_bits, TREE_BITS)) / basis.levels.max()
            best = TreeBasis(
                basis.size, np.maximum(np.rint(largest * basis.levels), 1).astype(np.int64)
            )
            shares.put(i, best.real())
        if basis.columns is not None:
            whole = strategy.nulls.get(i)
            best = _rounded_residual(basis, whole, entry_bits, shares.cost_of(i))
            shares.put(i, best.real())
        rounded.append(best)
    places = shares.quadratic.index.find(strategy.subsets)
    subset_shares = shares.of_subsets()[places]
    own: dict[tuple[int, ...], OwnRows] = {}
    if strategy.own:
        real = [basis.real() for basis in rounded]
        parts = PartGrams(axes_batch, [basis.h / basis.kappa for basis in real])
        subsets = tuples_of(members_of(strategy.subsets, len(rounded)))
        for place, subset in enumerate(subsets):
            if subset in strategy.own:
                rows = strategy.own[subset].moved([parts.nulls[i] for i in subset])
                subset_shares[place] = math.sqrt(parts.error(subset, rows.estimator))
                own[subset] = rows
    return rounded, np.sqrt(subset_shares / subset_shares.sum()), own


def _rounded_residual(
    basis: GramBasis,
    whole: Integers | None,
    entry_bits: int,
    cost: Callable[[ResidualBasis], float],
) -> ResidualBasis:
    """A rounded basis; where queries do not distinguish all values, of a Gram that does."""
    best = ResidualBasis(basis.size)
    # The cost does not count for subsets with rows of their own, which decide the null vector.
    least = cost(best) if whole is None else math.inf
    for share in BLENDS:
        blended = basis if share == 0 else basis.blended(share)
        assert blended.columns is not None  # noqa: S101 - no identity
        rounded = round_residual(blended.columns, blended.h, entry_bits, cost, whole)
        if (rounded_cost := cost(rounded)) < least:
            best, least = rounded, rounded_cost
        if least <= BLENDED_FROM or (whole is not None and best.rows is not None):
            break
    if whole is not None and best.rows is None:  # few values: no row near to these is 0 on it
        rows = whole.sum() * np.eye(basis.size, dtype=np.int64) - whole[:, None]
        best = ResidualBasis(basis.size, rows, whole)
    return best


class _ResidualShares:
    """``sqrt(v_A·Π_{i∈A} κ_i)`` of each subset, whose sum is the root of the least error.

    Bases have columns of norm at most 1; a subset's share of the squared sensitivity is
    proportional to this where the weights are best.
    """

    def __init__(self, quadratic: Quadratic, bases: Sequence[AnyBasis]) -> None:
        self.quadratic = quadratic
        self._inside = members_of(quadratic.index.masks, quadratic.d)
        self._numbers = [basis.numbers(quadratic.grams_of(i)) for i, basis in enumerate(bases)]
        self._kappas = np.array([basis.kappa for basis in bases])

    def put(self, i: int, basis: AnyBasis) -> None:
        """Set the basis of one attribute."""
        self._numbers[i] = basis.numbers(self.quadratic.grams_of(i))
        self._kappas[i] = basis.kappa

    def of_subsets(self) -> Floats:
        """One number for each subset of the quadratic."""
        v = self.quadratic.demands(*self.quadratic.gathered(self._numbers))
        return np.asarray(np.sqrt(v * np.exp(sums_over(self._inside, np.log(self._kappas)))))

    def error(self) -> float:
        """The least error with the bases that were set."""
        return float(self.of_subsets().sum() ** 2)

    def cost_of(self, i: int) -> Callable[[ResidualBasis], float]:
        """The error with another basis of one attribute, divided by that with its present one."""
        ideal = self.error()

        def cost(basis: ResidualBasis) -> float:
            try:
                self.put(i, basis.real())
            except np.linalg.LinAlgError:  # it does not distinguish all values
                return math.inf
            relative_error = self.error() / ideal
            return relative_error if math.isfinite(relative_error) else math.inf

        return cost


def _marginal_group(group: Group, bits: int, entry_bits: int) -> MeasuredGroup:
    marginals = group.marginals
    bases = [round_basis(basis, 1 << entry_bits) for basis in marginals.bases]
    targets = group.weight * marginals.weights
    folds = marginals.folds.tolist()
    return _group(group.terms, group.axes, bases, marginals.members, targets, bits, folds)


def _group(  # noqa: PLR0913, PLR0917 - what a group is made of
    terms: Integers,
    axes: Sequence[Axis],
    bases: Sequence[ProductBasis],
    members: NDArray[np.bool_],
    targets: Floats,
    bits: int,
    folds: Sequence[int] = (),
) -> MeasuredGroup:
    pairs = zip(axes, bases, strict=True)
    logs = sums_over(members, np.log([axis.whole * basis.scale for axis, basis in pairs]))
    factors = tuple(map(int, np.maximum(1.0, np.rint(targets * 2.0**bits * np.exp(-logs)))))
    sets, folds = tuple(tuples_of(members)), tuple(folds) or (0,) * len(factors)
    return MeasuredGroup(terms, tuple(axes), tuple(bases), sets, factors, folds)


def rounded_error(batch: ProductBatch, reconstruction: ProductReconstruction) -> float:
    """``‖B‖²·Δ²`` of integers, with the weights of the terms of ``batch``."""
    measured = reconstruction.measured
    sensitivity = measured.sensitivity_for(measured.noise) * 2.0**-measured.bits
    return reconstruction.weighted_squared_norm(batch) * sensitivity**2


def _least_error(
    batch: ProductBatch,
    build: Callable[[int, int], Measured],
    rooms: set[tuple[float, float]],
    error: float,
    max_records: int | None,
) -> ProductReconstruction:
    """The first rounding whose error is hardly above ``error``, else the one of least error."""
    plain = np.ones(batch.terms)
    alike = replace(batch, weights=plain)
    best, least, fits = None, math.inf, False
    choices = list(_choices(rooms, max_records))
    # Rows that are a thousand times as heavy as the diagonal may lose digits of answers.
    coarse = [
        (bits, entry_bits)
        for bits in dict.fromkeys(b for b, _ in choices)
        for entry_bits in COARSE_BITS
    ]
    for number, (bits, entry_bits) in enumerate([*choices, *coarse]):
        if number >= len(choices) and (best is not None or not fits):
            break
        measured = build(bits, entry_bits)
        if max_records is not None and measured.max_records < max_records:
            continue
        reconstruction = ProductReconstruction(alike, measured)
        fits = True
        rounded = rounded_error(batch, reconstruction)
        if rounded < least and reconstruction.relative_residual <= EXACTNESS:
            best, least = reconstruction, rounded
        if least <= COST * error:
            break
    if best is None and fits:
        raise ConvergenceError(
            "no rounding of this strategy answers its queries to "
            f"{EXACTNESS:.0e} of their size; try another mechanism, or scale the queries to "
            "similar size"
        )
    if best is None:
        raise CountsError(
            f"a table of up to {max_records:,} records needs more than 62 bits with this strategy; "
            "declare a smaller max_records"
        )
    return best


def _choices(rooms: set[tuple[float, float]], max_records: int | None) -> Iterator[tuple[int, int]]:
    """Bits, and bits of the entries of bases.

    ``rooms`` holds, for each set, how many bases share its bits and how many bits are taken.
    """
    sharing = [room for room in rooms if room[0]]
    usual = (DEFAULT_MAX_RECORDS,) if not sharing else ()
    every = (*usual, FINE_MAX_RECORDS, FINEST_MAX_RECORDS)
    most = [most_bits(records) for records in ((max_records,) if max_records else every)]
    if max_records:  # weights that are rounded up may need a bit more
        most.append(most[0] - 1)
    for bits in most:
        tried = set()
        for weight_bits in WEIGHT_BITS:
            least = min(
                ((bits - weight_bits - taken) / count for count, taken in sharing), default=20
            )
            entry_bits = max(2, min(20, int(least)))
            if entry_bits not in tried:
                tried.add(entry_bits)
                yield bits, entry_bits
