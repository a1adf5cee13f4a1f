"""What the budgets and the entries of a ledger tell, and what a release would cost."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from lrm.ledger import Accounting, Budget, Entry
from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import PureDP
from lrm.releases import Preview
from lrm.views.plans import Lines, error_facts
from lrm.views.statement_errors import StatementErrors, kind_lines

BUDGET_COLUMNS = ("table", "accounting", "limit", "spent", "remaining")
ACCOUNT_COLUMNS = ("table", "edition", "spent", "remaining")
ENTRY_COLUMNS = ("#", "date", "table", "entry", "amount", "purpose")


def budget_facts(budget: Budget) -> dict[str, Any]:
    """A budget with its exact amounts."""
    facts: dict[str, Any] = {
        "table": budget.table,
        "accounting": budget.accounting.value,
        "unit": budget.unit.facts,
        "limit": str(budget.limit),
        "spent": str(budget.spent),
        "remaining": str(budget.remaining),
    }
    if budget.delta is not None:
        facts["delta_limit"], facts["delta_spent"] = (
            str(budget.delta.limit),
            str(budget.delta.spent),
        )
    if budget.unit.period is not None:
        facts["accounts"] = {name: str(spent) for name, spent in sorted(budget.accounts.items())}
    return facts


def budget_row(budget: Budget) -> tuple[str, ...]:
    """A budget as text, in `BUDGET_COLUMNS`: what was spent rounded up, what remains down."""
    limit, remaining = (spell_amount(amount, "down") for amount in (budget.limit, budget.remaining))
    spent = spell_amount(budget.spent, "up")
    return (budget.table, budget.accounting.value, limit, spent, remaining)


def account_rows(budget: Budget) -> list[tuple[str, ...]]:
    """The account of each edition that was charged, in `ACCOUNT_COLUMNS`."""
    rows: list[tuple[str, ...]] = []
    for edition in sorted(budget.accounts):
        account = budget.account(edition)
        spent, left = spell_amount(account.spent, "up"), spell_amount(account.remaining, "down")
        rows.append((budget.table, edition, spent, left))
    return rows


def protects(budget: Budget) -> list[str]:
    """Whom a budget protects; of one per period, what somebody in several editions loses."""
    sentences = [f"'{budget.table}' protects {budget.unit.words}"]
    if budget.delta is not None:
        spent, limit = spell_amount(budget.delta.spent, "up"), spell_amount(budget.delta.limit)
        most = "" if budget.unit.period is None else f", the most in one {budget.unit.period}"
        sentences.append(
            f"discovered values of '{budget.table}' may fail with a probability (delta) of "
            f"{limit}; {spent} is spent{most}"
        )
    if budget.unit.period is not None:
        name = "ε" if budget.accounting is Accounting.EPSILON else "ρ"
        count = len(budget.accounts)
        most = spell_amount(sum(budget.accounts.values(), Fraction(0)), "up")
        sentences.append(
            f"each {budget.unit.period} of '{budget.table}' has an account with this limit; "
            f"whoever is in k of them loses up to the sum of theirs: {name} {most} in all "
            f"{count:,} that were charged"
        )
    return sentences


def budget_lines(budget: Budget) -> Lines:
    """A budget as names and values, and whom it protects."""
    lines = zip(BUDGET_COLUMNS, budget_row(budget), strict=True)
    return [*lines, ("protects", budget.unit.words)]


def entry_facts(entry: Entry) -> dict[str, Any]:
    """An entry of the history with its exact amount."""
    facts = {
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
    more = {"editions": list(entry.editions), "key": entry.key}
    return facts | {name: value for name, value in more.items() if value}


def entry_row(entry: Entry) -> tuple[str, ...]:
    """An entry as text, in `ENTRY_COLUMNS`: a limit rounded down, what was spent up."""
    kind = entry.kind.value
    amount = spell_amount(entry.amount, "down" if kind == "create" else "up")
    spelt = f"{amount} {entry.accounting.value}"
    purpose = f"{entry.purpose}, key {entry.key}" if entry.key else entry.purpose
    if entry.editions:
        purpose += f", {edition_range(entry.editions)}"
    return (str(entry.sequence), entry.time[:10], entry.table, kind, spelt, purpose)


def edition_range(editions: Sequence[str]) -> str:
    """The name of an edition, or of the first and the last of several."""
    return editions[0] if len(editions) == 1 else f"{editions[0]}..{editions[-1]}"


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
