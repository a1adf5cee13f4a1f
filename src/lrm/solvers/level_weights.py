"""Best weights of the levels of a tree, from how much each level must explain.

Problem: a tree whose level ℓ has blocks of s_ℓ cells and weight w_ℓ ≥ 0 has, for a workload
with level energies e_ℓ (see ``lrm.level_errors``), the error

    f(w) = (Σ w_ℓ)² · Σ_ℓ e_ℓ / λ_ℓ,      λ_ℓ = Σ_{i ≤ ℓ} w_i² s_i,

and a tree of contrasts has it with ``λ_ℓ = w_ℓ² d_ℓ``. The first is minimised by L-BFGS-B on log f
from several sets of measured levels; the second in closed form, ``w ∝ (e/d)^⅓``.
Cost: microseconds an evaluation, whatever the number of cells.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["contrast_weights", "level_starts", "level_weights", "tree_error"]

Vector = NDArray[np.float64]

NEGLIGIBLE = 1e-6
"""A level with a smaller share of the weight than this is not measured at all."""


def tree_error(weights: Vector, energies: Vector, sizes: Vector) -> tuple[float, Vector]:
    """``f(w)`` and its gradient.

    >>> tree_error(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 2.0]))[0]
    9.333333333333332
    """
    eigenvalues = np.cumsum(weights**2 * sizes)
    total, share = weights.sum(), energies / eigenvalues
    value = total**2 * share.sum()
    later = np.cumsum((share / eigenvalues)[::-1])[::-1]
    return float(value), 2 * total * share.sum() - 2 * total**2 * weights * sizes * later


def level_weights(
    energies: Vector, sizes: Vector, starts: Iterable[Vector]
) -> tuple[float, Vector]:
    """The least error and the weights that reach it, from the best of several starts."""

    def objective(weights: Vector) -> tuple[float, Vector]:
        value, gradient = tree_error(weights, energies, sizes)
        return float(np.log(value)), gradient / value

    best_error, best = np.inf, np.ones_like(energies)
    bounds = [(NEGLIGIBLE, None)] + [(0.0, None)] * (len(energies) - 1)
    for start in starts:
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        found = found / found.sum()
        found[1:][found[1:] < NEGLIGIBLE] = 0.0
        error, _ = tree_error(found, energies, sizes)
        if error < best_error:
            best_error, best = error, found
    return best_error, best


def level_starts(levels: int) -> list[Vector]:
    """Every evenly spaced choice of levels: the trees of fan-out b, b², b³, … among them."""
    starts = []
    for step in range(1, max(levels, 2)):
        for offset in range(step):
            start = np.full(levels, 1e-3)  # not 0: a level left out may still come in
            start[0] = 1.0
            start[offset::step] = 1.0
            starts.append(start)
    return starts


def contrast_weights(energies: Vector, sizes: Vector) -> tuple[float, Vector]:
    """The same for contrasts; ``sizes`` are the squared norms d_ℓ of a row of weight 1."""
    weights = np.cbrt(energies / sizes)
    weights = weights / weights.sum()
    return float(np.sum(energies / (weights**2 * sizes))), weights
