"""Arrays as ``.npy`` bytes: the header is compared with the bytes before anything is allocated."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError

_MAGIC = b"\x93NUMPY"
_MOST_HEADER = 10_000
_HEADER = re.compile(
    r"\{\s*'descr'\s*:\s*'([<>|=]?[biufcSU][0-9]{1,3})'\s*,"
    r"\s*'fortran_order'\s*:\s*(True|False)\s*,"
    r"\s*'shape'\s*:\s*\(\s*((?:[0-9]{1,19}\s*,\s*)*(?:[0-9]{1,19}\s*)?)\)\s*,?\s*\}\s*",
    re.ASCII,
)
"""The header that NumPy writes. It is a literal of Python, but is not read as one."""

_MOST_SIDES = 8


def parse_npy(data: bytes) -> NDArray[Any]:
    """Return the array of numbers that ``data`` is, as a read-only view of it.

    ``numpy.load`` allocates whatever the header claims, and reads pickles where that is allowed;
    this reads booleans and numbers of at most 64 bits (complex ones of 128) and short text,
    which SciPy writes beside them, and nothing else.

    >>> import io
    >>> buffer = io.BytesIO()
    >>> np.save(buffer, np.arange(3))
    >>> parse_npy(buffer.getvalue())
    array([0, 1, 2])
    """
    header, start = _header(data)
    header_match = _HEADER.fullmatch(header)
    if header_match is None:
        raise FileFormatError("an array has an unsupported header, or does not hold numbers")
    dtype = _dtype(header_match[1])
    shape = tuple(int(side) for side in header_match[3].split(",") if side.strip())
    if len(shape) > _MOST_SIDES or math.prod(shape) * dtype.itemsize != len(data) - start:
        raise FileFormatError("an array does not have the number of bytes that its header states")
    array: NDArray[Any] = np.empty(0, dtype=dtype)
    if len(data) > start:
        array = np.frombuffer(data, dtype=dtype, offset=start)
    return array.reshape(shape, order="F" if header_match[2] == "True" else "C")


def _header(data: bytes) -> tuple[str, int]:
    """The text of the header, and where the numbers begin."""
    major = data[6] if data.startswith(_MAGIC) and len(data) > 12 else 0
    if major not in {1, 2}:
        raise FileFormatError("an array is not in the .npy format, version 1 or 2")
    start = 8 + 2 * major
    length = int.from_bytes(data[8:start], "little")
    if length > _MOST_HEADER or start + length > len(data):
        raise FileFormatError("an array has an incomplete header")
    return data[start : start + length].decode("latin-1"), start + length


def _dtype(text: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(text)
    except TypeError:
        raise FileFormatError("an array is of an unknown type") from None
    if not 1 <= dtype.itemsize <= (8 if dtype.kind in "biuf" else 64):
        raise FileFormatError("an array holds numbers of more than 64 bits, or long text")
    return dtype
