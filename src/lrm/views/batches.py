"""What was asked: the batch and its domain."""

from __future__ import annotations

from collections.abc import Sequence

from lrm.domain import Domain
from lrm.files.spelling import many
from lrm.planning.plan import Plan
from lrm.queries.workload import Workload
from lrm.views.blocks import Block, Document, Prose, Table, plain_table
from lrm.views.plans import cell_words

MOST_LISTED = 60
"""Tables and attributes that are listed."""

_RULES = {
    "drop": "row is not counted",
    "cell": "own cell",
    "never": "never occurs",
    "clip": "counts as the nearest end",
}


def batch_section(plan: Plan, errors: Table | None) -> Document:
    """The tables of the batch with their errors, and the public domain they were asked over.

    Without errors the tables are left out: there are too many answers.
    """
    workload = plan.workload
    queries = many(workload.shape[0], "query", "queries")
    sentence = f"{queries} over {cell_words(plan)}. All of this is public; nothing of it is data."
    if plan.objective == "within":
        sentence += " The plan is made for the tolerances of the tables."
    elif plan.objective != "total":
        sentence += " The plan is balanced: each table has a share of the accuracy."
    elif workload.importance is not None:
        sentence += " Some queries were declared more important than others."
    listed = () if errors is None else (errors,)
    blocks = (Prose((sentence,)), *listed, *domain_blocks(workload.domain))
    return Document("What was asked", blocks)


def query_table(workload: Workload) -> list[Block]:
    """One row per table of the batch; nothing where the answers have names of their own."""
    rows = []
    for statement in workload.tables[:MOST_LISTED] if workload.labels.attributes else ():
        derived = workload.derived[slice(*statement.derived)]
        answers = statement.count + sum(answer.label.count for answer in derived)
        rows.append((statement.title, f"{answers:,}"))
    rest = len(workload.tables) - len(rows)
    title = "Tables" + (f"; {rest:,} more are left out" if rest > 0 else "")
    return [plain_table(title, ("table", "answers"), rows)] if rows else []


def domain_blocks(domain: Domain | None) -> list[Block]:
    """The attributes with their cells and rules."""
    if domain is None:
        return []
    rows = [
        (
            attribute.name,
            attribute.kind,
            f"{len(attribute.labels):,}",
            _shortened(attribute.labels[: attribute.regular]),
            _RULES[attribute.null],
            _RULES[attribute.outside],
        )
        for attribute in domain.attributes[:MOST_LISTED]
    ]
    columns = ("attribute", "kind", "cells", "values", "if missing", "if not declared")
    words = ("kind", *columns[3:])
    title = "The declared domain" + ("" if domain.table is None else f" of {domain.table}")
    lookups = tuple(
        f"lookup {lookup.name}: {lookup.key} → {', '.join(lookup.columns)}"
        for lookup in domain.lookups
    )
    listed: list[Block] = [Prose(lookups)] if lookups else []
    return [plain_table(title, columns, rows, words=words), *listed]


def _shortened(labels: Sequence[str]) -> str:
    """The first labels and the last one."""
    if len(labels) <= 4:
        return ", ".join(labels)
    return f"{labels[0]}, {labels[1]}, …, {labels[-1]}"
