"""The import graph of ``src/lrm``: which module imports which, and pictures of it.

``import_graph.py`` draws the graph of packages and the graph of modules into ``docs/img``.

Every import that can run is an edge, wherever it stands: at the top of a module, inside a function
(a lazy import), or as a string for ``import_module`` (commands, engines). Imports under
``if TYPE_CHECKING`` never run and are no edges, nor are those that lead from a record to the view
that draws it (``ignore_imports`` in ``pyproject.toml``). ``from package import name`` leads to
``package.name`` if that is a module, and otherwise to the package's ``__init__``. That Python runs
the ``__init__`` of every package on the way is no edge either: otherwise a package could not
re-export what its modules define.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SOURCE = ROOT / "src"
PICTURES = ROOT / "docs" / "img"
Graph = Mapping[str, set[str]]


def _contract() -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract: dict[str, Any] = settings["tool"]["importlinter"]["contracts"][0]
    return contract


def packages() -> list[str]:
    """The parts of the package, each importing only parts before it."""
    return [layer.removeprefix("lrm.") for layer in reversed(_contract()["layers"])]


def excepted() -> set[tuple[str, str]]:
    """The lazy imports that lead up: from a record to the view that draws it."""
    lines = [line.split(" -> ") for line in _contract()["ignore_imports"]]
    return {*((importer, imported) for importer, imported in lines), *_MADE_AGAIN}


_MADE_AGAIN = {
    ("lrm.planning.plan.core", "lrm.planning.plan.comparison"),
    ("lrm.planning.plan.core", "lrm.planning.plan.file"),
    ("lrm.releases.core", "lrm.releases.file"),
}
"""Methods that make other records of their own kind (``plan.compare()``, a copy from a pickle):
imported at the time of the call, too."""


def modules() -> dict[str, Path]:
    """Return the name and the file of every module."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    known, lazy = modules(), excepted()
    return {
        name: {
            other
            for other in _imports(ast.parse(path.read_text(encoding="utf-8")), known)
            if other != name and (name, other) not in lazy
        }
        for name, path in known.items()
    }


def _imports(tree: ast.AST, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                target = inner if inner in known else node.module
                if target in known:
                    yield target
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.fullmatch(r"(lrm(?:\.\w+)+)(?::\w+)?", node.value)
            if named and named[1] in known:
                yield named[1]
        yield from _imports(node, known)


def cycle(graph: Graph) -> list[str]:
    """Return the modules of one cycle in the order of their imports, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def package_of(module: str) -> str:
    """Return the part of ``src/lrm`` that a module is in: a folder or a single file."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "lrm"


def package_graph(graph: Graph) -> dict[str, Counter[str]]:
    """Return how many imports lead from each package to each other one."""
    packages: dict[str, Counter[str]] = {package_of(module): Counter() for module in graph}
    for module, imported in graph.items():
        for other in imported:
            if package_of(other) != package_of(module):
                packages[package_of(module)][package_of(other)] += 1
    return packages


def ranks(graph: Graph) -> dict[str, int]:
    """Return the length of the longest chain of imports below each node: edges lead down."""
    rank: dict[str, int] = {}
    for node in TopologicalSorter(graph).static_order():
        rank[node] = max((rank[other] + 1 for other in graph[node]), default=0)
    return rank


def reduced(graph: Graph) -> dict[str, set[str]]:
    """Return the edges that do not also follow through another node (transitive reduction)."""
    reached: dict[str, set[str]] = {}
    for node in sorted(graph, key=ranks(graph).__getitem__):
        reached[node] = set(graph[node]).union(*(reached[other] for other in graph[node]))
    return {
        node: {a for a in others if not any(a in reached[b] for b in others)}
        for node, others in graph.items()
    }


def draw_packages(file: Path, graph: Graph) -> None:
    """Draw packages in rows by rank; every import leads down, and bold ones imply the thin ones."""
    rank, bold = ranks(graph), reduced(graph)
    rows: dict[int, list[str]] = {}
    for node in sorted(graph):
        rows.setdefault(rank[node], []).append(node)
    places = {
        node: (i - (len(row) - 1) / 2 + 0.25 * (height % 2), height)
        for height, row in rows.items()
        for i, node in enumerate(row)
    }
    with _figure(file, (9, 10)) as axes:
        for node, others in graph.items():
            for other in sorted(others):
                width = 1.6 if other in bold[node] else 0.4
                bend = f"arc3,rad={0.0 if other in bold[node] else 0.25}"
                style = {"arrowstyle": "-|>", "linewidth": width, "connectionstyle": bend}
                style |= {"color": "#4a5260", "alpha": 0.9 if width > 1 else 0.35}
                axes.annotate(
                    "",
                    places[other],
                    places[node],
                    arrowprops={**style, "shrinkA": 12, "shrinkB": 12},
                )
        for node, (x, y) in places.items():
            box = {"boxstyle": "round,pad=0.4", "facecolor": "#e8eef7", "edgecolor": "#2b5ea7"}
            axes.text(x, y, node, ha="center", va="center", fontsize=10, bbox=box)
        wide = max(abs(x) for x, _ in places.values()) + 0.6
        axes.set(xlim=(-wide, wide), ylim=(-0.6, max(rows) + 0.6))
        axes.axis("off")


def draw_modules(file: Path, graph: Graph) -> None:
    """Draw a dot for every import, modules in the order of packages: none is above the line."""
    packages = {name: set(others) for name, others in package_graph(graph).items()}
    height, own = ranks(packages), ranks(graph)
    order = sorted(
        graph, key=lambda name: (height[package_of(name)], package_of(name), own[name], name)
    )
    place = {name: i for i, name in enumerate(order)}
    dots = sorted((place[other], place[name]) for name in graph for other in graph[name])
    with _figure(file, (9, 9)) as axes:
        axes.plot([0, len(order)], [0, len(order)], color="#b00020", linewidth=0.6)
        axes.scatter(*zip(*dots, strict=True), s=2.5, color="#2b5ea7", linewidths=0)
        ends = [i for i, name in enumerate(order) if package_of(name) != package_of(order[i - 1])]
        for start, end in zip(ends, [*ends[1:], len(order)], strict=True):
            axes.axhline(start - 0.5, color="#d0d4dc", linewidth=0.4, zorder=0)
            axes.axvline(start - 0.5, color="#d0d4dc", linewidth=0.4, zorder=0)
            middle, name = (start + end) / 2, package_of(order[start])
            axes.text(-2, middle, name, ha="right", va="center", fontsize=7)
            axes.text(middle, len(order) + 2, name, ha="right", va="top", fontsize=7, rotation=45)
        axes.set(xlim=(-1, len(order)), ylim=(len(order), -1), xticks=[], yticks=[])
        axes.set_title(f"{len(order)} modules (rows) and the {len(dots)} imports of each other")


@contextmanager
def _figure(file: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Yield axes, and write them as an SVG file that is the same every time."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "lrm", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=size)
        yield axes
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
    text = file.read_text(encoding="utf-8")
    file.write_text("".join(f"{line.rstrip()}\n" for line in text.splitlines()), encoding="utf-8")


def main() -> None:
    """Draw both pictures."""
    # The façade imports everything; without it the order of the rest can be seen.
    graph = {
        name: others
        for name, others in sorted(import_graph().items())
        if package_of(name) not in {"lrm", "__main__"}
    }
    packages = {name: set(others) for name, others in package_graph(graph).items()}
    draw_packages(PICTURES / "packages.svg", {name: packages[name] for name in sorted(packages)})
    draw_modules(PICTURES / "modules.svg", graph)
    edges = sum(len(others) for others in graph.values())
    print(f"{len(packages)} packages, {len(graph)} modules, {edges} imports; drawn in docs/img")


if __name__ == "__main__":
    main()
