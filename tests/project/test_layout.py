"""The structure of the package: every part has its place, and imports have no cycles.

That packages import only packages below them is checked by ``lint-imports``, part of `make lint`.
"""

import ast
from pathlib import Path

import lrm
from import_graph import ROOT, cycle, import_graph, package_graph, packages

SOURCE = ROOT / "src" / "lrm"


def _module(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_module_has_its_place():
    modules = {_module(path) for path in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert modules == set(packages())


def test_modules_do_not_import_in_circles():
    """Lazy imports and modules named by strings count; imports for the type checker do not run."""
    graph = import_graph()
    assert not cycle(graph), " → ".join(cycle(graph))
    packages = {name: set(others) for name, others in package_graph(graph).items()}
    assert not cycle(packages), " → ".join(cycle(packages))


def test_a_circle_would_be_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert not cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_public_names_are_the_same_for_people_and_for_type_checkers():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    typed = {(a.name, n.module) for n in imports for a in n.names if a.asname is not None}
    assert typed == set(lrm._HOMES.items())
    for name in lrm.__all__:
        assert getattr(lrm, name) is not None


def test_only_the_mechanism_opens_true_counts():
    for path in SOURCE.rglob("*.py"):
        if path.name != "mechanism.py":
            assert "._open()" not in path.read_text(), f"{path} opens true counts"


def test_messages_do_not_name_an_index_where_the_name_may_be_of_others():
    """A missing package is named itself: ``lrm`` on an index may belong to someone else."""
    for path in SOURCE.rglob("*.py"):
        assert "pip install lrm" not in path.read_text().replace("'", ""), path


def test_no_source_is_ignored():
    """What ``.gitignore`` names is in no wheel either, even where git has it."""
    patterns = (ROOT / ".gitignore").read_text().split()
    folders = {name.strip("/") for name in patterns if not name.startswith("/")}
    ignored = [path for path in SOURCE.rglob("*.py") if folders & {*path.parent.parts}]
    assert not [path for path in ignored if path.parent.name != "__pycache__"]


def test_every_module_of_privacy_and_ledger_has_mutants():
    """A new module is not forgotten by the run that changes one operator at a time."""
    from benchmarks.gates.mutants import TESTS

    found = {
        str(path.relative_to(SOURCE))
        for part in ("privacy", "ledger")
        for path in (SOURCE / part).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert found == set(TESTS)
    for tests in TESTS.values():
        assert all((ROOT / "tests" / test.partition("::")[0]).exists() for test in tests)


def test_every_benchmark_has_a_name():
    """A file of a benchmark that can be run is a command, but for two that others start."""
    from benchmarks.__main__ import FOLDERS, MODULES

    parts = {"census", "jax_privacy_dense"}  # run by `products census` and `gaussian`
    folder = ROOT / "benchmarks"
    commands = {
        path.parent.name if path.name == "__main__.py" else path.stem
        for path in folder.rglob("*.py")
        if path.parent != folder and "drivers" not in path.parts
        if "\nif __name__ ==" in path.read_text(encoding="utf-8")
    }
    assert commands - parts == set(MODULES)
    assert {path.name for path in folder.iterdir() if (path / "__init__.py").is_file()} == {
        *FOLDERS,
        "batches",
    }
