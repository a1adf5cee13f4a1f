"""What the statements of a batch are compared with, and the weights that balance their errors.

A statement is compared with what it would have under an *even split*: planned alone, with an S-th
of the budget for each of S statements. For Laplace noise that is S² times its squared error alone,
for Gaussian noise S times (ρ adds up). The error of a statement is the mean over its columns of the
mean squared error of the column, each relative to that of the column planned alone, so that counts
and sums of money count alike.

``balanced`` minimises the sum over statements of their squared ratios. That is a weighted total:
the weight of a query of column c is ``Σ 1/(C·n_c·a_c·E_s)`` over the statements s that it serves,
with C columns of n_c queries, a_c the error of the column alone and E_s that of the statement.
``worst`` minimises the largest ratio, by raising the weights of statements above the others.
See docs/explanation/statements.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lrm.errors import WorkloadError
from lrm.maps.linear import Floats
from lrm.privacy.budget import Noise
from lrm.workload.columns import StatementColumns

__all__ = ["OBJECTIVES", "Balance", "Objective"]

Objective = Literal["total", "balanced", "worst"]
OBJECTIVES = ("total", "balanced", "worst")


@dataclass(frozen=True, eq=False)
class Balance:
    """What statements are compared with, and what was minimised.

    Parameters
    ----------
    objective
        ``"balanced"`` or ``"worst"``.
    columns
        a_c of each column: its mean squared error when planned alone, as ``‖B‖²·Δ²``.
    statements
        E_s of each statement, planned alone: its error relative to its columns.
    batch
        The digest of the batch as it was asked for, without the weights that were found.
    """

    objective: Objective
    columns: tuple[float, ...]
    statements: tuple[float, ...]
    batch: str

    def __post_init__(self) -> None:
        positive = all(0 < one < math.inf for one in (*self.columns, *self.statements))
        if self.objective not in OBJECTIVES[1:] or len(self.statements) < 2 or not positive:
            raise WorkloadError("the errors of statements alone must be numbers above 0")

    @property
    def facts(self) -> dict[str, object]:
        """As a plan file holds it."""
        return {
            "objective": self.objective,
            "columns": list(self.columns),
            "statements": list(self.statements),
            "batch": self.batch,
        }

    @classmethod
    def from_facts(cls, facts: object) -> Balance | None:
        """Read what `facts` returned, or None; anything else is a WorkloadError."""
        if facts is None:
            return None
        keys = {"objective", "columns", "statements", "batch"}
        if not isinstance(facts, dict) or set(facts) != keys or type(facts["batch"]) is not str:
            raise WorkloadError("'balance' must be an object of JSON with four facts")
        lists = [facts["columns"], facts["statements"]]
        if not all(
            isinstance(one, list) and all(type(x) in {int, float} for x in one) for one in lists
        ):
            raise WorkloadError("'balance' must hold lists of numbers")
        columns, statements = (tuple(map(float, one)) for one in lists)
        return cls(facts["objective"], columns, statements, facts["batch"])

    def check(self, columns: StatementColumns) -> None:
        """Refuse numbers that are not those of a batch with these columns."""
        if (len(self.columns), len(self.statements)) != (
            len(columns.sizes),
            len(columns.statements),
        ):
            raise WorkloadError("the errors of statements alone are not those of the batch")

    def ratios(self, columns: StatementColumns, errors: Floats, noise: Noise) -> Floats:
        """The standard error of each statement beside that under an even split.

        ``errors`` is ``‖B‖²·Δ²`` of each query.
        """
        return np.sqrt(self.squared_ratios(columns, columns.means(errors), noise))

    def squared_ratios(self, columns: StatementColumns, means: Floats, noise: Noise) -> Floats:
        """The squares of `ratios`, from the mean error of each column."""
        count = len(self.statements)
        split = count if noise == "gaussian" else count**2
        relative = means / np.array(self.columns)
        own = np.array([relative[list(one)].mean() for one in columns.statements])
        return np.asarray(own / (split * np.array(self.statements)))

    def importance(self, columns: StatementColumns, emphasis: Floats) -> Floats:
        """The weight of each column's queries, the largest being 1.

        ``emphasis`` multiplies that of each statement.
        """
        weights = np.zeros(len(self.columns))
        for one, error, more in zip(columns.statements, self.statements, emphasis, strict=True):
            own = list(one)
            divisor = len(own) * columns.sizes[own] * np.array(self.columns)[own]
            weights[own] += more / (divisor * error)
        weights[weights == 0] = weights[weights > 0].min()
        return np.asarray(weights / weights.max())
