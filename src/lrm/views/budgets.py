"""What the budgets and the entries of a ledger tell."""

from __future__ import annotations

from typing import Any

from lrm.ledger import Budget, Entry
from lrm.privacy.amounts import spell_amount

__all__ = [
    "BUDGET_COLUMNS",
    "ENTRY_COLUMNS",
    "budget_facts",
    "budget_row",
    "entry_facts",
    "entry_row",
]

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
