"""Statements that mean the same have the same answers: they are rewritten, and compared."""

from __future__ import annotations

import math

import pytest
import sqlglot
from sqlglot import exp

from long_runs import cases
from lrm.errors import SqlError
from lrm.queries.sql import sql
from sql_grammar import TYPES, Grammar

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")


def _answers(table, text):
    """The answers without noise, by name and group; None where the statement is refused."""
    try:
        batch = sql(text, table.domain)
    except SqlError:
        return None
    return {
        (name, frozenset(group)): value
        for name, own in table.exact(batch).items()
        for group, (value, _) in own.items()
    }


def _other_case(make, text):
    """The same statement with names in any case, some of them in quotes."""
    tree = sqlglot.parse_one(text, read="duckdb")
    names = {*TYPES, "t", "names", "halves", "name", "size", "half"}
    for one in tree.find_all(exp.Identifier):
        if one.name in names and not isinstance(one.parent, exp.Alias | exp.TableAlias):
            spelt = "".join(make.one(letter.upper(), letter) for letter in one.name)
            one.replace(exp.to_identifier(spelt, quoted=make.maybe(0.5)))
    return tree.sql(dialect="duckdb")


def _wrapped(_, text):
    return f"SELECT * FROM ({text})"


def _in_with(_, text):
    return f"WITH whole AS ({text}) SELECT * FROM whole"


def _inlined(_, text):
    """WITH written into the places that read it."""
    tree = sqlglot.parse_one(text, read="duckdb")
    inner = {one.alias: one.this for one in tree.ctes}
    tree.set("with_", None)
    for _ in inner:
        for one in list(tree.find_all(exp.Table)):
            if one.name in inner:
                alias = exp.TableAlias(this=exp.to_identifier(one.alias or one.name))
                one.replace(exp.Subquery(this=inner[one.name].copy(), alias=alias))
    return tree.sql(dialect="duckdb")


def _rendered(_, text):
    return sqlglot.parse_one(text, read="duckdb").sql(dialect="duckdb")


REWRITES = (_other_case, _wrapped, _in_with, _inlined, _rendered)
STATEMENTS = 12


def compare(seed, rewrite):
    make = Grammar(seed)
    table = make.table()
    compared = 0
    for _ in range(STATEMENTS):
        text = make.statement()
        one = _answers(table, text)
        if one is None:
            continue
        other = rewrite(make, text)
        two = _answers(table, other)
        assert two is not None, (text, other)
        assert one.keys() == two.keys(), (text, other)
        for key, value in one.items():
            both = math.isnan(value) and math.isnan(two[key])
            assert both or math.isclose(value, two[key], abs_tol=1e-9), (text, other, key)
        compared += 1
    return compared


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_rewritten_statement_has_the_same_answers(rewrite):
    assert sum(compare(seed, rewrite) for seed in (1, 2)) > STATEMENTS / 2


@pytest.mark.long
@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("seed", range(100, 100 + cases(20)))
def test_many_rewritten_statements_have_the_same_answers(seed, rewrite):
    compare(seed, rewrite)
