"""Plans as files: everything that defines them, checked when it is read."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from lrm.accuracy.bounds import Spectrum
from lrm.archive import read_archive, write_archive
from lrm.domain.file import domain_text, parse_domain
from lrm.errors import FileFormatError, LrmError
from lrm.maps.files import pack_map, unpack_map
from lrm.plans.core import Plan
from lrm.quantise import IntegerStrategy, inverse_of, unit_strategy
from lrm.reconstruction import Reconstruction
from lrm.reduce import CellMap, over_merged
from lrm.workload import Labels, Workload

__all__ = ["load_plan", "pack_plan", "save_plan", "unpack_plan"]

VERSION = 2
Arrays = dict[str, NDArray[Any]]


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write ``plan`` to ``path``, whole or not at all."""
    arrays: Arrays = {}
    facts = pack_plan(plan, arrays)
    write_archive(path, "plan", VERSION, facts, arrays)


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan; a damaged, foreign or newer file is a ``FileFormatError``."""
    facts, arrays = read_archive(path, "plan", VERSION)
    try:
        return unpack_plan(facts, arrays)
    except FileFormatError:
        raise
    except (LrmError, KeyError, TypeError, ValueError, IndexError) as reason:
        raise FileFormatError(
            f"{path} does not hold a whole plan; make it again with `lrm plan`"
        ) from reason


def pack_plan(plan: Plan, arrays: Arrays) -> dict[str, Any]:
    """Put a plan's arrays into ``arrays`` and return its plain facts."""
    workload, measured, rebuild = plan.workload, plan.measured, plan.rebuild
    arrays["singular-values"] = plan.spectrum.singular_values
    arrays["cell-index"] = measured.cells.index
    arrays["cell-factor"] = measured.cells.factor
    if workload.importance is not None:
        arrays["importance"] = workload.importance
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        "exact": plan.exact,
        "least_error": plan.least_error,
        "details": dict(plan.details),
        "digest": plan.digest,
        "labels": workload.labels.facts(),
        "domain": None if workload.domain is None else domain_text(workload.domain),
        "workload": pack_map("workload", workload.queries, arrays),
        "strategy": pack_map("strategy", measured.matrix, arrays),
        "reconstruction": (
            None if rebuild.given is None else pack_map("reconstruction", rebuild.given, arrays)
        ),
        "merged_cells": measured.cells.merged_size,
        "bits": measured.bits,
        "row_rank": measured.row_rank,
        # Integers that pass 2^53 are spelled, since JSON readers may take numbers for floats.
        "sensitivity": str(measured.sensitivity),
        "max_records": str(measured.max_records),
    }


def unpack_plan(facts: dict[str, Any], arrays: Arrays) -> Plan:
    """Build the plan that ``pack_plan`` took apart, and check that it is the same."""
    queries = unpack_map("workload", facts["workload"], arrays)
    domain = None if facts["domain"] is None else parse_domain(facts["domain"])
    workload = Workload(
        queries,
        labels=Labels.from_facts(facts["labels"]),
        importance=arrays.get("importance"),
        domain=domain,
    )
    measured = IntegerStrategy(
        unpack_map("strategy", facts["strategy"], arrays),
        CellMap(int(facts["merged_cells"]), arrays["cell-index"], arrays["cell-factor"]),
        int(facts["bits"]),
        facts["row_rank"],
    )
    given = facts["reconstruction"]
    merged = over_merged(queries, measured.cells)
    if merged is None:
        raise FileFormatError("the plan merges cells that its own queries tell apart")
    plan = Plan(
        workload=workload,
        mechanism=str(facts["mechanism"]),
        measured=measured,
        rebuild=Reconstruction(
            merged,
            unit_strategy(measured.matrix, measured.bits),
            None if given is not None else inverse_of(measured),
            None if given is None else unpack_map("reconstruction", given, arrays),
        ),
        least_error=float(facts["least_error"]),
        spectrum=Spectrum(arrays["singular-values"], queries.shape[1]),
        noise=facts["noise"],
        exact=bool(facts["exact"]),
        details=facts["details"],
    )
    _check_same(plan, facts)
    return plan


def _check_same(plan: Plan, facts: dict[str, Any]) -> None:
    """Recompute what privacy rests on from the integers themselves."""
    measured = plan.measured
    same = (
        plan.digest == facts["digest"]
        and measured.sensitivity == int(facts["sensitivity"])
        and measured.max_records == int(facts["max_records"])
        and measured.cells.size == plan.workload.shape[1]
    )
    if not same:
        raise FileFormatError("the plan's sensitivity or digest does not match its own integers")
