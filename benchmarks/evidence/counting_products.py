"""Time the counting of marginals on a generated table of persons, as in a census by state.

The attributes are those of the census batch of `benchmarks.batches.products`, with the states: 1.5
million cells. Three marginals are counted, such as a plan in two groups measures: everything by
years of age and major races, everything by groups of ages, and detailed races of adults and others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from lrm.domain import Categories, Domain, Integers, PrivacyUnit
from lrm.queries.maps.products.tabulation import Tabulation
from lrm.tables import open_table

__all__ = ["CASES", "count", "generate", "works"]

STATES = [f"state {number:02d}" for number in range(51)]
AGES = 115
GROUPS = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
CASES = ("census marginals", "census marginals, 3 rows per household")


def domain_of(case: str) -> Domain:
    """The domain of a case."""
    attributes = [
        Categories("sex", ["female", "male"]),
        Categories("hispanic", [False, True]),
        Integers("race", 0, 63),
        Integers("age", 0, AGES - 1),
        Categories("state", STATES),
    ]
    unit = PrivacyUnit() if case == CASES[0] else PrivacyUnit("household", 3)
    return Domain(attributes, unit=unit)


def tabulations() -> list[Tabulation]:
    """The three marginals."""
    ages, each = np.arange(AGES), tuple(np.arange(size) for size in domain_of(CASES[0]).shape)
    years = np.where(ages < 100, ages, 100 + (ages - 100) // 5)
    groups = np.searchsorted(GROUPS, ages, side="right") - 1

    def merged(races: NDArray[np.int64], ages: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        return (each[0], each[1], races, ages, each[4])

    major = np.array([r.bit_length() - 1 if r.bit_count() == 1 else 6 for r in range(64)])
    return [
        Tabulation(merged(major, years), (0, 1, 2, 3, 4)),
        Tabulation(merged(major, groups), (0, 1, 2, 3, 4)),
        Tabulation(merged(each[2], (ages >= 18).astype(np.int64)), (1, 2, 3, 4)),
    ]


def generate(path: Path, rows: int) -> None:
    """Write the table: every value is a hash of the row's number, so it is always the same."""
    # Small numbers are more frequent, as races and states are not equally large.
    uniform = [f"(hash(i * 8 + {salt}) >> 11)::DOUBLE / 9007199254740992" for salt in range(6)]
    listed = ", ".join(f"'{state}'" for state in STATES)
    with duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False}) as db:
        db.execute(
            "COPY (SELECT "  # noqa: S608 - constants of this file
            f"CASE WHEN {uniform[0]} < 0.5 THEN 'female' ELSE 'male' END AS sex, "
            f"{uniform[1]} < 0.2 AS hispanic, "
            f"floor(pow({uniform[2]}, 4) * 64)::INTEGER AS race, "
            f"floor(pow({uniform[3]}, 1.5) * {AGES})::INTEGER AS age, "
            f"([{listed}])[1 + floor(pow({uniform[4]}, 2) * 51)::BIGINT] AS state, "
            f"floor({uniform[5]} * {rows} / 3)::BIGINT AS household "
            f"FROM range({rows}) AS t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)"
        )


def by_hand(path: Path) -> dict[str, list[str]]:
    """What a person would write for the first case, who trusts that every value is declared.

    The fastest of these is what we compare to.
    """
    major = " ".join(f"WHEN {1 << number} THEN {number}" for number in range(6))
    groups = " ".join(f"WHEN age < {end} THEN {i}" for i, end in enumerate(GROUPS[1:]))
    listed = ", ".join(f"'{state}'" for state in STATES)
    merged = (
        "SELECT sex, hispanic, race::UTINYINT AS race, age::UTINYINT AS age, "  # noqa: S608
        f"(CASE race {major} ELSE 6 END)::UTINYINT AS major, "
        "(CASE WHEN age < 100 THEN age ELSE 100 + (age - 100) // 5 END)::UTINYINT AS years, "
        f"(CASE {groups} ELSE {len(GROUPS) - 1} END)::UTINYINT AS grouped, age >= 18 AS adult, "
        f"state::ENUM({listed}) AS state FROM '{path}'"
    )
    sets = [
        "sex, hispanic, major, years, state",
        "sex, hispanic, major, grouped, state",
        "hispanic, race, adult, state",
    ]
    columns = "sex, hispanic, race, major, years, grouped, adult, state"
    together = ", ".join(f"({one})" for one in sets)
    joint = f"SELECT {columns}, count(*) AS n FROM ({merged}) GROUP BY ALL"  # noqa: S608
    return {
        "marginals by hand, grouping sets": [
            f"SELECT {columns}, count(*) FROM ({merged}) GROUP BY GROUPING SETS ({together})"  # noqa: S608
        ],
        "marginals by hand, one query each": [
            f"SELECT {one}, count(*) FROM ({merged}) GROUP BY ALL"  # noqa: S608
            for one in sets
        ],
        "marginals by hand, cells first": [
            f"CREATE TEMP TABLE cells AS {joint}",
            *(f"SELECT {one}, sum(n) FROM cells GROUP BY ALL" for one in sets),  # noqa: S608
        ],
    }


def _answered(queries: list[str]) -> None:
    """Ask in a session of its own, as counting does."""
    with duckdb.connect() as db:
        for query in queries:
            db.execute(query).fetchnumpy()


def count(path: Path, case: str) -> object:
    """Count the marginals of a case."""
    return open_table(path).counts(domain_of(case), tabulations())


def works(path: Path) -> dict[str, Callable[[], object]]:
    """What is timed: each way by hand, and each case."""
    timed: dict[str, Callable[[], object]] = {
        name: partial(_answered, queries) for name, queries in by_hand(path).items()
    }
    return timed | {case: partial(count, path, case) for case in CASES}
