"""Reductions lose nothing: the workload comes back, and so does every error."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given

from batches import matrices
from lrm.planning.design.cells import merge_cells, reduce_rows
from lrm.queries.maps.linear import labels_of_columns
from lrm.queries.maps.matrices import DenseMap, SparseMap


@given(matrices)
def test_merging_can_be_undone(matrix):
    """W = W'·M with whole-number factors, and merged counts answer every query."""
    merged = merge_cells(DenseMap(matrix))
    rebuilt = merged.queries.dense() @ merged.cell_map.matrix().toarray()
    np.testing.assert_allclose(rebuilt, matrix, rtol=1e-13, atol=0)
    counts = np.arange(1, matrix.shape[1] + 1)
    answers = merged.queries.apply(merged.cell_map.matrix() @ counts)
    np.testing.assert_allclose(answers, matrix @ counts, rtol=1e-9, atol=1e-9)


@given(matrices)
def test_labels_of_columns_are_their_ranks(matrix):
    """By a table, by a sort, or as numbers of tuples: whatever the entries are."""
    for rows in (matrix, matrix / 3, matrix * 1e5, np.sign(matrix), np.repeat(matrix, 70, axis=0)):
        ranks = np.unique(rows, axis=1, return_inverse=True)[1].reshape(-1)
        np.testing.assert_array_equal(labels_of_columns(rows), ranks)


@given(matrices)
def test_merged_columns_differ(matrix):
    """No merged cell is another one again, up to sign."""
    columns = merge_cells(DenseMap(matrix)).queries.dense().T
    for i, one in enumerate(columns):
        for other in columns[:i]:
            assert np.any(one != other)
            assert np.any(one != -other)


@given(matrices)
def test_sparse_and_dense_merge_alike(matrix):
    dense, sparse = merge_cells(DenseMap(matrix)), merge_cells(SparseMap(sp.csr_array(matrix)))
    np.testing.assert_array_equal(dense.cell_map.index, sparse.cell_map.index)
    np.testing.assert_array_equal(dense.cell_map.factor, sparse.cell_map.factor)


@given(matrices)
def test_rows_reduce_to_the_rank(matrix):
    factor = reduce_rows(DenseMap(matrix))
    scale = max(1.0, np.abs(matrix).max() ** 2)
    np.testing.assert_allclose(factor.T @ factor, matrix.T @ matrix, atol=1e-11 * scale)
    assert factor.shape[0] == max(1, np.linalg.matrix_rank(matrix))


def test_order_of_the_cells_survives():
    """Ranges over many cells become ranges over few: trees still make sense on them."""
    matrix = np.repeat(np.eye(3), [2, 1, 4], axis=1)
    merged = merge_cells(DenseMap(matrix))
    np.testing.assert_array_equal(merged.cell_map.index, [0, 0, 1, 2, 2, 2, 2])


def test_a_million_cells_merge_from_the_sparse_form():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 990_000, size=200)
    indices = (first[:, None] + np.arange(2000)).ravel()
    indptr = np.arange(0, len(indices) + 1, 2000)
    matrix = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(200, 1_000_000))
    merged = merge_cells(SparseMap(matrix))
    assert merged.cell_map.merged_size <= 2 * 200 + 1
    counts = rng.integers(0, 9, size=1_000_000)
    answers = merged.queries.apply(merged.cell_map.matrix() @ counts)
    np.testing.assert_array_equal(answers, matrix @ counts)


def test_thousands_of_unrelated_weights_stay_apart():
    """A query with random weights has no common ratios, and one cell for each weight."""
    weights = np.random.default_rng(0).random((1, 3000))
    merged = merge_cells(DenseMap(weights))
    assert merged.cell_map.is_trivial()


def test_equal_weights_merge_among_thousands_of_unrelated_ones():
    rng = np.random.default_rng(0)
    weights = rng.permutation(np.repeat(rng.random(2000), 3) * np.tile([1.0, -1.0, 1.0], 2000))
    merged = merge_cells(DenseMap(weights[None]))
    assert merged.cell_map.merged_size == 2000
    rebuilt = merged.queries.dense() @ merged.cell_map.matrix().toarray()
    np.testing.assert_array_equal(rebuilt, weights[None])


def test_ratios_are_found_in_thousands_of_classes():
    """Each of 5,000 groups of three weights becomes one cell."""
    matrix = SparseMap(sp.kron(sp.eye_array(5000), np.array([[1.0, 0.5, 0.75]]), format="csr"))
    merged = merge_cells(matrix)
    assert merged.cell_map.merged_size == 5000
    np.testing.assert_array_equal(merged.cell_map.factor[:3], [4, 2, 3])


def test_a_sum_of_thousands_of_values_is_one_cell():
    """Weights 0 to 5,000 have a common unit; so have fractions that one of them divides."""
    merged = merge_cells(DenseMap(np.arange(5001.0)[None]))
    assert merged.cell_map.merged_size == 1
    np.testing.assert_array_equal(merged.cell_map.factor, np.arange(5001))
    fractions = merge_cells(DenseMap(np.array([[0.1, 0.2, 0.4]])))
    np.testing.assert_array_equal(fractions.cell_map.factor, [1, 2, 4])


def test_ratios_that_are_too_large_stay_apart():
    """A factor costs bits of the counts: there is a largest one."""
    merged = merge_cells(DenseMap(np.array([[1.0, 2.0, 2.0, 1e6]])))
    assert merged.cell_map.merged_size == 3
    np.testing.assert_array_equal(merged.cell_map.factor, [1, 1, 1, 1])
