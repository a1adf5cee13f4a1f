"""Values of a column that no domain declares: what an engine reads to find them.

They leave the engine as `lrm.privacy.mechanism.OccurringValues`, which hides them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lrm.domain import Attribute, Categories, CsvForm, Domain, PrivacyUnit
from lrm.domain.editions import Editions
from lrm.errors import UsageError

RESERVED = frozenset({"(null)", "(other)"})
"""Labels of cells of undeclared values."""


class OpenText(Categories):
    """A column of texts that are not declared: engines hand over their bytes, not cells."""

    def __init__(self, name: str, column: str | None = None) -> None:
        super().__init__(name, ["(any)"], column=None if column == name else column)


@dataclass(frozen=True)
class OpenValues:
    """Which values of a column count, and at most how many of each person.

    Parameters
    ----------
    name, column
        The attribute, and the column of the table where that has another name.
    most
        The most distinct values of a person that count; 1 where a unit is a row.
    length, pattern
        Longer values, and those that do not match the pattern as a whole, do not count.
    declared
        Values that need no discovery.
    unit
        Whom the guarantee protects.
    editions
        The edition whose rows are read, where a report has some.
    csv
        How CSV files are written.
    """

    name: str
    column: str
    most: int
    length: int
    pattern: str | None
    declared: frozenset[str]
    unit: PrivacyUnit
    editions: Editions | None = None
    csv: CsvForm | None = None

    def __post_init__(self) -> None:
        if self.unit.column is not None and self.column.casefold() == self.unit.column.casefold():
            raise UsageError(
                f"column {self.column!r} names the persons; its values must not be published"
            )
        if self.unit.column is None and self.most != 1:
            raise UsageError("no column names the persons, so that a row has one value: most is 1")
        if self.editions is not None and self.column == self.editions.date:
            raise UsageError(f"column {self.column!r} dates the rows; declare it as dates")

    @cached_property
    def domain(self) -> Domain:
        """The column, and the one that dates the rows, for an engine to read."""
        dates = () if self.editions is None else (self.editions.attribute,)
        attributes: list[Attribute] = [OpenText(self.name, self.column), *dates]
        return Domain(attributes, unit=PrivacyUnit(self.unit.column), csv=self.csv)

    @cached_property
    def _form(self) -> re.Pattern[str] | None:
        try:
            return None if self.pattern is None else re.compile(self.pattern)
        except re.error as error:
            raise UsageError(f"the pattern is no regular expression: {error}") from None

    def check(self) -> None:
        """Refuse a pattern that cannot be read."""
        _ = self._form

    def accepts(self, value: str) -> bool:
        r"""Whether a value counts, by that value alone.

        >>> values = OpenValues("tag", "tag", 2, 4, "[a-z]+", frozenset({"b"}), PrivacyUnit("who"))
        >>> [values.accepts(text) for text in ("a", "b", "abcde", "A", "", "a\n")]
        [True, False, False, False, False, False]
        """
        if not 0 < len(value) <= self.length or value in self.declared or value in RESERVED:
            return False
        if not value.isprintable() or value != value.strip():
            return False
        return self._form is None or self._form.fullmatch(value) is not None

    def accepted(self, stored: Any) -> list[bytes]:
        """Those of some stored values that count; one that is not UTF-8 does not."""
        found = []
        for data in stored:
            try:
                text = bytes(data).decode("utf-8")
            except UnicodeDecodeError:
                continue
            if self.accepts(text):
                found.append(bytes(data))
        return found
