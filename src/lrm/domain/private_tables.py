"""One private table of a people: its attributes, who its rows belong to, and how many count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lrm.domain.attribute_file import attribute_facts
from lrm.domain.attributes import Attribute
from lrm.domain.core import Domain
from lrm.domain.csv_form import CsvForm
from lrm.domain.editions import Editions
from lrm.errors import DomainError
from lrm.privacy.unit import MOST_ROWS, GroupLimit, PrivacyUnit


@dataclass(frozen=True)
class PrivateTable:
    """A private table, each row of which belongs to one person.

    Parameters
    ----------
    name
        What SQL calls it.
    person
        The column that names the person.
    attributes
        Its public attributes.
    most
        The most rows of a person that are counted at the level of events; None where a person has
        one row (``rows: one``).
    csv
        How its CSV files are written, if it is stored in such files.
    by
        A further limit of a person's rows, in each cell of an attribute: rows beyond it are left
        out before the limit ``most`` is looked at.
    editions
        Where reports are published period after period: the period, and the column of this table
        that dates its rows.
    """

    name: str
    person: str
    attributes: tuple[Attribute, ...]
    most: int | None = None
    csv: CsvForm | None = None
    by: GroupLimit | None = None
    editions: Editions | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not isinstance(self.name, str) or not self.name.strip():
            raise DomainError(f"a table's name must be text, not {self.name!r}")
        if not isinstance(self.person, str) or not self.person.strip():
            raise self.error("person must be the column that names the person")
        if self.most is not None and not (type(self.most) is int and 1 <= self.most <= MOST_ROWS):
            raise self.error(f"most must be a whole number from 1 to {MOST_ROWS:,}")
        if self.by is not None and self.most is None:
            raise self.error("a person has one row, so that by limits nothing; leave it out")
        if self.by is not None and not isinstance(self.by, GroupLimit):
            raise self.error("by must be a GroupLimit, such as GroupLimit('month', 4)")
        for attribute in self.attributes:
            if attribute.column is not None or getattr(attribute, "bins", None) is not None:
                raise self.error(
                    f"attribute {attribute.name!r}: tables of a people have one attribute per "
                    "column, of its name; leave out column and bins"
                )
        self.domain  # noqa: B018 - it checks the attributes

    def error(self, sentence: str) -> DomainError:
        """An error about this table."""
        return DomainError(f"table {self.name!r}: {sentence}")

    @property
    def is_single(self) -> bool:
        """Whether a person has one row in it."""
        return self.most is None

    @cached_property
    def domain(self) -> Domain:
        """The table by itself."""
        unit = PrivacyUnit(self.person, self.most or 1, by=self.by)
        return Domain(self.attributes, self.name, unit, self.csv, editions=self.editions)

    def at(self, edition: str) -> PrivateTable:
        """The table with the rows of one edition."""
        assert self.editions is not None  # noqa: S101 - the people looked
        editions = replace(self.editions, edition=edition)
        attributes = tuple(map(editions.moved, self.attributes))
        return replace(self, attributes=attributes, editions=editions)

    @property
    def limit(self) -> str:
        """How many rows of a person count.

        >>> from lrm.domain import Integers
        >>> month = Integers("month", 1, 12)
        >>> PrivateTable("orders", "pid", (month,), 40, by=GroupLimit("month", 4)).limit
        'at most 40 rows (at most 4 of them in each cell of month)'
        """
        if self.most is None:
            return "one row"
        return f"at most {PrivacyUnit(self.person, self.most, by=self.by).rows}"

    def attribute(self, name: str) -> Attribute | None:
        """The attribute that SQL calls ``name``, if there is one."""
        folded = name.casefold()
        return next((a for a in self.attributes if a.name.casefold() == folded), None)


def table_facts(table: PrivateTable) -> dict[str, Any]:
    """A table as fields of a domain file."""
    return {
        "name": table.name,
        "person": table.person,
        **({} if table.editions is None else {"date": table.editions.date}),
        "rows": _rows_facts(table),
        **({} if table.csv is None else {"csv": table.csv.facts}),
        "attributes": [attribute_facts(attribute) for attribute in table.attributes],
    }


def _rows_facts(table: PrivateTable) -> Any:
    if table.most is None:
        return "one"
    return {"most": table.most, **({} if table.by is None else limit_facts(table.by))}


def limit_facts(by: GroupLimit) -> dict[str, Any]:
    """A limit by group as fields of a domain file."""
    groups = {} if by.groups is None else {"groups": by.groups}
    return {"by": {by.attribute: by.most}, **groups}
