"""Values of a column that no domain declares, from pairs of a person and a value.

PostgreSQL and Spark find the different pairs, in the order of the persons; which of a person's
values count is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from lrm.domain import persons
from lrm.privacy.mechanism import OccurringValues
from lrm.tables.open_values import OpenValues


def conditions(wanted: OpenValues) -> list[str]:
    """Which rows hold a value ``v`` that may count: of a person, of the edition, short enough."""
    kept = ["v IS NOT NULL", f"octet_length(v) <= {4 * wanted.length}"]
    kept += ["person IS NOT NULL"] if wanted.unit.column is not None else []
    return [*kept, *(["w1 IS NOT NULL"] if wanted.editions is not None else [])]


def occurring(pairs: Iterable[Any], wanted: OpenValues) -> OccurringValues:
    """How many persons have each value; without a column of persons, how many rows."""
    if wanted.unit.column is None:
        every = Counter(_accepted((value for (value,) in pairs), wanted))
        return OccurringValues({value.decode(): count for value, count in every.items()})
    key, total = persons.fresh_key(), Counter[bytes]()
    for name, own in groupby(pairs, key=itemgetter(0)):
        values = set(_accepted((value for _, value in own), wanted))
        total.update(persons.kept_values(bytes(name), values, wanted.most, key))
    return OccurringValues({value.decode(): count for value, count in total.items()})


def _accepted(values: Iterable[bytes], wanted: OpenValues) -> Iterator[bytes]:
    for value in values:
        yield from wanted.accepted((value,))
