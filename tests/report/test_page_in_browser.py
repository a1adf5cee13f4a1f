"""Pages in a real browser: no complaint, no request, nothing wider than a phone."""

import base64

import pytest

from lrm.releases.postprocess import process
from lrm.views.comparisons import comparison_page
from lrm.views.plan_document import plan_page
from lrm.views.release_page import release_page
from report.browser import browser, need_browser
from report.pages_of import NASTY, comparison, plan, release, tables
from workbench.browsing import check_accessible

KINDS = ["plan", "release", "comparison", "tables"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("pages")
    made = release()
    pages = {
        "plan": plan_page(plan(), plan().privacy("0.5")),
        "release": release_page(made, processed=process(made, ["integer"])),
        "comparison": comparison_page(comparison()),
        "tables": release_page(tables()),
    }
    for kind, text in pages.items():
        (place / f"{kind}.html").write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def tab():
    need_browser()
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000])
def test_pages_open_without_complaint(tab, folder, kind, scheme, width):
    page = folder / f"{kind}.html"
    tab.open(page, width=width, scheme=scheme)
    assert tab.evaluate("innerWidth") == width
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    shown = tab.evaluate("document.body.innerText")
    expected = {"plan": "What would be guaranteed", "comparison": "How to read this"}
    assert expected.get(kind, "What is guaranteed") in shown
    assert tab.requests == [page.as_uri()]
    assert tab.console == []
    check_accessible(tab, kind)


def test_a_page_is_printed_with_all_that_is_folded(tab, folder):
    tab.open(folder / "tables.html")
    printed = base64.b64decode(tab.call("Page.printToPDF")["data"])
    assert printed.startswith(b"%PDF")
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = false; })")
    shown = "[...document.querySelectorAll('details table')].every(e => e.checkVisibility())"
    assert tab.evaluate(shown)
    tab.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("kind", KINDS)
def test_text_can_be_read_on_its_ground(tab, folder, kind):
    """The contrast of text, in light and in dark, is that which WCAG asks for (4.5 to 1)."""
    for scheme in ("light", "dark"):
        tab.open(folder / f"{kind}.html", scheme=scheme)
        for selector in ("h1", "p", ".kind", "caption", ".lead", "td", "tr.ours td", "svg text"):
            ink = tab.evaluate(_colour(selector, "fill" if "svg" in selector else "color"))
            if ink is not None:
                ground = tab.evaluate(_colour("body", "backgroundColor"))
                assert _contrast(ink, ground) >= 4.5, (scheme, selector)


def test_names_are_text_in_the_browser_too(tab, folder):
    tab.open(folder / "release.html")
    assert tab.evaluate("document.scripts.length") == 0  # few answers need no search
    assert tab.evaluate("document.images.length") == 0
    names = tab.evaluate("[...document.querySelectorAll('tbody th')].map(e => e.innerText)")
    assert NASTY in names


SEARCH = """(words => {
  const box = document.querySelector('.search input');
  box.value = words;
  box.dispatchEvent(new Event('input'));
})"""


def test_answers_can_be_searched(tab, folder):
    tab.open(folder / "tables.html")
    shown = "[...document.querySelectorAll('tbody tr')].filter(e => e.checkVisibility()).length"
    before = tab.evaluate(shown)
    tab.evaluate(f"{SEARCH}('SIZE 7')")
    assert tab.evaluate("document.querySelector('.search output').textContent") == "4 of 43 rows"
    found = "[...document.querySelectorAll('details[id]:not([hidden]) h3')].map(e => e.innerText)"
    assert tab.evaluate(found) == [
        "n by size",
        "n by colour and size",
        "m by colour, size and kind",
    ]
    assert tab.evaluate(
        "[...document.querySelectorAll('details[id]:not([hidden])')].every(e => e.open)"
    )
    tab.evaluate(f"{SEARCH}('')")
    assert tab.evaluate(shown) == before


def test_a_page_reads_without_script(tab, folder):
    page = folder / "tables.html"
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page)
        assert tab.evaluate("document.querySelector('.search').hidden") is True
        assert tab.evaluate("document.querySelectorAll('details[open] .bar').length") == 13
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def _colour(selector, attribute):
    return (
        f"(e => e && getComputedStyle(e).{attribute})(document.querySelector({selector!r})) || null"
    )


def _contrast(ink, ground):
    one, other = sorted((_luminance(ink), _luminance(ground)), reverse=True)
    return (one + 0.05) / (other + 0.05)


def _luminance(colour):
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
