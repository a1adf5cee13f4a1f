"""What every mechanism returns, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lrm.maps import level_errors
from lrm.maps.levels import LevelMap
from lrm.maps.linear import DenseMap, Floats, LinearMap, SparseMap
from lrm.privacy.budget import Noise
from lrm.reduce import CellMap, MergedWorkload, merge_cells, reduce_rows
from lrm.solvers.progress import OnStep, ignore_step
from lrm.workload import Workload, weigh_rows

__all__ = ["Problem", "Search", "Strategy"]


@dataclass(frozen=True)
class Search:
    """What a mechanism is told beside the queries: a seed, whom to report to, which noise."""

    seed: int = 0
    on_step: OnStep = ignore_step
    noise: Noise = "laplace"

    def rng(self) -> np.random.Generator:
        """A fresh generator: the same numbers for the same seed."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, eq=False)
class Problem:
    """A workload as mechanisms see it: whole, with merged cells, and reduced."""

    workload: Workload

    @property
    def cells(self) -> int:
        """Number of original cells."""
        return self.workload.shape[1]

    @cached_property
    def merged(self) -> MergedWorkload:
        """The queries over merged cells. Importance has no say in which cells are alike."""
        return merge_cells(self.workload.queries)

    @cached_property
    def reduced(self) -> Floats:
        """R (rank × merged cells) whose strategies L are as good for it as for the workload.

        ``RᵀR = WᵀW`` with W weighted by importance, over the columns of the
        representatives, so that a column of L in the unit ball is one of sensitivity 1.
        """
        merged = self.merged
        weight = self.workload.importance
        factor = reduce_rows(weigh_rows(merged.queries, weight))
        return factor * np.maximum(merged.cells.largest_factors(), 1)

    def from_reduced(self, strategy: Floats | sp.csr_array) -> LinearMap:
        """A strategy for ``reduced`` as one on merged counts."""
        shares = 1.0 / np.maximum(self.merged.cells.largest_factors(), 1)
        if sp.issparse(strategy):
            return SparseMap(sp.csr_array(strategy @ sp.diags_array(shares)))
        return DenseMap(strategy * shares)

    def weighted_squared_norm(self) -> float:
        """``‖W‖_F²`` with the importance of each query."""
        return weigh_rows(self.workload.queries, self.workload.importance).squared_norm()

    def tree_error(self, tree: LevelMap, noise: Noise) -> float:
        """(Weighted) ``‖B‖²·Δ²`` of a tree over all cells, in closed form: O(m·n)."""
        weighted = weigh_rows(self.workload.queries, self.workload.importance)
        square = tree.column_norm(1 if noise == "laplace" else 2) ** 2
        return level_errors.squared_norm(weighted, tree) * square

    def queries_for(self, strategy: Strategy) -> LinearMap:
        """The queries over the cells that ``strategy`` measures."""
        if strategy.cells is self.merged.cells:
            return self.merged.queries
        return self.workload.queries


@dataclass(frozen=True, eq=False)
class Strategy:
    """The queries L that a mechanism would measure, in real numbers.

    Parameters
    ----------
    mechanism
        Its name, as the command line spells it.
    cells
        How the cells of the workload are merged before they are measured.
    matrix
        L, r × merged cells.
    reconstruction
        B, where it is not the least-squares one ``W·L⁺``.
    exact
        False where ``W = B·L`` is meant to hold only approximately.
    least_error
        A proven bound on the error of any strategy, where the search found one.
    details
        Plain facts about how it was found, for people and for files.
    """

    mechanism: str
    cells: CellMap
    matrix: LinearMap
    reconstruction: LinearMap | None = None
    exact: bool = True
    least_error: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
