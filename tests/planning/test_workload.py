"""Workloads: maps agree with their matrices; bad input is refused in a sentence."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import lrm
from lrm.domain import Categories, Domain, Integers
from lrm.errors import WorkloadError
from lrm.queries.builders import marginals
from lrm.queries.maps.files import KINDS
from lrm.queries.maps.kron import Kron
from lrm.queries.maps.levels import LevelMap
from lrm.queries.maps.matrices import DenseMap, SparseMap, as_map
from lrm.queries.maps.products.batch import product_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.ranges import RangeMap
from lrm.queries.maps.words import AllRanges, Identity, Prefix, Total
from lrm.queries.workload import Workload, families

MAPS = [
    Total(5),
    Identity(5),
    Prefix(1),
    Prefix(9),
    AllRanges(1),
    AllRanges(7),
    SparseMap(sp.random_array((5, 8), density=0.4, rng=np.random.default_rng(0))),
    DenseMap(np.random.default_rng(1).standard_normal((4, 6))),
    LevelMap(7, (2, 4), (1.0, 0.0, 2.0)),
    LevelMap(6, (2, 2, 2), (0.0, 1.0, 2.0, 3.0, 0.5), contrast=True),
    ProductMap(product_batch([2, 3], [["identity", "total"], ["total", "prefix"]])),
    RangeMap(9, np.array([0, 3, 5, 3]), np.array([9, 5, 6, 5]), np.array([1.0, 2.0, -0.5, 1.0])),
    RangeMap(4, np.array([2, 1]), np.array([2, 3]), np.array([3.0, 1.0])),
]


@pytest.mark.parametrize("queries", MAPS, ids=lambda q: f"{q.kind}-{q.shape}")
def test_a_map_is_its_matrix(queries):
    """Every product that a map offers is that of the matrix it stands for."""
    matrix, rng = queries.dense(), np.random.default_rng(2)
    m, n = queries.shape
    assert matrix.shape == (m, n)
    for extra in ((), (3,)):
        x, y = rng.standard_normal((n, *extra)), rng.standard_normal((m, *extra))
        np.testing.assert_allclose(queries.apply(x), matrix @ x, atol=1e-12)
        np.testing.assert_allclose(queries.apply_transpose(y), matrix.T @ y, atol=1e-12)
    np.testing.assert_allclose(queries.gram(), matrix.T @ matrix, atol=1e-12)
    np.testing.assert_allclose(queries.column_absolute_sums(), np.abs(matrix).sum(axis=0))
    assert queries.squared_norm() == pytest.approx((matrix**2).sum())
    np.testing.assert_allclose(queries.column_squared_sums(), (matrix**2).sum(axis=0))
    some = np.arange(n)[::2]
    np.testing.assert_array_equal(queries.columns(some).dense(), matrix[:, some])
    np.testing.assert_array_equal(np.vstack([rows for _, rows in queries.row_blocks()]), matrix)


@pytest.mark.parametrize("queries", MAPS, ids=lambda q: f"{q.kind}-{q.shape}")
def test_a_map_changes_as_its_matrix_does(queries):
    """What a map answers in its own form is what its matrix would."""
    matrix, rng = queries.dense(), np.random.default_rng(3)
    m, n = queries.shape
    rows, columns = rng.uniform(1, 2, m), rng.uniform(1, 2, n)
    for changed, expected in (
        (queries.written_out(), matrix),
        (queries.scaled(0.75), 0.75 * matrix),
        (queries.rounded(10.0), np.rint(10.0 * matrix)),
        (queries.scale_rows(rows), rows[:, None] * matrix),
        (queries.scale_columns(columns), matrix * columns),
        (queries.absolute(), np.abs(matrix)),
        (queries.squared(), matrix**2),
        (queries.compact(drop_idle=False), matrix),
    ):
        np.testing.assert_allclose(changed.dense(), expected, atol=1e-13)
    busy = matrix[np.any(matrix != 0, axis=1)]
    kept = queries.compact(drop_idle=True).dense()  # a tree keeps its form, and all rows
    np.testing.assert_array_equal(kept[np.any(kept != 0, axis=1)], busy)
    np.testing.assert_array_equal(queries.sparse().toarray(), matrix)
    np.testing.assert_array_equal(queries.sparse_columns().toarray(), matrix)
    assert queries.entry_count >= np.count_nonzero(matrix)


@pytest.mark.parametrize("queries", MAPS, ids=lambda q: f"{q.kind}-{q.shape}")
def test_closed_forms_are_those_of_the_matrix(queries):
    matrix = queries.dense()
    known = queries.known_singular_values()
    assert (known is not None) == queries.has_closed_forms, "a map has all closed forms or none"
    if known is not None:
        np.testing.assert_allclose(known, np.linalg.svd(matrix, compute_uv=False), atol=1e-9)
        padded = np.hstack([matrix, np.zeros((len(matrix), -matrix.shape[1] % 3))])
        sums = padded.reshape(len(matrix), -1, 3).sum(axis=2)
        assert queries.block_energy(3) == pytest.approx((sums**2).sum() / 3)
    ranges = queries.weighted_ranges()
    if ranges is not None:
        cell = np.arange(queries.shape[1])
        inside = (cell >= ranges.first[:, None]) & (cell <= ranges.last[:, None])
        np.testing.assert_array_equal(inside * ranges.weights[:, None], matrix)


@pytest.mark.parametrize("queries", MAPS, ids=lambda q: f"{q.kind}-{q.shape}")
def test_a_map_knows_what_it_is_an_expansion_of(queries):
    """Twice the columns, half of them with a factor: true, and false where one weight differs."""
    matrix, n = queries.dense(), queries.shape[1]
    index = np.concatenate([np.arange(n), np.arange(n)])
    factor = np.repeat([1, -2], n)
    wide = matrix[:, index] * factor
    off = wide.copy()
    off[0, 0] += 1e-6
    for form in (DenseMap, lambda dense: SparseMap(sp.csr_array(dense))):
        assert form(wide).is_expansion_of(queries, index, factor, 1e-12)
        assert not form(off).is_expansion_of(queries, index, factor, 1e-12)


def test_there_is_an_example_of_every_kind_of_map():
    assert {queries.kind for queries in MAPS} == {kind.kind for kind in KINDS}


@pytest.mark.parametrize("queries", MAPS, ids=lambda q: f"{q.kind}-{q.shape}")
def test_a_map_is_planned_saved_and_released(queries, tmp_path):
    plan = lrm.plan(Workload(queries), "noise-on-data")
    plan.save(tmp_path / "plan.lrm")
    loaded = lrm.load_plan(tmp_path / "plan.lrm")
    assert loaded.digest == plan.digest
    assert loaded.workload.queries.kind == queries.kind
    np.testing.assert_array_equal(loaded.workload.queries.dense(), queries.dense())
    # Noise of a cell is above 2 with probability exp(−40): 1e-17, and 1e-15 for all of these.
    answers = lrm.release(loaded, np.full(queries.shape[1], 10), epsilon=20).answers
    away = np.abs(answers - 10 * queries.dense().sum(axis=1))
    assert np.all(away <= 2 * np.abs(queries.dense()).sum(axis=1) + 1e-9)


def test_a_map_that_no_file_may_hold_is_not_saved(tmp_path):
    plan = lrm.plan(Workload(Kron((Prefix(2), Prefix(3)))), "noise-on-data")
    with pytest.raises(WorkloadError, match="kind 'kron' cannot be saved"):
        plan.save(tmp_path / "plan.lrm")
    assert not (tmp_path / "plan.lrm").exists()


def test_levels_solve_their_gram_matrix():
    tree = LevelMap(8, (2, 4), (3.0, 1.0, 2.0))
    x = np.random.default_rng(0).standard_normal(8)
    np.testing.assert_allclose(tree.gram() @ tree.solve_gram(x), x, atol=1e-12)


def test_large_families_stay_small():
    """A thousand sparse queries over a million cells, and 2·10⁹ ranges, are no matrix."""
    assert families.all_ranges(65_536).shape == (2_147_516_416, 65_536)
    assert families.prefix(1_000_000).queries.apply(np.ones(1_000_000))[-1] == 1_000_000


def test_marginals_add_up():
    domain = Domain([Categories("state", ["NY", "NJ"]), Integers("age", 0, 4)])
    workload = marginals(domain, 1)
    counts = np.arange(domain.size, dtype=float)
    table = counts.reshape(domain.shape)
    expected = np.concatenate([table.sum(axis=1), table.sum(axis=0)])
    np.testing.assert_allclose(workload.queries.apply(counts), expected)
    assert workload.names[0] == "count[state=NY]"
    assert marginals(domain, 0, name="total").names[0] == "total"


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 99))
def test_the_papers_workloads_are_what_it_says(m, n, seed):
    discrete = families.wdiscrete(m, n, seed=seed).queries.dense()
    assert set(np.unique(discrete)) <= {-1.0, 1.0}
    ranges = families.wrange(m, n, seed=seed).queries.dense()
    assert np.all(np.abs(np.diff(np.pad(ranges, ((0, 0), (1, 1))), axis=1)).sum(axis=1) == 2)
    related = families.wrelated(m, n, seed=seed, s=1).queries.dense()
    assert np.linalg.matrix_rank(related) == 1


def test_importance_changes_no_answer():
    plain, weighted = Workload(np.eye(3)), Workload(np.eye(3), importance=[1, 4, 9])
    x = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(plain.queries.apply(x), weighted.queries.apply(x))
    assert plain.digest != weighted.digest


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: as_map([1, 2, 3]), "one row per query"),
        (lambda: as_map([[1, 2], [3]]), "rows of equal length"),
        (lambda: as_map([["a", "b"]]), "not a number"),
        (lambda: as_map(np.zeros((0, 3))), "at least one query"),
        (lambda: as_map([[1.0, np.nan]]), "finite numbers"),
        (lambda: as_map([[1e200, 1.0]]), "between 1e-100 and 1e100"),
        (lambda: Workload(np.eye(2), names=["a"]), "2 names, got 1"),
        (lambda: Workload(np.eye(2), names=["a", "a"]), "queries 1 and 2 have the same name"),
        (lambda: Workload(np.eye(2), importance=[1, -1]), "above 0"),
        (lambda: Workload(np.eye(2), importance=[1]), "one number per query"),
        (lambda: Workload(np.eye(2), domain=Domain([Integers("age", 0, 4)])), "another domain"),
        (lambda: families.prefix(0), "at least 1"),
        (lambda: families.ranges(4, [(2, 1)]), "0 ≤ first ≤ last < 4"),
        (lambda: families.width_ranges(4, 5), "between 1 and 4"),
    ],
)
def test_bad_input_gets_one_sentence(build, sentence):
    with pytest.raises(WorkloadError) as caught:
        build()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
