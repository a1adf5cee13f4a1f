"""What may go wrong with a release of a plan although nothing is wrong with the plan.

It follows from the plan and its domain, not from data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a plan has its warnings through this module
    from lrm.planning.plan.core import Plan

NOTABLE = 1.005
"""Ratio to the even split from which on a statement is named."""

MOST_NAMED = 3
"""Statements that have a warning each; of more, the first are named in one."""


def plan_concerns(plan: Plan) -> tuple[str, ...]:
    """Name attributes that drop rows although no query distinguishes their values, and statements.

    Those statements are named that an even split of the budget would serve better.
    """
    return (*_dropping(plan), *_uneven(plan))


def _dropping(plan: Plan) -> tuple[str, ...]:
    domain = plan.workload.domain
    if domain is None:
        return ()
    names = [
        attribute.name
        for place, attribute in enumerate(domain.attributes)
        if "drop" in {attribute.null, attribute.outside}
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
    ratios = None if plan.even_split is None else plan.statement_ratios
    if ratios is None:
        return []
    pairs = zip(ratios.tolist(), plan.workload.statements, strict=True)
    above = [(ratio, statement.name) for ratio, statement in pairs if ratio > NOTABLE]
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
