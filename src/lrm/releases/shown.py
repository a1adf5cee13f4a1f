"""What a release shows: the answers of queries that are not hidden, then derived answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lrm.derived import Noisy, derived_numbers, derived_values
from lrm.maps.linear import Floats
from lrm.workload import Derived, Workload

if TYPE_CHECKING:  # a release shows itself through this module
    from lrm.releases.core import Release

__all__ = ["Blocks", "shown_blocks", "shown_numbers", "shown_values"]

BLOCK = 1024
"""Derived answers that are computed at a time."""

HELD_BLOCKS = 1024
"""Blocks of derived answers that a release keeps (32 MB)."""

Blocks = dict[tuple[Derived, int, int, float], dict[str, Floats]]
"""Columns of groups ``start:stop`` of a derived answer, with intervals of a confidence."""

Piece = tuple[Derived | None, int, int]
"""Groups ``start:stop`` of a derived answer; of the linear queries where that is None."""


def _pieces(workload: Workload) -> Iterator[Piece]:
    """Everything that is shown, in order."""
    if not workload.derived:
        yield None, 0, workload.shape[0]
        return
    for start, stop in workload.labels.shown_ranges():
        yield None, start, stop
    for one in workload.derived:
        yield one, 0, one.label.count


def _cut(pieces: Iterator[Piece], start: int, stop: int) -> Iterator[Piece]:
    """The parts of pieces that the positions ``start:stop`` fall on."""
    end = 0
    for one, first, last in pieces:
        begin, end = end, end + last - first
        low, high = max(start, begin), min(stop, end)
        if low < high:
            yield one, first + low - begin, first + high - begin


def shown_numbers(
    release: Release, start: int, stop: int, confidence: float, held: Blocks
) -> dict[str, Floats]:
    """Answer, standard error and interval of the shown answers ``start:stop``, as columns.

    Blocks of derived answers are taken from ``held``, and kept there. A quantile has no standard
    error (NaN); an interval that cannot be bounded has infinite ends.
    """
    noisy = Noisy(release.rows, release.accuracy)
    parts: list[dict[str, Floats]] = []
    for one, first, last in _cut(_pieces(release.plan.workload), start, stop):
        if one is None:
            parts.append(release.numbers(first, last, confidence))
            continue
        for low in range(first, last, BLOCK):
            key = one, low, min(low + BLOCK, last), confidence
            if key not in held:
                if len(held) >= HELD_BLOCKS:
                    held.clear()
                held[key] = derived_numbers(*key[:3], noisy, confidence)
            parts.append(held[key])
    if not parts:
        return release.numbers(0, 0, confidence)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def shown_values(release: Release, answers: Floats) -> Floats:
    """All shown values where the linear queries have other answers, such as processed ones."""
    noisy = Noisy(lambda start, stop: answers[start:stop], release.accuracy)
    return np.concatenate(
        [
            answers[first:last] if one is None else derived_values(one, first, last, noisy)
            for one, first, last in _pieces(release.plan.workload)
        ]
    )


def shown_blocks(release: Release) -> Iterator[tuple[int, int]]:
    """Yield ``(start, stop)`` of blocks of shown answers that are small enough to hold."""
    ranges = release.plan.reconstruction_map.row_ranges()
    workload = release.plan.workload
    if not workload.derived:
        yield from ranges
        return
    place, blocks = 0, list(ranges)
    for one, first, last in _pieces(workload):
        cuts = blocks if one is None else [(k, k + BLOCK) for k in range(0, last, BLOCK)]
        for start, stop in cuts:
            length = min(stop, last) - max(start, first)
            if length > 0:
                yield place, place + length
                place += length
