"""From a plan to outputs and further queries: everything that people do with one batch."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.errors import PrivacyWarning
from matrix.batches import Batch, batch_of
from matrix.visits import UNITS

AMOUNTS = ("0.001", "1", "700", "1000000")
"""Amounts of ε, or of ρ with Gaussian noise, at which every case is released."""

USUAL, LARGE = "1", AMOUNTS[-1]
"""The amount whose release goes through files, and the one that leaves hardly any noise."""

OUTPUTS = ("tables", "answers.csv", "answers.parquet", "answers.xlsx", "answers.json", "answers.md")
"""Files, and a folder of files, that every release is written to; the page is a report."""

DEFAULT_CALL = 1
"""Statements up to which a batch is planned as by default; larger ones are searched quickly."""


@dataclass(frozen=True)
class Walk:
    """What a case has made, for the laws to look at.

    Parameters
    ----------
    case, batch, folder
        What was combined, and where its files are.
    plan, loaded_plan
        The plan, and what was read back from its file.
    releases
        The release at each amount.
    loaded
        What was read back from the file of the release at the usual amount.
    printed
        What each command printed, by its name.
    """

    case: Any
    batch: Batch
    folder: Path
    plan: lrm.Plan
    loaded_plan: lrm.Plan
    releases: dict[str, lrm.Release]
    loaded: lrm.Release
    printed: dict[str, str]

    @property
    def amount(self) -> dict[str, str]:
        """The usual amount, as an argument of a release."""
        return _argument(self.case, USUAL)

    @property
    def release(self) -> lrm.Release:
        """The release at the usual amount."""
        return self.releases[USUAL]


def walk(case, library, folder) -> Walk:
    """Do everything with the batch of a case, as its user would."""
    batch = batch_of(case, folder)
    plan = _planned(case, batch)
    plan_file, release_file = folder / "plan.lrm", folder / "answers.lrm"
    plan.save(plan_file)
    amount = ("--rho" if case.noise == "gaussian" else "--epsilon", USUAL)
    printed = {"explain": _run("explain", plan_file, *amount)}
    if case.objective == "meet":
        printed["meet"] = _run("explain", plan_file, "--meet")
    releases = {
        each: _released(case, batch, plan, library, each)
        for each in dict.fromkeys((USUAL, *AMOUNTS))
    }
    releases[USUAL].save(release_file)
    outputs = [part for name in OUTPUTS for part in ("-o", folder / name)]
    printed["show"] = _run("show", release_file, *outputs)
    printed["report"] = _run("report", release_file, "-o", folder / "answers.html")
    return Walk(
        case,
        batch,
        folder,
        plan,
        lrm.load_plan(plan_file),
        releases,
        lrm.load_release(release_file),
        printed,
    )


def _planned(case, batch) -> lrm.Plan:
    choices: dict[str, Any] = {"noise": case.noise}
    if case.size > DEFAULT_CALL:
        choices["effort"] = "quick"
    if case.objective == "meet":
        choices["meet"] = 0.95
    elif case.objective != "default":
        choices["objective"] = case.objective
    return lrm.plan(batch.queries, **choices)


def _argument(case, amount) -> dict[str, str]:
    return {"rho" if case.noise == "gaussian" else "epsilon": amount}


def _released(case, batch, plan, library, amount) -> lrm.Release:
    """A release at an amount; only the usual one reads a table from its engine."""
    source = case.source if amount == USUAL or case.source == "counts" else "arrow"
    data = library.form(source, batch.domain)
    choices: dict[str, Any] = _argument(case, amount)
    if case.batch == "matrix":
        unit = UNITS[case.unit]
        choices |= {"max_rows": unit.max_rows, "neighbours": unit.neighbours}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # large amounts are weak guarantees
        return lrm.release(plan, data, ledger=None, **choices)


def _run(*arguments) -> str:
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (arguments[0], result.output, result.exception)
    return result.output
