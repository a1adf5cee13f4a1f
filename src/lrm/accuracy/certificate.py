"""How good a plan can be at best: bounds of a problem that hold for every strategy."""

from __future__ import annotations

import numpy as np

from lrm.accuracy.bounds import Spectrum, spectrum, svd_lower_bound
from lrm.maps.linear import AllRanges, Floats, Prefix
from lrm.reduce import scale_columns, singular_values
from lrm.solvers.gaussian import optimise_gaussian
from lrm.strategies.base import Problem

__all__ = ["least_error", "spectrum_of"]

CLOSED_FORM_CELLS = 2048
"""Prefix and all ranges over more cells are bounded by their known singular values."""

TOTAL_WORK = 3e10
"""About how many products a bound may cost: some seconds."""


def _known_values(queries: Prefix | AllRanges) -> Floats:
    """Singular values in closed form.

    The inverse Gram matrix of prefix sums, and of all ranges, is a second difference
    (with one free end, and up to n+1): its eigenvalues are squared sines.
    """
    n = queries.cells
    if isinstance(queries, Prefix):
        angle = (2 * np.arange(1, n + 1) - 1) * np.pi / (2 * (2 * n + 1))
        return np.asarray(1 / (2 * np.sin(angle)))
    angle = np.arange(1, n + 1) * np.pi / (2 * (n + 1))
    return np.asarray(np.sqrt(n + 1) / (2 * np.sin(angle)))


def spectrum_of(problem: Problem) -> Spectrum:
    """The singular values of the whole workload, and the paper's bounds from them."""
    queries = problem.workload.queries
    if isinstance(queries, Prefix | AllRanges):
        return spectrum(_known_values(queries), queries.shape)
    merged = problem.merged
    # W·Wᵀ = W'·D·W'ᵀ with D_c = Σ factor² of the cells that are merged into c
    weight = np.bincount(
        merged.cells.index,
        weights=merged.cells.factor.astype(np.float64) ** 2,
        minlength=merged.cells.merged_size,
    )
    values = singular_values(scale_columns(merged.queries, np.sqrt(weight)))
    return spectrum(values, queries.shape)


def least_error(problem: Problem) -> float:
    """A number that (importance-weighted) ``‖B‖²·Δ²`` of no strategy is below.

    The dual of the program with L2 columns: every strategy with L1 columns in the unit
    ball has its L2 columns there too. Within 1 % of the best such bound, where the
    rounds that this takes are affordable.
    """
    queries = problem.workload.queries
    if isinstance(queries, Prefix | AllRanges) and queries.cells > CLOSED_FORM_CELLS:
        return svd_lower_bound(_known_values(queries), queries.cells)
    R = problem.reduced
    if not R.any():
        return 0.0
    k, n = R.shape
    rounds = int(np.clip(TOTAL_WORK / (k * k * n), 2, 200))
    return optimise_gaussian(R, tolerance=0.01, max_rounds=rounds).lower
