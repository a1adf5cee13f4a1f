"""The part of a batch on each subset of attributes, as a Gram over the values of the subset.

With vectors u_i of sum 1, a query is the sum over subsets A of its *parts*
``Σ_s c_s ⊗_{i∈A} w_si·(I − u_i·1ᵀ) ⊗_{i∉A} w_si·u_i``, over the products s that it adds up: a
part is 0 on ``u_i`` along each attribute of A. A subset whose measurements are a matrix of its own
is planned and judged by the Gram of its part, since those of single attributes do not tell.

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import ProductBatch

LEAST_SINGULAR = 1e-10
"""Singular values below this share of the largest one are rounding."""


def centring(nulls: Sequence[Floats]) -> Floats:
    """``⊗(I − u_i·1ᵀ)``, which takes weights over a subset to their part on it."""
    return kronecker(np.eye(len(u)) - np.outer(u, np.ones(len(u))) for u in nulls)


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Measurements of one subset that are no product: 0 on ``u_i`` along each of its attributes.

    ``rows`` have full rank otherwise, and columns of L2 norm at most 1.
    """

    rows: Floats
    nulls: tuple[Floats, ...]

    @cached_property
    def estimator(self) -> Floats:
        """E: the part of weights w is estimated by ``w·E·y``, with variance ``‖w·E‖²``."""
        return np.asarray(centring(self.nulls) @ np.linalg.pinv(self.rows, LEAST_SINGULAR))

    def moved(self, nulls: Sequence[Floats]) -> OwnRows:
        """Rows near to these for other null vectors, with a largest column of norm 1."""
        if all(map(np.array_equal, self.nulls, nulls)):
            return self
        centre = centring(nulls)
        rows = self.rows @ centre
        # Rounds in which columns that other null vectors have made longer than 1 are shortened
        # again.
        for _ in range(20):
            rows = rows / np.maximum(np.linalg.norm(rows, axis=0), 1.0) @ centre
        return OwnRows(rows / np.linalg.norm(rows, axis=0).max(), tuple(nulls))


class PartGrams:
    """``G_A`` with ``tr(Eᵀ·G_A·E)`` the error of all parts on A (see `OwnRows`).

    Parameters
    ----------
    batch
        The terms, each counted with its squared weight.
    nulls
        ``u_i`` of each attribute, of sum 1.
    """

    def __init__(self, batch: ProductBatch, nulls: Sequence[Floats]) -> None:
        self.nulls, self._batch = nulls, batch
        order = np.argsort(batch.term_of, kind="stable")
        self._terms, self._choice = batch.term_of[order], batch.choice[order]
        self._support = batch.support()[order]
        self._weights = batch.coefficients[order] * batch.weights[self._terms]
        self._means: dict[tuple[int, int], Floats] = {}
        self._grams: dict[tuple[int, int, int], Floats] = {}
        self._rows: dict[int, Floats] = {}
        self._averages: dict[int, Floats] = {}

    @cached_property
    def _single(self) -> NDArray[np.bool_]:
        """The products with one query: those of most conditions over several attributes."""
        single = np.ones(len(self._choice), dtype=bool)
        for column, factors in zip(self._choice.T, self._batch.factors, strict=True):
            single &= np.array([len(factor) == 1 for factor in factors])[column]
        return single

    @cached_property
    def _sums(self) -> NDArray[np.bool_]:
        """What the products that are added to others distinguish values in."""
        counts = np.bincount(self._terms, minlength=self._batch.terms)
        return np.unique(self._support[counts[self._terms] > 1], axis=0)

    def has_sums(self, subset: Sequence[int]) -> bool:
        """Whether some query that adds up products has a part on a subset."""
        return bool(np.any(self._sums[:, list(subset)].all(axis=1)))

    def error(self, subset: Sequence[int], estimator: Floats) -> float:
        """The sum of the variances of all parts on a subset, for unit noise."""
        return float(np.vdot(estimator, self.of(subset) @ estimator))

    def of(self, subset: Sequence[int]) -> Floats:
        """The Gram over the values of a subset, in C order."""
        inside = self._support[:, list(subset)].all(axis=1)
        rows = self._single_rows(np.flatnonzero(inside & self._single), subset)
        gram = rows.T @ rows
        numbers = np.flatnonzero(inside & ~self._single)
        for term in np.split(numbers, np.flatnonzero(np.diff(self._terms[numbers])) + 1):
            for s, t in itertools.combinations_with_replacement(term.tolist(), 2):
                pair = self._pair(s, t, subset)
                gram += pair if s == t else pair + pair.T
        return np.asarray(gram)

    def _single_rows(self, numbers: Integers, subset: Sequence[int]) -> Floats:
        """The weights over a subset of all terms with one query."""
        choice, values = self._choice[numbers], self._weights[numbers]
        for i in np.flatnonzero(choice.any(axis=0)).tolist():
            if i not in subset:
                values = values * self._single_means(i)[choice[:, i]]
        rows = values[:, None]
        for i in subset:
            both = rows[:, :, None] * self._factor_rows(i)[choice[:, i]][:, None, :]
            rows = both.reshape(len(numbers), math.prod(both.shape[1:]))
        starts = np.flatnonzero(np.diff(self._terms[numbers], prepend=-1))
        return np.add.reduceat(rows, starts) if len(starts) else rows

    def _single_means(self, i: int) -> Floats:
        """``W·u`` of the factors with one query."""
        if i not in self._averages:
            self._averages[i] = self._factor_rows(i) @ self.nulls[i]
        return self._averages[i]

    def _factor_rows(self, i: int) -> Floats:
        """The factors with one query, one row each; those of others are not looked at."""
        if i not in self._rows:
            width = self._batch.sizes[i]
            self._rows[i] = np.vstack(
                [f.dense() if len(f) == 1 else np.zeros((1, width)) for f in self._batch.factors[i]]
            )
        return self._rows[i]

    def _mean(self, i: int, factor: int) -> Floats:
        """``W·u`` of a factor."""
        if (i, factor) not in self._means:
            weights: LinearMap = self._batch.factors[i][factor]
            self._means[i, factor] = weights.apply(self.nulls[i][:, None])[:, 0]
        return self._means[i, factor]

    def _pair(self, s: int, t: int, subset: Sequence[int]) -> Floats:
        """``c_s·c_t·⊗_{i∈A} W_siᵀ·W_ti`` times the means of the other attributes."""
        value = float(self._weights[s] * self._weights[t])
        matrices = []
        for i, (f, g) in enumerate(self._choice[[s, t]].T.tolist()):
            if i in subset:
                matrices.append(self._factor_gram(i, f, g))
            elif f or g:
                value *= float(self._mean(i, f) @ self._mean(i, g))
        return value * kronecker(matrices)

    def _factor_gram(self, i: int, f: int, g: int) -> Floats:
        if (i, f, g) not in self._grams:
            left, right = (self._batch.factors[i][k] for k in (f, g))
            self._grams[i, f, g] = left.gram() if f == g else left.dense().T @ right.dense()
        return self._grams[i, f, g]
