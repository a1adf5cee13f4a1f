"""Jobs that nobody watches: repeated under a key, with exit codes that say what was charged."""

import json
import sqlite3

import pytest

import lrm.releases


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
