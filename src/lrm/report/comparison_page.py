"""The page of a comparison, from what ``lrm compare --json`` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lrm.errors import BudgetError, FileFormatError
from lrm.files.json_text import parse_json
from lrm.privacy.amounts import parse_amount
from lrm.privacy.budget import LEAST_DELTA
from lrm.report.elements import (
    Markup,
    figure,
    items,
    key_numbers,
    paragraph,
    section,
    table,
)
from lrm.report.figures import draw_comparison
from lrm.report.page import page
from lrm.showing.spelling import equation, number, ratio, seconds

__all__ = ["comparison_page", "parse_comparison"]


def parse_comparison(data: bytes, source: str) -> dict[str, Any]:
    """Read the JSON of a comparison; anything else is a ``FileFormatError``."""
    try:
        facts = parse_json(data)
        for _, part in _parts(facts):
            _check(part)
    except (FileFormatError, ValueError, TypeError, KeyError, AttributeError):
        raise FileFormatError(
            f"{source} is no plan, no release and no comparison; a comparison is what "
            "`lrm compare … --json` prints"
        ) from None
    return dict(facts)


def comparison_page(facts: Mapping[str, Any]) -> str:
    """The page of a comparison, or of Laplace beside Gaussian noise."""
    parts = _parts(facts)
    workload = str(facts.get("workload") or "a batch")
    sections = [
        _key(facts, parts),
        *(_section(title, part) for title, part in parts),
        section("How to read this", items(_READING)),
    ]
    lead = "Several mechanisms on one batch of queries. Made without data; costs no privacy."
    return page("Comparison", f"Mechanisms for {workload}", lead, sections)


_READING = (
    "The error is the expected squared error, summed over the batch.",
    "With Laplace noise it falls with the square of ε, with Gaussian noise in proportion to ρ.",
    "Ratios between mechanisms of one noise do not depend on the budget.",
    "The bound holds for every strategy that measures combinations of cells with such noise.",
)


def _parts(facts: Any) -> list[tuple[str, dict[str, Any]]]:
    """The comparisons of a file with their titles: one, or one for each noise."""
    if "laplace" in facts and "gaussian" in facts:
        return [("Laplace noise", facts["laplace"]), ("Gaussian noise", facts["gaussian"])]
    return [("Error of each mechanism", facts)]


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


def _amount(part: Mapping[str, Any]) -> str:
    signs = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    given = [_equation(sign, part[name]) for name, sign in signs.items() if part.get(name)]
    return ", ".join(given) or "ε = 1"


def _equation(sign: str, amount: Any) -> str:
    try:
        return equation(sign, parse_amount(str(amount), sign, least=LEAST_DELTA))
    except BudgetError:
        return f"{sign} = {amount}"


def _key(facts: Mapping[str, Any], parts: list[tuple[str, dict[str, Any]]]) -> Markup:
    less = facts.get("less_error")
    title, part = parts[1] if less == "gaussian" and len(parts) > 1 else parts[0]
    planned = [row for row in part["mechanisms"] if "reason" not in row]
    best = min(planned, key=lambda row: row["expected_squared_error"], default=None)
    cells = f"over {part['cells']:,} cells" if isinstance(part.get("cells"), int) else ""
    numbers = []
    if isinstance(part.get("queries"), int):
        numbers.append(("queries", f"{part['queries']:,}", cells))
    if best is not None:
        error = number(float(best["expected_squared_error"]), 5)
        numbers.append(("least error", error, f"{best['mechanism']}, at {_amount(part)}"))
    if part.get("lower_bound"):
        bound = number(float(part["lower_bound"]), 5)
        numbers.append(("best possible", bound, "or more, for any strategy"))
    if less is not None and len(parts) > 1:
        numbers.append(("less error with", title, "at equal ε"))
    return key_numbers(numbers)


def _section(title: str, part: Mapping[str, Any]) -> Markup:
    planned = [row for row in part["mechanisms"] if "reason" not in row]
    without = [row for row in part["mechanisms"] if "reason" in row]
    body = [paragraph(f"Expected total squared error at {_amount(part)}.")]
    if planned:
        errors = [(row["mechanism"], float(row["expected_squared_error"])) for row in planned]
        bound = part.get("lower_bound")
        label = f"expected total squared error at {_amount(part)}"
        least = None if bound is None else float(bound)
        drawing = draw_comparison(errors, least, label, title.split(maxsplit=1)[0].lower())
        caption = "Shorter is better; the axis is logarithmic. Beside each bar: times the least."
        body += [figure(drawing, caption), _table(planned)]
    else:
        body.append(paragraph("No mechanism has a plan for this batch."))
    if without:
        reasons = [f"{row['mechanism']}: {row['reason']}" for row in without]
        body += [Markup("<h3>Without a plan</h3>"), items(reasons)]
    return section(title, *body)


def _table(planned: list[dict[str, Any]]) -> Markup:
    ordered = sorted(planned, key=lambda row: float(row["expected_squared_error"]))
    rows = [
        (
            row["mechanism"],
            number(float(row["expected_squared_error"]), 5),
            f"{ratio(_float(row.get('ratio_to_best')))}×",
            _whole(row.get("measurements")),
            _time(row),
        )
        for row in ordered
    ]
    stopped = "; * stopped early" if any(row.get("interrupted") for row in planned) else ""
    columns = ("mechanism", "error", "times the least", "measurements", "time")
    return table(f"Mechanisms, least error first{stopped}", columns, rows, ours=rows[0][0])


def _time(row: Mapping[str, Any]) -> str:
    taken = _float(row.get("seconds"))
    if not math.isfinite(taken):
        return "—"
    return seconds(taken) + ("*" if row.get("interrupted") else "")


def _float(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _whole(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "—"
