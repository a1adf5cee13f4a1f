"""The output about a plan: strategy, errors at a guarantee, distance from the lower bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np

from lrm.domain.people import PERSONS
from lrm.files.spelling import how_many, in_percent, many, number, ratio, seconds
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import ApproxDP, PureDP, zcdp_of
from lrm.privacy.laws import LatticeLaw
from lrm.privacy.norms import unit_privacy
from lrm.queries.workload import EXPLICIT_QUERIES, Label, Workload
from lrm.views.blocks import Block, Prose, plain_table
from lrm.views.derived import expected_facts
from lrm.views.statement_errors import StatementErrors, comparable_rows, statement_facts

Lines = list[tuple[str, str]]
"""Names and values, as text; an empty name continues the line above."""

NOT_KNOWN = "how near to the best possible is not known"

PROVED = 1.0005
"""A ratio to the best possible up to which a plan is called optimal."""


def plan_facts(plan: Plan) -> dict[str, Any]:
    """What a plan tells, errors at ε = 1 or ρ = 1 before what lattices save."""
    expected = plan.accuracy(unit_privacy(plan.noise)).nominal
    ratios = plan.statement_ratios
    details = ("seconds", "timings", "converged", "interrupted", "software")
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        "exact": plan.exact,
        "queries": plan.workload.shape[0],
        "cells": plan.workload.declared_size,
        "merged_cells": plan.measured.merged_cell_count,
        "rank": plan.workload_rank,
        "measurements": plan.measurement_count,
        "sensitivity": plan.sensitivity,
        "expected_squared_error": expected.squared_error,
        "root_mean_squared_error": expected.root_mean_squared_error,
        "lower_bound": expected.lower_bound,
        "at_most_above_best": plan.at_most_above_best,
        "objective": plan.objective,
        "of_even_split": None if ratios is None else ratios.tolist(),
        "max_records": plan.max_records,
        **{name: plan.details.get(name) for name in details},
        "digest": plan.digest,
        "warnings": list(plan.warnings),
    }


def plan_lines(plan: Plan) -> Lines:
    """What a plan tells, as text."""
    queries, rank = plan.workload.shape[0], plan.workload_rank
    amount, sensitivity = plan.measured.norm.symbol, number(plan.sensitivity)
    total = plan.accuracy(unit_privacy(plan.noise)).nominal.squared_error
    lines = [
        ("mechanism", mechanism_words(plan)),
        ("queries", f"{queries:,}" + ("" if rank is None else f", rank {rank:,}")),
        ("cells", _merged_words(plan)),
        ("measurements", f"{plan.measurement_count:,}, sensitivity {sensitivity}"),
        *noise_lines(plan),
        (f"error at {amount} = 1", f"{number(total, 6)} expected total squared error"),
        *_typical_lines(plan),
        *balance_lines(plan),
        ("records", f"at most {plan.max_records:,} in a table"),
    ]
    if plan.workload.domain is not None:
        lines.append(("protects", plan.unit.words))
        lines += [("", limit) for limit in [plan.unit.limit] if limit and len(plan.levels) == 1]
        lines += [("clipped", sentence) for sentence in plan.clipping]
    return [*lines, *_search_lines(plan.details)]


def _search_lines(details: Mapping[str, Any]) -> Lines:
    """How long the search took, and with which version; nothing of what is not known."""
    lines = []
    if details.get("seconds") is not None:
        lines.append(("found in", seconds(details["seconds"]) + _ending(details)))
    if details.get("timings"):
        stages = [
            f"{stage} {spent:.{1 if spent < 9.95 else 0}f} s"
            for stage, spent in details["timings"].items()
        ]
        lines.append(("CPU time", ", ".join(stages)))
    if details.get("software") is not None:
        lines.append(("software", details["software"]))
    return lines


def level_names(plan: Plan) -> list[str]:
    """What the levels of a plan are called; an empty name where there is one.

    >>> import lrm
    >>> level_names(lrm.plan([[1, 1]], "noise-on-data"))
    ['']
    """
    if len(plan.levels) == 1:
        return [""]
    domains = [level.workload.domain for level in plan.levels]
    labels = [getattr(domain and domain.level, "label", "") for domain in domains]
    return ["persons" if label == PERSONS else f"rows of {label}" for label in labels]


def cell_words(plan: Plan) -> str:
    """How many declared cells the queries are over; those of all levels."""
    counts = [level.workload.declared_size for level in plan.levels]
    return " and ".join(map(how_many, counts)) + (" cell" if counts == [1] else " cells")


def _merged_words(plan: Plan) -> str:
    """The declared cells, and those that queries distinguish where they are fewer."""
    words = []
    for name, level in zip(level_names(plan), plan.levels, strict=True):
        cells, merged = level.workload.declared_size, level.measured.merged_cell_count
        after = f", {merged:,} after merging" if merged < cells else ""
        words.append(f"{how_many(cells)}{f' of {name}' if name else ''}{after}")
    return "; ".join(words)


def noise_lines(plan: Plan) -> Lines:
    """The noise; of several levels that of each, with its share and its limit of rows."""
    if len(plan.levels) == 1:
        return [("noise", noise_words(plan))]
    lines = []
    whole = unit_privacy(plan.noise)
    pairs = zip(level_names(plan), plan.releases(whole), strict=True)
    for name, (level, part) in pairs:
        share = float(next(iter(part.amounts.values())))
        lines.append((name, f"{in_percent(share)} of the guarantee, {noise_words(level)} noise"))
        lines += [("", limit) for limit in [level.unit.limit] if limit]
    return lines


def _typical_lines(plan: Plan) -> Lines:
    """The error of a typical count, where it is not long to compute."""
    if plan.workload.shape[0] > EXPLICIT_QUERIES:
        return []
    (name, _), rows = comparable_rows(plan.workload)
    errors = plan.accuracy(unit_privacy(plan.noise)).nominal.standard_errors[rows]
    typical = math.sqrt(float((errors**2).mean())) if len(errors) else 0.0
    return [("", f"{number(typical)} root mean squared error of a {name}")]


def balance_lines(plan: Plan) -> Lines:
    """The errors of statements relative to an even split, as text."""
    ratios = plan.statement_ratios
    if ratios is None:
        return []
    typical = math.exp(float(np.log(ratios).mean()))
    words = f"{plan.objective}: statements have {ratios.min():.2f} to {ratios.max():.2f} of their "
    return [("objective", f"{words}errors under an even split, typically {typical:.2f}")]


def title(workload: Workload, singular: str, several: str) -> str:
    """How many queries or answers there are, and about which table."""
    domain = workload.domain
    about = f" about {domain.table}" if domain and domain.table else ""
    return many(len(workload.shown), singular, several) + about


def mechanism_words(plan: Plan) -> str:
    """The mechanism with what must be known of it."""
    return plan.mechanism if plan.exact else f"{plan.mechanism} (relaxed: answers are biased)"


def noise_words(plan: Plan) -> str:
    """The kind of noise; of shaped noise also what it is shaped by."""
    body = plan.measured.body
    if body is not None:
        return f"shaped to the batch ({body.words})"
    return f"discrete {plan.noise.capitalize()}"


def certificate(plan: Plan) -> str:
    """How near to the best possible a plan is for certain; the ratio is never rounded down."""
    above = plan.at_most_above_best
    if not math.isfinite(above):
        return NOT_KNOWN
    if plan.noise == "gaussian":
        shown = ratio(math.ceil(above * 1000) / 1000 if above < 10 else above)
        return f"within {shown} of the best possible"
    if plan.noise == "shaped":
        return f"at most {ratio(above)}× above any added noise"
    return f"at most {ratio(above)}× above the best possible"


def bound_words(plan: Plan) -> str:
    """How near a plan is to the best possible: a sentence about strategies with its noise."""
    if not plan.exact:
        return "The plan is relaxed: its answers have a bias that is not counted here."
    if not math.isfinite(plan.at_most_above_best):
        return "How near this is to the best possible is not known."
    weighted = "" if plan.workload.importance is None else ", weighted by importance"
    if plan.noise == "shaped":
        return (
            f"The total error{weighted and weighted + ','} is at most "
            f"{ratio(plan.at_most_above_best)} times the least that any noise added to the answers "
            "can have."
        )
    strategy = f"{plan.measured.norm.words} strategy"
    if plan.at_most_above_best <= PROVED:
        return f"No {strategy} can have a smaller total error{weighted}: that is proved."
    return (
        f"The total error{weighted and weighted + ','} is at most {ratio(plan.at_most_above_best)} "
        f"times the least that any {strategy} can have: that is proved, not estimated."
    )


def _ending(details: Mapping[str, Any]) -> str:
    if details.get("interrupted"):
        return " (stopped early: the best so far)"
    return " (not converged: the best so far)" if details.get("converged") is False else ""


def error_facts(
    plan: Plan, expected: Accuracy, confidence: float, limit: int | None
) -> dict[str, Any]:
    """The errors of a plan at a guarantee, in total and query by query.

    With ``limit``, that many queries are listed, the largest errors first; else all.
    """
    return {
        "confidence": confidence,
        "expected_squared_error": expected.squared_error,
        "root_mean_squared_error": expected.root_mean_squared_error,
        "at_most_above_best": plan.at_most_above_best,
        "bounds": _bounds(plan, expected),
        "queries": [
            {**label.facts, "standard_error": deviation, "half_width": half}
            for label, deviation, half in worst_queries(plan, expected, confidence, limit)
        ],
    }


def error_lines(plan: Plan, expected: Accuracy) -> Lines:
    """The plan, and the guarantee at which errors are stated."""
    privacy = expected.privacy
    lines = [("plan", f"{many(plan.workload.shape[0], 'query', 'queries')} by {plan.mechanism}")]
    lines += [(name, spell_amount(value)) for name, value in asdict(privacy).items()]
    if isinstance(privacy, ApproxDP):
        parts = [zcdp_of(part).rho for _, part in plan.releases(privacy)]
        rho = spell_amount(sum(parts, Fraction(0)), "up")
        lines.append(("", f"by Gaussian noise for rho {rho}, which a ledger is charged"))
    if isinstance(expected.law, LatticeLaw):
        steps = np.broadcast_to(expected.law.steps, plan.measurement_count)
        lattices = f"{int((steps > 1).sum()):,} of {plan.measurement_count:,} measurements"
        lines.append(("noise", f"on multiples of the weight of {lattices}"))
    return lines


def bound_lines(plan: Plan, expected: Accuracy) -> Lines:
    """The total error compared with the least that is possible: statements about strategies."""
    bounds = _bounds(plan, expected)
    total = ("total error", f"{number(expected.squared_error, 6)} (expected, squared)")
    # Bounds on Laplace strategies do not hold for shaped noise; of levels none is known.
    if plan.noise == "shaped" or len(plan.levels) > 1:
        return [total, ("best possible", certificate(plan))]
    strategy = f"{plan.measured.norm.words} strategy"
    lines = [
        total,
        ("best possible", f"{number(bounds['lower_bound'], 6)} or more for any {strategy}, so"),
        ("", f"this plan is {certificate(plan)}"),
    ]
    if "svd_lower_bound" not in bounds:
        return lines
    svd = bounds["svd_lower_bound"]
    paper = number(bounds["paper_upper_bound"], 6)
    shape = f"rank r = {bounds['rank']} and condition C = {number(bounds['condition'])}"
    lines.append(("SVD bound", f"{number(svd, 6)} or more for any {strategy}"))
    if "any_mechanism_lower_bound" in bounds:
        volume = number(bounds["any_mechanism_lower_bound"], 6)
        lines.append(("volume bound", f"{volume} or more for any private mechanism"))
    return [
        *lines,
        ("paper's bound", f"{paper} or less for the best {strategy}"),
        ("", f"from {shape} of the workload"),
    ]


def _bounds(plan: Plan, expected: Accuracy) -> dict[str, float]:
    """The bounds at a guarantee; those of the paper, with its C and r, for Laplace noise."""
    bounds: dict[str, float] = {"lower_bound": expected.lower_bound}
    spectrum, privacy = plan.spectrum, expected.privacy
    if spectrum is None:
        return bounds
    bounds |= {"rank": spectrum.rank, "condition": spectrum.condition}
    if not isinstance(privacy, PureDP):
        return bounds
    scale = (float(privacy.epsilon) / expected.unit.factor) ** 2
    if not expected.unit.is_replaced:  # replaced units move differences of columns only
        bounds["any_mechanism_lower_bound"] = spectrum.any_mechanism_lower_bound / scale
    return {
        **bounds,
        "svd_lower_bound": spectrum.lower_bound / scale,
        "paper_upper_bound": spectrum.upper_bound / scale,
        "paper_volume_bound_as_printed": spectrum.volume_bound_as_printed / scale,
    }


def worst_queries(
    plan: Plan, expected: Accuracy, confidence: float, limit: int | None
) -> list[tuple[Label, float, float]]:
    """The queries of largest error: label, standard error, half-width of the interval.

    Empty where there are too many queries to hold a number for each.
    """
    labels = plan.workload.labels
    most = EXPLICIT_QUERIES if limit is None else limit
    ranges: Iterable[tuple[int, int]] = labels.shown_ranges()
    if len(labels) > EXPLICIT_QUERIES:
        if limit is None or not expected.reconstruction.is_blockwise:
            return []
        ranges = expected.reconstruction.row_ranges()
    worst, errors = np.zeros(0, dtype=np.int64), np.zeros(0)
    for start, stop in ranges:
        worst = np.concatenate([worst, np.arange(start, stop)])
        errors = np.concatenate([errors, expected.errors_of(start, stop)])
        # Rounding errors do not decide the order of queries with the same error.
        order = np.argsort(-errors.round(9), kind="stable")[:most]
        worst, errors = worst[order], errors[order]
    half = expected.half_widths(confidence, worst.tolist())
    return [
        (labels[i], error, width)
        for i, error, width in zip(worst.tolist(), errors.tolist(), half.tolist(), strict=True)
    ]


def worst_blocks(plan: Plan, expected: Accuracy, confidence: float, limit: int) -> list[Block]:
    """The queries of largest error with their intervals; a sentence where there are too many."""
    rows = [
        (label.name, number(error), f"±{number(half)}")
        for label, error, half in worst_queries(plan, expected, confidence, limit)
    ]
    queries = sum(stop - start for start, stop in plan.workload.labels.shown_ranges())
    if not rows:
        return [Prose((f"none of {queries:,} queries listed",))] if limit and queries else []
    shown = "" if len(rows) == queries else f"{len(rows):,} of {queries:,} "
    title = f"{shown or 'all '}queries, the largest errors first"
    columns = ("query", "standard error", f"{in_percent(confidence)} interval")
    return [plain_table(title[0].upper() + title[1:], columns, rows)]


def explanation_facts(
    plan: Plan,
    expected: Accuracy,
    confidence: float,
    limit: int | None,
    expect: float | None = None,
) -> dict[str, Any]:
    """What ``lrm explain`` tells; ``expect`` is the number of rows of a denominator."""
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        **expected.privacy.facts,
        **error_facts(plan, expected, confidence, limit),
        "statements": statement_facts(
            StatementErrors(plan, plan.statement_ratios).at(expected, confidence)
        ),
        "derived": expected_facts(plan, expected, confidence, expect),
    }
