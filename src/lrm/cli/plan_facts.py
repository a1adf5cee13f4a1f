"""The facts of a plan and of a release, for people and for machines."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lrm.cli.output import number, ratio, seconds
from lrm.cli.promises import Promise

if TYPE_CHECKING:
    from lrm.plans import Plan
    from lrm.releases import Release

__all__ = [
    "certificate",
    "plan_fields",
    "plan_lines",
    "privacy_words",
    "release_fields",
    "release_lines",
]


def plan_fields(plan: "Plan") -> dict[str, Any]:
    """Everything about a plan that a summary shows, as plain values."""
    queries, cells = plan.workload.shape
    one = Fraction(1)
    amounts = Promise(one) if plan.noise == "laplace" else Promise(rho=one)
    expected = amounts.accuracy(plan)
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        "exact": plan.exact,
        "queries": queries,
        "cells": cells,
        "merged_cells": plan.measured.cells.merged_size,
        "rank": plan.workload_rank,
        "measurements": plan.rank,
        "sensitivity": plan.sensitivity,
        "expected_squared_error": expected.squared_error,
        "root_mean_squared_error": expected.root_mean_squared_error,
        "lower_bound": expected.lower_bound,
        "at_most_above_best": plan.at_most_above_best,
        "max_records": plan.measured.max_records,
        "seconds": plan.details.get("seconds"),
        "timings": plan.details.get("timings"),
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
        ("queries", f"{facts['queries']:,}" + _rank(facts["rank"])),
        ("cells", cells),
        ("measurements", f"{facts['measurements']:,}, sensitivity {number(facts['sensitivity'])}"),
        (
            f"error at {amount} = 1",
            f"{number(facts['expected_squared_error'], 6)} expected total squared error",
        ),
        ("", f"{number(facts['root_mean_squared_error'])} root mean squared error of a query"),
        ("", certificate(plan)),
        ("records", f"at most {facts['max_records']:,} in a table"),
    ]
    if plan.workload.domain is not None:
        lines.append(("protects", plan.unit.words))
        lines += [("", limit) for limit in [plan.unit.limit] if limit]
    if facts["seconds"] is not None:
        lines.append(("found in", seconds(facts["seconds"]) + _ending(facts)))
    if facts["timings"]:
        lines.append(("", _stages(facts["timings"])))
    return [*lines, ("digest", facts["digest"][:16])]


def certificate(plan: "Plan") -> str:
    """How near to the best possible a plan is for certain; the ratio is never rounded down."""
    above = plan.at_most_above_best
    if plan.noise == "gaussian":
        shown = ratio(math.ceil(above * 1000) / 1000 if above < 10 else above)
        return f"within {shown} of the best possible"
    return f"at most {ratio(above)}× above the best possible"


def _mechanism(plan: "Plan") -> str:
    name = plan.mechanism if plan.noise == "laplace" else f"{plan.mechanism}, for Gaussian noise"
    return name if plan.exact else f"{name} (relaxed: answers are biased)"


def _rank(rank: int | None) -> str:
    return "" if rank is None else f", rank {rank:,}"


def _stages(timings: dict[str, float]) -> str:
    """Where the time went."""
    return ", ".join(f"{stage} {spent:.1f} s" for stage, spent in timings.items())


def _ending(facts: dict[str, Any]) -> str:
    if facts["interrupted"]:
        return " (stopped early: the best so far)"
    return " (not converged: the best so far)" if facts["converged"] is False else ""


def privacy_words(release: "Release") -> str:
    """The promise of a release in a few words."""
    from lrm.releases.file import privacy_facts

    facts = privacy_facts(release.privacy)
    amounts = ", ".join(f"{name} {facts[name]}" for name in facts if name != "guarantee")
    return f"{facts['guarantee']} differential privacy, {amounts}, for {release.unit.words}"


def release_lines(release: "Release") -> list[tuple[str, str]]:
    """What a release says about itself, for people."""
    kind = "SIMULATED: it promises nothing" if release.simulated else privacy_words(release)
    queries, cells = release.plan.workload.shape
    bits = release.plan.measured.bits
    scale = number(release.scale * 2.0**-bits)
    measured = f"{release.plan.rank:,} measurements in steps of 2^-{bits}"
    lines = [
        ("promise", kind),
        ("queries", f"{queries:,} over {cells:,} cells, by {_mechanism(release.plan)}"),
        ("noise", f"{release.distribution} of scale {scale} on {measured}"),
        ("software", release.software),
        ("plan", release.plan.digest[:16]),
    ]
    lines += [("rows", limit) for limit in [release.unit.limit] if limit]
    if release.ledger_head is not None:
        lines.append(("ledger", f"paid for, head {release.ledger_head[:24]}…"))
    return lines


def release_fields(release: "Release", confidence: float) -> dict[str, Any]:
    """Everything that a release states, as plain values; the answers are complete."""
    from lrm.releases.file import privacy_facts

    intervals = release.intervals(confidence).tolist()
    rows = zip(
        release.plan.workload.labels,
        release.answers.tolist(),
        release.standard_errors.tolist(),
        intervals,
        strict=True,
    )
    return {
        "privacy": privacy_facts(release.privacy),
        "loss": str(release.loss),
        "unit": release.unit.facts,
        "noise": {"distribution": release.distribution, "scale": release.scale},
        "mechanism": release.plan.mechanism,
        "simulated": release.simulated,
        "software": release.software,
        "plan": release.plan.digest,
        "ledger_head": release.ledger_head,
        "confidence": confidence,
        "answers": [
            {**label.facts, "answer": answer, "standard_error": error, "interval": interval}
            for label, answer, error, interval in rows
        ],
    }
