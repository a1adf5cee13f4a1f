"""The basis of hierarchical trees over an attribute."""

from __future__ import annotations

import math

import numpy as np

from lrm.errors import UsageError
from lrm.exact.products.basis import Basis

__all__ = ["tree_basis"]

MOST_ENTRIES = 1 << 25
"""Inner nodes × values of a tree that is written out (256 MB)."""


def tree_basis(n: int, branching: int) -> Basis:
    """The leaves of a tree and the totals of all its inner nodes."""
    nodes, blocks = 0, n
    while blocks > 1:
        blocks = math.ceil(blocks / branching)
        nodes += blocks
    if nodes * n > MOST_ENTRIES:
        raise UsageError(
            f"a tree over an attribute of {n:,} values has {nodes:,} inner nodes, and at most "
            f"{MOST_ENTRIES:,} of nodes × values can be held; choose a larger fanout, or best"
        )
    rows, width = [], branching
    while width < n * branching and n > 1:
        block = np.zeros((math.ceil(n / width), n))
        block[np.arange(n) // width, np.arange(n)] = 1.0
        rows.append(block)
        width *= branching
    return Basis(np.vstack(rows) if rows else np.zeros((0, n)))
