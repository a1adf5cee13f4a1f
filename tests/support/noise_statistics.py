"""Statistical judgements on drawn noise, each with the rate at which it errs on right noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special, stats

Array = np.ndarray

RATE = 1e-8
"""How often one judgement errs on right noise: all those of a run of the tests, below 1e-6."""

# Chi-square tails at RATE are right within a factor of two or so from this many expected on.
LEAST_EXPECTED = 25.0
MOST_BINS = 100
# Beyond this the discrete Gaussian's distribution function is Φ((k + 1/2)/σ) to 1/(24σ²) < 1e-9.
SUMMED_SIGMA = 1e4


class Law(Protocol):
    """A distribution on the integers."""

    def cdf(self, k: Array) -> Array:
        """P(X ≤ k)."""
        ...

    def near_quantile(self, probability: Array) -> Array:
        """Integers k with P(X ≤ k) near ``probability``; only used to place bins."""
        ...


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(X = k) ∝ exp(−|k|/scale)."""

    scale: float

    def cdf(self, k: Array) -> Array:
        reach = np.where(k < 0, -k, k + 1).astype(float)
        tail = np.exp(-reach / self.scale) / (1 + np.exp(-1 / self.scale))
        return np.where(k < 0, tail, 1 - tail)

    def near_quantile(self, probability: Array) -> Array:
        return np.round(stats.laplace.ppf(probability, scale=self.scale)).astype(np.int64)


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(X = k) ∝ exp(−k²/(2σ²))."""

    sigma: float

    def cdf(self, k: Array) -> Array:
        if self.sigma > SUMMED_SIGMA:
            return special.ndtr((np.asarray(k) + 0.5) / self.sigma)
        last = int(np.ceil(40 * self.sigma)) + 1
        support = np.arange(-last, last + 1)
        total = np.cumsum(np.exp(-0.5 * (support / self.sigma) ** 2))
        return np.where(
            np.asarray(k) < -last, 0.0, total[np.clip(k, -last, last) + last] / total[-1]
        )

    def near_quantile(self, probability: Array) -> Array:
        return np.round(stats.norm.ppf(probability, scale=self.sigma)).astype(np.int64)


def fits_discrete_laplace(samples: Array, scale: float, false_alarm: float = RATE) -> bool:
    """Whether integer samples may come from the discrete Laplace law of ``scale``."""
    return goodness_of_fit_p_value(samples, DiscreteLaplace(scale)) > false_alarm


def fits_discrete_gaussian(samples: Array, sigma: float, false_alarm: float = RATE) -> bool:
    """Whether integer samples may come from the discrete Gaussian law of ``sigma``."""
    return goodness_of_fit_p_value(samples, DiscreteGaussian(sigma)) > false_alarm


def goodness_of_fit_p_value(samples: Array, law: Law) -> float:
    """A p-value for independent integer samples under ``law``; at most α at rate α if it is right.

    Three tests share it. The largest distance of the distribution functions has the bound
    ``2·exp(−2·n·D²)`` for every n and every law (Dvoretzky, Kiefer, Wolfowitz; Massart 1990), and
    sees shifts and scales. The number of zeros is binomial, exactly. Chi-square over at most 100
    bins of at least 25 expected samples is asymptotic, and sees integers that come too often.
    """
    flat = np.sort(np.asarray(samples).ravel())
    if not np.issubdtype(flat.dtype, np.integer):
        raise TypeError(f"expected integer samples, got {flat.dtype}; do not round them")
    values, counts = np.unique(flat, return_counts=True)
    here, before = law.cdf(values), law.cdf(values - 1)
    empirical = np.cumsum(counts) / flat.size
    # Between two values that occur the empirical function is flat, so the ends suffice.
    distance = max(
        np.max(np.abs(empirical - here)), np.max(np.abs(empirical - counts / flat.size - before))
    )
    bounded = 2 * float(np.exp(-2 * flat.size * distance**2))
    zeros = int(np.sum(flat == 0))
    mass = float(law.cdf(np.array(0)) - law.cdf(np.array(-1)))
    tails = stats.binom.cdf(zeros, flat.size, mass), stats.binom.sf(zeros - 1, flat.size, mass)
    return min(1.0, 3 * min(bounded, 2 * float(min(tails)), _chi_square_p_value(flat, law)))


def _chi_square_p_value(ordered: Array, law: Law) -> float:
    bins = int(np.clip(ordered.size / (2 * LEAST_EXPECTED), 2, MOST_BINS))
    cuts = np.unique(law.near_quantile(np.arange(1, bins) / bins))
    kept, expected, last = [], [], 0.0
    for cut, reached in zip(cuts, law.cdf(cuts), strict=True):
        enough = LEAST_EXPECTED / ordered.size
        if reached - last >= enough and 1 - reached >= enough:
            kept.append(cut)
            expected.append((reached - last) * ordered.size)
            last = reached
    if not kept:
        return 1.0
    expected.append((1 - last) * ordered.size)
    edges = np.searchsorted(ordered, kept, side="right")
    observed = np.diff(np.concatenate([[0], edges, [ordered.size]]))
    statistic = np.sum((observed - expected) ** 2 / np.array(expected))
    return float(stats.chi2.sf(statistic, len(kept)))


def epsilon_lower_bound(on_x: Array, on_neighbour: Array, false_alarm: float = RATE) -> float:
    """A lower confidence bound on a mechanism's ε, from its outputs on two neighbouring inputs.

    Pure ε-differential privacy says ``P(M(x) ∈ E) ≤ e^ε·P(M(x') ∈ E)`` for every event E, either
    way round. Half of the samples choose E among the two-way thresholds of the output, the
    other half count it, and ``log(lower limit of P(M(x) ∈ E) / upper limit of P(M(x') ∈ E))``
    with Clopper–Pearson limits at ``false_alarm``/2 each exceeds the true ε with
    probability at most ``false_alarm``: E is fixed before it is counted, and the limits are
    exact binomial ones, so this holds for every sample size.

    Outputs are numbers, one a run. Reduce vectors first, for instance by :func:`laplace_score`:
    any function of the output is post-processing and cannot raise its ε.
    """
    x, neighbour = (np.asarray(s, dtype=float).ravel() for s in (on_x, on_neighbour))
    # Alternating runs, so that a drift during sampling reaches both halves alike.
    choosing, counting = (x[::2], neighbour[::2]), (x[1::2], neighbour[1::2])
    thresholds = np.unique(np.quantile(np.concatenate(choosing), np.linspace(0, 1, 201)))
    limits = _log_ratios(choosing, thresholds, false_alarm)
    which, best = np.unravel_index(np.argmax(limits), limits.shape)
    bound = _log_ratios(counting, thresholds[best : best + 1], false_alarm)[which, 0]
    return max(0.0, float(bound))


def _log_ratios(samples: tuple[Array, Array], thresholds: Array, false_alarm: float) -> Array:
    """Limits of log-ratios (4×thresholds): below and above, x to neighbour and back."""
    sizes = np.array([[s.size] for s in samples])
    below = np.array([np.searchsorted(np.sort(s), thresholds, side="right") for s in samples])
    above = sizes - [np.searchsorted(np.sort(s), thresholds, side="left") for s in samples]
    found = []
    for counts in (below, above):
        # A count of 0, or of all, makes one parameter 0: those limits are 0 and 1.
        inside = np.minimum(counts, sizes - 1)
        high = np.where(
            counts == sizes, 1.0, stats.beta.isf(false_alarm / 2, inside + 1, sizes - inside)
        )
        some = np.maximum(counts, 1)
        low = stats.beta.ppf(false_alarm / 2, some, sizes - some + 1)
        ratios = np.log(low / high[::-1])
        found.append(np.where(counts == 0, -np.inf, ratios))
    return np.concatenate(found)


def laplace_score(outputs: Array, mean_on_x: Array, mean_on_neighbour: Array) -> Array:
    """The privacy loss of vector outputs (trials×r) with Laplace noise, up to its scale.

    ``Σ_i |y_i − μ'_i| − |y_i − μ_i|`` orders outputs by likelihood ratio, so that thresholds of
    it are the most telling events (Neyman and Pearson).
    """
    return np.sum(np.abs(outputs - mean_on_neighbour) - np.abs(outputs - mean_on_x), axis=1)


def mean_square_agrees(
    errors: Array, expected: Array, false_alarm: float = RATE, kurtosis: float = 6.0
) -> bool:
    """Whether errors (trials×m) have the ``expected`` mean squares (m,), each and in total.

    *Each*: a weighted sum of Laplace variables has kurtosis ``3 + 3·Σa⁴/(Σa²)² ≤ 6``, so the mean
    square over T trials has standard deviation at most ``v·√(5/T)``; for the discrete Laplace law
    of variance w give ``kurtosis = 6 + 1/w``. Limits are normal ones at ``false_alarm/2`` shared
    by m queries (Bonferroni), the upper one widened for the skewness of a squared
    Laplace variable (6.62) by the first Cornish–Fisher term. *In total*: the sums over a trial's
    queries, which are dependent, by Johnson's (1978) t-test for skewed laws at
    ``false_alarm/2``. Both are asymptotic; 2,000 trials are the least that is accepted.
    """
    squares = np.square(np.asarray(errors, dtype=float))
    wanted = np.asarray(expected, dtype=float)
    trials, queries = squares.shape
    if trials < 2000:
        raise ValueError(f"expected at least 2,000 trials for the normal limits, got {trials}")
    noiseless = wanted == 0
    if squares[:, noiseless].any():
        return False
    if noiseless.all():
        return True
    z = stats.norm.isf(false_alarm / (4 * queries))
    widened = z + 6.62 / np.sqrt(trials) * (z**2 - 1) / 6
    deviation = (squares.mean(axis=0)[~noiseless] / wanted[~noiseless] - 1) * np.sqrt(
        trials / (kurtosis - 1)
    )
    each = bool(np.all((deviation >= -z) & (deviation <= widened)))
    return each and _johnson_p_value(squares.sum(axis=1), wanted.sum()) > false_alarm / 2


def _johnson_p_value(sample: Array, mean: float) -> float:
    off = sample.mean() - mean
    centred = sample - sample.mean()
    variance = np.mean(centred**2)
    third = np.mean(centred**3)
    adjusted = off + third / (6 * variance * sample.size) + third / (3 * variance**2) * off**2
    return float(2 * stats.norm.sf(abs(adjusted) * np.sqrt(sample.size / variance)))


def noisy_runs(plan, noise, counts, trials):
    """Noisy measurements of ``trials`` releases, drawn by one call of the real sampler.

    Every draw is independent, so one long vector of repeated measurements is as good as
    many short ones, and a hundred times faster.
    """
    true_values = plan.measured.measure(plan.measured.counts_of(np.asarray(counts, dtype=np.int64)))
    drawn = noise.add_to(np.tile(true_values, trials))
    return drawn.reshape(trials, -1).astype(float)
