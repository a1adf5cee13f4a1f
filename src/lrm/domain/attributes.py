"""Public attributes: what a column may hold, cut into numbered cells.

An attribute says, from public knowledge alone, which values a column may hold and
how they are grouped into cells. Three kinds of value are not among the declared
ones, and each has its own rule, ``"drop"`` (the row is in no cell and in no count;
the default) or ``"cell"`` (the value has a cell of its own):

``null``
    SQL's NULL, Python's ``None``: cell ``(null)``.
``nan``
    The floating-point NaN, which engines do not treat as NULL (it equals itself and
    is greater than every number): cell ``(nan)``. Only for numbers.
``outside``
    Anything else that is not declared, whether or not it can be read. Categories have
    one cell ``(other)``. Ordered attributes have three: ``(below)`` and ``(above)``, so
    that ``age < 50`` has one answer on each (``-inf`` is below, ``+inf`` above), and
    ``(invalid)`` for what has no place in the order: a value of another kind (text in a
    column of integers, ``2.5`` or ``True`` among integers), or one that cannot be read (an
    undecodable text, a timestamp that overflows, a field of a malformed CSV line). As with
    NULL, every comparison with an invalid value is unknown; unlike NULL, it is a value.

The default is to drop because it is the only rule under which every query over
declared values has an answer, and because a row that is dropped can never be counted
by surprise. A third rule, ``"never"``, says that it is public knowledge that there are no
such values: tables of a batch then add up to its totals, and need no cell for dropped rows.
A row that has one all the same is in no count of the batch.

Regular cells come first, in the declared order, then ``(other)`` or ``(below)``,
``(above)``, ``(invalid)``, then ``(nan)``, then ``(null)``.

A row that an attribute drops still counts in statements that do not use the attribute. If a batch
has such statements, planning adds one more cell to the attribute (`Attribute.with_rest`), the last,
for all values that its rules drop: it has no label, and no answer displays it.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np

from lrm.domain.discovery import Discovery
from lrm.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Rule = Literal["drop", "cell", "never"]
"""What happens to a value that is not declared: its row is dropped, it has a cell, or it is public
that there are none (a row that has one all the same is in no count)."""

OutsideRule = Literal["drop", "cell", "never", "clip"]
"""The same for values outside; a number by knots may also be clipped to the declared range."""

LARGEST_INTEGER = 2**62
"""Declared integers lie in ±2^62, so that a bound plus or minus one fits 64 bits."""

MAX_CELLS = 10_000_000
"""Cells of one attribute: beyond it labels and bounds no longer fit in memory."""


@dataclass(frozen=True)
class Attribute(ABC):
    """A column of the public domain, with its rules for undeclared values.

    Its kinds are `Categories`, `Integers`, `Bins`, `Numbers` and `Dates`. Two attributes are
    equal when they declare the same cells by the same rules.
    """

    name: str
    null: Rule = field(default="drop", kw_only=True)
    nan: Rule = field(default="drop", kw_only=True)
    outside: OutsideRule = field(default="drop", kw_only=True)
    # The column of the table, where it has another name: a column may have several attributes.
    column: str | None = field(default=None, kw_only=True)
    # Whether values that a rule drops have a last cell, which is counted and never displayed: how a
    # plan counts, and no part of the declaration.
    rest: bool = field(default=False, init=False, repr=False, compare=False)

    kind: ClassVar[str]
    numeric: ClassVar[bool] = False
    outside_rules: ClassVar[tuple[str, ...]] = get_args(Rule)
    outside_labels: ClassVar[tuple[str, ...]] = ("(below)", "(above)", "(invalid)")

    def _check_common(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DomainError(f"an attribute's name must be non-empty text, not {self.name!r}")
        if self.column is not None and not (isinstance(self.column, str) and self.column.strip()):
            raise self._error(f"column must be the name of a column, not {self.column!r}")
        rules = {"null": get_args(Rule), "nan": get_args(Rule), "outside": self.outside_rules}
        for rule, allowed in rules.items():
            if getattr(self, rule) not in allowed:
                raise self._error(
                    f"{rule} must be {' or '.join(allowed)}, not {getattr(self, rule)!r}"
                )
        if self.nan == "cell" and not self.numeric:
            raise self._error(f"nan must be drop or never: {self.kind} cannot be NaN")
        if self.regular > MAX_CELLS:
            raise self._error(
                f"has {self.regular:,} cells, but at most {MAX_CELLS:,} are allowed; "
                "declare wider cells"
            )

    def _error(self, sentence: str) -> DomainError:
        return DomainError(f"attribute {self.name!r}: {sentence}")

    @property
    def source(self) -> str:
        """The column of the table that its values are read from."""
        return self.name if self.column is None else self.column

    @property
    @abstractmethod
    def regular(self) -> int:
        """Number of declared cells, without those for undeclared values."""

    @abstractmethod
    def _regular_labels(self) -> Iterable[str]:
        """Labels of the declared cells, in order."""

    @abstractmethod
    def cell_of(self, value: object) -> int | None:
        """Return the cell of one value of the column, or None where its row is dropped."""

    def position_of(self, value: object) -> int | None:
        """Return the cell of ``value``; of numbers by knots, its place among them."""
        return self.cell_of(value)

    @property
    def position_count(self) -> int:
        """Number of results of `position_of`."""
        return self.size

    @property
    def drops(self) -> bool:
        """Whether its rules drop some values."""
        return "drop" in {self.null, self.outside} or (self.numeric and self.nan == "drop")

    def with_rest(self, rest: bool = True) -> Self:
        """The same attribute with a cell for what its rules drop, or without one.

        Examples
        --------
        >>> sex = Categories("sex", ["f", "m"], null="cell")
        >>> [sex.cell_of(value) for value in ("m", None, "?")]
        [1, 2, None]
        >>> [sex.with_rest().cell_of(value) for value in ("m", None, "?")]
        [1, 2, 3]
        """
        if rest == self.rest:
            return self
        if rest and not self.drops:
            raise self._error("has no cell for dropped values: its rules drop none")
        twin = object.__new__(type(self))
        for item in fields(self):
            object.__setattr__(twin, item.name, getattr(self, item.name))
        object.__setattr__(twin, "rest", rest)
        return twin

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One label per cell that can be displayed, all distinct."""
        return (*self._regular_labels(), *self._special)

    @cached_property
    def _special(self) -> tuple[str, ...]:
        outside = self.outside_labels if self.outside == "cell" else ()
        nan = ("(nan)",) if self.nan == "cell" else ()
        return (*outside, *nan, *(("(null)",) if self.null == "cell" else ()))

    @cached_property
    def size(self) -> int:
        """Number of cells, with those for undeclared values."""
        return self.regular + len(self._special) + self.rest

    def special_cell(self, label: str) -> int | None:
        """Return the cell of values that ``(null)``, ``(nan)``, ``(other)`` … stands for.

        None means that their rows are dropped: they have no cell.

        Examples
        --------
        >>> Categories("sex", ["f", "m"], null="cell").special_cell("(null)")
        2
        >>> Categories("sex", ["f", "m"]).special_cell("(null)") is None
        True
        """
        if label in self._special:
            return self.regular + self._special.index(label)
        return self.size - 1 if self.rest else None


class NumericAttribute(Attribute):
    """An attribute whose values are numbers, which may be NaN."""

    numeric: ClassVar[bool] = True

    def cell_of(self, value: object) -> int | None:
        """Return the cell of ``value``, or None where its row is dropped."""
        return self.position_of(value)

    def position_of(self, value: object) -> int | None:
        """Return the cell of ``value``; of numbers by knots, its place among them."""
        if value is None:
            return self.special_position("(null)")
        number = as_number(value)
        if number is None:
            return self.special_position("(invalid)")
        return self.special_position("(nan)") if is_nan(number) else self._position(number)

    @abstractmethod
    def _position(self, number: Any) -> int | None:
        """The position of a number that is not NaN, or None where its row is dropped."""

    def special_position(self, label: str) -> int | None:
        """Return the position of ``(null)``, ``(nan)`` …, if it has a cell."""
        return self.special_cell(label)

    def _check_increasing(self, what: str, numbers: Iterable[float]) -> None:
        for low, high in pairwise(numbers):
            if not low < high:
                pair = f"{number_text(low)} is followed by {number_text(high)}"
                raise self._error(f"{what} must be strictly increasing, but {pair}")


@dataclass(frozen=True, init=False)
class Categories(Attribute):
    """A column of declared names, compared exactly: case and blanks matter.

    Parameters
    ----------
    name
        The column.
    values
        Distinct texts, integers or booleans, all of one type.
    spellings
        Other texts that a table may hold for a value, by value; only where values are texts.
        Queries and answers know the declared values alone.
    null, outside
        Rules for NULL and for every value that is not declared (cell ``(other)``).
    discovered
        How the last of the values were discovered in a private table, if they were.

    Examples
    --------
    >>> state = Categories("state", ["NY", "NJ"], outside="cell")
    >>> state.labels
    ('NY', 'NJ', '(other)')
    >>> state.cell_of("NJ"), state.cell_of("nj"), state.cell_of(None)
    (1, 2, None)
    >>> sex = Categories("sex", ["f", "m"], spellings={"f": ["w", "weiblich"]})
    >>> sex.cell_of("w"), sex.cell_of("W")
    (0, None)
    """

    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]
    spellings: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    discovered: tuple[Discovery, ...] | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "categories"
    outside_labels: ClassVar[tuple[str, ...]] = ("(other)",)

    def __init__(  # noqa: PLR0913 - the facts of one attribute
        self,
        name: str,
        values: Iterable[str] | Iterable[int] | Iterable[bool],
        spellings: Mapping[str, Iterable[str]] | None = None,
        *,
        null: Rule = "drop",
        outside: Rule = "drop",
        column: str | None = None,
        discovered: Iterable[Discovery] | None = None,
    ) -> None:
        if isinstance(values, str):
            raise DomainError(f"attribute {name!r}: values must be a list, not a single text")
        super().__init__(name, null=null, outside=outside, column=column)
        object.__setattr__(self, "values", tuple(values))
        object.__setattr__(self, "discovered", tuple(discovered) if discovered else None)
        self._check_values()
        self._check_common()
        if sum(entry.count for entry in self.discovered or ()) > len(self.values):
            raise self._error("has fewer values than were discovered")
        if spellings:
            for value, other_texts in spellings.items():
                if isinstance(other_texts, str):
                    raise self._error(f"spellings of {value!r} must be a list, not a single text")
            pairs = tuple((value, tuple(other_texts)) for value, other_texts in spellings.items())
            object.__setattr__(self, "spellings", pairs)
            self._check_spellings()

    def _check_values(self) -> None:
        types = sorted({type(value).__name__ for value in self.values})
        if len(types) != 1 or types[0] not in {"str", "int", "bool"}:
            raise self._error(
                "values must be a list of texts, integers or booleans, all of one type, "
                f"not {', '.join(types) or 'empty'} (quote a text that looks like a number)"
            )
        if types == ["int"] and any(abs(value) > LARGEST_INTEGER for value in self.values):  # type: ignore[arg-type]
            raise self._error("integer values must be within ±2^62")
        # Engines cannot hold NUL in a text, or use it to mark a value that cannot be read.
        if types == ["str"] and any("\0" in value for value in self.values):  # type: ignore[operator]
            raise self._error("values must not contain the NUL character")
        labels = [*self._regular_labels(), *self._special]
        twice = [label for label, times in Counter(labels).items() if times > 1]
        if twice:
            raise self._error(
                f"value {twice[0]!r} is declared twice, or is the name of a special cell"
            )

    def _check_spellings(self) -> None:
        if self.value_type != "text":
            raise self._error(
                "spellings are for values that are texts; of booleans in CSV files they are "
                "declared under csv, as true: [ja] and false: [nein]"
            )
        seen: set[object] = set(self.values)
        for value, other_texts in self.spellings or ():
            if value not in self.values:
                raise self._error(f"spellings must be of declared values, and {value!r} is not one")
            for other in other_texts:
                if not isinstance(other, str) or "\0" in other:
                    raise self._error(
                        f"spellings of {value!r} must be texts without NUL, not {other!r} "
                        "(quote a text that looks like a number)"
                    )
                if other in seen:
                    raise self._error(
                        f"spellings must each stand for one value, and {other!r} is given twice"
                    )
                seen.add(other)

    @cached_property
    def spelled(self) -> tuple[tuple[str | int | bool, int], ...]:
        """Every value that a table may hold, with its cell: declared ones, then other spellings."""
        values: tuple[str | int | bool, ...] = self.values
        value_cells = {value: cell for cell, value in enumerate(values)}
        other_spellings = (
            (text, value_cells[value]) for value, texts in self.spellings or () for text in texts
        )
        return (*value_cells.items(), *other_spellings)

    @property
    def regular(self) -> int:
        """Number of declared values."""
        return len(self.values)

    def _regular_labels(self) -> Iterable[str]:
        return (
            str(value).lower() if isinstance(value, bool) else str(value) for value in self.values
        )

    @cached_property
    def _index(self) -> dict[object, int]:
        # True == 1 in Python: the type is part of the key, so that they stay separate.
        return {(self.value_type, value): cell for value, cell in self.spelled}

    @property
    def value_type(self) -> Literal["text", "integer", "boolean"]:
        """What the values are; a column has one type."""
        if isinstance(self.values[0], bool):
            return "boolean"
        return "integer" if isinstance(self.values[0], int) else "text"

    def cell_of(self, value: object) -> int | None:
        """Return the cell of ``value``: its own, ``(other)``, ``(null)``, or None."""
        if value is None:
            return self.special_cell("(null)")
        if isinstance(value, (bool, np.bool_)):
            kind, plain = "boolean", bool(value)
        elif isinstance(value, (numbers.Real, Decimal)):
            kind, plain = "integer", value  # type: ignore[assignment] # 1.0 and Decimal(1) are 1
        else:
            kind, plain = "text", value  # type: ignore[assignment]
        try:
            cell = self._index.get((kind, plain))
        except TypeError:  # unhashable, e.g. a signalling NaN: equal to nothing declared
            cell = None
        return self.special_cell("(other)") if cell is None else cell


def as_number(value: object) -> Any:
    """Return ``value`` if it is a number of any type, else None; a boolean is not a number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, Decimal)):
        return None
    return value


def is_nan(value: Any) -> bool:
    """Tell whether a number is NaN, signalling ones of Decimal included."""
    return value.is_nan() if isinstance(value, Decimal) else bool(value != value)  # noqa: PLR0124 - NaN alone differs from itself


def number_text(value: float) -> str:
    """Write a number so that it reads back the same, whole ones without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
