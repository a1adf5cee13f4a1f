"""Labels of groups as people write them: May 2023, not 2023-05-01 00:00:00."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from lrm.queries.workload import Column
from lrm.queries.workload.label_columns import typed_values
from lrm.views.words import UNDECLARED, WORDS, filled

TIMES = frozenset({"date", "timestamp", "month", "year", "month_of_year"})
"""Kinds of columns that are a time."""


def is_time(column: Column) -> bool:
    """Whether a column is a time with enough values for a line."""
    return column.kind in TIMES and len(column.labels) > 2


def label_texts(column: Column, words: Mapping[str, str] = WORDS) -> list[str]:
    """What readers see for each label of a column; ``words`` has names of months and dates.

    >>> label_texts(Column("m", "timestamp", ("2023-05-01 00:00:00", "2023-06-01 00:00:00")))
    ['May 2023', 'Jun 2023']
    >>> label_texts(Column("d", "date", ("2023-05-01", "2023-05-02", "(null)")))
    ['1 May 2023', '2 May 2023', '(null)']
    """
    values = typed_values(column.labels, column.kind)
    if values is None:
        return list(column.labels)
    if column.kind in {"date", "timestamp", "month"}:
        texts = _dates(values, words, months=column.kind == "month")
        return [
            label if day is None else text
            for label, day, text in zip(column.labels, values, texts, strict=True)
        ]
    if column.kind == "month_of_year" and all(v is None or 1 <= v <= 12 for v in values):
        names = words["months"].split()
        return [
            label if value is None else names[value - 1]
            for label, value in zip(column.labels, values, strict=True)
        ]
    return list(column.labels)


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)


def calendar_places(labels: Sequence[str]) -> list[int] | None:
    """The place of each label in the order of the calendar; None where they are other words.

    >>> calendar_places(["Apr", "Jan", "Feb"]), calendar_places(["Sunday", "Monday"])
    ([3, 0, 1], [6, 0])
    >>> calendar_places(["a", "b"]), calendar_places(["may", "(null)"])
    (None, [4, 12])
    """
    words = [label.casefold().rstrip(".") for label in labels if label not in UNDECLARED]
    for names in (MONTH_NAMES, WEEKDAYS):
        spellings = {short: k for k, name in enumerate(names) for short in (name, name[:3])}
        if words and all(word in spellings for word in words):
            return [spellings.get(label.casefold().rstrip("."), len(names)) for label in labels]
    return None


def _minutes(value: dt.date | dt.datetime) -> str:
    return value.isoformat(" ")[:16] if isinstance(value, dt.datetime) else value.isoformat()


def _dates(
    values: Sequence[dt.date | dt.datetime | None], words: Mapping[str, str], *, months: bool
) -> list[str]:
    known = [value for value in values if value is not None]
    clock = [value for value in known if isinstance(value, dt.datetime)]
    if any(value.time() != dt.time() for value in clock):
        return ["" if value is None else _minutes(value) for value in values]
    first = all(value.day == 1 for value in known)
    form = words["month-format" if months or (first and len(known) > 1) else "day-format"]
    names = words["months"].split()
    return [
        ""
        if date is None
        else filled(form, day=f"{date.day}", month=names[date.month - 1], year=f"{date.year}")
        for date in values
    ]
