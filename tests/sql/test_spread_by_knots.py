"""Variances and quantiles of numbers by knots, against DuckDB on the clipped numbers themselves."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lrm
from lrm.domain import Categories, Domain, Numbers
from lrm.errors import SqlError

VARIANCES = {
    "VAR_POP(x)": "VAR_POP(x)",
    "VARIANCE(x)": "VAR_SAMP(x)",
    "STDDEV(x)": "STDDEV(x)",
    "STDDEV_POP(2 * x - 3)": "STDDEV_POP(2 * x - 3)",
    "-2 * VAR_POP(x) + 1": "-2 * VAR_POP(x) + 1",
    "SEM(x)": "SEM(x)",
    "STDDEV(x) / AVG(x)": "STDDEV(x) / AVG(x)",
    "AVG(x) - VAR_POP(x)": "AVG(x) - VAR_POP(x)",
    "VAR_POP(x) FILTER (WHERE g <> 'c')": "VAR_POP(x) FILTER (WHERE g <> 'c')",
}
QUANTILES = [
    "MEDIAN(x)",
    "QUANTILE_CONT(x, 0.25)",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)",
    "QUANTILE_DISC(x, 0.25)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x DESC)",
]
KNOTS = [[0, 3, 7, 14, 30, 90, 200], [0, 10, 20, 30, 40], [-50, 0, 80], [2, 3], [-90, -20, -3, 1]]


def _rows(knots, seed):
    """Few or many rows: skewed, on the knots themselves, or in one gap between two of them."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 40))
    kind = seed % 3
    if kind == 0:
        x = rng.choice([-1, 1]) * rng.lognormal(2, 1.2, count)
    elif kind == 1:
        x = rng.choice(np.array(knots, dtype=float), count)
    else:
        at = int(rng.integers(0, len(knots) - 1))
        x = rng.uniform(knots[at], knots[at + 1], count)
    groups = pa.array(["a", "b", "c"]).take(pa.array(np.arange(count) % 3))
    return pa.table({"g": groups, "x": pa.array(x, mask=rng.random(count) < 0.1)})


def _truth(rows, knots, answers):
    connection = duckdb.connect()
    connection.register("raw", rows)
    connection.execute(
        f"CREATE TABLE t AS SELECT g, GREATEST(LEAST(x, {knots[-1]}), {knots[0]}) AS x "
        "FROM raw WHERE x IS NOT NULL"
    )
    columns = ", ".join(answers)
    found = connection.execute(f"SELECT {columns} FROM t").fetchone()
    connection.close()
    return [np.nan if value is None else float(value) for value in found]


def _released(rows, knots, answers):
    """The answers with hardly any noise, one row per answer."""
    domain = Domain([Categories("g", ["a", "b", "c"]), Numbers("x", knots, null="cell")], "t")
    columns = ", ".join(f"{answer} AS a{place}" for place, answer in enumerate(answers))
    batch = lrm.sql(f"SELECT {columns} FROM t", domain)
    plan = lrm.plan(batch, "noise-on-data")
    with pytest.warns(lrm.errors.PrivacyWarning):
        release = lrm.release(plan, rows, epsilon=10**6, ledger=None)
    return batch, release.to_pandas()


@pytest.mark.parametrize("knots", KNOTS)
def test_variances_lie_in_their_intervals_and_quantiles_between_knots(knots):
    place = KNOTS.index(knots)
    for seed in (3 * place + place % 2 * 2, 3 * place + 1):
        rows = _rows(knots, seed)
        answers = [*VARIANCES, *QUANTILES]
        truths = _truth(rows, knots, [*VARIANCES.values(), *QUANTILES])
        batch, found = _released(rows, knots, answers)
        on_knots = seed % 3 == 1
        for place, (answer, truth) in enumerate(zip(answers, truths, strict=True)):
            row = found[found["query"] == f"a{place}"].iloc[0]
            case = answer, seed, truth, row.answer, row.low, row.high
            if np.isnan(truth):
                continue
            tolerance = 1e-3 * max(1.0, abs(truth))
            assert row.low - tolerance <= truth <= row.high + tolerance, case
            if answer in QUANTILES:
                assert row.low in knots, case
                assert row.high in knots, case
                assert row.low <= row.answer <= row.high, case
            elif on_knots:
                assert row.answer == pytest.approx(truth, abs=tolerance), case
            elif answer in {"VAR_POP(x)", "STDDEV(x)"}:
                assert row.answer >= truth - tolerance, case
        notes = {one.label.query: one.note for one in batch.derived}
        assert "adds to a variance" in notes["a0"]
        assert "the knots of 'x' before and after it" in notes[f"a{len(VARIANCES)}"]


def test_what_division_adds_is_bounded_by_the_soft_counts():
    rng = np.random.default_rng(0)
    for knots in KNOTS:
        attribute = Numbers("x", knots)
        slope, offset = attribute.squares_added
        ends = np.array(attribute.knots)
        for x in [*rng.uniform(ends[0], ends[-1], 500), *ends]:
            at = min(int(np.searchsorted(ends, x, side="right")) - 1, len(ends) - 2)
            share = (x - ends[at]) / (ends[at + 1] - ends[at])
            soft = np.array([1 - share, share])
            added = soft @ ends[at : at + 2] ** 2 - x**2
            assert added <= soft @ (slope * ends[at : at + 2] + offset) ** 2 + 1e-9


def test_a_skewed_column_has_a_useful_interval():
    rng = np.random.default_rng(1)
    x = rng.lognormal(1.0, 1.0, 5000)
    rows = pa.table({"g": ["a"] * 5000, "x": x})
    _, found = _released(rows, KNOTS[0], ["STDDEV(x)", "MEDIAN(x)"])
    clipped = np.clip(x, 0, 200)
    deviation, median = clipped.std(), np.median(clipped)
    assert 0.75 * deviation < found.low[0] < deviation < found.high[0] < 1.25 * deviation
    assert abs(found.answer[1] - median) < 0.8


@pytest.mark.parametrize(
    "answer",
    [
        "VAR_POP(x) / VAR_SAMP(x)",
        "1 / VAR_POP(x)",
        "ABS(VAR_POP(x) - 4)",
        "POWER(VAR_POP(x), 2)",
        "VAR_POP(x) - VAR_POP(x) FILTER (WHERE g = 'a')",
        "VAR_POP(CASE WHEN g = 'a' THEN x ELSE 1 END)",
        "VAR_POP(x + y)",
        "MEDIAN(2 * x)",
        "CORR(x, y)",
    ],
)
def test_formulas_whose_bounds_are_not_known_are_refused(answer):
    columns = [Categories("g", ["a", "b"]), Numbers("x", [0, 5, 9]), Numbers("y", [0, 1])]
    with pytest.raises(SqlError, match="not supported"):
        lrm.sql(f"SELECT {answer} AS a FROM t", Domain(columns, "t"))


def test_both_notes_are_kept_where_bins_are_added_up_too():
    domain = Domain([Numbers("x", [0, 5, 9]), lrm.Bins("age", [0, 20, 50])], "t")
    (answer,) = lrm.sql("SELECT STDDEV(x) + AVG(age) AS a FROM t", domain).derived
    assert "adds to a variance" in answer.note
    assert "bins stand for their representatives" in answer.note


def test_a_release_reads_back_and_states_the_bound(tmp_path):
    domain = Domain([Categories("g", ["a", "b"]), Numbers("x", [0, 5, 9])], "t")
    batch = lrm.sql("SELECT g, VAR_POP(x) AS v, MEDIAN(x) AS m FROM t GROUP BY g", domain)
    plan = lrm.plan(batch, "noise-on-data")
    rows = pa.table({"g": ["a", "b"] * 200, "x": np.linspace(0, 12, 400)})
    release = lrm.release(plan, rows, epsilon=1, ledger=None)
    release.save(tmp_path / "r.lrm")
    again = lrm.load_release(tmp_path / "r.lrm")
    assert again.to_pandas().equals(release.to_pandas())
    release.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "adds to a variance" in page
    assert "above 9 as 9" in page
    further = release.query("SELECT STDDEV(x) AS s, MEDIAN(x) AS q FROM t WHERE g = 'a'")
    assert len(further.table()) == 2


@pytest.mark.parametrize("ends", [[-1e300, 0, 1e300], [0, 1e160], [0, 1e-300], [0, 5e-324]])
@pytest.mark.parametrize("answer", ["AVG(x)", "VAR_POP(x)", "SUM(x)"])
def test_numbers_whose_sums_or_squares_float64_cannot_hold_are_refused(ends, answer):
    with pytest.raises(lrm.errors.LrmError, match=r"1e-100|too large"):
        lrm.plan(lrm.sql(f"SELECT {answer} AS a FROM t", Domain([Numbers("x", ends)], "t")))
