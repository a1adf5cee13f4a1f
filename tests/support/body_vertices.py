"""Vertices of bodies of shaped noise by their definitions, not by their own norms."""

import itertools

import numpy as np

from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.shared import SharedTables
from lrm.privacy.bodies.split import SplitHull
from lrm.privacy.bodies.sums import WHOLE
from lrm.privacy.bodies.tables import Tables


def vertices_of(body):
    """All vertices of a body, with one sign each: by definition, not by its own norm."""
    if isinstance(body, SplitHull):
        return body.points.T
    if isinstance(body, Cube):
        return np.array(list(itertools.product((-1, 1), repeat=body.size))).T * body.unit
    if isinstance(body, Facets):
        return body.vertices.T * 2**body.shift
    if isinstance(body, Tables):
        choices = []
        for n, closed in zip(body.sizes, body.closed, strict=True):
            own = list(np.eye(n, dtype=int))
            choices.append(own if closed else [*own, np.zeros(n, dtype=int)])
        columns = [np.concatenate(one) for one in itertools.product(*choices)]
        return np.array(columns).T * body.unit
    if isinstance(body, SharedTables):
        values = dict(pair for table in body.tables for pair in table)
        records = [
            dict(zip(values, one, strict=True))
            for one in itertools.product(*map(range, values.values()))
        ]
        columns = [np.concatenate([_cell_of(record, t) for t in body.tables]) for record in records]
        return np.array(columns).T * body.unit
    columns, start = [], 0
    for one, share in zip(body.bodies, body.shares, strict=True):
        for vertex in vertices_of(one).T:
            column = np.zeros(body.size)
            column[start : start + one.size] = vertex * (WHOLE / share)
            columns.append(column)
        start += one.size
    return np.array(columns).T


def _cell_of(record, table):
    """A record in the table of some attributes: 1 in its cell."""
    cells = np.zeros([n for _, n in table], dtype=int)
    cells[tuple(record[i] for i, _ in table)] = 1
    return cells.ravel()
