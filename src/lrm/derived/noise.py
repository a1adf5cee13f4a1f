"""The joint noise of several answers: a linear map of the independent noise of measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from lrm.accuracy import Accuracy
from lrm.accuracy.intervals import sum_half_widths
from lrm.maps.linear import Floats

__all__ = ["JointNoise", "Noisy"]

Indices = NDArray[np.int64]
Rows = Callable[[int, int], Floats]
"""Answers of the linear queries ``start:stop``."""

MOST_WEIGHTS = 1 << 25
"""Weights of rows of the reconstruction that are held at a time (256 MB)."""

ROUNDING = 1e-13
"""Share of a row's largest weight below which a weight is a rounding error."""


@dataclass(frozen=True, eq=False)
class JointNoise:
    """The noise of k inputs in each of G groups: ``weights @ η`` with independent integers η.

    Parameters
    ----------
    weights
        groups × inputs × measurements, in units of the answers.
    accuracy
        The law of the noise.
    """

    weights: Floats
    accuracy: Accuracy

    @cached_property
    def covariance(self) -> Floats:
        """Groups × inputs × inputs."""
        gram = np.matmul(self.weights, self.weights.transpose(0, 2, 1))
        return np.asarray(gram * self.accuracy.law.variance)

    def deviations(self, directions: Floats) -> Floats:
        """Standard deviation of ``directions · noise``, for one direction (inputs) per group."""
        squares = np.einsum("gk,gkl,gl->g", directions, self.covariance, directions)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def half_widths(self, directions: Floats, confidence: float) -> Floats:
        """The h with ``P(|directions · noise| ≤ h) ≥ confidence``, from the exact law."""
        rows = np.einsum("gk,gkr->gr", directions, self.weights)
        return sum_half_widths(rows, self.accuracy.law, confidence)

    def quantile_ratios(self, directions: Floats, confidence: float) -> Floats:
        """Half-widths over standard deviations; those of one variable where there is no noise."""
        deviations = self.deviations(directions)
        found = np.full(len(deviations), self._single(confidence))
        some = deviations > 0
        if some.any():
            chosen = JointNoise(self.weights[some], self.accuracy)
            found[some] = chosen.half_widths(directions[some], confidence) / deviations[some]
        return found

    def _single(self, confidence: float) -> float:
        law = self.accuracy.law
        return float(sum_half_widths(np.ones((1, 1)), law, confidence)[0]) / law.deviation


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy answers of linear queries, and the law of their noise.

    Parameters
    ----------
    rows
        Returns the answers of the queries ``start:stop``.
    accuracy
        Their errors.
    """

    rows: Rows
    accuracy: Accuracy

    def answers(self, index: Indices, scales: Floats) -> Floats:
        """The answers ``index`` (groups × inputs), each times the scale of its input."""
        return _taken(self.rows, index) * scales

    def errors(self, index: Indices, scales: Floats) -> Floats:
        """Their standard errors."""
        return _taken(self.accuracy.errors_of, index) * np.abs(scales)

    def half_widths(self, index: Indices, scales: Floats, confidence: float) -> Floats:
        """The half-widths of their intervals, each by itself."""
        own = partial(self.accuracy.half_widths_of, confidence=confidence)
        return _taken(own, index) * np.abs(scales)

    def joint(self, index: Indices, scales: Floats) -> JointNoise | None:
        """Their joint noise; None where the rows of the reconstruction are too large to be held."""
        way_back = self.accuracy.reconstruction
        measurements = way_back.shape[1]
        spans = [int(column.max()) + 1 - int(column.min()) for column in index.T]
        if sum(spans) * measurements > MOST_WEIGHTS:
            return None
        starts = [int(column.min()) for column in index.T]
        rows = [
            way_back.rows(start, start + span) * (scale * self.accuracy.step)
            for start, span, scale in zip(starts, spans, scales, strict=True)
        ]
        packed = _packed(rows, index - np.array(starts))
        return None if packed is None else JointNoise(packed, self.accuracy)


def _packed(rows: list[Floats], index: Indices) -> Floats | None:
    """The weights of each group's inputs without measurements that none of them needs."""
    needed = np.zeros((len(index), rows[0].shape[1]), dtype=bool)
    for own, column in zip(rows, index.T, strict=True):
        size = np.abs(own)
        needed |= (size > ROUNDING * size.max(axis=1, initial=0.0)[:, None])[column]
    width = max(1, int(needed.sum(axis=1).max()))
    if len(index) * len(rows) * width > MOST_WEIGHTS:
        return None
    order = np.argsort(~needed, axis=1, kind="stable")[:, :width]
    inside = np.take_along_axis(needed, order, axis=1)
    found = [
        np.take_along_axis(own[column], order, axis=1) * inside
        for own, column in zip(rows, index.T, strict=True)
    ]
    return np.stack(found, axis=1)


def _taken(rows: Rows, index: Indices) -> Floats:
    found = np.empty(index.shape)
    for place, column in enumerate(index.T):
        start, stop = int(column.min()), int(column.max()) + 1
        found[:, place] = rows(start, stop)[column - start]
    return found
