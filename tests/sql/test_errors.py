"""Errors of SQL: each has a code, a line, a column; all errors of a text are reported at once."""

from __future__ import annotations

import pathlib
import re

import pytest
from click.testing import CliRunner

from lrm.cli import main
from lrm.domain import Bins, Categories, Domain, Integers
from lrm.domain.file import domain_text
from lrm.errors import SqlError
from lrm.queries.files import parse_questions
from lrm.queries.sql import build, sql
from lrm.queries.sql.refusals import CODES

DOMAIN = Domain(
    [
        Categories("state", ["NY", "NJ"]),
        Integers("age", 0, 9),
        Bins("income", [0, 10, 20]),
    ],
    "people",
)
SEVERAL = """\
SELECT COUNT(*) AS n FROM people;
SELECT
  COUNT(*) FROM people WHERE age < 3 AND twn = 1;
SELECT MAX(age) FROM people;
"""


def error_of(text, domain=DOMAIN):
    with pytest.raises(SqlError) as caught:
        sql(text, domain)
    return caught.value


PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "sql-errors.md"
ROWS = re.findall(r"^\| `(\S+)` \| (.+) \| `(.+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
MESSAGES = re.findall(
    r"^\[(\S+)\]\n(.+?)\n=> ([^\n]+)$",
    pathlib.Path(__file__).with_name("error_messages.txt").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_the_page_of_errors_has_every_code():
    assert [code for code, *_ in ROWS] == sorted(CODES)
    assert {code: text.lower() for code, text, _ in ROWS} == {
        code: text.lower() for code, text in CODES.items()
    }
    examples = [(code, example.replace("\n", " ⏎ ")) for code, example, _ in MESSAGES]
    assert [(code, example) for code, _, example in ROWS] == examples


@pytest.mark.parametrize(("code", "example", "message"), MESSAGES)
def test_an_example_on_the_page_gives_its_error(code, example, message):
    error = error_of(example)
    assert (error.code, str(error)) == (code, message)
    if code != "empty":
        assert error.line == 1 + example.startswith("--")
        assert error.column >= 1


def test_messages_are_in_the_words_of_the_style_guide():
    """Every error of the package has a code that the page explains, and says "not supported"."""
    folder = pathlib.Path(build.__file__).parent
    for path in folder.glob("*.py"):
        text = path.read_text("utf-8")
        used = re.findall(r"(?:refuse|fail)\(\s*\"([a-z-]+)\"", text)
        used += re.findall(r"code=\"([a-z-]+)\"", text)
        assert set(used) <= set(CODES), path
        assert "not compiled" not in text, path
        calls = re.findall(r"SqlError\((.*?)\)\n", text, re.DOTALL)
        assert not [one for one in calls if '"' in one and "code=" not in one and "(" not in one], (
            path
        )


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT COUNT(*) FROM people WHERE town = 'NY'", 1, 35),
        ("SELECT COUNT(*)\nFROM people\nWHERE age < 5 AND\n  people.town = 'NY'", 4, 3),
        ("SELECT 1;  SELECT COUNT(*) FROM people WHERE town = 1", 1, 46),
        ("SELECT COUNT(*) AS n FROM people;\n\nSELECT\n\n  age FROM people", 5, 3),
        ("SELECT COUNT(*) FROM people WHERE income < 15", 1, 35),
        ("SELECT COUNT(*) FROM doctors", 1, 22),
        ("SELECT COUNT(*) FROM people WHERE state = NULL", 1, 35),
    ],
)
def test_an_error_is_at_its_line_and_column(text, line, column):
    error = error_of(text)
    errors = [error, *error.others]
    assert (line, column) in [(one.line, one.column) for one in errors]


def test_an_error_has_what_was_found_and_advice():
    error = error_of("SELECT MAX(age) FROM people")
    assert error.found == "MAX(age)"
    assert "QUANTILE_DISC" in error.advice
    assert str(error) == f"line 1: {error.found} is not supported; {error.advice}"


def test_a_text_in_double_quotes_is_told_to_be_one():
    assert "use single quotes for text" in str(
        error_of('SELECT COUNT(*) FROM people WHERE age = "x"')
    )


def test_all_errors_of_a_text_are_reported():
    error = error_of(SEVERAL)
    assert [(one.code, one.line) for one in (error, *error.others)] == [
        ("unknown-column", 3),
        ("aggregate", 4),
    ]
    assert str(error).splitlines() == [str(error).splitlines()[0], str(error.others[0])]


def test_errors_of_a_file_name_the_file_in_every_line():
    with pytest.raises(SqlError) as caught:
        parse_questions(SEVERAL, DOMAIN, "questions.sql")
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "questions.sql line 3",
        "questions.sql line 4",
    ]
    assert caught.value.others[0].code == "aggregate"


def test_the_command_reports_all_errors_of_a_file(tmp_path):
    (tmp_path / "q.sql").write_text(SEVERAL)
    (tmp_path / "d.yaml").write_text(domain_text(DOMAIN))
    result = CliRunner().invoke(
        main, ["plan", str(tmp_path / "q.sql"), "--domain", str(tmp_path / "d.yaml")]
    )
    assert result.exit_code == 2
    assert "line 3" in result.output
    assert "line 4" in result.output
