"""Errors of derived answers before anything is spent, for an expected denominator.

The error of a ratio depends on the table: it falls with the number of rows that the ratio is of. It
is stated for a number of rows, at the least favourable values that the other inputs can have with
that number of rows: a share from 0 to 1, an average from the least declared number to the largest.
A denominator that several groups have, as a total, has the rows of them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lrm.planning.accuracy import Accuracy
from lrm.planning.derived.computed import places
from lrm.planning.derived.noise import JointNoise, Noisy
from lrm.planning.derived.quantiles import quantile_half_widths
from lrm.planning.limits import BLOCK
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.workload import Computed, Derived, Formula, Quantile

MANY_ROWS = 1e9
"""Rows at which errors are computed where none are given: there, they are in proportion to 1/n."""


@dataclass(frozen=True)
class ExpectedError:
    """The largest error of a derived answer in any of its groups."""

    # standard_error, half_width: times the number of rows where ``per_row_count`` is true. A
    # quantile has no standard error (None), and the half-width is that of its rank, as a share of
    # the rows. The error of a standard deviation depends on itself: None, and infinite.
    standard_error: float | None
    half_width: float
    per_row_count: bool  # whether both must be divided by the number of rows


def expected_error(
    answer: Derived,
    queries: LinearMap,
    accuracy: Accuracy,
    confidence: float = 0.95,
    expect: float | None = None,
) -> ExpectedError:
    """The error of a derived answer with ``expect`` rows in its denominator."""
    noisy = Noisy(lambda start, stop: np.zeros(stop - start), accuracy)
    # Groups that are looked at: those of one answer have similar errors.
    stop = min(answer.label.count, 256)
    rows = MANY_ROWS if expect is None else expect
    if isinstance(answer, Quantile):
        half = float(quantile_half_widths(answer, 0, stop, noisy, confidence).max()) / rows
        return ExpectedError(None, half * (rows if expect is None else 1.0), expect is None)
    if {"sqrt", "ln"} & set(answer.formula.steps):  # without bound as what is inside falls
        return ExpectedError(None, math.inf, per_row_count=False)
    groups = np.ones(1) if expect is None else _groups_of_inputs(answer)
    error, half = _computed(answer, stop, queries, noisy, confidence, rows * groups)
    if math.isinf(half):
        return ExpectedError(None, math.inf, per_row_count=False)
    divided = any(step == "/" for step in answer.formula.core.steps)
    factor = rows if expect is None and divided else 1.0
    return ExpectedError(error * factor, half * factor, expect is None and divided)


def slopes(answer: Derived, queries: LinearMap, rows: float | None) -> Floats:
    """By how much an error of 1 in each input moves the answer at most, with ``rows`` rows."""
    if isinstance(answer, Quantile):
        return np.ones(1)
    index, scales = places(answer, 0, 1)
    most = np.zeros(len(scales))
    for direction in _directions(
        answer, _points(answer.formula.core, index, scales, queries, np.array([rows or MANY_ROWS]))
    ):
        most = np.maximum(most, np.abs(direction * scales))
    return most


def _directions(answer: Computed, points: Sequence[Floats]) -> Iterator[Floats]:
    """The gradients of a formula at some inputs, where they are finite."""
    for point in points:
        (value, gradient), _ = answer.formula.core.dual(point[:, None])
        direction = gradient[:, 0] * answer.formula.steepness(value)
        if np.isfinite(direction).all():
            yield direction


def _computed(  # noqa: PLR0913, PLR0917 - what the error follows from
    answer: Computed, stop: int, queries: LinearMap, noisy: Noisy, confidence: float, rows: Floats
) -> tuple[float, float]:
    index, scales = places(answer, 0, stop)
    noise = noisy.joint(index, scales)
    core = answer.formula.core
    error = half = -1.0
    each = 1.0 - (1.0 - confidence) / len(scales)
    directions: list[Floats] = []
    for slope in _directions(answer, _points(core, index, scales, queries, rows)):
        direction = np.tile(slope, (stop, 1))
        if noise is not None:
            directions.append(direction)
        else:
            size = np.abs(direction)
            error = max(error, float((size * noisy.errors(index, scales)).sum(axis=1).max()))
            widths = noisy.half_widths(index, scales, each)
            half = max(half, float((size * widths).sum(axis=1).max()))
    if noise is not None and directions:
        error, half = largest_moves(noise, directions, confidence)
    # Where no point has a finite slope, rows alone do not tell the error.
    return (error, half) if half >= 0.0 else (math.inf, math.inf)


def largest_moves(
    noise: JointNoise, directions: Sequence[Floats], confidence: float
) -> tuple[float, float]:
    """The largest deviation and the largest half-width in any group and direction.

    The law of a sum is looked at where the sum varies most, and then where the widest law of its
    deviation would be wider than that.
    """
    deviations = np.array([noise.deviations(direction) for direction in directions])
    bounds = noise.widest(deviations.ravel(), confidence).reshape(deviations.shape)
    most = np.unravel_index(np.argmax(deviations), deviations.shape)
    first: NDArray[np.bool_] = np.zeros(deviations.shape, dtype=bool)
    first[most] = True
    half = -1.0
    for direction_masks in (first, ~first):
        for direction, group_mask in zip(
            directions, direction_masks & (bounds > half), strict=True
        ):
            if group_mask.any():
                widths = noise.of(group_mask).half_widths(direction[group_mask], confidence)
                half = max(half, float(widths.max()))
    return float(deviations[most]), half


def _groups_of_inputs(answer: Computed) -> Floats:
    """The groups that have each input of the first group: all of them, where it is a total."""
    index, _ = places(answer, 0, min(answer.label.count, 1 << 16))
    return np.asarray((index == index[:1]).sum(axis=0), dtype=np.float64)


def _points(
    core: Formula, index: NDArray[np.int64], scales: Floats, queries: LinearMap, rows: Floats
) -> list[Floats]:
    """Inputs of tables with some rows for each: denominators at that number, others at their ends.

    Others have the rows of a group, which are the fewest.
    """
    every, least = np.broadcast_to(rows, scales.shape), float(rows.min())
    probe = np.random.default_rng(0).uniform(1.0, 2.0, (len(scales), 1))
    below = np.zeros(len(scales), dtype=bool)
    for _, gradient in core.dual(probe)[1]:
        below |= gradient[:, 0] != 0.0
    choices = []
    for k, scale in enumerate(scales.tolist()):
        low, high = _reach(queries, int(index[0, k]))
        if below[k]:
            choices.append([abs(scale) * float(every[k])])
        else:
            choices.append([scale * least * end for end in (low, (low + high) / 2, high)])
    return [np.array(point) for point in product(*choices)]


def _reach(queries: LinearMap, row: int) -> tuple[float, float]:
    if queries.shape[1] > BLOCK:
        return -1.0, 1.0
    weights = queries.rows(row, row + 1)
    return float(weights.min()), float(weights.max())
