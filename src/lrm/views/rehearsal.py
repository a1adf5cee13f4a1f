"""A rehearsal: the whole release on synthetic rows, before any data is read or budget spent."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np

from lrm.domain import Attribute, Bins, Categories, Dates, Domain, Numbers, SteppedAttribute
from lrm.errors import UsageError
from lrm.plans import Plan
from lrm.privacy.budget import Privacy
from lrm.releases import Release, release

__all__ = ["rehearse", "synthetic_rows"]

MOST_ROWS = 10_000_000
"""Synthetic rows, which are held in memory."""


def rehearse(plan: Plan, privacy: Privacy, rows: int = 100_000) -> Release:
    """Release a plan on rows that are drawn uniformly from its domain.

    The noise is that of a real release, so that intervals and verdicts look as they will. The
    result is marked as simulated wherever it is shown or saved: it is about nobody, and it
    promises nothing. No ledger and no table is needed.

    Parameters
    ----------
    plan
        The plan to rehearse.
    privacy
        The guarantee, such as ``plan.privacy("0.1")``.
    rows
        How many rows to draw.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise UsageError(f"a rehearsal draws between 1 and {MOST_ROWS:,} rows, not {rows:,}")
    domain = plan.workload.domain
    made: Any
    if domain is None:
        cells = plan.workload.shape[1]
        random = np.random.default_rng(0)
        made = np.bincount(random.integers(0, cells, rows), minlength=cells)
    else:
        made = synthetic_rows(domain, rows)
    amounts: dict[str, Any] = dict(privacy.amounts)
    return replace(release(plan, made, **amounts, ledger=None), simulated=True)


def synthetic_rows(domain: Domain, rows: int) -> Any:
    """Rows of a table of the domain as a ``pyarrow.Table``, every declared cell equally likely.

    Each row has a person of its own where the domain has a column of persons.
    """
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    random = np.random.default_rng(0)  # of the synthetic rows; noise has no seed
    columns = {
        one.name: pa.array(_values(one)).take(pa.array(random.integers(0, one.regular, rows)))
        for one in domain.attributes
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
        return [dt.date.fromordinal(start) for start in starts]
    return list(starts)
