"""Statements as people read them: titles, shapes, labels, digits; one renderer for each form."""

import datetime as dt
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.files.spelling import number
from lrm.releases import preview
from lrm.views.answers import statement_table
from lrm.views.blocks import Document, Facts, Figure, Numbers, Prose, plain_table
from lrm.views.derived import expected_facts, expected_rows
from lrm.views.documents import preview_document
from lrm.views.html import page, render_parts, snippet
from lrm.views.plan_document import PlanDetail, plan_document
from lrm.views.plans import plan_facts
from lrm.views.release_document import PAGE, answer_parts, listed_tables, release_document, terminal
from lrm.views.release_page import release_page
from lrm.views.text import to_text
from stored_releases import stored

BATCH = """\
-- Stays in each month
SELECT hospital, YEAR(admitted) AS year, MONTH(admitted) AS month, COUNT(*) AS stays
FROM stays GROUP BY hospital, year, month;
-- Patients
SELECT age, sex, COUNT(*) AS n FROM stays GROUP BY age, sex;
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM stays GROUP BY month;
SELECT hospital, ward, COUNT(*) AS wards FROM stays GROUP BY hospital, ward;
SELECT hospital, ward, sex, COUNT(*) AS three FROM stays GROUP BY hospital, ward, sex;
SELECT COUNT(*) AS total FROM stays;
SELECT ward, COUNT(*) AS most FROM stays WHERE ward <> 'd' GROUP BY ward;
"""


@pytest.fixture(scope="module")
def release():
    random, rows = np.random.default_rng(1), 20_000
    start = dt.date(2023, 1, 1)
    domain = lrm.Domain(
        [
            lrm.Dates("admitted", start, dt.date(2023, 12, 31)),
            lrm.Categories("hospital", ["North", "South", "East"]),
            lrm.Categories("sex", ["f", "m"]),
            lrm.Integers("age", 0, 99, width=10),
            lrm.Categories("ward", ["a", "b", "c", "d"]),
        ],
        table="stays",
    )
    frame = pd.DataFrame(
        {
            "admitted": [start + dt.timedelta(int(day)) for day in random.integers(0, 365, rows)],
            "hospital": random.choice(["North", "South", "East"], rows),
            "sex": random.choice(["f", "m"], rows),
            "age": random.integers(0, 100, rows),
            "ward": random.choice(list("abcd"), rows),
        }
    )
    plan = lrm.plan(lrm.sql(BATCH, domain), effort="quick")
    return lrm.release(plan, frame, epsilon=1, ledger=None)


@pytest.fixture(scope="module")
def parts(release):
    return answer_parts(listed_tables(release, replace(PAGE, kind="answers")), PAGE)


def test_titles_are_comments_or_aliases_without_the_number_of_a_statement(parts):
    assert [part.title for part in parts] == [
        "Stays in each month",
        "Patients",
        "n by month",
        "wards by hospital and ward",
        "three by hospital, ward and sex",
        "total",
        "most by ward",
    ]


def test_shapes(parts):
    months, pyramid, line, two_way, three_way, _, bars = parts
    assert "lines from Jan 2023 to Dec 2023" in months.blocks[0].words
    assert [heading.name for heading in months.blocks[1].headings] == [
        "month",
        "North",
        "South",
        "East",
    ]
    assert months.blocks[1].rows[4][0].text == "May 2023"
    assert "f to the left, m to the right" in pyramid.blocks[0].words
    assert isinstance(line.blocks[0], Figure)
    assert line.blocks[1].headings[1].name == "n"
    (heat,) = two_way.blocks
    assert [heading.name for heading in heat.headings] == ["ward", "North", "South", "East"]
    assert heat.rows[0][1].share is not None
    assert len(three_way.blocks) == 3  # small multiples: a table per hospital
    assert [row[0].text for row in bars.blocks[0].rows] == ["a", "b", "c"]  # d is excluded
    assert bars.blocks[0].rows[0][1].bar is not None


def test_the_error_stands_once_where_all_answers_have_the_same(parts):
    assert re.search(r", ± [\d.]+ each", parts[0].blocks[1].caption())
    assert not any(cell.note for row in parts[0].blocks[1].rows for cell in row)
    html = render_parts(Document("", parts=(Document("Answers", parts=(parts[0],)),)))
    assert re.search(r"<caption><span>± [\d.]+ each · hospital →</span></caption>", html)


def test_digits_are_chosen_by_the_error(release, parts):
    statement = release.plan.workload.tables[2]
    error = float(np.median(statement_table(release, statement).numbers["standard_error"]))
    decimals = max(0, 1 - int(np.floor(np.log10(error))))
    for row in parts[2].blocks[1].rows:
        assert len(row[1].text.partition(".")[2]) == decimals


def test_every_form_has_the_same_words(release):
    document = release_document(release)
    text, html = to_text(document, 100), release_page(release)
    for words in ("What is not guaranteed", "Stays in each month", "May 2023"):
        assert words in text
        assert words in html
    assert "May 2023" in release._repr_html_()


def test_the_script_is_there_where_there_is_something_to_search(release):
    assert page(release_document(release), "Release").count("<script>") == 1
    few = Document("t", parts=(Document("a", (plain_table("b", ("c",), [("d",)]),), name="a"),))
    assert "<script" not in page(few, "Release")


def test_every_kind_of_block_has_both_forms():
    nasty = "<b>&\x1b[2J"
    blocks = (
        Facts((("name", nasty),)),
        Numbers((("number", nasty, "note"),)),
        Prose((nasty,), "warning"),
        Prose((nasty,), "list"),
        Prose((nasty,), "promise"),
        Prose(("all answers are in",), file="a b.csv"),
        plain_table(nasty, ("x", "y"), [(nasty, "1")], note=nasty, ours=nasty),
    )
    html = snippet(Document("", blocks))
    text = to_text(Document("", blocks), 60)
    assert "<b>" not in html
    assert "\x1b" not in html + text
    assert html.count("&lt;b&gt;&amp;\\x1b[2J") >= 8
    assert text.count("<b>&\\x1b[2J") >= 8
    assert 'href="a%20b.csv"' in html
    assert "a b.csv" in text


def test_an_answer_of_far_larger_error_has_fewer_digits():
    domain = lrm.Domain([lrm.Categories("g", ["a", "b", "c", "few"]), lrm.Integers("x", 0, 9)])
    counts = np.repeat([10_000, 10_000, 10_000, 40], 10)
    text = "SELECT g, AVG(CASE WHEN x < 5 THEN 1.0 ELSE 0.0 END) AS share FROM t GROUP BY g"
    plan = lrm.plan(lrm.sql(text, domain), "noise-on-data")
    made = lrm.release(plan, counts, epsilon="0.2")
    table = statement_table(made, plan.workload.tables[0])
    texts = [row[1].text for row in table.table().rows]
    assert len(texts[0]) > len(texts[3].lstrip("-"))


DERIVED = """
SELECT hour, COUNT(*) AS n FROM calls GROUP BY hour;
SELECT MEDIAN(hour) AS middle FROM calls;
SELECT side, hour >= 3 AS late, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY side) AS share
FROM calls GROUP BY side, late;
"""


@pytest.fixture(scope="module")
def calls():
    attributes = [lrm.Integers("hour", 0, 5), lrm.Categories("side", ["a", "b"])]
    return lrm.plan(lrm.sql(DERIVED, lrm.Domain(attributes, "calls")), "noise-on-data")


def test_a_statement_by_name_has_its_own_notes_alone(calls):
    release = lrm.release(calls, [9] * 12, epsilon=1, ledger=None)
    note = "middle: exact to one declared value"
    texts = [
        to_text(release_document(release, terminal(20), statement=name), 80)
        for name in (None, "n", "middle")
    ]
    assert [note in text for text in texts] == [True, False, True]


def test_the_largest_error_of_a_derived_answer_is_listed_once(calls):
    """Groups of two kinds had two rows of one name."""
    accuracy = calls.accuracy(calls.privacy(epsilon=1))
    rows = expected_rows(calls, accuracy, 0.95, None)
    facts = expected_facts(calls, accuracy, 0.95, None)
    assert [name for name, *_ in rows] == ["middle", "share by late, side"]
    assert len(facts) > len(rows)
    most = max(fact["half_width"] for fact in facts if fact["query"] == "share")
    assert rows[1][2] == f"±{number(most)}/n"


def test_a_dry_run_lists_every_statement():
    """It listed the first twenty, as if there were no others."""
    domain = lrm.Domain([lrm.Integers("hour", 0, 29)], "calls")
    text = ";".join(f"SELECT COUNT(*) AS at{h} FROM calls WHERE hour = {h}" for h in range(30))
    plan = lrm.plan(lrm.sql(text, domain), "noise-on-data")
    shown = to_text(preview_document(preview(plan, [1] * 30, epsilon=1), 0.95, 20), 80)
    assert all(re.search(rf"^at{h}\b", shown, re.MULTILINE) for h in range(30))


def test_an_answer_that_is_not_a_number_leaves_the_others_alike(calls):
    """A standard deviation of a negative variance: NumPy warned of -inf + inf."""
    release = lrm.release(calls, [9] * 12, epsilon=1, ledger=None)
    table = statement_table(release, calls.workload.tables[0])
    numbers = {name: column.copy() for name, column in table.numbers.items()}
    for name, value in (("answer", np.nan), ("low", -np.inf), ("high", np.inf)):
        numbers[name][2, 0] = value
    assert (
        replace(table, frame=replace(table.frame, numbers=numbers)).alike(0) == table.alike(0) != ""
    )


def test_groups_of_times_are_shown_next_to_groups_without_one():
    domain = lrm.Domain([lrm.Integers("hour", 0, 3)], "t")
    text = """SELECT CASE WHEN hour < 1 THEN TIMESTAMP '2023-05-01 10:00:00'
    WHEN hour < 3 THEN TIMESTAMP '2023-05-01 18:30:00' END AS shift, COUNT(*) AS n FROM t
    GROUP BY shift"""
    release = lrm.release(lrm.plan(text, domain=domain, effort="quick"), [3] * 4, epsilon=1)
    shown = to_text(release_document(release, terminal(20)), 100)
    assert all(label in shown for label in ("2023-05-01 10:00", "2023-05-01 18:30", "(null)"))
    assert "2023-05-01 18:30" in release_page(release)


@pytest.mark.filterwarnings("ignore::lrm.errors.PlanWarning")
def test_cells_are_those_that_the_domain_declares():
    """A plan also distinguishes cells of rows that are dropped, which nobody declared."""
    attributes = [lrm.Categories(name, ["x", "y"]) for name in "abc"]
    text = (
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a; SELECT b, c, COUNT(*) AS m FROM t GROUP BY b, c"
    )
    plan = lrm.plan(lrm.sql(text, lrm.Domain(attributes, table="t")), "noise-on-data")
    assert plan.workload.shape[1] > 8
    assert plan_facts(plan)["cells"] == 8
    assert "6 queries over 8 cells" in repr(plan)
    for kind, words in (("page", "over 8 cells"), ("notebook", "over 8 cells"), ("facts", "8")):
        shown = to_text(plan_document(plan, PlanDetail(kind)), 100)
        assert words in shown
        assert f"{plan.workload.shape[1]} cells" not in shown
        assert not re.search(rf"^cells +{plan.workload.shape[1]}", shown, re.MULTILINE)


def test_a_statement_that_is_asked_for_says_what_its_intervals_do_not_cover(tmp_path):
    for name in ("persons", "average-of-bins", "knots"):
        release = stored(name)
        (frame, *_) = release.frames()
        assert frame.caveat_sentences
        release.write(tmp_path / f"{name}.html", statement="1")
        release.write(tmp_path / f"{name}.md", statement="1")
        texts = [(tmp_path / f"{name}{ending}").read_text("utf-8") for ending in (".html", ".md")]
        texts.append(to_text(release_document(release, terminal(20), statement="1"), 10_000))
        for words in frame.caveat_sentences:
            start = words.split("'")[0][1:30].replace("_", "")
            for text in texts:
                assert start in unescape(text).replace("\\", "").replace("_", ""), (name, words)
