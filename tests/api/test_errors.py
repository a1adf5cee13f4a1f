"""Errors are data: line, column, field and what was charged, without reading their text."""

import pickle

import pytest

import lrm
from lrm.domain.file import parse_domain
from lrm.errors import DomainError, LrmError, SqlError, UsageError
from lrm.workbench.compiling import Compiler
from lrm.workbench.folder import Text

DOMAIN = """lrm-domain: 1
unit: row
attributes:
  - {name: a, kind: integers, low: 0, high: -1, null: drop, outside: drop}
  - {name: b, kind: colours, null: drop, outside: drop}
  - {name: c, kind: integers, low: 0, high: 9, null: drop, outside: drop}
  - {name: d, kind: integers, low: 0, high: 9, null: maybe, outside: drop}
"""


def test_each_error_of_a_domain_file_has_its_line_and_field():
    with pytest.raises(DomainError) as caught:
        parse_domain(DOMAIN, "domain.yaml")
    errors = caught.value.each
    assert [error.line for error in errors] == [4, 5, 7]
    assert all(error.field for error in errors)
    assert [str(error) for error in errors] == caught.value.sentences
    assert not any("domain.yaml" in error.plain for error in errors)


def test_three_errors_of_a_domain_file_are_three_marks_of_the_workbench():
    outcome = Compiler().compile(Text("domain.yaml", DOMAIN), Text("batch.sql", "SELECT 1"))
    assert [problem.line for problem in outcome.domain_problems] == [4, 5, 7]


def test_each_error_of_a_batch_has_its_line_and_column():
    domain = lrm.Domain([lrm.Integers("age", 0, 9)], "t")
    with pytest.raises(SqlError) as caught:
        lrm.sql("SELECT COUNT(*) FROM t WHERE colour = 1;\nSELECT MIN(age) FROM t", domain)
    assert [error.line for error in caught.value.each] == [1, 2]
    assert all(error.column for error in caught.value.each)


def test_an_error_after_the_charge_states_it(tmp_path):
    domain = lrm.Domain([lrm.Integers("age", 0, 9)], "people")
    plan = lrm.plan(lrm.sql("SELECT COUNT(*) AS n FROM people", domain), "noise-on-data")
    (tmp_path / "people.csv").write_text("age\n1\n", encoding="utf-8")
    ledger = lrm.Ledger.open(str(tmp_path / "budget.sqlite"))
    ledger.create("people", limit=1)
    table = lrm.open_table(str(tmp_path / "people.csv"))
    (tmp_path / "people.csv").unlink()
    with pytest.raises(LrmError) as caught:
        lrm.release(plan, table, epsilon="0.5", ledger=ledger)
    spent = [entry for entry in ledger.history() if entry.kind == "spend"]
    assert (caught.value.charged is not None) == bool(spent)


def test_errors_can_be_copied():
    error = UsageError("page.md, line 3: no", line=3, field="title", plain="no")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - ours
    assert (again.line, again.field, again.plain, str(again)) == (3, "title", "no", str(error))
