r"""Half-widths of intervals that hold the noise of an answer at least as often as they say.

The noise of an answer is ``S = Σ_j b_j·η_j``, with integer noise η. Its law is discrete, and
nobody can list its values for thousands of incommensurable weights; so a continuous law that
is wider is put in its place:

1. Add to each η_j its own U_j, uniform on (−½, ½). ``V_j = η_j + U_j`` has a density that is
   symmetric and falls on both sides, and so has a Laplace (or normal) variable Y_j. Where
   ``P(|V_j| ≥ t) ≤ P(|Y_j| ≥ t)`` for all t, sums with any weights keep that order [1]_. It
   holds for Laplace Y of scale ``s + 1/s`` and normal Y of variance ``σ² + 1/4`` (checked
   numerically by a test for scales from 2 on).
2. ``T = Σ b_j·U_j`` is sub-Gaussian with variance ‖b‖²/12, and independent of S. So
   ``P(S > h + c)·P(T ≥ −c) ≤ P(S + T > h)``, where ``P(T ≥ −c) ≥ 1 − exp(−6c²/‖b‖²)``.

With c = κ‖b‖ this costs about κ/(2σ) of the width: 1e-9 of it for the 30 bits that plans have
by default, and 2 % at σ = 16, which takes a plan for more than 2^56 records or ε of millions.
Where the noise is on lattices, or its scale is below 2, `lattice_half_widths` has other bounds.

Where the weights of an answer are too many to be looked at, its norm gives the half-width of the
widest sum of that norm (`widest_half_width`).

See ``docs/explanation/accuracy.md``.

References
----------
.. [1] Birnbaum, "On random variables with comparable peakedness", Ann. Math. Stat. 1948.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lrm.planning.accuracy.noise_sums import (
    gaussian_half_widths,
    laplace_sum_half_widths,
    lattice_half_widths,
    widest_half_width,
)
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.limits import ARRAY, BLOCK
from lrm.privacy.laws import COARSE, LatticeLaw, NoiseLaw
from lrm.privacy.shaped import ShapedLaw
from lrm.queries.maps.linear import Floats, Integers, RowWeights


def half_widths(
    reconstruction: Reconstruction,
    law: NoiseLaw,
    confidence: float,
    ranges: Iterable[tuple[int, int]],
) -> Floats:
    """Half-widths for the noise of some ranges of answers, in units of the integers.

    Answers whose noise has one law have one search.
    """
    width_blocks: list[Floats] = [np.zeros(0)]
    waiting: list[tuple[Floats, RowWeights]] = []
    entries = 0
    for start, stop in ranges:
        if law.is_gaussian:  # norms alone will do
            norms = np.sqrt(reconstruction.squared_norms(start, stop))
            width_blocks.append(norm_half_widths(norms, law, confidence))
            continue
        if not law.independent:
            width_blocks += _joint_half_widths(reconstruction, law, confidence, start, stop)
            continue
        for first, last, weights in reconstruction.row_weights(start, stop):
            if weights is None:
                norms = np.sqrt(reconstruction.squared_norms(first, last))
                width_blocks.append(norm_half_widths(norms, law, confidence))
                continue
            width_blocks.append(np.empty(last - first))
            waiting.append((width_blocks[-1], weights))
            entries += weights.values.size
            if entries > BLOCK:
                _solve(waiting, law, confidence)
                waiting, entries = [], 0
    _solve(waiting, law, confidence)
    return np.concatenate(width_blocks)


def _joint_half_widths(
    reconstruction: Reconstruction, law: NoiseLaw, confidence: float, start: int, stop: int
) -> Iterator[Floats]:
    """Half-widths where the law of an answer depends on the places of its weights too."""
    if not isinstance(law, ShapedLaw) and math.prod(reconstruction.shape) > ARRAY:
        norms = np.sqrt(reconstruction.unweighed.squared_norms(start, stop))
        yield norm_half_widths(norms, law, confidence)
        return
    for first, last in reconstruction.row_ranges(start, stop):
        rows = law.same_law(reconstruction.rows(first, last))
        chances = np.random.default_rng(0).uniform(1.0, 2.0, (rows.shape[1], 2))
        distinct, place = _classes(rows @ chances)
        yield sum_half_widths(rows[distinct], law, confidence)[place]


def _solve(waiting: list[tuple[Floats, RowWeights]], law: NoiseLaw, confidence: float) -> None:
    """Fill in the half-widths of several parts, each law once and those of similar length together.

    The search for a thousand rows costs hardly more than that for one.
    """
    if not waiting:
        return
    values = np.concatenate([weights.values for _, weights in waiting])
    counts = np.concatenate(
        [
            np.ones(len(weights.values)) if weights.counts is None else weights.counts
            for _, weights in waiting
        ]
    )
    lengths = np.concatenate([np.diff(weights.ends, prepend=0) for _, weights in waiting])
    widths = _distinct_half_widths(values, counts, lengths, law, confidence)
    end = 0
    for target_widths, weights in waiting:
        end += len(weights.ends)
        target_widths[:] = widths[end - len(weights.ends) : end][weights.place]


def _distinct_half_widths(
    values: Floats, counts: Floats, lengths: Integers, law: NoiseLaw, confidence: float
) -> Floats:
    """The half-width of each row of weights, of which rows in proportion have one law."""
    starts = np.cumsum(lengths) - lengths
    widths, busy = np.zeros(len(lengths)), np.flatnonzero(lengths)
    if not len(busy):
        return widths
    # A weight that occurs 0 times is none: a class of an axis may have no other values.
    largest = np.maximum.reduceat(np.where(counts > 0, values, 0.0), starts[busy])
    scale = np.repeat(np.where(largest > 0, largest, 1.0), lengths[busy])
    relative = np.where(counts > 0, values / scale, 0.0)
    sums = [
        np.add.reduceat(counts * part, starts[busy])
        for part in (relative**2, relative**4, np.cos(np.pi * relative))
    ]
    distinct, place = _classes(np.column_stack(sums))
    distinct_widths = np.empty(len(distinct))
    sizes = lengths[busy][distinct]
    octave = np.ceil(np.log2(sizes)).astype(np.int64)
    for number in np.unique(octave):
        some = np.flatnonzero(octave == number)
        columns = np.arange(sizes[some].max())
        inside = columns < sizes[some][:, None]
        places = np.where(inside, starts[busy][distinct[some]][:, None] + columns, 0)
        row_counts = np.where(inside, counts[places], 0.0)
        row_values = np.where(inside, relative[places], 0.0)
        plain = bool(np.all(row_counts[inside] == 1.0))
        distinct_widths[some] = sum_half_widths(
            row_values, law, confidence, None if plain else row_counts
        )
    widths[busy] = distinct_widths[place] * largest
    return widths


def _classes(sums: Floats) -> tuple[Integers, Integers]:
    """The first row of each class of equal sums, to some digits, and the class of each row."""
    size = np.abs(sums).max(axis=0, initial=0.0)
    # Digits to which sums over weights are compared.
    rounded = np.round(sums / np.where(size > 0, size, 1.0), 11)
    _, first, place = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def norm_half_widths(norms: Floats, law: NoiseLaw, confidence: float) -> Floats:
    """Half-widths that hold for all sums whose weights have these norms.

    At 95 % they are at most 10 % wider than the exact ones; on lattices at most 30 %.
    """
    if not is_coarse(law):
        return _continuous(norms, law, confidence)
    if law.is_gaussian:
        return norms * (law.deviation / math.sqrt(1.0 - confidence))  # Chebyshev's inequality
    return norms * (law.scale * widest_half_width((1.0 + confidence) / 2.0))


def is_coarse(law: NoiseLaw) -> bool:
    """Whether half-widths fall in steps, and hold their rounding errors."""
    # From this scale on the continuous law is known to be wider.
    return isinstance(law, LatticeLaw) or law.scale < 1.0 / COARSE


def widest_half_widths(weights: Floats, law: NoiseLaw, confidence: float, counts: Floats) -> Floats:
    """Half-widths of groups × inputs × measurements that follow from standard deviations alone."""
    if isinstance(law, ShapedLaw):
        return law.widest_half_widths(weights, confidence)
    norms = np.sqrt(np.einsum("gkc,gkc,gc->gk", weights, weights, counts))
    return norm_half_widths(norms.ravel(), law, confidence).reshape(norms.shape)


def sum_half_widths(
    weights: Floats, law: NoiseLaw, confidence: float, counts: Floats | None = None
) -> Floats:
    """For each row b of ``weights`` an h with ``P(|Σ b_j·η_j| ≤ h) ≥ confidence``.

    ``counts`` says how often each weight occurs, where that is not once.

    Examples
    --------
    >>> fine, coarse = NoiseLaw("laplace", 2.0**30), NoiseLaw("laplace", 1.0)
    >>> float(round(sum_half_widths(np.ones((1, 1)), fine, 0.95)[0] / 2**30, 6))
    2.995732
    >>> float(round(sum_half_widths(np.ones((1, 1)), coarse, 0.95)[0], 4))
    3.0
    """
    if isinstance(law, ShapedLaw):
        return law.half_widths(weights, confidence)
    squares = np.square(weights) if counts is None else np.square(weights) * counts
    norms = np.sqrt(squares.sum(axis=1))
    if not is_coarse(law):
        return _continuous(norms, law, confidence, weights, counts)
    if law.is_gaussian:
        return norm_half_widths(norms, law, confidence)
    steps = np.array(law.steps, dtype=np.float64)
    return lattice_half_widths(weights, law.scale, steps, confidence, counts)


SPLITS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
"""Parts of the probability of missing that the first of two independent noises may have."""

WeighedLaw = tuple[Floats, Floats, NoiseLaw]
"""Weights of integers (rows × columns), how often each occurs, and their law."""


def independent_half_widths(parts: Sequence[WeighedLaw], confidence: float) -> Floats:
    """Half-widths of sums of noises that are independent of each other and have several laws.

    Of Gaussian noises, and of Laplace noises on all integers, those of the sum of their wider
    continuous laws; of other Laplace noises, those of `lattice_half_widths`. Of others, each
    noise is within a width of its own, all of them together with ``confidence`` (Boole's
    inequality): the narrowest of some splits.

    >>> one = np.ones((1, 1)), np.ones((1, 1)), NoiseLaw("gaussian", 2.0**30)
    >>> float(round(independent_half_widths([one, one], 0.95)[0] / 2**30.5, 4))
    1.96
    """
    laws = [law for _, _, law in parts]
    kinds = {law.noise for law in laws}
    plain = not any(isinstance(law, ShapedLaw) or is_coarse(law) for law in laws)
    if plain and len(kinds) == 1 and kinds <= {"laplace", "gaussian"}:
        return _sum_of_continuous(parts, confidence)
    if kinds == {"laplace"}:
        return _sum_on_lattices(parts, confidence)
    miss = 1.0 - confidence
    splits = [[1.0 / len(parts)] * len(parts)]
    if len(parts) == 2:
        splits = [[share, 1.0 - share] for share in SPLITS]
    widths = [
        np.sum(
            [
                sum_half_widths(weights, law, 1.0 - miss * share, counts)
                for share, (weights, counts, law) in zip(split, parts, strict=True)
            ],
            axis=0,
        )
        for split in splits
    ]
    return np.asarray(np.min(widths, axis=0))


def _sum_on_lattices(parts: Sequence[WeighedLaw], confidence: float) -> Floats:
    """As `lattice_half_widths`: noise of scale s on multiples of g is r times that of s/r, g/r."""
    scale = parts[0][2].scale
    weights = [w * (law.scale / scale) for w, _, law in parts]
    counts = [np.broadcast_to(often, w.shape) for w, often, _ in parts]
    steps = [
        np.broadcast_to(np.array(law.steps) * (scale / law.scale), w.shape[1])
        for w, _, law in parts
    ]
    columns = np.hstack(weights), np.concatenate(steps)
    return lattice_half_widths(columns[0], scale, columns[1], confidence, np.hstack(counts))


def _sum_of_continuous(parts: Sequence[WeighedLaw], confidence: float) -> Floats:
    """As `_continuous`, where integers of several scales are added up."""
    kappa = math.sqrt((math.log(min(law.scale for _, _, law in parts)) + 1.0) / 6.0)
    tail = (1.0 - confidence) * -math.expm1(-6.0 * kappa**2)
    wider = min(1.0 - tail, math.nextafter(1.0, 0.0))
    squares = [(np.square(w) * counts).sum(axis=1) for w, counts, _ in parts]
    norms = np.sqrt(np.sum(squares, axis=0))
    if parts[0][2].is_gaussian:
        variances = [
            square * (law.scale**2 + 0.25)
            for square, (_, _, law) in zip(squares, parts, strict=True)
        ]
        deviations = np.sqrt(np.sum(variances, axis=0))
        return np.asarray(gaussian_half_widths(deviations, wider) + kappa * norms)
    rows = [w * (law.scale + 1.0 / law.scale) for w, _, law in parts]
    counts = [np.broadcast_to(often, w.shape) for w, often, _ in parts]
    sums = laplace_sum_half_widths(np.hstack(rows), wider, np.hstack(counts))
    return np.asarray(sums + kappa * norms)


def _continuous(
    norms: Floats,
    law: NoiseLaw,
    confidence: float,
    weights: Floats | None = None,
    counts: Floats | None = None,
) -> Floats:
    """The half-widths of the wider continuous law, and c.

    Without the weights, of Laplace noise, those of the widest sum of these norms.
    """
    scale = law.scale
    kappa = math.sqrt((math.log(scale) + 1.0) / 6.0)
    tail = (1.0 - confidence) * -math.expm1(-6.0 * kappa**2)
    wider = min(1.0 - tail, math.nextafter(1.0, 0.0))
    if law.is_gaussian:
        return gaussian_half_widths(math.hypot(scale, 0.5) * norms, wider) + kappa * norms
    if weights is None:
        sum_widths = norms * widest_half_width(wider)
    else:
        sum_widths = laplace_sum_half_widths(weights, wider, counts)
    return (scale + 1.0 / scale) * sum_widths + kappa * norms
