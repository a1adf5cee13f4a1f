r"""The widest interval that a weighted sum of Laplace variables of one variance can need.

A standard Laplace variable is ``√(2E)·N`` for an exponential E and a normal N, so with
``Σ a_j² = 1`` a sum ``Σ a_j·Z_j`` is ``√(2V)·N`` with ``V = Σ a_j²·E_j``, and

    P(|Σ a_j·Z_j| > h) = E g(V),    g(v) = erfc(h / (2√v)).

V lies below E in convex order (it is an average of copies of E), so ``E g(V) ≤ E φ(E)`` for
every convex φ ≥ g. g is convex up to ``h²/6`` and concave beyond. The φ used here is g up to a
point s, and from there on the tangent of g at a point t beyond ``h²/6`` that meets g in s; or
the tangent alone, where it is positive at 0. With

    ∫₀ˢ g(v)·e⁻ᵛ dv = −g(s)·e⁻ˢ + ½(e⁻ʰ·erfc(h/(2√s) − √s) + eʰ·erfc(h/(2√s) + √s))

the bound is a closed form for each t. At a confidence of 95 % its half-width is 1.8 % above that
of a single Laplace variable, at 99 % 0.13 %, and 10 % above that of a normal variable at 95 %.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import erfc, erfcx, erfinv

__all__ = ["widest_half_width"]


@lru_cache(maxsize=64)
def widest_half_width(confidence: float) -> float:
    """An h with ``P(|Σ a_j·Z_j| ≤ h) ≥ confidence`` for all weights with ``Σ a_j² = 1``.

    Z_j are independent Laplace variables of scale 1.

    Examples
    --------
    >>> round(widest_half_width(0.95), 3)
    3.05
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - 0.3 s, for sums of Laplace noise alone

    tail = 1.0 - confidence
    # The two extreme laws: one variable, and infinitely many.
    least = max(-math.log(tail), 2.0 * float(erfinv(confidence)))
    most = 1.1 * least
    root = float(brentq(lambda h: math.log(_tail_bound(h) / tail), 0.999 * least, most))
    return root * (1.0 + 1e-9)


def _tail_bound(h: float) -> float:
    """A number that ``P(|Σ a_j·Z_j| > h)`` is at most: the least that a tangent gives."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    turn = h * h / 6.0
    minimum = minimize_scalar(
        lambda t: _bound(h, t), bounds=(turn, turn + 4.0), method="bounded", options={"xatol": 1e-9}
    )
    return min(float(minimum.fun), _bound(h, max(1.0, turn)))


def _bound(h: float, t: float) -> float:
    """``E φ(E)`` with the tangent at t."""
    from scipy.optimize import brentq  # noqa: PLC0415

    slope = h / (2.0 * math.sqrt(math.pi * t) * t) * math.exp(-h * h / (4.0 * t))
    value = float(erfc(h / (2.0 * math.sqrt(t))))

    def line(v: float) -> float:
        return value + slope * (v - t)

    if line(0.0) >= 0.0:
        return line(1.0)
    turn = h * h / 6.0
    if t <= turn * (1.0 + 1e-12):
        s = turn
    else:
        s = float(brentq(lambda v: line(v) - _g(h, v), 0.0, turn))
    # E of the tangent beyond s: an exponential variable above s has the mean s + 1.
    return _integral(h, s) + math.exp(-s) * line(s + 1.0)


def _g(h: float, v: float) -> float:
    return float(erfc(h / (2.0 * math.sqrt(v)))) if v > 0 else 0.0


def _integral(h: float, s: float) -> float:
    root, ratio = math.sqrt(s), h / (2.0 * math.sqrt(s))
    near = math.exp(-h) * float(erfc(ratio - root))
    far = math.exp(-ratio * ratio - s) * float(erfcx(ratio + root))
    return 0.5 * (near + far) - _g(h, s) * math.exp(-s)
