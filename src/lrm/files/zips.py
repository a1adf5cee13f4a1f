"""Zip archives whose contents are bounded before they are unpacked."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from lrm.errors import FileFormatError
from lrm.files.reading import FILE_LIMIT

MOST_MEMBERS = 64
"""Members of an archive; ours have about twenty."""

_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\x05\x06"
_LONG_MARK = b"PK\x06\x07"
_LONG_SIZE = 20
_DIRECTORY_LIMIT = 1 << 16

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What zipfile raises on archives that are damaged or of a form that it does not read."""


def unpack_zip(data: bytes, only: str | None = None) -> dict[str, bytes]:
    """Return the members of a zip archive by name, or ``only`` one of them.

    They are few and not encrypted, and unpack to 1 GiB in all at most.
    """
    _check_directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            members = bundle.infolist()
            _check_members(members)
            # zipfile reads no more of a member than its stated size, and checks its CRC.
            selected = [member for member in members if only in {None, member.filename}]
            return {member.filename: bundle.read(member) for member in selected}
    except _DAMAGE:
        raise FileFormatError("it is not a whole zip archive") from None


def _check_directory(data: bytes) -> None:
    """Look at the archive's last record, before zipfile makes an object of every entry."""
    end = data[-_END.size :]
    if len(end) < _END.size or not end.startswith(_END_MARK):
        raise FileFormatError("it is not a whole zip archive")
    _, _, _, _, entries, size, _, comment = _END.unpack(end)
    before = data[-_END.size - _LONG_SIZE : -_END.size]
    if comment or before.startswith(_LONG_MARK):
        raise FileFormatError("it is a zip archive of an unsupported form")
    if entries > MOST_MEMBERS or size > _DIRECTORY_LIMIT:
        raise FileFormatError(f"it has more than {MOST_MEMBERS} parts")


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if len(set(names)) != len(names):
        raise FileFormatError("two of its parts have the same name")
    if sum(member.file_size for member in members) > FILE_LIMIT:
        raise FileFormatError(f"it unpacks to more than {FILE_LIMIT >> 20:,} MiB")
    for member in members:
        plain = member.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        if not plain or member.flag_bits & 0x1:
            raise FileFormatError("a part is encrypted or packed in an unknown way")
