"""The tutorial on a real table, from download to page."""

import csv
import json
from importlib.util import find_spec

import pytest

from engines import missing
from pages import ROOT, blocks, commands, run_command, run_page

PAGE = ROOT / "docs" / "tutorial-real-table.md"


def need(package):
    """Skip where the table of a page is not installed; fail where everything must be."""
    if find_spec(package) is None:
        missing(f"{package} is not installed; `pip install '.[tutorial]'` brings it")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    need("causaldata")
    place = tmp_path_factory.mktemp("tutorial")
    run_page(PAGE, place)
    return place


def test_the_draft_holds_no_value_of_the_table(folder):
    draft = (folder / "draft.yaml").read_text(encoding="utf-8")
    assert "home_ownership" in draft
    assert "Colorado" not in draft
    assert "Nevada" not in draft


def test_the_page_tells_everything(folder):
    text = (folder / "answers.html").read_text(encoding="utf-8")
    for words in (
        "53 answers about men",
        "What is guaranteed",
        "What is not guaranteed",
        "ε = 0.1",
    ):
        assert words in text
    assert text.count("<script") == 1  # the search box's own


def test_the_files_hold_every_answer(folder):
    with (folder / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 53
    assert {row["qob_minus_kw"] for row in rows} >= {"", "[-8, 0)", "[0, 8)"}
    facts = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in facts["answers"]] == [row["name"] for row in rows]
    assert facts["provenance"]["ledger_head"].startswith("2:")


def test_repaired_answers_are_whole_and_not_negative(folder):
    steps = "--post-process non-negative,integer --limit 0"
    run_command(f"lrm show {folder}/answers.lrm {steps} --export {folder}/repaired.json")
    facts = json.loads((folder / "repaired.json").read_text(encoding="utf-8"))
    values = [row["processed"] for row in facts["answers"]]
    assert all(value >= 0 and value == int(value) for value in values)
    assert "Biased" in facts["post_processing"]["steps"][0]["effect"]


def test_the_hospital_report_is_a_part_of_the_benchmark():
    sessions = blocks(ROOT / "docs" / "tutorial-hospital.md")
    shown = {
        command.split()[-1]: "\n".join(lines)
        for block in sessions
        if block.language == "console"
        for command, lines in commands(block.text)
    }
    folder = ROOT / "benchmarks" / "batches" / "reports"
    domain, report = (folder / f"hospital.{kind}" for kind in ("yaml", "sql"))
    assert domain.read_text(encoding="utf-8").strip() == shown["domain.yaml"].strip()
    every = [part.strip() for part in report.read_text(encoding="utf-8").split(";")]
    part = [part.strip() for part in shown["report.sql"].split(";") if part.strip()]
    assert len(part) == 12
    assert {text.split("\n", 1)[-1] if text.startswith("--") else text for text in part} <= {
        text.split("\n", 1)[-1] if text.startswith("--") else text for text in every
    }
