"""Cells that an expression cuts through: what a refusal names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sqlglot import exp

__all__ = ["Cut"]


@dataclass(frozen=True, eq=False)
class Cut:
    """A comparison or sum that some cells do not answer, and its place in the statement."""

    node: exp.Expr
    sentence: str
    axis: int
    cells: NDArray[np.bool_]
    hint: str = ""
