"""CSV files for spreadsheets of other languages: the same numbers, spelt as people there do."""

import csv
import io

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.errors import UsageError
from lrm.files.csv_cells import NumberStyle

DOMAIN = lrm.Domain(
    [lrm.Dates("day", "1997-01-01", "1998-12-31", by="year"), lrm.Categories("w", ["a;b", "c,d"])],
    "t",
)
STYLES = [(",", ""), (",", "."), (",", " "), (".", ","), (".", "'"), (".", "")]


@pytest.fixture(scope="module")
def release():
    text = "SELECT day, w, COUNT(*) AS n FROM t GROUP BY day, w; SELECT COUNT(*) AS m FROM t"
    plan = lrm.plan(lrm.sql(text, DOMAIN), "noise-on-data")
    return lrm.release(plan, np.full(4, 1_234_567), epsilon="0.37")


def read(path, decimal, thousands):
    text = path.read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(text), delimiter=";" if decimal == "," else ","))

    def number(cell):
        return float(cell.replace(thousands, "").replace(decimal, "."))

    return rows[0], rows[1:], number


@pytest.mark.parametrize(("decimal", "thousands"), STYLES)
def test_every_style_holds_the_same_numbers(release, tmp_path, decimal, thousands):
    release.write(tmp_path / "all.csv", decimal=decimal, thousands=thousands)
    header, rows, number = read(tmp_path / "all.csv", decimal, thousands)
    answers = release.table().number_columns()
    for name, column in answers.items():
        cells = [number(row[header.index(name)]) for row in rows]
        assert cells == column.tolist()
    assert {row[header.index("day")] for row in rows} == {"1997", "1998", ""}
    assert {row[header.index("w")] for row in rows} == {"a;b", "c,d", ""}
    release.write(tmp_path / "n.csv", statement="n", decimal=decimal, thousands=thousands)
    header, rows, number = read(tmp_path / "n.csv", decimal, thousands)
    frame = release.frame("n").number_columns()
    assert [number(row[header.index("n_low")]) for row in rows] == frame["n_low"].tolist()
    assert [row[0] for row in rows] == ["1997", "1997", "1998", "1998"]


def test_styles_are_for_csv_alone(release, tmp_path):
    for ending in (".json", ".xlsx", ".parquet", ".md"):
        with pytest.raises(UsageError, match="are for CSV files"):
            release.write(tmp_path / f"a{ending}", decimal=",")
        assert not (tmp_path / f"a{ending}").exists()
    for decimal, thousands in ((",", ","), (".", "."), ("·", ""), (".", "_")):
        with pytest.raises(UsageError, match="decimal"):
            NumberStyle(decimal, thousands)


def test_the_command_writes_a_folder_in_a_style(release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release.save("a.lrm")
    options = ["--decimal", "comma", "--thousands", "point"]
    done = CliRunner().invoke(main, ["show", "a.lrm", "-o", "tables/", *options])
    assert done.exit_code == 0, done.output
    first = (tmp_path / "tables" / "n.csv").read_text(encoding="utf-8").splitlines()[1]
    assert first.startswith('1997;"a;b";1.23')


@pytest.mark.parametrize(
    "command",
    [
        ["query", "a.lrm", "SELECT COUNT(*) AS k FROM t", "--csv", "x.csv"],
        ["explain", "p.lrm", "--epsilon", "1", "--plot", "x.svg"],
        ["compare", "identity:4", "--mechanisms", "noise-on-data", "--plot", "x.svg"],
        ["show", "a.lrm", "-o", "x.csv"],
    ],
)
def test_no_command_replaces_a_file_unless_told_to(release, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    release.save("a.lrm")
    release.plan.save("p.lrm")
    place = tmp_path / command[-1]
    place.write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code != 0
    assert "add --force" in refused.stderr
    assert place.read_text(encoding="utf-8") == "mine"
    done = CliRunner().invoke(main, [*command, "--force"])
    assert done.exit_code == 0, done.output
    assert place.read_text(encoding="utf-8") != "mine"
