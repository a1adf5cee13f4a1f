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
from lrm.strategies.base import Choice, Problem, ProductChoice, Search, Strategy

__all__ = [
    "FOR_PRODUCTS",
    "MECHANISMS",
    "Choice",
    "Problem",
    "ProductChoice",
    "Search",
    "Strategy",
    "build_strategy",
    "check_mechanism",
    "mechanism_for",
]

MECHANISMS: Mapping[str, str] = {
    "best": "best:best",
    "lowrank": "lowrank:lowrank",
    "noise-on-data": "baselines:noise_on_data",
    "noise-on-results": "baselines:noise_on_results",
    "wavelet": "baselines:wavelet",
    "hierarchical": "baselines:hierarchical",
    "matrix": "baselines:matrix",
}
"""Name on the command line → module and function."""

FOR_PRODUCTS: Mapping[str, str] = {"marginals": "products:marginals"}
"""Mechanisms for batches over several attributes alone."""


def check_mechanism(name: str) -> None:
    """Refuse a name that no mechanism has."""
    if name not in MECHANISMS and name not in FOR_PRODUCTS:
        known = ", ".join((*MECHANISMS, *FOR_PRODUCTS))
        raise UsageError(f"no mechanism is called {name!r}; there are {known}")


def build_strategy(
    name: str, problem: Problem, search: Search, options: Mapping[str, Any]
) -> Choice:
    """Run the mechanism called ``name``."""
    return mechanism_for(name, problem, options)(problem, search, **options)


def mechanism_for(name: str, problem: Problem, options: Mapping[str, Any]) -> Callable[..., Choice]:
    """The mechanism called ``name``; options that it does not have are refused."""
    check_mechanism(name)
    mechanism = _mechanism(name, listed=problem.is_listed)
    known = list(inspect.signature(mechanism).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise UsageError(f"mechanism {name!r} has no option {unknown[0]!r}; {takes}")
    return mechanism


def _mechanism(name: str, *, listed: bool) -> Callable[..., Choice]:
    """The function of a mechanism; another one where cells are too many to be listed."""
    if name != "best" and not listed:
        products = import_module("lrm.strategies.products")
        mechanism: Callable[..., Choice] = products.product_mechanism(name)
        return mechanism
    module, function = {**MECHANISMS, **FOR_PRODUCTS}[name].split(":")
    listing: Callable[..., Choice] = getattr(import_module(f"lrm.strategies.{module}"), function)
    return listing
