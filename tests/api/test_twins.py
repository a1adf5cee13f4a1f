"""The command line and Python make the same release, but for the noise."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.errors import PrivacyWarning
from lrm.views.releases import release_facts, summary_facts
from visits import write_files

NOISY = {"answer", "low", "high"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LRM_LEDGER", raising=False)
    write_files()
    lrm.Ledger.open("cli.sqlite").create("visits", 2, unit=lrm.read_domain("domain.yaml").unit)
    Path("api.sqlite").write_bytes(Path("cli.sqlite").read_bytes())
    return tmp_path


def run(*args):
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    return result


def told(release):
    """All that a release says, without what carries noise."""
    facts = json.loads(json.dumps(release_facts(release)))
    for row in facts["answers"]:
        for name in NOISY:
            del row[name]
    del facts["measurements"]["noisy_integers"], facts["measurements"]["y"], facts["warnings"]
    facts["provenance"]["ledger_head"] = facts["provenance"]["ledger_head"].partition(":")[0]
    return facts


def test_cli_and_api_make_the_same_release(folder):
    asked = ("queries.sql", "--domain", "domain.yaml", "-m", "noise-on-data", "-o", "plan.lrm")
    run("plan", *asked)
    paid = ("--table", "visits.csv", "--epsilon", "0.5", "--ledger", "cli.sqlite")
    run("release", "plan.lrm", *paid, "-o", "cli.lrm")
    batch = lrm.read_batch("queries.sql", lrm.read_domain("domain.yaml"))
    plan = lrm.plan(batch, "noise-on-data")
    assert plan.digest == lrm.load_plan("plan.lrm").digest
    ours = lrm.release(plan, "visits.csv", epsilon="0.5", ledger="api.sqlite")
    theirs = lrm.load_release("cli.lrm")
    assert told(ours) == told(theirs)
    ledgers = [lrm.Ledger.open(name) for name in ("cli.sqlite", "api.sqlite")]
    assert ledgers[0].budget("visits") == ledgers[1].budget("visits")


def test_json_is_what_python_tells(folder):
    run("plan", "identity:3", "-m", "noise-on-data", "-o", "p.lrm")
    Path("counts.csv").write_text("1\n2\n3\n")
    asked = ("--counts", "counts.csv", "--no-ledger", "--epsilon", "1", "-o", "r.lrm", "--json")
    printed = json.loads(run("release", "p.lrm", *asked).stdout)
    release = lrm.load_release("r.lrm")
    expected = json.loads(json.dumps(summary_facts(release)))
    assert printed == {**expected, "file": "r.lrm", "csv": None}
    shown = json.loads(run("show", "r.lrm", "--json").stdout)
    assert shown == {"kind": "release", **expected}
    whole = release_facts(release)
    assert {**whole, "measurements": None} == {**expected, "measurements": None}


def test_both_warn_of_a_promise_that_protects_nobody(folder):
    Path("counts.csv").write_text("1\n2\n")
    run("plan", "identity:2", "-m", "noise-on-data", "-o", "p.lrm")
    args = ("release", "p.lrm", "--counts", "counts.csv", "--no-ledger", "-o", "r.lrm")
    sentence = "epsilon 10,000 protects nobody"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [])
        result = run(*args, "--epsilon", "10000")
    assert result.stderr.startswith(f"lrm: warning: {sentence}")
    with pytest.warns(PrivacyWarning, match=sentence):
        lrm.release(lrm.load_plan("p.lrm"), [1, 2], epsilon=10_000)
