"""The joint noise of the inputs of derived answers: what it costs, and that nothing is lost."""

import numpy as np
import pandas as pd
import pytest

import lrm
from benchmarks.gates.shape import walk
from lrm.planning.derived import Noisy, derived_numbers
from lrm.planning.derived.computed import may_be_zero
from lrm.planning.derived.expected import largest_moves
from lrm.planning.derived.noise import index_ranges

DOMAIN = lrm.Domain(
    [
        lrm.Integers("age", 0, 30),
        lrm.Categories("ward", ["a", "b", "c", "d"]),
        lrm.Integers("los", 0, 9),
        lrm.Integers("rest", 0, 9_999),
    ],
    "stays",
)
TEXT = """
    SELECT ward, MEDIAN(age) AS middle FROM stays GROUP BY ward;
    SELECT ward, AVG(los) AS mean FROM stays GROUP BY ward;
    SELECT ward, los, COUNT(*) AS n FROM stays GROUP BY ward, los;
"""


@pytest.fixture(scope="module", params=["laplace", "gaussian"])
def accuracy(request):
    plan = lrm.plan(lrm.sql(TEXT, DOMAIN), noise=request.param, effort="quick")
    return plan.workload, plan.accuracy(plan.privacy(**AMOUNT[request.param]))


AMOUNT = {"laplace": {"epsilon": "0.1"}, "gaussian": {"rho": 1}}


def test_ranges_hold_each_query_once():
    index = np.array([[3, 7, 4, 20], [5, 9, 6, 20]])
    assert index_ranges(index) == [(3, 10), (20, 21)]


def test_merged_columns_have_the_covariance_and_the_half_widths_of_all_rows(accuracy):
    _, errors = accuracy
    index = np.array([[0, 5, 17], [31, 40, 17]])
    scales = np.array([1.0, -2.0, 0.5])
    noise = Noisy(None, errors).joint(index, scales)
    rows = errors.reconstruction.rows(0, errors.reconstruction.shape[0])
    for group, own in enumerate(index):
        dense = rows[own] * scales[:, None] * errors.step
        covariance = dense @ dense.T * errors.law.variance
        size = np.abs(covariance).max()
        np.testing.assert_allclose(noise.covariance[group], covariance, atol=1e-9 * size)
        direction = np.array([1.0, 1.0, -1.0])
        found = noise.half_widths(np.tile(direction, (2, 1)), 0.95)[group]
        whole = lrm.planning.accuracy.intervals.sum_half_widths(
            (direction @ dense)[None], errors.law, 0.95
        )
        assert found == pytest.approx(whole[0], rel=1e-6)
    assert noise.weights.shape[2] < rows.shape[1]


def test_columns_that_are_left_out_are_0(accuracy):
    _, errors = accuracy
    reconstruction = errors.reconstruction
    ranges = [(0, 3), (17, 21), (40, 44)]
    chosen = np.concatenate([np.arange(start, stop) for start, stop in ranges])
    rows, some = (
        reconstruction.rows(0, reconstruction.shape[0])[chosen],
        reconstruction.rows_of(ranges),
    )
    used, present = (np.abs(part).max(axis=0) > 1e-12 for part in (rows, some))
    np.testing.assert_allclose(some[:, present], rows[:, used], rtol=1e-9, atol=1e-12)
    if not used.all():
        assert some.shape[1] < rows.shape[1]


def test_each_row_of_the_reconstruction_is_asked_for_once(accuracy, monkeypatch):
    """A median over 31 ages reads the rows of its running totals once, not once per age."""
    workload, errors = accuracy
    asked = []
    rows_of = type(errors.reconstruction).rows_of

    def count(self, ranges):
        asked.extend(range(start, stop) for start, stop in ranges)
        return rows_of(self, ranges)

    monkeypatch.setattr(type(errors.reconstruction), "rows_of", count)
    noisy = Noisy(lambda start, stop: np.arange(start, stop, dtype=float), errors)
    for one in workload.derived:
        asked.clear()
        derived_numbers(one, 0, one.label.count, noisy, 0.95)
        numbers = [number for own in asked for number in own]
        assert len(numbers) == len(set(numbers))


def test_a_release_computes_derived_answers_once():
    plan = lrm.plan(lrm.sql(TEXT, DOMAIN), effort="quick")
    release = lrm.release(plan, table(), epsilon=1, ledger=None)
    release.table()
    frames = []
    again = walk(lambda: frames.append(release.to_pandas()))
    assert len(frames[0]) == 4 + 4 + 40
    assert not any(name.endswith(".derived_numbers") for name in again.calls)


def table():
    rng = np.random.default_rng(0)
    rows = 500
    return pd.DataFrame(
        {
            "age": rng.integers(0, 31, rows),
            "ward": rng.choice(list("abcd"), rows),
            "los": rng.integers(0, 10, rows),
            "rest": rng.integers(0, 10_000, rows),
        }
    )


def test_the_largest_half_width_is_found_without_looking_at_all_of_them(accuracy):
    """Where another sum must be narrower whatever its law is, its law is not looked at."""
    _, errors = accuracy
    index = np.array([[0, 5, 17], [31, 40, 17], [8, 9, 10]])
    noise = Noisy(None, errors).joint(index, np.ones(3))
    directions = [np.random.default_rng(k).normal(size=(3, 3)) for k in range(4)]
    asked = []
    of = type(noise).of

    def count(self, groups):
        asked.append(int(np.sum(groups)))
        return of(self, groups)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(noise), "of", count)
        error, half = largest_moves(noise, directions, 0.95)
    assert error == pytest.approx(max(noise.deviations(one).max() for one in directions))
    assert half == pytest.approx(max(noise.half_widths(one, 0.95).max() for one in directions))
    assert sum(asked) < 12


@pytest.mark.parametrize("ratio", [0.5, 0.999, 1.001, 1.05, 3.0])
def test_a_denominator_may_be_zero_where_its_interval_holds_zero(accuracy, ratio):
    _, errors = accuracy
    noise = Noisy(None, errors).joint(np.array([[0, 5], [31, 40]]), np.ones(2))
    half = noise.half_widths(np.array([[0.0, 1.0], [0.0, 1.0]]), 0.95)
    found = may_be_zero(ratio * half * np.array([1.0, -1.0]), noise, 0.95)
    assert found.tolist() == [ratio < 1.0] * 2


GROUPED = """
    SELECT ward, los, AVG(CASE WHEN kind = 'x' THEN 1.0 ELSE 0 END) AS r FROM t GROUP BY ward, los;
    SELECT ward, COUNT(*) AS n FROM t WHERE kind <> 'y' GROUP BY ward;
    SELECT los, kind, COUNT(*) AS n FROM t GROUP BY los, kind;
    SELECT COUNT(*) AS all_rows FROM t
"""


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_rows_of_groups_of_one_kind_are_the_same_but_for_the_order_of_measurements(noise):
    domain = lrm.Domain(
        [
            lrm.Categories("ward", [f"w{k}" for k in range(60)]),
            lrm.Categories("los", [f"d{k}" for k in range(40)]),
            lrm.Categories("kind", ["x", "y", "z"]),
        ],
        "t",
    )
    plan = lrm.plan(lrm.sql(GROUPED, domain), noise=noise, effort="quick", objective="total")
    reconstruction = plan.reconstruction_map
    index = np.random.default_rng(2).integers(0, reconstruction.shape[0], (300, 2))
    index[::3, 1] = index[::3, 0]
    index[1::30, 0] = reconstruction.shape[0] - 1  # the count of all rows, over no attribute
    first, kind = reconstruction.alike(index)
    assert np.array_equal(kind[first], np.arange(len(first)))
    if noise == "laplace":
        assert len(first) < len(index) / 2

    def sorted_rows(group):
        rows = np.round(np.vstack([reconstruction.rows(k, k + 1) for k in group]), 9) + 0.0
        return rows[:, np.lexsort(rows)]

    for group, number in zip(index, kind, strict=True):
        expected = sorted_rows(index[first[number]])
        np.testing.assert_allclose(sorted_rows(group), expected, atol=1e-8)


def test_averages_of_many_groups_have_one_kind():
    wards = lrm.Categories("ward", [f"w{k}" for k in range(3_000)])
    domain = lrm.Domain([wards, lrm.Categories("kind", ["x", "y"])], "t")
    text = "SELECT ward, AVG(CASE WHEN kind = 'x' THEN 1 ELSE 0 END) AS r FROM t GROUP BY ward"
    plan = lrm.plan(lrm.sql(text, domain), effort="quick")
    average = plan.workload.derived[0]
    index = np.column_stack([block.rows(average.shape) for block in average.inputs])
    assert len(index) == 3_000
    assert len(plan.reconstruction_map.alike(index)[0]) == 1
