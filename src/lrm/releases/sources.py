"""What a release can be made of: counts that the caller passes, or a table that is counted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrm.domain.people import Level
from lrm.errors import TableWarning, UsageError
from lrm.planning.plan import Plan
from lrm.privacy.mechanism import (
    TrueCounts,
    check_fit,
    check_total,
    count_cells,
    regrouped,
)
from lrm.releases.counts_file import CountsFile

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.tables import Table


@dataclass(frozen=True, eq=False)
class CountedTable:
    """A table on some engine, counted by the plan's domain.

    It is never refused for how many rows it has, since that would reveal it; the mechanism clamps.
    """

    plan: Plan
    opened: Table
    domain: Domain
    # Whether a release without a ledger must be requested explicitly.
    needs_ledger: ClassVar = True

    @property
    def table(self) -> str:
        """What the domain calls the table, else the table's own name."""
        return self.domain.table or self.opened.name

    def check(self) -> None:
        """Check that the table has the columns that the domain declares: nothing is spent yet."""
        self.opened.check(self.domain, self.plan.measured.tabulations)
        for sentence in self.opened.unseen_times(self.domain) if self.domain.level is None else ():
            warnings.warn(sentence, TableWarning, stacklevel=4)  # the caller of release or preview

    def counts(self) -> TrueCounts:
        """Count the rows of each cell; called once the budget is spent."""
        return self.opened.counts(self.domain, self.plan.measured.tabulations)


@dataclass(frozen=True, eq=False)
class GivenCounts:
    """Counts that the caller passes, in memory or as a file.

    The caller has seen them, so that a mistake in them may be reported: a wrong number of
    counts, a negative one, or more records than the plan admits.
    """

    plan: Plan
    given: Any = field(repr=False)
    needs_ledger: ClassVar = False

    @property
    def table(self) -> str | None:
        """What the plan's domain calls its table."""
        domain = self.plan.workload.domain
        return None if domain is None else domain.table

    def check(self) -> None:
        """Check how many counts there are in memory, or that a file of counts is there.

        What a file holds is not looked at: its length is in the data, too.
        """
        if self.plan.record_bits:
            raise UsageError(
                "with numbers by knots a record is divided between cells, so that counts of whole "
                "records are not enough; release from the table itself"
            )
        if isinstance(self.given, CountsFile):
            self.given.check()
        elif not self._is_declared(self.given):
            check_fit(self.given, self.plan.workload.shape[1])

    def _is_declared(self, counts: Any) -> bool:
        """Whether there is one count per declared cell, and none of rows that are dropped."""
        domain = self.plan.workload.domain
        return (
            domain is not None
            and bool(domain.rest_axes)
            and count_cells(counts) == domain.declared.size
        )

    def counts(self) -> TrueCounts:
        """Take the counts, and refuse those that the plan was not made for."""
        if isinstance(self.given, CountsFile):
            hidden = self.given.read()
        else:
            hidden = self.given if isinstance(self.given, TrueCounts) else TrueCounts(self.given)
        domain = self.plan.workload.domain
        if domain is not None and self._is_declared(hidden):
            hidden = regrouped(hidden, partial(_among_all, domain))
        check_fit(hidden, self.plan.workload.shape[1])
        regrouped_counts = regrouped(hidden, self.plan.measured.counts_of)
        check_total(regrouped_counts, self.plan.measured)
        return regrouped_counts


def _among_all(domain: Domain, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Counts of declared cells among those of all cells; no row was dropped."""
    every = np.zeros(domain.size, dtype=np.int64)
    every[domain.declared_cells] = counts
    return every


Source = CountedTable | GivenCounts
"""Where the counts of a plan's cells come from."""


def source_of(plan: Plan, data: Any) -> Source:
    """Take counts, a table, a frame, or a table's address; no row is read."""
    # The class is asked, not the object: columns of a lazy frame cost a query.
    table, frame = (hasattr(type(data), name) for name in ("counts", "columns"))
    frame = frame or hasattr(type(data), "schema")
    if isinstance(data, Mapping) or is_database_of_people(plan, data):
        return CountedTable(plan, _people(plan, data), domain_of(plan))
    if not (table or frame or isinstance(data, str | os.PathLike)):
        return GivenCounts(plan, data)
    domain = domain_of(plan)  # before a table is opened for nothing
    if domain.level is not None:
        raise UsageError(
            f"the plan reads tables of {domain.level.people.name!r}; give each by its name: "
            + ", ".join(table.name for table in domain.level.tables)
        )
    if table:
        return CountedTable(plan, data, domain)
    from lrm.tables import open_table  # noqa: PLC0415 - engines, only where they are used

    return CountedTable(plan, open_table(data), domain)


def is_database_of_people(plan: Plan, data: Any) -> bool:
    """Whether data are the address of a whole database, and the plan reads tables of a people."""
    domain = plan.workload.domain
    if not isinstance(data, str) or domain is None or domain.level is None:
        return False
    from lrm.tables.catalogue import is_database  # noqa: PLC0415 - engines, only where used

    return is_database(data)


def _people(plan: Plan, tables: Mapping[str, Any] | str) -> Table:
    """Open the tables of a people, by their names."""
    level = domain_of(plan).level
    if not isinstance(level, Level):
        raise UsageError("the plan reads one table; give the table itself, not tables by name")
    from lrm.tables.people import open_people  # noqa: PLC0415 - engines, only where used

    return open_people(level, tables)


def domain_of(plan: Plan) -> Domain:
    """The domain that says how a plan's cells are counted on a table."""
    if plan.workload.domain is None:
        raise UsageError(
            "this plan has no domain, which says how a table's rows fall into cells; "
            "plan the queries with a domain, or give the counts of the cells themselves"
        )
    return plan.workload.domain
