"""Numbers cut at declared edges."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lrm.domain.attributes import NumericAttribute, Rule, as_number, is_nan, number_text

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, init=False)
class Bins(NumericAttribute):
    """Numbers cut at declared edges into half-open cells ``[edge, next edge)``.

    Parameters
    ----------
    name
        The column.
    edges
        At least two numbers, strictly ascending. The first may be ``-inf``, the last
        ``inf`` (the value ``inf`` itself then counts as above).
    representatives
        One number per cell, inside it, which stands for all of its numbers in sums and averages;
        the middle by default. An unbounded cell has none unless one is given.

    Notes
    -----
    Numbers are compared as float64, integers and decimals after rounding to it. This puts the
    decimal ``0.1`` in the cell that starts at ``0.1``, and a decimal or an integer within rounding
    below an edge (beyond 16 digits) into the cell that starts there.

    Examples
    --------
    >>> income = Bins("income", [0, 1000, 2500.5], outside="cell", nan="cell")
    >>> income.labels
    ('[0, 1000)', '[1000, 2500.5)', '(below)', '(above)', '(invalid)', '(nan)')
    >>> [income.cell_of(value) for value in (0, 999.9, 1000, -1, 2500.5, "?", float("nan"), None)]
    [0, 0, 1, 2, 3, 4, 5, None]
    """

    edges: tuple[float, ...]
    representatives: tuple[float, ...] | None

    kind: ClassVar[str] = "bins"

    def __init__(  # noqa: PLR0913 - the facts of one attribute
        self,
        name: str,
        edges: Iterable[float],
        representatives: Iterable[float] | None = None,
        *,
        null: Rule = "drop",
        nan: Rule = "drop",
        outside: Rule = "drop",
        column: str | None = None,
    ) -> None:
        super().__init__(name, null=null, nan=nan, outside=outside, column=column)
        edge_values = tuple(edges)
        for edge in edge_values:
            if as_number(edge) is None:
                raise self._error(f"an edge must be a number, not {edge!r}")
            if is_nan(edge):
                raise self._error("an edge must be a number, not NaN")
            if isinstance(edge, int) and int(_whole(edge)) != edge:
                raise self._error(
                    f"an edge must be exact in float64, not {edge}; whole numbers beyond 2^53 "
                    "are cut exactly by kind integers"
                )
        # Adding zero makes -0.0 into 0.0: equal edges must have equal labels and digests.
        object.__setattr__(self, "edges", tuple(to_float(edge) + 0.0 for edge in edge_values))
        self._check_edges()
        cell_numbers = None if representatives is None else tuple(representatives)
        object.__setattr__(self, "representatives", self._checked_representatives(cell_numbers))
        self._check_common()

    def _checked_representatives(
        self, representatives: tuple[float, ...] | None
    ) -> tuple[float, ...] | None:
        if representatives is None:
            return None
        if len(representatives) != self.regular:
            raise self._error(
                f"representatives must be one number per cell ({self.regular}), "
                f"not {len(representatives)}"
            )
        for value, (low, high) in zip(representatives, itertools.pairwise(self.edges), strict=True):
            if as_number(value) is None or not low <= value <= high or math.isinf(value):
                cell = f"[{number_text(low)}, {number_text(high)})"
                raise self._error(
                    f"representatives must be finite and in their cells, not {value!r} in {cell}"
                )
        return tuple(to_float(value) + 0.0 for value in representatives)

    def _check_edges(self) -> None:
        if len(self.edges) < 2:
            raise self._error(f"edges must be at least two numbers, not {len(self.edges)}")
        self._check_increasing("edges", self.edges)
        if self.edges[0] == math.inf or self.edges[-1] == -math.inf:
            raise self._error("the first edge must be below inf and the last above -inf")

    @property
    def regular(self) -> int:
        """Number of declared cells."""
        return len(self.edges) - 1

    def _regular_labels(self) -> Iterable[str]:
        pairs = itertools.pairwise(self.edges)
        return (f"[{number_text(low)}, {number_text(high)})" for low, high in pairs)

    def _position(self, number: Any) -> int | None:
        nearest = to_float(number)
        if nearest < self.edges[0]:
            return self.special_cell("(below)")
        if nearest >= self.edges[-1]:
            return self.special_cell("(above)")
        return bisect.bisect_right(self.edges, nearest) - 1


def _whole(value: int) -> float:
    return float(value) if abs(value) < 2**1000 else 0.0


def to_float(value: Any) -> float:
    """The nearest float64, infinite for whole numbers beyond all of them."""
    try:
        return float(value)
    except OverflowError:  # an int beyond float64: larger than every edge
        return math.inf if value > 0 else -math.inf
