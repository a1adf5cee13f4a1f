"""Norms: how far one record moves what is measured, and which noise hides that.

A strategy is made for one norm of its columns. The norm decides everything that depends on the
noise: the guarantee, how sensitivity follows from the integers, the law, and how it is drawn.

=====  ==================  ============================  ====================
norm   sensitivity         noise on each integer         guarantee
=====  ==================  ============================  ====================
L1     ``max ‖L_j‖₁``      discrete Laplace              ε
L2     ``max ‖L_j‖₂``      discrete Gaussian             ρ, or ε with δ
body   ``max ‖L_j‖_K``     shaped to the body K          ε
=====  ==================  ============================  ====================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lrm.errors import BudgetError
from lrm.privacy.bodies.base import Body
from lrm.privacy.budget import ZCDP, Noise, Privacy, PureDP, zcdp_of
from lrm.privacy.laws import NoiseLaw, on_lattices
from lrm.privacy.noise import (
    Calibrated,
    calibrate_gaussian,
    calibrate_laplace,
    check_gaussian,
    check_laplace,
    gaussian_scale,
    laplace_scale,
)
from lrm.privacy.shaped import ShapedLaw, calibrate_shaped
from lrm.privacy.unit import PrivacyUnit

Integers = NDArray[np.int64]


class Moved(Protocol):
    """What a norm needs to know of an integer strategy."""

    @property
    def sensitivity(self) -> int:
        """How far one record moves the measurements, in L1 or in the norm of the body."""
        ...

    @property
    def squared_l2_sensitivity(self) -> int:
        """How far one record moves the measurements, in squared L2."""
        ...

    @property
    def divisors(self) -> Integers:
        """What divides every value of each measurement; one number where it is the same for all."""
        ...

    def moved(self, unit: PrivacyUnit, bits: int, /) -> int:
        """How far one unit moves them, in L1 or in the norm of the body.

        Counts are in units of ``2^−bits`` of a record.
        """
        ...

    def squared_l2_moved(self, unit: PrivacyUnit, bits: int, /) -> int:
        """How far one unit moves them, in squared L2."""
        ...


class Norm(ABC):
    """The norm in which one record moves the measurements, and the noise that belongs to it."""

    noise: ClassVar[Noise]
    """Its noise, as plans and files call it."""
    words: ClassVar[str]
    """The noise, for people."""
    order: ClassVar[int]
    """The p of the norm of columns that a search brings to 1, before there is any body."""
    guarantee: ClassVar[type[PureDP | ZCDP]]
    """What one amount of such noise guarantees."""
    symbol: ClassVar[str]
    """The letter of that amount."""
    variance: ClassVar[float]
    """Variance of the noise of a strategy of sensitivity 1 at an amount of 1."""
    power: ClassVar[int]
    """Squared errors fall with the amount to this power."""

    @property
    def body(self) -> Body | None:
        """The body, where the norm is that of one."""
        return None

    @property
    def digests(self) -> tuple[object, ...]:
        """What it adds to a strategy's digest."""
        return ()

    @property
    def plain(self) -> Norm:
        """The norm of one record, without limits of a unit's rows by group."""
        return self

    @abstractmethod
    def sensitivity(self, strategy: Moved) -> float:
        """How far one record moves the integers in this norm."""

    @abstractmethod
    def law(self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int) -> NoiseLaw:
        """The noise that `calibrate` starts from, without its sampler."""

    @abstractmethod
    def calibrate(
        self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int
    ) -> Calibrated:
        """The noise that keeps a guarantee for one unit."""

    def check_scale(  # noqa: PLR0913, PLR0917 - the noise of a release in full
        self,
        strategy: Moved,
        privacy: Privacy,
        unit: PrivacyUnit,
        bits: int,
        scale: float,
        loss: Fraction,
    ) -> None:
        """Refuse a scale or a loss that `calibrate` does not come to, in exact arithmetic."""
        check_laplace(strategy.moved(unit, bits), self._pure(privacy), scale, loss)

    @abstractmethod
    def amount(self, privacy: Privacy) -> Fraction:
        """The ε, or the ρ, that a guarantee allows."""

    def ideal_deviation(self, privacy: Privacy, unit: PrivacyUnit, sensitivity: float) -> float:
        """Standard deviation of such noise on real numbers, for a strategy of this sensitivity.

        >>> round(L2().ideal_deviation(ZCDP(Fraction(1, 2)), PrivacyUnit(), 3.0), 9)
        3.0
        """
        variance = self.variance / float(self.amount(privacy)) ** self.power
        return math.sqrt(variance) * sensitivity * unit.factor

    def at_one(self) -> Privacy:
        """The guarantee of an amount of 1, at which errors are stated where none is given."""
        return self.guarantee(Fraction(1))

    def admits(self, privacy: Privacy) -> bool:
        """Whether such noise can keep a guarantee."""
        return isinstance(privacy, PureDP)

    def _pure(self, privacy: Privacy) -> PureDP:
        if not isinstance(privacy, PureDP):
            raise BudgetError(
                f"{self.words} noise guarantees pure differential privacy; give epsilon alone"
            )
        return privacy


@dataclass(frozen=True)
class L1(Norm):
    """The sum of the sizes of all moves: Laplace noise, for pure ε.

    >>> L1().order, L1().symbol
    (1, 'ε')
    """

    noise = "laplace"
    words = "Laplace"
    order = 1
    guarantee = PureDP
    symbol = "ε"
    variance = 2.0
    power = 2

    def amount(self, privacy: Privacy) -> Fraction:
        return self._pure(privacy).epsilon

    def sensitivity(self, strategy: Moved) -> float:
        return float(strategy.sensitivity)

    def law(self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int) -> NoiseLaw:
        scale = laplace_scale(strategy.moved(unit, bits), self._pure(privacy).epsilon)
        return on_lattices(NoiseLaw("laplace", scale), strategy.divisors)

    def calibrate(
        self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int
    ) -> Calibrated:
        return calibrate_laplace(strategy.moved(unit, bits), self._pure(privacy), strategy.divisors)


@dataclass(frozen=True)
class L2(Norm):
    """The root of the sum of squares: Gaussian noise, for ρ-zCDP or (ε, δ).

    Parameters
    ----------
    unit
        The unit that a strategy is made for, where its rows are limited by group: a record then
        counts for what the unit moves the measurements by, divided by the most records of a unit.
    """

    unit: PrivacyUnit | None = None

    noise = "gaussian"
    words = "Gaussian"
    order = 2
    guarantee = ZCDP
    symbol = "ρ"
    variance = 0.5
    power = 1

    def amount(self, privacy: Privacy) -> Fraction:
        return zcdp_of(privacy).rho

    def sensitivity(self, strategy: Moved) -> float:
        if self.unit is None:
            return math.sqrt(strategy.squared_l2_sensitivity)
        return math.sqrt(strategy.squared_l2_moved(self.unit, 0)) / self.unit.factor

    @property
    def plain(self) -> L2:
        return L2()

    def law(self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int) -> NoiseLaw:
        return NoiseLaw("gaussian", gaussian_scale(strategy.squared_l2_moved(unit, bits), privacy))

    def calibrate(
        self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int
    ) -> Calibrated:
        return calibrate_gaussian(strategy.squared_l2_moved(unit, bits), privacy)

    def check_scale(  # noqa: PLR0913, PLR0917 - the noise of a release in full
        self,
        strategy: Moved,
        privacy: Privacy,
        unit: PrivacyUnit,
        bits: int,
        scale: float,
        loss: Fraction,
    ) -> None:
        check_gaussian(strategy.squared_l2_moved(unit, bits), privacy, scale, loss)

    def admits(self, privacy: Privacy) -> bool:
        return not isinstance(privacy, PureDP)


@dataclass(frozen=True)
class BodyNorm(Norm):
    """The norm of a convex body, which holds all that one record moves: shaped noise, for pure ε.

    Parameters
    ----------
    shape
        The body.
    replaced
        Whether the body need only hold half of what replacing a record by another moves: units
        are replaced, and count for two records.
    """

    shape: Body
    replaced: bool = False

    noise = "shaped"
    words = "shaped"
    order = 1
    guarantee = PureDP
    symbol = "ε"
    variance = 2.0
    power = 2

    @property
    def body(self) -> Body:
        return self.shape

    @property
    def digests(self) -> tuple[object, ...]:
        return (self.shape.digest, *(["replaced"] if self.replaced else []))

    def amount(self, privacy: Privacy) -> Fraction:
        return self._pure(privacy).epsilon

    def sensitivity(self, strategy: Moved) -> float:
        return float(strategy.sensitivity)

    def law(self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int) -> NoiseLaw:
        scale = laplace_scale(strategy.moved(unit, bits), self._pure(privacy).epsilon)
        law = ShapedLaw("shaped", scale, self.shape, strategy.sensitivity)
        return law.on_lattice(strategy.divisors)

    def calibrate(
        self, strategy: Moved, privacy: Privacy, unit: PrivacyUnit, bits: int
    ) -> Calibrated:
        pure = self._pure(privacy)
        moved = strategy.moved(unit, bits)
        return calibrate_shaped(self.shape, strategy.sensitivity, moved, pure, strategy.divisors)


NORMS: dict[str, Norm] = {norm.noise: norm for norm in (L1(), L2())}
"""Norms of independent noise, by the name of the noise."""


def norm_of(noise: str, unit: PrivacyUnit | None = None) -> Norm:
    """The norm of independent noise that a name asks for: shaped noise begins with L1.

    Gaussian noise is less where the rows of a ``unit`` are limited by group.

    >>> norm_of("pure") == L1(), norm_of("gaussian") == L2()
    (True, True)
    """
    norm = NORMS.get(noise, L1())
    if unit is None or unit.by is None or not isinstance(norm, L2):
        return norm
    return L2(unit)


def unit_privacy(noise: str) -> Privacy:
    """The guarantee at which errors are stated where none is given: ε = 1 or ρ = 1."""
    return norm_of(noise).at_one()
