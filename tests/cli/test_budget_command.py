"""``lrm budget`` says what the ledger knows, to people and to machines."""

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from click.testing import CliRunner

from lrm.cli.budget import budget
from lrm.errors import BudgetError, LedgerError
from lrm.ledger import Ledger
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.sqlite")


def run(path, *arguments, width=80):
    """Run the command in a terminal of some width, and return what it printed."""
    result = CliRunner().invoke(
        budget, [*arguments, "--ledger", path], env={"COLUMNS": str(width)}, catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def filled(path):
    run(path, "create", "people", "--limit", "1")
    run(path, "create", "visits", "--limit", "1/3", "--accounting", "rho")
    ledger = Ledger.open(path)
    purpose = "counts by [bold]age[/bold] and region"
    ledger.spend("people", PureDP(Fraction(1, 10)), unit=ROW, purpose=purpose)
    purpose = "a digest: " + "0123456789abcdef" * 4
    ledger.spend("visits", PureDP(Fraction(1, 7)), unit=ROW, purpose=purpose)
    return ledger


def test_create_says_what_may_be_spent(path):
    assert run(path, "create", "people", "--limit", "0.5") == (
        "table 'people' may spend 0.5 epsilon\n'people' protects one row, added or removed\n"
    )
    made = json.loads(run(path, "create", "b", "--limit", "1/3", "--accounting", "rho", "--json"))
    assert made == {
        "table": "b",
        "accounting": "rho",
        "unit": ROW.facts,
        "limit": "1/3",
        "spent": "0",
        "remaining": "1/3",
    }


def test_show_agrees_with_the_library(path, filled):
    shown = json.loads(run(path, "show", "--json"))["budgets"]
    assert [Fraction(each["remaining"]) for each in shown] == [
        filled.remaining("people"),
        filled.remaining("visits"),
    ]
    one = run(path, "show", "people")
    assert "0.9" in one
    assert "visits" not in one


def test_history_agrees_with_the_library(path, filled):
    entries = json.loads(run(path, "history", "--json"))["entries"]
    assert [entry["digest"] for entry in entries] == [e.digest for e in filled.history()]
    assert [entry["amount"] for entry in entries] == ["1", "1/3", "1/10", "1/98"]
    assert entries[3]["promise"] == "epsilon=1/7"
    table = run(path, "history", "people", width=200)
    assert "counts by [bold]age[/bold] and region" in table


@pytest.mark.parametrize("command", ["show", "history"])
def test_tables_fit_the_terminal_and_lose_nothing(path, filled, command):
    printed = run(path, command)
    assert max(len(line) for line in printed.splitlines()) <= 80
    assert "…" not in printed
    compact = "".join(printed.split())
    for needed in ("people", "visits", "epsilon"):
        assert needed in compact


def test_long_amounts_are_short_decimals_on_the_safe_side(path):
    """Spent up, remaining down, marked as rounded; JSON keeps what is exact."""
    third = Fraction(10**30, 3 * 10**30 + 1)
    limit = Fraction(2, 3) + Fraction(1, 10**20)
    said = run(path, "create", "visits", "--limit", str(limit), "--accounting", "rho")
    assert said.startswith("table 'visits' may spend ≈0.666666 rho\n")
    Ledger.open(path).spend("visits", ZCDP(third), unit=ROW, purpose="a third")
    cells = run(path, "show").rstrip().splitlines()[-3].split()
    assert cells == ["visits", "rho", "≈0.666666", "≈0.333334", "≈0.333333"]
    amounts = [line.split()[4] for line in run(path, "history").rstrip().splitlines()[-2:]]
    assert amounts == ["≈0.666666", "≈0.333334"]
    (exact,) = json.loads(run(path, "show", "--json"))["budgets"]
    assert Fraction(exact["spent"]) == third
    assert Fraction(exact["remaining"]) == limit - third


def test_verify_prints_the_head_and_checks_one(path, filled):
    head = filled.head()
    assert run(path, "verify") == f"the history is consistent\nhead {head}\n"
    assert json.loads(run(path, "verify", "--expected-head", head, "--json")) == {
        "verified": True,
        "head": head,
    }
    with pytest.raises(LedgerError, match="is not on its chain"):
        run(path, "verify", "--expected-head", f"4:{'0' * 64}")


def test_errors_reach_the_caller_as_they_are(path):
    with pytest.raises(LedgerError, match="there is no ledger at"):
        run(path, "show")
    with pytest.raises(BudgetError, match="the limit in epsilon must"):
        run(path, "create", "people", "--limit", "nan")


def test_the_ledger_may_come_from_the_environment(path, filled):
    result = CliRunner().invoke(budget, ["verify"], env={"LRM_LEDGER": path})
    assert result.exit_code == 0


@pytest.mark.parametrize("command", [[], ["create"], ["show"], ["history"], ["verify"]])
def test_each_help_has_an_example(command):
    result = CliRunner().invoke(budget, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example:\n" in result.output
    assert f"lrm budget {' '.join(command)}".strip() in result.output


def test_help_loads_neither_ledger_nor_rich():
    code = "import sys, lrm.cli.budget; print('lrm.ledger' in sys.modules, 'rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
