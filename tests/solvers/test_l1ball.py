"""The projection onto L1 balls is the nearest point, column by column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lrm.planning.solvers.lagrangian import project_columns_l1

entries = st.floats(-1e6, 1e6, allow_subnormal=False) | st.floats(-2, 2) | st.just(0.0)
shapes = st.tuples(st.integers(1, 9), st.integers(1, 7))


@st.composite
def pairs(draw):
    shape = draw(shapes)
    one = hnp.arrays(np.float64, shape, elements=entries)
    return draw(one), draw(one)


def by_sorting(column: np.ndarray, radius: float) -> np.ndarray:
    """The textbook form, one column at a time."""
    size = np.abs(column)
    if size.sum() <= radius:
        return column
    falling = np.sort(size)[::-1]
    thetas = (np.cumsum(falling) - radius) / np.arange(1, len(falling) + 1)
    theta = thetas[np.flatnonzero(falling > thetas)[-1]]
    return np.sign(column) * np.maximum(size - theta, 0)


@given(pairs(), st.floats(0.01, 100))
def test_projection_is_the_nearest_feasible_point(pair, radius):
    target, other = pair
    nearest = project_columns_l1(target, radius)
    feasible = other * (radius / np.maximum(np.abs(other).sum(axis=0), radius))
    scale = 1 + np.abs(target).max()
    assert np.all(np.abs(nearest).sum(axis=0) <= radius * (1 + 1e-9))
    assert np.sum((nearest - target) * (feasible - nearest)) >= -1e-9 * scale * (1 + radius)


@given(pairs())
def test_projection_agrees_with_sorting(pair):
    target, _ = pair
    expected = np.stack([by_sorting(column, 1.0) for column in target.T], axis=1)
    tolerance = 1e-12 * (1 + np.abs(target).max())
    np.testing.assert_allclose(project_columns_l1(target), expected, rtol=0, atol=tolerance)


@given(pairs())
def test_projecting_twice_changes_nothing(pair):
    once = project_columns_l1(pair[0])
    np.testing.assert_allclose(project_columns_l1(once), once, rtol=0, atol=1e-9)


def test_points_inside_stay_as_they_are():
    inside = np.array([[0.5, -0.2], [-0.5, 0.0]])
    np.testing.assert_array_equal(project_columns_l1(inside), inside)


def test_huge_entries_lose_nothing():
    np.testing.assert_array_equal(project_columns_l1(np.array([[1e20], [-1e20]])), [[0.5], [-0.5]])


def test_input_is_left_alone_and_empty_is_fine():
    matrix = np.full((3, 2), 4.0)
    project_columns_l1(matrix)
    assert (matrix == 4.0).all()
    assert project_columns_l1(np.empty((0, 3))).shape == (0, 3)


def test_radius_must_be_positive():
    with pytest.raises(ValueError, match="positive radius"):
        project_columns_l1(np.eye(2), 0.0)
