"""Reconstruction where the noise of the measurements has a joint law: generalised least squares.

See ``docs/explanation/shaped-noise.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.linalg as la

from lrm.planning.design.inverses import Pseudoinverse
from lrm.planning.design.products.axes import Axis
from lrm.planning.design.reconstruction import FlatReconstruction, WeighedReconstruction
from lrm.planning.limits import ARRAY
from lrm.privacy.bodies.base import Body
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import ProductBatch

RANK = 1e-11
"""Singular values below this share of the largest are rounding errors."""


def whitening(covariance: Floats) -> Floats:
    """H with ``H·C·Hᵀ = I`` on the space that noise of covariance C spans."""
    values, vectors = la.eigh(covariance, check_finite=False)
    some = values > values[-1] * RANK
    return np.asarray((vectors[:, some] / np.sqrt(values[some])).T)


def shaped_reconstruction(
    queries: LinearMap, strategy: LinearMap, body: Body, sensitivity: int
) -> WeighedReconstruction:
    """Least squares in the covariance of the noise of a body.

    Independent rows determine the answers in one way, whatever the covariance: it is then
    computed where errors are asked for. Norms are in half of it at scale 1 and sensitivity 1, so
    that they play the part that they have for Laplace noise, whose variance is 2 at scale 1.

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
    plain = FlatReconstruction(queries, strategy, Pseudoinverse(inverse, determines_cells=False))
    return WeighedReconstruction(plain, lambda: body.covariance / (2.0 * float(sensitivity) ** 2))


def _pseudo_inverse(matrix: Floats) -> tuple[Floats, bool]:
    """The inverse of least squares, and whether the rows are clearly independent."""
    left, values, right = la.svd(matrix, full_matrices=False, check_finite=False)
    some = values > values[0] * RANK
    inverse = (right[some].T / values[some]) @ left[:, some].T
    # Those above this share of the largest are certainly no rounding errors.
    return inverse, len(left) == len(values) and bool(values[-1] > values[0] * 1e-6)


def table_places(
    tables: Sequence[Sequence[int]], sizes: Sequence[int]
) -> dict[tuple[int, ...], slice]:
    """Coordinates that the cells of tables are sums of, by subset of the attributes of a table.

    They are the counts of records in which the attributes of the subset have values other than
    their first. Attributes of one value have none.
    """
    subsets = {
        subset
        for table in tables
        for length in range(len(table) + 1)
        for subset in itertools.combinations([i for i in table if sizes[i] > 1], length)
    }
    places, start = {}, 0
    for subset in sorted(subsets, key=lambda subset: (len(subset), subset)):
        stop = start + math.prod(sizes[i] - 1 for i in subset)
        places[subset] = slice(start, stop)
        start = stop
    return places


def product_rows(factors: Mapping[int, Floats], places: Mapping[tuple[int, ...], slice]) -> Floats:
    """A product of matrices over the values of attributes of one table, by coordinates.

    >>> places = table_places([(0, 1)], [2, 2])
    >>> product_rows({0: np.eye(2), 1: np.array([[0.0, 1.0]])}, places).astype(int).tolist()
    [[0, 0, 1, -1], [0, 0, 0, 1]]
    """
    attributes = sorted(factors)
    wide = tuple(i for i in attributes if factors[i].shape[1] > 1)
    cells = []
    for i in attributes:
        by_values = factors[i].copy()
        by_values[:, 1:] -= by_values[:, :1]  # the first is the total less the others
        cells.append(by_values)
    product = kronecker(cells)
    product = product.reshape(len(product), *(factors[i].shape[1] for i in wide))
    rows = np.zeros((len(product), max(place.stop for place in places.values())))
    for length in range(len(wide) + 1):
        for subset in itertools.combinations(wide, length):
            values = tuple(slice(1, None) if i in subset else 0 for i in wide)
            rows[:, places[subset]] = product[:, *values].reshape(len(product), -1)
    return rows


def table_rows(
    batch: ProductBatch, labels: tuple[Integers, ...], tables: Sequence[Sequence[int]]
) -> Floats | None:
    """The queries of a batch by the coordinates of tables; None where the tables do not tell them.

    Every product must be a total in all attributes but those of one table.
    """
    sizes = [int(marks.max()) + 1 for marks in labels]
    places = table_places(tables, sizes)
    queries = batch.term_queries
    count = max(place.stop for place in places.values())
    if int(queries.sum()) * count > ARRAY:
        return None
    rows = np.zeros((int(queries.sum()), count))
    starts = np.concatenate([[0], np.cumsum(queries)])
    for product, coefficient in enumerate(batch.coefficients.tolist()):
        term = int(batch.term_of[product])
        factors = {}
        for i in np.flatnonzero(batch.choice[product]).tolist():
            factor = batch.factors[i][int(batch.choice[product, i])]
            if not Axis((i,), (labels[i],)).keeps(0, factor):
                return None
            factors[i] = factor.merged_columns(labels[i], sizes[i]).dense()
        if tuple(i for i in factors if sizes[i] > 1) not in places:
            return None
        rows[starts[term] : starts[term + 1]] += coefficient * product_rows(factors, places)
    return rows
