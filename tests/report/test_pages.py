"""Pages: whole, escaped, self-contained, accessible, and nothing private in them."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib import import_module

import numpy as np
import pyarrow.parquet as pq
import pytest

import lrm
from lrm.errors import FileFormatError
from lrm.releases.postprocess import process
from lrm.views.comparisons import comparison_page, parse_comparison
from lrm.views.plan_document import plan_page
from lrm.views.release_page import release_page, write_release_page
from pages import numbers_in
from report.pages_of import NASTY, SECRETS, comparison, plan, release, tables

VOID = {"meta", "link", "br", "img", "use", "path", "input"}


class Tree(HTMLParser):
    """Checks that elements close, and collects what the laws are about."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def pages():
    made = release()
    return {
        "plan": plan_page(plan(), plan().privacy("0.5")),
        "gaussian": plan_page(plan("gaussian"), plan("gaussian").privacy(rho="0.1")),
        "release": release_page(made),
        "processed": release_page(made, processed=process(made, ["non-negative", "integer"])),
        "comparison": comparison_page(comparison()),
        "both": comparison_page({"laplace": comparison(), "gaussian": comparison()}),
        "tables": release_page(tables()),
    }


EVERY = ["plan", "gaussian", "release", "processed", "comparison", "both", "tables"]


@pytest.mark.parametrize("kind", EVERY)
def test_pages_are_well_formed(pages, kind):
    tree = Tree(pages[kind])
    assert tree.tags.count("h1") == tree.tags.count("main") == tree.tags.count("title") == 1
    assert len(set(tree.ids)) == len(tree.ids)
    assert ("html", "lang", "en") in tree.attributes


@pytest.mark.parametrize("kind", EVERY)
def test_pages_need_nothing_but_themselves(pages, kind):
    tree = Tree(pages[kind])
    assert not {"img", "iframe", "object", "embed", "form"} & set(tree.tags)
    # The one script is ours, and the policy lets no other one run.
    scripts = re.findall(r"<script>(.*?)</script>", pages[kind], re.DOTALL)
    seals = [b64encode(sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = re.findall(r"script-src ([^;\"]*)", pages[kind])
    assert allowed == [f"'sha256-{seal}'" for seal in seals]
    assert tree.tags.count("script") == len(scripts) <= 1
    places = [value for _, name, value in tree.attributes if name in {"src", "href", "xlink:href"}]
    assert all(place.startswith(("#", "data:")) for place in places)
    assert "url(http" not in pages[kind]
    assert "@import" not in pages[kind]
    assert not [name for _, name, _ in tree.attributes if name.startswith("on")]


@pytest.mark.parametrize("kind", EVERY)
def test_drawings_have_words_and_tables_have_headers(pages, kind):
    tree = Tree(pages[kind])
    labels = [value for tag, name, value in tree.attributes if (tag, name) == ("svg", "aria-label")]
    bars = [value for tag, name, value in tree.attributes if (tag, name) == ("svg", "aria-hidden")]
    drawings = tree.tags.count("svg") - len(bars)
    assert len(labels) == drawings == tree.tags.count("figcaption")
    assert all(labels)
    regions = [
        value for tag, name, value in tree.attributes if (tag, name) == ("div", "aria-label")
    ]
    assert len(regions) == tree.tags.count("table") + drawings >= 1
    assert all(regions)
    scopes = [name for tag, name, _ in tree.attributes if tag == "th"]
    assert scopes.count("scope") == tree.tags.count("th")


@pytest.mark.parametrize("kind", ["plan", "release", "processed"])
def test_names_are_shown_as_written_and_never_read_as_html(pages, kind):
    assert NASTY not in pages[kind]
    assert "<img" not in pages[kind]
    assert "<script" not in pages[kind]  # few answers need no search
    text = Tree(pages[kind]).text
    assert NASTY in text
    assert "<img src=x onerror=alert(1)>" in text
    assert "patient</dd>" in text
    assert "visits & more" in text


def test_a_comparison_is_escaped_and_tells_reasons(pages):
    text = Tree(pages["comparison"]).text
    assert "Mechanisms for queries<b>.csv" in text
    assert "matrix has no plan: it needs <b>more</b> memory than there is" in text
    assert "ε = 1/3" in text
    assert "0.50 s*" in text
    assert "200" in text


def test_a_release_tells_promise_cost_and_limits(pages):
    text = Tree(pages["release"]).text
    for words in (
        "No result is more than 1.65 times as likely from one as from the other (ε = 0.5).",
        "What is not guaranteed",
        "Intervals and standard errors cover the noise alone",
        "one person (column",
        "discrete Laplace",
        plan().digest,
    ):
        assert words in text


def test_answers_stand_with_their_intervals():
    made = release()
    rows = re.findall(r"<tr><th.*?</tr>", release_page(made, confidence=0.9), re.DOTALL)
    low, high = made.intervals(0.9)[0]
    found = next(row for row in rows if "&lt;script&gt;" in row)
    assert f'<td class="number">{made.answers[0]:,.0f}</td>' in found
    half = f"± {(high - low) / 2:.0f}"
    assert f"<caption><span>{half}</span></caption>" in release_page(made, confidence=0.9)


def test_processed_answers_are_named_with_their_bias(pages):
    text = Tree(pages["processed"]).text
    assert ", processed" in text
    assert "Intervals and standard errors are those of the raw answers" in text
    assert "Biased: small counts come out too large on average" in text
    assert "Post-processing" not in Tree(pages["release"]).text


def test_simulated_releases_promise_nothing():
    text = Tree(release_page(replace(release(), simulated=True))).text
    assert "SIMULATED" in text
    assert "times as likely" not in text


def test_long_batches_are_cut_and_say_so():
    big = lrm.plan(np.eye(60), "noise-on-data")
    made = lrm.release(big, np.ones(60, int), epsilon=1)
    text = Tree(release_page(made, limit=7)).text
    assert "7 of 60 answers" in text
    assert "lrm show --csv writes all" in text
    assert "5 of 60 queries" in Tree(plan_page(big, big.privacy(1), limit=5)).text


def test_a_file_beside_the_page_has_what_it_does_not_list(tmp_path):
    made = tables()
    write_release_page(made, tmp_path / "a page.html", limit=14)
    text = (tmp_path / "a page.html").read_text(encoding="utf-8")
    assert '<a href="a%20page.csv" download>a page.csv</a>' in text
    words = (
        "1 more table and further answers are not listed here. A file has all of them: a page.csv"
    )
    assert words in Tree(text).text
    assert len((tmp_path / "a page.csv").read_text().splitlines()) == 1 + len(made.names)
    made.report(tmp_path / "whole.html")
    assert not (tmp_path / "whole.csv").exists()


def test_each_table_has_its_part(pages):
    text = pages["tables"]
    titles = re.findall(r"<details id=[^>]*><summary><h3>(.*?)</h3>", text)
    assert titles == [
        "Answers",
        "n by colour",
        "n by size",
        "n by colour and size",
        "m by colour, size and kind",
    ]
    # Bars in lists, and heat maps of two attributes, one for each value of the first of three.
    answers = text.partition("What was asked")[0]
    assert answers.count('class="bar"') == 1 + 2 + 10
    assert text.count('class="heat h') == 20 + 40
    assert "colour blue · m by colour, size and kind, ±" in text


def test_many_answers_are_folded(pages):
    assert pages["tables"].count("<details id") == pages["tables"].count(" open>")
    domain = lrm.Domain([lrm.Integers("a", 0, 299), lrm.Categories("b", ["x", "y"])])
    one = "SELECT a, COUNT(*) AS n FROM t GROUP BY a"
    for sql, opened in ((one, 1), (f"{one}; SELECT b, COUNT(*) AS m FROM t GROUP BY b", 1)):
        plan = lrm.plan(lrm.sql(sql, domain), "noise-on-data")
        text = release_page(lrm.release(plan, np.ones(600, int), epsilon=1))
        assert text.count("<details id") == 1 + sql.count(
            ";"
        )  # the long one among others is folded
        assert text.count(" open>") == opened
        assert text.partition("What was asked")[0].count('class="bar"') == 300 + 2 * sql.count(";")
        assert len(text) < 225_000


def test_a_batch_without_error_has_a_page():
    empty = lrm.plan([[0, 0]], "noise-on-data")
    assert "1 query" in Tree(plan_page(empty, empty.privacy(1))).text
    assert Tree(release_page(lrm.release(empty, [1, 2], epsilon=1))).text


def test_nothing_private_is_on_the_page():
    """Noise of this size hides every count; none may stand there by another way."""
    made = release("0.000001")
    text = release_page(made, processed=process(made, ["consistent"])).replace(",", "")
    assert not numbers_in(text) & {*SECRETS.tolist(), int(SECRETS.sum())}


def test_pages_depend_on_the_file_alone(tmp_path):
    made = release()
    made.save(tmp_path / "answers.lrm")
    assert release_page(lrm.load_release(tmp_path / "answers.lrm")) == release_page(made)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "3",
        "{}",
        '{"mechanisms": 3}',
        '{"mechanisms": [{}]}',
        '{"mechanisms": [{"mechanism": "a"}]}',
        '{"mechanisms": [{"mechanism": "a", "expected_squared_error": NaN}]}',
        '{"mechanisms": [{"mechanism": 3, "reason": ""}]}',
        '{"laplace": 1, "gaussian": 2}',
        '{"mechanisms": [], "lower_bound": "x"}',
        "[" * 100_000,
    ],
)
def test_other_json_is_refused(text):
    with pytest.raises(FileFormatError, match="not a plan, a release or a comparison"):
        parse_comparison(text.encode(), "file.json")


def test_a_comparison_survives_json():
    again = parse_comparison(json.dumps(comparison()).encode(), "comparison.json")
    assert comparison_page(again) == comparison_page(comparison())


def test_a_comparison_without_plans_has_a_page():
    facts = {"epsilon": "1", "mechanisms": [{"mechanism": "matrix", "reason": "too large"}]}
    assert "No mechanism has a plan" in Tree(comparison_page(facts)).text


def test_a_page_of_too_many_answers_lists_the_first_ones(tmp_path, monkeypatch):
    """As it is for more than 4 million answers, with a smaller limit."""
    for module in ("release_document", "plan_document"):
        monkeypatch.setattr(import_module(f"lrm.views.{module}"), "EXPLICIT_QUERIES", 20)
    made = lrm.plan(lrm.families.marginals([4, 3, 2, 1 << 12], [1, 2]), "noise-on-results")
    answered = lrm.release(made, np.ones(made.workload.shape[1], dtype=int), epsilon=1)
    write_release_page(answered, tmp_path / "page.html", limit=10)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Tree(text)
    assert "further answers are not listed here" in text
    assert 'href="page.parquet"' in text
    assert pq.read_table(tmp_path / "page.parquet").num_rows == made.workload.shape[0]
    Tree(plan_page(made, made.privacy(epsilon=1)))
