"""Rounding: integers that lose nothing of what the strategy can reconstruct."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lrm.planning.design.cells import CellMap, merge_cells, reduce_rows
from lrm.planning.design.integers import CARRIER_BITS
from lrm.planning.design.rounding import anchored, integer_combination, quantise
from lrm.privacy.norms import L1, norm_of
from lrm.queries.maps.matrices import DenseMap

ANCHORS = (2.0**-14, 2.0**-12, 2.0**-10)
"""Shares of the sensitivity that may measure cells."""

whole = st.integers(-5, 5).map(float)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@st.composite
def of_known_rank(draw, most=6):
    """Small whole numbers, some of whose rows are sums of others."""
    base = draw(arrays(np.float64, draw(sizes), elements=whole))
    mix = draw(arrays(np.float64, (draw(st.integers(1, most)), len(base)), elements=whole))
    matrix = mix @ base
    assume(matrix.any())
    return matrix


def exact_rank(matrix):
    """The rank by elimination in fractions."""
    rows = [[Fraction(int(value)) for value in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            share = rows[i][column] / rows[rank][column]
            rows[i] = [one - share * two for one, two in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


@given(of_known_rank())
def test_reduced_rows_are_as_many_as_the_rank(matrix):
    """RᵀR = WᵀW, with no row to spare."""
    reduced = reduce_rows(DenseMap(matrix))
    assert len(reduced) == exact_rank(matrix)
    size = np.abs(matrix.T @ matrix).max()
    np.testing.assert_allclose(reduced.T @ reduced, matrix.T @ matrix, atol=1e-12 * size)


@given(of_known_rank(), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_the_row_rank_of_a_combination_is_that_of_the_queries(matrix, rows, seed):
    """Independent rows of W and their mix: the strategy again, with the rank found exactly."""
    mix = np.random.default_rng(seed).standard_normal((rows, len(matrix)))
    strategy = mix @ matrix
    strategy /= np.abs(strategy).sum(axis=0).max()
    found = integer_combination(strategy, DenseMap(matrix))
    assert found is not None
    base, mixed, rank = found
    assert rank == exact_rank(matrix) == exact_rank(base)
    np.testing.assert_allclose(mixed @ base, strategy, atol=1e-9)


@given(of_known_rank(), st.sampled_from(["laplace", "gaussian"]))
def test_whole_queries_survive_rounding(matrix, noise):
    """L = W, rounded: every query comes back, and one record moves what is stated, no more."""
    merged = merge_cells(DenseMap(matrix))
    measured, back = quantise(merged.queries, merged.cell_map, merged.queries, norm=norm_of(noise))
    assert back.relative_residual < 1e-9
    n = measured.sizes[0]
    records = [
        measured.measure(measured.counts_of(one)).tolist() for one in np.eye(n, dtype=np.int64)
    ]
    assert measured.sensitivity == max(sum(map(abs, record)) for record in records)
    squares = [sum(value**2 for value in record) for record in records]
    assert measured.squared_l2_sensitivity == max(squares)
    peak = max(abs(value) for record in records for value in record)
    assert measured.max_records * peak <= 1 << CARRIER_BITS


@given(
    arrays(np.float64, sizes, elements=st.floats(-1, 1)),
    st.lists(st.integers(-12, 12), min_size=6, max_size=6),
)
def test_anchored_rounding_determines_every_cell(matrix, exponents):
    """Rows of any size and rank: every cell comes back, and the cost is at most 2·max(ANCHORS)."""
    rows, n = matrix.shape
    dense = matrix * 10.0 ** np.array(exponents[:rows])[:, None]
    norm = np.abs(dense).sum(axis=0).max()
    assume(norm > 1e-9)
    dense = dense / norm
    measured, back = anchored(dense, CellMap.trivial(n), DenseMap(np.eye(n)), None, L1())
    assert back.inverse.determines_cells
    assert back.relative_residual < 1e-9
    # Rounding to 2^−30 moves a column by half a unit for each of its entries at most.
    assert measured.sensitivity <= 2**measured.bits + (rows + n) / 2
    assert len(measured.cells.matrix.dense()) == rows + n
    # The share of a query that is measured by its own row is all but 1, squared.
    original = measured.real_map.dense()[:rows]
    assert np.any([np.allclose(original, (1 - a) * dense, 0, 2.0**-30) for a in ANCHORS])


def test_queries_of_many_sizes_need_an_anchor():
    """A workload whose smallest query drowns in the last bits of the largest."""
    rng = np.random.default_rng(5)
    queries = DenseMap(rng.standard_normal((5, 9)) * 10.0 ** np.arange(-12, 3, 3)[:, None])
    measured, back = quantise(queries, CellMap.trivial(9), queries)
    assert measured.measurement_count == 5 + 9
    assert back.relative_residual < 1e-9


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_workload_of_zeros_measures_something(noise):
    zeros = DenseMap(np.zeros((2, 3)))
    merged = merge_cells(zeros)
    measured, _ = quantise(merged.queries, merged.cell_map, merged.queries, norm=norm_of(noise))
    assert measured.sensitivity == 2**30
