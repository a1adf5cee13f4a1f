"""How large the code is, and how much of it a reader must open to follow the README's plan.

``python -m benchmarks shape`` prints, for the planning packages: files and lines; constants of
modules; comparisons of a noise with its name, and tests for a body; what tests take from private
names; and what ``lrm.plan`` of the README's batch enters: files, functions, how often strategies
are rounded to integers, and how many plans are constructed. Comments and strings
do not count.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import lrm
from lrm.cli.demo_table import DOMAIN, QUESTIONS
from lrm.domain.file import parse_domain

__all__ = ["Walk", "comparisons_of_noise", "constants", "main", "walk"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "lrm"
PLANNING = SOURCE / "planning"

NOISES = {"laplace", "gaussian", "shaped", "pure"}

ROUNDERS = (
    "lrm.planning.design.products.rounding.round_products",
    "lrm.planning.design.rounding.quantise",
)
"""Functions that round a strategy to integers."""


@dataclass(frozen=True)
class Walk:
    """What a call enters of ``lrm``: names of functions in the order of their first call."""

    files: Mapping[str, str]
    calls: Counter[str]

    @property
    def functions(self) -> list[str]:
        """Functions of the planning packages."""
        return [name for name in self.calls if name.startswith("lrm.planning.")]

    @property
    def modules(self) -> set[str]:
        """Files of the planning packages."""
        return {self.files[name] for name in self.functions}

    @property
    def roundings(self) -> int:
        """How often a strategy is rounded to integers."""
        return sum(self.calls[name] for name in ROUNDERS)

    @property
    def plans(self) -> int:
        """How many plans are constructed."""
        return self.calls["lrm.planning.plan.core.Plan.__post_init__"]


def walk(call: Callable[[], object]) -> Walk:
    """Run a call and note which functions of ``lrm`` it enters."""
    files: dict[str, str] = {}
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # What runs on import is no function of a file: bodies of modules and classes, and methods
        # that dataclasses generate.
        written = code.co_filename.startswith(str(SOURCE)) and code.co_flags & inspect.CO_OPTIMIZED
        if event == "call" and written:
            module = frame.f_globals["__name__"]
            files[f"{module}.{code.co_qualname}"] = module
            calls[f"{module}.{code.co_qualname}"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(files, calls)


def readme_plan() -> lrm.Plan:
    """The plan of the README: its batch, and no option."""
    return lrm.plan(QUESTIONS, domain=parse_domain(DOMAIN))


def _trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def comparisons_of_noise(folder: Path = SOURCE) -> list[str]:
    """Where a value is compared with the name of a noise, as ``file:line``."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in _trees(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(
            isinstance(part, ast.Constant) and part.value in NOISES
            for part in (node.left, *node.comparators)
        )
    ]


def body_checks(folder: Path = SOURCE) -> list[str]:
    """Where a body is compared with None, as ``file:line``."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in _trees(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and ast.unparse(node.left).rpartition(".")[2] == "body"
    ]


def constants(folder: Path = PLANNING) -> list[str]:
    """Names in capitals that modules define, as ``file:NAME``."""
    names = []
    for path, tree in _trees(folder):
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            listed = [part for t in targets for part in getattr(t, "elts", [t])]
            names += [
                f"{path.relative_to(folder)}:{name.id}"
                for name in listed
                if isinstance(name, ast.Name) and name.id.isupper()
            ]
    return names


def private_names(folder: Path = ROOT / "tests") -> Counter[str]:
    """How often tests import a private name, and how often they replace an attribute."""
    found = Counter[str]()
    for _, tree in _trees(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("lrm"):
                found["private imports"] += sum(a.name.startswith("_") for a in node.names)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "monkeypatch.setattr":
                found["monkeypatch.setattr"] += 1
    return found


def _size(folder: Path) -> tuple[int, int]:
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    return len(texts), sum(text.count("\n") for text in texts)


def main() -> None:
    """Print all of it."""
    print(f"{'planning':30}{'files':>8}{'lines':>8}")
    for folder in sorted(path for path in PLANNING.iterdir() if path.is_dir()):
        if folder.name != "__pycache__":
            print("{:30}{:8}{:8,}".format(folder.name, *_size(folder)))
    print("{:30}{:8}{:8,}".format("together", *_size(PLANNING)))
    entered = walk(readme_plan)
    figures = {
        "constants": len(constants()),
        "comparisons with names of noises (src/lrm)": len(comparisons_of_noise()),
        "of these in planning": len(comparisons_of_noise(PLANNING)),
        "tests for a body (src/lrm)": len(body_checks()),
        **{f"{name} (tests)": count for name, count in private_names().items()},
        "files that the README's plan enters": len(entered.modules),
        "functions that it enters": len(entered.functions),
        "strategies that it rounds": entered.roundings,
        "plans that it constructs": entered.plans,
    }
    for name, figure in figures.items():
        print(f"{name:46}{figure:6,}")


if __name__ == "__main__":
    main()
