"""What may go wrong with a release of a plan although nothing is wrong with the plan.

It follows from the plan and its domain, not from data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lrm.exact.cells import CellMap

if TYPE_CHECKING:  # a plan has its warnings through this module
    from lrm.plans.core import Plan

__all__ = ["plan_concerns"]

NOTABLE = 1.005
"""Ratio to the even split from which on a statement is named."""


def plan_concerns(plan: Plan) -> tuple[str, ...]:
    """Name attributes that drop rows although no query distinguishes their values, and statements.

    Those statements are named that an even split of the budget would serve better.
    """
    return (*_dropping(plan), *_uneven(plan))


def _dropping(plan: Plan) -> tuple[str, ...]:
    domain = plan.workload.domain
    if domain is None:
        return ()
    unused = _undistinguished(plan)
    names = [
        attribute.name
        for attribute, same in zip(domain.attributes, unused, strict=True)
        if same and "drop" in {attribute.null, attribute.outside}
    ]
    if not names:
        return ()
    sentence = (
        f"rows are dropped by {', '.join(names)} (null or outside: drop), though no query "
        "distinguishes their values; delete attributes that no query needs, or give them cells"
    )
    return (sentence,)


def _undistinguished(plan: Plan) -> list[bool]:
    """Whether what is measured is the same for all values of each attribute."""
    needed_counts, domain = plan.measured.wanted, plan.workload.domain
    assert domain is not None  # noqa: S101 - the caller looked
    places = range(len(domain.attributes))
    if needed_counts is None:
        return [size == 1 for size in domain.shape]
    if isinstance(needed_counts, CellMap):
        treated = np.where(needed_counts.factor == 0, -1, needed_counts.index)
        blocks = [
            measured_part.reshape(domain.shape) for measured_part in (treated, needed_counts.factor)
        ]
        return [
            all(bool(np.all(block == block.take([0], axis=place))) for block in blocks)
            for place in places
        ]
    return [
        all(
            place not in measured_part.by and int(measured_part.labels[place].min()) >= 0
            for measured_part in needed_counts
        )
        for place in places
    ]


def _uneven(plan: Plan) -> list[str]:
    """Statements that an even split of the budget would serve better, and what would help."""
    ratios = plan.statement_ratios
    if ratios is None:
        return []
    return [
        f"statement {one.name!r} has {ratio:.2f} times its error under an even split of the "
        f"budget; `-- importance: {math.ceil(ratio**2 * 2)}` before it lowers it"
        for one, ratio in zip(plan.workload.statements, ratios.tolist(), strict=True)
        if ratio > NOTABLE
    ]
