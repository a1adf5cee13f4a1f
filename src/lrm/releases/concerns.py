"""What may go wrong with a release although nothing is wrong: rows that are dropped unnoticed.

Neither sentence depends on data: one follows from the plan, the other from released numbers.
"""

from __future__ import annotations

import math

import numpy as np

from lrm.errors import LrmError
from lrm.exact.cells import CellMap
from lrm.plans import Plan
from lrm.releases.core import Release

__all__ = ["dropping", "no_total"]

CHANCE = 0.01
"""Probability that noise alone looks like a total, for Laplace noise; less for Gaussian."""


def dropping(plan: Plan) -> str | None:
    """Say which attributes drop rows although no query distinguishes their values."""
    domain = plan.workload.domain
    if domain is None:
        return None
    unused = _undistinguished(plan)
    names = [
        attribute.name
        for attribute, same in zip(domain.attributes, unused, strict=True)
        if same and "drop" in {attribute.null, attribute.outside}
    ]
    if not names:
        return None
    return (
        f"rows are dropped by {', '.join(names)} (null or outside: drop), though no query "
        "distinguishes their values; delete attributes that no query needs, or give them cells"
    )


def _undistinguished(plan: Plan) -> list[bool]:
    """Whether what is measured is the same for all values of each attribute."""
    wanted, domain = plan.measured.wanted, plan.workload.domain
    assert domain is not None  # noqa: S101 - the caller looked
    places = range(len(domain.attributes))
    if wanted is None:
        return [size == 1 for size in domain.shape]
    if isinstance(wanted, CellMap):
        treated = np.where(wanted.factor == 0, -1, wanted.index)
        blocks = [one.reshape(domain.shape) for one in (treated, wanted.factor)]
        return [
            all(bool(np.all(block == block.take([0], axis=place))) for block in blocks)
            for place in places
        ]
    return [
        all(place not in one.by and int(one.labels[place].min()) >= 0 for one in wanted)
        for place in places
    ]


def no_total(release: Release) -> str | None:
    """Say where no released number is distinguishable from zero: perhaps every row was dropped."""
    if _distinct(release) or _total_is_distinct(release):
        return None
    return (
        "no answer of this release is distinguishable from zero; if the table has rows, perhaps "
        "all were dropped: `lrm domain check --table … --rows` shows it to the data owner"
    )


def _distinct(release: Release) -> bool:
    errors = release.standard_errors
    # A Laplace variable exceeds t standard deviations with probability exp(-t √2).
    least = math.log(len(errors) / CHANCE) / math.sqrt(2)
    return bool(np.any(np.abs(release.answers) > least * errors))


def _total_is_distinct(release: Release) -> bool:
    domain = release.plan.workload.domain
    if domain is None:
        return False
    table = (domain.table or "t").replace('"', '""')
    try:
        query = f'SELECT COUNT(*) AS n FROM "{table}"'  # noqa: S608 - compiled, never run
        return _distinct(release.query(query))
    except LrmError:  # what was measured does not tell
        return False
