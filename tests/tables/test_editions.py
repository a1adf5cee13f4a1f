"""Each edition counts the rows of its own period, whatever the engine, and those of no other."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrm.domain import Categories, Dates, Domain, Editions, Integers, PrivacyUnit
from lrm.errors import TableError
from lrm.privacy.mechanism import shown_to_owner
from lrm.privacy.periods import Edition
from lrm.queries.maps.products.tabulation import Tabulation, tabulate
from lrm.tables import open_table
from lrm.testing.table import arrow
from lrm.testing.table import rows as awkward_rows

STATE = Categories("state", ["NY", "NJ", "CA"], null="cell", outside="cell")
AGE = Integers("age", 0, 99, 20, null="cell", outside="cell")
PERIODS = [("month", "2024-02"), ("year", "2024"), ("quarter", "2024-Q1..2024-Q4")]
PERIODS += [("day", "2023-12-31"), ("week", "2024-W01")]
PERSON = PrivacyUnit("who", 3)


def domain_of(date, period, unit=None, more=()):
    return Domain([STATE, AGE, *more], "t", unit, editions=Editions(period, date))


def counted(table, domain, requested=None):
    return shown_to_owner(table.counts(domain, requested))


@pytest.mark.parametrize("date", ["day", "at", "moment"])
def test_an_edition_counts_its_own_rows(awkward, date):
    """As plain Python does, with rows at midnight, at the ends of months, and without a date."""
    _, table, rows = awkward
    asked = [
        Tabulation((np.arange(STATE.size), np.zeros(AGE.size, dtype=int)), by=(0,)),
        Tabulation((np.zeros(STATE.size, dtype=int), np.arange(AGE.size)), by=(1,)),
    ]
    everybody = 0
    for period, edition in PERIODS:
        domain = domain_of(date, period, PERSON).at(edition)
        table.check(domain)
        expected = domain.count(rows)
        np.testing.assert_array_equal(counted(table, domain), expected)
        entries = counted(table, domain, asked)
        np.testing.assert_array_equal(entries, tabulate(asked, expected, domain.shape))
        everybody += expected.sum()
    assert everybody > 0


def test_editions_share_no_row_and_lose_none(tmp_path):
    made = [row for row in awkward_rows(400, 1) if row["day"] is None or row["day"].year > 2000]
    table = open_table(arrow(made))
    for period in ("month", "quarter", "year", "week"):
        domain = domain_of("day", period)
        names = {Edition.of(period, row["day"]).name for row in made if row["day"]}
        names -= {name for name in names if name.startswith("9999")}
        parts = [counted(table, domain.at(name)) for name in names]
        dated = [row for row in made if row["day"] and row["day"].year < 9999]
        every = Domain([STATE, AGE]).count(dated)
        np.testing.assert_array_equal(np.sum(parts, axis=0), every)


@pytest.mark.parametrize("relative", [False, True])
def test_rows_of_a_person_in_one_period_move_that_edition_alone(relative):
    """Brute force: each person and month is removed in turn."""
    months = ["2023-12", "2024-01", "2024-02", "2024-03", "2024-12"]
    day = Dates("day", "2000-01-01", "2000-01-31", relative=True)
    domain = domain_of("day", "month", PERSON, [day] if relative else [])
    made = awkward_rows(250, 2)
    whole = {month: domain.at(month).count(made) for month in months}
    pairs = {(row["who"], row["day"].isoformat()[:7]) for row in made if row["who"] and row["day"]}
    moved = 0
    for person, month in sorted(pairs):
        kept = [
            row
            for row in made
            if (row["who"], row["day"] and row["day"].isoformat()[:7]) != (person, month)
        ]
        for name in months:
            changed = np.abs(domain.at(name).count(kept) - whole[name]).sum()
            assert changed <= (PERSON.max_rows if name == month else 0)
            moved += changed
    assert moved > 0
    table = open_table(arrow(made))
    np.testing.assert_array_equal(counted(table, domain.at("2024-02")), whole["2024-02"])


def test_rows_of_a_person_in_one_of_several_periods_replace_others():
    """Brute force: twice as many rows move as of one period, and more than as many happen to."""
    domain = domain_of("day", "month", PERSON).at("2024-01..2024-03")
    assert domain.unit.factor == 2 * PERSON.max_rows
    largest = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        made = [
            {"who": 1, "day": dt.date(2024, int(month), 9), "state": state, "age": int(age)}
            for month, age, state in zip(
                rng.integers(1, 4, 12),
                rng.integers(0, 100, 12),
                rng.choice(["NY", "NJ", "CA"], 12),
                strict=True,
            )
        ]
        whole = domain.count(made)
        for month in (1, 2, 3):
            moved = np.abs(domain.count([r for r in made if r["day"].month != month]) - whole).sum()
            assert moved <= domain.unit.factor
            largest = max(largest, moved)
    assert largest > PERSON.max_rows
    rows = domain_of("day", "month").at("2024-01..2024-03")
    assert rows.unit.factor == 1, "single rows take the place of no other"


def at(text, person):
    """A row at an instant, whatever the zone that it is written in."""
    return {"who": person, "at": None if text is None else dt.datetime.fromisoformat(text)}


EDGES = [
    at("2025-01-31T23:59:59.999999+00:00", 1),
    at("2025-02-01T00:00:00+00:00", 1),
    at("2025-02-01T01:30:00+02:00", 2),  # January in UTC
    at("2025-01-31T23:30:00-05:00", 2),  # February
    at("2025-02-28T23:59:59+00:00", 3),
    at("2025-02-28T20:00:00-08:00", 3),  # March
    at("2024-02-29T12:00:00+00:00", 3),
    at(None, 1),
    at("2025-02-14T00:00:00+00:00", None),
    *[at("2025-02-10T10:00:00+00:00", 4)] * 5,
]
LATE = at("2025-01-15T09:00:00+00:00", 4)
"""A row of January that arrives when February was published."""


def stored(source, rows, folder):
    """Rows in a source; those of a CSV file are written in the zone that they are given in."""
    if source == "csv":
        written = [f"{row['who'] or ''},{row['at'] or ''}" for row in rows]
        (folder / "edges.csv").write_text("\n".join(["who,at", *written]) + "\n")
        return open_table(folder / "edges.csv")
    who = pa.array([row["who"] for row in rows], pa.int64())
    table = pa.table(
        {"who": who, "at": pa.array([row["at"] for row in rows], pa.timestamp("us", tz="UTC"))}
    )
    if source == "parquet":
        pq.write_table(table, folder / "edges.parquet")
        return open_table(folder / "edges.parquet")
    frame = table.to_pandas(integer_object_nulls=True) if source == "pandas" else table
    return open_table(frame)


@pytest.mark.parametrize("source", ["csv", "parquet", "pandas", "arrow"])
def test_rows_at_the_ends_of_months_in_the_source_itself(source, tmp_path):
    """Brute force: each person and month is removed from the source, and a late row is added."""
    day = Dates("at", "2000-01-01", "2000-01-31", relative=True, time=False)
    domain = Domain([day], "t", PrivacyUnit("who", 2), editions=Editions("month", "at"))
    months = ["2024-02", "2025-01", "2025-02", "2025-03"]

    def counts(rows):
        table = stored(source, rows, tmp_path)
        return {month: counted(table, domain.at(month)) for month in months}

    whole = counts(EDGES)
    assert {month: int(own.sum()) for month, own in whole.items()} == {
        "2024-02": 1,
        "2025-01": 2,
        "2025-02": 5,
        "2025-03": 1,
    }
    late = counts([*EDGES, LATE])
    assert [month for month in months if (late[month] != whole[month]).any()] == ["2025-01"]
    for person in (1, 2, 3, 4):
        for gone in months:
            rest = [row for row in [*EDGES, LATE] if (row["who"], month_of(row)) != (person, gone)]
            less = counts(rest) if len(rest) <= len(EDGES) else late
            for month in months:
                moved = late[month] - less[month]
                assert (moved >= 0).all()
                assert moved.sum() <= (2 if month == gone else 0)


def month_of(row):
    return row["at"] and row["at"].astimezone(dt.UTC).isoformat()[:7]


def test_a_template_counts_nothing():
    table = open_table(arrow(awkward_rows(5, 0)))
    with pytest.raises(TableError, match="the domain is for every month; name the edition"):
        table.counts(domain_of("day", "month"))
    with pytest.raises(TableError, match="no column 'days'"):
        table.check(domain_of("days", "month").at("2024-02"))
    with pytest.raises(TableError, match="needs a date or a timestamp"):
        table.check(domain_of("price", "month").at("2024-02"))
