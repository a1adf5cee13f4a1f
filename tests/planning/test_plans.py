"""Plans: what every mechanism must satisfy, on workloads of all shapes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import lrm
from batches import few_slow_examples, matrices
from benchmarks.gates.shape import walk
from long_runs import cases
from lrm.errors import ConvergenceError, UsageError
from lrm.planning.strategies import MECHANISMS, Mechanism, mechanism_names
from lrm.queries.workload import families

EXAMPLE_1 = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
"""The paper's first batch: NY+NJ+CA+WA, NY+NJ, CA+WA."""

EXAMPLE_2 = [[0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]]
"""Its second, over NY, NJ, CA, WA."""


@few_slow_examples
@given(matrices)
def test_what_every_mechanism_must_satisfy(matrix):
    assert_laws_of_plans(matrix, effort="quick")


@pytest.mark.long
@settings(few_slow_examples, max_examples=cases(20))
@given(matrices)
def test_what_every_mechanism_must_satisfy_with_more_effort(matrix):
    assert_laws_of_plans(matrix, effort="normal")


def assert_laws_of_plans(matrix, effort):
    """Every law on the same plans, for each of them takes a search."""
    options = {"best": {"effort": effort, "noise": "laplace"}}
    plans = {
        name: lrm.plan(matrix, name, **options.get(name, {}))
        for name in mechanism_names(products=False)
    }
    for mechanism, plan in plans.items():
        assert_gives_the_workload(plan, matrix)
        assert_sensitivity_bounds_every_neighbour(plan.measured, matrix.shape[1])
        assert plan.lower_bound(1) <= plan.expected_squared_error(1) * (1 + 1e-9)
        least = plans["best"].strategy_error
        assert least <= plan.strategy_error * (1 + 1e-6) + 1e-12, mechanism


def assert_gives_the_workload(plan, matrix):
    """W = B·L to 1e-9 of the largest weight, with the sensitivity that L really has.

    Errors agree to 1e-7 only: rows may differ by twelve orders of magnitude.
    """
    L, B = plan.strategy, plan.reconstruction
    scale = max(np.abs(matrix).max(), 1e-300)
    assert np.abs(B @ L - matrix).max() <= 1e-9 * scale
    assert plan.sensitivity == pytest.approx(np.abs(L).sum(axis=0).max(), rel=1e-12)
    error = 2 * (np.asarray(B) ** 2).sum() * plan.sensitivity**2 / 0.1**2
    assert plan.expected_squared_error(epsilon=0.1) == pytest.approx(error, rel=1e-7)
    assert (plan.standard_errors(0.1) ** 2).sum() == pytest.approx(error, rel=1e-7)


def assert_sensitivity_bounds_every_neighbour(measured, cells):
    """One more record in any cell moves the integers by at most the integer sensitivity."""
    empty = measured.measure(measured.counts_of(np.zeros(cells, dtype=np.int64)))
    records = np.eye(cells, dtype=np.int64)
    moves = [
        int(np.abs(measured.measure(measured.counts_of(one)) - empty).sum()) for one in records
    ]
    assert max(moves) == measured.sensitivity


def test_the_papers_first_example():
    """8/ε² a query for noise on results; 8, 4, 4 for noise on data; 4, 2, 2 for the better way."""

    def variances(mechanism):
        return lrm.plan(EXAMPLE_1, mechanism).standard_errors(epsilon="0.1") ** 2 / 100

    np.testing.assert_allclose(variances("noise-on-results"), [8, 8, 8], rtol=1e-6)
    np.testing.assert_allclose(variances("noise-on-data"), [8, 4, 4], rtol=1e-6)
    np.testing.assert_allclose(variances("best"), [4, 2, 2], rtol=1e-6)


def test_the_papers_second_example():
    """Noise on data 40/ε²; the paper says 39 is optimal; 38 is possible, and 37 with a body."""
    assert 2 * lrm.plan(EXAMPLE_2, "noise-on-data").strategy_error == pytest.approx(40)
    laplace = lrm.plan(EXAMPLE_2, "best", noise="laplace")
    assert 2 * laplace.strategy_error == pytest.approx(38, rel=1e-5)
    assert lrm.plan(EXAMPLE_2, "best").expected_squared_error(1) < 37.1


def test_sparse_input_is_the_same_batch():
    dense = families.wrange(12, 20, seed=1).queries.dense()
    one, other = lrm.plan(dense, "wavelet"), lrm.plan(sp.csr_array(dense), "wavelet")
    assert one.strategy_error == pytest.approx(other.strategy_error, rel=1e-12)


def test_importance_moves_accuracy_to_where_it_matters():
    batch = families.prefix(12)
    weights = np.ones(12)
    weights[11] = 100
    weighted = lrm.plan(lrm.Workload(batch.queries, importance=weights), effort="quick")
    plain = lrm.plan(batch, effort="quick")
    assert weighted.standard_errors(1)[11] < 0.9 * plain.standard_errors(1)[11]
    assert weighted.lower_bound(1) <= weighted.expected_squared_error(1)


def test_same_seed_same_plan():
    batch = families.wdiscrete(6, 8, seed=0)
    assert lrm.plan(batch, seed=5).digest == lrm.plan(batch, seed=5).digest


def test_a_plan_and_its_file_state_the_version_that_made_it(tmp_path):
    plan = lrm.plan([[1, 1]], "noise-on-data")
    plan.save(tmp_path / "plan.lrm")
    assert lrm.load_plan(tmp_path / "plan.lrm").details["software"] == f"lrm {lrm.__version__}"


def test_privacy_for_a_wanted_error():
    plan = lrm.plan(families.prefix(8), "wavelet")
    epsilon = plan.privacy_for(500).epsilon
    assert plan.expected_squared_error(epsilon) <= 500 * (1 + 1e-9)
    assert plan.expected_squared_error(float(epsilon) * 0.9999) > 500


def test_half_widths_of_a_single_laplace_variable():
    """P(|Laplace(b)| ≤ h) = 1 − exp(−h/b), by hand."""
    plan = lrm.plan(np.eye(3), "noise-on-data")
    expected = -np.log(1 - 0.95) / 0.4
    np.testing.assert_allclose(plan.half_widths(0.4, 0.95), expected, rtol=1e-4)


@pytest.mark.parametrize("mechanism", ["best", "wavelet", "hierarchical"])
def test_structured_workloads_agree_with_their_matrices(mechanism):
    """Closed forms for prefix sums and all ranges give what the matrix gives."""
    options = {"effort": "quick"} if mechanism == "best" else {}
    for structured in (families.prefix(9), families.all_ranges(7)):
        dense = lrm.Workload(structured.queries.dense())
        closed = lrm.plan(structured, mechanism, **options)
        explicit = lrm.plan(dense, mechanism, **options)
        assert closed.strategy_error == pytest.approx(explicit.strategy_error, rel=0.02)
        if mechanism != "best":  # the same strategy, so the same error of each query
            np.testing.assert_allclose(
                closed.standard_errors(1), explicit.standard_errors(1), rtol=1e-9
            )


def test_large_prefix_needs_no_matrix():
    best = lrm.plan(families.prefix(4096), effort="quick").strategy_error
    baselines = [lrm.plan(families.prefix(4096), name) for name in ("wavelet", "hierarchical")]
    assert best < min(plan.strategy_error for plan in baselines)


def test_relaxed_program_states_its_bias():
    batch = families.wrange(8, 16, seed=2)
    plan = lrm.plan(batch, "lowrank", exact=False, gamma=0.5)
    gap = batch.queries.dense() - plan.reconstruction @ plan.strategy
    assert np.linalg.norm(gap) <= 0.5
    assert plan.reconstruction_map.residual == pytest.approx(np.abs(gap).max(), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mechanism": "magic"}, "no mechanism is called 'magic'"),
        ({"mechanism": "wavelet", "rank": 3}, "has no option 'rank'"),
        ({"mechanism": "lowrank", "rank": 1}, "at least rank(W)"),
        ({"mechanism": "lowrank", "gamma": 0}, "gamma must be above 0"),
        ({"mechanism": "hierarchical", "fanout": 1}, "fanout must be at least 2"),
        ({"mechanism": "best", "effort": "heroic"}, "effort must be one of"),
        ({"mechanism": "best", "time_limit": 0}, "time limit"),
    ],
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(UsageError) as caught:
        lrm.plan(np.eye(3), **options)
    assert sentence in str(caught.value)


def test_a_strategy_that_cannot_rebuild_is_refused():
    from dataclasses import replace

    from lrm.queries.maps.matrices import DenseMap

    plan = lrm.plan(np.eye(2), "noise-on-results")
    wrong = replace(plan.reconstruction_map, given=DenseMap(np.eye(2) * 1.001))
    with pytest.raises(ConvergenceError, match="reconstructs a query only to"):
        replace(plan, reconstruction_map=wrong)


@pytest.mark.parametrize("mechanism", ["best", "noise-on-data"])
def test_a_plan_is_constructed_and_checked_once(mechanism):
    """It was constructed three times, each time with its exactness check and lost caches."""
    assert walk(lambda: lrm.plan(np.tri(6), mechanism, noise="gaussian")).plans == 1


@pytest.mark.parametrize(
    ("name", "options"), [("lowrank", {"rank": 3}), ("matrix", {}), ("made-for-lists", {})]
)
def test_a_mechanism_for_lists_of_cells_refuses_products(name, options, monkeypatch):
    """Also one with options, which it does have on lists of cells."""
    monkeypatch.setitem(MECHANISMS, "made-for-lists", Mechanism("baselines:noise_on_data"))
    with pytest.raises(UsageError, match="works on a list of all cells"):
        lrm.plan(families.marginals([10] * 12, [1]), name, **options)
