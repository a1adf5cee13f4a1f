"""Best weights of the levels of a tree, from how much each level must explain.

Problem: a tree whose level ℓ has blocks of s_ℓ cells and weight w_ℓ ≥ 0 has, for a workload
with level energies e_ℓ (see ``lrm.maps.levels``), the error

    f(w) = ‖w‖² · Σ_ℓ e_ℓ / λ_ℓ,      λ_ℓ = Σ_{i ≤ ℓ} w_i² s_i,

with the norm of the noise (L1 for Laplace, L2 for Gaussian), and a tree of contrasts has it
with ``λ_ℓ = w_ℓ² d_ℓ``. The first is minimised by L-BFGS-B on log f from several sets of measured
levels; the second in closed form, ``w ∝ (e/d)^⅓`` for L1 and ``(e/d)^¼`` for L2.
Cost: microseconds an evaluation, whatever the number of cells.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Vector = NDArray[np.float64]

NEGLIGIBLE = 1e-6
"""A level with a smaller share of the weight than this is not measured at all."""


def tree_error(
    weights: Vector, energies: Vector, sizes: Vector, norm: int = 1
) -> tuple[float, Vector]:
    """``f(w)`` and its gradient, in the L1 or the L2 norm.

    >>> tree_error(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 2.0]))[0]
    9.333333333333332
    """
    eigenvalues = np.cumsum(weights**2 * sizes)
    share = energies / eigenvalues
    square = weights.sum() ** 2 if norm == 1 else np.vdot(weights, weights)
    by_square = 2 * weights.sum() if norm == 1 else 2 * weights
    later = np.cumsum((share / eigenvalues)[::-1])[::-1]
    gradient = by_square * share.sum() - 2 * square * weights * sizes * later
    return float(square * share.sum()), gradient


def level_weights(
    energies: Vector, sizes: Vector, starts: Iterable[Vector], norm: int = 1
) -> tuple[float, Vector]:
    """The least error and the weights that reach it, from the best of several starts."""

    def objective(weights: Vector) -> tuple[float, Vector]:
        value, gradient = tree_error(weights, energies, sizes, norm)
        return float(np.log(value)), gradient / value

    best_error, best = np.inf, np.ones_like(energies)
    bounds = [(NEGLIGIBLE, None)] + [(0.0, None)] * (len(energies) - 1)
    for start in starts:
        shares = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        shares = shares / shares.sum()
        shares[1:][shares[1:] < NEGLIGIBLE] = 0.0
        error, _ = tree_error(shares, energies, sizes, norm)
        if error < best_error:
            best_error, best = error, shares
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


def contrast_weights(energies: Vector, sizes: Vector, norm: int = 1) -> tuple[float, Vector]:
    """The best weights of contrasts; ``sizes`` holds the squared norms d_ℓ of rows of weight 1."""
    weights = (energies / sizes) ** (1 / (norm + 2))
    weights = weights / np.linalg.norm(weights, ord=norm)
    return float(np.sum(energies / (weights**2 * sizes))), weights
