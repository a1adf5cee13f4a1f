"""How long the workbench takes to answer: the start, a changed question, the slider; and memory.

Processor seconds of this process, which calls what the server calls for each request. The census
batch asks for the person tables of Summary File 1 of the 2010 census, in SQL.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lrm.workbench.actions import Actions
from lrm.workbench.params import Params

FLAT_DOMAIN = """\
lrm-domain: 1
table: visits
unit: row
attributes:
  - {{name: age, kind: integers, low: 0, high: 99, null: drop, outside: drop}}
  - {{name: state, kind: categories, values: [{states}], null: drop, outside: drop}}
  - {{name: sex, kind: categories, values: [a, b, c, d], null: drop, outside: drop}}
""".format(states=", ".join(f"s{i}" for i in range(20)))

CENSUS_DOMAIN = """\
lrm-domain: 1
table: persons
unit: row
attributes:
  - {{name: sex, kind: categories, values: [f, m], null: drop, outside: drop}}
  - {{name: hispanic, kind: categories, values: ["yes", "no"], null: drop, outside: drop}}
  - {{name: race, kind: categories, values: [{races}], null: drop, outside: drop}}
  - {{name: age, kind: integers, low: 0, high: 114, null: drop, outside: drop}}
""".format(races=", ".join(f"'{i:06b}'" for i in range(64)))

STARTS = (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)


def flat_questions() -> str:
    """500 counts over 8,000 cells."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(500):
        low, high = sorted(rng.integers(0, 100, 2).tolist())
        states = ", ".join(f"'s{j}'" for j in rng.choice(20, 3, replace=False))
        lines.append(
            f"SELECT COUNT(*) AS n{i} FROM visits WHERE age BETWEEN {low} AND {high} "  # noqa: S608
            f"AND state IN ({states}) AND sex <> '{'abcd'[i % 4]}';"
        )
    return "\n".join(lines)


def census_questions() -> str:
    """The person tables: races and origins, of all persons and of adults; sex by age."""
    count = "LENGTH(REPLACE(race, '0', ''))"
    major = f"IF({count} = 1, race, 'other')"
    ages = " ".join(f"WHEN age < {start} THEN {start}" for start in STARTS)
    group = f"CASE {ages} ELSE 115 END"
    asked = []
    for where in ("", " WHERE age >= 18"):
        asked += [
            ("", "", where),
            (f"{major} AS major", "", where),
            ("hispanic", "", where),
            (f"hispanic, {major} AS major", "", where),
            ("race", "", where),
            (f"{count} AS races", "", where),
        ]
    for age in (f"{group} AS band", "age"):
        asked += [
            (f"sex, {age}", "", ""),
            (f"sex, {major} AS major, {age}", "", ""),
            (f"sex, {age}", "", " WHERE hispanic = 'yes'"),
            (f"sex, {age}", "", " WHERE hispanic = 'no' AND race = '100000'"),
        ]
    return "\n".join(
        f"SELECT {keys + ', ' if keys else ''}COUNT(*) AS p{i} FROM persons{where}"  # noqa: S608
        f"{' GROUP BY ALL' if keys else ''};"
        for i, (keys, _, where) in enumerate(asked)
    )


BATCHES = {
    "500 queries over 8,000 cells": (FLAT_DOMAIN, flat_questions, ("<> 'a'", "<> 'b'")),
    "the census, by products": (CENSUS_DOMAIN, census_questions, ("age >= 18", "age >= 21")),
}
"""By name: the domain, the questions, and a change of one of them."""


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what was returned."""
    began = time.process_time()
    found = action()
    return time.process_time() - began, found


def measure(name: str) -> None:
    """Print the figures of one batch."""
    domain, batch, change = BATCHES[name]
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        measure_in(Path(place), name, domain, batch(), batch().replace(*change, 1))


def measure_in(folder: Path, name: str, domain: str, batch: str, changed: str) -> None:
    """Print the figures of one batch in a folder."""
    bench = Actions(folder, "budget.sqlite")
    bench.warm_up()
    names = {"domain": "domain.yaml", "batch": "questions.sql"}
    (folder / "domain.yaml").write_text(domain)
    (folder / "questions.sql").write_text(batch)

    def compiled(text: str, declared: str = domain) -> list[float]:
        seconds = []
        while True:
            params = Params({**names, "domain_text": declared, "batch_text": text})
            spent, found = timed(lambda params=params: bench.call("compile", params))  # type: ignore[misc]
            seconds.append(spent)
            if not found["pending"]:
                if found["batch"]["problems"]:
                    raise SystemExit(found["batch"]["problems"])
                answers = found["batch"]["answers"], found["batch"]["statement_count"]
                print(f"  {answers[0]:,} answers in {answers[1]:,} statements", flush=True)
                return seconds

    print(name)
    first = compiled(batch)
    print(f"  the first time: {len(first)} answers, the longest {max(first):.3f} CPU s")
    print(f"  a question changed: {max(compiled(changed)):.3f} CPU s")
    again = compiled(batch, domain.replace("null: drop", "null: cell", 1))
    print(f"  the domain changed: {len(again)} answers, the longest {max(again):.3f} CPU s")
    bench.call("plan", Params({**names, "noise": "pure", "effort": "quick"}))
    while not (job := bench.planner.shown or {})["plans"]:
        if job["state"] != "running":
            raise SystemExit(job)
        time.sleep(0.2)
    bench.planner.close()
    params = Params({**names, "domain_text": domain, "batch_text": batch})
    plan = bench.call("compile", params)["plans"]["pure"]
    spent, _ = timed(lambda: bench.call("errors", Params({"plan": plan, "epsilon": "0.1"})))
    print(f"  errors of a new plan, with reading its file: {spent:.2f} CPU s")
    slides = [
        timed(lambda e=e: bench.call("errors", Params({"plan": plan, "epsilon": e})))[0]  # type: ignore[misc]
        for e in ("0.11", "0.12", "0.15", "0.2", "0.5", "1")
    ]
    print(f"  the slider: {max(slides):.3f} CPU s, the longest of {len(slides)}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  memory of the server, at most: {peak:.0f} MiB")
    search = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  memory of the search, at most: {search:.0f} MiB", flush=True)


def start(folder: Path) -> None:
    """Print how long it takes until the page is served."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "lrm", "workbench", ".", "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    lines = iter(process.stdout.readline, "") if process.stdout else iter(())
    address = next(line.strip() for line in lines if "http" in line)
    with contextlib.closing(urllib.request.urlopen(address)) as page:  # noqa: S310 - our own
        page.read()
    passed = time.perf_counter() - began
    fields = (
        Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    )
    spent = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    print(f"start until the page is served: {spent:.2f} CPU s, {passed:.2f} s of wall clock")
    process.terminate()
    process.communicate()


def main() -> None:
    """Measure, and print."""
    argparse.ArgumentParser("python -m benchmarks workbench", description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as place:
        start(Path(place))
    for name in BATCHES:
        # Each in a process of its own: a peak of memory is that of a whole process.
        call = f"from benchmarks.evidence.workbench import measure; measure({name!r})"
        subprocess.run([sys.executable, "-c", call], check=True)


if __name__ == "__main__":
    main()
