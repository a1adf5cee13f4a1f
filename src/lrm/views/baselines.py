"""What other mechanisms would have made of the same batch, query by query."""

from __future__ import annotations

import numpy as np

from lrm.errors import ConvergenceError, UsageError
from lrm.files.spelling import many, number, ratio
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.privacy.norms import norm_of
from lrm.queries.maps.linear import Floats
from lrm.views.blocks import Table, plain_table
from lrm.views.statement_errors import comparable_rows

SMALL_BATCH = 1 << 22
"""Weights (queries times cells) up to which trees are built to compare with."""

LARGE_BATCH = 1 << 31
"""Weights from which on no baseline is rated: it would list the cells."""

TREES = ("hierarchical", "wavelet")


def errors_by_mechanism(plan: Plan, accuracy: Accuracy, *, trees: bool = True) -> dict[str, Floats]:
    """Standard errors of the plan, then of baselines that need no search, least total first.

    Of the counts alone: sums and averages have units of their own.

    Trees take longer to build than the others.
    """
    queries, products = plan.workload.queries, plan.workload.products
    _, rows = comparable_rows(plan.workload)
    ours = accuracy.standard_errors[rows]
    unlisted = products is not None and not products.is_flat
    if len(plan.levels) > 1 or unlisted or queries.shape[0] * queries.shape[1] > LARGE_BATCH:
        return {plan.mechanism: ours}
    squares = np.concatenate([(block**2).sum(axis=1) for _, block in queries.row_blocks()])
    norm = plan.measured.norm
    worst = float(queries.column_power_sums(norm.order).max()) ** (1 / norm.order)
    by_mechanism = {
        "noise-on-data": np.sqrt(squares[rows]) * accuracy.ideal_deviation(1.0),
        "noise-on-results": np.full(len(rows), accuracy.ideal_deviation(worst)),
    }
    if trees and queries.shape[0] * queries.shape[1] <= SMALL_BATCH:
        by_mechanism |= {
            name: errors[rows] for name in TREES if (errors := _tree(plan, name, accuracy)).size
        }
    by_mechanism.pop(plan.mechanism, None)
    ordered = sorted(by_mechanism.items(), key=lambda pair: float((pair[1] ** 2).sum()))
    return {plan.mechanism: ours, **dict(ordered)}


def _tree(plan: Plan, name: str, accuracy: Accuracy) -> Floats:
    # All mechanisms: the page of a release needs none of them.
    from lrm.planning.plan.proposals import Proposal  # noqa: PLC0415
    from lrm.planning.strategies import build_strategy  # noqa: PLC0415
    from lrm.planning.strategies.base import Problem, Search  # noqa: PLC0415

    problem = Problem(plan.workload)
    bounds = plan.least_error, plan.spectrum
    norm = norm_of(plan.noise, plan.unit)
    try:
        strategy = build_strategy(name, problem, Search(0, norm), {})
        other = Proposal(problem, strategy, norm).plan(bounds)
    except (UsageError, ConvergenceError):
        return np.empty(0)  # it cannot run on this batch
    return np.sqrt(other.reconstruction_map.row_squared_norms) * accuracy.ideal_deviation(
        other.sensitivity
    )


def baseline_table(plan: Plan, errors: dict[str, Floats], symbols: str) -> Table:
    """The mechanisms with their errors, the first in front of all; totals beside that of it."""
    totals = [float((each**2).sum()) for each in errors.values()]
    rows: list[tuple[str, ...]] = []
    for (name, each), total in zip(errors.items(), totals, strict=True):
        typical = number(float(np.sqrt(total / len(each))))
        against = ratio(total / totals[0] if totals[0] > 0 else float("nan"))
        rows.append((name, typical, number(float(each.max())), f"{against}×"))
    names, chosen = comparable_rows(plan.workload)
    title = f"Other mechanisms on the same {many(len(chosen), *names)} at {symbols}"
    columns = ("mechanism", "root mean square", "largest error", "total squared error")
    return plain_table(title, columns, rows, ours=plan.mechanism)
