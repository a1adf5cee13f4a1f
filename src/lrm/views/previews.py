"""What a release would cost, and how accurate it would be."""

from __future__ import annotations

from typing import Any

from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import PureDP
from lrm.releases import Preview
from lrm.views.plans import Lines, error_facts
from lrm.views.statement_errors import StatementErrors, kind_lines

__all__ = ["preview_facts", "preview_lines"]


def preview_facts(preview: Preview, confidence: float) -> dict[str, Any]:
    """What a release would cost, and how accurate it would be."""
    after, budget = preview.budget, None
    if after is not None:
        budget = {
            "name": after.table,
            "accounting": after.accounting.value,
            "unit": after.unit.facts,
            "limit": str(after.limit),
            "cost": str(after.cost(preview.cost, preview.unit)),
            "remaining_after": str(after.remaining),
        }
    return {
        "dry_run": True,
        "privacy": preview.privacy.facts,
        "cost": preview.cost.facts,
        "budget": budget,
        "unit": preview.unit.facts,
        "warnings": list(preview.plan.warnings),
        **error_facts(preview.plan, preview.accuracy, confidence, None),
    }


def preview_lines(preview: Preview) -> Lines:
    """The same as text, without the queries."""
    errors = StatementErrors(preview.plan).at(preview.accuracy)
    promise = ("guarantee", preview.privacy.words(preview.unit))
    return [promise, *_cost_lines(preview), *kind_lines(errors)]


def _cost_lines(preview: Preview) -> Lines:
    after, cost = preview.budget, preview.cost
    if after is None:
        name, amount = ("epsilon", cost.epsilon) if isinstance(cost, PureDP) else ("rho", cost.rho)
        spelt = f"{spell_amount(amount, 'up')} {name}"
        return [("would spend", f"{spelt}, which no ledger would record")]
    name = after.accounting.value
    paid = spell_amount(after.cost(cost, preview.unit), "up")
    left, limit = (spell_amount(amount, "down") for amount in (after.remaining, after.limit))
    return [
        ("would spend", f"{paid} {name} from the budget of '{after.table}'"),
        ("would leave", f"{left} of {limit} {name}"),
    ]
