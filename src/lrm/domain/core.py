"""The public domain: declared attributes, their numbered cells, the privacy unit.

Everything here is public. A domain is written down from knowledge about the table (a
codebook, a form, a law), never from its rows: a domain chosen by looking at the data
reveals what was seen.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lrm.domain import persons
from lrm.domain.attributes import Attribute
from lrm.domain.csv_form import CsvForm
from lrm.domain.draft import columns_of, draft
from lrm.domain.editions import Editions
from lrm.domain.lookups import Lookup
from lrm.domain.numbers import RECORD_BITS, Numbers, pieces_of
from lrm.domain.ordered import Dates
from lrm.errors import DomainError, UnknownAttribute
from lrm.files.spelling import how_many
from lrm.privacy.periods import example_of
from lrm.privacy.unit import GroupLimit, PrivacyUnit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from lrm.domain.people import Level, Levels

MOST_ATTRIBUTES = 500
"""Attributes of a table: the number of its cells then has fewer than 4,300 digits."""

MOST_COUNTED = 1 << 27
"""Cells that `Domain.count` keeps a count for: 1 GB."""


@dataclass(frozen=True, init=False, repr=False)
class Domain:
    """The public description of a table: attributes, whose combinations are the cells.

    Cells are numbered in C order: the last attribute varies fastest.

    Parameters
    ----------
    attributes
        At least one; names differ in more than case (SQL does not distinguish them) and in more
        than the Unicode form of their letters (readers do not).
    table
        Name of the table in SQL; None accepts any one name.
    unit
        Whom the guarantee protects; by default one row, added or removed.
    csv
        How the table's CSV files are written, if it is stored in such files.
    lookups
        Public tables that give further columns to values of attributes.
    level
        Where the rows follow from several tables of a people: how (`lrm.domain.people`); of several
        levels, all rows of these.
    editions
        Where a report is published period after period: the period, the column that dates the
        rows, and the edition that is read. The privacy unit is then about one period.
    impossible
        SQL conditions that no row can satisfy, such as ``sex = 'm' AND pregnant``, known from
        elsewhere: consistent answers and synthetic rows have no such rows. Answers do not use them.

    Examples
    --------
    >>> from lrm.domain import Categories, Integers
    >>> domain = Domain([Categories("state", ["NY", "NJ"]), Integers("age", 0, 99)])
    >>> domain.shape, domain.size
    ((2, 100), 200)
    >>> domain.cell_of({"state": "NJ", "age": 7, "name": "not an attribute"})
    107
    >>> domain.cell_labels(107)
    ('NJ', '7')
    >>> domain.cell_of({"state": "TX", "age": 7}) is None  # dropped: not declared
    True
    """

    attributes: tuple[Attribute, ...]
    table: str | None = None
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    csv: CsvForm | None = None
    lookups: tuple[Lookup, ...] = ()
    level: Level | Levels | None = None
    editions: Editions | None = None
    impossible: tuple[str, ...] = ()

    def __init__(  # noqa: PLR0913, PLR0917 - the sections of a domain file
        self,
        attributes: Iterable[Attribute],
        table: str | None = None,
        unit: PrivacyUnit | None = None,
        csv: CsvForm | None = None,
        lookups: Iterable[Lookup] = (),
        level: Level | Levels | None = None,
        editions: Editions | None = None,
        impossible: Iterable[str] = (),
    ) -> None:
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "editions", editions)
        forms = (getattr(attribute, "forms", (attribute,)) for attribute in attributes)
        object.__setattr__(self, "attributes", tuple(form for some in forms for form in some))
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "unit", PrivacyUnit() if unit is None else unit)
        object.__setattr__(self, "csv", csv)
        object.__setattr__(self, "lookups", tuple(lookups))
        if isinstance(impossible, str):
            raise DomainError("impossible must be a list of SQL conditions, not a single text")
        object.__setattr__(self, "impossible", tuple(impossible))
        self._check()
        if isinstance(self.unit, PrivacyUnit):
            period, periods = (None, None) if editions is None else (editions.by, editions.together)
            periods = None if self.unit.column is None else periods
            unit = replace(self.unit, period=period, periods=periods, by=self._groups())
            object.__setattr__(self, "unit", unit)

    def _groups(self) -> GroupLimit | None:
        """The limit by group of the unit, with the place of its attribute."""
        by = self.unit.by
        if by is None:
            return None
        if by.attribute not in self.names:
            raise DomainError(f"by: {by.attribute!r} is not an attribute of the table")
        axis = self.names.index(by.attribute)
        if isinstance(self.attributes[axis], Numbers):
            raise DomainError(
                f"by: {by.attribute!r} is declared by knots, between which a row is divided; "
                "declare bins for groups"
            )
        shape = self.shape
        return replace(by, size=shape[axis], axis=axis, stride=math.prod(shape[axis + 1 :]))

    def at(self, edition: str) -> Domain:
        """The domain of one edition, or of several, such as ``"2025-01..2025-03"``.

        Examples
        --------
        >>> from lrm.domain import Dates, Editions
        >>> day = Dates("day", "2000-01-01", "2000-01-31", relative=True)
        >>> monthly = Domain([day], "orders", editions=Editions("month", "day"))
        >>> monthly.at("2025-02").size, monthly.at("2025-02").unit.protected
        (28, 'one row of one month')
        """
        if self.editions is None:
            raise DomainError(
                "the domain has no editions; declare them: editions: {by: month, date: COLUMN}"
            )
        if self.level is not None:
            return self.level.at(edition).domain.with_rest(self.rest_axes)
        editions = replace(self.editions, edition=edition)
        attributes = tuple(map(editions.moved, self.attributes))
        moved = replace(self, attributes=attributes, editions=editions)
        return moved.with_rest(self.rest_axes)

    def check_dates(self) -> None:
        """Refuse to plan for stand-ins of dates that start with the edition."""
        if self.editions is None or self.editions.edition is not None:
            return
        for attribute in self.attributes:
            if isinstance(attribute, Dates) and attribute.relative:
                raise DomainError(
                    f"attribute {attribute.name!r} starts with the edition; name the one to plan "
                    f"for: --edition {example_of(self.editions.by)}, or "
                    f"domain.at({example_of(self.editions.by)!r})"
                )

    def _check(self) -> None:
        if not self.attributes:
            raise DomainError("a domain needs at least one attribute")
        if len(self.attributes) > MOST_ATTRIBUTES:
            raise DomainError(
                f"a domain may have at most {MOST_ATTRIBUTES} attributes, "
                f"not {len(self.attributes):,}"
            )
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise DomainError(
                    "attributes must be Categories, Integers, Bins, Numbers or Dates, "
                    f"not {type(attribute).__name__}"
                )
        seen: dict[str, str] = {}
        for name in self.names:
            folded = _folded(name)
            if folded in seen:
                alike = "" if name == seen[folded] else f", also as {seen[folded]!r}"
                raise DomainError(
                    f"attribute {name!r} is declared twice{alike}; names must differ in more than "
                    "case and the Unicode form of their letters"
                )
            seen[folded] = name
        if self.table is not None and not (isinstance(self.table, str) and self.table.strip()):
            raise DomainError(f"table must be the table's name, not {self.table!r}")
        if not isinstance(self.unit, PrivacyUnit):
            raise DomainError(f"unit must be a PrivacyUnit, not {type(self.unit).__name__}")
        if not isinstance(self.csv, CsvForm | None):
            raise DomainError(f"csv must be a CsvForm, not {type(self.csv).__name__}")
        self._check_impossible()
        self._check_unit()
        self._check_editions()
        self._check_lookups()

    def _check_impossible(self) -> None:
        for condition in self.impossible:
            if not (isinstance(condition, str) and condition.strip()):
                raise DomainError(
                    f"impossible: expected an SQL condition such as age < 12 AND married, "
                    f"not {condition!r}"
                )

    def _check_editions(self) -> None:
        if self.editions is not None:
            self.editions.check(self.attributes)
            return
        for attribute in self.attributes:
            if isinstance(attribute, Dates) and attribute.relative:
                raise DomainError(
                    f"attribute {attribute.name!r} starts with the edition, but the domain has no "
                    "editions; declare them: editions: {by: month, date: COLUMN}"
                )

    def _check_lookups(self) -> None:
        seen = {} if self.table is None else {_folded(self.table): "the table"}
        for lookup in self.lookups:
            if not isinstance(lookup, Lookup):
                raise DomainError(f"lookups must be Lookups, not {type(lookup).__name__}")
            if _folded(lookup.name) in seen:
                raise lookup.error(f"{seen[_folded(lookup.name)]} has the same name")
            seen[_folded(lookup.name)] = "another lookup"
            if lookup.key not in self.names:
                raise lookup.error(f"its key {lookup.key!r} is not an attribute")
            lookup.check_key(self.attribute(lookup.key))

    def lookup_column(self, name: str) -> tuple[Lookup, str] | None:
        """The lookup that gives a column, called ``column`` or ``lookup.column``, if there is one.

        If several lookups have the column, the name must be ``lookup.column``.
        """
        table, _, column_name = name.casefold().rpartition(".")
        matches = [
            (lookup, column)
            for lookup in self.lookups
            for column in lookup.columns
            if column.casefold() == column_name and table in {"", lookup.name.casefold()}
        ]
        if len(matches) > 1:
            names = " and ".join(f"{lookup.name}.{column}" for lookup, column in matches)
            raise DomainError(f"{name!r} is a column of several lookups; write {names}")
        return matches[0] if matches else None

    def _check_unit(self) -> None:
        column = self.unit.column
        if column is None:
            if self.unit.max_rows != 1:
                raise DomainError(
                    f"max_rows is {self.unit.max_rows} but no column identifies the person; "
                    "give column, or protect single rows with max_rows 1"
                )
            return
        for name in self.names:
            # An engine that ignores case would take one of the two columns for both.
            if name != column and _folded(name) == _folded(column):
                raise DomainError(
                    f"unit column {column!r} and attribute {name!r} differ only in case or in the "
                    "Unicode form of their letters; rename one of the columns"
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def size(self) -> int:
        """Number of cells: the product of `shape`, as an exact integer."""
        return math.prod(self.shape)

    @cached_property
    def record_bits(self) -> int:
        """Binary digits of a count after the point: 20 if numbers are declared by knots, else 0.

        A record counts for ``2^record_bits`` units, which may lie in several cells.
        """
        return (
            RECORD_BITS
            if any(isinstance(attribute, Numbers) for attribute in self.attributes)
            else 0
        )

    @staticmethod
    def draft(
        frame: object, table: str | None = None, kinds: Mapping[str, str] | None = None
    ) -> str:
        """The text of a domain file for a person to complete, as ``lrm domain init`` writes it.

        It is made from the names and types of the frame's columns; no value is read.

        Parameters
        ----------
        frame
            Of pandas, Polars, Arrow or DuckDB.
        table
            What SQL calls the table.
        kinds
            Kinds of attributes by column, for columns whose type does not determine it.
        """
        return draft(columns_of(frame), table, None, kinds)

    @property
    def clipping(self) -> tuple[str, ...]:
        """What happens to numbers beyond the knots of an attribute: one sentence per attribute."""
        return tuple(
            attribute.clipping for attribute in self.attributes if isinstance(attribute, Numbers)
        )

    @cached_property
    def dropping(self) -> tuple[str, ...]:
        """The attributes whose rules drop rows; features of persons have a value for everybody."""
        sources = getattr(self.level, "sources", None)
        names = (
            attribute.source
            for attribute in self.attributes
            if "drop" in {attribute.null, attribute.outside}
            and (sources is None or attribute.name in sources)
        )
        return tuple(dict.fromkeys(names))

    def drops(self, axis: int) -> bool:
        """Whether a row of the table may have no declared cell of an attribute."""
        attribute = self.attributes[axis]
        if self.level is not None:
            return self.level.drops(attribute)
        # Rows of other editions are not in the table.
        return attribute.drops and (self.editions is None or attribute.name != self.editions.date)

    def by_knots(self, axis: int) -> int | None:
        """The attribute that divides the numbers of another one's column between knots, if any."""
        attribute = self.attributes[axis]
        if isinstance(attribute, Numbers):
            return None
        return next(
            (
                place
                for place, other in enumerate(self.attributes)
                if isinstance(other, Numbers) and other.source == attribute.source
            ),
            None,
        )

    @cached_property
    def declared(self) -> Domain:
        """The domain as it was declared: no attribute has a cell for what its rules drop."""
        return self.with_rest(())

    def with_rest(self, axes: Collection[int]) -> Domain:
        """The domain in which those attributes alone have a cell for what their rules drop."""
        attributes = [
            attribute.with_rest(axis in axes) for axis, attribute in enumerate(self.attributes)
        ]
        if all(new is old for new, old in zip(attributes, self.attributes, strict=True)):
            return self
        return replace(self, attributes=tuple(attributes))

    @property
    def rest_axes(self) -> tuple[int, ...]:
        """The places of the attributes that have a cell for what their rules drop."""
        return tuple(axis for axis, attribute in enumerate(self.attributes) if attribute.rest)

    @property
    def declared_cells(self) -> NDArray[np.int64]:
        """The number of each cell of `declared` in this domain."""
        cells = np.arange(self.size, dtype=np.int64).reshape(self.shape)
        return cells[tuple(slice(size) for size in self.declared.shape)].reshape(-1)

    def axis(self, name: str) -> int:
        """Return the position of the attribute called ``name``, spelled exactly so."""
        try:
            return self.names.index(name)
        except ValueError:
            raise UnknownAttribute(
                f"no attribute is called {name!r}; the attributes are {', '.join(self.names)}"
            ) from None

    def attribute(self, name: str) -> Attribute:
        """Return the attribute called ``name``."""
        return self.attributes[self.axis(name)]

    def labels(self, attribute: str) -> tuple[str, ...]:
        """Return one label per cell of an attribute."""
        return self.attribute(attribute).labels

    def cell_labels(self, index: int) -> tuple[str, ...]:
        """Return the labels of cell ``index``, one per attribute."""
        if not 0 <= index < self.size:
            raise DomainError(
                f"cell {index} does not exist; the domain has {how_many(self.size)} cells"
            )
        labels = []
        for attribute in reversed(self.attributes):
            index, cell = divmod(index, attribute.size)
            labels.append("(dropped)" if cell == len(attribute.labels) else attribute.labels[cell])
        return tuple(reversed(labels))

    def cell_of(self, row: Mapping[str, object]) -> int | None:
        """Return the cell of one row, or None where a rule drops it.

        This is the reference that every engine is checked against, cell by cell. A missing column
        raises an error; no value does.
        """
        if self.record_bits:
            raise DomainError(
                "with numbers by knots a row is divided between cells; use count() instead"
            )
        return self._position_of(row)

    def _position_of(self, row: Mapping[str, object]) -> int | None:
        """The positions of a row's values in one number, the last varying fastest."""
        index = 0
        if self.editions is not None and not self.editions.has(row):
            return None
        for attribute in self.attributes:
            if attribute.source not in row:
                raise DomainError(f"the table has no column {attribute.source!r}")
            position = attribute.position_of(row[attribute.source])
            if position is None:
                return None
            index = index * attribute.position_count + position
        return index

    def _is_dropped(self, row: Mapping[str, object]) -> bool:
        """Whether a value of a row is in a cell for what the rules of its attribute drop."""
        return any(
            attribute.position_of(row[attribute.source]) == attribute.position_count - 1
            for attribute in self.attributes
            if attribute.rest
        )

    def count(
        self, rows: Iterable[Mapping[str, object]], key: bytes | None = None
    ) -> NDArray[np.int64]:
        """Count rows per cell in plain Python, with the unit's bound on rows per person.

        With numbers by knots, counts are in units of 2^−20 of a record.

        ``key`` decides which rows of a person with too many are counted; by default it is
        new for every call. Every engine makes the same choice with the same key.

        Examples
        --------
        >>> from lrm.domain import Integers, PrivacyUnit
        >>> unit = PrivacyUnit("who", max_rows=2)
        >>> domain = Domain([Integers("ward", 1, 3)], unit=unit)
        >>> rows = [{"who": "a", "ward": 3}] * 5
        >>> domain.count([*rows, {"who": "b", "ward": 1}]).tolist()
        [1, 0, 2]
        """
        if self.size > MOST_COUNTED:
            raise DomainError(
                f"the domain has {how_many(self.size)} cells, and rows are counted over at most "
                f"{MOST_COUNTED:,}; plan the batch, which counts only what it measures"
            )
        counted_cells = self.counted_cells(rows, key)
        if not self.record_bits:
            return np.bincount(np.asarray(counted_cells, dtype=np.int64), minlength=self.size)
        counts = np.zeros(self.size, dtype=np.int64)
        for index in counted_cells:
            positions = []
            for attribute in reversed(self.attributes):
                index, position = divmod(index, attribute.position_count)  # noqa: PLW2901
                positions.append(position)
            for cells, units in pieces_of(self.attributes, positions[::-1]):
                counts[np.ravel_multi_index(cells, self.shape)] += units
        return counts

    def counted_cells(
        self, rows: Iterable[Mapping[str, object]], key: bytes | None = None
    ) -> list[int]:
        """Return the cell of each row that `count` counts, as exact integers of any size.

        If numbers are declared by knots, a row is a tuple of positions of its values instead.
        """
        if key is None:
            key = persons.fresh_key()
        per_person: defaultdict[bytes, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        cell_list: list[int] = []
        for row in rows:
            cell = self._position_of(row)
            if self.unit.column is None:
                cell_list += [] if cell is None else [cell]
                continue
            if self.unit.column not in row:
                raise DomainError(f"the table has no column {self.unit.column!r}")
            name = persons.person_name(row[self.unit.column])
            if cell is not None and name is not None:
                per_person[name][self._is_dropped(row)].append(cell)
        for name, (cells, later) in per_person.items():
            if self.unit.by is not None:
                cells, later = persons.kept_by_group(  # noqa: PLW2901
                    name, cells, later, self.unit.by, self._group_of, key
                )
            cell_list += persons.kept_rows(name, cells, self.unit.max_rows, key, later)
        return cell_list

    def _group_of(self, index: int) -> int:
        """The group, among those of the limit by group, of a row as `_position_of` numbers it."""
        by = self.unit.by
        assert by is not None  # noqa: S101 - the caller looked
        stride = math.prod(attribute.position_count for attribute in self.attributes[by.axis + 1 :])
        return index // stride % by.size

    def __repr__(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.text(self)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the declaration: equal for equal domains, on every machine."""
        facts: dict[str, object] = {
            "attributes": [
                {"kind": attribute.kind}
                | {
                    item.name: getattr(attribute, item.name)
                    for item in fields(attribute)
                    if item.name not in _IF_DECLARED or getattr(attribute, item.name)
                }
                for attribute in self.attributes
            ],
            "table": self.table,
            "unit": self.unit.facts,
            "csv": None if self.csv is None else self.csv.facts,
        }
        if self.lookups:
            facts["lookups"] = [lookup.facts for lookup in self.lookups]
        if self.level is not None:
            facts["level"] = self.level.text
        if self.editions is not None:
            facts["editions"] = self.editions.facts
        if self.impossible:
            facts["impossible"] = {"conditions": self.impossible}
        # Floats are written by repr, the shortest text that reads back as the same number.
        text = json.dumps(facts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


_IF_DECLARED = frozenset({"spellings", "discovered", "rest", "time", "relative", "column", "bins"})
"""Fields of attributes that are part of a digest only where they say something."""


def _folded(name: str) -> str:
    """Equal for names that differ in case or Unicode form alone (canonical caseless match)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
