"""The joint noise of several answers: a linear map of the independent noise of measurements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.planning.accuracy import Accuracy
from lrm.planning.accuracy.intervals import (
    independent_half_widths,
    norm_half_widths,
    sum_half_widths,
)
from lrm.planning.accuracy.levels import LevelsAccuracy
from lrm.planning.limits import ARRAY
from lrm.queries.maps.linear import Floats, LinearMap

Indices = NDArray[np.int64]
Rows = Callable[[int, int], Floats]
"""Answers of the linear queries ``start:stop``."""


@dataclass(frozen=True, eq=False)
class JointNoise:
    """The noise of k inputs in each of G groups: ``weights @ η`` with independent integers η."""

    weights: Floats  # groups × inputs × columns, in units of the answers
    counts: Floats  # groups × columns: how many measurements have the weights of each column
    accuracy: Accuracy

    @cached_property
    def covariance(self) -> Floats:
        """Groups × inputs × inputs."""
        return self.accuracy.law.covariance(self.weights, self.counts)

    def deviations(self, directions: Floats) -> Floats:
        """Standard deviation of ``directions · noise``, for one direction (inputs) per group."""
        squares = np.einsum("gk,gkl,gl->g", directions, self.covariance, directions)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def half_widths(self, directions: Floats, confidence: float) -> Floats:
        """The h with ``P(|directions · noise| ≤ h) ≥ confidence``, from the exact law."""
        rows = np.einsum("gk,gkr->gr", directions, self.weights)
        return sum_half_widths(rows, self.accuracy.law, confidence, self.counts)

    def widest(self, deviations: Floats, confidence: float) -> Floats:
        """What half-widths of sums with these standard deviations are at most."""
        law = self.accuracy.law
        if not law.independent:
            return np.full(len(deviations), math.inf)
        if law.deviation == 0:  # from ε of some hundreds on
            return np.zeros(len(deviations))
        return norm_half_widths(deviations / law.deviation, law, confidence)

    def quantile_ratios(self, directions: Floats, confidence: float) -> Floats:
        """Half-widths over standard deviations; those of one variable where there is no noise."""
        deviations = self.deviations(directions)
        some = deviations > 0
        if some.all():
            return self.half_widths(directions, confidence) / deviations
        ratios = np.full(len(deviations), self._single(confidence))
        if some.any():
            ratios[some] = self.of(some).half_widths(directions[some], confidence)
            ratios[some] /= deviations[some]
        return ratios

    def _single(self, confidence: float) -> float:
        law, first = self.accuracy.law, np.eye(1, self.weights.shape[2])
        deviation = math.sqrt(float(law.covariance(first[None])[0, 0, 0]))
        if deviation == 0:  # from ε of some hundreds on: the noise is 0 but with probability e^−ε
            return 1.0
        chebyshev = 1.0 / math.sqrt(1.0 - confidence)  # more is never needed, however rare noise is
        return min(float(sum_half_widths(first, law, confidence)[0]) / deviation, chebyshev)

    def of(self, groups: NDArray[Any]) -> JointNoise:
        """The noise of some groups, given by a mask or by their numbers."""
        return JointNoise(self.weights[groups], self.counts[groups], self.accuracy)


@dataclass(frozen=True, eq=False)
class LevelsNoise(JointNoise):
    """The noise of inputs of several levels, which is independent between levels.

    Parameters
    ----------
    parts
        The inputs of each level, and their joint noise.
    """

    parts: tuple[tuple[list[int], JointNoise], ...] = ()

    @cached_property
    def covariance(self) -> Floats:
        inputs = sum(len(places) for places, _ in self.parts)
        groups = len(self.parts[0][1].weights)
        covariance = np.zeros((groups, inputs, inputs))
        for places, noise in self.parts:
            covariance[:, np.array(places)[:, None], places] = noise.covariance
        return covariance

    def half_widths(self, directions: Floats, confidence: float) -> Floats:
        laws = [
            (
                np.einsum("gk,gkr->gr", directions[:, places], noise.weights),
                noise.counts,
                noise.accuracy.law,
            )
            for places, noise in self.parts
        ]
        return independent_half_widths(laws, confidence)

    def widest(self, deviations: Floats, confidence: float) -> Floats:  # noqa: ARG002 - not known
        return np.full(len(deviations), math.inf)

    def _single(self, confidence: float) -> float:
        return max(noise._single(confidence) for _, noise in self.parts)  # noqa: SLF001 - of its class

    def of(self, groups: NDArray[Any]) -> LevelsNoise:
        parts = tuple((places, noise.of(groups)) for places, noise in self.parts)
        return LevelsNoise(self.weights, self.counts, self.accuracy, parts)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy answers of linear queries, and the law of their noise."""

    rows: Rows  # returns the answers of the queries ``start:stop``
    accuracy: Accuracy
    # The queries, where derived answers and their intervals are cut to what is possible.
    queries: LinearMap | None = None

    def answers(self, index: Indices, scales: Floats) -> Floats:
        """The answers ``index`` (groups × inputs), each times the scale of its input."""
        return _taken(self.rows, index) * scales

    def errors(self, index: Indices, scales: Floats) -> Floats:
        """Their standard errors."""
        return _taken(self.accuracy.errors_of, index) * np.abs(scales)

    def half_widths(self, index: Indices, scales: Floats, confidence: float) -> Floats:
        """The half-widths of their intervals, each by itself."""
        widths_of_rows = partial(self.accuracy.half_widths_of, confidence=confidence)
        return _taken(widths_of_rows, index) * np.abs(scales)

    def joint(self, index: Indices, scales: Floats) -> JointNoise | None:
        """Their joint noise; None where the rows of the reconstruction are too large to be held."""
        if isinstance(self.accuracy, LevelsAccuracy):
            return self._of_levels(self.accuracy, index, scales)
        reconstruction = self.accuracy.reconstruction
        if self.accuracy.law.independent:
            first, kind = reconstruction.alike(index)
            if len(first) < len(index):
                noise = self._written_out(index[first], scales)
                return None if noise is None else noise.of(kind)
        return self._written_out(index, scales)

    def _written_out(self, index: Indices, scales: Floats) -> JointNoise | None:
        """Their joint noise, by the rows of the reconstruction."""
        reconstruction = self.accuracy.reconstruction
        ranges = index_ranges(index)
        count = sum(stop - start for start, stop in ranges)
        if count * reconstruction.shape[1] > ARRAY * 2:
            return None
        rows = reconstruction.rows_of(ranges)
        ends = np.cumsum([0, *(stop - start for start, stop in ranges)])
        number = np.searchsorted([start for start, _ in ranges], index, side="right") - 1
        place = index - np.array([start for start, _ in ranges])[number] + ends[number]
        law = self.accuracy.law
        # Inputs of a group up to which Gaussian noise is stated by a root of its covariance.
        if law.is_gaussian and place.shape[1] <= 512:
            packed: tuple[Floats, Floats] | None = _factored(rows, place)
        else:
            packed = _packed(rows, place) if law.independent else _unpacked(rows, place)
        if packed is None:
            return None
        weights, counts = packed
        weights *= scales[:, None] * self.accuracy.step
        return JointNoise(weights, counts, self.accuracy)

    def _of_levels(
        self, accuracy: LevelsAccuracy, index: Indices, scales: Floats
    ) -> JointNoise | None:
        """The joint noise of inputs that may be of several levels."""
        owners, rows = accuracy.places.of(index)
        parts = []
        for level in np.unique(owners[0]).tolist():
            places = np.flatnonzero(owners[0] == level).tolist()
            noisy = Noisy(self.rows, accuracy.parts[level])
            noise = noisy.joint(rows[:, places], scales[places])
            if noise is None:
                return None
            parts.append((places, noise))
        if len(parts) == 1:
            return parts[0][1]
        return LevelsNoise(np.zeros((len(index), 0, 0)), np.zeros(0), accuracy, tuple(parts))


def index_ranges(index: Indices) -> list[tuple[int, int]]:
    """Ranges of queries, in order, that hold all inputs; each query is in one of them."""
    merged_ranges: list[tuple[int, int]] = []
    for start, last in sorted(
        zip(index.min(axis=0).tolist(), index.max(axis=0).tolist(), strict=True)
    ):
        if merged_ranges and start <= merged_ranges[-1][1]:
            merged_ranges[-1] = merged_ranges[-1][0], max(merged_ranges[-1][1], last + 1)
        else:
            merged_ranges.append((start, last + 1))
    return merged_ranges


def _unpacked(rows: Floats, place: Indices) -> tuple[Floats, Floats] | None:
    """Rows of weights with every measurement in its place, for noise with a joint law."""
    if place.size * rows.shape[1] > ARRAY * 2:
        return None
    return rows[place], np.ones((len(place), rows.shape[1]))


def _factored(rows: Floats, place: Indices) -> tuple[Floats, Floats]:
    """Square roots of the Gram matrices of each group's rows: of Gaussian noise they are all."""
    values, vectors = np.linalg.eigh(
        np.stack([rows[group_rows] @ rows[group_rows].T for group_rows in place])
    )
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return roots, np.ones(place.shape)


def _packed(rows: Floats, place: Indices) -> tuple[Floats, Floats] | None:
    """The weights of each group's inputs (groups × inputs × columns), and how often each occurs.

    Measurements that none of a group's inputs needs are left out, and those that all of them
    weigh alike are one column: in a table over departments, the cells of all other departments.
    """
    distinct_columns = [_distinct_columns(rows[group_rows]) for group_rows in place]
    width = max(1, *(len(counts) for _, counts in distinct_columns))
    if place.size * width > ARRAY * 2:
        return None
    weights = np.zeros((*place.shape, width))
    often = np.zeros((len(place), width))
    for group, (group_rows, (columns, counts)) in enumerate(
        zip(place, distinct_columns, strict=True)
    ):
        weights[group, :, : len(counts)] = rows[np.ix_(group_rows, columns)]
        often[group, : len(counts)] = counts
    return weights, often


def _distinct_columns(rows: Floats) -> tuple[Indices, Indices]:
    """The first of each kind of column that is not 0, and how often each kind occurs.

    Columns are compared through two random sums of their entries, to twelve digits.
    """
    size = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    # Share of a row's largest weight below which a weight is a rounding error.
    some = np.flatnonzero((np.abs(rows) > 1e-13 * size[:, None]).any(axis=0))
    signs = np.random.default_rng(0).uniform(1.0, 2.0, (2, len(rows)))
    # Digits to which weights are compared, relative to the largest of their row.
    sums = np.round((signs / np.where(size > 0, size, 1.0)) @ rows, 12)[:, some]
    # By the first sum alone: where two kinds share it, equal columns may be kept twice.
    order = np.argsort(sums[0], kind="stable")
    changes = np.any(np.diff(sums[:, order], prepend=math.nan) != 0, axis=0)
    first = np.flatnonzero(changes)
    return some[order[first]], np.diff(first, append=len(order))


def _taken(rows: Rows, index: Indices) -> Floats:
    """The values of the queries ``index``, read range by range: a quantile has 100,000 inputs."""
    taken_rows = np.empty(index.shape)
    for start, stop in index_ranges(index):
        inside = (index >= start) & (index < stop)
        taken_rows[inside] = rows(start, stop)[index[inside] - start]
    return taken_rows
