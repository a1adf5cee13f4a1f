"""``lrm report``, and what ``lrm show`` exports."""

import csv
import json

import numpy as np
import pytest

import lrm


def test_a_release_becomes_a_page(run, release_file, in_folder):
    result = run("report", release_file)
    assert result.exit_code == 0, result.output
    assert "a page of this release is in" in result.stdout
    assert "What is guaranteed" in (in_folder / "answers.html").read_text(encoding="utf-8")


def test_a_plan_becomes_a_page_at_an_amount(run_json, plan_file, in_folder):
    told = run_json("report", plan_file, "--epsilon", "0.25", "-o", "page.html")
    assert told["kind"] == "plan"
    text = (in_folder / "page.html").read_text(encoding="utf-8")
    assert told["bytes"] == len(text.encode())
    assert "ε = 0.25" in text


def test_a_comparison_becomes_a_page(run, in_folder):
    mechanisms = "noise-on-data,noise-on-results"
    printed = run("compare", "prefix:8", "--mechanisms", mechanisms, "--json").stdout
    (in_folder / "comparison.json").write_text(printed, encoding="utf-8")
    assert run("report", "comparison.json").exit_code == 0
    text = (in_folder / "comparison.html").read_text(encoding="utf-8")
    assert "Mechanisms for prefix:8" in text


def test_a_page_is_replaced_only_by_force(run, release_file, in_folder):
    assert run("report", release_file).exit_code == 0
    again = run("report", release_file)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert run("report", release_file, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["nothing.lrm"], 1, "no plan file at nothing.lrm"),
        (["counts.csv"], 1, "not a plan, a release or a comparison"),
        (["noise.bin"], 1, "not a plan, a release or a comparison"),
        (["answers.lrm", "--epsilon", "1"], 2, "--epsilon is for plans"),
        (["answers.lrm", "-o", "page.txt"], 2, "expected a file ending in .html"),
        (["answers.lrm", "--confidence", "2"], 2, "between 0 and 1"),
        (["answers.lrm", "--post-process", "clip"], 2, "not 'clip'"),
        (["plan.lrm", "--post-process", "integer"], 2, "only a release has"),
        (["plan.lrm", "--rho", "1"], 2, "Laplace plan"),
    ],
)
def test_wrong_wishes_are_told_in_a_sentence(run, release_file, in_folder, args, code, sentence):
    (in_folder / "noise.bin").write_bytes(bytes(range(256)))
    result = run("report", *args)
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert not list(in_folder.glob("*.html"))


def test_show_exports_everything(run, release_file, in_folder):
    args = (
        "--export",
        "facts.json",
        "--csv",
        "answers.csv",
        "--post-process",
        "integer,consistent",
    )
    result = run("show", release_file, *args)
    assert result.exit_code == 0, result.output
    facts = json.loads((in_folder / "facts.json").read_text(encoding="utf-8"))
    assert facts["format"] == "lrm-release-facts"
    assert [step["name"] for step in facts["post_processing"]["steps"]] == ["consistent", "integer"]
    with (in_folder / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["processed"]) % 1 for row in rows] == [0, 0, 0]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["plan.lrm", "--export", "facts.json"], "a plan has none yet"),
        (["answers.lrm", "--export", "a", "--csv", "a"], "name the same file"),
    ],
)
def test_show_refuses_what_it_cannot_do(run, release_file, args, sentence):
    result = run("show", *args)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_processed_answers_stand_beside_the_released_ones(run, release_file):
    text = run("show", "answers.lrm", "--post-process", "consistent").output
    assert "processed" in text
    assert "Intervals and standard errors are those of the raw answers" in text
    facts = json.loads(run("show", "answers.lrm", "--post-process", "consistent", "--json").output)
    release = lrm.load_release("answers.lrm")
    fixed = release.consistent().answers
    assert [answer["answer"] for answer in facts["answers"]] == release.answers.tolist()
    assert np.allclose([answer["processed"] for answer in facts["answers"]], fixed)
