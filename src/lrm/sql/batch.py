"""What a batch compiles to: named rows of weights over the domain's cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrm.errors import SqlError
from lrm.workload import Workload

if TYPE_CHECKING:
    import scipy.sparse as sp

    from lrm.domain import Domain

__all__ = ["CompiledBatch", "Group"]

Group = tuple[tuple[str, str], ...]
"""The attributes that a row is grouped by, each with the label of its cell."""


@dataclass(frozen=True, eq=False)
class CompiledBatch:
    """Rows of weights: answers are ``matrix @ counts``.

    Parameters
    ----------
    names
        One distinct name per row: ``n[state=NY]``.
    matrix
        Weights, one row a query or group, one column a cell of ``domain``; read-only.
    queries
        Per row, its name without the group: ``n``.
    groups
        Per row, its group as (attribute, label) pairs; empty where there is none.
    lines
        Per row, the line of the batch's text where its statement starts.
    domain
        The domain whose cells the columns are.
    importance
        Per row, how much its error counts for; 1 each by default.
    """

    names: tuple[str, ...]
    matrix: sp.csr_array
    queries: tuple[str, ...]
    groups: tuple[Group, ...]
    lines: tuple[int, ...]
    domain: Domain
    importance: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        rows = len(self.names)
        if self.matrix.shape != (rows, self.domain.size):
            raise SqlError(
                f"{rows} names over {self.domain.size} cells need a matrix of that shape, "
                f"not {self.matrix.shape}"
            )
        if {len(self.queries), len(self.groups), len(self.lines)} != {rows}:
            raise SqlError(f"every one of {rows} rows needs a query, a group and a line")
        if len(set(self.names)) != rows:
            raise SqlError("names of compiled rows must differ")
        if self.importance is not None and len(self.importance) != rows:
            raise SqlError(f"{rows} rows need {rows} importances, not {len(self.importance)}")
        for array in (self.matrix.data, self.matrix.indices, self.matrix.indptr):
            array.setflags(write=False)

    @property
    def workload(self) -> Workload:
        """The batch as a workload over its domain."""
        return Workload(
            self.matrix, names=self.names, importance=self.importance, domain=self.domain
        )
