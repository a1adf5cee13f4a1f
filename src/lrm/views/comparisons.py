"""What a comparison of mechanisms tells, for one noise or for both.

The facts are what ``lrm compare --json`` prints; tables, sentences and pages are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrm.errors import BudgetError, FileFormatError
from lrm.files.json_text import parse_json
from lrm.privacy.amounts import equation, parse_amount
from lrm.privacy.budget import LEAST_DELTA, Privacy, unit_privacy, zcdp_of
from lrm.spelling import number, ratio, seconds, text_table
from lrm.views.plans import certificate

if TYPE_CHECKING:  # it imports all mechanisms, and the page of a release needs none
    from lrm.plans.comparison import Comparison, SideBySide

__all__ = [
    "advice",
    "amount_words",
    "comparison_facts",
    "comparison_rows",
    "comparison_text",
    "comparisons_in",
    "parse_comparison",
    "planned_rows",
    "reasons",
    "side_by_side_facts",
    "side_by_side_rows",
    "verdict",
]

SIDE_BY_SIDE_COLUMNS = ("mechanism", "Laplace error", "Gaussian error", "Gaussian/Laplace")

_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def comparison_facts(result: Comparison, privacy: Privacy | None = None) -> dict[str, Any]:
    """A comparison at a guarantee; at ε = 1 or ρ = 1 by default."""
    best = result.best.plan if result.best else None
    stated = privacy or unit_privacy("laplace" if best is None else best.noise)
    rows: list[dict[str, Any]] = []
    for outcome in result.outcomes:
        plan = outcome.plan
        if plan is None:
            rows.append({"mechanism": outcome.mechanism, "reason": outcome.reason})
            continue
        rows.append(
            {
                "mechanism": outcome.mechanism,
                "expected_squared_error": plan.accuracy(stated).squared_error,
                "ratio_to_best": result.ratio_to_best(outcome),
                "measurements": plan.measurement_count,
                "sensitivity": plan.sensitivity,
                "seconds": plan.details["seconds"],
                "converged": plan.details.get("converged"),
                "interrupted": plan.details.get("interrupted"),
            }
        )
    return {
        **stated.facts,
        "noise": best.noise if best else None,
        "queries": best.workload.shape[0] if best else None,
        "cells": best.workload.shape[1] if best else None,
        "rank": best.workload_rank if best else None,
        "lower_bound": best.accuracy(stated).lower_bound if best else None,
        "best": result.best.mechanism if result.best else None,
        "certificate": certificate(best) if best else None,
        "mechanisms": rows,
    }


def side_by_side_facts(both: SideBySide, pure: Privacy, privacy: Privacy) -> dict[str, Any]:
    """Laplace noise at ``pure`` and Gaussian noise at ``privacy``, and which has less error."""
    laplace = comparison_facts(both.laplace, pure)
    gaussian = comparison_facts(both.gaussian, privacy)
    least = [_least(part) for part in (laplace, gaussian)]
    known = None not in least
    return {
        **privacy.facts,
        "laplace": laplace,
        "gaussian": {**gaussian, "charged_rho": str(zcdp_of(privacy).rho)},
        "less_error": ("laplace" if least[0] <= least[1] else "gaussian") if known else None,
    }


def _least(part: Mapping[str, Any]) -> Any:
    return min((row["expected_squared_error"] for row in planned_rows(part)), default=None)


def planned_rows(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The mechanisms that have a plan, least error first."""
    planned = [row for row in part["mechanisms"] if "reason" not in row]
    return sorted(planned, key=lambda row: float(row["expected_squared_error"]))


def comparisons_in(facts: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The comparisons of a document with their titles: one, or one for each noise."""
    if "laplace" in facts and "gaussian" in facts:
        return [("Laplace noise", facts["laplace"]), ("Gaussian noise", facts["gaussian"])]
    return [("Error of each mechanism", dict(facts))]


def amount_words(part: Mapping[str, Any]) -> str:
    """The amounts at which errors are stated: ``ε = 1, δ = 1e-09``."""
    amounts = [_equation(sign, part[name]) for name, sign in _SIGNS.items() if part.get(name)]
    return ", ".join(amounts) or "ε = 1"


def _equation(sign: str, amount: Any) -> str:
    try:
        return equation(sign, parse_amount(str(amount), sign, least=LEAST_DELTA))
    except BudgetError:
        return f"{sign} = {amount}"


def comparison_rows(
    part: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and one row per mechanism, as text; a star marks a search that was stopped early."""
    columns = ("mechanism", f"error at {amount_words(part)}", "ratio to best")
    listed = part["mechanisms"] if rows is None else rows
    return (*columns, "measurements", "time"), [
        (row["mechanism"], *(("—",) * 4 if "reason" in row else _cells(row))) for row in listed
    ]


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    measurements, taken = row.get("measurements"), _float(row.get("seconds"))
    spent = seconds(taken) + ("*" if row.get("interrupted") else "")
    return (
        number(float(row["expected_squared_error"]), 5),
        ratio(_float(row.get("ratio_to_best"))),
        f"{measurements:,}" if isinstance(measurements, int) else "—",
        spent if math.isfinite(taken) else "—",
    )


def _float(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def reasons(part: Mapping[str, Any]) -> list[str]:
    """Why mechanisms have no plan."""
    rows = (row for row in part["mechanisms"] if "reason" in row)
    return [f"{row['mechanism']} has no plan: {row['reason']}" for row in rows]


def verdict(part: Mapping[str, Any]) -> str | None:
    """How near the best of the mechanisms is to the best possible."""
    if part["best"] is None:
        return None
    bound = number(part["lower_bound"], 5)
    return f"no strategy has an error below {bound}:\n{part['best']} is {part['certificate']}"


def comparison_text(result: Comparison) -> str:
    """The table of a comparison in plain text, at ε = 1 or ρ = 1."""
    facts = comparison_facts(result)
    return "\n".join([text_table(*comparison_rows(facts), words=("mechanism",)), *reasons(facts)])


def side_by_side_rows(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row per mechanism in `SIDE_BY_SIDE_COLUMNS`, as text."""
    rows = []
    pairs = zip(facts["laplace"]["mechanisms"], facts["gaussian"]["mechanisms"], strict=True)
    for outcome, other in pairs:
        errors = [row.get("expected_squared_error") for row in (outcome, other)]
        shown = ["—" if error is None else number(error, 5) for error in errors]
        share = ratio(errors[1] / errors[0]) if None not in errors and errors[0] > 0 else "—"
        rows.append((outcome["mechanism"], *shown, share))
    return rows


def advice(facts: Mapping[str, Any]) -> str:
    """What each noise guarantees at these amounts, and what the weaker guarantee would buy."""
    pure, delta = amount_words(facts["laplace"]), amount_words({"delta": facts["delta"]})
    shaped = facts["laplace"].get("noise") == "shaped"
    name = "shaped noise" if shaped else "Laplace"
    promises = (
        f"{'Shaped' if shaped else 'Laplace'} noise guarantees pure {pure}, which is stronger: "
        f"Gaussian noise may break it with probability {delta}."
    )
    laplace, gaussian = _least(facts["laplace"]), _least(facts["gaussian"])
    if facts["less_error"] is None or min(laplace, gaussian) <= 0:
        return promises
    if facts["less_error"] == "laplace":
        return (
            f"{promises} Here {name} has less error too: Gaussian noise has "
            f"{ratio(gaussian / laplace)} times as much. Take {name}."
        )
    return (
        f"{promises} It buys {ratio(laplace / gaussian)} times less error here: take Gaussian "
        f"where that is worth the weaker guarantee, else {name}."
    )


def parse_comparison(data: bytes, source: str) -> dict[str, Any]:
    """Read the JSON of a comparison; anything else is a ``FileFormatError``."""
    try:
        facts = parse_json(data)
        for _, part in comparisons_in(facts):
            _check(part)
    except (FileFormatError, ValueError, TypeError, KeyError, AttributeError):
        raise FileFormatError(
            f"{source} is not a plan, a release or a comparison; a comparison is what "
            "`lrm compare … --json` prints"
        ) from None
    return dict(facts)


def _check(part: dict[str, Any]) -> None:
    """Every mechanism has a name, and an error or a reason; a bound is a number."""
    float(part.get("lower_bound") or 0)
    for row in part["mechanisms"]:
        if not isinstance(row["mechanism"], str):
            raise TypeError(row)
        if "reason" not in row:
            error = float(row["expected_squared_error"])
            if not (math.isfinite(error) and error >= 0):
                raise ValueError(row)
