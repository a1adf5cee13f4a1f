"""Closed forms on products agree with dense computation, on random small products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_measurements import measure_exactly
from lrm.errors import UnsupportedQuery
from lrm.planning.design.products.answers import (
    Estimate,
    term_variances,
    variances,
)
from lrm.planning.design.products.axes import Axis, on_axes
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.folding import unfold
from lrm.planning.design.products.information import FixedBases, SetWeights
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.planning.design.products.strategy import Group, Marginals, marginals_error
from lrm.planning.design.products.subsets import SubsetIndex, contained, masks_of, members_of
from lrm.planning.solvers.products.gaussian import (
    Gram,
    residual_demands,
    residual_error,
    reweighed_residuals,
)
from lrm.queries.maps.kron import kron
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import sum_batch
from lrm.queries.maps.products.values import merge_values
from lrm.queries.maps.words import make_factor, word_factor

WORDS = ["total", "identity", "prefix", "all-ranges"]
seeds = st.integers(0, 10_000)


def random_factor(rng, n, rows=None):
    if rows is None and rng.random() < 0.6:
        return str(rng.choice(WORDS))
    return rng.integers(-1, 3, (rows or rng.integers(1, 4), n)).astype(float)


def random_batch(seed, d=3):
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(2, 5, d)]
    terms = []
    for _ in range(rng.integers(1, 5)):
        if rng.random() < 0.3:  # OR: two conjunctions of single queries, minus both
            a, b = (random_factor(rng, sizes[i], 1) for i in range(2))
            rest = ["total"] * (d - 2)
            one = np.ones((1, sizes[0])), np.ones((1, sizes[1]))
            terms.append([(1, [a, one[1], *rest]), (1, [one[0], b, *rest]), (-1, [a, b, *rest])])
        else:
            terms.append([(float(rng.uniform(0.5, 2)), [random_factor(rng, n) for n in sizes])])
    return sum_batch(sizes, terms, rng.uniform(0.5, 2, len(terms)))


def random_strategy(seed, sizes, *, folded=False):
    """Random bases and sets, one of which holds all attributes, so that all is answered."""
    rng = np.random.default_rng(seed + 1)
    d = len(sizes)
    bases = tuple(
        MarginalBasis.beside(rng.random((2, n)))
        if rng.random() < 0.7 and not (folded and n == 2)
        else MarginalBasis.identity(n)
        for n in sizes
    )
    inside = np.vstack([np.ones(d, bool), rng.random((3, d)) < 0.5])
    inside = np.unique(inside, axis=0)
    folds = np.zeros(len(inside), dtype=np.int64)
    if folded:  # the set of all attributes both ways, or whole where there is nothing to fold
        whole = inside.all(axis=1)
        inside = np.vstack([inside, inside[whole]])
        folds = np.append(np.where(whole, 1, rng.integers(-1, 2, len(whole))), -1)
        folds[~inside[:, np.array(sizes) == 2].any(axis=1)] = 0
    weights = rng.uniform(0.1, 1, len(inside))
    return Marginals(masks_of(inside), weights / weights.sum(), bases, folds)


@pytest.mark.parametrize("folded", [False, True])
@settings(max_examples=40, deadline=None)
@given(seeds)
def test_error_is_that_of_the_dense_least_squares_reconstruction(folded, seed):
    batch = random_batch(seed)
    strategy = random_strategy(seed, batch.sizes, folded=folded)
    L = strategy.dense()
    np.testing.assert_allclose(np.abs(L).sum(axis=0), 1.0)
    dense = float(np.sum((batch.dense() @ np.linalg.pinv(L)) ** 2))
    error = marginals_error(Quadratic(batch, folded=folded), strategy)
    assert error == pytest.approx(dense, rel=1e-8)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_gradients_match_differences(seed):
    batch = random_batch(seed)
    strategy = random_strategy(seed, batch.sizes)
    quadratic, m = Quadratic(batch), len(strategy.weights)
    if not FixedBases.at(quadratic).v.sum() > 0:
        return
    shapes = [basis.extra_rows.shape for basis in strategy.bases]

    def evaluate(x):
        parts = np.split(x[m:], np.cumsum([a * b for a, b in shapes])[:-1])
        bases = [MarginalBasis.beside(p.reshape(s)) for p, s in zip(parts, shapes, strict=True)]
        problem = SetWeights(FixedBases.at(quadratic, bases), strategy.sets)
        value, by_logs, by_rows = problem.basis_gradients(np.exp(x[:m]))
        return value, np.concatenate([by_logs, *[g.ravel() for g in by_rows]])

    x = np.concatenate([np.log(strategy.weights), *[b.extra_rows.ravel() for b in strategy.bases]])
    direction = np.random.default_rng(seed).standard_normal(len(x))
    step = 1e-6 * direction
    slope = (evaluate(x + step)[0] - evaluate(x - step)[0]) / 2e-6
    assert evaluate(x)[1] @ direction == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("folded", [False, True])
@settings(max_examples=25, deadline=None)
@given(seeds)
def test_answers_and_variances_are_those_of_least_squares(folded, seed):
    batch = random_batch(seed)
    strategy = random_strategy(seed, batch.sizes, folded=folded)
    rng = np.random.default_rng(seed)
    axes = tuple(Axis((i,), (np.arange(n),)) for i, n in enumerate(batch.sizes))
    group = Group(np.arange(batch.terms), axes, strategy, 0.0)
    table = rng.integers(0, 9, batch.sizes).astype(float)
    by_subset, folds = group.marginals.information(), strategy.folds.tolist()
    exact = measure_exactly(group, table)
    noisy, scaled = [], []
    for b, (y, weight, sign) in enumerate(zip(exact, strategy.weights, folds, strict=True)):
        half = np.take(y, [0], by_subset.mirrored(b)[0]) if sign else y
        half = half + rng.standard_normal(half.shape) / weight
        noisy.append(unfold(half, by_subset.mirrored(b), sign) if sign else half)
        scaled.append(weight * half.ravel())
    scaled = np.concatenate(scaled)
    inverse = np.linalg.pinv(strategy.dense())
    estimate = Estimate(by_subset, noisy)
    row = 0
    W = batch.dense()
    for term in range(batch.terms):
        answers = estimate.term(batch.products(term))
        rows = W[row : row + len(answers)] / batch.weights[term]
        row += len(answers)
        np.testing.assert_allclose(answers, rows @ inverse @ scaled, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(
            term_variances(group.marginals.information(), batch.products(term)),
            np.sum((rows @ inverse) ** 2, axis=1),
            rtol=1e-7,
            atol=1e-9,
        )


def test_a_basis_of_little_but_two_rows_answers_them_exactly():
    """Where averages alone are asked for, single values hardly count, and Woodbury lost 1e-8."""
    n = 64
    rows = np.vstack([np.ones(n), np.arange(n)])
    basis = MarginalBasis.beside(1023.0 * rows / rows.sum(axis=0))
    truth = np.random.default_rng(1).uniform(0, 1000, (n, 1))
    answers = rows @ basis.inverse_times(basis.transpose_times(basis.times(truth)))
    np.testing.assert_allclose(answers, rows @ truth, rtol=2e-9)


def test_what_no_measured_set_contains_is_refused():
    axes = tuple(Axis((i,), (np.arange(2),)) for i in range(2))
    bases = (MarginalBasis.identity(2), MarginalBasis.identity(2))
    one_way = Marginals(masks_of(np.eye(2, dtype=bool)), np.array([0.5, 0.5]), bases)
    group = Group(np.arange(1), axes, one_way, 0.0)
    both = [make_factor("identity", 2), make_factor("identity", 2)]
    assert np.isfinite(variances(group.marginals.information(), {0: both[0]})).all()
    with pytest.raises(UnsupportedQuery):
        variances(group.marginals.information(), dict(enumerate(both)))
    estimate = Estimate(group.marginals.information(), [np.zeros(2), np.zeros(2)])
    with pytest.raises(UnsupportedQuery):
        estimate.product(dict(enumerate(both)))


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_merged_values_have_the_same_answers(seed):
    """Merging is exact: W·x is the same, and the merged table is a table of the same records."""
    batch = random_batch(seed)
    reduced = merge_values(batch)
    table = np.random.default_rng(seed).integers(0, 9, batch.sizes).astype(float)
    merged = table
    for i, (marks, n) in enumerate(zip(reduced.labels, reduced.batch.sizes, strict=True)):
        moved = np.moveaxis(merged, i, 0)
        kept = np.zeros((n, *moved.shape[1:]))
        np.add.at(kept, marks[marks >= 0], moved[marks >= 0])
        merged = np.moveaxis(kept, 0, i)
    np.testing.assert_allclose(
        reduced.batch.dense() @ merged.ravel(), batch.dense() @ table.ravel(), atol=1e-9
    )


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_fused_attributes_ask_the_same(seed):
    batch = random_batch(seed)
    kept = [np.arange(size) for size in batch.sizes]
    axes = [Axis((0, 1), (kept[0], kept[1])), Axis((2,), (kept[2],))]
    np.testing.assert_allclose(on_axes(batch, axes).dense(), batch.dense())


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_gaussian_error_is_that_of_the_dense_strategy(seed):
    batch = random_batch(seed)
    rng = np.random.default_rng(seed)
    bases = []
    for n in batch.sizes:
        columns = rng.standard_normal((n + 1, n))
        columns /= np.linalg.norm(columns, axis=0)
        bases.append(Gram(columns).basis() if rng.random() < 0.7 else ResidualBasis(n))
    quadratic = Quadratic(batch)
    error = residual_error(quadratic, bases)
    unweighted = Marginals(quadratic.index.masks[:0], np.zeros(0), tuple(bases))
    v = residual_demands(quadratic, unweighted)
    v[v <= 1e-12 * v.max(initial=0)] = 0.0
    if not v.any():
        return
    found = reweighed_residuals(quadratic, Group(np.arange(1), (), unweighted, 0.0), v)
    assert found.error == pytest.approx(error, rel=1e-6)
    L = found.marginals.dense()
    np.testing.assert_allclose(np.sum(L**2, axis=0), 1.0)
    dense = float(np.sum((batch.dense() @ np.linalg.pinv(L, rcond=1e-10)) ** 2))
    assert error == pytest.approx(dense, rel=1e-6)


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_words_mean_their_matrices(kind, n):
    factor = word_factor(kind, n)
    W = factor.dense()
    rng = np.random.default_rng(n)
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((len(W), 2))
    assert len(factor) == len(W)
    np.testing.assert_allclose(factor.apply(X), W @ X)
    np.testing.assert_allclose(factor.apply_transpose(Y), W.T @ Y)
    np.testing.assert_allclose(factor.gram(), W.T @ W)
    np.testing.assert_allclose(factor.column_squared_sums(), np.sum(W**2, axis=0))
    np.testing.assert_allclose(factor.gram_times(X), W.T @ W @ X)


def test_fused_factors_mean_their_matrices():
    rows = DenseMap(np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 1.0]]))
    fused, other = (kron([rows, word_factor(word, 4)]) for word in ("prefix", "identity"))
    W, V = fused.dense(), other.dense()
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 2)), rng.standard_normal((8, 2))
    assert len(fused) == 8
    np.testing.assert_allclose(W, np.kron(rows.dense(), np.tri(4)))
    np.testing.assert_allclose(fused.apply(X), W @ X)
    np.testing.assert_allclose(fused.apply(X[:, :0]), W @ X[:, :0])
    np.testing.assert_allclose(fused.apply_transpose(Y), W.T @ Y)
    np.testing.assert_allclose(fused.gram(), W.T @ W)
    np.testing.assert_allclose(fused.column_squared_sums(), np.sum(W**2, axis=0))
    np.testing.assert_allclose(fused.gram_times(X), W.T @ W @ X)
    np.testing.assert_allclose(fused.entrywise_apply(other, X), (W * V) @ X)
    np.testing.assert_allclose(fused.rows(3, 6), W[3:6])
    labels = fused.column_labels
    same = labels[:, None] == labels
    np.testing.assert_array_equal(same, (W.T[:, None] == W.T).all(axis=2))


@pytest.mark.parametrize("d", [3, 64, 100])
def test_subsets_of_any_number_of_attributes_are_found(d):
    rng = np.random.default_rng(d)
    inside = rng.random((200, d)) < 2 / d
    masks = masks_of(inside)
    np.testing.assert_array_equal(members_of(masks, d), inside)
    index = SubsetIndex(masks, d)
    np.testing.assert_array_equal(index.masks[index.find(masks)], masks)
    others = masks_of(rng.random((50, d)) < 0.5)
    known = {row.tobytes() for row in masks}
    found = index.find(others)
    assert [n >= 0 for n in found] == [row.tobytes() in known for row in others]
    dense = contained(index.masks, others)
    enumerated = index._enumerated(others[:5]).toarray() if d <= 3 else dense[:, :5]
    np.testing.assert_array_equal(enumerated, dense[:, :5])
