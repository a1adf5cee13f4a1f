"""The workbench in a real Chromium: the whole way, by hand and by keyboard."""

import contextlib
import json
import re
import threading
import time

import numpy as np

from lrm.workbench import releasing
from lrm.workbench.commands import run
from workbench.browsing import (
    append,
    check_accessible,
    editor,
    focus,
    planned,
    rated,
    reload,
    set_text,
    stop,
    text,
    there,
    typical,
    unused_port,
    wait_saved,
    workbench,
)
from workbench.served import QUESTIONS, lrm, serving


def choose(tab, name, value):
    """Choose an option of a list."""
    tab.evaluate(
        f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById({name!r}))"
    )


def test_the_whole_way(page, tmp_path):  # noqa: PLR0915 - one long way
    """From an empty folder to answers to further questions, with a reload at every step."""
    tab = page
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
            rated(tab)
            seen.append(typical(tab))
        assert seen[0] == seen[1]
        tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        tab.wait(there("#rivals tbody tr"))
        tab.wait(there("#beside option[value=noise]"))
        choose(tab, "beside", "noise")
        tab.wait(f"{text('#beside-words')}.includes('noise guarantees pure')")
        rated(tab)
        check_accessible(tab, "planned")

        # a question is changed: wrong first, then right
        append(tab, "SELECT COUNT(*) AS teens FROM patients WHERE age < 13")
        tab.wait(f"{text('#batch-editor-problems')}.startsWith('Line 6')")
        assert "the nearest edges are" in tab.evaluate(text("#batch-editor-problems"))
        tab.press("Backspace")
        tab.press("Backspace")
        tab.type("20;")
        tab.wait(f"{text('#batch-editor-problems')} === ''")
        tab.wait(f"{text('#statements')}.includes('teens')")
        rated(tab)
        wait_saved(tmp_path / "questions.sql", "teens")
        assert typical(tab) != seen[1]
        stop(tab)
        reload(tab)
        tab.wait(f"{text('#statements')}.includes('teens')")
        rated(tab)

        # the slider answers at once, without a new plan
        at_tenth = typical(tab)
        plans = sorted(path.name for path in (tmp_path / "plans").iterdir())
        tab.evaluate("document.getElementById('slider').focus()")
        for _ in range(30):
            tab.press("ArrowRight")
        tab.wait("document.getElementById('amount').value === '0.2'")
        tab.wait(f"document.querySelectorAll('#key dd')[1].firstChild.textContent !== {at_tenth!r}")
        assert sorted(path.name for path in (tmp_path / "plans").iterdir()) == plans
        set_text(tab, "#amount", "0.1")
        tab.wait(f"document.querySelectorAll('#key dd')[1].firstChild.textContent === {at_tenth!r}")

        # a rehearsal spends nothing, and needs no budget
        tab.click("#release-tab")
        tab.click("#rehearse")
        tab.wait(f"{text('#rehearsal')}.includes('REHEARSAL')")
        assert tab.evaluate(there("#rehearsal table"))
        assert "rehearse plans/pure-" in tab.evaluate(text("#rehearsal-command"))
        check_accessible(tab, "rehearsal")
        assert not (tmp_path / "budget.sqlite").exists()
        tab.click("#rehearsal-close")

        # budget, dry run, release: a double click spends once
        tab.click("#dry-run button")
        tab.wait(there("#to-budget"))
        tab.click("#to-budget")
        assert tab.evaluate("document.activeElement.id") == "limit"
        assert all("dry-run" in line for line in tab.console)  # the one that was refused
        tab.console.clear()
        tab.click("#create-budget button")
        tab.wait(there("#budgets dl"))
        reload(tab)
        tab.wait(there("#budgets dl"))
        tab.wait("document.getElementById('table').value === 'patients.csv'")
        rated(tab)
        tab.click("#release-tab")
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"))
        assert "0.1 epsilon from the budget of 'patients'" in tab.evaluate(text("#dry-result"))
        # it is forgotten when a question changes
        tab.click("#plan-tab")
        append(tab, "-- the end")
        tab.wait("document.getElementById('ask-release').disabled")
        assert "make another one" in tab.evaluate(text("#dry-note"))
        tab.click("#release-tab")
        tab.click("#dry-run button")
        tab.wait("document.getElementById('ask-release')?.disabled === false")
        assert (tmp_path / "questions.sql").read_text().endswith("-- the end")
        tab.click("#ask-release")
        tab.wait("document.getElementById('confirm').open")
        words = tab.evaluate(text("#confirm-words"))
        for part in ("0.1 epsilon", "0.9 of 1", "patients.csv", "one row, added or removed"):
            assert part in words
        check_accessible(tab, "confirmation")
        tab.click("#confirm-yes", times=2)
        reload(tab)
        tab.click("#results-tab")
        tab.wait("!document.getElementById('results').hidden")
        tab.wait(f"{text('#results-title')} === 'Release answers.lrm'")
        tab.wait(f"{text('#dry-result')}.includes('Released')")

        # the report is in the page, and further questions cost nothing
        tab.wait(f"{text('#report')}.includes('What is not guaranteed')")
        assert tab.evaluate("document.querySelectorAll('iframe').length") == 0
        where = "WHERE state IN ('CA', 'WA') AND hiv = 'negative'"  # as the statement of the table
        question = f"SELECT COUNT(*) AS western FROM patients {where}"
        set_text(tab, "#further-text", question)
        tab.click("#further button")
        tab.wait(there("#further-answers tbody tr"))
        check_accessible(tab, "released")
        tab.click("#consistent")
        tab.wait(f"{text('#report')}.includes('Post-processing')")
        check_accessible(tab, "answers that add up")
        tab.click("#consistent")
        tab.wait(f"!{text('#report')}.includes('Post-processing')")
        downloads = {"behavior": "allow", "downloadPath": str(tmp_path / "downloads")}
        tab.call("Page.setDownloadBehavior", **downloads)
        tab.click("#downloads button:nth-child(2)")
        wait_saved(tmp_path / "downloads" / "answers.csv", "")
        saved, written = (
            [line.split(",") for line in (folder / "answers.csv").read_text().splitlines()]
            for folder in (tmp_path / "downloads", tmp_path)
        )
        assert [line[:-5] for line in saved] == [line[:-5] for line in written]
        ends = [[list(map(float, line[-5:])) for line in lines[1:]] for lines in (saved, written)]
        np.testing.assert_allclose(*ends, rtol=1e-12)  # of intervals, whatever was asked before
        shown = tab.evaluate(text("#further-answers tbody"))
        assert tab.console == []
        origin = address.partition("#")[0]
        elsewhere = [url for url in tab.requests if not url.startswith((origin, "blob:", "data:"))]
        assert elsewhere == []

        # the command line finds the same files, and makes the same of them
        said = json.loads(lrm("query", "answers.lrm", question, "--json"))
        assert f"{said['answers'][0]['answer']:,.0f}" in shown
        history = json.loads(lrm("budget", "history", "--ledger", "budget.sqlite", "--json"))
        assert [one["kind"] for one in history["entries"]] == ["create", "spend"]
        lrm("report", "answers.lrm", "-o", "by-hand.html")
        pages = [(tmp_path / name).read_text() for name in ("by-hand.html", "answers.html")]
        # the marks of a drawing differ from process to process
        assert len({re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL) for page in pages}) == 1
        plan = re.search(r"plans/pure-\w+\.lrm", tab.evaluate(text("#errors-command")))[0]
        checked = json.loads(lrm("explain", plan, "--epsilon", "0.1", "--json"))
        assert f"{checked['root_mean_squared_error']:.4g}" == at_tenth
        tab.console.clear()


OFFERED = ".cm-tooltip-autocomplete li .cm-completionLabel"


def test_by_keyboard_alone(page, small):  # noqa: PLR0915 - one long way
    tab = page
    with serving(small) as server:
        tab.go(server.address, width=390, scheme="dark")
        planned(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        check_accessible(tab, "narrow and dark")
        # completion: attributes, then values within quotes
        focus(tab, "#batch-editor-text")
        tab.press("End", modifiers=2)
        tab.type("SELECT COUNT(*) AS some FROM visits WHERE s")
        tab.wait(there(OFFERED))
        assert tab.evaluate(text(OFFERED)) == "sex"
        time.sleep(0.2)  # until then Enter begins a new line
        tab.press("Enter")
        tab.type(" = 'f")
        tab.wait(f"!{there(OFFERED)}")
        tab.press("Backspace")
        tab.press(" ", modifiers=2)
        tab.wait(there(OFFERED))
        options = f"[...document.querySelectorAll({OFFERED!r})].map(e => e.textContent)"
        assert tab.evaluate(options) == ["f", "m"]
        time.sleep(0.2)
        tab.press("ArrowDown")
        tab.press("Enter")
        tab.type("';")
        tab.press("Escape")
        tab.wait(f"""{editor()}.then(x => x.endsWith("sex = 'm';"))""")
        tab.wait(f"{text('#statements')}.includes('some')")
        planned(tab)
        # importance, by its field; it is written into the file
        focus(tab, "#statements button")
        for _ in range(3):
            tab.press("ArrowDown")
        tab.press("ArrowRight")
        tab.press("ArrowRight")
        assert "Importance of some" in tab.evaluate("document.activeElement.ariaLabel")
        tab.press("a", modifiers=2)
        tab.type("9")
        tab.press("Tab")
        wait_saved(small / "questions.sql", "-- importance: 9\nSELECT COUNT(*) AS some")
        tab.wait(there("#beside option[value=equal]"))
        planned(tab)
        # the inverse
        focus(tab, "#more > summary")
        tab.press("Enter")
        focus(tab, "#wanted")
        tab.type("12")
        tab.press("Enter")
        tab.wait(f"{text('#wanted-found')}.startsWith('ε = ')")
        # a budget, a dry run, and the release
        focus(tab, "#plan-tab")
        tab.press("ArrowRight")
        focus(tab, "#create-budget button")
        tab.press("Enter")
        tab.wait(there("#budgets dl"))
        focus(tab, "#table")
        tab.press("Enter")
        tab.wait(there("#ask-release"))
        focus(tab, "#ask-release")
        tab.press("Enter")
        tab.wait("document.getElementById('confirm').open")
        assert tab.evaluate("document.activeElement.id") == "confirm-no"
        focus(tab, "#confirm-yes")
        tab.press("Enter")
        tab.wait(f"{text('#dry-result')}.includes('Released')")
        assert (small / "answers.lrm").exists()
        assert tab.console == []


def test_two_tabs_and_a_server_that_is_killed(page, small):
    tab, port = page, unused_port()
    with workbench(small, port) as (address, process):
        origin = address.partition("#")[0]
        tab.go(address)
        stop(tab)
        first = tab.new_tab()
        tab.go(origin)  # the browser was let in already
        stop(tab)
        # what is typed in one tab appears in the other
        append(tab, "SELECT COUNT(*) AS everybody FROM visits;")
        tab.wait(f"{text('#statements')}.includes('everybody')")
        stop(tab)
        tab.click("#release-tab")
        tab.click("#create-budget button")
        tab.wait(there("#budgets dl"))
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"))
        second = tab.turn_to(first)
        tab.wait(f"{editor()}.then(x => x.includes('everybody'))")
        tab.wait(f"{text('#statements')}.includes('everybody')")
        stop(tab)
        tab.click("#release-tab")
        tab.wait(there("#budgets dl"))
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"))
        tab.click("#ask-release")
        tab.click("#confirm-yes")
        tab.wait(f"{text('#dry-result')}.includes('Released')")
        # the confirmation of the other tab is void now, and spends nothing
        tab.turn_to(second)
        tab.evaluate("document.getElementById('ask-release')?.click()")
        tab.evaluate("document.getElementById('confirm-yes').click()")
        time.sleep(0.5)
        history = json.loads(lrm("budget", "history", "--ledger", "budget.sqlite", "--json"))
        assert [one["kind"] for one in history["entries"]] == ["create", "spend"]
        (small / "questions.sql").write_text(QUESTIONS)
        tab.console.clear()  # refusals are logged by the browser itself
        process.kill()
        process.wait()
        tab.wait("!document.getElementById('banner').hidden")
        assert "does not answer" in tab.evaluate(text("#banner"))
    with workbench(small, port) as (address, _):
        tab.wait(f"{text('#banner')}.includes('not signed in')")
        assert tab.evaluate("document.getElementById('bench').hidden")
        tab.go(address)
        tab.wait(there("#statements tbody tr"))
        tab.wait(f"{editor()}.then(x => x === {QUESTIONS!r})")
        tab.wait(f"{text('#results-title')} === 'Release answers.lrm'")
        told = [one for one in tab.console if "Failed to load" not in one]
        assert [one for one in told if "status of" not in one] == []
        tab.console.clear()


def test_while_a_release_is_made(page, small, monkeypatch):
    """No dry run is offered, and the budget is that of the ledger as soon as it is charged."""
    tab, go_on = page, threading.Event()

    def run_slowly(*args):
        done = run(*args)
        assert go_on.wait(300)
        return done

    monkeypatch.setattr(releasing, "run", run_slowly)
    with serving(small) as server, contextlib.ExitStack() as ending:
        ending.callback(go_on.set)
        tab.go(server.address)
        stop(tab)
        tab.click("#release-tab")
        tab.click("#create-budget button")
        tab.wait(there("#budgets dl"))
        tab.click("#plan-tab")
        set_text(tab, "#amount", "0.25")
        tab.click("#release-tab")
        tab.click("#dry-run button")
        tab.wait(there("#ask-release"))
        tab.evaluate(
            "window.seen = []; window.watch = setInterval(() => window.seen.push("
            "[document.querySelector('#dry-run button').disabled,"
            f" {text('#budgets')}, {text('#dry-result')}]), 10); true"
        )
        tab.click("#ask-release")
        tab.wait("document.getElementById('confirm').open")
        tab.click("#confirm-yes")
        charged = "([, left, said]) => left.includes('0.75') && said.includes('being made')"
        tab.wait(f"window.seen.some({charged})")
        go_on.set()
        tab.wait(f"{text('#dry-result')}.includes('Released')")
        tab.wait("!document.querySelector('#dry-run button').disabled")
        seen = tab.evaluate("clearInterval(window.watch); window.seen")
        assert all(disabled for disabled, _, said in seen if "being made" in said)
        assert "0.75" in tab.evaluate(text("#budgets"))


def test_who_asks_while_a_check_runs_waits_for_the_next_one(page, small):
    """Else a dry run that is asked for while a text is saved is of the text before."""
    tab = page
    with serving(small) as server:
        tab.go(server.address)
        runs = tab.evaluate(
            "import('/elements.js').then(async ({newest}) => { let done = 0; const run = newest("
            "async () => { await new Promise((r) => setTimeout(r, 50)); done += 1; }); run(); "
            "await run(); return done; })"
        )
        assert runs == 2
