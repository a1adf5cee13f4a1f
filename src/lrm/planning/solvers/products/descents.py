"""Descents for given sets: on their weights, on one basis, and on weights and bases together.

Counted work is in seconds of one core (see `lrm.clock`), fitted to 50,000 calls in searches for
twelve batches: within 25 % of the time of each.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import Bounds, minimize

from lrm.clock import UNLIMITED, Clock, Step, work_of
from lrm.errors import StopSolver
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.information import LEAST_LOG, FixedBases, SetWeights
from lrm.planning.design.products.quadratic import DENSE_VALUES, PairGram, Quadratic
from lrm.planning.design.products.subsets import Masks
from lrm.planning.limits import BLOCK
from lrm.planning.solvers import settings
from lrm.planning.solvers.extra_rows import (
    ExtraRows,
    factor_gram,
    optimise_extra_rows,
    round_work,
)
from lrm.planning.solvers.gram_operators import ChainGram, GramOperator
from lrm.planning.solvers.sparse_rows import optimise_sparse_rows, stages
from lrm.queries.maps.linear import Floats, Integers, LinearMap

#: Largest entry of a row, relative to the identity: longer ones leave the error few digits.
LONGEST = 1e3


class WeightedSets:
    """Sets with weights that sum to 1, and their log error at a point."""

    def __init__(self, sets: Masks, weights: Floats, value: float) -> None:
        self.sets, self.weights, self.value = sets, weights, value

    @property
    def error(self) -> float:
        """``(Σθ)²·Σ v/λ``."""
        return float(np.exp(self.value))


def descend_weights(  # noqa: PLR0913 - each is a choice of the caller
    point: FixedBases,
    sets: Masks,
    theta: Floats,
    *,
    tolerance: float = 1e-9,
    max_rounds: int = 300,
    clock: Clock = UNLIMITED,
) -> WeightedSets:
    """Descend on log θ from a start; sets whose weight vanishes are dropped.

    First a few rounds of ``θ_B ← θ_B·(θ_B·g_B)^⅓``, which never raise the error (each minimises
    a bound of ``Σ v/λ`` that is exact at the current θ and separable in θ), then L-BFGS.
    """
    problem = SetWeights(point, sets)
    theta = theta / theta.sum()
    error = problem.error(theta)
    if len(sets) == 1 or not np.isfinite(error):
        return WeightedSets(sets, theta, float(np.log(error)))
    for _ in range(6):
        _, gain = problem.error_and_gain(theta)
        theta = theta * np.cbrt(theta * gain)
        theta = np.maximum(theta / theta.sum(), 1e-12)
    optimum = minimize(
        problem.log_error,
        np.log(theta),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_rounds, "ftol": tolerance * 1e-2, "gtol": tolerance, "maxcor": 20},
    )
    clock.spend(weights_work(len(point.quadratic.index), len(sets), optimum.nfev + 6))
    theta = np.exp(np.maximum(optimum.x - optimum.x.max(), LEAST_LOG))
    return _pruned(point, sets, theta / theta.sum(), float(optimum.fun))


def _pruned(point: FixedBases, sets: Masks, theta: Floats, value: float) -> WeightedSets:
    """Drop the sets that no longer matter, if what is asked stays covered."""
    significant = theta > 1e-4 * theta.max()
    if significant.all():
        return WeightedSets(sets, theta, value)
    fewer = SetWeights(point, sets[significant])
    error = fewer.error(theta[significant])
    if np.log(error) > value + 1e-3:
        return WeightedSets(sets, theta, value)
    return WeightedSets(
        sets[significant], theta[significant] / theta[significant].sum(), float(np.log(error))
    )


def weights_work(subsets: int, sets: int, evaluations: int) -> float:
    """Seconds of a descent on the weights of some sets."""
    return 3.5e-4 + evaluations * (5.4e-5 + 1.0e-9 * subsets * sets)


def joint_work(quadratic: Quadratic, sets: int, bases: Sequence[MarginalBasis]) -> float:
    """Seconds of one evaluation of the error and its gradient by weights and bases."""
    work = 8e-4 + 2.2e-5 * len(quadratic.grams) + len(quadratic.index) * (1e-6 + 4.7e-8 * sets)
    for i, basis in enumerate(bases):
        if not basis.plain:
            grams = len(quadratic.of_attribute(i))
            work += basis.extra_rows.size * (3.9e-7 + 3.3e-8 * grams) + 6e-9 * basis.size**2 * grams
    return work


@dataclass(frozen=True, eq=False)
class MixedGram(GramOperator):
    """A weighted sum of Grams over the values of one axis, or over blocks of these."""

    shares: list[tuple[float, PairGram]]
    block: int = 1

    @cached_property
    def _starts(self) -> Integers:
        return np.arange(0, len(self.shares[0][1].squares), self.block)

    @cached_property
    def widths(self) -> Floats:  # type: ignore[override]
        """Number of values of each block."""
        return np.diff(self._starts, append=len(self.shares[0][1].squares)).astype(np.float64)

    @cached_property
    def energies(self) -> Floats:  # type: ignore[override]
        """The diagonal."""
        squares = np.asarray(sum(share * gram.squares for share, gram in self.shares))
        return np.asarray(np.add.reduceat(squares, self._starts))

    @cached_property
    def _parts(self) -> tuple[list[ChainGram], list[tuple[float, PairGram]]]:
        """Totals, tables, prefixes and ranges as chains over the blocks; the Grams of the rest."""
        chains: dict[str, ChainGram] = {}
        rest: list[tuple[float, PairGram]] = []
        for share, gram in self.shares:
            chain = _chain(gram.left, share) if gram.left is gram.right else None
            if chain is None:
                rest.append((share, gram))
                continue
            key = "all-ranges" if gram.left.kind == "all-ranges" else ""
            if key in chains:  # of the same `left`
                right, excess = chains[key].right + chain.right, chains[key].excess + chain.excess
                chain = replace(chain, right=right, excess=excess)
            chains[key] = chain
        return [chain.coarser(self.block) for chain in chains.values()], rest

    def times(self, columns: Floats) -> Floats:
        chains, rest = self._parts
        image = np.zeros_like(columns)
        for chain in chains:
            image += chain.times(columns)
        if rest:
            if self.block > 1:
                columns = np.repeat(columns, self.widths.astype(np.int64), axis=0)
            added = np.asarray(sum(share * gram.times(columns) for share, gram in rest))
            image += added if self.block == 1 else np.add.reduceat(added, self._starts)
        return image

    def coarser(self, factor: int) -> MixedGram:
        return MixedGram(self.shares, self.block * factor)

    def root(self) -> Floats:
        """A matrix W with ``WᵀW`` equal to the sum over single values."""
        dense = np.zeros((self.cells, self.cells))
        rows: list[Floats] = []  # of many single conditions, which are multiplied together
        for share, gram in self.shares:
            few = gram.left is gram.right and gram.left.kind == "dense"
            if few and len(gram.left) < self.cells:
                rows.append(np.sqrt(share) * gram.left.dense())
                # Factors of a few rows whose Grams are added up together.
                if len(rows) >= 512:
                    stacked = np.vstack(rows)
                    dense += stacked.T @ stacked
                    rows = []
            else:
                dense += share * gram.dense()
        if rows:
            stacked = np.vstack(rows)
            dense += stacked.T @ stacked
        values, vectors = np.linalg.eigh(dense)
        nonzero = values > 1e-12 * values[-1]
        return np.asarray(np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T)


def _chain(factor: LinearMap, share: float) -> ChainGram | None:
    """``share·WᵀW`` of a factor that is known by a word, over single values."""
    ones = np.ones(factor.shape[1])
    if factor.kind == "identity":
        return ChainGram(ones, ones, ones, 0.0 * ones, share * ones)
    chain = factor.gram_chain()
    return None if chain is None else ChainGram(ones, ones, chain[0], share * chain[1], 0.0 * ones)


def own_basis(
    point: FixedBases, attribute: int, rng: np.random.Generator, rows: Sequence[int], clock: Clock
) -> MarginalBasis:
    """Optimise one attribute's basis for the mix of its Grams that counts in the error.

    Returns the best of one descent from random rows for each number in ``rows``. The weights
    of the mix are the derivatives of ``Σ_A v_A`` by each Gram's residual, so that a factor that
    many terms ask for counts more.
    """
    quadratic = point.quadratic
    slopes = np.ones(len(quadratic.index))
    by_residual, _ = quadratic.pull_back(point.residual, point.total, slopes)
    n = quadratic.sizes[attribute]
    gram = MixedGram(
        [
            (max(by_residual[g], 0.0), quadratic.grams[g])
            for g in quadratic.of_attribute(attribute)
            if quadratic.tells[g]
        ]
    )

    clock = clock.reporting(lambda _: Step("products", 0))  # the error is that of one attribute
    if n > DENSE_VALUES:
        return _long_basis(gram, rng, clock, brief=len(rows) == 1)
    counts = [max(1, min(count, n // 2)) for count in rows]
    tried = rows_of(gram, counts, rng, clock, tolerance=1e-5, max_rounds=400)
    return MarginalBasis.beside(min(tried, key=lambda candidate: candidate.error).rows)


def rows_of(  # noqa: PLR0913 - each is a choice of the caller
    gram: MixedGram,
    counts: Iterable[int],
    rng: np.random.Generator,
    clock: Clock,
    *,
    tolerance: float,
    max_rounds: int,
) -> Iterator[ExtraRows[Floats]]:
    """Yield extra rows for a Gram, one descent from random ones for each of some numbers."""
    n, W = gram.cells, gram.root()
    clock.spend(work_of(10.0 * n**3))
    for count in counts:
        yield optimise_extra_rows(
            W,
            0.5 * np.abs(rng.standard_normal((count, n))),
            nonnegative=True,
            tolerance=tolerance,
            max_rounds=max_rounds,
            clock=clock.costing(round_work(factor_gram(W), count)),
        )
        clock.tick(Step("products", 0))


def _long_basis(
    gram: MixedGram, rng: np.random.Generator, clock: Clock, *, brief: bool
) -> MarginalBasis:
    """The basis of an attribute of thousands of values, through Grams that are not written out."""
    n = gram.cells
    rows = max(
        1,
        min(
            settings.LONG_ROWS * math.isqrt(n),
            BLOCK // n,
            # Rows of a long basis at quick effort, which has a second or two for it.
            64 if brief else n,
        ),
    )
    levels = stages(n, rows)
    sparse_rows = optimise_sparse_rows(
        gram,
        rows,
        levels[:1] if brief else levels,
        rng=rng,
        # Seconds of counted work for the rows of a long basis: a plan takes at most 10 s.
        clock=clock.part(3.0),
        name="products",
    )
    clock.check()
    return MarginalBasis.beside(np.minimum(sparse_rows.rows.toarray(), LONGEST))


def descend_jointly(
    quadratic: Quadratic,
    family: WeightedSets,
    bases: Sequence[MarginalBasis],
    *,
    clock: Clock = UNLIMITED,
    max_rounds: int = 200,
) -> tuple[WeightedSets, tuple[MarginalBasis, ...]]:
    """Descend on the weights and on the extra rows of all bases at once, by L-BFGS-B.

    When the clock ends, the best point so far is returned. Bases of thousands of values with
    hundreds of rows stay as they are: the descent would hold 40 copies of them.
    """
    m = len(family.sets)
    # Entries of all bases up to which they are moved together with the weights.
    if sum(basis.extra_rows.size for basis in bases) > (1 << 19):
        return family, tuple(bases)
    free = [i for i, basis in enumerate(bases) if not basis.plain]
    shapes = [bases[i].extra_rows.shape for i in free]
    ends = np.cumsum([m, *[a * b for a, b in shapes]])
    best: list[tuple[float, Floats]] = []
    clock = clock.costing(joint_work(quadratic, m, bases))

    def unpack(x: Floats) -> list[MarginalBasis]:
        parts = np.split(x[m:], ends[1:-1] - m) if free else []
        current = list(bases)
        for i, part, shape in zip(free, parts, shapes, strict=True):
            current[i] = MarginalBasis.beside(np.maximum(part.reshape(shape), 0.0))
        return current

    def evaluate(x: Floats) -> tuple[float, Floats]:
        logs = np.maximum(x[:m] - x[:m].max(), LEAST_LOG)
        point = FixedBases.at(quadratic, unpack(x))
        value, by_logs, by_rows = SetWeights(point, family.sets).basis_gradients(np.exp(logs))
        if not best or value < best[0][0]:
            best[:] = [(value, x.copy())]
        clock.tick(Step.of_log("products", value))
        return value, np.concatenate([by_logs, *[by_rows[i].ravel() for i in free]])

    rows = [np.minimum(bases[i].extra_rows, LONGEST).ravel() for i in free]
    start = np.concatenate([np.log(family.weights), *rows])
    # As arrays: pairs of 1.6 million rows' entries took a third of the time of a long attribute.
    bounds = Bounds(
        np.repeat([-np.inf, 0.0], [m, len(start) - m]),
        np.repeat([np.inf, LONGEST], [m, len(start) - m]),
    )
    with contextlib.suppress(StopSolver):
        minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": max_rounds, "ftol": 1e-7, "gtol": 1e-9, "maxcor": 20},
        )
    value, x = best[0]
    theta = np.exp(np.maximum(x[:m] - x[:m].max(), LEAST_LOG))
    trimmed = _trim(unpack(x))
    point = FixedBases.at(quadratic, trimmed)
    value = float(np.log(SetWeights(point, family.sets).error(theta / theta.sum())))
    return WeightedSets(family.sets, theta / theta.sum(), value), tuple(trimmed)


def _trim(bases: Sequence[MarginalBasis]) -> list[MarginalBasis]:
    """Drop rows that vanished."""
    trimmed = []
    for basis in bases:
        alive = basis.extra_rows.max(axis=1, initial=0.0) > 1e-3
        trimmed.append(
            basis if alive.all() else MarginalBasis.beside(basis.extra_rows[alive].copy())
        )
        if basis.plain:
            trimmed[-1] = MarginalBasis.identity(basis.size)
    return trimmed
