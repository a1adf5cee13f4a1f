"""The demo is honest: synthetic, complete, and made of commands that one can type."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from lrm.cli import COMMANDS
from lrm.cli.demo_table import FILES, PATIENTS, STATES, SyntheticPatients, demo_domain, write_files
from lrm.planning.plan import planner


def test_the_table_has_the_promised_size_and_only_valid_cells():
    counts = SyntheticPatients.generate(seed=1).counts()
    assert counts.sum() == PATIENTS == 200_000
    assert len(counts) == demo_domain().size


def test_the_seed_makes_the_table():
    first, again, other = (SyntheticPatients.generate(seed).counts() for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_the_counts_are_those_of_the_domain():
    """numpy's way of counting agrees with the reference, patient by patient."""
    table = SyntheticPatients.generate(seed=2, patients=500)
    rows = [
        {"state": STATES[s], "age": int(a), "hiv": ["negative", "positive"][h]}
        for s, a, h in zip(table.state, table.age, table.hiv, strict=True)
    ]
    np.testing.assert_array_equal(table.counts(), demo_domain().count(rows))


def test_the_file_holds_the_table(tmp_path):
    table = SyntheticPatients.generate(seed=3, patients=20)
    table.write(tmp_path / "patients.csv")
    lines = (tmp_path / "patients.csv").read_text().splitlines()
    assert lines[0] == "state,age,hiv"
    assert lines[1].split(",")[:2] == [STATES[table.state[0]], str(table.age[0])]
    assert len(lines) == 21


def test_the_files_alone(run, run_json):
    result = run("demo", "--folder", "there", "--files-only")
    assert result.exit_code == 0, result.output
    assert {path.name for path in Path("there").iterdir()} == set(FILES)
    again = run("demo", "--folder", "there", "--files-only")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert run_json("demo", "--folder", "other", "--files-only")["folder"] == "other"


def test_a_folder_that_cannot_be_made(run):
    Path("file").write_text("")
    result = run("demo", "--folder", "file/inside")
    assert result.exit_code == 1
    assert "cannot create the folder" in result.stderr


@pytest.fixture(scope="module")
def searched():
    return {}


@pytest.fixture
def search_once(searched, monkeypatch):
    """Demos plan the same batch: whichever comes first searches."""
    search = planner.plan

    def plan(batch, mechanism, *, on_step, **options):
        key = batch.digest, mechanism, *sorted(options.items())
        if key not in searched:
            searched[key] = search(batch, mechanism, on_step=on_step, **options)
        return searched[key]

    monkeypatch.setattr(planner, "plan", plan)


@pytest.mark.usefixtures("search_once")
def test_the_demo_tells_its_facts(run_json):
    facts = run_json("demo", "--folder", "there")
    assert facts["synthetic"] is True
    outputs = {step["command"].split()[1]: step["output"] for step in facts["steps"]}
    assert list(outputs) == ["plan", "budget", "release", "query", "report"]
    assert outputs["release"]["privacy"]["parameters"] == {"guarantee": "pure", "epsilon": "0.1"}
    # Answers share measurements: of 2,000,000 simulated releases, one had 11 of 22.
    assert facts["intervals_that_hold_the_truth"] > 0.25 * facts["answers"]
    assert Path("there/answers.html").exists()


@pytest.mark.usefixtures("search_once")
def test_the_demo_for_people(run):
    result = run("demo", "--epsilon", "1/3")
    assert result.exit_code == 0, result.output
    assert "SYNTHETIC" in result.stdout
    assert not [line for line in result.stdout.splitlines() if len(line.rstrip()) > 80]
    place = Path(re.search(r"^  cd (\S+)$", result.stdout, re.MULTILINE)[1])
    assert (place / "answers.html").exists()
    typed = re.findall(r"^(?:\$|  )? ?lrm (.*)$", result.stdout, re.MULTILINE)
    assert {shlex.split(line.rstrip("\\"))[0] for line in typed} <= set(COMMANDS)


def test_writing_returns_the_table(tmp_path):
    assert len(write_files(tmp_path, seed=1).age) == PATIENTS
