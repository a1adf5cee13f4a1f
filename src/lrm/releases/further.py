"""Further queries from a release, at no further cost.

The noisy measurements are public. Any query that is a combination of the strategy's rows
follows from them, with a known error; any other one is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lrm.errors import ConvergenceError, UnsupportedQuery, WorkloadError
from lrm.quantise import inverse_of
from lrm.reconstruction import Reconstruction
from lrm.reduce import over_merged
from lrm.releases.core import Release
from lrm.workload import as_workload

__all__ = ["answer_further"]


def answer_further(release: Release, workload: Any) -> Release:
    """Answer other queries over the same cells from what was released.

    Costs no privacy: it looks at nothing but the release. The result is a release of
    the same measurements, with answers and errors of the new queries.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1, 1], [1, 0, 0]], "noise-on-data")
    >>> release = lrm.release(plan, [10, 20, 30], epsilon=1)
    >>> len(answer_further(release, [[0, 1, 0], [0, 0, 1]]).answers)
    2
    """
    plan = release.plan
    asked = as_workload(workload)
    if asked.domain is None:  # the release is about the same cells, whoever numbers them
        asked = replace(asked, domain=plan.workload.domain)
    cells = plan.measured.cells
    if asked.shape[1] != cells.size:
        raise WorkloadError(
            f"the release covers {cells.size} cells but the queries cover {asked.shape[1]}; "
            "were they written for another domain?"
        )
    merged = over_merged(asked.queries, cells)
    if merged is None:
        raise UnsupportedQuery(
            "these queries tell cells apart that were measured as one; "
            "plan a new release that includes them"
        )
    rebuild = Reconstruction(merged, plan.rebuild.measured, inverse_of(plan.measured))
    try:
        return replace(release, plan=replace(plan, workload=asked, rebuild=rebuild, exact=True))
    except ConvergenceError:
        raise UnsupportedQuery(
            "the measurements of this release do not determine these queries; ask for sums "
            "of what was measured, or plan a new release that includes them"
        ) from None
