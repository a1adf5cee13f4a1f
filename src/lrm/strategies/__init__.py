"""Workload to strategy: every mechanism behind one interface.

A mechanism is a function ``(problem, search, **options) -> Strategy``; a new one is a
function in a file here and a line in ``MECHANISMS``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from lrm.errors import UsageError
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["MECHANISMS", "RIVALS", "Problem", "Search", "Strategy", "build_strategy"]

MECHANISMS: Mapping[str, str] = {
    "best": "best:best",
    "lowrank": "lowrank:lowrank",
    "noise-on-data": "naive:noise_on_data",
    "noise-on-results": "naive:noise_on_results",
    "wavelet": "trees:wavelet",
    "hierarchical": "trees:hierarchical",
    "matrix": "matrix:matrix",
}
"""Name on the command line → module and function."""

RIVALS = tuple(name for name in MECHANISMS if name != "best")


def build_strategy(
    name: str, problem: Problem, search: Search, options: Mapping[str, Any]
) -> Strategy:
    """Run the mechanism called ``name``."""
    if name not in MECHANISMS:
        raise UsageError(f"no mechanism is called {name!r}; there are {', '.join(MECHANISMS)}")
    module, function = MECHANISMS[name].split(":")
    mechanism: Callable[..., Strategy] = getattr(
        import_module(f"lrm.strategies.{module}"), function
    )
    known = list(inspect.signature(mechanism).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise UsageError(f"mechanism {name!r} has no option {unknown[0]!r}; {takes}")
    return mechanism(problem, search, **options)
