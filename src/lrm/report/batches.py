"""What was asked: the batch and its domain, as sections of a page."""

from __future__ import annotations

from lrm.domain import Domain
from lrm.report.elements import Markup, facts, paragraph, section, table, text
from lrm.showing.spelling import many
from lrm.workload import Label, Workload

__all__ = ["batch_section", "domain_table", "query_label", "query_table"]

MOST_LISTED = 60
"""Kinds of query and attributes that are listed."""


def query_label(label: Label) -> Markup:
    """A query's name with its group set apart.

    >>> query_label(Label("a<b"))
    'a&lt;b'
    """
    if not label.group:
        return text(label.name)
    # Blanks that do not break keep a label beside its attribute on narrow pages.
    pairs = (f"{attribute}\u00a0=\u00a0{value}" for attribute, value in label.group)
    spans = ", ".join(f'<span class="group">{text(pair)}</span>' for pair in pairs)
    return Markup(f"{text(label.query)} {spans}")


def batch_section(workload: Workload) -> Markup:
    """Queries by kind, and the public domain that they were asked over."""
    queries, cells = workload.shape
    domain = workload.domain
    asked = many(queries, "query", "queries")
    sentence = f"{asked} over {cells:,} cells. All of this is public; nothing of it is data."
    if workload.importance is not None:
        sentence += " Some queries were declared more important than others."
    return section(
        "What was asked", paragraph(sentence), query_table(workload), domain_table(domain)
    )


def query_table(workload: Workload) -> Markup:
    """Queries that differ in their group alone are one kind."""
    if not workload.labels.attributes:
        return Markup("")  # the answers list them by name
    kinds = workload.labels.kinds()
    rows = [
        (query, ", ".join(by) or "—", f"{count:,}")
        for (query, by), count in list(kinds.items())[:MOST_LISTED]
    ]
    rest = len(kinds) - len(rows)
    caption = "Queries by name and grouping" + (f"; {rest:,} more are left out" if rest > 0 else "")
    return table(caption, ("query", "grouped by", "answers"), rows, words=("grouped by",))


def domain_table(domain: Domain | None) -> Markup:
    """The attributes with their cells and rules."""
    if domain is None:
        return Markup("")
    rows = [
        (one.name, one.kind, f"{one.size:,}", _rule(one.null), _rule(one.outside))
        for one in domain.attributes[:MOST_LISTED]
    ]
    columns = ("attribute", "kind", "cells", "if missing", "if not declared")
    listed = table("The declared domain", columns, rows, words=("kind", *columns[3:]))
    if domain.table is None:
        return listed
    return Markup(facts([("table", domain.table)]) + listed)


def _rule(rule: str) -> str:
    return "row is not counted" if rule == "drop" else "own cell"
