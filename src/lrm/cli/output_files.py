"""Where results go: checked before work begins, written whole or not at all."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lrm.errors import FileFormatError, UsageError

if TYPE_CHECKING:
    from lrm.releases import Release
    from lrm.releases.postprocess import Processed

__all__ = ["check_output", "write_answers_csv"]


def check_output(path: str | None, *, force: bool = True, kinds: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written, so that no work or privacy is lost on it.

    Parameters
    ----------
    path
        The file to come; None where none was asked for.
    force
        Whether an existing file may be replaced.
    kinds
        Endings that the name must have one of.
    """
    if path is None:
        return
    place = Path(path)
    if kinds and place.suffix.lower() not in kinds:
        raise UsageError(f"expected a file ending in {' or '.join(kinds)}, but {path!r} came")
    if place.is_dir():
        raise UsageError(f"{path} is a folder; give the name of a file in it")
    if place.exists() and not force:
        raise UsageError(f"{path} exists already; choose another name, or say --force")
    folder = place.parent
    if not folder.is_dir():
        raise FileFormatError(f"cannot write {path}: there is no folder {folder}; make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as reason:
        raise FileFormatError(
            f"cannot write {path}: {reason.strerror}; choose a folder that is writable"
        ) from reason
    if place.exists() and not os.access(place, os.W_OK):
        raise FileFormatError(f"cannot write {path}: it is write-protected; choose another name")


def check_apart(outputs: dict[str, str | None], inputs: dict[str, str | None]) -> None:
    """Refuse an output that would replace an input or another output."""
    seen = {Path(path).resolve(): what for what, path in inputs.items() if path is not None}
    for what, path in outputs.items():
        if path is None:
            continue
        other = seen.setdefault(Path(path).resolve(), what)
        if other != what:
            raise UsageError(f"{what} and {other} name the same file, {path}; give each its own")


def write_answers_csv(
    release: "Release", path: str, confidence: float, processed: "Processed | None" = None
) -> None:
    """Write one line a query: name, labels of its group, answer, standard error, interval."""
    from lrm.releases.facts import export_csv

    export_csv(release, path, confidence, processed=processed)
