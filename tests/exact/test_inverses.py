"""Left inverses: every form is the pseudoinverse, and knows its own errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lrm.errors import ConvergenceError
from lrm.planning.design.inverses import Pseudoinverse, left_inverse
from lrm.planning.design.plus_rows import PlusRowsInverse
from lrm.queries.maps.levels import LevelInverse, LevelMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.words import AllRanges, Prefix

weights = st.integers(-4, 4).map(float)


@st.composite
def strategies(draw, most=7):
    """A strategy of any shape and rank, of small whole numbers, not all of them 0."""
    shape = draw(st.tuples(st.integers(1, most), st.integers(1, most)))
    matrix = draw(arrays(np.float64, shape, elements=weights))
    assume(matrix.any())
    return matrix


@st.composite
def diagonals_plus_few(draw):
    """Rows of one cell each and at most half as many others, in any order."""
    n = draw(st.integers(1, 8))
    sizes = st.sampled_from([-3.0, -1.0, 0.5, 1.0, 2.0, 1000.0])
    diagonal = np.diag(draw(arrays(np.float64, n, elements=sizes)))
    extra = draw(arrays(np.float64, (draw(st.integers(0, n // 2)), n), elements=weights))
    rows = np.vstack([diagonal, extra])
    return rows[draw(st.permutations(range(len(rows))))]


@st.composite
def trees(draw):
    """A tree with a weight on every level, over all of its leaves or some."""
    if draw(st.booleans()):
        fanouts = (2,) * draw(st.integers(1, 3))
        levels, first = len(fanouts) + 2, (0.0,)
    else:
        fanouts = tuple(draw(st.lists(st.integers(2, 3), min_size=1, max_size=3)))
        levels, first = len(fanouts) + 1, ()
    sizes = st.lists(st.floats(0.1, 5.0), min_size=levels - len(first), max_size=levels)
    own = draw(sizes)[: levels - len(first)]
    cells = draw(st.integers(1, int(np.prod(fanouts))))
    return LevelMap(cells, fanouts, (*first, *own), contrast=bool(first))


def check_products(inverse, matrix):
    """``rows_times`` and ``estimate`` are products with the pseudoinverse."""
    expected = np.linalg.pinv(matrix)
    rng = np.random.default_rng(0)
    rows, measurements = rng.standard_normal((3, matrix.shape[1])), rng.standard_normal(len(matrix))
    size = np.abs(expected).max()
    np.testing.assert_allclose(inverse.rows_times(rows), rows @ expected, atol=1e-9 * size)
    np.testing.assert_allclose(
        inverse.estimate(measurements), expected @ measurements, atol=1e-9 * size
    )


@given(strategies())
def test_a_left_inverse_is_the_pseudoinverse(matrix):
    check_products(left_inverse(DenseMap(matrix)), matrix)


@given(strategies())
def test_whether_cells_are_determined_is_known(matrix):
    """Rounding may pass for exact where the inverse says so: it must mean full column rank."""
    inverse = left_inverse(DenseMap(matrix))
    full = np.linalg.matrix_rank(matrix) == matrix.shape[1]
    assert isinstance(inverse, Pseudoinverse)
    if inverse.determines_cells:
        assert full
        np.testing.assert_allclose(inverse.rows_times(matrix) @ matrix, matrix, atol=1e-9)


@given(strategies())
def test_a_declared_rank_counts(matrix):
    """With the rank of L every query in its row space comes back."""
    rank = int(np.linalg.matrix_rank(matrix))
    inverse = left_inverse(DenseMap(matrix), rounding=2.0**-30, rank=rank)
    np.testing.assert_allclose(inverse.rows_times(matrix) @ matrix, matrix, atol=1e-9)


@given(diagonals_plus_few())
def test_a_diagonal_and_few_rows(matrix):
    """The Woodbury form is the pseudoinverse, in whatever order the rows are."""
    inverse = left_inverse(SparseMap(sp.csr_array(matrix)))
    assert isinstance(inverse, PlusRowsInverse)
    assert inverse.determines_cells
    assert inverse.is_closed_form == (len(matrix) == matrix.shape[1])
    rows = np.eye(matrix.shape[1])
    np.testing.assert_allclose(inverse.rows_times(rows) @ matrix, rows, atol=1e-9)
    check_products(inverse, matrix)


@given(trees())
def test_a_tree_has_a_closed_form(tree):
    """On all leaves it is the pseudoinverse; over fewer cells it still gives every cell back."""
    inverse = left_inverse(tree)
    assert isinstance(inverse, LevelInverse)
    whole = tree.over_all_leaves()
    check_products(left_inverse(whole), whole.dense())
    cells = np.random.default_rng(1).standard_normal(tree.cells)
    np.testing.assert_allclose(inverse.estimate(tree.apply(cells)), cells, atol=1e-8)
    rows = np.eye(tree.cells)
    np.testing.assert_allclose(inverse.rows_times(rows) @ tree.dense(), rows, atol=1e-8)


@given(st.data())
def test_known_errors_are_those_of_the_rows(data):
    """What an inverse states without B is what B has."""
    tree = data.draw(trees())
    n = tree.cells
    alone = SparseMap(sp.diags_array(np.arange(1.0, n + 1), format="csr"))
    matrix = DenseMap(np.random.default_rng(2).standard_normal((4, n)))
    for inverse in (left_inverse(tree), left_inverse(alone)):
        for queries in (Prefix(n), AllRanges(n), matrix):
            squares = (inverse.rows_times(queries.dense()) ** 2).sum(axis=1)
            rows, total = inverse.row_squared_norms(queries), inverse.squared_norm(queries)
            if rows is not None:
                np.testing.assert_allclose(rows, squares, rtol=1e-9, atol=1e-12)
            if total is not None:
                assert total == pytest.approx(squares.sum(), rel=1e-9)


def test_a_tree_without_a_weight_on_its_leaves_is_refused():
    with pytest.raises(ConvergenceError, match="does not determine its cells"):
        left_inverse(LevelMap(4, (2, 2), (0.0, 1.0, 1.0)))


def test_counts_come_back_from_long_rows_beside_an_identity():
    """Without refinement they were 1e-7 off, and plans of ranges over thousands of cells failed."""
    rng = np.random.default_rng(0)
    rows = 1e3 * rng.random((6, 64))
    strategy = SparseMap(sp.csr_array(sp.vstack([sp.eye_array(64), sp.csr_array(rows)])))
    inverse = left_inverse(strategy)
    counts = rng.random(64)
    assert np.abs(inverse.estimate(strategy.apply(counts)) - counts).max() < 1e-9
