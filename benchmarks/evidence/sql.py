"""The SQL compiler: which share of analysts' statements is answered, and how fast it compiles.

Run with ``python -m benchmarks sql``. ``share`` compiles the statements in ``tests/sql/analyst``
(``--compare`` also checks each answer against DuckDB's on the same rows) and lists those that are
refused, with their codes; ``speed`` times batches of many statements and a change of one statement.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

from lrm.domain import Categories, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import sql
from lrm.queries.sql.compile import Memory, outcomes
from lrm.queries.sql.source import split

STATES = [f"S{number:02d}" for number in range(20)]
TESTS = Path(__file__).parents[2] / "tests" / "support"


def text(queries: int, seed: int, ages: int, days: int) -> str:
    """Write a batch of ranges, sets and weighted sums over three attributes."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    lines = []
    for _ in range(queries):
        low, first = rng.randrange(ages), rng.randrange(days)
        states = ", ".join(f"'{state}'" for state in rng.sample(STATES, 3))
        where = f"age BETWEEN {low} AND {low + ages // 8} AND day >= {first}"
        if rng.random() < 0.3:
            answer = f"SUM(CASE WHEN state IN ({states}) THEN 2 ELSE -1 END)"
        else:
            answer, where = "COUNT(*)", f"{where} AND (state IN ({states}) OR day < {first // 2})"
        lines.append(f"SELECT {answer} FROM t WHERE {where};")  # noqa: S608 - never executed
    return "\n".join(lines)


def _domain(ages: int, days: int) -> Domain:
    attributes = [Categories("state", STATES), Integers("age", 0, ages - 1)]
    return Domain([*attributes, Integers("day", 0, days - 1)], "t")


def speed() -> None:
    """Print processor seconds, answers and peak memory of each case."""
    sql("SELECT COUNT(*) FROM t", Domain([Integers("age", 0, 1)]))  # imports sqlglot
    for queries, ages, days in ((500, 20, 20), (1000, 200, 250)):
        domain = _domain(ages, days)
        batch = text(queries, 0, ages, days)
        used = time.process_time()
        compiled = sql(batch, domain)
        used = time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(
            f"{queries} statements over {domain.size:,} cells: {used:.2f} s of processor time, "
            f"{compiled.shape[0]:,} answers, peak memory {peak:.0f} MB\n"
        )
    domain = _domain(20, 20)
    lines = text(25, 1, 20, 20).splitlines()
    memory = Memory()
    outcomes(split("\n".join(lines)), domain, memory)
    times = []
    for number, other in enumerate(text(25, 2, 20, 20).splitlines()):
        changed = [*lines[:number], other, *lines[number + 1 :]]
        used = time.process_time()
        outcomes(split("\n".join(changed)), domain, memory)
        times.append(time.process_time() - used)
    sys.stdout.write(
        f"one statement of 25 changed: {sorted(times)[12]:.3f} s of processor time in the median, "
        f"{max(times):.3f} s at most\n"
    )


def share(only: str, *, compare: bool) -> None:
    """Print the share of statements that is answered by file, and each refusal with its code."""
    sys.path.insert(0, str(TESTS))
    import analyst_tables

    warnings.simplefilter("ignore")
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    tables: dict[str, object] = {}
    for name, source in analyst_tables.FILES_OF.items():
        if only and only not in name:
            continue
        if source not in tables:
            small = {"flights": {"every": 16}}.get(source, {})
            tables[source] = getattr(analyst_tables, source)(**small)
        table = tables[source]
        counts = totals[name]
        for one in analyst_tables.statements(name):
            counts[0] += 1
            try:
                sql(one.text, table.domain)
                counts[1] += 1
                if compare:
                    table.compare(one.text, one.duckdb)
            except SqlError as error:
                said = f"{error.code}: {error.sentence}"
                sys.stdout.write(f"{name}: {_short(one.text)}\n    {said}\n")
            except Exception as error:  # noqa: BLE001 - any failure is a difference
                counts[2] += 1
                reason = f"{type(error).__name__}: {str(error)[:300]}"
                sys.stdout.write(f"{name}: {_short(one.text)}\n    DIFFERS {reason}\n")
    _print_totals(totals, compare=compare)


def _print_totals(totals: dict[str, list[int]], *, compare: bool) -> None:
    for name, (every, answered, wrong) in totals.items():
        differs = f", {wrong} differ from DuckDB" if compare else ""
        sys.stdout.write(
            f"{name:15} {answered:4} of {every:4} answered ({answered / every:.1%}){differs}\n"
        )
    groups = {
        "flights": ("flights", "flights_more"),
        "people, stays": ("people", "people_more", "stays"),
        "dialects": ("hospital", "hr", "shop", "survey"),
    }
    for title, names in groups.items():
        own = [totals[name] for name in names if name in totals]
        every, answered = (sum(one[k] for one in own) for k in (0, 1))
        if every:
            sys.stdout.write(f"{title}: {answered} of {every} ({answered / every:.1%})\n")


def _short(statement: str) -> str:
    one_line = " ".join(statement.split())
    return one_line if len(one_line) <= 160 else f"{one_line[:160]}…"


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sql", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["share", "speed"], help="both by default")
    parser.add_argument("--only", default="", help="files whose name contains this text")
    parser.add_argument("--compare", action="store_true", help="compare every answer with DuckDB")
    chosen = parser.parse_args()
    if chosen.what != "share":
        speed()
    if chosen.what != "speed":
        share(chosen.only, compare=chosen.compare)


if __name__ == "__main__":
    main()
