"""Statements that must be refused, each with its sentence; none of them may reach an engine."""

from __future__ import annotations

import pytest

from lrm.batches import sql
from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import SqlError

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
    # other tables
    "SELECT COUNT(*) FROM patients JOIN visits USING (id)": "JOIN is not compiled",
    "SELECT COUNT(*) FROM patients, visits": "JOIN is not compiled",
    "SELECT COUNT(*) FROM patients LEFT JOIN v ON TRUE": "JOIN is not compiled",
    "SELECT COUNT(*) FROM patients NATURAL JOIN v": "JOIN is not compiled",
    "SELECT COUNT(*) FROM patients, UNNEST([1, 2])": "JOIN is not compiled",
    "SELECT COUNT(*) FROM (SELECT age FROM patients LIMIT 5)": "LIMIT in a sub-select is not",
    "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM patients)": "DISTINCT is not compiled",
    "SELECT COUNT(*) FROM (SELECT age FROM patients) WHERE band = 1": "no column 'band'; its",
    "SELECT COUNT(*) FROM (SELECT age a, band a FROM patients)": "two columns called 'a' is not",
    "SELECT a FROM (SELECT age AS a FROM doctors)": "table 'doctors' is unknown",
    "SELECT COUNT(*) FROM (SELECT age FROM patients GROUP BY age)": "COUNT() of answers is not",
    "SELECT AVG(n) FROM (SELECT age, COUNT(*) AS n FROM patients GROUP BY 1)": "of answers is not",
    "WITH p AS (SELECT 1) SELECT COUNT(*) FROM patients": "SELECT without FROM is not compiled",
    "WITH RECURSIVE p AS (SELECT age FROM patients) SELECT COUNT(*) FROM p": "RECURSIVE is not",
    "WITH p AS (SELECT age FROM patients) SELECT COUNT(*) FROM p JOIN p q ON 1 = 1": "JOIN is not",
    "SELECT COUNT(*) FROM doctors": "table 'doctors' is unknown; the domain declares 'patients'",
    "SELECT COUNT(*) FROM other.patients": "table 'other.patients' is unknown",
    "SELECT COUNT(*) FROM read_csv('x.csv')": "a table function is not compiled",
    "SELECT COUNT(*) FROM 'x.csv'": "table 'x.csv' is unknown",
    "SELECT COUNT(*) FROM (VALUES (1)) v": "VALUES is not compiled",
    "SELECT COUNT(*) FROM patients PIVOT (COUNT(*) FOR state IN ('NY'))": "PIVOT is not compiled",
    "SELECT COUNT(*) FROM patients WHERE doctors.age = 1": "table 'doctors' is not compiled",
    "SELECT COUNT(*)": "SELECT without FROM is not compiled",
    # which rows are answered
    "SELECT COUNT(*) FROM patients GROUP BY age HAVING age > 5 OR COUNT(*) > 9": "HAVING with age",
    "SELECT COUNT(*) FROM patients GROUP BY age HAVING COUNT(*) > age": "HAVING COUNT(*) > age is",
    "SELECT COUNT(*) AS n FROM patients HAVING n": "HAVING compares aggregates with numbers",
    "SELECT COUNT(*) AS n FROM patients HAVING n > 'x'": "expected a number, got 'x'",
    "SELECT COUNT(*) FROM patients LIMIT 10%": "LIMIT must be a whole number, such as LIMIT 10",
    "SELECT COUNT(*) FROM patients LIMIT -1": "LIMIT must be a whole number",
    "SELECT COUNT(*) FROM patients FETCH FIRST 1 ROW WITH TIES": "LIMIT must be a whole number",
    "SELECT COUNT(*) FROM patients OFFSET 1 + 1": "OFFSET must be a whole number",
    "SELECT COUNT(*) FROM patients ORDER BY age": "ORDER BY age is not compiled; order by answers",
    "SELECT COUNT(*) FROM patients ORDER BY 2": "ORDER BY 2: the SELECT list has 1 items",
    "SELECT age, COUNT(*) FROM patients GROUP BY age ORDER BY age % 2": "ORDER BY age % 2 is not",
    "SELECT DISTINCT COUNT(*) FROM patients": "DISTINCT is not compiled",
    "SELECT COUNT(*) FROM patients TABLESAMPLE (10%)": "TABLESAMPLE is not compiled",
    "SELECT COUNT(*) FROM patients USING SAMPLE 10": "TABLESAMPLE is not compiled",
    "SELECT COUNT(*) FROM patients QUALIFY TRUE": "QUALIFY is not compiled",
    "SELECT COUNT(*) FROM patients WINDOW w AS ()": "WINDOW is not compiled",
    "SELECT COUNT(*) FROM patients FOR UPDATE": "FOR UPDATE is not compiled",
    # other statements
    "SELECT COUNT(*) FROM patients UNION SELECT COUNT(*) FROM patients": "UNION is not compiled",
    "SELECT COUNT(*) FROM patients EXCEPT SELECT COUNT(*) FROM patients": "EXCEPT is not compiled",
    "SELECT COUNT(*) FROM patients INTERSECT SELECT 1": "INTERSECT is not compiled",
    "INSERT INTO patients VALUES (1)": "INSERT is not compiled",
    "UPDATE patients SET age = 1": "UPDATE is not compiled",
    "DELETE FROM patients": "DELETE is not compiled",
    "DROP TABLE patients": "DROP is not compiled",
    "CREATE TABLE t AS SELECT COUNT(*) FROM patients": "CREATE is not compiled",
    "COPY patients TO 'x.csv'": "is not compiled; a batch holds only SELECT statements",
    "ATTACH 'x.db'": "is not compiled; a batch holds only SELECT statements",
    "PRAGMA version": "is not compiled; a batch holds only SELECT statements",
    "SELEC COUNT(*) FROM patients": "cannot parse the SQL",
    "SELECT COUNT(*) FROM [patients]": "expected table name near '['; write names in double quotes",
    "SELECT TOP 3 age, COUNT(*) FROM patients GROUP BY age": "TOP 3 is not compiled; write LIMIT 3",
    "SELECT COUNT(* FROM patients": "cannot parse the SQL",
    "SELECT COUNT(*) FROM patients WHERE": "parse the SQL: something is missing near 'WHERE'",
    "SELECT 'abc": "a quotation or comment that starts here never ends",
    "SELECT COUNT(*) /* patients": "a quotation or comment that starts here never ends",
    "": "the batch is empty",
    "-- only a comment": "the batch is empty",
    # answers
    "SELECT * FROM patients": "SELECT * is not compiled",
    "FROM patients": "FROM without SELECT is not compiled; answers are COUNT(*)",
    "SELECT 1 FROM patients": "a constant as an answer is not compiled",
    "SELECT 2 * 3 FROM patients": "a constant as an answer is not compiled",
    "SELECT age FROM patients": "column 'age' outside GROUP BY is not compiled",
    "SELECT state FROM patients GROUP BY state": "a SELECT without an aggregate is not compiled",
    "SELECT age AS a, age AS b, COUNT(*) FROM patients GROUP BY age": "age under two names is",
    "SELECT age % 2 AS a, age % 2 AS b, COUNT(*) FROM patients GROUP BY 1, 2": "under two names",
    "SELECT COUNT(*) AS n, SUM(age) AS n FROM patients": "two answers are called 'n'",
    "SELECT COUNT(DISTINCT state) FROM patients": "COUNT(DISTINCT …) is not compiled",
    "SELECT SUM(DISTINCT age) FROM patients": "SUM(DISTINCT …) is not compiled",
    "SELECT AVG(DISTINCT age) FROM patients": "AVG(DISTINCT …) is not compiled",
    "SELECT AVG(state) FROM patients": "SUM(state) is not compiled; it is VARCHAR, not a number",
    "SELECT MIN(age) FROM patients": "MIN() is not compiled",
    "SELECT MEDIAN(state) FROM patients": "a quantile of 'state' is not compiled",
    "SELECT MEDIAN(age) FROM patients GROUP BY age": "a quantile of age by age is not compiled",
    "SELECT MEDIAN(age + 1) FROM patients": "is not compiled; ",
    "SELECT QUANTILE_CONT(age, 1.5) FROM patients": "must be between 0 and 1, not 1.5",
    "SELECT QUANTILE_CONT(age, [0.1, 0.9]) FROM patients": "without one constant level",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY state) FROM patients GROUP BY state": "cell (other)",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY age) FROM patients": "order by one of the groups",
    "SELECT my_function(age) FROM patients": "MY_FUNCTION() is not compiled",
    "SELECT COUNT(*) OVER () FROM patients": "this window function (OVER) is not compiled",
    "SELECT MAX(age) FILTER (WHERE age > 1) FROM patients": "MAX() is not compiled",
    "SELECT SUM(pay) FROM patients": "pay has no number for the cell [10, inf) of 'pay'",
    "SELECT AVG(pay) FROM patients": "filter it away, or give representatives in the domain file",
    "SELECT VARIANCE(income - age) FROM patients": "a variance of income - age is not compiled",
    "SELECT SUM(SQRT(band)) FROM patients": "SQRT(band) has no one value on the cell 0..9",
    "SELECT SUM(visits) FROM patients": "visits has no one value on the cell (below)",
    "SELECT SUM(state) FROM patients": "SUM(state) is not compiled; it is VARCHAR, not a number",
    "SELECT SUM(income * income) FROM patients": "has no one value on the cells of 'income'",
    "SELECT COUNT(NULL) FROM patients": "COUNT(NULL) is not compiled",
    "SELECT COUNT(*) // COUNT(*) FROM patients": "integer division of answers is not compiled",
    "SELECT COUNT(*) / (2 - 2) FROM patients": "an aggregate is divided by 0",
    "SELECT COALESCE(AVG(age), 1) FROM patients": "only 0 may stand there",
    "SELECT COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY age) FROM patients": "PARTITION BY age",
    "SELECT SUM(COUNT(*)) OVER () FROM patients GROUP BY CUBE (age)": "beside several grouping",
    "SELECT COUNT(*) / 0 FROM patients": "an aggregate is divided by 0",
    "SELECT COUNT(*) // 2 FROM patients": "integer division of answers is not compiled",
    "SELECT COALESCE(COUNT(*), 1) FROM patients": "only 0 may stand for a sum over no rows",
    "SELECT SUM(CASE WHEN age > 1 THEN 'x' END) FROM patients": "expected a number to sum, got 'x'",
    "SELECT COUNT(*) % 2 FROM patients": "is not compiled; answers are COUNT(*)",
    "SELECT ROUND(COUNT(*), 50) FROM patients": "ROUND takes between -12 and 12 digits",
    "SELECT ROUND(AVG(age)) / COUNT(*) FROM patients": "ROUND within a formula is not compiled",
    "SELECT FLOOR(COUNT(*)) FROM patients": "FLOOR() is not compiled",
    "SELECT (SELECT COUNT(*) FROM patients) FROM patients": "a subquery beside every row is not",
    "SELECT COUNT(*) / (SELECT COUNT(*) FROM doctors) FROM patients": "a subquery of 'doctors' is",
    "SELECT COUNT(*) / (SELECT age FROM patients) FROM patients": "a subquery without an aggregate",
    "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM patients GROUP BY age LIMIT 3)": "after LIMIT",
    "SELECT SUM(a) FROM (SELECT AVG(age) AS a FROM patients GROUP BY state)": "a sum of rates or",
    "SELECT n / SUM(n) FROM (SELECT COUNT(*) AS n FROM patients) GROUP BY n": "beside sums of answ",
    "WITH a AS (SELECT age, COUNT(*) n FROM patients GROUP BY 1), b AS (SELECT state, COUNT(*) m "
    "FROM patients GROUP BY 1) SELECT n, m FROM a JOIN b ON a.n = b.m": "compare the same columns",
    "SELECT CASE WHEN COUNT(*) > 9 THEN AVG(age) END FROM patients": "of aggregates, CASE WHEN d",
    "SELECT POWER(AVG(age), 1.7) FROM patients": "exponents are 0.5, 2 and 3",
    "SELECT CORR(age, income) FROM patients": "a correlation of 'income' is not compiled",
    "SELECT SQRT(age) FROM patients": "SQRT(age) without an aggregate is not compiled",
    "SELECT MEDIAN(age) - AVG(age) FROM patients": "a quantile within a formula is not compiled",
    "SELECT SUM(COUNT(*)) OVER () FROM patients GROUP BY age HAVING COUNT(*) > 1": "OVER beside",
    "SELECT n / SUM(n) OVER () FROM (SELECT age, COUNT(*) n FROM patients GROUP BY 1) WHERE n>9": (
        "OVER after the condition COUNT(*) > 9 is not compiled; which groups are kept"
    ),
    "SELECT n / SUM(n) OVER () FROM (SELECT age, COUNT(*) n FROM patients GROUP BY 1 LIMIT 3)": (
        "OVER after LIMIT is not compiled"
    ),
    "SELECT COUNT(*) FROM patients UNION ALL SELECT COUNT(*) FROM patients LIMIT 1": "by a text",
    "SELECT CAST(COUNT(*) AS DATE) FROM patients": "CAST of an aggregate to DATE is not compiled",
    # groups
    "SELECT COUNT(*) FROM patients GROUP BY 2": "GROUP BY 2: the SELECT list has 1 items",
    "SELECT COUNT(*) FROM patients GROUP BY income / 2": "it has no one value on any cell",
    "SELECT COUNT(*) FROM patients GROUP BY FLOOR(income / 2000)": "on the cell [1000, 2500.5)",
    "SELECT COUNT_IF(band < 10) FROM patients GROUP BY band // 15": "on the cell 10..19 of 'band'",
    "SELECT COUNT(*) FROM patients GROUP BY LOWER(state)": "on the cell (other) of 'state'",
    "SELECT COUNT(*) FROM patients GROUP BY ROLLUP (WIDTH_BUCKET(age, 0, age, 2))": "as numbers",
    "SELECT income / 2, COUNT(*) FROM patients GROUP BY ALL": "GROUP BY income / 2 is not compiled",
    "SELECT COUNT(*) FROM patients GROUP BY CUBE (age, age)": "the grouping set (age) twice is not",
    "SELECT COALESCE(age, 9), COUNT(*) FROM patients GROUP BY ROLLUP (age)": "a row without its",
    "SELECT COUNT(*) FROM patients GROUP BY town": "no attribute is called 'town'",
}

CONDITIONS = {
    "town = 'NY'": "no attribute is called 'town'; the attributes are state, age, band",
    "smoker = 1": "'smoker' holds boolean values, not 1",
    "smoker < TRUE": "the order of boolean values",
    "state LIKE 'N%'": "state LIKE 'N%' has no one value on the cell (other) of 'state'",
    "state ILIKE 'n%'": "has no one value on the cell (other)",
    "state SIMILAR TO 'N.'": "has no one value on the cell (other)",
    "STRFTIME(admitted, '%Y-%H') = '2024-00'": "format year, month, week and day: '%Y-%m-%d'",
    "LOG10(age) > 1": "write LOG(x) for base 10, or LN(x)",
    "age IN (SELECT age FROM patients)": "a subquery is not compiled; list the constants, or",
    "regexp_matches(state, 'N')": "has no one value on the cell (other)",
    "lower(state) = 'ny'": "LOWER(state) = 'ny' has no one value on the cell (other)",
    "state || 'x' = 'NYx'": "has no one value on the cell (other)",
    "state < 'NY'": "the order of text values of 'state' is not compiled",
    "state = 5": "'state' holds text values, not 5",
    "state = 'TX'": "'TX' is not a declared value of 'state': it cuts through the cell (other)",
    "state = NULL": "NULL as a constant is not compiled; write IS NULL",
    "state NOT IN ('NY', NULL)": "NULL as a constant is not compiled; write IS NULL",
    "state IN ()": "IN without constants is not compiled",
    "state IS DISTINCT FROM 'NY'": "has no one value on the cell (other)",
    "state IS NOT DISTINCT FROM 'NY'": "has no one value on the cell (other)",
    "COALESCE(state, 'NY') = 'NY'": "has no one value on the cell (other)",
    "age = ?": "a placeholder is not compiled",
    "age = $1": "a placeholder is not compiled",
    "age < band": "age < band has no one value on the cell 0..9 of 'band'",
    "1 < age < 3": "the chain 1 < age < 3 is not compiled; join two comparisons by AND",
    "TRUE = age > 3": "or write parentheses",
    "age < random()": "RANDOM() is not compiled",
    "age BETWEEN SYMMETRIC 5 AND band": "BETWEEN SYMMETRIC is not compiled",
    "age IN (SELECT 1)": "a subquery is not compiled",
    "age = (SELECT 1)": "a subquery in a condition is not",
    "age = ANY (SELECT 1)": "a subquery",
    "TO_CHAR(admitted, 'Month') = 'May'": "the format of TO_CHAR() is not compiled",
    "EXISTS (SELECT 1)": "EXISTS is not compiled",
    "(age, band) = (1, 2)": "has no one value on the cell 0..9",
    "age < 1e9999": "expected a number such as 12 or 0.5",
    "income < 1e400": "too large for a number of 'income'",
    "band < 15": "band < 15 cuts through the cell 10..19 of 'band', which is counted as one; "
    "the nearest edges are band >= 10 or band < 20",
    "band = 15": "the nearest edges are band >= 10 or band < 20",
    "band IN (10, 11)": "cuts through the cell 10..19",
    "band BETWEEN 0 AND 10": "cuts through the cell 10..19",
    "visits < 99": "visits < 99 cuts through the cell (above) of 'visits', "
    "which is counted as one; the nearest edges are visits >= 4",
    "visits > -5": "cuts through the cell (below)",
    "income <= 1000": "the nearest edges are income >= 1000 or income < 2500.5",
    "income > 1000": "cuts through the cell [1000, 2500.5)",
    "income = 0": "cuts through the cell [0, 1000)",
    "income < 999.5": "the nearest edges are income >= 0 or income < 1000",
    "admitted < '2024-03-15'": "the nearest edges are admitted >= '2024-03-01' or "
    "admitted < '2024-04-01'",
    "admitted < '2024-13-01'": "expected a date such as '2024-01-31', got '2024-13-01'",
    "admitted < 5": "'admitted' holds dates such as '2024-01-31', not 5",
    "admitted < CURRENT_DATE": "CURRENT_DATE is not compiled",
    "admitted < TIMESTAMP '2024-03-01 12:00:00'": "CAST to TIMESTAMP is not compiled",
    "admitted < DATE '2024-03-01' + INTERVAL 1 DAY": "cuts through the cell 2024-03",
    "age": "'age' as a condition is not compiled; compare it: age >= 0",
    "state": "'state' as a condition is not compiled; compare it: state = 'NY'",
    "age + 1": "age + 1 as a condition is not compiled",
    "income % 2 = 1": "compare the column itself with an edge, such as income < 1000",
    "income * income > 1": "has no one value on the cells of 'income', which are intervals",
    "income + 1 < 1000": "income + 1 < 1000 cuts through the cell [0, 1000) of 'income', which is "
    "counted as one; the nearest edges are income >= 0 or income < 1000",
    "FLOOR(income / 10) IN (1, 2)": "FLOOR(income / 10) = 1 cuts through the cell [0, 1000)",
    "ABS(income - 500) < 1e6": "cuts through the cell [0, 1000)",
    "CAST(income AS VARCHAR) = '1'": "which are intervals; compare the column itself",
    "band / 3 > 2": "band / 3 > 2 has no one value on the cell 0..9",
    "CAST(state AS INTEGER) = 1": "fails on the declared value state = NY",
    "state + 1 = 2": "state + 1 = 2 cannot be evaluated: No function matches",
    "EXTRACT(hour FROM admitted) = 3": "the part 'HOUR' of a date is not compiled",
    "HOUR(admitted) = 3": "HOUR() is not compiled",
    "DAY(admitted) = 3": "DAY(admitted) = 3 has no one value on the cell 2024-01",
    "age = uuid()": "UUID() is not compiled",
    "age < now()": "is not compiled",
    "getenv('HOME') = state": "GETENV() is not compiled",
    "age = nextval('s')": "NEXTVAL() is not compiled",
    "stat = 'NY'": "did you mean 'state'?",
}


def test_the_lists_are_long_enough():
    assert len(STATEMENTS) + len(CONDITIONS) >= 60


@pytest.mark.parametrize(("text", "sentence"), STATEMENTS.items())
def test_a_statement_outside_the_list_is_refused_by_name(text, sentence):
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "text", [text for text, said in STATEMENTS.items() if "batch is empty" not in said]
)
def test_every_refusal_names_the_line_of_its_statement(text):
    with pytest.raises(SqlError, match=r"^line 3: "):
        sql("SELECT COUNT(*) AS n FROM patients\nWHERE age < 5;\n" + text, DOMAIN)


def test_a_quotation_that_never_ends_is_named_where_it_starts():
    above = "SELECT COUNT(*) -- it's\nFROM patients\nWHERE state = 'one\nand ''two''';\n"
    for opened in ("SELECT 'abc\n\n;", 'SELECT 1, "x\n;\n', "/* \n\n", "SELECT $a$ \n\n"):
        with pytest.raises(SqlError, match=r"^line 5: a quotation or comment that starts here"):
            sql(above + opened, DOMAIN)
    with pytest.raises(SqlError, match=r"^line 2: a quotation"):
        sql("SELECT\n'" + "abc\n" * 10_000, DOMAIN)


@pytest.mark.parametrize(("condition", "sentence"), CONDITIONS.items())
def test_a_condition_outside_the_list_is_refused_by_name(condition, sentence):
    with pytest.raises(SqlError) as caught:
        sql(f"SELECT COUNT(*)\nFROM patients\nWHERE {condition}", DOMAIN)
    assert sentence in str(caught.value)
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
    text = "SELECT COUNT(*) FROM patients;\n\n-- two\nSELECT COUNT(*)\nFROM patients\nQUALIFY TRUE"
    with pytest.raises(SqlError, match=r"^line (4|5|6): QUALIFY is not compiled"):
        sql(text, DOMAIN)


def test_deep_nesting_is_an_error_and_long_chains_are_not():
    deep = "(" * 5000 + "age < 5" + ")" * 5000
    with pytest.raises(SqlError, match="line 1"):
        sql(f"SELECT COUNT(*) FROM patients WHERE {deep}", DOMAIN)
    chain = " OR ".join(["age < 5"] * 3000)
    batch = sql(f"SELECT COUNT(*) FROM patients WHERE {chain}", DOMAIN)
    assert batch.shape[0] == 1
