"""Intervals of differences of answers of two releases, whose noises are independent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lrm.planning.accuracy.intervals import SPLITS, WeighedLaw, independent_half_widths
from lrm.planning.accuracy.levels import LevelsAccuracy
from lrm.planning.derived.noise import Indices, LevelsNoise, Noisy
from lrm.queries.maps.linear import Floats

BLOCK = 256
"""Differences whose weights are held at a time."""


def difference_half_widths(
    noisy: tuple[Noisy, Noisy], rows: tuple[Indices, Indices], confidence: float
) -> Floats:
    """The h with ``P(|noise of a difference| ≤ h) ≥ confidence``, for pairs of linear queries.

    The widths follow from the joint law of both noises. Where the weights of a row are too many to
    be held, each answer is within an interval of its own, both together with ``confidence``.

    Parameters
    ----------
    noisy
        The answers of both releases, with the laws of their noise.
    rows
        The queries of the first release, and those of the second that are subtracted; all of a
        release are of one level.
    confidence
        The probability.
    """
    count = len(rows[0])
    cuts = [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]
    blocks = [_block(noisy, (rows[0][cut], rows[1][cut]), confidence) for cut in cuts]
    return np.concatenate([np.zeros(0), *blocks])


def _block(noisy: tuple[Noisy, Noisy], rows: tuple[Indices, Indices], confidence: float) -> Floats:
    parts = [_laws(answers, index) for answers, index in zip(noisy, rows, strict=True)]
    if parts[0] is not None and parts[1] is not None:
        return independent_half_widths([*parts[0], *parts[1]], confidence)
    miss, one = 1.0 - confidence, np.ones(1)
    widths = [
        noisy[0].half_widths(rows[0][:, None], one, 1.0 - miss * share)
        + noisy[1].half_widths(rows[1][:, None], one, 1.0 - miss * (1.0 - share))
        for share in SPLITS
    ]
    return np.asarray(np.min(widths, axis=0)[:, 0])


def _laws(noisy: Noisy, rows: Indices) -> Sequence[WeighedLaw] | None:
    """The weights of each query, in units of its answer, and the law of what they weigh."""
    accuracy, index, one = noisy.accuracy, rows[:, None], np.ones(1)
    if accuracy.law.is_gaussian and not isinstance(accuracy, LevelsAccuracy):
        if accuracy.law.deviation == 0:  # from ρ of some hundreds on
            return [(np.zeros((len(rows), 1)), np.ones((1, 1)), accuracy.law)]
        norms = noisy.errors(index, one) / accuracy.law.deviation
        return [(norms, np.ones((1, 1)), accuracy.law)]
    noise = noisy.joint(index, one)
    if noise is None:
        return None
    parts = [part for _, part in noise.parts] if isinstance(noise, LevelsNoise) else [noise]
    return [(part.weights[:, 0], part.counts, part.accuracy.law) for part in parts]
