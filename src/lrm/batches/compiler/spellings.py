"""Spellings of PostgreSQL, Spark, MySQL and BI tools → the one that DuckDB has for the same."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from lrm.batches.compiler.constants import is_constant, number
from lrm.batches.compiler.expressions import held, shown
from lrm.batches.compiler.refusals import only, refuse, refuse_node

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Spoken", "respell"]


class Spoken(DuckDB):
    """DuckDB's SQL, in which names may stand in backticks too: DuckDB has no other use for them."""

    class Tokenizer(DuckDB.Tokenizer):
        """Reads names in backticks."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - as sqlglot declares it


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_FORMATS = {"to_char": ("YYYY", "YY", "MM", "DD"), "date_format": ("yyyy", "yy", "MM", "dd")}
_STRFTIME = ("%Y", "%y", "%m", "%d")
_MOST_BUCKETS = 1000


def respell(tree: exp.Expr) -> exp.Expr:
    """Rewrite in place what other databases spell differently; the rest is left as it is."""
    for node in list(tree.walk()):
        rewrite = _SPELLINGS.get(type(node))
        if rewrite is not None:
            found = rewrite(node)
            if found is not node:
                node.replace(found)
                tree = found if node is tree else tree
    return tree


def _any_of(node: exp.Expr) -> exp.Expr:
    """``a = ANY (ARRAY['x', 'y'])`` as ``a IN ('x', 'y')``."""
    listed = _listed(node, "any")
    if listed is None:
        return _compared(node)
    return exp.In(this=node.this, expressions=listed)


def _none_of(node: exp.Expr) -> exp.Expr:
    """``a <> ALL (ARRAY['x', 'y'])`` as ``a NOT IN ('x', 'y')``."""
    listed = _listed(node, "all")
    if listed is None:
        return _compared(node)
    return exp.Not(this=exp.In(this=node.this, expressions=listed))


def _listed(node: exp.Expr, word: str) -> list[exp.Expr] | None:
    """The constants of ``ANY (ARRAY[…])`` or ``ALL (ARRAY[…])``; None for anything else."""
    listed = node.expression
    if type(listed) is exp.Any and word == "any":
        listed = listed.this
    elif type(listed) is exp.Anonymous and listed.name.casefold() == word:
        listed = listed.expressions[0] if len(listed.expressions) == 1 else None
    else:
        return None
    while type(listed) is exp.Paren:
        listed = listed.this
    return list(listed.expressions) if type(listed) is exp.Array else None


def _compared(node: exp.Expr) -> exp.Expr:
    """A comparison; ``1 < a < 3`` would compare a truth with 3, and DuckDB has no such thing."""
    sides = [one for one in (node.this, node.expression) if type(one) in _COMPARISONS]
    if sides:
        way_out = "join two comparisons by AND, or write parentheses"
        raise refuse(f"the chain {shown(node)}", way_out, node)
    return node


def _symmetric(node: exp.Expr) -> exp.Expr:
    """``BETWEEN SYMMETRIC 9 AND 3`` as ``BETWEEN 3 AND 9``."""
    low, high = node.args["low"], node.args["high"]
    if node.args.get("symmetric") and is_constant(low) and is_constant(high):
        ends = sorted([low, high], key=number)
        return exp.Between(this=node.this, low=ends[0], high=ends[1])
    return node


def _with_rollup(node: exp.Expr) -> exp.Expr:
    """``GROUP BY a, b WITH ROLLUP`` as ``GROUP BY ROLLUP (a, b)``."""
    for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if [type(one) for one in node.args.get(part) or ()] == [kind] and node.expressions:
            (one,) = node.args[part]
            if not one.expressions:
                node.set(part, None)
                node.set("expressions", [kind(expressions=node.expressions)])
    return node


def _bucket(node: exp.Expr) -> exp.Expr:
    """``WIDTH_BUCKET(x, low, high, n)``: 1 to n from low to high, 0 below and n + 1 above."""
    ends = [node.args["min_value"], node.args["max_value"], node.args["num_buckets"]]
    if not all(is_constant(one) for one in ends):
        raise refuse("WIDTH_BUCKET() of columns", "give its ends and its count as numbers", node)
    low, high, count = (number(one) for one in ends)
    if not (low < high and count == int(count) and 0 < count <= _MOST_BUCKETS):
        way_out = f"it takes a lower end, an upper end and a count of at most {_MOST_BUCKETS}"
        raise refuse("this WIDTH_BUCKET()", way_out, node)
    edges = [low + (high - low) * k / count for k in range(int(count) + 1)]
    inner = held(node.this)
    branches = [
        exp.If(this=exp.LT(this=inner.copy(), expression=_literal(edge)), true=_literal(place))
        for place, edge in enumerate(edges)
    ]
    known = exp.If(
        this=exp.GTE(this=inner.copy(), expression=_literal(edges[-1])),
        true=_literal(len(edges)),
    )
    return exp.Case(ifs=[*branches, known])


def _literal(value: Decimal | int) -> exp.Expr:
    found: exp.Expr = exp.Literal.number(f"{Decimal(value):f}")
    return found


def _formatted(node: exp.Expr) -> exp.Expr:
    return _strftime(node, "to_char", node.this, node.args.get("format"))


def _strftime(node: exp.Expr, name: str, day: exp.Expr, form: exp.Expr | None) -> exp.Expr:
    """``TO_CHAR(day, 'YYYY-MM')`` as ``STRFTIME(day, '%Y-%m')``, of numbers and separators."""
    parts = _FORMATS[name]
    text = form.name if type(form) is exp.Literal and form.is_string else "?"
    if not re.fullmatch(f"({'|'.join(parts)}|[-/. _])*", text):
        way_out = f"write years, months and days as numbers, such as '{parts[0]}-{parts[2]}'"
        raise refuse(f"the format of {name.upper()}()", way_out, node)
    for part, ours in zip(parts, _STRFTIME, strict=True):
        text = text.replace(part, ours)
    return exp.TimeToStr(this=day, format=exp.Literal.string(text))


def _named(node: exp.Expr) -> exp.Expr:
    """Functions that DuckDB does not have."""
    name, given = node.name.casefold(), node.expressions
    if name == "isnull" and len(given) == 2:
        return exp.Coalesce(this=given[0], expressions=[given[1]])
    if name == "date_format" and len(given) == 2:
        return _strftime(node, name, *given)
    if name in {"percentile_approx", "approx_percentile", "percentile"} and len(given) in {2, 3}:
        return exp.ApproxQuantile(this=given[0], quantile=given[1])
    if name == "mean" and len(given) == 1:
        return exp.Avg(this=given[0])
    if name in {"geomean", "geometric_mean"} and len(given) == 1:
        return exp.Exp(this=exp.Avg(this=exp.Ln(this=given[0])))
    return node


def _either(node: exp.Expr) -> exp.Expr:
    """``NVL2(a, b, c)`` as CASE."""
    only(node, "this", "true", "false")
    known = exp.Not(this=exp.Is(this=held(node.this), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=known, true=node.args["true"])], default=node.args["false"])


def _exists(node: exp.Expr) -> exp.Expr:
    """EXISTS is refused before its columns are read, which are of another table."""
    raise refuse_node(node, "")


_SPELLINGS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    **dict.fromkeys(_COMPARISONS, _compared),
    exp.EQ: _any_of,
    exp.NEQ: _none_of,
    exp.Between: _symmetric,
    exp.Group: _with_rollup,
    exp.WidthBucket: _bucket,
    exp.ToChar: _formatted,
    exp.Anonymous: _named,
    exp.Nvl2: _either,
    exp.Exists: _exists,
}
"""What may be spelt differently."""
