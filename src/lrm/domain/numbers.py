"""Numbers by knots: each number is divided between its two neighbouring knots."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lrm.domain.attributes import (
    Attribute,
    NumericAttribute,
    Rule,
    as_number,
    is_nan,
    number_text,
)
from lrm.domain.bins import Bins, to_float
from lrm.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RECORD_BITS = 20
RECORD = 1 << RECORD_BITS
"""Units that a record is divided into: counts of a domain with numbers are in units of 2^−20."""

MOST_KNOTS = 100
"""Knots of an attribute: an engine compares a number with one after the other."""

LARGEST_KNOT = 1e300
"""Differences of knots, times 2^21, stay finite in float64."""


@dataclass(frozen=True, init=False)
class Numbers(NumericAttribute):
    """Numbers whose sums and averages are wanted, declared by a few knots.

    A number x between the knots a and b counts as the share ``s/2^20`` of a record at b and
    the rest of it at a, with ``s = floor((x − a)·2^20/(b − a) + 1/2)`` computed in float64, each
    operation rounded to nearest. The shares of a record add up to exactly one record, and
    ``Σ share·knot`` is x up to 2^−20 of ``b − a``: sums and averages have no binning error.

    Parameters
    ----------
    name
        The column.
    knots
        At least two finite numbers, strictly increasing: the range, and where its numbers are
        divided. Two knots are enough for sums.
    bins
        Edges by which the same column is cut, for comparisons, groups and medians: the domain then
        has two attributes, of bins under this name and of knots, and statements use both.
    null, nan
        Rules for NULL and NaN.
    outside
        ``"clip"`` (numbers beyond the range count as its nearest end, infinite ones too) or
        ``"drop"`` (their rows are in no count) or ``"never"`` (there are none). Values that are
        not numbers are dropped.

    Examples
    --------
    >>> stay = Numbers("stay", [0, 7, 30, 200])
    >>> stay.labels
    ('0', '7', '30', '200')
    >>> [stay.position_of(value) / RECORD for value in (0, 3.5, 30, 1000, -1)]
    [0.0, 0.5, 2.0, 3.0, 0.0]
    >>> [form.name for form in Numbers("stay", [0, 200], bins=[0, 7, 30, 200]).forms]
    ['stay', 'stay by knots']
    """

    knots: tuple[float, ...]
    bins: tuple[float, ...] | None

    kind: ClassVar[str] = "numbers"
    outside_rules: ClassVar[tuple[str, ...]] = ("clip", "drop", "never")

    def __init__(  # noqa: PLR0913 - the facts of one attribute
        self,
        name: str,
        knots: Iterable[float],
        *,
        bins: Iterable[float] | None = None,
        null: Rule = "drop",
        nan: Rule = "drop",
        outside: Literal["clip", "drop", "never"] = "clip",
        column: str | None = None,
    ) -> None:
        super().__init__(name, null=null, nan=nan, outside=outside, column=column)
        object.__setattr__(self, "bins", None if bins is None else tuple(bins))
        declared = tuple(knots)
        for knot in declared:
            if as_number(knot) is None or is_nan(knot) or not abs(knot) <= LARGEST_KNOT:
                raise self._error(f"knots must be finite numbers within ±1e300, not {knot!r}")
            if isinstance(knot, int) and int(to_float(knot)) != knot:
                raise self._error(f"knots must be exact in float64, not {knot}")
        # Adding zero makes -0.0 into 0.0: equal knots must have equal labels and digests.
        object.__setattr__(self, "knots", tuple(to_float(knot) + 0.0 for knot in declared))
        if not 2 <= len(self.knots) <= MOST_KNOTS:
            raise self._error(f"knots must be 2 to {MOST_KNOTS} numbers, not {len(self.knots)}")
        self._check_increasing("knots", self.knots)
        self._check_common()
        _ = self.forms  # the edges are checked

    @property
    def forms(self) -> tuple[Attribute, ...]:
        """The attributes that it stands for: itself, or bins and knots of one column.

        Numbers outside are counted where they are clipped, below and above the edges.
        """
        if self.bins is None:
            return (self,)
        outside = "cell" if self.outside == "clip" else self.outside
        rules = {"null": self.null, "nan": self.nan, "column": self.column}
        cut = Bins(self.name, self.bins, outside=outside, **rules)  # type: ignore[arg-type]
        rules["column"] = self.source
        knots = Numbers(f"{self.name} by knots", self.knots, outside=self.outside, **rules)  # type: ignore[arg-type]
        return cut, knots

    @property
    def regular(self) -> int:
        """Number of knots."""
        return len(self.knots)

    @property
    def last_position(self) -> int:
        """Position of the last knot; cells of NaN and NULL follow it, one position each."""
        return (self.regular - 1) << RECORD_BITS

    @property
    def position_count(self) -> int:
        """Number of positions, with those of NaN and NULL."""
        return self.last_position + 1 + self.size - self.regular

    @property
    def drops(self) -> bool:
        """Always: what is not a number has no place among knots."""
        return True

    @property
    def clipping(self) -> str:
        """What happens to numbers beyond the knots, in words."""
        low, high = number_text(self.knots[0]), number_text(self.knots[-1])
        if self.outside == "clip":
            return f"{self.source} below {low} counts as {low}, and above {high} as {high}"
        return f"rows with {self.source} below {low} or above {high} are dropped"

    @property
    def squares_added(self) -> tuple[float, float]:
        """Numbers p and s: dividing records adds at most the sum of ``(p·x + s)²`` to that of x².

        A record at share t between two knots at distance w has ``t(1 − t)w²`` more squares than
        its number, which is at most ``(1 − t)α² + tβ²`` for all ``α + β ≥ w``: α and β are
        ``p·x + s`` at its two knots, chosen for the least sum of ``(α + β)/w``.

        >>> Numbers("x", [0, 10, 20, 30]).squares_added, Numbers("x", [1, 3, 9]).squares_added
        ((0.0, 5.0), (0.5, 0.0))
        """
        knots = np.array(self.knots)
        widths, steps = np.diff(knots), np.linspace(0.0, 1.0, 101)
        choices = []
        for sign, end in ((1.0, knots[0]), (-1.0, knots[-1])):
            sums = np.abs(knots[1:] - end) + np.abs(knots[:-1] - end)
            slopes = steps[:, None] * sums
            rest = np.maximum((widths - slopes).max(axis=1), 0.0) / 2
            costs = ((slopes + 2 * rest[:, None]) / widths).sum(axis=1)
            best = int(np.argmin(costs))
            slope = sign * float(steps[best])
            choices.append((float(costs[best]), slope, float(rest[best] - slope * end)))
        return min(choices)[1:]

    def _regular_labels(self) -> Iterable[str]:
        return map(number_text, self.knots)

    def cell_of(self, value: object) -> int | None:  # noqa: ARG002 - whatever it is
        """Not defined: a number is divided between two cells."""
        raise DomainError(
            f"a number of {self.name!r} is divided between two knots and has no single cell"
        )

    def _position(self, number: Any) -> int | None:
        """Where a number lies among the knots, in units of 2^−20; None if it is dropped.

        A number at share s between knots i and i + 1 has position ``i·2^20 + s``.
        """
        x = to_float(number)
        if not self.knots[0] <= x <= self.knots[-1]:
            if self.outside != "clip":
                return self.special_position("(below)")
            x = self.knots[0] if x < self.knots[0] else self.knots[-1]
        place = bisect.bisect_right(self.knots, x) - 1
        if place == self.regular - 1:
            return self.last_position
        low, width = self.knots[place], self.knots[place + 1] - self.knots[place]
        share = 0
        if (x - low) * (2.0 * RECORD) >= width:  # PostgreSQL raises an error on underflow
            share = math.floor((x - low) * float(RECORD) / width + 0.5)
        return (place << RECORD_BITS) + share

    def special_position(self, label: str) -> int | None:
        """Return the position of ``(null)``, ``(nan)`` …, if it has a cell."""
        cell = self.special_cell(label)
        return None if cell is None else self.last_position + cell - (self.regular - 1)

    def divided(self, position: int) -> tuple[int, int]:
        """Return the lower cell of a position, and the share of the cell after it."""
        if position >= self.last_position:
            return self.regular - 1 + position - self.last_position, 0
        return position >> RECORD_BITS, position & (RECORD - 1)


def pieces_of(
    attributes: Sequence[Attribute], positions: Sequence[int]
) -> list[tuple[tuple[int, ...], int]]:
    """Divide a record into pieces that lie in one cell each: cells and units, which sum to 2^20.

    With several attributes of numbers, unit u of the record (0 ≤ u < 2^20) lies in the upper cell
    of each attribute whose share is above u. So the marginal counts of some attributes are those
    that they have by themselves, and k attributes of numbers make at most k + 1 pieces.

    Examples
    --------
    >>> pieces_of([Numbers("a", [0, 1]), Numbers("b", [0, 4])], [1 << 19, 1 << 18])
    [((1, 1), 262144), ((1, 0), 262144), ((0, 0), 524288)]
    """
    split = [
        attribute.divided(position) if isinstance(attribute, Numbers) else (position, 0)
        for attribute, position in zip(attributes, positions, strict=True)
    ]
    ends = sorted({0, RECORD, *(share for _, share in split)})
    return [
        (tuple(cell + (start < share) for cell, share in split), end - start)
        for start, end in itertools.pairwise(ends)
    ]
