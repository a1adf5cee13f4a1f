"""The facts of a plan and of a release, for people and for machines."""

import math
from typing import TYPE_CHECKING, Any

from lrm.cli.output import number, ratio, seconds

if TYPE_CHECKING:
    from lrm.plans import Plan
    from lrm.releases import Release

__all__ = ["plan_fields", "plan_lines", "privacy_words", "release_fields", "release_lines"]


def plan_fields(plan: "Plan") -> dict[str, Any]:
    """Everything about a plan that a summary tells, as plain values."""
    queries, cells = plan.workload.shape
    unit = {} if plan.noise == "laplace" else {"rho": 1}
    promise = {"epsilon": 1} if plan.noise == "laplace" else {}
    error = plan.expected_squared_error(**promise, **unit)
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        "exact": plan.exact,
        "queries": queries,
        "cells": cells,
        "merged_cells": plan.measured.cells.merged_size,
        "rank": plan.spectrum.rank,
        "measurements": plan.rank,
        "sensitivity": plan.sensitivity,
        "expected_squared_error": error,
        "root_mean_squared_error": math.sqrt(error / queries),
        "lower_bound": plan.lower_bound(**promise, **unit),
        "at_most_above_best": plan.at_most_above_best,
        "max_records": plan.measured.max_records,
        "seconds": plan.details.get("seconds"),
        "converged": plan.details.get("converged"),
        "interrupted": plan.details.get("interrupted"),
        "digest": plan.digest,
    }


def plan_lines(plan: "Plan") -> list[tuple[str, str]]:
    """The same for people."""
    facts = plan_fields(plan)
    merged = facts["merged_cells"]
    cells = f"{facts['cells']:,}"
    if merged != facts["cells"]:
        cells += f", of which the queries can tell {merged:,} apart"
    amount = "ε" if plan.noise == "laplace" else "ρ"
    lines = [
        ("mechanism", _mechanism(plan)),
        ("queries", f"{facts['queries']:,}, rank {facts['rank']:,}"),
        ("cells", cells),
        ("measurements", f"{facts['measurements']:,}, sensitivity {number(facts['sensitivity'])}"),
        (
            f"error at {amount} = 1",
            f"{number(facts['expected_squared_error'], 6)} expected total squared error",
        ),
        ("", f"{number(facts['root_mean_squared_error'])} root mean squared error of a query"),
        ("", f"at most {ratio(plan.at_most_above_best)}× above the best possible"),
        ("records", f"at most {facts['max_records']:,} in a table"),
    ]
    if facts["seconds"] is not None:
        lines.append(("found in", seconds(facts["seconds"]) + _ending(facts)))
    return [*lines, ("digest", facts["digest"][:16])]


def _mechanism(plan: "Plan") -> str:
    return plan.mechanism if plan.exact else f"{plan.mechanism} (relaxed: answers are biased)"


def _ending(facts: dict[str, Any]) -> str:
    if facts["interrupted"]:
        return " (stopped early: the best so far)"
    return " (not converged: the best so far)" if facts["converged"] is False else ""


def privacy_words(release: "Release") -> str:
    """The promise of a release in a few words."""
    from lrm.release_file import privacy_facts

    facts = privacy_facts(release.privacy)
    amounts = ", ".join(f"{name} {facts[name]}" for name in facts if name != "guarantee")
    unit = "one record" if release.max_rows == 1 else f"one person with {release.max_rows} records"
    change = "added or removed" if release.neighbours.value == "add-remove" else "exchanged"
    return f"{facts['guarantee']} differential privacy, {amounts}, for {unit} {change}"


def release_lines(release: "Release") -> list[tuple[str, str]]:
    """What a release says about itself, for people."""
    kind = "SIMULATED: it promises nothing" if release.simulated else privacy_words(release)
    queries, cells = release.plan.workload.shape
    bits = release.plan.measured.bits
    scale = number(release.scale * 2.0**-bits)
    measured = f"{release.plan.rank:,} measurements in steps of 2^-{bits}"
    return [
        ("promise", kind),
        ("queries", f"{queries:,} over {cells:,} cells, by {_mechanism(release.plan)}"),
        ("noise", f"{release.distribution} of scale {scale} on {measured}"),
        ("software", release.software),
        ("plan", release.plan.digest[:16]),
    ]


def release_fields(release: "Release", confidence: float) -> dict[str, Any]:
    """Everything that a release tells, as plain values; the answers are complete."""
    from lrm.release_file import privacy_facts

    intervals = release.intervals(confidence).tolist()
    rows = zip(
        release.names,
        release.answers.tolist(),
        release.standard_errors.tolist(),
        intervals,
        strict=True,
    )
    return {
        "privacy": privacy_facts(release.privacy),
        "loss": str(release.loss),
        "neighbours": release.neighbours.value,
        "max_rows": release.max_rows,
        "noise": {"distribution": release.distribution, "scale": release.scale},
        "mechanism": release.plan.mechanism,
        "simulated": release.simulated,
        "software": release.software,
        "plan": release.plan.digest,
        "confidence": confidence,
        "answers": [
            {"query": name, "answer": answer, "standard_error": error, "interval": interval}
            for name, answer, error, interval in rows
        ],
    }
