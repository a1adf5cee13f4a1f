"""Time the SQL compiler: 500 queries over 8,000 cells, and 1,000 over a million.

Run with ``python -m benchmarks sql``; prints one line per case.
"""

from __future__ import annotations

import random
import resource
import sys
import time

from lrm.batches import sql
from lrm.domain import Categories, Domain, Integers

STATES = [f"S{number:02d}" for number in range(20)]


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


def main() -> None:
    """Print seconds, answers and peak memory of each case."""
    sql("SELECT COUNT(*) FROM t", Domain([Integers("age", 0, 1)]))  # imports sqlglot
    for queries, ages, days in ((500, 20, 20), (1000, 200, 250)):
        attributes = [Categories("state", STATES), Integers("age", 0, ages - 1)]
        domain = Domain([*attributes, Integers("day", 0, days - 1)], "t")
        batch = text(queries, 0, ages, days)
        start, used = time.perf_counter(), time.process_time()
        compiled = sql(batch, domain)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(
            f"sql_compile: {queries} queries over {domain.size:,} cells: {seconds:.2f} s "
            f"({used:.2f} s of processor), "
            f"{compiled.shape[0]:,} answers, peak memory {peak:.0f} MB\n"
        )


if __name__ == "__main__":
    main()
