"""What a release tells: everything that a reader, a program or a registry asks for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from lrm.domain.file import domain_text
from lrm.files.spelling import number
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.integers import Basis, CellBasis
from lrm.privacy.budget import NOT_PROMISED, ZCDP, PureDP, zcdp_of
from lrm.queries.maps.linear import LinearMap
from lrm.queries.workload import EXPLICIT_QUERIES
from lrm.releases.core import VERSION as FILE_VERSION
from lrm.releases.core import Release
from lrm.releases.frames import frame_caveats
from lrm.releases.postprocess import INTERVALS, Processed
from lrm.views.answers import display_facts
from lrm.views.derived import derived_facts
from lrm.views.plans import Lines, cell_words, level_names, mechanism_words, noise_words

FORMAT, VERSION = "lrm-release-facts", 2

MOST_ENTRIES = 1 << 22
"""Non-zero weights of a strategy that are written as JSON (about 60 MB)."""


def release_facts(
    release: Release, confidence: float = 0.95, *, processed: Processed | None = None
) -> dict[str, Any]:
    """Everything about a release, as values that JSON can hold.

    Integers that may pass 2^53, and exact amounts, are text. Nothing in here was not public
    with the release itself.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> facts = release_facts(lrm.release(plan, [10, 20], epsilon="0.1"))
    >>> facts["privacy"]["parameters"], len(facts["answers"])
    ({'guarantee': 'pure', 'epsilon': '0.1'}, 2)
    """
    facts = summary_facts(release, confidence, processed=processed)
    return {**facts, "measurements": _measurements(release)}


def summary_facts(
    release: Release, confidence: float = 0.95, *, processed: Processed | None = None
) -> dict[str, Any]:
    """The same without the measurements: what commands print as JSON."""
    domain = release.plan.workload.domain
    return {
        "format": FORMAT,
        "version": VERSION,
        "simulated": release.simulated,
        "provenance": _provenance(release),
        "privacy": _privacy(release),
        "mechanism": _mechanism(release),
        "post_processing": _post_processing(processed),
        "not_promised": list(NOT_PROMISED),
        "registry": registry_facts(release, processed),
        "domain": None if domain is None else domain_text(domain),
        "confidence": confidence,
        "statements": _statements(release),
        "answers": _answers(release, confidence, processed),
        "derived": derived_facts(release.plan.workload),
        "display": display_facts(release),
        "warnings": list(release.warnings),
    }


def _statements(release: Release) -> list[dict[str, Any]]:
    """The tables: their names, titles, and what their intervals do not cover."""
    return [
        {
            "statement": statement.name,
            "title": statement.title,
            "caveats": [entry.facts for entry in frame_caveats(release, statement)],
        }
        for statement in release.plan.workload.tables
    ]


def _answers(
    release: Release, confidence: float, processed: Processed | None
) -> list[dict[str, Any]] | None:
    """One record per answer; None where they are more than one document should hold."""
    if release.plan.workload.shape[0] > EXPLICIT_QUERIES:
        return None
    table = release.table(confidence, processed=processed)
    columns = {name: column.tolist() for name, column in table.number_columns().items()}
    statements = table.columns[0].labels
    return [
        {
            "statement": statements[code],
            **label.facts,
            **dict(zip(columns, map(_finite, row), strict=True)),
        }
        for code, label, *row in zip(
            table.codes[:, 0].tolist(), table.labels(), *columns.values(), strict=True
        )
    ]


def _finite(value: float) -> float | None:
    """A number as JSON can hold it: nothing where it does not exist, or is infinite."""
    return value if math.isfinite(value) else None


def release_lines(release: Release) -> Lines:
    """What a release guarantees and how it was made, as text."""
    queries = f"{release.plan.workload.shape[0]:,} over {cell_words(release.plan)}"
    lines = [
        ("guarantee", release.stated["guarantee"]),
        ("queries", f"{queries}, by {mechanism_words(release.plan)}"),
        *(("noise", _level_noise(release, level)) for level in release.levels),
        ("software", release.software),
        ("plan", release.plan.digest[:16]),
    ]
    lines += [("rows", limit) for limit in row_limits(release)]
    lines += [("clipped", sentence) for sentence in release.plan.clipping]
    if release.ledger_head is not None:
        lines.append(("ledger", f"charged, head {release.ledger_head[:24]}…"))
    return lines


def row_limits(release: Release) -> list[str]:
    """What the limits of rows per person mean, of each level with one."""
    limits = [level.unit.limit for level in release.levels]
    if len(limits) == 1:
        return [limit for limit in limits if limit]
    names = level_names(release.plan)
    return [f"{name}: {limit}" for name, limit in zip(names, limits, strict=True) if limit]


def _level_noise(release: Release, level: Release) -> str:
    """The noise on the measurements of a level; of several, with its share of the guarantee."""
    measured = f"{level.plan.measurement_count:,} measurements"
    if level.accuracy.law.steps == (1,):
        measured += f" in steps of 2^-{level.plan.bits}"
    words = f"{_scaled_noise(level)} on {measured}"
    if level is release:
        return words
    place = release.levels.index(level)
    return f"{level_names(release.plan)[place]} ({level.privacy.symbols}): {words}"


def _scaled_noise(release: Release) -> str:
    """The noise and its scale."""
    scale = number(release.scale * 2.0**-release.plan.bits)
    if release.plan.noise != "shaped":
        return f"{release.distribution} of scale {scale}"
    shaped = release.distribution.replace("shaped", noise_words(release.plan))
    return f"{shaped}, of scale {scale}"


def methods_sentences(release: Release) -> list[str]:
    """How the numbers were made, for readers of statistics."""
    plan = release.plan
    noises = [_spoken_noise(level) for level in release.levels]
    measured = f"{plan.measurement_count:,} sums of counts were measured in the table"
    sentences = [
        f"{measured}, and random noise was added to each: {'; '.join(noises)}.",
        "Every number here is computed from these measurements.",
        "What is measured was chosen from the list of the tables alone, before the data were read.",
    ]
    if plan.exact:
        sentences.append(
            "The noise is 0 on average: no number is too large or too small on average, but for "
            "those that are cut to what is possible, such as a share above 100 %."
        )
    sentences.append(
        "Counts, measurements and noise are whole numbers, and the noise is drawn exactly: the "
        "guarantee does not depend on how a computer rounds."
    )
    if release.ledger_head:
        sentences.append("The privacy budget of the table was charged before the data were read.")
    return sentences


def _spoken_noise(level: Release) -> str:
    """The noise of a level by its law and scale, without how it was found."""
    shaped = level.plan.noise == "shaped"
    kind = "noise shaped to the tables," if shaped else f"{level.distribution} noise"
    return f"{kind} of scale {number(level.scale * 2.0**-level.plan.bits)}"


def cost_lines(release: Release) -> Lines:
    """What was spent, for whom, and on what noise."""
    parameter = "ε" if isinstance(release.privacy, PureDP) else "ρ"
    loss = f"{parameter} = {float(release.loss):.10g}"
    lines = [
        ("guarantee", f"{release.privacy.variant}, {release.privacy.symbols}"),
        ("privacy loss of the noise as drawn", f"{loss}, by the sampler's own privacy map"),
        ("who is protected", release.unit.protected),
        ("against", f"being {release.unit.change}"),
        (
            "mechanism",
            f"{release.plan.mechanism}, {release.plan.measurement_count:,} noisy measurements",
        ),
        *(("noise", _level_noise(release, level)) for level in release.levels),
        (
            "computer arithmetic",
            "integers and an exact sampler: floating-point numbers come after the noise",
        ),
    ]
    if release.ledger_head:
        lines.append(("ledger", f"charged before data was read; head {release.ledger_head}"))
    return lines


def _provenance(release: Release) -> dict[str, Any]:
    domain = release.plan.workload.domain
    return {
        "software": release.software,
        "release_file_version": FILE_VERSION,
        "plan_digest": release.plan.digest,
        "workload_digest": release.plan.workload.digest,
        "domain_digest": None if domain is None else domain.digest,
        "table": None if domain is None else domain.table,
        "ledger_head": release.ledger_head,
    }


def _privacy(release: Release) -> dict[str, Any]:
    return {
        "variant": release.privacy.variant,
        "parameters": release.privacy.facts,
        "unit": {
            "words": release.unit.words,
            "limit": "; ".join(row_limits(release)) or None,
            **({"clipped": list(release.plan.clipping)} if release.plan.clipping else {}),
            **release.unit.facts,
        },
        "loss": {
            "parameter": "epsilon" if isinstance(release.privacy, PureDP) else "rho",
            "exact": str(release.loss),
            "value": float(release.loss),
        },
        "promise": _promise(release),
        **_whole(release),
    }


def _whole(release: Release) -> dict[str, Any]:
    """The discoveries that a release uses, and its guarantee together with them."""
    whole = release.whole
    if not whole.discoveries and not whole.others:
        return {}
    guarantee = None if whole.guarantee is None else whole.guarantee.facts
    used = [{"attribute": name, **entry.facts} for name, entry in whole.discoveries]
    others = [{"attribute": name, **entry.facts} for name, entry in whole.others]
    return {"together": guarantee, "discovered": used, "discovered_in_other_editions": others}


def _promise(release: Release) -> list[str]:
    if release.simulated:
        return ["The noise was simulated for a study: nothing is guaranteed."]
    return release.privacy.sentences(release.unit)


_NORMS = {"laplace": "L1", "gaussian": "L2", "shaped": "the norm of the body"}


def _one_unit(release: Release) -> dict[str, str]:
    """How far a unit moves the integers, where that is no multiple of what a record does."""
    plan, unit = release.plan, release.unit
    if unit.by is None or plan.noise != "gaussian":
        return {}
    return {"one_unit": f"sqrt({plan.measured.squared_l2_moved(unit, plan.record_bits)})"}


def _mechanism(release: Release) -> dict[str, Any]:
    plan = release.plan
    if len(release.levels) > 1:
        pairs = zip(level_names(plan), release.levels, strict=True)
        levels = [
            {"level": name, "privacy": level.privacy.facts, **_mechanism(level)}
            for name, level in pairs
        ]
        return {"name": plan.mechanism, "unbiased": plan.exact, "levels": levels}
    unit = 2.0**-plan.bits
    record = plan.record_bits
    return {
        "name": plan.mechanism,
        "unbiased": plan.exact,
        "measurements": plan.measurement_count,
        "cells": plan.workload.shape[1],
        "queries": plan.workload.shape[0],
        "sensitivity_on_integers": {
            "norm": _NORMS[plan.noise],
            "one_record": str(plan.measured.sensitivity << record)
            if plan.noise != "gaussian"
            else f"sqrt({plan.measured.squared_l2_sensitivity << 2 * record})",
            "records_of_a_unit": release.unit.factor,
            **_one_unit(release),
        },
        "noise": {
            "distribution": release.distribution,
            "scale_on_integers": {
                "value": release.scale,
                "exact": str(Fraction(release.scale)),
                "hex": release.scale.hex(),
            },
            "integer_step": unit,
            "scale": release.scale * unit,
            "standard_deviation": release.accuracy.deviation,
        },
    }


def _post_processing(processed: Processed | None) -> dict[str, Any]:
    if processed is None:
        return {"steps": [], "intervals": INTERVALS}
    steps = [{"name": name, "effect": effect} for name, effect in processed.notes]
    known = {"known": processed.known} if processed.known else {}
    return {"steps": steps, "intervals": INTERVALS, "moved": processed.moved, **known}


def _measurements(release: Release) -> dict[str, Any]:
    """Noisy integers and the strategy: enough for any further linear query."""
    if len(release.levels) > 1:
        pairs = zip(level_names(release.plan), release.levels, strict=True)
        return {"levels": [{"level": name, **_measurements(level)} for name, level in pairs]}
    measured = release.plan.measured
    strategy = (
        {"how": f"{PRODUCTS}{_noise(release)}.", "groups": [_group(g) for g in measured.groups]}
        if measured.cells is None
        else {"how": f"{CELLS}{_noise(release)}.", **_cells(measured.cells)}
    )
    return {
        "bits": measured.bits,
        "noisy_integers": [str(value) for value in release.noisy_measurements.tolist()],
        "y": (release.noisy_measurements * 2.0**-release.plan.bits).tolist(),
        **strategy,
    }


CELLS = (
    "y = S·M·x / 2^bits + noise, for the counts x of the cells: S has the given rows "
    "(CSR) and M adds factor[j] times cell j to merged cell index[j]. A query w with "
    "w = b·S·M / 2^bits has the answer b·y; other queries have no answer here. "
)
PRODUCTS = (
    "y = factor·(⊗ basis)·t / 2^bits + noise, for each set of axes in order; t counts "
    "the records by the merged values of the axes of the set: label[v] is the merged value "
    "of value v of an attribute, and -1 leaves it out. A basis has one row per measurement "
    "of its axis; the last axis of a set varies fastest. Of a set with fold 1 (or -1), "
    "the table is added to (or less) its mirror image, which has the other value on every "
    "axis of two values and no more rows, and the half with the first value on the first "
    "of these axes is measured. "
)
"""How measurements are made of a list of cells, and of products of attributes."""


def _noise(release: Release) -> str:
    if release.plan.noise != "shaped":
        return "The standard error of b·y is |b| times the standard deviation of the noise"
    return f"The noise is {noise_words(release.plan)}: see docs/explanation/shaped-noise.md"


def _cells(cells: CellBasis) -> dict[str, Any]:
    return {
        "strategy": _strategy(cells.matrix),
        "merge": {
            "merged_cells": cells.cell_map.merged_size,
            "index": cells.cell_map.index.tolist(),
            "factor": cells.cell_map.factor.tolist(),
        },
    }


def _group(group: MeasuredGroup) -> dict[str, Any]:
    axes = [
        {
            "attributes": list(axis.attributes),
            "labels": [marks.tolist() for marks in axis.labels],
            "basis": _basis(basis),
        }
        for axis, basis in zip(group.axes, group.bases, strict=True)
    ]
    sets: list[dict[str, Any]] = [
        {"axes": list(members), "factor": str(factor), "fold": sign}
        for members, factor, sign in zip(group.sets, group.factors, group.folds, strict=True)
    ]
    for b, mix in group.mixes.items():
        sets[b]["mix"] = mix.tolist() if mix.size <= MOST_ENTRIES else None
    return {"axes": axes, "sets": sets}


def _basis(basis: Basis) -> list[list[int]] | None:
    """The rows of a basis, or None where they are too many (the release file has them)."""
    if basis.size * basis.height > MOST_ENTRIES:
        return None
    rows: list[list[int]] = basis.apply(np.eye(basis.size, dtype=np.int64)).tolist()
    return rows


def _strategy(matrix: LinearMap) -> dict[str, Any] | None:
    """The integer rows, or None where they are too many (the release file has them)."""
    rows, columns = matrix.shape
    if max(matrix.entry_count, columns) > MOST_ENTRIES:
        return None
    sparse = matrix.sparse()
    return {
        "shape": [rows, columns],
        "indptr": sparse.indptr.tolist(),
        "indices": sparse.indices.tolist(),
        "data": [int(value) for value in sparse.data.tolist()],
    }


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
            "data_domain": {"attributes": names, "cells": plan.workload.declared_size},
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


_VECTORS = (
    "all measurements are one vector with one sensitivity",
    "the measurements of each level are one vector, and the shares of the levels add up",
)


def _accounting(release: Release, processed: Processed | None) -> dict[str, Any]:
    pure = isinstance(release.privacy, PureDP)
    parts = [zcdp_of(level.privacy).rho for level in release.levels if not pure]
    amount = "epsilon" if pure else f"rho (here {ZCDP(sum(parts, Fraction(0))).symbols})"
    repairs = ", ".join(processed.steps) if processed else "none"
    return {
        "composition": f"{_VECTORS[len(release.levels) > 1]}; several releases "
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
            "integer counts, integer strategy, exact integer sensitivity, noise from an "
            "exact integer sampler with its scale rounded up; floats only after the noise"
        ),
        "timing_protection": "none",
        "library": release.software,
        "justification": "the least expected total squared error that was found for the batch",
    }
