"""The two baselines: noise on data, and noise on results."""

from __future__ import annotations

import scipy.sparse as sp

from lrm.errors import WorkloadError
from lrm.exact.cells import CellMap
from lrm.maps.matrices import SparseMap
from lrm.privacy.budget import Noise
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["naive_errors", "noise_on_data", "noise_on_results"]

RESULT_ENTRIES = 1 << 26
"""Noise on results measures the workload itself, as a matrix of at most this number of weights."""


def noise_on_data(problem: Problem, search: Search) -> Strategy:
    """Measure every cell: ``L = I``, ``B = W``. Error ``‖W‖_F²``."""
    del search
    cells = problem.cell_count
    return Strategy(
        "noise-on-data", CellMap.trivial(cells), SparseMap(sp.eye_array(cells, format="csr"))
    )


def noise_on_results(problem: Problem, search: Search) -> Strategy:
    """Measure every query itself: ``L = W``, ``B = I``. Error ``m·(max_j Σ_i |W_ij|)²``.

    The answers are not made consistent with each other: this is the Laplace mechanism as
    it stands, in which each answer carries its own noise.
    """
    del search
    queries = problem.workload.queries
    m, n = queries.shape
    if queries.entry_count > RESULT_ENTRIES:
        raise WorkloadError(
            f"noise on results would measure all {m:,} queries one by one; choose another mechanism"
        )
    return Strategy(
        "noise-on-results",
        CellMap.trivial(n),
        queries.written_out(),
        reconstruction=SparseMap(sp.eye_array(m, format="csr")),
    )


def naive_errors(problem: Problem, noise: Noise) -> tuple[float, float]:
    """(Weighted) error of noise on data and of noise on results, without building either."""
    queries, weight = problem.workload.queries, problem.workload.importance
    count = queries.shape[0] if weight is None else float(weight.sum())
    if noise == "laplace":
        square = float(queries.column_absolute_sums().max()) ** 2
    else:
        square = float(queries.column_squared_sums().max())
    return problem.weighted_squared_norm(), count * square
