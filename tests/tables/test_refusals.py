"""What cannot work is refused before anything is spent, and no error tells a value."""

import re
import sys
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import LrmError, MissingExtra, TableError
from lrm.tables import duckdb_connection, open_table
from lrm.tables.base import Column, guarded
from lrm.tables.count import count_of
from lrm.tables.duckdb_batches import count_batches
from lrm.tables.duckdb_reading import Reading
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.tally import Tally
from lrm.testing.domains import DOMAINS
from lrm.testing.table import WEIRD


def test_a_missing_column_is_named_with_those_that_exist(awkward):
    _, table, _ = awkward
    with pytest.raises(TableError, match=r"no column 'wage'; it has 'who', 'alias', 'state'"):
        table.check(Domain([Integers("age", 0, 1), Integers("wage", 0, 1)]))
    with pytest.raises(TableError, match=r"no column 'Age'; did you mean 'age'\?"):
        table.check(Domain([Integers("Age", 0, 1)]))
    with pytest.raises(TableError, match="no column 'patient'"):
        table.check(Domain([Integers("age", 0, 1)], unit=PrivacyUnit("patient", 1)))


def test_a_csv_file_without_a_header_shows_none_of_its_rows(tmp_path):
    (tmp_path / "t.csv").write_text("f,62\nm,31\n")
    with pytest.raises(TableError, match="nor any other that is declared") as refused:
        open_table(str(tmp_path / "t.csv")).check(Domain([Integers("age", 0, 99)]))
    assert "62" not in str(refused.value)


@pytest.mark.parametrize(
    ("attribute", "needs"),
    [
        (Integers("state", 0, 1), "a number"),
        (Bins("flag", [0, 1]), "a number"),
        (Categories("age", ["1", "2"]), "text"),
        (Categories("state", [True]), "a boolean"),
        (Categories("at", [1]), "a number"),
        (Dates("age", "2024-01-01", "2024-01-02"), "a date or a timestamp"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(awkward, attribute, needs):
    form, table, _ = awkward
    if form in {"csv", "pandas objects"}:
        return  # their columns have no types: a value of another kind is in no cell
    with pytest.raises(TableError, match=f"column '{attribute.name}' .* needs {needs}"):
        table.check(Domain([attribute]))


def test_a_person_is_not_named_by_a_float(awkward):
    form, table, _ = awkward
    domain = Domain([Integers("age", 0, 1)], unit=PrivacyUnit("ratio", 1))
    if form == "csv":
        return table.check(domain)  # names are text there, all of them
    with pytest.raises(TableError, match="has no exact text"):
        table.check(domain)
    return None


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nowhere/data.csv", "no file matches 'nowhere/data.csv'"),
        ("nowhere/*.parquet", "no file matches"),
        ("nowhere.duckdb::people", "there is no database file 'nowhere.duckdb'"),
        ("data.xlsx", "not a table that lrm can open"),
        (7, "int is not a table that lrm can open"),
        ("postgresql://host/db", "must name one table"),
        ("postgresql://host/db?table=a;b", "cannot be reached"),
        ("postgresql://host/db?table=a..b", "not the name of a table"),
    ],
)
def test_what_is_not_there_is_said(source, sentence):
    with pytest.raises(TableError, match=sentence):
        open_table(source)


def test_folders_and_missing_tables(tmp_path):
    (tmp_path / "x.parquet").mkdir()
    with pytest.raises(TableError, match=r"no file matches '.*/\*\*/\*\.parquet'"):
        open_table(tmp_path / "x.parquet")
    duckdb.connect(str(tmp_path / "x.duckdb")).close()
    with pytest.raises(TableError, match="has no table 'people'"):
        open_table(f"{tmp_path}/x.duckdb::people")
    (tmp_path / "bad.parquet").write_text("this is no Parquet, secret 42")
    with pytest.raises(TableError, match="reading the schema") as caught:
        open_table(tmp_path / "bad.parquet")
    assert "secret" not in str(caught.value)


def test_files_of_a_pattern_must_agree(tmp_path):
    pq.write_table(pa.table({"age": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"age": pa.array([2**40], pa.int64())}), tmp_path / "2.parquet")
    table = open_table(f"{tmp_path}/*.parquet")
    with pytest.raises(TableError, match=r"2\.parquet' has no column 'age' of type INTEGER"):
        table.check(Domain([Integers("age", 0, 9)]))
    (tmp_path / "1.csv").write_text("age,sex\n1,f\n")
    (tmp_path / "2.csv").write_text("sex,age\nf,1\n")
    with pytest.raises(TableError, match=r"header of .*2\.csv' differs"):
        open_table(f"{tmp_path}/*.csv").check(Domain([Integers("age", 0, 9)]))


@pytest.mark.parametrize(
    ("text", "fault"), [("", "is empty"), ("a,b,a\n1,2,3\n", "names columns 1 and 3 alike")]
)
def test_headers(tmp_path, text, fault):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(TableError, match=fault):
        open_table(tmp_path / "x.csv").columns()


@pytest.mark.parametrize(
    ("source", "module", "wanted"),
    [
        ("postgresql://host/db?table=t", "psycopg", "'psycopg[binary]'"),
        ("spark:people", "pyspark", "pyspark"),
        ("x.parquet", "duckdb", "duckdb"),
    ],
)
def test_a_missing_extra_names_the_command(monkeypatch, tmp_path, source, module, wanted):
    if source == "x.parquet":
        pq.write_table(pa.table({"a": [1]}), tmp_path / source)
        source = tmp_path / source
    for loaded in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    duckdb_connection._shared.cache_clear()
    with pytest.raises(MissingExtra, match=f"pip install {re.escape(wanted)}"):
        open_table(source)


def test_errors_of_engines_do_not_quote_values():
    secret = "4711"

    def fail():
        raise ValueError(f"could not convert {secret}")

    with pytest.raises(TableError, match="counting failed with ValueError") as caught:
        guarded("counting", fail)
    error = caught.value
    while error is not None:
        assert secret not in str(error)
        error = error.__cause__ or error.__context__


def test_a_missing_attribute_of_a_driver_is_named():
    """It is a word of the code that looks for it, whatever the rows are."""

    class OldRelation:
        def __getattr__(self, name):
            raise AttributeError(f"no {name} for 4711")

    class OldDriver:
        def sql(self, text):
            del text
            return OldRelation()

    count = count_of(Domain([Bins("a", range(100))]), None, lists=False)
    rows = DuckDbRows(count, Reading("t", (Column("a", "INTEGER", "integer"),), None))
    for driver, missing in ((object(), "sql"), (OldDriver(), "to_arrow_reader")):
        with pytest.raises(TableError, match=f"has no '{missing}'; its version may be") as caught:
            guarded("counting", partial(count_batches, driver, rows, Tally(count)))
        assert "4711" not in str(caught.value)


def test_an_attribute_that_a_driver_misses_itself_is_not_named():
    with pytest.raises(TableError, match="counting failed with AttributeError") as caught:
        guarded("counting", lambda: getattr("", "4711"))
    assert "4711" not in str(caught.value)


def test_a_key_press_does_not_quote_the_error_that_it_came_upon():
    """Closing a database after an error takes a while, in which Ctrl-C may be pressed."""

    def close():
        try:
            int("4711 is private")
        except ValueError:
            raise KeyboardInterrupt  # noqa: B904 - as a signal does

    with pytest.raises(KeyboardInterrupt) as caught:
        guarded("counting", close)
    assert caught.value.__context__ is None


def test_names_and_categories_are_never_sql(awkward):
    _, table, rows = awkward
    attack = "x'); DROP TABLE odd; --"
    domain = Domain(
        [Categories(WEIRD, [attack, "x", "`", '"', "\\", "\\'", "${a}", "$1"], outside="cell")]
    )
    assert table.counts(domain)._open().tolist() == domain.count(rows).tolist()
    assert table.counts(DOMAINS["names"])._open().sum() == len(rows)
    with pytest.raises(LrmError, match="no column"):
        table.check(Domain([Categories(attack, ["x"])]))


def test_a_domain_too_large_for_counts_is_refused(awkward):
    _, table, _ = awkward
    domain = Domain([Integers("huge", 0, 9_999_999), Integers("age", 0, 99)])
    with pytest.raises(TableError, match="1,000,000,000 cells"):
        table.check(domain)
