"""Which noise: the best plan for pure ε next to the one for (ε, δ), at the same ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lrm.batches import as_batch
from lrm.domain import Domain
from lrm.plans.core import Plan
from lrm.plans.planner import plan
from lrm.privacy.amounts import Amount, parse_amount
from lrm.privacy.budget import ApproxDP, PureDP, parse_delta
from lrm.workload.columns import statement_columns


@dataclass(frozen=True, eq=False)
class NoiseChoice:
    """Two plans of a batch: for pure ε, and for ε but for a probability δ.

    Parameters
    ----------
    pure, gaussian
        The plans.
    epsilon, delta
        The guarantee that both keep; the first keeps ε alone, which is stronger.
    """

    pure: Plan
    gaussian: Plan
    epsilon: PureDP
    delta: ApproxDP

    @property
    def ratio(self) -> float:
        """Standard errors with Gaussian noise relative to those with the other, typically.

        The geometric mean over the columns of answers.
        """
        columns = statement_columns(self.pure.workload)
        squares = [
            columns.means(made.accuracy(privacy).standard_errors ** 2)
            for made, privacy in ((self.gaussian, self.delta), (self.pure, self.epsilon))
        ]
        some = (squares[0] > 0) & (squares[1] > 0)
        if not some.any():
            return 1.0
        return math.exp(float(np.log(squares[0][some] / squares[1][some]).mean()) / 2)

    @property
    def best(self) -> Plan:
        """The plan with smaller errors; where they are equal, that of the stronger guarantee."""
        return self.gaussian if self.ratio < 1.0 else self.pure


def choose_noise(
    workload: Any,
    epsilon: Amount,
    delta: Amount,
    *,
    domain: Domain | None = None,
    **options: Any,
) -> NoiseChoice:
    """Plan a batch for either noise, to compare them at a guarantee.

    Parameters
    ----------
    workload, domain, options
        As in ``lrm.plan``.
    epsilon, delta
        The guarantee that is wanted.

    Examples
    --------
    >>> choice = choose_noise([[1, 1], [1, 0], [0, 1]], 1, "1e-6", effort="quick")
    >>> choice.best.noise != "gaussian", choice.ratio > 1
    (True, True)
    """
    batch = as_batch(workload, domain)
    amount = parse_amount(epsilon, "epsilon")
    guarantees = PureDP(amount), ApproxDP(amount, parse_delta(delta))
    pure, gaussian = (plan(batch, noise=noise, **options) for noise in ("pure", "gaussian"))
    return NoiseChoice(pure, gaussian, *guarantees)
