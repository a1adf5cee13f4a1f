"""Which noise: both plans at one guarantee, and what the ledgers take of each."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.errors import BudgetError, LedgerError
from lrm.planning.plan.comparison import choose_noise


def test_few_answers_are_better_with_pure_noise():
    choice = choose_noise(np.eye(4), 1, "1e-6", effort="quick")
    assert choice.best is choice.pure
    # One count each: Laplace noise on whole numbers, of variance 2q/(1 − q)² with q = e^−ε.
    gaussian = choice.gaussian.standard_errors(1, delta="1e-6")[0]
    laplace = math.sqrt(0.5) / math.sinh(0.5)
    assert choice.ratio == pytest.approx(gaussian / laplace, rel=1e-6)


def test_many_marginals_are_better_with_gaussian_noise():
    domain = lrm.Domain([lrm.Integers(f"a{i}", 0, 4) for i in range(9)], "t")
    batch = lrm.marginals(domain, [2])
    choice = choose_noise(batch, 1, "1e-6", effort="quick")
    assert choice.best is choice.gaussian
    assert choice.ratio < 1
    errors = [
        choice.gaussian.standard_errors(1, delta="1e-6").mean(),
        choice.pure.standard_errors(1).mean(),
    ]
    assert choice.ratio == pytest.approx(errors[0] / errors[1], rel=0.05)


def test_amounts_are_checked():
    with pytest.raises(BudgetError, match="delta"):
        choose_noise(np.eye(2), 1, 1)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "w.csv").write_text("1,1,1\n1,0,0\n")
    return tmp_path


def test_the_command_chooses(files):
    path = str(files / "w.csv")
    arguments = ["plan", path, "--noise", "auto", "--effort", "quick"]
    run = CliRunner().invoke(main, [*arguments, "--epsilon", "1", "--delta", "1e-6"])
    assert run.exit_code == 0
    assert "stronger guarantee" in run.output
    run = CliRunner().invoke(main, [*arguments, "--epsilon", "1", "--delta", "1e-6", "--json"])
    facts = json.loads(run.output)["noises"]
    assert facts["chosen"] in {"laplace", "shaped"}
    assert all(one["gaussian"] > one["pure"] for one in facts["statements"])
    assert CliRunner().invoke(main, arguments).exit_code == 2
    run = CliRunner().invoke(main, ["plan", path, "--epsilon", "1", "--delta", "1e-6"])
    assert run.exit_code == 2
    assert "--noise auto" in run.output


def test_a_ledger_in_rho_takes_pure_releases_too(tmp_path):
    ledger = lrm.Ledger.open(str(tmp_path / "budget.sqlite"))
    ledger.create("counts", "0.5", "rho")
    plan = lrm.plan(np.eye(3), "noise-on-data", noise="laplace")
    lrm.release(plan, [1, 2, 3], epsilon="0.1", ledger=ledger, budget="counts")
    assert ledger.budget("counts").spent == Fraction("0.005")
    gaussian = lrm.plan(np.eye(3), "noise-on-data", noise="gaussian")
    lrm.release(gaussian, [1, 2, 3], rho="0.1", ledger=ledger, budget="counts")
    assert float(ledger.budget("counts").spent) == pytest.approx(0.105)
    ledger.create("pure", "1")
    with pytest.raises(LedgerError, match="--accounting rho"):
        lrm.release(gaussian, [1, 2, 3], rho="0.1", ledger=ledger, budget="pure")


def test_creating_a_budget_explains_the_kinds_of_accounting():
    run = CliRunner().invoke(main, ["budget", "create", "--help"])
    assert "epsilon²/2" in run.output
    assert "two kinds of accounting" in run.output
