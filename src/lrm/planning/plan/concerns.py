"""What may go wrong with a release of a plan although nothing is wrong with the plan.

It follows from the plan and its domain, not from data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lrm.planning.limits import BLOCK
from lrm.privacy.norms import L2

if TYPE_CHECKING:  # a plan has its warnings through this module
    from lrm.planning.plan.core import Plan

NOTABLE = 1.005
"""Ratio to an even split, or to a baseline, from which on errors are larger than that."""

NEAR = 0.98
"""Ratio to an even split, or to a baseline, from which on planning has gained next to nothing."""

PLAIN = ("noise-on-data", "noise-on-results")
"""The baselines that the error of a plan is compared with."""

MOST_NAMED = 3
"""Statements that have a warning each; of more, the first are named in one."""


def plan_concerns(plan: Plan) -> tuple[str, ...]:
    """Name attributes that drop rows although no query distinguishes their values, and statements.

    Those statements are named that an even split of the budget would serve better, or as well; and
    a baseline that is as good as the plan.
    """
    return (*_dropping(plan), *larger_errors(plan), *_near(plan))


def warned_of(plan: Plan, *, chosen: bool) -> list[str]:
    """What ``lrm.plan`` warns of: all, without those of errors that the caller has ``chosen``."""
    expected = {*larger_errors(plan), *_near(plan)} if chosen else ()
    return [sentence for sentence in plan.warnings if sentence not in expected]


def larger_errors(plan: Plan) -> tuple[str, ...]:
    """In which statements an even split is better, and which baseline is; what would help."""
    sentences = _uneven(plan)
    baseline = best_baseline(plan)
    if baseline is not None and baseline[1] > NOTABLE:
        name, ratio = baseline
        sentences.append(
            f"{name} has less error: this plan has {ratio:.2f} times its squared error; plan with "
            f"mechanism {name!r}, with more effort, or without a time limit"
        )
    return tuple(sentences)


def best_baseline(plan: Plan) -> tuple[str, float] | None:
    """The better of two baselines, and the total squared error of a plan relative to its.

    None where errors are not added up with one weight, where both are too much work, for a
    baseline itself, and for a body whose covariance takes seconds to simulate: the search takes
    one where it is clearly better than all else.
    """
    batch = plan.workload
    if plan.objective != "total" or plan.mechanism in PLAIN or batch.importance is not None:
        return None
    body = plan.measured.body
    if isinstance(plan.measured.norm, L2) or not plan.exact or (body and body.simulated):
        return None
    if len(plan.levels) > 1:  # a person moves levels by different numbers of rows
        return None
    if batch.queries.entry_count > BLOCK:
        return None
    if batch.products is not None and not batch.products.is_flat:
        return None  # few weights over cells that are too many to be listed
    sums = batch.queries.column_absolute_sums()
    errors = [batch.queries.squared_norm(), batch.shape[0] * float(sums.max(initial=0.0)) ** 2]
    best = min(range(2), key=errors.__getitem__)
    return (PLAIN[best], plan.strategy_error / errors[best]) if errors[best] else None


def _near(plan: Plan) -> tuple[str, ...]:
    """What planning gains next to nothing for: some statements, or the whole batch."""
    baseline = best_baseline(plan)
    if baseline is not None and NEAR <= baseline[1] <= NOTABLE:
        # Ratio to the lower bound up to which an error is as good as proven to be the least.
        if plan.strategy_error <= 1.001 * plan.least_total:
            return ()  # no strategy has less
        sentence = (
            f"planning gains next to nothing for this batch: {baseline[0]} has the same error; "
            "more effort may help, and so do queries that share rows"
        )
        return (sentence,)
    near = [(ratio, name) for ratio, name in _ratios(plan) if ratio >= NEAR]
    if not near or max(near)[0] > NOTABLE:  # larger ones are named, with the same advice
        return ()
    near.sort(key=lambda pair: -pair[0])
    named = ", ".join(f"{name!r} ({ratio:.2f})" for ratio, name in near[:MOST_NAMED])
    more = "" if len(near) <= MOST_NAMED else f" and {len(near) - MOST_NAMED:,} more"
    sentence = (
        f"planning gains next to nothing for {named}{more}, compared with an even split of the "
        "budget; `-- importance: 4` before a statement lowers its error, and a batch of fewer "
        "statements those of all"
    )
    return (sentence,)


def _ratios(plan: Plan) -> list[tuple[float, str]]:
    """The errors of statements relative to an even split, where they are known."""
    known = all(
        level.even_split is not None or len(level.workload.statements) < 2 for level in plan.levels
    )
    ratios = plan.statement_ratios if known else None
    if ratios is None:
        return []
    return [
        (ratio, statement.name)
        for ratio, statement in zip(ratios.tolist(), plan.workload.statements, strict=True)
    ]


def _dropping(plan: Plan) -> tuple[str, ...]:
    domain = plan.workload.domain
    if domain is None:
        return ()
    names = [
        attribute.name
        for place, attribute in enumerate(domain.attributes)
        if attribute.drops
        and not attribute.rest
        and not any(table.depends_on(place, domain.shape) for table in plan.measured.tabulations)
    ]
    if not names:
        return ()
    sentence = (
        f"rows are dropped by {', '.join(names)} (null or outside: drop), though no query "
        "distinguishes their values; delete attributes that no query needs, or give them cells"
    )
    return (sentence,)


def _uneven(plan: Plan) -> list[str]:
    """Statements that an even split of the budget would serve better, and what would help."""
    ratios = _ratios(plan)
    above = [(ratio, name) for ratio, name in ratios if ratio > NOTABLE]
    if len(above) > MOST_NAMED:
        above.sort(key=lambda pair: -pair[0])
        named = ", ".join(f"{name!r} {ratio:.2f} times" for ratio, name in above[:MOST_NAMED])
        sentence = (
            f"{len(above):,} of {len(ratios):,} statements have larger errors than under an even "
            f"split of the budget, the most {named}; `-- importance: {_needed(above[0][0])}` "
            "before a statement lowers its error, and a batch of fewer statements those of all"
        )
        return [sentence]
    return [
        f"statement {name!r} has {ratio:.2f} times its error under an even split of the budget; "
        f"`-- importance: {_needed(ratio)}` before it lowers it"
        for ratio, name in above
    ]


def _needed(ratio: float) -> int:
    return math.ceil(ratio**2 * 2)
