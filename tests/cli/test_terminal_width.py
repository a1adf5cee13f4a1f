"""Tables on narrow terminals: numbers are always whole."""

import pytest

from lrm.cli.terminal import print_document
from lrm.views.blocks import Document, plain_table


def print_table(columns, rows, *, words):
    print_document(Document("", (plain_table("", columns, rows, words=words),)))


ERRORS = ("mechanism", "error at ε = 1e-05, δ = 1e-09", "ratio to best", "measurements", "time")
ROWS = [
    ("noise-on-data", "41,600,000,000,000", "1.000", "64", "0.01 s"),
    ("a mechanism with a long name", "5.2429e+15", "126.0", "1,048,576", "1,234 s*"),
]
ANSWERS = ("query", "answer", "standard error", "95 % interval")
FEW = [("n[state=NY, age=[0, 10)]", "31,866", "89.44", "31,691 … 32,042")]


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize(("columns", "rows"), [(ERRORS, ROWS), (ANSWERS, FEW)])
def test_no_number_is_cut(capsys, monkeypatch, width, columns, rows):
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(columns, rows, words=columns[:1])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= width
    for row in rows:
        for cell in row[1:]:
            assert any(cell in line for line in printed.splitlines()), cell
        assert "".join(row[0].split())[:9] in "".join(printed.split())


def test_a_table_that_fits_has_one_line_per_row(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(ANSWERS, FEW, words=("query",))
    printed = capsys.readouterr().out.splitlines()
    assert len([line for line in printed if line.strip()]) == 3


def test_titles_wrap_before_rows_become_lines(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    print_table(("query", "standard error"), [("a" * 30, "1,234")], words=("query",))
    printed = capsys.readouterr().out
    assert "standard" in printed.splitlines()[0]
    assert any("a" * 30 in line and "1,234" in line for line in printed.splitlines())
