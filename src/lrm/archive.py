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
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError
from lrm.files.writing import write_bytes

__all__ = ["read_archive", "write_archive"]

MEMBER_LIMIT = 1 << 32
"""No member may unpack to more than 4 GiB: a small file must not fill the memory."""


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write facts and arrays as one file, whole or not at all."""
    members = {"facts.json": json.dumps(facts, indent=1, ensure_ascii=False).encode()}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    seals = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    header = {"format": f"lrm-{kind}", "version": version, "sha256": seals}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as bundle:
        for name, data in {"header.json": json.dumps(header).encode(), **members}.items():
            # A fixed time, so that the same plan is the same file.
            bundle.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED
            )
    write_bytes(path, packed.getvalue())


def read_archive(
    path: str | os.PathLike[str], kind: str, newest: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a file that ``write_archive`` wrote; anything else is a clear error."""
    try:
        with zipfile.ZipFile(path) as bundle:
            header = json.loads(_member(bundle, "header.json"))
            _check_header(header, kind, newest, path)
            members = {name: _member(bundle, name) for name in header["sha256"]}
    except FileNotFoundError as reason:
        raise FileFormatError(f"no file at {path}; check the name") from reason
    except OSError as reason:
        raise FileFormatError(f"cannot read {path}: {reason.strerror or reason}") from reason
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError) as reason:
        raise FileFormatError(
            f"{path} is damaged or is no {kind} file; make it again or restore a copy"
        ) from reason
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != header["sha256"][name]:
            raise FileFormatError(f"{path} is damaged: its part {name} was changed")
    facts = json.loads(members.pop("facts.json"))
    return facts, {name.removesuffix(".npy"): _array(data, path) for name, data in members.items()}


def _member(bundle: zipfile.ZipFile, name: str) -> bytes:
    if bundle.getinfo(name).file_size > MEMBER_LIMIT:
        raise ValueError(name)
    # zlib reports damage by its own exception, which zipfile passes on
    try:
        return bundle.read(name)
    except Exception as reason:
        raise ValueError(name) from reason


def _check_header(header: Any, kind: str, newest: int, path: str | os.PathLike[str]) -> None:
    if not isinstance(header, dict) or header.get("format") != f"lrm-{kind}":
        found = header.get("format") if isinstance(header, dict) else None
        raise FileFormatError(f"{path} is no {kind} file (it says {found!r})")
    version = header.get("version")
    if version != newest:
        older = isinstance(version, int) and version < newest
        raise FileFormatError(
            f"{path} has format version {version}, but this lrm reads version {newest}; "
            + ("make the file again" if older else "install a newer lrm")
        )


def _array(data: bytes, path: str | os.PathLike[str]) -> NDArray[Any]:
    try:
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
    except ValueError as reason:
        raise FileFormatError(f"{path} is damaged: an array cannot be read") from reason
