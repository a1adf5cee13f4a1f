"""Averages, rates and intervals are never outside of what any table can have."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.planning.derived.possible import formula_ends
from lrm.queries.maps.record_weights import RowSigns, record_weights
from lrm.queries.workload import Formula
from study.simulate import simulated_release

DOMAIN = lrm.Domain(
    [
        lrm.Categories("town", ["a", "b", "c"]),
        lrm.Integers("age", 60, 100),
        lrm.Categories("sex", ["f", "m"]),
    ],
    table="t",
)
STATEMENTS = """
SELECT town, AVG(age) AS mean_age, COUNT(*) AS n FROM t GROUP BY town;
SELECT town, 100.0 * COUNT(*) FILTER (WHERE sex = 'f') / COUNT(*) AS percent FROM t GROUP BY town;
SELECT sex, AVG(CASE WHEN town = 'a' OR age < 70 THEN 1.0 ELSE 0 END) AS rate,
    STDDEV(age) AS spread, VAR_POP(age) AS variance FROM t GROUP BY sex;
SELECT town, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY town;
SELECT COUNT(*) AS either FROM t WHERE town = 'a' OR age < 70;
SELECT SUM(age) AS years FROM t WHERE sex = 'f';
SELECT AVG(age) FILTER (WHERE sex = 'f') - AVG(age) FILTER (WHERE sex = 'm') AS gap FROM t;
"""
ENDS = {
    "mean_age": (60, 100),
    "percent": (0, 100),
    "rate": (0, 1),
    "spread": (0, np.sqrt(800)),
    "variance": (0, 400),
    "share": (0, 1),
    "gap": (-40, 40),
}


@pytest.fixture(scope="module", params=["pure", "laplace", "gaussian"])
def plan(request: pytest.FixtureRequest) -> lrm.Plan:
    return lrm.plan(lrm.sql(STATEMENTS, DOMAIN), noise=request.param, effort="quick")


def _rows(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "town": rng.choice(["a", "b"], count),
            "age": rng.integers(60, 101, count),
            "sex": rng.choice(["f", "m"], count),
        }
    )


def _release(plan: lrm.Plan, amount: str, rows: int = 40) -> lrm.Release:
    named = {"rho": amount} if plan.noise == "gaussian" else {"epsilon": amount}
    return lrm.release(plan, _rows(rows), ledger=None, **named)


@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
@pytest.mark.parametrize("amount", ["0.001", "0.1", "1", "30", "1000", "1000000"])
def test_answers_and_intervals_are_possible(plan: lrm.Plan, amount: str) -> None:
    frame = _release(plan, amount).to_pandas()
    assert np.isfinite(frame["low"]).all()
    assert np.isfinite(frame["high"]).all()
    assert (frame["low"] <= frame["high"]).all()
    for name, (least, most) in ENDS.items():
        some = frame[frame["query"] == name].dropna(subset="answer")
        assert len(some)
        for column in ("answer", "low", "high"):
            assert some[column].between(least - 1e-9, most + 1e-9).all(), (name, column)
    counts = frame[frame["query"].isin(["n", "either", "years"])]
    assert (counts["low"] >= 0).all()


def test_unclipped_numbers_stay_available(plan: lrm.Plan) -> None:
    release = _release(plan, "0.001")
    plain = release.unclipped.to_pandas()
    averages = plain[plain["query"] == "mean_age"]
    assert np.isinf(averages["low"]).any()
    counts = plain[plain["query"] == "n"]
    half = (counts["high"] - counts["low"]) / 2
    np.testing.assert_allclose(counts["low"] + half, counts["answer"])
    cut = release.to_pandas()
    np.testing.assert_array_equal(cut[cut["query"] == "n"]["answer"], counts["answer"])
    assert not release.unclipped.clips
    assert release.clips


def test_intervals_of_whole_counts_end_at_whole_numbers() -> None:
    domain = lrm.Domain([lrm.Integers("x", 0, 49)], table="t")
    plan = lrm.plan(lrm.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", domain), effort="quick")
    release = lrm.release(plan, np.full(50, 12_550), epsilon=1)
    numbers = release.table().numbers
    for name in ("answer", "low", "high"):
        assert np.array_equal(numbers[name], np.rint(numbers[name]))


def test_noise_alone_moves_an_interval_of_a_count_below_zero() -> None:
    plan = lrm.plan(lrm.families.identity(200), effort="quick")
    release = lrm.release(plan, np.zeros(200, dtype=np.int64), epsilon="0.1")
    assert (release.intervals()[:, 0] >= 0).all()
    assert (release.unclipped.intervals()[:, 0] < 0).any()
    assert (release.answers < 0).any()


@pytest.mark.parametrize(
    ("steps", "kinds"),
    [
        ((0, 1, "/"), [[0.0, 1.0, 5.0], [1.0, 1.0, 1.0]]),
        ((0, 1, "/", 7.0, "+", 100.0, "*"), [[-3.0, 1.0, 5.0], [1.0, 1.0, 1.0]]),
        ((0, 1, "/", 2, 1, "/", "-"), [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]),
        ((0, 1, 1, "*", 2, "/", "-", 2, "/"), [[0.0, 4.0, 9.0], [0.0, 2.0, 3.0], [1.0, 1.0, 1.0]]),
        ((0, 1, 1, "*", 2, "/", "-", 2, 1.0, "-", "/", "sqrt"), [[0.0, 4.0], [0.0, 2.0], [1, 1]]),
        ((0, 1, "+", 2, "/"), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
        ((0, 1, "*", 2, "/"), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
    ],
)
def test_ends_hold_the_values_of_every_small_table(
    steps: tuple[int | float | str, ...], kinds: list[list[float]]
) -> None:
    formula, weights = Formula(steps), np.array(kinds, dtype=float)
    low, high = formula_ends(formula, weights)
    tables = itertools.product(range(5), repeat=weights.shape[1])
    values = formula.value(weights @ np.array(list(tables), dtype=float).T)
    assert np.nanmin(values) >= low - 1e-9
    assert np.nanmax(values) <= high + 1e-9


def test_kinds_of_records_are_those_of_the_matrix() -> None:
    queries = lrm.sql(STATEMENTS, DOMAIN).queries
    matrix = queries.dense()
    rows = np.array([[0, 5], [1, 2], [3, len(matrix) - 1]])
    for group, kinds in zip(rows, record_weights(queries, rows), strict=True):
        assert kinds is not None
        expected = np.unique(matrix[group].round(9), axis=1)
        np.testing.assert_allclose(np.unique(kinds.round(9), axis=1), expected)
    whole, nonnegative = RowSigns.of_queries(queries).of(0, len(matrix))
    assert np.array_equal(nonnegative, (matrix >= -1e-9).all(axis=1))
    assert np.all(~whole | (np.abs(matrix - matrix.round()) < 1e-9).all(axis=1))


def test_the_standard_error_of_a_spread_by_knots_has_what_division_adds() -> None:
    domain = lrm.Domain([lrm.Numbers("pay", [0, 1000, 2500, 5000])], table="t")
    plan = lrm.plan(lrm.sql("SELECT STDDEV(pay) AS spread FROM t", domain), effort="quick")
    pay = np.random.default_rng(1).uniform(0, 5000, 3000)
    numbers = (
        lrm.release(plan, pd.DataFrame({"pay": pay}), ledger=None, epsilon=5)
        .table()
        .number_columns()
    )
    error = abs(float(numbers["answer"][0]) - pay.std(ddof=1))
    assert error < 3 * numbers["standard_error"][0]
    assert numbers["low"][0] <= pay.std(ddof=1) <= numbers["high"][0]


def test_errors_of_averages_follow_from_the_expected_size() -> None:
    text = "-- expected: 500\nSELECT town, AVG(age) AS mean_age FROM t GROUP BY town"
    plan = lrm.plan(lrm.sql(text, DOMAIN), effort="quick")
    stated, given = plan.errors(epsilon=1), plan.errors(epsilon=1, expect=500)
    assert np.isfinite(stated.numbers["standard_error"]).all()
    for name, column in stated.numbers.items():
        np.testing.assert_array_equal(column, given.numbers[name])
    without = lrm.plan(lrm.sql(text.split("\n")[1], DOMAIN), effort="quick").errors(epsilon=1)
    assert np.isnan(without.numbers["standard_error"]).all()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_cut_intervals_hold_as_often_as_they_say(noise: str) -> None:
    """Many groups without any row, with few rows, or with rows of a single value.

    The seeds are fixed. Cutting an interval to what is possible never loses the truth.
    """
    groups, never = 100, {"null": "never", "outside": "never"}
    declared = [lrm.Integers("g", 0, groups - 1, **never), lrm.Integers("x", 0, 4, **never)]
    text = """SELECT g, COUNT(*) AS n, SUM(x) AS total, AVG(x) AS mean, STDDEV(x) AS spread,
        MEDIAN(x) AS middle, COUNT(*) FILTER (WHERE x = 4) * 1.0 / COUNT(*) AS rate,
        COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY g"""
    plan = lrm.plan(lrm.sql(text, lrm.Domain(declared, "t")), "noise-on-data", noise=noise)
    rng = np.random.default_rng(5)
    sizes = rng.choice([0, 0, 3, 60, 300], groups)
    shares = rng.dirichlet([0.15] * 5, groups)
    counts = np.concatenate([rng.multinomial(*pair) for pair in zip(sizes, shares, strict=True)])
    exact = plan.measured.measure(plan.measured.counts_of(counts))
    amount = Fraction(1), Fraction(1, 10**6) if noise == "gaussian" else None
    held: dict[str, list[bool]] = {}
    for _ in range(3):
        release = simulated_release(plan, exact, *amount, rng)
        truth = replace(release, noisy_measurements=exact).unclipped.to_pandas()["answer"]
        inside = []
        for numbers in (release.to_pandas(), release.unclipped.to_pandas()):
            slack = 1e-9 * (1 + truth.abs())
            inside.append((numbers["low"] <= truth + slack) & (truth - slack <= numbers["high"]))
        cut, plain = inside
        known = (sizes[numbers["g"]] > 0) | numbers["query"].isin(["n", "total", "share"])
        assert (cut | ~plain)[known].all()
        for query, some in cut[known].groupby(numbers["query"][known]):
            held.setdefault(query, []).extend(some)
    assert set(held) == {"n", "total", "mean", "spread", "middle", "rate", "share"}
    for query, each in held.items():
        deviation = np.sqrt(0.95 * 0.05 / len(each))
        assert np.mean(each) >= 0.95 - 2 * deviation, query
    assert np.mean(np.concatenate(list(held.values()))) >= 0.95
