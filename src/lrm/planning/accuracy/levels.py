"""Errors and intervals of answers over several levels, whose noises are independent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lrm.planning.accuracy.core import Accuracy
from lrm.planning.design.levels import LevelsReconstruction
from lrm.privacy.budget import Privacy
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.levels import Places


@dataclass(frozen=True)
class LevelsLaw(NoiseLaw):
    """The noise of several levels: one law for the measurements of each.

    As one law it has variance 1, and the reconstruction has what differs.
    """

    laws: tuple[NoiseLaw, ...] = ()

    @property
    def distribution(self) -> str:
        return ", ".join(dict.fromkeys(law.distribution for law in self.laws))

    @property
    def variance(self) -> float:
        return 1.0

    @property
    def independent(self) -> bool:
        return False

    @property
    def smooth(self) -> bool:
        return False

    @property
    def ratios(self) -> Floats | None:
        return np.ones(1)


@dataclass(frozen=True, eq=False)
class LevelsAccuracy(Accuracy):
    """The accuracy of a release over several levels, from that of each level at its share.

    Parameters
    ----------
    parts
        The accuracy of each level.
    places
        Which level each query is of.
    """

    parts: tuple[Accuracy, ...] = ()
    places: Places = field(default=Places(()))

    def __post_init__(self) -> None:
        """The reconstruction weighs the noise of each level already."""

    @classmethod
    def of(
        cls,
        parts: Iterable[Accuracy],
        reconstruction: LevelsReconstruction,
        privacy: Privacy,
        unit: PrivacyUnit,
    ) -> LevelsAccuracy:
        """The accuracy at a guarantee whose shares the levels have."""
        every = tuple(parts)
        weighed = LevelsReconstruction(
            tuple(part.reconstruction for part in every),
            reconstruction.steps,
            tuple(part.deviation**2 for part in every),
            reconstruction.places,
        )
        laws = tuple(part.law for part in every)
        law = LevelsLaw(laws[0].noise, 1.0, laws)
        return cls(weighed, law, 1.0, privacy, unit, 0.0, every, reconstruction.places)

    @property
    def nominal(self) -> Accuracy:
        assert isinstance(self.reconstruction, LevelsReconstruction)  # noqa: S101 - by construction
        parts = [part.nominal for part in self.parts]
        return LevelsAccuracy.of(parts, self.reconstruction, self.privacy, self.unit)

    @property
    def squared_error(self) -> float:
        return sum(part.squared_error for part in self.parts)

    @cached_property
    def standard_errors(self) -> Floats:
        errors = self.errors_of(0, len(self.places))
        errors.flags.writeable = False
        return errors

    def errors_of(self, start: int, stop: int) -> Floats:
        pieces = [
            self.parts[p].errors_of(first, last)
            for p, first, last in self.places.pieces(start, stop)
        ]
        return np.concatenate([np.zeros(0), *pieces])

    def half_widths_of(self, start: int, stop: int, confidence: float = 0.95) -> Floats:
        pieces = [
            self.parts[p].half_widths_of(first, last, confidence)
            for p, first, last in self.places.pieces(start, stop)
        ]
        return np.concatenate([np.zeros(0), *pieces])

    def _half_widths(self, ranges: Iterable[tuple[int, int]], confidence: float) -> Floats:
        return np.concatenate([self.half_widths_of(*pair, confidence) for pair in ranges])

    @property
    def lower_bound(self) -> float:
        return 0.0
