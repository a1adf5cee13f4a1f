"""How a CSV file writes dates and booleans, and a table spells categories: declared, row by row."""

import datetime as dt
import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lrm
from engines import postgres_url
from lrm.domain import Categories, CsvForm, Dates, Domain, PrivacyUnit
from lrm.domain.file import domain_text, parse_domain
from lrm.errors import DomainError, TableError
from lrm.tables import open_table

CELL = {"null": "cell", "outside": "cell"}
YEAR = Dates("day", "2023-01-01", "2023-12-31", **CELL)
OK = Categories("ok", [True, False], **CELL)


def counted(path, domain, lines, header="day;ok"):
    path.write_text("\n".join([header, *lines, ""]))
    table = open_table(path)
    table.check(domain)
    return table.counts(domain)._open().tolist()


def day_of(text, form):
    """The day that Python reads, also with one digit for a day or month, or None."""
    try:
        return dt.datetime.strptime(text.strip(), form).date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return None


FORMS = ["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d-%m-%y", "%d %m %Y"]
FORMS += ["%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S"]


@pytest.mark.parametrize("form", FORMS)
def test_dates_are_read_as_python_reads_them(tmp_path, form):
    rng = random.Random(form)  # noqa: S311 - no secret
    domain = Domain([YEAR], csv=CsvForm(delimiter=";", dates=form))
    texts = [
        "",
        "x",
        "31.02.2023",
        "2023-05-03",
        "00.01.2023",
        "13/13/2023",
        "3.5.2023",
        "03.05.23",
    ]
    texts += ["1.1.20233", "١.٥.٢٠٢٣", "03.05.2023\t", "03.05.2023 24:99", "20230503 ", "2023053"]
    days = [
        dt.datetime(2022 + i // 300, 1 + i % 12, 1 + i % 28, i % 24, tzinfo=dt.UTC)
        for i in range(0, 900, 7)
    ]
    texts += [day.strftime(form) for day in days]
    texts += [text.replace("0", "", 1) for text in texts[-40:]]
    rng.shuffle(texts)
    found = counted(tmp_path / "t.csv", domain, [f"{text};1" for text in texts])
    expected = [0] * YEAR.size
    for text in texts:
        day = day_of(text, form) if text.isascii() else None
        if form == "%Y%m%d" and len(text.strip()) != 8:
            day = None
        if "24:99" in text and form == "%d.%m.%Y %H:%M":
            day = dt.date(2023, 5, 3)  # the time is ignored
        cell = YEAR.cell_of(None if text == "" else day or "unreadable")
        expected[cell] += 1
    assert found == expected


def test_booleans_and_blanks(tmp_path):
    form = CsvForm(delimiter=";", true=["ja", "J", "1"], false=["nein", "0"])
    lines = ["x;ja", "x; JA ", "x;j", "x;1", "x;nein", "x;0", "x;true", "x;f", "x;", 'x;"0"']
    assert counted(tmp_path / "t.csv", Domain([OK], csv=form), lines) == [4, 3, 2, 1]
    plain = CsvForm(delimiter=";")
    assert counted(tmp_path / "t.csv", Domain([OK], csv=plain), lines) == [1, 1, 7, 1]
    only = CsvForm(delimiter=";", true=["ja"])
    assert counted(tmp_path / "t.csv", Domain([OK], csv=only), lines) == [2, 1, 6, 1]


def test_formats_hold_by_person_and_among_marginals(tmp_path):
    form = CsvForm(delimiter=";", dates="%d.%m.%Y", true=["ja"], false=["nein"])
    lines = ["03.05.2023;ja", "04.05.2023;nein", "2023-05-04;ja", "05.05.2023;oui"]
    month = Dates("day", "2023-01-01", "2023-12-31", "month")
    for unit in (PrivacyUnit(), PrivacyUnit("who", 1)):
        domain = Domain([month, Categories("ok", [True, False])], "t", unit, form)
        rows = [f"p{i};{line}" for i, line in enumerate(lines)]
        found = counted(tmp_path / "t.csv", domain, rows, "who;day;ok")
        assert sum(found) == 2
        assert found[8:10] == [1, 1]


SEX = Categories("x", ["f", "m"], {"f": ["w", "weiblich", ""], "m": ["M", "é"]}, **CELL)
TEXTS = ["f", "w", "weiblich", "", "m", "M", "é", "W", " w", "?", None]
EXPECTED = [4, 3, 3, 1]
MANY = Categories("x", [f"v{i}" for i in range(90)], {"v7": ["w", "é"], "v9": ["m"]}, **CELL)


@pytest.mark.parametrize(
    "form", ["csv", "parquet", "duckdb", "arrow", "pandas", "objects", "polars", "enum"]
)
def test_spellings_on_local_engines(tmp_path, form):
    table = pa.table({"x": pa.array(TEXTS, pa.string())})
    source = {
        "arrow": table,
        "pandas": table.to_pandas(),
        "objects": pd.DataFrame({"x": pd.Series(TEXTS, dtype=object)}),
        "enum": pd.DataFrame({"x": pd.Categorical(TEXTS)}),
        "polars": pl.from_arrow(table),
    }.get(form)
    if form == "csv":
        source = tmp_path / "t.csv"
        lines = ["" if text is None else f'"{text}"' for text in TEXTS]
        source.write_text("\n".join(["x", *lines, ""]))
    if form in {"parquet", "duckdb"}:
        import duckdb

        source = tmp_path / "t.parquet"
        pq.write_table(table, source)
        if form == "duckdb":
            with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
                db.execute(f"CREATE TABLE t AS SELECT * FROM '{source}'")
            source = f"{tmp_path}/t.duckdb::t"
    assert open_table(source).counts(Domain([SEX]))._open().tolist() == EXPECTED
    many = open_table(source).counts(Domain([MANY]))._open()
    assert (many[7], many[9], many[90], many[91]) == (2, 1, 7, 1)


def test_spellings_on_postgres():
    import psycopg

    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS spelled")
        db.execute("CREATE TABLE spelled (x text)")
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO spelled VALUES (%s)", [(text,) for text in TEXTS])
    opened = open_table(url + ("&" if "?" in url else "?") + "table=spelled")
    assert opened.counts(Domain([SEX]))._open().tolist() == EXPECTED
    assert opened.counts(Domain([MANY]))._open()[[7, 9, 90, 91]].tolist() == [2, 1, 7, 1]


def test_spellings_on_spark(spark):
    frame = spark.createDataFrame([(text,) for text in TEXTS], "x string")
    assert open_table(frame, name="t").counts(Domain([SEX]))._open().tolist() == EXPECTED
    many = open_table(frame, name="t").counts(Domain([MANY]))._open()
    assert many[[7, 9, 90, 91]].tolist() == [2, 1, 7, 1]


def test_formats_are_of_csv_files_and_text_elsewhere_is_refused(tmp_path):
    """A Parquet file has types: a text is no date there, whatever the domain says of CSV files."""
    form = CsvForm(dates="%d.%m.%Y", true=["ja"], false=["nein"])
    pq.write_table(pa.table({"day": ["03.05.2023"], "ok": ["ja"]}), tmp_path / "t.parquet")
    for attribute in (YEAR, OK):
        with pytest.raises(TableError, match="change the domain, or read a view"):
            open_table(tmp_path / "t.parquet").check(Domain([attribute], csv=form))


@pytest.mark.parametrize(
    "form",
    ["", "%d.%m", "%d.%m.%Y.%y", "%d.%m.%B", "%d.%m.%Y%", "%d%d%m%Y", "%d1%m%Y", "%d\n%m%Y", 5],
)
def test_forms_of_dates_that_are_refused(form):
    with pytest.raises(DomainError, match="csv: dates must be a form such as"):
        CsvForm(dates=form)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"true": "ja"}, "must be a list"),
        ({"true": [""]}, "must be a list"),
        ({"true": [True]}, "must be a list"),
        ({"true": ["f"]}, "both written 'f'"),
        ({"true": ["Ja"], "false": ["jA "]}, "both written 'ja'"),
    ],
)
def test_spellings_of_booleans_that_are_refused(words, match):
    with pytest.raises(DomainError, match=match):
        CsvForm(**words)


@pytest.mark.parametrize(
    ("values", "spellings", "match"),
    [
        (["a", "b"], {"c": ["x"]}, "declared values"),
        (["a", "b"], {"a": ["b"]}, "given twice"),
        (["a", "b"], {"a": ["x"], "b": ["x"]}, "given twice"),
        (["a", "b"], {"a": "x"}, "must be a list"),
        (["a", "b"], {"a": [1]}, "must be texts"),
        (["a", "b"], {"a": ["\0"]}, "must be texts"),
        ([1, 2], {1: ["x"]}, "values that are texts"),
        ([True, False], {True: ["ja"]}, "declared under csv"),
    ],
)
def test_spellings_of_categories_that_are_refused(values, spellings, match):
    with pytest.raises(DomainError, match=match):
        Categories("x", values, spellings)


FILE = """\
lrm-domain: 1
unit: row
csv: {delimiter: ";", dates: "%d.%m.%Y", true: [ja, 1, yes], false: [nein, 0, no]}
attributes:
  - {name: x, kind: categories, values: [f, m], spellings: {f: [w]}, null: drop, outside: drop}
"""


def test_domain_files_say_it_and_are_written_back():
    domain = parse_domain(FILE)
    words = {"true": ["ja", "1", "yes"], "false": ["nein", "0", "no"]}
    assert domain.csv == CsvForm(";", dates="%d.%m.%Y", **words)
    assert domain.attributes[0] == Categories("x", ["f", "m"], {"f": ["w"]})
    again = parse_domain(domain_text(domain))
    assert again == domain
    assert again.digest == domain.digest
    plain = parse_domain(FILE.replace(", spellings: {f: [w]}", ""))
    assert plain.digest != domain.digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("%d.%m.%Y", "%d.%m"), "line 3, field 'csv', field 'dates'"),
        (("[ja, 1, yes]", "ja"), "line 3, field 'csv', field 'true'"),
        (("{f: [w]}", "{q: [w]}"), "line 5, attribute 'x', field 'spellings'"),
        (("{f: [w]}", "[w]"), "field 'spellings'"),
    ],
)
def test_mistakes_in_a_domain_file_have_their_line(change, words):
    with pytest.raises(DomainError) as caught:
        parse_domain(FILE.replace(*change))
    assert words in str(caught.value)


def test_plans_and_releases_keep_the_formats(tmp_path):
    form = CsvForm(";", dates="%d.%m.%Y", true=["ja"], false=["nein"])
    month = Dates("day", "2023-01-01", "2023-12-31", "month")
    domain = Domain([month, Categories("ok", [True, False])], "t", csv=form)
    batch = lrm.sql("SELECT day, COUNT(*) AS n FROM t GROUP BY day", domain)
    plan = lrm.plan(batch, effort="quick")
    plan.save(tmp_path / "plan.lrm")
    (tmp_path / "t.csv").write_text("day;ok\n" + "03.05.2023;ja\n" * 40)
    again = lrm.load_plan(tmp_path / "plan.lrm")
    assert again.workload.domain == domain
    with pytest.warns(lrm.errors.PrivacyWarning):
        released = lrm.release(again, tmp_path / "t.csv", epsilon=1000, ledger=None)
    assert released.answers.round().tolist() == [40 if i == 4 else 0 for i in range(12)]
