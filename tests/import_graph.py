"""The import graph of ``src/lrm``: which module imports which, and pictures of it.

``import_graph.py`` draws the graph of packages and the graph of modules into ``docs/img``.

Every import that can run is an edge, wherever it stands: at the top of a module, inside a function
(a lazy import), or as a string for ``import_module`` (commands, engines). Imports under
``if TYPE_CHECKING`` never run and are no edges. ``from package import name`` leads to
``package.name`` if that is a module, and otherwise to the package's ``__init__``. That Python runs
the ``__init__`` of every package on the way is no edge either: otherwise a package could not
re-export what its modules define.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PICTURES = ROOT / "docs" / "img"
Graph = Mapping[str, set[str]]


def modules() -> dict[str, Path]:
    """Return the name and the file of every module."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    known = modules()
    return {
        name: set(_imports(ast.parse(path.read_text(encoding="utf-8")), known)) - {name}
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


def draw(file: Path, graph: Graph, groups: Mapping[str, str], *, labels: bool) -> None:
    """Draw nodes in rows by rank, each edge downwards, and write an SVG that does not change."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    colours = {
        group: plt.get_cmap("tab20")(i % 20) for i, group in enumerate(sorted(set(groups.values())))
    }
    places = _places(graph, groups)
    style = {"svg.hashsalt": "lrm", "font.size": 8, "svg.fonttype": "none"}
    with mpl.rc_context(style):
        figure, axes = plt.subplots(figsize=(12, 8) if labels else (12, 13))
        for node, imported in graph.items():
            for other in imported:
                _arrow(axes, places[node], places[other], colours[groups[node]])
        for node, (x, y) in places.items():
            _node(axes, x, y, node.rpartition(".")[2], colours[groups[node]], labels=labels)
        axes.axis("off")
        figure.tight_layout()
        figure.savefig(file, format="svg", metadata={"Date": None})
        plt.close(figure)
    text = file.read_text(encoding="utf-8")
    file.write_text("".join(f"{line.rstrip()}\n" for line in text.splitlines()), encoding="utf-8")


def _places(graph: Graph, groups: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    rank = ranks(graph)
    rows: dict[int, list[str]] = {}
    for node in sorted(graph, key=lambda name: (groups[name], name)):
        rows.setdefault(rank[node], []).append(node)
    return {
        node: ((i + 0.5) / len(row) + (0.02 if height % 2 else -0.02), float(height))
        for height, row in rows.items()
        for i, node in enumerate(row)
    }


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: Any) -> None:
    arrow = {"arrowstyle": "-", "color": colour, "alpha": 0.35, "linewidth": 0.6}
    axes.annotate("", xy=end, xytext=start, arrowprops=arrow)


def _node(axes: Any, x: float, y: float, name: str, colour: Any, *, labels: bool) -> None:
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": colour, "linewidth": 1.5}
    size, turn = (10, 0) if labels else (5, 22)
    if not labels:
        box["boxstyle"] = "round,pad=0.15"
        box["linewidth"] = 0.7
    axes.text(x, y, name, ha="center", va="center", fontsize=size, rotation=turn, bbox=box)


def main() -> None:
    """Draw both pictures."""
    graph = import_graph()
    packages = {name: set(others) for name, others in package_graph(graph).items()}
    # The façade imports everything; without it the order of the rest can be seen.
    rooms = {name: others for name, others in packages.items() if name not in {"lrm", "__main__"}}
    draw(PICTURES / "packages.svg", rooms, {name: name for name in rooms}, labels=True)
    inner = {
        name: others
        for name, others in graph.items()
        if package_of(name) not in {"lrm", "__main__"}
    }
    draw(PICTURES / "modules.svg", inner, {name: package_of(name) for name in inner}, labels=False)
    edges = sum(len(others) for others in graph.values())
    print(f"{len(rooms)} packages, {len(graph)} modules, {edges} imports; drawn in docs/img")


if __name__ == "__main__":
    main()
