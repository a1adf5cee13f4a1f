"""Gaussian noise: certified strategies, and noise that is what it claims to be."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import lrm
from batches import few_slow_examples, matrices
from lrm.errors import BudgetError, PrivacyWarning
from lrm.planning.plan.proposals import search_record
from lrm.planning.strategies import mechanism_names
from lrm.privacy.budget import ZCDP, ApproxDP, epsilon_for, zcdp_of
from lrm.privacy.mechanism import calibrate
from lrm.privacy.noise import calibrate_gaussian
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.workload import families
from noise_statistics import (
    epsilon_lower_bound,
    fits_discrete_gaussian,
    mean_square_agrees,
    noisy_runs,
)


@few_slow_examples
@given(matrices)
def test_what_every_mechanism_must_satisfy(matrix):
    """W = B·L with the sensitivity of L, and `best` is optimal to its certificate."""
    best = lrm.plan(matrix, noise="gaussian")
    assert best.at_most_above_best <= 1.0011
    for mechanism in mechanism_names(products=False):
        plan = best if mechanism == "best" else lrm.plan(matrix, mechanism, noise="gaussian")
        assert_gives_the_workload(plan, matrix)
        assert best.strategy_error <= 1.0011 * plan.strategy_error + 1e-12, mechanism


def assert_gives_the_workload(plan, matrix):
    L, B = plan.strategy, plan.reconstruction
    assert np.abs(B @ L - matrix).max() <= 1e-9 * max(np.abs(matrix).max(), 1e-300)
    assert plan.sensitivity == pytest.approx(np.sqrt((L**2).sum(axis=0).max()), rel=1e-9)
    error = (np.asarray(B) ** 2).sum() * plan.sensitivity**2 / (2 * 0.1)
    assert plan.expected_squared_error(rho=0.1) == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(
    ("workload", "least", "most"),
    [(families.all_ranges(64), 11_024.3, 11_024.5), (families.prefix(64), 282.2, 282.3)],
)
def test_known_optima(workload, least, most):
    assert least <= lrm.plan(workload, noise="gaussian", effort="thorough").strategy_error <= most


def test_squared_sensitivity_is_an_exact_integer():
    measured = lrm.plan(families.wrange(6, 9, seed=1), noise="gaussian").measured
    moves = [
        sum(int(value) ** 2 for value in measured.measure(measured.counts_of(one)))
        for one in np.eye(9, dtype=np.int64)
    ]
    assert max(moves) == measured.squared_l2_sensitivity


def test_loss_is_what_the_noise_says_and_at_most_what_was_asked():
    plan = lrm.plan(families.prefix(8), noise="gaussian")
    release = lrm.release(plan, np.arange(8), rho="0.05")
    assert release.loss <= Fraction("0.05")
    assert float(release.loss) == pytest.approx(0.05, rel=1e-6)
    approximate = lrm.release(plan, np.arange(8), epsilon=1, delta="1e-6")
    allowed = zcdp_of(ApproxDP(Fraction(1), Fraction(1, 10**6))).rho
    assert approximate.loss <= allowed
    assert float(approximate.loss) == pytest.approx(float(allowed), rel=1e-6)


@pytest.mark.slow
def test_noise_is_discrete_gaussian_of_its_scale():
    """Goodness of fit of 40,000 draws; false alarm once in 10⁸, and fewer of the other kind.

    With a scale of 1.1 the p-value is about 1e-102, and its logarithm varies by 9.
    """
    noise = calibrate_gaussian(49, ZCDP(Fraction(1, 8)))
    draws = noise.add_to(np.zeros(40_000, dtype=np.int64))
    assert fits_discrete_gaussian(draws, noise.scale)
    assert not fits_discrete_gaussian(draws, noise.scale * 1.1)


@pytest.mark.slow
def test_measured_error_agrees_with_the_promise():
    plan = lrm.plan(families.wrange(10, 16, seed=4), noise="gaussian")
    noise = calibrate(plan.measured, plan.privacy(rho="0.2"), PrivacyUnit())
    counts = np.arange(16) * 7
    truth = plan.workload.queries.apply(counts.astype(float))
    runs = noisy_runs(plan, noise, counts, 3000) * 2.0**-plan.measured.bits
    answers = np.array([plan.reconstruction_map.apply(run) for run in runs])
    expected = plan.standard_errors(rho="0.2") ** 2
    assert mean_square_agrees(answers - truth, expected, kurtosis=3.0)


@pytest.mark.slow
@pytest.mark.parametrize(("real", "violated"), [("0.5", False), ("8", True)])
def test_an_audit_finds_no_violation_and_would_find_one(real, violated):
    """ρ = ½ implies (ε, 1e-2)-DP; an event's loss above that ε is a violation.

    The audit bounds ε from below for δ = 0 on events of probability far above δ, so the
    claim is loosened by what δ can move such an event.
    """
    plan = lrm.plan(np.eye(1), "noise-on-data", noise="gaussian")
    noise = calibrate(plan.measured, plan.privacy(rho=real), PrivacyUnit())
    runs = [noisy_runs(plan, noise, [x], 20_000)[:, 0] for x in (5, 6)]
    claimed = float(epsilon_for(Fraction(1, 2), Fraction(1, 1000))) + math.log(2)
    assert (epsilon_lower_bound(*runs) > claimed) == violated


def test_laplace_amounts_are_refused_and_the_other_way_round():
    gaussian, laplace = lrm.plan(np.eye(2), noise="gaussian"), lrm.plan(np.eye(2))
    for amounts in ({"epsilon": 1}, {"delta": 1e-6}, {"rho": 1, "epsilon": 1}, {}, {"rho": 0}):
        with pytest.raises(BudgetError):
            gaussian.expected_squared_error(**amounts)
    for amounts in ({"rho": 1}, {"epsilon": 1, "delta": 1e-6}):
        with pytest.raises(BudgetError):
            laplace.expected_squared_error(**amounts)


@pytest.mark.parametrize("cells", [1, 2, 40])
def test_hostile_workloads_reach_the_certificate(cells):
    """Twelve orders of magnitude, duplicate and zero columns: no NaN, the same certificate."""
    rng = np.random.default_rng(cells)
    rotation = np.linalg.qr(rng.standard_normal((cells, cells)))[0]
    matrix = (10.0 ** np.linspace(0, -12, cells))[:, None] * rotation
    matrix = np.hstack([matrix, matrix[:, :1], np.zeros((cells, 1))])
    from lrm.planning.solvers.gaussian import optimise_gaussian

    found = optimise_gaussian(matrix)
    assert np.all(np.isfinite(found.L))
    assert found.upper <= 1.0011 * found.lower


def conditions_on_sums(names, statements=8):
    """``a + b <= c`` for pairs of attributes of five values."""
    domain = lrm.Domain([lrm.Integers(name, 0, 4) for name in names], table="t")
    texts = [
        f"SELECT COUNT(*) AS {a}{b}{c} FROM t WHERE {a} + {b} <= {c}"
        for a, b in itertools.combinations(names, 2)
        for c in range(statements)
    ]
    return lrm.sql(";".join(texts), domain)


def test_conditions_on_two_attributes_together_are_planned_over_a_list_of_cells():
    """``a + b <= c`` is no product, and residuals of subsets are above the optimum."""
    batch = conditions_on_sums("abcd")
    plan = lrm.plan(batch, noise="gaussian", objective="total", effort="quick")
    residuals = [c for c in search_record(plan).candidates if c.name == "residuals"]
    assert plan.strategy_error < 0.95 * residuals[0].error
    assert plan.at_most_above_best < 1.01


@pytest.mark.parametrize("objective", ["total", pytest.param("balanced", marks=pytest.mark.long)])
def test_conditions_on_two_attributes_of_many_have_rows_of_their_own(objective):
    """Cells are too many to be listed; each subset of attributes is measured by its own optimum.

    With one Gram per attribute the root mean squared error of the first objective is 5.91.
    """
    names = "abcdefghi"
    batch = conditions_on_sums(names, 3)
    plan = lrm.plan(batch, noise="gaussian", objective=objective)
    (group,) = plan.measured.groups
    assert plan.measured.cells is None
    assert {len(group.sets[b]) for b in group.mixes} >= {2}
    assert objective != "total" or math.sqrt(plan.strategy_error / batch.shape[0]) < 4.7
    table = {name: np.random.default_rng(k).integers(0, 5, 200) for k, name in enumerate(names)}
    with pytest.warns(PrivacyWarning):
        release = lrm.release(plan, pd.DataFrame(table), rho="1e8", ledger=None)
    truth = [
        int(np.sum(table[a] + table[b] <= c))
        for a, b in itertools.combinations(names, 2)
        for c in range(3)
    ]
    np.testing.assert_allclose(release.answers, truth, atol=0.1)


@pytest.mark.parametrize(
    "W",
    [
        np.tril(np.ones((32, 32))),
        np.random.default_rng(1).standard_normal((5, 12)),
        np.c_[np.zeros((3, 2)), np.eye(3), np.eye(3)],
        np.diag(10.0 ** np.arange(-6, 7)),
    ],
    ids=["prefix", "low rank", "repeated", "scaled"],
)
def test_the_matrix_mechanism_measures_the_symmetric_root_of_the_same_program(W):
    best = lrm.plan(W, noise="gaussian")
    matrix = lrm.plan(W, "matrix", noise="gaussian")
    assert matrix.strategy_error <= 1.002 * best.strategy_error
    root = np.asarray(matrix.measured.real_map.dense())
    assert np.allclose(root, root.T, atol=1e-6)


def test_the_matrix_mechanism_takes_a_batch_of_zeros():
    assert lrm.plan(np.zeros((2, 3)), "matrix").strategy_error == 0
