"""Every command, for people and for machines."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete

import lrm
from lrm.cli import main


def fits(text: str) -> bool:
    return all(len(line.rstrip()) <= 80 for line in text.splitlines())


def test_plan_is_saved_and_summarised(run, in_folder):
    result = run("plan", "wrange:8x16", "-m", "noise-on-data", "-o", "plan.lrm")
    assert result.exit_code == 0, result.output
    assert "expected total squared error" in result.stdout
    assert "best possible" not in result.stdout  # lrm explain --bound tells it
    assert "saved to plan.lrm" in result.stdout
    assert fits(result.stdout)
    plan = lrm.load_plan("plan.lrm")
    assert plan.workload.shape == (8, 16)
    assert plan.mechanism == "noise-on-data"


def test_plan_tells_machines_what_the_plan_says(run_json):
    facts = run_json("plan", "prefix:8", "-m", "wavelet", "-o", "plan.lrm")
    plan = lrm.load_plan(facts["file"])
    assert facts["expected_squared_error"] == pytest.approx(plan.expected_squared_error(1))
    assert facts["digest"] == plan.digest
    assert facts["queries"] == facts["cells"] == 8
    assert facts["measurements"] == plan.measurement_count


def test_plan_with_defaults_is_best_and_says_that_it_is_not_saved(run):
    result = run("plan", "identity:4")
    assert "best" in result.stdout
    assert "not saved" in result.stdout


def test_options_reach_the_mechanism(run_json):
    with_root = run_json("plan", "prefix:16", "-m", "hierarchical", "--fanout", "4")
    without = run_json("plan", "prefix:16", "-m", "hierarchical", "--fanout", "4", "--no-root")
    assert with_root["measurements"] == without["measurements"] + 1


def test_time_limit_and_effort_are_taken_by_best(run_json):
    facts = run_json("plan", "wrange:8x16", "--effort", "quick", "--time-limit", "5")
    assert facts["mechanism"] == "best"


def test_compare_lists_every_mechanism_asked_for(run):
    result = run("compare", "prefix:8", "--mechanisms", "noise-on-data,wavelet,noise-on-results")
    assert result.exit_code == 0, result.output
    for name in ("noise-on-data", "wavelet", "noise-on-results"):
        assert name in result.stdout
    assert "ratio to best" in result.stdout
    assert fits(result.stdout)


def test_compare_for_machines(run_json):
    args = ("compare", "prefix:8", "--mechanisms", "noise-on-data,wavelet", "--epsilon", "0.5")
    facts = run_json(*args)
    rows = facts["mechanisms"]
    assert [row["mechanism"] for row in rows] == ["noise-on-data", "wavelet"]
    assert min(row["ratio_to_best"] for row in rows) == 1.0
    assert rows[0]["expected_squared_error"] == pytest.approx(2 * 36 / 0.25)
    assert facts["epsilon"] == "0.5"
    assert facts["lower_bound"] <= min(row["expected_squared_error"] for row in rows)


def test_compare_tells_why_a_mechanism_has_no_plan(run, run_json):
    args = ("compare", "all-ranges:20000", "--mechanisms", "noise-on-results,wavelet")
    result = run(*args)
    assert result.exit_code == 0, result.output
    assert "noise-on-results has no plan: " in result.stdout
    assert run_json(*args)["mechanisms"][0]["reason"]


@pytest.mark.parametrize("name", ["plot.svg", "plot.png"])
def test_compare_draws(run, name, in_folder):
    result = run("compare", "prefix:8", "--mechanisms", "noise-on-data,wavelet", "--plot", name)
    assert result.exit_code == 0, result.output
    start = (in_folder / name).read_bytes()[:200]
    assert start.startswith(b"\x89PNG") or b"<?xml" in start


@pytest.mark.parametrize(
    ("noise", "amounts"), [("gaussian", ("--rho", "0.1")), ("both", ("--delta", "1e-9"))]
)
def test_compare_draws_gaussian_noise(run, run_json, noise, amounts, in_folder):
    args = ("compare", "prefix:8", "--mechanisms", "noise-on-data,wavelet", "--noise", noise)
    args += (*amounts, *(("--epsilon", "1") if noise == "both" else ()))
    result = run(*args, "--plot", "plot.svg")
    assert result.exit_code == 0, result.output
    assert "drawn in plot.svg" in result.stdout
    drawn = (in_folder / "plot.svg").read_text(encoding="utf-8")
    assert ("ρ = 0.1" if noise == "gaussian" else "δ = 1e-09") in drawn
    assert run_json(*args, "--plot", "plot.png")["plot"] == "plot.png"
    assert (in_folder / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_explain_at_an_epsilon(run, run_json, plan_file):
    result = run("explain", plan_file, "--epsilon", "0.5")
    assert result.exit_code == 0, result.output
    assert "standard error" in result.stdout
    assert "paper's bound" not in result.stdout
    assert "paper's bound" in run("explain", plan_file, "--epsilon", "0.5", "--bound").stdout
    assert fits(result.stdout)
    facts = run_json("explain", plan_file, "--epsilon", "0.1")
    plan = lrm.load_plan(plan_file)
    assert facts["expected_squared_error"] == pytest.approx(16 / 0.01)
    by_name = {row["name"]: row for row in facts["queries"]}
    expected = dict(zip(plan.workload.names, plan.half_widths("0.1"), strict=True))
    assert {name: row["half_width"] for name, row in by_name.items()} == pytest.approx(expected)
    errors = [row["standard_error"] for row in facts["queries"]]
    assert errors == sorted(errors, reverse=True)


def test_explain_shows_the_same_widths_when_it_shows_fewer(run_json, plan_file):
    every = run_json("explain", plan_file, "--epsilon", "1")["queries"]
    first = run_json("explain", plan_file, "--epsilon", "1", "--limit", "1")["queries"]
    assert len(first) == 1
    assert first[0]["half_width"] == pytest.approx(every[0]["half_width"])


@pytest.mark.parametrize(("option", "wanted"), [("--error", 160.0), ("--rmse", 5.0)])
def test_explain_finds_the_epsilon_for_an_error(run_json, plan_file, option, wanted):
    facts = run_json("explain", plan_file, option, str(wanted))
    total = wanted if option == "--error" else 3 * wanted**2
    assert total * 0.999 <= facts["expected_squared_error"] <= total
    assert Fraction(facts["epsilon"]) > 0


def test_explain_draws(run, plan_file, in_folder):
    result = run("explain", plan_file, "--epsilon", "1", "--plot", "errors.svg")
    assert result.exit_code == 0, result.output
    assert b"</svg>" in (in_folder / "errors.svg").read_bytes()


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        (("--rho", "0.1"), "ρ = 0.1"),
        (("--epsilon", "1", "--delta", "1e-9"), "ε = 1, δ = 1e-09"),
        (("--rmse", "5"), "ρ = "),
    ],
)
def test_explain_draws_gaussian_plans(run, planned, amounts, said, in_folder):
    result = run("explain", "gauss.lrm", *amounts, "--plot", "errors.svg")
    assert result.exit_code == 0, result.output
    drawn = (in_folder / "errors.svg").read_text(encoding="utf-8")
    assert said in drawn
    assert "</svg>" in drawn


def test_release_writes_answers_and_csv(run, plan_file, counts_file, in_folder):
    args = ("release", plan_file, "--counts", counts_file, "--epsilon", "1/3", "--no-ledger")
    result = run(*args, "-o", "answers.lrm", "--csv", "answers.csv")
    assert result.exit_code == 0, result.output
    assert "pure differential privacy, epsilon 1/3" in " ".join(result.stdout.split())
    assert fits(result.stdout)
    release = lrm.load_release("answers.lrm")
    assert release.privacy.epsilon == Fraction(1, 3)
    assert not release.simulated
    with Path("answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["answer"]) for row in rows] == release.answers.tolist()
    assert [row["name"] for row in rows] == list(release.names)


def test_release_keeps_the_relation_and_the_rows_asked_for(run_json, plan_file, counts_file):
    args = ("release", plan_file, "--counts", counts_file, "--epsilon", "1", "--no-ledger")
    plain = run_json(*args, "-o", "a.lrm")
    wide = run_json(*args, "-o", "b.lrm", "--neighbours", "substitute", "--max-rows", "3")
    assert wide["privacy"]["unit"]["neighbours"] == "substitute"
    scales = [facts["mechanism"]["noise"]["scale"] for facts in (plain, wide)]
    assert scales[1] == pytest.approx(6 * scales[0])


def test_release_prints_nothing_of_the_counts_but_noisy_answers(run_json, plan_file, counts_file):
    args = ("release", plan_file, "--counts", counts_file, "--epsilon", "0.001", "--no-ledger")
    facts = run_json(*args, "-o", "a.lrm")
    true_answers = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]) @ [8213, 7411, 9127, 6521]
    for row, true_answer in zip(facts["answers"], true_answers, strict=True):
        assert row["answer"] != true_answer


def test_show_a_plan(run, run_json, plan_file):
    assert "noise-on-data" in run("show", plan_file).stdout
    facts = run_json("show", plan_file)
    assert facts["kind"] == "plan"
    assert facts["sensitivity"] == 1.0


def test_show_a_release(run, run_json, release_file, in_folder):
    result = run("show", release_file, "--csv", "out.csv", "--plot", "out.png")
    assert result.exit_code == 0, result.output
    assert result.stdout == "written: out.csv, out.png\n"
    listing = run("show", release_file).stdout
    assert "95 % interval" in listing
    assert fits(listing)
    assert (in_folder / "out.png").read_bytes().startswith(b"\x89PNG")
    assert len((in_folder / "out.csv").read_text().splitlines()) == 4
    facts = run_json("show", release_file, "--confidence", "0.9")
    release = lrm.load_release(release_file)
    got = [[row["low"], row["high"]] for row in facts["answers"]]
    np.testing.assert_allclose(got, release.intervals(0.9))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(run, run_json, shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_LRM_COMPLETE" in result.stdout
    assert run_json("completion", shell)["script"].strip() == result.stdout.strip()


def test_completion_completes_commands_and_mechanisms():
    complete = ShellComplete(main, {}, "lrm", "_LRM_COMPLETE")
    assert {"plan", "completion"} <= {item.value for item in complete.get_completions([], "")}
    after = complete.get_completions(["plan", "-m"], "no")
    assert {item.value for item in after} == {"noise-on-data", "noise-on-results"}


def test_budget_is_reachable(run):
    made = run("budget", "create", "people", "--limit", "1", "--ledger", "b.sqlite")
    assert made.exit_code == 0, made.output
    shown = run("budget", "show", "--ledger", "b.sqlite", "--json")
    assert json.loads(shown.stdout)["budgets"][0]["table"] == "people"


def test_more_queries_than_can_be_listed(run, run_json, in_folder):
    run("plan", "all-ranges:2900", "-m", "wavelet", "-o", "plan.lrm")
    result = run("explain", "plan.lrm", "--epsilon", "1")
    assert "none of 4,206,450 queries listed" in result.stdout
    assert run_json("explain", "plan.lrm", "--epsilon", "1")["queries"] == []
    (in_folder / "c.csv").write_text("1\n" * 2900)
    args = ("release", "plan.lrm", "--counts", "c.csv", "--epsilon", "1", "-o", "out.lrm")
    result = run(*args, "--no-ledger")
    assert result.exit_code == 2
    assert "4,206,450 queries is too large" in result.stderr


def test_every_error_of_a_file_has_a_line_of_its_own(run, in_folder):
    (in_folder / "domain.yaml").write_text(
        "lrm-domain: 1\ntable: t\nunit: row\nattributes:\n"
        "- {name: a, kind: integers, low: 0, high: 9}\n"
        "- {name: b, kind: boolean, null: drop, outside: drop}\n"
    )
    result = run("domain", "check", "domain.yaml")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("lrm: domain.yaml line 5, attribute 'a': 'null' and 'outside' must say")
    assert second.startswith("lrm: domain.yaml line 6, attribute 'b'")
    assert "categories with values: [true, false]" in second
    (in_folder / "domain.yaml").write_text(
        "lrm-domain: 1\ntable: t\nunit: row\nattributes:\n"
        "- {name: a, kind: integers, low: 0, high: 9, null: drop, outside: drop}\n"
    )
    (in_folder / "q.sql").write_text("SELECT COUNT(x) FROM t;\n\nSELECT COUNT(y) FROM t;\n")
    result = run("plan", "q.sql", "--domain", "domain.yaml")
    assert [line[: len("lrm: q.sql line 1")] for line in result.stderr.splitlines()] == [
        "lrm: q.sql line 1",
        "lrm: q.sql line 3",
    ]
