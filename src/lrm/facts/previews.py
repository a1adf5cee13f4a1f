"""What a release would cost, and how accurate it would be."""

from __future__ import annotations

from typing import Any

from lrm.facts.plans import Lines, error_facts, total_lines
from lrm.privacy.budget import PureDP
from lrm.releases import Preview
from lrm.releases.saving import privacy_facts
from lrm.showing.spelling import parameter_words, spell_amount

__all__ = ["preview_facts", "preview_lines"]


def preview_facts(told: Preview, confidence: float) -> dict[str, Any]:
    """What a release would cost, and how accurate it would be."""
    after, budget = told.budget, None
    if after is not None:
        budget = {
            "name": after.table,
            "accounting": after.accounting.value,
            "unit": after.unit.facts,
            "limit": str(after.limit),
            "cost": str(after.cost(told.cost, told.unit)),
            "remaining_after": str(after.remaining),
        }
    return {
        "dry_run": True,
        "privacy": privacy_facts(told.privacy),
        "cost": privacy_facts(told.cost),
        "budget": budget,
        "unit": told.unit.facts,
        **error_facts(told.plan, told.accuracy, confidence, None),
    }


def preview_lines(told: Preview) -> Lines:
    """The same as text, without the queries."""
    promise = ("promise", f"{parameter_words(told.privacy)}, for {told.unit.words}")
    return [promise, *_cost_lines(told), *total_lines(told.accuracy)]


def _cost_lines(told: Preview) -> Lines:
    after, cost = told.budget, told.cost
    if after is None:
        name, amount = ("epsilon", cost.epsilon) if isinstance(cost, PureDP) else ("rho", cost.rho)
        spelt = f"{spell_amount(amount, 'up')} {name}"
        return [("would spend", f"{spelt}, which no ledger would record")]
    name = after.accounting.value
    paid = spell_amount(after.cost(cost, told.unit), "up")
    left, limit = (spell_amount(amount, "down") for amount in (after.remaining, after.limit))
    return [
        ("would spend", f"{paid} {name} from the budget of '{after.table}'"),
        ("would leave", f"{left} of {limit} {name}"),
    ]
