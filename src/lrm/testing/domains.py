"""Domains through which the awkward table is looked at, one for each thing that can go wrong."""

import math
import random

import numpy as np

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Numbers, PrivacyUnit
from lrm.queries.maps.products.tabulation import Tabulation, total
from lrm.testing.table import HUGES, INCOMES, STATES, TENTHS, TEXTS, WEIRD

MANY = [f"v{number}" for number in range(70)] + STATES
CELL = {"null": "cell", "outside": "cell"}
ALL = {**CELL, "nan": "cell"}

DOMAINS = {
    "text": Domain([Categories("state", STATES, **CELL), Categories("flag", [False], **CELL)]),
    "text dropped": Domain([Categories("state", STATES), Categories("flag", [True, False])]),
    "many texts": Domain([Categories("state", MANY, **CELL)]),
    "many texts dropped": Domain([Categories("state", MANY), Integers("age", 0, 20)]),
    "names": Domain([Categories(WEIRD, ["y' OR 1=1 --", "x"], **CELL)]),
    "integers": Domain(
        [
            Integers("age", -1, 19, width=4, **ALL),
            Integers("huge", -(2**62), 2**62, width=2**60, **ALL),
        ]
    ),
    "many whole numbers": Domain([Integers("age", -40, 60, **ALL)]),
    "many whole floats": Domain([Integers("income", -40, 60, **ALL)]),
    "many whole decimals": Domain([Integers("exact", -40, 60, **CELL)]),
    "integers at the edge": Domain(
        [Integers("huge", 2**53, 2**53 + 1, **CELL), Integers("age", 0, 20, outside="cell")]
    ),
    "integers among floats": Domain(
        [Integers("income", -7, 17, **ALL), Integers("ratio", 0, 3, **ALL)]
    ),
    "integers among huge floats": Domain([Integers("income", 2**53 - 1, 2**53 + 1, **ALL)]),
    "integers among decimals": Domain(
        [Integers("price", 0, 10, width=3, **ALL), Integers("exact", -5, 5, **CELL)]
    ),
    "integers among huge decimals": Domain(
        [Integers("exact", 2**53, 2**62, width=2**61, **ALL), Integers("price", 3, 3)]
    ),
    "categories of integers": Domain(
        [Categories("huge", [7, 2**53 + 1, -(2**62)], **CELL), Categories("age", [3, 1, 2])]
    ),
    "categories among floats": Domain(
        [Categories("income", [3, 17, 2**53, -7], **CELL), Categories("ratio", [3], **CELL)]
    ),
    "categories among decimals": Domain(
        [Categories("exact", [5, 2**53 + 1], **CELL), Categories("price", [3, 10, 0], **CELL)]
    ),
    "many integers": Domain(
        [
            Categories("huge", [*range(0, 200, 2), 7, 2**62], **CELL),
            Categories("age", range(-100, 100, 3)),
        ]
    ),
    "many integers among floats": Domain(
        [Categories("income", [*range(-99, 99, 4), *range(100, 150)], **CELL)]
    ),
    "bins": Domain(
        [
            Bins("income", [0, 0.1, 0.3, 0.7, 1, 1000.5, 2.0**53], **ALL),
            Bins("ratio", [0.1, 0.3, 3], **ALL),
        ]
    ),
    "bins dropped": Domain(
        [
            Bins("income", [-math.inf, 0.1, 0.3, 2.0**53, math.inf], nan="cell"),
            Bins("price", [0, 0.1, 0.3, 10]),
        ]
    ),
    "bins of exact numbers": Domain(
        [
            Bins("huge", [-(2.0**53), 0, 1, 2.0**53, 2.0**62], **ALL),
            Bins("exact", [0, 0.1, 0.3, 5, 2.0**53, 1e27], **ALL),
        ]
    ),
    "numbers": Domain(
        [
            Numbers("income", [-1e300, -7, 0, 5e-324, 0.3, 17, 2.0**53], null="cell", nan="cell"),
            Categories("state", STATES, **CELL),
        ]
    ),
    "numbers dropped": Domain(
        [Numbers("ratio", [0.1, 0.3, 3], outside="drop"), Integers("age", 0, 20, outside="cell")]
    ),
    "one column, two forms": Domain(
        [
            Numbers("income", [0, 1, 17], bins=[0, 0.3, 2, 17], null="cell", nan="cell"),
            Integers("age", 0, 20, outside="cell"),
            Categories("old", [17, 18], column="age", outside="cell"),
        ],
        unit=PrivacyUnit("who", 2),
    ),
    "numbers of exact numbers": Domain(
        [
            Numbers("huge", [-(2.0**62), 0, 3, 2.0**53], null="cell"),
            Numbers("exact", [-5, 1 / 3, 1e27], nan="cell"),
            Numbers("price", [0, 7], null="cell"),
        ]
    ),
    "numbers of persons": Domain(
        [Numbers("income", [0, 1, 17]), Numbers("price", [0, 7], null="cell")],
        unit=PrivacyUnit("who", 2),
    ),
    "many bins": Domain([Bins("income", np.linspace(-1, 3, 401), **ALL), Integers("age", 0, 9)]),
    "many infinite bins": Domain(
        [Bins("income", [-math.inf, *np.linspace(0, 1, 101), math.inf], **ALL)]
    ),
    "many uneven bins": Domain(
        [
            Bins("income", [0.0, *np.geomspace(1e-9, 1e9, 91)], nan="cell"),
            Bins("ratio", np.linspace(0, 3, 81), null="cell"),
        ]
    ),
    "many bins of exact numbers": Domain(
        [
            Bins("price", [number / 100 for number in range(-10, 90)], **ALL),
            Bins("huge", np.linspace(-(2.0**53), 2.0**53, 129), **CELL),
        ]
    ),
    "many bins of long decimals": Domain(
        [Bins("exact", [number / 10 for number in range(100)], **ALL)]
    ),
    "days": Domain(
        [
            Dates("day", "2024-01-01", "2024-12-31", **CELL),
            Dates("at", "2024-01-01", "2024-02-29", outside="cell"),
        ]
    ),
    "months": Domain(
        [
            Dates("day", "2024-01-01", "2024-12-31", "month", **CELL),
            Dates("at", "2023-12-01", "2024-12-31", "month", **CELL),
        ]
    ),
    "years": Domain(
        [
            Dates("day", "1969-01-01", "2024-12-31", "year", **CELL),
            Dates("moment", "2024-01-01", "2024-12-31", "year", **CELL),
        ]
    ),
    "instants": Domain([Dates("moment", "2023-12-01", "2024-12-31", "month", **CELL)]),
    "all dates": Domain([Dates("day", "0001-01-01", "9999-12-31", "year", **CELL)]),
    "persons": Domain([Integers("age", 0, 20, outside="cell")], unit=PrivacyUnit("who", 2)),
    "persons by text": Domain([Categories("state", STATES, **CELL)], unit=PrivacyUnit("alias", 7)),
    "persons with many bins": Domain(
        [Bins("income", np.linspace(0, 2, 201), **ALL), Categories("flag", [True], **CELL)],
        unit=PrivacyUnit("who", 3),
    ),
    "persons as an attribute": Domain(
        [Integers("who", 0, 9, outside="cell")], unit=PrivacyUnit("who", 1)
    ),
}


def random_domain(seed):
    """A domain of two or three random attributes of the awkward table."""
    rng = random.Random(seed)

    def rules(*names):
        return {name: rng.choice(["drop", "cell"]) for name in names}

    def edges():
        source = rng.choice([INCOMES, TENTHS, [float(h) for h in HUGES]])
        finite = sorted({x + 0.0 for x in source if math.isfinite(x)})
        return sorted(rng.sample(finite, rng.randint(2, min(8, len(finite)))))

    made = {
        "state": lambda: Categories(
            "state", rng.sample(sorted(set(TEXTS)), 5), **rules("null", "outside")
        ),
        "flag": lambda: Categories("flag", [True, False], **rules("null")),
        "age": lambda: Integers(
            "age",
            rng.randint(-3, 5),
            rng.randint(8, 25),
            rng.randint(1, 3),
            **rules("null", "outside", "nan"),
        ),
        "huge": lambda: Bins("huge", edges(), **rules("null", "outside")),
        "income": lambda: Bins("income", edges(), **rules("null", "outside", "nan")),
        "ratio": lambda: Integers(
            "ratio", -1, rng.randint(0, 5), **rules("null", "outside", "nan")
        ),
        "price": lambda: Bins("price", edges(), **rules("null", "outside", "nan")),
        "day": lambda: Dates(
            "day",
            "2024-01-01",
            "2024-12-31",
            rng.choice(["day", "month", "year"]),
            **rules("null", "outside"),
        ),
    }
    names = rng.sample(sorted(made), rng.randint(2, 3))
    unit = PrivacyUnit("who", rng.randint(1, 3)) if rng.random() < 0.3 else PrivacyUnit()
    return Domain([made[name]() for name in names], unit=unit)


def random_cells(domain, seed):
    """A tabulation by random merged cells in many runs, some of which no query looks at."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, min(6, domain.size), domain.size)
    return Tabulation((labels,), by=(0,))


def random_tabulations(domain, seed, tables=6):
    """Random tabulations: merged values, values that are not counted, by any attributes."""
    rng = np.random.default_rng(seed)
    sizes = domain.shape

    def labels(size):
        kind = rng.integers(4)
        if kind == 0:
            return np.arange(size)
        if kind == 1:
            return np.sort(rng.integers(0, size, size)) // 2
        return rng.integers(-1 if kind == 2 else 0, max(1, size // 2), size)

    groups = [tuple(labels(size) for size in sizes) for _ in range(2)]
    made = [total(sizes)]
    for i in range(tables - 1):
        by = rng.permutation(len(sizes))[: rng.integers(0, len(sizes) + 1)]
        made.append(Tabulation(groups[i % 2], tuple(by.tolist())))
    return made
