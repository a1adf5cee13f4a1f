# ruff: noqa: E501 - statements are kept in one piece
"""Statements that must be refused, each with its code; none of them may reach an engine."""

from __future__ import annotations

import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import sql
from lrm.queries.sql.refusals import CODES

DOMAIN = Domain(
    [
        Categories("state", ["NY", "NJ"], outside="cell", null="cell"),
        Integers("age", 0, 9),
        Integers("band", 0, 99, width=10),
        Bins("income", [0, 1000, 2500.5]),
        Dates("admitted", "2024-01-01", "2024-12-31", by="month"),
        Categories("smoker", [True, False]),
        Integers("visits", 0, 3, outside="cell"),
        Bins("pay", [0, 10, float("inf")]),
    ],
    table="patients",
)

STATEMENTS = {
    "SELECT COUNT(*) FROM patients JOIN visits USING (id)": "join",
    "SELECT COUNT(*) FROM patients, visits": "join",
    "SELECT COUNT(*) FROM patients LEFT JOIN v ON TRUE": "join",
    "SELECT COUNT(*) FROM patients NATURAL JOIN v": "join",
    "SELECT COUNT(*) FROM patients, UNNEST([1, 2])": "join",
    "SELECT COUNT(*) FROM (SELECT age FROM patients LIMIT 5)": "clause",
    "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM patients)": "clause",
    "SELECT COUNT(*) FROM (SELECT age FROM patients) WHERE band = 1": "unknown-column",
    "SELECT COUNT(*) FROM (SELECT age a, band a FROM patients)": "name",
    "SELECT a FROM (SELECT age AS a FROM doctors)": "unknown-table",
    "SELECT COUNT(*) FROM (SELECT age FROM patients GROUP BY age)": "nested",
    "WITH p AS (SELECT 1) SELECT COUNT(*) FROM p": "no-answer",
    "WITH RECURSIVE p AS (SELECT age FROM patients) SELECT COUNT(*) FROM p": "clause",
    "WITH p AS (SELECT age FROM patients) SELECT COUNT(*) FROM p JOIN p q ON 1 = 1": "join",
    "SELECT COUNT(*) FROM doctors": "unknown-table",
    "SELECT COUNT(*) FROM read_csv('x.csv')": "join",
    "SELECT COUNT(*) FROM 'x.csv'": "unknown-table",
    "SELECT COUNT(*) FROM (VALUES (1)) v": "no-answer",
    "SELECT COUNT(*) FROM patients PIVOT (COUNT(*) FOR state IN (ANY))": "function",
    "SELECT COUNT(*) FROM patients WHERE doctors.age = 1": "unknown-column",
    "SELECT COUNT(*)": "clause",
    "SELECT COUNT(*) FROM patients GROUP BY age HAVING age > 5 OR COUNT(*) > 9": "display",
    "SELECT COUNT(*) FROM patients GROUP BY age HAVING COUNT(*) > age": "display",
    "SELECT COUNT(*) AS n FROM patients HAVING n": "display",
    "SELECT COUNT(*) AS n FROM patients HAVING n > 'x'": "display",
    "SELECT COUNT(*) FROM patients LIMIT 10%": "display",
    "SELECT COUNT(*) FROM patients LIMIT -1": "display",
    "SELECT COUNT(*) FROM patients FETCH FIRST 1 ROW WITH TIES": "display",
    "SELECT COUNT(*) FROM patients OFFSET 1 + 1": "display",
    "SELECT COUNT(*) FROM patients ORDER BY age": "display",
    "SELECT COUNT(*) FROM patients ORDER BY 2": "display",
    "SELECT age, COUNT(*) FROM patients GROUP BY age ORDER BY state": "display",
    "SELECT DISTINCT COUNT(*) FROM patients": "clause",
    "SELECT COUNT(*) FROM patients TABLESAMPLE (10%)": "clause",
    "SELECT COUNT(*) FROM patients USING SAMPLE 10": "clause",
    "SELECT age FROM patients QUALIFY RANK() OVER (ORDER BY age) < 3": "window",
    "SELECT age, SQRT(RANK() OVER (ORDER BY COUNT(*))) AS r FROM patients GROUP BY age": "display",
    "SELECT age, SUM(age) OVER (ORDER BY COUNT(*)) AS r FROM patients GROUP BY age": "window",
    "SELECT COUNT(*) FROM patients FOR UPDATE": "clause",
    "SELECT COUNT(*) FROM patients UNION SELECT COUNT(*) FROM patients": "clause",
    "SELECT COUNT(*) FROM patients EXCEPT SELECT COUNT(*) FROM patients": "not-select",
    "SELECT COUNT(*) FROM patients INTERSECT SELECT 1": "not-select",
    "INSERT INTO patients VALUES (1)": "not-select",
    "UPDATE patients SET age = 1": "not-select",
    "DELETE FROM patients": "not-select",
    "DROP TABLE patients": "not-select",
    "CREATE TABLE t AS SELECT COUNT(*) FROM patients": "not-select",
    "COPY patients TO 'x.csv'": "not-select",
    "ATTACH 'x.db'": "not-select",
    "PRAGMA version": "not-select",
    "SELEC COUNT(*) FROM patients": "syntax",
    "SELECT COUNT(* FROM patients": "syntax",
    "SELECT COUNT(*) FROM patients WHERE": "syntax",
    "SELECT 'abc": "syntax",
    "SELECT COUNT(*) /* patients": "syntax",
    "": "empty",
    "-- only a comment": "empty",
    "SELECT * FROM patients": "group-by",
    "FROM patients": "clause",
    "SELECT 1 FROM patients": "no-answer",
    "SELECT 2 * 3 FROM patients": "no-answer",
    "SELECT age FROM patients": "group-by",
    "SELECT state FROM patients GROUP BY state": "no-answer",
    "SELECT age AS a, age AS b, COUNT(*) FROM patients GROUP BY age": "name",
    "SELECT age % 2 AS a, age % 2 AS b, COUNT(*) FROM patients GROUP BY 1, 2": "name",
    "SELECT COUNT(*) AS n, SUM(age) AS n FROM patients": "name",
    "SELECT COUNT(DISTINCT state) FROM patients": "aggregate",
    "SELECT SUM(DISTINCT age) FROM patients": "aggregate",
    "SELECT AVG(DISTINCT age) FROM patients": "aggregate",
    "SELECT AVG(state) FROM patients": "constant",
    "SELECT MIN(age) FROM patients": "aggregate",
    "SELECT MEDIAN(state) FROM patients": "quantile",
    "SELECT MEDIAN(age) FROM patients GROUP BY age": "quantile",
    "SELECT MEDIAN(age + 1) FROM patients": "quantile",
    "SELECT QUANTILE_CONT(age, 1.5) FROM patients": "quantile",
    "SELECT QUANTILE_CONT(age, [0.1, 0.9]) FROM patients": "quantile",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY state) FROM patients GROUP BY state": "window",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY age) FROM patients": "window",
    "SELECT my_function(age) FROM patients": "function",
    "SELECT COUNT(*) OVER () FROM patients": "window",
    "SELECT MAX(age) FILTER (WHERE age > 1) FROM patients": "aggregate",
    "SELECT SUM(pay) FROM patients": "cut",
    "SELECT AVG(pay) FROM patients": "cut",
    "SELECT VARIANCE(income - age) FROM patients": "aggregate",
    "SELECT SUM(SQRT(band)) FROM patients": "cut",
    "SELECT SUM(visits) FROM patients": "cut",
    "SELECT SUM(state) FROM patients": "constant",
    "SELECT SUM(income * income) FROM patients": "cut",
    "SELECT COUNT(NULL) FROM patients": "null",
    "SELECT COUNT(*) // COUNT(*) FROM patients": "formula",
    "SELECT COUNT(*) / (2 - 2) FROM patients": "formula",
    "SELECT COALESCE(AVG(age), 1) FROM patients": "formula",
    "SELECT COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY age) FROM patients": "window",
    "SELECT SUM(COUNT(*)) OVER () FROM patients GROUP BY CUBE (age)": "window",
    "SELECT COUNT(*) / 0 FROM patients": "formula",
    "SELECT COUNT(*) // 2 FROM patients": "formula",
    "SELECT COALESCE(COUNT(*), 1) FROM patients": "formula",
    "SELECT SUM(CASE WHEN age > 1 THEN 'x' END) FROM patients": "constant",
    "SELECT COUNT(*) % 2 FROM patients": "formula",
    "SELECT ROUND(COUNT(*), 50) FROM patients": "formula",
    "SELECT ROUND(AVG(age)) / COUNT(*) FROM patients": "formula",
    "SELECT FLOOR(COUNT(*)) FROM patients": "formula",
    "SELECT (SELECT COUNT(*) FROM patients) FROM patients": "subquery",
    "SELECT COUNT(*) / (SELECT COUNT(*) FROM doctors) FROM patients": "unknown-table",
    "SELECT COUNT(*) / (SELECT age FROM patients) FROM patients": "subquery",
    "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM patients GROUP BY age LIMIT 3)": "nested",
    "SELECT n / SUM(n) FROM (SELECT COUNT(*) AS n FROM patients) GROUP BY n": "nested",
    "WITH a AS (SELECT age, COUNT(*) n FROM patients GROUP BY 1), b AS (SELECT state, COUNT(*) m FROM patients GROUP BY 1) SELECT n, m FROM a JOIN b ON a.n = b.m": "join",
    "SELECT CASE WHEN AVG(age) = 'old' THEN AVG(age) END FROM patients": "display",
    "SELECT POWER(AVG(age), 1.7) FROM patients": "formula",
    "SELECT CORR(age, income) FROM patients": "aggregate",
    "SELECT SQRT(age) FROM patients": "group-by",
    "SELECT SQRT(MEDIAN(age)) FROM patients": "display",
    "SELECT n / SUM(n) OVER () FROM (SELECT age, COUNT(*) n FROM patients GROUP BY 1 LIMIT 3)": "nested",
    "SELECT COUNT(*) FROM patients UNION ALL SELECT COUNT(*) FROM patients LIMIT 1": "display",
    "SELECT CAST(COUNT(*) AS DATE) FROM patients": "formula",
    "SELECT COUNT(*) FROM patients GROUP BY 2": "display",
    "SELECT COUNT(*) FROM patients GROUP BY income / 2": "cut",
    "SELECT COUNT(*) FROM patients GROUP BY FLOOR(income / 2000)": "cut",
    "SELECT COUNT_IF(band < 10) FROM patients GROUP BY band // 15": "cut",
    "SELECT COUNT(*) FROM patients GROUP BY LOWER(state)": "cut",
    "SELECT COUNT(*) FROM patients GROUP BY ROLLUP (WIDTH_BUCKET(age, 0, age, 2))": "function",
    "SELECT income / 2, COUNT(*) FROM patients GROUP BY ALL": "cut",
    "SELECT COUNT(*) FROM patients GROUP BY CUBE (age, age)": "clause",
    "SELECT COALESCE(age, 9), COUNT(*) FROM patients GROUP BY ROLLUP (age)": "group-by",
    "SELECT COUNT(*) FROM patients GROUP BY town": "unknown-column",
}

CONDITIONS = {
    "town = 'NY'": "unknown-column",
    "smoker < TRUE": "constant",
    "state LIKE 'N%'": "cut",
    "state ILIKE 'n%'": "cut",
    "state SIMILAR TO 'N.'": "cut",
    "STRFTIME(admitted, '%Y-%H') = '2024-00'": "function",
    "LOG2(age) > 1": "function",
    "age IN (SELECT age FROM patients)": "subquery",
    "regexp_matches(state, 'N')": "cut",
    "lower(state) = 'ny'": "cut",
    "state || 'x' = 'NYx'": "cut",
    "state < 'NY'": "constant",
    "state = 5": "constant",
    "state = 'TX'": "cut",
    "state = NULL": "null",
    "state NOT IN ('NY', NULL)": "null",
    "state IN ()": "syntax",
    "state IS DISTINCT FROM 'NY'": "cut",
    "state IS NOT DISTINCT FROM 'NY'": "cut",
    "COALESCE(state, 'NY') = 'NY'": "cut",
    "age = ?": "function",
    "age = $1": "function",
    "age < band": "cut",
    "1 < age < 3": "syntax",
    "TRUE = age > 3": "syntax",
    "age < random()": "function",
    "age BETWEEN SYMMETRIC 5 AND band": "clause",
    "age IN (SELECT band)": "subquery",
    "age = (SELECT band)": "clause",
    "age = ANY (SELECT 1)": "function",
    "TO_CHAR(admitted, 'Month') = 'May'": "function",
    "EXISTS (SELECT 1)": "subquery",
    "(age, band) = (1, 2)": "cut",
    "age < 1e9999": "constant",
    "income < 1e400": "constant",
    "band < 15": "cut",
    "band = 15": "cut",
    "band IN (10, 11)": "cut",
    "band BETWEEN 0 AND 10": "cut",
    "visits < 99": "cut",
    "visits > -5": "cut",
    "income <= 1000": "cut",
    "income > 1000": "cut",
    "income = 0": "cut",
    "income < 999.5": "cut",
    "admitted < '2024-03-15'": "cut",
    "admitted < '2024-13-01'": "constant",
    "admitted < 5": "constant",
    "admitted < CURRENT_DATE": "function",
    "admitted < TIMESTAMP '2024-03-01 12:00:00'": "cut",
    "admitted < DATE '2024-03-01' + INTERVAL 1 DAY": "cut",
    "age": "constant",
    "state": "constant",
    "age + 1": "constant",
    "income % 2 = 1": "cut",
    "income * income > 1": "cut",
    "income + 1 < 1000": "cut",
    "FLOOR(income / 10) IN (1, 2)": "cut",
    "ABS(income - 500) < 1e6": "cut",
    "CAST(income AS VARCHAR) = '1'": "cut",
    "band / 3 > 2": "cut",
    "CAST(state AS INTEGER) = 1": "evaluation",
    "state + 1 = 2": "evaluation",
    "EXTRACT(hour FROM admitted) = 3": "function",
    "HOUR(admitted) = 3": "function",
    "DAY(admitted) = 3": "cut",
    "age = uuid()": "function",
    "age < now()": "function",
    "getenv('HOME') = state": "function",
    "age = nextval('s')": "function",
    "stat = 'NY'": "unknown-column",
}

WORDS = {
    "SELECT age FROM patients": "column 'age' must appear in GROUP BY or inside",
    "SELECT COUNT(DISTINCT state) FROM patients": "COUNT(DISTINCT state) is not supported",
    "SELECT MIN(age) FROM patients": "MIN(age) is not supported",
    "SELECT SUM(pay) FROM patients": "pay has no number for the cell [10, inf) of 'pay'",
    "SELECT AVG(pay) FROM patients": "filter it away, or give representatives in the domain file",
    "SELECT COUNT(*) FROM patients GROUP BY town": "no attribute is called 'town'",
    "SELECT COUNT(*) AS n, SUM(age) AS n FROM patients": "two answers are called 'n'",
    "SELECT SUM(DISTINCT age) FROM patients": "SUM(DISTINCT …) is not supported",
    "SELECT COUNT(*) FROM patients GROUP BY FLOOR(income / 2000)": "on the cell [1000, 2500.5)",
    "SELECT SUM(COUNT(*)) OVER () FROM patients GROUP BY CUBE (age)": "beside several grouping",
    "SELECT COUNT(*) FROM patients WHERE town = 'NY'": "no attribute is called 'town'; the attributes are state, age, band",
    "SELECT COUNT(*) FROM patients WHERE smoker = 2": "'smoker' holds boolean values, not 2",
    "SELECT COUNT(*) FROM patients WHERE state = 'TX'": "'TX' is not a declared value of 'state': it cuts through the cell (other)",
    "SELECT COUNT(*) FROM patients WHERE state = NULL": "NULL as a constant is not supported; write IS NULL",
    "SELECT COUNT(*) FROM patients WHERE band < 15": "band < 15 cuts through the cell 10..19 of 'band', which is counted as one; the nearest edges are band >= 10 or band < 20",
    "SELECT COUNT(*) FROM patients WHERE visits < 99": "visits < 99 cuts through the cell (above) of 'visits', which is counted as one; the nearest edges are visits >= 4",
    "SELECT COUNT(*) FROM patients WHERE income <= 1000": "the nearest edges are income >= 1000 or income < 2500.5",
    "SELECT COUNT(*) FROM patients WHERE admitted < '2024-03-15'": "the nearest edges are admitted >= '2024-03-01' or admitted < '2024-04-01'",
    "SELECT COUNT(*) FROM patients WHERE income + 1 < 1000": "(income + 1) < 1000 cuts through the cell [0, 1000) of 'income', which is counted as one; the nearest edges are income >= 0 or income < 1000",
    "SELECT COUNT(*) FROM patients WHERE DAYOFWEEK(admitted) = 1": "which is counted as one; declare 'admitted' by: day",
    "SELECT COUNT(*) FROM patients WHERE band % 2 = 1": "which is counted as one; declare 'band' with width: 1",
    "SELECT COUNT(*) FROM patients WHERE CAST(state AS INTEGER) = 1": "fails on the declared value state = NY",
    "SELECT COUNT(*) FROM patients WHERE stat = 'NY'": "did you mean 'state'?",
    "SELECT COUNT(*) FROM patients WHERE income % 2 = 1": "compare the column itself with an edge, such as income < 1000",
}
"""What some of the errors say."""


@pytest.mark.parametrize(("text", "code"), STATEMENTS.items())
def test_a_statement_outside_the_list_is_refused_with_its_code_and_line(text, code):
    above = "" if code == "empty" else "SELECT COUNT(*) AS n FROM patients\nWHERE age < 5;\n"
    with pytest.raises(SqlError) as caught:
        sql(above + text, DOMAIN)
    assert caught.value.code == code
    assert code in CODES
    assert str(caught.value).startswith("line 3: " if above else "the batch is empty")


@pytest.mark.parametrize(("text", "words"), WORDS.items())
def test_an_error_says_what_was_found_and_what_to_write(text, words):
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert words in str(caught.value)


def test_a_quotation_that_never_ends_is_named_where_it_starts():
    above = "SELECT COUNT(*) -- it's\nFROM patients\nWHERE state = 'one\nand ''two''';\n"
    for opened in ("SELECT 'abc\n\n;", 'SELECT 1, "x\n;\n', "/* \n\n", "SELECT $a$ \n\n"):
        with pytest.raises(SqlError, match=r"^line 5: a quotation or comment that starts here"):
            sql(above + opened, DOMAIN)
    with pytest.raises(SqlError, match=r"^line 2: a quotation"):
        sql("SELECT\n'" + "abc\n" * 10_000, DOMAIN)


@pytest.mark.parametrize(("condition", "code"), CONDITIONS.items())
def test_a_condition_outside_the_list_is_refused_with_its_code(condition, code):
    with pytest.raises(SqlError) as caught:
        sql(f"SELECT COUNT(*)\nFROM patients\nWHERE {condition}", DOMAIN)
    assert caught.value.code == code
    assert str(caught.value).startswith("line ")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_refused_condition_is_refused_wherever_it_stands(condition):
    """WHERE, FILTER and CASE take the same conditions."""
    for text in (
        f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM patients",
        f"SELECT SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM patients",
        f"SELECT COUNT(*) FROM patients WHERE NOT ({condition})",
    ):
        with pytest.raises(SqlError):
            sql(text, DOMAIN)


def test_the_line_of_the_statement_is_named():
    text = "SELECT COUNT(*) FROM patients;\n\n-- two\nSELECT COUNT(*)\nFROM patients\nFOR UPDATE"
    with pytest.raises(SqlError, match=r"^line (4|5|6): FOR UPDATE is not supported"):
        sql(text, DOMAIN)


def test_deep_nesting_is_an_error_and_long_chains_are_not():
    deep = "(" * 5000 + "age < 5" + ")" * 5000
    with pytest.raises(SqlError, match="line 1"):
        sql(f"SELECT COUNT(*) FROM patients WHERE {deep}", DOMAIN)
    chain = " OR ".join(["age < 5"] * 3000)
    batch = sql(f"SELECT COUNT(*) FROM patients WHERE {chain}", DOMAIN)
    assert batch.shape[0] == 1
