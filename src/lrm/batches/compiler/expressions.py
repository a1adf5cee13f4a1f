"""Which expressions are evaluated on declared values: an allow-list of what is deterministic."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from lrm.batches.compiler.evaluation import CellColumn, Question
from lrm.batches.compiler.lengths import check_lengths
from lrm.batches.compiler.refusals import at_line, refuse, refuse_node
from lrm.domain import Bins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lrm.batches.compiler.atoms import Truths
    from lrm.batches.compiler.predicates import Scope

__all__ = [
    "FUNCTIONS",
    "Apart",
    "CellLabel",
    "LookedUp",
    "attribute_column",
    "held",
    "question",
    "shown",
]


class LookedUp(exp.Expression, exp.Func):
    """A column of a lookup by its key: the lookup's name, and the column's.

    With an empty name of the column, whether the key has a row.
    """

    arg_types = {"this": True, "expression": True, "column": True}  # noqa: RUF012 - as sqlglot
    _sql_names = ["LOOKUP"]  # noqa: RUF012 - same


class CellLabel(exp.Expression, exp.Func):
    """The label of an attribute's cell: what a statement is grouped by where it names it."""


class Apart(exp.Expression, exp.Func):
    """The answer of a sub-select over all of its rows, whatever groups and rows stand around it."""


FUNCTIONS = [
    "ABS",
    "CEIL",
    "FLOOR",
    "ROUND",
    "SIGN",
    "SQRT",
    "POWER",
    "GREATEST",
    "LEAST",
    "COALESCE",
    "IFNULL",
    "NULLIF",
    "IF",
    "UPPER",
    "LOWER",
    "LENGTH",
    "TRIM",
    "LTRIM",
    "RTRIM",
    "LEFT",
    "RIGHT",
    "SUBSTRING",
    "REPLACE",
    "CONCAT",
    "REVERSE",
    "LPAD",
    "RPAD",
    "CONTAINS",
    "STARTS_WITH",
    "ENDS_WITH",
    "STRPOS",
    "REGEXP_MATCHES",
    "EXTRACT",
    "DATE_PART",
    "DATE_TRUNC",
    "YEAR",
    "MONTH",
    "DAY",
    "QUARTER",
    "WEEK",
    "DAYOFWEEK",
    "ISODOW",
    "WEEKDAY",
    "DAYOFYEAR",
    "DAYNAME",
    "MONTHNAME",
    "LAST_DAY",
    "DATE_DIFF",
    "STRFTIME",
    "MAKE_DATE",
    "CONCAT_WS",
    "SPLIT_PART",
    "REGEXP_EXTRACT",
    "REGEXP_REPLACE",
    "LN",
    "LOG",
    "EXP",
    "TRUNC",
]
"""Functions that are compiled."""

_PLAIN: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Is),
        *(exp.In, exp.Between, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg),
        *(exp.Case, exp.If, exp.Like, exp.Upper, exp.Lower, exp.Star, exp.Filter, exp.Where),
        *(exp.Count, exp.Sum, exp.Avg),
    }
)
_LOOKED_UP = re.compile(r"LOOKUP\([^,()]*, '((?:[^']|'')*)', '((?:[^']|'')*)'\)")
_INFIX = (exp.Connector, exp.DateAdd, exp.DateSub)
"""Functions in sqlglot's terms that are written as operators: AND, OR, ``day + INTERVAL …``."""
_NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.Neg, exp.Not),
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.DPipe),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        *(exp.And, exp.Or, exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.Escape),
        *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
        *(exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sign, exp.Sqrt),
        *(exp.Upper, exp.Lower, exp.Length, exp.Trim, exp.Left, exp.Right, exp.Substring),
        *(exp.Replace, exp.Concat, exp.Reverse, exp.Pad, exp.Contains, exp.StartsWith),
        *(exp.EndsWith, exp.StrPosition, exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace),
        *(exp.SimilarTo, exp.Glob, exp.ConcatWs, exp.SplitPart, exp.Repeat, exp.Ascii),
        *(exp.Ln, exp.Exp, exp.Log, exp.Trunc, exp.IsNan),
        *(exp.DateAdd, exp.DateSub, exp.DateFromParts, exp.TimeToStr, exp.Date),
        *(exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.DayOfWeekIso),
        *(exp.DayOfYear, exp.DayOfMonth, exp.WeekOfYear, exp.Dayname, exp.Monthname, exp.LastDay),
        *(exp.Extract, exp.DateTrunc, exp.TimestampTrunc, exp.DateDiff, exp.Interval),
        *(exp.Cast, exp.TryCast, exp.DataType, exp.Var),
    }
)
_NAMED = frozenset(
    {
        *("date_part", "datepart", "weekday", "dayofmonth", "weekofyear", "date_diff"),
        *("yearweek", "century", "decade", "prefix", "suffix", "strlen", "even", "gcd", "printf"),
    }
)
_DAY_FORMAT = re.compile(r"([^%]|%[YymdbBaAjuwUWVG%]|%-[mdj])*")
_TYPES = frozenset(
    {
        *(exp.DType.BOOLEAN, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.DATE),
        *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
        *(exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.INT128),
    }
)
_PARTS = frozenset(
    [
        "year",
        "month",
        "day",
        "quarter",
        "week",
        "dow",
        "dayofweek",
        "isodow",
        "weekday",
        "doy",
        "dayofyear",
        "isoyear",
        "decade",
        "century",
        "millennium",
        "years",
        "months",
        "days",
        "quarters",
        "weeks",
        "yearweek",
        "week(monday)",
    ]
)
_WAY_OUT = (
    "expressions use comparisons, AND OR NOT, CASE, arithmetic, LIKE, CAST to a plain type and "
    "deterministic functions of numbers, text and dates"
)


def question(node: exp.Expr, scope: Scope) -> Question:
    """Check an expression against the allow-list, and put columns for what cells answer."""
    raw: set[int] = set()
    conditions: list[tuple[int, Truths]] = []
    columns: list[CellColumn] = []
    seen: dict[str, str] = {}  # equal conditions are one: they have the same truth on a row

    def replaced(one: exp.Expr) -> exp.Expr:
        atom = scope.atom(one)
        if atom is not None:
            name = seen.setdefault(shown(one), f"p{len(conditions)}")
            conditions.extend([atom] if name == f"p{len(conditions)}" else [])
            return exp.column(name)
        column = scope.cell_column(one)
        if column is not None:
            name = seen.setdefault(shown(one), f"c{len(columns)}")
            columns.extend([column] if name == f"c{len(columns)}" else [])
            return exp.column(name)
        if type(one) is exp.Column:
            axis = scope.axis(one)
            _check_points(one, node, axis, scope)
            raw.add(axis)
            return exp.column(f"a{axis}")
        _check(one)
        return _searched(one)

    tree = node.copy().transform(replaced, copy=False)
    check_lengths(tree)
    text = tree.sql(dialect="duckdb", comments=False)
    return Question(shown(node), text, frozenset(raw), tuple(conditions), tuple(columns))


@cache
def _generator() -> sqlglot.Generator:
    return sqlglot.Dialect.get_or_raise("duckdb").generator(comments=False)


def point_text(node: exp.Expr, axis: int) -> str:
    """An expression of one column, checked against the allow-list, as the database reads it."""

    def replaced(one: exp.Expr) -> exp.Expr:
        if type(one) is exp.Column:
            return exp.column(f"a{axis}")
        _check(one)
        return one

    return node.transform(replaced).sql(dialect="duckdb", comments=False)


def columns_text(node: exp.Expr, names: Mapping[str, str]) -> str:
    """An expression of some columns, by lower-case name, as the database reads it; checked."""

    def replaced(one: exp.Expr) -> exp.Expr:
        if type(one) is exp.Column:
            return exp.column(names[one.name.casefold()])
        _check(one)
        return _searched(one)

    tree = node.copy().transform(replaced, copy=False)
    check_lengths(tree)
    return str(tree.sql(dialect="duckdb", comments=False))


def shown(node: exp.Expr) -> str:
    """An expression as it is shown in sentences."""
    # Writing a copy is slow, and needed only where the generator rewrites what it writes.
    plain = all(type(one) in _PLAIN for one in node.walk())
    text = str(_generator().generate(node, copy=not plain))
    text = text.replace("APART(", "(SELECT ") if "APART(" in text else text
    return _LOOKED_UP.sub(r"\1.\2", text) if "LOOKUP(" in text else text


def held(node: exp.Expr) -> exp.Expr:
    """A node that may stand inside any other expression: in parentheses, where it needs them.

    Examples
    --------
    >>> [held(sqlglot.parse_one(text)).sql() for text in ("a OR b", "LOWER(a)", "-1")]
    ['(a OR b)', 'LOWER(a)', '(-1)']
    """
    plain = isinstance(node, exp.Column | exp.Literal | exp.Boolean | exp.Null | exp.Paren)
    if plain or (isinstance(node, exp.Func) and not isinstance(node, _INFIX)):
        return node
    return exp.Paren(this=node)


def attribute_column(name: str) -> exp.Column:
    """The column of an attribute, spelt as it is declared: one text for each attribute."""
    return exp.Column(this=exp.to_identifier(name))


def _check_points(column: exp.Expr, node: exp.Expr, axis: int, scope: Scope) -> None:
    attribute = scope.domain.attributes[axis]
    if isinstance(attribute, Bins):
        edges = [edge for edge in attribute.edges if abs(edge) != float("inf")]
        example = f"{column.name} < {edges[len(edges) // 2]:g}"
        raise at_line(
            node,
            f"{shown(node)} has no one value on the cells of {attribute.name!r}, which are "
            f"intervals; compare the column itself with an edge, such as {example}",
        )


def _check(node: exp.Expr) -> None:
    kind = type(node)
    if kind is exp.Anonymous:
        if node.name.casefold() not in _NAMED:
            raise refuse_node(node, _WAY_OUT)
        if node.name.casefold() in {"date_part", "datepart", "date_diff"}:
            _check_part(node, node.expressions[0].name)
    elif kind not in _NODES:
        raise refuse_node(node, _WAY_OUT)
    if kind in _CHECKS:
        _CHECKS[kind](node)


def _check_cast(node: exp.Expr) -> None:
    if node.args["to"].this not in _TYPES:
        raise refuse(f"CAST to {shown(node.args['to'])}", _WAY_OUT, node)


def _check_format(node: exp.Expr) -> None:
    text = node.this if type(node.this) is exp.Literal else node.args["format"]
    if type(text) is not exp.Literal or _DAY_FORMAT.fullmatch(text.name) is None:
        raise refuse(shown(node), "format year, month, week and day: '%Y-%m-%d'", node)


def _check_log(node: exp.Expr) -> None:
    if node.args.get("expression") is not None:
        raise refuse(shown(node), "write LOG(x) for base 10, or LN(x)", node)


def _check_in(node: exp.Expr) -> None:
    if node.args.get("query") or node.args.get("unnest"):
        raise refuse("a subquery", "list the constants", node)
    if not node.expressions:
        raise refuse("IN without constants", "list the constants", node)


def _check_between(node: exp.Expr) -> None:
    if node.args.get("symmetric"):
        raise refuse("BETWEEN SYMMETRIC", "write the smaller constant first", node)


def _check_var(node: exp.Expr) -> None:
    _check_part(node, node.name)


_CHECKS: dict[type[exp.Expr], Callable[[exp.Expr], None]] = {
    exp.Cast: _check_cast,
    exp.TryCast: _check_cast,
    exp.TimeToStr: _check_format,
    exp.Log: _check_log,
    exp.Var: _check_var,
    exp.In: _check_in,
    exp.Between: _check_between,
}
"""What else is checked of some kinds of nodes."""


def _check_part(node: exp.Expr, name: str) -> None:
    # The hour of a column declared as dates is not known: its day is.
    if name.casefold() not in _PARTS:
        raise refuse(
            f"the part {name!r} of a date", "write year, quarter, month, week, day or dow", node
        )


def _searched(node: exp.Expr) -> exp.Expr:
    """``CASE a WHEN 1 …`` as ``CASE WHEN a = 1 …``, which cells of undeclared values answer."""
    if type(node) is not exp.Case or type(node.this) is not exp.Column:
        return node
    operand = node.this
    for branch in node.args["ifs"]:
        value = branch.this if type(branch.this) is exp.Literal else exp.Paren(this=branch.this)
        branch.set("this", exp.EQ(this=operand.copy(), expression=value))
    node.set("this", None)
    return node
