"""The file format of plans and releases: one zip of JSON and plain arrays, no pickle.

``header.json`` names the kind of file, the version of its format, and the SHA-256 of every
other member; arrays are stored as ``.npy``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError, LrmError
from lrm.files.facts import Arrays, Facts
from lrm.files.json_text import parse_json
from lrm.files.npy import parse_npy
from lrm.files.reading import FILE_LIMIT, TEXT_LIMIT, read_bytes
from lrm.files.writing import write_bytes
from lrm.files.zips import unpack_zip
from lrm.privacy.amounts import spell

KINDS = ("plan", "release")
"""What an archive can be."""


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write facts and arrays as one file, whole or not at all."""
    write_bytes(path, pack_archive(path, kind, version, facts, arrays))


def pack_archive(
    place: str | os.PathLike[str],
    kind: str,
    version: int,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> bytes:
    """Return the content of the file; errors name ``place``."""
    members = {"facts.json": json.dumps(facts, indent=1, ensure_ascii=False).encode()}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    _check_sizes(place, members)
    seals = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    header = {"format": f"lrm-{kind}", "version": version, "sha256": seals}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as bundle:
        for name, data in {"header.json": json.dumps(header).encode(), **members}.items():
            # A fixed time, so that the same plan is the same file.
            bundle.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED
            )
    return packed.getvalue()


def _check_sizes(path: str | os.PathLike[str], members: Mapping[str, bytes]) -> None:
    """Refuse to write what could not be read again."""
    if len(members["facts.json"]) > TEXT_LIMIT or sum(map(len, members.values())) > FILE_LIMIT:
        raise FileFormatError(
            f"cannot write {path}: it would hold more than {FILE_LIMIT >> 20:,} MiB of arrays or "
            f"{TEXT_LIMIT >> 20} MiB of names; plan a smaller batch, or one of sparse queries"
        )


def read_archive(
    path: str | os.PathLike[str], kind: str, version: int
) -> tuple[dict[str, Any], Arrays]:
    """Read a file that ``write_archive`` wrote; anything else is a clear error.

    Everything is checked before it is used: size, number and names of the members, the
    header, every checksum, the JSON, and the form of every array.
    """
    return parse_archive(path, read_bytes(path, f"{kind} file"), kind, version)


def parse_archive(
    path: str | os.PathLike[str], data: bytes, kind: str, version: int
) -> tuple[dict[str, Any], Arrays]:
    """Read the content of such a file; errors name ``path``."""
    with blaming(path, kind):
        members = unpack_zip(data)
        del data  # half of the memory that a file takes
        header = Facts(parse_json(_member(members, "header.json")), ["format", "version", "sha256"])
        file_kind = header.text("format").removeprefix("lrm-")
    if file_kind in KINDS and file_kind != kind:
        raise FileFormatError(f"{path} is a {file_kind} file; give a {kind} file")
    with blaming(path, kind):
        _check_header(header, kind, version)
        _check_seals(header.part("sha256", sorted(members)), members)
        facts = parse_json(_member(members, "facts.json"))
        if not all(name.endswith(".npy") for name in members):
            raise FileFormatError("it has a member that is not an array")
        arrays = {name.removesuffix(".npy"): parse_npy(members[name]) for name in members}
    return facts, Arrays(arrays)


def archive_format(path: str | os.PathLike[str]) -> str | None:
    """What kind of file the header says that it is; None where it has none that can be read."""
    try:
        header = parse_json(unpack_zip(read_bytes(path, "file"), "header.json")["header.json"])
    except (FileFormatError, KeyError):
        return None
    format_name = header.get("format") if isinstance(header, dict) else None
    return format_name if isinstance(format_name, str) else None


@contextmanager
def blaming(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Say of every error within which file it is about, and what to do."""
    try:
        yield
    except LrmError as reason:
        raise FileFormatError(
            f"{path} is damaged or is not a {kind} file: {reason}; make it again or restore a copy"
        ) from reason
    except MemoryError:
        raise FileFormatError(f"{path} needs more memory than there is") from None


def _member(members: dict[str, bytes], name: str) -> bytes:
    if name not in members:
        raise FileFormatError(f"its part {name} is missing")
    return members.pop(name)


def _check_header(header: Facts, kind: str, version: int) -> None:
    if header.text("format") != f"lrm-{kind}":
        raise FileFormatError(f"it says that it is {spell(header.text('format'))}")
    file_version = header.integer("version", 0, 1 << 31)
    if file_version != version:
        remedy = "an older lrm wrote it" if file_version < version else "install a newer lrm"
        raise FileFormatError(f"it has format version {file_version}, not {version}: {remedy}")


def _check_seals(seals: Facts, members: dict[str, bytes]) -> None:
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != seals.text(name):
            raise FileFormatError(f"its part {spell(name)} was changed")
