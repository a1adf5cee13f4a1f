"""Batches over tables of two to five attributes: what people ask, up to 5,000 cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

import lrm
from lrm.domain import Domain, Integers
from lrm.queries.workload import Workload

__all__ = ["TABLES", "draw_table"]

WEEKS = "SELECT week, COUNT(*) FROM t GROUP BY 1; SELECT district, COUNT(*) FROM t GROUP BY 1"
UNTIL = "SELECT district, COUNT(*) FROM t WHERE week <= WEEK GROUP BY 1;"
MINUTES = """SELECT minutes, COUNT(*) FROM t GROUP BY 1;
SELECT weekday, counter, COUNT(*) FROM t GROUP BY 1, 2"""
WITHIN = "SELECT counter, COUNT(*) FROM t WHERE minutes < LIMIT GROUP BY 1;"

SQL: dict[str, tuple[dict[str, int], str]] = {
    "population pyramid": (
        {"region": 6, "age": 20, "sex": 2},
        """SELECT COUNT(*) FROM t; SELECT region, COUNT(*) FROM t GROUP BY 1;
        SELECT region, sex, COUNT(*) FROM t GROUP BY 1, 2; SELECT age, COUNT(*) FROM t GROUP BY 1;
        SELECT sex, age, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT region, COUNT(*) FROM t WHERE age >= 13 GROUP BY 1;
        SELECT region, COUNT(*) FROM t WHERE age < 3 GROUP BY 1""",
    ),
    "pyramids by region": (
        {"region": 12, "age": 18, "sex": 2},
        """SELECT sex, age, region, COUNT(*) FROM t GROUP BY 1, 2, 3;
        SELECT region, COUNT(*) FROM t GROUP BY 1; SELECT sex, age, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT age, COUNT(*) FROM t GROUP BY 1""",
    ),
    "rates by group": (
        {"state": 20, "age": 9, "sick": 2},
        """SELECT state, sick, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT age, sick, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT state, COUNT(*) FROM t WHERE sick = 1 AND age >= 6 GROUP BY 1;
        SELECT state, COUNT(*) FROM t WHERE age >= 6 GROUP BY 1;
        SELECT sick, COUNT(*) FROM t GROUP BY 1""",
    ),
    "years and regions": (
        {"year": 15, "region": 16},
        """SELECT year, region, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT year, COUNT(*) FROM t GROUP BY 1; SELECT region, COUNT(*) FROM t GROUP BY 1;
        SELECT region, COUNT(*) FROM t WHERE year >= 10 GROUP BY 1;
        SELECT region, COUNT(*) FROM t WHERE year >= 5 GROUP BY 1; SELECT COUNT(*) FROM t""",
    ),
    "overlapping age groups": (
        {"age": 100, "sex": 2, "region": 4},
        """SELECT region, sex, COUNT(*) FROM t WHERE age >= 15 AND age < 65 GROUP BY 1, 2;
        SELECT region, COUNT(*) FROM t WHERE age >= 18 GROUP BY 1;
        SELECT region, COUNT(*) FROM t WHERE age < 5 GROUP BY 1;
        SELECT region, COUNT(*) FROM t WHERE age < 15 GROUP BY 1;
        SELECT sex, COUNT(*) FROM t WHERE age >= 65 GROUP BY 1;
        SELECT sex, COUNT(*) FROM t WHERE age >= 80 GROUP BY 1;
        SELECT age // 10, sex, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT age // 5, COUNT(*) FROM t GROUP BY 1; SELECT COUNT(*) FROM t""",
    ),
    "totals that count": (
        {"branch": 25, "month": 12, "kind": 4},
        """SELECT COUNT(*) FROM t; SELECT month, COUNT(*) FROM t GROUP BY 1;
        SELECT branch, COUNT(*) FROM t GROUP BY 1;
        SELECT kind, month, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT branch, kind, COUNT(*) FROM t GROUP BY 1, 2""",
    ),
    "cumulative cases": (
        {"week": 52, "district": 8},
        "".join(UNTIL.replace("WEEK", str(week)) for week in range(3, 52, 4)) + WEEKS,
    ),
    "schools": (
        {"grade": 12, "sex": 2, "origin": 5, "passed": 2},
        """SELECT grade, passed, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT grade, sex, passed, COUNT(*) FROM t GROUP BY 1, 2, 3;
        SELECT origin, passed, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT grade, origin, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT COUNT(*) FROM t WHERE passed = 0 AND grade >= 8""",
    ),
    "hospital stays": (
        {"ward": 10, "age": 10, "sex": 2, "days": 8, "death": 2},
        """SELECT ward, COUNT(*) FROM t GROUP BY 1;
        SELECT ward, death, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT age, sex, COUNT(*) FROM t GROUP BY 1, 2; SELECT days, COUNT(*) FROM t GROUP BY 1;
        SELECT age, COUNT(*) FROM t WHERE death = 1 GROUP BY 1;
        SELECT ward, COUNT(*) FROM t WHERE days >= 4 GROUP BY 1;
        SELECT sex, SUM(days) AS days FROM t GROUP BY 1""",
    ),
    "web visits": (
        {"hour": 24, "weekday": 7, "device": 3},
        """SELECT hour, COUNT(*) FROM t GROUP BY 1; SELECT weekday, COUNT(*) FROM t GROUP BY 1;
        SELECT hour, weekday, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT device, COUNT(*) FROM t GROUP BY 1;
        SELECT hour // 6, device, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT hour, COUNT(*) FROM t WHERE weekday >= 5 GROUP BY 1""",
    ),
    "survey": (
        {"party": 6, "age": 7, "sex": 2, "education": 5, "urban": 3},
        """SELECT party, age, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT party, sex, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT party, education, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT party, urban, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT age, sex, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT COUNT(*) FROM t""",
    ),
    "income bands": (
        {"income": 40, "household": 6, "tenure": 3},
        """SELECT COUNT(*) FROM t WHERE income < 10; SELECT COUNT(*) FROM t WHERE income < 20;
        SELECT COUNT(*) FROM t WHERE income < 30; SELECT income, COUNT(*) FROM t GROUP BY 1;
        SELECT income // 10, household, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT household, tenure, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT tenure, COUNT(*) FROM t WHERE income >= 20 AND household >= 3 GROUP BY 1""",
    ),
    "traffic": (
        {"road": 30, "hour": 24, "severity": 3, "year": 2},
        """SELECT road, severity, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT road, year, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT hour, severity, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT COUNT(*) FROM t WHERE hour >= 22 OR hour < 6;
        SELECT year, COUNT(*) FROM t GROUP BY 1;
        SELECT road, COUNT(*) FROM t WHERE hour >= 7 AND hour < 9 GROUP BY 1""",
    ),
    "migration": (
        {"from": 18, "to": 18},
        """SELECT "from", COUNT(*) FROM t GROUP BY 1; SELECT "to", COUNT(*) FROM t GROUP BY 1;
        SELECT COUNT(*) FROM t WHERE "from" = "to";
        SELECT "from", "to", COUNT(*) FROM t GROUP BY 1, 2;
        SELECT COUNT(*) FROM t WHERE "from" < 9 AND "to" >= 9""",
    ),
}
"""Name → sizes of the attributes, and SQL. The constants of the search were chosen on these."""

HELD_BACK: dict[str, tuple[dict[str, int], str]] = {
    "library loans": (
        {"branch": 14, "month": 12, "kind": 5},
        """SELECT branch, month, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT kind, COUNT(*) FROM t GROUP BY 1; SELECT kind, month, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT branch, COUNT(*) FROM t WHERE kind <> 0 GROUP BY 1;
        SELECT month // 3, COUNT(*) FROM t GROUP BY 1""",
    ),
    "vaccinations": (
        {"district": 9, "age": 30, "doses": 4},
        """SELECT district, doses, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT age, COUNT(*) FROM t WHERE doses >= 1 GROUP BY 1;
        SELECT age, COUNT(*) FROM t WHERE doses >= 2 GROUP BY 1;
        SELECT district, COUNT(*) FROM t WHERE age >= 20 AND doses = 0 GROUP BY 1;
        SELECT age // 10, doses, COUNT(*) FROM t GROUP BY 1, 2""",
    ),
    "commuters": (
        {"home": 12, "work": 12, "mode": 5},
        """SELECT home, mode, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT work, mode, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT COUNT(*) FROM t WHERE home = work; SELECT mode, COUNT(*) FROM t GROUP BY 1;
        SELECT home, COUNT(*) FROM t WHERE work = 0 GROUP BY 1""",
    ),
    "waiting times": (
        {"minutes": 60, "counter": 6, "weekday": 7},
        "".join(WITHIN.replace("LIMIT", str(limit)) for limit in (5, 10, 15, 20, 30, 45)) + MINUTES,
    ),
    "panel of firms": (
        {"sector": 20, "size": 5, "year": 8, "exporter": 2},
        """SELECT sector, year, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT size, year, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT sector, exporter, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT year, COUNT(*) FROM t WHERE exporter = 1 AND size >= 3 GROUP BY 1;
        SELECT COUNT(*) FROM t""",
    ),
    "accounts": (
        {"balance": 25, "age": 12, "segment": 6, "active": 2},
        """SELECT segment, active, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT balance, COUNT(*) FROM t GROUP BY 1;
        SELECT age, active, COUNT(*) FROM t GROUP BY 1, 2;
        SELECT segment, COUNT(*) FROM t WHERE balance >= 15 GROUP BY 1;
        SELECT age, COUNT(*) FROM t WHERE balance < 5 GROUP BY 1""",
    ),
}
"""The same, written after the constants were chosen."""


IMPORTANCE = {"totals that count": {0: 100.0, 1: 10.0}}
"""Name → number of a statement → importance of its queries, where it is not 1."""

EXAMPLES = {
    "one-way 10×8×5×2×2": ((10, 8, 5, 2, 2), (1,)),
    "one-way 36×16×8": ((36, 16, 8), (1,)),
    "up to two-way 16×12×3": ((16, 12, 3), (0, 1, 2)),
}
"""Name → sizes and orders of the cross-tabs."""


def _domain(sizes: Mapping[str, int]) -> Domain:
    return Domain([Integers(name, 0, size - 1) for name, size in sizes.items()], table="t")


def _batch(name: str) -> Workload:
    if name in EXAMPLES:
        sizes, orders = EXAMPLES[name]
        return lrm.marginals(_domain({f"a{i}": size for i, size in enumerate(sizes)}), orders)
    attributes, text = (SQL | HELD_BACK)[name]
    domain, importance = _domain(attributes), IMPORTANCE.get(name, {})
    return lrm.stack(
        [
            lrm.with_importance(
                lrm.sql(statement.replace("(*)", f"(*) AS q{number}"), domain),
                importance.get(number, 1.0),
            )
            for number, statement in enumerate(text.split(";"))
            if statement
        ]
    )


TABLES: Mapping[str, Callable[[], Workload]] = {
    name: partial(_batch, name) for name in (*SQL, *EXAMPLES, *HELD_BACK)
}
"""Name → batch, built when it is its turn."""


def draw_table(rng: np.random.Generator, largest: int) -> Workload:
    """A few statements over a random table: groups of one or two attributes, some with a WHERE."""
    count = int(rng.integers(2, 5))
    sizes = {
        f"a{i}": int(rng.integers(2, max(3, largest // 2 ** (i + 2)) + 1)) for i in range(count)
    }
    domain, statements = _domain(sizes), []
    for number in range(int(rng.integers(2, 6))):
        by = rng.choice(list(sizes), size=int(rng.integers(1, 3)), replace=False).tolist()
        tested = str(rng.choice(list(sizes)))
        where = f" WHERE {tested} >= {rng.integers(sizes[tested])}" if rng.random() < 0.5 else ""
        columns = ", ".join(by)
        # The text is compiled and never run.
        statements.append(
            f"SELECT {columns}, COUNT(*) AS q{number} FROM t{where} GROUP BY {columns}"  # noqa: S608
        )
    return lrm.sql(";".join(statements), domain)
