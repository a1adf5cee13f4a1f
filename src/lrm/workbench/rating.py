"""What a plan says about the errors of a batch, at any guarantee, without planning again."""

from __future__ import annotations

import math
import threading
from dataclasses import asdict
from fractions import Fraction
from functools import cached_property

from lrm.errors import BudgetError, UsageError
from lrm.planning.accuracy import amount_for_error
from lrm.planning.plan import Plan
from lrm.planning.plan.comparison import Comparison, Outcome
from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import ZCDP, Privacy, PureDP
from lrm.privacy.norms import unit_privacy
from lrm.queries.maps.linear import Floats
from lrm.views.baselines import baseline_table, errors_by_mechanism
from lrm.views.blocks import Block, Prose, Table
from lrm.views.comparisons import advice, side_by_side_facts
from lrm.views.plans import worst_blocks
from lrm.views.statement_errors import StatementError, StatementErrors, comparable_rows

TOP = 30
"""Answers that are listed one by one, the largest errors first."""


class Rated:
    """A plan, and what is needed to rate it at once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._statements = StatementErrors(plan)
        self._lock = threading.Lock()

    def at(self, privacy: Privacy, confidence: float) -> list[StatementError]:
        """The errors of the statements at a guarantee."""
        with self._lock:
            return self._statements.at(self.plan.accuracy(privacy), confidence)

    def privacy_for(self, statement: str, target: float) -> PureDP | ZCDP:
        """The least amount with which no answer of a statement has a larger standard error."""
        promise = self.plan.measured.norm.guarantee
        names = [part.statement.name for part in self._statements.parts]

        def error_at(amount: Fraction) -> float:
            return float(self._statements.largest(self.plan.accuracy(promise(amount)))[place])

        with self._lock:
            place = names.index(statement) if statement in names else None
            if place is not None and math.isnan(error_at(Fraction(1))):
                raise BudgetError(
                    "the errors of rates and averages depend on the rows of a group; state them "
                    "with `-- expected: 500` before the statement"
                )
            if place is None or not error_at(Fraction(1)):
                raise BudgetError("the answers of this statement have no error at any amount")
            return promise(amount_for_error(error_at, target))

    def worst(self, privacy: Privacy, confidence: float) -> Block:
        """The answers of largest error, one by one."""
        accuracy = self.plan.accuracy(privacy)
        return next(iter(worst_blocks(self.plan, accuracy, confidence, TOP)), Prose(()))

    @cached_property
    def _rivals(self) -> dict[str, Floats]:
        return errors_by_mechanism(
            self.plan, self.plan.accuracy(unit_privacy(self.plan.noise)).nominal
        )

    def rivals(self, privacy: Privacy) -> Table:
        """Simpler mechanisms on the same batch at the same guarantee."""
        unit = self.plan.accuracy(unit_privacy(self.plan.noise))
        scale = self.plan.accuracy(privacy).ideal_deviation(1.0) / unit.ideal_deviation(1.0)
        with self._lock:
            scaled = {name: errors * scale for name, errors in self._rivals.items()}
        _, rows = comparable_rows(self.plan.workload)
        scaled[self.plan.mechanism] = self.plan.accuracy(privacy).standard_errors[rows]
        return baseline_table(self.plan, scaled, privacy.symbols)


def advice_between(laplace: Plan, gaussian: Plan, pure: Privacy, approximate: Privacy) -> str:
    """Noise for pure epsilon or Gaussian noise: which to take."""
    both = (Comparison((Outcome("best", plan),)) for plan in (laplace, gaussian))
    return advice(side_by_side_facts(both, pure, approximate))


def tolerated(rated: Rated, confidence: float) -> dict[str, str]:
    """The least amount at which all answers are within the tolerances of their statements."""
    met = rated.plan.meets(confidence)
    names = ", ".join(dict.fromkeys(entry.statement.title for entry in met.determining))
    return {**_amount(met.privacy), "because": f"It is determined by {names}."}


def inverse(rated: Rated, target: float, statement: int | None) -> dict[str, str]:
    """The least amount with which a typical count, or the worst of a statement, has an error."""
    plan = rated.plan
    if statement is None:
        privacy = plan.privacy_for(rmse=target)
    elif not target > 0:
        raise BudgetError(f"the wanted error must be a number above 0, not {target:g}")
    else:
        tables = plan.workload.tables
        if not 0 <= statement < len(tables):
            raise UsageError("the plan has no such statement; wait until the batch is planned")
        privacy = rated.privacy_for(tables[statement].name, target)
    return _amount(privacy)


def _amount(privacy: Privacy) -> dict[str, str]:
    ((name, amount),) = asdict(privacy).items()
    return {"name": name, "amount": spell_amount(amount, "up"), "exact": str(amount)}
