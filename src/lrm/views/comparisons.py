"""What a comparison of mechanisms tells, for one noise or for both.

The facts are what ``lrm compare --json`` prints; documents are made of them, so that a page can
be made of a file that somebody kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lrm.errors import BudgetError, FileFormatError
from lrm.files.json_text import parse_json
from lrm.files.spelling import number, ratio, seconds
from lrm.planning.accuracy import privacy_of
from lrm.privacy.amounts import equation
from lrm.privacy.budget import Noise, Privacy, parse_delta, zcdp_of
from lrm.privacy.norms import unit_privacy
from lrm.views.blocks import Block, Cell, Document, Numbers, Prose, plain_table
from lrm.views.html import page
from lrm.views.plans import certificate

if TYPE_CHECKING:  # it imports all mechanisms, and the page of a release needs none
    from lrm.planning.plan.comparison import Comparison


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
                "expected_squared_error": plan.accuracy(stated).nominal.squared_error,
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
        "cells": best.workload.declared_size if best else None,
        "rank": best.workload_rank if best else None,
        "lower_bound": best.accuracy(stated).nominal.lower_bound if best else None,
        "best": result.best.mechanism if result.best else None,
        "certificate": certificate(best) if best else None,
        "mechanisms": rows,
    }


def side_by_side_facts(
    both: Iterable[Comparison], pure: Privacy, privacy: Privacy
) -> dict[str, Any]:
    """Laplace noise at ``pure`` and Gaussian noise at ``privacy``, and which has less error.

    Laplace noise guarantees pure ε-differential privacy. Gaussian noise guarantees it but for
    a probability δ, which is weaker; in exchange it may have less error.
    """
    laplace, gaussian = map(comparison_facts, both, (pure, privacy))
    least = [_least(part) for part in (laplace, gaussian)]
    known = None not in least
    return {
        **privacy.facts,
        "laplace": laplace,
        "gaussian": {**gaussian, "charged_rho": str(zcdp_of(privacy).rho)},
        "less_error": ("laplace" if least[0] <= least[1] else "gaussian") if known else None,
    }


def stated_privacy(part: Mapping[str, Any]) -> Privacy:
    """The guarantee at which errors are stated."""
    stated = {name: str(part[name]) for name in ("epsilon", "delta", "rho") if part.get(name)}
    noise: Noise = "laplace" if set(stated) == {"epsilon"} else "gaussian"
    return privacy_of(noise, **stated) if stated else unit_privacy("laplace")


def _least(part: Mapping[str, Any]) -> Any:
    return min((row["expected_squared_error"] for row in planned_rows(part)), default=None)


def planned_rows(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The mechanisms that have a plan, least error first."""
    planned = [row for row in part["mechanisms"] if "reason" not in row]
    return sorted(planned, key=lambda row: float(row["expected_squared_error"]))


def comparison_blocks(part: Mapping[str, Any], title: str = "") -> list[Block]:
    """One row per mechanism, least error first; why some have no plan; the best possible."""
    planned = planned_rows(part)
    blocks: list[Block] = []
    if planned:
        most = float(planned[-1]["expected_squared_error"]) or 1.0
        columns = ("mechanism", f"error at {stated_privacy(part).symbols}", "ratio to best")
        rows = [(row["mechanism"], *_texts(row)) for row in planned]
        stopped = any(row.get("interrupted") for row in planned)
        table = plain_table(
            title,
            (*columns, "measurements", "time"),
            rows,
            note="* stopped early, with the best so far" if stopped else "",
            ours=planned[0]["mechanism"],
        )
        lengths = [float(row["expected_squared_error"]) / most for row in planned]
        blocks.append(replace(table, rows=tuple(map(_with_bar, table.rows, lengths))))
    reasons, verdict = _reasons(part), _verdict(part)
    blocks += [Prose(reasons, "list")] if reasons else []
    blocks += [Prose((verdict,))] if verdict else []
    return blocks


def _with_bar(row: tuple[Cell, ...], length: float) -> tuple[Cell, ...]:
    error = replace(row[1], bar=(0.0, length, length, length))
    return (row[0], error, *row[2:])


def _texts(row: Mapping[str, Any]) -> tuple[str, ...]:
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


def _reasons(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Why mechanisms have no plan."""
    rows = (row for row in part["mechanisms"] if "reason" in row)
    return tuple(f"{row['mechanism']} has no plan: {row['reason']}" for row in rows)


def _verdict(part: Mapping[str, Any]) -> str:
    """How near the best of the mechanisms is to the best possible."""
    if not planned_rows(part):
        return "No mechanism has a plan for this workload."
    if not part.get("lower_bound"):
        return ""
    what = "added noise" if part.get("noise") == "shaped" else "strategy"
    bound = f"No {what} has an error below {number(float(part['lower_bound']), 5)}"
    known = part.get("best") and part.get("certificate")
    return f"{bound}: {part['best']} is {part['certificate']}." if known else f"{bound}."


def side_by_side_blocks(facts: Mapping[str, Any]) -> list[Block]:
    """Laplace beside Gaussian noise, and which to take."""
    rows = []
    pairs = zip(facts["laplace"]["mechanisms"], facts["gaussian"]["mechanisms"], strict=True)
    for outcome, other in pairs:
        errors = [row.get("expected_squared_error") for row in (outcome, other)]
        shown = ["—" if error is None else number(error, 5) for error in errors]
        share = ratio(errors[1] / errors[0]) if None not in errors and errors[0] > 0 else "—"
        rows.append((outcome["mechanism"], *shown, share))
    columns = ("mechanism", "Laplace error", "Gaussian error", "Gaussian/Laplace")
    reasons = (*_reasons(facts["laplace"]), *_reasons(facts["gaussian"]))
    listed: list[Block] = [Prose(reasons, "list")] if reasons else []
    return [plain_table("", columns, rows), *listed, Prose((advice(facts),))]


def advice(facts: Mapping[str, Any]) -> str:
    """What each noise guarantees at these amounts, and what the weaker guarantee would buy."""
    pure = stated_privacy(facts["laplace"]).symbols
    delta = equation("δ", parse_delta(str(facts["delta"])))
    shaped = facts["laplace"].get("noise") == "shaped"
    name = "shaped noise" if shaped else "Laplace"
    strength = (
        f"{'Shaped' if shaped else 'Laplace'} noise guarantees pure {pure}, which is stronger: "
        f"Gaussian noise may break it with probability {delta}."
    )
    laplace, gaussian = _least(facts["laplace"]), _least(facts["gaussian"])
    if facts["less_error"] is None or min(laplace, gaussian) <= 0:
        return strength
    if facts["less_error"] == "laplace":
        return (
            f"{strength} Here {name} has less error too: Gaussian noise has "
            f"{ratio(gaussian / laplace)} times as much. Take {name}."
        )
    return (
        f"{strength} It buys {ratio(laplace / gaussian)} times less error here: take Gaussian "
        f"where that is worth the weaker guarantee, else {name}."
    )


_READING = (
    "The error is the expected squared error, summed over the batch. Shorter bars are better.",
    "With Laplace noise it falls with the square of ε, with Gaussian noise in proportion to ρ.",
    "Ratios between mechanisms of one noise do not depend on the budget.",
    "The bound holds for every strategy that measures combinations of cells with such noise.",
)


def comparison_page(facts: Mapping[str, Any]) -> str:
    """The page of a comparison, or of Laplace beside Gaussian noise."""
    parts = _comparisons_in(facts)
    lead = "Several mechanisms on one batch of queries. Made without data; costs no privacy."
    sections = [
        Document(title, tuple(comparison_blocks(part, "Mechanisms, least error first")))
        for title, part in parts
    ]
    reading = Document("How to read this", (Prose(_READING, "list"),))
    title = f"Mechanisms for {facts.get('workload') or 'a batch'}"
    document = Document(title, (_key(facts, parts),), lead, (*sections, reading))
    return page(document, "Comparison")


def _key(facts: Mapping[str, Any], parts: list[tuple[str, dict[str, Any]]]) -> Numbers:
    less = facts.get("less_error")
    title, part = parts[1] if less == "gaussian" and len(parts) > 1 else parts[0]
    best = next(iter(planned_rows(part)), None)
    cells = f"over {part['cells']:,} cells" if isinstance(part.get("cells"), int) else ""
    numbers = []
    if isinstance(part.get("queries"), int):
        numbers.append(("queries", f"{part['queries']:,}", cells))
    if best is not None:
        error = number(float(best["expected_squared_error"]), 5)
        where = f"{best['mechanism']}, at {stated_privacy(part).symbols}"
        numbers.append(("least error", error, where))
    if part.get("lower_bound"):
        bound = number(float(part["lower_bound"]), 5)
        numbers.append(("best possible", bound, "or more, for any strategy"))
    if less is not None and len(parts) > 1:
        numbers.append(("less error with", title, "at equal ε"))
    return Numbers(tuple(numbers))


def _comparisons_in(facts: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The comparisons of a document with their titles: one, or one for each noise."""
    if "laplace" in facts and "gaussian" in facts:
        return [("Laplace noise", facts["laplace"]), ("Gaussian noise", facts["gaussian"])]
    return [("Error of each mechanism", dict(facts))]


def parse_comparison(data: bytes, source: str) -> dict[str, Any]:
    """Read the JSON of a comparison; anything else is a ``FileFormatError``."""
    try:
        facts = parse_json(data)
        for _, part in _comparisons_in(facts):
            _check(part)
    except (FileFormatError, BudgetError, ValueError, TypeError, KeyError, AttributeError):
        raise FileFormatError(
            f"{source} is not a plan, a release or a comparison; a comparison is what "
            "`lrm compare … --json` prints"
        ) from None
    return dict(facts)


def _check(part: dict[str, Any]) -> None:
    """Every mechanism has a name, and an error or a reason; bound and amounts are numbers."""
    float(part.get("lower_bound") or 0)
    stated_privacy(part)
    for row in part["mechanisms"]:
        if not isinstance(row["mechanism"], str):
            raise TypeError(row)
        if "reason" not in row:
            error = float(row["expected_squared_error"])
            if not (math.isfinite(error) and error >= 0):
                raise ValueError(row)
