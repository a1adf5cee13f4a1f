"""One awkward table for all engines, and the domains through which it is looked at."""

import datetime as dt
import math
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit

SCHEMA = pa.schema(
    [
        ("who", pa.int64()),
        ("alias", pa.string()),
        ("state", pa.string()),
        ("flag", pa.bool_()),
        ("age", pa.int32()),
        ("huge", pa.int64()),
        ("income", pa.float64()),
        ("ratio", pa.float32()),
        ("price", pa.decimal128(12, 2)),
        ("exact", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("we\"ird `na.me' ; --", pa.string()),
    ]
)
WEIRD = SCHEMA.names[-1]
TEXTS = ["NY", "ny", " NY", "NY ", "", "it's", 'say "x"', "back\\slash", "é", "é", "a,b", "two\nlines", "%s", "100%", "zz"]  # fmt: skip
STATES = ["NY", "ny", "NY ", "it's", "", "back\\slash", "é", "two\nlines", "%s", 'say "x"']
TENTHS = [number / 10 for number in range(11)]


def around(values):
    """Each value with its neighbours among float64."""
    return [near for x in values for near in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))]  # fmt: skip


INCOMES = [*around([0.0, 0.1, 0.3, 0.7, 1.0, 1000.5, 2.0**53]), -0.0, 1e300, -1e300, math.inf, -math.inf, math.nan, 5e-324, 3.0, 17.0, 2.5, -7.0]  # fmt: skip
HUGES = [0, 1, -1, 2**53, 2**53 + 1, 2**53 - 1, -(2**53) - 1, 2**62, 2**62 - 1, -(2**62), 2**63 - 1, -(2**63), 7, 12]  # fmt: skip
PRICES = ["0.00", "0.10", "0.09", "0.11", "0.30", "-0.01", "9.99", "10.00", "9999999999.99", "-9999999999.99", "3.00", "3.50"]  # fmt: skip
EXACTS = ["0.1000000000", "0.0999999999", "0.3000000000", "9007199254740993.0000000000", "9007199254740992.5000000000", "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "4611686018427387904.0000000000", "4611686018427387904.0000000001", "5.0000000000", "5.0000000001", "0E-10"]  # fmt: skip
DAYS = [dt.date(2024, 1, 1), dt.date(2023, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 12, 31), dt.date(2025, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 3, 31), dt.date(1969, 12, 31)]  # fmt: skip
TIMES = [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(12), dt.time(0, 0, 0, 1)]


def rows(number, seed):
    """Random rows: each value from a list of awkward ones, or NULL."""
    rng = random.Random(seed)

    def pick(values, null=0.1):
        return None if rng.random() < null else rng.choice(values)

    made = []
    for _ in range(number):
        stamps = [dt.datetime.combine(rng.choice(DAYS[:5]), rng.choice(TIMES)) for _ in range(2)]
        made.append(
            {
                "who": pick(range(number // 5 + 1)),
                "alias": pick(["a", "A", "a ", "", "b"]),
                "state": pick(TEXTS),
                "flag": pick([True, False]),
                "age": pick([*range(-2, 22), 2**31 - 1, -(2**31)]),
                "huge": pick(HUGES),
                "income": pick(INCOMES),
                "ratio": pick([*np.float32([0.1, 0.3, 2.5, 3, -1, 1e30]).tolist(), math.inf, math.nan]),
                "price": pick([Decimal(text) for text in PRICES]),
                "exact": pick([Decimal(text) for text in EXACTS]),
                "day": pick(DAYS),
                "at": pick([stamps[0]]),
                "moment": pick([stamps[1].replace(tzinfo=dt.UTC)]),
                WEIRD: pick(["x", "y' OR 1=1 --", "z"]),
            }
        )  # fmt: skip
    return made


def arrow(made):
    """The rows as an Arrow table, the common ancestor of all forms."""
    return pa.Table.from_pylist(made, schema=SCHEMA)


MANY = [f"v{number}" for number in range(70)] + STATES
CELL = {"null": "cell", "outside": "cell"}
ALL = {**CELL, "nan": "cell"}

DOMAINS = {
    "text": Domain([Categories("state", STATES, **CELL), Categories("flag", [False], **CELL)]),
    "text dropped": Domain([Categories("state", STATES), Categories("flag", [True, False])]),
    "many texts": Domain([Categories("state", MANY, **CELL)]),
    "many texts dropped": Domain([Categories("state", MANY), Integers("age", 0, 20)]),
    "names": Domain([Categories(WEIRD, ["y' OR 1=1 --", "x"], **CELL)]),
    "integers": Domain([Integers("age", -1, 19, width=4, **ALL), Integers("huge", -(2**62), 2**62, width=2**60, **ALL)]),
    "integers at the edge": Domain([Integers("huge", 2**53, 2**53 + 1, **CELL), Integers("age", 0, 20, outside="cell")]),
    "integers among floats": Domain([Integers("income", -7, 17, **ALL), Integers("ratio", 0, 3, **ALL)]),
    "integers among huge floats": Domain([Integers("income", 2**53 - 1, 2**53 + 1, **ALL)]),
    "integers among decimals": Domain([Integers("price", 0, 10, width=3, **ALL), Integers("exact", -5, 5, **CELL)]),
    "integers among huge decimals": Domain([Integers("exact", 2**53, 2**62, width=2**61, **ALL), Integers("price", 3, 3)]),
    "categories of integers": Domain([Categories("huge", [7, 2**53 + 1, -(2**62)], **CELL), Categories("age", [3, 1, 2])]),
    "categories among floats": Domain([Categories("income", [3, 17, 2**53, -7], **CELL), Categories("ratio", [3], **CELL)]),
    "categories among decimals": Domain([Categories("exact", [5, 2**53 + 1], **CELL), Categories("price", [3, 10, 0], **CELL)]),
    "many integers": Domain([Categories("huge", [*range(0, 200, 2), 7, 2**62], **CELL), Categories("age", range(-100, 100, 3))]),
    "many integers among floats": Domain([Categories("income", [*range(-99, 99, 4), *range(100, 150)], **CELL)]),
    "bins": Domain([Bins("income", [0, 0.1, 0.3, 0.7, 1, 1000.5, 2.0**53], **ALL), Bins("ratio", [0.1, 0.3, 3], **ALL)]),
    "bins dropped": Domain([Bins("income", [-math.inf, 0.1, 0.3, 2.0**53, math.inf], nan="cell"), Bins("price", [0, 0.1, 0.3, 10])]),
    "bins of exact numbers": Domain([Bins("huge", [-(2.0**53), 0, 1, 2.0**53, 2.0**62], **ALL), Bins("exact", [0, 0.1, 0.3, 5, 2.0**53, 1e27], **ALL)]),
    "many bins": Domain([Bins("income", np.linspace(-1, 3, 401), **ALL), Integers("age", 0, 9)]),
    "many infinite bins": Domain([Bins("income", [-math.inf, *np.linspace(0, 1, 101), math.inf], **ALL)]),
    "many uneven bins": Domain([Bins("income", [0.0, *np.geomspace(1e-9, 1e9, 91)], nan="cell"), Bins("ratio", np.linspace(0, 3, 81), null="cell")]),
    "many bins of exact numbers": Domain([Bins("price", [number / 100 for number in range(-10, 90)], **ALL), Bins("huge", np.linspace(-(2.0**53), 2.0**53, 129), **CELL)]),
    "many bins of long decimals": Domain([Bins("exact", [number / 10 for number in range(100)], **ALL)]),
    "days": Domain([Dates("day", "2024-01-01", "2024-12-31", **CELL), Dates("at", "2024-01-01", "2024-02-29", outside="cell")]),
    "months": Domain([Dates("day", "2024-01-01", "2024-12-31", "month", **CELL), Dates("at", "2023-12-01", "2024-12-31", "month", **CELL)]),
    "years": Domain([Dates("day", "1969-01-01", "2024-12-31", "year", **CELL), Dates("moment", "2024-01-01", "2024-12-31", "year", **CELL)]),
    "instants": Domain([Dates("moment", "2023-12-01", "2024-12-31", "month", **CELL)]),
    "all dates": Domain([Dates("day", "0001-01-01", "9999-12-31", "year", **CELL)]),
    "persons": Domain([Integers("age", 0, 20, outside="cell")], unit=PrivacyUnit("who", 2)),
    "persons by text": Domain([Categories("state", STATES, **CELL)], unit=PrivacyUnit("alias", 7)),
    "persons with many bins": Domain([Bins("income", np.linspace(0, 2, 201), **ALL), Categories("flag", [True], **CELL)], unit=PrivacyUnit("who", 3)),
    "persons as an attribute": Domain([Integers("who", 0, 9, outside="cell")], unit=PrivacyUnit("who", 1)),
}  # fmt: skip


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
        "state": lambda: Categories("state", rng.sample(sorted(set(TEXTS)), 5), **rules("null", "outside")),
        "flag": lambda: Categories("flag", [True, False], **rules("null")),
        "age": lambda: Integers("age", rng.randint(-3, 5), rng.randint(8, 25), rng.randint(1, 3), **rules("null", "outside", "nan")),
        "huge": lambda: Bins("huge", edges(), **rules("null", "outside")),
        "income": lambda: Bins("income", edges(), **rules("null", "outside", "nan")),
        "ratio": lambda: Integers("ratio", -1, rng.randint(0, 5), **rules("null", "outside", "nan")),
        "price": lambda: Bins("price", edges(), **rules("null", "outside", "nan")),
        "day": lambda: Dates("day", "2024-01-01", "2024-12-31", rng.choice(["day", "month", "year"]), **rules("null", "outside")),
    }  # fmt: skip
    names = rng.sample(sorted(made), rng.randint(2, 3))
    unit = PrivacyUnit("who", rng.randint(1, 3)) if rng.random() < 0.3 else PrivacyUnit()
    return Domain([made[name]() for name in names], unit=unit)
