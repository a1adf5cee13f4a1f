"""Expressions that rise or fall in a number in bins: known where both ends of a cell agree.

A chain of monotone functions of one column, such as ``FLOOR(delay / 60)``, is constant on a cell
if it is the same on the least and on the largest number of the cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.domain import Bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Attribute

__all__ = ["Ends", "chain", "ends", "turning"]

_ONE = (exp.Paren, exp.Neg, exp.Floor, exp.Ceil, exp.Round, exp.Sign, exp.Sqrt, exp.Abs)
_EITHER = (exp.Add, exp.Sub, exp.Mul)
_FIRST = (exp.Div, exp.IntDiv)
_SEVERAL = (exp.Greatest, exp.Least, exp.Coalesce)
_NUMBERS = frozenset(
    {
        *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
        *(exp.DType.DOUBLE, exp.DType.DECIMAL),
    }
)
_LEAST = 2.0**-900
_WHOLE = 2.0**52
"""Whole numbers up to here are exact as float64, and so are their neighbours."""

Ends = list["NDArray[np.float64] | NDArray[np.int64]"]
"""The least numbers of all cells, then the largest ones; whole numbers too, if edges are whole."""


def chain(node: exp.Expr) -> exp.Expr | None:
    """The column of which an expression is a chain of monotone functions, if it is one."""
    while type(node) is not exp.Column:
        inner = _inner(node)
        if inner is None or sum(1 for _ in inner.find_all(exp.Column)) != 1:
            return None
        if sum(1 for _ in node.find_all(exp.Column)) != 1:
            return None
        node = inner
    return node


def _inner(node: exp.Expr) -> exp.Expr | None:
    """The argument in which a function rises or falls, where the others are constants."""
    kind = type(node)
    parts: list[exp.Expr] = []
    if kind in _ONE or kind in _FIRST:
        parts = [node.this]
    elif kind in _EITHER:
        parts = [node.this, node.expression]
    elif kind is exp.Cast and node.args["to"].this in _NUMBERS:  # TRY_CAST is NULL out of range
        parts = [node.this]
    elif kind in _SEVERAL:
        parts = [node.this, *node.expressions]
    return next((part for part in parts if part.find(exp.Column) is not None), None)


def turning(node: exp.Expr) -> list[exp.Expr]:
    """Conditions that must not change on a cell, for the expression to be monotone on it."""
    return [
        exp.LT(this=exp.Paren(this=one.this.copy()), expression=exp.Literal.number(0))
        for one in node.find_all(exp.Abs)
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
