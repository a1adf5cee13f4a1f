r"""The (ε, δ) that Gaussian noise keeps, by the exact formula instead of a bound through zCDP.

**Continuous noise.** For shifts of at most Δ in L2 and noise N(0, s²) on each coordinate, the least
δ for ε is, with μ = Δ/s (Balle and Wang, *Improving the Gaussian mechanism*, 2018, theorem 8),

    δ(μ, ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ),  increasing in μ.

**Discrete noise.** Let P be the discrete Gaussian of scale σ on the integers, shifted by an integer
v, and σ² = s² + r². Draw X from N(v, s²) and round it to the integer k with probability
∝ exp(−(X − k)²/(2r²)). The result has the law P' with ``P'(k) = ∫ φ_s(x − v)·exp(−(x − k)²/(2r²)) /
Θ(x) dx``, Θ(x) = Σ_j exp(−(x − j)²/(2r²)). By Poisson summation Θ(x) is within the factors 1 ± η of
r·√(2π), η = 2·Σ_{m≥1} exp(−2π²r²m²). Without Θ the integral is ∝ exp(−(k − v)²/(2σ²)), so that
P(k)/P'(k) is between 1/κ and κ = (1 + η)/(1 − η), for every k and v, and κ^n for
n coordinates. P' is a function of Gaussian noise of scale s, so for all sets S and shifts v of norm
at most Δ

    P(S) ≤ κ^n·P'(S) ≤ κ^n·(e^ε'·Q'(S) + δ') ≤ κ^(2n)·e^ε'·Q(S) + κ^n·δ',  δ' = δ(Δ/s, ε').

With r = 2, η < 1.1·10⁻³⁴: for up to 2⁴⁰ coordinates ε' = ε − 10⁻²⁰ and δ' = δ·(1 − 10⁻²⁰) do.

All is computed in decimal numbers of 60 digits; sums and fractions are cut off on the safe side.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from lrm.privacy.amounts import decimal_of

SPREAD = 4
"""r²: how much larger σ² of discrete noise is than that of the continuous noise behind it."""

MARGIN = Fraction(1, 10**20)
"""What is kept back of ε, and of δ as a share of it, for discrete noise."""

_CONTEXT, _SHORT = Context(prec=60), Context(prec=15)
_STEP = Fraction(1, 10**12)
_ROUNDING = Decimal("1e-45")
"""More than all rounding errors together: some thousand operations, each exact to 10^−59."""

_ROOT_2PI = Decimal("2.50662827463100050241576528481104525300698674060993831662992")

_FAR = 40
"""The density of a normal variable at this many deviations is below 10^−340."""

_SERIES, _TERMS, _FRACTIONS = 3, 120, 300
"""Up to where the ratio of tail and density is a series, its terms, and the fractions beyond."""


def _mills(x: Decimal, *, upper: bool) -> Decimal:
    """A bound on (1 − Φ(x))/φ(x) for x ≥ 0, from above or from below."""
    if x <= _SERIES:
        # √(π/2)·exp(x²/2) − Σ x^(2n+1)/(2n+1)!!: from x²/(2n+3) < 1/2 on, the terms that are
        # left sum to at most the last one.
        term = total = x
        for n in range(1, _TERMS):
            term = term * x * x / (2 * n + 1)
            total += term
        if not upper:
            total += term
        return _ROOT_2PI / 2 * (x * x / 2).exp() - total
    # 1/(x + 1/(x + 2/(x + …))): an even number of fractions is above, an odd one below.
    value = x
    for j in range(_FRACTIONS + (not upper), 0, -1):
        value = x + j / value
    return 1 / value


def delta_bound(rho: Fraction, epsilon: Fraction) -> Fraction:
    """At least the δ that continuous Gaussian noise of ``ρ = Δ²/(2s²)`` has at ``epsilon``.

    With a = μ/2 − ε/μ and b = μ/2 + ε/μ, e^ε·φ(b) = φ(a), so that δ = φ(a)·(M(−a) − M(b)), or
    1 − φ(a)·(M(a) + M(b)), M the ratio of tail and density.

    >>> float(delta_bound(Fraction(1, 2), Fraction(1)))  # μ = 1
    0.12693673...
    """
    with localcontext(_CONTEXT):
        # Both errors, of the root and of ε/μ, are far below those that are added at the end.
        mu = (2 * decimal_of(rho, _CONTEXT)).sqrt()
        ratio = decimal_of(epsilon, _CONTEXT) / mu
        a, b = mu / 2 - ratio, mu / 2 + ratio
        if a > _FAR:
            return Fraction(1)
        if a < -_FAR:
            return Fraction(1, 10**340)
        density = (-a * a / 2).exp() / _ROOT_2PI
        if a <= 0:
            tail = _mills(-a, upper=True)
            delta = density * (tail - _mills(b, upper=False) + tail * _ROUNDING)
        else:
            delta = 1 - density * (_mills(a, upper=False) + _mills(b, upper=False)) + _ROUNDING
    return max(Fraction(delta), Fraction(1, 10**340))


def keeps(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether discrete Gaussian noise of ``σ² = Δ²/(2ρ) + SPREAD`` is (ε, δ)-private: proved."""
    return delta_bound(rho, epsilon - MARGIN) <= delta * (1 - MARGIN)


@lru_cache(maxsize=256)
def largest_rho(epsilon: Fraction, delta: Fraction, known: Fraction, most: Fraction) -> Fraction:
    """The largest ρ up to ``most`` for which `keeps` holds, to 12 digits; at least ``known``.

    ``known`` is a ρ for which ρ-zCDP alone implies (ε, δ).

    >>> float(largest_rho(Fraction(1), Fraction(1, 10**6), Fraction(1, 50), Fraction(1)))
    0.0280...
    """
    low, high = known, min(2 * known, most)
    while high < most and keeps(high, epsilon, delta):
        low, high = high, min(2 * high, most)
    while high - low > low * _STEP:
        middle = Fraction(_SHORT.plus(decimal_of((low + high) / 2, _CONTEXT)))
        low, high = (middle, high) if keeps(middle, epsilon, delta) else (low, middle)
    return low
