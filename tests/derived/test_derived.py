"""Derived answers: their records, their place in files, and where they are shown."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import lrm
from forging import resealed
from lrm.errors import DomainError, FileFormatError, WorkloadError
from lrm.planning.derived import Noisy, derived_numbers, derived_values
from lrm.planning.derived.quantiles import monotone
from lrm.queries.workload import Block, Computed, Formula, LabelBlock, Quantile, derived_from_facts

DOMAIN = lrm.Domain(
    [
        lrm.Categories("g", ["a", "b", "c"]),
        lrm.Integers("x", 0, 9, null="cell"),
        lrm.Bins("pay", [0, 10, 20, 50], outside="cell"),
    ],
    "t",
)
TEXT = """
    SELECT g, COUNT(*) AS n, AVG(x) AS mean, MEDIAN(x) AS middle FROM t GROUP BY g;
    SELECT SUM(pay) AS total FROM t WHERE pay >= 0 AND pay < 50;
    SELECT g, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM t GROUP BY g
"""


@pytest.fixture(scope="module", params=["laplace", "gaussian"])
def release(request):
    plan = lrm.plan(lrm.sql(TEXT, DOMAIN), "noise-on-data", noise=request.param)
    counts = np.random.default_rng(5).poisson(8.0, DOMAIN.size)
    amount = {"epsilon": 1} if request.param == "laplace" else {"rho": "0.1"}
    return lrm.release(plan, counts, **amount)


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ((), "between 1 and 200 steps"),
        ((0, "/"), "operation '/' where none can be"),
        ((0, 1), "must give one value"),
        ((1.0,), "must give one value"),
        ((1,), "numbered from 0 on"),
        ((0, float("inf"), "*"), "must be finite"),
        ((0, "sin"), "operation 'sin'"),
        ((0, 2.0, "round", 1, "/"), "round may only come last"),
        ((0, 50.0, "round"), "between -12 and 12 digits"),
    ],
)
def test_a_formula_checks_itself(steps, sentence):
    with pytest.raises(WorkloadError, match=sentence):
        Formula(steps)


def test_gradients_are_those_of_differences():
    steps = (0, 1, 1, "*", 2, "/", "-", 2, 1.0, "-", "/", 3, "+", "sqrt", 2, "*")
    core = Formula((*steps, 3, "/"))
    rng = np.random.default_rng(2)
    inputs = rng.uniform(5.0, 9.0, (4, 6)) + np.array([[90.0], [0.0], [0.0], [0.0]])
    (value, gradient), _ = core.dual(inputs)
    for k in range(4):
        moved = inputs.copy()
        moved[k] += 1e-6
        assert np.allclose((core.value(moved) - value) / 1e-6, gradient[k], rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"formula": [0, 1, "/"], "inputs": [[0, [1], 1.0]]}, "one block per input"),
        ({"inputs": [[0, [1], 1.0], [999, [1], 1.0]]}, "that the batch does not ask"),
        ({"inputs": [[0, [1], 1.0], [-1, [1], 1.0]]}, "inputs of another shape"),
        ({"inputs": [[0, [1], 1.0], [3, [], 1.0]]}, "inputs of another shape"),
        ({"inputs": [[0, [1], 1.0], [3, [1], 0.0]]}, "between 1e-100 and 1e100"),
        ({"inputs": [[0, [1], 1.0], [True, [1], 1.0]]}, "wrong type"),
        ({"inputs": 5}, "wrong type"),
        ({"binning": -1.0}, "at least 0"),
        ({"binning": "much"}, "wrong type"),
        ({"more": 1}, "missing or not known"),
        ({"formula": "0/1"}, "list of inputs"),
        ({"undivided": [0, 1, "/", 2.0, "*"]}, "same inputs and ending"),
        ({"undivided": 3}, "list of inputs"),
    ],
)
def test_a_file_with_other_facts_is_refused(change, sentence):
    batch = lrm.sql(TEXT, DOMAIN)
    fact = {**batch.derived[0].facts(), **change}
    with pytest.raises((WorkloadError, FileFormatError), match=sentence):
        lrm.Workload(batch.queries, labels=batch.labels, derived=derived_from_facts([fact]))


def test_facts_read_back_as_they_were():
    batch = lrm.sql(TEXT, DOMAIN)
    facts = json.loads(json.dumps([one.facts() for one in batch.derived]))
    assert derived_from_facts(facts) == batch.derived
    with pytest.raises(WorkloadError, match="ascending order"):
        Quantile(LabelBlock("q"), 0.5, Block(0, (1,)), (0.0, 2.0), (3.0, 1.0), "x")
    with pytest.raises(WorkloadError, match="from 0 to 1"):
        Quantile(LabelBlock("q"), 2.0, Block(0, (1,)), (0.0,), (1.0,), "x")


def test_inputs_that_are_asked_anyway_are_not_asked_twice():
    batch = lrm.sql(
        "SELECT COUNT(x) AS n, SUM(x) AS s, AVG(x) AS m, SUM(x) / COUNT(x) AS r FROM t", DOMAIN
    )
    assert batch.shape[0] == 2
    assert not [label for label in batch.labels.blocks if label.hidden]


def test_a_release_is_read_back_with_its_derived_answers(release, tmp_path):
    release.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    assert again.plan.digest == release.plan.digest
    ours, theirs = release.table().numbers, again.table().numbers
    for name, column in ours.items():
        assert np.array_equal(column, theirs[name], equal_nan=True)


def test_an_edited_formula_is_refused(release, tmp_path):
    path = tmp_path / "answers.lrm"
    release.save(path)

    def edit(facts, _arrays):
        facts["plan"]["derived"][0]["formula"] = [1, 0, "/"]

    resealed(path, edit)
    with pytest.raises(FileFormatError, match="digest is not that of the contents"):
        lrm.load_release(path)


def test_hidden_queries_are_not_shown(release):
    table = release.table()
    assert [label.query for label in table.labels()] == [
        *["n"] * 3,
        *["mean"] * 3,
        *["middle"] * 3,
        "total",
        *["pct"] * 3,
    ]
    assert len(release.names) > len(table)
    assert next(release["mean"].labels()).group == (("g", "a"),)
    assert "mean (part 1)[g=a]" in release.names
    assert len(release.head(4)) == 4


def test_files_of_answers_have_derived_ones(release, tmp_path):
    import pyarrow.parquet as pq

    release.write(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 13
    middle = next(line for line in lines if line["name"] == "middle[g=a]")
    assert not middle["standard_error"]  # a quantile has none
    release.write(tmp_path / "answers.parquet")
    found = pq.read_table(tmp_path / "answers.parquet")
    assert found.column("query").to_pylist()[-1] == "pct"
    assert found.column("answer").to_pylist() == [float(line["answer"]) for line in lines]


def test_further_questions_may_be_derived(release):
    found = release.query("SELECT AVG(x) AS mean, MEDIAN(x) AS middle FROM t WHERE g <> 'c'")
    assert [label.query for label in found.table().labels()] == ["mean", "middle"]
    direct = release.query("SELECT SUM(x) AS s, COUNT(x) AS n FROM t WHERE g <> 'c'").answers
    assert found["mean"].numbers["answer"][0] == pytest.approx(direct[0] / direct[1])


def test_stacked_batches_keep_their_derived_answers():
    one = lrm.sql("SELECT COUNT(*) AS n FROM t", DOMAIN)
    two = lrm.sql("SELECT AVG(x) AS mean FROM t", DOMAIN)
    both = lrm.stack([one, two])
    counts = np.random.default_rng(1).poisson(3.0, DOMAIN.size).astype(float)
    for batch in (two, both):
        exact = batch.queries.apply(counts)
        noisy = Noisy(lambda a, b, exact=exact: exact[a:b], None)
        (value,) = derived_values(batch.derived[0], 0, 1, noisy)
        rows = counts.reshape(DOMAIN.shape)[:, :10].sum(axis=(0, 2))
        assert value == pytest.approx(rows @ np.arange(10) / rows.sum())


def test_without_rows_of_the_reconstruction_intervals_are_wider(release, monkeypatch):
    one = release.plan.workload.derived[0]
    noisy = Noisy(release.rows, release.accuracy)
    exact = derived_numbers(one, 0, 3, noisy, 0.95)
    monkeypatch.setattr("lrm.planning.derived.noise.ARRAY", 0)
    boxed = derived_numbers(one, 0, 3, noisy, 0.95)
    assert np.all(boxed["low"] <= exact["low"])
    assert np.all(boxed["high"] >= exact["high"])


def test_running_totals_are_made_monotone():
    assert monotone(np.array([-1.0, 3.0, 2.0, 5.0])).tolist() == [0.0, 2.5, 2.5, 5.0]


def test_representatives_are_checked():
    with pytest.raises(DomainError, match="one number per cell"):
        lrm.Bins("x", [0, 1, 2], [0.5])
    with pytest.raises(DomainError, match="in their cells, not 3 in"):
        lrm.Bins("x", [0, 1, 2], [0.5, 3])
    own = lrm.Bins("x", [0, 1, float("inf")], [0.25, 7])
    batch = lrm.sql("SELECT SUM(x) AS s FROM t", lrm.Domain([own, lrm.Integers("y", 0, 1)], "t"))
    assert batch.derived[0].binning == float("inf")
    assert "no bound" in batch.derived[0].note
    assert isinstance(batch.derived[0], Computed)


@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
@pytest.mark.parametrize("amount", ["0.001", "1", "700", "10000"])
def test_rates_and_averages_have_ordered_intervals_at_every_amount(noise, amount):
    """From ε of some hundreds on the variance of the noise is 0 in floating point."""
    domain = lrm.Domain([lrm.Categories("c", ["a", "b"])], "t")
    text = """
    SELECT AVG(CASE WHEN c = 'a' THEN 1.0 ELSE 0 END) AS share FROM t;
    SELECT c, COUNT(*) FILTER (WHERE c = 'b') * 1.0 / COUNT(*) AS rate FROM t GROUP BY c
    """
    plan = lrm.plan(text, domain=domain, noise=noise, effort="quick")
    name = "rho" if noise == "gaussian" else "epsilon"
    frame = lrm.release(plan, [30, 30], **{name: amount}).to_pandas()
    assert (frame["low"] <= frame["high"]).all()
    if float(amount) > 1:
        assert frame["answer"].tolist() == pytest.approx([0.5, 0, 1], abs=0.1)
