"""The workbench in a real Chromium: editors, what is kept, and what stays in its place."""

import json
import time

from workbench.browsing import (
    append,
    check_accessible,
    editor,
    planned,
    rated,
    reload,
    set_text,
    stop,
    text,
    there,
    wait_saved,
)
from workbench.served import QUESTIONS, serving

OFFERED = ".cm-tooltip-autocomplete li .cm-completionLabel"


def test_undo_after_completion(page, small):
    with serving(small) as server:
        page.go(server.address)
        rated(page)
        append(page, "SELECT COUNT(*) AS some FROM visits WHERE s")
        page.wait(there(OFFERED))
        time.sleep(0.2)
        page.press("Enter")
        page.wait(f"{editor()}.then(x => x.endsWith('WHERE sex'))")
        page.press("z", modifiers=2)
        page.wait(f"{editor()}.then(x => x.endsWith('WHERE s'))")
        for _ in range(10):
            page.press("z", modifiers=2)
        same = f"{editor()}.then(x => x === {QUESTIONS!r})"
        page.wait(same)  # reading the file is no edit to undo
        page.press("y", modifiers=2)
        page.wait(f"{same}.then(x => !x)")
        assert page.console == []


def test_errors_stand_in_the_gutter_and_editors_are_as_tall_as_their_text(page, small):
    with serving(small) as server:
        page.go(server.address)
        rated(page)
        heights = [page.evaluate("document.querySelector('#batch-editor').offsetHeight")]
        append(page, "\n" * 30 + "SELECT COUNT(*) AS n FROM visits WHERE agee < 20;")
        page.wait(there("#batch-editor .cm-lint-marker-error"))
        heights.append(page.evaluate("document.querySelector('#batch-editor').offsetHeight"))
        assert heights[1] > heights[0] + 300
        scroller = "document.querySelector('#batch-editor .cm-scroller')"
        assert page.evaluate(f"{scroller}.scrollHeight <= {scroller}.clientHeight")
        append(page, " -- " + "a long remark " * 30)
        assert page.evaluate(f"{scroller}.scrollWidth <= {scroller}.clientWidth")  # it wraps
        assert page.evaluate(there(".tok-keyword"))
        assert page.evaluate(there(".tok-comment"))
        assert page.console == []


def test_the_guarantee_is_kept_in_the_folder(page, small):
    with serving(small) as server:
        page.go(server.address)
        stop(page)
        page.click("input[value=gaussian]")
        set_text(page, "#amount", "0.35")
        set_text(page, "#delta", "1e-7")
        wait_saved(small / "workbench.json", '"delta": "1e-7"')
    kept = json.loads((small / "workbench.json").read_text())
    assert kept == {"noise": "gaussian", "amount": "0.35", "delta": "1e-7", "confidence": 0.95}
    with serving(small) as server:
        page.evaluate("sessionStorage.clear()")
        page.go(server.address)
        rated(page)
        assert page.evaluate("document.getElementById('amount').value") == "0.35"
        assert page.evaluate("document.getElementById('delta').value") == "1e-7"
        assert "ε = 0.35, δ = 1e-07" in page.evaluate(text("#key"))


def many_statements(folder, count=25):
    lines = [
        f"SELECT sex, COUNT(*) AS a{k} FROM visits WHERE age < {20 + 20 * (k % 2)} GROUP BY sex;"
        for k in range(count)
    ]
    (folder / "questions.sql").write_text("\n".join(lines) + "\n")


def test_the_dry_run_is_near_by_keyboard(page, small):
    """Tab reaches every field of the errors, a link skips them, and tabs are before the editor."""
    many_statements(small)
    with serving(small) as server:
        page.go(server.address)
        stop(page)
        rows = page.evaluate("document.querySelectorAll('#statements tbody tr').length")
        assert rows == 25
        page.evaluate("document.getElementById('batch-editor-text').focus()")
        presses = 0
        while page.evaluate("document.activeElement.id") != "plan-tab":
            page.press("Tab", modifiers=8)
            presses += 1
            assert presses < 13
        page.press("ArrowRight")
        presses += 1
        while page.evaluate("document.activeElement.textContent") != "Dry run":
            page.press("Tab")
            presses += 1
            assert presses < 13
        # forwards, from the editor to the table
        page.click("#plan-tab")
        page.evaluate("document.getElementById('batch-editor-text').focus()")
        presses = 0
        while page.evaluate("document.activeElement.id") != "past-statements":
            page.press("Tab")
            presses += 1
            assert presses < 13
        seen = []
        while page.evaluate("document.activeElement.id") != "beside":
            page.press("Tab")
            seen.append(page.evaluate("document.activeElement.ariaLabel || ''"))
        assert sum(name.startswith("Expected size of") for name in seen) == 25
        assert sum(name.startswith("Importance of") for name in seen) == 25
        assert len(seen) == 52  # the headings are one stop
        page.evaluate("document.getElementById('past-statements').focus()")
        page.press("Enter")
        page.wait("document.activeElement.id === 'beside'")


PLACES = """
window.places = new Set();
(function look() {
  const place = (e) => {
    const r = e.getBoundingClientRect();
    return [r.x, r.y + scrollY, r.height];
  };
  const row = document.querySelectorAll('#statements tbody tr')[20];
  window.places.add(JSON.stringify([place(document.getElementById('release-tab')),
    place(document.getElementById('beside')), place(row), row.cells[0].textContent]));
  setTimeout(look, 10);
})();
"""
"""Keeps every place that some elements of the page have."""


def test_nothing_moves_while_plans_arrive(page, small):
    many_statements(small)
    with serving(small) as server:
        page.go(server.address)
        page.wait(there("#statements tbody tr"))  # before there is any plan
        page.evaluate(PLACES)
        planned(page)
        rated(page)
        places = page.evaluate("new Promise(r => setTimeout(() => r([...places]), 50))")
        assert len(places) == 1, places


def test_a_dry_run_that_a_better_plan_makes_void_stays_in_its_place(page, small):
    with serving(small) as server:
        page.go(server.address)
        planned(page)
        page.click("#release-tab")
        page.click("#create-budget button")
        page.wait(there("#budgets dl"))
        page.click("#dry-run button")
        page.wait(there("#ask-release"))
        place = "JSON.stringify(document.getElementById('ask-release').getBoundingClientRect())"
        before = page.evaluate(place)
        page.evaluate("document.getElementById('search').click()")  # search longer
        page.wait("document.getElementById('ask-release').disabled")
        assert page.evaluate(place) == before
        assert "better plan" in page.evaluate(text("#dry-note"))


SLOW_BUDGETS = """(() => {
  const fetched = window.fetch;
  window.fetch = async (address, options) => {
    const answer = await fetched(address, options);
    if (String(address).endsWith("/budgets")) await new Promise((done) => setTimeout(done, 500));
    window.late = String(address).endsWith("/budgets");
    return answer;
  };
  document.getElementById("ledger").dispatchEvent(new Event("change"));
})()"""


def test_a_late_answer_about_budgets_does_not_hide_one_that_was_created(page, small):
    with serving(small) as server:
        page.go(server.address)
        stop(page)
        page.click("#release-tab")
        page.wait(there("#create-budget:not([hidden])"))
        page.evaluate(SLOW_BUDGETS)
        page.click("#create-budget button")
        page.wait(there("#budgets dl"))
        page.wait("window.late === true")
        time.sleep(0.1)
        assert page.evaluate(there("#budgets dl"))


SLOW_COMPILER = """(() => {
  const fetched = window.fetch;
  window.held = new Promise((done) => { window.release = done; });
  window.fetch = async (address, options) => {
    const answer = await fetched(address, options);
    if (String(address).endsWith("/compile")) {
      window.compiled = true;
      await window.held;
    }
    return answer;
  };
})()"""


def test_what_is_typed_while_a_text_is_compiled_is_not_planned_with_it(page, small):
    """The text that was compiled is saved and planned; the one with an error comes next."""
    with serving(small) as server:
        page.go(server.address)
        stop(page)
        page.evaluate(SLOW_COMPILER)
        append(page, "-- a remark\n")
        page.wait("window.compiled === true")
        append(page, "SELECT COUNT(*) AS n FROM visits WHERE agee < 20;")
        page.evaluate("window.release()")
        wait_saved(small / "questions.sql", "-- a remark\n")
        page.wait(f"{text('#batch-editor-problems')}.startsWith('Line ')")
        wait_saved(small / "questions.sql", "agee")
        assert page.console == []


def order(page):
    heads = "[...document.querySelectorAll('#statements tbody th')]"
    return page.evaluate(f"{heads}.map(e => e.firstChild.textContent)")


def test_only_a_click_on_a_heading_sorts(page, small):
    many_statements(small, 6)
    with serving(small) as server:
        page.go(server.address)
        stop(page)
        assert order(page) == [f"a{k} by sex" for k in range(6)]
        page.click("#statements th[data-field=half] button")
        first = order(page)
        page.click("#statements th[data-field=importance] button")
        page.click("#statements tbody tr:nth-child(3) input[data-field=importance]")
        page.press("a", modifiers=2)
        page.type("9")
        page.press("Enter")
        wait_saved(small / "questions.sql", "-- importance: 9\n")
        stop(page)
        assert order(page) == [f"a{k} by sex" for k in range(6)]
        assert sorted(first) == sorted(order(page))
        # a click on a bar goes to its statement
        line = (small / "questions.sql").read_text().split("\n").index("-- importance: 9") + 2
        page.wait(f"{text('#statements tbody tr:nth-child(3) .note')} === 'line {line}'")
        page.click("#statements tbody tr:nth-child(3) svg")
        assert "AS a2 " in page.evaluate("getSelection().toString()")
        check_accessible(page, "a statement is selected")
        reload(page)
        rated(page)
        assert page.console == []
