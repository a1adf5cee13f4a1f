"""Exact integer noise, drawn by OpenDP's reviewed samplers.

The sampler's scale is one float64, so it is rounded *up* until the library's own privacy
map says that the guarantee is kept. What the map returns is what a release records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import BudgetError
from lrm.privacy.amounts import upward_float
from lrm.privacy.budget import ApproxDP, Privacy, PureDP, rho_for, zcdp_of
from lrm.privacy.gaussian_profile import SPREAD
from lrm.privacy.laws import LatticeLaw, NoiseLaw, on_lattices

LARGEST_SCALE = 2.0**54
"""With this scale a draw beyond 2^62 has probability below e^−256; larger ones are refused.

The sampler saturates at the ends of its 64-bit integers. Saturation is harmless for
privacy (it is applied to the sum), but a saturated value would not be a measurement.
"""


LARGEST_DISTANCE = 2**62
"""The sampler's privacy map takes distances as 64-bit integers, and wraps larger ones."""

BLOCK = 1 << 16
"""Integers whose noise is drawn at a time: half a second, after which Ctrl-C is noticed."""

TIGHT = 2.0**-40
"""How far scale and loss may lie from the exact ones, upwards: room for 64 floats."""


@dataclass(frozen=True)
class Calibrated:
    """A noise distribution for one sensitivity and one guarantee, ready to be drawn.

    Parameters
    ----------
    law
        The distribution and its scale, on the integers that are measured.
    privacy
        The guarantee that was asked for.
    loss
        What OpenDP's privacy map returns for this noise (ε or ρ), exactly: at most
        what was asked for.
    """

    law: NoiseLaw
    privacy: Privacy
    loss: Fraction
    sampler: Any = field(repr=False)

    @property
    def distribution(self) -> str:
        """``"discrete Laplace"`` or ``"discrete Gaussian"``."""
        return self.law.distribution

    @property
    def scale(self) -> float:
        """Scale of the noise, on the integers that are measured."""
        return self.law.scale

    def drawn(self) -> Calibrated:
        """Noise that is drawn ahead for one use, where that takes long and needs no data."""
        return self

    def add_to(self, true_values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw the noise and add it, in exact integers.

        Each integer has noise of its own, so that parts of a vector may be drawn one after the
        other: of a hundred million at once, Python's integers would take 7 GB.
        """
        noisy = np.empty_like(true_values)
        for start in range(0, len(true_values), BLOCK):
            part = slice(start, start + BLOCK)
            noisy[part] = self.sampler(true_values[part].tolist())
        return noisy


def _integer_vectors() -> Any:
    """The space of the measured integers, in OpenDP's terms."""
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415 - where noise is drawn
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


def calibrate_gaussian(squared_sensitivity: int, privacy: Privacy) -> Calibrated:
    """Discrete Gaussian noise on integers that one unit moves by so much in squared L2.

    ρ-zCDP of the discrete Gaussian with ``σ² = Δ²/(2ρ)`` is theorem 4 of Canonne, Kamath and
    Steinke (2020), coordinate by coordinate, by composition.

    OpenDP's map takes the L2 distance as a float64, which is rounded up.

    >>> from lrm.privacy.budget import ZCDP
    >>> noise = calibrate_gaussian(10, ZCDP(Fraction(1, 8)))
    >>> noise.scale >= 40**0.5, noise.loss <= Fraction(1, 8)
    (True, True)
    """
    rho = zcdp_of(privacy).rho
    law = NoiseLaw("gaussian", gaussian_scale(squared_sensitivity, privacy))
    distance = _upward_root(Fraction(squared_sensitivity))
    check_scale(law.scale, distance, "rho")
    # Not from opendp.prelude, which imports Polars and all else that it supports: 0.2 s.
    from opendp.measurements import make_gaussian  # noqa: PLC0415
    from opendp.metrics import l2_distance  # noqa: PLC0415

    space = _integer_vectors(), l2_distance(T="f64")
    return _tightened(law, make_gaussian, space, distance, privacy, rho)


@dataclass(frozen=True)
class LatticeNoise(Calibrated):
    """Noise on multiples of a step; ``sampler`` holds that of the quotients, step by step."""

    def add_to(self, true_values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the noise to the values divided by their steps; then clamp the products to 62 bits.

        The values are multiples of their steps, unless they were clamped. Rounding those down to
        the next multiple is clamping too, at an end that is a multiple.
        """
        law = self.law
        assert isinstance(law, LatticeLaw)  # noqa: S101 - by construction
        steps = np.broadcast_to(np.array(law.steps, dtype=np.int64), true_values.shape)
        noisy = np.empty_like(true_values)
        for step, sampler in self.sampler.items():
            places = np.flatnonzero(steps == step)
            part = Calibrated(law, self.privacy, self.loss, sampler)
            quotients = part.add_to(true_values[places] // step)
            most = LARGEST_DISTANCE // step
            noisy[places] = np.clip(quotients, -most, most) * step
        return noisy


def calibrate_laplace(
    sensitivity: int, privacy: PureDP, divisors: NDArray[np.int64] | None = None
) -> Calibrated:
    """Discrete Laplace noise on integers that one unit moves by ``sensitivity`` in L1.

    ``divisors`` divide all values of each integer: where they are large compared with the
    noise, it is drawn on their multiples.

    >>> noise = calibrate_laplace(3, PureDP(Fraction(1, 10)))
    >>> noise.scale >= 30, noise.loss <= Fraction(1, 10)
    (True, True)
    """
    law = NoiseLaw("laplace", laplace_scale(sensitivity, privacy.epsilon))
    check_scale(law.scale, sensitivity, "epsilon")
    from opendp.measurements import make_laplace  # noqa: PLC0415
    from opendp.metrics import l1_distance  # noqa: PLC0415

    space = _integer_vectors(), l1_distance(T="i64")
    fine = _tightened(law, make_laplace, space, sensitivity, privacy, privacy.epsilon)
    law = fine.law if divisors is None else on_lattices(fine.law, divisors)
    if not isinstance(law, LatticeLaw):
        return fine
    # Rounded up, so that step times scale is at least the scale on the integers.
    scales = {step: upward_float(Fraction(law.scale) / step) for step in set(law.steps)}
    samplers = {step: make_laplace(*space, scale=scale) for step, scale in scales.items()}
    return LatticeNoise(law, privacy, fine.loss, samplers)


def laplace_scale(sensitivity: int, epsilon: Fraction) -> float:
    """The least scale of Laplace noise that keeps ``epsilon``: Δ/ε, rounded up."""
    return upward_float(Fraction(sensitivity) / epsilon)


def gaussian_scale(squared_sensitivity: int, privacy: Privacy) -> float:
    """The least scale of Gaussian noise that is proved to keep the guarantee, rounded up.

    ``σ² = Δ²/(2ρ)`` for ρ-zCDP. For (ε, δ) it is that of a ρ that implies it, or
    ``σ² = Δ²/(2ρ) + SPREAD`` for the larger ρ of `zcdp_of`: less, unless σ² is small.
    """
    least = Fraction(squared_sensitivity) / (2 * zcdp_of(privacy).rho)
    if isinstance(privacy, ApproxDP):
        least = min(least + SPREAD, _implied_variance(squared_sensitivity, privacy))
    return _upward_root(least)


def _implied_variance(squared_sensitivity: int, privacy: ApproxDP) -> Fraction:
    """σ² of noise whose zCDP implies an (ε, δ) guarantee."""
    return Fraction(squared_sensitivity) / (2 * rho_for(privacy.epsilon, privacy.delta))


def _upward_root(squared: Fraction) -> float:
    """The square root, rounded up to a float: to 80 binary digits first."""
    shift = max(0, 80 - squared.numerator.bit_length() // 2 + squared.denominator.bit_length() // 2)
    root = math.isqrt(math.ceil(squared * 4**shift) - 1) + 1
    return upward_float(Fraction(root, 2**shift))


def check_laplace(sensitivity: int, privacy: PureDP, scale: float, loss: Fraction) -> None:
    """Refuse a scale or a loss that `calibrate_laplace` does not come to.

    >>> check_laplace(3, PureDP(Fraction(1, 10)), 30.0, Fraction(1, 10))
    >>> check_laplace(3, PureDP(Fraction(1, 10)), 3.0, Fraction(1))
    Traceback (most recent call last):
    ...
    lrm.errors.BudgetError: the scale of the noise is not the one that the guarantee needs
    """
    _check_stated(scale, laplace_scale(sensitivity, privacy.epsilon))
    _check_loss(loss, Fraction(sensitivity) / Fraction(scale), privacy.epsilon)


def check_gaussian(
    squared_sensitivity: int, privacy: Privacy, scale: float, loss: Fraction
) -> None:
    """Refuse a scale or a loss that `calibrate_gaussian` does not come to.

    Older releases of an (ε, δ) guarantee have the scale of the ρ that implies it: more noise.
    """
    rho = zcdp_of(privacy).rho
    least = gaussian_scale(squared_sensitivity, privacy)
    if isinstance(privacy, ApproxDP):
        older = _upward_root(_implied_variance(squared_sensitivity, privacy))
        least = older if scale >= older else least
    _check_stated(scale, least)
    _check_loss(loss, Fraction(squared_sensitivity) / (2 * Fraction(scale) ** 2), rho)


def _check_stated(scale: float, least: float) -> None:
    # The privacy map may have asked for a few floats more than the least.
    if not least <= scale <= least * (1 + TIGHT):
        raise BudgetError("the scale of the noise is not the one that the guarantee needs")


def _check_loss(loss: Fraction, exact: Fraction, allowed: Fraction) -> None:
    if not (exact <= loss <= allowed and loss <= exact * (1 + Fraction(TIGHT))):
        raise BudgetError("the stated privacy loss is not that of the noise")


def check_scale(scale: float, distance: float, amount: str) -> None:
    """Refuse noise, or distances of neighbours, beyond 64-bit integers."""
    if scale > LARGEST_SCALE or distance > LARGEST_DISTANCE:
        raise BudgetError(
            f"with this plan, so small an {amount} needs noise that does not fit 64-bit integers; "
            f"use a larger {amount}, or plan with a larger max_records"
        )


def _tightened(  # noqa: PLR0913, PLR0917 - the parts of one measurement
    law: NoiseLaw,
    make: Callable[..., Any],
    space: tuple[Any, Any],
    distance: float,
    privacy: Privacy,
    allowed: Fraction,
) -> Calibrated:
    """Raise the scale, float by float, until the map itself keeps the guarantee."""
    scale = law.scale
    for _ in range(64):
        sampler = make(*space, scale=scale)
        loss = Fraction(sampler.map(distance))
        if loss <= allowed:
            return Calibrated(NoiseLaw(law.noise, scale), privacy, loss, sampler)
        scale = math.nextafter(scale, math.inf)
    raise BudgetError("no noise scale keeps the guarantee asked for; ask for a larger amount")
