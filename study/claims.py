"""Verdicts: the paper's claims, and what must hold on every row, put to the test."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from study.claim_list import CLAIMS
from study.evidence import IN_PART, NOT, PURE_BASELINES, Results
from study.rows import Row

__all__ = ["SOLVER_TOLERANCE", "Judged", "Promise", "evaluate", "promises"]


SOLVER_TOLERANCE = 1e-3
"""Two searches that find the same optimum stop this near to it."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict; ``instead`` and ``best`` speak where it does not wholly hold."""

    number: int
    section: str
    sentence: str
    figures: tuple[int, ...]
    criterion: str
    verdict: str
    numbers: str
    instead: str
    best: str


def evaluate(results: Results) -> list[Judged]:
    """Put every claim to the test."""
    judged = []
    for number, claim in enumerate(CLAIMS, 1):
        watched = results.unwatched()
        finding = watched.looked.weigh(claim.test(watched))
        speaks = finding.verdict in (IN_PART, NOT)
        judged.append(
            Judged(
                number,
                claim.section,
                claim.sentence,
                claim.figures,
                " ".join((claim.test.__doc__ or "").replace("``", "").split()),
                finding.verdict,
                finding.numbers,
                claim.explanation if speaks else "",
                results.best_stands(claim.figures, claim.about) if speaks else "",
            )
        )
    return judged


@dataclass(frozen=True)
class Promise:
    """Something that must hold on every row; ``kept`` is None where no row is relevant."""

    sentence: str
    kept: bool | None
    numbers: str


def promises(results: Results) -> list[Promise]:
    """Measured and expected error agree; ``best`` is never above any other mechanism."""
    outside = sum(not row.agrees for row in results.rows)
    ratios = best_ratios(results.rows)
    above = sum(ratio > 1 + SOLVER_TOLERANCE for ratio, _ in ratios)
    worst = max(ratios, default=(math.nan, "no cell"))
    return [
        Promise(
            "Expected and measured error agree on every row within its tolerance.",
            not outside if results.rows else None,
            f"{len(results.rows) - outside} of {len(results.rows)} rows agree; "
            f"one right row in a million would not",
        ),
        Promise(
            "best is never above the expected error of any other mechanism of the same guarantee, "
            "to three digits.",
            not above if ratios else None,
            f"above in {above} of {len(ratios)} comparisons; the largest ratio is "
            f"{worst[0]:.6g} ({worst[1]})",
        ),
    ]


def best_ratios(rows: Iterable[Row]) -> list[tuple[float, str]]:
    """Error of ``best`` over that of each pure baseline on the same workload.

    Where figures share a workload, the worst of ``best`` meets the least of the baseline.
    """
    found: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for row in rows:
        key = row.workload, row.queries, row.cells, row.s, row.epsilon
        if row.label in (*PURE_BASELINES, "best"):
            name = row.label if row.label != "LRM" else f"LRM {row.options}"
            found.setdefault(key, {}).setdefault(name, []).append(row.error_expected)
    return [
        (max(errors["best"]) / min(error), f"{label} on {key[0]} {key[1]}×{key[2]}")
        for key, errors in found.items()
        for label, error in errors.items()
        if label != "best" and "best" in errors
    ]
