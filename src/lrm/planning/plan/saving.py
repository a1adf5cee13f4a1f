"""Plans into files: the content of a plan file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lrm.domain.file import domain_text
from lrm.files.archive import pack_archive, write_archive
from lrm.planning.plan.measured_file import pack_measured
from lrm.queries.maps.files import pack_map

if TYPE_CHECKING:  # a plan saves itself through this module
    from lrm.planning.plan.core import Plan

VERSION = 5

FACTS = (
    "mechanism",
    "noise",
    "exact",
    "least_error",
    "objective",
    "details",
    "digest",
    "labels",
    "derived",
    "display",
    "statements",
    "domain",
    "workload",
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
    workload, measured, given_map = plan.workload, plan.measured, plan.reconstruction_map.given
    if plan.spectrum is not None:
        arrays["singular-values"] = plan.spectrum.singular_values
    if workload.importance is not None:
        arrays["importance"] = workload.importance
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        "exact": plan.exact,
        "least_error": plan.least_error,
        "objective": plan.objective,
        "details": dict(plan.details),
        "digest": plan.digest,
        "labels": workload.labels.facts(),
        "derived": [entry.facts() for entry in workload.derived],
        "display": [entry.facts for entry in workload.display],
        "statements": [entry.facts() for entry in workload.statements],
        "domain": None if workload.domain is None else domain_text(workload.domain),
        "workload": pack_map("workload", workload.queries, arrays),
        "measured": pack_measured(measured, arrays),
        "reconstruction": (
            None if given_map is None else pack_map("reconstruction", given_map, arrays)
        ),
        # Integers that pass 2^53 are spelled, since JSON readers may take numbers for floats.
        "sensitivity": str(measured.sensitivity),
        "max_records": str(measured.max_records),
    }
