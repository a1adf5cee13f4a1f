"""Exact factorisations ``W = B·L``, measured: what may be released, and what is refused.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_solve, cholesky, lstsq

from lrm.errors import ConvergenceError
from lrm.planning.design.reconstruction import EXACTNESS
from lrm.queries.maps.linear import Floats


@dataclass(frozen=True, slots=True)
class ExactPair:
    """``W = reconstruction · strategy``, where the strategy has sensitivity 1.

    ``error`` is ``‖B‖²``. The strategy is stored sparse: 95 to 99 % of the entries of a good
    one are zero, and at n = 8,192 a dense one would take half a gigabyte.
    """

    reconstruction: Floats
    strategy: sparse.csr_array
    error: float
    residual: float


def checked_pair(W: Floats, B: Floats, L: Floats | sparse.sparray) -> ExactPair:
    """Scale ``L`` to sensitivity 1, and ``B`` against it, after checking that ``W = B·L``.

    Raises ``ConvergenceError`` if the relative residual exceeds 1e-9 or anything is not
    finite.
    """
    strategy = sparse.csr_array(L)
    sensitivity = float(abs(strategy).sum(axis=0).max(initial=0.0))
    size = float(np.linalg.norm(W))
    gap = float(np.linalg.norm(W - B @ strategy))
    residual = gap / size if size > 0 else gap
    if not residual <= EXACTNESS:
        raise ConvergenceError(
            f"expected a relative residual below {EXACTNESS}, got {residual:.3g}; "
            "the strategy does not answer the workload, so use another one"
        )
    if not sensitivity > 0:  # the workload is zero, and so is every answer
        return ExactPair(np.zeros_like(B), strategy, 0.0, residual)
    scaled = B * sensitivity
    return ExactPair(scaled, strategy / sensitivity, float(np.vdot(scaled, scaled)), residual)


def factorise(W: Floats, L: Floats | sparse.sparray) -> ExactPair:
    """Return ``B = W·L⁺`` with ``L``, or raise ``ConvergenceError`` if ``W ≠ B·L``.

    Cholesky of the smaller Gram matrix with one step of refinement; least squares by
    singular values where that is too inexact. Cost: O(r·n·min(r, n)).

    Examples
    --------
    >>> pair = factorise(np.array([[1.0, 1.0]]), 4 * np.eye(2))
    >>> pair.error, pair.residual
    (2.0, 0.0)
    """
    dense: Floats = L.toarray() if isinstance(L, sparse.sparray) else L
    # Rows that a solver has all but emptied measure nothing, and would make L nearly singular.
    size = np.abs(dense).sum(axis=1)
    # A row of L that is so much shorter than the longest counts as empty.
    dense = dense[size > 1e-13 * size.max(initial=0.0)]
    try:
        return checked_pair(W, _by_cholesky(W, dense), dense)
    except (LinAlgError, ConvergenceError):
        solution = lstsq(dense.T, W.T, cond=1e-13)[0]
        return checked_pair(W, solution.T, dense)


def _by_cholesky(W: Floats, L: Floats) -> Floats:
    r, n = L.shape
    low = cholesky(L.T @ L if r >= n else L @ L.T, lower=True), True
    pivots = np.diag(low[0])
    # Pivots so much smaller than the largest are those of rows that depend on others.
    if not pivots.min(initial=np.inf) > 1e-7 * pivots.max(initial=0.0):
        # Rows that depend on each other leave B free: only least squares finds the shortest.
        raise LinAlgError

    def divide(target: Floats) -> Floats:
        """Return ``target·L⁺``."""
        if r >= n:
            return np.asarray((L @ cho_solve(low, target.T)).T)
        return np.asarray(cho_solve(low, L @ target.T).T)

    B = divide(W)
    return B + divide(W - B @ L)


def make_exact(W: Floats, B: Floats, L: Floats) -> ExactPair:
    """Turn a pair with ``W ≈ B·L`` into an exact one.

    Moves L by the least change that makes ``W = B·L``, ``L ← L + B⁺(W - BL)``, which needs a
    B of full row rank; then takes the best B for that L. Keeping L and taking ``B = W·L⁺``
    alone is not exact where L has fewer rows than W has columns.

    Examples
    --------
    >>> W = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> make_exact(W, W, np.eye(2) + 1e-3).residual < 1e-12
    True
    """
    moved = L + lstsq(B, W - B @ L, cond=1e-13)[0]
    pairs = []
    # Where L is nearly singular, ``W·L⁺`` divides by what is nearly 0 and B itself is better:
    # prefix sums over 32 cells that are 16 pairs had an error of 5e6 one way, of 108 the other.
    with suppress(ConvergenceError):
        pairs.append(checked_pair(W, B, moved))
    with suppress(ConvergenceError):
        pairs.append(factorise(W, moved))
    return min(pairs, key=lambda pair: pair.error) if pairs else factorise(W, moved)
