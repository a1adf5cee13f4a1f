"""Conditions that no row can satisfy, such as pregnant men, as queries with the answer 0.

A domain declares them as SQL conditions over its columns, from public knowledge. Released answers
do not use them; consistent answers and synthetic rows do.
"""

from __future__ import annotations

from lrm.domain import Domain
from lrm.errors import DomainError, LrmError
from lrm.queries.workload import Workload


def impossible_queries(domain: Domain) -> list[Workload]:
    """One query per condition that a domain declares impossible: how many rows satisfy it.

    >>> from lrm.domain import Categories
    >>> sex, pregnant = Categories("sex", ["f", "m"]), Categories("pregnant", [False, True])
    >>> domain = Domain([sex, pregnant], "people", impossible=["sex = 'm' AND pregnant"])
    >>> [batch.queries.dense().astype(int).tolist() for batch in impossible_queries(domain)]
    [[[0, 0, 0, 1]]]
    """
    return [_query(condition, domain) for condition in domain.impossible]


def _query(condition: str, domain: Domain) -> Workload:
    from lrm.queries.sql.compile import compile_batch  # noqa: PLC0415 - it imports sqlglot, 0.1 s

    table = (domain.table or "t").replace('"', '""')
    text = f'SELECT COUNT(*) AS impossible FROM "{table}" WHERE ({condition}\n)'  # noqa: S608 - never run: compiled to weights
    try:
        batch = compile_batch(text, domain)
    except LrmError as error:
        raise DomainError(
            f"the impossible condition {condition!r} is not a condition on declared columns: "
            f"{error.args[0]}"
        ) from error
    if batch.shape[0] != 1 or batch.derived:
        raise DomainError(
            f"the impossible condition {condition!r} must be one SQL condition, such as "
            "sex = 'm' AND pregnant"
        )
    return batch
