"""What no strategy can beat, and what one always reaches: bounds from singular values alone.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from lrm.errors import UsageError
from lrm.queries.maps.linear import Floats


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


def numerical_rank(singular_values: Any, shape: tuple[int, int]) -> int:
    """Count the singular values above ``max(m, n)·2⁻⁵²·λ_1``.

    That is the size of the error with which float64 arithmetic finds them, and the rule of
    ``numpy.linalg.matrix_rank`` and of MATLAB [1]_. A workload of zeros has rank 0.

    References
    ----------
    .. [1] Golub, Van Loan, "Matrix Computations", 4th ed. 2013, Section 5.4.

    Examples
    --------
    >>> numerical_rank([3.0, 1.0, 1e-17], (5, 3)), numerical_rank([0.0], (1, 9))
    (2, 0)
    """
    values = _checked(singular_values)
    if not values.size:
        return 0
    return int(np.count_nonzero(values > max(shape) * np.finfo(np.float64).eps * values.max()))


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
