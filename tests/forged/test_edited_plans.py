"""An edited plan file yielded true counts while the ledger paid ε.

Sensitivity was measured on the integers when a plan was loaded, but not for every kind of map
and not in every kind of integer: trees ignored the factors with which cells are merged (a factor
of 10⁶ loaded with sensitivity 1), 64-bit sums wrapped around (four entries of 2⁶² in a column
summed to 0), and infinite, fractional or huge entries were cast to whatever came out. The queries
over merged cells, the rank and the reconstruction were believed as the file had them.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from forging import edited, forged_plan, resealed
from lrm.errors import FileFormatError, WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.measured import Measured
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.norms import BodyNorm
from lrm.queries.maps.levels import LevelMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.workload import families

MECHANISMS = ["noise-on-data", "noise-on-results", "wavelet", "hierarchical", "lowrank", "best"]


def _refused(path):
    with pytest.raises(FileFormatError) as caught:
        lrm.load_plan(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mechanism", ["hierarchical", "wavelet", "noise-on-data"])
@pytest.mark.parametrize("factor", [2, 1000, 10**6, -(10**6), -(2**63)])
def test_factors_of_merged_cells_count(mechanism, factor, tmp_path):
    plan = lrm.plan(families.prefix(8), mechanism)
    cells = edited(plan.measured.cells.cell_map, factor=np.full(8, factor))
    genuine = plan.measured.sensitivity
    _refused(forged_plan(plan, tmp_path / "plan", cells=cells, stated=genuine))


@pytest.mark.parametrize(
    "column",
    [
        [2.0**62] * 4,
        [2.0**63, 1],
        [-(2.0**63), 1],
        [2.0**52, 1],
        [1e300, 1],
        [np.inf, 1],
        [-np.inf, 1],
        [np.nan, 1],
        [0.5, 1],
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_entries_are_whole_finite_and_bounded(column, kind, tmp_path):
    plan = lrm.plan(np.eye(len(column)), "noise-on-data")
    entries = np.eye(len(column))
    entries[:, 0] = column
    matrix = DenseMap(entries) if kind == "dense" else SparseMap(sp.csr_array(entries))
    for admitted in (1, 2**32, 2**62):  # what wrapped integers came to
        forged_plan(plan, tmp_path / "plan", matrix=matrix, stated=1, max_records=admitted)
        _refused(tmp_path / "plan")


def test_sums_do_not_wrap_around(tmp_path):
    """Four entries of 2^62 sum to 0 in 64 bits, so that the column of 1 was the largest."""
    plan = lrm.plan([[1.0, 0.0], [1.0, 0.0]], "noise-on-data")
    entries = np.array([[2.0**62, 0]] * 4 + [[0, 1]])
    forged_plan(plan, tmp_path / "plan", matrix=DenseMap(entries), stated=1, max_records=1)
    _refused(tmp_path / "plan")


@pytest.mark.parametrize("weights", [(1.5, 1.5, 1.5, 1.5), (1.5, 1, 1, 1), (2.0**52, 1, 1, 1)])
def test_weights_of_levels_are_whole(weights, tmp_path):
    """A weight of 1.5 was summed as 1.5 and measured as 2."""
    plan = lrm.plan(families.prefix(8), "hierarchical")
    tree = LevelMap(8, (2, 2, 2), weights)
    stated, admitted = round(sum(weights)), 2**62 // round(max(weights))
    forged_plan(plan, tmp_path / "plan", matrix=tree, stated=stated, bits=3, max_records=admitted)
    _refused(tmp_path / "plan")


def test_four_thousand_large_entries_do_not_wrap():
    """The L1 sum passes 2^63 and the sum of squares passes 2^115: both are exact."""
    rows, entry = 5000, 2**52 - 1
    for matrix in (
        DenseMap(np.full((rows, 1), float(entry))),
        SparseMap(sp.csr_array(np.full((rows, 1), -float(entry)))),
    ):
        strategy = Measured.of_cells(matrix, CellMap(1, np.array([0]), np.array([-1024])), 30)
        assert strategy.sensitivity == rows * entry * 1024
        assert strategy.squared_l2_sensitivity == rows * entry**2 * 1024**2
        assert strategy.max_records == 2**62 // (entry * 1024)


def test_moves_beyond_a_body_do_not_wrap_around(tmp_path):
    """2^51 times a factor of 2^13 is 0 in 64 bits, which every body holds."""
    plan = lrm.plan([[1.0, 1, 1], [1, 1, 0], [0, 1, 1]], noise="pure")
    assert plan.noise == "shaped"
    basis = plan.measured.cells
    cells = edited(basis.cell_map, factor=np.full(3, 1 << 13))
    matrix = DenseMap(np.sign(basis.matrix.dense()) * 2.0**51)
    body, bits = plan.measured.body, plan.measured.bits
    with pytest.raises(WorkloadError, match="beyond 62 bits"):
        Measured.of_cells(matrix, cells, bits, None, BodyNorm(body))
    for admitted in (1, 1 << 62):
        _refused(
            forged_plan(
                plan,
                tmp_path / "plan",
                matrix=matrix,
                cells=cells,
                stated=1 << bits,
                max_records=admitted,
            )
        )


@pytest.mark.parametrize("replaced", [False, True])
def test_a_strategy_with_a_body_that_is_too_large_as_an_array_is_refused(replaced):
    """A few bytes of a file state any number of zeros; all are looked at for a body."""
    rows, cells = 400, 1 << 19
    matrix = SparseMap(sp.csr_array(([2.0], ([0], [0])), shape=(rows, cells)))
    with pytest.raises(WorkloadError, match="too many merged cells"):
        Measured.of_cells(
            matrix, CellMap.trivial(cells), 1, None, BodyNorm(Cube(rows, 2), replaced=replaced)
        )


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_sensitivity_is_that_of_every_neighbour(data):
    """One record more in each cell, measured in Python's integers, for every kind of map."""
    n = data.draw(st.integers(1, 6))
    sizes = st.integers(-(2**52) + 1, 2**52 - 1)
    merged = data.draw(st.integers(1, n))
    if data.draw(st.booleans()):
        levels = max(1, (merged - 1).bit_length())
        weights = data.draw(st.lists(sizes, min_size=levels + 1, max_size=levels + 1))
        weights[0] = weights[0] or 1
        matrix = LevelMap(merged, (2,) * levels, tuple(map(float, weights)))
    else:
        rows = data.draw(st.integers(1, 4))
        entries = data.draw(
            st.lists(
                st.lists(sizes, min_size=merged, max_size=merged), min_size=rows, max_size=rows
            )
        )
        entries[0] = [entry or 1 for entry in entries[0]]
        dense = np.array(entries, dtype=np.float64)
        matrix = data.draw(st.sampled_from([DenseMap(dense), SparseMap(sp.csr_array(dense))]))
    index = data.draw(st.lists(st.integers(0, merged - 1), min_size=n, max_size=n))
    factor = data.draw(st.lists(st.integers(-1024, 1024), min_size=n, max_size=n))
    factor[0] = factor[0] or 1
    strategy = Measured.of_cells(matrix, CellMap(merged, np.array(index), np.array(factor)), 30)
    whole = [[int(entry) for entry in row] for row in matrix.dense()]
    moved = [[row[index[cell]] * factor[cell] for row in whole] for cell in range(n)]
    assert strategy.sensitivity == max(sum(map(abs, move)) for move in moved)
    assert strategy.squared_l2_sensitivity == max(sum(m * m for m in move) for move in moved)


def test_cells_that_queries_tell_apart_are_not_merged(tmp_path):
    """Else the answers would be those of another batch than the file states."""
    plan = lrm.plan([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "lowrank")
    assert plan.measured.cells.cell_map.merged_size == 2
    cells = edited(plan.measured.cells.cell_map, index=np.array([0, 1, 1]))
    _refused(forged_plan(plan, tmp_path / "plan", cells=cells, stated=plan.measured.sensitivity))


@pytest.mark.parametrize("row_rank", [0, -1, 1, 99])
def test_the_rank_is_not_believed(row_rank, tmp_path):
    plan = lrm.plan([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], "noise-on-data")
    stated = plan.measured.sensitivity
    entries = np.array([[2.0, 1, 0], [0, 1, 2], [2, 2, 2]]) * 2**28  # of rank 2
    forged_plan(plan, tmp_path / "plan", matrix=DenseMap(entries), stated=stated, row_rank=row_rank)
    _refused(tmp_path / "plan")


@pytest.mark.parametrize("bits", [-1, 63, 31])
def test_bits_are_in_range_and_make_the_batch(bits, tmp_path):
    plan = lrm.plan(np.eye(3), "noise-on-results")
    _refused(forged_plan(plan, tmp_path / "plan", stated=plan.measured.sensitivity, bits=bits))


def test_a_reconstruction_of_another_batch_is_refused(tmp_path):
    """A single wrong row of B, beside a row whose noise is large."""
    plan = lrm.plan(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), "noise-on-results")
    given_b = np.array(plan.reconstruction_map.given.dense())
    given_b[1] += [0.0, 1e15, -1e15]  # the same answer, with enormous noise
    given_b[0, 0] += 0.5
    changed = edited(plan.reconstruction_map, given=DenseMap(given_b))
    for cached in ("row_squared_norms", "_residuals", "residual", "relative_residual"):
        changed.__dict__.pop(cached, None)
    _refused(
        forged_plan(
            plan, tmp_path / "plan", stated=plan.measured.sensitivity, reconstruction_map=changed
        )
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, arrays: facts.update(sensitivity="1"),
        lambda facts, arrays: facts.update(max_records=str(2**60)),
        lambda facts, arrays: facts.update(least_error=facts["least_error"] * 0.99),
        lambda facts, arrays: facts.update(exact=False),
        lambda facts, arrays: facts.update(mechanism="lowrank"),
        lambda facts, arrays: facts.update(noise="gaussian"),
        lambda facts, arrays: arrays.update({"singular-values": arrays["singular-values"] * 2}),
    ],
    ids=["sensitivity", "max_records", "bound", "exact", "mechanism", "noise", "spectrum"],
)
def test_the_digest_covers_what_is_stated(change, tmp_path):
    lrm.plan([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], "noise-on-data").save(tmp_path / "plan")
    _refused(resealed(tmp_path / "plan", change))


def test_a_tree_that_fills_the_memory_is_refused():
    with pytest.raises(WorkloadError, match="too large"):
        LevelMap(4, (2, 2**60), (1.0, 1.0, 1.0))
    with pytest.raises(WorkloadError, match="at most 64 levels"):
        LevelMap(4, (2,) * 100, (1.0,) * 101)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_genuine_plans_still_load(mechanism, noise, tmp_path):
    batch = np.array([[1.0, 1.0, 0.0, 2.0], [0.0, 1.0, 1.0, 0.0], [0.5, 0.5, 0.0, 1.0]])
    plan = lrm.plan(batch, mechanism, noise=noise)
    plan.save(tmp_path / "plan")
    again = lrm.load_plan(tmp_path / "plan")
    assert again.digest == plan.digest
    assert again.measured.sensitivity == plan.measured.sensitivity
    assert again.measured.squared_l2_sensitivity == plan.measured.squared_l2_sensitivity
    np.testing.assert_array_equal(again.reconstruction, plan.reconstruction)
