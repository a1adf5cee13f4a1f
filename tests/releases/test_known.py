"""Public knowledge: impossible combinations and tables published elsewhere."""

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain.file import domain_text, parse_domain
from lrm.errors import DomainError, PrivacyWarning, UsageError
from lrm.releases import consistent
from lrm.releases.known import read_known

NEVER = ("sex = 'm' AND pregnant", "age < 2 AND pregnant")
DOMAIN = lrm.Domain(
    [
        lrm.Categories("sex", ["f", "m"], null="cell"),
        lrm.Categories("pregnant", [False, True]),
        lrm.Integers("age", 0, 9),
        lrm.Categories("county", ["a", "b", "c"]),
    ],
    "people",
    lookups=[lrm.Lookup("states", "county", ["state"], [["a", "s"], ["b", "s"], ["c", "t"]])],
    impossible=NEVER,
)
SQL = """
SELECT sex, pregnant, COUNT(*) AS n FROM people GROUP BY sex, pregnant;
SELECT age, pregnant, COUNT(*) AS k FROM people GROUP BY age, pregnant;
SELECT county, COUNT(*) AS by_county FROM people GROUP BY county;
SELECT state, COUNT(*) AS by_state FROM people JOIN states USING (county) GROUP BY state
"""
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def people():
    women = [
        {"sex": "f", "pregnant": k % 3 == 0, "age": 2 + k % 8, "county": "abc"[k % 3]}
        for k in range(300)
    ]
    men = [{"sex": "m", "pregnant": False, "age": k % 10, "county": "a"} for k in range(200)]
    return pa.Table.from_pylist(women + men)


@pytest.fixture(scope="module")
def release():
    plan = lrm.plan(lrm.sql(SQL, DOMAIN), effort="quick")
    return lrm.release(plan, people(), epsilon="0.1", ledger=None)


def groups(release, processed, name):
    frame = release.frame(name, processed=processed).to_arrow().to_pylist()
    return {tuple(v for k, v in row.items() if not k.startswith(name)): row for row in frame}


METHODS = {
    "joint": {},
    "interior": {"JOINT_CELLS": 0},
    "residuals": {"JOINT_CELLS": 0, "INTERIOR_CELLS": 0},
}


@pytest.mark.parametrize("method", list(METHODS))
def test_impossible_combinations_are_empty(release, monkeypatch, method):
    for name, value in METHODS[method].items():
        monkeypatch.setattr(consistent, name, value)
    fixed = release.consistent()
    assert groups(release, fixed, "n")[("m", True)]["n_processed"] == 0
    for age in (0, 1):
        assert groups(release, fixed, "k")[(age, True)]["k_processed"] == 0
    assert any("Declared impossible: sex = 'm'" in sentence for sentence in fixed.sentences)


def test_counties_add_up_to_their_state(release):
    """A state is a function of the county: both follow from the same cells."""
    fixed = release.consistent()
    county, state = (groups(release, fixed, name) for name in ("by_county", "by_state"))
    parts = county[("a",)]["by_county_processed"] + county[("b",)]["by_county_processed"]
    assert state[("s",)]["by_state_processed"] == pytest.approx(parts, abs=1e-6)
    rows = release.synthesize(seed=1)
    assert "county" in rows.columns
    assert "state" not in rows.columns


def test_known_tables_are_kept(release):
    known = lrm.KnownTable(
        "SELECT sex, pregnant, COUNT(*) AS n FROM people GROUP BY sex, pregnant",
        [["f", True, 100], ["f", False, 200]],
        "Yearbook 2024, table 3",
    )
    fixed = release.consistent(known=[known])
    women = groups(release, fixed, "n")
    assert women[("f", True)]["n_processed"] == pytest.approx(100, rel=1e-7)
    assert women[("f", False)]["n_processed"] == pytest.approx(200, rel=1e-7)
    assert any("known from: Yearbook 2024, table 3" in text for text in fixed.sentences)
    rows = release.synthesize(seed=1, known=[known])
    assert "Yearbook 2024, table 3" in rows.metadata["known"]


@pytest.mark.parametrize("method", list(METHODS))
def test_known_tables_that_contradict_each_other_are_refused(monkeypatch, method):
    for name, value in METHODS[method].items():
        monkeypatch.setattr(consistent, name, value)
    attributes = [lrm.Categories(name, [0, 1, 2], null="cell", outside="cell") for name in "abc"]
    pairs = "; ".join(f"SELECT {g}, COUNT(*) AS n FROM t GROUP BY {g}" for g in ("a, b", "b, c"))
    plan = lrm.plan(lrm.sql(pairs, lrm.Domain(attributes, "t")), effort="quick")
    table = pa.table({name: [0, 1, 2] * 9 for name in "abc"})
    release = lrm.release(plan, table, epsilon=1, ledger=None)
    known = []
    for name, count in (("a", 9), ("b", 10)):
        text = f"SELECT {name}, COUNT(*) AS n FROM t GROUP BY {name}"
        batch = lrm.sql(text, plan.workload.domain)
        labels = [[text for _, text in label.group] for label in batch.labels]
        known.append(lrm.KnownTable(text, [[*row, count] for row in labels], "Yearbook"))
    with pytest.raises(UsageError, match="contradict each other"):
        release.consistent(known=known)
    release.consistent(known=known[:1])


WRONG = {
    "no group": ((BY_SEX, [["x", 3]], "Yearbook"), "has no group"),
    "negative": ((BY_SEX, [["f", -3]], "Yearbook"), "must be a count from 0 on"),
    "no number": ((BY_SEX, [["f", "many"]], "Yearbook"), "must be a count from 0 on"),
    "no source": ((BY_SEX, [["f", 3]], " "), "needs its source"),
    "no rows": ((BY_SEX, [], "Yearbook"), "needs rows"),
    "an average": (
        ("SELECT AVG(age) AS a FROM people", [[3]], "Yearbook"),
        "one statement that displays one count",
    ),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong_known_tables_are_refused(release, case):
    arguments, words = WRONG[case]
    with pytest.raises(UsageError, match=words):
        release.consistent(known=[lrm.KnownTable(*arguments)])


def test_domain_files_hold_impossible_conditions(release, tmp_path):
    assert parse_domain(domain_text(DOMAIN)) == DOMAIN
    assert parse_domain(domain_text(DOMAIN)).digest == DOMAIN.digest
    without = lrm.Domain(DOMAIN.attributes, "people", lookups=DOMAIN.lookups)
    assert without.digest != DOMAIN.digest
    release.save(tmp_path / "answers.lrm")
    assert lrm.load_release(tmp_path / "answers.lrm").plan.workload.domain.impossible == NEVER


@pytest.mark.parametrize(
    "condition", ["sexx = 'm'", "sex = 'm') OR (age > 3", "SUM(age) > 3", "1;2"]
)
def test_conditions_that_are_not_sql_are_refused_by_the_plan(condition):
    domain = lrm.Domain(DOMAIN.attributes, "people", impossible=[condition])
    if condition == "sex = 'm') OR (age > 3":  # still one condition
        lrm.plan(lrm.sql(BY_SEX, domain), effort="quick")
        return
    with pytest.raises(DomainError, match="impossible condition"):
        lrm.plan(lrm.sql(BY_SEX, domain), effort="quick")


def test_the_commands_read_known_tables(release, tmp_path):
    release.save(tmp_path / "answers.lrm")
    (tmp_path / "known.yaml").write_text(
        f"lrm-known: 1\ntables:\n  - sql: {BY_SEX}\n    rows: [[f, 300], [m, 200]]\n"
        "    source: Yearbook 2024, table 3\n",
        encoding="utf-8",
    )
    assert read_known(tmp_path / "known.yaml")[0].rows == ((("f",), 300.0), (("m",), 200.0))
    file, known = str(tmp_path / "answers.lrm"), ["--known", str(tmp_path / "known.yaml")]
    shown = CliRunner().invoke(main, ["show", file, "--post-process", "consistent", *known])
    assert shown.exit_code == 0, shown.output
    assert "Yearbook 2024" in shown.output
    refused = CliRunner().invoke(main, ["show", file, *known])
    assert "--post-process consistent" in refused.output
    args = ["synthesize", file, "-o", str(tmp_path / "rows.parquet"), "--json", "--seed", "1"]
    made = CliRunner().invoke(main, [*args, *known])
    assert made.exit_code == 0, made.output
    assert "Yearbook 2024" in json.loads(made.stdout)["known"]


def test_known_counts_bring_answers_nearer_to_the_truth(release):
    """The truth has them: the squared error over the batch is at most what it is without."""
    known = lrm.KnownTable(BY_SEX, [["f", 300], ["m", 200], ["(null)", 0]], "Yearbook")
    with pytest.warns(PrivacyWarning):
        truth = lrm.release(release.plan, people(), epsilon=10**6, ledger=None).answers
    errors = [
        np.sum((answers - np.rint(truth)) ** 2)
        for answers in (release.answers, release.consistent(known=[known]).answers)
    ]
    assert errors[1] <= errors[0] * (1 + 1e-8)
