"""Raw escape characters from files reached the terminal.

A file, a column or a query can be named ``\\x1b]0;…``: printed as it is, it retitles the
window, moves the cursor or hides the line before it.
"""

import csv
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from lrm.cli import main

BAD = "\x1b[2Jn\x9b31m\u202egood\u2066\x07\x7f[red]$x"
"""Escape sequences (7 and 8 bits), changes of direction, a bell, rich's markup, a formula."""

CONTROLS = set("\x1b\x9b\u202e\u2066\x07\r\x7f")

DOMAIN = f"""
lrm-domain: 1
table: t
unit: row
attributes:
  - {{name: {json.dumps(BAD)}, kind: categories, values: [{json.dumps(BAD)}, b], null: drop,
     outside: drop}}
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("domain.yaml").write_text(DOMAIN, encoding="utf-8")
    column = '"' + BAD + '"'
    Path("q.sql").write_text(f'SELECT COUNT(*) AS "{BAD}" FROM t GROUP BY {column}', newline="")
    with Path("t.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[BAD], ["b"]])


def run(*args):
    result = CliRunner().invoke(main, list(args))
    for text in (result.stdout, result.stderr):
        assert not CONTROLS.intersection(text), text
    return result


def test_names_from_files_are_printed_without_control_characters():
    planned = run("plan", "q.sql", "--domain", "domain.yaml", "-o", "p.lrm")
    assert planned.exit_code == 0, planned.output
    checked = run("domain", "check", "domain.yaml")
    assert "\\x1b[2Jn\\x9b31m\\u202egood\\u2066\\x07\\x7f[red]$x" in checked.stdout
    created = run("budget", "create", BAD, "--limit", "1", "--ledger", "l.sqlite")
    assert created.exit_code == 1
    assert "printable characters only" in created.stderr
    run("release", "p.lrm", "--table", "t.csv", "--epsilon", "1", "--no-ledger", "-o", "r.lrm")
    for args in (
        ("show", "r.lrm"),
        ("show", "p.lrm"),
        ("explain", "p.lrm", "--epsilon", "1"),
        ("query", "r.lrm", "--file", "q.sql"),
        ("domain", "init", "t.csv"),
    ):
        assert run(*args).exit_code == 0, args


def test_json_is_escaped_and_stays_the_same_text():
    run("plan", "q.sql", "--domain", "domain.yaml", "-o", "p.lrm")
    run("release", "p.lrm", "--table", "t.csv", "--epsilon", "1", "--no-ledger", "-o", "r.lrm")
    shown = json.loads(run("show", "r.lrm", "--json").stdout)
    assert BAD in shown["answers"][0]["query"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("w.csv", f"query,a,b\n{BAD},1,x\n"),
        ("d.yaml", f"lrm-domain: 1\nunit: row\n{json.dumps(BAD)}: 1\n"),
        ("d.yaml", f"lrm-domain: 1\n{BAD}"),
        ("q.sql", f'SELECT "{BAD}" FROM t'),
        ("q.sql", f"SELECT {BAD} FROM t"),
    ],
)
def test_errors_that_quote_a_file_are_one_line_without_control_characters(name, text):
    Path(name).write_text(text, encoding="utf-8", newline="")
    if name.endswith(".yaml"):
        result = run("domain", "check", name)
    else:
        result = run("plan", name, "--domain", "domain.yaml")
    assert result.exit_code in {1, 2}
    assert result.stderr.startswith("lrm: ")
    assert result.stderr.count("\n") == 1


def test_names_of_files_too():
    name = BAD.replace("/", "") + ".csv"
    Path(name).write_text("a\n")
    result = run("plan", name)
    assert result.exit_code == 2
    os.unlink(name)  # noqa: PTH108


def test_pictures_and_pages_show_such_names():
    run("plan", "q.sql", "--domain", "domain.yaml", "-o", "p.lrm")
    run("release", "p.lrm", "--table", "t.csv", "--epsilon", "1", "--no-ledger", "-o", "r.lrm")
    assert run("show", "r.lrm", "--plot", "r.svg").exit_code == 0
    ET.parse("r.svg")  # noqa: S314 - our own file; control characters are no XML
    assert run("report", "r.lrm").exit_code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert not CONTROLS.intersection(page)


def test_half_a_surrogate_pair_is_refused_where_it_is_declared():
    """Such a text cannot be written to any file; it ended in a traceback of the encoder."""
    text = DOMAIN.replace(json.dumps(BAD) + ", b]", '"x\\ud800", b]')
    Path("half.yaml").write_text(text, encoding="utf-8")
    result = run("domain", "check", "half.yaml")
    assert result.exit_code == 2
    assert "half.yaml line 6" in result.stderr
