"""Laplace noise on the lattice of each measurement: its law, its guarantee, what it states."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import lrm
from forging import resealed
from lrm.errors import BudgetError, FileFormatError
from lrm.planning.accuracy.noise_sums import lattice_half_widths
from lrm.planning.design.cells import CellMap
from lrm.planning.design.measured import Measured
from lrm.privacy.budget import PureDP
from lrm.privacy.laws import LatticeLaw, NoiseLaw, on_lattices
from lrm.privacy.mechanism import calibrate, law_of
from lrm.privacy.noise import LatticeNoise, calibrate_laplace
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.workload import families
from noise_statistics import fits_discrete_laplace, mean_square_agrees

MIXED = np.vstack([np.eye(4), np.ones((1, 4))])
"""Cells and their sum: two steps where both are measured."""


def mixed_plan(epsilon=3):
    """A plan whose measurements have several steps at this ε."""
    plan = lrm.plan(MIXED * np.array([[3.0]] * 4 + [[1.0]]), "noise-on-results")
    law = plan.accuracy(plan.privacy(epsilon)).law
    assert len(set(law.steps)) == 2
    return plan


@pytest.mark.parametrize(
    ("share", "saved"), [(1, 0.08), (2, 0.276), (3, 0.504), (0.5, 0.0206), (1.5, 0.168)]
)
def test_how_much_variance_a_lattice_saves(share, saved):
    """By the step relative to the scale: 8, 28 and 50 % at 1, 2 and 3."""
    law = LatticeLaw("laplace", 1000.0, (int(1000 * share),))
    k = np.arange(-2000, 2001)
    mass = np.exp(-np.abs(k) * share)
    exact = float((mass * k**2).sum() / mass.sum()) * law.steps[0] ** 2
    assert law.variance == pytest.approx(exact, rel=1e-12)
    assert law.variance / 2e6 == pytest.approx(1 - saved, abs=1e-3)


def test_widths_of_rows_that_differ_by_a_factor_differ_by_it():
    rows = np.array([[1.0, 2.0, 2.0, 0.0], [0.3, 0.1, 0.2, 0.7]])
    scaled = np.vstack([rows, 3.7 * rows[:, ::-1], np.zeros((1, 4))])
    first, second, *others = lattice_half_widths(scaled, 2.0, np.full(4, 3.0), 0.95)
    np.testing.assert_allclose(others, [3.7 * first, 3.7 * second, 0.0], rtol=1e-9)


def test_steps_that_are_fine_beside_the_noise_are_not_used():
    law = NoiseLaw("laplace", 100.0)
    assert on_lattices(law, np.array([49, 1])) is law
    assert on_lattices(law, np.array([50, 50])).steps == (50,)
    assert on_lattices(law, np.array([50, 49])).steps == (50, 1)


def test_divisors_divide_all_that_a_record_can_move():
    """Lists of cells, products of attributes and folded tables, against their rows one by one."""
    plans = [lrm.plan(families.wrange(6, 9, seed=seed), effort="quick") for seed in range(1)]
    plans += [
        lrm.plan(MIXED, name, noise="laplace")
        for name in ("noise-on-data", "noise-on-results", "hierarchical")
    ]
    batches = [families.marginals([3, 2], [1, 2]), families.marginals([2] * 6, [1])]
    batches.append(families.products([4, 3], [["prefix", "total"], ["identity", "identity"]]))
    plans += [lrm.plan(batch, noise="laplace", effort="quick") for batch in batches]
    coarse = 0
    for plan in plans:
        if plan.measured.body is not None:
            continue
        rows = np.rint(np.asarray(plan.strategy) * 2.0**plan.measured.bits).astype(np.int64)
        divisors = np.broadcast_to(plan.measured.divisors, len(rows))
        exact = np.gcd.reduce(rows, axis=1)
        assert np.all(divisors >= 1)
        assert np.all(rows % divisors[:, None] == 0)
        coarse += int(np.sum((divisors == exact) & (exact > 1000)))
    assert coarse > 20


@pytest.mark.parametrize("epsilon", ["1/2", "2", "7"])
@pytest.mark.parametrize(
    "unit",
    [PrivacyUnit(), PrivacyUnit(max_rows=2), PrivacyUnit(neighbours="substitute")],
    ids=lambda unit: unit.words,
)
def test_every_outcome_of_every_neighbour_pair(epsilon, unit):
    """Exact logarithms of likelihood ratios, outcome by outcome: at most the stated loss, and ε."""
    rng = np.random.default_rng(3)
    coarse = 0
    for _ in range(12):
        weights = rng.integers(1, 9, (3, 1)) * rng.integers(0, 2, (3, 3))
        weights[2] = rng.integers(1, 5, 3)
        cells = CellMap(3, np.array([0, 1, 1, 2]), np.array([1, 2, -3, 1]))
        measured = Measured.of_cells(DenseMap(weights.astype(float)), cells, 0)
        noise = calibrate(measured, PureDP(Fraction(epsilon)), unit)
        assert law_of(measured, noise.privacy, unit) == noise.law
        steps = np.broadcast_to(noise.law.steps, 3)
        coarse += int((steps > 1).sum())
        scales = [_sampled_scale(noise, step) for step in steps.tolist()]
        base = np.array([2, 2, 2, 2])
        y = measured.measure(measured.counts_of(base))
        assert np.all(y % steps == 0)
        for move in _moves(4, unit):
            z = measured.measure(measured.counts_of(base + move))
            # On one lattice, so that outcomes of one are outcomes of the other.
            assert np.all(z % steps == 0)
            ratio = Fraction(0)
            for before, after, step, scale in zip(y, z, steps, scales, strict=True):
                reach = range(min(before, after) // step - 3, max(before, after) // step + 4)
                ratio += max(
                    (abs(k - int(after) // int(step)) - abs(k - int(before) // int(step))) / scale
                    for k in reach
                )
            assert ratio <= noise.loss <= Fraction(epsilon)
    assert epsilon != "7" or coarse > 10


def _sampled_scale(noise, step):
    """The scale that the sampler was given, in units of the step: what its own map tells."""
    sampler = noise.sampler[step] if isinstance(noise, LatticeNoise) else noise.sampler
    least = Fraction(noise.scale) / step
    assert Fraction(sampler.map(10**6)) <= 10**6 / least * (1 + Fraction(1, 2**50))
    return least


def _moves(cells, unit):
    """What the counts of neighbouring tables differ by: at most so many rows out, and in."""
    ways = [np.zeros(cells, dtype=np.int64)]
    for many in range(1, unit.max_rows + 1):
        chosen = itertools.combinations_with_replacement(range(cells), many)
        ways += [np.bincount(rows, minlength=cells) for rows in chosen]
    if unit.neighbours == "add-remove":
        return [sign * way for way in ways for sign in (1, -1)]
    return [one - other for one, other in itertools.product(ways, ways)]


def test_draws_have_the_law_of_each_step():
    """False alarm once in 10⁸ per step; twice the scale is missed far less often."""
    plan = mixed_plan()
    noise = calibrate(plan.measured, plan.privacy(3), PrivacyUnit())
    true = plan.measured.measure(plan.measured.counts_of(np.array([5, 0, 7, 1])))
    draws = np.array([noise.add_to(true) - true for _ in range(1500)])
    steps = np.array(noise.law.steps)
    assert np.all(draws % steps == 0)
    for step in set(noise.law.steps):
        quotients = draws[:, steps == step] // step
        assert fits_discrete_laplace(quotients, noise.scale / step)
        assert not fits_discrete_laplace(quotients, 2.0 * noise.scale / step)


PLANS = {
    "one step": lambda: (lrm.plan(np.eye(3), "noise-on-data"), "2"),
    "several steps": lambda: (mixed_plan(), "3"),
    "tables": lambda: (
        lrm.plan(families.marginals([3, 2], [1, 2]), noise="laplace", effort="quick"),
        "4",
    ),
    "a share of fine rows": lambda: (
        lrm.plan(np.tri(5), noise="laplace", effort="quick"),
        "3",
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_stated_errors_and_intervals_are_those_of_real_draws(name):
    plan, epsilon = PLANS[name]()
    accuracy = plan.accuracy(plan.privacy(epsilon))
    assert isinstance(accuracy.law, LatticeLaw)
    assert accuracy.lower_bound <= accuracy.squared_error * (1 + 1e-9)
    assert accuracy.squared_error < 2 * plan.strategy_error / float(epsilon) ** 2
    noise = calibrate(plan.measured, plan.privacy(epsilon), PrivacyUnit())
    zeros = np.zeros(plan.measurement_count, dtype=np.int64)
    count = 2000
    draws = np.array([noise.add_to(zeros) for _ in range(count)]) * 2.0**-plan.measured.bits
    errors = np.array([plan.reconstruction_map.apply(draw) for draw in draws])
    kurtosis = 5 + math.cosh(max(noise.law.steps) / noise.scale)
    assert mean_square_agrees(errors, accuracy.standard_errors**2, kurtosis=kurtosis)
    for confidence in (0.5, 0.95):
        inside = (np.abs(errors) <= accuracy.half_widths(confidence)).sum(axis=0)
        assert np.all(inside >= binom.ppf(1e-8, count, confidence))
    blocks = [accuracy.errors_of(i, i + 1)[0] for i in range(plan.workload.shape[0])]
    np.testing.assert_allclose(blocks, accuracy.standard_errors, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.2, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9995])
def test_half_widths_hold_by_listing_all_values(scale, confidence):
    rng = np.random.default_rng(int(10 * scale))
    for terms in (1, 2, 3):
        weights, steps = rng.uniform(0.1, 1.0, terms), rng.choice([0.25, 1.0, 2.0], terms)
        half = lattice_half_widths(weights[None], scale, steps, confidence)[0]
        total, probability = np.zeros(1), np.ones(1)
        for weight, step in zip(weights, steps, strict=True):
            k = np.arange(-math.ceil(14 * scale / step) - 1, math.ceil(14 * scale / step) + 2)
            mass = np.exp(-np.abs(k) * step / scale)
            total = np.add.outer(total, weight * step * k).ravel()
            probability = np.multiply.outer(probability, mass / mass.sum()).ravel()
        covered = probability[np.abs(total) <= half].sum()
        assert covered >= confidence
        # Not much wider than that; beyond 0.999 only the wider bound is left.
        room = 0.05 * max(math.sqrt(probability @ total**2), scale * np.linalg.norm(weights) / 3)
        below = probability[np.abs(total) <= half - room].sum()
        assert below < confidence or confidence > 0.999


def test_fine_terms_beside_coarse_ones_count_with_their_scale():
    """Steps of one term may be 2^30 times those of another; both have the same scale."""
    scale, weights = 2.0**30, np.array([[1.0, 1.0], [0.1, 1.0], [1.0, 1e-3]])
    steps = np.array([2.0**30, 1.0])
    half = lattice_half_widths(weights, scale, steps, 0.95) / scale
    rng = np.random.default_rng(4)
    k = rng.geometric(1 - np.exp(-1.0), 400_000) - rng.geometric(1 - np.exp(-1.0), 400_000)
    fine = rng.laplace(size=400_000)
    for row, width in zip(weights, half, strict=True):
        sums = np.abs(row[0] * k + row[1] * fine)
        exact = float(np.quantile(sums, 0.95))
        assert 0.995 * exact <= width <= 1.03 * exact


def test_derived_answers_use_the_steps():
    domain = lrm.Domain([lrm.Categories("g", ["a", "b", "c"])], "t")
    text = "SELECT COUNT(*) FILTER (WHERE g = 'a') / COUNT(*) AS part FROM t"
    plan = lrm.plan(lrm.sql(text, domain), "noise-on-data")
    release = lrm.release(plan, [300, 500, 200], epsilon=3)
    assert isinstance(release.accuracy.law, LatticeLaw)
    fine = replace(release, distribution="discrete Laplace")
    exact, older = (one["part"].to_pandas()["standard_error"][0] for one in (release, fine))
    assert exact / older == pytest.approx(math.sqrt(0.4963), abs=1e-3)


def test_more_records_than_declared_stay_on_the_lattice():
    """Clamped values are rounded to a multiple, which moves neighbours no further apart."""
    noise = calibrate_laplace(7, PureDP(Fraction(8)), np.array([7]))
    limit = 1 << 62
    values = np.array([limit, -limit, limit - 3, 14, -14], dtype=np.int64)
    noisy = noise.add_to(values)
    assert np.all(noisy % 7 == 0)
    assert np.all(np.abs(noisy) <= limit)
    assert abs(int(noisy[3]) - 14) < 70


def test_numbers_between_knots_have_noise_on_all_integers():
    domain = lrm.Domain([lrm.Numbers("income", [0, 50, 100])], "t")
    plan = lrm.plan(
        lrm.sql("SELECT SUM(income) AS s, COUNT(*) AS n FROM t", domain), "noise-on-data"
    )
    assert plan.record_bits > 0
    assert not isinstance(plan.accuracy(plan.privacy(4)).law, LatticeLaw)


# --- files ------------------------------------------------------------------------------------


@pytest.fixture
def release():
    return lrm.release(mixed_plan(), [120, 80, 45, 3], epsilon=3)


def test_a_release_on_lattices_is_read_back(release, tmp_path):
    release.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    assert again.distribution == "discrete Laplace on lattices"
    np.testing.assert_array_equal(again.standard_errors, release.standard_errors)
    np.testing.assert_array_equal(again.intervals(), release.intervals())


def test_older_releases_have_the_errors_of_noise_on_all_integers(release):
    older = replace(release, distribution="discrete Laplace")
    assert not isinstance(older.accuracy.law, LatticeLaw)
    expected = math.sqrt(2.0) / 3 * np.linalg.norm(release.plan.reconstruction, axis=1)
    np.testing.assert_allclose(older.standard_errors, expected * release.plan.sensitivity)
    assert np.all(older.standard_errors > release.standard_errors)


def test_a_lattice_that_measurements_are_not_on_is_refused(release, tmp_path):
    values = release.noisy_measurements + np.array([1, 0, 0, 0, 0])
    with pytest.raises(BudgetError, match="multiples"):
        replace(release, noisy_measurements=values)
    older = replace(release, noisy_measurements=values, distribution="discrete Laplace")
    older.save(tmp_path / "older.lrm")

    def forge(facts, arrays):
        facts["noise"]["distribution"] = "discrete Laplace on lattices"

    with pytest.raises(FileFormatError):
        lrm.load_release(resealed(tmp_path / "older.lrm", forge))


def test_fine_noise_cannot_pretend_to_be_on_lattices():
    plan = lrm.plan(np.eye(3), "noise-on-data")
    made = lrm.release(plan, [1, 2, 3], epsilon="0.1")
    assert made.distribution == "discrete Laplace"
    with pytest.raises(BudgetError):
        replace(made, distribution="discrete Laplace on lattices")
