"""Rows in addition to the identity: the error of ``L = [I; Θ]·D``, its derivatives, its descent.

Problem: minimise ``tr(W·(LᵀL)⁻¹·Wᵀ)`` over p extra rows Θ, where D gives every column the L1 norm
1. With ``s = 1 + Σ|Θ|``, ``M = I + ΘΘᵀ``, ``A = Θ·diag(s)`` and ``G = WᵀW`` with diagonal g,

    err = Σ_j g_j s_j² − tr(M⁻¹·A·G·Aᵀ),

so W is needed only through G applied to p columns (`lrm.planning.solvers.gram_operators`); the
algebra is that of `lrm.planning.design.plus_rows`. Rows over thousands of cells:
`lrm.planning.solvers.sparse_rows`.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError

from lrm.clock import UNLIMITED, Clock, Step, work_of
from lrm.planning.design.plus_rows import beside_identity, trace_gradient
from lrm.planning.solvers import settings
from lrm.planning.solvers.gram_operators import FactorGram, GramOperator
from lrm.planning.solvers.quasi_newton import descend, descend_orthantwise
from lrm.queries.maps.linear import Floats

Rows = TypeVar("Rows", Floats, sparse.csr_array)


@dataclass(frozen=True, slots=True)
class ExtraRows(Generic[Rows]):
    """Extra rows Θ (p × cells) of a strategy ``L = [I; Θ]·D``, and their error.

    ``error`` is ``‖B‖²·Δ(L)²`` of the exact reconstruction of W from L.
    """

    rows: Rows
    error: float
    iterations: int
    converged: bool


def with_cells(rows: Floats | sparse.csr_array) -> sparse.csr_array:
    """``[I; Θ]·D``, every column of L1 norm 1."""
    scale = 1.0 + np.asarray(abs(rows).sum(axis=0)).ravel()
    stacked = sparse.vstack([sparse.eye_array(rows.shape[1]), sparse.csr_array(rows)])
    return sparse.csr_array(stacked @ sparse.diags_array(1.0 / scale))


def assemble(W: Floats, rows: Floats) -> tuple[Floats, sparse.csr_array]:
    """Return the reconstruction ``B = W·L⁺`` (k x (n+p)) and the strategy ``L = [I; Θ]·D``.

    Cost: O(n·p·(k + p)).

    Examples
    --------
    >>> B, L = assemble(np.tri(4), np.array([[1.0, 1.0, 0.0, 0.0]]))
    >>> float(np.abs(B @ L - np.tri(4)).max()) < 1e-12
    True
    """
    scale = 1.0 + np.abs(rows).sum(axis=0)
    V = W * scale
    Z = beside_identity(rows, scale).solve_inner(rows @ V.T)
    return np.hstack([V - Z.T @ rows, Z.T]), with_cells(rows)


@dataclass(frozen=True, eq=False)
class RowsError:
    """The error of rows in addition to the identity, divided by ``unit``, and its derivatives.

    It is a difference: where the rows are so long that float64 loses it, it is infinite, and no
    line search goes there.
    """

    gram: GramOperator
    unit: float = 1.0

    @classmethod
    def of(cls, W: Floats) -> RowsError:
        """The error for a workload as an array."""
        return cls(factor_gram(W))

    def share(self, gain: float, scale: Floats) -> float:
        """The error before the rows, which reduce it by ``gain``."""
        noise_on_data = float((scale * scale) @ self.gram.energies)
        error = noise_on_data - gain
        # A smaller share of the terms that it is the difference of is no error but rounding.
        return error / self.unit if error > 1e-10 * noise_on_data else np.inf

    def value(self, T: Floats) -> float:
        """The error of rows as an array."""
        return self.partials(T, 1.0 + np.abs(T).sum(axis=0))[0]

    @cached_property
    def widths(self) -> Floats | None:
        """Cells of each block, where not all are single cells."""
        return None if np.all(self.gram.widths == 1.0) else self.gram.widths

    def partials(self, T: Floats, scale: Floats) -> tuple[float, Floats, Floats]:
        """Return the error, its derivative by Θ at fixed D, and its derivative by D⁻¹."""
        try:
            plus = beside_identity(T, scale, self.widths)
        except LinAlgError:
            return np.inf, np.zeros_like(T), np.zeros_like(scale)
        gain, Q, middle = self.gram.through(plus)
        by_rows, by_scale = trace_gradient(T, scale, self.gram.energies, Q, middle, self.widths)
        by_rows /= self.unit
        by_scale /= self.unit
        return self.share(gain, scale), by_rows, by_scale

    def kinked(self, T: Floats) -> tuple[float, Floats, Floats]:
        """Return the error and its derivatives by Θ and by |Θ|."""
        return self.partials(T, 1.0 + np.abs(T).sum(axis=0))

    def rounded(self, T: Floats, width: float) -> tuple[float, Floats]:
        """Return the error with ``sqrt(θ² + width²) - width`` in place of |θ|, and its gradient."""
        root = np.sqrt(T * T + width * width)
        scale = 1.0 + root.sum(axis=0) - width * len(T)
        value, gradient, by_scale = self.partials(T, scale)
        np.divide(T, root, out=root)
        root *= by_scale
        gradient += root
        return value, gradient


def factor_gram(W: Floats) -> FactorGram:
    """``WᵀW`` of a workload as an array, through the array."""
    return FactorGram(np.ones(W.shape[1]), np.einsum("ij,ij->j", W, W), W)


def round_work(gram: GramOperator, rows: int) -> float:
    """Counted work of a round of `optimise_extra_rows` with this number of extra rows."""
    n = gram.cells
    return gram.work(rows) + work_of(3.0 * n * rows * rows, 3.0 * n * rows) - work_of(0.0)


def optimise_extra_rows(  # noqa: PLR0913 - each is a choice of the caller
    W: Floats,
    rows: Floats,
    *,
    gram: GramOperator | None = None,
    nonnegative: bool = False,
    smoothing: Sequence[float] = settings.EXTRA_ROWS_SMOOTHING,
    tolerance: float = 1e-7,
    max_rounds: int = 5_000,
    clock: Clock = UNLIMITED,
    stage: str = "extra rows",
) -> ExtraRows[Floats]:
    """Optimise rows Θ (p x n) in addition to the identity, from a start.

    L has full column rank, so W = BL holds exactly at every step. With ``nonnegative`` this is
    the p-Identity family of [1]_.

    At Θ = 0 the kink of |θ| outweighs every gradient: rows that come near it die and cannot
    return. So the kink is first rounded, widely and then less and less, which lets the rows
    find their place (over four random starts on 256 ranges the spread falls from 1 % to
    0.3 %, and where p is small several per cent of the error are gained); an orthant-wise
    descent on the true function then finishes.

    Cost: O(n·p·(k + p)) per round, memory O(n·p) beside W; O(n·p²) where ``gram`` is ``WᵀW`` as an
    operator that takes O(n) per column.

    References
    ----------
    .. [1] McKenna, Miklau, Hay, Machanavajjhala, "Optimizing error of high-dimensional
       statistical queries under differential privacy", VLDB 2018, arXiv:1808.03537.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((4, 32)) / 5
    >>> found = optimise_extra_rows(np.tri(32), rows)
    >>> bool(found.error < 0.6 * np.sum(np.tri(32) ** 2)), found.converged
    (True, True)
    """
    unit = float(np.linalg.norm(W))
    if not unit > 0:
        return ExtraRows(rows[:0], 0.0, 0, converged=True)
    function = RowsError.of(W / unit) if gram is None else RowsError(gram, unit**2)
    best, T, rounds = np.inf, rows, 0
    best_rows = rows[:0]

    def offer(point: Floats) -> None:
        nonlocal best, best_rows
        error = function.value(point)
        if error < best:
            best, best_rows = error, point

    def report(iteration: int, value: float) -> None:
        clock.tick(Step(stage, rounds + iteration, min(best, value) * unit**2))

    offer(best_rows)
    offer(rows)
    for width in () if nonnegative else smoothing:
        run = descend(
            partial(function.rounded, width=width),
            T,
            # A rounded error is below the true one: report only what is exact.
            on_round=lambda iteration, _: report(iteration, np.inf),
            # Only the narrowest must be exact: a fifth less time for the same results.
            tolerance=max(1e-5 if width == smoothing[-1] else 1e-4, tolerance),
            max_rounds=max_rounds,
        )
        T, rounds = run.point, rounds + run.rounds
        T = np.where(np.abs(T) < width, 0.0, T) if width == smoothing[-1] else T
        offer(T)
        if run.interrupted:
            break
    else:
        run = descend_orthantwise(
            function.kinked,
            T,
            nonnegative=nonnegative,
            on_round=report,
            tolerance=tolerance,
            max_rounds=max_rounds,
        )
        rounds += run.rounds
        offer(run.point)
    nonzero_rows = best_rows[np.any(best_rows != 0, axis=1)]
    # The descent's own value is a difference, which long rows leave few digits of.
    B = assemble(W, nonzero_rows)[0]
    return ExtraRows(nonzero_rows, float(np.vdot(B, B)), rounds, run.converged)
