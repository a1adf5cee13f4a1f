"""Queries and domains that commands are given: a file, a family, or ``-`` for standard input."""

from typing import TYPE_CHECKING

from lrm.cli.standard_input import STANDARD_INPUT, check_read_once, read_standard_input

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.workload import Workload

__all__ = ["read_declared", "read_queries", "read_questions"]


def read_questions(source: str, domain: str | None) -> "Workload":
    """Read a batch of queries.

    Parameters
    ----------
    source
        What ``lrm.read_batch`` takes, or ``-``.
    domain
        The domain file, or ``-``. With a matrix or a family it says what the cells are, so that
        a table can be counted for the plan.
    """
    check_read_once(source, domain)
    return read_queries(source, None if domain is None else read_declared(domain))


def read_queries(source: str, domain: "Domain | None") -> "Workload":
    """Read a batch of queries over a domain that is known already."""
    from lrm.batches import parse_questions, read_batch

    if source == "-":
        return parse_questions(read_standard_input(), domain, STANDARD_INPUT)
    return read_batch(source, domain)


def read_declared(source: str) -> "Domain":
    """Read a domain file, or standard input."""
    from lrm.domain.file import parse_domain, read_domain

    if source == "-":
        return parse_domain(read_standard_input(), STANDARD_INPUT)
    return read_domain(source)
