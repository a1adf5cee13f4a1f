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

USUAL, LARGE = "1", "1000000"
"""Amounts of ε, or of ρ with Gaussian noise, at which every case is released from its source: one
whose release goes through files, and one that leaves hardly any noise."""

OTHER_AMOUNTS = ("0.001", "700")
"""Further amounts, at which each plan is released once, from a frame."""

OUTPUTS = ("tables", "answers.csv", "answers.parquet", "answers.xlsx", "answers.json", "answers.md")
"""Files, and a folder of files, that every release is written to; the page is a report."""

DEFAULT_CALL = 1
"""Statements up to which a batch is planned as by default; larger ones are searched quickly."""


@dataclass(frozen=True)
class Prepared:
    """What does not depend on the source of the rows, and is done once for all sources.

    Parameters
    ----------
    batch, plan, loaded_plan
        The batch, its plan, and what was read back from the file of the plan.
    releases
        The release at each of the other amounts.
    printed
        What each command printed, by its name.
    """

    batch: Batch
    plan: lrm.Plan
    loaded_plan: lrm.Plan
    releases: dict[str, lrm.Release]
    printed: dict[str, str]


@dataclass(frozen=True)
class Walk:
    """What a case has made, for the laws to look at.

    Parameters
    ----------
    case, folder
        What was combined, and where the files of its release are.
    prepared
        What does not depend on its source.
    releases
        The release at each amount.
    loaded
        What was read back from the file of the release at the usual amount.
    printed
        What each command printed, by its name.
    """

    case: Any
    folder: Path
    prepared: Prepared
    releases: dict[str, lrm.Release]
    loaded: lrm.Release
    printed: dict[str, str]

    @property
    def batch(self) -> Batch:
        """The batch, with what its answers must be."""
        return self.prepared.batch

    @property
    def plan(self) -> lrm.Plan:
        """The plan as it was made."""
        return self.prepared.plan

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
    prepared = library.prepared(case, lambda: _prepared(case, library, folder))
    releases = {
        amount: _released(case, prepared, library.form(case.source, prepared.batch.domain), amount)
        for amount in (USUAL, LARGE)
    }
    release_file = folder / "answers.lrm"
    releases[USUAL].save(release_file)
    outputs = [part for name in OUTPUTS for part in ("-o", folder / name)]
    printed = {
        "written": _run("show", release_file, *outputs),
        "show": _run("show", release_file),
        "report": _run("report", release_file, "-o", folder / "answers.html"),
    }
    loaded = lrm.load_release(release_file)
    every_release = prepared.releases | releases
    return Walk(case, folder, prepared, every_release, loaded, prepared.printed | printed)


def _prepared(case, library, folder) -> Prepared:
    """The plan of a case, through its file, and its releases at other amounts."""
    batch = batch_of(case, folder)
    plan = _planned(case, batch)
    plan_file = folder / "plan.lrm"
    plan.save(plan_file)
    amount = ("--rho" if case.noise == "gaussian" else "--epsilon", USUAL)
    printed = {"explain": _run("explain", plan_file, *amount)}
    if case.objective == "meet":
        printed["meet"] = _run("explain", plan_file, "--meet")
    prepared = Prepared(batch, plan, lrm.load_plan(plan_file), {}, printed)
    rows = library.form("counts" if case.source == "counts" else "arrow", batch.domain)
    for other in OTHER_AMOUNTS:
        prepared.releases[other] = _released(case, prepared, rows, other)
    return prepared


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


def _released(case, prepared, data, amount) -> lrm.Release:
    """A release of some data at an amount."""
    choices: dict[str, Any] = _argument(case, amount)
    if case.batch == "matrix":
        unit = UNITS[case.unit]
        choices |= {"max_rows": unit.max_rows, "neighbours": unit.neighbours}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # large amounts are weak guarantees
        return lrm.release(prepared.plan, data, ledger=None, **choices)


def _run(*arguments) -> str:
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (arguments[0], result.output, result.exception)
    return result.output
