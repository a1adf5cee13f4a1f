"""Which expressions are whole numbers, as far as their form and the domain tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.refusals import refuse
from lrm.domain import Categories, Integers

if TYPE_CHECKING:
    from lrm.domain import Domain

__all__ = ["is_whole"]

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
        outcomes = [one for one in node.outcomes if not isinstance(one, ir.Null)]
        return bool(outcomes) and all(is_whole(one, domain) for one in outcomes)
    if isinstance(node, ir.Cast):
        return node.to.partition("(")[0] in _INTEGERS
    if isinstance(node, ir.Call) and node.name in _SAME:
        return all(is_whole(one, domain) for one in node.args)
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
