"""What plans, accuracy and releases know of the reconstruction of answers.

Two kinds implement it: a matrix over a list of cells (`lrm.exact.reconstruction`), and products of
attributes, whose cells are never listed (`lrm.exact.products.reconstruction`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.maps.linear import Floats, LinearMap

__all__ = ["EXACTNESS", "Answering", "Reconstruction", "RowWeights"]

EXACTNESS = 1e-9
"""Largest |W − B·L| relative to the largest weight of the query, of a plan that counts as exact."""


class Reconstruction(Protocol):
    """B (queries × measurements) as an operator: ``answers = B·measurements``."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and of measurements."""
        ...

    @property
    def given(self) -> LinearMap | None:
        """B itself where a mechanism chose it; None where it is the least-squares one."""
        ...

    def apply(self, measurements: Floats, /) -> Floats:
        """Answers to all queries from (noisy) measurements."""
        ...

    @property
    def is_blockwise(self) -> bool:
        """Whether some of the answers and errors can be had without a list of all."""
        ...

    def answering(self, measurements: Floats, /) -> Answering:
        """Answers from measurements for those who need some of them at a time."""
        ...

    def rows(self, start: int, stop: int, /) -> Floats:
        """Rows ``start:stop`` of B."""
        ...

    def rows_of(self, ranges: Sequence[tuple[int, int]], /) -> Floats:
        """Rows of B in some ranges, one after the other.

        Columns of independent measurements that are 0 in all of these rows may be left out.
        """
        ...

    def row_weights(self, start: int, stop: int, /) -> Iterator[tuple[int, int, RowWeights | None]]:
        """Yield the weights of rows ``start:stop`` in parts, each with its first and last row.

        None where they would be too much work: norms alone must do then.
        """
        ...

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of blocks of rows that are small enough to hold."""
        ...

    def matrix(self) -> Floats | sp.csr_array:
        """All of B; a `WorkloadError` where it is too large."""
        ...

    def squared_norms(self, start: int, stop: int, /) -> Floats:
        """‖B_i‖² of the queries ``start:stop``."""
        ...

    @property
    def row_squared_norms(self) -> Floats:
        """‖B_i‖² of each query: the variance of its answer per unit of noise variance."""
        ...

    @property
    def squared_norm(self) -> float:
        """``‖B‖_F²``: the total error per unit of noise variance."""
        ...

    @property
    def residual(self) -> float:
        """Largest ``|W − B·L|``: how far one record can move an answer past the noise."""
        ...

    @property
    def relative_residual(self) -> float:
        """The residual relative to the largest weight of its own query."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides the answers, beyond the queries and what is measured."""
        ...


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
