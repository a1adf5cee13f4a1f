"""Batches of linear queries over the cells of a domain: by hand, by family, from files."""

from lrm.workload import families
from lrm.workload.core import EXPLICIT_QUERIES, NumberedNames, Workload, as_workload, weigh_rows

__all__ = [
    "EXPLICIT_QUERIES",
    "NumberedNames",
    "Workload",
    "as_workload",
    "families",
    "weigh_rows",
]
