"""Every format of `OUTPUTS` writes all releases; nothing is replaced unless that is asked for."""

import csv
import datetime as dt
import io
import json
import math
import re
import sys
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.errors import UsageError
from lrm.views.outputs import OUTPUTS
from stored_releases import CASES, FOLDER, sheet_text, stored

TEN = dt.datetime.fromisoformat("2023-05-01 10:00")


def show(*arguments):
    return CliRunner().invoke(main, ["show", *map(str, arguments)])


@pytest.mark.parametrize("ending", OUTPUTS)
def test_every_format_writes_every_release(tmp_path, ending):
    for name in CASES:
        stored(name).write(tmp_path / f"{name}{ending}")
        assert (tmp_path / f"{name}{ending}").stat().st_size


@pytest.mark.parametrize("ending", OUTPUTS)
def test_every_format_writes_one_statement(tmp_path, ending):
    release = stored("several-answers")
    release.write(tmp_path / f"table{ending}", statement="n")
    assert (tmp_path / f"table{ending}").stat().st_size


@pytest.mark.parametrize("name", CASES)
def test_one_statement_has_the_same_rows_in_every_format(tmp_path, name):
    release = stored(name)
    for number, frame in enumerate(release.frames(), start=1):
        for ending in (".csv", ".json", ".parquet"):
            release.write(tmp_path / f"{number}{ending}", statement=str(number))
        text = (tmp_path / f"{number}.csv").read_text(encoding="utf-8")
        header, *lines = csv.reader(io.StringIO(text, newline=""))
        facts = json.loads((tmp_path / f"{number}.json").read_text(encoding="utf-8"))
        table = pq.read_table(tmp_path / f"{number}.parquet")
        assert header == facts["columns"] == table.column_names == frame.header
        groups = len(frame.columns)
        for line, row, values in zip(lines, facts["rows"], frame.plain_rows(), strict=True):
            assert [value if value is None else str(value) for value in row] == [
                value if value is None else str(value) for value in values
            ]
            numbers = [None if cell == "" else float(cell) for cell in line[groups:]]
            assert numbers == values[groups:]
        for place, column in enumerate(table.columns[groups:], start=groups):
            assert [None if math.isnan(value) else value for value in column.to_pylist()] == [
                row[place] for row in frame.plain_rows()
            ]


def test_months_and_days_are_written_without_a_time(tmp_path):
    for name in CASES:
        stored(name).write(tmp_path / name)
        for path in (tmp_path / name).iterdir():
            rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
            for row in rows:
                row.pop("name", None)  # the identity of an answer, which is that of its label
                assert "00:00:00" not in " ".join(row.values())
    months = (tmp_path / "truncated-months" / "n.csv").read_text(encoding="utf-8")
    assert re.findall(r"^\d{4}-\d\d,", months, re.MULTILINE)[0] == "1997-01,"


@pytest.mark.parametrize(
    ("value", "in_csv", "in_arrow"),
    [
        ("TIMESTAMP '2023-05-01 10:00:00'", "2023-05-01 10:00:00", TEN),
        ("DATE '1850-05-01'", "1850-05-01", dt.date(1850, 5, 1)),  # a sheet begins in 1900
        ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)", "0044-03-15 (BC)"),
        ("9223372036854775808", "9223372036854775808", "9223372036854775808"),
        ("'Infinity'::DOUBLE", "inf", math.inf),
        ("'NaN'::DOUBLE", "nan", "nan"),
    ],
)
def test_groups_of_any_value_are_written_in_every_format(tmp_path, value, in_csv, in_arrow):
    """NaN ended the workbook, whole numbers beyond 64 bits data frames, after the charge."""
    text = f"SELECT CASE WHEN a > 1 THEN {value} END AS g, COUNT(*) AS n FROM t GROUP BY g"
    batch = lrm.sql(text, lrm.Domain([lrm.Integers("a", 0, 3)], "t"))
    release = lrm.release(lrm.plan(batch, effort="quick"), [4, 0, 5, 1], epsilon=1)
    release.save(tmp_path / "release.lrm")
    release = lrm.load_release(tmp_path / "release.lrm")
    for ending in OUTPUTS:
        release.write(tmp_path / f"answers{ending}")
    rows = csv.DictReader(io.StringIO((tmp_path / "answers.csv").read_text(encoding="utf-8")))
    assert in_csv in {row["g"] for row in rows}
    release.to_pandas()
    release.to_polars()
    (frame,) = release.frames()
    found = frame.to_arrow()["g"].to_pylist()
    assert in_arrow in found or any(map(math.isnan, filter(None, found)))
    assert show(tmp_path / "release.lrm").exit_code == 0


def test_an_unknown_ending_lists_those_that_are_known(tmp_path):
    known = f"ending in .csv, .parquet, .* or {[*OUTPUTS][-1]}".replace(".", r"\.", 2)
    with pytest.raises(UsageError, match=known):
        stored("bins").write(tmp_path / "answers.docx")
    result = show(FOLDER / "bins.lrm", "-o", tmp_path / "answers.docx")
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_a_format_is_one_file_and_one_entry(tmp_path, monkeypatch):
    """The one that CONTRIBUTING.md adds."""
    page = Path(__file__).parents[2] / "CONTRIBUTING.md"
    section = page.read_text(encoding="utf-8").split("## A new output format")[1]
    module = ModuleType("tsv_file")
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], module.__dict__)  # noqa: S102 - our page
    monkeypatch.setitem(sys.modules, "tsv_file", module)
    monkeypatch.setitem(OUTPUTS, ".tsv", "tsv_file")
    assert show(FOLDER / "rates.lrm", "-o", tmp_path / "answers.tsv").exit_code == 0
    lines = (tmp_path / "answers.tsv").read_text(encoding="utf-8").splitlines()
    (frame, *_) = stored("rates").frames()
    assert lines[:2] == [frame.title, "\t".join(frame.header)]
    assert len(lines[2].split("\t")) == len(frame.header)


def test_files_are_replaced_with_force_alone(tmp_path):
    release = FOLDER / "bins.lrm"
    for target in ("answers.csv", "tables", "answers.md"):
        path = tmp_path / target
        assert show(release, "-o", path).exit_code == 0
        refused = show(release, "-o", path)
        assert refused.exit_code == 2
        assert "exists already" in refused.output
        assert show(release, "-o", path, "--force").exit_code == 0


def test_former_options_write_what_output_writes(tmp_path):
    release = FOLDER / "rates.lrm"
    pairs = {"--csv": "csv", "--export": "json", "--xlsx": "xlsx"}
    for option, ending in pairs.items():
        old, new = tmp_path / f"old.{ending}", tmp_path / f"new.{ending}"
        assert show(release, option, old, "-o", new).exit_code == 0
        if ending != "xlsx":
            assert old.read_bytes() == new.read_bytes()


def test_markdown_has_the_words_of_labels_and_no_marks_of_their_own(tmp_path):
    stored("awkward-names").write(tmp_path / "answers.md")
    text = (tmp_path / "answers.md").read_text(encoding="utf-8")
    assert "| =north" in text
    assert text.startswith("# ")


def test_a_workbook_says_what_is_guaranteed_and_what_its_tables_leave_out(tmp_path):
    stored("average-of-bins").write(tmp_path / "answers.xlsx")
    (frame,) = stored("average-of-bins").frames()
    lines = sheet_text(tmp_path / "answers.xlsx")
    about = lines.splitlines()
    for text in (frame.stated["guarantee"], "95 %", frame.title):
        assert any(line.endswith(f" {text}") for line in about), text
    for caveat in frame.caveats:
        assert f" {caveat.sentence}\n" in lines


def test_json_names_the_statement_of_each_answer_and_the_caveats_of_each_statement(tmp_path):
    for name in ("average-of-bins", "equal-names", "matrix", "rates"):
        release = stored(name)
        release.write(tmp_path / f"{name}.json")
        facts = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert [entry["statement"] for entry in facts["statements"]] == list(release)
        assert [entry["title"] for entry in facts["statements"]] == [
            frame.title for frame in release.frames()
        ]
        kept = [
            [caveat.facts for caveat in frame.caveats if caveat.kind != "display"]
            for frame in release.frames()
        ]
        assert [entry["caveats"] for entry in facts["statements"]] == kept
        owners = [answer["statement"] for answer in facts["answers"]]
        assert owners == release.to_pandas()["statement"].tolist()
