r"""Values, errors and intervals of formulas of noisy answers.

A ratio N/D of two noisy answers has the interval of Fieller [1]_: all r for which the noise of
``N − r·D``, whose law is known exactly, need not be outside its own interval,

    { r : |N − r·D| ≤ h(r) },  with P(|noise of N − r·D| ≤ h(r)) ≥ confidence.

The true ratio is in this set exactly as often as stated, however small the denominator is. Where
0 itself is a possible denominator the set has no ends: the interval is all that is possible, from
the least declared number to the largest (`lrm.planning.derived.possible`).

For other formulas f (differences of rates, variances) the interval is the range of f over the
ellipsoid of inputs whose distance from the noisy ones is the half-width of the noise in the
direction in which f changes: the same as Fieller's for a ratio, and right to first order otherwise.

Numbers between knots are divided, which adds to a variance: the answer for the numbers themselves
lies between two formulas, the interval covers both, and the standard error has the root mean square
of what the division may have added.

Where the rows of the reconstruction are too large to be held, every input is given an interval of
its own, together as confident as stated, and f ranges over that box: wider, and still right.

References
----------
.. [1] Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 1954.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from lrm.planning.derived.noise import JointNoise, Noisy
from lrm.planning.derived.possible import possible_ends
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Computed, Formula


def computed_values(answer: Computed, start: int, stop: int, noisy: Noisy) -> Floats:
    """Values of the groups ``start:stop``."""
    index, scales = places(answer, start, stop)
    values = answer.formula.value(noisy.answers(index, scales).T)
    if noisy.queries is None:
        return values
    return np.clip(values, *possible_ends(answer.formula, noisy.queries, index, scales))


def computed_numbers(
    answer: Computed, start: int, stop: int, noisy: Noisy, confidence: float
) -> dict[str, Floats]:
    """Answer, linearised standard error and interval of the groups ``start:stop``."""
    index, scales = places(answer, start, stop)
    inputs = noisy.answers(index, scales).T
    noise = noisy.joint(index, scales)
    core = answer.formula.core
    value, gradient = core.dual(inputs)[0]
    cores = [core] if answer.undivided is None else [core, answer.undivided.core]
    if noise is None:
        each = 1.0 - (1.0 - confidence) / len(inputs)
        error = (np.abs(gradient) * noisy.errors(index, scales).T).sum(axis=0)
        halves = noisy.half_widths(index, scales, each).T
        intervals = [_boxed(one, inputs, halves) for one in cores]
    else:
        error = noise.deviations(gradient.T)
        find = _fieller if answer.formula.is_ratio else _ranges
        intervals = [find(one, inputs, noise, confidence) for one in cores]
    low, high = np.min(intervals, axis=0)[0], np.max(intervals, axis=0)[1]
    ends = [answer.formula.finish(low), answer.formula.finish(high)]
    if answer.formula.slope < 0:
        ends.reverse()
    with np.errstate(invalid="ignore"):
        error = error * answer.formula.steepness(value)
    answers = answer.formula.value(inputs)
    if answer.undivided is not None:  # between both, as if every value were equally likely
        with np.errstate(invalid="ignore"):
            gap = answers - np.nan_to_num(answer.undivided.value(inputs))
            error = np.sqrt(np.square(error) + np.square(gap) / 3.0)
    if noisy.queries is not None:
        least, most = possible_ends(answer.formula, noisy.queries, index, scales)
        answers, *ends = (np.clip(part, least, most) for part in (answers, *ends))
    return {"answer": answers, "standard_error": error, "low": ends[0], "high": ends[1]}


def places(answer: Computed, start: int, stop: int) -> tuple[NDArray[np.int64], Floats]:
    """The query of each input (groups × inputs), and the scale of each input."""
    index = np.column_stack([block.rows(answer.shape)[start:stop] for block in answer.inputs])
    return index, np.array([block.scale for block in answer.inputs])


def _fieller(
    _core: Formula, inputs: Floats, noise: JointNoise, confidence: float
) -> tuple[Floats, Floats]:
    groups = inputs.shape[1]
    unbounded = may_be_zero(inputs[1], noise, confidence)
    # Lower and upper ends are looked for together, from the ratio itself on.
    top, bottom = np.tile(inputs, 2)
    sums = np.tile(noise.covariance, (2, 1, 1))
    both = noise.of(np.tile(np.arange(groups), 2))
    sign = np.repeat([-1.0, 1.0], groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = inputs[0] / inputs[1]
        # Corrections of the half-width for its direction, each of which is some percent of the
        # last.
        for _ in range(3):
            direction = np.column_stack([np.ones_like(ratio), -ratio])
            direction[~np.isfinite(ratio)] = (0.0, 1.0)
            if len(ratio) == groups:
                kappa = np.tile(noise.quantile_ratios(direction, confidence), 2)
            else:
                kappa = both.quantile_ratios(direction, confidence)
            a = bottom**2 - kappa**2 * sums[:, 1, 1]
            b = top * bottom - kappa**2 * sums[:, 0, 1]
            c = top**2 - kappa**2 * sums[:, 0, 0]
            root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
            ratio = np.where(a > 0, (b + sign * root) / a, sign * np.inf)
    ends = np.where(np.tile(unbounded, 2), sign * np.inf, ratio)
    return ends[:groups], ends[groups:]


def may_be_zero(values: Floats, noise: JointNoise, confidence: float) -> NDArray[np.bool_]:
    """Whether the interval of each group's second input holds 0."""
    deviations = np.sqrt(noise.covariance[:, 1, 1])
    may_be_zero: NDArray[np.bool_] = np.abs(values) <= noise.widest(deviations, confidence)
    if may_be_zero.any():  # only here does it depend on the law of the sum
        alone = np.tile([0.0, 1.0], (int(may_be_zero.sum()), 1))
        ratios = noise.of(may_be_zero).quantile_ratios(alone, confidence)
        may_be_zero[may_be_zero] = np.abs(values[may_be_zero]) <= ratios * deviations[may_be_zero]
    return may_be_zero


def _ranges(
    core: Formula, inputs: Floats, noise: JointNoise, confidence: float
) -> tuple[Floats, Floats]:
    """The range of a formula over ellipsoids around the inputs."""
    values, vectors = np.linalg.eigh(noise.covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    (_, gradient), divisors = core.dual(inputs)
    kappa = noise.quantile_ratios(_finite(gradient).T, confidence)
    unbounded = np.zeros(inputs.shape[1], dtype=bool)
    for divisor, slope in divisors:
        direction = _finite(slope).T
        reach = np.maximum(kappa, noise.quantile_ratios(direction, confidence))
        unbounded |= ~(np.abs(divisor) > reach * noise.deviations(direction))
    # Lower and upper ends are looked for together.
    groups = inputs.shape[1]
    sign, radius = np.repeat([-1.0, 1.0], groups), np.tile(kappa, 2)
    both, twice = noise.of(np.tile(np.arange(groups), 2)), np.tile(inputs, 2)
    roots = np.tile(roots, (2, 1, 1))
    _, direction = _extreme(core, twice, roots, radius, sign)
    radius = both.quantile_ratios(direction, confidence)
    best, _ = _extreme(core, twice, roots, radius, sign)
    ends = np.where(np.tile(unbounded, 2), sign * np.inf, sign * best)
    return ends[:groups], ends[groups:]


def _extreme(
    core: Formula, inputs: Floats, roots: Floats, radius: Floats, sign: Floats
) -> tuple[Floats, Floats]:
    """The largest ``sign·f`` on a sphere of noise, and the gradient there.

    Each step goes half of the way to where the linearised f would be largest.
    """
    (value, gradient), _ = core.dual(inputs)
    best, slope = sign * value, _finite(gradient)
    direction = slope.T
    place = np.zeros((inputs.shape[1], roots.shape[2]))
    # Steps of the search for the extremes of a formula over an ellipsoid.
    for _ in range(60):
        steepest = sign[:, None] * np.einsum("gkj,kg->gj", roots, slope)
        length = np.linalg.norm(steepest, axis=1)
        target = steepest * (radius / np.where(length > 0, length, 1.0))[:, None]
        place = (place + target) / 2.0
        length = np.linalg.norm(place, axis=1)
        onto = place * (radius / np.where(length > 0, length, 1.0))[:, None]
        (value, gradient), _ = core.dual(inputs + np.einsum("gkj,gj->kg", roots, onto))
        slope = _finite(gradient)
        better = sign * value > best
        best = np.where(better, sign * value, best)
        direction = np.where(better[:, None], slope.T, direction)
    return best, direction


def _finite(gradient: Floats) -> Floats:
    return np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)


def _boxed(core: Formula, inputs: Floats, halves: Floats) -> tuple[Floats, Floats]:
    """The range of a formula over boxes around the inputs."""
    # Inputs of a formula whose 3^inputs corners of a box are looked at; with more, no end is known.
    if len(inputs) > 8:
        ends = np.full(inputs.shape[1], np.inf)
        return -ends, ends
    corners = [
        core.dual(inputs + halves * np.array(signs)[:, None])[0][0]
        for signs in product((-1.0, 0.0, 1.0), repeat=len(inputs))
    ]
    unbounded = np.zeros(inputs.shape[1], dtype=bool)
    for divisor, slope in core.dual(inputs)[1]:
        unbounded |= ~(np.abs(divisor) > (np.abs(slope) * halves).sum(axis=0))
    low = np.where(unbounded, -np.inf, np.min(corners, axis=0))
    return low, np.where(unbounded, np.inf, np.max(corners, axis=0))
