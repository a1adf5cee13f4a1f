"""What is accepted where a batch is expected."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from lrm.batches.sql import sql
from lrm.errors import WorkloadError
from lrm.workload import Workload

if TYPE_CHECKING:
    from lrm.domain import Domain


def as_batch(queries: Any, domain: Domain | None = None) -> Workload:
    """Take a workload, a matrix or SQL for a batch of queries.

    Parameters
    ----------
    queries
        A `Workload`, as every builder returns it; anything that one can be made of: an array, a
        SciPy sparse matrix, a frame; or the text of SQL statements, which need ``domain``.
    domain
        The domain whose cells are counted. A workload that has one keeps it.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> domain = Domain([Integers("age", 0, 1)], "people")
    >>> as_batch("SELECT COUNT(*) AS n FROM people GROUP BY age", domain).names
    ('n[age=0]', 'n[age=1]')
    >>> as_batch([[1, 1]], domain).domain == domain
    True
    """
    if isinstance(queries, PathLike) or (isinstance(queries, str) and len(queries.split()) == 1):
        raise WorkloadError(
            f"expected queries, got the file name {str(queries)!r}; "
            "read the file with lrm.read_batch"
        )
    if isinstance(queries, str):
        if domain is None:
            raise WorkloadError(
                "SQL asks about attributes, which a domain declares; give the domain too "
                "(domain=), or compile the text with lrm.sql(text, domain)"
            )
        return sql(queries, domain)
    batch = queries if isinstance(queries, Workload) else Workload(queries)
    if domain is None or batch.domain == domain:
        return batch
    if batch.domain is not None:
        raise WorkloadError("the queries were written for a domain other than the one given")
    return replace(batch, domain=domain)
