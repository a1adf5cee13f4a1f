"""A rehearsal: the whole release on synthetic rows, before any data is read or budget spent."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from lrm.domain import Attribute, Bins, Categories, Dates, Domain, Numbers, SteppedAttribute
from lrm.errors import PrivacyWarning, ReleaseWarning, UsageError
from lrm.planning.plan import Plan
from lrm.privacy.budget import Privacy
from lrm.queries.workload import Statement
from lrm.releases import Release, release
from lrm.views.statement_errors import Part, statement_parts

USUAL_ROWS = 100_000
"""Synthetic rows where no sizes are expected."""

MOST_ROWS = 10_000_000
"""Synthetic rows, which are held in memory."""


def rehearse(plan: Plan, privacy: Privacy, rows: int | None = None) -> Release:
    """Release a plan on rows that are drawn uniformly from its domain.

    The noise is that of a real release, so that intervals and verdicts look as they will. The
    result is marked as simulated wherever it is shown or saved: it is about nobody, and it
    guarantees nothing. No ledger and no table is needed.

    The number of rows is `expected_rows` where none is given.
    """
    rows = expected_rows(plan) if rows is None else rows
    if not 1 <= rows <= MOST_ROWS:
        raise UsageError(f"a rehearsal draws between 1 and {MOST_ROWS:,} rows, not {rows:,}")
    amounts: dict[str, Any] = dict(privacy.amounts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)  # about rows that nobody has
        made = release(plan, _table(plan, rows), **amounts, ledger=None)
    return replace(made, simulated=True)


def expected_rows(plan: Plan) -> int:
    """The rows with which the counts of tables have their expected sizes, in the median.

    Sums are taken where a table has no counts. A table of a hundred thousand uniform rows shows how
    large a usual answer of each statement is; answers grow in proportion to the rows. Without
    ``-- expected: N`` in the batch, that many.
    """
    sized: dict[Statement, Part] = {}
    for part in statement_parts(plan.workload):  # of a statement, its counts come first
        if part.statement.expected is not None and part.kind != "derived":
            sized.setdefault(part.statement, part)
    if not sized:
        return USUAL_ROWS
    norm = plan.measured.norm
    strong = norm.guarantee(Fraction(1000) ** (2 // norm.power))
    amounts: dict[str, Any] = dict(strong.amounts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # about rows that nobody has
        warnings.simplefilter("ignore", ReleaseWarning)
        pilot = release(plan, _table(plan, USUAL_ROWS), **amounts, ledger=None)
    factors = []
    for table, part in sized.items():
        values = np.concatenate([pilot.rows(rows.start, rows.stop) for rows in part.rows])
        answer = float(np.median(np.abs(values)))
        if answer >= 1 and table.expected is not None:
            factors.append(table.expected / answer)
    factor = float(np.median(factors)) if factors else 1.0
    return min(max(1, round(USUAL_ROWS * factor)), MOST_ROWS)


def _table(plan: Plan, rows: int) -> Any:
    """Uniform rows, or their counts where the plan has no domain."""
    domain = plan.workload.domain
    if domain is not None:
        return synthetic_rows(domain, rows)
    cells = plan.workload.shape[1]
    random = np.random.default_rng(0)
    return np.bincount(random.integers(0, cells, rows), minlength=cells)


def synthetic_rows(domain: Domain, rows: int) -> Any:
    """Rows of a table of the domain as a ``pyarrow.Table``, every declared cell equally likely.

    Each row has a person of its own where the domain has a column of persons.
    """
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    random = np.random.default_rng(0)  # of the synthetic rows; noise has no seed
    columns = {
        attribute.name: pa.array(_values(attribute)).take(
            pa.array(random.integers(0, attribute.regular, rows))
        )
        for attribute in domain.attributes
    }
    if domain.unit.column is not None:
        columns[domain.unit.column] = pa.array(np.arange(rows))
    return pa.table(columns)


def _values(attribute: Attribute) -> list[Any]:
    """One value of each declared cell."""
    if isinstance(attribute, Categories):
        return list(attribute.values)
    if isinstance(attribute, Numbers):
        return list(attribute.knots)
    if isinstance(attribute, Bins):
        return [float(edge) for edge in attribute.edges[:-1]]
    assert isinstance(attribute, SteppedAttribute)  # noqa: S101 - the kinds of attributes
    starts = attribute.starts.tolist()
    if isinstance(attribute, Dates):
        return list(map(attribute.value_of, starts))
    return list(starts)
