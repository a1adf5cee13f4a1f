"""Which numbers each cell of an attribute holds.

Comparisons, monotone chains of functions, sums by representatives, quantiles and the edges that
errors name all read the ends of cells from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.batches.sql.refusals import refuse
from lrm.domain import Attribute, Bins, Categories, Integers, Numbers, SteppedAttribute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.batches.sql.expr import Expr

    Floats = NDArray[np.float64]

__all__ = ["UNBOUNDED", "Intervals", "is_binned", "ordered_cells", "represented"]


UNBOUNDED = 2.0**500
"""In place of an infinite error, which cannot be multiplied by 0."""

_LEAST = 2.0**-900
_WHOLE = 2.0**52
"""Whole numbers up to here are exact as float64, and so are their neighbours."""


def is_binned(attribute: Attribute) -> bool:
    """Whether cells of an attribute of numbers hold several of them, or shares of them."""
    return isinstance(attribute, Bins | Numbers) or (
        isinstance(attribute, Integers) and attribute.width > 1
    )


@dataclass(frozen=True, eq=False)
class Intervals:
    """The numbers of each cell that holds some: the declared cells, then (below) and (above).

    Parameters
    ----------
    low
        The least number of each cell.
    high
        The largest one, or where ``is_open`` the edge that its numbers stay below.
    regular
        How many cells are declared ones.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    regular: int
    is_open: bool = False

    @classmethod
    def of(cls, attribute: Attribute) -> Intervals:
        """The intervals of integers, dates, bins or knots."""
        if isinstance(attribute, Numbers):  # a knot counts for itself, shares for what is between
            return cls(np.array(attribute.knots), np.array(attribute.knots), attribute.regular)
        if isinstance(attribute, SteppedAttribute):
            return cls(*attribute.spans, attribute.regular)
        assert isinstance(attribute, Bins)  # noqa: S101 - categories hold no numbers
        edges = np.asarray(attribute.edges)
        low, high = edges[:-1], edges[1:]
        if attribute.outside == "cell":  # (above) holds inf itself, which no constant reaches
            low, high = np.append(low, [-np.inf, edges[-1]]), np.append(high, [edges[0], np.inf])
        return cls(low, high, attribute.regular, is_open=True)

    def ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the largest number of each cell.

        >>> Intervals.of(Bins("x", [0, 10, 20])).ends()[1].tolist()
        [9.999999999999998, 19.999999999999996]
        """
        if not self.is_open:
            return self.low, self.high
        last = np.where(np.isinf(self.high), self.high, np.nextafter(self.high, -np.inf))
        return self.low, last

    def computed_ends(self) -> list[NDArray[Any]]:
        """The least and the largest numbers that functions are evaluated on.

        Below 0, the largest is one that a quotient does not round to 0. Where all edges are whole,
        a column may be stored as integers: these follow.
        """
        low, high = self.ends()
        high = np.where(self.high == 0.0, -_LEAST, high)
        edges = np.concatenate([self.low, self.high])
        finite = edges[np.isfinite(edges)]
        if np.any(finite != np.rint(finite)) or np.any(np.abs(finite) > _WHOLE):
            return [low, high]
        first, last = (np.clip(side, -_WHOLE, _WHOLE) for side in (low, np.floor(high)))
        return [low, high, first.astype(np.int64), last.astype(np.int64)]

    def ascending(self) -> tuple[list[int], Floats, Floats]:
        """The cells in order, with the ends of their numbers; those beyond have infinite ends."""
        cells = list(range(self.regular))
        beyond = len(self.low) > self.regular
        order = [self.regular, *cells, self.regular + 1] if beyond else cells
        lows, highs = self.low[order].astype(np.float64), self.high[order].astype(np.float64)
        if beyond:
            lows[0], highs[-1] = -np.inf, np.inf
        return order, lows, highs


def represented(attribute: Attribute) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """What each cell counts for, how far its numbers may lie from that, and where it has none.

    NULL counts for 0. A cell without an end has a representative only where the domain gives it.
    """
    values, halves = np.zeros(attribute.size), np.zeros(attribute.size)
    open_cells = np.ones(attribute.size, dtype=bool)
    null = attribute.special_cell("(null)")
    if null is not None:
        open_cells[null] = False
    cells, regular = Intervals.of(attribute), slice(0, attribute.regular)
    lows, highs = (side[regular].astype(np.float64) for side in (cells.low, cells.high))
    representatives = getattr(attribute, "representatives", None)
    middle = np.where(np.isfinite(lows + highs), (lows + highs) / 2, np.nan)
    values[regular] = middle if representatives is None else np.array(representatives)
    halves[regular] = np.maximum(values[regular] - lows, highs - values[regular])
    halves[np.isinf(halves)] = UNBOUNDED
    open_cells[regular] = np.isnan(values[regular])
    values[open_cells] = halves[open_cells] = 0.0
    return values, halves, open_cells


def ordered_cells(attribute: Attribute, node: Expr) -> tuple[list[int], list[int]]:
    """All cells in ascending order, and those of NULL and invalid values, which have no place."""
    special = {label: attribute.special_cell(label) for label in ("(invalid)", "(null)")}
    last = [cell for cell in special.values() if cell is not None]
    regular = list(range(attribute.regular))
    if isinstance(attribute, Categories):
        if attribute.special_cell("(other)") is not None:
            advice = "the place of its cell (other) is not known"
            raise refuse("window", f"ORDER BY {attribute.name}", advice, node)
        regular.sort(key=lambda cell: attribute.values[cell])
    before = [attribute.special_cell("(below)")]
    after = [attribute.special_cell("(above)"), attribute.special_cell("(nan)")]
    return [cell for cell in (*before, *regular, *after) if cell is not None], last
