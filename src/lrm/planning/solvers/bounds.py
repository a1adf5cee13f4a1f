"""What no strategy can beat, and what one always reaches: by singular values, and over products.

Over products, with V the Gram matrix of all queries over N cells, no strategy with columns of L2
norm 1, and so none with columns of L1 norm 1, has an error below ``(tr √V)²/N``. As ``tr √V`` grows
with V, a product may be replaced by a smaller one. With ``q = 1/√n`` (the total), a Gram of one
attribute is ``M/n = [[a, bᵀ], [b, C]]`` in q and its complement, and for any s below the Schur
complement ``a − bᵀC⁻¹b`` it is at least ``s·q·qᵀ + N`` with ``N = C − b·bᵀ/(a − s)``. Then V
separates into one part for each subset of the attributes, and ``tr √V`` into a sum.

See ``docs/explanation/accuracy.md`` and ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from lrm.errors import UsageError
from lrm.planning.design.cells import numerical_rank
from lrm.planning.design.products.quadratic import DENSE_VALUES, PairGram, Quadratic
from lrm.planning.solvers.gaussian import optimise_gaussian_map
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.values import merge_values

ROUNDING = 1e-12
"""By how much bounds are lowered, so that rounding errors do not lift them above the truth."""

NEGLIGIBLE = 1e-11
"""Eigenvalues below this share of the largest count as 0: they may be rounding alone."""

MOST_STEPS = 4e9
"""Cubes of the numbers of values of all Grams that are decomposed: some seconds."""

MOST_GROUPS = 100
"""Groups of terms with the same special factors that are bounded one by one."""


@dataclass(frozen=True)
class Spectrum:
    """The nonzero singular values of a workload, and the bounds that follow from them.

    All four bounds are *expected total squared errors at ε = 1*; divide by ε² for another ε.

    Attributes
    ----------
    singular_values
        λ_1 ≥ … ≥ λ_r > 0, read-only (the paper calls them eigenvalues).
    columns
        n, the number of cells.

    Examples
    --------
    >>> identity = spectrum(np.ones(4), (4, 4))
    >>> identity.rank, identity.condition
    (4, 1.0)
    >>> identity.lower_bound, identity.upper_bound  # noise on data reaches the lower one
    (8.0, 32.0)
    """

    singular_values: Floats
    columns: int

    def __post_init__(self) -> None:
        values = np.sort(_checked(self.singular_values))[::-1].copy()
        if not (values > 0).all():
            raise UsageError("expected positive singular values, got a zero; use spectrum(...)")
        if self.columns < len(values):
            raise UsageError(
                f"expected at most as many singular values as the {self.columns} cells, "
                f"got {len(values)}; check the workload's shape"
            )
        values.flags.writeable = False
        object.__setattr__(self, "singular_values", values)

    @property
    def rank(self) -> int:
        """The paper's r, the rank of the workload."""
        return len(self.singular_values)

    @property
    def condition(self) -> float:
        """The paper's ``C = λ_1/λ_r``; 1 for a workload of zeros."""
        return float(self.singular_values[0] / self.singular_values[-1]) if self.rank else 1.0

    @property
    def lower_bound(self) -> float:
        r"""``2·(Σ_k λ_k)²/n``: no strategy of any rank has a smaller error with Laplace noise.

        ``(Σ_k λ_k)²/n`` is at most ``‖B‖_F²·Δ(L)²`` for every W = B·L.

        Proof. The nuclear norm satisfies ``Σ λ_k = ‖B·L‖_* ≤ ‖B‖_F·‖L‖_F`` (Hölder's inequality for
        Schatten norms). If every column of L has L2 norm at most Δ, then ``‖L‖_F² ≤ n·Δ²``. So
        ``(Σ λ_k)² ≤ ‖B‖_F²·n·Δ²``. The L1 norm of a column is at least its L2 norm: the same holds
        for the L1 sensitivity. ∎ [1]_

        Columns of zeros are best left out, since only n would count them. Merging equal columns
        keeps the optimum but may move this value up or down: the larger of the two holds. It is
        exact for the identity and for a single query of ones.

        References
        ----------
        .. [1] Li, Miklau, "Measuring the achievable error of query sets under differential
           privacy", arXiv:1202.3399, 2012.

        Examples
        --------
        >>> Spectrum(np.ones(4), 4).lower_bound  # identity: noise on data is optimal
        8.0
        """
        return 2.0 * float(self.singular_values.sum()) ** 2 / max(self.columns, 1)

    @property
    def upper_bound(self) -> float:
        r"""``2·r·Σ_k λ_k²``, the paper's Lemma upper with the factor 2 of the Laplace variance.

        An expected total squared error at ε = 1 that the optimal decomposition never exceeds.

        Proof. With the thin SVD ``W = U·Σ·V`` take ``B = √r·U·Σ`` and ``L = V/√r``. V has r
        orthonormal *rows*, so it is part of an orthogonal matrix and its columns have L2 norm at
        most 1 (not equal to 1, as the paper has it; ``≤`` is all that is needed), L1 norm at most
        √r. So ``Δ(L) ≤ 1``, and ``2‖B‖_F²·Δ(L)² ≤ 2r·Σ λ_k²``, with equality exactly where a column
        of V has r entries of the same size 1/√r, as in a Hadamard matrix. ∎

        The lemma as printed, r·Σλ_k², is false: a single query of one cell needs 2.

        Examples
        --------
        >>> Spectrum(np.ones(1), 1).upper_bound
        2.0
        """
        return 2.0 * self.rank * float(np.square(self.singular_values).sum())

    @property
    def volume_bound_as_printed(self) -> float:
        r"""``(2^r/r!·Π_k λ_k)^{2/r}·r³``, the paper's Lemma lower as printed, at ε = 1.

        The paper states it as an Ω(·): it has no constant, so it cannot be compared with an error.
        **Nor does it hold with any constant.** Its proof takes the volume of ``V·B_1^n`` (the unit
        L1 ball of n cells, projected by the orthonormal rows of V) for that of an r-dimensional L1
        ball, 2^r/r!. That is right for r = n; for r < n the projection may be far smaller. The
        total of n cells has r = 1 and λ = √n, so this formula gives 4n, while noise on the result
        has error 2 for every n. ``any_mechanism_lower_bound`` is the repaired form, with its
        constant.

        Computed in logarithms, so that neither r! nor the product overflows.

        Examples
        --------
        >>> total = Spectrum(np.array([10.0]), 100)  # of 100 cells; noise on results needs 2
        >>> round(total.volume_bound_as_printed)
        400
        """
        r = self.rank
        return float(np.exp(2.0 / r * (self._log_product + _log_l1_ball(r)))) * r**3 if r else 0.0

    @property
    def any_mechanism_lower_bound(self) -> float:
        r"""An expected total squared error at ε = 1 below which no private mechanism can go.

        For *any* mechanism, of noise added to a strategy or not, whose output distribution on real
        vectors x, x' changes by at most ``exp(ε·‖x − x'‖₁)``, the error at the worst x is at least

            r²/(8e²·ε²) · (vol(W·B_1^n) / (2·v_r))^{2/r},   v_r = π^{r/2}/Γ(r/2 + 1),

        the volume being taken in the r-dimensional range of W. An error that does not depend on x,
        as that of every plan here, is its own worst case. (On integer counts neighbours differ by a
        whole record, and the bound is meant for ε well below r.)

        Proof [1]_. Let V be the largest mean squared error. By Markov's inequality an answer lies
        within ρ = √(2V) of the truth with probability at least 1/2. Choose x_1 … x_N with ‖x_i‖₁ ≤
        R so that the points W·x_i are a maximal set with distances of at least 2ρ: balls of radius
        2ρ cover R·W·B_1^n, so N·v_r·(2ρ)^r ≥ R^r·vol(W·B_1^n). Balls of radius ρ around them are
        disjoint, and on x = 0 each holds the answer with probability at least exp(−εR)/2, so N ≤
        2·exp(εR). Together ``ρ ≥ (R/2)·exp(−εR/r)·(vol/(2v_r))^{1/r}``; R = r/ε is best. ∎

        With the thin SVD W = U·Σ·V, ``vol(W·B_1^n) = Π λ_k · vol(V·B_1^n)``, and the singular
        values leave two lower bounds on the last factor, and the larger is used: V·B_1^n contains
        the symmetric hull of any r columns of V, and by Cauchy–Binet some r of them have a
        determinant of at least ``binom(n, r)^{−1/2}``, hence ``2^r/r!·binom(n, r)^{−1/2}``; and it
        contains V·B_2^n/√n, hence ``v_r·n^{−r/2}``.

        References
        ----------
        .. [1] Hardt, Talwar, "On the geometry of differential privacy", STOC 2010, Corollary 3.4
           (there without a constant).

        Examples
        --------
        >>> total = Spectrum(np.array([10.0]), 100)  # of 100 cells; the error is 2
        >>> round(total.any_mechanism_lower_bound, 4)
        0.0042
        """
        r, n = self.rank, self.columns
        if not r:
            return 0.0
        log_choices = gammaln(n + 1.0) - gammaln(r + 1.0) - gammaln(n - r + 1.0)
        # Both relative to v_r, the volume of the Euclidean ball.
        hull = _log_l1_ball(r) - 0.5 * log_choices - _log_l2_ball(r)
        inner_ball = -0.5 * r * np.log(n)
        log_ratio = self._log_product + max(hull, inner_ball) - np.log(2.0)
        return float(np.exp(2.0 / r * log_ratio)) * r**2 / (8.0 * np.e**2)

    @property
    def _log_product(self) -> float:
        return float(np.log(self.singular_values).sum())


def spectrum(singular_values: Any, shape: tuple[int, int]) -> Spectrum:
    """Return the :class:`Spectrum` of an m×n workload, without values that are zero in float64.

    Examples
    --------
    >>> spectrum([3.0, 1.0, 1e-17], (5, 3)).rank
    2
    """
    values = np.sort(_checked(singular_values))[::-1]
    return Spectrum(values[: numerical_rank(values, shape)], shape[1])


def _log_l1_ball(r: int) -> float:
    return float(r * np.log(2.0) - gammaln(r + 1.0))


def _log_l2_ball(r: int) -> float:
    return float(0.5 * r * np.log(np.pi) - gammaln(0.5 * r + 1.0))


def _checked(singular_values: Any) -> Floats:
    values = np.asarray(singular_values, dtype=np.float64)
    if values.ndim != 1 or not (np.isfinite(values).all() and (values >= 0).all()):
        raise UsageError(
            "expected a vector of finite singular values of at least 0, got something else; "
            "take them from numpy.linalg.svd"
        )
    return values


def product_bound(batch: ProductBatch) -> float:
    """A number that (weighted) ``‖B‖²·Δ²`` of no strategy is below, for either noise.

    For tables and totals it is the optimum under L2 columns. Else it is the best of some
    bounds: terms with different factors of some attributes need at least the sum of what each
    group needs alone, and terms that share factors at least the product of the optima of these
    under L2 columns times that of the rest.
    """
    reduced = merge_values(batch).batch
    if not reduced.simple:
        return 0.0
    special = [
        i
        for i, choices in enumerate(reduced.factors)
        if any(choices[f].kind not in {"total", "identity"} for f in reduced.present(i))
    ]
    known: dict[tuple[str, int, bytes], float] = {}
    bounds = [_bound(reduced, separated, known) for separated in _set_apart(special)]
    return max(bounds) * (1.0 - ROUNDING)


def _set_apart(special: Sequence[int]) -> Iterable[tuple[int, ...]]:
    # Up to this number of attributes with other factors than tables and totals are separated.
    if len(special) > 3:
        return (), tuple(special)
    return itertools.chain.from_iterable(
        itertools.combinations(special, k) for k in range(len(special) + 1)
    )


def _bound(
    batch: ProductBatch, separated: tuple[int, ...], known: dict[tuple[str, int, bytes], float]
) -> float:
    """The sum over groups of terms that differ in the special factors of the separated attributes.

    ``known`` holds the bounds of single factors by their keys.
    """
    if not separated:
        return bound_together(Quadratic(batch))
    columns = []
    for i in separated:  # the number of a factor that is no total and no identity, else 0
        plain = np.array([factor.kind in {"total", "identity"} for factor in batch.factors[i]])
        columns.append(np.where(plain[batch.choice[:, i]], 0, batch.choice[:, i]))
    signatures, group = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    rows = {
        (i, f)
        for numbers in signatures.tolist()
        for i, f in zip(separated, numbers, strict=True)
        if f
    }
    work = sum(
        batch.factors[i][f].shape[1] ** 3.0 for i, f in rows if not batch.factors[i][f].is_word
    )
    if len(signatures) > MOST_GROUPS or work > MOST_STEPS:
        return 0.0
    total = 0.0
    for g, signature in enumerate(signatures.tolist()):
        group_batch = batch.take(np.flatnonzero(group.reshape(-1) == g))
        bound, choice = 1.0, group_batch.choice.copy()
        for i, f in zip(separated, signature, strict=True):
            if f:
                factor = batch.factors[i][f]
                if factor.digest not in known:
                    known[factor.digest] = _alone(factor)
                bound *= known[factor.digest]
                choice[:, i] = 0
        rest = merge_values(replace(group_batch, choice=choice)).batch
        total += bound * bound_together(Quadratic(rest))
    return total


def bound_together(quadratic: Quadratic) -> float:
    """``(Σ_A √v_A)²`` with the squared sum of roots of N and with s for each Gram."""
    residual, total = np.zeros((2, len(quadratic.grams)))
    work = 0.0
    for number, gram in enumerate(quadratic.grams):
        # What is left out is bounded by 0: a lower bound still.
        work += (
            0.0 if gram.left.kind == gram.right.kind == "identity" else gram.left.shape[1] ** 3.0
        )
        if work <= MOST_STEPS:
            residual[number], total[number] = _parts(gram)
    v = quadratic.values(residual, total)
    return float(np.sqrt(v).sum() ** 2)


def _parts(gram: PairGram) -> tuple[float, float]:
    """``(tr √N)²`` and s."""
    n = len(gram.squares)
    if gram.left.kind == gram.right.kind == "identity":
        return (n - 1) ** 2 / n, 1.0 / n
    if n > DENSE_VALUES:
        return 0.0, 0.0
    # A Householder reflection that takes q to the first axis.
    mirror = np.full(n, 1.0 / np.sqrt(n))
    mirror[0] += 1.0
    mirror /= np.linalg.norm(mirror)
    M = gram.dense() / n
    M = M - 2.0 * np.outer(mirror, mirror @ M)
    M = M - 2.0 * np.outer(M @ mirror, mirror)
    a, b, C = float(M[0, 0]), M[1:, 0], M[1:, 1:]
    values, vectors = np.linalg.eigh(C)
    nonzero = values > NEGLIGIBLE * values.max(initial=0.0)
    schur = a - float(np.sum((vectors.T[nonzero] @ b) ** 2 / values[nonzero]))
    if schur <= NEGLIGIBLE * a:  # rounding alone
        return _root_sum(C - np.outer(b, b) / a) ** 2 if a > 0 else _root_sum(C) ** 2, 0.0
    # s as a share of the Schur complement; from 0.8 to 1 the bounds differ by 1 %.
    s = 0.9 * schur
    return _root_sum(C - np.outer(b, b) / (a - s)) ** 2, s


def _alone(factor: LinearMap) -> float:
    """The bound of one factor by itself, with its best weights of values; 0 where it is too large.

    With weights v_i of sum 1 for the values of each attribute, those of a product are products, and
    so is the bound ``(tr √(D·V·D))²`` with ``D² = diag(v)``.
    """
    if factor.shape[1] > DENSE_VALUES or not factor.squared_norm() > 0:
        return 0.0

    def rows() -> Floats:
        values, vectors = np.linalg.eigh(factor.gram())
        nonzero = values > NEGLIGIBLE * values[-1]
        return np.asarray(np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T)

    # Rounds of the ascent for a factor by itself, which is within 1 % after fewer.
    rounds = 20
    return optimise_gaussian_map(factor, rows, tolerance=0.01, max_rounds=rounds).lower


def _root_sum(gram: Floats) -> float:
    """``tr √M``, or 0 where M is too large."""
    if len(gram) > DENSE_VALUES:
        return 0.0
    values = np.linalg.eigvalsh(gram)
    nonzero = values > NEGLIGIBLE * values.max(initial=0.0)
    return float(np.sqrt(values[nonzero]).sum())
