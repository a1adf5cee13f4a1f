"""Constants of SQL text, read exactly."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from lrm.batches.compiler.atoms import Constant, date
from lrm.batches.compiler.refusals import PREDICATES, at_line, only, refuse_node
from lrm.errors import SqlError

__all__ = ["constant", "is_constant", "number"]

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_LONGEST = 300  # digits: more has no meaning for 64-bit columns, and int() is quadratic


def is_constant(node: exp.Expr) -> bool:
    """Tell whether a node may be a constant: it holds no column, and no function."""
    if type(node) in {exp.Paren, exp.Neg, exp.Cast}:
        return is_constant(node.this)
    return type(node) in {exp.Literal, exp.Boolean, exp.Null}


def constant(node: exp.Expr) -> Constant:
    """Read a literal, a negative number, TRUE, FALSE, or DATE '…'."""
    if type(node) is exp.Paren:
        only(node, "this")
        return constant(node.this)
    if type(node) is exp.Literal:
        return str(node.this) if node.is_string else number(node)
    if type(node) is exp.Neg:
        return number(node)
    if type(node) is exp.Boolean:
        return bool(node.this)
    if type(node) is exp.Cast and node.to.is_type(exp.DType.DATE) and node.this.is_string:
        only(node, "this", "to")
        try:
            return date(str(node.this.this))
        except SqlError as reason:
            raise at_line(node, str(reason)) from None
    raise refuse_node(node, PREDICATES)


def number(node: exp.Expr) -> Decimal:
    """Read a number with its sign, exactly as it is written."""
    if type(node) is exp.Paren:
        only(node, "this")
        return number(node.this)
    if type(node) is exp.Neg:
        only(node, "this")
        return -number(node.this)
    if type(node) is not exp.Literal or node.is_string:
        raise at_line(node, f"expected a number, got {node.sql(dialect='duckdb')}")
    text = str(node.this)
    if len(text) > _LONGEST or _NUMBER.fullmatch(text) is None:
        raise at_line(node, f"expected a number such as 12 or 0.5, got {text[:40]}")
    return Decimal(text)
