"""Scalar functions of sqlglot → expressions, by allow-list.

To add a function, add one entry: to `_CALLS` (written ``NAME(…)``, its arguments known by name), to
`_WRITTEN` (sqlglot writes it in DuckDB's SQL), or to `_NAMED` (sqlglot does not know it, DuckDB
does). An argument that an entry does not name is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from lrm.domain.ordered import MINUTES
from lrm.queries.sql import expr as ir
from lrm.queries.sql.bind.aggregates import aggregate
from lrm.queries.sql.bind.conversions import as_text, cast, converted, pieces_call
from lrm.queries.sql.bind.scope import bare, folded, only, place, refuse_node
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import EXPRESSIONS, refuse
from lrm.queries.sql.statistics import STATISTICS

if TYPE_CHECKING:
    from lrm.queries.sql.bind import Binder

_MOST_BUCKETS = 1000

_CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    exp.Abs: ("ABS", ("this",), ()),
    exp.Ceil: ("CEIL", ("this",), ()),
    exp.Floor: ("FLOOR", ("this",), ()),
    exp.Round: ("ROUND", ("this", "decimals"), ("casts_non_integer_decimals",)),
    exp.Sign: ("SIGN", ("this",), ()),
    exp.Sqrt: ("SQRT", ("this",), ()),
    exp.Ln: ("LN", ("this",), ()),
    exp.Exp: ("EXP", ("this",), ()),
    exp.Pow: ("POWER", ("this", "expression"), ()),
    exp.Coalesce: ("COALESCE", ("this", "expressions"), ("is_nvl", "is_null")),
    exp.Nullif: ("NULLIF", ("this", "expression"), ()),
    exp.Repeat: ("REPEAT", ("this", "times"), ()),
    exp.ConcatWs: ("CONCAT_WS", ("expressions",), ("safe", "coalesce", "flatten")),
    # CASE may compare it with 1, to label the rows of totals.
    exp.Grouping: ("GROUPING", ("expressions",), ()),
    exp.Replace: ("REPLACE", ("this", "expression", "replacement"), ()),
    exp.RegexpReplace: (
        "REGEXP_REPLACE",
        ("this", "expression", "replacement", "modifiers"),
        ("single_replace",),
    ),
}
"""Functions by their names, with their arguments in order, and settings that change nothing."""

_WRITTEN: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Upper, exp.Lower, exp.Length, exp.Trim, exp.Left, exp.Right, exp.Substring),
        *(exp.Reverse, exp.Contains, exp.StartsWith, exp.EndsWith, exp.StrPosition),
        *(exp.RegexpLike, exp.RegexpExtract, exp.SplitPart, exp.Ascii, exp.Initcap),
        *(exp.Log, exp.Trunc, exp.IsNan),
        *(exp.DateAdd, exp.DateSub, exp.DateFromParts, exp.TimeToStr, exp.Date, exp.AddMonths),
        *(exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DayOfWeekIso),
        *(exp.DayOfYear, exp.DayOfMonth, exp.WeekOfYear, exp.Dayname, exp.Monthname, exp.LastDay),
        *(exp.Hour, exp.Minute, exp.Second, exp.DateBin),
        *(exp.TimestampTrunc, exp.Interval, exp.TsOrDsAdd),
    }
)
"""Functions that sqlglot writes in DuckDB's SQL."""

_NAMED = frozenset(
    {
        *("date_part", "datepart", "weekday", "dayofmonth", "weekofyear", "date_diff"),
        *("yearweek", "century", "decade", "prefix", "suffix", "strlen", "even", "gcd", "printf"),
        *("like_escape", "ilike_escape"),
    }
)
"""Functions that DuckDB has and sqlglot does not know."""

_INSIDE: frozenset[type[exp.Expr]] = frozenset(
    {exp.Literal, exp.Var, exp.DataType, exp.Boolean, exp.WeekStart}
)
"""What stands within the text of a function that sqlglot writes."""

_FUNCTION = re.compile(r"[A-Z_]+\([^()]*\)")
_DAY_FORMAT = re.compile(r"([^%]|%[YymdbBaAjuwUWVGHMSIp%]|%-[mdjHMSI])*")
_PARTS = frozenset(
    {
        *("year", "month", "day", "quarter", "week", "dow", "dayofweek", "isodow", "weekday"),
        *("doy", "dayofyear", "isoyear", "decade", "century", "millennium", "years", "months"),
        *("days", "quarters", "weeks", "yearweek", "week(monday)"),
        *("hour", "hours", "minute", "minutes", "second", "seconds"),
    }
)
_ISO_TIMES = frozenset(
    f"{day}{clock}"
    for day, clocks in (
        ("YYYY-MM-DD", ("", " HH24:MI", " HH24:MI:SS")),
        ("yyyy-MM-dd", ("", " HH:mm", " HH:mm:ss")),
        ("%Y-%m-%d", ("", " %H:%M", " %H:%M:%S")),
    )
    for clock in clocks
)
_CLOCK = frozenset({"hour", "hours", "minute", "minutes", "second", "seconds"})
_UNITS = {"mm": "month", "mon": "month", "yy": "year", "yyyy": "year", "q": "quarter"}
_WEEKS = {"isoweek": "week", "iso_week": "week", "isowk": "week", "weekiso": "week"}
_WEEKDAYS = frozenset({"dow", "dayofweek", "weekday", "dw"})

FROM_ONE = frozenset({"bigquery", "mysql", "spark", "tsql"})
"""Dialects that count days of the week from 1 on Sunday; the others count from 0."""

NULL_EXTREMES = frozenset({"bigquery", "mysql", "snowflake"})
"""Dialects in which GREATEST and LEAST are NULL where one argument is."""

DAY_TRUNCATIONS = frozenset({"bigquery", "snowflake", "tsql"})
"""Dialects in which the beginning of a month is a day, rather than a point in time."""

SUNDAY_WEEKS = frozenset({"bigquery", "mysql", "tsql"})
"""Dialects whose weeks begin on Sunday, unless they are ISO weeks."""


@cache
def _generator() -> sqlglot.Generator:
    return sqlglot.Dialect.get_or_raise("duckdb").generator(comments=False)


def _args(bind: Binder, node: exp.Expr, keys: tuple[str, ...]) -> tuple[Expr, ...]:
    expressions: list[Expr] = []
    for key in keys:
        value = node.args.get(key)
        if isinstance(value, list):
            expressions += map(bind.expr, value)
        elif value is not None:
            expressions.append(bind.expr(value))
    return tuple(expressions)


def _call(bind: Binder, node: exp.Expr) -> Expr:
    name, keys, ignored = _CALLS[type(node)]
    only(node, *keys, *ignored)
    args = _args(bind, node, keys)
    return ir.Call(name, args, at=bind.at(node, *args))


def _written(bind: Binder, node: exp.Expr) -> Expr:
    """A function as sqlglot writes it, around its arguments."""
    if type(node) is exp.Log and node.expression and node.this == exp.Literal.number(10):
        node = exp.Log(this=node.expression)  # LOG10(x), which is DuckDB's LOG(x) to the last digit
    _check(node)
    args: list[Expr] = []

    def held(value: Any) -> Any:
        if isinstance(value, list):
            return [held(element) for element in value]
        if not isinstance(value, exp.Expr) or type(value) in _INSIDE:
            return value
        args.append(bind.expr(value))
        return exp.column(f"\x00{len(args) - 1}\x00")

    copy = type(node)(**{key: held(value) for key, value in node.args.items()})
    text = str(_generator().generate(copy, copy=True))
    if _FUNCTION.fullmatch(text) is None:  # day + INTERVAL …, CASE … END
        text = f"({text})"
    name = node.name if type(node) is exp.Anonymous else node.key
    return pieces_call(name.upper(), text, args, bind.at(node, *args))


def _check(node: exp.Expr) -> None:
    kind = type(node)
    if kind is exp.TimeToStr:
        form = node.this if type(node.this) is exp.Literal else node.args["format"]
        if type(form) is not exp.Literal or _DAY_FORMAT.fullmatch(form.name) is None:
            advice = "format year, month, week, day, hour and minute: '%Y-%m-%d %H:%M'"
            raise refuse("function", node.sql(dialect="duckdb"), advice, at=place(node))
    if kind is exp.Log and node.args.get("expression") is not None:
        advice = "write LOG10(x), or LN(x) / LN(base)"
        raise refuse("function", node.sql(dialect="duckdb"), advice, at=place(node))
    for value in node.args.values():
        if type(value) is exp.Var:
            _check_part(node, value.name)


def _check_part(node: exp.Expr, name: str) -> None:
    if folded(name) not in _PARTS:
        advice = "write year, quarter, month, week, day, dow, hour or minute"
        raise refuse("function", f"the part {name!r} of a date", advice, at=place(node))


def _check_week(
    bind: Binder, node: exp.Expr, unit: str, more: frozenset[str] = frozenset()
) -> None:
    if folded(unit).removesuffix("s") in {"week", "yearweek"}:
        if bind.scope.dialect not in SUNDAY_WEEKS | more:
            return
        construct = f"a week that begins on Sunday, as {bind.scope.dialect} counts them,"
        raise refuse(
            "function", construct, "use the ISO week, or weeks from Monday", at=place(node)
        )


def _concat(bind: Binder, node: exp.Expr) -> Expr:
    """``CONCAT(a, b)``, which leaves NULL out or, in some dialects, is NULL like ``a || b``."""
    only(node, "expressions", "safe", "coalesce")
    args = _args(bind, node, ("expressions",))
    if node.args.get("coalesce") or len(args) < 2:
        return ir.Call("CONCAT", args, at=bind.at(node, *args))
    concatenation = args[0]
    for operand in args[1:]:
        concatenation = ir.Binary("||", concatenation, operand, at=bind.at(node, *args))
    return concatenation


def _extreme(bind: Binder, node: exp.Expr) -> Expr:
    """``GREATEST(a, b)``, which leaves NULL out or, in some dialects, is NULL where one is."""
    only(node, "this", "expressions", "ignore_nulls")
    args = _args(bind, node, ("this", "expressions"))
    at = bind.at(node, *args)
    extreme = ir.Call("GREATEST" if type(node) is exp.Greatest else "LEAST", args, at=at)
    if bind.scope.dialect not in NULL_EXTREMES:
        return extreme
    some = ir.Or(tuple(ir.IsNull(operand, at=operand.at) for operand in args), at=at)
    return ir.Case((some,), (ir.Null(),), extreme, at=at)


def _weekday(bind: Binder, node: exp.Expr) -> Expr:
    weekday = _written(bind, node)
    return _plus(weekday, 1) if bind.scope.dialect in FROM_ONE else weekday


def _plus(node: Expr, number: int) -> Expr:
    return ir.Binary("+", node, ir.Number(str(number)), at=node.at)


def _week(bind: Binder, node: exp.Expr) -> Expr:
    """``WEEK(day)``, and ``WEEK(day, 3)`` of MySQL, the ISO week."""
    only(node, "this", "mode")
    mode = node.args.get("mode")
    if mode is not None and bind.scope.dialect == "mysql":
        if type(mode) is not exp.Literal or mode.name != "3":
            advice = "write WEEK(day, 3), the ISO week"
            raise refuse("function", "this mode of WEEK()", advice, at=place(node))
        return _written(bind, exp.WeekOfYear(this=node.this))
    only(node, "this")
    _check_week(bind, node, "week")
    return _written(bind, node)


def _extract(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "expression")
    part = folded(node.this.name)
    _check_week(bind, node, part)
    part = "dayofweek" if part == "dw" else _WEEKS.get(part, part)
    extract_call = _written(
        bind, exp.Extract(this=exp.var(part.upper()), expression=node.expression)
    )
    return (
        _plus(extract_call, 1)
        if part in _WEEKDAYS and bind.scope.dialect in FROM_ONE
        else extract_call
    )


def _truncated(bind: Binder, node: exp.Expr) -> Expr:
    """``DATE_TRUNC``, whose unit some dialects spell otherwise."""
    unit = node.args["unit"]
    if type(unit) in {exp.Literal, exp.Var}:
        name = _UNITS.get(folded(unit.name), folded(unit.name))
        name = _WEEKS.get(name, name)
        if bind.scope.dialect == "tsql":
            _check_week(bind, node, name)
        _check_part(node, name)
        unit = exp.var(name.upper())
    truncated = _written(bind, exp.TimestampTrunc(this=node.this, unit=unit))
    if bind.scope.dialect not in DAY_TRUNCATIONS or not isinstance(truncated, ir.Call):
        return truncated
    return replace(truncated, name="DAYTRUNC")  # `rewrite` knows which columns are times


def _difference(bind: Binder, node: exp.Expr) -> Expr:
    """``DATE_DIFF('month', a, b)``: how many months begin between two days."""
    only(node, "this", "expression", "unit", "date_part_boundary", "big_int")
    unit = node.args.get("unit")
    if type(unit) is exp.WeekStart:  # of BigQuery
        name = {"monday": "week"}.get(folded(unit.this.name), "")
        if not name:
            _check_week(bind, node, "week")
    else:
        name = "day" if unit is None else folded(unit.name)
        _check_week(bind, node, name, frozenset({"redshift"}))
    _check_part(node, name)
    days = (bind.expr(day_node) for day_node in (node.expression, node.this))
    first, last = days if name in _CLOCK else map(_as_day, days)
    pieces = (f"DATE_DIFF('{name}', ", ", ", ")")
    return ir.Call("DATE_DIFF", (first, last), pieces, at=bind.at(node, first, last))


def _as_day(node: Expr) -> Expr:
    """A day that a dialect casts to a timestamp."""
    cast = isinstance(node, ir.Cast) and node.to == "TIMESTAMP"
    return ir.Cast(node.children[0], "DATE", at=node.at) if cast else node


def _elapsed(bind: Binder, node: exp.Expr) -> Expr:
    """``TIMESTAMPDIFF(month, a, b)`` of MySQL: how many months have passed."""
    only(node, "this", "expression", "unit")
    name = "day" if node.args.get("unit") is None else folded(node.args["unit"].name)
    _check_part(node, name)
    first, last = (
        ir.Cast(bind.expr(day_node), "DATE") for day_node in (node.expression, node.this)
    )
    if name in _CLOCK or any(bind.scope.is_time(side.this) for side in (first, last)):
        advice = "whole units that have passed are not known; write DATE_DIFF of their beginnings"
        raise refuse("function", "TIMESTAMPDIFF() of times", advice, at=place(node))
    pieces = (f"DATE_SUB('{name}', ", ", ", ")")
    return ir.Call("DATE_SUB", (first, last), pieces, at=bind.at(node, first.this, last.this))


def _as_date(bind: Binder, node: exp.Expr) -> Expr:
    """What a dialect makes of a column or text that it takes for a date."""
    only(node, "this", "safe", "default_date")
    this = bind.expr(node.this)
    kind = "DATE" if type(node) is exp.TsOrDsToDate else "TIMESTAMP"
    return ir.Cast(this, kind, safe=bool(node.args.get("safe")), at=this.at)


def _day(bind: Binder, node: exp.Expr) -> Expr:
    """``DATE(x)``, and ``DATE(2024, 1, 31)`` of BigQuery."""
    if node.this is None or node.expressions or node.args.get("zone") is not None:
        return _written(bind, node)
    only(node, "this")
    this = bind.expr(node.this)
    return ir.Cast(this, "DATE", at=this.at)


def _parsed_date(bind: Binder, node: exp.Expr) -> Expr:
    if type(node.this) is not exp.Literal:
        advice = "write it of a text, or have the owner of the table add a column of dates"
        raise refuse("function", "PARSE_DATE() of a column", advice, at=place(node))
    return _written(bind, node)


def _pad(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "expression", "fill_pattern", "is_left")
    args = _args(bind, node, ("this", "expression", "fill_pattern"))
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    return ir.Call(name, args, at=bind.at(node, *args))


def _decoded(bind: Binder, node: exp.Expr) -> Expr:
    """``DECODE(x, 1, 'a', 2, 'b', 'other')`` as CASE."""
    this, *rest = map(bind.expr, node.expressions)
    default = rest.pop() if len(rest) % 2 else None
    conditions = [
        ir.IsNull(this) if isinstance(value, ir.Null) else ir.Binary("=", this, value, at=value.at)
        for value in rest[::2]
    ]
    return ir.Case(tuple(conditions), tuple(rest[1::2]), default, at=bind.at(node, this))


def _field(bind: Binder, node: exp.Expr) -> Expr:
    """``FIELD(x, 'a', 'b')``: 1 for the first, 2 for the second, and 0 for any other value."""
    this, *values = map(bind.expr, node.expressions)
    return _placed(this, values, ir.Number("0"), bind.at(node, this))


def _found_in(bind: Binder, node: exp.Expr) -> Expr:
    """``FIND_IN_SET(x, 'a,b')``: 1 for the first, and 0 for any other value."""
    value, listed = node.expressions
    if type(listed) is not exp.Literal:
        raise refuse_node(node, EXPRESSIONS)
    texts: list[Expr] = [ir.Text(text) for text in listed.name.split(",")]
    this = bind.expr(value)
    return _placed(this, texts, ir.Number("0"), bind.at(node, this))


def _before(bind: Binder, node: exp.Expr) -> Expr:
    """``SUBSTRING_INDEX(x, '-', 1)``: what is before the first sign, or after the last by −1."""
    only(node, "this", "delimiter", "count")
    count = bind.expr(node.args["count"])
    if count not in {ir.Number("1"), ir.Number("-1")}:
        advice = "write 1 or -1, or SPLIT_PART"
        raise refuse("function", "this SUBSTRING_INDEX()", advice, at=place(node))
    part = exp.SplitPart(
        this=node.this, delimiter=node.args["delimiter"], part_index=node.args["count"]
    )
    return bind.expr(part)


def _slice(bind: Binder, node: exp.Expr) -> Expr:
    """``TIME_SLICE(x, 6, 'HOUR')`` of Snowflake, where the slices of a day are the same."""
    only(node, "this", "expression", "unit")
    unit = folded(node.args["unit"].name)
    count = int(node.expression.name[:4]) if node.expression.name.isdigit() else 0
    minutes = count * {"hour": 60, "minute": 1}.get(unit, 0)
    if not minutes or MINUTES % minutes:
        advice = "write hours or minutes that divide a day, or DATE_TRUNC"
        raise refuse("function", "this TIME_SLICE()", advice, at=place(node))
    length = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit.upper()))
    return bind.expr(exp.DateBin(this=length, expression=node.this))


def _grouping(bind: Binder, node: exp.Expr) -> Expr:
    args = tuple(map(bind.expr, node.expressions))
    return ir.Call("GROUPING", args, at=bind.at(node, *args))


def _position_in(bind: Binder, node: exp.Expr) -> Expr:
    """``array_position(ARRAY['a', 'b'], x)``: 1 for the first, and NULL for any other value."""
    array, value = node.this, node.expression
    if type(array) is not exp.Array:
        raise refuse_node(node, EXPRESSIONS)
    this = bind.expr(value)
    return _placed(this, list(map(bind.expr, array.expressions)), None, bind.at(node, this))


def _placed(this: Expr, values: list[Expr], default: Expr | None, at: int | None) -> Expr:
    conditions = tuple(ir.Binary("=", this, value, at=value.at) for value in values)
    results = tuple(ir.Number(str(number + 1)) for number in range(len(values)))
    return ir.Case(conditions, results, default, at=at)


def _matches(bind: Binder, node: exp.Expr) -> Expr:
    """``a ~* b``, whatever the case of its letters."""
    only(node, "this", "expression", "flag")
    this, pattern = bind.expr(node.this), bind.expr(node.expression)
    args = (this, pattern, ir.Text("i"))
    return ir.Call("REGEXP_MATCHES", args, at=bind.at(node, this))


def _as_time(bind: Binder, node: exp.Expr) -> Expr:
    """``TO_TIMESTAMP('2024-01-31', 'YYYY-MM-DD')`` of a text in ISO 8601."""
    only(node, "this", "format")
    text = node.this.name if type(node.this) is exp.Literal else ""
    if not text or node.args["format"].name not in _ISO_TIMES:
        advice = "write TIMESTAMP '2024-01-31 10:00:00'"
        raise refuse("function", "this conversion to a time", advice, at=place(node))
    return ir.Cast(bind.expr(node.this), "TIMESTAMP", at=place(node))


def _added(bind: Binder, node: exp.Expr) -> Expr:
    """``DATEADD(month, DATEDIFF(month, 0, x), 0)`` is the beginning of a month."""
    inner, unit = bare(node.expression), node.args.get("unit")
    inner = bare(inner.this) if type(inner) is exp.Interval else inner
    zero = [bare(side) for side in (node.this, getattr(inner, "expression", None))]
    plain = type(inner) in {exp.DateDiff, exp.TsOrDsDiff} and unit is not None
    from_zero = plain and all(
        (type(side) is exp.Literal and side.name == "0") or "1900-01-01" in side.sql()
        for side in zero
        if side is not None
    )
    if (
        not from_zero
        or None in zero
        or inner is None
        or unit is None
        or folded(inner.args["unit"].name) != folded(unit.name)
    ):
        if type(zero[0]) is exp.Literal and not zero[0].is_string:
            advice = (
                "write DATEADD(month, DATEDIFF(month, 0, day), 0), with one unit, and add to it"
            )
            raise refuse("function", "DATEADD() to a number", advice, at=place(node))
        return _written(bind, node)
    return bind.expr(exp.TimestampTrunc(this=inner.this, unit=exp.var(unit.name)))


def _picked(bind: Binder, node: exp.Expr) -> Expr:
    """``ELT(x, 'a', 'b')`` and ``CHOOSE(x, 'a', 'b')`` as CASE."""
    operands = node.expressions if node.this is None or isinstance(node.this, str) else []
    this, *results = map(bind.expr, operands or [node.this, *node.expressions])
    conditions = [
        ir.Binary("=", this, ir.Number(str(number)), at=this.at)
        for number in range(1, len(results) + 1)
    ]
    return ir.Case(tuple(conditions), tuple(results), at=bind.at(node, this))


def _safe_division(bind: Binder, node: exp.Expr) -> Expr:
    """``SAFE_DIVIDE(a, b)``, which is NULL where b is 0."""
    only(node, "this", "expression")
    left, right = bind.expr(node.this), bind.expr(node.expression)
    divisor = ir.Call("NULLIF", (right, ir.Number("0")), at=right.at)
    return ir.Binary("/", left, divisor, at=bind.at(node, left, right))


def _bucket(bind: Binder, node: exp.Expr) -> Expr:
    """``WIDTH_BUCKET(x, low, high, n)``: 1 to n from low to high, 0 below and n + 1 above."""
    ends = [bind.expr(node.args[key]) for key in ("min_value", "max_value", "num_buckets")]
    numbers = [Decimal(end.text) for end in ends if isinstance(end, ir.Number)]
    if len(numbers) < 3:
        advice = "give its ends and its count as numbers"
        raise refuse("function", "WIDTH_BUCKET() of columns", advice, at=place(node))
    low, high, count = numbers
    if not (low < high and count == int(count) and 0 < count <= _MOST_BUCKETS):
        advice = f"it takes a lower end, an upper end and a count of at most {_MOST_BUCKETS}"
        raise refuse("function", "this WIDTH_BUCKET()", advice, at=place(node))
    this = bind.expr(node.this)
    edges = [ir.Number(f"{low + (high - low) * k / count:f}") for k in range(int(count) + 1)]
    conditions = [ir.Binary("<", this, edge, at=this.at) for edge in edges]
    conditions.append(ir.Binary(">=", this, edges[-1], at=this.at))
    results = tuple(ir.Number(str(number)) for number in range(len(conditions)))
    return ir.Case(tuple(conditions), results, at=this.at)


# functions that sqlglot does not know


def named_function(bind: Binder, node: exp.Expr) -> Expr:
    """Build a function that is known by its name alone."""
    name, operands = folded(node.name), node.expressions
    special = _SPECIAL.get((name, len(operands)))
    if special is not None:
        return special(bind, node)
    if name in {"percentile_approx", "approx_percentile", "percentile"} and len(operands) > 1:
        return bind.expr(exp.ApproxQuantile(this=operands[0], quantile=operands[1]))
    if name in _LISTED and len(operands) >= _LISTED[name][0]:
        return _LISTED[name][1](bind, node)
    if name.upper() in STATISTICS:
        return aggregate(bind, node)
    if name not in _NAMED:
        raise refuse_node(node, EXPRESSIONS)
    if name in {"date_part", "datepart", "date_diff"}:
        _check_part(node, operands[0].name)
    _check_week(bind, node, name)
    if name not in {"printf", "like_escape", "ilike_escape"}:
        return _written(bind, node)
    args = tuple(map(bind.expr, operands))
    return ir.Call(name.upper(), args, at=bind.at(node, *args))


def _from_monday(bind: Binder, node: exp.Expr) -> Expr:
    """``WEEKDAY(day)``: 0 on Sunday in DuckDB, on Monday in MySQL and Spark."""
    if bind.scope.dialect not in {"mysql", "spark"}:
        return _written(bind, node)
    return _plus(_written(bind, exp.DayOfWeekIso(this=node.expressions[0])), -1)


def _instead(make: Callable[..., exp.Expr]) -> Callable[[Binder, exp.Expr], Expr]:
    """Build what a function is written as."""
    return lambda bind, node: bind.expr(make(*node.expressions))


_SPECIAL: dict[tuple[str, int], Callable[[Binder, exp.Expr], Expr]] = {
    **{
        (name, 2): as_text
        for name in ("to_char", "to_varchar", "date_format", "format", "format_date")
    },
    ("weekday", 1): _from_monday,
    ("find_in_set", 2): _found_in,
    ("isnull", 2): _instead(lambda value, other: exp.Coalesce(this=value, expressions=[other])),
    ("mean", 1): _instead(lambda argument: exp.Avg(this=argument)),
    ("var", 1): _instead(lambda argument: exp.Variance(this=argument)),
    ("varp", 1): _instead(lambda argument: exp.VariancePop(this=argument)),
    ("stdevp", 1): _instead(lambda argument: exp.StddevPop(this=argument)),
    **{
        (name, 1): _instead(lambda argument: exp.Exp(this=exp.Avg(this=exp.Ln(this=argument))))
        for name in ("geomean", "geometric_mean")
    },
}
"""Functions by their names and numbers of arguments."""

_LISTED: dict[str, tuple[int, Callable[[Binder, exp.Expr], Expr]]] = {
    "choose": (2, _picked),
    "field": (2, _field),
}
"""Functions of several arguments, with the least number of them."""

FUNCTIONS: dict[type[exp.Expr], Callable[[Binder, exp.Expr], Expr]] = {
    **dict.fromkeys(_CALLS, _call),
    **dict.fromkeys(_WRITTEN, _written),
    exp.Anonymous: named_function,
    exp.Concat: _concat,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.DayOfWeek: _weekday,
    exp.Week: _week,
    exp.Extract: _extract,
    exp.DateTrunc: _truncated,
    exp.TimestampTrunc: _truncated,
    exp.DatetimeTrunc: _truncated,
    exp.Date: _day,
    exp.DateDiff: _difference,
    exp.TsOrDsDiff: _difference,
    exp.TimestampDiff: _elapsed,
    exp.TsOrDsToDate: _as_date,
    exp.TsOrDsToTimestamp: _as_date,
    exp.TimeStrToTime: _as_date,
    exp.StrToDate: _parsed_date,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Convert: converted,
    exp.Pad: _pad,
    exp.DecodeCase: _decoded,
    exp.Elt: _picked,
    exp.SafeDivide: _safe_division,
    exp.RegexpILike: _matches,
    exp.ArrayPosition: _position_in,
    exp.GroupingId: _grouping,
    exp.StrToTime: _as_time,
    exp.DateAdd: _added,
    exp.WidthBucket: _bucket,
    exp.TimeSlice: _slice,
    exp.SubstringIndex: _before,
}
"""What each scalar function of sqlglot is built by."""
