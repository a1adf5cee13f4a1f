"""Statements in other dialects: declared, or found out where all that have them agree."""

from __future__ import annotations

import re
import warnings

import duckdb
import numpy as np
import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import SqlError, SqlWarning
from lrm.queries.sql import sql

DOMAIN = Domain(
    [
        Categories("state", ["NY", "NJ"], null="cell"),
        Integers("age", 0, 39),
        Dates("day", "2024-01-01", "2024-02-29"),
        Categories("paid", [True, False]),
        Bins("amount", [0, 10, 20]),
    ],
    "visits",
)


def labels(text, column="g"):
    """The labels of a column of groups."""
    return {dict(one.group)[column] for one in sql(text, DOMAIN).shown}


def weights(text):
    return sql(text, DOMAIN).queries.dense()


def code_of(text):
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    return caught.value.code


GROUPED = "-- dialect: {}\nSELECT {} AS g, COUNT(*) AS n FROM visits GROUP BY 1"


@pytest.mark.parametrize(
    ("dialect", "expression", "duckdb_expression"),
    [
        ("postgres", "to_char(day, 'YYYY-MM')", "strftime(day, '%Y-%m')"),
        ("postgres", "to_char(day, 'Dy')", "strftime(day, '%a')"),
        ("postgres", "to_char(day, 'DY, MON')", "upper(strftime(day, '%a, %b'))"),
        ("postgres", "to_char(day, 'FMMonth YYYY')", "strftime(day, '%B %Y')"),
        ("postgres", "to_char(day, 'YYYY\"-Q\"Q')", "strftime(day, '%Y-Q') || quarter(day)"),
        ("postgres", "to_char(day, 'IYYY-IW')", "strftime(day, '%G-%V')"),
        ("postgres", "extract(isodow FROM day)", "isodow(day)"),
        ("postgres", "age / 10", "age // 10"),
        ("postgres", "length(state) / 4", "length(state) // 4"),
        ("postgres", "(date '2024-03-01' - day) / 30", "(date '2024-03-01' - day) // 30"),
        (
            "postgres",
            "CASE WHEN state LIKE 'N\\Y' THEN 'a' ELSE 'b' END",
            "CASE WHEN state = 'NY' THEN 'a' ELSE 'b' END",
        ),
        (
            "postgres",
            "CASE WHEN state LIKE 'N\\_' THEN 'a' ELSE 'b' END",
            "CASE WHEN state = 'N_' THEN 'a' ELSE 'b' END",
        ),
        ("tsql", "MONTH(day) / 2", "MONTH(day) // 2"),
        ("tsql", "CAST(age / 7.0 AS INT)", "CAST(TRUNC(age / 7.0) AS INT)"),
        ("spark", "CAST(age / 7 AS INT)", "CAST(TRUNC(age / 7) AS INT)"),
        ("tsql", "state + '-' + CAST(age AS VARCHAR)", "state || '-' || age"),
        ("tsql", "IIF(state = N'NY', N'a', 'b')", "IF(state = 'NY', 'a', 'b')"),
        ("mysql", "FIND_IN_SET(state, 'NJ,NY')", "coalesce(list_position(['NJ', 'NY'], state), 0)"),
        ("mysql", "SUBSTRING_INDEX(state, 'Y', 1)", "split_part(state, 'Y', 1)"),
        ("mysql", "WEEK(day, 3)", "week(day)"),
        (
            "snowflake",
            "CASE WHEN EQUAL_NULL(state, 'NY') THEN 'a' ELSE 'b' END",
            "CASE WHEN state IS NOT DISTINCT FROM 'NY' THEN 'a' ELSE 'b' END",
        ),
        (
            "bigquery",
            "CASE WHEN REGEXP_CONTAINS(state, r'^N') THEN 'a' ELSE 'b' END",
            "CASE WHEN regexp_matches(state, '^N') THEN 'a' ELSE 'b' END",
        ),
        ("tsql", "age / 10 * 10", "age // 10 * 10"),
        ("tsql", "age / 10.0", "age / 10.0"),
        ("mysql", "age / 10", "age / 10"),
        ("mysql", "age DIV 10", "age // 10"),
        ("snowflake", "to_char(day, 'yyyy-mon')", "strftime(day, '%Y-%b')"),
        ("snowflake", "monthname(day)", "strftime(day, '%b')"),
        ("snowflake", "dayofweek(day)", "dayofweek(day)"),
        ("mysql", "dayofweek(day)", "dayofweek(day) + 1"),
        ("spark", "dayofweek(day)", "dayofweek(day) + 1"),
        ("bigquery", "EXTRACT(DAYOFWEEK FROM day)", "dayofweek(day) + 1"),
        ("tsql", "DATEPART(weekday, day)", "dayofweek(day) + 1"),
        ("mysql", "WEEKDAY(day)", "isodow(day) - 1"),
        ("mysql", "DATE_FORMAT(day, '%M %e')", "strftime(day, '%B %-d')"),
        ("mysql", "DATE_FORMAT(day, '%W')", "dayname(day)"),
        ("spark", "date_format(day, 'MMM d')", "strftime(day, '%b %-d')"),
        ("spark", "trunc(day, 'MM')", "date_trunc('month', day)"),
        ("tsql", "FORMAT(day, 'dddd')", "dayname(day)"),
        ("tsql", "CONVERT(VARCHAR(7), day, 120)", "strftime(day, '%Y-%m')"),
        ("tsql", "DATENAME(month, day)", "monthname(day)"),
        ("tsql", "EOMONTH(day)", "last_day(day)"),
        ("bigquery", "FORMAT_DATE('%Y-%m', day)", "strftime(day, '%Y-%m')"),
        ("bigquery", "DATE_TRUNC(day, WEEK)", "CAST(date_trunc('week', day + 1) AS DATE) - 1"),
        ("bigquery", "EXTRACT(ISOWEEK FROM day)", "week(day)"),
        (
            "snowflake",
            "DECODE(state, 'NY', 1, NULL, 2, 3)",
            "CASE WHEN state = 'NY' THEN 1 WHEN state IS NULL THEN 2 ELSE 3 END",
        ),
        ("snowflake", "IFF(age > 17, 'adult', 'child')", "if(age > 17, 'adult', 'child')"),
        ("snowflake", "CONCAT(state, '!')", "state || '!'"),
        ("postgres", "CONCAT(state, '!')", "concat(state, '!')"),
        ("postgres", "GREATEST(state, 'NK')", "greatest(state, 'NK')"),
        ("mysql", "LEAST(state, 'NK')", "if(state IS NULL, NULL, least(state, 'NK'))"),
        (
            "mysql",
            "TIMESTAMPDIFF(MONTH, '2023-11-30', day)",
            "datesub('month', DATE '2023-11-30', day)",
        ),
        (
            "snowflake",
            "DATEDIFF('month', '2023-11-30', day)",
            "datediff('month', DATE '2023-11-30', day)",
        ),
        ("snowflake", "DATEADD(month, 1, day)", "CAST(day + INTERVAL 1 MONTH AS TIMESTAMP)"),
        ("tsql", "CHOOSE(age, 'one', 'two')", "CASE age WHEN 1 THEN 'one' WHEN 2 THEN 'two' END"),
    ],
)
def test_an_expression_has_the_labels_of_its_dialect(dialect, expression, duckdb_expression):
    found = labels(GROUPED.format(dialect, expression))
    database = duckdb.connect()
    query = f"""SELECT DISTINCT {duckdb_expression} FROM
        (SELECT unnest(['NY', 'NJ', NULL]) AS state), (SELECT unnest(range(40)) AS age),
        (SELECT CAST(unnest(generate_series(DATE '2024-01-01', DATE '2024-02-29', INTERVAL 1 DAY))
            AS DATE) AS day)"""
    rows = database.execute(query).fetchall()
    assert found == {"(null)" if value is None else str(value) for (value,) in rows}


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("mysql", "WEEK(day)"),
        ("tsql", "DATEPART(week, day)"),
        ("bigquery", "EXTRACT(WEEK FROM day)"),
        ("tsql", "DATEDIFF(week, '2024-01-01', day)"),
        ("postgres", "to_char(day, 'Month')"),
        ("postgres", "to_char(day, 'HH24')"),
        ("tsql", "FORMAT(day, 'd')"),
        ("mysql", "DATE_FORMAT(day, '%u')"),
        ("tsql", "CONVERT(VARCHAR, day, 1)"),
        ("postgres", "extract(year FROM day) / 10"),
    ],
)
def test_what_a_dialect_spells_in_its_own_way_is_refused(dialect, expression):
    assert code_of(GROUPED.format(dialect, expression)) == "function"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("SELECT TOP 3 state, COUNT(*) AS n FROM visits GROUP BY state ORDER BY n DESC", "tsql"),
        ("SELECT IFF(age > 3, 1, 0) AS g, COUNT(*) AS n FROM visits GROUP BY 1", "snowflake"),
        ("SELECT COUNT(*) AS n FROM [dbo].[visits] WHERE [age] < 3", "tsql"),
        ("SELECT TO_CHAR(day, 'Dy') AS g, COUNT(*) AS n FROM visits GROUP BY 1", "postgres"),
    ],
)
def test_a_dialect_is_found_out_where_it_makes_no_difference(text, same):
    assert np.array_equal(weights(text), weights(f"-- dialect: {same}\n{text}"))
    assert code_of(f"-- dialect: duckdb\n{text}") in {"clause", "function", "syntax"}


def test_dialects_that_disagree_must_be_declared():
    text = "SELECT TOP 3 age / 10 AS g, COUNT(*) AS n FROM visits GROUP BY age / 10"
    with pytest.raises(SqlError, match="redshift, snowflake, tsql have it") as caught:
        sql(text, DOMAIN)
    assert caught.value.code == "dialect"
    assert len(labels(f"-- dialect: tsql\n{text}")) == 4
    assert len(labels(f"-- dialect: snowflake\n{text}")) == 40


def test_an_order_that_puts_null_elsewhere_is_no_difference():
    text = "SELECT TOP 3 state, COUNT(*) AS n FROM visits GROUP BY state ORDER BY state, n DESC"
    (display,) = sql(text, DOMAIN).display
    assert [key.nulls_first for key in display.order] == [False, False]
    (display,) = sql(f"-- dialect: tsql\n{text}", DOMAIN).display
    assert [key.nulls_first for key in display.order] == [True, False]


def test_an_unknown_dialect_is_named_with_those_that_are_known():
    with pytest.raises(SqlError, match=r"line 2: the dialect 'dbase' .* bigquery, duckdb"):
        sql("-- counts\n-- dialect: dbase\nSELECT COUNT(*) FROM visits", DOMAIN)


def test_the_comment_may_stand_among_others_and_aliases_are_known():
    text = "/* a file */\n-- of visits\n-- Dialect: SQL Server\n\nSELECT TOP 1 COUNT(*) FROM visits"
    assert sql(text, DOMAIN).shape[0] == 1


def test_errors_of_other_dialects_have_their_place():
    text = (
        "-- dialect: tsql\nSELECT COUNT(*) FROM visits;\nSELECT TOP 2 age,\n  MAX(age) FROM visits"
    )
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert (caught.value.line, caught.value.column) == (4, 3)


def test_text_in_double_quotes_is_text_where_the_dialect_says_so():
    text = 'SELECT COUNT(*) AS n FROM visits WHERE state = "NY"'
    assert code_of(text) == "quotes"
    with pytest.raises(SqlError, match="use single quotes for text"):
        sql(text, DOMAIN)
    assert weights(f"-- dialect: bigquery\n{text}").sum() == weights(text.replace('"', "'")).sum()


def test_whole_answers_are_divided_with_their_fraction_and_a_warning():
    text = "SELECT SUM(age) / COUNT(*) AS mean FROM visits"
    with pytest.warns(SqlWarning, match="is answered with its fraction"):
        sql(f"-- dialect: postgres\n{text}", DOMAIN)
    sql(f"-- dialect: mysql\n{text}", DOMAIN)  # divides with a fraction, without a warning


@pytest.mark.parametrize("name", ["visits", "public.visits", "shop.visits", "a.b.visits"])
def test_the_last_part_of_a_name_decides(name):
    assert sql(f"SELECT COUNT(*) FROM {name}", DOMAIN).shape[0] == 1
    assert code_of(f"SELECT COUNT(*) FROM {name}s") == "unknown-table"


def test_div0_does_not_drop_other_conditions():
    """Only the guard that DIV0 writes itself is dropped."""
    zero = "-- dialect: snowflake\nSELECT DIV0(SUM(age), COUNT(*)) AS r FROM visits"
    (one,) = sql(zero, DOMAIN).derived
    assert "else" in one.formula.steps
    kept = "CASE WHEN COUNT(*) = 0 AND SUM(age) IS NOT NULL THEN 1 ELSE SUM(age) / COUNT(*) END"
    assert sql(f"SELECT {kept} AS r FROM visits", DOMAIN).display[0].computed
    other = "CASE WHEN COUNT(*) = 0 AND SUM(age) IS NULL THEN 0 ELSE SUM(age) / COUNT(*) END"
    assert code_of(f"SELECT {other} AS r FROM visits") == "display"


def test_like_any_is_one_of_several_patterns():
    domain = Domain([Categories("code", ["i1", "j2", "k3"])], "t")
    some = sql("SELECT COUNT(*) FROM t WHERE code LIKE ANY ('i%', 'j%')", domain)
    every = sql("SELECT COUNT(*) FROM t WHERE code ILIKE ALL (ARRAY['I%', '%1'])", domain)
    assert some.queries.dense().tolist() == [[1, 1, 0]]
    assert every.queries.dense().tolist() == [[1, 0, 0]]
    text = "SELECT COUNT(*) FROM t WHERE code NOT LIKE ANY ('i%', 'j%')"
    with pytest.raises(SqlError, match="dialects differ about it"):
        sql(text, domain)
    each, none = (sql(f"-- dialect: {name}\n{text}", domain) for name in ("postgres", "snowflake"))
    assert each.queries.dense().tolist() == [[1, 1, 1]]
    assert none.queries.dense().tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("dialect", "truncated", "label"),
    [
        ("bigquery", "DATE_TRUNC(day, MONTH)", "2024-01-01"),
        ("snowflake", "DATE_TRUNC('month', day)", "2024-01-01"),
        ("postgres", "date_trunc('month', day)", "2024-01-01 00:00:00"),
    ],
)
def test_the_beginning_of_a_month_is_a_day_where_the_dialect_says_so(dialect, truncated, label):
    domain = Domain([Dates("day", "2024-01-01", "2024-01-31")], "t")
    text = f"-- dialect: {dialect}\nSELECT {truncated} AS m, COUNT(*) AS n FROM t GROUP BY 1"
    assert sql(text, domain).labels[0].group == (("m", label),)


def test_a_numeric_of_postgres_keeps_all_digits():
    """It was rounded to the three digits that DuckDB's numeric has."""

    def steps(dialect, kind):
        text = f"-- dialect: {dialect}\nSELECT AVG(age)::{kind} AS m FROM visits"
        return sql(text, DOMAIN).derived[0].formula.steps

    assert "round" not in steps("postgres", "numeric")
    assert steps("postgres", "numeric(9, 2)")[-2:] == (2.0, "round")
    assert steps("duckdb", "numeric")[-2:] == (3.0, "round")


def warned(expression, form="SELECT {} AS g, COUNT(*) AS n FROM visits GROUP BY 1", before=""):
    """The dialects that a warning says read a statement differently; none without a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sql(before + form.format(expression), DOMAIN)
    texts = [str(one.message) for one in caught if issubclass(one.category, SqlWarning)]
    assert len(texts) <= 1
    return re.search("does, and (.*) would give", texts[0])[1].split(", ") if texts else []


@pytest.mark.parametrize(
    ("expression", "dialects"),
    [
        ("age / 10", ["postgres", "redshift", "tsql"]),
        ("CAST(age / 10 AS INT)", ["postgres", "redshift", "spark", "tsql"]),
        ("CASE WHEN age / 2 > 10 THEN 'old' ELSE 'young' END", ["postgres", "redshift", "tsql"]),
        ("DAYOFWEEK(day)", ["bigquery", "mysql", "spark", "tsql"]),
        ("EXTRACT(DOW FROM day)", ["bigquery", "mysql", "spark", "tsql"]),
        ("WEEKDAY(day)", ["mysql", "spark"]),
        ("MONTHNAME(day)", ["snowflake"]),
        ("DAYNAME(day)", ["snowflake"]),
        ("LOG(age + 1)", ["bigquery", "mysql", "spark", "tsql"]),
        ("GREATEST(age, NULL)", ["bigquery", "mysql", "snowflake"]),
        ("CONCAT(CAST(age AS TEXT), NULL)", ["bigquery", "mysql", "snowflake", "spark"]),
    ],
)
def test_what_other_dialects_read_differently_is_noticed_without_a_declaration(
    expression, dialects
):
    """It was answered as DuckDB does, without a word."""
    assert warned(expression) == dialects
    found = sql(GROUPED.format("duckdb", expression), DOMAIN)
    for dialect in (*dialects, "duckdb"):
        assert warned(expression, before=f"-- dialect: {dialect}\n") == []
    for dialect in dialects:
        assert sql(GROUPED.format(dialect, expression), DOMAIN).digest != found.digest


@pytest.mark.parametrize(
    "expression",
    [
        "age // 10",
        "LN(age + 1)",
        "LOG10(age + 1)",
        "GREATEST(age, 3)",
        "age / 10.0",
        "FLOOR(age / 10)",
        "(age - age % 10) / 10",
        "CASE WHEN age / 2 >= 10 THEN 'old' ELSE 'young' END",
        "ISODOW(day)",
        "CASE WHEN DAYNAME(day) LIKE 'S%' THEN 'weekend' END",
        "DATE_TRUNC('month', day)",
        "QUARTER(day)",
        "STRFTIME(day, '%B')",
    ],
)
def test_what_all_dialects_read_alike_is_not_noticed(expression):
    assert warned(expression) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(age) / COUNT(*) AS mean FROM visits",
        "SELECT DATE_TRUNC('month', day) AS m, SUM(age) / COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT n / 2 AS half FROM (SELECT COUNT(*) AS n FROM visits) AS t",
        "SELECT COUNT(*) FILTER (WHERE paid) / COUNT(*) AS share FROM visits",
    ],
)
def test_divisions_of_answers_are_not_noticed_as_all_keep_their_fraction(text):
    assert warned("", form=text) == []
