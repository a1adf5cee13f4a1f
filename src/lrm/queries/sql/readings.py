"""Operators that dialects read differently, and a plan with those of another dialect.

Without a declared dialect a statement has DuckDB's meaning. Where it was written for another one,
``/`` of whole numbers, numbers of weekdays, names of days and months, ``LOG`` of one number, and
``GREATEST``, ``LEAST`` and ``CONCAT`` of NULL may mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr

Node = TypeVar("Node")

_ANSWERS = (ir.Aggregate, ir.Window)
_NAMES = frozenset(
    {
        *("DAYOFWEEK", "WEEKDAY", "DAYNAME", "MONTHNAME"),
        *("LOG", "GREATEST", "LEAST", "CONCAT"),
    }
)
_FIELDS = re.compile(r"\b(dow|dayofweek|weekday)\b", re.IGNORECASE)


def differs(node: object) -> bool:
    """Whether an operator of DuckDB's reading means something else in other dialects.

    A division of answers does not: it keeps its fraction in every dialect.
    """
    if isinstance(node, ir.Cast):
        return node.to in {"INT", "BIGINT", "SMALLINT", "TINYINT"} and not node.has(*_ANSWERS)
    if isinstance(node, ir.Binary) and node.op in {"LIKE", "ILIKE"}:
        return isinstance(node.right, ir.Text) and "\\" in node.right.value
    if isinstance(node, ir.Binary):
        return node.op == "/" and not node.has(ir.Aggregate, ir.Window)
    if not isinstance(node, ir.Call):
        return False
    first = node.pieces[0] if node.pieces else ""
    of_field = node.name in {"EXTRACT", "DATE_PART"} and _FIELDS.search(first) is not None
    return node.name in _NAMES or of_field


def changed(plan: object, other: object) -> Iterator[Expr]:
    """The operators of a plan that another dialect reads differently, the innermost ones."""
    if plan == other:
        return
    pairs = zip(_parts(plan), _parts(other), strict=False)
    inner = [
        node for pair in pairs if type(plan) is type(other) for node in changed(pair[0], pair[1])
    ]
    yield from inner
    if not inner and isinstance(plan, Expr) and differs(plan):
        yield plan


def differing(tree: object) -> Iterator[Expr]:
    """The operators of a plan that other dialects may read differently, from the outside in."""
    if isinstance(tree, Expr) and differs(tree):
        yield tree
    for part in _parts(tree):
        yield from differing(part)


def _parts(tree: object) -> list[Any]:
    if isinstance(tree, tuple):
        return list(tree)
    if is_dataclass(tree):
        return [getattr(tree, item.name) for item in fields(tree) if item.compare]
    return []


def with_operators(plan: Node, other: Any) -> Node:
    """A plan of DuckDB, with such operators as another dialect reads them, and nothing else of it.

    Parameters
    ----------
    plan
        The statement as DuckDB reads it, or a part of it.
    other
        The same in another dialect.
    """
    result: Any = plan
    if plan == other:
        return plan
    if isinstance(plan, ir.Binary) and plan.op == "/" and differs(plan):
        if isinstance(other, ir.Binary) and other.op == "div":
            sides = with_operators(plan.left, other.left), with_operators(plan.right, other.right)
            result = replace(plan, op="div", left=sides[0], right=sides[1])
    elif differs(plan) and isinstance(other, Expr):
        result = other
    elif isinstance(plan, tuple) and isinstance(other, tuple) and len(plan) == len(other):
        pairs: list[tuple[Any, Any]] = list(zip(plan, other, strict=True))
        result = tuple(with_operators(part, other_part) for part, other_part in pairs)
    elif type(plan) is type(other) and is_dataclass(plan) and not isinstance(plan, type):
        names = [item.name for item in fields(plan) if item.compare and item.init]
        parts = {name: with_operators(getattr(plan, name), getattr(other, name)) for name in names}
        changes = {name: part for name, part in parts.items() if part is not getattr(plan, name)}
        result = replace(plan, **changes) if changes else plan
    reading: Node = result
    return reading
