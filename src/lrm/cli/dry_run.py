"""``lrm release --dry-run``: what a release would cost, and what error to expect."""

from typing import TYPE_CHECKING, Any

from lrm.cli.output import echo
from lrm.cli.promises import spell_amount

if TYPE_CHECKING:
    from lrm.releases import Preview

__all__ = ["print_preview"]


def print_preview(told: "Preview", choices: dict[str, Any]) -> None:
    """Tell what a release would cost and how accurate it would be."""
    from lrm.cli.output import print_json

    if choices["as_json"]:
        print_json(_fields(told, choices["confidence"]))
    else:
        _print(told, choices["confidence"], choices["limit"])


def _fields(told: "Preview", confidence: float) -> dict[str, Any]:
    from lrm.cli.explain import worst_queries
    from lrm.releases.file import privacy_facts

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
        "expected_squared_error": told.accuracy.squared_error,
        "root_mean_squared_error": told.accuracy.root_mean_squared_error,
        "confidence": confidence,
        "queries": [
            {**label.facts, "standard_error": error, "half_width": half}
            for label, error, half in worst_queries(told.plan, told.accuracy, confidence, None)
        ],
    }


def _print(told: "Preview", confidence: float, limit: int) -> None:
    from lrm.cli.explain import print_worst
    from lrm.cli.output import number, print_facts
    from lrm.showing.spelling import parameter_words

    expected = told.accuracy
    print_facts(
        [
            ("promise", f"{parameter_words(told.privacy)}, for {told.unit.words}"),
            *_cost_lines(told),
            ("total error", f"{number(expected.squared_error, 6)} (expected, squared)"),
            ("a query's error", f"{number(expected.root_mean_squared_error)} (root mean square)"),
        ]
    )
    print_worst(told.plan, expected, confidence, limit)
    echo("a dry run: nothing was spent, and no row was read")


def _cost_lines(told: "Preview") -> list[tuple[str, str]]:
    from lrm.privacy.budget import PureDP

    after = told.budget
    if after is None:
        pure = isinstance(told.cost, PureDP)
        amount = told.cost.epsilon if isinstance(told.cost, PureDP) else told.cost.rho
        spelt = f"{spell_amount(amount, 'up')} {'epsilon' if pure else 'rho'}"
        return [("would spend", f"{spelt}, which no ledger would record")]
    name = after.accounting.value
    paid = spell_amount(after.cost(told.cost, told.unit), "up")
    left = spell_amount(after.remaining, "down")
    return [
        ("would spend", f"{paid} {name} from the budget of '{after.table}'"),
        ("would leave", f"{left} of {spell_amount(after.limit, 'down')} {name}"),
    ]
