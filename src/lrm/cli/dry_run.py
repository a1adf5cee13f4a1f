"""``lrm release --dry-run``: what a release would cost, and what error to expect."""

from typing import TYPE_CHECKING, Any

from lrm.cli.output import echo
from lrm.cli.promises import Promise, spell_amount

if TYPE_CHECKING:
    from lrm.accuracy import Accuracy
    from lrm.ledger import Budget
    from lrm.plans import Plan
    from lrm.releases import Intent

__all__ = ["print_dry_run"]


def print_dry_run(plan: "Plan", promise: Promise, choices: dict[str, Any]) -> None:
    """Check all that a release checks, and tell; spends nothing and reads no row."""
    from lrm.cli.output import print_json
    from lrm.releases import intend

    relation, rows = choices["neighbours"], choices["max_rows"]
    intent = intend(plan, **promise.amounts, neighbours=relation, max_rows=rows)
    payer = _check_source(plan, choices)
    after = _preview(intent, payer, choices["ledger"])
    expected = promise.accuracy(plan, intent.unit)
    confidence, limit = choices["confidence"], choices["limit"]
    if choices["as_json"]:
        print_json(_fields(intent, after, expected, confidence))
        return
    _print(intent, after, expected, confidence, limit)


def _check_source(plan: "Plan", choices: dict[str, Any]) -> str:
    """Check the table (names and types of its columns) or the file; return who would pay."""
    from lrm.cli.release_checks import check_counts_file
    from lrm.releases import domain_of
    from lrm.tables import open_table

    if choices["table"] is None:
        check_counts_file(choices["counts"])
        return choices["budget"] or ""
    domain = domain_of(plan)
    table = open_table(choices["table"])
    table.check(domain)
    return choices["budget"] or domain.table or table.name


def _preview(intent: "Intent", payer: str, ledger: str | None) -> "Budget | None":
    """The budget as it would be afterwards; refused as the release would be."""
    from lrm.ledger import Ledger

    return (
        None
        if ledger is None
        else Ledger.open(ledger).preview(payer, intent.cost, unit=intent.unit)
    )


def _fields(
    intent: "Intent", after: "Budget | None", expected: "Accuracy", confidence: float
) -> dict[str, Any]:
    from lrm.cli.explain import worst_queries
    from lrm.releases.file import privacy_facts

    budget = None
    if after is not None:
        budget = {
            "name": after.table,
            "accounting": after.accounting.value,
            "unit": after.unit.facts,
            "limit": str(after.limit),
            "cost": str(after.cost(intent.cost, intent.unit)),
            "remaining_after": str(after.remaining),
        }
    return {
        "dry_run": True,
        "privacy": privacy_facts(intent.noise.privacy),
        "cost": privacy_facts(intent.cost),
        "budget": budget,
        "unit": intent.unit.facts,
        "expected_squared_error": expected.squared_error,
        "root_mean_squared_error": expected.root_mean_squared_error,
        "confidence": confidence,
        "queries": [
            {**label.facts, "standard_error": error, "half_width": half}
            for label, error, half in worst_queries(intent.plan, expected, confidence, None)
        ],
    }


def _print(
    intent: "Intent", after: "Budget | None", expected: "Accuracy", confidence: float, limit: int
) -> None:
    from lrm.cli.explain import print_worst
    from lrm.cli.output import number, print_facts
    from lrm.releases.promise import parameter_words

    print_facts(
        [
            ("promise", f"{parameter_words(intent.noise.privacy)}, for {intent.unit.words}"),
            *_cost_lines(intent, after),
            ("total error", f"{number(expected.squared_error, 6)} (expected, squared)"),
            ("a query's error", f"{number(expected.root_mean_squared_error)} (root mean square)"),
        ]
    )
    print_worst(intent.plan, expected, confidence, limit)
    echo("a dry run: nothing was spent, and no row was read")


def _cost_lines(intent: "Intent", after: "Budget | None") -> list[tuple[str, str]]:
    from lrm.privacy.budget import PureDP

    if after is None:
        cost = intent.cost
        pure = isinstance(cost, PureDP)
        amount = spell_amount(cost.epsilon if isinstance(cost, PureDP) else cost.rho, "up")
        spelt = f"{amount} {'epsilon' if pure else 'rho'}"
        return [("would spend", f"{spelt}, which no ledger would record")]
    name = after.accounting.value
    paid = spell_amount(after.cost(intent.cost, intent.unit), "up")
    left = spell_amount(after.remaining, "down")
    return [
        ("would spend", f"{paid} {name} from the budget of '{after.table}'"),
        ("would leave", f"{left} of {spell_amount(after.limit, 'down')} {name}"),
    ]
