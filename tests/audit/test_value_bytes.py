"""The audit on neighbouring tables, extended to bytes.

Tables of random bits in every format, and neighbours in which one record, or all records of one
person, are replaced by others of random bits. Counts differ by at most what the privacy unit
declares, and whether a count succeeds, and what it says, are the same. Tabulations and counts of
merged cells of each table are those that follow from its counts.
"""

import random

import numpy as np
import pytest

import odd_values
from engines import postgres_url
from long_runs import cases
from lrm.errors import LrmError
from lrm.queries.maps.products.tabulation import tabulate
from lrm.tables import open_table
from lrm.testing.domains import random_cells, random_tabulations

ENGINES = ["parquet", "arrow", "dataset", "pandas", "polars", "objects", "duckdb", "postgres"]
VARIANTS = 4
"""Neighbours of each table."""


@pytest.fixture(params=[*ENGINES, "spark"])
def engine(request, fixed_key):
    """Each engine, running; of a person the same rows are chosen in every count."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    if request.param == "postgres":
        postgres_url()
    return request.param


def outcome(source, domain, wanted=None):
    """The counts, or what is said instead of them."""
    try:
        table = open_table(source)
        table.check(domain, wanted)
        return table.counts(domain, wanted)._open(), ""
    except LrmError as error:
        return None, f"{type(error).__name__}: {error}"


def replaced(rng, rows, unit):
    """The rows with one record, or one person, replaced by another."""
    if unit.column is None:
        place = rng.randrange(len(rows))
        return [*rows[:place], odd_values.row(rng), *rows[place + 1 :]]
    names = sorted({row[unit.column] for row in rows} - {None}, key=repr)
    gone = rng.choice(names) if names else None
    kept = [row for row in rows if row[unit.column] != gone or gone is None]
    name = odd_values.value(rng, unit.column)
    while name is None or name in {row[unit.column] for row in kept} or _same(name, kept, unit):
        name = rng.randbytes(4).hex().encode() if unit.column == "who" else rng.getrandbits(62)
    new = [odd_values.row(rng, **{unit.column: name}) for _ in range(rng.randint(0, 6))]
    mixed = [*kept, *new]
    rng.shuffle(mixed)
    return mixed


def _same(name, kept, unit):
    """Whether engines that hold valid text alone would take another name for the same one."""
    if unit.column != "who":
        return False
    others = odd_values.valid([{"who": row["who"]} for row in kept])
    return odd_values.valid([{"who": name}])[0] in others


def audit(engine, folder, seed):
    rng = random.Random(f"{engine} {seed}")  # noqa: S311 - no secret
    unit = odd_values.unit(rng)
    domain = odd_values.domain(rng, engine, unit)
    people = [odd_values.value(rng, unit.column) for _ in range(4)] if unit.column else [None]
    if engine in {"polars", "duckdb", "postgres"} and unit.column == "who":
        people = [row["who"] for row in odd_values.valid([{"who": who} for who in people])]
    rows = [
        odd_values.row(rng, **({unit.column: rng.choice(people)} if unit.column else {}))
        for _ in range(rng.randint(1, 12))
    ]
    if engine == "objects":
        rows = [with_objects(rng, row, unit) for row in rows]
    options = {
        "use_dictionary": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.5,
        "row_group_size": rng.choice([1, 3, 100]),
    }
    given = odd_values.given_to(engine, rows, folder, options)
    base, said = outcome(given, domain)
    assert said == ""
    tables = random_tabulations(domain, seed, 3)
    tabulated, said = outcome(given, domain, tables)
    assert said == ""
    np.testing.assert_array_equal(tabulated, tabulate(tables, base, domain.shape))
    cells = random_cells(domain, seed)
    merged, said = outcome(given, domain, [cells])
    assert said == ""
    np.testing.assert_array_equal(merged, tabulate([cells], base, (domain.size,)))
    for _ in range(VARIANTS):
        other = replaced(rng, rows, unit)
        if engine == "objects":
            other = [with_objects(rng, row, unit) for row in other]
        given = odd_values.given_to(engine, other, folder, options)
        counts, said = outcome(given, domain)
        assert said == "", (engine, seed)
        assert np.abs(counts - base).sum() <= unit.factor << domain.record_bits, (engine, seed)


def with_objects(rng, row, unit):
    """Replace some values of a row by Python objects of any kind, once; the name stays."""
    if any(key.startswith("object ") for key in row):
        return row
    chosen = {f"object {name}": rng.choice(odd_values.OBJECTS) for name in odd_values.TYPES}
    chosen.pop(f"object {unit.column}", None)
    return row | {key: made for key, made in chosen.items() if rng.random() < 0.5}


def test_one_record_of_any_bytes_moves_counts_by_one_record(engine, tmp_path):
    for seed in range(1 if engine == "spark" else 3):
        audit(engine, tmp_path, seed)


@pytest.mark.long
def test_many_neighbours(engine, tmp_path):
    for seed in range(cases(4 if engine == "spark" else 20)):
        audit(engine, tmp_path, 1000 + seed)
