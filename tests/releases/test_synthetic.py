"""Synthetic rows: a function of the release alone, fitted to its answers."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lrm
from lrm.clock import Clock
from lrm.errors import UsageError
from lrm.queries.workload.products import marginals
from lrm.releases import synthetic
from lrm.releases.cell_tables import batch_terms, merged_attributes, value_counts
from lrm.releases.consistent import consistent_tables
from lrm.releases.row_fit import Goal, RowFit

DOMAIN = lrm.Domain(
    [
        lrm.Categories("region", ["north", "south", "west"], null="cell", outside="cell"),
        lrm.Integers("age", 0, 19),
        lrm.Dates("day", "2024-01-01", "2024-02-29"),
        lrm.Bins("income", [0, 10, 50, float("inf")], nan="cell"),
        lrm.Numbers("stay", [0, 7, 30]),
        lrm.Categories("unasked", [1, 2]),
    ],
    table="t",
)
SQL = """
SELECT region, COUNT(*) AS n FROM t GROUP BY region;
SELECT age, COUNT(*) AS n FROM t GROUP BY age;
SELECT age >= 10 AS old, region, COUNT(*) AS n FROM t GROUP BY old, region;
SELECT EXTRACT(month FROM day) AS month, COUNT(*) AS n FROM t WHERE income < 50 GROUP BY month;
SELECT region, AVG(stay) AS mean_stay FROM t GROUP BY region;
"""


def table(rows: int = 3000):
    rng = np.random.default_rng(1)
    days = np.datetime64("2024-01-01") + rng.integers(0, 60, rows)
    return pa.table(
        {
            "region": rng.choice(["north", "south", "west", "?"], rows, p=[0.6, 0.2, 0.15, 0.05]),
            "age": np.minimum(rng.integers(0, 21, rows), rng.integers(0, 21, rows)),
            "day": days,
            "income": rng.exponential(20, rows),
            "stay": rng.exponential(4, rows),
            "unasked": rng.integers(1, 3, rows),
        }
    )


@pytest.fixture(scope="module")
def release():
    plan = lrm.plan(lrm.sql(SQL, DOMAIN), effort="quick")
    return lrm.release(plan, table(), epsilon=2, ledger=None)


def test_rows_count_to_what_they_say_by_the_released_queries(release):
    """The rows fall into the cells of the domain, and the batch asked of them gives `counts`."""
    rows = release.synthesize(seed=3)
    frame = rows.to_arrow()
    assert "unasked" not in frame.column_names
    assert rows.left_out == ("unasked",)
    ages = [age for age in frame["age"].to_pylist() if age is not None]
    assert 0 <= min(ages) <= max(ages) <= 19  # rows that a rule drops have no age
    full = frame.append_column("unasked", [[1] * len(rows)])
    domain = release.plan.workload.domain
    cells = domain.count(full.to_pylist())
    records = np.asarray(cells, dtype=float) / 2.0**domain.record_bits
    answers = release.plan.workload.queries.apply(records)
    assert np.allclose(answers, rows.counts)
    assert all(fit.distance <= synthetic.WITHIN for fit in rows.fits)


def test_the_same_seed_gives_the_same_bytes(release, tmp_path):
    for name in ("a", "b"):
        rows = release.synthesize(rows=500, seed=9)
        rows.write(tmp_path / f"{name}.parquet")
        rows.write(tmp_path / f"{name}.csv")
    for ending in ("parquet", "csv"):
        first, second = ((tmp_path / f"{n}.{ending}").read_bytes() for n in "ab")
        assert first == second
    other = release.synthesize(rows=500, seed=10)
    assert other.to_arrow() != pq.read_table(tmp_path / "a.parquet")
    assert len(other) == 500


def test_files_say_what_the_rows_are(release, tmp_path):
    release.synthesize(rows=400, seed=2).write(tmp_path / "rows.parquet")
    stated = pq.read_schema(tmp_path / "rows.parquet").metadata
    assert stated[b"synthetic"] == b"true"
    assert stated[b"rows"] == b"400"
    assert stated[b"guarantee"].decode() == release.stated["guarantee"]
    assert stated[b"plan"].decode() == release.plan.digest
    with pytest.raises(UsageError, match="are written to"):
        release.synthesize(rows=10, seed=2).write(tmp_path / "rows.xlsx")


def test_the_page_has_every_statement_and_the_advice(release, tmp_path):
    rows = release.synthesize(rows=300, seed=2)
    rows.report(tmp_path / "rows.html")
    text = (tmp_path / "rows.html").read_text(encoding="utf-8")
    assert "These rows are made up" in text
    for fit in rows.fits:
        assert fit.name in text


def test_many_rows_with_little_noise_come_as_near_as_the_noise_allows():
    """More rows than one sweep changes: each part of them counts before the search is over."""
    domain = lrm.Domain([lrm.Integers(name, 0, 7) for name in "abc"], table="t")
    pairs = ("a, b", "b, c", "a, c")
    sql = ";".join(f"SELECT {g}, COUNT(*) AS n FROM t GROUP BY {g}" for g in pairs)
    sql += "; SELECT a, AVG(b) AS mean_b FROM t GROUP BY a"
    rng = np.random.default_rng(3)
    a, noise = rng.integers(0, 8, 60_000), rng.integers(0, 4, (2, 60_000))
    table = pa.table({"a": a, "b": (a + noise[0]) % 8, "c": (a * 3 + noise[1]) % 8})
    plan = lrm.plan(lrm.sql(sql, domain), effort="quick")
    rows = lrm.release(plan, table, epsilon=2, ledger=None).synthesize(seed=1, progress=False)
    assert [fit.name for fit in rows.fits] == [entry.name for entry in plan.workload.tables]
    assert max(fit.distance for fit in rows.fits) < 1.0


@pytest.mark.parametrize("rows", [0, -5, synthetic.MOST_ROWS + 1])
def test_impossible_numbers_of_rows_are_refused(release, rows):
    with pytest.raises(UsageError, match="number of rows"):
        release.synthesize(rows=rows)


def test_the_distance_never_rises():
    batch = marginals([4, 5, 3, 4], [1, 2])
    rng = np.random.default_rng(4)
    counts = rng.poisson(3.0, batch.shape[1]).astype(float)
    answers = batch.queries.apply(counts) + rng.laplace(size=batch.shape[0]) * 20
    terms = batch_terms(batch, answers)
    labels = merged_attributes(value_counts(batch), terms)
    fit = RowFit([4, 5, 3, 4], [t.merged([labels[i] for i in t.axes]) for t in terms], 700, 5)
    fit.draw(consistent_tables(batch, answers).tables)
    fit.improve(Clock())
    assert all(after <= before for before, after in zip(fit.history, fit.history[1:], strict=False))
    assert fit.history[-1] < fit.history[0]
    assert fit.history[-1] == pytest.approx(fit.distance)


def test_the_search_ends_at_its_goal():
    """F alone is not enough: each term must be as near as the goal says."""
    batch = marginals([4, 5, 3], [1, 2])
    counts = np.random.default_rng(4).poisson(30.0, batch.shape[1]).astype(float)
    answers = batch.queries.apply(counts)
    terms = batch_terms(batch, answers)
    tables = consistent_tables(batch, answers).tables
    lengths, ends = [], []
    for enough, each in ((1e9, 1e9), (50.0 * len(answers), 1e9), (1e9, 40.0), (0.0, 1e9)):
        fit = RowFit([4, 5, 3], terms, int(counts.sum()), 5)
        fit.draw(tables)
        goal = Goal(enough, terms, np.full(len(terms), each))
        fit.improve(Clock(), goal=goal)
        lengths.append(len(fit.history))
        ends.append([term.weights @ (fit.answers(term) - term.answers) ** 2 for term in terms])
        assert goal.is_met(fit) or enough == 0
    assert lengths[0] == 1  # the rows as drawn are near enough
    assert max(ends[2]) <= 40
    assert lengths[3] > max(lengths[:3])


@pytest.mark.parametrize("batch", [np.array([[1, 1, 1], [1, 0, 0]]), marginals([3, 4], [1, 2])])
def test_batches_without_a_domain_have_rows_of_numbers(batch):
    plan = lrm.plan(batch)
    cells = plan.workload.shape[1]
    rows = lrm.release(plan, [40] * cells, epsilon=5).synthesize(seed=1)
    assert abs(len(rows) - 40 * cells) < 20
    assert list(rows.columns) == (["cell"] if cells == 3 else ["a1", "a2"])


def test_the_command_writes_rows_and_a_page(release, tmp_path):
    from click.testing import CliRunner

    from lrm.cli import main

    release.save(tmp_path / "answers.lrm")
    args = ["synthesize", str(tmp_path / "answers.lrm"), "-o", str(tmp_path / "rows.csv")]
    args += ["--rows", "200", "--seed", "7", "--report", str(tmp_path / "rows.html"), "--json"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["synthetic"] == "true"
    assert told["seed"] == "7"
    assert len((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()) == 201
    assert (tmp_path / "rows.html").exists()


def test_rows_have_no_impossible_combinations():
    attributes = [
        lrm.Categories("sex", ["f", "m"]),
        lrm.Categories("pregnant", [False, True]),
        lrm.Integers("age", 0, 9),
    ]
    never = ["sex = 'm' AND pregnant", "age < 2 AND pregnant"]
    domain = lrm.Domain(attributes, "people", impossible=never)
    text = """SELECT sex, age, COUNT(*) AS n FROM people GROUP BY sex, age;
              SELECT pregnant, COUNT(*) AS p FROM people GROUP BY pregnant"""
    plan = lrm.plan(lrm.sql(text, domain), effort="quick")
    women = [{"sex": "f", "pregnant": k % 3 == 0, "age": 2 + k % 8} for k in range(300)]
    men = [{"sex": "m", "pregnant": False, "age": k % 10} for k in range(300)]
    release = lrm.release(plan, pa.Table.from_pylist(women + men), epsilon=1, ledger=None)
    rows = release.synthesize(seed=1).to_arrow().to_pylist()
    assert any(row["pregnant"] for row in rows)
    ages = [row["age"] for row in rows if row["pregnant"] and row["age"] is not None]
    assert min(ages) >= 2  # rows that a rule drops have no age
    assert not any(row["pregnant"] and row["sex"] == "m" for row in rows)
