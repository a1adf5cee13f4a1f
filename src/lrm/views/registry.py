"""The fields that the public registry of DP deployments asks for."""

from __future__ import annotations

from typing import Any

from lrm.privacy.budget import NOT_PROMISED, PureDP, zcdp_of
from lrm.releases.core import Release
from lrm.releases.postprocess import Processed

__all__ = ["registry_facts"]

BASIC = (
    "name",
    "data_curators",
    "intended_use",
    "product",
    "region",
    "description",
    "publication_date",
    "sector",
)
ADMINISTRATIVE = ("sources", "notes", "authors")


def registry_facts(release: Release, processed: Processed | None = None) -> dict[str, Any]:
    """What the release itself knows of the registry's fields; None is for the publisher to fill.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1]], "noise-on-data")
    >>> facts = registry_facts(lrm.release(plan, [10, 20], epsilon=1))
    >>> facts["privacy_loss"]["parameters"], facts["basic"]["region"]
    ('ε = 1', None)
    """
    plan, domain = release.plan, release.plan.workload.domain
    names = None if domain is None else list(domain.names)
    return {
        "basic": dict.fromkeys(BASIC),
        "dp_variant": {
            "name": release.privacy.variant,
            "data_domain": {"attributes": names, "cells": plan.workload.shape[1]},
            "unprotected_quantities": list(NOT_PROMISED),
        },
        "privacy_loss": {
            "unit": release.unit.protected,
            "unit_details": f"{release.unit.change} ({release.unit.neighbours})",
            "parameters": release.privacy.symbols,
            "exact_parameters": release.privacy.facts,
            "justification": None,
        },
        "deployment": {
            "model": "central",
            "actors": None,
            "releases": "one batch of queries, answered once",
            "source": "counts of a fixed table",
            "access": None,
        },
        "accounting": _accounting(release, processed),
        "implementation": _implementation(release),
        "administrative": dict.fromkeys(ADMINISTRATIVE),
    }


def _accounting(release: Release, processed: Processed | None) -> dict[str, Any]:
    pure = isinstance(release.privacy, PureDP)
    amount = "epsilon" if pure else f"rho (here {zcdp_of(release.privacy).symbols})"
    repairs = ", ".join(processed.steps) if processed else "none"
    return {
        "composition": "all measurements are one vector with one sensitivity; several releases "
        f"of one table add up in {amount}",
        "post_processing": f"linear reconstruction of the answers; repairs: {repairs}",
    }


def _implementation(release: Release) -> dict[str, Any]:
    return {
        "preprocessing": "the strategy was chosen from the queries alone, without data",
        "mechanisms": [
            f"{release.distribution} noise on {release.plan.measurement_count:,} measurements"
        ],
        "floating_point_protection": (
            "integer counts, integer strategy, exact integer sensitivity, noise from OpenDP's "
            "exact integer sampler with its scale rounded up; floats only after the noise"
        ),
        "timing_protection": "none",
        "library": release.software,
        "justification": "the least expected total squared error that was found for the batch",
    }
