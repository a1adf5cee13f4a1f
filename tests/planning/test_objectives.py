"""How the error is divided among statements: objectives, ratios to an even split, files."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.clock import Clock
from lrm.errors import LrmError, UsageError, WorkloadError
from lrm.plans.balance import Balance
from lrm.plans.even_split import balance_of
from lrm.solvers.products.reweigh import PartErrors, reweigh
from lrm.strategies import Problem, Search, build_strategy
from lrm.workload.columns import statement_columns

BATCH = """
SELECT COUNT(*) AS all_visits FROM visits;
SELECT ward, COUNT(*) AS by_ward FROM visits GROUP BY ward;
SELECT ward, month, COUNT(*) AS by_month FROM visits GROUP BY ward, month;
SELECT ward, SUM(stay) AS days, AVG(stay) AS mean FROM visits GROUP BY ward;
SELECT MEDIAN(stay) AS middle FROM visits;
SELECT month, COUNT(*) FILTER (WHERE stay >= 7) AS long FROM visits GROUP BY month;
"""


@pytest.fixture(scope="module")
def batch():
    domain = lrm.Domain(
        [
            lrm.Categories("ward", ["a", "b", "c", "d"]),
            lrm.Integers("month", 1, 12),
            lrm.Integers("stay", 0, 30),
        ],
        "visits",
    )
    return lrm.sql(BATCH, domain)


@pytest.fixture(scope="module")
def plans(batch):
    made = {}
    for noise in ("laplace", "gaussian", "pure"):
        for objective in ("total", "balanced", "worst"):
            made[noise, objective] = lrm.plan(
                batch, noise=noise, objective=objective, effort="quick"
            )
    return made


def ratios(plan, balance):
    errors = plan.reconstruction_map.row_squared_norms * plan.sensitivity**2
    return balance.ratios(statement_columns(plan.workload), errors, plan.noise)


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "pure"])
def test_no_balanced_statement_is_worse_than_under_an_even_split(plans, noise):
    total, balanced, worst = (
        plans[noise, objective] for objective in ("total", "balanced", "worst")
    )
    balance = balanced.balance
    assert total.balance is None
    assert total.statement_ratios is None
    assert balanced.statement_ratios.max() <= 1.005
    mean = (ratios(balanced, balance) ** 2).mean()
    assert mean < (ratios(total, balance) ** 2).mean()
    assert worst.statement_ratios.max() <= balanced.statement_ratios.max() * 1.001
    assert balanced.expected_squared_error is not None


def test_the_even_split_is_that_of_statements_planned_alone(batch, plans):
    """A statement of one table, alone, has error 1 per count; six of them have 36 times that."""
    balance = plans["laplace", "balanced"].balance
    columns = statement_columns(batch)
    assert balance.columns[columns.statements[1][0]] == 1.0
    sums = columns.statements[3]
    assert max(balance.columns[c] for c in sums) == 30.0**2
    alone = np.ones(batch.shape[0]) * 36.0 * np.array(balance.columns)[columns.of_row]
    found = balance.ratios(columns, alone, "laplace")
    single = [len(one) == 1 for one in columns.statements]
    np.testing.assert_allclose(found[single], 1.0)
    assert balance.ratios(columns, alone / 6, "gaussian")[1] == 1.0


def test_statements_alone_are_what_a_plan_of_them_has(batch):
    balance, columns = balance_of(batch, "balanced", "laplace", Clock())
    text = "SELECT MEDIAN(stay) AS middle FROM visits"
    alone = lrm.plan(lrm.sql(text, batch.domain), effort="quick")
    (column,) = columns.statements[4]
    mean = alone.strategy_error / alone.workload.shape[0]
    assert balance.columns[column] == pytest.approx(mean, rel=0.02)


def test_columns_of_statements(batch):
    columns = statement_columns(batch)
    assert len(columns.statements) == 6
    assert columns.sizes.sum() == batch.shape[0]
    # AVG divides by the counts that another statement asks for.
    assert columns.statements[1][0] in columns.statements[3]


def test_the_default_is_balanced_for_several_statements(batch):
    assert lrm.plan(batch, effort="quick").balance.objective == "balanced"
    assert lrm.plan(np.eye(3), effort="quick").balance is None
    one = lrm.sql("SELECT COUNT(*) FROM visits", batch.domain)
    assert lrm.plan(one, effort="quick").balance is None
    assert lrm.plan(batch, "noise-on-data").balance is None


def test_objectives_that_make_no_sense(batch):
    with pytest.raises(UsageError, match="objective must be one of"):
        lrm.plan(batch, objective="fair")
    with pytest.raises(UsageError, match="an objective is for best"):
        lrm.plan(batch, "noise-on-data", objective="worst")
    with pytest.raises(UsageError, match="several"):
        lrm.plan(np.eye(3), objective="worst")


def test_importance_multiplies(batch, plans):
    text = BATCH.replace("SELECT MEDIAN", "-- importance: 16\nSELECT MEDIAN")
    weighed = lrm.plan(lrm.sql(text, batch.domain), effort="quick")
    assert weighed.statement_ratios[4] < 0.9 * plans["laplace", "balanced"].statement_ratios[4]


def test_plans_keep_what_statements_are_compared_with(plans, tmp_path):
    plan = plans["laplace", "balanced"]
    plan.save(tmp_path / "plan.lrm")
    again = lrm.load_plan(tmp_path / "plan.lrm")
    np.testing.assert_allclose(again.statement_ratios, plan.statement_ratios)
    assert again.digest == plan.digest
    assert again.balance.facts == plan.balance.facts
    assert again.batch_digest == plans["laplace", "total"].workload.digest


@pytest.mark.parametrize(
    "facts",
    [
        [],
        {"objective": "balanced"},
        {"objective": "total", "columns": [1.0], "statements": [1.0, 1.0], "batch": ""},
        {"objective": "balanced", "columns": [0.0], "statements": [1.0, 1.0], "batch": ""},
        {"objective": "balanced", "columns": [1.0], "statements": [1.0, True], "batch": ""},
        {"objective": "balanced", "columns": "11", "statements": [1.0, 1.0], "batch": ""},
    ],
)
def test_edited_files_are_refused(facts):
    with pytest.raises(WorkloadError):
        Balance.from_facts(facts)


def test_a_balance_of_another_batch_is_refused(plans):
    from dataclasses import replace

    plan = plans["laplace", "balanced"]
    with pytest.raises(LrmError, match="not those of the batch"):
        replace(plan, balance=Balance("balanced", (1.0,), (1.0, 1.0), "digest"))


def test_reweighed_strategies_have_the_errors_of_their_parts(batch):
    """Errors in closed form are those of the reconstruction of the rounded strategy."""
    problem = Problem(batch)
    choice = build_strategy("marginals", problem, Search(), {"effort": "quick"})
    columns = statement_columns(batch)
    queries = batch.queries
    parts = columns.of_row[[own.start for _, own in queries.term_slices()]]
    strategy = reweigh(queries.batch, choice.found)
    assert strategy.error <= choice.found.error * (1 + 1e-9)
    errors = PartErrors(queries.batch, parts, strategy).of(strategy)
    assert errors.sum() == pytest.approx(strategy.error)
    measured, reconstruction = choice.rounded(problem, "laplace", None)
    scale = measured.sensitivity / 2.0**measured.bits
    found = np.bincount(columns.of_row, reconstruction.row_squared_norms) * scale**2
    before = PartErrors(queries.batch, parts, choice.found).of(choice.found)
    np.testing.assert_allclose(found, before, rtol=2e-3)


def test_the_commands_show_ratios(batch, tmp_path):
    (tmp_path / "q.sql").write_text(BATCH)
    from lrm.domain.file import write_domain

    write_domain(batch.domain, tmp_path / "d.yaml")
    options = ["--domain", str(tmp_path / "d.yaml"), "--effort", "quick", "--objective", "worst"]
    plan = str(tmp_path / "p.lrm")
    run = CliRunner().invoke(main, ["plan", str(tmp_path / "q.sql"), *options, "-o", plan])
    assert "worst: of their errors under an even split" in run.output
    run = CliRunner().invoke(main, ["explain", plan, "--epsilon", "1"])
    assert "even" in run.output
    run = CliRunner().invoke(main, ["explain", plan, "--epsilon", "1", "--json"])
    facts = json.loads(run.output)
    assert all(0 < one["of_even_split"] < 1.1 for one in facts["statements"])


def test_a_statement_above_one_is_named(batch):
    text = BATCH.replace("SELECT ward, month", "-- importance: 1000\nSELECT ward, month")
    plan = lrm.plan(lrm.sql(text, batch.domain), effort="quick")
    assert plan.statement_ratios.max() > 1.005
    assert any("-- importance:" in warning for warning in plan.warnings)
