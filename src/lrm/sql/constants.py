"""Constants of SQL text, read exactly."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

from sqlglot import exp

from lrm.sql.refusals import PREDICATES, at_line, only, refuse_node

__all__ = ["Constant", "constant", "date", "is_constant", "number"]

Constant = str | bool | Decimal | dt.date
"""Text, truth, number or date."""

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_LONGEST = 300  # digits: more has no meaning beside 64-bit columns, and int() is quadratic


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
        return date(str(node.this.this), node)
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
        raise at_line(node, f"expected a number, but {node.sql(dialect='duckdb')} came")
    text = str(node.this)
    if len(text) > _LONGEST or _NUMBER.fullmatch(text) is None:
        raise at_line(node, f"expected a number such as 12 or 0.5, but {text[:40]} came")
    return Decimal(text)


def date(text: str, node: exp.Expr | None = None) -> dt.date:
    """Read a day written as YYYY-MM-DD."""
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC).date()
    except ValueError:
        raise at_line(node, f"expected a date such as '2024-01-31', but {text!r} came") from None
