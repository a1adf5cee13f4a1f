"""Values that no domain declares: every source finds those of plain Python, person by person."""

import datetime as dt
from collections import Counter, defaultdict

import pandas as pd
import pytest

from lrm.domain import Editions, PrivacyUnit
from lrm.domain.persons import kept_values, person_name
from lrm.errors import TableError, UsageError
from lrm.tables import open_table
from lrm.tables.open_values import OpenValues
from lrm.testing.table import rows as awkward_rows
from table_forms import ARROW_FORMS, build

SOURCES = ["parquet", "csv", "duckdb", "pandas objects", "postgres", "spark"]
KEY = bytes(range(16))


def wanted(most=2, column="state", person="who", **more):
    facts = {"length": 6, "pattern": None, "declared": frozenset({"zz"}), **more}
    unit = PrivacyUnit(person)
    return OpenValues("tag", column, most, unit=unit, **facts)


def expected(rows, open_values):
    """How many persons have each value, in plain Python."""
    of_person = defaultdict(set)
    editions = open_values.editions
    for row in rows:
        value, person = row[open_values.column], person_name(row[open_values.unit.column])
        if not isinstance(value, str) or person is None or not open_values.accepts(value):
            continue
        if editions is None or editions.has(row):
            of_person[person].add(value.encode())
    kept = [kept_values(p, own, open_values.most, KEY) for p, own in of_person.items()]
    return Counter(value.decode() for own in kept for value in own)


def found(table, open_values):
    table.check_values(open_values)
    return table.values(open_values)._open()


@pytest.mark.parametrize("form", SOURCES)
def test_every_source_finds_the_values_of_plain_python(form, library):
    table, rows = library(form)
    for person in () if form == "spark" else ("who", "alias"):  # a query of Spark takes a second
        column = "state" if person == "who" else "we\"ird `na.me' ; --"
        for most, editions in ((1, None), (3, Editions("year", "day", "2023..2024"))):
            asked = wanted(most, column, person, editions=editions)
            assert found(table, asked) == expected(rows, asked)
    asked = wanted(2, pattern="[a-zA-Z']+", editions=Editions("month", "at", "2024-02"))
    assert found(table, asked) == expected(rows, asked) != {}


@pytest.mark.parametrize("form", ARROW_FORMS)
def test_arrow_finds_them_too(form, tmp_path):
    table, rows = build(form, awkward_rows(60, 2), tmp_path)
    asked = wanted(2, editions=Editions("year", "at", "2024"))
    assert found(table, asked) == expected(rows, asked)


def test_neighbours_differ_in_at_most_so_many_values(tmp_path):
    """Without the rows of one person in one month, for every person and month, in any order."""
    days = [dt.date(2025, 1, 31), dt.date(2025, 2, 1), dt.date(2025, 2, 28), None]
    rows = [
        {"who": who, "tag": tag, "day": days[(who * 7 + k) % 4]}
        for who in range(8)
        for k, tag in enumerate(
            ["red", "blue", "blue", f"own {who}", None, "x" * 50][: 3 + who % 4]
        )
    ]
    rows.append({"who": None, "tag": "nobody's", "day": days[1]})
    frame = pd.DataFrame(rows, dtype=object)
    asked = wanted(2, "tag", editions=Editions("month", "day", "2025-02"))
    whole = Counter(found(open_table(frame), asked))
    assert whole
    assert "nobody's" not in whole
    for who in range(8):
        for month in (1, 2):
            of = [
                r["who"] == who and r["day"] is not None and r["day"].month == month for r in rows
            ]
            rest = frame[[not each for each in of]].sample(frac=1, random_state=who)
            other = Counter(found(open_table(rest), asked))
            change = {tag: whole[tag] - other[tag] for tag in whole.keys() | other.keys()}
            assert set(change.values()) <= {0, 1}
            assert sum(change.values()) <= (2 if month == 2 else 0)


@pytest.mark.parametrize("source", ["parquet", "spark"])
def test_long_values_are_read_as_they_are(source, request, tmp_path):
    """Names of persons of more than 256 bytes are compared by a digest; values are not."""
    long = "é" * 200
    path = str(tmp_path / "long.parquet")
    pd.DataFrame({"who": [1, 2, 3], "tag": [long] * 3}).to_parquet(path)
    if source == "spark":
        request.getfixturevalue("spark")
        path = f"spark:{path}"
    assert found(open_table(path), wanted(1, "tag", length=400)) == {long: 3}


def test_rows_without_persons_count_one_by_one():
    frame = pd.DataFrame({"tag": ["a", "a", "b", None]})
    asked = wanted(1, "tag", None)
    assert found(open_table(frame), asked) == {"a": 2, "b": 1}
    with pytest.raises(UsageError, match="most is 1"):
        wanted(2, "tag", None)


def test_what_cannot_be_read_is_refused_before():
    table = open_table(pd.DataFrame({"who": [1], "tag": ["a"], "n": [3]}))
    for asked, message in [
        (wanted(2, "label"), "no column 'label'"),
        (wanted(2, "n"), "needs text"),
        (wanted(2, "tag", "n", editions=Editions("month", "day", "2025-01")), "no column 'day'"),
    ]:
        with pytest.raises(TableError, match=message):
            table.check_values(asked)
    with pytest.raises(UsageError, match="no regular expression"):
        table.check_values(wanted(2, "tag", pattern="("))
    with pytest.raises(UsageError, match="names the persons"):
        wanted(2, "WHO")
