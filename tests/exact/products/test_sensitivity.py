"""The stated sensitivity of strategies over products, against every neighbour of small tables."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lrm.errors import CountsError, WorkloadError
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.axes import Axis
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.privacy.budget import ZCDP
from lrm.privacy.mechanism import TrueCounts, calibrate, measure
from lrm.privacy.norms import L1, L2
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.products.tabulation import tabulate

LEAST = -(2**63)


@st.composite
def labels(draw, size):
    """How the values of an attribute are merged; some may be dropped."""
    merged = draw(st.integers(1, size))
    marks = draw(st.permutations([*range(merged), *[draw(st.integers(-1, merged - 1))] * size]))
    marks = np.array([*range(merged), *marks][:size])
    return marks[draw(st.permutations(range(size)))]


@st.composite
def bases(draw, size, residual):
    """An integer basis that is not the usual one, or the usual one."""
    if residual:
        if size < 2 or draw(st.booleans()):
            return ResidualBasis(size)
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        null, rows = rng.integers(1, 9, size), rng.integers(-99, 100, (size, size))
        return ResidualBasis(size, null.sum() * rows - (rows @ null)[:, None], null)
    rows = draw(st.integers(0, 3))
    entries = np.array(draw(st.lists(st.integers(0, 2**20), min_size=rows * size, max_size=99)))
    assume(len(entries) >= rows * size)
    extra = entries[: rows * size].reshape(rows, size).astype(np.int64)
    total = int(extra.sum(axis=0).max(initial=0)) + draw(st.integers(1, 9))
    return MarginalBasis(total - extra.sum(axis=0), extra)


@st.composite
def corners(draw, values):
    """Parts of some corners for each value; the first values are the corners themselves."""
    count, whole = draw(st.integers(1, values)), draw(st.integers(1, 9))
    parts = np.zeros((count, values), dtype=np.int64)
    for value in range(values):
        cuts = sorted(draw(st.lists(st.integers(0, whole), min_size=count - 1, max_size=count - 1)))
        parts[:, value] = np.diff([0, *cuts, whole])
    parts[:, :count] = whole * np.eye(count, dtype=np.int64)
    return parts[:, draw(st.permutations(range(values)))]


@st.composite
def strategies(draw):
    """Random groups over a small product: merged, dropped, fused, in classes; both bases."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    residual = draw(st.booleans())
    groups = []
    for _ in range(draw(st.integers(1, 2))):
        order = draw(st.permutations(range(len(sizes))))
        cut = draw(st.integers(1, len(sizes)))
        members = [tuple(order[:cut]), *((i,) for i in order[cut:])]
        axes = tuple(Axis(one, tuple(draw(labels(sizes[i])) for i in one)) for one in members)
        if draw(st.booleans()):
            classes = np.maximum(draw(labels(axes[0].combinations)), 0)
            axes = (replace(axes[0], classes=classes), *axes[1:])
        if draw(st.booleans()):
            k = draw(st.integers(0, len(axes) - 1))
            axes = (*axes[:k], replace(axes[k], parts=draw(corners(axes[k].size))), *axes[k + 1 :])
        own = tuple(draw(bases(axis.size, residual)) for axis in axes)
        every = [tuple(k for k in range(len(axes)) if n >> k & 1) for n in range(1 << len(axes))]
        ways = [
            (one, sign)
            for one in every
            for sign in ([0, 1, -1] if any(own[k].mirrored for k in one) else [0])
        ]
        chosen = draw(st.lists(st.sampled_from(ways), min_size=1, max_size=4, unique=True))
        sets, folds = zip(*chosen, strict=True)
        factors = tuple(draw(st.integers(1, 2**12)) for _ in sets)
        terms = np.zeros(0, dtype=np.int64)
        mixes = {}
        for b in draw(st.sets(st.sampled_from(range(len(sets))))) if residual else ():
            rng = np.random.default_rng(draw(st.integers(0, 2**32)))
            height = math.prod(own[k].height for k in sets[b])
            mixes[b] = rng.integers(-99, 100, (draw(st.integers(1, 4)), height))
            peak = math.prod(own[k].peak for k in sets[b])
            assume(99 * peak * height < 2**52)  # else it is refused, which is tested by itself
        groups.append(MeasuredGroup(terms, axes, own, sets, factors, folds, mixes))
    combined = not residual and len(groups) == 2 and draw(st.booleans())
    assume(not (combined and any(any(group.folds) for group in groups)))
    assume(not (combined and not all(axis.is_plain for group in groups for axis in group.axes)))
    # Residuals of axes with one value alone measure nothing.
    assume(any(any(group.norms(1)) for group in groups))
    # One record beyond 62 bits is refused, which is tested by itself.
    assume(max(peak for group in groups for peak in group.peaks()) <= 1 << 62)
    return Measured(sizes, tuple(groups), 20, L2() if residual else L1(), combined)


def moves(measured):
    """What one record in each cell adds to the measurements, in Python's integers."""
    cells = math.prod(measured.sizes)
    return [
        [
            int(value)
            for value in measured.measure_clamped(
                tabulate(measured.tabulations, np.eye(cells, dtype=np.int64)[cell], measured.sizes)
            )
        ]
        for cell in range(cells)
    ]


@settings(max_examples=150, deadline=None)
@given(strategies(), st.integers(1, 3))
def test_sensitivity_bounds_every_neighbour(measured, rows):
    moved = moves(measured)
    one = max(sum(map(abs, move)) for move in moved)
    two = max(sum(m * m for m in move) for move in moved)
    assert one <= measured.sensitivity
    assert two <= measured.squared_l2_sensitivity
    # A person's rows, and one person for another: all rows in one cell, then in another.
    unit = PrivacyUnit(neighbours="substitute", max_rows=rows)
    for a in moved:
        for b in moved:
            change = [rows * (x - y) for x, y in zip(a, b, strict=True)]
            assert sum(map(abs, change)) <= measured.sensitivity * unit.factor
            square = sum(c * c for c in change)
            assert square <= measured.squared_l2_sensitivity * unit.factor**2


@settings(max_examples=60, deadline=None)
@given(strategies())
def test_sensitivity_of_marginals_is_reached(measured):
    """All columns of a marginal basis have one sum, so nothing is wasted without dropped values."""
    dropped = any((m < 0).any() for g in measured.groups for a in g.axes for m in a.labels)
    folded = any(any(group.folds) for group in measured.groups)
    cornered = any(axis.parts is not None for group in measured.groups for axis in group.axes)
    assume(not measured.residual and not dropped and not (folded and cornered))
    assert max(sum(map(abs, move)) for move in moves(measured)) == measured.sensitivity


@settings(max_examples=60, deadline=None)
@given(strategies(), st.integers(0, 2**62))
def test_no_measurement_leaves_62_bits(measured, records):
    """At max_records in one cell 64-bit integers are exact; beyond it they are clamped."""
    cells = math.prod(measured.sizes)
    for amount in (measured.max_records, min(records, measured.max_records)):
        counts = np.zeros(cells, dtype=np.int64)
        counts[records % cells] = amount
        entries = tabulate(measured.tabulations, counts, measured.sizes)
        exact = measured.measure(entries).tolist()
        assert exact == measured.measure_clamped(entries).tolist()
        assert max(map(abs, exact)) <= 2**62


@settings(max_examples=40, deadline=None)
@given(strategies(), st.integers(0, 2**62 - 2))
def test_clamping_moves_neighbours_no_further_apart(measured, records):
    cells = math.prod(measured.sizes)
    for cell in range(cells):
        counts = np.zeros((2, cells), dtype=np.int64)
        counts[:, cell] = [records, records + 1]
        one, other = (
            measured.measure_clamped(tabulate(measured.tabulations, c, measured.sizes)).tolist()
            for c in counts
        )
        change = [a - b for a, b in zip(one, other, strict=True)]
        assert sum(map(abs, change)) <= measured.sensitivity


def _two_values(rows, null):
    basis = ResidualBasis(2, np.array(rows), np.array(null))
    axes = (Axis((0,), (np.arange(2),)),)
    group = MeasuredGroup(np.array([0]), axes, (basis,), ((0,),), (1,), (0,))
    return Measured((2,), (group,), 0, L2())


@pytest.mark.parametrize(
    ("rows", "null"),
    [
        # |-2^63| is -2^63 in 64 bits, and -2^63 times 2 is 0: the column seemed to have norm 1.
        ([[LEAST, 0], [1, -1]], [2, 2]),
        ([[LEAST, LEAST], [1, -1]], [1, 1]),
        ([[1, -1]], [LEAST, LEAST + 2]),
        ([[2**62, -(2**62)]], [1, 1]),
        ([[1, 1]], [2**63 - 1, 2**62]),
        ([[1, -1]], [0, 0]),
        ([[1, -1]], [1, 2]),
    ],
)
def test_residuals_that_wrap_around_are_refused(rows, null):
    with pytest.raises(WorkloadError):
        _two_values(rows, null)


@pytest.mark.parametrize(
    "mix",
    [
        # |-2^63| is -2^63 in 64 bits; sums of 2^52 are no longer exact in float64.
        [[LEAST, 0]],
        [[2**51, 1]],
        [[2**62, 2**62]],
        [[1, 1, 1]],
        np.zeros((0, 2)),
        np.ones((1025, 2)),
    ],
)
def test_mixes_that_are_not_exact_are_refused(mix):
    group = _two_values([[1, -1], [2, -2]], [1, 1]).groups[0]
    with pytest.raises(WorkloadError, match="mix"):
        replace(group, mixes={0: np.array(mix, dtype=np.int64)})
    with pytest.raises(WorkloadError, match="a mix must belong to a set"):
        replace(group, mixes={1: np.array([[1, 1]])})
    exact = replace(group, mixes={0: np.array([[3, 5], [-7, 0]])})
    assert exact.norms(2) == [13**2 + 7**2]
    with pytest.raises(WorkloadError, match="residuals alone"):
        Measured((2,), (replace(exact, bases=(MarginalBasis.identity(2),)),), 0)


@pytest.mark.parametrize("entry", [LEAST, 0, -1, 2**31, 2**62, 2**63 - 1])
def test_marginals_that_wrap_around_are_refused(entry):
    with pytest.raises(WorkloadError):
        MarginalBasis(np.array([1, entry]), np.zeros((0, 2), dtype=np.int64))
    with pytest.raises(WorkloadError):
        MarginalBasis(np.array([1, 1]), np.array([[entry, 1]] * 4 + [[1, 1]]))


def test_counts_whose_sums_wrap_around_are_refused():
    """Four counts of 2^62 - 1 were tabulated to -4, and two to a table that is no table."""
    measured = _two_values([[1, -1]], [1, 1])
    with pytest.raises(CountsError, match="admits at most"):
        measured.counts_of(np.array([2**62 - 1, 2**62 - 1]))


def test_the_door_clamps_what_passes_62_bits():
    measured = _two_values([[2**20, -(2**20)]], [1, 1])
    noise = calibrate(measured, ZCDP(Fraction(1)), PrivacyUnit())
    found = measure(TrueCounts([2**62 - 1, 0]), measured, noise)
    assert abs(int(found.noisy_values[0]) - 2**62) < 2**40
