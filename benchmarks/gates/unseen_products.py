"""Batches over products that nobody tuned for, and what the baselines would reach on them.

Kinds, numbers of attributes, sizes and factors are drawn from a seed, so that another seed is
another trial. The errors of the baselines (``‖B‖²·Δ²``) are computed here from their definitions,
in closed form: a single product has the error ``Π Δ_i² · Σ_j c_j² Π_i tr(W_ij·H_i·W_ijᵀ)``.
"""

from __future__ import annotations

import itertools
import math
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import lrm
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.quadratic import FactorPairs, Quadratic
from lrm.planning.solvers.extra_rows import optimise_extra_rows
from lrm.planning.solvers.products.gaussian import residual_error
from lrm.planning.strategies.baselines import haar_tree
from lrm.planning.strategies.products import tree_basis
from lrm.queries.maps.linear import LinearMap
from lrm.queries.maps.products.batch import ProductBatch, product_batch, sum_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.values import merge_values

__all__ = ["KINDS", "baseline_errors", "draw", "run", "workload_of"]

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, bool], ProductBatch]

ROUNDING = 1.001
"""What rounding to integers may cost; nothing may be further above a baseline."""

MOST_VALUES = 256
"""Values of an attribute up to which its own best basis is searched for, as a baseline."""

FLAT_CELLS = 200
"""Merged cells up to which the paper's mechanism is run on the list of cells."""


def _sizes(rng: np.random.Generator, small: bool, choices: Sequence[int]) -> list[int]:
    d = int(rng.integers(2, 5 if small else 9))
    sizes = [int(rng.choice(choices)) for _ in range(d)]
    while small and math.prod(sizes) > 400:
        sizes[int(np.argmax(sizes))] //= 2
    return sizes


def _some_sets(rng: np.random.Generator, d: int, most: int = 12) -> list[tuple[int, ...]]:
    """Some sets of one to four attributes."""
    count = int(rng.integers(2, most))
    found = {
        tuple(sorted(rng.choice(d, size=rng.integers(1, min(4, d) + 1), replace=False).tolist()))
        for _ in range(count)
    }
    return sorted(found)


def _grouping(rng: np.random.Generator, n: int) -> Floats:
    """Consecutive groups of values, or ranges that overlap."""
    if n < 3 or rng.random() < 0.2:
        return np.eye(n)
    if rng.random() < 0.5:
        cuts = np.sort(rng.choice(np.arange(1, n), size=rng.integers(1, min(n, 8)), replace=False))
        labels = np.searchsorted(cuts, np.arange(n), side="right")
        return (labels == np.arange(labels.max() + 1)[:, None]).astype(float)
    ends = np.sort(rng.integers(n, size=(int(rng.integers(1, 6)), 2)), axis=1)
    values = np.arange(n)
    return ((values >= ends[:, :1]) & (values <= ends[:, 1:])).astype(float)


def _tables(rng: np.random.Generator, small: bool) -> ProductBatch:
    sizes = _sizes(rng, small, [2, 3, 4, 6, 10, 20, 50])
    terms = [
        ["identity" if i in one else "total" for i in range(len(sizes))]
        for one in _some_sets(rng, len(sizes))
    ]
    return product_batch(sizes, terms)


def _prefixes_and_ranges(rng: np.random.Generator, small: bool) -> ProductBatch:
    sizes = _sizes(rng, small, [2, 5, 8, 16, 40, 64])
    words = [str(rng.choice(["prefix", "all-ranges", "identity"])) for _ in sizes]
    terms = [
        [words[i] if i in one else "total" for i in range(len(sizes))]
        for one in _some_sets(rng, len(sizes), 8)
    ]
    return product_batch(sizes, terms)


def _any_factors(rng: np.random.Generator, small: bool) -> ProductBatch:
    sizes = _sizes(rng, small, [2, 5, 8, 16, 30])
    terms = [
        [
            str(rng.choice(["prefix", "all-ranges", "identity"])) if i in one else "total"
            for i in range(len(sizes))
        ]
        for one in _some_sets(rng, len(sizes), 8)
    ]
    return product_batch(sizes, terms)


def _groupings(rng: np.random.Generator, small: bool) -> ProductBatch:
    sizes = _sizes(rng, small, [2, 6, 12, 30, 100])
    levels = [[_grouping(rng, n) for _ in range(3)] + [np.eye(n)] for n in sizes]
    terms = [
        [levels[i][int(rng.integers(4))] if i in one else "total" for i in range(len(sizes))]
        for one in _some_sets(rng, len(sizes), 16)
    ]
    return product_batch(sizes, terms)


def _importances(rng: np.random.Generator, small: bool) -> ProductBatch:
    batch = _groupings(rng, small) if rng.random() < 0.5 else _tables(rng, small)
    weights = np.round(10 ** rng.uniform(-1.5, 1.5, batch.terms), 3)
    return replace(batch, weights=weights)


def _binary(rng: np.random.Generator, small: bool) -> ProductBatch:
    d = int(rng.integers(3, 8) if small else rng.integers(8, 31))
    order = int(rng.integers(1, 3 if d > 16 else 4))
    sets = list(itertools.combinations(range(d), order))
    if rng.random() < 0.5:
        sets += list(itertools.combinations(range(d), order - 1))
    terms = [["identity" if i in one else "total" for i in range(d)] for one in sets]
    return product_batch([2] * d, terms)


def _some_binary(rng: np.random.Generator, small: bool) -> ProductBatch:
    d = int(rng.integers(3, 8) if small else rng.integers(8, 25))
    kinds = [[[1.0, 0.0]], "identity", [[1.0, -1.0]]]
    terms = [
        [kinds[int(rng.choice(3, p=[0.4, 0.5, 0.1]))] if i in one else "total" for i in range(d)]
        for one in _some_sets(rng, d, 25)
    ]
    return product_batch([2] * d, terms)


def _whole_table(rng: np.random.Generator, small: bool) -> ProductBatch:
    """One large table with tables of fewer attributes."""
    d = int(rng.integers(3, 6) if small else rng.integers(8, 16))
    sizes = [2] * d if rng.random() < 0.5 else [int(n) for n in rng.integers(2, 4, size=d)]
    sets = [tuple(range(d)), *_some_sets(rng, d, 6)]
    terms = [["identity" if i in one else "total" for i in range(d)] for one in sets]
    return product_batch(sizes, terms)


def _either(rng: np.random.Generator, small: bool) -> ProductBatch:
    """Queries with OR across two attributes, beside tables."""
    sizes = _sizes(rng, small, [2, 3, 6, 10])
    d = len(sizes)
    terms: list[list[tuple[float, list[object]]]] = []
    for _ in range(int(rng.integers(1, 6))):
        i, j = (int(k) for k in rng.choice(d, size=2, replace=False))
        a, b = _grouping(rng, sizes[i])[:1], _grouping(rng, sizes[j])[:1]
        one, other, both = (["total"] * d for _ in range(3))
        one[i], other[j], both[i], both[j] = a, b, a, b  # type: ignore[call-overload]
        terms.append([(1.0, one), (1.0, other), (-1.0, both)])  # type: ignore[list-item]
    terms += [
        [(1.0, ["identity" if i in one else "total" for i in range(d)])]
        for one in _some_sets(rng, d, 6)
    ]
    return sum_batch(sizes, terms)  # type: ignore[arg-type]


KINDS: dict[str, Draw] = {
    "tables": _tables,
    "prefixes and ranges": _prefixes_and_ranges,
    "any factors": _any_factors,
    "groupings": _groupings,
    "importances": _importances,
    "binary up to k-way": _binary,
    "some binary": _some_binary,
    "a whole table": _whole_table,
    "either": _either,
}


def draw(seed: int, number: int, *, small: bool) -> tuple[str, ProductBatch]:
    """Batch ``number`` of a seed: its description and itself."""
    rng = np.random.default_rng([seed, number])
    kind = list(KINDS)[number % len(KINDS)]
    batch = KINDS[kind](rng, small)
    sizes = (
        "×".join(map(str, batch.sizes))
        if len(set(batch.sizes)) > 1
        else (f"{batch.sizes[0]}^{len(batch.sizes)}")
    )
    return f"{kind}: {batch.terms} terms, {sizes}", batch


def workload_of(batch: ProductBatch) -> lrm.Workload:
    """The queries of a batch, with its weights as importances."""
    plain = replace(batch, weights=np.ones(batch.terms))
    importance = np.repeat(batch.weights**2, batch.term_queries)
    return lrm.Workload(
        ProductMap(plain), importance=None if np.all(batch.weights == 1) else importance
    )


def _single(batch: ProductBatch, inverses: Sequence[Floats], sensitivity: float) -> float:
    """The error of one product from the inverses H of its Grams."""
    pairs = FactorPairs.of(batch)
    cost = pairs.coefficients.copy()
    for i, H in enumerate(inverses):
        grams, of = pairs.on(i)
        traces = np.array([np.vdot(one.left.dense() @ H, one.right.dense()) for one in grams])
        cost *= traces[of]
    return float(cost.sum()) * sensitivity**2


def _products(batch: ProductBatch, make: Callable[[int], Floats], order: int) -> float:
    """The error of one product of strategies of the attributes' values."""
    strategies = [make(n) for n in batch.sizes]
    norms = [float(np.linalg.norm(L, order, axis=0).max()) for L in strategies]
    inverses = [np.linalg.pinv(L.T @ L) for L in strategies]
    return _single(batch, inverses, math.prod(norms))


def _column_sums(batch: ProductBatch, order: int) -> float:
    """A sensitivity of all queries: the largest column that coordinate ascent finds."""
    own = [[(np.abs(f.dense()) ** order).sum(axis=0) for f in choices] for choices in batch.factors]
    cell = [0] * len(batch.sizes)
    size = np.abs(batch.coefficients) ** order

    def along(i: int) -> Floats:
        rest = size.copy()
        for k, column in enumerate(batch.choice.T):
            if k != i:
                rest *= np.array([sums[cell[k]] for sums in own[k]])[column]
        return np.asarray(rest @ np.array([own[i][f] for f in batch.choice[:, i]]))

    for _ in range(3):
        for i in range(len(cell)):
            cell[i] = int(np.argmax(along(i)))
    return float(along(0).max()) ** (1 / order)


def _results(batch: ProductBatch, order: int) -> float:
    """Noise on results; where terms are sums, their columns may cancel, so it is left out."""
    if not batch.simple:
        return math.inf
    weighted = float(np.sum(batch.weights**2 * batch.term_queries))
    return weighted * _column_sums(batch, order) ** 2


def _own_basis(gram: Floats, rng: np.random.Generator) -> MarginalBasis:
    """The best basis for one attribute's Gram, from a few random starts."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-12 * values[-1]
    W = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    n = len(gram)
    found = [
        optimise_extra_rows(
            W,
            0.5 * np.abs(rng.standard_normal((max(1, n // share), n))),
            nonnegative=True,
            tolerance=1e-5,
            max_rounds=300,
        )
        for share in (4, 8, 16)
    ]
    best = min(found, key=lambda one: one.error)
    return MarginalBasis.beside(best.rows if best.error < np.trace(gram) else np.zeros((0, n)))


def _optimised_product(batch: ProductBatch, rng: np.random.Generator) -> float:
    """One product of optimised bases, attribute by attribute in turn."""
    if max(batch.sizes) > MOST_VALUES or not batch.simple:
        return math.inf
    inverses = [np.eye(n) for n in batch.sizes]
    error = math.inf
    for _ in range(3):
        before = error
        for i, n in enumerate(batch.sizes):
            if n == 1:
                continue
            cost = (batch.coefficients * batch.weights[batch.term_of]) ** 2
            for k, (choices, H) in enumerate(zip(batch.factors, inverses, strict=True)):
                if k != i:
                    traces = np.array([np.vdot(f.gram(), H) for f in choices])
                    cost = cost * traces[batch.choice[:, k]]
            used = np.bincount(batch.choice[:, i], cost, len(batch.factors[i]))
            gram = sum(
                (c * f.gram() for c, f in zip(used, batch.factors[i], strict=True)),
                np.zeros((n, n)),
            )
            basis = _own_basis(gram / np.trace(gram), rng)
            inverses[i] = basis.inverse_times(np.eye(n))
        error = min(error, _single(batch, inverses, 1.0))
        if error > before * (1 - 1e-3):
            break
    return error


def _union(batch: ProductBatch, rng: np.random.Generator) -> float:
    """Each term by its own best product, with the best weights."""
    if max(batch.sizes) > MOST_VALUES or not batch.simple:
        return math.inf
    known = [np.array([_alone(f, rng) for f in choices]) for choices in batch.factors]
    own = (batch.coefficients * batch.weights[batch.term_of]) ** 2
    for column, errors in zip(batch.choice.T, known, strict=True):
        own = own * errors[column]
    return float(np.cbrt(own).sum()) ** 3


def _alone(factor: LinearMap, rng: np.random.Generator) -> float:
    """The error of one factor over its own distinct values."""
    reduced = merge_values(product_batch([factor.shape[1]], [[factor]])).batch
    chosen = reduced.factors[0][reduced.choice[0, 0]]
    if chosen.shape[1] == 1 or chosen.kind == "identity":
        return chosen.squared_norm()
    basis = _own_basis(chosen.gram(), rng)
    return float(np.vdot(chosen.gram(), basis.inverse_times(np.eye(chosen.shape[1]))))


def baseline_errors(batch: ProductBatch, noise: str, *, flat: bool = True) -> dict[str, float]:
    """Errors of all baselines that apply to a batch; with ``flat``, those on lists of few cells."""
    order = 1 if noise == "laplace" else 2
    reduced = merge_values(batch).batch
    found = {
        "noise-on-data": _products(reduced, np.eye, order),
        "noise-on-results": _results(reduced, order),
    }
    if max(reduced.sizes) <= MOST_VALUES:
        found["wavelet"] = _products(reduced, lambda n: haar_tree(n).written_out().dense(), order)
        found["hierarchical"] = _products(
            reduced, lambda n: np.vstack([np.eye(n), tree_basis(n, 2).extra_rows]), order
        )
    workload = workload_of(batch)
    rng = np.random.default_rng(0)
    if noise == "laplace":
        found["marginals"] = lrm.plan(workload, "marginals", effort="quick").weighted_strategy_error
        found["single product"] = _optimised_product(reduced, rng)
        found["a product per term"] = _union(reduced, rng)
    else:
        found["residuals"] = residual_error(Quadratic(reduced))
    if flat and math.prod(reduced.sizes) <= FLAT_CELLS:
        listed = lrm.Workload(reduced.dense())
        found["lowrank"] = lrm.plan(listed, "lowrank", noise=noise).weighted_strategy_error
        found["best, flat"] = lrm.plan(
            listed, noise=noise, objective="total", effort="quick"
        ).weighted_strategy_error
    return found


def run(seed: int, count: int, efforts: Sequence[str], *, small: bool) -> int:
    """Plan batches with either noise, compare and print; the number of errors above a baseline."""
    above = 0
    for number, noise in itertools.product(range(count), ("laplace", "gaussian")):
        name, batch = draw(seed, number, small=small)
        baselines = baseline_errors(batch, noise)
        baseline = min(baselines, key=baselines.__getitem__)
        print(f"{number:3} {name[:60]:60} {noise:8} {baseline:18}", end="")
        for effort in efforts:
            begin = time.process_time()
            plan = lrm.plan(
                workload_of(batch), noise=noise, objective="total", effort=effort, seed=seed
            )
            seconds = time.process_time() - begin
            ratio = plan.weighted_strategy_error / baselines[baseline]
            above += ratio > ROUNDING
            print(f"  {effort} {ratio:.4f} {seconds:5.1f} s", end="")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"  {memory:5.0f} MB", flush=True)
    print(f"{above} errors above a baseline")
    return above
