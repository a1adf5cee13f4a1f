"""A release as plain data: everything that a reader, a program or a registry asks for."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from lrm.domain.file import domain_text
from lrm.files.csv_cells import csv_document
from lrm.files.writing import write_text
from lrm.maps.levels import LevelMap
from lrm.maps.linear import LinearMap, SparseMap
from lrm.privacy.budget import PureDP
from lrm.releases.core import Release
from lrm.releases.file import VERSION as FILE_VERSION
from lrm.releases.file import privacy_facts
from lrm.releases.postprocess import INTERVALS, Processed
from lrm.releases.promise import NOT_PROMISED, promise_sentences, variant_name
from lrm.releases.registry_facts import registry_facts
from lrm.workload.answer_table import group_titles

__all__ = ["export_csv", "export_json", "release_facts"]

FORMAT, VERSION = "lrm-release-facts", 2

MOST_ENTRIES = 1 << 22
"""Non-zero weights of a strategy that are written as JSON (about 60 MB)."""

COLUMNS = ("name", "query", "answer", "standard_error", "low", "high", "confidence", "processed")
"""Columns of the CSV beside those of groups; the last where answers were processed."""


def release_facts(
    release: Release, confidence: float = 0.95, *, processed: Processed | None = None
) -> dict[str, Any]:
    """Everything about a release, as values that JSON can hold.

    Integers that may pass 2^53, and exact amounts, are text. Nothing in here was not public
    with the release itself.

    Parameters
    ----------
    release
        What was published.
    confidence
        Of the intervals.
    processed
        Answers after post-processing, to stand beside the raw ones.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> facts = release_facts(lrm.release(plan, [10, 20], epsilon="0.1"))
    >>> facts["privacy"]["parameters"], len(facts["answers"])
    ({'guarantee': 'pure', 'epsilon': '0.1'}, 2)
    """
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
        "answers": _answers(release, confidence, processed),
        "measurements": _measurements(release),
    }


def export_json(
    release: Release,
    path: str | os.PathLike[str],
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
) -> None:
    """Write `release_facts` as a file, whole or not at all."""
    facts = release_facts(release, confidence, processed=processed)
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def export_csv(
    release: Release,
    path: str | os.PathLike[str],
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
) -> None:
    """Write one row per answer: name, query, group, answer, standard error, interval."""
    rows = _answers(release, confidence, processed)
    grouped = release.plan.workload.labels.attributes
    titles = group_titles(grouped, COLUMNS)
    last = [] if processed is None else ["processed"]
    table: list[list[str | float]] = [[*COLUMNS[:2], *titles, *COLUMNS[2:-1], *last]]
    for row in rows:
        labels = [row["group"].get(name, "") for name in grouped]
        numbers = [row["answer"], row["standard_error"], row["low"], row["high"], confidence]
        done = [] if processed is None else [row["processed"]]
        table.append([row["name"], row["query"], *labels, *numbers, *done])
    write_text(path, csv_document(table))


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
        "variant": variant_name(release.privacy),
        "parameters": privacy_facts(release.privacy),
        "unit": {
            "words": release.unit.words,
            "limit": release.unit.limit,
            **release.unit.facts,
        },
        "loss": {
            "parameter": "epsilon" if isinstance(release.privacy, PureDP) else "rho",
            "exact": str(release.loss),
            "value": float(release.loss),
        },
        "promise": _promise(release),
    }


def _promise(release: Release) -> list[str]:
    if release.simulated:
        return ["The noise was simulated for a study: nothing is promised."]
    return promise_sentences(release.privacy, release.unit)


def _mechanism(release: Release) -> dict[str, Any]:
    plan = release.plan
    unit = 2.0**-plan.measured.bits
    return {
        "name": plan.mechanism,
        "unbiased": plan.exact,
        "measurements": plan.measurement_count,
        "cells": plan.workload.shape[1],
        "queries": plan.workload.shape[0],
        "sensitivity_on_integers": {
            "norm": "L1" if plan.noise == "laplace" else "L2",
            "one_record": str(plan.measured.sensitivity)
            if plan.noise == "laplace"
            else f"sqrt({plan.measured.squared_l2_sensitivity})",
            "records_of_a_unit": release.unit.factor,
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
    return {"steps": steps, "intervals": INTERVALS}


def _answers(
    release: Release, confidence: float, processed: Processed | None
) -> list[dict[str, Any]]:
    done: Sequence[float | None] = (
        [None] * len(release.names) if processed is None else processed.answers.tolist()
    )
    rows = []
    for label, answer, error, (low, high), final in zip(
        release.plan.workload.labels,
        release.answers.tolist(),
        release.standard_errors.tolist(),
        release.intervals(confidence).tolist(),
        done,
        strict=True,
    ):
        row = {**label.facts, "answer": answer}
        row |= {"standard_error": error, "low": low, "high": high}
        rows.append(row if processed is None else {**row, "processed": final})
    return rows


def _measurements(release: Release) -> dict[str, Any]:
    """Noisy integers and the strategy: enough for any further linear query."""
    measured = release.plan.measured.flat()
    return {
        "how": (
            "y = S·M·x / 2^bits + noise, for the counts x of the cells: S has the given rows "
            "(CSR) and M adds factor[j] times cell j to merged cell index[j]. A query w with "
            "w = b·S·M / 2^bits has the answer b·y, whose standard error is |b| times the "
            "standard deviation of the noise; other queries have no answer here."
        ),
        "bits": measured.bits,
        "noisy_integers": [str(value) for value in release.noisy_measurements.tolist()],
        "y": (release.noisy_measurements * 2.0**-measured.bits).tolist(),
        "strategy": _strategy(measured.matrix),
        "merge": {
            "merged_cells": measured.cell_map.merged_size,
            "index": measured.cell_map.index.tolist(),
            "factor": measured.cell_map.factor.tolist(),
        },
    }


def _strategy(matrix: LinearMap) -> dict[str, Any] | None:
    """The integer rows, or None where they are too many (the release file has them)."""
    rows, columns = matrix.shape
    if isinstance(matrix, SparseMap):
        entries = int(matrix.matrix.nnz)
    elif isinstance(matrix, LevelMap):
        entries = columns * (len(matrix.fanouts) + 1)
    else:
        entries = rows * columns
    if max(entries, columns) > MOST_ENTRIES:
        return None
    sparse = matrix.sparse()
    return {
        "shape": [rows, columns],
        "indptr": sparse.indptr.tolist(),
        "indices": sparse.indices.tolist(),
        "data": [int(value) for value in sparse.data.tolist()],
    }
