"""Where results go: checked before work begins, written whole or not at all."""

import os
from pathlib import Path

from lrm.errors import UsageError
from lrm.files.writing import check_target


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
        raise UsageError(f"expected a file ending in {' or '.join(kinds)}, not {path!r}")
    check_target(path)
    if place.exists() and not force:
        raise UsageError(f"{path} exists already; choose another name, or add --force")


def check_apart(outputs: dict[str, str | None], inputs: dict[str, str | None]) -> None:
    """Refuse an output that would replace an input or another output."""
    seen = {os.path.realpath(path): what for what, path in inputs.items() if path is not None}
    for what, path in outputs.items():
        if path is None:
            continue
        other = seen.setdefault(os.path.realpath(path), what)
        if other != what:
            raise UsageError(f"{what} and {other} name the same file, {path}; give each its own")
