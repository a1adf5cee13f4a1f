"""One awkward table for all engines."""

import datetime as dt
import math
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa

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
TEXTS = [
    "NY",
    "ny",
    " NY",
    "NY ",
    "",
    "it's",
    'say "x"',
    "back\\slash",
    "é",
    "é",
    "a,b",
    "two\nlines",
    "%s",
    "100%",
    "zz",
]
STATES = ["NY", "ny", "NY ", "it's", "", "back\\slash", "é", "two\nlines", "%s", 'say "x"']
TENTHS = [number / 10 for number in range(11)]


def around(values):
    """Each value with its neighbours among float64."""
    return [
        near
        for x in values
        for near in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))
    ]


INCOMES = [
    *around([0.0, 0.1, 0.3, 0.7, 1.0, 1000.5, 2.0**53]),
    -0.0,
    1e300,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    3.0,
    17.0,
    2.5,
    -7.0,
]
HUGES = [
    0,
    1,
    -1,
    2**53,
    2**53 + 1,
    2**53 - 1,
    -(2**53) - 1,
    2**62,
    2**62 - 1,
    -(2**62),
    2**63 - 1,
    -(2**63),
    7,
    12,
]
PRICES = [
    "0.00",
    "0.10",
    "0.09",
    "0.11",
    "0.30",
    "-0.01",
    "9.99",
    "10.00",
    "9999999999.99",
    "-9999999999.99",
    "3.00",
    "3.50",
]
EXACTS = [
    "0.1000000000",
    "0.0999999999",
    "0.3000000000",
    "9007199254740993.0000000000",
    "9007199254740992.5000000000",
    "9999999999999999999999999999.9999999999",
    "-9999999999999999999999999999.9999999999",
    "4611686018427387904.0000000000",
    "4611686018427387904.0000000001",
    "5.0000000000",
    "5.0000000001",
    "0E-10",
]
DAYS = [
    dt.date(2024, 1, 1),
    dt.date(2023, 12, 31),
    dt.date(2024, 2, 29),
    dt.date(2024, 12, 31),
    dt.date(2025, 1, 1),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
    dt.date(2024, 3, 31),
    dt.date(1969, 12, 31),
]
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
                "ratio": pick(
                    [*np.float32([0.1, 0.3, 2.5, 3, -1, 1e30]).tolist(), math.inf, math.nan]
                ),
                "price": pick([Decimal(text) for text in PRICES]),
                "exact": pick([Decimal(text) for text in EXACTS]),
                "day": pick(DAYS),
                "at": pick([stamps[0]]),
                "moment": pick([stamps[1].replace(tzinfo=dt.UTC)]),
                WEIRD: pick(["x", "y' OR 1=1 --", "z"]),
            }
        )
    return made


def arrow(made):
    """The rows as an Arrow table, the common ancestor of all forms."""
    return pa.Table.from_pylist(made, schema=SCHEMA)
