"""The page of a release, and the file of all answers next to it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from lrm.files.writing import write_text
from lrm.releases import Release
from lrm.releases.postprocess import Processed
from lrm.views.html import page
from lrm.views.outputs import csv_files, parquet_file
from lrm.views.outputs.export import Export
from lrm.views.release_document import LISTED, PAGE, is_large, release_document


def release_page(
    release: Release,
    confidence: float = 0.95,
    limit: int = LISTED,
    *,
    processed: Processed | None = None,
    place: str | os.PathLike[str] | None = None,
) -> str:
    """The page of a release.

    ``place`` is where the page will be, next to a file of all answers where not all are listed.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "differential privacy" in release_page(lrm.release(plan, [10, 20], epsilon=1))
    True
    """
    detail, file = replace(PAGE, answers=limit), name_beside(release, place, limit)
    document = release_document(release, detail, confidence, processed=processed, file=file)
    foot = f"made with {release.software} · plan {release.plan.digest[:16]}"
    return page(document, "Rehearsal" if release.simulated else "Release", foot)


def name_beside(
    release: Release, place: str | os.PathLike[str] | None, limit: int = LISTED
) -> str | None:
    """The name of the file of all answers next to a page; None where there is none."""
    beside = None if place is None else answers_beside(release, place, limit)
    return None if beside is None else Path(beside).name


def answers_beside(
    release: Release, path: str | os.PathLike[str], limit: int = LISTED
) -> str | None:
    """The file that has all answers of a page at ``path``, where the page does not list all.

    It is CSV, or Parquet where that would be some GB.
    """
    if len(release.plan.workload.shown) <= limit:
        return None
    ending = ".parquet" if is_large(release) else ".csv"
    return str(Path(path).with_suffix(f".rehearsal{ending}" if release.simulated else ending))


def write_release_page(
    release: Release,
    path: str | os.PathLike[str],
    confidence: float = 0.95,
    limit: int = LISTED,
    *,
    processed: Processed | None = None,
) -> None:
    """Write the page of a release, and the file of all answers where the page needs one."""
    beside = answers_beside(release, path, limit)
    if beside is not None:
        write = parquet_file.write if is_large(release) else csv_files.write
        write(Export(release, None, confidence, processed), Path(beside))
    write_text(path, release_page(release, confidence, limit, processed=processed, place=path))
