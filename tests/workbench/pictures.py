"""Take the pictures of the workbench that the docs show: ``python tests/workbench/pictures.py``."""

import base64
import datetime as dt
import io
import sys
import tempfile
from pathlib import Path

import pandas as pd
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from report.browser import browser
from workbench.browsing import append, editor, focus, planned, rated, text, there, workbench
from workbench.test_in_browser import choose

PLACE = Path(__file__).parent.parent.parent / "docs" / "img"


def take(tab, name, top="0", width=1280, height=900):
    """Scroll an element to the top, and keep what a window of this size shows."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    place = f"document.querySelector({top!r})" if top != "0" else "document.body"
    tab.evaluate(f"{place}.scrollIntoView({{behavior: 'instant'}})")
    tab.evaluate("new Promise(r => setTimeout(r, 500))")  # the editors measure themselves again
    shot = tab.call("Page.captureScreenshot")
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    small = image.quantize(64, dither=Image.Dither.NONE)
    small.save(PLACE / f"workbench-{name}.png", optimize=True)


def take_form(tab, folder):
    """A domain that was drafted from the columns of a table, partly filled in."""
    table = pd.DataFrame({"ward": ["a"], "age": [1], "admitted": [dt.date(2024, 1, 1)]})
    table.to_parquet(folder / "stays.parquet")
    with workbench(folder) as (address, _):
        tab.go(address)
        tab.wait("document.getElementById('use-empty').checkVisibility()")
        tab.click("#use-empty")
        tab.wait(there("#domain-form fieldset"))
        focus(tab, "#draft-table")
        tab.type("stays.parquet")
        tab.press("Enter")
        tab.wait(f"{text('#domain-form')}.includes('is TODO')")
        focus(tab, '[data-entry="0"][data-field=values]')
        tab.type("surgery, medicine, children")
        tab.press("Tab")
        tab.wait(f"{editor('domain')}.then(x => x.includes('surgery'))")
        take(tab, "domain", "#domain-part", height=900)


def main():  # noqa: PLR0915 - one picture after the other
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        take_form(tab, Path(place))
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        folder = Path(place) / "survey"
        folder.mkdir()
        with workbench(folder) as (address, _):
            tab.go(address)
            tab.wait("document.getElementById('use-example').checkVisibility()")
            tab.click("#use-example")
            rated(tab)
            planned(tab)
            tab.evaluate("document.activeElement.blur()")
            take(tab, "planned", height=700)
            append(tab, "SELECT COUNT(*) AS teens FROM patients WHERE age < 13 AND s")
            tab.wait(f"{text('#batch-editor-problems')} !== ''")
            take(tab, "error", "header", height=420)
            for _ in range(len("13 AND s")):
                tab.press("Backspace")
            tab.type("20;")
            tab.press("Escape")
            tab.wait(f"{text('#statements')}.includes('teens')")
            planned(tab)
            for index, kind, value in ((2, "importance", "9"), (2, "expected", "1500")):
                tab.evaluate(
                    f"(e => {{ e.value = '{value}'; e.dispatchEvent(new Event('change')); }})"
                    f"(document.querySelectorAll('input[data-field={kind}]')[{index}])"
                )
                tab.wait(f"{editor()}.then(x => x.includes('{kind}: '))")
                tab.evaluate("new Promise(r => setTimeout(r, 2000))")
                planned(tab)
            tab.wait(there("#beside option[value=equal]"))
            choose(tab, "beside", "equal")
            tab.evaluate("document.getElementById('more').open = true")
            tab.wait(there("#rivals tbody tr"))
            tab.wait(f"{text('#statements')}.includes(' %')")
            rated(tab)
            take(tab, "compared", "header", height=1000)
            tab.evaluate("document.getElementById('more').open = false")
            tab.click("#release-tab")
            tab.click("#create-budget button")
            tab.wait(there("#budgets dl"))
            tab.click("#dry-run button")
            tab.wait(there("#ask-release"))
            tab.click("#ask-release")
            tab.wait("document.getElementById('confirm').open")
            take(tab, "confirm", "header", height=700)
            tab.click("#confirm-yes")
            tab.wait(f"{text('#dry-result')}.includes('Released')")
            tab.click("#results-tab")
            question = "SELECT COUNT(*) AS western FROM patients WHERE state IN ('CA', 'WA')"
            question += " AND hiv = 'positive'"
            tab.evaluate(f"document.getElementById('further-text').value = {question!r}")
            tab.click("#further button")
            tab.wait(there("#further-answers tbody tr"))
            take(tab, "released", "header", height=1100)
            tab.go(address.partition("#")[0], width=390, scheme="dark")
            rated(tab)
            take(tab, "narrow-dark", "#errors-title", width=390, height=1000)
            tab.go(address.partition("#")[0], width=1280, scheme="dark")
            rated(tab)
            take(tab, "dark", height=700)


if __name__ == "__main__":
    main()
