"""Exact integer noise, drawn by OpenDP's reviewed samplers.

The sampler's scale is one float64, so it is rounded *up* until the library's own privacy
map says that the promise is kept. What the map returns is what a release records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.amounts import upward_float
from lrm.budget import Privacy, PureDP
from lrm.errors import BudgetError

__all__ = ["Calibrated", "calibrate_laplace"]

LARGEST_SCALE = 2.0**54
"""With this scale a draw beyond 2^62 has probability below e^−256; larger ones are refused.

The sampler saturates at the ends of its 64-bit integers. Saturation is harmless for
privacy (it is applied to the sum), but a saturated value would be no measurement.
"""


@dataclass(frozen=True)
class Calibrated:
    """A noise distribution for one sensitivity and one promise, ready to be drawn.

    Parameters
    ----------
    distribution
        ``"discrete Laplace"`` or ``"discrete Gaussian"``.
    scale
        Its scale, on the integers that are measured.
    privacy
        The promise that was asked for.
    loss
        What OpenDP's privacy map returns for this noise (ε or ρ), exactly: at most
        what was asked for.
    """

    distribution: str
    scale: float
    privacy: Privacy
    loss: Fraction
    sampler: Any

    def add_to(self, true_values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw the noise and add it, in exact integers."""
        return np.array(self.sampler(true_values.tolist()), dtype=np.int64)


def _opendp() -> Any:
    import opendp.prelude as dp  # noqa: PLC0415 - 0.3 s, needed only where noise is drawn

    dp.enable_features("contrib")
    return dp


def calibrate_laplace(sensitivity: int, privacy: PureDP) -> Calibrated:
    """Discrete Laplace noise on integers that one unit moves by ``sensitivity`` in L1.

    >>> noise = calibrate_laplace(3, PureDP(Fraction(1, 10)))
    >>> noise.scale >= 30, noise.loss <= Fraction(1, 10)
    (True, True)
    """
    scale = upward_float(Fraction(sensitivity) / privacy.epsilon)
    if scale > LARGEST_SCALE:
        raise BudgetError(
            f"epsilon {float(privacy.epsilon):.3g} needs noise too large for 64-bit integers "
            "with this plan; use a larger epsilon, or plan with a larger max_records"
        )
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    for _ in range(64):
        sampler = dp.m.make_laplace(*space, scale=scale)
        loss = Fraction(sampler.map(sensitivity))
        if loss <= privacy.epsilon:
            return Calibrated("discrete Laplace", scale, privacy, loss, sampler)
        scale = math.nextafter(scale, math.inf)
    raise BudgetError("no noise scale keeps the promise asked for; use a larger epsilon")
