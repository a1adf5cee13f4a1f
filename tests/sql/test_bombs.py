"""A line of SQL took all memory, or would not end.

``REPEAT('x', 1000000000)`` took 3 GB and 19 s to compile, and columns of columns that are each
used twice doubled the statement at every step: 15 of them took 12 s. A list of a million numbers
took 80 s and 2.5 GB, and a position of 5,000 digits ended in a traceback.
"""

import pytest

import lrm
from lrm.errors import SqlError

DOMAIN = lrm.Domain([lrm.Integers("age", 0, 9), lrm.Categories("c", ["a", "b", "x y"])], "t")

LONG = "a text of more than 10,000 characters is not supported"
REPLACED = "'aaaaaaaaaa'"
for _ in range(8):
    REPLACED = f"REPLACE({REPLACED}, 'a', 'aaaaaaaaaa')"


@pytest.mark.parametrize(
    "text",
    [
        "REPEAT('x', 1000000000)",
        "REPEAT('x', age * 1000000)",
        "REPEAT(REPEAT(c, 1000), 1000)",
        "LPAD(c, 1000000000, 'y')",
        "RPAD(c, 99999999999999, 'y')",
        "PRINTF('%1000000000d', age)",
        "PRINTF('%*d', 1000000000, age)",
        "REPLACE(REPEAT('x', 2000), 'x', REPEAT(c, 90))",
        "REGEXP_REPLACE(REPEAT('x', 2000), '', 'yyyyyyyyyyyy', 'g')",
        REPLACED,
        "UPPER(CASE WHEN age = 3 THEN REPEAT('x', 1000000000) ELSE 'a' END)",
    ],
)
def test_a_text_that_would_become_very_long_is_refused(text):
    for statement in (
        f"SELECT COUNT(*) FROM t WHERE LENGTH({text}) > age",
        f"SELECT COUNT(*) FROM t WHERE {text} = 'a'",
        f"SELECT {text} AS long, COUNT(*) AS n FROM t GROUP BY 1",
        f"SELECT SUM(LENGTH({text})) AS n FROM t",
    ):
        with pytest.raises(SqlError, match=LONG):
            lrm.sql(statement, DOMAIN)


@pytest.mark.parametrize(
    "condition",
    [
        "LPAD(CAST(age AS VARCHAR), 2, '0') = '03'",
        "REPEAT(c, 3) = 'aaa'",
        "REPLACE(c, ' ', '') = 'xy'",
        "c || '-' || age = 'a-3'",
        "PRINTF('%03d', age) = '003'",
        "CASE "
        + " ".join(f"WHEN age = {i % 10} THEN c || {i}" for i in range(300))
        + " END = 'a3'",
    ],
)
def test_ordinary_texts_are_compiled(condition):
    assert lrm.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", DOMAIN).shape[0] == 1


def test_columns_that_double_at_every_step_are_refused():
    steps = ", ".join(f"x{i} AS (SELECT a + a AS a FROM x{i - 1})" for i in range(1, 40))
    inner = f"WITH x0 AS (SELECT age AS a FROM t), {steps} SELECT COUNT(*) FROM x39 WHERE a > 3"
    aliases = ", ".join(f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, 40))
    for statement in (inner, f"SELECT age AS a0, {aliases}, COUNT(*) AS n FROM t GROUP BY a39"):
        with pytest.raises(SqlError, match="so long an expression is not supported"):
            lrm.sql(statement, DOMAIN)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            f"SELECT COUNT(*) FROM t WHERE age IN ({'1, ' * 60_000}2)",
            "120,013 words and signs",
        ),
        (f"SELECT COUNT(*) FROM t -- {'x' * 4_000_000}", "a batch of 4,000,026 characters is not"),
        (f"SELECT age, COUNT(*) FROM t GROUP BY {'9' * 5000}", "GROUP BY 999999999…: the SELECT"),
        (f"SELECT age, COUNT(*) FROM t GROUP BY age LIMIT {'9' * 5000}", "must be a whole number"),
        (
            f"SELECT COUNT(*) FROM t WHERE {'(' * 3000}age = 1{')' * 3000}",
            "nested too deeply",
        ),
    ],
    ids=["list", "comment", "position", "limit", "parentheses"],
)
def test_a_very_long_statement_is_refused(statement, sentence):
    with pytest.raises(SqlError, match=sentence):
        lrm.sql(statement, DOMAIN)
