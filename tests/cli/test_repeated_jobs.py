"""Jobs that nobody watches: repeated under a key, with exit codes that say what was charged."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lrm.releases
from lrm.domain import Categories, Domain
from pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "run-unattended.md"


@pytest.fixture
def job(run, tmp_path, plan_file):
    """A plan, counts and a ledger; returns a function that runs the release."""
    (tmp_path / "counts.csv").write_text("5\n7\n9\n11\n")
    run("budget", "create", "people", "--limit", "1", "--ledger", tmp_path / "ledger.sqlite")

    def release(*more, key="nightly", epsilon="0.1"):
        arguments = ["--counts", tmp_path / "counts.csv", "--ledger", tmp_path / "ledger.sqlite"]
        arguments += ["--budget", "people", "--epsilon", epsilon, "-o", tmp_path / "answers.lrm"]
        return run("release", plan_file, *arguments, "--key", key, *more)

    release.folder = tmp_path
    return release


def entries(job):
    with sqlite3.connect(job.folder / "ledger.sqlite") as db:
        return db.execute("SELECT count(*) FROM entries WHERE kind = 'spend'").fetchone()[0]


def test_a_repeated_job_is_a_success_that_charges_nothing(job):
    assert job().exit_code == 0
    content = (job.folder / "answers.lrm").read_bytes()
    again = job()
    assert again.exit_code == 0, again.output
    assert "holds the release of this key; nothing was charged" in again.stdout
    assert json.loads(job("--json").stdout)["repeated"] is True
    assert (job.folder / "answers.lrm").read_bytes() == content
    assert entries(job) == 1
    job("--csv", job.folder / "answers.csv")
    assert (job.folder / "answers.csv").read_text().count("\n") > 3


def test_lost_answers_are_not_drawn_again(job):
    job()
    (job.folder / "answers.lrm").unlink()
    lost = job("--json")
    assert lost.exit_code == 3
    error = json.loads(lost.stdout)["error"]
    assert error["charge"] == "made"
    assert error["exit_code"] == 3
    assert "the noise of a charge is drawn once" in error["message"]
    assert not (job.folder / "answers.lrm").exists()
    (job.folder / "answers.lrm").write_text("another file")
    assert job().exit_code == 3
    assert entries(job) == 1


def test_two_runs_at_once_end_well_where_the_other_has_saved_its_answers(job, monkeypatch):
    """A run that began before the other had saved anything looks again before it reports a loss."""
    job()
    saved = job.folder / "answers.lrm"
    aside = saved.rename(job.folder / "aside.lrm")
    release = lrm.releases.release

    def other_saves_meanwhile(**arguments):
        aside.rename(saved)
        return release(**arguments)

    monkeypatch.setattr(lrm.releases, "release", other_saves_meanwhile)
    late = job()
    assert late.exit_code == 0, late.output
    assert "holds the release of this key; nothing was charged" in late.stdout
    assert entries(job) == 1


def test_a_key_belongs_to_one_release(job):
    job()
    other = job(epsilon="0.2")
    assert other.exit_code == 2
    assert "give each release a key of its own" in other.stderr
    new = job(key="tomorrow")
    assert new.exit_code == 2
    assert "exists already" in new.stderr
    assert job("--force", key="tomorrow").exit_code == 0
    assert entries(job) == 2


def test_codes_say_whether_the_budget_was_charged(job):
    assert job(epsilon="2").exit_code == 1  # more than is left
    (job.folder / "counts.csv").write_text("5\n7\n8\n")
    failed = job("--json")
    assert failed.exit_code == 3
    error = json.loads(failed.stdout)["error"]
    assert (error["charge"], error["kind"]) == ("made", "CountsError")
    assert "was charged 0.1 epsilon" in error["message"]
    assert entries(job) == 1


def test_errors_of_files_are_data_too(run, tmp_path):
    (tmp_path / "domain.yaml").write_text("lrm-domain: 1\ntable: t\nattributes:\n  - {nome: a}\n")
    wrong = run("domain", "check", tmp_path / "domain.yaml", "--json")
    assert wrong.exit_code == 2
    assert any(place["line"] for place in json.loads(wrong.stdout)["error"]["places"])


@pytest.fixture
def crontab(tmp_path):
    """The crontab of the page, with a folder of ours; returns a function that runs its job."""
    (text,) = [block.text for block in blocks(PAGE) if block.language == "crontab"]
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mail").write_text('#!/bin/sh\necho "$@" >> mails; cat >> mails\n')
    (tools / "mail").chmod(0o755)
    text = text.replace("/srv/report/.venv/bin", f"{Path(sys.executable).parent}:{tools}")
    *settings, job = [line for line in text.splitlines() if not line.startswith("#")]
    environment = dict(line.split("=", 1) for line in settings)
    environment |= {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "HOME": str(tmp_path)}
    command = job.split(maxsplit=5)[5].replace("\\%", "%")

    def here(given):
        return given.replace("/srv/report", str(tmp_path))

    def work():
        variables = {name: here(value) for name, value in environment.items()}
        subprocess.run(["/bin/sh", "-c", here(command)], env=variables, cwd="/", check=False)
        return (tmp_path / "mails").read_text() if (tmp_path / "mails").exists() else ""

    return work


def test_the_crontab_of_the_page_charges_once_and_reports_what_failed(crontab, tmp_path):
    domain = Domain([Categories("ward", ["a", "b"])], "visits")
    lrm.plan("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", domain=domain).save(
        tmp_path / "plan.lrm"
    )
    pq.write_table(pa.table({"ward": ["a", "b", "b"]}), tmp_path / "visits.parquet")
    ledger = lrm.Ledger.open(tmp_path / "budget.sqlite")
    ledger.create("visits", 1)
    assert crontab() == ""
    (answers,) = tmp_path.glob("answers-*.lrm")
    assert crontab() == ""
    assert '"repeated": true' in (tmp_path / "release.log").read_text()
    answers.unlink()
    assert crontab() == "-s visits report curator\nrelease ended with code 3\n"
    assert len(ledger.history("visits")) == 2


class FailedForGood(Exception):  # noqa: N818 - stands for AirflowFailException
    """No repetition follows."""


@pytest.mark.parametrize(
    ("code", "raised"), [(0, None), (1, RuntimeError), (2, FailedForGood), (3, FailedForGood)]
)
def test_the_dag_of_the_page_is_repeated_only_where_that_helps(monkeypatch, code, raised):
    """With stand-ins for Airflow, whose tasks are functions, and for the command."""
    exceptions, sdk = ModuleType("airflow.sdk.exceptions"), ModuleType("airflow.sdk")
    exceptions.AirflowFailException = FailedForGood
    sdk.dag = lambda **options: lambda function: function
    sdk.task = lambda function: lambda: function("2025-03-02")
    for module in (ModuleType("airflow"), sdk, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    started = []
    monkeypatch.setattr(
        subprocess, "run", lambda c: started.append(c) or SimpleNamespace(returncode=code)
    )
    languages = {each.language: each.text for each in blocks(PAGE)}
    names = {}
    exec(languages["python"].replace('release("2025', "# "), names)  # noqa: S102 - our own page
    with pytest.raises(raised) if raised else nullcontext():
        exec(languages["py"], names)  # noqa: S102 - our own page
    assert [command[command.index("--key") + 1] for command in started] == ["visits-2025-03-02"]
