"""Least squares over tables without negative counts, by an interior-point method.

    minimise ½·Σ weight·(W·z − a)²   where E·z = e and z ≥ 0

Each step solves one sparse, symmetric and quasi-definite system [1]_ for the predictor and again
for the corrector of Mehrotra. Twenty to forty steps reach ten digits, whatever the
conditioning of W is, where methods of first order take thousands.

References
----------
.. [1] R. J. Vanderbei, "Symmetric quasi-definite matrices", SIAM J. Optim. 5 (1995).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lrm.errors import ConvergenceError
from lrm.queries.maps.linear import Floats

COST = 1e-10
"""Price of a row: of all tables with the nearest answers, those with the fewest rows are taken."""

MOST_STEPS = 150
"""Steps until the method is given up; 15 to 50 are usual."""

CLOSE = 1e-11
"""Residuals, relative to the largest answer, at which the method ends."""

CLOSE_GAP = 1e-17
"""Complementarity at which it ends: a count may be its root where its slack is 0 as well."""

ENOUGH = 1e-7
"""The same at which a result is used that rounding keeps from becoming any better."""

REGULARISED = 1e-10
"""Added to the diagonal for equations that follow from each other, and cells like others."""

MOST_REGULARISED = 1e-5
"""Up to which it is raised where the system cannot be solved."""

SHORTEST = 1e-9
"""Length of a step at which the system is solved anew, with more on its diagonal."""

STEP_LENGTH = 0.995
"""Share of the way to the boundary that a step takes at most."""


def nearest_counts(
    queries: sp.csr_array,
    answers: Floats,
    weights: Floats,
    equations: sp.csr_array,
    values: Floats,
) -> Floats:
    """Counts z ≥ 0 with ``equations·z = values`` whose answers are nearest to ``answers``.

    Examples
    --------
    >>> total_and_parts = sp.csr_array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> none = sp.csr_array((0, 2))
    >>> answers = np.array([9.0, 10.0, -4.0])
    >>> counts = nearest_counts(total_and_parts, answers, np.ones(3), none, np.zeros(0))
    >>> np.round(counts, 6).tolist()
    [9.5, 0.0]
    """
    scale = max(float(np.abs(answers).max(initial=0.0)), float(np.abs(values).max(initial=0.0)))
    if scale == 0.0:
        return np.zeros(queries.shape[1])
    importance = weights / weights.mean()
    interior = _Interior(queries, answers / scale, importance, equations, values / scale)
    return interior.run() * scale


class _Interior:
    """The iterates z, of the equations' multipliers, and of the slacks s of z ≥ 0."""

    def __init__(
        self,
        queries: sp.csr_array,
        answers: Floats,
        weights: Floats,
        equations: sp.csr_array,
        values: Floats,
    ) -> None:
        self.queries, self.equations, self.values = queries, equations, values
        self.weights, self.answers = weights, answers
        cells = queries.shape[1]
        self.costs = np.full(cells, COST)
        self.z = np.full(cells, max(1.0 / cells, 1e-3))
        self.s = np.full(cells, 1.0)
        self.multipliers = np.zeros(equations.shape[0])
        self.regularised = REGULARISED
        differences = _differences(queries)
        rows = sp.csr_array(sp.vstack([differences @ queries, equations]))
        lower = sp.block_diag(
            [
                differences @ sp.diags_array(-1.0 / weights) @ differences.T,
                sp.diags_array(np.full(equations.shape[0], -self.regularised)),
            ]
        )
        self.system = sp.csc_array(sp.block_array([[sp.eye_array(cells), rows.T], [rows, lower]]))
        self.system.sort_indices()
        self.diagonal = self.system.indptr[:cells]  # the first entry of the first columns
        self.last = self.system.indptr[len(self.system.indptr) - equations.shape[0] :] - 1
        self.cells = cells

    def run(self) -> Floats:
        best, smallest = self.z, np.inf
        for _ in range(MOST_STEPS):
            dual, primal = self._residuals()
            gap = float(self.z @ self.s) / self.cells
            residual = max(float(np.abs(dual).max()), float(np.abs(primal).max(initial=0.0)))
            size = max(residual, self.cells * gap)
            if size < smallest:
                best, smallest = self.z.copy(), size
            if residual <= CLOSE and gap <= CLOSE_GAP:
                return self.z
            if smallest <= ENOUGH and size > 1e3 * smallest:
                return best
            if not self._step(dual, primal, gap):
                break
        if smallest <= ENOUGH:
            return best
        raise ConvergenceError("the search for the nearest tables did not end")

    def _residuals(self) -> tuple[Floats, Floats]:
        errors = self.weights * (self.queries @ self.z - self.answers)
        dual = self.queries.T @ errors + self.equations.T @ self.multipliers - self.s + self.costs
        return dual, self.equations @ self.z - self.values

    def _step(self, dual: Floats, primal: Floats, gap: float) -> bool:
        """Move; False where no step was found."""
        while self.regularised <= MOST_REGULARISED:
            direction = self._direction(dual, primal, gap)
            if direction is not None:
                dz, multipliers, ds = direction
                length = min(1.0, STEP_LENGTH * min(_longest(self.z, dz), _longest(self.s, ds)))
                if length > SHORTEST:  # else rounding has made the direction useless
                    self.z = self.z + length * dz
                    self.s = self.s + length * ds
                    self.multipliers = self.multipliers + length * multipliers
                    return True
            self.regularised *= 100.0
            self.system.data[self.last] = -self.regularised
        return False

    def _direction(
        self, dual: Floats, primal: Floats, gap: float
    ) -> tuple[Floats, Floats, Floats] | None:
        """Changes of z, of the multipliers and of s; None where the system cannot be solved."""
        from scipy.sparse.linalg import splu  # noqa: PLC0415 - 0.1 s, for those who repair answers

        with np.errstate(over="ignore"):
            ratio = self.s / self.z
        if not np.all(np.isfinite(ratio)):
            return None
        self.system.data[self.diagonal] = ratio + self.regularised
        try:
            factors = splu(
                self.system,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:  # singular in floating point
            return None
        below = np.concatenate([np.zeros(len(self.weights)), -primal])

        def direction(products: Floats) -> tuple[Floats, Floats, Floats]:
            """The step at whose end z·s are the given products, to first order."""
            right = np.concatenate([-dual - self.s + products / self.z, below])
            solution = factors.solve(right)
            solution += factors.solve(right - self.system @ solution)
            dz = solution[: self.cells]
            multipliers = solution[self.cells + len(self.weights) :]
            return dz, multipliers, products / self.z - self.s - ratio * dz

        dz, _, ds = direction(np.zeros(self.cells))
        if not np.all(np.isfinite(dz)):
            return None
        length = min(_longest(self.z, dz), _longest(self.s, ds))
        after = float((self.z + length * dz) @ (self.s + length * ds)) / self.cells
        centring = min(max(after / gap, 0.0), 1.0) ** 3
        dz, multipliers, ds = direction(centring * gap - dz * ds)
        return (dz, multipliers, ds) if np.all(np.isfinite(dz)) else None


def _differences(queries: sp.csr_array) -> sp.csr_array:
    """A matrix that takes from each query the one before it where few cells remain.

    Running totals become single cells, which keeps the factors of the system sparse; it is the
    same system in other unknowns.
    """
    count = queries.shape[0]
    entries = np.diff(queries.indptr)
    changes = sp.csr_array(queries[1:] - queries[:-1])
    changes.eliminate_zeros()
    fewer = np.flatnonzero(np.diff(changes.indptr) < entries[1:]) + 1
    data = np.concatenate([np.ones(count), np.full(len(fewer), -1.0)])
    rows = np.concatenate([np.arange(count), fewer])
    columns = np.concatenate([np.arange(count), fewer - 1])
    return sp.csr_array((data, (rows, columns)), shape=(count, count))


def _longest(values: Floats, change: Floats) -> float:
    """How far along a change positive values stay positive, at most 1 in the predictor."""
    falls = change < 0
    if not falls.any():
        return 1.0
    return min(1.0 / STEP_LENGTH, float(np.min(-values[falls] / change[falls])))
