"""Reconstruction where the noise of the measurements has a joint law: generalised least squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la

from lrm.exact.inverses import Spectral
from lrm.exact.reconstruction import FlatReconstruction
from lrm.maps.linear import Floats, LinearMap
from lrm.privacy.bodies.base import Body

__all__ = ["ShapedReconstruction", "shaped_reconstruction", "whitening"]

RANK = 1e-11
"""Singular values below this share of the largest are rounding errors."""


def whitening(covariance: Floats) -> Floats:
    """H with ``H·C·Hᵀ = I`` on the space that noise of covariance C spans."""
    values, vectors = la.eigh(covariance, check_finite=False)
    some = values > values[-1] * RANK
    return np.asarray((vectors[:, some] / np.sqrt(values[some])).T)


@dataclass(frozen=True, eq=False)
class ShapedReconstruction(FlatReconstruction):
    """B, m×r, whose norms are those of its rows in the covariance of the noise.

    Parameters
    ----------
    covariance
        Half of the covariance at scale 1 and sensitivity 1, so that the norms play the part that
        they have for Laplace noise, whose variance is 2 at scale 1.
    """

    covariance: Floats | None = None

    @cached_property
    def row_squared_norms(self) -> Floats:
        """``b·C·bᵀ`` of each query: the variance of its answer per unit of noise variance."""
        assert self.covariance is not None  # noqa: S101 - set by `shaped_reconstruction`
        parts = []
        for start, stop in self.row_ranges():
            rows = self.rows(start, stop)
            parts.append(np.einsum("ij,ij->i", rows @ self.covariance, rows))
        return np.concatenate(parts)

    @cached_property
    def squared_norm(self) -> float:
        """The sum over all queries."""
        return float(self.row_squared_norms.sum())


def shaped_reconstruction(
    queries: LinearMap, strategy: LinearMap, body: Body, sensitivity: int, step: float
) -> ShapedReconstruction:
    """Least squares in the covariance of the noise of a body.

    Parameters
    ----------
    queries, strategy
        W and L over the same merged cells, L in units where a record counts about 1.
    body, sensitivity
        The body, and the sensitivity that the strategy states on the integers.
    step
        What one measured integer counts for.
    """
    half = body.covariance / (2.0 * float(sensitivity) ** 2)
    white = whitening(half * (step * sensitivity) ** 2)
    matrix = white @ strategy.dense()
    left, values, right = la.svd(matrix, full_matrices=False, check_finite=False)
    some = values > values[0] * RANK
    inverse = (right[some].T / values[some]) @ (left[:, some].T @ white)
    return ShapedReconstruction(queries, strategy, Spectral(inverse), None, half)
