"""Editions of the calendar: each day is in exactly one, and its name leads back to it."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.errors import BudgetError
from lrm.privacy.periods import MOST_EDITIONS, PERIODS, Edition, parse_edition, parse_editions

DAYS = st.dates(date(1, 1, 8), date(9997, 12, 20))


@given(DAYS, st.sampled_from(PERIODS))
def test_each_day_is_in_one_edition(day, period):
    edition = Edition.of(period, day)
    assert edition.first <= day <= edition.last
    assert Edition.of(period, edition.first) == Edition.of(period, edition.last) == edition
    assert edition.next.first == edition.last + timedelta(days=1)
    assert edition.next.name > edition.name
    assert parse_edition(period, edition.name) == edition


@pytest.mark.parametrize(
    ("period", "name"),
    [
        ("month", "2025-3"),
        ("month", "2025-13"),
        ("month", "2025-03-01"),
        ("day", "2025-02-29"),
        ("week", "2025-W53"),
        ("week", "2025-W00"),
        ("quarter", "2025-Q5"),
        ("year", "0000"),
        ("year", "9999"),
        ("year", "２０２５"),
        ("year", ""),
        ("year", 2025),
    ],
)
def test_other_names_are_errors(period, name):
    with pytest.raises(BudgetError, match=f"is not a {period}; write it as"):
        parse_edition(period, name)


def test_several_editions():
    names = [edition.name for edition in parse_editions("quarter", "2024-Q3..2025-Q1")]
    assert names == ["2024-Q3", "2024-Q4", "2025-Q1"]
    assert [edition.name for edition in parse_editions("week", "2020-W53")] == ["2020-W53"]
    with pytest.raises(BudgetError, match="2024-02 is before 2024-03"):
        parse_editions("month", "2024-03..2024-02")
    with pytest.raises(BudgetError, match=f"at most {MOST_EDITIONS:,}"):
        parse_editions("day", "2020-01-01..2025-01-01")
