"""Releases from files: what follows from the plan and the measurements is computed again."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lrm.errors import FileFormatError
from lrm.files.archive import blaming, parse_archive, read_archive
from lrm.files.facts import Arrays, Facts
from lrm.planning.plan.file import unpack_plan
from lrm.privacy.budget import ZCDP, ApproxDP, Privacy, PureDP
from lrm.privacy.unit import PrivacyUnit
from lrm.releases.core import FACTS, VERSION, Release, states_results

SIGMAS = 8
"""Standard errors of a simulated variance by which two samples may differ."""

ROUNDED = 1e-6
"""How far a stated result may lie from the computed one, relatively."""


def _privacy(facts: Facts) -> Privacy:
    words = facts.any("privacy")
    guarantee = words.get("guarantee") if isinstance(words, dict) else None
    if guarantee == "pure":
        return PureDP(facts.part("privacy", ["guarantee", "epsilon"]).fraction("epsilon"))
    if guarantee == "zCDP":
        return ZCDP(facts.part("privacy", ["guarantee", "rho"]).fraction("rho"))
    if guarantee == "approximate":
        both = facts.part("privacy", ["guarantee", "epsilon", "delta"])
        return ApproxDP(both.fraction("epsilon"), both.fraction("delta"))
    raise FileFormatError("the guarantee must be 'pure', 'zCDP' or 'approximate'")


def load_release(path: str | os.PathLike[str]) -> Release:
    """Read a release; a damaged, foreign or newer file raises ``FileFormatError``.

    The guarantee, the unit, the noisy measurements and the head of the ledger are read as they are.
    Everything else is computed again, and a file that disagrees is rejected: the noise that the
    guarantee needs, and the answers and standard errors where the file states them (up to 100,000).
    """
    return _checked(path, *read_archive(path, "release", VERSION))


def parse_release(data: bytes) -> Release:
    """Read the content of a release file, checked as ``load_release`` checks it."""
    return _checked("the release", *parse_archive("the release", data, "release", VERSION))


def _checked(path: str | os.PathLike[str], values: dict[str, Any], arrays: Arrays) -> Release:
    with blaming(path, "release"):
        facts = Facts(values, FACTS)
        plan = unpack_plan(facts.any("plan"), arrays)
        noise = facts.part("noise", ["distribution", "scale"])
        release = Release(
            plan,
            arrays.take("noisy-measurements", "i8", (plan.measurement_count,)),
            _privacy(facts),
            facts.fraction("loss"),
            noise.text("distribution", r"[A-Za-z ]{1,40}"),
            float.fromhex(noise.text("scale", r"0x1\.[0-9a-f]{1,13}p[+-][0-9]{1,3}")),
            PrivacyUnit.from_facts(facts.any("unit")),
            facts.flag("simulated"),
            facts.text("software", r"[ -~]{1,100}"),
            facts.optional(
                "ledger_head", lambda name: facts.text(name, r"[0-9]{1,18}:[0-9a-f]{64}")
            ),
        )
        _check_same(release, arrays)
        arrays.check_all_taken()
        return release


def _check_same(release: Release, arrays: Arrays) -> None:
    """Compare the results that the file states with those that follow from its measurements."""
    if not states_results(release):
        return  # they follow from the measurements, and no other statement is there to check
    count = release.plan.workload.shape[0]
    errors, answers = release.standard_errors, release.answers
    # Beside the noise, or the answer where that is larger: another machine rounds differently.
    tolerance = ROUNDED * (errors + np.abs(answers))
    # Variances of some bodies are simulated, and another version of lrm may draw another sample.
    body = release.plan.measured.body
    simulated = 0.0 if body is None else SIGMAS * body.standard_error * errors
    for name, expected, slack in (
        ("answers", answers, 0.0),
        ("standard-errors", errors, simulated),
    ):
        if not np.all(np.abs(arrays.take(name, "f8", (count,)) - expected) <= tolerance + slack):
            raise FileFormatError(f"its {name} do not follow from its measurements")
