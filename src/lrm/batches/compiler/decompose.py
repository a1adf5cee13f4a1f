"""Tables over several attributes → sums of few products of one vector per attribute."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from lrm.batches.compiler.tables import Table

__all__ = ["Vectors", "decompose", "multiplied"]

Floats = NDArray[np.float64]

Vectors = tuple[float, dict[int, Floats]]
"""A coefficient, and one weight per merged cell of some attributes: the others weigh 1."""


def decompose(table: Table) -> list[Vectors]:
    """Write a table as a sum of products, cut into slices or taken from a constant.

    Cells are cut along the attribute that needs the fewest different slices, so that most
    products weigh different cells, and the weights are those of the table, not rounded. Where
    the weights are whole numbers, the table may also be a constant less a few products:
    ``a OR b OR c`` is 1 − (not a)(not b)(not c).

    Examples
    --------
    >>> either = np.array([[1.0, 1.0], [1.0, 0.0]])
    >>> for coefficient, vectors in decompose(Table((0, 1), either)):
    ...     print(coefficient, {axis: vector.tolist() for axis, vector in vectors.items()})
    1.0 {0: [1.0, 0.0]}
    1.0 {0: [0.0, 1.0], 1: [1.0, 0.0]}
    """
    slices = _slices(table.values, table.axes)
    if len(slices) <= 2 or not np.all(table.values == np.rint(table.values)):
        return slices
    values, counts = np.unique(table.values, return_counts=True)
    constant = float(values[np.argmax(counts)])
    rest = _slices(table.values - constant, table.axes) if constant else slices
    return [(constant, {}), *rest] if len(rest) + 1 < len(slices) else slices


def _slices(values: Floats, axes: tuple[int, ...]) -> list[Vectors]:
    if not values.any():
        return []
    constant = [
        side for side in range(values.ndim) if np.all(values == values.take([0], axis=side))
    ]
    if constant:
        kept = [side for side in range(values.ndim) if side not in constant]
        for side in reversed(constant):
            values = np.asarray(values.take(0, axis=side))
        axes = tuple(axes[side] for side in kept)
    if values.ndim == 0:
        return [(float(values), {})]
    if values.ndim == 1:
        return [(1.0, {axes[0]: values})]
    side, groups = min(
        ((side, _groups(values, side)) for side in range(values.ndim)), key=lambda one: len(one[1])
    )
    rest = (*axes[:side], *axes[side + 1 :])
    found: list[Vectors] = []
    for members in groups:
        inside = np.zeros(values.shape[side])
        inside[members] = 1.0
        for coefficient, vectors in _slices(np.asarray(values.take(members[0], axis=side)), rest):
            found.append((coefficient, {axes[side]: inside, **vectors}))
    return found


def _groups(values: Floats, side: int) -> list[list[int]]:
    """The places along one side with equal slices that are not all 0."""
    rows = np.ascontiguousarray(np.moveaxis(values, side, 0)).reshape(values.shape[side], -1)
    groups: dict[bytes, list[int]] = {}
    for place in np.flatnonzero(rows.any(axis=1)).tolist():
        groups.setdefault(rows[place].tobytes(), []).append(place)
    return list(groups.values())


def multiplied(parts: list[list[Vectors]], coefficient: float) -> list[Vectors]:
    """The product of sums over different attributes, as one sum."""
    found: list[Vectors] = []
    for chosen in product(*parts):
        whole = coefficient
        vectors: dict[int, Floats] = {}
        for own, some in chosen:
            whole *= own
            vectors |= some
        found.append((whole, vectors))
    return found
