"""What `lrm release` checks before anything is spent or read."""

from typing import Any

import click

from lrm.errors import BudgetError

__all__ = ["check_choices", "check_confidence", "check_places"]


def check_choices(choices: dict[str, Any]) -> None:
    """Refuse options that leave open, or contradict, what is read and what is charged."""
    if (choices["table"] is None) == (choices["counts"] is None):
        raise click.UsageError("give --table, or --counts with the counts of the cells")
    if choices["ledger"] is not None and choices["no_ledger"]:
        raise click.UsageError("--no-ledger contradicts --ledger (or LRM_LEDGER); leave one out")
    unpaid = choices["ledger"] is None
    if unpaid and not choices["no_ledger"] and not choices["dry_run"]:
        raise click.UsageError(
            "give the ledger to charge with --ledger (`lrm budget create` makes one), or "
            "--no-ledger to release without a record of what is spent"
        )
    if unpaid and choices["budget"] is not None:
        raise click.UsageError("--budget names a budget of a ledger; add --ledger")
    if choices["output"] is None and not choices["dry_run"]:
        raise click.UsageError("give the file for the release with -o")


def check_places(plan: str, choices: dict[str, Any]) -> None:
    """Refuse places that cannot be written, or that hold an input."""
    from lrm.cli.output_files import check_apart, check_output

    outputs = {"--output": choices["output"], "--csv": choices["csv"]}
    inputs = {"PLAN": plan, "--counts": choices["counts"], "--ledger": choices["ledger"]}
    if choices["table"] is not None:
        inputs["--table"] = choices["table"].partition("::")[0]
    check_apart(outputs, inputs)
    for place in outputs.values():
        check_output(place, force=choices["force"] or choices["dry_run"])


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval has."""
    if not 0 < confidence < 1:
        raise BudgetError(f"confidence must be between 0 and 1, not {confidence}; 0.95 is usual")
