"""Lookups of a domain: derived attributes, JOINs to them, and their place in files."""

from __future__ import annotations

import datetime as dt
import itertools

import duckdb
import pytest

import lrm
from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup
from lrm.domain.file import domain_text, parse_domain, read_domain
from lrm.domain.lookups import lookup_rows
from lrm.errors import DomainError, FileFormatError, SqlError, UsageError, WorkloadError
from lrm.queries.builders import marginals
from lrm.queries.files import parse_batch
from lrm.queries.sql import sql
from lrm.queries.workload.layout import layout_of
from sql_answers import Table

AIRLINES = Lookup(
    "airlines",
    "carrier",
    ["name", "size", "low_cost"],
    [["UA", "United", 3, False], ["AA", "American", 2.5, None], ["ZZ", "nobody", 1, True]],
    key_column="code",
)
SEASONS = Lookup(
    "seasons",
    "month",
    ["season"],
    [[month, "cold" if month < 3 else "warm"] for month in (1, 2, 3)],
)
HOLIDAYS = Lookup("holidays", "day", ["holiday"], [["2024-01-01", "new year"]])
DOMAIN = Domain(
    [
        Categories("carrier", ["UA", "AA", "B6"], null="cell"),
        Integers("month", 1, 4),
        Dates("day", "2024-01-01", "2024-01-03"),
    ],
    "flights",
    lookups=[AIRLINES, SEASONS, HOLIDAYS],
)
ROWS = [
    (carrier, month, dt.date(2024, 1, day))
    for number, (carrier, month, day) in enumerate(
        itertools.product(["UA", "AA", "B6", None], range(1, 5), range(1, 4)), start=1
    )
    for _ in range(number % 5 + 1)
]
STATEMENTS = [
    "SELECT a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.code GROUP BY 1",
    "SELECT name, COUNT(*) AS n FROM flights JOIN airlines ON code = carrier GROUP BY name",
    "SELECT name, COUNT(*) AS n FROM flights LEFT JOIN airlines ON code = carrier GROUP BY name",
    "SELECT carrier, name, COUNT(*) FROM flights JOIN airlines ON code = carrier GROUP BY ALL",
    "SELECT code, COUNT(*) FROM flights f LEFT JOIN airlines a ON a.code = f.carrier GROUP BY code",
    "SELECT COUNT(*) FROM flights JOIN seasons USING (month)",
    "SELECT COUNT(*) FROM flights LEFT JOIN seasons USING (month) WHERE season IS NULL",
    "SELECT season, COUNT(*) AS n FROM flights JOIN seasons USING (month) GROUP BY 1 ORDER BY n",
    "SELECT SUM(size), COUNT(size) FROM flights LEFT JOIN airlines ON code = carrier",
    "SELECT COUNT(*) FROM flights LEFT JOIN airlines ON code = carrier WHERE NOT low_cost",
    "SELECT COUNT(*) FROM flights LEFT JOIN airlines ON code = carrier WHERE name LIKE '%i%'",
    "SELECT COUNT(*) FROM flights f JOIN holidays h ON f.day = h.day WHERE holiday = 'new year'",
    "SELECT COUNT(*) FROM flights WHERE carrier IN (SELECT code FROM airlines WHERE size > 100)",
    "SELECT COUNT(*) FROM flights WHERE carrier NOT IN (SELECT code FROM airlines)",
    "SELECT COUNT(*) FROM flights WHERE carrier NOT IN (SELECT code FROM airlines WHERE size > 2)",
    "SELECT COUNT(*) FROM flights WHERE carrier NOT IN (SELECT code FROM airlines WHERE size > 9)",
    "SELECT COUNT(*) FROM flights WHERE carrier NOT IN (SELECT code FROM airlines WHERE low_cost)",
    """SELECT COUNT(*) FROM flights
    WHERE day NOT IN (SELECT day FROM holidays h WHERE h.day > DATE '2024-02-01')""",
    "SELECT COUNT(*) FROM flights WHERE month NOT IN (SELECT month FROM seasons WHERE month > 9)",
    """SELECT season, name, COUNT(*) AS n FROM flights JOIN seasons USING (month)
    JOIN airlines ON carrier = code WHERE size > 2.6 OR season = 'cold' GROUP BY ALL""",
    """WITH named AS (SELECT f.*, name AS airline FROM flights f JOIN airlines ON carrier = code)
    SELECT airline, season, COUNT(*) FROM named JOIN seasons USING (month) GROUP BY ALL""",
    """SELECT c.carrier, a.name, c.n FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY 1) c
    JOIN airlines a ON a.code = c.carrier ORDER BY n DESC""",
]


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE flights (carrier VARCHAR, month BIGINT, day DATE)")
    connection.executemany("INSERT INTO flights VALUES (?, ?, ?)", ROWS)
    connection.execute(
        "CREATE TABLE airlines (code VARCHAR, name VARCHAR, size DOUBLE, low_cost BOOL)"
    )
    connection.execute("CREATE TABLE seasons (month BIGINT, season VARCHAR)")
    connection.execute("CREATE TABLE holidays (day DATE, holiday VARCHAR)")
    for lookup in DOMAIN.lookups:
        marks = ", ".join("?" for _ in lookup.rows[0])
        connection.executemany(f"INSERT INTO {lookup.name} VALUES ({marks})", lookup.rows)
    cells = [
        [one.cell_of(value) for one, value in zip(DOMAIN.attributes, row, strict=True)]
        for row in ROWS
    ]
    return Table(connection, DOMAIN, cells)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_join_is_what_duckdb_answers(table, statement):
    table.compare(statement)


def test_a_column_of_a_lookup_is_an_attribute_without_a_join():
    batch = sql("SELECT season, COUNT(*) AS n FROM flights GROUP BY season", DOMAIN)
    assert sorted(batch.names) == ["n[season=(null)]", "n[season=cold]", "n[season=warm]"]
    other = parse_batch(
        "lrm-batch: 1\nqueries:\n  - {kind: marginals, of: [[season]], name: n}", DOMAIN
    )
    rows = [
        dict(zip(one.names, one.queries.dense().tolist(), strict=True)) for one in (batch, other)
    ]
    assert rows[0] == rows[1]
    both = marginals(DOMAIN, [["airlines.name", "day"]])
    assert both.names[0] == "count[airlines.name=United, day=2024-01-01]"
    with pytest.raises(WorkloadError, match="'month' is given twice"):
        marginals(DOMAIN, [["month", "season"]])


def test_a_value_that_may_be_in_the_lookup_is_not_known():
    """(other) may hold ZZ, which has a row, and other values, which have none."""
    domain = Domain([Categories("carrier", ["UA"], outside="cell")], "flights", lookups=[AIRLINES])
    assert sql("SELECT COUNT(*) FROM flights WHERE carrier = 'UA' AND size > 1", domain)
    with pytest.raises(
        SqlError, match=r"airlines.name = 'United' is not constant on the cell \(ot"
    ):
        sql("SELECT COUNT(*) FROM flights WHERE name = 'United'", domain)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("SELECT COUNT(*) FROM flights JOIN planes USING (x)", "are joined: airlines, seasons"),
        (
            "SELECT COUNT(*) FROM flights JOIN seasons ON TRUE",
            "join it by its key: month = seasons",
        ),
        (
            "SELECT COUNT(*) FROM flights FULL JOIN seasons USING (month)",
            "write JOIN or LEFT JOIN",
        ),
        (
            "SELECT COUNT(*) FROM flights f JOIN airlines f ON carrier = code",
            "two tables called 'f'",
        ),
        (
            "SELECT COUNT(*) FROM flights f JOIN airlines a ON f.month = a.code",
            "JOIN by month is not",
        ),
        (
            "SELECT a.x, COUNT(*) FROM flights JOIN airlines a ON carrier = code GROUP BY 1",
            "no column",
        ),
        (
            "SELECT name, COUNT(*) FROM flights GROUP BY month",
            "'airlines.name' must appear in GROUP BY",
        ),
    ],
)
def test_other_joins_are_refused_by_name(text, sentence):
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert sentence in str(caught.value)


def test_a_domain_file_keeps_lookups_and_reads_csv(tmp_path):
    assert parse_domain(domain_text(DOMAIN)) == DOMAIN
    assert DOMAIN.digest != Domain(DOMAIN.attributes, "flights").digest
    (tmp_path / "airlines.csv").write_text("code,name,size\nUA,United,3\nAA,,2.5\n")
    (tmp_path / "seasons.csv").write_text("month,season\n1,cold\n2,cold\n")
    head = domain_text(Domain(DOMAIN.attributes, "flights"))
    (tmp_path / "domain.yaml").write_text(
        f"{head}lookups:\n"
        "  - {name: airlines, key: carrier, key_column: code, csv: airlines.csv}\n"
        "  - {name: seasons, key: month, csv: seasons.csv}\n"
    )
    airlines, seasons = read_domain(tmp_path / "domain.yaml").lookups
    assert airlines.rows == (("UA", "United", 3.0), ("AA", None, 2.5))
    assert seasons == Lookup("seasons", "month", ["season"], [[1, "cold"], [2, "cold"]])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("carrier,x,x\nUA,1,2\n", "two columns called 'x'"),
        ("carrier,carrier,x\nUA,AA,2\n", "two columns called 'carrier'"),
        ('carrier,x\nUA,"open\nAA,1\n', "cannot be read: unexpected end of data"),
        (f"carrier,x\nUA,{'z' * 200_000}\n", "cannot be read: field larger than"),
    ],
)
def test_a_csv_file_of_a_lookup_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(DomainError, match=sentence):
        lookup_rows(text, "carrier", DOMAIN.attribute("carrier"))


def test_a_csv_file_of_a_lookup_is_read_as_it_is_written():
    text = 'carrier,x,y\nUA,"two\nlines",1_0\nAA,a\u2028b,2\n'
    columns, rows = lookup_rows(text, "carrier", DOMAIN.attribute("carrier"))
    assert columns == ["x", "y"]
    assert rows == [["UA", "two\nlines", "1_0"], ["AA", "a\u2028b", "2"]]


@pytest.mark.parametrize(
    ("lookup", "sentence"),
    [
        ("{name: a, key: carrier, columns: [x], rows: [[UA, 1], [UA, 2]]}", "'UA' has two rows"),
        (
            "{name: a, key: day, columns: [x], rows: [['2024-01-01', 1], ['20240101', 2]]}",
            "'20240101' has two rows",
        ),
        ("{name: a, key: month, columns: [x], rows: [[UA, 1]]}", "'UA' is not a value of 'month'"),
        ("{name: a, key: day, columns: [x], rows: [[soon, 1]]}", "expected a date such as"),
        ("{name: a, key: town, columns: [x], rows: [[UA, 1]]}", "'town' is not an attribute"),
        ("{name: a, key: carrier, columns: [x], rows: [[UA]]}", "each row needs 2 values"),
        ("{name: a, key: carrier, columns: [x], rows: [[UA, 1], [AA, b]]}", "texts, numbers or"),
        (f"{{name: a, key: carrier, columns: [x], rows: [[UA, 1{'0' * 400}]]}}", "finite float64s"),
        ("{name: a, key: carrier, columns: [x], rows: []}", "it needs 1 to 100,000 rows, not 0"),
        (
            "{name: a, key: carrier, columns: [carrier], rows: [[UA, 1]]}",
            "names unlike each other's",
        ),
        ("{name: flights, key: carrier, columns: [x], rows: [[UA, 1]]}", "the table has the same"),
        ("{name: a, key: carrier, columns: [x]}", "field 'rows' is missing"),
        ("{name: a, key: carrier, csv: missing.csv}", "missing.csv"),
        ("{name: a, key: carrier, csv: x.csv, rows: [[UA, 1]]}", "rows"),
    ],
)
def test_a_wrong_lookup_is_refused_with_its_line(tmp_path, lookup, sentence):
    path = tmp_path / "domain.yaml"
    head = domain_text(Domain(DOMAIN.attributes, "flights"))
    path.write_text(f"{head}lookups:\n  - {lookup}\n")
    with pytest.raises((UsageError, FileFormatError)) as caught:
        read_domain(path)
    assert sentence in str(caught.value)


def test_bins_have_no_keys():
    with pytest.raises(DomainError, match="the cells of 'x' are intervals"):
        Domain([Bins("x", [0, 1, 2])], lookups=[Lookup("a", "x", ["y"], [[0, 1]])])


def test_a_release_answers_further_queries_about_lookups(table, tmp_path):
    names = [attribute.name for attribute in DOMAIN.attributes]
    counts = DOMAIN.count(dict(zip(names, row, strict=True)) for row in ROWS)
    batch = sql("SELECT carrier, month, COUNT(*) AS n FROM flights GROUP BY ALL", DOMAIN)
    lrm.release(lrm.plan(batch, "noise-on-data"), counts, epsilon=1).save(tmp_path / "a.lrm")
    release = lrm.load_release(tmp_path / "a.lrm")
    further = release.query("SELECT season, name, COUNT(*) AS n FROM flights GROUP BY ALL")
    assert len(further.answers) == 9


def test_a_group_that_a_join_leaves_empty_is_not_there():
    """B6 and NULL have no row, and so no group."""
    batch = sql(
        "SELECT name, COUNT(*) AS n FROM flights JOIN airlines ON carrier = code GROUP BY 1", DOMAIN
    )
    assert batch.names == ("n[name=United]", "n[name=American]")


DISTRICTS = Domain(
    [Categories("district", ["d1", "d2", "d3", "d4"]), Integers("hour", 0, 2)],
    "rides",
    lookups=[
        Lookup("districts", "district", ["borough"], [["d1", "S"], ["d2", "N"], ["d3", "S"]]),
    ],
)


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize(
    "groups",
    [
        "CUBE (d.borough, r.district)",
        "CUBE (d.borough, area)",
        "ROLLUP (d.borough, r.district)",
        "GROUPING SETS ((d.borough, r.district), (area), ())",
    ],
)
def test_grouping_sets_of_a_lookup_and_its_renamed_key_are_those_of_duckdb(join, groups):
    """Labels of the key were split over two columns, and rows vanished."""
    text = (
        "SELECT d.borough, r.district AS area, COUNT(*) AS n, SUM(hour) AS s FROM rides AS r "
        f"{join} districts AS d ON r.district = d.district GROUP BY {groups}"
    )
    cells = [(d, h) for d in range(4) for h in range(3) for _ in range(3 * d + h + 1)]
    db = duckdb.connect()
    db.execute("CREATE TABLE rides AS SELECT 'd1' AS district, 0 AS hour WITH NO DATA")
    db.executemany("INSERT INTO rides VALUES (?, ?)", [(f"d{d + 1}", h) for d, h in cells])
    db.execute("CREATE TABLE districts (district TEXT, borough TEXT)")
    db.execute("INSERT INTO districts VALUES ('d1', 'S'), ('d2', 'N'), ('d3', 'S')")
    # DuckDB writes NULL for a total and for a district without a borough.
    marked = text.replace("d.borough, r.district AS area,", f"{MARKED} AS b, {AREA} AS a,", 1)
    marked = marked.replace("area)", "r.district)")
    expected = sorted(db.execute(marked).fetchall(), key=str)
    batch = sql(text, DISTRICTS)
    (table,) = batch.tables
    assert [column.name for column in table.columns] == ["borough", "area"]
    layout = layout_of(batch, table)
    answers = Table(db, DISTRICTS, cells).answers(batch)
    rows = [
        (dict(group).get("borough", "total"), dict(group).get("area", "total"), *answers[places])
        for group, places in zip(layout.groups(), layout.positions, strict=True)
    ]
    assert sorted(rows, key=str) == expected


MARKED = "CASE WHEN GROUPING(d.borough) = 1 THEN 'total' ELSE coalesce(d.borough, '(null)') END"
AREA = "CASE WHEN GROUPING(r.district) = 1 THEN 'total' ELSE r.district END"
