"""Queries for `lrm plan` and `lrm compare`: a matrix, a family, SQL or YAML."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lrm.errors import UsageError

if TYPE_CHECKING:
    from lrm.workload import Workload

__all__ = ["BATCH_KINDS", "read_questions"]

BATCH_KINDS = (".sql", ".yaml", ".yml")
"""Endings of files whose queries are written over the attributes of a domain."""


def read_questions(source: str, domain: str | None) -> "Workload":
    """Read a batch of queries.

    Parameters
    ----------
    source
        A SQL or YAML batch, which needs a domain; a matrix of weights; or a family.
    domain
        The domain file. With a matrix or a family it says what the cells are, so that a
        table can be counted for the plan.
    """
    from lrm.batch_file import read_batch
    from lrm.domain.file import read_domain
    from lrm.workload.file import read_workload

    written = Path(source).suffix.lower() in BATCH_KINDS
    if written and domain is None:
        raise UsageError(
            f"{source} asks about attributes, which a domain file declares; add --domain "
            "domain.yaml (`lrm domain init TABLE` drafts one)"
        )
    if domain is None:
        return read_workload(source)
    declared = read_domain(domain)
    if written:
        return read_batch(source, declared)
    return replace(read_workload(source), domain=declared)
