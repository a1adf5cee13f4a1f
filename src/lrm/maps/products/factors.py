"""Factors: the map over the values of one attribute that a term asks for."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lrm.errors import WorkloadError
from lrm.maps.linear import LinearMap
from lrm.maps.matrices import DenseMap, check_weights
from lrm.maps.words import WORDS

Word = Literal["total", "identity", "prefix", "all-ranges"]
Kind = Literal["identity", "prefix", "all-ranges", "rows"]

LARGEST_SIZE = 1 << 26
"""Values of one attribute: 67 million, 0.5 GB as counts."""


def kind_of(factor: LinearMap) -> str:
    """The word of a factor, or ``"rows"`` for a matrix, as files and labels spell it."""
    return factor.kind if factor.is_word else "rows"


def word_factor(word: str, size: int) -> LinearMap:
    """The factor that a word stands for.

    Examples
    --------
    >>> word_factor("prefix", 3).gram().tolist()
    [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if word not in WORDS:
        words = ", ".join(map(repr, WORDS))
        raise WorkloadError(f"a factor must be an array or one of {words}, not {word!r}")
    _check_size(size)
    return WORDS[word](size)


def make_factor(factor: ArrayLike | Word | LinearMap, size: int) -> LinearMap:
    """Return the factor that a word or an array stands for.

    Examples
    --------
    >>> make_factor([[1, 0], [1, 1]], 2).kind
    'dense'
    """
    if isinstance(factor, LinearMap):
        if factor.shape[1] != size:
            covers = factor.shape[1]
            raise WorkloadError(f"the factor covers {covers} values, the attribute has {size}")
        return factor
    if isinstance(factor, str):
        return word_factor(factor, size)
    try:
        rows = np.array(factor, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise WorkloadError(
            "a factor must be an array of numbers with rows of equal length, or a word"
        ) from None
    rows = np.atleast_2d(rows)
    _check_size(size)
    if rows.ndim != 2 or rows.shape[1] != size or not len(rows):
        raise WorkloadError(
            f"a factor over {size} values must have one row per query and "
            f"{size} columns, not the shape {rows.shape}"
        )
    check_weights(rows)
    rows.setflags(write=False)
    return DenseMap(rows)


def _check_size(size: int) -> None:
    if not 1 <= size <= LARGEST_SIZE:
        raise WorkloadError(
            f"an attribute must have between 1 and {LARGEST_SIZE:,} values, not {size:,}"
        )
