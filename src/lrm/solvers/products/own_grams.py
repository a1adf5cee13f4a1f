"""Gaussian noise on queries that are no products: subsets of attributes with a Gram of their own.

The residual strategy measures each subset A through one Gram per attribute. Where queries add up
products (``x + y <= c``, ``OR``), that may be far from the best for the part of the queries on A.
With the same u_i (``h_i/κ_i`` of the Grams), the parts of different subsets do not overlap, so
each can be measured by the optimum of its own convex program, and the error is
``(Σ_A sqrt(err_A))²`` with the smaller of both errors for each A.

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrm.clock import Clock
from lrm.exact.products.parts import OwnRows, PartGrams, centring
from lrm.maps.kron import kronecker
from lrm.solvers import settings
from lrm.solvers.gaussian import optimise_gaussian

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Subset = tuple[int, ...]

UNASKED = 0.01
"""Size of the rows that no query asks for; a hundredth costs 1e-4 of the error."""

LEAST_VALUE = 1e-10
"""Eigenvalues of a Gram below this share of the largest one are rounding."""


def whole_null(h: Floats) -> Integers | None:
    """Small whole numbers near to h, on which own rows will be 0 exactly; None if they cancel."""
    integers = np.rint(h * (settings.OWN_NULL / np.abs(h).max())).astype(np.int64)
    return integers if integers.sum() > 0 else None


def find_own_rows(
    parts: PartGrams, subsets: Sequence[Subset], roots: Floats, clock: Clock
) -> dict[Subset, OwnRows]:
    """Rows for the subsets that have less error with a Gram of their own.

    Parameters
    ----------
    parts
        The batch, with the null vectors of its attributes' Grams.
    subsets, roots
        The subsets, and the root of the error of each with one Gram per attribute.
    clock
        When to end: subsets that are not looked at keep these.
    """
    own: dict[Subset, OwnRows] = {}
    work = 0.0
    for subset, root in zip(subsets, roots.tolist(), strict=True):
        n = math.prod(len(parts.nulls[i]) for i in subset)
        if not 1 < n <= settings.OWN_CELLS or not parts.has_sums(subset):
            continue
        work += float(n) ** 3
        if work > settings.OWN_WORK or clock.must_end():
            break
        rows = _optimum(parts.of(subset), tuple(parts.nulls[i] for i in subset), clock)
        if rows is not None and parts.error(subset, rows.estimator) < settings.OWN_GAIN * root**2:
            own[subset] = rows
    return own


def _optimum(gram: Floats, nulls: tuple[Floats, ...], clock: Clock) -> OwnRows | None:
    """The best rows for the part of queries with this Gram; None where it is 0.

    A little of all that the queries do not ask for is measured too: rounded rows of less than full
    rank would not determine the answers.
    """
    projector = centring(nulls)
    values, vectors = np.linalg.eigh(projector.T @ gram @ projector)
    positive = values > LEAST_VALUE * values[-1]
    if not values[-1] > 0:
        return None
    part = np.sqrt(values[positive])[:, None] * vectors[:, positive].T
    optimum = optimise_gaussian(part, tolerance=settings.OWN_TOLERANCE, clock=clock)
    # An orthonormal basis of the other rows that are 0 on u along each axis.
    space = kronecker(_orthogonal(u) for u in nulls)
    inside = np.linalg.qr(space @ optimum.L.T)[0]
    complement = np.linalg.svd(inside, full_matrices=True)[0][:, inside.shape[1] :].T @ space
    rows = np.vstack([optimum.L, UNASKED * complement])
    return OwnRows(rows / np.linalg.norm(rows, axis=0).max(), nulls)


def _orthogonal(u: Floats) -> Floats:
    """An orthonormal basis of the rows that are 0 on u."""
    return np.linalg.svd(u[None, :], full_matrices=True)[2][1:]
