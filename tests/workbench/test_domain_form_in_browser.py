"""The form of the domain in a real Chromium: from a table's columns to a plan, by keyboard."""

from lrm.domain.file import read_domain
from workbench.browsing import check_accessible, focus, planned, text, there, wait_saved
from workbench.served import serving

STOPS = """(() => {
  const all = [...document.querySelectorAll('input, select, textarea, .cm-content')];
  window.stops = all.filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0
    && (e.type !== 'radio' || e.checked));
  return window.stops.length;
})()"""
"""The fields that can be seen; of a group of choices, the chosen one."""


def reached(tab):
    """The fields that Tab does not come to, from the first of the page on."""
    count = tab.evaluate(STOPS)
    assert count > 10
    tab.evaluate("document.activeElement.blur(); window.seen = new Set()")
    for _ in range(count + 40):
        tab.press("Tab")
        tab.evaluate("window.seen.add(document.activeElement)")
    return tab.evaluate("stops.filter((e) => !seen.has(e)).map((e) => e.outerHTML.slice(0, 80))")


def fill(tab, entry, field, value):
    """Type into a field of the form, and leave it by Tab."""
    focus(tab, f'[data-entry="{entry}"][data-field="{field}"]')
    tab.type(value)
    tab.press("Tab")


def test_a_domain_is_drafted_from_columns_and_completed_in_its_form(page, small):
    (small / "domain.yaml").unlink()
    (small / "questions.sql").unlink()
    with serving(small) as server:
        page.go(server.address)
        page.wait("document.getElementById('use-empty').checkVisibility()")
        page.click("#use-empty")
        page.wait(there("#domain-form fieldset"))
        focus(page, "#draft-table")
        page.type("visits.csv")
        page.press("Enter")
        page.wait(f"{text('#domain-form')}.includes('is TODO')")
        assert (
            page.evaluate("document.querySelectorAll('#domain-form .wrong:not([hidden])').length")
            == 2
        )
        assert page.evaluate(there("#domain-editor .cm-lint-marker-error"))
        assert reached(page) == []
        check_accessible(page, "a draft in its form")
        choose = (
            "((e, v) => { e.value = v; e.dispatchEvent(new Event('change', {bubbles: true})); })"
        )
        for entry, field, value in (("unit", "kind", "row"), ("1", "kind", "integers")):
            wanted = f"document.querySelector('[data-entry=\"{entry}\"][data-field={field}]')"
            page.evaluate(f"{choose}({wanted}, {value!r})")
            wait_saved(small / "domain.yaml", f": {value}")
        page.wait(there('[data-entry="1"][data-field=low]'))
        fill(page, "0", "values", "f, m")
        wait_saved(small / "domain.yaml", "[f, m]")
        fill(page, "1", "low", "0")
        wait_saved(small / "domain.yaml", "low: 0")
        fill(page, "1", "high", "59")
        planned(page)
        assert page.console == []
    domain = read_domain(small / "domain.yaml")
    assert [attribute.size for attribute in domain.attributes] == [2, 60]
    assert "no\n# value was read" in (small / "domain.yaml").read_text()  # its comments stay
