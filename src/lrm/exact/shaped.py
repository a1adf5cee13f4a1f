"""Reconstruction where the noise of the measurements has a joint law: generalised least squares.

See ``docs/explanation/shaped-noise.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from lrm.exact.inverses import Spectral
from lrm.exact.products.strategy import Axis
from lrm.exact.reconstruction import FlatReconstruction
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.products.batch import ProductBatch
from lrm.privacy.bodies.base import Body

__all__ = [
    "MOST_DENSE",
    "ShapedReconstruction",
    "one_way_rows",
    "shaped_reconstruction",
    "table_coordinates",
    "whitening",
]

Integers = NDArray[np.int64]

MOST_DENSE = 1 << 24
"""Entries of queries or of a strategy that are written out as an array."""

RANK, CLEAR = 1e-11, 1e-6
"""Singular values below the first share of the largest are rounding errors, those above the second
are certainly none."""


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
    body, sensitivity
        The body, and the sensitivity that the strategy states on the integers.
    """

    body: Body | None = None
    sensitivity: int = 1

    @property
    def half_covariance(self) -> Floats:
        """Half of the covariance of the noise at scale 1 and sensitivity 1.

        So the norms play the part that they have for Laplace noise, whose variance is 2 at scale 1.
        """
        assert self.body is not None  # noqa: S101 - set by `shaped_reconstruction`
        return self.body.covariance / (2.0 * float(self.sensitivity) ** 2)

    @cached_property
    def row_squared_norms(self) -> Floats:
        """``b·C·bᵀ`` of each query: the variance of its answer per unit of noise variance."""
        covariance = self.half_covariance
        parts = []
        for start, stop in self.row_ranges():
            rows = self.rows(start, stop)
            parts.append(np.einsum("ij,ij->i", rows @ covariance, rows))
        return np.concatenate(parts)

    @cached_property
    def squared_norm(self) -> float:
        """The sum over all queries."""
        return float(self.row_squared_norms.sum())


def shaped_reconstruction(
    queries: LinearMap, strategy: LinearMap, body: Body, sensitivity: int
) -> ShapedReconstruction:
    """Least squares in the covariance of the noise of a body.

    Independent rows determine the answers in one way, whatever the covariance: it is then
    computed where errors are asked for.

    Parameters
    ----------
    queries, strategy
        W and L over the same merged cells, L in units where a record counts about 1.
    body, sensitivity
        The body, and the sensitivity that the strategy states on the integers.
    """
    matrix = strategy.dense()
    inverse, independent = _pseudo_inverse(matrix)
    if not independent:
        white = whitening(body.covariance)
        inverse = _pseudo_inverse(white @ matrix)[0] @ white
    return ShapedReconstruction(queries, strategy, Spectral(inverse), None, body, sensitivity)


def _pseudo_inverse(matrix: Floats) -> tuple[Floats, bool]:
    """The inverse of least squares, and whether the rows are clearly independent."""
    left, values, right = la.svd(matrix, full_matrices=False, check_finite=False)
    some = values > values[0] * RANK
    inverse = (right[some].T / values[some]) @ left[:, some].T
    return inverse, len(left) == len(values) and bool(values[-1] > values[0] * CLEAR)


def table_coordinates(sizes: list[int]) -> list[Floats]:
    """The cells of tables with one total, by the total and all cells of each but the first."""
    count = 1 + sum(n - 1 for n in sizes)
    coordinates, start = [], 1
    for n in sizes:
        table_matrix = np.zeros((n, count))
        table_matrix[0, 0] = 1.0
        table_matrix[0, start : start + n - 1] = -1.0
        table_matrix[1:, start : start + n - 1] = np.eye(n - 1)
        coordinates.append(table_matrix)
        start += n - 1
    return coordinates


def one_way_rows(
    batch: ProductBatch, labels: tuple[Integers, ...], tables: tuple[int, ...]
) -> Floats | None:
    """The queries of a batch by the total and the cells of tables; None where some are not one-way.

    Every product must be a total in all attributes but one, which has a table.
    """
    sizes = {i: int(labels[i].max()) + 1 for i in range(len(labels))}
    coordinates = dict(zip(tables, table_coordinates([sizes[i] for i in tables]), strict=True))
    count = 1 + sum(sizes[i] - 1 for i in tables)
    queries = batch.term_queries()
    if int(queries.sum()) * count > MOST_DENSE or (batch.choice != 0).sum(axis=1).max() > 1:
        return None
    rows = np.zeros((int(queries.sum()), count))
    starts = np.concatenate([[0], np.cumsum(queries)])
    for product, coefficient in enumerate(batch.coefficients.tolist()):
        term = int(batch.term_of[product])
        place = slice(int(starts[term]), int(starts[term + 1]))
        attributes = np.flatnonzero(batch.choice[product])
        if not len(attributes):
            rows[place, 0] += coefficient
            continue
        i = int(attributes[0])
        factor = batch.factors[i][int(batch.choice[product, i])]
        if i not in coordinates or not Axis((i,), (labels[i],)).keeps(0, factor):
            return None
        rows[place] += coefficient * (
            factor.merged_columns(labels[i], sizes[i]).dense() @ coordinates[i]
        )
    return rows
