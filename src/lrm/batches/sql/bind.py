"""Expressions of sqlglot → expressions of `expr`: names resolved, everything else by allow-list.

A node that no entry of the tables below takes is refused, and so is every argument that an entry
does not name. To add a function, add an entry to `_CALLS` (written ``NAME(…)``, its arguments known
by name) or to `_WRITTEN` (sqlglot writes it in DuckDB's SQL).
"""

# ruff: noqa: SLF001 - the table of what builds each node stands after its class

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.refusals import fail, refuse
from lrm.batches.sql.words import ADVICE, AGGREGATES, DISTINCT, EXPRESSIONS, PREDICATES
from lrm.errors import SqlError

__all__ = ["Binder", "Scope", "Source", "folded", "only", "place", "refuse_node"]

MOST_WRITTEN = 100_000
"""Nodes of an expression, with what its columns stand for."""

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_LONGEST = 300  # digits: more has no meaning for 64-bit columns, and int() is quadratic
_MOST_BUCKETS = 1000
_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.SimilarTo: "SIMILAR TO",
    exp.Glob: "GLOB",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    exp.Abs: ("ABS", ("this",), ()),
    exp.Ceil: ("CEIL", ("this",), ()),
    exp.Floor: ("FLOOR", ("this",), ()),
    exp.Round: ("ROUND", ("this", "decimals"), ()),
    exp.Sign: ("SIGN", ("this",), ()),
    exp.Sqrt: ("SQRT", ("this",), ()),
    exp.Ln: ("LN", ("this",), ()),
    exp.Exp: ("EXP", ("this",), ()),
    exp.Pow: ("POWER", ("this", "expression"), ()),
    exp.Greatest: ("GREATEST", ("this", "expressions"), ("ignore_nulls",)),
    exp.Least: ("LEAST", ("this", "expressions"), ("ignore_nulls",)),
    exp.Coalesce: ("COALESCE", ("this", "expressions"), ("is_nvl",)),
    exp.Nullif: ("NULLIF", ("this", "expression"), ()),
    exp.Repeat: ("REPEAT", ("this", "times"), ()),
    exp.Concat: ("CONCAT", ("expressions",), ("safe", "coalesce")),
    exp.ConcatWs: ("CONCAT_WS", ("expressions",), ("safe", "coalesce")),
    exp.Replace: ("REPLACE", ("this", "expression", "replacement"), ()),
    exp.RegexpReplace: (
        "REGEXP_REPLACE",
        ("this", "expression", "replacement", "modifiers"),
        ("single_replace",),
    ),
    exp.DateDiff: ("DATE_DIFF", ("this", "expression"), ("unit", "date_part_boundary")),
}
"""Functions by their names, with their arguments in order, and settings that change nothing."""

_WRITTEN: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Upper, exp.Lower, exp.Length, exp.Trim, exp.Left, exp.Right, exp.Substring),
        *(exp.Reverse, exp.Contains, exp.StartsWith, exp.EndsWith, exp.StrPosition),
        *(exp.RegexpLike, exp.RegexpExtract, exp.SplitPart, exp.Ascii),
        *(exp.Log, exp.Trunc, exp.IsNan),
        *(exp.DateAdd, exp.DateSub, exp.DateFromParts, exp.TimeToStr, exp.Date),
        *(exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.DayOfWeekIso),
        *(exp.DayOfYear, exp.DayOfMonth, exp.WeekOfYear, exp.Dayname, exp.Monthname, exp.LastDay),
        *(exp.Extract, exp.DateTrunc, exp.TimestampTrunc, exp.Interval),
    }
)
"""Functions that sqlglot writes in DuckDB's SQL."""

_INSIDE: frozenset[type[exp.Expr]] = frozenset({exp.Literal, exp.Var, exp.DataType, exp.Boolean})
"""What stands within the text of such a function."""

_NAMED = frozenset(
    {
        *("date_part", "datepart", "weekday", "dayofmonth", "weekofyear", "date_diff"),
        *("yearweek", "century", "decade", "prefix", "suffix", "strlen", "even", "gcd", "printf"),
        *("like_escape", "ilike_escape"),
    }
)
_FUNCTION = re.compile(r"[A-Z_]+\([^()]*\)")
_DAY_FORMAT = re.compile(r"([^%]|%[YymdbBaAjuwUWVG%]|%-[mdj])*")
_TYPES = frozenset(
    {
        *(exp.DType.BOOLEAN, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.DATE),
        *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
        *(exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.INT128),
    }
)
_PARTS = frozenset(
    {
        *("year", "month", "day", "quarter", "week", "dow", "dayofweek", "isodow", "weekday"),
        *("doy", "dayofyear", "isoyear", "decade", "century", "millennium", "years", "months"),
        *("days", "quarters", "weeks", "yearweek", "week(monday)"),
    }
)
_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Variance: "VAR_SAMP",
    exp.VariancePop: "VAR_POP",
    exp.Stddev: "STDDEV_SAMP",
    exp.StddevSamp: "STDDEV_SAMP",
    exp.StddevPop: "STDDEV_POP",
    exp.Corr: "CORR",
    exp.CovarPop: "COVAR_POP",
    exp.CovarSamp: "COVAR_SAMP",
    exp.RegrSlope: "REGR_SLOPE",
    exp.RegrIntercept: "REGR_INTERCEPT",
    exp.RegrR2: "REGR_R2",
}
"""Aggregates of one or two expressions."""

_QUANTILES: dict[type[exp.Expr], str] = {
    exp.PercentileCont: "QUANTILE_CONT",
    exp.PercentileDisc: "QUANTILE_DISC",
    exp.Quantile: "QUANTILE_DISC",
    exp.ApproxQuantile: "QUANTILE_CONT",
}
_FORMATS = {"to_char": ("YYYY", "YY", "MM", "DD"), "date_format": ("yyyy", "yy", "MM", "dd")}
_STRFTIME = ("%Y", "%y", "%m", "%d")


def folded(name: str) -> str:
    """A name as names are compared: SQL has no upper and lower case here."""
    return name.casefold()


def place(node: exp.Expr | None) -> int | None:
    """Where the first word of a node begins in the text, if sqlglot knows."""
    found = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta] if node else []
    return min(found) if found else None


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse every argument of ``node`` that is set and not in ``allowed``."""
    for key, value in node.args.items():
        if key in allowed or value is None or value is False or value == []:
            continue
        name, advice = ADVICE.get(key, (key.strip("_").upper().replace("_", " "), AGGREGATES))
        values: Iterable[object] = value if isinstance(value, list) else [value]
        first = next((item for item in values if isinstance(item, exp.Expr)), node)
        raise refuse("clause", name, advice, at=place(first))


def refuse_node(node: exp.Expr, advice: str, code: str = "") -> SqlError:
    """Refuse a node that no table takes, named as SQL names it."""
    name, better = ADVICE.get(node.key, ("", advice))
    if not name and isinstance(node, exp.Func):
        name = f"{(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()}()"
    kinds = {
        exp.AggFunc: "aggregate",
        exp.Window: "window",
        exp.Null: "null",
        exp.Query: "subquery",
    }
    found = next((kind for one, kind in kinds.items() if isinstance(node, one)), "function")
    text = name or repr(node.sql(dialect="duckdb"))
    return refuse(code or found, text, better, at=place(node))


@dataclass(frozen=True, eq=False)
class Source:
    """A table, lookup or sub-select in FROM: its columns by their folded names."""

    alias: str
    columns: Mapping[str, Expr]
    kind: str = "table"


@dataclass(eq=False)
class Scope:
    """The names that an expression may use.

    Parameters
    ----------
    sources
        What FROM names; names of the first one come first.
    aliases
        Columns of SELECT that were named so far.
    elsewhere
        Finds a column of a lookup that is not in FROM; None where there is no such column.
    unknown
        Makes the error for a name that nothing has.
    select
        Builds a sub-select in an expression.
    among
        Builds ``key IN (SELECT …)``.
    """

    sources: list[Source]
    elsewhere: Callable[[str, str], Expr | None]
    unknown: Callable[[exp.Expr], SqlError]
    select: Callable[[exp.Expr], Expr]
    among: Callable[[Expr, exp.Expr], Expr]
    aliases: dict[str, Expr] = field(default_factory=dict)

    def column(self, node: exp.Expr, *, alias_first: bool = False) -> Expr:
        """What a column stands for."""
        if type(node.this) is not exp.Identifier:
            raise refuse_node(node.this, PREDICATES)
        only(node, "this", "table", "db", "catalog")
        name, table = folded(node.name), folded(node.text("table"))
        at = (node.args.get("table") or node.this).meta.get("start")
        found = self._found(name, table, at, alias_first=alias_first)
        if found is None:
            raise self.unknown(node)
        return _moved(found, at)

    def _found(self, name: str, table: str, at: int | None, *, alias_first: bool) -> Expr | None:
        if table:
            own = next((one for one in self.sources if one.alias == table), None)
            return self.elsewhere(table, name) if own is None else own.columns.get(name)
        if alias_first and name in self.aliases:
            return self.aliases[name]
        first, *others = self.sources or [Source("", {})]
        if name in first.columns:
            return first.columns[name]
        several = [one for one in others if name in one.columns]
        if len({one.columns[name] for one in several}) > 1:
            names = " and ".join(f"{one.alias}.{name}" for one in several)
            kinds = {one.kind for one in several}
            what = "lookups" if kinds == {"lookup"} else "sub-selects"
            raise SqlError(
                f"{name!r} is a column of several {what}; write {names}",
                code="unknown-column",
                at=at,
            )
        if several:
            return several[0].columns[name]
        return self.aliases.get(name) or self.elsewhere("", name)


def _moved(node: Expr, at: int | None) -> Expr:
    """An expression that is written elsewhere, at the place of the name that stands for it."""
    if isinstance(node, ir.Attribute):
        return ir.Attribute(node.axis, node.name, at=at)
    if isinstance(node, ir.Column):
        return ir.Column(node.table, node.name, at=at)
    if isinstance(node, ir.LookedUp):
        return ir.LookedUp(node.key, node.lookup, node.column, at=at)
    return node


@cache
def _generator() -> sqlglot.Generator:
    return sqlglot.Dialect.get_or_raise("duckdb").generator(comments=False)


class Binder:
    """Builds the expressions of one SELECT."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def expr(self, node: exp.Expr) -> Expr:
        """Build an expression."""
        built = _KINDS.get(type(node), Binder._other)(self, node)
        if built.size > MOST_WRITTEN:
            raise refuse("size", "so long an expression", "its columns stand for too much", built)
        return built

    def _at(self, node: exp.Expr, *children: Expr) -> int | None:
        own = node.meta.get("start")
        known = [one.at for one in children if one.at is not None]
        return min([*known, own]) if own is not None else min(known, default=None)

    # literals and names

    def _column(self, node: exp.Expr) -> Expr:
        return self.scope.column(node)

    def _literal(self, node: exp.Expr) -> Expr:
        text, at = str(node.this), node.meta.get("start")
        if node.is_string:
            return ir.Text(text, at=at)
        if len(text) > _LONGEST or _NUMBER.fullmatch(text) is None:
            raise SqlError(
                f"expected a number such as 12 or 0.5, got {text[:40]}", code="constant", at=at
            )
        return ir.Number(text, at=at)

    def _boolean(self, node: exp.Expr) -> Expr:
        return ir.Boolean(bool(node.this), at=node.meta.get("start"))

    def _null(self, node: exp.Expr) -> Expr:
        return ir.Null(at=node.meta.get("start"))

    def _paren(self, node: exp.Expr) -> Expr:
        only(node, "this")
        return self.expr(node.this)

    # operations

    def _negative(self, node: exp.Expr) -> Expr:
        only(node, "this")
        this = self.expr(node.this)
        if isinstance(this, ir.Number):
            text = this.text[1:] if this.text.startswith("-") else f"-{this.text}"
            return ir.Number(text, at=this.at)
        return ir.Negative(this, at=this.at)

    def _binary(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression", "typed", "safe", "negate")
        left, right = self.expr(node.this), self.expr(node.expression)
        found = ir.Binary(_BINARY[type(node)], left, right, at=self._at(node, left, right))
        return ir.Not(found, at=found.at) if node.args.get("negate") else found  # NOT LIKE

    def _escape(self, node: exp.Expr) -> Expr:
        """``a LIKE b ESCAPE c`` as a function."""
        names = {exp.Like: "LIKE_ESCAPE", exp.ILike: "ILIKE_ESCAPE"}
        if type(node.this) not in names:
            raise refuse_node(node, PREDICATES)
        args = tuple(map(self.expr, (node.this.this, node.this.expression, node.expression)))
        found = ir.Call(names[type(node.this)], args, at=args[0].at)
        return ir.Not(found, at=found.at) if node.this.args.get("negate") else found

    def _compared(self, node: exp.Expr) -> Expr:
        """A comparison; ``1 < a < 3`` would compare a truth with 3, which DuckDB does not do."""
        only(node, "this", "expression")
        listed = self._listed(node)
        if listed is not None:
            return listed
        if any(type(one) in _COMPARED for one in (node.this, node.expression)):
            text = node.sql(dialect="duckdb")
            advice = "join two comparisons by AND, or write parentheses"
            raise refuse("syntax", f"the chain {text}", advice, at=place(node))
        left, right = self.expr(node.this), self.expr(node.expression)
        return ir.Binary(_COMPARED[type(node)], left, right, at=self._at(node, left, right))

    def _listed(self, node: exp.Expr) -> Expr | None:
        """``a = ANY (ARRAY['x', 'y'])`` as IN, and ``a <> ALL (ARRAY[…])`` as NOT IN."""
        items = node.expression
        if type(node) is exp.EQ and type(items) is exp.Any:
            items = items.this
        elif (
            type(node) is exp.NEQ
            and type(items) is exp.Anonymous
            and folded(items.name) == "all"
            and len(items.expressions) == 1
        ):
            items = items.expressions[0]
        else:
            return None
        while type(items) is exp.Paren:
            items = items.this
        if type(items) is not exp.Array:
            return None
        this = self.expr(node.this)
        found = ir.In(this, tuple(map(self.expr, items.expressions)), at=this.at)
        return found if type(node) is exp.EQ else ir.Not(found, at=this.at)

    def _chain(self, node: exp.Expr) -> Expr:
        """``((a AND b) AND c) …`` as one node, without recursion: batches hold long chains."""
        kind, inner = type(node), node
        parts: list[exp.Expr] = []
        while type(inner) is kind:
            only(inner, "this", "expression")
            parts.append(inner.expression)
            inner = inner.this
        made = ir.And if kind is exp.And else ir.Or
        items: list[Expr] = []
        for one in (inner, *reversed(parts)):
            built = self.expr(one)
            items += built.items if isinstance(built, made) else [built]
        return made(tuple(items), at=items[0].at)

    def _not(self, node: exp.Expr) -> Expr:
        only(node, "this")
        this = self.expr(node.this)
        return ir.Not(this, at=this.at)

    def _is(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression")
        this, other = self.expr(node.this), node.expression
        if type(other) is exp.Null:
            return ir.IsNull(this, at=this.at)
        if type(other) is not exp.Boolean:
            raise refuse_node(node, PREDICATES)
        return ir.Binary("IS", this, self.expr(other), at=this.at)

    def _in(self, node: exp.Expr) -> Expr:
        this = self.expr(node.this)
        if node.args.get("query") is not None:
            only(node, "this", "query")
            return self.scope.among(this, node.args["query"])
        only(node, "this", "expressions")
        if not node.expressions:
            raise refuse("syntax", "IN without constants", "list the constants", this)
        return ir.In(this, tuple(map(self.expr, node.expressions)), at=this.at)

    def _between(self, node: exp.Expr) -> Expr:
        only(node, "this", "low", "high", "symmetric")
        this, low, high = (self.expr(node.args[key]) for key in ("this", "low", "high"))
        if node.args.get("symmetric"):
            if not isinstance(low, ir.Number) or not isinstance(high, ir.Number):
                advice = "write the smaller constant first"
                raise refuse("clause", "BETWEEN SYMMETRIC", advice, this)
            low, high = sorted([low, high], key=lambda one: Decimal(one.text))
        return ir.Between(this, low, high, at=this.at)

    def _tuple(self, node: exp.Expr) -> Expr:
        only(node, "expressions")
        items = tuple(map(self.expr, node.expressions))
        return ir.Row(items, at=self._at(node, *items))

    def _case(self, node: exp.Expr) -> Expr:
        only(node, "this", "ifs", "default")
        operand = None if node.this is None else self.expr(node.this)
        conditions, results = [], []
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            condition = self.expr(branch.this)
            if operand is not None:
                condition = ir.Binary("=", operand, condition, at=condition.at)
            conditions.append(condition)
            results.append(self.expr(branch.args["true"]))
        default = node.args.get("default")
        other = None if default is None else self.expr(default)
        at = self._at(node, *conditions)
        return ir.Case(tuple(conditions), tuple(results), other, at=at)

    def _if(self, node: exp.Expr) -> Expr:
        only(node, "this", "true", "false")
        condition, then = self.expr(node.this), self.expr(node.args["true"])
        default = node.args.get("false")
        other = None if default is None else self.expr(default)
        return ir.Case((condition,), (then,), other, at=self._at(node, condition))

    def _either(self, node: exp.Expr) -> Expr:
        """``NVL2(a, b, c)`` as CASE."""
        only(node, "this", "true", "false")
        this, then, other = (self.expr(node.args[key]) for key in ("this", "true", "false"))
        return ir.Case((ir.Not(ir.IsNull(this)),), (then,), other, at=this.at)

    def _cast(self, node: exp.Expr) -> Expr:
        only(node, "this", "to", "_type", "safe")
        kind = node.args["to"]
        this = self.expr(node.this)
        if kind.this not in _TYPES:
            raise refuse("function", f"CAST to {kind.sql(dialect='duckdb')}", EXPRESSIONS, this)
        return ir.Cast(this, kind.sql(dialect="duckdb"), type(node) is exp.TryCast, at=this.at)

    # functions

    def _other(self, node: exp.Expr) -> Expr:
        kind = type(node)
        if kind in _CALLS:
            return self._call(node)
        if kind in _WRITTEN:
            return self._written(node)
        if kind in _AGGREGATES:
            return self._aggregate(node)
        raise refuse_node(node, EXPRESSIONS)

    def _call(self, node: exp.Expr) -> Expr:
        name, keys, ignored = _CALLS[type(node)]
        only(node, *keys, *ignored)
        args: list[Expr] = []
        for key in keys:
            value = node.args.get(key)
            if isinstance(value, list):
                args += map(self.expr, value)
            elif value is not None:
                args.append(self.expr(value))
        pieces = None
        if type(node) is exp.DateDiff:
            unit = node.args["unit"].name if node.args.get("unit") is not None else "day"
            self._check_part(node, unit)
            args.reverse()
            pieces = (f"DATE_DIFF('{folded(unit)}', ", ", ", ")")
        return ir.Call(name, tuple(args), pieces, at=self._at(node, *args))

    def _written(self, node: exp.Expr) -> Expr:
        """A function as sqlglot writes it, around its arguments."""
        self._check(node)
        args: list[Expr] = []

        def held(value: Any) -> Any:
            if isinstance(value, list):
                return [held(one) for one in value]
            if not isinstance(value, exp.Expr) or type(value) in _INSIDE:
                return value
            args.append(self.expr(value))
            return exp.column(f"\x00{len(args) - 1}\x00")

        copy = type(node)(**{key: held(value) for key, value in node.args.items()})
        text = str(_generator().generate(copy, copy=True))
        if _FUNCTION.fullmatch(text) is None:  # day + INTERVAL …, CASE … END
            text = f"({text})"
        found = re.split('"?\x00(\\d+)\x00"?', text)
        order = [int(number) for number in found[1::2]]
        name = node.name if type(node) is exp.Anonymous else node.key
        at = self._at(node, *args)
        ordered = tuple(args[one] for one in order)
        return ir.Call(name.upper(), ordered, tuple(found[::2]), at=at)

    def _check(self, node: exp.Expr) -> None:
        kind = type(node)
        if kind is exp.TimeToStr:
            form = node.this if type(node.this) is exp.Literal else node.args["format"]
            if type(form) is not exp.Literal or _DAY_FORMAT.fullmatch(form.name) is None:
                advice = "format year, month, week and day: '%Y-%m-%d'"
                raise refuse("function", node.sql(dialect="duckdb"), advice, at=place(node))
        if kind is exp.Log and node.args.get("expression") is not None:
            advice = "write LOG(x) for base 10, or LN(x)"
            raise refuse("function", node.sql(dialect="duckdb"), advice, at=place(node))
        for value in node.args.values():
            if type(value) is exp.Var:
                self._check_part(node, value.name)

    def _check_part(self, node: exp.Expr, name: str) -> None:
        # The hour of a column declared as dates is not known: its day is.
        if folded(name) not in _PARTS:
            advice = "write year, quarter, month, week, day or dow"
            raise refuse("function", f"the part {name!r} of a date", advice, at=place(node))

    def _pad(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression", "fill_pattern", "is_left")
        keys = [key for key in ("this", "expression", "fill_pattern") if node.args.get(key)]
        args = tuple(self.expr(node.args[key]) for key in keys)
        name = "LPAD" if node.args.get("is_left") else "RPAD"
        return ir.Call(name, args, at=self._at(node, *args))

    def _anonymous(self, node: exp.Expr) -> Expr:
        """Functions that sqlglot does not know."""
        name, given = folded(node.name), node.expressions
        if name == "isnull" and len(given) == 2:
            return self.expr(exp.Coalesce(this=given[0], expressions=[given[1]]))
        if name == "date_format" and len(given) == 2:
            return self._strftime(node, name, *given)
        if name in {"percentile_approx", "approx_percentile", "percentile"} and len(given) > 1:
            return self._quantile(exp.ApproxQuantile(this=given[0], quantile=given[1]))
        if name in {"mean", "geomean", "geometric_mean"} and len(given) == 1:
            plain = exp.Avg(this=given[0])
            mean = exp.Exp(this=exp.Avg(this=exp.Ln(this=given[0])))
            return self.expr(plain if name == "mean" else mean)
        if name not in _NAMED:
            raise refuse_node(node, EXPRESSIONS)
        if name in {"date_part", "datepart", "date_diff"}:
            self._check_part(node, given[0].name)
        if name not in {"printf", "like_escape", "ilike_escape"}:
            return self._written(node)
        args = tuple(map(self.expr, given))
        return ir.Call(name.upper(), args, at=self._at(node, *args))

    def _to_char(self, node: exp.Expr) -> Expr:
        return self._strftime(node, "to_char", node.this, node.args.get("format"))

    def _strftime(self, node: exp.Expr, name: str, day: exp.Expr, form: exp.Expr | None) -> Expr:
        """``TO_CHAR(day, 'YYYY-MM')`` as ``STRFTIME(day, '%Y-%m')``, of numbers and separators."""
        parts = _FORMATS[name]
        text = form.name if type(form) is exp.Literal and form.is_string else "?"
        if not re.fullmatch(f"({'|'.join(parts)}|[-/. _])*", text):
            advice = f"write years, months and days as numbers, such as '{parts[0]}-{parts[2]}'"
            raise refuse("function", f"the format of {name.upper()}()", advice, at=place(node))
        for part, ours in zip(parts, _STRFTIME, strict=True):
            text = text.replace(part, ours)
        return self._written(exp.TimeToStr(this=day, format=exp.Literal.string(text)))

    def _bucket(self, node: exp.Expr) -> Expr:
        """``WIDTH_BUCKET(x, low, high, n)``: 1 to n from low to high, 0 below and n + 1 above."""
        ends = [self.expr(node.args[key]) for key in ("min_value", "max_value", "num_buckets")]
        numbers = [Decimal(one.text) for one in ends if isinstance(one, ir.Number)]
        if len(numbers) < 3:
            advice = "give its ends and its count as numbers"
            raise refuse("function", "WIDTH_BUCKET() of columns", advice, at=place(node))
        low, high, count = numbers
        if not (low < high and count == int(count) and 0 < count <= _MOST_BUCKETS):
            advice = f"it takes a lower end, an upper end and a count of at most {_MOST_BUCKETS}"
            raise refuse("function", "this WIDTH_BUCKET()", advice, at=place(node))
        this = self.expr(node.this)
        edges = [ir.Number(f"{low + (high - low) * k / count:f}") for k in range(int(count) + 1)]
        conditions = [ir.Binary("<", this, edge, at=this.at) for edge in edges]
        conditions.append(ir.Binary(">=", this, edges[-1], at=this.at))
        results = tuple(ir.Number(str(number)) for number in range(len(conditions)))
        return ir.Case(tuple(conditions), results, at=this.at)

    # aggregates and windows

    def _count(self, node: exp.Expr) -> Expr:
        only(node, "this", "big_int")
        inner, at = node.this, self._at(node)
        while type(inner) is exp.Paren:
            inner = inner.this
        if inner is None or type(inner) is exp.Star:
            if inner is not None:
                only(inner)
            return ir.Aggregate("COUNT", at=at)
        if type(inner) is exp.Distinct:
            raise refuse("aggregate", "COUNT(DISTINCT …)", DISTINCT, at=place(node))
        this = self.expr(inner)
        if isinstance(this, ir.Null):
            raise refuse("null", "COUNT(NULL)", "it is always 0", this)
        if ir.is_constant(this):
            return ir.Aggregate("COUNT", at=at)
        return ir.Aggregate("COUNT", (this,), at=self._at(node, this))

    def _count_if(self, node: exp.Expr) -> Expr:
        only(node, "this")
        condition = self.expr(node.this)
        return ir.Aggregate("COUNT", (), condition, at=self._at(node, condition))

    def _aggregate(self, node: exp.Expr) -> Expr:
        name = _AGGREGATES[type(node)]
        only(node, "this", "expression")
        inner = node.this
        if inner is None:
            raise refuse("aggregate", f"{name} without an expression", AGGREGATES, at=place(node))
        if type(inner) is exp.Distinct:
            raise refuse("aggregate", f"{name}(DISTINCT …)", DISTINCT, at=place(node))
        args = [self.expr(inner)]
        if node.args.get("expression") is not None:
            args.append(self.expr(node.expression))
        return ir.Aggregate(name, tuple(args), at=self._at(node, *args))

    def _median(self, node: exp.Expr) -> Expr:
        only(node, "this")
        this = self.expr(node.this)
        return ir.Aggregate("QUANTILE_CONT", (this,), level=0.5, at=self._at(node, this))

    def _quantile(self, node: exp.Expr) -> Expr:
        level = self._level(node.args.get("quantile") or node.args.get("expression"), node)
        this = self.expr(node.this)
        name = _QUANTILES[type(node)]
        return ir.Aggregate(name, (this,), level=level, at=self._at(node, this))

    def _within(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression")
        if type(node.this) not in _QUANTILES:
            raise refuse_node(node.this, AGGREGATES)
        (order,) = node.expression.expressions
        level = self._level(node.this.this, node)
        this = self.expr(order.this)
        name = _QUANTILES[type(node.this)]
        if order.args.get("desc"):
            level, name = 1 - level, name.replace("DISC", "DISC_DESC")
        return ir.Aggregate(name, (this,), level=level, at=self._at(node.this, this))

    def _level(self, node: exp.Expr | None, whole: exp.Expr) -> float:
        number = None if node is None or type(node) is exp.Array else self.expr(node)
        if not isinstance(number, ir.Number):
            advice = "write one quantile per level: QUANTILE_CONT(x, 0.9)"
            found = "a quantile without one constant level"
            raise refuse("quantile", found, advice, at=place(whole))
        level = float(number.text)
        if not 0 < level < 1:
            sentence = f"the level of a quantile must be between 0 and 1, not {level:g}"
            raise fail("quantile", sentence, number)
        return level

    def _filter(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression")
        inner = self.expr(node.this)
        if not isinstance(inner, ir.Aggregate):
            raise refuse_node(node.this, AGGREGATES)
        only(node.expression, "this")
        where = self.expr(node.expression.this)
        if inner.where is not None:
            where = ir.And((*ir.conjuncts(inner.where), *ir.conjuncts(where)), at=where.at)
        return ir.Aggregate(inner.name, inner.args, where, inner.level, at=inner.at)

    def _window(self, node: exp.Expr) -> Expr:
        only(node, "this", "partition_by", "order", "over", "spec")
        if type(node.this) is not exp.Sum or type(node.this.this) is exp.Distinct:
            raise refuse_node(node, AGGREGATES)
        argument = self.expr(node.this.this)
        order = node.args.get("order")
        return ir.Window(
            "SUM",
            (argument,),
            tuple(map(self.expr, node.args.get("partition_by") or ())),
            () if order is None else tuple(self.sort_key(one) for one in order.expressions),
            None if node.args.get("spec") is None else self._frame(node.args["spec"], node),
            at=self._at(node.this, argument),
        )

    def sort_key(self, node: exp.Expr, *, alias_first: bool = False) -> ir.SortKey:
        """Build a key of ORDER BY."""
        only(node, "this", "desc", "nulls_first")
        inner = node.this
        while type(inner) is exp.Paren:
            inner = inner.this
        plain = alias_first and type(inner) is exp.Column
        this = self.scope.column(inner, alias_first=True) if plain else self.expr(inner)
        descending, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        return ir.SortKey(this, descending, first, at=this.at)

    def _frame(self, spec: exp.Expr, node: exp.Expr) -> ir.Frame:
        only(spec, "kind", "start", "start_side", "end", "end_side")
        ends, units = [], set()
        for end, missing in (("start", "UNBOUNDED"), ("end", "CURRENT ROW")):
            value, side = spec.args.get(end) or missing, spec.args.get(f"{end}_side") or "PRECEDING"
            sign = -1.0 if side == "PRECEDING" else 1.0
            if isinstance(value, str):
                ends.append(sign * float("inf") if value == "UNBOUNDED" else 0.0)
                continue
            if spec.args.get("kind") != "RANGE":
                advice = ADVICE["rows"][1]
                raise refuse("window", f"{spec.args.get('kind')} … {side}", advice, at=place(node))
            unit = ""
            if type(value) is exp.Interval:
                unit = "" if value.args.get("unit") is None else folded(value.args["unit"].name)
                value = value.this
            if type(value) is not exp.Literal or not value.name.isdecimal():
                raise refuse("window", "this frame of OVER (…)", ADVICE["frame"][1], at=place(node))
            units.add(unit.removesuffix("s"))
            ends.append(sign * float(value.name[:9]))
        if len(units) > 1:
            raise refuse("window", "this frame of OVER (…)", ADVICE["frame"][1], at=place(node))
        kind = str(spec.args.get("kind") or "RANGE")
        return ir.Frame(kind, ends[0], ends[1], units.pop() if units else "")

    def _subquery(self, node: exp.Expr) -> Expr:
        return self.scope.select(node)


_KINDS: dict[type[exp.Expr], Callable[[Binder, exp.Expr], Expr]] = {
    exp.Column: Binder._column,
    exp.Literal: Binder._literal,
    exp.Boolean: Binder._boolean,
    exp.Null: Binder._null,
    exp.Paren: Binder._paren,
    exp.Neg: Binder._negative,
    **dict.fromkeys(_BINARY, Binder._binary),
    **dict.fromkeys(_COMPARED, Binder._compared),
    exp.Escape: Binder._escape,
    exp.And: Binder._chain,
    exp.Or: Binder._chain,
    exp.Not: Binder._not,
    exp.Is: Binder._is,
    exp.In: Binder._in,
    exp.Between: Binder._between,
    exp.Tuple: Binder._tuple,
    exp.Case: Binder._case,
    exp.If: Binder._if,
    exp.Nvl2: Binder._either,
    exp.Cast: Binder._cast,
    exp.TryCast: Binder._cast,
    exp.Pad: Binder._pad,
    exp.Anonymous: Binder._anonymous,
    exp.ToChar: Binder._to_char,
    exp.WidthBucket: Binder._bucket,
    exp.Count: Binder._count,
    exp.CountIf: Binder._count_if,
    exp.Median: Binder._median,
    **dict.fromkeys(_QUANTILES, Binder._quantile),
    exp.WithinGroup: Binder._within,
    exp.Filter: Binder._filter,
    exp.Window: Binder._window,
    exp.Subquery: Binder._subquery,
}
"""What each kind of node is built by; functions and aggregates have tables of their own."""
