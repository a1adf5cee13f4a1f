"""Mutants of the privacy-critical code: ``python -m benchmarks mutants --each 15 --seed 0``.

Each mutant changes one operator, comparison, constant or condition of a module in ``lrm.privacy``
or ``lrm.ledger``, or leaves out one call, in a copy of the package, and runs that module's tests
until the first failure. A mutant that passes them all is printed with its line: either a test is
missing, or the change has no effect that can be observed. CONTRIBUTING.md has the last results.

Each mutant is tested in a fork of a process that has loaded and collected everything, where the
functions of the module get the code of the mutant: most take less than half a second.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import inspect
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import cache_from_source
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

__all__ = ["main", "mutants"]

TESTS = {
    "privacy/amounts.py": ["privacy/test_amounts.py"],
    "privacy/budget.py": ["privacy/test_budget.py"],
    "privacy/gaussian_profile.py": ["privacy/test_gaussian_profile.py"],
    "privacy/laws.py": ["privacy/test_laws.py"],
    "privacy/mechanism.py": ["privacy/test_mechanism.py"],
    "privacy/norms.py": ["privacy/test_mechanism.py", "exact/test_rounding.py"],
    "privacy/noise.py": ["privacy/test_noise.py"],
    "privacy/shaped.py": ["shaped/test_shaped_noise.py"],
    "privacy/periods.py": ["privacy/test_periods.py"],
    "privacy/discovery.py": ["privacy/test_discovery.py"],
    "privacy/unit.py": ["privacy/test_unit.py"],
    "privacy/bodies/base.py": ["shaped/test_bodies.py", "shaped/test_shaped_noise.py"],
    "privacy/bodies/cube.py": ["shaped/test_bodies.py", "shaped/test_replaced.py"],
    "privacy/bodies/drawing.py": ["shaped/test_bodies.py"],
    "privacy/bodies/facets.py": ["shaped/test_bodies.py"],
    "privacy/bodies/gauges.py": ["shaped/test_split_hulls.py"],
    "privacy/bodies/patterns.py": ["shaped/test_pattern_noise.py"],
    "privacy/bodies/sampling.py": ["shaped/test_split_hulls.py"],
    "privacy/bodies/shared.py": ["shaped/test_bodies.py"],
    "privacy/bodies/split.py": ["shaped/test_split_hulls.py"],
    "privacy/bodies/sums.py": ["shaped/test_bodies.py"],
    "privacy/bodies/tables.py": ["shaped/test_bodies.py"],
    "ledger/core.py": [
        "ledger/test_ledger.py",
        "ledger/test_exactness.py::test_a_sum_can_always_be_spelled_out",
    ],
    "ledger/entries.py": ["ledger/test_history.py", "ledger/test_tampering.py"],
    "ledger/place.py": ["ledger/test_second_path.py", "ledger/test_failures.py"],
    "ledger/postgres.py": ["ledger/test_ledger.py", "ledger/test_failures.py"],
    "ledger/silence.py": ["ledger/test_lost_connection.py"],
    "ledger/sqlite.py": [
        "ledger/test_ledger.py",
        "ledger/test_failures.py",
        "ledger/test_second_path.py",
    ],
    "ledger/store.py": ["ledger/test_history.py"],
}
"""Module → the tests that are run against its mutants, quick ones first."""

_QUICK = "not postgres and not race and not any_moment and not ctrl"

KEYWORDS = {
    "ledger/postgres.py": "postgres or server",
    "ledger/place.py": _QUICK,
    "ledger/sqlite.py": _QUICK,
    "privacy/bodies/base.py": "vertices or difference or columns or lattice or half",
    "privacy/bodies/cube.py": "cube or difference",
    "privacy/bodies/drawing.py": "drawing or below or order or intervals or digits or yes",
    "privacy/bodies/facets.py": "facet or vertices",
    "privacy/bodies/gauges.py": "gauges or norms or solutions or decisions",
    "privacy/bodies/sampling.py": "sampling or simulated or weights",
    "privacy/bodies/shared.py": "share",
    "privacy/bodies/split.py": "exact_way or refused or gamma or digits or distinct",
    "privacy/bodies/sums.py": "groups",
    "privacy/bodies/tables.py": "tables or table or yes or mixed or one-way or total or words",
}
"""What the names of these tests contain; all but those of PostgreSQL for other modules."""

PRELOADED = (
    "numpy scipy.linalg scipy.optimize scipy.sparse scipy.special scipy.stats opendp.prelude"
)
PRELOADED += " duckdb pyarrow sqlglot psycopg hypothesis pytest"
"""Packages that are loaded once for all mutants."""

OPTIONS = ["-c", "pyproject.toml", "--rootdir", ".", "-x", "-p", "no:cacheprovider"]
OPTIONS += ["-m", "not slow and not long", "-W", "ignore::pytest.PytestAssertRewriteWarning"]

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


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of errors and texts: a mutant of these changes a wording."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Raise | ast.JoinedStr):
            yield from _nodes(child)


def _changes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Change one node at a time in place: its line and what was changed; undone afterwards."""
    for node in _nodes(tree):
        if isinstance(node, ast.Compare):
            for place, before in enumerate(node.ops):
                node.ops[place] = COMPARISONS[type(before)]()
                yield node.lineno, f"{type(before).__name__} → {type(node.ops[place]).__name__}"
                node.ops[place] = before
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
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            node.value = ast.Constant(value=None)
            yield node.lineno, "call left out"
            node.value = call


Mutant = tuple[int, str, str]
"""The line, what is changed there, and the text of the module."""


def mutants(text: str) -> Iterator[Mutant]:
    r"""Line, description and source of every mutant of a module.

    Examples
    --------
    >>> [(line, what) for line, what, _ in mutants("def f(x):\n    g(x + 1 < 2)")]
    [(2, 'call left out'), (2, 'Lt → LtE'), (2, 'Add → Sub'), (2, '1 → 2'), (2, '2 → 3')]
    """
    tree = ast.parse(text)
    for line, what in _changes(tree):
        yield line, what, ast.unparse(ast.fix_missing_locations(tree))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions of a module and of its classes; inner functions are part of it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS:
                yield constant
            else:  # the body of a class
                yield from _codes(constant)


def _functions(owner: object) -> Iterator[FunctionType]:
    """The functions of a loaded module and of its classes, below properties and caches."""
    for member in vars(owner).values():
        if isinstance(member, type) and member.__module__ == getattr(owner, "__name__", None):
            yield from _functions(member)
        if isinstance(member, property):
            member = member.fget  # noqa: PLW2901
        for name in ("__func__", "func", "__wrapped__"):
            member = getattr(member, name, member)  # noqa: PLW2901
        if isinstance(member, FunctionType):
            yield member


class _Forks:
    """A pytest plugin: in place of one run of the tests, one for each mutant, in a fork."""

    def __init__(self, name: str, mutants: Sequence[Mutant], survivors: Path, seconds: int) -> None:
        self.module = "lrm." + name.removesuffix(".py").replace("/", ".")
        self.mutants, self.survivors, self.seconds = mutants, survivors, seconds

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests of each mutant; note the numbers of those that pass them all."""
        for number, (_, _, text) in enumerate(self.mutants):
            child = os.fork()
            if not child:
                _limit(self.seconds)
                self._replace(text)
                os._exit(_run(session))
            if os.waitpid(child, 0)[1] == 0:
                with self.survivors.open("a") as file:
                    file.write(f"{number} ")
        return True

    def _replace(self, text: str) -> None:
        """Give the functions of the module the code of a mutant."""
        module = sys.modules[self.module]
        codes = {code.co_qualname: code for code in _codes(compile(text, self.module, "exec"))}
        for function in _functions(module):
            if function.__module__ == self.module and function.__code__.co_qualname in codes:
                function.__code__ = codes[function.__code__.co_qualname]


def _limit(seconds: int) -> None:
    """End this process after so much time of a processor, or after ten times that."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(10 * seconds)


def _run(session: Any) -> int:
    """The number of failures of the tests of a session, which ends with the first."""
    for item, following in zip_longest(session.items, session.items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def _test(folder: Path, tests: Sequence[str], seconds: int, *plugins: object) -> bool:
    """Whether all tests pass with the package of a folder, in a child of this process."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    code = 1
    try:
        _limit(seconds)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        for name in [name for name in sys.modules if name.partition(".")[0] == "lrm"]:
            del sys.modules[name]
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # a mutant of the same second and size
        sys.dont_write_bytecode = True
        code = int(import_module("pytest").main([*OPTIONS, *tests], plugins=plugins))
    finally:
        os._exit(code)


def main() -> None:
    """Draw mutants, test them, print the survivors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mutants", description=__doc__)
    parser.add_argument("--each", type=int, default=15, help="mutants to draw of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modules whose name contains this text")
    parser.add_argument("--seconds", type=int, default=60, help="what does not end is found then")
    options = parser.parse_args()
    for name in PRELOADED.split():
        import_module(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree("src/lrm", folder / "lrm", ignore=ignored)
        compileall.compile_dir(folder, quiet=2)
        for name in TESTS:
            if options.only in name:
                _test_module(folder, name, options)


def _test_module(folder: Path, name: str, options: argparse.Namespace) -> None:
    """Mutants in functions replace the code of a loaded module; others need it loaded anew."""
    path, survivors = folder / "lrm" / name, folder / "survivors"
    text = path.read_text(encoding="utf-8")
    every = list(mutants(text))
    drawn = sorted(random.Random(options.seed).sample(every, min(options.each, len(every))))  # noqa: S311
    tests = [str(path), *(f"tests/{test}" for test in TESTS[name])]  # its own examples first
    tests += ["-k", KEYWORDS.get(name, "not postgres")]
    if name.endswith("postgres.py"):
        sys.path.append("tests/support")
        import_module("engines").postgres_url()  # one server for all children
    inner = [mutant for mutant in drawn if _inside(text, mutant[0])]
    survivors.write_text("")
    forks = _Forks(name, [(0, "", text), *inner], survivors, options.seconds)
    _test(folder, tests, options.seconds * len(drawn), forks)
    passed = [int(number) for number in survivors.read_text().split()]
    if 0 not in passed:
        sys.exit(f"the tests of {name} fail without a mutant: {' '.join(tests)}")
    alive = [inner[number - 1] for number in passed[1:]]
    Path(cache_from_source(str(path))).unlink()
    for mutant in drawn:
        if mutant not in inner:
            path.write_text(mutant[2], encoding="utf-8")
            alive += [mutant] if _test(folder, tests, options.seconds) else []
    path.write_text(text, encoding="utf-8")
    for line, what, _ in sorted(alive):
        print(f"survived: {name}:{line}: {what}: {text.splitlines()[line - 1].strip()}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    counts = f"{len(drawn) - len(alive)} of {len(drawn)} found, {len(every)} possible"
    print(f"{name}: {counts}; {seconds:.0f} CPU s so far", flush=True)


def _inside(text: str, line: int) -> bool:
    """Whether a line is in the body of a function."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return any(node.body[0].lineno <= line <= (node.end_lineno or 0) for node in functions)


if __name__ == "__main__":
    main()
