"""What the budgets and the entries of a ledger tell, and what a release would cost."""

from __future__ import annotations

from typing import Any

from lrm.ledger import Budget, Entry
from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import PureDP
from lrm.releases import Preview
from lrm.views.plans import Lines, error_facts
from lrm.views.statement_errors import StatementErrors, kind_lines

BUDGET_COLUMNS = ("table", "accounting", "limit", "spent", "remaining")
ENTRY_COLUMNS = ("#", "date", "table", "entry", "amount", "purpose")


def budget_facts(budget: Budget) -> dict[str, Any]:
    """A budget with its exact amounts."""
    return {
        "table": budget.table,
        "accounting": budget.accounting.value,
        "unit": budget.unit.facts,
        "limit": str(budget.limit),
        "spent": str(budget.spent),
        "remaining": str(budget.remaining),
    }


def budget_row(budget: Budget) -> tuple[str, ...]:
    """A budget as text, in `BUDGET_COLUMNS`: what was spent rounded up, what remains down."""
    limit, remaining = (spell_amount(amount, "down") for amount in (budget.limit, budget.remaining))
    spent = spell_amount(budget.spent, "up")
    return (budget.table, budget.accounting.value, limit, spent, remaining)


def budget_lines(budget: Budget) -> Lines:
    """A budget as names and values, and whom it protects."""
    lines = zip(BUDGET_COLUMNS, budget_row(budget), strict=True)
    return [*lines, ("protects", budget.unit.words)]


def entry_facts(entry: Entry) -> dict[str, Any]:
    """An entry of the history with its exact amount."""
    return {
        "sequence": entry.sequence,
        "kind": entry.kind.value,
        "table": entry.table,
        "accounting": entry.accounting.value,
        "unit": entry.unit.facts,
        "amount": str(entry.amount),
        "promise": entry.promise,
        "purpose": entry.purpose,
        "time": entry.time,
        "digest": entry.digest,
    }


def entry_row(entry: Entry) -> tuple[str, ...]:
    """An entry as text, in `ENTRY_COLUMNS`: a limit rounded down, what was spent up."""
    kind = entry.kind.value
    amount = spell_amount(entry.amount, "down" if kind == "create" else "up")
    spelt = f"{amount} {entry.accounting.value}"
    return (str(entry.sequence), entry.time[:10], entry.table, kind, spelt, entry.purpose)


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
    """A preview as text, without the queries."""
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
