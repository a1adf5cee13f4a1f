"""Hulls of the columns by rejection: which coordinates to measure, and how to split them.

The error of a hull does not depend on the coordinates, but the work of a draw does: the bodies
of the leaves should fill their product. Rows of 0 and 1 are divided into tables of disjoint
rows, of which each is made uncorrelated with those before; other batches along the axes of the
hull's covariance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as la

from lrm.errors import WorkloadError
from lrm.planning.solvers import settings
from lrm.planning.solvers.hulls import list_facets
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.gauges import minimise
from lrm.privacy.bodies.sampling import Sample, sample_hull
from lrm.privacy.bodies.split import MOST_LEAVES, SplitHull, Tree, distinct, leaves_of
from lrm.privacy.bodies.tables import Tables
from lrm.queries.maps.linear import Floats, Integers

MARGINS = (2e-5, 2e-4, 2e-3)
"""How far vertices are moved outwards: the first for which facets are simplices and hold all."""


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to measure, and how they are divided into leaves.

    Parameters
    ----------
    rows
        What is measured, over merged cells.
    sizes, tree
        Number of rows of each leaf, and how leaves are joined.
    bits
        Binary digits with which its draws were tried.
    free
        Further points of the hull, one per row of the array, in the coordinates of ``rows``.
    """

    rows: Floats
    sizes: tuple[int, ...]
    tree: Tree
    bits: int = 24
    free: Floats | None = None


def verified_bodies(points: Floats) -> Iterator[Facets]:
    """Yield bodies of points in the units of the integers, moved further and further outwards.

    Each is verified; margins for which facets are no simplices are left out.
    """
    for margin in MARGINS:
        body = _verified(points, margin)
        if body is not None:
            yield body


def _verified(points: Floats, margin: float) -> Facets | None:
    rng = np.random.default_rng(0)
    moved = points * (1 + margin * (1 + rng.random(len(points))))[:, None]
    # Binary digits of the largest coordinate of a vertex.
    shift = max(0, math.ceil(math.log2(np.abs(moved).max())) - 24)
    vertices = np.rint(moved * 2.0**-shift)
    # Facets are listed in coordinates in which the body is about as wide in all directions.
    values, axes = la.eigh(vertices.T @ vertices)
    if not values[0] > 0:
        return None
    facets = list_facets(vertices @ axes / np.sqrt(values))
    if facets is None:
        return None
    used = np.unique(np.abs(facets)) - 1
    number = np.zeros(len(vertices) + 1, dtype=np.int64)
    number[used + 1] = np.arange(1, len(used) + 1)
    try:
        return Facets(
            vertices[used].astype(np.int64), np.sign(facets) * number[np.abs(facets)], shift
        )
    except WorkloadError:
        return None


def estimate_hull(columns: Floats, leaves: Sequence[Body] = ()) -> Sample:
    """Rough moments of the hull of ± the columns (rows of the array)."""
    return sample_hull(columns, leaves, np.random.default_rng(0), most=0)


def is_believed(sample: Sample) -> bool:
    """Whether a sample is worth enough points for its error to be believed."""
    return sample.effective >= 200.0


def best_split(
    columns: Floats, free: Floats, sample: Sample, tables: Sequence[Floats] | None, most: float
) -> tuple[Split, SplitHull] | None:
    """A split whose draws take at most ``most`` seconds, and its body; None where there is none.

    For the hull of the columns of the reduced batch and free points, one per row of each array, and
    a sample of it. ``tables`` are the rows of the batch in tables of disjoint ones, where all are 0
    and 1.
    """
    for plain in _splits(columns, len(columns) + len(free), sample, tables):
        to_rows = la.lstsq(columns, plain.rows.T, check_finite=False)[0]
        split = replace(plain, free=free @ to_rows)
        with suppress(WorkloadError):
            body = split_body(_whole(split), split, split.bits)
            if _seconds(body) <= most:
                return split, body
    return None


def _whole(split: Split) -> Integers:
    return np.rint(split.rows.T * 2.0**split.bits).astype(np.int64)


def _splits(
    columns: Floats, count: int, sample: Sample, tables: Sequence[Floats] | None
) -> Iterator[Split]:
    """Splits by tables, where there are some, and by axes, for ``count`` points."""
    plain = None if tables is None else _by_tables(tables, count)
    if plain is not None:
        to_rows = la.lstsq(columns, plain.rows.T, check_finite=False)[0].T
        covariance = to_rows @ sample.second_moment @ to_rows.T
        if not is_believed(sample):  # the product of the leaves is a better start
            with suppress(WorkloadError):
                body = split_body(_whole(plain), plain, plain.bits)
                better = estimate_hull(body.points.astype(np.float64), body.leaves)
                covariance = better.second_moment
        yield _orthogonal(plain, covariance)
    values, axes = la.eigh(sample.second_moment)
    order = np.argsort(-values)
    split = _by_axes((axes[:, order] / np.sqrt(values[order])).T @ columns.T, count)
    if split is not None:
        yield split


def _orthogonal(split: Split, covariance: Floats) -> Split:
    """The leaves, each made uncorrelated with those before, and round.

    The product of the projections is then much nearer to the hull: for all 2-way tables of three
    attributes of three values, one proposal in 500 is accepted instead of one in 100,000.
    """
    change = np.eye(len(covariance))
    ends = np.cumsum([0, *split.sizes])
    rows = split.rows.copy()
    for start, stop in itertools.pairwise(ends[1:]):
        before = la.solve(covariance[:start, :start], covariance[:start, start:stop])
        change[start:stop, :start] = -before.T
        leaf_covariance = (change @ covariance @ change.T)[start:stop, start:stop]
        left = change[start:stop] @ split.rows
        left = la.solve_triangular(la.cholesky(leaf_covariance, lower=True), left, lower=True)
        rows[start:stop] = left / np.abs(left).max()
    return replace(split, rows=rows)


def _leaf_size(points: int) -> int:
    return next((size for most, size in settings.LEAF_POINTS if points <= most), 3)


def _by_axes(white: Floats, points: int) -> Split | None:
    """Leaves of about equal size along the axes."""
    k = len(white)
    count = max(2, -(-k // _leaf_size(points)))
    if count > MOST_LEAVES:
        return None
    sizes = tuple(len(part) for part in np.array_split(np.arange(k), count))
    return Split(white / np.abs(white).max(), sizes, _balanced(list(range(count))))


def _balanced(leaves: list[int]) -> Tree:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return _balanced(leaves[:middle]), _balanced(leaves[middle:])


def _by_tables(tables: Sequence[Floats], points: int) -> Split | None:
    """Independent rows, those of a large table in a leaf of their own."""
    rows: list[Floats] = []
    sizes: list[int] = []
    for table in sorted(tables, key=len, reverse=True):
        before = len(rows)
        for row in table:
            if np.linalg.matrix_rank(np.array([*rows, row])) > len(rows):
                rows.append(row)
        if len(rows) > before:
            sizes.append(len(rows) - before)
    most = _leaf_size(points)
    leaves: list[int] = []
    for size in sizes:
        if leaves and leaves[-1] + size <= most:
            leaves[-1] += size
        else:
            leaves.append(size)
    if not 2 <= len(leaves) <= MOST_LEAVES:
        return None
    return Split(np.array(rows), tuple(leaves), _chain(len(leaves)))


def _chain(count: int) -> Tree:
    tree: Tree = 0
    for leaf in range(1, count):
        tree = (tree, leaf)
    return tree


def split_body(columns: Integers, split: Split, bits: int) -> SplitHull:
    """The body of integer columns (rows of the array), where 2^bits is 1, and of free points."""
    if split.free is not None:
        columns = np.vstack([columns, np.rint(split.free * 2.0**bits).astype(np.int64)])
    points = distinct(columns)
    leaves: list[Body] = []
    start = 0
    for size in split.sizes:
        leaf_points = distinct(points[:, start : start + size])
        start += size
        unit = int(np.abs(leaf_points).max(initial=1))
        if np.all((np.abs(leaf_points) > 0).sum(axis=1) <= 1):
            leaves.append(Tables((size,), (False,), unit))
            continue
        if size > settings.LEAF_POINTS[0][1]:
            raise WorkloadError("a leaf has too many dimensions for a list of its facets")
        body = next(verified_bodies(leaf_points.astype(np.float64)), None)
        if body is None:
            raise WorkloadError("the facets of a leaf cannot be listed")
        leaves.append(body)
    return SplitHull(points, tuple(leaves), split.tree)


def _seconds(body: SplitHull) -> float:
    """About how long a draw takes: proposals and norms, by the acceptance of each node."""
    # Least and most proposals that estimate the acceptance of a node.
    trials, most_trials = 1 << 10, 1 << 14
    rng = np.random.default_rng(0)
    points = body.points / float(np.abs(body.points).max())
    ends = np.cumsum([leaf.size for leaf in body.leaves])

    def node(tree: Tree) -> tuple[Floats, float, int, int]:
        """Uniform points of a node in float64, seconds for each, and its coordinates."""
        if isinstance(tree, int):
            leaf = body.leaves[tree]
            values, _ = leaf.simulate(1 << 12, rng)
            radius = leaf.norms(values) + rng.standard_exponential(len(values))
            values /= radius[:, None] * float(np.abs(body.points).max())
            stop = int(ends[tree])
            return values, body.proposal_seconds([tree]), stop - leaf.size, stop
        children = [node(child) for child in tree]
        start, stop = children[0][2], children[-1][3]
        projection, tried = points[:, start:stop], 0
        accepted: list[Floats] = []
        while tried < most_trials and sum(len(part) for part in accepted) < 40:
            draws = [child[0][rng.integers(len(child[0]), size=trials)] for child in children]
            vectors = np.hstack(draws)
            accepted.append(
                vectors[minimise(projection, vectors, undecided_only=True).norms <= 1.0]
            )
            tried += trials
        inside = np.vstack(accepted)
        each = sum(child[1] for child in children) + body.proposal_seconds(leaves_of(tree))
        if len(inside) < 10:  # an estimate by fewer was a twentieth of what draws took
            return vectors[:1], math.inf, start, stop
        return inside, each * tried / len(inside), start, stop

    return node(body.tree)[1]
