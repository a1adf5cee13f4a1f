"""Plans from files: everything that defines them is checked when it is read."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any, cast, get_args

from lrm.domain.file import parse_domain
from lrm.errors import FileFormatError
from lrm.files.archive import blaming, parse_archive, read_archive
from lrm.files.facts import Arrays, Facts
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.plan.core import Plan
from lrm.planning.plan.goals import Objective
from lrm.planning.plan.levels import LevelsPlan
from lrm.planning.plan.measured_file import MEMBERS, unpack_measured
from lrm.planning.plan.saving import FACTS, LEVELS, VERSION, level_prefix
from lrm.planning.solvers.bounds import Spectrum
from lrm.privacy.norms import NORMS, BodyNorm
from lrm.queries.maps.files import unpack_map
from lrm.queries.workload import Labels, Statement, Workload, derived_from_facts
from lrm.queries.workload.display import Display


def _objective(facts: Facts) -> Objective:
    return cast("Objective", facts.choice("objective", *get_args(Objective)))


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan; a damaged, foreign or newer file raises ``FileFormatError``."""
    return _checked(path, *read_archive(path, "plan", VERSION))


def parse_plan(data: bytes) -> Plan:
    """Read the content of a plan file, checked as ``load_plan`` checks it."""
    return _checked("the plan", *parse_archive("the plan", data, "plan", VERSION))


def _checked(path: str | os.PathLike[str], facts: dict[str, Any], arrays: Arrays) -> Plan:
    with blaming(path, "plan"):
        plan = unpack_plan(facts, arrays)
        arrays.check_all_taken()
        return plan


def unpack_plan(values: Any, arrays: Arrays) -> Plan:
    """Build the plan that ``pack_plan`` wrote, and check that it is the same.

    Nothing that follows from the integers is believed: sensitivity, limits, the queries over
    merged cells, the reconstruction and the digest are computed again.
    """
    # Files that were written before statements were kept have none: their labels form the tables.
    # Those before statements were balanced minimise the total error.
    if isinstance(values, dict) and "levels" in values:
        return _unpack_levels(Facts(values, LEVELS), arrays)
    older: dict[str, Any] = {"statements": [], "objective": "total", "importances": None}
    facts = Facts({**older, **values} if isinstance(values, dict) else values, FACTS)
    cells = None
    if "strategy" in MEMBERS.get(facts.kind("measured"), ()):
        cells = arrays.length("cell-index")
    workload = _workload(facts, arrays, cells)
    noise = facts.choice("noise", *NORMS, "shaped")
    measured = unpack_measured(facts, arrays, workload, noise)
    plan = Plan(
        workload=workload,
        mechanism=facts.text("mechanism", r"[a-z-]{1,40}"),
        measured=measured,
        reconstruction_map=_reconstruction(facts, arrays, workload, measured),
        least_error=facts.number("least_error"),
        spectrum=_spectrum(arrays, workload.shape[1]),
        exact=facts.flag("exact"),
        objective=_objective(facts),
        importances=_importances(facts, len(workload.statements)),
        details=_details(facts),
    )
    _check_same(plan, facts)
    return _without_false_bound(plan)


def _unpack_levels(facts: Facts, arrays: Arrays) -> LevelsPlan:
    """Build a plan over several levels: each level's plan is checked as one by itself.

    That they are plans of the batch's queries, and that shares add up to at most 1, is checked by
    the plan.
    """
    parts, shares = [], []
    for number, values in enumerate(_list(facts, "levels")):
        level = Facts(values, ("share", "plan"), "a level")
        own = arrays.part(level_prefix(number))
        plan = unpack_plan(level.any("plan"), own)
        if isinstance(plan, LevelsPlan):
            raise FileFormatError("a level cannot consist of levels")
        own.check_all_taken()
        parts.append(plan)
        shares.append(level.fraction("share"))
    if not parts:
        raise FileFormatError("a plan over several levels has none")
    workload = _workload(facts, arrays, None)
    objective = _objective(facts)
    made = LevelsPlan.of(workload, parts, shares, objective)
    if facts.text("digest") != made.digest:
        raise FileFormatError("the digest is not that of the contents")
    return made


def _reconstruction(
    facts: Facts, arrays: Arrays, workload: Workload, measured: Measured
) -> Reconstruction:
    """How answers follow: by least squares, or by a matrix of the mechanism's own."""
    given_map = None
    if facts.has("reconstruction"):
        shape = workload.shape[0], measured.measurement_count
        given_map = unpack_map("reconstruction", facts, arrays, shape)
    elif not facts.flag("exact"):
        raise FileFormatError("a plan that is not exact needs a reconstruction of its own")
    return measured.planned_reconstruction(workload.queries, workload.importance, given_map)


def _workload(facts: Facts, arrays: Arrays, cells: int | None) -> Workload:
    queries = unpack_map("workload", facts, arrays, (None, cells))
    importance = None
    if "importance" in arrays:
        importance = arrays.take("importance", "f8", (queries.shape[0],))
    return Workload(
        queries,
        labels=Labels.from_facts(facts.any("labels")),
        importance=importance,
        domain=parse_domain(facts.text("domain")) if facts.has("domain") else None,
        derived=derived_from_facts(facts.any("derived")),
        display=[Display.from_facts(entry_facts) for entry_facts in _list(facts, "display")],
        statements=[
            Statement.from_facts(entry_facts) for entry_facts in _list(facts, "statements")
        ],
    )


def _importances(facts: Facts, statements: int) -> tuple[float, ...] | None:
    """The importance of each statement, where statements have their own."""
    if not facts.has("importances"):
        return None
    importances = _list(facts, "importances")
    are_numbers = all(type(each) in {int, float} and 0 < each < math.inf for each in importances)
    if len(importances) != statements or not are_numbers:
        raise FileFormatError("'importances' must be one number above 0 for each statement")
    return tuple(float(each) for each in importances)


def _list(facts: Facts, name: str) -> list[Any]:
    listed = facts.any(name)
    if not isinstance(listed, list):
        raise FileFormatError(f"{name!r} must be a list")
    return listed


def _spectrum(arrays: Arrays, cells: int) -> Spectrum | None:
    """The singular values, which a plan made under a time limit may lack."""
    if "singular-values" not in arrays:
        return None
    return Spectrum(arrays.take("singular-values", "f8", (None,)), cells)


def _details(facts: Facts) -> dict[str, Any]:
    """Facts about the search, which people see and nothing is computed from."""
    details = facts.any("details")
    types: dict[str, tuple[type, ...]] = {
        "seconds": (int, float),
        "converged": (bool,),
        "interrupted": (bool,),
        "software": (str,),
    }
    if not isinstance(details, dict):
        raise FileFormatError("'details' must be an object of JSON")
    for name, kinds in types.items():
        if name in details and type(details[name]) not in kinds:
            raise FileFormatError(f"'{name}' of 'details' is of the wrong type")
    timings = details.get("timings", {})
    if not isinstance(timings, dict) or any(type(s) not in {int, float} for s in timings.values()):
        raise FileFormatError("'timings' of 'details' must be seconds by stage")
    return details


def _check_same(plan: Plan, facts: Facts) -> None:
    """Compare the stated figures with those that follow from the integers."""
    measured = plan.measured
    if facts.whole("sensitivity") != measured.sensitivity:
        raise FileFormatError("the stated sensitivity is not that of the integers")
    if facts.whole("max_records") != measured.max_records:
        raise FileFormatError("the stated number of records is not that of the integers")
    if facts.text("digest") != plan.digest:
        raise FileFormatError("the digest is not that of the contents")


def _without_false_bound(plan: Plan) -> Plan:
    """Leave out a bound that is above the error, or about replaced units, where none is proven.

    It is a figure of reports: a file is read all the same, without it. Where no bound is stated,
    the error need not be known yet: some are simulated.
    """
    stated, norm = plan.exact and plan.least_error > 0, plan.measured.norm
    false = (isinstance(norm, BodyNorm) and norm.replaced) or (
        # How far rounding may put an error below its bound.
        stated and plan.least_error > plan.weighted_strategy_error * (1 + 1e-6)
    )
    false = false or norm != norm.plain  # bounds are of records, not of limited rows of a person
    return replace(plan, least_error=0.0) if stated and false else plan
