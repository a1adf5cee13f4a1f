"""Folded tables: what a cell and its mirror image have in common, or what they differ by.

The mirror image of a cell has the other value on every axis of two values. A table plus (even) or
minus (odd) its mirror image is half as long, one record moves it no further, and it informs about
subsets with an even or an odd number of such axes alone, with half the noise: cells and mirror
images enter those with the same or with opposite signs.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fold(table: NDArray[Any], axes: Sequence[int], sign: int) -> NDArray[Any]:
    """A table plus ``sign`` times its mirror image, at the first value of the first of ``axes``.

    Examples
    --------
    >>> fold(np.array([[5, 1], [2, 3]]), [0, 1], -1).tolist()
    [[2, -1]]
    """
    mirror = np.flip(table, tuple(axes))
    both = table + mirror if sign > 0 else table - mirror
    return np.take(both, [0], axis=axes[0])


def unfold(half: NDArray[Any], axes: Sequence[int], sign: int) -> NDArray[Any]:
    """The transpose of ``fold``.

    Examples
    --------
    >>> unfold(np.array([[2, -1]]), [0, 1], -1).tolist()
    [[2, -1], [1, -2]]
    """
    return np.concatenate([half, sign * np.flip(half, tuple(axes[1:]))], axis=axes[0])


def fold_rows(
    rows: NDArray[Any], heights: Sequence[int], axes: Sequence[int], sign: int
) -> NDArray[Any]:
    """Fold the rows of a matrix, which are the cells of a table of sides ``heights``."""
    folded = fold(rows.reshape(*heights, rows.shape[1]), axes, sign)
    return np.asarray(folded.reshape(-1, rows.shape[1]))
