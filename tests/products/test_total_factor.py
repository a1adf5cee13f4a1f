"""Whether a factor distinguishes cells is known from its first row that is not constant."""

import numpy as np
import pytest

from lrm.queries.maps.matrices import DenseMap


@pytest.mark.parametrize(
    ("rows", "expected"), [([[2, 2, 2], [1, 1, 1]], 5.0), ([[1, 1, 1], [1, 0, 1]], None)]
)
def test_total_factor_without_labels_of_columns(rows, expected, monkeypatch):
    monkeypatch.setattr(DenseMap, "column_labels", None)
    assert DenseMap(np.array(rows, dtype=float)).total_factor == expected
