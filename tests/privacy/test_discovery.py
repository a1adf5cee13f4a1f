"""Thresholds of discovered values, by sums of whole numbers that share no code with them."""

import math
from fractions import Fraction

import pytest

from long_runs import cases
from lrm.errors import BudgetError
from lrm.privacy.budget import ApproxZCDP
from lrm.privacy.discovery import Threshold, least_threshold
from lrm.privacy.mechanism import OccurringValues

ONE = 10**60
DELTA = Fraction(1, 10**8)


def exponentials(scale, count):
    """Bounds of ``exp(−k²/2σ²)·10^60`` as whole numbers, from the series of ``exp(1/2σ²)``."""
    x = 1 / (2 * Fraction(scale) ** 2)
    terms = Fraction(1), Fraction(1)
    total, term = Fraction(1), Fraction(1)
    for k in range(1, 60):
        term *= x / k
        total += term
    above = total + 2 * term  # what is left of the series, for x ≤ 1
    terms = 1 / above, 1 / total
    bounds = []
    for exact, up in zip(terms, (0, 1), strict=True):
        factor = exact.numerator * ONE // exact.denominator + up
        square = factor * factor // ONE + up
        weights = [ONE]
        for _ in range(count):
            weights.append(weights[-1] * factor // ONE + up)
            factor = factor * square // ONE + up
        bounds.append(weights)
    return bounds


def tails(scale, first):
    """Bounds of ``P(N ≥ t)`` for t from ``first`` on: the first two."""
    count = math.ceil(20 * scale) + 20
    low, high = exponentials(scale, count)
    rest = 2 * high[count]  # of a series that falls faster than a geometric one
    wholes = [weights[0] + 2 * sum(weights[1:]) for weights in (low, high)]
    wholes[1] += 2 * rest
    return [
        (Fraction(sum(low[t:]), wholes[1]), Fraction(sum(high[t:]) + rest, wholes[0]))
        for t in (first, first + 1)
    ]


@pytest.mark.parametrize("most", range(1, 33))
def test_a_value_of_one_person_passes_with_probability_delta_at_most(most):
    """P(some value that one person alone has passes) ≤ δ, and one person fewer would be too few."""
    threshold = Threshold.of(ApproxZCDP(Fraction(1, 2), DELTA), most)
    assert threshold.noise.scale >= math.sqrt(most)
    (before, _), (_, after) = tails(threshold.noise.scale, threshold.least - 2)
    assert 1 - (1 - after) ** most <= DELTA
    assert 1 - (1 - before) ** most > DELTA


@pytest.mark.parametrize("delta", [Fraction(1, 4), Fraction(1, 1000), Fraction(1, 10**40)])
def test_thresholds_at_other_deltas(delta):
    for scale, most in ((0.8, 3), (2.5, 1), (7.0, 20)):
        least = least_threshold(scale, delta, most)
        (before, _), (_, after) = (
            tails(scale, least - 2) if least > 1 else ((1, 1), tails(scale, 0)[0])
        )
        assert 1 - (1 - after) ** most <= delta
        assert 1 - (1 - before) ** most > delta


def failures(runs, most, delta):
    """Runs of fresh noise in which one of a person's own values passes; and their probability."""
    threshold = Threshold.of(ApproxZCDP(Fraction(1), delta), most)
    alone = OccurringValues({f"{k:06}": 1 for k in range(runs * most)})
    passed = {int(name) // most for name in threshold.published(alone)}
    ((low, high), _) = tails(threshold.noise.scale, threshold.least - 1)
    assert float(high - low) < 1e-12
    return len(passed), float(1 - (1 - high) ** most)


@pytest.mark.slow
def test_values_of_one_person_in_simulated_runs():
    """By chance it fails with probability below 1e-9 (Bernstein's inequality)."""
    simulated(8_000)


@pytest.mark.long
def test_values_of_one_person_in_a_million_simulated_runs():
    simulated(cases(1_000_000))


def simulated(runs):
    for most, delta in ((1, Fraction(1, 50)), (4, Fraction(1, 100))):
        failed, chance = failures(runs, most, delta)
        assert chance <= delta
        spread = math.sqrt(2 * runs * chance * 22) + 15  # exp(−22) is 2.8e-10
        assert abs(failed - runs * chance) < spread


def test_values_that_pass_are_those_of_many_persons():
    threshold = Threshold.of(ApproxZCDP(Fraction(1, 100), DELTA), 4)
    values = OccurringValues({"often": 100_000, "seldom": 1})
    assert "often" not in repr(values)
    published = threshold.published(values)
    assert list(published) == ["often"]
    assert abs(published["often"] - 100_000) < 40 * threshold.noise.scale
    assert threshold.published(OccurringValues({})) == {}
    with pytest.raises(TypeError, match="not written"):
        values.__reduce__()


def test_a_person_who_is_replaced_moves_twice_as_many():
    guarantee = ApproxZCDP(Fraction(1, 100), DELTA)
    one = Threshold.of(guarantee, 8)
    two = Threshold.of(guarantee, 4, replaced=True)
    assert two.noise.scale == one.noise.scale
    assert two.least <= one.least, "a person brings four values of their own, not eight"


def test_what_cannot_be_discovered_is_refused():
    guarantee = ApproxZCDP(Fraction(1, 10**12), DELTA)
    with pytest.raises(BudgetError, match="rho is too small"):
        Threshold.of(guarantee, 4)
    for most in (0, True, 1.0, 10**6):
        with pytest.raises(BudgetError, match="most must be a whole number"):
            Threshold.of(ApproxZCDP(Fraction(1), DELTA), most)
    with pytest.raises(BudgetError, match="delta must be between"):
        ApproxZCDP(Fraction(1), Fraction(3, 4))
