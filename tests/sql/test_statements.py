"""A statement of SQL is one table: its title, its columns in the order of SELECT, its answers."""

import datetime as dt
from dataclasses import replace

import pytest

import lrm
from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import FileFormatError, SqlWarning, WorkloadError
from lrm.files.archive import read_archive, write_archive
from lrm.planning.plan.saving import VERSION
from lrm.queries.files import parse_batch
from lrm.queries.workload import Column, Statement

DOMAIN = Domain(
    [
        Dates("day", "2023-01-01", "2023-12-31", by="month"),
        Integers("age", 0, 19, width=10),
        Categories("smoker", [True, False]),
        Categories("ward", ["north", "south"]),
    ],
    "visits",
)


def tables(text, domain=DOMAIN):
    return lrm.sql(text, domain).tables


def test_columns_stand_in_the_order_of_select_whatever_computes_them():
    (one,) = tables(
        "SELECT ward, YEAR(day) AS year, COUNT(*) AS n, MONTH(day) AS month, smoker FROM visits "
        "GROUP BY smoker, MONTH(day), YEAR(day), ward"
    )
    assert [column.name for column in one.columns] == ["ward", "year", "month", "smoker"]
    assert [column.kind for column in one.columns] == ["text", "year", "month_of_year", "boolean"]
    assert one.columns[2].labels == tuple(map(str, range(1, 13)))
    assert one.answers == ("n",)
    assert one.rows == (0, 48)


def test_a_column_that_select_does_not_list_comes_last():
    (one,) = tables("SELECT ward, COUNT(*) AS n FROM visits GROUP BY smoker, ward")
    assert [column.name for column in one.columns] == ["ward", "smoker"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DATE_TRUNC('month', day)", "timestamp"),
        ("day", "month"),
        ("age", "text"),
        ("YEAR(day) + 0", "integer"),
        ("EXTRACT(MONTH FROM day)", "month_of_year"),
        ("CASE WHEN smoker THEN 0.5 ELSE 1.5 END", "number"),
        ("UPPER(ward)", "text"),
    ],
)
def test_kinds_of_columns(text, kind):
    (one,) = tables(f"SELECT {text} AS x, COUNT(*) AS n FROM visits GROUP BY {text}")
    assert [(column.name, column.kind) for column in one.columns] == [("x", kind)]


def test_kinds_of_attributes():
    domain = Domain(
        [
            Dates("d", "2023-01-01", dt.date(2023, 1, 3)),
            Dates("y", "2021-01-01", "2023-12-31", by="year"),
            Integers("i", 0, 3),
            Bins("b", [0, 1, 2]),
            Categories("c", [3, 1]),
        ]
    )
    kinds = [Column.of(one).kind for one in domain.attributes]
    assert kinds == ["date", "year", "integer", "text", "integer"]


def test_derived_answers_belong_to_their_statement():
    one, two = tables(
        "SELECT ward, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY ward; "
        "SELECT MEDIAN(age) AS middle FROM visits"
    )
    assert (one.rows, one.derived, one.answers) == ((0, 2), (0, 1), ("n", "mean"))
    assert (two.rows, two.derived, two.answers) == ((2, 2), (1, 2), ("middle",))


def test_parts_of_union_all_are_one_table():
    (one,) = tables(
        "SELECT 'all' AS who, COUNT(*) AS n FROM visits UNION ALL "
        "SELECT 'smokers', COUNT(*) FROM visits WHERE smoker ORDER BY n"
    )
    assert one.columns == (Column("who", "text", ("all", "smokers")),)
    assert (one.rows, one.display) == ((0, 2), 0)


def test_titles_come_from_the_comment_directly_above():
    one, two, three = tables(
        "-- Questions of the yearly report\n\n-- Visits by ward,\n-- all ages\n-- importance: 2\n"
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward; -- said afterwards\n"
        "/* The total */\nSELECT COUNT(*) AS total FROM visits;\n"
        "-- SELECT COUNT(*) FROM visits\n"
        "SELECT smoker, age, COUNT(*) AS visits_made FROM visits GROUP BY smoker, age"
    )
    assert one.title == "Visits by ward, all ages"
    assert two.title == "The total"
    assert three.title == "visits made by smoker and age"


def test_expected_sizes():
    one, two = tables(
        "-- expected: 1,500\nSELECT COUNT(*) AS n FROM visits; SELECT COUNT(*) AS m FROM visits"
    )
    assert (one.expected, two.expected) == (1500.0, None)
    with pytest.warns(SqlWarning, match="line 2: the expected .* above 0, not 'many'"):
        (three,) = tables("-- expected: many\nSELECT COUNT(*) AS n FROM visits")
    assert three.expected is None


def test_a_name_that_is_used_twice_gets_the_columns():
    found = tables(
        "SELECT COUNT(*) AS n FROM visits; SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    )
    assert [one.name for one in found] == ["n_1", "n_by_ward"]


def test_statements_are_kept_in_files_and_change_no_digest(tmp_path):
    batch = lrm.sql("-- A title\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", DOMAIN)
    plan = lrm.plan(batch, "noise-on-data")
    plan.save(tmp_path / "plan.lrm")
    assert lrm.load_plan(tmp_path / "plan.lrm").workload.statements == batch.statements
    assert replace(batch, statements=()).digest == batch.digest


def test_files_without_statements_are_read_and_wrong_ones_are_not(tmp_path):
    path = tmp_path / "plan.lrm"
    batch = lrm.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", DOMAIN)
    lrm.plan(batch, "noise-on-data").save(path)
    facts, arrays = read_archive(path, "plan", VERSION)
    stored = {name: arrays._arrays[name] for name in arrays._arrays}
    written = facts.pop("statements")
    write_archive(path, "plan", VERSION, facts, stored)
    (one,) = lrm.load_plan(path).workload.tables
    assert (one.name, one.rows, one.columns) == ("n", (0, 2), (Column("ward"),))
    for change in (
        {"rows": [0, 3]},
        {"rows": [1, 0]},
        {"display": 0},
        {"columns": [["a", "colour", []]]},
        {"expected": -1.0},
        {"title": 3},
    ):
        wrong = {**facts, "statements": [{**written[0], **change}]}
        write_archive(path, "plan", VERSION, wrong, stored)
        with pytest.raises(FileFormatError):
            lrm.load_plan(path)


def test_stacked_batches_keep_their_tables():
    one = lrm.sql("SELECT ward, AVG(age) AS mean FROM visits GROUP BY ward", DOMAIN)
    two = lrm.marginals(DOMAIN, [["smoker"], ["ward", "smoker"]], name="count")
    both = lrm.stack([two, one])
    names = ["count_by_smoker", "count_by_smoker_ward", "mean"]
    assert [table.name for table in both.tables] == names
    last = both.tables[-1]
    assert (last.rows, last.derived) == ((6, 6), (0, 1))


def test_tables_of_batches_without_sql():
    named = lrm.Workload([[1, 0], [0, 1]], names=["a", "b"])
    assert named.tables == (Statement("a", "Answers", rows=(0, 2)),)
    batch = parse_batch(
        "lrm-batch: 1\nqueries:\n- {kind: total, name: all}\n"
        "- {kind: sql, text: 'SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward'}\n",
        DOMAIN,
    )
    assert [(one.name, one.line, one.rows) for one in batch.tables] == [
        ("all", 3, (0, 1)),
        ("n", 4, (1, 3)),
    ]


def test_two_statements_may_not_share_a_name():
    with pytest.raises(WorkloadError, match="same name"):
        lrm.Workload([[1]], statements=[Statement("a", "", rows=(0, 1))] * 2)
