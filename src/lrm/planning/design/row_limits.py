r"""How far a person moves measurements in L2, where their rows are limited in each group of rows.

A person has at most b rows in each cell of an attribute t, its *groups*, at most c in all, and rows
in g groups at most (`lrm.privacy.unit.GroupLimit`). With the rows of L for the cells j, and
``G = LᵀL``, rows x move the measurements by ``‖Lx‖² = Σ_{r,s} G_{j(r)j(s)}``, a sum over pairs of
rows. Rows of one group have ``G ≤ D``, the largest on the diagonal (Cauchy and Schwarz); those of
different groups ``G ≤ Q``, the largest over cells of different groups. With m_t rows in group t,

.. math:: ‖Lx‖² ≤ Σ_t m_t²·D + Σ_{t≠t'} m_t·m_{t'}·Q = (D − Q)·Σ_t m_t² + Q·(Σ_t m_t)²

Since ``D ≥ Q``, the first sum is to be large for each number of rows n: the largest groups are
filled first, as a sum of squares is convex. With Q < 0 fewer rows may move the measurements more
than all c, so that every n from 1 to c is looked at.

Over products, L has one block for each set A of axes, ``f_A·⊗_{k∈A} S_k``, and G is the sum of
``f_A²·Π_{k∈A} (S_kᵀS_k)``, which is linear in the entry of each axis. So it is largest where every
entry is the largest or the least of its axis: where rows agree on some axes and differ on others,
the same ones for all blocks. If rows can agree and differ so pair by pair, the bound is attained.
Values of t that the strategy does not distinguish are one group, of the limits of all of them.

Sums of blocks whose axes merge t in other ways are bounded by the sum of their own bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.integers import CellBasis
from lrm.planning.design.products.axes import Axis
from lrm.planning.design.products.basis import MOST_LISTED, ProductBasis
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats, Integers

MOST_WAYS = 1 << 12
"""Ways in which rows agree and differ, and numbers of rows, that are looked at one by one.

Beyond, each block is by itself, and rows of different groups count for 0.
"""


@dataclass(frozen=True)
class RowLimits:
    """The limits of a person's rows by group, as the axes of one group of measurements see them.

    Parameters
    ----------
    axis
        The axis of the attribute.
    rows
        The most rows of a person in all.
    caps
        The most rows of a person in each merged value of the attribute, the largest first.
    """

    axis: int
    rows: int
    caps: tuple[int, ...]

    @classmethod
    def on(cls, axes: Sequence[Axis], unit: PrivacyUnit) -> RowLimits | None:
        """The limits of a unit on some axes; None where these do not see the groups."""
        by = unit.by
        if by is None or not by.size:
            return None
        for k, axis in enumerate(axes):
            if by.axis in axis.attributes:
                labels = axis.labels[axis.attributes.index(by.axis)]
                # In classes, and between corners, different values are not different columns.
                if len(labels) != by.size or not axis.is_plain:
                    return None
                sizes = np.bincount(labels[labels >= 0])
                caps = sorted((min(by.most * int(s), unit.most_rows) for s in sizes), reverse=True)
                return cls(k, unit.most_rows, tuple(caps))
        return None

    def squares(self, rows: int) -> int:
        """``Σ m_t²`` at most, of some rows."""
        total = 0
        for cap in self.caps:
            taken = min(cap, rows)
            total, rows = total + taken**2, rows - taken
        return total

    def most(self, diagonal: int, other: int) -> int:
        """The largest ``(D − Q)·Σ m_t² + Q·(Σ m_t)²``."""
        rows = min(self.rows, sum(self.caps))
        if other < 0 and rows > MOST_WAYS:
            other = 0
        numbers = range(1, rows + 1) if other < 0 else (rows,)
        return max((diagonal - other) * self.squares(n) + other * n * n for n in numbers)

    def shares(
        self, roots: Floats, bases: Sequence[ProductBasis], members: NDArray[np.bool_]
    ) -> Floats:
        """The best ω² of sets of residuals by the roots of their errors."""
        return limited_shares(roots, self.patterns(bases, members))

    def patterns(self, bases: Sequence[ProductBasis], members: NDArray[np.bool_]) -> Floats:
        """What rows that agree and differ in some ways move the sets of a group by.

        One row of the result for each way and number of rows, one column for each set (of
        ``members``, sets x axes), relative to ``c²`` and to what one record moves the set by: a
        search for the weights of sets brings the largest sum to 1.
        """
        ends = [basis.inner_products for basis in bases]
        values = [
            (other if k == self.axis else most, least)
            for k, (most, least, other) in enumerate(ends)
        ]
        scale = np.array([max(float(most), 1e-300) for most, _, _ in ends])
        used = [k for k in range(len(bases)) if members[:, k].any()]
        vertices = np.ones((1, len(bases)))
        if 1 << len(used) <= MOST_WAYS >> 4:
            vertices = np.ones((1 << len(used), len(bases)))
            choices = itertools.product(*(values[k] for k in used))
            vertices[:, used] = np.array(list(choices), dtype=np.float64) / scale[used]
        elif self.axis in used:
            vertices[0, self.axis] = values[self.axis][0] / scale[self.axis]
        agree = np.stack([np.prod(vertices[:, row], axis=1) for row in members], axis=1)
        rows = min(self.rows, sum(self.caps))
        # Numbers of rows that a search looks at.
        few = np.unique(np.linspace(1, rows, 16).astype(np.int64)).tolist()
        listed = []
        for n in few:
            some = agree if n == rows else agree[np.any(agree < 0, axis=1)]
            listed.append((1.0 - some) * self.squares(n) + some * float(n) ** 2)
        every = np.unique(np.maximum(np.vstack(listed), 0.0), axis=0)
        return np.asarray(every / float(self.rows) ** 2)


def limited_shares(roots: Floats, patterns: Floats) -> Floats:
    """The shares g of sets with the least ``Σ roots²/g`` whose largest pattern ``P·g`` is 1.

    By duality the least is the largest ``(Σ_A sqrt(roots_A²·(Pᵀλ)_A))²`` over weights λ of patterns
    that sum to 1, at ``g ∝ roots/sqrt(Pᵀλ)``. Multiplying each weight by its pattern's value at g
    raises it; the steps end where no pattern is 10⁻⁴ above 1.

    Examples
    --------
    >>> limited_shares(np.array([1.0, 3.0]), np.array([[1.0, 1.0]])).tolist()
    [0.25, 0.75]
    """
    some = roots > 0
    own = patterns[:, some]
    weights = np.full(len(own), 1.0 / len(own))
    best, least = np.zeros(own.shape[1]), math.inf
    for _ in range(max(50, min(5_000, int(2e8 / max(own.size, 1))))):
        mixed = np.maximum(weights @ own, 1e-12)
        shares = roots[some] / np.sqrt(mixed)
        values = own @ shares
        largest = float(values.max())
        error = float((roots[some] ** 2 / shares).sum()) * largest
        if error < least:
            best, least = shares / largest, error
        average = float(weights @ values)
        if largest <= average * 1.0001:
            break
        weights *= values / average
        weights /= weights.sum()
    result = np.zeros(len(roots))
    result[some] = best
    return result


def squared_moved(
    groups: Sequence[MeasuredGroup], sizes: Sequence[int], unit: PrivacyUnit
) -> int | None:
    """The most that one unit with limits by group moves the integers by, in squared L2: at most.

    None where nothing follows from the limits.
    """
    by = unit.by
    if by is None or not by.size:
        return None
    first = groups[0].bases[0]
    if isinstance(first, CellBasis):
        moved = _of_cells(first, sizes[0], unit)
    elif by.axis < len(sizes) and sizes[by.axis] == by.size:
        moved = sum(_of_group(group, unit) for group in groups)
    else:
        return None
    # A person who is replaced moves the measurements by the difference of two.
    return None if moved is None else moved * (unit.factor // unit.most_rows) ** 2


def _of_group(group: MeasuredGroup, unit: PrivacyUnit) -> int:
    """The bound of one group of measurements over products."""
    norms = group.norms(2)
    limits = RowLimits.on(group.axes, unit)
    if limits is None:
        return sum(norms) * unit.most_rows**2
    plain = [not (group.folds[b] or b in group.mixes) for b in range(len(norms))]
    sets = [b for b in range(len(norms)) if plain[b]]
    other = sum(norm for norm, is_plain in zip(norms, plain, strict=True) if not is_plain)
    other += _largest_pair(group, limits, sets) if sets else 0
    return limits.most(sum(norms), min(other, sum(norms)))


def _largest_pair(group: MeasuredGroup, limits: RowLimits, sets: Sequence[int]) -> int:
    """The largest inner product of two rows in different groups, over some sets of axes."""
    scales = [
        (group.factors[b] * math.prod(group.axes[k].whole for k in group.sets[b])) ** 2
        for b in sets
    ]
    used = sorted({k for b in sets for k in group.sets[b]})
    ends: dict[int, tuple[int, int]] = {}
    for k in used:
        most, least, other = group.product_bases[k].inner_products
        ends[k] = (int(other if k == limits.axis else most), int(least))
    if 1 << len(used) > MOST_WAYS:  # each set for itself
        return sum(
            scale * max(map(math.prod, itertools.product(*(ends[k] for k in group.sets[b]))))
            for b, scale in zip(sets, scales, strict=True)
        )
    vertices = list(itertools.product(*(ends[k] for k in used)))
    columns = np.array(vertices, dtype=np.float64)
    places = {k: place for place, k in enumerate(used)}
    values, sizes = np.zeros(len(vertices)), np.zeros(len(vertices))
    for b, scale in zip(sets, scales, strict=True):
        term = float(scale) * np.prod(columns[:, [places[k] for k in group.sets[b]]], axis=1)
        values += term
        sizes += np.abs(term)
    # Floats find the largest but for rounding; among those that it could be, integers decide.
    near = np.flatnonzero(values + 1e-9 * sizes >= float((values - 1e-9 * sizes).max()))

    def exact(vertex: tuple[int, ...]) -> int:
        return sum(
            scale * math.prod(vertex[places[k]] for k in group.sets[b])
            for b, scale in zip(sets, scales, strict=True)
        )

    return max(exact(vertices[place]) for place in near.tolist())


def _of_cells(basis: CellBasis, size: int, unit: PrivacyUnit) -> int | None:
    """The bound of a strategy over a list of cells, from the inner products of its columns.

    With M_tt' the largest of cells in groups t and t', ``‖Lx‖² ≤ Σ_t m_t·ρ_t`` with
    ``ρ_t = Σ_t' m_t'·M_tt'`` at most: the largest positive entries of a row, filled first.
    """
    by = unit.by
    assert by is not None  # noqa: S101 - the caller looked
    labels = basis.labels
    span = by.size * by.stride
    small = int(labels.max(initial=-1)) < MOST_LISTED and by.size <= MOST_LISTED
    if size % span or len(labels) != size or not small or basis.peak >= 1 << 62:
        return None
    columns, of_class = np.unique(basis.moves(), axis=1, return_inverse=True)
    gram, scale = _gram(columns)
    group = np.arange(size) // by.stride % by.size
    members = np.zeros((by.size, columns.shape[1]), dtype=bool)
    members[group[labels >= 0], of_class.reshape(-1)[labels[labels >= 0]]] = True
    merged, counts = np.unique(members[members.any(axis=1)], axis=0, return_counts=True)
    caps = [min(by.most * int(count), unit.most_rows) for count in counts]
    pairs = [[int(gram[own][:, other].max()) for other in merged] for own in merged]
    moved = [_filled(row, caps, unit.most_rows) for row in pairs]
    most = _filled(moved, caps, unit.most_rows)
    if np.all(merged.sum(axis=0) == 1):  # no column is of two groups
        limits = RowLimits(0, unit.most_rows, tuple(sorted(caps, reverse=True)))
        diagonal = max(row[t] for t, row in enumerate(pairs))
        others = [value for t, row in enumerate(pairs) for u, value in enumerate(row) if t != u]
        most = min(most, limits.most(diagonal, max(others, default=0)))
    return scale * most


def _gram(columns: Integers) -> tuple[Integers | Floats, int]:
    """Inner products of columns, and a whole number that they are to be multiplied by.

    They are exact where they fit 64 bits, else rounded up.
    """
    divisor = max(int(np.gcd.reduce(columns, axis=None)), 1)
    whole = columns // divisor
    largest = max(int(whole.max()), -int(whole.min()))
    if largest**2 * len(whole) < 1 << 62:
        return whole.T @ whole, divisor**2
    real = whole.astype(np.float64)
    sizes = np.abs(real).T @ np.abs(real)
    return np.ceil(real.T @ real + (len(whole) + 4) * 2.0**-51 * sizes), divisor**2


def _filled(values: Sequence[int], caps: Sequence[int], rows: int) -> int:
    """The largest ``Σ m_t·value_t`` of some rows, at most as many of each group as its cap."""
    total = 0
    for value, cap in sorted(zip(values, caps, strict=True), reverse=True):
        taken = min(cap, rows) if value > 0 else 0
        total, rows = total + taken * value, rows - taken
    return total
