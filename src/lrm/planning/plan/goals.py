"""What the errors of statements are compared with, and the weights of queries that follow.

A *goal* is one number that should be small: the squared error of a statement divided by what is
wanted for it. With the mean squared errors e_c of the columns of a batch, goal g has the squared
ratio ``Σ_c G_gc·e_c``. Where statements are compared with an even split of the budget, G is that of
`lrm.planning.plan.even_split`; with tolerances, that of `lrm.planning.plan.tolerances`.

The sum of all squared ratios is a weighted total: a query of column c has the weight
``Σ_g G_gc/n_c``, with n_c queries in the column. ``balanced`` minimises this sum; ``worst`` and
``within`` minimise the largest ratio, by raising the weights of goals above the others.
See docs/explanation/statements.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from lrm.planning.accuracy import Accuracy
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import Reconstruction
from lrm.privacy.budget import Privacy
from lrm.privacy.mechanism import law_of
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Workload
from lrm.queries.workload.columns import StatementColumns

Objective = Literal["total", "balanced", "worst", "within"]
OBJECTIVES = ("total", "balanced", "worst")
"""Those that a caller names; ``within`` is asked for by the confidence of tolerances."""

ENOUGH = 0.99
"""Squared ratio to the even split up to which no statement needs more weight."""

Calibrate = Callable[[Measured, Reconstruction], Floats]
"""Squared ratios by the intervals of a strategy that was rounded."""


def weighted_error(workload: Workload, measured: Measured, reconstruction: Reconstruction) -> float:
    """``Σ_i c_i·‖B_i‖²·Δ²`` with the importance c_i of each query, 1 where none is declared."""
    squared_norm = reconstruction.squared_norm
    if workload.importance is not None:
        squared_norm = float(np.dot(workload.importance, reconstruction.row_squared_norms))
    return float(squared_norm * measured.real_sensitivity**2)


def accuracy_of(  # noqa: PLR0913, PLR0917 - what it follows from
    workload: Workload,
    measured: Measured,
    reconstruction: Reconstruction,
    privacy: Privacy,
    least_total: float = 0.0,
    unit: PrivacyUnit | None = None,
) -> Accuracy:
    """Errors and intervals of what a strategy would release, for the unit of the domain."""
    domain = workload.domain
    if unit is None:
        unit = PrivacyUnit() if domain is None else domain.unit
    bits = 0 if domain is None else domain.record_bits
    law = law_of(measured, privacy, unit, bits)
    step = 2.0 ** -(measured.bits + bits)
    return Accuracy(reconstruction, law, step, privacy, unit, least_total)


def column_errors(
    columns: StatementColumns, measured: Measured, reconstruction: Reconstruction
) -> Floats:
    """The mean of ``‖B‖²·Δ²`` over the queries of each column."""
    return columns.means(reconstruction.row_squared_norms * measured.real_sensitivity**2)


@dataclass(frozen=True, eq=False)
class TotalError:
    """The goal of one number: the total squared error of a batch, by its importances."""

    workload: Workload

    objective: ClassVar[Objective] = "total"
    importances: ClassVar[None] = None
    compared: ClassVar[None] = None

    def squares_of(self, measured: Measured, reconstruction: Reconstruction) -> Floats:
        """The error of a rounded strategy."""
        return np.array([weighted_error(self.workload, measured, reconstruction)])

    def score(self, squares: Floats) -> tuple[float, ...]:
        """What is minimised."""
        return (float(squares[0]),)


@dataclass(frozen=True, eq=False)
class Goals:
    """What a search minimises, as squared ratios of errors.

    Parameters
    ----------
    objective
        ``"balanced"``, ``"worst"`` or ``"within"``.
    workload
        The batch with its own importances.
    columns
        The columns of its linear queries.
    shares
        G, goals × columns.
    exact_squares
        Squared ratios of a rounded strategy, where they do not follow from mean errors alone.
    confidence
        Of the intervals that tolerances are about.
    importances
        One per goal; None where all are alike, or differ within a statement.
    even
        The weight of each goal at the start; 1 by default.
    """

    objective: Objective
    workload: Workload
    columns: StatementColumns
    shares: sp.csr_array
    exact_squares: Calibrate | None = None
    confidence: float | None = None
    importances: tuple[float, ...] | None = None
    even: Floats = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "even", np.broadcast_to(self.even, self.shares.shape[:1]))

    @property
    def compared(self) -> Goals | None:
        """What a plan states its ratios by: goals that are shares of an even split."""
        return None if self.exact_squares else self

    def mean(self, squares: Floats, emphasis: Floats) -> float:
        """The mean of squared ratios by the weights that a search with an emphasis gives them."""
        weights = emphasis if self.importances is None else emphasis * np.array(self.importances)
        return float(weights @ squares / weights.sum())

    def squares(self, means: Floats) -> Floats:
        """The squared ratio of each goal, from the mean error of each column."""
        return np.asarray(self.shares @ means)

    def squares_of(self, measured: Measured, reconstruction: Reconstruction) -> Floats:
        """The squared ratio of each goal for a rounded strategy."""
        if self.exact_squares is not None:
            return self.exact_squares(measured, reconstruction)
        return self.squares(column_errors(self.columns, measured, reconstruction))

    def scaled(self, rough: Floats, exact: Floats) -> Goals:
        """The goals whose squared ratios are ``exact`` where those of these goals are ``rough``."""
        factors = np.divide(exact, rough, out=np.ones(len(rough)), where=(rough > 0) & (exact > 0))
        return replace(self, shares=sp.csr_array(sp.diags_array(factors) @ self.shares))

    @property
    def own_importance(self) -> Floats | None:
        """The importances that multiply the weights of an objective."""
        return None if self.objective == "within" else self.workload.importance

    def column_weights(self, emphasis: Floats) -> Floats:
        """The weight of the queries of each column, the largest being 1."""
        weights = np.asarray(self.shares.T @ emphasis) / self.columns.sizes
        # Weight of a column that no goal is about, relative to the least of the others.
        weights[weights == 0] = 0.01 * weights[weights > 0].min()
        return np.asarray(weights / weights.max())

    def weighted(self, emphasis: Floats) -> Workload:
        """The batch with the weights of its columns, times its own importances."""
        weights, own = self.column_weights(emphasis)[self.columns.of_row], self.own_importance
        return replace(self.workload, importance=weights if own is None else weights * own)

    def score(self, squares: Floats) -> tuple[float, ...]:
        """What is minimised: the largest squared ratio, or what of it is above 1; then the mean.

        Where statements are balanced, a small part of the largest is added to the mean.
        """
        most, mean = float(squares.max()), self.mean(squares, self.even)
        if self.objective != "balanced":
            return most, mean
        # Where none is above 0.7, others would have larger errors for nothing; elsewhere the
        # largest ratio falls by 1 to 11 % for at most 1.4 % (`python -m benchmarks statements`).
        return max(most, ENOUGH), mean + 0.03 * most + 0.17 * max(most - 0.7, 0.0)

    def raised(self, emphasis: Floats, squares: Floats) -> Floats | None:
        """Other weights, by which the largest ratios fall; None where none need to.

        Balanced ones may always fall: it is the score that says whether the others rise by more.
        """
        most = float(squares.max())
        power = 0.7  # the weight of a goal grows with its squared ratio to this power
        if self.objective != "balanced":
            # No strategy has a smaller mean by these weights, so none has a smaller maximum.
            # The largest squared ratio over the mean by their weights, which bounds it from below,
            # where both are as good as equal.
            if most <= 1.002 * self.mean(squares, emphasis):
                return None
            raised = emphasis * (squares / most) ** power
            # Weight of a goal that is met by far, relative to the largest.
            return np.asarray(np.maximum(raised / raised.max(), 1e-3))
        # Where importances differ within a statement, its mean error may be above 1.
        differ = self.workload.importance is not None and self.importances is None
        if differ:
            return None
        # What a round tries to bring the largest squared ratio to: a little less than `ENOUGH`, for
        # rounding to integers costs up to half a percent.
        wanted = 0.985 if most > ENOUGH else 0.97 * most
        return np.asarray(emphasis * np.maximum(squares / wanted, 1.0) ** (2 * power))
