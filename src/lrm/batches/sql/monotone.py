"""Expressions that rise or fall in a number in bins: known where both ends of a cell agree.

A chain of monotone functions of one attribute, such as ``FLOOR(delay / 60)``, is constant on a cell
if it is the same on the least and on the largest number of the cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.domain import Bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Attribute

__all__ = ["Ends", "chain", "ends", "turning"]

_ONE = frozenset({"FLOOR", "CEIL", "ROUND", "SIGN", "SQRT", "ABS"})
_SEVERAL = frozenset({"GREATEST", "LEAST", "COALESCE"})
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL"})
_LEAST = 2.0**-900
_WHOLE = 2.0**52
"""Whole numbers up to here are exact as float64, and so are their neighbours."""

Ends = list["NDArray[np.float64] | NDArray[np.int64]"]
"""The least numbers of all cells, then the largest ones; whole numbers too, if edges are whole."""


def chain(node: Expr) -> ir.Attribute | None:
    """The attribute of which an expression is a chain of monotone functions, if it is one."""
    if len(node.axes) != 1 or sum(isinstance(one, ir.Attribute) for one in node.walk()) != 1:
        return None
    found: Expr | None = node
    while found is not None and not isinstance(found, ir.Attribute):
        found = _inner(found)
    return found


def _inner(node: Expr) -> Expr | None:
    """The argument in which a function rises or falls, where the others are constants."""
    parts: tuple[Expr, ...] = ()
    if isinstance(node, ir.Negative):
        parts = (node.this,)
    elif isinstance(node, ir.Binary) and node.op in {"+", "-", "*"}:
        parts = (node.left, node.right)
    elif isinstance(node, ir.Binary) and node.op in {"/", "//"}:
        parts = (node.left,)
    elif isinstance(node, ir.Call) and node.name in _ONE:
        parts = node.args[:1]
    elif isinstance(node, ir.Call) and node.name in _SEVERAL:
        parts = node.args
    elif isinstance(node, ir.Cast) and not node.safe and node.to.partition("(")[0] in _NUMBERS:
        parts = (node.this,)  # TRY_CAST is NULL beyond the ends of a type
    return next((part for part in parts if part.axes), None)


def turning(node: Expr) -> list[Expr]:
    """Conditions that must not change on a cell, for the expression to be monotone on it."""
    return [
        ir.Binary("<", one.args[0], ir.Number("0"))
        for one in node.walk()
        if isinstance(one, ir.Call) and one.name == "ABS"
    ]


def _below(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest numbers below edges; below 0, one that a quotient does not round to 0."""
    return np.where(edges == 0.0, -_LEAST, np.nextafter(edges, -np.inf))


def ends(attribute: Attribute) -> Ends:
    """The least and the largest number of each cell, as float64 and, for whole edges, as int64.

    Examples
    --------
    >>> low, high, first, last = ends(Bins("x", [0, 10, 20]))
    >>> low.tolist(), high.tolist(), last.tolist()
    ([0.0, 10.0], [9.999999999999998, 19.999999999999996], [9, 19])
    """
    assert isinstance(attribute, Bins)  # noqa: S101 - asked of bins alone
    edges = np.asarray(attribute.edges)
    low, high = edges[:-1], _below(edges[1:])
    if attribute.outside == "cell":
        low = np.append(low, [-np.inf, edges[-1]])
        high = np.append(high, [_below(edges[:1])[0], np.inf])
    finite = edges[np.isfinite(edges)]
    if np.any(finite != np.rint(finite)) or np.any(np.abs(finite) > _WHOLE):
        return [low, high]
    first, last = (np.clip(side, -_WHOLE, _WHOLE) for side in (low, np.floor(high)))
    return [low, high, first.astype(np.int64), last.astype(np.int64)]
