"""Statement by statement: what was compiled before is not compiled again, and changes nothing."""

from __future__ import annotations

import pytest

from lrm.domain import Categories, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import compile as compiler
from lrm.queries.sql import sql
from lrm.queries.sql.compile import Memory, outcomes
from lrm.queries.sql.source import split

DOMAIN = Domain([Categories("state", ["NY", "NJ"]), Integers("age", 0, 9)], "people")
STATEMENTS = [
    "SELECT COUNT(*) FROM people",
    "SELECT state, AVG(age) AS mean FROM people GROUP BY state ORDER BY mean",
    "SELECT COUNT(*) AS n FROM people WHERE age < 3",
    "SELECT COUNT(*) AS n, SUM(age) FROM people\nUNION ALL SELECT COUNT(*), SUM(age) FROM people",
    "SELECT state, MEDIAN(age) AS m FROM people GROUP BY state",
]


@pytest.fixture
def compiled(monkeypatch):
    """The statements that are compiled, not remembered."""
    found = []
    build = compiler.build

    def noted(chunk, domain):
        found.append(chunk.text)
        return build(chunk, domain)

    monkeypatch.setattr(compiler, "build", noted)
    monkeypatch.setattr(compiler, "_MEMORY", Memory())
    return found


def facts(batch):
    return (
        batch.names,
        batch.queries.dense().tolist(),
        batch.derived,
        batch.display,
        batch.statements,
    )


def test_a_changed_statement_is_compiled_alone(compiled):
    sql(";\n".join(STATEMENTS), DOMAIN)
    assert compiled == STATEMENTS
    compiled.clear()
    sql(
        ";\n".join([*STATEMENTS[:2], "SELECT COUNT(*) AS few FROM people", *STATEMENTS[2:]]), DOMAIN
    )
    assert compiled == ["SELECT COUNT(*) AS few FROM people"]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_remembered_is_what_would_be_compiled(compiled, monkeypatch, seed):
    """In another order, on other lines, with other names beside it."""
    order = [STATEMENTS[(place * 2 + seed) % 5] for place in range(5 - seed % 2)]
    sql(";".join(STATEMENTS), DOMAIN)
    text = "\n\n".join(f"-- part {place}\n{one};" for place, one in enumerate(order))
    again = facts(sql(text, DOMAIN))
    monkeypatch.setattr(compiler, "_MEMORY", Memory())
    assert facts(sql(text, DOMAIN)) == again


def test_an_error_is_remembered_where_it_stands_now(compiled):
    wrong = "SELECT COUNT(*)\nFROM people WHERE town = 1"
    for above in ("", "\n\n", "SELECT COUNT(*) AS n FROM people;\n"):
        with pytest.raises(SqlError) as caught:
            sql(above + wrong, DOMAIN)
        assert caught.value.line == 2 + above.count("\n")
        assert caught.value.column == 19


def test_another_domain_forgets_everything(compiled):
    sql(STATEMENTS[0], DOMAIN)
    sql(STATEMENTS[0], Domain(DOMAIN.attributes[:1], "people"))
    assert compiled == STATEMENTS[:1] * 2


def test_without_time_statements_are_left_for_the_next_time():
    memory = Memory()
    chunks = split(";".join(STATEMENTS))
    first = outcomes(chunks, DOMAIN, memory, -1.0)
    assert all(one.made is None and one.error is None for one in first)
    second = outcomes(chunks, DOMAIN, memory)
    assert all(one.made is not None for one in second)
    third = outcomes(chunks, DOMAIN, memory)
    assert [one.made for one in third] == [one.made for one in second]
