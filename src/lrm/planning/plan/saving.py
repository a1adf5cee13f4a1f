"""Plans into files: the content of a plan file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lrm.domain.file import domain_text
from lrm.files.archive import pack_archive, write_archive
from lrm.planning.plan.measured_file import pack_measured
from lrm.queries.maps.files import pack_map
from lrm.queries.workload import Workload

if TYPE_CHECKING:  # a plan saves itself through this module
    from lrm.planning.plan.core import Plan

VERSION = 5

WORKLOAD = ("labels", "derived", "display", "statements", "domain", "workload")
"""What a plan file states of its batch."""

LEVELS = ("levels", "objective", "digest", *WORKLOAD)
"""What the file of a plan over several levels states."""

FACTS = (
    "mechanism",
    "noise",
    "exact",
    "least_error",
    "objective",
    "importances",
    "details",
    "digest",
    *WORKLOAD,
    "measured",
    "reconstruction",
    "sensitivity",
    "max_records",
)
"""What a plan file states."""


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write ``plan`` to ``path``, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {}
    write_archive(path, "plan", VERSION, pack_plan(plan, arrays), arrays)


def plan_bytes(plan: Plan) -> bytes:
    """The content of the file of ``plan``."""
    arrays: dict[str, NDArray[Any]] = {}
    return pack_archive("the plan", "plan", VERSION, pack_plan(plan, arrays), arrays)


def pack_plan(plan: Plan, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Put a plan's arrays into ``arrays`` and return its plain facts."""
    if len(plan.levels) > 1:
        return _pack_levels(plan, arrays)
    workload, measured, given_map = plan.workload, plan.measured, plan.reconstruction_map.given
    if plan.spectrum is not None:
        arrays["singular-values"] = plan.spectrum.singular_values
    own = {} if plan.importances is None else {"importances": list(plan.importances)}
    return own | {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        "exact": plan.exact,
        "least_error": plan.least_error,
        "objective": plan.objective,
        "details": dict(plan.details),
        "digest": plan.digest,
        **_pack_workload(workload, arrays),
        "measured": pack_measured(measured, arrays),
        "reconstruction": (
            None if given_map is None else pack_map("reconstruction", given_map, arrays)
        ),
        # Integers that pass 2^53 are spelled, since JSON readers may take numbers for floats.
        "sensitivity": str(measured.sensitivity),
        "max_records": str(measured.max_records),
    }


def _pack_workload(workload: Workload, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    if workload.importance is not None:
        arrays["importance"] = workload.importance
    return {
        "labels": workload.labels.facts(),
        "derived": [entry.facts() for entry in workload.derived],
        "display": [entry.facts for entry in workload.display],
        "statements": [entry.facts() for entry in workload.statements],
        "domain": None if workload.domain is None else domain_text(workload.domain),
        "workload": pack_map("workload", workload.queries, arrays),
    }


def _pack_levels(plan: Plan, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A plan over several levels: its batch, and a whole plan for each level with its share."""
    levels = []
    for number, (part, share) in enumerate(zip(plan.levels, plan.shares, strict=True)):
        own: dict[str, NDArray[Any]] = {}
        levels.append({"share": str(share), "plan": pack_plan(part, own)})
        arrays |= {f"{level_prefix(number)}{name}": array for name, array in own.items()}
    return {
        "levels": levels,
        "objective": plan.objective,
        "digest": plan.digest,
        **_pack_workload(plan.workload, arrays),
    }


def level_prefix(number: int) -> str:
    """How the names of a level's arrays begin."""
    return f"level-{number}-"
