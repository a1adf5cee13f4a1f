"""The basis of hierarchical trees over an attribute."""

from __future__ import annotations

import math

import numpy as np

from lrm.exact.products.basis import Basis

__all__ = ["tree_basis"]


def tree_basis(n: int, branching: int) -> Basis:
    """The leaves of a tree and the totals of all its inner nodes."""
    rows, width = [], branching
    while width < n * branching and n > 1:
        block = np.zeros((math.ceil(n / width), n))
        block[np.arange(n) // width, np.arange(n)] = 1.0
        rows.append(block)
        width *= branching
    return Basis(np.vstack(rows) if rows else np.zeros((0, n)))
