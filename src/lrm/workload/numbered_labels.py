"""Labels of the values and ranges of a numbered attribute, made on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import overload

from lrm.maps.products.factors import Kind

__all__ = ["NumberedLabels"]


@dataclass(frozen=True, repr=False)
class NumberedLabels(Sequence[str]):
    """Labels of the rows of a factor over ``size`` numbered values.

    Parameters
    ----------
    kind
        ``"identity"`` labels values, ``"prefix"`` and ``"all-ranges"`` label ranges of them,
        ``"rows"`` labels ``size`` rows of any weights.

    Examples
    --------
    >>> list(NumberedLabels("all-ranges", 3))
    ['0', '0..1', '0..2', '1', '1..2', '2']
    >>> list(NumberedLabels("prefix", 2)), list(NumberedLabels("rows", 2))
    (['0', '0..1'], ['row 1', 'row 2'])
    """

    kind: Kind
    size: int

    def __len__(self) -> int:
        return self.size * (self.size + 1) // 2 if self.kind == "all-ranges" else self.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        match self.kind:
            case "identity":
                return str(number)
            case "rows":
                return f"row {number + 1}"
            case "prefix":
                return _range(0, number)
            case _:
                # Counted from the end, the ranges that begin in the last k values are k(k+1)/2.
                after = len(self) - 1 - number
                k = (isqrt(8 * after + 1) - 1) // 2
                return _range(self.size - 1 - k, self.size - 1 - after + k * (k + 1) // 2)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
