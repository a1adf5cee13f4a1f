"""What the form of an expression tells: whole numbers, longest texts, monotone chains.

A chain of monotone functions of one attribute in bins, such as ``FLOOR(delay / 60)``, is constant
on a cell if it is the same on the least and on the largest number of the cell.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.refusals import refuse
from lrm.domain import Bins, Categories, Integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Attribute, Domain

__all__ = ["Ends", "chain", "check_lengths", "ends", "is_whole", "turning"]


_SAME = frozenset({"ABS", "COALESCE", "GREATEST", "LEAST", "NULLIF"})
_PARTS = frozenset({"EXTRACT", "YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "DATE_DIFF", "DATE_PART"})
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "INT128", "HUGEINT"})


def is_whole(node: Expr, domain: Domain) -> bool:  # noqa: C901, PLR0911 - one per kind
    """Whether PostgreSQL and SQL Server take an expression for a whole number."""
    if isinstance(node, ir.Number):
        return node.text.lstrip("-").isdigit()
    if isinstance(node, ir.Attribute):
        attribute = domain.attributes[node.axis]
        if isinstance(attribute, Categories):
            return attribute.value_type == "integer"
        return isinstance(attribute, Integers)
    if isinstance(node, ir.Negative):
        return is_whole(node.this, domain)
    if isinstance(node, ir.Binary) and node.op in {"+", "-", "*", "%", "//"}:
        return is_whole(node.left, domain) and is_whole(node.right, domain)
    if isinstance(node, ir.Case):
        outcomes = [operand for operand in node.outcomes if not isinstance(operand, ir.Null)]
        return bool(outcomes) and all(is_whole(operand, domain) for operand in outcomes)
    if isinstance(node, ir.Cast):
        return node.to.partition("(")[0] in _INTEGERS
    if isinstance(node, ir.Call) and node.name in _SAME:
        return all(is_whole(operand, domain) for operand in node.args)
    if isinstance(node, ir.Call) and node.name in _PARTS:
        advice = (
            "whether the fraction is dropped is not known; write CAST(… AS INT) around the part"
        )
        raise refuse("function", "the division of a part of a date", advice, node)
    if isinstance(node, ir.Aggregate):
        return node.name == "COUNT" or (node.name == "SUM" and is_whole(node.args[0], domain))
    if isinstance(node, ir.Window):
        return node.name in {"SUM", "LAG", "LEAD"} and is_whole(node.args[0], domain)
    return isinstance(node, ir.Apart) and is_whole(node.this, domain)


LONGEST = 10_000
"""Characters of a text on the way to a value."""

_DECLARED = 100
"""Characters that a declared value is taken to have: what counts is how much longer it becomes."""

_JOINED = frozenset({"CONCAT", "CONCAT_WS"})
_REPLACED = frozenset({"REPLACE", "REGEXP_REPLACE"})
_LONG = frozenset({*_JOINED, *_REPLACED, "REPEAT", "LPAD", "RPAD", "PRINTF"})
_WIDE = re.compile(r"[0-9]{4}|\*")


def check_lengths(node: Expr) -> None:
    """Refuse an expression whose texts may become very long.

    Examples
    --------
    >>> thousand = ir.Call("REPEAT", (ir.Text("x"), ir.Number("1000")))
    >>> check_lengths(ir.Call("REPEAT", (thousand, ir.Number("1000"))))
    Traceback (most recent call last):
    ...
    lrm.errors.SqlError: a text of more than 10,000 characters is not supported; repeat, \
pad, join and replace less
    """
    if any(_is_long(descendant) for descendant in node.walk()):
        _length(node)


def _is_long(node: Expr) -> bool:
    if isinstance(node, ir.Binary):
        return node.op == "||"
    return isinstance(node, ir.Call) and node.name in _LONG


def _length(node: Expr) -> int:
    """The most characters that an expression has, by those of its arguments."""
    if isinstance(node, ir.Text | ir.Number):
        return min(len(node.value if isinstance(node, ir.Text) else node.text), LONGEST)
    lengths = [_length(child) for child in node.children]
    length = max([_DECLARED, *lengths])
    if (isinstance(node, ir.Binary) and node.op == "||") or (
        isinstance(node, ir.Call) and node.name in _JOINED
    ):
        length = sum(lengths)
    elif isinstance(node, ir.Call) and node.name in _REPLACED:
        length = (lengths[0] + 1) * ((lengths[2] if len(lengths) > 2 else 0) + 1)
    elif isinstance(node, ir.Call) and node.name == "REPEAT":
        length = lengths[0] * _times(node.args[1])
    elif isinstance(node, ir.Call) and node.name in {"LPAD", "RPAD"}:
        length = max(lengths[0], _times(node.args[1]))
    elif isinstance(node, ir.Call) and node.name == "PRINTF":
        form = node.args[0] if node.args else None
        wide = not isinstance(form, ir.Text) or _WIDE.search(form.value)
        length = LONGEST + 1 if wide else sum(lengths)
    if length > LONGEST:
        what = f"a text of more than {LONGEST:,} characters"
        raise refuse("size", what, "repeat, pad, join and replace less", node)
    return length


def _times(node: Expr) -> int:
    """A number that is written out; of any other one nothing is known."""
    written = isinstance(node, ir.Number) and node.text.isdigit() and len(node.text) < 10
    return int(node.text) if written and isinstance(node, ir.Number) else LONGEST + 1


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
    if (
        len(node.axes) != 1
        or sum(isinstance(descendant, ir.Attribute) for descendant in node.walk()) != 1
    ):
        return None
    inner: Expr | None = node
    while inner is not None and not isinstance(inner, ir.Attribute):
        inner = _inner(inner)
    return inner


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
        ir.Binary("<", descendant.args[0], ir.Number("0"))
        for descendant in node.walk()
        if isinstance(descendant, ir.Call) and descendant.name == "ABS"
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
