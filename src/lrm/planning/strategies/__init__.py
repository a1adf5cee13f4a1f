"""Workload to strategy: every mechanism behind one interface.

A mechanism is a function ``(problem, search, *, options…) -> Strategy``; a new one is a function in
a file here and a line in ``MECHANISMS``. This file loads no other: the command line reads the names
before NumPy is there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from lrm.errors import UsageError

if TYPE_CHECKING:
    from lrm.planning.strategies.base import Choice, Problem, Search

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "MechanismName",
    "build_strategy",
    "check_mechanism",
    "mechanism_for",
    "mechanism_names",
]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Where the functions of a mechanism are, as ``module:function`` of this package.

    Parameters
    ----------
    listed
        The function for batches whose cells can be listed.
    unlisted
        The function for batches over products whose cells are too many to be listed; without one
        they are refused.
    needs_products
        Whether it is for batches over products of attributes alone.
    """

    listed: str
    unlisted: str | None = None
    needs_products: bool = False


MECHANISMS: Mapping[str, Mechanism] = {
    "best": Mechanism("best:best", "best:best"),
    "lowrank": Mechanism("lowrank:lowrank"),
    "noise-on-data": Mechanism("baselines:noise_on_data", "products:noise_on_data"),
    "noise-on-results": Mechanism("baselines:noise_on_results", "products:noise_on_results"),
    "wavelet": Mechanism("baselines:wavelet", "products:wavelet"),
    "hierarchical": Mechanism("baselines:hierarchical", "products:hierarchical"),
    "matrix": Mechanism("baselines:matrix"),
    "marginals": Mechanism("products:marginals", "products:marginals", needs_products=True),
}
"""The mechanisms by their names, as commands, files and Python spell them."""


MechanismName = Literal[
    "best",
    "lowrank",
    "noise-on-data",
    "noise-on-results",
    "wavelet",
    "hierarchical",
    "matrix",
    "marginals",
]
"""The same names, for type checkers."""


def mechanism_names(*, products: bool) -> tuple[str, ...]:
    """The mechanisms for batches over products of attributes, or over a plain list of cells.

    >>> mechanism_names(products=False)[-1], mechanism_names(products=True)[-1]
    ('matrix', 'marginals')
    """
    return tuple(name for name, place in MECHANISMS.items() if products or not place.needs_products)


def check_mechanism(name: str) -> None:
    """Refuse a name that no mechanism has."""
    if name not in MECHANISMS:
        raise UsageError(f"no mechanism is called {name!r}; there are {', '.join(MECHANISMS)}")


def build_strategy(
    name: str, problem: Problem, search: Search, options: Mapping[str, Any]
) -> Choice:
    """Run the mechanism called ``name``."""
    return mechanism_for(name, problem, options)(problem, search, **options)


def mechanism_for(name: str, problem: Problem, options: Mapping[str, Any]) -> Callable[..., Choice]:
    """The mechanism called ``name``; options that it does not have are refused."""
    check_mechanism(name)
    place = MECHANISMS[name].listed if problem.is_listed else MECHANISMS[name].unlisted
    if place is None:
        raise UsageError(
            f"{name} works on a list of all cells, and the attributes of this batch have too many "
            "combinations; choose best"
        )
    module, function = place.split(":")
    mechanism: Callable[..., Choice] = getattr(
        import_module(f"lrm.planning.strategies.{module}"), function
    )
    known = list(inspect.signature(mechanism).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise UsageError(f"mechanism {name!r} has no option {unknown[0]!r}; {takes}")
    return mechanism
