"""A published page: the author's text with tables in it, and nothing that only authors need."""

import re
from html import unescape

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Categories, Dates, Domain, Integers
from lrm.errors import UsageError
from lrm.views.answers import statement_table
from lrm.views.page_text import parse_page_text
from lrm.views.publication import publication, write_publication
from lrm.views.release_page import release_page
from lrm.views.shapes import statement_blocks
from lrm.views.words import WORDS

DOMAIN = Domain(
    [
        Dates("day", "2023-01-01", "2023-06-30", by="month"),
        Categories("weekday", ["Tue", "Mon", "Sun"], null="cell"),
        Integers("age", 0, 2, outside="cell"),
    ],
    "visits",
)
SQL = """
-- Visits by month
SELECT day, COUNT(*) AS visits, SUM(CASE WHEN age = 1 THEN 1000000 ELSE 0 END) AS worth
FROM visits GROUP BY day;
SELECT weekday, COUNT(*) AS by_weekday FROM visits GROUP BY weekday;
SELECT age, COUNT(*) AS by_age FROM visits GROUP BY age ORDER BY by_age DESC;
-- All visits
SELECT COUNT(*) AS n FROM visits;
"""
TEXT = """---
title: Visits & more
publisher: The <office>
date: 2024-01-01
contact: [us](mailto:us@example.org)
numbers: Zahlen
---
Counted **twice**, see [here](https://example.org) <script>alert(1)</script>.

## First

{{ visits | caption: Visits a month }}
{{ n | unit: persons | decimals: 1 }}

- one
  more
- two

## Second

{{ by_weekday }}
{{ by_age }}
"""


@pytest.fixture(scope="module")
def release():
    plan = lrm.plan(lrm.sql(SQL, DOMAIN), "noise-on-data")
    counts = np.random.default_rng(5).integers(20, 90, DOMAIN.size)
    return lrm.release(plan, counts, epsilon=1)


@pytest.fixture(scope="module")
def page(release, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_publication(release, path, parse_page_text(TEXT, "page.md"))
    return path


def words(page):
    text = page.read_text(encoding="utf-8")
    body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", body).split()))


def test_the_page_has_the_words_of_the_author_and_their_order(page):
    text = words(page)
    order = ["Visits & more", "The <office> · 2024-01-01", "Counted twice", "First"]
    order += ["Visits a month", "All visits", "one more", "Second", "About these numbers"]
    places = [text.rindex(part) if part == "First" else text.index(part) for part in order]
    assert places == sorted(places)
    assert "Visits a month: zahlen" in text
    assert "<script>alert(1)</script>" in text
    assert 'href="mailto:us@example.org"' in page.read_text(encoding="utf-8")
    assert "page.csv" in text
    assert page.with_suffix(".csv").exists()


def test_nothing_on_it_is_for_authors_alone(page, release):
    for text in (words(page), unescape(release_page(release))):
        for part in ("usable", "rough", "(below)", "(invalid)", "(null)", "ORDER BY"):
            assert part not in text, part
        for part in ("of even split", "times the least", "×"):
            assert part not in words(page)
    assert "not stated" in words(page)


def test_weekdays_stand_in_the_order_of_the_week(page):
    text = words(page)
    assert text.index(" Mon ") < text.index(" Tue ") < text.index(" Sun ")


def test_measures_have_axes_of_their_own(release):
    (figure, *_) = statement_blocks(statement_table(release, release.plan.workload.tables[0]))
    first, second = figure.svg.split('class="name"')[1:]
    ticks = [
        re.findall(r'class="tick" text-anchor="end"[^>]*>([\d,]+)<', part)
        for part in (first, second)
    ]
    assert max(ticks[0], key=len) != max(ticks[1], key=len)
    for name in ("visits", "worth", "day"):
        assert f">{name}</text>" in figure.svg


@pytest.mark.parametrize(
    ("text", "sentence", "line"),
    [
        ("---\ntitel: x\n---\n", "line 2: there is no field 'titel'", 2),
        ("---\nx\n---\n", "line 2: expected a field", 2),
        ("---\ntitle: x\n", "have no end", None),
        ("a\n{{ n | colour: red }}", "line 2: expected options", 2),
        ("{{ n | decimals: many }}", "decimals must be a digit", 1),
        ("in all {{ n | decimal: 1 }}", "line 1: expected options", 1),
        ("---\ndecimal: dot\n---\n", "line 2: decimal must be point or comma, not 'dot'", 2),
        ("---\ndecimal: comma\nthousands: comma\n---\n", "line 3: thousands must be another", 3),
        ("---\nmonths: a b\n---\n", "line 2: months must be twelve names", 2),
    ],
)
def test_errors_of_a_text_name_the_line(text, sentence, line):
    with pytest.raises(UsageError, match=sentence) as error:
        parse_page_text(text, "page.md")
    assert error.value.line == line


def test_a_statement_that_is_not_there_is_named_with_its_line(release):
    with pytest.raises(UsageError, match=r"page\.md, line 3: no statement is called 'x'") as error:
        publication(release, parse_page_text("a\n\n{{ x }}", "page.md"))
    assert error.value.line == 3


MONTHS = "Jänner Feber März April Mai Juni Juli August September Oktober November Dezember"


def replaced_words(mark):
    return "\n".join(f"{key}: {MONTHS if key == 'months' else mark.format(key)}" for key in WORDS)


def test_every_fixed_word_can_be_replaced(release):
    fields = replaced_words("<{}>")
    document = publication(release, parse_page_text(f"---\n{fields}\n---\n{{{{ n }}}}", "p.md"))
    titles = [part.title for part in document.parts]
    assert titles == ["<about>", "<guarantee>", "<caveats>", "<methods>"]


def test_a_translated_page_has_no_word_of_lrm_left(release, tmp_path):
    fields = replaced_words("‹{}› {{month}}")
    lines = "\n".join(f"{{{{ {name} | caption: ‹c› | note: ‹n› }}}}" for name in release)
    place = tmp_path / "page.html"
    write_publication(release, place, parse_page_text(f"---\n{fields}\n---\n{lines}", "p.md"))
    declared = {"day", "weekday", "age", "visits", "worth", "Tue", "Mon", "Sun", "csv", "page"}
    left = set(re.findall(r"[^\W\d_][\w-]+", re.sub(r"‹[^›]*›", " ", words(place))))
    assert left <= declared | {*MONTHS.split(), "month", "by"}  # of by_weekday
    assert {"Jänner", "Juni"} <= left


def test_numbers_are_spelt_as_the_author_asks(release, tmp_path):
    place = tmp_path / "page.html"
    text = TEXT.replace("numbers: Zahlen", "decimal: comma\nthousands: space")
    write_publication(release, place, parse_page_text(text, "page.md"))
    answer = release.frame("n").numbers["answer"][0, 0]
    spelt = f"{answer:,.1f} persons".replace(",", " ").replace(".", ",")
    assert spelt.replace(" ", "\u202f", 1) in place.read_text(encoding="utf-8")
    assert not re.search(r"\d\.\d", re.sub(r"lrm \S+", "", words(place).split("What is guar")[0]))
    by_default = parse_page_text("---\ndecimal: comma\n---\n", "page.md").style
    assert by_default.shown("1,234.5") == "1.234,5"


def test_a_statement_in_a_sentence_is_its_number(release):
    text = "In **{{ n | decimals: 0 | unit: visits }}** and {{ n }},\n\n1. one\n2. {{ n }}\n   two"
    sentence, numbered = publication(release, parse_page_text(text, "page.md")).blocks
    answer = release.frame("n").numbers["answer"][0, 0]
    assert sentence.lines[0][1].text.startswith(f"{answer:,.0f} visits (± ")
    assert sentence.lines[0][1].kind == "strong"
    assert numbered.kind == "numbered"
    assert ["".join(piece.text for piece in line)[-4:] for line in numbered.lines] == [
        "one",
        " two",
    ]
    domain = Domain([Integers("age", 0, 9)], "visits")
    both = "SELECT COUNT(*) AS n, SUM(age) AS ages FROM visits"
    made = lrm.release(lrm.plan(lrm.sql(both, domain), "noise-on-data"), [9] * 10, epsilon=1)
    (one,) = publication(made, parse_page_text("of {{ ages | decimals: 0 }}", "page.md")).blocks
    ages = made.frame("n").numbers["answer"][0, 1]
    assert one.lines[0][0].text.startswith(f"of {ages:,.0f} (± ")
    table = parse_page_text("Text\n\nof {{ by_age }}.", "page.md")
    with pytest.raises(UsageError, match=r"page\.md, line 3: 'by_age' is a table") as error:
        publication(release, table)
    assert error.value.line == 3


def test_a_number_in_a_sentence_may_be_processed(release):
    fixed = release.consistent()
    text = parse_page_text("In {{ n | decimals: 0 }} cases.", "page.md")
    (block,) = publication(release, text, processed=fixed).blocks
    sentence = "".join(piece.text for piece in block.lines[0])
    assert re.fullmatch(r"In [\d,]+ \(± \d+; processed [\d,]+\) cases\.", sentence)


def test_a_page_says_what_processed_numbers_are(release):
    text = parse_page_text("{{ by_age }}", "page.md")
    page = publication(release, text, processed=release.consistent())
    (methods,) = page.parts[-1].blocks
    assert any("nearest to the released answers" in line for line in methods.sentences)
    (plain,) = publication(release, text).parts[-1].blocks
    assert not any("processed" in line for line in plain.sentences)


def test_a_line_over_time_leaves_out_undeclared_times():
    day = Dates("day", "2023-01-01", "2023-06-30", by="month", null="cell")
    batch = lrm.sql("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", Domain([day], "visits"))
    made = lrm.release(lrm.plan(batch, "noise-on-data"), [50] * 6 + [2], epsilon=1)
    figure, table = statement_blocks(statement_table(made, batch.tables[0]))
    assert "not stated" not in figure.svg
    assert "(null)" not in figure.svg
    assert "Jun 2023" in figure.svg
    assert len(table.rows) == 7


def test_numbers_without_groups_stand_together_with_their_units(release):
    text = parse_page_text("{{ n | unit: persons | decimals: 0 }}\n{{ n }}\n\nText.", "page.md")
    (numbers, _) = publication(release, text).blocks
    assert [name for name, _, _ in numbers.entries] == ["All visits", "All visits"]
    assert numbers.entries[0][1].endswith(" persons")
    assert numbers.entries[0][2].startswith("± ")


def test_a_number_that_having_leaves_out_is_said_to_be_left_out():
    domain = Domain([Categories("sex", ["f", "m"])], "visits")
    text = "SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 100000"
    made = lrm.release(lrm.plan(lrm.sql(text, domain), "noise-on-data"), [10, 20], epsilon=1)
    (table,) = publication(made, parse_page_text("{{ n }}", "page.md")).blocks
    assert table.rows == ()
    assert table.note.startswith("0 of 1 group")
    with pytest.raises(UsageError, match="'n' is a table"):
        publication(made, parse_page_text("In {{ n }} cases.", "page.md"))


def test_intervals_have_about_the_decimals_of_their_answer(release):
    text = "{{ visits | decimals: 0 }}"
    (_, fold) = publication(release, parse_page_text(text, "page.md")).blocks
    headings = [heading.name for heading in fold.tables[0].headings]
    assert re.search(r"± \d+\)", headings[1])


def test_a_long_list_of_numbers_has_a_picture():
    domain = Domain([Integers("age", 0, 99), Categories("sex", ["f", "m", "x"])], "visits")
    batch = lrm.sql("SELECT age, sex, COUNT(*) AS n FROM visits GROUP BY age, sex", domain)
    made = lrm.release(lrm.plan(batch, "noise-on-data"), np.full(300, 9), epsilon=1)
    (figure, fold) = publication(made, parse_page_text("{{ n }}", "page.md")).blocks
    assert figure.svg.count('class="line"') == 3
    assert len(fold.tables[0].rows) == 100


def test_a_table_of_usual_length_is_not_cut_off(release):
    assert 'class="scroll tall"' not in release_page(release)


def test_the_command_writes_the_page_and_replaces_nothing(release, tmp_path):
    release.save(tmp_path / "a.lrm")
    (tmp_path / "page.md").write_text(TEXT, encoding="utf-8")
    command = ["report", str(tmp_path / "a.lrm"), "--text", str(tmp_path / "page.md")]
    output = ["-o", str(tmp_path / "out.html")]
    assert CliRunner().invoke(main, [*command, *output]).exit_code == 0
    assert CliRunner().invoke(main, [*command, *output]).exit_code == 2
    (tmp_path / "out.html").unlink()
    refused = CliRunner().invoke(main, [*command, *output])
    assert "out.csv exists already" in refused.output
    assert CliRunner().invoke(main, [*command, *output, "--force"]).exit_code == 0
