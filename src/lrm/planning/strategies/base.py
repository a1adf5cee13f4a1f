"""What every mechanism takes and returns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.clock import UNLIMITED, Clock, Timings
from lrm.errors import ConvergenceError, UsageError
from lrm.planning.design.cells import (
    SECONDS_PER_STEP,
    CellMap,
    MergedWorkload,
    merge_cells,
    reduce_rows,
    reduction_seconds,
)
from lrm.planning.design.inverses import left_inverse
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.rounding import round_products
from lrm.planning.design.products.strategy import ProductStrategy
from lrm.planning.design.reconstruction import FlatReconstruction, Reconstruction
from lrm.planning.design.rounding import quantise
from lrm.planning.design.row_limits import RowLimits
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.gaussian import LimitsOn
from lrm.planning.solvers.race import Candidate
from lrm.privacy.norms import L1, L2, Norm
from lrm.queries.maps.levels import LevelMap
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.combine import weigh_terms
from lrm.queries.maps.products.filled import filled
from lrm.queries.workload import Workload, weigh_rows


def check_effort(effort: str) -> None:
    """Refuse an effort that has no budget."""
    if effort not in settings.BUDGETS:
        raise UsageError(f"effort must be one of {', '.join(settings.BUDGETS)}, not {effort!r}")


@dataclass(frozen=True)
class Search:
    """What a mechanism takes in addition to the queries.

    The seed of random starts, the norm of the columns that counts, and the clock, which says when
    the strategy must be there.
    """

    seed: int = 0
    norm: Norm = field(default_factory=L1)
    clock: Clock = UNLIMITED

    @property
    def is_gaussian(self) -> bool:
        """Whether columns count in L2: optima are then convex programs."""
        return isinstance(self.norm, L2)

    @property
    def limits(self) -> LimitsOn | None:
        """Limits of rows by group, which columns in L2 are compared for; None without any."""
        unit = self.norm.unit if isinstance(self.norm, L2) else None
        return None if unit is None else partial(RowLimits.on, unit=unit)

    def less(self, seconds: float) -> Search:
        """Return the search with an earlier deadline, which leaves time for what follows."""
        return replace(self, clock=self.clock.reserve(seconds))

    def record(
        self,
        winner: str,
        candidates: Iterable[Candidate],
        effort: str | None = None,
        *,
        converged: bool = True,
    ) -> SearchRecord:
        """What this search has tried, and whether it was interrupted."""
        interrupted = self.clock.interrupted
        ended = converged and not interrupted
        return SearchRecord(winner, tuple(candidates), ended, interrupted, effort)

    def rng(self) -> np.random.Generator:
        """A fresh generator: the same numbers for the same seed."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, eq=False)
class Problem:
    """A workload as mechanisms see it: whole, with merged cells, and reduced."""

    workload: Workload
    timings: Timings = field(default_factory=Timings)

    @property
    def cell_count(self) -> int:
        """Number of original cells."""
        return self.workload.shape[1]

    @cached_property
    def products(self) -> ProductBatch | None:
        """The terms, weighted by the roots of their importances, of a batch over products."""
        queries = self.workload.products
        if queries is None:
            return None
        return weigh_terms(queries.batch, self.workload.importance)

    @cached_property
    def searched_products(self) -> ProductBatch | None:
        """The terms that a search over products is about: tables with the cell that is unseen."""
        return None if self.products is None else filled(self.products)

    @property
    def has_replaced_units(self) -> bool:
        """Whether neighbours differ by records that are replaced, as the domain declares."""
        domain = self.workload.domain
        return domain is not None and domain.unit.is_replaced

    @property
    def has_long_ranges(self) -> bool:
        """Whether the queries are ranges of thousands of cells, nearly one per cell.

        Their rank is then near the number of cells: all that is gained by a factor of WᵀW is lost
        in the time that it takes to find it.
        """
        rows, cells = self.merged.queries.shape
        if cells <= settings.LONG_CELLS or 2 * rows < cells:
            return False
        return self.merged.queries.weighted_ranges() is not None

    @property
    def is_listed(self) -> bool:
        """Whether cells are few enough to be listed: all mechanisms work then."""
        queries = self.workload.products
        # Cells of a product up to which mechanisms for lists of cells are offered as well.
        return queries is None or (queries.is_flat and queries.shape[1] <= (1 << 14))

    @cached_property
    def merged(self) -> MergedWorkload:
        """The queries over merged cells. Importance has no say in which cells are alike."""
        with self.timings.of("reduction"):
            return merge_cells(self.workload.queries)

    @cached_property
    def reduced(self) -> Floats:
        """R (rank × merged cells) whose strategies L are as good for it as for the workload.

        ``RᵀR = WᵀW`` with W weighted by importance, over the columns of the
        representatives, so that a column of L in the unit ball is one of sensitivity 1.
        """
        with self.timings.of("reduction"):
            return reduce_rows(self._weighted) * self.factors

    @cached_property
    def scaled_queries(self) -> LinearMap:
        """A map W with ``WᵀW = RᵀR`` for R as in ``reduced``, in the form of the workload."""
        if np.all(self.factors == 1.0):
            return self._weighted
        return self._weighted.scale_columns(self.factors)

    @property
    def is_reduced(self) -> bool:
        """Whether ``reduced`` is known already."""
        return "reduced" in self.__dict__

    @property
    def reduction_seconds(self) -> float:
        """About how long it takes to know ``reduced``."""
        return 0.0 if self.is_reduced else reduction_seconds(self.merged.queries)

    @property
    def decomposition_seconds(self) -> float:
        """About how long a decomposition of ``reduced`` takes."""
        m, n = self.merged.queries.shape
        k = len(self.reduced) if self.is_reduced else min(m, n)
        return SECONDS_PER_STEP * k * k * n

    @property
    def rounding_seconds(self) -> float:
        """About how long it takes to round a solver's strategy, and to check the result."""
        m, n = self.merged.queries.shape
        m = min(m, n) if self.merged.queries.is_known_by_gram else m
        return self.decomposition_seconds + SECONDS_PER_STEP * m * n * min(m, n)

    def timely(self, search: Search, mechanism: str, first: float, last: float = 0.0) -> Search:
        """The search with an earlier deadline, which leaves time for rounding its result.

        A mechanism that needs ``first`` seconds before its first round and ``last`` ones after
        any is refused where they, the reduction and the rounding do not fit.
        """
        end = last + self.rounding_seconds
        needed = self.reduction_seconds + first + end
        if not search.clock.affords(needed):
            raise ConvergenceError(
                f"{mechanism} needs about {math.ceil(needed)} s on this workload before it has "
                "any strategy; allow more time"
            )
        return search.less(end)

    @cached_property
    def quick_bound(self) -> float:
        """A number that (weighted) ``‖B‖²·Δ²`` of no strategy is below, in O(non-zeros).

        With R as in ``reduced``, ``‖R·D‖_*²/Σv`` bounds it for any weights v ≥ 0 of the cells and
        ``D = diag(√v)`` (see ``lrm.planning.solvers.gaussian.nuclear_bound``). Some of them need no
        decomposition. All weight on one cell gives the square of the longest column, exact for a
        total. Equal weights give ``‖R‖_*²/n``, where ``‖R‖_* ≥ ‖R‖_F²/‖R‖₂`` and
        ``‖R‖₂² ≤ max_j (|R|ᵀ|R|u)_j/u_j`` for every u > 0 (Collatz and Wielandt), exact for the
        identity; and ``‖R‖_* ≥ ‖R‖_F³/‖RRᵀ‖_F`` (Hölder), where that product is cheap as well.
        """
        squares = self._weighted.column_squared_sums() * self.factors**2
        used = squares > 0
        if not used.any():
            return 0.0
        known = self._weighted.known_singular_values()
        if known is not None:
            nuclear = float(known.sum())
        else:
            total = float(squares.sum())
            nuclear = max(total / self._largest_value(used), total**1.5 / self._gram_norm())
        margin = 16 * sum(self._weighted.shape) * np.finfo(np.float64).eps
        even = nuclear**2 / np.count_nonzero(used)
        return float(max(float(squares.max()), even) * (1.0 - margin))

    def _largest_value(self, used: NDArray[np.bool_]) -> float:
        """At least the largest singular value of R."""
        sizes = self._weighted.absolute()
        square, guess = np.inf, used.astype(np.float64)
        # Power iterations for a bound on the largest singular value; each is valid by itself.
        for _ in range(5):
            image = self.factors * sizes.apply_transpose(sizes.apply(self.factors * guess))
            square = min(square, float((image[used] / guess[used]).max()))
            guess[used] = np.maximum(image[used] / image.max(), 1e-6)
        return float(np.sqrt(square))

    def _gram_norm(self) -> float:
        """``‖RRᵀ‖_F``, or infinity where it is not cheap."""
        m, n = self._weighted.shape
        # Steps of a product of matrices that a quick bound may take: 0.2 s.
        if m * n * min(m, n) > 4e9:
            return np.inf
        R = self._weighted.dense() * self.factors
        return float(np.linalg.norm(R @ R.T if m <= n else R.T @ R))

    @cached_property
    def _weighted(self) -> LinearMap:
        """The queries over merged cells, times the roots of their importance."""
        return weigh_rows(self.merged.queries, self.workload.importance)

    @cached_property
    def factors(self) -> Floats:
        """How much the largest of the cells that are merged into one counts."""
        return np.maximum(self.merged.cell_map.largest_factors(), 1).astype(np.float64)

    def from_reduced(self, strategy: Floats | sp.csr_array) -> LinearMap:
        """A strategy for ``reduced`` as one on merged counts."""
        shares = 1.0 / self.factors
        if sp.issparse(strategy):
            return SparseMap(sp.csr_array(strategy @ sp.diags_array(shares)))
        return DenseMap(strategy * shares)

    def weighted_squared_norm(self) -> float:
        """``‖W‖_F²`` with the importance of each query."""
        return weigh_rows(self.workload.queries, self.workload.importance).squared_norm()

    def tree_error(self, tree: LevelMap, norm: Norm) -> float:
        """(Weighted) ``‖B‖²·Δ²`` of a tree over all cells, in closed form: O(m·n)."""
        weighted = weigh_rows(self.workload.queries, self.workload.importance)
        square = tree.column_norm(norm.order) ** 2
        return tree.reconstruction_squared_norm(weighted) * square

    def queries_for(self, strategy: Strategy) -> LinearMap:
        """The queries over the cells that ``strategy`` measures."""
        if strategy.queries is not None:
            return strategy.queries
        if strategy.cell_map is self.merged.cell_map:
            return self.merged.queries
        return self.workload.queries


@dataclass(frozen=True)
class SearchRecord:
    """What a search tried, which candidate won, and how the search ended."""

    winner: str
    candidates: tuple[Candidate, ...]
    converged: bool
    interrupted: bool
    effort: str | None = None

    @property
    def error(self) -> float:
        """The least error of a candidate."""
        return min(candidate.error for candidate in self.candidates)

    def details(self) -> dict[str, Any]:
        """How the search ended, for people and for files."""
        effort = {} if self.effort is None else {"effort": self.effort}
        return {"converged": self.converged, "interrupted": self.interrupted, **effort}


@dataclass(frozen=True, eq=False)
class Choice(ABC):
    """What a mechanism would measure, in real numbers.

    Parameters
    ----------
    mechanism
        Its name, as the command line spells it.
    exact
        False where ``W = B·L`` is meant to hold only approximately.
    least_error
        A proven bound on the error of any strategy, where the search found one.
    facts
        Options and results of the mechanism as plain values, for people and for files.
    record
        How it was found, where several candidates were tried.
    """

    mechanism: str
    _: KW_ONLY
    exact: bool = True
    least_error: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    record: SearchRecord | None = None

    @property
    def details(self) -> dict[str, Any]:
        """Plain facts about how it was found, which nothing is decided by."""
        return {**self.facts, **(self.record.details() if self.record else {})}

    @property
    def is_simulated(self) -> bool:
        """Whether its error is an estimate."""
        return False

    def rounded(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        """The integers that will be measured, and the reconstruction: made once, and kept."""
        key = problem, norm, max_records
        if key not in self._rounded:
            self._rounded[key] = self.round(problem, norm, max_records)
        return self._rounded[key]

    @cached_property
    def _rounded(
        self,
    ) -> dict[tuple[Problem, Norm, int | None], tuple[Measured, Reconstruction]]:
        return {}

    @abstractmethod
    def round(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        """Round it to integers for a norm, for tables of up to some records."""


@dataclass(frozen=True, eq=False)
class Strategy(Choice):
    """Queries L over a list of cells.

    Parameters
    ----------
    cell_map
        How the cells of the workload are merged before they are measured.
    matrix
        L, r × merged cells.
    reconstruction
        B, where it is not the least-squares one ``W·L⁺``.
    queries
        The workload over the merged cells, where ``cell_map`` is not the problem's own.
    """

    cell_map: CellMap
    matrix: LinearMap
    reconstruction: LinearMap | None = None
    queries: LinearMap | None = None

    def row_errors(self, problem: Problem, norm: Norm) -> Floats:
        """``‖B_i‖²·Δ²`` of each query in real numbers, by least squares."""
        plain = FlatReconstruction(
            problem.queries_for(self), self.matrix, left_inverse(self.matrix)
        )
        factors = self.cell_map.largest_factors().astype(np.float64)
        moved = (self.matrix.column_power_sums(norm.order) * factors**norm.order).max()
        return np.asarray(plain.row_squared_norms * float(moved) ** norm.power)

    def round(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        queries = problem.queries_for(self)
        return quantise(
            self.matrix,
            self.cell_map,
            queries,
            reconstruction=self.reconstruction,
            max_records=max_records,
            norm=norm,
        )


@dataclass(frozen=True, eq=False)
class ProductChoice(Choice):
    """Marginals (for Laplace noise) or residuals (Gaussian) over products of attributes."""

    found: ProductStrategy

    def round(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        assert problem.products is not None  # noqa: S101 - made for such a problem
        reconstruction = round_products(problem.products, self.found, max_records, norm)
        return reconstruction.measured, reconstruction
