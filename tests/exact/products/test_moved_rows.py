"""Rounded rows of a residual basis are orthogonal to a null vector of few different entries."""

import numpy as np
import pytest

from lrm.planning.design.products.residuals import Moves


@pytest.mark.parametrize(
    "u",
    [
        np.repeat([271, 280, 1382], [200, 100, 65]),  # days of a year, some of them special
        np.repeat([1, 4], [110, 10]),
        np.repeat([6, -10, 15, 0], 40),
        np.arange(1, 200),
    ],
)
def test_any_row_can_be_moved(u):
    rng = np.random.default_rng(len(u))
    moves = Moves(u)
    for scale in (3.0, 300.0):
        target = rng.normal(size=len(u)) * scale
        target -= u * (target @ u) / (u @ u)
        row = np.rint(target).astype(np.int64)
        assert moves.cancel(row, target)
        assert row @ u == 0
        assert np.abs(row - target).max() <= 3
