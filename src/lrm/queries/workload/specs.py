"""Families of workloads by a short spelling, such as ``prefix:64`` or ``wrange:64x128:seed=3``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lrm.errors import WorkloadError
from lrm.queries.workload import families
from lrm.queries.workload.core import Workload

LARGEST_SIDE = 1 << 26
"""No side of a family may be longer: 67 million cells are 0.5 GB of counts."""

LARGEST_MATRIX = 1 << 27
"""Families that build their matrix may have this many weights (1 GB)."""

_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class _Family:
    """How one family is spelled, and what makes it."""

    build: Callable[..., Workload]
    sides: tuple[str, ...]
    options: tuple[str, ...] = ()
    builds_matrix: bool = False

    def spelled(self, name: str) -> str:
        """The spelling in general terms: ``wrange:QUERIESxCELLS[:seed=…]``."""
        options = "".join(f"[:{option}=…]" for option in self.options)
        return f"{name}:{'x'.join(side.upper() for side in self.sides)}{options}"


_MATRIX = ("queries", "cells")
FAMILIES = {
    "identity": _Family(families.identity, ("cells",)),
    "total": _Family(families.total, ("cells",)),
    "prefix": _Family(families.prefix, ("cells",)),
    "all-ranges": _Family(families.all_ranges, ("cells",)),
    "width-ranges": _Family(families.width_ranges, ("cells", "width")),
    "wdiscrete": _Family(families.wdiscrete, _MATRIX, ("seed",), builds_matrix=True),
    "wrange": _Family(families.wrange, _MATRIX, ("seed",)),
    "wrelated": _Family(families.wrelated, _MATRIX, ("seed", "s"), builds_matrix=True),
}
"""The families by the names that stand before the size."""

FAMILY_EXAMPLES = ("prefix:64", "all-ranges:64", "width-ranges:256x32", "wrange:64x128:seed=3")


def family_named(text: str) -> bool:
    """Whether ``text`` begins with the name of a family.

    >>> family_named("prefix:64"), family_named("prefix.csv")
    (True, False)
    """
    return text.partition(":")[0].strip().lower() in FAMILIES


def family_workload(text: str) -> Workload:
    """Return the workload that a spelling such as ``wdiscrete:64x128:seed=3`` means.

    >>> family_workload("wrelated:16x64:s=4").shape
    (16, 64)
    """
    name, *parts = (part.strip() for part in text.lower().split(":"))
    if name not in FAMILIES:
        raise WorkloadError(
            f"no family of workloads is called {name!r}; there are {', '.join(FAMILIES)}"
        )
    family = FAMILIES[name]
    if not parts:
        raise WorkloadError(f"{name!r} needs its size: write {family.spelled(name)}")
    sides = _sides(text, family, parts[0])
    options = _options(text, family, parts[1:])
    if family.builds_matrix and sides[0] * sides[1] > LARGEST_MATRIX:
        raise WorkloadError(
            f"{text!r} would have {sides[0] * sides[1]:,} weights, more than the "
            f"{LARGEST_MATRIX:,} that fit; make a side smaller"
        )
    return family.build(*sides, **options)


def _sides(text: str, family: _Family, size: str) -> list[int]:
    sides = size.split("x")
    if len(sides) != len(family.sides) or not all(_NUMBER.fullmatch(side) for side in sides):
        name = text.lower().partition(":")[0].strip()
        raise WorkloadError(
            f"{text!r} is not understood: write {family.spelled(name)} with whole numbers"
        )
    numbers = [int(side) for side in sides]
    for what, number in zip(family.sides, numbers, strict=True):
        if not 1 <= number <= LARGEST_SIDE:
            raise WorkloadError(
                f"{what} must be between 1 and {LARGEST_SIDE:,}, not {number} as in {text!r}"
            )
    return numbers


def _options(text: str, family: _Family, parts: list[str]) -> dict[str, int]:
    options: dict[str, int] = {}
    name = text.lower().partition(":")[0].strip()
    for part in parts:
        option, _, value = part.partition("=")
        if option not in family.options or option in options or not _NUMBER.fullmatch(value):
            raise WorkloadError(
                f"{part!r} in {text!r} is not understood: write {family.spelled(name)} "
                "with whole numbers"
            )
        options[option] = int(value)
    if "seed" in family.options:
        options.setdefault("seed", 0)
    if options.get("s", 1) > LARGEST_SIDE:
        raise WorkloadError(f"s must be at most {LARGEST_SIDE:,}, not {options['s']}")
    return options
