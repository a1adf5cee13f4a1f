"""No statement of any batch is worse than under an even split of the budget: random batches.

Conditions with OR, NOT and CASE, on two attributes together, sums, rates and averages, numbers by
knots, every noise and unit. Other seeds and up to 150 statements are in the long tests.
"""

import math
import re

import numpy as np
import pytest

import lrm
from random_batches import random_batch

ABOVE = 1.001
"""Ratio to an even split that rounding to integers may leave."""

FEW, MORE, MANY = (2, 3, 4, 6), (9, 15), (25, 60, 150)
"""Numbers of statements."""


def check(batch):
    plan = lrm.plan(batch.text, domain=batch.domain, noise=batch.noise, effort="quick")
    assert plan.statement_ratios is not None
    assert len(plan.statement_ratios) == len(batch.statements)
    assert max(plan.statement_ratios) <= ABOVE
    return plan


@pytest.mark.parametrize("seed", range(1004, 1016))
def test_no_statement_is_worse_than_an_even_split(seed):
    check(random_batch(seed, FEW))


def test_rounding_beside_numbers_by_knots_leaves_no_statement_worse():
    """One group of all terms has few bits left: rounded, it had 1.32 times the even split."""
    check(random_batch(700012, MORE))


@pytest.mark.parametrize("seed", range(1200, 1204))
def test_importances_are_not_served_worse_than_by_an_even_split(seed):
    """The sum of squared ratios by their importances, each 1 under an even split, is smaller."""
    batch = random_batch(seed, FEW, importances=True)
    plan = lrm.plan(batch.text, domain=batch.domain, noise=batch.noise, effort="quick")
    importance = [int(re.match(r"-- importance: (\d)", text)[1]) for text in batch.statements]
    squares = np.array(plan.statement_ratios) ** 2
    assert np.dot(importance, squares) <= ABOVE**2 * sum(importance)


@pytest.mark.parametrize("seed", range(1300, 1312))
def test_disjoint_counts_alone_have_the_error_of_one_noisy_count(seed):
    batch = random_batch(seed, (1,))
    statement = re.sub(r"\S+\((?:(?! FROM ).)* AS n0", "COUNT(*) AS n0", batch.statements[0])
    plan = lrm.plan(statement, domain=batch.domain, noise=batch.noise, effort="quick")
    gaussian = batch.noise == "gaussian"
    amount = {"rho": "0.5"} if gaussian else {"epsilon": 1}
    error = plan.accuracy(plan.privacy(**amount)).nominal.root_mean_squared_error
    unit = batch.domain.unit.factor
    assert error <= ABOVE * unit * (1.0 if gaussian else math.sqrt(2))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2150))
def test_more_batches(seed):
    check(random_batch(seed, (*FEW, *MORE)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2200, 2250))
def test_batches_of_many_statements(seed):
    check(random_batch(seed, MANY))
