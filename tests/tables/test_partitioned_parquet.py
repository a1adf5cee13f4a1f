"""Folders of Parquet files: their columns are texts that the domain gives a meaning."""

from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrm.domain import Categories, Domain, Integers, PrivacyUnit
from lrm.errors import TableError
from lrm.tables import open_table

CELL = {"null": "cell", "outside": "cell"}
STATES = ["NY", "a b", "x/y", "é", "100%", "a=b", "it's", "01", "a,b", "[z]", "q?*", '"', "", None]
DOMAIN = Domain(
    [
        Integers("year", 2023, 2024, **CELL),
        Categories("st ate", [state for state in STATES if state], **CELL),
        Integers("n", 0, 20),
    ]
)


def write(root, rows):
    """Write (year, state, n) as Hive does: a folder per value, odd characters as %41."""
    for i, (year, state, n) in enumerate(rows):
        name = "__HIVE_DEFAULT_PARTITION__" if state is None else quote(state, safe=" ,[]\"'")
        folder = root / f"year={year}" / f"st%20ate={name}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [n]}), folder / f"part-{i}.parquet")


ROWS = [
    (year, state, i) for year in ("2023", "2024", "old", "02024") for i, state in enumerate(STATES)
]


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "made=1" / "vis its"  # a folder above the table states nothing
    write(root, ROWS)
    hidden = root / "_temporary" / "year=1"
    hidden.mkdir(parents=True)
    pq.write_table(pa.table({"other": [1]}), hidden / "x.parquet")
    (root / "_SUCCESS").touch()
    return root


def expected(domain):
    def read(year):
        return int(year) if year.isdigit() else "no number"

    return domain.count(
        [{"year": read(year), "st ate": state, "n": n} for year, state, n in ROWS]
    ).tolist()


@pytest.mark.parametrize("pattern", ["", "/**/*.parquet", "/*/*/part-*.parquet"])
@pytest.mark.parametrize("way", [0, 1])
def test_counts_by_folders(folder, pattern, way, monkeypatch):
    table = open_table(f"{folder}{pattern}")
    assert ("year", "text (folder)") in table.columns()
    assert not any("made" in name for name, _ in table.columns())
    ways = table.source.ways()
    monkeypatch.setattr(table.source, "ways", lambda: ways[way:])
    table.check(DOMAIN)
    assert table.counts(DOMAIN)._open().tolist() == expected(DOMAIN)
    years = Domain([Integers("y", 2023, 2024, column="year")])  # no column of the files
    assert table.counts(years)._open().tolist() == [14, 28]
    by_person = Domain([Integers("n", 0, 20)], unit=PrivacyUnit("year", 2))
    assert table.counts(by_person)._open().sum() == 8


def test_the_folder_of_one_partition_is_a_table_without_its_column(folder):
    table = open_table(folder / "year=2024")
    assert [name for name, _ in table.columns()] == ["n", "st ate"]


def refusal(place):
    with pytest.raises(TableError) as raised:
        open_table(place).check(Domain([Integers("n", 0, 9)]))
    return str(raised.value)


def part(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"n": [1]}), path)


def test_what_is_refused_shows_no_value(tmp_path):
    part(tmp_path / "a/year=1/x.parquet")
    part(tmp_path / "a/x.parquet")
    assert "in folders of different columns" in refusal(tmp_path / "a")
    part(tmp_path / "b/who=Ann/x.parquet", n=[1], who=["Ann"])
    assert "has a column 'who', which its folders state too" in refusal(tmp_path / "b")
    part(tmp_path / "c/year=1/YEAR=2/x.parquet")
    assert "state a column twice" in refusal(tmp_path / "c")
    part(tmp_path / "d/who=Ann%ff/x.parquet")
    assert "not text in UTF-8" in refusal(tmp_path / "d")
    part(tmp_path / "e/who=Ann%00/x.parquet")
    assert "not text in UTF-8" in refusal(tmp_path / "e")
    part(tmp_path / "f/who=Ann/x.parquet", n=[1], File_Index=[7])
    assert "has a column 'file_index', which DuckDB needs" in refusal(tmp_path / "f")
    part(tmp_path / "g/who=Ann/x.parquet")
    part(tmp_path / "g/who=Bob/x.parquet", m=[1])
    assert "who=…/x.parquet' has no column 'n'" in refusal(tmp_path / "g")
    for place in "abcdefg":
        assert not any(name in refusal(tmp_path / place) for name in ("Ann", "Bob"))


@pytest.mark.parametrize("log", ["_delta_log/0.json", ".hoodie/x", "metadata/v1.metadata.json"])
def test_formats_whose_files_alone_are_not_the_table(tmp_path, log):
    part(tmp_path / "x.parquet")
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).touch()
    assert "may hold rows that were removed" in refusal(tmp_path)
