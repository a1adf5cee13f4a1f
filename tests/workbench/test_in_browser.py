"""The workbench in a real Chromium: the whole way, by hand and by keyboard."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import axe_core_python
import pytest

from report.browser import browser, need_browser
from workbench.served import QUESTIONS, lrm, write_example

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tab():
    need_browser()
    with browser() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _blank(tab):
    """Leave the page of the test before, which asks for a server that is gone."""
    tab.call("Page.navigate", url="about:blank")
    tab.wait("location.protocol === 'about:'")
    tab.console.clear()


@contextlib.contextmanager
def workbench(folder, port="0"):
    """The command itself; yields its address and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lrm", "workbench", ".", "--no-browser", "--json", "--port", port],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = iter(process.stdout.readline, "")
        address = next(found[0] for line in lines if (found := re.search(r"http[^\"\s]*", line)))
        yield address, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def text(selector):
    return f"document.querySelector({selector!r}).textContent"


def there(selector):
    return f"!!document.querySelector({selector!r})"


def wait_saved(path, words, seconds=30):
    """Wait until a file holds some words: the page saves a little after they are typed."""
    end = time.monotonic() + seconds
    while words not in path.read_text():
        assert time.monotonic() < end, path.read_text()
        time.sleep(0.05)


def set_text(tab, selector, value):
    """Put the caret in a field, select all, and type."""
    tab.click(selector)
    tab.press("a", modifiers=2)
    tab.type(value)


def planned(tab, seconds=120):
    tab.wait(f"{text('#job-words')}.startsWith('Planned')", seconds)


def stop(tab):
    """End the search with the best so far, unless it has ended."""
    tab.wait(there("#statements tbody tr"), 120)
    if tab.evaluate("document.getElementById('stop').checkVisibility()"):
        tab.evaluate("document.getElementById('stop').click()")
    planned(tab)


def typical(tab):
    return tab.evaluate("document.querySelectorAll('#key dd')[1].firstChild.textContent")


def check_accessible(tab, state):
    """No serious or critical finding of axe, in this state of the page."""
    tab.evaluate(AXE + "; true")
    found = tab.evaluate(
        "axe.run(document, {iframes: false, resultTypes: ['violations']}).then(r => r.violations"
        ".filter(v => ['serious', 'critical'].includes(v.impact))"
        ".map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))]))"
    )
    assert found == [], (state, found)


def reload(tab):
    tab.call("Page.reload")
    time.sleep(0.1)
    tab.wait("document.readyState === 'complete' && !document.getElementById('bench').hidden")


def test_the_whole_way(tab, tmp_path):  # noqa: PLR0915 - one long way
    """From an empty folder to answers to further questions, with a reload at every step."""
    with workbench(tmp_path) as (address, _), contextlib.chdir(tmp_path):
        tab.go(address)
        tab.wait("document.getElementById('use-example').checkVisibility()")
        assert tab.evaluate("location.hash") == ""  # the token is in no address any more
        check_accessible(tab, "empty folder")
        reload(tab)
        tab.click("#use-example")
        stop(tab)
        seen = []
        for _ in range(2):  # the first time, errors of the quick plan may still have been shown
            reload(tab)
            tab.wait(there("#statements tbody tr"))
            seen.append(typical(tab))
        assert seen[0] == seen[1]
        tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        tab.wait(there("#rivals tbody tr"), 60)
        tab.wait(there("#beside tbody tr"), 60)
        check_accessible(tab, "planned")

        # a question is changed: wrong first, then right
        tab.evaluate("document.getElementById('batch-editor-text').focus()")
        tab.press("End", modifiers=2)
        tab.type("SELECT COUNT(*) AS teens FROM patients WHERE age < 13")
        tab.wait(f"{text('#batch-editor-problems')}.startsWith('Line 6')")
        assert "the nearest edges are" in tab.evaluate(text("#batch-editor-problems"))
        tab.press("Backspace")
        tab.press("Backspace")
        tab.type("20;")
        tab.wait(f"{text('#batch-editor-problems')} === ''")
        tab.wait(f"{text('#statements')}.includes('teens')", 120)
        wait_saved(tmp_path / "questions.sql", "teens")
        assert typical(tab) != seen[1]
        stop(tab)
        reload(tab)
        tab.wait(f"{text('#statements')}.includes('teens')")

        # the slider answers at once, without a new plan
        at_tenth = typical(tab)
        plans = sorted(path.name for path in (tmp_path / "plans").iterdir())
        tab.evaluate("document.getElementById('slider').focus()")
        for _ in range(30):
            tab.press("ArrowRight")
        assert tab.evaluate("document.getElementById('amount').value") == "0.2"
        tab.wait(f"document.querySelectorAll('#key dd')[1].firstChild.textContent !== {at_tenth!r}")
        assert sorted(path.name for path in (tmp_path / "plans").iterdir()) == plans
        set_text(tab, "#amount", "0.1")
        tab.wait(f"document.querySelectorAll('#key dd')[1].firstChild.textContent === {at_tenth!r}")

        # budget, dry run, release: a double click spends once
        tab.click("#create-budget button")
        tab.wait(there("#budgets tbody tr"))
        reload(tab)
        tab.wait(there("#budgets tbody tr"))
        tab.wait("document.getElementById('table').value === 'patients.csv'")
        tab.wait(there("#statements tbody tr"))
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"), 60)
        assert "0.1 epsilon from the budget of 'patients'" in tab.evaluate(text("#dry-result"))
        # it is forgotten when a question changes
        tab.evaluate("document.getElementById('batch-editor-text').focus()")
        tab.press("End", modifiers=2)
        tab.type("-- the end")
        assert not tab.evaluate(there("#ask-release"))
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"), 60)
        assert (tmp_path / "questions.sql").read_text().endswith("-- the end")
        tab.click("#ask-release")
        tab.wait("document.getElementById('confirm').open")
        words = tab.evaluate(text("#confirm-words"))
        for part in ("0.1 epsilon", "0.9 of 1", "patients.csv", "one row, added or removed"):
            assert part in words
        check_accessible(tab, "confirmation")
        tab.click("#confirm-yes", times=2)
        reload(tab)
        tab.wait("!document.getElementById('results').hidden", 60)
        tab.wait(f"{text('#results-title')} === 'Release answers.lrm'", 60)
        tab.wait(f"{text('#dry-result')}.includes('Released')", 60)

        # the report is in the page, and further questions cost nothing
        tab.wait("document.getElementById('report').src.includes('/once/')")
        question = "SELECT COUNT(*) AS western FROM patients WHERE state IN ('CA', 'WA')"
        set_text(tab, "#further-text", question)
        tab.click("#further button")
        tab.wait(there("#further-answers tbody tr"), 60)
        check_accessible(tab, "released")
        downloads = {"behavior": "allow", "downloadPath": str(tmp_path / "downloads")}
        tab.call("Page.setDownloadBehavior", **downloads)
        tab.click("#downloads button:nth-child(2)")
        for _ in range(200):
            if (tmp_path / "downloads" / "answers.csv").exists():
                break
            time.sleep(0.05)
        saved = (tmp_path / "downloads" / "answers.csv").read_bytes()
        assert saved == (tmp_path / "answers.csv").read_bytes()
        shown = tab.evaluate(text("#further-answers tbody"))
        assert tab.console == []
        origin = address.partition("#")[0]
        assert all(url.startswith((origin, "blob:", "data:")) for url in tab.requests)

        # the command line finds the same files, and makes the same of them
        said = json.loads(lrm("query", "answers.lrm", question, "--json"))
        assert f"{said['answers'][0]['answer']:,.0f}" in shown
        history = json.loads(lrm("budget", "history", "--ledger", "budget.sqlite", "--json"))
        assert [one["kind"] for one in history["entries"]] == ["create", "spend"]
        lrm("report", "answers.lrm", "-o", "by-hand.html")
        pages = [(tmp_path / name).read_text() for name in ("by-hand.html", "answers.html")]
        # the marks of a drawing differ from process to process
        assert len({re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL) for page in pages}) == 1
        plan = re.search(r"plans/laplace-\w+\.lrm", tab.evaluate(text("#errors-command")))[0]
        checked = json.loads(lrm("explain", plan, "--epsilon", "0.1", "--json"))
        assert f"{checked['root_mean_squared_error']:.4g}" == at_tenth
        tab.console.clear()


@pytest.fixture
def small(tmp_path):
    write_example(tmp_path)
    with contextlib.chdir(tmp_path):
        yield tmp_path


def focus(tab, wanted, steps=80):
    """Press Tab until an element has the focus: what cannot be reached so, is not reached."""
    for _ in range(steps):
        if tab.evaluate(f"document.activeElement.matches({wanted!r})"):
            return
        tab.press("Tab")
    pytest.fail(f"{wanted} cannot be reached by keyboard")


def test_by_keyboard_alone(tab, small):  # noqa: PLR0915 - one long way
    with workbench(small) as (address, _):
        tab.go(address, width=390, scheme="dark")
        planned(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        check_accessible(tab, "narrow and dark")
        # completion: attributes, then values within quotes
        focus(tab, "#batch-editor-text")
        tab.press("End", modifiers=2)
        tab.type("SELECT COUNT(*) AS some FROM visits WHERE s")
        tab.wait("!document.getElementById('batch-editor-list').hidden")
        assert tab.evaluate(text("#batch-editor-list li span")) == "sex"
        tab.press("Enter")
        tab.type(" = 'f")
        assert tab.evaluate("document.getElementById('batch-editor-list').hidden")
        tab.press("Backspace")
        tab.press(" ", modifiers=2)
        tab.wait("!document.getElementById('batch-editor-list').hidden")
        options = (
            "[...document.querySelectorAll('#batch-editor-list li span')].map(e => e.textContent)"
        )
        assert tab.evaluate(options) == ["f", "m"]
        tab.press("ArrowDown")
        tab.press("Enter")
        tab.type("';")
        tab.press("Escape")
        assert tab.evaluate(
            "document.getElementById('batch-editor-text').value.endsWith(\"sex = 'm';\")"
        )
        tab.wait(f"{text('#statements')}.includes('some')")
        planned(tab)
        # importance, by its field; it is written into the file
        focus(tab, "#importance-2")
        tab.press("a", modifiers=2)
        tab.type("9")
        tab.press("Tab")
        tab.wait(f"{text('#statements')}.includes('against equal')")
        wait_saved(small / "questions.sql", "-- importance: 9\nSELECT COUNT(*) AS some")
        planned(tab)
        # the inverse
        focus(tab, "#wanted")
        tab.type("12")
        tab.press("Enter")
        tab.wait(f"{text('#wanted-found')}.startsWith('ε = ')")
        # a budget, a dry run, and the release
        focus(tab, "#create-budget button")
        tab.press("Enter")
        tab.wait(there("#budgets tbody tr"))
        focus(tab, "#table")
        tab.press("Enter")
        tab.wait(there("#ask-release"), 60)
        focus(tab, "#ask-release")
        tab.press("Enter")
        tab.wait("document.getElementById('confirm').open")
        assert tab.evaluate("document.activeElement.id") == "confirm-no"
        focus(tab, "#confirm-yes")
        tab.press("Enter")
        tab.wait(f"{text('#dry-result')}.includes('Released')", 60)
        assert (small / "answers.lrm").exists()
        assert tab.console == []


def test_two_tabs_and_a_server_that_is_killed(tab, small):
    with workbench(small) as (address, process):
        origin = address.partition("#")[0]
        tab.go(address)
        planned(tab)
        first = tab.new_tab()
        tab.go(origin)  # the browser was let in already
        planned(tab)
        # what is typed in one tab appears in the other
        tab.evaluate("document.getElementById('batch-editor-text').focus()")
        tab.press("End", modifiers=2)
        tab.type("SELECT COUNT(*) AS everybody FROM visits;")
        tab.wait(f"{text('#statements')}.includes('everybody')")
        planned(tab)
        tab.click("#create-budget button")
        tab.wait(there("#budgets tbody tr"))
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"), 60)
        second = tab.turn_to(first)
        tab.wait("document.getElementById('batch-editor-text').value.includes('everybody')")
        tab.wait(f"{text('#statements')}.includes('everybody')")
        planned(tab)
        tab.click("#show-budgets")
        tab.wait(there("#budgets tbody tr"))
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"), 60)
        tab.click("#ask-release")
        tab.click("#confirm-yes")
        tab.wait(f"{text('#dry-result')}.includes('Released')", 60)
        # the confirmation of the other tab is void now, and spends nothing
        tab.turn_to(second)
        tab.evaluate("document.getElementById('ask-release')?.click()")
        tab.evaluate("document.getElementById('confirm-yes').click()")
        time.sleep(0.5)
        history = json.loads(lrm("budget", "history", "--ledger", "budget.sqlite", "--json"))
        assert [one["kind"] for one in history["entries"]] == ["create", "spend"]
        (small / "questions.sql").write_text(QUESTIONS)
        tab.console.clear()  # refusals are logged by the browser itself
        port = re.search(r":(\d+)/", address)[1]
        process.kill()
        process.wait()
        tab.wait("!document.getElementById('banner').hidden")
        assert "does not answer" in tab.evaluate(text("#banner"))
    with workbench(small, port) as (address, _):
        tab.wait(f"{text('#banner')}.includes('not signed in')")
        assert tab.evaluate("document.getElementById('bench').hidden")
        tab.go(address)
        tab.wait(there("#statements tbody tr"), 60)
        tab.wait(f"document.getElementById('batch-editor-text').value === {QUESTIONS!r}")
        tab.wait(f"{text('#results-title')} === 'Release answers.lrm'")
        assert all("Failed to load" in one or "status of" in one for one in tab.console)
        tab.console.clear()


def test_while_a_release_is_made(tab, small):
    """No dry run is offered, and the budget is that of the ledger as soon as it is charged."""
    write_example(small, rows=300_000)
    with workbench(small) as (address, _):
        tab.go(address)
        planned(tab)
        tab.click("#create-budget button")
        tab.wait(there("#budgets tbody tr"))
        set_text(tab, "#amount", "0.25")
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"), 60)
        tab.evaluate(
            "window.seen = []; window.watch = setInterval(() => window.seen.push("
            "[document.querySelector('#dry-run button').disabled,"
            f" {text('#budgets tbody')}, {text('#dry-result')}]), 10); true"
        )
        tab.click("#ask-release")
        tab.wait("document.getElementById('confirm').open")
        tab.click("#confirm-yes")
        tab.wait("document.querySelector('#dry-run button').disabled", 60)
        tab.wait(f"{text('#dry-result')}.includes('Released')", 120)
        tab.wait("!document.querySelector('#dry-run button').disabled")
        seen = tab.evaluate("clearInterval(window.watch); window.seen")
        making = [left for disabled, left, said in seen if disabled and "being made" in said]
        assert making
        assert all(disabled for disabled, _, said in seen if "being made" in said)
        assert "0.75" in making[-1]
        assert "0.75" in tab.evaluate(text("#budgets tbody"))
