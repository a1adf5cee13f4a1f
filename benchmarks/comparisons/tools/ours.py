"""The batch by ``lrm``: the command plans it once, then it is released several times."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import lrm
from benchmarks.comparisons.tools.batch import STATEMENTS, VALUES, Floats, domain_text, sql_text


def plan(folder: Path, objective: str, seconds: int, *, reuse: bool = False) -> lrm.Plan:
    """Plan the batch within ``seconds``, or with ``reuse`` load the plan of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    kept, queries, domain = (
        folder / f"{objective}.lrm",
        folder / "batch.sql",
        folder / "domain.yaml",
    )
    if reuse and kept.exists() and queries.read_text(encoding="utf-8") == sql_text():
        with suppress(lrm.LrmError):  # a plan of another version is made again
            return lrm.load_plan(kept)
    queries.write_text(sql_text(), encoding="utf-8")
    domain.write_text(domain_text(), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "lrm"), "plan", str(queries)]
    command += ["--domain", str(domain), "--objective", objective, "-o", str(kept), "--force"]
    start = time.perf_counter()
    subprocess.run([*command, "--time-limit", str(seconds)], check=True)
    print(f"planned in {time.perf_counter() - start:.0f} s")
    return lrm.load_plan(kept)


def releases(
    plan: lrm.Plan, table: Path, epsilon: float, runs: int, truth: dict[str, Floats]
) -> list[dict[str, Floats]]:
    """Answers of ``runs`` releases, each of the whole ε."""
    domain = plan.workload.domain
    if domain is None:
        raise ValueError("the plan has no domain")
    with table.open(encoding="utf-8", newline="") as file:
        numbers = {column for column, values in VALUES.items() if isinstance(values[0], int)}
        counts = domain.count(
            {column: int(value) if column in numbers else value for column, value in row.items()}
            for row in csv.DictReader(file)
        )
    exact = by_statement(plan.workload.queries.apply(counts.astype(float)))
    if any((exact[name] != truth[name]).any() for name in truth):
        raise ValueError("the plan's queries are not those of the batch")
    return [by_statement(lrm.release(plan, counts, epsilon=epsilon).answers) for _ in range(runs)]


def by_statement(answers: Floats) -> dict[str, Floats]:
    """Cut the answers of the batch into its statements."""
    found, start = {}, 0
    for statement in STATEMENTS:
        found[statement.name] = answers[start : start + statement.answers]
        start += statement.answers
    return found
