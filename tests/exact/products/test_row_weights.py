"""Classes of rows with multiplicities are the rows of B, up to order and sign."""

import numpy as np
import pytest

from lrm.planning.accuracy.intervals import half_widths, norm_half_widths, sum_half_widths
from lrm.planning.design.products import row_weights
from lrm.privacy.laws import NoiseLaw
from lrm.queries.maps.products.batch import cross_tabs
from product_batches import BATCHES, rounded

FINE, COARSE = NoiseLaw("laplace", 2.0**24), NoiseLaw("laplace", 6.0)


def spread_out(found, start, stop):
    """The rows ``start:stop`` with their weights sorted, as many as there are measurements."""
    rows = []
    for first, last, weights in found.row_weights(start, stop):
        assert len(weights.place) == last - first
        starts = weights.ends - np.diff(weights.ends, prepend=0)
        counts = np.ones(len(weights.values)) if weights.counts is None else weights.counts
        for place in weights.place:
            part = slice(starts[place], weights.ends[place])
            full = np.repeat(weights.values[part], counts[part].astype(int))
            rows.append(np.sort(np.pad(full, (0, found.shape[1] - len(full)))))
    return np.array(rows)


@pytest.mark.parametrize("name", BATCHES)
def test_weights_are_those_of_dense_rows(name):
    found = rounded(BATCHES[name], "laplace")[1]
    dense = np.sort(np.abs(found.matrix()), axis=1)
    np.testing.assert_allclose(spread_out(found, 0, len(dense)), dense, atol=1e-10)
    middle = slice(1, len(dense) - 1)
    np.testing.assert_allclose(
        spread_out(found, middle.start, middle.stop), dense[middle], atol=1e-10
    )


@pytest.mark.parametrize("law", [FINE, COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize("name", ["tables", "prefixes", "sums"])
def test_half_widths_are_those_of_dense_rows(name, law):
    found = rounded(BATCHES[name], "laplace")[1]
    count = found.shape[0]
    got = half_widths(found, law, 0.95, [(0, count)])
    np.testing.assert_allclose(got, sum_half_widths(found.matrix(), law, 0.95), rtol=1e-6)
    some = [2, 0, count - 1]
    np.testing.assert_allclose(
        half_widths(found, law, 0.95, [(i, i + 1) for i in some]), got[some], rtol=1e-6
    )


def test_too_many_weights_give_the_widest_half_width(monkeypatch):
    found = rounded(BATCHES["tables"], "laplace")[1]
    exact = half_widths(found, FINE, 0.95, [(0, found.shape[0])])
    monkeypatch.setattr(row_weights, "ARRAY", 0)
    wide = half_widths(found, FINE, 0.95, [(0, found.shape[0])])
    norms = np.sqrt(found.row_squared_norms)
    np.testing.assert_allclose(wide, norm_half_widths(norms, FINE, 0.95))
    assert np.all(wide >= exact)
    assert np.all(wide <= 1.11 * exact)


def test_a_cell_of_a_table_has_few_weights():
    found = rounded(cross_tabs([30, 40, 50], [2]), "laplace")[1]
    ((_, _, weights),) = found.row_weights(0, 1200)
    assert len(weights.ends) == 1
    assert len(weights.values) <= 12
    assert found.shape[1] > 1000
