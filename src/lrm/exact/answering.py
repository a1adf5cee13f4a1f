"""Answers by blocks, and the weights that their noise follows from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answering", "RowWeights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowWeights:
    """The weights of some rows of B, whatever their order: what the law of the noise follows from.

    Parameters
    ----------
    values
        Sizes of weights, one row per class of rows that have the same.
    counts
        How often each occurs in a row; None where each occurs once.
    place
        The class of each row.
    """

    values: Floats
    counts: Floats | None
    place: NDArray[np.int64]


class Answering(Protocol):
    """The answers of a batch from one array of measurements."""

    def rows(self, start: int, stop: int, /) -> Floats:
        """The answers to the queries ``start:stop``."""
        ...
