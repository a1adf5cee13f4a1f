"""Mutants of the privacy-critical code: ``python -m benchmarks mutants --count 60 --seed 0``.

Each mutant changes one operator, comparison, constant or condition of a module in ``lrm.privacy``
or ``lrm.ledger``, in a copy of the package, and runs that module's tests until the first failure.
A mutant that passes them all is printed with its line: either a test is missing, or the change
has no effect that can be observed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["main", "mutants"]

TESTS = {
    "privacy/amounts.py": ["privacy/test_amounts.py", "privacy/test_budget.py"],
    "privacy/budget.py": ["privacy/test_budget.py", "planning/test_gaussian.py"],
    "privacy/laws.py": ["privacy/test_laws.py", "releases/test_stated_errors.py"],
    "privacy/mechanism.py": [
        "releases/test_releases.py",
        "planning/test_gaussian.py",
        "forged/test_edited_releases.py",
        "shaped/test_shaped_plans.py",
    ],
    "privacy/noise.py": [
        "releases/test_releases.py",
        "planning/test_gaussian.py",
        "forged/test_edited_releases.py",
    ],
    "privacy/gaussian_profile.py": ["privacy/test_gaussian_profile.py"],
    "privacy/shaped.py": ["shaped/test_shaped_plans.py"],
    **{
        f"privacy/bodies/{name}.py": ["shaped/test_bodies.py", "shaped/test_shaped_plans.py"]
        for name in ("base", "drawing", "facets", "sums", "tables")
    },
    **{
        f"privacy/bodies/{name}.py": ["shaped/test_split_hulls.py", "shaped/test_bodies.py"]
        for name in ("gauges", "sampling", "split")
    },
    "privacy/bodies/cube.py": ["shaped/test_bodies.py", "shaped/test_replaced.py"],
    "privacy/bodies/patterns.py": ["shaped/test_pattern_noise.py"],
    "privacy/unit.py": ["privacy/test_unit.py", "ledger/test_units.py"],
    "ledger/core.py": ["ledger/test_ledger.py", "ledger/test_units.py"],
    "ledger/entries.py": ["ledger/test_ledger.py", "ledger/test_tampering.py"],
    "ledger/sqlite.py": ["ledger/test_ledger.py", "ledger/test_failures.py"],
    "ledger/place.py": ["ledger/test_second_path.py", "ledger/test_ledger.py"],
    "ledger/postgres.py": ["ledger/test_ledger.py", "ledger/test_failures.py"],
    "ledger/store.py": ["ledger/test_ledger.py"],
}
"""Module → the tests that are run against its mutants, quick ones first."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


def _changes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Change one node at a time in place: its line and what was changed; undone afterwards."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            before = node.ops[0]
            node.ops[0] = COMPARISONS[type(before)]()
            yield node.lineno, f"{type(before).__name__} → {type(node.ops[0]).__name__}"
            node.ops[0] = before
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
                continue
            operator = node.op
            node.op = OPERATORS[type(operator)]()
            yield node.lineno, f"{type(operator).__name__} → {type(node.op).__name__}"
            node.op = operator
        elif isinstance(node, ast.BoolOp):
            both = node.op
            node.op = ast.And() if isinstance(both, ast.Or) else ast.Or()
            yield node.lineno, "and ↔ or"
            node.op = both
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            number = node.value
            node.value = number + 1
            yield node.lineno, f"{number} → {number + 1}"
            node.value = number
        elif isinstance(node, ast.If):
            test = node.test
            node.test = ast.Constant(value=False)
            yield node.lineno, f"if {ast.unparse(test)[:60]} → if False"
            node.test = test


def mutants(text: str) -> Iterator[tuple[int, str, str]]:
    r"""Line, description and source of every mutant of a module.

    Examples
    --------
    >>> [(line, what) for line, what, _ in mutants("def f(x):\n    return x + 1 < 2")]
    [(2, 'Lt → LtE'), (2, 'Add → Sub'), (2, '2 → 3'), (2, '1 → 2')]
    """
    tree = ast.parse(text)
    for line, what in _changes(tree):
        yield line, what, ast.unparse(ast.fix_missing_locations(tree))


def _survives(folder: Path, tests: list[str], timeout: float) -> bool:
    """Whether all tests pass with the package of a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    path = os.pathsep.join([str(folder), "tests/support", "tests", "."])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    options = {"capture_output": True, "env": environment, "timeout": timeout}
    try:
        done = subprocess.run([*command, *tests], check=False, **options)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        return False
    return bool(done.returncode == 0)


def main() -> None:
    """Draw mutants, test them, print the survivors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modules whose name contains this text")
    parser.add_argument(
        "--timeout", type=float, default=600.0, help="seconds until one counts as found"
    )
    options = parser.parse_args()
    source = Path("src/lrm")
    every = [
        (name, *mutant)
        for name in TESTS
        if options.only in name
        for mutant in mutants((source / name).read_text(encoding="utf-8"))
    ]
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))  # noqa: S311
    print(f"{len(drawn)} of {len(every)} mutants")
    alive, begin = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(source, folder / "lrm")
        for name, line, what, text in sorted(drawn):
            original = (source / name).read_text(encoding="utf-8")
            (folder / "lrm" / name).write_text(text, encoding="utf-8")
            tests = [f"tests/{test}" for test in TESTS[name]]
            survived = _survives(folder, tests, options.timeout)
            (folder / "lrm" / name).write_text(original, encoding="utf-8")
            if survived:
                alive += 1
                shown = original.splitlines()[line - 1].strip()
                print(f"survived: {name}:{line}: {what}: {shown}", flush=True)
    print(f"{len(drawn) - alive} of {len(drawn)} found, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
