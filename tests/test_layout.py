"""The house keeps its shape: imports go one way."""

import ast
from pathlib import Path

import lrm
from import_graph import cycle, import_graph, package_graph

SOURCE = Path(__file__).parent.parent / "src" / "lrm"

ORDER = [
    "errors",
    "clock",
    "privacy",
    "spelling",
    "rendering",
    "files",
    "domain",
    "maps",
    "workload",
    "batches",
    "exact",
    "solvers",
    "strategies",
    "accuracy",
    "derived",
    "plans",
    "ledger",
    "tables",
    "releases",
    "views",
    "workbench",
    "cli",
]
"""Each line imports only lines above it (and its own folder)."""


def _module(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    """First-level lrm modules that a file imports, type-checking imports included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lrm"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lrm.")}
    return found


def test_every_module_has_its_place():
    modules = {_module(path) for path in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert modules <= set(ORDER)


def test_imports_go_one_way():
    for path in SOURCE.rglob("*.py"):
        module = _module(path)
        if module in {"__init__", "__main__"}:
            continue
        allowed = set(ORDER[: ORDER.index(module) + 1])
        wrong = _imports(path) - allowed
        assert not wrong, f"{path.name} imports {sorted(wrong)}, which stand below it"


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
