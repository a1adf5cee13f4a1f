"""Files, frames, JSON and the page hold the same numbers and labels."""

import csv
import datetime as dt
import math
import re
import zipfile
from html import unescape
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

import lrm
from lrm.domain import Categories, Dates, Domain, Integers
from lrm.errors import WorkloadError
from lrm.views.outputs.csv_files import LONG_FILE, write_folder
from lrm.views.outputs.export import Export
from lrm.views.outputs.json_file import frame_facts
from lrm.views.release_document import EVERYTHING, listed_tables
from lrm.views.release_page import release_page
from lrm.views.releases import release_facts

DOMAIN = Domain(
    [
        Dates("admitted", "2023-01-01", "2023-12-31", by="month"),
        Categories("ward", ["=north", "south, east"]),
        Categories("urgent", [True, False]),
        Integers("age", 0, 3),
    ],
    "visits",
)
EPOCH = dt.datetime.fromisoformat("1899-12-30")  # from which sheets count days
TEXT = """
-- Visits by month
SELECT ward, YEAR(admitted) AS year, MONTH(admitted) AS month, COUNT(*) AS by_month
FROM visits GROUP BY ward, YEAR(admitted), MONTH(admitted);
SELECT DATE_TRUNC('month', admitted) AS day, COUNT(*) AS daily FROM visits GROUP BY 1;
SELECT age, urgent, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY age, urgent;
SELECT ward, urgent, COUNT(*) AS sub FROM visits GROUP BY ROLLUP (ward, urgent);
SELECT COUNT(*) AS total FROM visits;
SELECT ward, COUNT(*) AS few FROM visits WHERE ward = '=north' GROUP BY ward
"""


@pytest.fixture(scope="module")
def release():
    batch = lrm.sql(TEXT, DOMAIN)
    counts = np.random.default_rng(1).integers(0, 500, DOMAIN.size)
    return lrm.release(lrm.plan(batch, "noise-on-data"), counts, epsilon=1)


@pytest.fixture(scope="module")
def tables(release):
    return {table.statement.name: table for table in listed_tables(release, EVERYTHING)}


def test_every_number_is_that_of_the_long_table(release, tables):
    facts = {one["name"]: one for one in release_facts(release)["answers"]}
    labels = release.plan.workload.shown
    for table in tables.values():
        for row, group in enumerate(table.frame.groups()):
            for place, name in enumerate(table.frame.answers):
                position = int(table.frame.positions[row, place])
                one = facts[labels[position].name]
                assert one["query"] == name
                assert one["group"] == dict(group)
                for key in ("answer", "standard_error", "low", "high"):
                    value = float(table.numbers[key][row, place])
                    assert one[key] == (value if math.isfinite(value) else None)


def test_one_statement_as_json_has_the_rows_of_its_file(release, tables):
    for name, table in tables.items():
        header, rows = table.frame.header, table.frame.rows()
        facts = frame_facts(release.frame(name))
        assert facts["columns"] == header
        for row, told in zip(rows, facts["rows"], strict=True):
            assert [isinstance(value, float) for value in row] == [
                isinstance(value, float) for value in told
            ]
            assert [value for value in row if isinstance(value, float)] == [
                value for value in told if isinstance(value, float)
            ]
    assert frame_facts(release.frame("visits_by_month")) == frame_facts(release.frame("by_month"))


def test_wide_files_hold_the_table_of_each_statement(release, tables, tmp_path):
    names = write_folder(Export(release), tmp_path / "tables")
    assert names == [*(f"{name}.csv" for name in tables), LONG_FILE]
    for name, table in tables.items():
        with (tmp_path / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as opened:
            header, *lines = csv.reader(opened)
        expected, rows = table.frame.header, table.frame.plain_rows()
        assert header == expected
        assert len(lines) == len(rows)
        for line, row in zip(lines, rows, strict=True):
            for text, value in zip(line, row, strict=True):
                if isinstance(value, float):
                    assert float(text) == value
                else:
                    plain = "" if value is None else str(value)
                    assert text.lstrip("'") == plain


def cells_of(path):
    """Sheets of a workbook as lists of rows, read without the library that wrote it."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as opened:
        texts = [
            "".join(part.itertext())
            for part in ET.fromstring(opened.read("xl/sharedStrings.xml"))  # noqa: S314 - ours
        ]
        book = ET.fromstring(opened.read("xl/workbook.xml"))  # noqa: S314 - ours
        for number, sheet in enumerate(book.iter(f"{space}sheet"), start=1):
            data = opened.read(f"xl/worksheets/sheet{number}.xml")
            rows = []
            for row in ET.fromstring(data).iter(f"{space}row"):  # noqa: S314 - ours
                cells = {}
                for cell in row.iter(f"{space}c"):
                    value = cell.findtext(f"{space}v")
                    kind, column = cell.get("t"), re.match("[A-Z]+", cell.get("r"))[0]
                    readers = {"s": lambda v: texts[int(v)], "b": lambda v: v == "1"}
                    cells[column] = readers.get(kind, float)(value)
                rows.append(cells)
            yield sheet.get("name"), rows


def test_sheets_hold_the_same(release, tables, tmp_path):
    release.write(tmp_path / "answers.xlsx")
    sheets = dict(cells_of(tmp_path / "answers.xlsx"))
    assert list(sheets) == [*tables, "about"]
    for name, table in tables.items():
        header, rows = table.frame.header, table.frame.rows()
        first, *lines = sheets[name]
        assert list(first.values()) == header
        for line, row in zip(lines, rows, strict=True):
            held = [value for value in row if value is not None]
            for cell, value in zip(line.values(), held, strict=True):
                if isinstance(value, dt.datetime):
                    assert EPOCH + dt.timedelta(cell) == value
                elif isinstance(value, float) and math.isinf(value):
                    assert cell == str(value)
                elif isinstance(value, float):
                    assert cell == pytest.approx(value, rel=1e-15)
                else:
                    assert cell == value


def test_frames_have_the_types_of_their_columns(release):
    frame = release["by_month"].to_pandas()
    assert str(frame["month"].dtype) == str(frame["year"].dtype) == "Int64"
    assert frame["ward"].cat.ordered
    assert list(frame["ward"].cat.categories) == ["=north", "south, east"]
    assert sorted(frame["month"].unique()) == list(range(1, 13))
    assert str(release["n"].to_arrow().schema.field("urgent").type) == "bool"
    days = release["daily"].to_arrow().column("day").to_pylist()
    assert days[:2] == [EPOCH + dt.timedelta(44927), EPOCH + dt.timedelta(44958)]
    kinds = release["by_month"].to_polars().schema
    assert kinds["ward"] == pl.Enum(["=north", "south, east"])
    assert kinds["month"] == pl.Int64


def test_pivoted_frames_agree_with_the_table(release, tables):
    wide = release["n"].pivot()
    table = tables["n"]
    for row, codes in enumerate(table.frame.codes.tolist()):
        age = int(table.frame.columns[0].labels[codes[0]])
        urgent = table.frame.columns[1].labels[codes[1]] == "true"
        assert wide.loc[age, urgent] == table.numbers["answer"][row, 0]
    with pytest.raises(WorkloadError, match="no numbers 'median'"):
        release["n"].pivot("median")
    assert release["n"].plot().axes


def test_the_page_holds_the_same_labels_and_rounded_numbers(release, tables):
    page = release_page(release)
    for name, table in tables.items():
        if not table.statement.columns:
            continue
        part = page.partition(f'<details id="table-{name.replace("_", "-5f-")}"')[2]
        part = part.partition("</details>")[0]
        texts = {unescape(text) for text in re.findall(r">([^<>]+)<", part)}
        for row in table.table().rows:
            for cell in row:
                assert not cell.text or cell.text in texts, (name, cell.text)


def test_months_are_written_as_people_write_them(release, tables):
    assert "May 2023" in release_page(release)
    assert "2023-05-01 00:00:00" not in release_page(release)
    texts = [row[0].text for row in tables["by_month"].table().rows]
    assert texts[4] == "May 2023"


def test_groups_that_where_excludes_are_not_listed(tables):
    assert [group for ((_, group),) in tables["few"].frame.groups()] == ["=north"]


def test_totals_come_after_their_groups(tables):
    texts = [row[0].text for row in tables["sub"].table().rows]
    assert texts == ["=north", "south, east", "total"]
