"""Values that lie between others: counts and sums of a number need two values of it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.planning.design.products.corners import (
    at_corners,
    check_parts,
    find_parts,
    fused_parts,
)
from lrm.queries.maps.matrices import DenseMap

SIZES = {"a": 10, "b": 6}


def domain(high=99):
    categories = [lrm.Categories(n, [f"v{i}" for i in range(k)]) for n, k in SIZES.items()]
    # With so many cells, attributes are not listed cell by cell.
    return lrm.Domain([*categories, lrm.Integers("x", 0, high), lrm.Integers("z", 0, 999)], "t")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-50, 50), min_size=3, max_size=12, unique=True),
    st.lists(st.integers(0, 12), max_size=3),
    st.booleans(),
)
def test_queries_are_the_means_of_their_corners(numbers, cuts, conditional):
    """Every query has on each value the mean of its weights on the corners, by their parts."""
    weights = np.array(numbers, dtype=np.float64)
    places = np.arange(len(weights))
    rows = [weights, *((places < cut).astype(float) for cut in cuts)]
    if conditional and cuts:
        rows.append(weights * (places < cuts[0]))
    factors = [DenseMap(row[None]) for row in rows]
    parts = find_parts(factors)
    if parts is None:
        return
    check_parts(parts, len(weights))
    whole = parts[:, 0].sum()
    for factor in factors:
        corners = at_corners(factor, parts)
        assert corners is not None
        assert np.allclose(corners.dense() @ parts / whole, factor.dense(), rtol=0, atol=1e-9)


def test_a_value_on_two_lines_has_the_parts_of_one():
    """Differences of two values each: where both are 0 lies between the ends of either."""
    differences = DenseMap(np.array([[1.0, -1, 0, 0, 0], [0, 0, 1, -1, 0]]))
    counts = DenseMap(np.array([[1.0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 1]]))
    for factors in ([differences], [differences, counts]):
        parts = find_parts(factors)
        if parts is not None:
            check_parts(parts, 5)
            assert all(at_corners(factor, parts) is not None for factor in factors)


def test_a_sum_has_two_corners():
    parts = find_parts([DenseMap(np.arange(100.0)[None])])
    assert parts.shape == (2, 100)
    assert parts.sum(axis=0).tolist() == [99] * 100


def test_sums_by_groups_of_values_have_one_corner_each_and_none():
    """Values of two groups are parts of the largest of their group, and of no value at all."""
    weights = np.arange(25.0, 51.0)
    first = np.where(weights < 34, weights, 0.0)
    parts = find_parts([DenseMap(np.vstack([first, weights - first]))])
    assert parts.shape == (3, 26)
    assert sorted(np.flatnonzero(parts.max(axis=0) == parts[:, 0].sum()).tolist()) == [8, 25]


def test_sums_by_groups_of_values_on_both_sides_of_0():
    """Of one group nothing lies between its ends, of the other it is an end."""
    weights = np.arange(-3.0, 10.0)
    first = np.where(weights < 3, weights, 0.0)
    factors = [DenseMap(np.vstack([first, weights - first]))]
    parts = find_parts(factors)
    check_parts(parts, len(weights))
    corners = at_corners(factors[0], parts)
    assert np.allclose(corners.dense() @ parts / parts[:, 0].sum(), factors[0].dense())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_sum_alone_has_the_error_of_its_largest_value(noise):
    """That no value is 0, or none but that, costs nothing."""
    for low in (0, 1, 2):
        numbers = lrm.Domain([lrm.Integers("x", low, 4), lrm.Integers("z", 0, 10**5)], "t")
        plan = lrm.plan(lrm.sql("SELECT SUM(x) AS s FROM t", numbers), noise=noise)
        privacy = plan.privacy(rho="0.5") if noise == "gaussian" else plan.privacy(epsilon=1)
        error = plan.accuracy(privacy).nominal.root_mean_squared_error
        assert error <= 1.001 * 4 * (1.0 if noise == "gaussian" else math.sqrt(2))


@pytest.mark.parametrize("others", [1, 2])
def test_axes_of_sums_are_fused_with_one_corner_that_is_no_value(others):
    """What is combined with no value counts for nothing, however many axes there are."""
    sums = DenseMap(np.array([[1.0, 2, 4]]))
    parts = find_parts([sums])
    kept = np.eye(2, dtype=np.int64)
    fused = fused_parts([parts, kept, *[parts] * (others - 1)])
    check_parts(fused, 3 * 2 * 3 ** (others - 1))
    query = np.array([[1.0, 0.0]])
    rows = np.kron(sums.dense(), query)
    for _ in range(others - 1):
        rows = np.kron(rows, sums.dense())
    corners = at_corners(DenseMap(rows), fused)
    assert corners is not None
    assert np.allclose(corners.dense() @ fused / fused[:, 0].sum(), rows, rtol=0, atol=1e-9)


def test_sums_by_other_groups_than_counts_are_planned():
    """A sum without a count has a corner that is no value, and its attribute may be fused."""
    wards = lrm.Domain(
        [
            lrm.Categories("sex", ["f", "m"]),
            lrm.Integers("grade", 0, 5),
            lrm.Integers("age", 0, 19),
            lrm.Integers("zone", 0, 199),
            lrm.Integers("hour", 0, 23),
            lrm.Dates("day", "2024-01-01", "2024-12-31", by="month"),
            lrm.Numbers("cost", [0, 10, 50, 200]),
        ],
        "t",
    )
    batch = lrm.sql(
        """SELECT grade, sex, MONTH(day) AS month, SUM(2 * cost) AS s FROM t
               WHERE age BETWEEN 2 AND 4 GROUP BY grade, sex, month;
           SELECT age, grade, COUNT(*) AS n FROM t GROUP BY age, grade;
           SELECT age, grade, COUNT(*) AS m FROM t WHERE sex = 'm' OR grade < 3
               GROUP BY age, grade""",
        wards,
    )
    plan = lrm.plan(batch, noise="laplace", effort="quick")
    assert max(plan.statement_ratios) <= 1.001


def test_squares_have_no_values_between_others():
    x = np.arange(10.0)
    assert find_parts([DenseMap(x[None]), DenseMap(x[None] ** 2)]) is None


def test_another_query_is_refused():
    parts = find_parts([DenseMap(np.arange(5.0)[None])])
    assert at_corners(DenseMap(np.eye(5)[[2]]), parts) is None


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("answers", ["SUM(x) AS s", "COUNT(*) AS n, SUM(x) AS s"])
def test_a_count_and_a_sum_have_the_error_of_two_corners(noise, answers):
    """Of each group the sum has the error of one noisy count times 99, and no value is counted."""
    plan = lrm.plan(lrm.sql(f"SELECT a, {answers} FROM t GROUP BY a", domain()), noise=noise)
    assert plan.measured.measurement_count <= 3 * 11
    privacy = plan.privacy(rho="0.5") if noise == "gaussian" else plan.privacy(epsilon=1)
    one = 1.0 if noise == "gaussian" else math.sqrt(2)
    errors = plan.accuracy(privacy).nominal.standard_errors
    assert np.max(errors) <= 1.001 * 99 * one


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_two_averages_are_not_worse_than_an_even_split(noise, effort):
    statements = (
        "SELECT a, AVG(CASE WHEN b = 'v3' THEN 1.0 ELSE 0 END) AS r FROM t WHERE x > 7 GROUP BY a;"
        "SELECT b, AVG(x) AS m FROM t GROUP BY b"
    )
    plan = lrm.plan(lrm.sql(statements, domain()), noise=noise, effort=effort)
    assert max(plan.statement_ratios) <= 1.001


@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
def test_answers_of_a_release_are_those_of_the_table(tmp_path):
    """At a large budget, a release of a saved plan has the sums of the table itself."""
    rng = np.random.default_rng(0)
    table = {n: rng.choice([f"v{i}" for i in range(k)], 500) for n, k in SIZES.items()}
    table |= {"x": rng.integers(0, 100, 500), "z": np.zeros(500, dtype=np.int64)}
    pandas = pytest.importorskip("pandas")
    statements = "SELECT a, SUM(x) AS s FROM t WHERE x > 20 OR b = 'v1' GROUP BY a"
    plan = lrm.plan(lrm.sql(statements, domain()), noise="laplace")
    assert any(axis.parts is not None for group in plan.measured.groups for axis in group.axes)
    plan.save(tmp_path / "plan")
    release = lrm.release(
        lrm.load_plan(tmp_path / "plan"), pandas.DataFrame(table), epsilon=10**6, ledger=None
    )
    chosen = (table["x"] > 20) | (table["b"] == "v1")
    truth = [table["x"][chosen & (table["a"] == f"v{i}")].sum() for i in range(10)]
    assert np.allclose(np.asarray(release.answers), truth, atol=0.5)


def test_values_between_corners_cannot_be_asked_for_later():
    """A query that distinguishes values between corners is not answered from a plan without it."""
    plan = lrm.plan(lrm.sql("SELECT a, SUM(x) AS s FROM t GROUP BY a", domain()), noise="laplace")
    other = lrm.sql("SELECT COUNT(*) AS n FROM t WHERE x > 50", domain())
    over_the_same_cells = other.over_all_rows(plan.workload.domain.rest_axes)
    with pytest.raises(lrm.LrmError, match="no measured marginal"):
        plan.measured.reconstruction_of(over_the_same_cells.queries)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_sums_of_two_numbers_without_totals(noise):
    """Corners that are no value of an attribute may be fused with those of another."""
    numbers = lrm.Domain(
        [lrm.Integers("x", 1, 6), lrm.Integers("y", 1, 9), lrm.Integers("z", 0, 10**5)], "t"
    )
    statements = (
        "SELECT SUM(x) AS s FROM t WHERE y > 4; SELECT SUM(y) AS r FROM t WHERE x < 3;"
        "SELECT SUM(x) AS q FROM t WHERE y < 7; SELECT COUNT(*) AS n FROM t WHERE x > 2 AND y > 2"
    )
    plan = lrm.plan(lrm.sql(statements, numbers), noise=noise)
    assert max(plan.statement_ratios) <= 1.001


@pytest.mark.parametrize("high", [49, 99])
def test_a_strategy_of_corners_as_one_matrix_has_whole_numbers(high):
    """Parts are quotients of whole numbers, whose rounding made combinations be refused."""
    small = lrm.Domain(
        [
            lrm.Categories("a", list("pqrs")),
            lrm.Categories("b", list("uv")),
            lrm.Integers("x", 0, high),
        ],
        "t",
    )
    numbers = np.arange(high + 1.0)
    sums = [{"x": numbers}, {"x": numbers, "a": "identity"}][: 1 + high // 99]
    batch = lrm.stack(
        [lrm.products(small, sums), *(lrm.marginals(small, [(n,)], name=n) for n in "ab")]
    )
    plan = lrm.plan(batch, effort="quick")
    corners = [axis.parts for group in plan.measured.groups for axis in group.axes]
    assert any(parts is not None for parts in corners)
    release = lrm.release(plan, np.ones(small.size, dtype=np.int64), epsilon=1, ledger=None)
    weights = np.random.default_rng(1).integers(-3, 4, (5, plan.workload.shape[0]))
    combined = release.query(weights @ plan.workload.queries.dense())
    np.testing.assert_allclose(combined.answers, weights @ release.answers, rtol=1e-8, atol=1e-6)
