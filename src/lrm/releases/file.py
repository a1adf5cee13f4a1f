"""Releases as files: the plan, the noisy measurements, and what they say."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.archive import read_archive, write_archive
from lrm.errors import FileFormatError, LrmError
from lrm.plans.file import pack_plan, unpack_plan
from lrm.privacy.amounts import format_amount
from lrm.privacy.budget import ZCDP, ApproxDP, Privacy, PureDP
from lrm.privacy.unit import PrivacyUnit
from lrm.releases.core import Release

__all__ = ["load_release", "privacy_facts", "save_release"]

VERSION = 2


def privacy_facts(privacy: Privacy) -> dict[str, str]:
    """A promise in plain words and exact amounts."""
    if isinstance(privacy, PureDP):
        return {"guarantee": "pure", "epsilon": format_amount(privacy.epsilon)}
    if isinstance(privacy, ZCDP):
        return {"guarantee": "zCDP", "rho": format_amount(privacy.rho)}
    return {
        "guarantee": "approximate",
        "epsilon": format_amount(privacy.epsilon),
        "delta": format_amount(privacy.delta),
    }


def _privacy_from(facts: dict[str, str]) -> Privacy:
    if facts["guarantee"] == "pure":
        return PureDP(Fraction(facts["epsilon"]))
    if facts["guarantee"] == "zCDP":
        return ZCDP(Fraction(facts["rho"]))
    return ApproxDP(Fraction(facts["epsilon"]), Fraction(facts["delta"]))


def save_release(release: Release, path: str | os.PathLike[str]) -> None:
    """Write ``release`` to ``path``, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {}
    plan = pack_plan(release.plan, arrays)
    arrays["noisy-measurements"] = release.noisy_measurements
    arrays["answers"] = release.answers
    arrays["standard-errors"] = release.standard_errors
    arrays["intervals-95"] = release.intervals(0.95)
    facts = {
        "software": release.software,
        "simulated": release.simulated,
        "privacy": privacy_facts(release.privacy),
        "loss": str(release.loss),
        "unit": release.unit.facts,
        "noise": {"distribution": release.distribution, "scale": release.scale.hex()},
        "ledger_head": release.ledger_head,
        "plan": plan,
    }
    write_archive(path, "release", VERSION, facts, arrays)


def load_release(path: str | os.PathLike[str]) -> Release:
    """Read a release; a damaged, foreign or newer file is a ``FileFormatError``."""
    facts, arrays = read_archive(path, "release", VERSION)
    try:
        release = Release(
            unpack_plan(facts["plan"], arrays),
            arrays["noisy-measurements"],
            _privacy_from(facts["privacy"]),
            Fraction(facts["loss"]),
            facts["noise"]["distribution"],
            float.fromhex(facts["noise"]["scale"]),
            PrivacyUnit.from_facts(facts["unit"]),
            facts["simulated"],
            facts["software"],
            facts["ledger_head"],
        )
        whole = np.allclose(release.answers, arrays["answers"], rtol=1e-6, atol=1e-6)
    except FileFormatError:
        raise
    except (LrmError, KeyError, TypeError, ValueError, IndexError) as reason:
        raise FileFormatError(f"{path} does not hold a whole release") from reason
    if not whole:
        raise FileFormatError(f"{path} is damaged: its answers do not follow from its measurements")
    return release
