r"""Half-widths of intervals that hold the noise of an answer at least as often as they say.

The noise of an answer is ``S = Σ_j b_j·η_j``, with integer noise η. Its law is discrete, and
nobody can list its values for thousands of incommensurable weights; so a continuous law that
is wider is put in its place:

1. Add to each η_j its own U_j, uniform on (−½, ½). ``V_j = η_j + U_j`` has a density that is
   symmetric and falls on both sides, and so has a Laplace (or normal) variable Y_j. Where
   ``P(|V_j| ≥ t) ≤ P(|Y_j| ≥ t)`` for all t, sums with any weights keep that order [1]_. It
   holds for Laplace Y of scale ``s + 1/s`` and normal Y of variance ``σ² + 1/4`` (checked
   numerically by a test for scales from 2 on).
2. ``T = Σ b_j·U_j`` is sub-Gaussian with variance ‖b‖²/12, and independent of S. So
   ``P(S > h + c)·P(T ≥ −c) ≤ P(S + T > h)``, where ``P(T ≥ −c) ≥ 1 − exp(−6c²/‖b‖²)``.

With c = κ‖b‖ this costs about κ/(2σ) of the width: 1e-9 of it for the 30 bits that plans have
by default, and 2 % at σ = 16. Below that the law of the integers is computed (`lattice`), and
the smaller half-width is taken; both hold.

References
----------
.. [1] Birnbaum, "On random variables with comparable peakedness", Ann. Math. Stat. 1948.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from lrm.accuracy.lattice import LatticeSums
from lrm.accuracy.noise_sums import gaussian_half_widths, laplace_sum_half_widths
from lrm.exact.protocols import Reconstruction
from lrm.maps.linear import Floats
from lrm.privacy.laws import NoiseLaw

__all__ = ["half_widths", "sum_half_widths"]

COARSE = 16.0
"""Below this standard deviation on the integers the lattice is looked at."""

DOMINATED = 2.0
"""From this scale on the continuous law is known to be wider."""


def half_widths(
    reconstruction: Reconstruction,
    law: NoiseLaw,
    confidence: float,
    rows: Sequence[int] | None = None,
) -> Floats:
    """Half-widths for the noise of answers, in units of the integers."""
    if law.noise == "gaussian" and law.deviation >= COARSE:  # norms alone will do
        norms = np.sqrt(reconstruction.row_squared_norms)
        return _continuous(norms, None, law, confidence)[slice(None) if rows is None else rows]
    blocks = _blocks(reconstruction, rows)
    parts = [sum_half_widths(block, law, confidence) for block in blocks]
    return np.concatenate(parts) if parts else np.zeros(0)


def _blocks(reconstruction: Reconstruction, rows: Sequence[int] | None) -> Iterator[Floats]:
    if rows is None:
        for start, stop in reconstruction.row_ranges():
            yield reconstruction.rows(start, stop)
    elif len(rows):
        yield np.vstack([reconstruction.rows(i, i + 1) for i in rows])


def sum_half_widths(weights: Floats, law: NoiseLaw, confidence: float) -> Floats:
    """For each row b of ``weights`` an h with ``P(|Σ b_j·η_j| ≤ h) ≥ confidence``.

    Examples
    --------
    >>> fine, coarse = NoiseLaw("laplace", 2.0**30), NoiseLaw("laplace", 1.0)
    >>> float(round(sum_half_widths(np.ones((1, 1)), fine, 0.95)[0] / 2**30, 6))
    2.995732
    >>> float(sum_half_widths(np.ones((1, 1)), coarse, 0.95)[0])
    3.5
    """
    norms = np.linalg.norm(weights, axis=1)
    found = np.full(len(weights), np.inf)
    if law.scale >= DOMINATED:
        found = _continuous(norms, weights, law, confidence)
    if law.deviation < COARSE:
        sums = LatticeSums(law, weights.shape[1])
        exact = np.array([sums.half_width(row, confidence) for row in weights])
        found = np.minimum(found, exact)
    return found


def _continuous(norms: Floats, weights: Floats | None, law: NoiseLaw, confidence: float) -> Floats:
    """The half-widths of the wider continuous law, and c."""
    scale = law.scale
    kappa = math.sqrt((math.log(scale) + 1.0) / 6.0)
    tail = (1.0 - confidence) * -math.expm1(-6.0 * kappa**2)
    wider = min(1.0 - tail, math.nextafter(1.0, 0.0))
    if law.noise == "gaussian":
        return gaussian_half_widths(math.hypot(scale, 0.5) * norms, wider) + kappa * norms
    assert weights is not None  # noqa: S101 - by construction: only norms of Gaussian noise do
    return (scale + 1.0 / scale) * laplace_sum_half_widths(weights, wider) + kappa * norms
