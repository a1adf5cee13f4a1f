"""Bases and weights together: starts from each attribute's own problem, then joint descent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lrm.errors import StopSolver
from lrm.exact.products.basis import Basis, identity_basis
from lrm.exact.products.marginals import LEAST_LOG, Point, SetWeights
from lrm.exact.products.quadratic import Quadratic
from lrm.solvers.augmented import AugmentedResult, optimise_augmented
from lrm.solvers.products.weights import Family
from lrm.solvers.starts import random_rows

__all__ = ["descend_jointly", "own_basis"]

Floats = NDArray[np.float64]
Masks = NDArray[np.uint64]
GoOn = Callable[[float], None]

#: A row whose largest entry is smaller is dropped at the end of a descent.
VANISHED = 1e-3
#: Largest entry of a row, beside the 1 of the identity: longer ones leave the error few digits.
LONGEST = 1e3


def own_basis(
    point: Point, attribute: int, rng: np.random.Generator, rows: Sequence[int], go_on: GoOn
) -> Basis:
    """Optimise one attribute's basis for the mix of its Grams that counts in the error.

    Returns the best of one descent from random rows for each number in ``rows``. The weights
    of the mix are the derivatives of ``Σ_A v_A`` by each Gram's residual, so that a factor that
    many terms ask for counts more.
    """
    quadratic = point.quadratic
    slopes = np.ones(len(quadratic.index))
    by_residual, _ = quadratic.pull_back(point.residual, point.total, slopes)
    numbers = [g for g in quadratic.of_attribute(attribute) if quadratic.tells[g]]
    mix = sum(max(by_residual[g], 0.0) * quadratic.grams[g].dense() for g in numbers)
    n = quadratic.sizes[attribute]
    values, vectors = np.linalg.eigh(np.asarray(mix) + np.zeros((n, n)))
    kept = values > 1e-12 * values[-1]
    W = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    best: AugmentedResult | None = None
    for count in rows:
        start = np.abs(random_rows(max(1, min(count, n // 2)), n, rng, size=0.5))
        found = optimise_augmented(W, start, nonnegative=True, tolerance=1e-5, max_rounds=400)
        if best is None or found.error < best.error:
            best = found
        go_on(np.inf)
    return Basis(np.zeros((0, n)) if best is None else best.extra_rows)


def descend_jointly(  # noqa: PLR0913 - each is a choice of the caller
    quadratic: Quadratic,
    family: Family,
    bases: Sequence[Basis],
    *,
    go_on: GoOn,
    tolerance: float = 1e-7,
    max_rounds: int = 200,
) -> tuple[Family, tuple[Basis, ...]]:
    """Descend on the weights and on the extra rows of all bases at once, by L-BFGS-B.

    When ``go_on`` raises ``StopSolver``, the best point so far is returned.
    """
    m = len(family.sets)
    free = [i for i, basis in enumerate(bases) if not basis.plain]
    shapes = [bases[i].extra_rows.shape for i in free]
    ends = np.cumsum([m, *[a * b for a, b in shapes]])
    best: list[tuple[float, Floats]] = []

    def unpack(x: Floats) -> list[Basis]:
        parts = np.split(x[m:], ends[1:-1] - m) if free else []
        current = list(bases)
        for i, part, shape in zip(free, parts, shapes, strict=True):
            current[i] = Basis(np.maximum(part.reshape(shape), 0.0))
        return current

    def evaluate(x: Floats) -> tuple[float, Floats]:
        logs = np.maximum(x[:m] - x[:m].max(), LEAST_LOG)
        point = Point.at(quadratic, unpack(x))
        value, by_logs, by_rows = SetWeights(point, family.sets).basis_gradients(np.exp(logs))
        if not best or value < best[0][0]:
            best[:] = [(value, x.copy())]
        go_on(value)
        return value, np.concatenate([by_logs, *[by_rows[i].ravel() for i in free]])

    rows = [np.minimum(bases[i].extra_rows, LONGEST).ravel() for i in free]
    start = np.concatenate([np.log(family.weights), *rows])
    bounds = [(None, None)] * m + [(0.0, LONGEST)] * (len(start) - m)
    with contextlib.suppress(StopSolver):
        minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": max_rounds, "ftol": tolerance, "gtol": 1e-9, "maxcor": 20},
        )
    value, x = best[0]
    theta = np.exp(np.maximum(x[:m] - x[:m].max(), LEAST_LOG))
    trimmed = _trim(unpack(x))
    point = Point.at(quadratic, trimmed)
    value = float(np.log(SetWeights(point, family.sets).error(theta / theta.sum())))
    return Family(family.sets, theta / theta.sum(), value), tuple(trimmed)


def _trim(bases: Sequence[Basis]) -> list[Basis]:
    """Drop rows that vanished."""
    kept = []
    for basis in bases:
        alive = basis.extra_rows.max(axis=1, initial=0.0) > VANISHED
        kept.append(basis if alive.all() else Basis(basis.extra_rows[alive].copy()))
        if basis.plain:
            kept[-1] = identity_basis(basis.size)
    return kept
