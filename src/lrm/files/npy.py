"""Arrays as ``.npy`` bytes: the header is compared with the bytes before anything is allocated."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from lrm.errors import FileFormatError

__all__ = ["parse_npy"]

_HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}

_DAMAGE = (ValueError, TypeError, SyntaxError, RecursionError, OverflowError, MemoryError)
"""What NumPy's header parser (a literal of Python) raises on anything but a header."""


def parse_npy(data: bytes) -> NDArray[Any]:
    """Return the array of numbers that ``data`` is, as a read-only view of it.

    ``numpy.load`` allocates whatever the header claims, and reads pickles where it is told to;
    this reads booleans and numbers of at most 64 bits (complex ones of 128) and short text,
    which SciPy writes beside them, and nothing else.

    >>> buffer = io.BytesIO()
    >>> np.save(buffer, np.arange(3))
    >>> parse_npy(buffer.getvalue())
    array([0, 1, 2])
    """
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            shape, by_columns, dtype = _HEADERS[npy_format.read_magic(stream)](stream)
    except KeyError:
        raise FileFormatError("an array has an unknown version of the .npy format") from None
    except _DAMAGE:
        raise FileFormatError("an array has no readable .npy header") from None
    if dtype.hasobject or dtype.kind not in "biufcSU" or dtype.itemsize > 64:
        raise FileFormatError("an array holds something else than numbers or short text")
    if dtype.kind in "biuf" and dtype.itemsize > 8:
        raise FileFormatError("an array holds numbers of more than 64 bits")
    start = stream.tell()
    if len(shape) > 8 or any(side < 0 for side in shape) or dtype.itemsize == 0:
        raise FileFormatError("an array has an impossible shape")
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise FileFormatError("an array has not as many bytes as its header says")
    array = np.frombuffer(data, dtype=dtype, offset=start) if len(data) > start else None
    if array is None:
        array = np.empty(0, dtype=dtype)
    return array.reshape(shape, order="F" if by_columns else "C")
