"""Releases into files: the plan, the noisy measurements, and what they say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lrm.files.archive import write_archive
from lrm.plans.saving import pack_plan

if TYPE_CHECKING:  # a release saves itself through this module
    from lrm.releases.core import Release

__all__ = ["FACTS", "VERSION", "save_release", "states_results"]

VERSION = 5

STATED_ANSWERS = 100_000
"""Answers up to which a file states them next to the measurements that they follow from."""

FACTS = (
    "software",
    "simulated",
    "privacy",
    "loss",
    "unit",
    "noise",
    "ledger_head",
    "plan",
)
"""What a release file states."""


def states_results(release: Release) -> bool:
    """Whether a file states answers and standard errors, which follow from the measurements."""
    return release.plan.workload.shape[0] <= STATED_ANSWERS


def save_release(release: Release, path: str | os.PathLike[str]) -> None:
    """Write ``release`` to ``path``, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {}
    plan = pack_plan(release.plan, arrays)
    arrays["noisy-measurements"] = release.noisy_measurements
    if states_results(release):
        arrays["answers"] = release.answers
        arrays["standard-errors"] = release.standard_errors
    facts = {
        "software": release.software,
        "simulated": release.simulated,
        "privacy": release.privacy.facts,
        "loss": str(release.loss),
        "unit": release.unit.facts,
        "noise": {"distribution": release.distribution, "scale": release.scale.hex()},
        "ledger_head": release.ledger_head,
        "plan": plan,
    }
    write_archive(path, "release", VERSION, facts, arrays)
