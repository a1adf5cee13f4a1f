"""What `lrm release` checks before anything is spent or read."""

import os
from pathlib import Path
from typing import Any

import click

from lrm.errors import BudgetError, CountsError, FileFormatError

__all__ = ["check_confidence", "check_counts_file", "check_places", "check_said"]

COUNTS_KINDS = (".csv", ".npy", ".parquet")


def check_said(choices: dict[str, Any]) -> None:
    """Refuse options that leave open, or contradict, what is read and who pays."""
    if (choices["table"] is None) == (choices["counts"] is None):
        raise click.UsageError("give --table, or --counts of the cells, to say what is counted")
    if choices["ledger"] is not None and choices["no_ledger"]:
        raise click.UsageError("--no-ledger contradicts --ledger (or LRM_LEDGER); leave one out")
    unpaid = choices["ledger"] is None
    if unpaid and not choices["no_ledger"] and not choices["dry_run"]:
        raise click.UsageError(
            "a release without a ledger needs --no-ledger said out loud: nothing else records "
            "what is spent"
        )
    if unpaid and choices["budget"] is not None:
        raise click.UsageError("--budget names a budget of a ledger; add --ledger")
    if choices["output"] is None and not choices["dry_run"]:
        raise click.UsageError("say with -o where the release goes")
    if choices["table"] is None and not unpaid and choices["budget"] is None:
        raise click.UsageError("counts do not name their table; say with --budget who pays")
    if choices["table"] is not None and (choices["neighbours"] or choices["max_rows"]):
        raise click.UsageError(
            "the domain declares whom the promise protects; leave out --neighbours and --max-rows"
        )


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
        raise BudgetError(
            f"confidence must lie between 0 and 1, but {confidence} came; 0.95 is usual"
        )


def check_counts_file(path: str) -> None:
    """Refuse a file of counts that could not be read, without looking into it."""
    file = Path(path)
    if file.suffix.lower() not in COUNTS_KINDS:
        raise CountsError(
            f"counts are read from {', '.join(COUNTS_KINDS)} files, but the name is "
            f"{file.name!r}; save them as one of those"
        )
    if not file.is_file() or not os.access(file, os.R_OK):
        raise FileFormatError(f"cannot read the counts {file}; check the name and its rights")
