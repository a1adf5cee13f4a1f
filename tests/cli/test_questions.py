"""Questions in SQL and YAML, either noise, further questions, domain files."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

import lrm
from lrm.domain.file import write_domain
from lrm.privacy.budget import ApproxDP, zcdp_of
from visits import BATCH, DOMAIN, fits, refused

pytestmark = pytest.mark.usefixtures("visits_files")


def test_plan_from_sql_keeps_the_domain(run):
    args = ("plan", "queries.sql", "--domain", "domain.yaml", "--effort", "quick")
    result = run(*args, "-o", "plan.lrm")
    assert result.exit_code == 0, result.output
    assert "one person (column 'patient')" in " ".join(result.stdout.split())
    assert fits(result.stdout)
    plan = lrm.load_plan("plan.lrm")
    assert plan.workload.names == ("n[state=NY]", "n[state=NJ]", "n", "young")
    assert plan.workload.domain.unit.max_rows == 2


def test_plan_from_yaml_keeps_the_importance(run_json):
    Path("batch.yaml").write_text(BATCH)
    run_json("plan", "batch.yaml", "--domain", "domain.yaml", "-o", "plan.lrm")
    assert lrm.load_plan("plan.lrm").workload.importance.tolist() == [4, 1, 1]


def test_plan_of_a_family_with_a_domain(run, run_json):
    run_json("plan", "identity:6", "-m", "noise-on-data", "--domain", "domain.yaml", "-o", "p")
    assert lrm.load_plan("p").workload.domain.table == "visits"
    refused(run("plan", "identity:7", "--domain", "domain.yaml"), 2, "7 cells", "6")


def test_gaussian_plans_tell_their_certificate(run, run_json, planned):
    result = run("show", "gauss.lrm")
    assert "discrete Gaussian" in result.stdout
    assert "error at ρ = 1" in result.stdout
    bound = run("explain", "gauss.lrm", "--rho", "1", "--bound").stdout
    assert "for any Gaussian strategy" in bound
    assert "of the best possible" in bound
    facts = run_json("plan", "prefix:8", "--noise", "gaussian")
    assert facts["noise"] == "gaussian"
    assert facts["at_most_above_best"] <= 1.001


def test_errors_are_those_of_the_person_protected(run_json, planned):
    """Two rows of a person: twice the standard error that one row has, as released."""
    facts = run_json("explain", "plan.lrm", "--epsilon", "0.5")
    release = lrm.release(lrm.load_plan("plan.lrm"), [0] * 6, "0.5")
    told = {row["name"]: row["standard_error"] for row in facts["queries"]}
    assert told == pytest.approx(dict(zip(release.names, release.standard_errors, strict=True)))
    wanted = run_json("explain", "plan.lrm", "--error", str(facts["expected_squared_error"]))
    assert float(Fraction(wanted["epsilon"])) == pytest.approx(0.5, rel=1e-4)


def test_explain_a_gaussian_plan(run, run_json, planned):
    result = run("explain", "gauss.lrm", "--epsilon", "1", "--delta", "1e-6")
    assert result.exit_code == 0, result.output
    assert "rho ≈0.0280" in " ".join(result.stdout.split())
    assert fits(result.stdout)
    both = run_json("explain", "gauss.lrm", "--epsilon", "1", "--delta", "1e-6")
    rho = zcdp_of(ApproxDP(Fraction(1), Fraction(1, 10**6))).rho
    alone = run_json("explain", "gauss.lrm", "--rho", str(rho))
    assert both["expected_squared_error"] == pytest.approx(alone["expected_squared_error"])
    found = run_json("explain", "gauss.lrm", "--error", str(both["expected_squared_error"]))
    assert float(Fraction(found["rho"])) == pytest.approx(float(rho), rel=1e-4)


def test_compare_both_noises_says_which_to_take(run, run_json):
    args = ("compare", "queries.sql", "--domain", "domain.yaml", "--noise", "both")
    args += ("--epsilon", "1", "--delta", "1e-6", "--mechanisms", "noise-on-data,wavelet")
    result = run(*args)
    assert result.exit_code == 0, result.output
    assert "Laplace noise guarantees pure ε = 1, which is stronger" in " ".join(
        result.stdout.split()
    )
    assert "Take Laplace" in " ".join(result.stdout.split())
    assert fits(result.stdout)
    facts = run_json(*args)
    assert facts["less_error"] == "laplace"
    assert facts["laplace"]["guarantee"] == "pure"
    rows = [facts[noise]["mechanisms"][0] for noise in ("laplace", "gaussian")]
    rho = float(zcdp_of(ApproxDP(Fraction(1), Fraction(1, 10**6))).rho)
    ratio = rows[1]["expected_squared_error"] / rows[0]["expected_squared_error"]
    assert ratio == pytest.approx(1 / (2 * rho) / 2)


def test_compare_both_noises_where_gaussian_has_less_error(run, run_json):
    """Answers with noise each: the L1 norm of a column is 128, the L2 norm 11."""
    args = ("compare", "wdiscrete:128x4", "--noise", "both", "--epsilon", "1", "--delta", "1e-6")
    args += ("--mechanisms", "noise-on-results")
    assert run_json(*args)["less_error"] == "gaussian"
    shown = " ".join(run(*args).stdout.split())
    assert "times less error here: take Gaussian where that is worth the weaker guarantee" in shown


def test_compare_gaussian(run, run_json):
    args = ("compare", "prefix:8", "--noise", "gaussian", "--mechanisms", "best,wavelet")
    facts = run_json(*args, "--rho", "0.5")
    assert facts["rho"] == "0.5"
    assert facts["best"] == "best"
    assert facts["lower_bound"] >= facts["mechanisms"][0]["expected_squared_error"] / 1.0011
    assert "error at ρ = 1" in run(*args).stdout


def test_query_answers_from_the_measurements(run, run_json, released, ledger):
    sql = (
        "SELECT COUNT(*) AS both FROM visits WHERE state IN ('NY', 'NJ'); "
        "SELECT COUNT(*) AS ny FROM visits WHERE state = 'NY'"
    )
    result = run("query", "out.lrm", sql)
    assert result.exit_code == 0, result.output
    assert "at no further cost" in result.stdout
    assert fits(result.stdout)
    release = lrm.load_release("out.lrm")
    answers = {row["name"]: row for row in run_json("query", "out.lrm", sql)["answers"]}
    assert answers["ny"]["answer"] == pytest.approx(release.answers[0])
    assert answers["ny"]["standard_error"] == pytest.approx(release.standard_errors[0])
    assert answers["both"]["answer"] == pytest.approx(release.answers[2])
    assert ledger.remaining("visits") == Fraction(1, 2)


def test_query_from_a_file_to_csv(run, released):
    Path("more.sql").write_text("-- again\nSELECT state, COUNT(*) AS m FROM visits GROUP BY state")
    result = run("query", "out.lrm", "--file", "more.sql", "--csv", "more.csv")
    assert result.exit_code == 0, result.output
    with Path("more.csv").open() as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["m[state=NY]", "m[state=NJ]"]


def test_query_names_what_was_not_measured(run, released):
    sql = "SELECT COUNT(*) AS n FROM visits;\nSELECT COUNT(*) AS old FROM visits WHERE age >= 20"
    refused(run("query", "out.lrm", sql), 2, "'old' (line 2)", "does not determine")
    sql_derived = "SELECT AVG(age) AS mean FROM visits"
    refused(run("query", "out.lrm", sql_derived), 2, "does not determine 'mean' (line 1)")
    refused(run("query", "out.lrm", "SELECT COUNT(*) FROM visits WHERE age < 5"), 2, "0..9")
    refused(run("query", "out.lrm"), 2, "--file")
    refused(run("query", "out.lrm", sql, "--file", "queries.sql"), 2, "--file")
    refused(run("query", "out.lrm", "--file", "none.sql"), 1, "none.sql")
    refused(run("query", "plan.lrm", sql), 1, "plan.lrm")
    refused(run("query", "out.lrm", sql, "--csv", "out.lrm"), 2, "same file")
    refused(run("query", "out.lrm", sql, "--confidence", "0"), 2, "confidence")


def test_query_needs_a_domain(run, release_file):
    refused(run("query", "answers.lrm", "SELECT COUNT(*) FROM t"), 2, "no domain")


def test_domain_init_reads_names_and_types_alone(run, run_json):
    result = run("domain", "init", "visits.csv", "-o", "draft.yaml")
    assert result.exit_code == 0, result.output
    assert "no value was read" in result.stdout
    text = Path("draft.yaml").read_text()
    assert 'table: "visits"' in text
    for word in ("patient", "state", "age", "salary", "TODO"):
        assert word in text
    for value in ("8213", "p17", "NJ]"):
        assert f"{value}\n" not in text
    assert run("domain", "init", "visits.csv").stdout == text
    assert run_json("domain", "init", "visits.csv")["columns"][1][0] == "state"
    kinds = run("domain", "init", "visits.csv", "--kinds", "age=integers, salary=bins").stdout
    assert "low: TODO" in kinds
    assert "edges: TODO" in kinds
    refused(run("domain", "init", "visits.csv", "--kinds", "age"), 2, "age=integers")
    refused(run("domain", "init", "visits.csv", "--kinds", "old=bins"), 2, "no column 'old'")
    refused(run("domain", "init", "visits.csv", "--kinds", "age=int"), 2, "not 'int'")
    refused(run("domain", "init", "visits.csv", "-o", "draft.yaml"), 2, "exists already")
    refused(run("domain", "init", "visits.csv", "-o", "visits.csv", "--force"), 2, "same file")
    refused(run("domain", "init", "none.csv"), 1, "none.csv")
    refused(run("domain", "check", "draft.yaml"), 2, "draft", "line")


def test_domain_check(run, run_json):
    result = run("domain", "check", "domain.yaml", "--table", "visits.csv")
    assert result.exit_code == 0, result.output
    assert "6 in all" in result.stdout
    assert "one person (column 'patient')" in result.stdout
    assert run_json("domain", "check", "domain.yaml")["cells"] == 6
    Path("other.csv").write_text("patient,state\n")
    refused(run("domain", "check", "domain.yaml", "--table", "other.csv"), 1, "'age'")
    Path("bad.yaml").write_text(DOMAIN.replace("high: 29", "high: -1"))
    refused(run("domain", "check", "bad.yaml"), 2, "bad.yaml line 6", "'low'")
    refused(run("domain", "check", "none.yaml"), 1, "none.yaml")


def test_domain_check_of_more_cells_than_can_be_counted(run):
    names = [f"a{number}" for number in range(30)]
    declared = lrm.Domain([lrm.Integers(name, 0, 9) for name in names])
    write_domain(declared, Path("wide.yaml"))
    Path("wide.csv").write_text(",".join(names) + "\n")
    result = run("domain", "check", "wide.yaml", "--table", "wide.csv")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("plan", "queries.sql"), 2, ("--domain",)),
        (("plan", "none.sql", "--domain", "domain.yaml"), 1, ("none.sql",)),
        (("plan", "queries.sql", "--domain", "none.yaml"), 1, ("none.yaml",)),
        (("plan", "bad.sql", "--domain", "domain.yaml"), 2, ("bad.sql line 2", "JOIN")),
        (("plan", "queries.sql", "--domain", "domain.yaml", "-o", "domain.yaml"), 2, ("same",)),
        (("plan", "prefix:4", "--noise", "uniform"), 2, ("uniform",)),
        (("compare", "prefix:4", "--noise", "both"), 2, ("--epsilon and --delta",)),
        (("compare", "prefix:4", "--noise", "both", "--rho", "1"), 2, ("--epsilon and --delta",)),
        (("compare", "prefix:4", "--rho", "1"), 2, ("epsilon alone",)),
        (("compare", "prefix:4", "--noise", "gaussian", "--epsilon", "1"), 2, ("delta",)),
        (("explain", "gauss.lrm", "--epsilon", "1"), 2, ("delta",)),
        (("explain", "gauss.lrm", "--rho", "1", "--delta", "1e-6"), 2, ("--delta",)),
        (("explain", "plan.lrm", "--rho", "1"), 2, ("epsilon alone",)),
        (("explain", "plan.lrm", "--epsilon", "1", "--delta", "2"), 2, ("delta",)),
    ],
)
def test_wrong_questions(run, planned, args, code, words):
    Path("bad.sql").write_text("-- all\nSELECT COUNT(*) FROM visits JOIN people USING (id)")
    refused(run(*args), code, *words)
    assert Path("domain.yaml").read_text() == DOMAIN
