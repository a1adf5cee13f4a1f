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

from lrm.errors import ConvergenceError, CountsError
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.basis import Cost, ProductBasis
from lrm.planning.design.products.information import ResidualShares
from lrm.planning.design.products.parts import OwnRows, PartGrams
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.reconstruction import ProductReconstruction
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.planning.design.products.strategy import Group, Marginals, ProductStrategy
from lrm.planning.design.products.subsets import sums_over, tuples_of
from lrm.planning.design.reconstruction import EXACTNESS
from lrm.planning.design.rounding import (
    DEFAULT_MAX_RECORDS,
    FINE_MAX_RECORDS,
    FINEST_MAX_RECORDS,
    most_bits,
)
from lrm.privacy.norms import Norm
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch


def round_products(
    batch: ProductBatch,
    strategy: ProductStrategy,
    max_records: int | None = None,
    norm: Norm | None = None,
) -> ProductReconstruction:
    """Round weighted marginals or residuals.

    Where no rounding of residuals answers the queries, since an optimised basis is nearly singular,
    it is that of identities, which always does.

    Parameters
    ----------
    batch
        The terms, weighted by the roots of their importances.
    strategy
        Groups in real numbers.
    max_records
        The declared largest number of records of a table.
    norm
        The norm of the result, where it is another one than that of the strategy, which decides the
        weights and the error that rounding is to keep.
    """
    try:
        rounded = _rounded(batch, strategy, max_records, norm)
    except (ConvergenceError, np.linalg.LinAlgError):
        if not strategy.residual:
            raise
        groups = [_with_identities(batch, group) for group in strategy.groups]
        rounded = _rounded(batch, replace(strategy, groups=tuple(groups)), max_records, norm)
    if norm is None or norm == rounded.measured.norm:
        return rounded
    return ProductReconstruction(rounded.batch, replace(rounded.measured, norm=norm))


def _with_identities(batch: ProductBatch, group: Group) -> Group:
    """A group of residuals of identities on the same axes, with the best weights for these."""
    quadratic = Quadratic(group.reduced(batch))
    bases = tuple(ResidualBasis(axis.size) for axis in group.axes)
    limits = group.marginals.limits
    shares = ResidualShares(quadratic, bases, limits=limits)
    squares = shares.shares
    marginals = Marginals(
        quadratic.index.masks[squares > 0], np.sqrt(squares[squares > 0]), bases, limits=limits
    )
    return replace(group, marginals=marginals, error=shares.error(), bound=0.0)


Rounded = tuple[Sequence[ProductBasis], Floats, Mapping[tuple[int, ...], OwnRows]]
"""Bases in whole numbers, the weights of sets for these, and rows of sets' own."""


def _rounded(
    batch: ProductBatch,
    strategy: ProductStrategy,
    max_records: int | None,
    norm: Norm | None = None,
) -> ProductReconstruction:
    own_norm = strategy.norm
    if norm is not None and norm.plain == own_norm:  # with limits of rows by group
        own_norm = norm

    @cache
    def rounded(entry_bits: int) -> list[Rounded]:
        return [_rounded_bases(batch, group, entry_bits) for group in strategy.groups]

    def build(bits: int, entry_bits: int) -> Measured:
        groups = [
            _with_mixes(
                _group(group, bases, group.weight * weights, bits),
                own,
                group.weight * weights,
                bits,
            )
            for group, (bases, weights, own) in zip(
                strategy.groups, rounded(entry_bits), strict=True
            )
        ]
        return Measured(batch.sizes, tuple(groups), bits, own_norm, strategy.combined)

    rooms = {room for group in strategy.groups for room in _rooms(group)}
    return _least_error(batch, build, rooms, strategy.error, max_records)


def _rooms(group: Group) -> Iterator[tuple[float, float]]:
    """Yield, for each set, how many bases share its bits, and the bits that are taken."""
    marginals = group.marginals
    needy = np.array([float(not basis.plain) for basis in marginals.bases])
    # An identity without its mean has entries up to n, and corners have parts: others share what
    # is left.
    peaks = [
        1 if rounds else basis.peak for rounds, basis in zip(needy, marginals.bases, strict=True)
    ]
    log_sizes = np.log2([peak * axis.whole for peak, axis in zip(peaks, group.axes, strict=True)])
    counts, taken = (sums_over(marginals.members, each) for each in (needy, log_sizes))
    if marginals.own:
        mixed = np.array([subset in marginals.own for subset in tuples_of(marginals.members)])
        # Bits of 2^bits that are kept for the entries of a mix, beside those for the weight of its
        # set.
        taken[mixed] += 8 - np.log2(marginals.weights[mixed])
    yield from zip(counts.tolist(), taken.tolist(), strict=True)


def _rounded_bases(batch: ProductBatch, group: Group, entry_bits: int) -> Rounded:
    """Whole bases by the error of all terms of a group, and the best weights for these bases.

    Weights of marginals stay. Rows of sets' own are moved to the null vectors of the whole bases.
    """
    marginals = group.marginals
    if not marginals.residual:
        # Bits of the entries of a basis: more gained less than 1e-5 of the error.
        bits = min(10, entry_bits)
        return [basis.rounded(bits, _no_cost) for basis in marginals.bases], marginals.weights, {}
    if not marginals.own and all(basis.plain for basis in marginals.bases):
        return marginals.bases, marginals.weights, {}
    reduced = group.reduced(batch)
    shares = ResidualShares(Quadratic(reduced), marginals.bases)
    rounded = list(marginals.bases)
    for i, basis in enumerate(marginals.bases):
        if not basis.plain:
            null = marginals.nulls.get(i)
            rounded[i] = basis.rounded(entry_bits, _cost_of(shares, i), null)
            shares.put(i, rounded[i])
    set_shares = shares.roots[shares.quadratic.index.find(marginals.sets)]
    own: dict[tuple[int, ...], OwnRows] = {}
    if marginals.own:
        parts = PartGrams(reduced, [basis.h / basis.kappa for basis in rounded])
        for place, subset in enumerate(tuples_of(marginals.members)):
            if subset in marginals.own:
                rows = marginals.own[subset].moved([parts.nulls[i] for i in subset])
                set_shares[place] = math.sqrt(parts.error(subset, rows.estimator))
                own[subset] = rows
    if marginals.limits is not None:
        squares = marginals.limits.shares(set_shares, rounded, marginals.members)
        return rounded, np.sqrt(squares), own
    return rounded, np.sqrt(set_shares / set_shares.sum()), own


def _no_cost(basis: ProductBasis) -> float:
    """What rounding costs, where that is not looked at."""
    del basis
    return 1.0


def _cost_of(shares: ResidualShares, i: int) -> Cost:
    """The error with another basis of one attribute, divided by that with its present one."""
    ideal = shares.error()

    def cost(basis: ProductBasis) -> float:
        try:
            shares.put(i, basis)
        except np.linalg.LinAlgError:  # it does not distinguish all values
            return math.inf
        relative_error = shares.error() / ideal
        return relative_error if math.isfinite(relative_error) else math.inf

    return cost


def _group(
    group: Group, bases: Sequence[ProductBasis], weights: Floats, bits: int
) -> MeasuredGroup:
    """A group in whole numbers, with weights relative to 2^bits."""
    marginals, pairs = group.marginals, zip(group.axes, bases, strict=True)
    logs = np.log([axis.whole * basis.scale for axis, basis in pairs])
    factors = np.rint(weights * 2.0**bits * np.exp(-sums_over(marginals.members, logs)))
    return MeasuredGroup(
        group.terms,
        group.axes,
        tuple(bases),
        tuple(tuples_of(marginals.members)),
        tuple(map(int, np.maximum(1.0, factors))),
        tuple(marginals.folds.tolist()),
    )


def _with_mixes(
    group: MeasuredGroup, own: Mapping[tuple[int, ...], OwnRows], weights: Floats, bits: int
) -> MeasuredGroup:
    """A group whose sets with rows of their own measure these, with columns of norm ``weights``."""
    factors, mixes = list(group.factors), {}
    for b, subset in enumerate(group.sets):
        if subset in own:
            parts = math.prod(group.axes[k].whole for k in subset)
            rows = float(weights[b]) * 2.0**bits / parts * own[subset].rows
            mixes[b] = _mix(rows, [group.product_bases[k] for k in subset])
            factors[b] = 1
    return replace(group, factors=tuple(factors), mixes=mixes)


def _mix(rows: Floats, bases: Sequence[ProductBasis]) -> Integers:
    """The integer matrix that is nearest to rows when multiplied by the product of bases.

    Whatever it is rounded to, the null vectors of the bases are those of the result.
    """
    inverses = [np.asarray(np.linalg.pinv(basis.dense()), dtype=np.float64) for basis in bases]
    return np.asarray(np.rint(rows @ kronecker(inverses)), dtype=np.int64)


def rounded_error(batch: ProductBatch, reconstruction: ProductReconstruction) -> float:
    """``‖B‖²·Δ²`` of integers, with the weights of the terms of ``batch``."""
    measured = reconstruction.measured
    return reconstruction.weighted_squared_norm(batch) * measured.real_sensitivity**2


def _least_error(
    batch: ProductBatch,
    build: Callable[[int, int], Measured],
    rooms: set[tuple[float, float]],
    error: float,
    max_records: int | None,
) -> ProductReconstruction:
    """The first rounding whose error is hardly above ``error``, else the one of least error."""
    alike = batch.unweighted
    best, least, fits = None, math.inf, False
    choices = list(_choices(rooms, max_records))
    # Rows that are a thousand times as heavy as the diagonal may lose digits of answers.
    coarse = [
        (bits, entry_bits)
        for bits in dict.fromkeys(b for b, _ in choices)
        # Bits of the entries of a basis where none of the usual numbers answers the queries.
        for entry_bits in (8, 6)
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
        # By how much rounding may raise the error before more bits are spent.
        if least <= 1.001 * error:
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
        # Bits of 2^bits that are kept for the weight of a set, the usual number first.
        for weight_bits in (9, 6, 4, 2):
            least = min(
                ((bits - weight_bits - taken) / count for count, taken in sharing), default=20
            )
            entry_bits = max(2, min(20, int(least)))
            if entry_bits not in tried:
                tried.add(entry_bits)
                yield bits, entry_bits
