"""Batches over a domain: written in SQL or YAML, built in Python, or given as a matrix.

Every way ends in a `Workload`, so that the parts of a batch may come from several of them;
`lrm.stack` joins them.
"""

from lrm.batches.builders import (
    marginals,
    prefix,
    products,
    ranges,
    total,
    where,
    with_importance,
)
from lrm.batches.files import as_batch, parse_batch, parse_questions, read_batch
from lrm.batches.sql import sql
from lrm.workload.families import stack

__all__ = [
    "as_batch",
    "marginals",
    "parse_batch",
    "parse_questions",
    "prefix",
    "products",
    "ranges",
    "read_batch",
    "sql",
    "stack",
    "total",
    "where",
    "with_importance",
]
