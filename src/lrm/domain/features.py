"""Features of persons: one value per person, from the rows that the person has in one table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from lrm.domain.attribute_file import attribute_facts
from lrm.domain.attributes import Attribute, Categories
from lrm.domain.editions import Editions
from lrm.domain.ordered import Dates, Integers
from lrm.errors import DomainError
from lrm.privacy.unit import MOST_ROWS

Value = Literal["count", "exists", "sum", "min", "max", "distinct", "first", "last"]
"""What a feature is of the rows of one person."""

VALUES: tuple[str, ...] = get_args(Value)

LARGEST_SUM = 1 << 53
"""A sum of a feature stays below it for a person of ``MOST_ROWS`` rows, so that floats hold it."""


@dataclass(frozen=True)
class Feature:
    """One value per person, from all rows that the person has in one table.

    Parameters
    ----------
    attribute
        Its name, and the values that it may have, from public knowledge.
    of
        The table.
    value
        ``count`` (rows), ``exists`` (whether there is a row), ``sum``, ``min``, ``max``,
        ``distinct`` (different values), ``first``, ``last`` (of the row that is first by
        ``order``).
    column
        The attribute of the table that is added up or compared; none for rows.
    where
        A condition in SQL on attributes of the table; rows that do not meet it are left out.
    clip
        For sums: each value is moved into this range before it is added.
    order
        For ``first`` and ``last``: the attribute that rows are put in order by.

    Examples
    --------
    >>> Feature(Integers("orders", 0, 20), "orders", "count").value
    'count'
    """

    attribute: Attribute
    of: str
    value: Value
    column: str | None = None
    where: str | None = None
    clip: tuple[float, float] | None = None
    order: str | None = None

    def __post_init__(self) -> None:
        if self.value not in VALUES:
            raise self.error(f"value must be one of {', '.join(VALUES)}, not {self.value!r}")
        if (self.column is None) != (self.value in {"count", "exists"}):
            needs = "needs no column" if self.column else "needs a column"
            raise self.error(f"{self.value} {needs}")
        if (self.order is None) == (self.value in {"first", "last"}):
            raise self.error("order is for first and last, which need it")
        if self.value == "exists" and self.attribute != flag(self.attribute.name):
            raise self.error("exists is true or false; leave its kind and values out")
        if self.value == "sum":
            self._check_clip()
        elif self.clip is not None:
            raise self.error("clip is for sums")

    def _check_clip(self) -> None:
        if self.clip is None:
            raise self.error("a sum needs clip: [least, most] of one row, from public knowledge")
        low, high = self.clip
        if not -LARGEST_SUM <= low * MOST_ROWS <= high * MOST_ROWS <= LARGEST_SUM or low >= high:
            raise self.error("clip must be two numbers, the smaller first, of at most nine digits")

    @property
    def name(self) -> str:
        """What SQL calls it."""
        return self.attribute.name

    def error(self, sentence: str) -> DomainError:
        """An error about this feature."""
        return DomainError(f"feature {self.attribute.name!r}: {sentence}")

    @property
    def is_number(self) -> bool:
        """Whether it counts or adds up, so that persons without rows have 0."""
        return self.value in {"count", "sum", "distinct"}

    @property
    def meaning(self) -> tuple[object, ...]:
        """What it is, whatever it is called and whichever values are declared for it."""
        return self.of, self.value, self.column, self.where, self.order

    def at(self, editions: Editions) -> Feature:
        """The same of the rows of one edition."""
        return replace(self, attribute=editions.moved(self.attribute))


def flag(name: str) -> Categories:
    """An attribute that is true or false."""
    return Categories(name, [True, False])


def undeclared(feature: Any, constants: Iterable[int]) -> Integers:
    """The attribute of a count that statements only compare with constants, which are its range.

    Numbers above the largest constant are one cell: the engine moves them to it.

    >>> undeclared("n", [3, 5]).size
    7
    """
    return Integers(str(feature), 0, max([0, *constants]) + 1)


def restricted(feature: Feature, name: str, where: str | None) -> Feature | None:
    """The same count or sum of some of the rows, whose values are in the same range.

    None where a part of the rows may have a value beyond it: numbers below 0 are added up.

    >>> n = Feature(Integers("n", 0, 20), "orders", "count")
    >>> large = restricted(n, "n_large", "amount >= 100")
    >>> large.attribute.labels == n.attribute.labels, large.where
    (True, 'amount >= 100')
    """
    low, _ = feature.clip or (0.0, 0.0)
    attribute = feature.attribute
    ends = {"integers": "low", "bins": "edges", "numbers": "knots"}
    first = getattr(attribute, ends.get(attribute.kind, ""), None)
    least = first[0] if isinstance(first, tuple) else first
    if low < 0 or least is None or least > 0 or feature.value not in {"count", "sum"}:
        return None
    return replace(feature, attribute=renamed(attribute, name), where=where)


def summed(
    attribute: Attribute, name: str, constants: Iterable[int]
) -> tuple[Integers, Any] | None:
    """The attribute and the clip of a sum that statements only compare with constants.

    Only of whole numbers that are not below 0: then the constants are the range, as of a count.
    """
    if not isinstance(attribute, Integers) or attribute.low < 0 or attribute.width != 1:
        return None
    return undeclared(name, constants), (float(attribute.low), float(attribute.high))


def like(attribute: Attribute, name: str) -> Attribute:
    """The attribute of a first, last, least or greatest value, which has the values of a column.

    A person without such a row has none: NULL, which has a cell.
    """
    if not isinstance(attribute, (Dates, Integers, Categories)):
        raise DomainError(
            f"{attribute.name!r} is declared as {attribute.kind}; the first, last, least and "
            "greatest value per person are for categories, integers and dates"
        )
    return renamed(attribute, name, null="cell", outside="drop")


def renamed(attribute: Attribute, name: str, **rules: str) -> Attribute:
    """An attribute under another name, perhaps with other rules."""
    facts = {item.name: getattr(attribute, item.name) for item in fields(attribute) if item.init}
    if not attribute.numeric:
        del facts["nan"]
    if facts.get("spellings") is not None:
        facts["spellings"] = dict(facts["spellings"])
    return type(attribute)(**{**facts, "name": name, **rules})


def feature_facts(feature: Feature) -> dict[str, Any]:
    """A feature as fields of a domain file."""
    rules = {key: getattr(feature, key) for key in ("column", "where", "order")}
    facts: dict[str, Any] = {"name": feature.name, "of": feature.of, "value": feature.value}
    facts |= {key: value for key, value in rules.items() if value is not None}
    facts |= {} if feature.clip is None else {"clip": list(feature.clip)}
    if feature.value != "exists":
        facts |= attribute_facts(feature.attribute)
    return facts
