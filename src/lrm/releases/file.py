"""Releases from files: what follows from the plan and the measurements is computed again."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lrm.errors import FileFormatError
from lrm.files.archive import blaming, parse_archive, read_archive
from lrm.files.facts import Arrays, Facts
from lrm.planning.plan.file import unpack_plan
from lrm.planning.plan.levels import LevelsPlan
from lrm.privacy.budget import ZCDP, ApproxDP, Privacy, PureDP
from lrm.privacy.unit import PrivacyUnit
from lrm.releases.core import FACTS, VERSION, Release, states_results
from lrm.releases.levels import LevelsRelease

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
        if isinstance(plan, LevelsPlan):
            release: Release = _of_levels(plan, facts, arrays)
            _check_same(release, arrays)
            arrays.check_all_taken()
            return release
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
            _ledger_head(facts),
        )
        _check_same(release, arrays)
        arrays.check_all_taken()
        return release


def _of_levels(plan: LevelsPlan, facts: Facts, arrays: Arrays) -> LevelsRelease:
    """A release over several levels, each of which is checked as a release by itself."""
    values = arrays.take("noisy-measurements", "i8", (plan.measurement_count,))
    privacy, stated, parts, start = _privacy(facts), facts.any("noise"), [], 0
    levels = plan.releases(privacy)
    if not isinstance(stated, list) or len(stated) != len(levels):
        raise FileFormatError("each level must have its noise")
    for (level, guarantee), entry in zip(levels, stated, strict=True):
        noise = Facts(entry, ["distribution", "scale", "loss"], "the noise of a level")
        stop = start + level.measurement_count
        parts.append(
            Release(
                level,
                values[start:stop],
                guarantee,
                noise.fraction("loss"),
                noise.text("distribution", r"[A-Za-z ]{1,40}"),
                float.fromhex(noise.text("scale", r"0x1\.[0-9a-f]{1,13}p[+-][0-9]{1,3}")),
                level.unit,
                facts.flag("simulated"),
                facts.text("software", r"[ -~]{1,100}"),
                _ledger_head(facts),
            )
        )
        start = stop
    unit = PrivacyUnit.from_facts(facts.any("unit"))
    release = LevelsRelease.of(plan, parts, privacy, unit, _ledger_head(facts))
    if facts.fraction("loss") != release.loss:
        raise FileFormatError("the stated privacy loss is not that of the noise")
    return release


def _ledger_head(facts: Facts) -> str | None:
    return facts.optional("ledger_head", lambda name: facts.text(name, r"[0-9]{1,18}:[0-9a-f]{64}"))


def _check_same(release: Release, arrays: Arrays) -> None:
    """Compare the results that the file states with those that follow from its measurements."""
    if not states_results(release):
        return  # they follow from the measurements, and no other statement is there to check
    count = release.plan.workload.shape[0]
    errors, answers = release.standard_errors, release.answers
    # Beside the noise, or the answer where that is larger: another machine rounds differently.
    tolerance = ROUNDED * (errors + np.abs(answers))
    # Variances of some bodies are simulated, and another version of lrm may draw another sample.
    bodies = [level.plan.measured.body for level in release.levels]
    relative = max(0.0 if body is None else body.standard_error for body in bodies)
    simulated = SIGMAS * relative * errors
    for name, expected, slack in (
        ("answers", answers, 0.0),
        ("standard-errors", errors, simulated),
    ):
        if not np.all(np.abs(arrays.take(name, "f8", (count,)) - expected) <= tolerance + slack):
            raise FileFormatError(f"its {name} do not follow from its measurements")
