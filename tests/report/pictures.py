"""Take the pictures of reports, terminals and notebooks for the docs: ``make pictures``.

A report of 25 statements on synthetic rows, as a page (wide, narrow, dark, printed), in terminals
of 80 and 120 columns, and in a notebook whose own style sheet is Jupyter's.
"""

import base64
import html
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent.parent
for place in (ROOT, ROOT / "tests", ROOT / "tests" / "support"):
    sys.path.insert(0, str(place))

import lrm  # noqa: E402 - from here on, the packages of the repository
from benchmarks.report import ROWS, write_table  # noqa: E402
from report.browser import browser  # noqa: E402

PLACE = ROOT / "docs" / "img"
BATCHES = ROOT / "benchmarks" / "reports"

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


def release_of(folder):
    """A release of the hospital's report on synthetic rows."""
    domain = lrm.read_domain(BATCHES / "hospital.yaml")
    table = folder / "stays.csv"
    write_table(domain, ROWS["hospital"], table)
    text = (BATCHES / "hospital.sql").read_text(encoding="utf-8")
    plan = lrm.plan(lrm.sql(text, domain), effort="quick")
    plan.save(str(folder / "plan.lrm"))
    return lrm.release(plan, table, epsilon="1", ledger=None)


def main():
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        folder = Path(place)
        made = release_of(folder)
        made.save(folder / "answers.lrm")
        made.report(folder / "answers.html")
        for name, width, height, scheme in (
            ("report-wide", 1280, 1700, "light"),
            ("report-narrow", 390, 1400, "light"),
            ("report-narrow-dark", 390, 1400, "dark"),
            ("report-dark", 1280, 900, "dark"),
        ):
            tab.open(folder / "answers.html", width=width, scheme=scheme)
            keep(tab, name, width, height)
        tab.open(folder / "answers.html", width=794)
        tab.call("Emulation.setEmulatedMedia", media="print")
        keep(tab, "report-print", 794, 1123)
        for columns in (80, 120):
            shown = terminal(["show", "answers.lrm", "--limit", "6"], folder, columns)
            page = folder / "terminal.html"
            lines = "\n".join(shown.splitlines()[:64])
            body = (
                f"<style>{TERMINAL}</style><pre>$ lrm show answers.lrm\n{html.escape(lines)}</pre>"
            )
            page.write_text(f"<meta charset=utf-8>{body}", encoding="utf-8")
            tab.open(page, width=8 * columns + 32)
            keep(tab, f"terminal-{columns}", 8 * columns + 32, 1180, 16)
        cells = "".join(f"<div>{one._repr_html_()}</div>" for one in (made.plan, made[TABLE]))
        page = folder / "notebook.html"
        head = f"<meta charset=utf-8><style>{JUPYTER}</style>"
        page.write_text(
            f'{head}<body class="jp-RenderedHTMLCommon">{cells}</body>', encoding="utf-8"
        )
        tab.open(page, width=900)
        keep(tab, "notebook", 900, 1250)


TABLE = "by_department"

if __name__ == "__main__":
    main()
