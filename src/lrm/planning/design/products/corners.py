"""Values of an axis that lie between others: sums of a number need two values, not all of them.

A column of all queries on an axis (one entry per query, and 1 for the total) is a point. Where a
point lies between two others, ``p = ((D − c)·p_a + c·p_b)/D`` with whole c and D, a record with
that value can be counted as ``D − c`` parts of a record with value a and c parts of one with value
b: every query has D times its answer. What the record moves is the same mean of what records with
values a and b move, so by the triangle inequality it moves any measurements by no more than D times
the larger of both, in every norm. A strategy for the corners is then one for all values, and none
for all values is better.

COUNT and SUM of whole numbers from 0 to 99 have two corners, 0 and 99; with a condition ``x > 50``
they have four. Where no query is a total, a corner may be no value at all: one that no query
counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from lrm.errors import WorkloadError
from lrm.planning.limits import BLOCK
from lrm.queries.maps.linear import TINY, Floats, Integers, LinearMap, labels_of_columns
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.words import Total

MOST_PARTS = 1 << 16
"""Parts that a record may count for: 16 of the 62 bits of a measurement."""

BETWEEN = 1e-12
"""How far a point may be from between its corners, relative to the largest of its query: what
floats leave of an exact relation."""


def check_parts(parts: Integers, values: int) -> None:
    """Refuse parts that are not those of corners of some values."""
    if parts.ndim != 2 or parts.shape[1] != values or not 0 < parts.size <= BLOCK:
        raise WorkloadError("the parts of corners must cover the values of their axis")
    if parts.min() < 0 or parts.max() > MOST_PARTS:
        raise WorkloadError(f"the parts of corners must lie between 0 and {MOST_PARTS:,}")
    sums = parts.sum(axis=0)
    if not sums[0] == sums.min() == sums.max() <= MOST_PARTS or sums[0] < 1:
        raise WorkloadError("each value of an axis must have the same number of parts")
    parts.setflags(write=False)


def at_corners(factor: LinearMap, parts: Integers) -> LinearMap | None:
    """A factor over the corners; None where it is not the mean of its corners on all values."""
    if factor.kind == "total":
        return Total(len(parts))
    if factor.is_word or math.prod(factor.shape) > BLOCK:
        return None
    rows = factor.dense()
    corners = rows[:, parts.argmax(axis=1)]
    corners[:, parts.max(axis=1) < parts[:, 0].sum()] = 0.0
    means = corners @ parts / parts[:, 0].sum()
    size = np.abs(rows).max(axis=1, keepdims=True)
    if np.any(np.abs(means - rows) > BETWEEN * size):
        return None
    return DenseMap(corners)


def fused_parts(parts_of_axes: Sequence[Integers]) -> Integers:
    """The parts of several axes as one, whose values are the combinations of theirs.

    A corner that is no value of an axis counts for nothing, whatever it is combined with: all of
    these combinations are one corner.

    Examples
    --------
    >>> fused_parts([np.array([[1, 2, 4], [3, 2, 0]]), np.eye(2, dtype=int)]).tolist()
    [[1, 0, 2, 0, 4, 0], [0, 1, 0, 2, 0, 4], [3, 3, 2, 2, 0, 0]]
    """
    parts = np.ones((1, 1), dtype=np.int64)
    for part in parts_of_axes:
        parts = np.kron(parts, part)
    is_value = parts.max(axis=1) == parts[:, 0].sum()
    if is_value.all():
        return parts
    return np.vstack([parts[is_value], parts[~is_value].sum(axis=0, keepdims=True)])


def find_parts(factors: Sequence[LinearMap]) -> Integers | None:
    """The parts of corners that values of an axis count for; None where every value is a corner.

    ``factors`` are those of all queries on the axis, on which no two values are alike. Values lie
    between others where these agree in all conditions, and in which sums they count for.

    Examples
    --------
    >>> find_parts([DenseMap(np.array([[0.0, 1, 2, 4]])), Total(4)]).tolist()
    [[4, 3, 2, 0], [0, 1, 2, 4]]
    >>> find_parts([DenseMap(np.array([[1.0, 2, 4]]))]).tolist()
    [[1, 2, 4], [3, 2, 0]]
    """
    telling = [factor for factor in factors if factor.total_factor is None]
    values = factors[0].shape[1] if factors else 0
    are_words = any(factor.is_word for factor in telling)
    if values < 3 or are_words or sum(map(len, telling)) * values > BLOCK:
        return None
    rows = np.vstack([np.zeros((0, values)), *(factor.dense() for factor in telling)])
    if len(telling) == len(factors) and np.all(rows.any(axis=0)):
        rows = np.hstack([rows, np.zeros((len(rows), 1))])
    lowest, highest = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    conditions = np.all((rows == lowest) | (rows == highest), axis=1)
    graded = rows[~conditions]
    # Queries of more than two weights that are looked at together.
    if not 0 < len(graded) <= 16:
        return None
    lines: list[_Line] = []
    inner: set[int] = set()
    ends: set[int] = set()
    whole = 1
    for line in _lines(rows[conditions], graded):
        # Where nothing counts, a value may lie on several lines: it has the parts of one of them.
        is_apart = inner.isdisjoint((*line.inner, line.first, line.last))
        common = math.lcm(whole, *(share.denominator for share in line.shares))
        if common <= MOST_PARTS and is_apart and ends.isdisjoint(line.inner):
            lines.append(line)
            inner.update(line.inner)
            ends.update((line.first, line.last))
            whole = common
    corners = [value for value in range(values) if value not in inner]
    if values in ends - inner:  # no value, but an end of a line
        corners.append(values)
    if len(corners) >= values or len(corners) * values > BLOCK:
        return None
    number = {value: place for place, value in enumerate(corners)}
    parts = np.zeros((len(corners), rows.shape[1]), dtype=np.int64)
    parts[np.arange(len(corners)), corners] = whole
    for line in lines:
        shares = [share.numerator * (whole // share.denominator) for share in line.shares]
        parts[number[line.last], line.inner] = shares
        parts[number[line.first], line.inner] = whole - np.array(shares, dtype=np.int64)
    return parts[:, :values]


@dataclass(frozen=True)
class _Line:
    """Values between two others, and what share of the way each lies from the first of these."""

    first: int
    last: int
    inner: tuple[int, ...]
    shares: tuple[Fraction, ...]


def _lines(conditions: Floats, graded: Floats) -> Iterator[_Line]:
    """Yield lines of values that agree in all conditions, and perhaps in which sums count them."""
    for members in _alike(conditions):
        line = _line(members, graded[:, members])
        if line is not None:
            yield line
            continue
        nothing = np.flatnonzero(~graded[:, members].any(axis=0))[:1]
        for counted in _alike((graded[:, members] != 0).astype(np.float64), 2):
            # Sums of one condition each are in proportion: their lines begin where nothing counts.
            for some in (np.union1d(counted, nothing).astype(np.int64), counted):
                line = _line(members[some], graded[:, members[some]]) if len(some) > 2 else None
                if line is not None:
                    yield line
                    break


def _alike(rows: Floats, least: int = 3) -> Iterator[Integers]:
    """Yield the values, ``least`` or more, that have the same columns."""
    of = labels_of_columns(rows)
    for number in np.flatnonzero(np.bincount(of) >= least).tolist():
        yield np.flatnonzero(of == number)


def _line(values: Integers, points: Floats) -> _Line | None:
    """The line that the points of some values lie on; None if they lie on none."""
    sizes = np.abs(points).max(axis=1, keepdims=True)
    along = points[int(np.argmax(np.ptp(points, axis=1) / np.maximum(sizes[:, 0], TINY)))]
    first, last = int(np.argmin(along)), int(np.argmax(along))
    length = float(along[last] - along[first])
    if not length > 0:
        return None
    places = (along - along[first]) / length
    start, end = points[:, [first]], points[:, [last]]
    if np.any(np.abs(start + (end - start) * places - points) > BETWEEN * sizes):
        return None
    inner = np.flatnonzero((np.arange(len(values)) != first) & (np.arange(len(values)) != last))
    shares = []
    for place in places[inner].tolist():
        share = _share(place)
        if abs(float(share) - place) > BETWEEN:
            return None
        shares.append(share)
    inner_values = tuple(values[inner].tolist())
    return _Line(int(values[first]), int(values[last]), inner_values, tuple(shares))


@lru_cache(1 << 14)
def _share(place: float) -> Fraction:
    """The fraction of few parts next to a number from 0 to 1; groups ask for the same ones."""
    return Fraction(place).limit_denominator(MOST_PARTS)
