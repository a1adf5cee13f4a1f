"""The page of synthetic rows: what they are for, and how near they are to the answers."""

from __future__ import annotations

import os

import numpy as np

from lrm.files.spelling import number
from lrm.files.writing import write_text
from lrm.releases.changes import MANY_NEGATIVE, negative_share
from lrm.releases.synthetic import ADVICE, WITHIN, SyntheticRows
from lrm.views.blocks import Document, Facts, Prose, Table, plain_table
from lrm.views.html import page

LARGEST = 10
"""Largest differences that the page lists."""


def rows_document(rows: SyntheticRows) -> Document:
    """What the rows are, and how near they are to the answers of each statement."""
    facts = {name: text for name, text in rows.metadata.items() if name != "advice"}
    near = sum(fit.distance <= WITHIN for fit in rows.fits)
    sentences = [f"{near} of {len(rows.fits)} statements are within the noise."]
    share = negative_share(rows.release)
    if share >= MANY_NEGATIVE:
        sentences.append(
            f"{share:.0%} of the released answers are negative, and counts of rows cannot be: "
            "small counts of the rows are too large on average."
        )
    return Document(
        "Synthetic rows",
        (Prose((ADVICE,)),),
        parts=(
            Document("What they are", (Facts(tuple(facts.items())),)),
            Document(
                "How near they are to the answers",
                (Prose(tuple(sentences)), _fits(rows), _largest(rows)),
            ),
        ),
    )


def _fits(rows: SyntheticRows) -> Table:
    lines = [
        (fit.name, f"{fit.distance:.2f}", f"{fit.outside:.1%}", fit.verdict) for fit in rows.fits
    ]
    columns = ("statement", "distance / standard error", "outside 95 % intervals", "verdict")
    return plain_table("By statement", columns, lines, words=("verdict",))


def _largest(rows: SyntheticRows) -> Table:
    release = rows.release
    errors = release.standard_errors
    counts = rows.counts / rows.scale
    change = np.abs(counts - release.answers)
    ratio = np.divide(change, errors, out=np.zeros_like(change), where=errors > 0)
    order = np.argsort(-ratio, kind="stable")[:LARGEST].tolist()
    lines = [
        (
            release.names[k],
            number(float(release.answers[k])),
            number(float(counts[k])),
            f"{ratio[k]:.1f}",
        )
        for k in order
    ]
    columns = ("query", "released answer", "count of the rows", "difference / standard error")
    return plain_table("Largest differences", columns, lines)


def write_rows_page(rows: SyntheticRows, path: str | os.PathLike[str]) -> None:
    """Write the page, which needs neither network nor JavaScript."""
    foot = f"made with {rows.metadata['software']} · plan {rows.release.plan.digest[:16]}"
    write_text(path, page(rows_document(rows), "Synthetic rows", foot))
