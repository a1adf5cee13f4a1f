"""What released numbers say about the table: perhaps every row was dropped.

Nothing but the release is looked at, so that it costs no privacy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lrm.errors import LrmError
from lrm.queries.workload import EXPLICIT_QUERIES

if TYPE_CHECKING:  # a release has its warnings through this module
    from lrm.releases.core import Release

CHANCE = 0.01
"""Probability that noise alone looks like a total, for Laplace noise; less for Gaussian."""

NO_TOTAL = (
    "no answer of this release is distinguishable from zero; if the table has rows, perhaps "
    "all were dropped: `lrm domain check --table … --rows` (of an edition with --edition) shows "
    "it to the data owner"
)


def release_concerns(release: Release) -> tuple[str, ...]:
    """Warn where no released number is distinguishable from zero.

    Of more than 4 million answers the total alone is looked at.
    """
    count = release.plan.workload.shape[0]
    if count > EXPLICIT_QUERIES:
        distinct = _total_is_distinct(release, unknown=True)
    else:
        distinct = _distinct(release) or _total_is_distinct(release, unknown=False)
    return () if distinct else (NO_TOTAL,)


def _distinct(release: Release) -> bool:
    errors = release.standard_errors
    # A Laplace variable exceeds t standard deviations with probability exp(-t √2).
    least = math.log(len(errors) / CHANCE) / math.sqrt(2)
    return bool(np.any(np.abs(release.answers) > least * errors))


def _total_is_distinct(release: Release, *, unknown: bool) -> bool:
    """Whether the number of rows is; ``unknown`` where the measurements do not determine it."""
    domain = release.plan.workload.domain
    if domain is None:
        return unknown
    table = (domain.table or "t").replace('"', '""')
    try:
        query = f'SELECT COUNT(*) AS n FROM "{table}"'  # noqa: S608 - compiled, never run
        return _distinct(release.query(query))
    except LrmError:
        return unknown
