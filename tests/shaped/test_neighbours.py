"""A strategy is taken with a body where no neighbour moves further than its noise hides.

Strategies, merged cells and bodies are random, as an edited file may have them; neighbours are
listed by the definition of the privacy unit, and their norms are fractions.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np

from lrm.errors import WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.measured import Measured
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.shared import SharedTables, shared_attributes
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.mechanism import calibrate
from lrm.privacy.norms import BodyNorm
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.matrices import DenseMap

UNITS = [
    PrivacyUnit(max_rows=c, neighbours=n) for c in (1, 2) for n in ("add-remove", "substitute")
]


def norm(body, vector):
    """The norm, infinite outside the space of the body."""
    try:
        return body.gauge(list(vector))
    except WorkloadError:
        return Fraction(10**9)


def moves_of(measured):
    """What a record of each cell moves, by measuring it alone; and a row that is not counted."""
    count = int(np.prod(measured.sizes))
    tables = np.eye(count, dtype=np.int64)
    moves = {tuple(measured.measure(measured.counts_of(table)).tolist()) for table in tables}
    return sorted(moves | {(0,) * measured.measurement_count})


def changes(moves, unit):
    """The changes of the measurements between all neighbours."""
    rows = itertools.combinations_with_replacement(moves, unit.max_rows)
    sums = {tuple(map(sum, zip(*some, strict=True))) for some in rows}
    if unit.neighbours == "add-remove":
        return sums
    pairs = itertools.product(sums, sums)
    return {tuple(a - b for a, b in zip(x, y, strict=True)) for x, y in pairs}


def assert_hidden(measured, units=UNITS):
    moves, epsilon = moves_of(measured), Fraction(3)
    for unit in units:
        noise = calibrate(measured, PureDP(epsilon), unit)
        rate = measured.sensitivity / Fraction(noise.scale)
        furthest = max(norm(measured.body, change) for change in changes(moves, unit))
        assert rate * furthest <= epsilon
        (step,) = noise.law.steps
        assert all(x % step == 0 for move in moves for x in move)


def random_body(rng, size):
    unit = int(rng.integers(1, 9))
    kind = rng.integers(4)
    if kind == 0:
        return Cube(size, unit)
    if kind == 1 and size == 2:
        vertices = np.array([[2, 0], [1, 2]]) * unit
        return Facets(vertices, np.array([[1, 2], [1, -2]]), 0)
    if kind == 2 and size > 1:
        return Groups(
            (Cube(1, unit), Tables((size - 1,), (False,), unit)), (WHOLE // 3, WHOLE // 2)
        )
    first = int(rng.integers(1, size + 1))
    sizes = (first, size - first) if first < size else (size,)
    return Tables(sizes, tuple(bool(rng.integers(2)) for _ in sizes), unit)


def test_bodies_over_cells_are_taken_where_they_hold_every_neighbour_and_nowhere_else():
    rng, seen = np.random.default_rng(2), Counter()
    for number in range(400):
        rows, merged = (int(n) for n in rng.integers(1, 4, size=2))
        matrix = rng.integers(-1, 3, (rows, merged)) * (2.0 if number % 2 else 1.0)
        cells = merged + int(rng.integers(3))
        index, factor = rng.integers(merged, size=cells), rng.choice([1, 1, 1, -1, 2, 0], cells)
        body, replaced = random_body(rng, rows), number % 3 == 0
        columns = [(0,) * rows]
        columns += [
            tuple((matrix[:, i] * f).astype(int)) for i, f in zip(index, factor, strict=True)
        ]
        if not any(any(column) for column in columns):
            continue
        unit = UNITS[1] if replaced else UNITS[0]
        held = max(norm(body, change) for change in changes(columns, unit)) <= unit.factor
        try:
            body_norm = BodyNorm(body, replaced=replaced)
            cell_map = CellMap(merged, index, factor)
            measured = Measured.of_cells(DenseMap(matrix), cell_map, 1, None, body_norm)
        except WorkloadError:
            # Halves of odd differences are not looked at.
            is_odd = replaced and not isinstance(body, Cube) and np.any(np.array(columns) % 2)
            assert is_odd or not held
            seen["refused"] += not held
            continue
        assert held
        seen[type(body), replaced] += 1
        assert_hidden(measured, [u for u in UNITS if not replaced or u.neighbours == "substitute"])
    assert seen["refused"] > 100
    assert all(seen[kind, replaced] for kind in (Cube, Tables) for replaced in (False, True))
    assert seen[Facets, False]
    assert seen[Groups, False]


def random_tables(rng):
    """Labels, tables and a body for them, some of which do not fit."""
    sizes = rng.integers(1, 4, size=rng.integers(2, 5))
    labels = [np.unique(rng.integers(-1, 3, n), return_inverse=True) for n in sizes]
    labels = [(place - int(values[0] < 0)).astype(np.int64) for values, place in labels]
    counts = [int(marks.max()) + 1 for marks in labels]
    every = range(len(sizes))
    sets = {tuple(i for i in every if rng.integers(2)) for _ in range(rng.integers(1, 4))}
    tables = sorted(sets)
    parts = [tables] if rng.integers(2) else [[table] for table in tables]
    bodies = []
    for part in parts:
        if len(part) > 1 and shared_attributes(part):
            numbers = tuple(tuple((i, counts[i]) for i in table) for table in part)
            bodies.append(SharedTables(numbers, 4))
        else:
            cells = [int(np.prod([counts[i] for i in table])) for table in part]
            cells[0] += int(rng.integers(12) == 0)
            bodies.append(Tables(tuple(cells), tuple(bool(rng.integers(2)) for _ in part), 4))
    shares = (WHOLE // len(bodies),) * len(bodies)
    return labels, tables, bodies[0] if len(bodies) == 1 else Groups(tuple(bodies), shares)


def test_bodies_of_tables_are_taken_where_they_hold_every_neighbour():
    rng, seen = np.random.default_rng(5), Counter()
    for _ in range(300):
        try:
            labels, tables, body = random_tables(rng)
            measured = Measured.of_tables(labels, tables, 2, body)
        except WorkloadError:
            seen["refused"] += 1
            continue
        seen[type(body)] += 1
        assert_hidden(measured, UNITS[:2])
    assert min(seen[kind] for kind in ("refused", Tables, SharedTables, Groups)) > 3, seen
