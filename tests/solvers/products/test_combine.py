"""Groups of terms, and generalised least squares across two of them, against dense computation."""

from __future__ import annotations

import numpy as np
import pytest

from exact_measurements import measure_exactly
from lrm.planning.design.products.answers import Estimate
from lrm.planning.design.products.axes import Axis, axes_of
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.combine import Combination
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Group, Marginals, ProductStrategy, marginals_error
from lrm.planning.design.products.subsets import masks_of
from lrm.queries.maps.products.batch import product_batch
from lrm.queries.maps.products.values import merge_values

PAIRS = np.kron(np.eye(3), np.ones((1, 2)))


def batch(shared):
    terms = [
        [np.tri(6), "identity"],
        ["identity", "total"],
        [PAIRS, np.vstack([np.eye(4), np.ones(4)])],
        ["total", [[1.0, 1, 0, 0], [0, 0, 1, 1]]],
        ["total", "identity"],
    ]
    sizes = [6, 4]
    if shared:
        sizes.append(3)
        plus = np.vstack([np.eye(3), np.ones((1, 3))])
        terms = [[*term, plus] for term in terms]
    return product_batch(sizes, terms, [1, 2, 1, 3, 1])


def group(whole, terms, sets, seed, shared, fused=False):
    rng = np.random.default_rng(seed)
    reduced = merge_values(whole.take(terms))
    axes = axes_of(reduced.labels)
    if fused:
        axes = (Axis((0, 1), tuple(reduced.labels[:2])), *axes[2:])
    bases = [MarginalBasis.beside(rng.random((2, axis.size))) for axis in axes]
    if shared:
        bases[-1] = MarginalBasis.identity(3)
    inside = np.array(sets, dtype=bool)
    weights = rng.uniform(0.5, 1, len(inside))
    marginals = Marginals(masks_of(inside), weights / weights.sum(), tuple(bases))
    found = Group(np.array(terms), axes, marginals, 0.0)
    error = marginals_error(Quadratic(found.reduced(whole)), marginals)
    return Group(np.array(terms), axes, marginals, error)


def strategies(shared):
    whole = batch(shared)
    last = [[1], [1], [0], [0]] if shared else [[], [], [], []]
    sets = [[1, 1, *last[0]], [1, 0, *last[1]], [0, 1, *last[2]]]
    first = group(whole, [0, 1], sets, 1, shared)
    second = group(whole, [2, 3, 4], [[1, 1, *last[0]], [0, 1, *last[2]]], 2, shared)
    third = group(
        whole, [2, 3, 4], [[1, *last[0]], [1, *last[2]]] if shared else [[1]], 3, shared, fused=True
    )
    yield whole, ProductStrategy.combine([first, second])
    yield whole, ProductStrategy.combine([first, third])


@pytest.mark.parametrize("shared", [False, True])
def test_combined_error_is_that_of_least_squares_on_all_measurements(shared):
    for whole, strategy in strategies(shared):
        combination = Combination(whole, strategy)
        assert combination.shared == ((2,) if shared else ())
        shares = np.array([g.weight for g in strategy.groups])
        L = strategy.dense(whole.sizes)
        np.testing.assert_allclose(np.abs(L).sum(axis=0), 1.0)
        dense = float(np.sum((whole.dense() @ np.linalg.pinv(L, rcond=1e-11)) ** 2))
        assert combination.error(shares) == pytest.approx(dense, rel=1e-7)
        best = combination.best()
        assert best.error <= combination.error(shares) + 1e-9
        assert best.error < strategy.error


@pytest.mark.parametrize("shared", [False, True])
def test_combined_answers_are_the_least_squares_estimate(shared):
    for whole, strategy in strategies(shared):
        combination = Combination(whole, strategy)
        rng = np.random.default_rng(5)
        table = rng.integers(0, 9, whole.sizes).astype(float)
        estimates, scaled = [], []
        for one in strategy.groups:
            merged = table
            for axis in one.axes:
                for i, marks, size in zip(
                    axis.attributes, axis.labels, axis.merged_sizes, strict=True
                ):
                    moved = np.moveaxis(merged, i, 0)
                    kept = np.zeros((size, *moved.shape[1:]))
                    np.add.at(kept, marks, moved)
                    merged = np.moveaxis(kept, 0, i)
            merged = merged.reshape([axis.size for axis in one.axes])
            noisy = []
            for y, w in zip(measure_exactly(one, merged), one.marginals.weights, strict=True):
                noisy.append(y + rng.standard_normal(y.shape) / (w * one.weight))
                scaled.append((noisy[-1] * w * one.weight).ravel())
            estimates.append(Estimate(one.marginals.information(), noisy))
        L = strategy.dense(whole.sizes)
        inverse = np.linalg.pinv(L, rcond=1e-11)
        x = inverse @ np.concatenate(scaled)
        corrections = combination.corrected((estimates[0], estimates[1]))
        W, row = whole.dense(), 0
        answers, variances = {}, {}
        for g, one in enumerate(strategy.groups):
            for term in one.terms:
                answers[int(term)] = combination.term(g, estimates[g], corrections[g], int(term))
                variances[int(term)] = combination.term_variances(g, int(term))
        for term in range(whole.terms):
            rows = W[row : row + len(answers[term])] / whole.weights[term]
            row += len(rows)
            np.testing.assert_allclose(answers[term], rows @ x, rtol=1e-6, atol=1e-6)
            dense = np.sum((rows @ inverse) ** 2, axis=1)
            np.testing.assert_allclose(variances[term], dense, rtol=1e-6, atol=1e-8)
