"""Errors that people can use: a verdict per table, from stated or released sizes."""

import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Bins, Categories, Domain, Integers
from lrm.errors import PrivacyWarning
from lrm.views.answers import usable_words
from lrm.views.plan_document import plan_page
from lrm.views.plans import explanation_facts
from lrm.views.rehearsal import expected_rows, rehearse
from lrm.views.release_document import EVERYTHING, listed_tables
from lrm.views.release_page import release_page
from lrm.views.statement_errors import (
    StatementErrors,
    error_table,
    usable_amounts,
    usable_figure,
    usable_sentence,
)
from lrm.views.verdicts import verdict


def run_lrm(*words):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.stdout


DOMAIN = Domain([Categories("ward", ["a", "b"]), Categories("sex", ["f", "m"])], "visits")
TEXT = """
-- expected: 10,000
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;
-- expected: 20
SELECT sex, COUNT(*) AS m FROM visits GROUP BY sex;
SELECT COUNT(*) AS total FROM visits
"""


def test_thresholds_can_be_chosen():
    assert [verdict(x) for x in (0.1, 0.11, 0.5, 0.51)] == ["usable", "rough", "rough", "noise"]


def test_expected_sizes_make_a_verdict_before_anything_is_spent():
    plan = lrm.plan(lrm.sql(TEXT, DOMAIN), "noise-on-data")
    accuracy = plan.accuracy(plan.privacy("0.1"))
    errors = StatementErrors(plan).at(accuracy)
    table = error_table(errors, 0.95)
    assert table.headings[-1].name == "verdict"
    assert [row[-1].text for row in table.rows] == ["usable", "noise", ""]
    said = usable_sentence(errors, accuracy.privacy)
    assert said.startswith("at ε = 0.1, 1 of 2 tables with an expected size are within ±10 %")
    facts = explanation_facts(plan, accuracy, 0.95, 1)["statements"]
    assert [one["verdict"] for one in facts] == ["usable", "noise", None]
    half = accuracy.half_widths(0.95, [0])[0]
    assert facts[0]["half_width"] == half


def test_a_release_is_judged_by_its_noisy_answers():
    text = "\n".join(line for line in TEXT.splitlines() if not line.startswith("--"))
    plan = lrm.plan(lrm.sql(text, DOMAIN), "noise-on-data")
    release = lrm.release(plan, np.full(4, 1_000_000), epsilon=1)
    tables = listed_tables(release, EVERYTHING)
    assert [one.verdict for one in tables] == ["usable", "usable", "usable"]
    assert usable_words(tables) == "3 of 3 tables are within ±10 % in the median"
    small = lrm.release(plan, np.array([0, 0, 0, 0]), epsilon="0.001")
    assert {one.verdict for one in listed_tables(small, EVERYTHING)} <= {"rough", "noise"}


MIXED = "SELECT s, COUNT(*) AS n, SUM(x) AS total, AVG(x) AS mean FROM t GROUP BY s"


def test_counts_sums_and_rates_are_never_mixed():
    domain = Domain([Categories("s", ["a", "b"]), Bins("x", [0, 10, 100, 1000])], "t")
    plan = lrm.plan(lrm.sql(MIXED, domain), effort="quick")
    accuracy = plan.accuracy(plan.privacy("0.5"))
    errors = StatementErrors(plan).at(accuracy)
    assert [one.part.kind for one in errors] == ["count", "sum", "derived"]
    stated = lrm.release(plan, [3] * domain.size, epsilon="0.5").to_pandas()
    for one, query in zip(errors, ("n", "total"), strict=False):
        own = stated[stated["query"] == query]["standard_error"].to_numpy()
        assert np.isclose(one.typical, np.sqrt(np.mean(own**2)))
        assert np.isclose(one.largest, own.max())
    assert errors[1].typical > 100 * errors[0].typical


def test_the_number_of_usable_tables_grows_with_epsilon():
    plan = lrm.plan(lrm.sql(TEXT, DOMAIN), "noise-on-data")
    rated = StatementErrors(plan)
    privacy = plan.privacy("0.1")
    sign, amounts = usable_amounts(rated.at(plan.accuracy(privacy)), privacy)
    assert sign == "ε"
    for share, count in ((0.9, 0), (1.1, 1)):
        own = plan.privacy(str(amounts[0] * share))
        found = rated.at(plan.accuracy(own))
        assert sum(one.verdict == "usable" for one in found) == count
    drawing = usable_figure(rated.at(plan.accuracy(privacy)), privacy)
    assert drawing is not None
    page = plan_page(plan, privacy)
    assert drawing.svg in page
    assert "1 of 2 tables with an expected size are within ±10 %" in page
    assert "No Laplace strategy" in page or "times the least that any Laplace strategy" in page


def test_verdicts_honour_expected_sizes_and_are_on_no_public_page():
    plan = lrm.plan(lrm.sql(TEXT, DOMAIN), "noise-on-data")
    release = lrm.release(plan, np.full(4, 1000), epsilon="0.1")
    first, second, _ = listed_tables(release, EVERYTHING)
    assert (first.verdict, second.verdict) == ("usable", "noise")  # of 10,000 and of 20
    assert "<td>noise</td>" not in release_page(release)  # verdicts are for the author


def test_the_bound_is_for_those_who_ask(tmp_path):
    file = tmp_path / "plan.lrm"
    lrm.plan(lrm.sql(TEXT, DOMAIN), "noise-on-data").save(str(file))
    plain = run_lrm("explain", str(file), "--epsilon", "1")
    assert "best possible" not in plain
    assert "error of a count" in plain
    asked = run_lrm("explain", str(file), "--epsilon", "1", "--bound")
    assert "or more for any Laplace strategy" in asked


EVERY_KIND = """
-- expected: 500
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;
-- expected: 500
SELECT ward, AVG(age) AS mean FROM visits GROUP BY ward;
-- expected: 500
SELECT ward, SUM(age) AS years, COUNT(*) AS rows FROM visits GROUP BY ward;
"""


@pytest.mark.parametrize(("noise", "amount"), [("laplace", "0.05"), ("gaussian", "0.001")])
def test_plan_rehearsal_and_release_agree_for_the_same_sizes(noise, amount):
    """Rows of which each group has the expected 500: one verdict before, without and with data."""
    domain = Domain([Categories("ward", ["a", "b"]), Integers("age", 0, 9)], "visits")
    plan = lrm.plan(lrm.sql(EVERY_KIND, domain), noise=noise, effort="quick")
    rows = pa.table({"ward": ["a", "b"] * 500, "age": np.arange(1000) % 10})
    for factor in (1, 30, 1000):
        amounts = {"rho" if noise == "gaussian" else "epsilon": factor * Fraction(amount)}
        privacy = plan.privacy(**amounts)
        planned = [one.relative for one in StatementErrors(plan).at(plan.accuracy(privacy))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            releases = [
                rehearse(plan, privacy, expected_rows(plan)),
                lrm.release(plan, rows, **amounts, ledger=None),
            ]
        tables = [listed_tables(each, EVERYTHING) for each in releases]
        for counts, place in ((0, 0), (2, 2)):  # a table is judged by its counts, where it has some
            relative = [of_release[counts].relative for of_release in tables]
            np.testing.assert_allclose(relative, planned[place], rtol=1e-6)
            assert {each[counts].verdict for each in tables} == {verdict(planned[place])}
        if factor == 1000:  # the noise of an average depends on the noise of its counts
            means = [of_release[1].relative for of_release in tables]
            np.testing.assert_allclose(means[0], means[1], rtol=0.2)
    assert planned[1] is None  # what `expected` says of counts says nothing of averages
