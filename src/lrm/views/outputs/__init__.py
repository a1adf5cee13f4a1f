"""Files of answers, by their ending: one module per format, and one entry of `OUTPUTS` each."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePath

from lrm.errors import UsageError
from lrm.views.outputs.csv_files import write_folder
from lrm.views.outputs.export import Export

OUTPUTS = {
    ".csv": "lrm.views.outputs.csv_files",
    ".parquet": "lrm.views.outputs.parquet_file",
    ".xlsx": "lrm.views.outputs.workbook",
    ".json": "lrm.views.outputs.json_file",
    ".md": "lrm.views.outputs.markdown_file",
    ".html": "lrm.views.outputs.page_file",
}
"""The module of each format; its function ``write`` takes an `Export` and the path of a file."""


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a folder: it is one, ends in a slash, or has no ending."""
    text = os.fspath(path)
    return text.endswith(("/", "\\")) or Path(text).is_dir() or not PurePath(text).suffix


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file whose format is known; raises an error that lists the endings."""
    ending = PurePath(os.fspath(path)).suffix.lower()
    if ending not in OUTPUTS:
        *first, last = OUTPUTS
        raise UsageError(
            f"answers are written to a file ending in {', '.join(first)} or {last}, or to a "
            f"folder, not {os.fspath(path)!r}"
        )
    return ending


def write_export(export: Export, path: str | os.PathLike[str], ending: str | None = None) -> None:
    """Write a file in the format that its ending names, or a folder of CSV files.

    ``ending`` is the format of a file with any name.
    """
    if is_folder(path) and ending in {None, ".csv"}:
        write_folder(export, Path(path))
        return
    form = ending or check_ending(path)
    if form != ".csv" and not export.style.is_plain:
        raise UsageError(
            f"decimal commas and separators of thousands are for CSV files, not for "
            f"{os.fspath(path)!r}; other formats hold numbers"
        )
    module = import_module(OUTPUTS[form])
    write: Callable[[Export, Path], None] = module.write
    write(export, Path(path))
