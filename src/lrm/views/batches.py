"""What was asked: the batch and its domain, as sections of a page."""

from __future__ import annotations

from lrm.domain import Domain
from lrm.spelling import many
from lrm.views.blocks import Table
from lrm.views.elements import Markup, facts, paragraph, render_table, section, table, text
from lrm.workload import Label, Workload

__all__ = ["batch_section", "domain_table", "group_label", "query_label", "query_table"]

MOST_LISTED = 60
"""Tables and attributes that are listed."""


def query_label(label: Label) -> Markup:
    """A query's name with its group separated.

    >>> query_label(Label("a<b"))
    'a&lt;b'
    """
    if not label.group:
        return text(label.name)
    return Markup(f'{text(label.query)} <span class="group">{group_label(label)}</span>')


def group_label(label: Label, *, names: bool = True) -> Markup:
    """The group of an answer; without the names of attributes where they stand above it."""
    # Blanks that do not break keep a label next to its attribute on narrow pages.
    pairs = (f"{name}\u00a0=\u00a0{value}" if names else value for name, value in label.group)
    return text(", ".join(pairs))


def batch_section(workload: Workload, errors: Table | None) -> Markup:
    """The tables of the batch with their errors, and the public domain they were asked over.

    Without errors the tables are left out: there are too many answers.
    """
    queries, cells = workload.shape
    query_count = many(queries, "query", "queries")
    sentence = f"{query_count} over {cells:,} cells. All of this is public; nothing of it is data."
    if workload.importance is not None:
        sentence += " Some queries were declared more important than others."
    listed = Markup("") if errors is None else render_table(errors)
    domain = domain_table(workload.domain)
    return section("What was asked", paragraph(sentence), listed, domain)


def query_table(workload: Workload) -> Markup:
    """One row per table of the batch."""
    if not workload.labels.attributes:
        return Markup("")  # the answers list them by name
    tables = workload.tables
    rows = []
    for statement in tables[:MOST_LISTED]:
        derived = workload.derived[slice(*statement.derived)]
        answers = statement.count + sum(answer.label.count for answer in derived)
        rows.append((statement.title, f"{answers:,}"))
    if not rows:
        return Markup("")
    rest = len(tables) - len(rows)
    caption = "Tables" + (f"; {rest:,} more are left out" if rest > 0 else "")
    return table(caption, ("table", "answers"), rows)


def domain_table(domain: Domain | None) -> Markup:
    """The attributes with their cells and rules."""
    if domain is None:
        return Markup("")
    rows = [
        (
            attribute.name,
            attribute.kind,
            f"{attribute.size:,}",
            _rule(attribute.null),
            _rule(attribute.outside),
        )
        for attribute in domain.attributes[:MOST_LISTED]
    ]
    columns = ("attribute", "kind", "cells", "if missing", "if not declared")
    listed = table("The declared domain", columns, rows, words=("kind", *columns[3:]))
    if domain.table is None:
        return listed
    return Markup(facts([("table", domain.table)]) + listed)


def _rule(rule: str) -> str:
    return "row is not counted" if rule == "drop" else "own cell"
