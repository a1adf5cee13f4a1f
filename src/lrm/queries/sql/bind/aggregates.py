"""Aggregates, quantiles and window functions of sqlglot → expressions, by allow-list.

Aggregates of one or two expressions are those of `lrm.queries.sql.statistics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.queries.sql import expr as ir
from lrm.queries.sql.bind.scope import bare, folded, only, place, refuse_node
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import ADVICE, AGGREGATES, DISTINCT, PERSONS, WINDOWS, fail, refuse
from lrm.queries.sql.statistics import STATISTICS

if TYPE_CHECKING:
    from lrm.queries.sql.bind import Binder

NAMES = ("SUM", "MODE", *STATISTICS)
"""Aggregates of one or two expressions, as SQL names them."""

_QUANTILES: dict[type[exp.Expr], str] = {
    exp.PercentileCont: "QUANTILE_CONT",
    exp.PercentileDisc: "QUANTILE_DISC",
    exp.Quantile: "QUANTILE_DISC",
    exp.ApproxQuantile: "QUANTILE_CONT",
}
_RANKS = {exp.FUNCTION_BY_NAME[name]: name for name in ir.RANKS}
"""Window functions that number the groups."""

_WINDOWS = {
    exp.FUNCTION_BY_NAME[name]: name
    for name in ("SUM", "AVG", "MAX", "MIN", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE")
} | {exp.Stddev: "STDDEV", exp.StddevSamp: "STDDEV", exp.StddevPop: "STDDEV_POP"}
"""Window functions that add up answers, or take those of other groups."""

_MOST_OFFSET = 6  # digits


def _count(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "big_int")
    inner, at = bare(node.this), bind.at(node)
    if inner is None or type(inner) is exp.Star:
        if inner is not None:
            only(inner)
        return ir.Aggregate("COUNT", at=at)
    if type(inner) is exp.Distinct:
        if len(inner.expressions) == 1 and bind.scope.is_person(bare(inner.expressions[0])):
            raise refuse("aggregate", "COUNT(DISTINCT …) of persons", PERSONS, at=place(node))
        names = ", ".join(column.sql(dialect="duckdb") for column in inner.expressions)
        raise refuse("aggregate", f"COUNT(DISTINCT {names})", DISTINCT, at=place(node))
    this = bind.expr(inner)
    if isinstance(this, ir.Null):
        raise refuse("null", "COUNT(NULL)", "it is always 0", this)
    if ir.is_constant(this):
        return ir.Aggregate("COUNT", at=at)
    return ir.Aggregate("COUNT", (this,), at=bind.at(node, this))


def _count_if(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "zero_on_all_null")
    condition = bind.expr(node.this)
    return ir.Aggregate("COUNT", (), condition, at=bind.at(node, condition))


def aggregate(bind: Binder, node: exp.Expr) -> Expr:
    """Build an aggregate of one or two expressions."""
    known = isinstance(node, exp.AggFunc)
    names = node.sql_names() if isinstance(node, exp.AggFunc) else [node.name.upper()]
    name = next(candidate for candidate in names if candidate in NAMES)
    if known:
        only(node, "this", "expression")
    operands = [node.this, node.args.get("expression")] if known else node.expressions
    inner = [candidate for candidate in operands if candidate is not None]
    if not inner:
        raise refuse("aggregate", f"{name} without an expression", AGGREGATES, at=place(node))
    if type(inner[0]) is exp.Distinct:
        raise refuse("aggregate", f"{name}(DISTINCT …)", DISTINCT, at=place(node))
    args = tuple(map(bind.expr, inner))
    return ir.Aggregate(name, args, at=bind.at(node, *args))


def _median(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this")
    this = bind.expr(node.this)
    return ir.Aggregate("QUANTILE_CONT", (this,), level=0.5, at=bind.at(node, this))


def _quantile(bind: Binder, node: exp.Expr) -> Expr:
    level = _level(bind, node.args.get("quantile") or node.args.get("expression"), node)
    this = bind.expr(node.this)
    name = _QUANTILES[type(node)]
    return ir.Aggregate(name, (this,), level=level, at=bind.at(node, this))


def _bracket(bind: Binder, node: exp.Expr) -> Expr:
    """``APPROX_QUANTILES(x, 100)[OFFSET(50)]`` of BigQuery."""
    inner, place_of = node.this, node.expressions
    if type(inner) is exp.Split and len(place_of) == 1 and type(place_of[0]) is exp.Literal:
        number = int(place_of[0].name) + 1 - int(node.args.get("offset") or 0)
        index = exp.Literal.number(number)
        part = exp.SplitPart(this=inner.this, delimiter=inner.expression, part_index=index)
        missing = exp.Nullif(this=part, expression=exp.Literal.string(""))  # no such part
        return bind.expr(part if number == 1 else missing)
    parts = inner.args.get("expression") if type(inner) is exp.ApproxQuantiles else None
    numbers = [literal.name for literal in (parts, *place_of) if type(literal) is exp.Literal]
    if (
        len(numbers) != 2
        or not all(literal.isdigit() for literal in numbers)
        or int(numbers[0]) < 1
    ):
        raise refuse_node(node, AGGREGATES)
    count, place_in = map(int, numbers)
    place_in -= int(node.args.get("offset") or 0)
    if not 0 < place_in < count:
        raise fail("quantile", f"the quantile must be between 0 and {count}, not {place_in}")
    this = bind.expr(inner.this)
    level = place_in / count
    return ir.Aggregate("QUANTILE_CONT", (this,), level=level, at=bind.at(node, this))


def _within(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "expression")
    (order,) = node.expression.expressions
    if type(node.this) is exp.Mode:
        only(node.this)
        this = bind.expr(order.this)
        return ir.Aggregate("MODE", (this,), at=bind.at(node.this, this))
    if type(node.this) not in _QUANTILES:
        raise refuse_node(node.this, AGGREGATES)
    level = _level(bind, node.this.this, node)
    this = bind.expr(order.this)
    name = _QUANTILES[type(node.this)]
    if order.args.get("desc"):
        level, name = 1 - level, name.replace("DISC", "DISC_DESC")
    return ir.Aggregate(name, (this,), level=level, at=bind.at(node.this, this))


def _level(bind: Binder, node: exp.Expr | None, quantile_node: exp.Expr) -> float:
    number = None if node is None or type(node) is exp.Array else bind.expr(node)
    if not isinstance(number, ir.Number):
        advice = "write one quantile per level: QUANTILE_CONT(x, 0.9)"
        construct = "a quantile without one constant level"
        raise refuse("quantile", construct, advice, at=place(quantile_node))
    level = float(number.text)
    if not 0 < level < 1:
        sentence = f"the level of a quantile must be between 0 and 1, not {level:g}"
        raise fail("quantile", sentence, number)
    return level


def _filter(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "expression")
    inner = bind.expr(node.this)
    only(node.expression, "this")
    where = bind.expr(node.expression.this)
    if isinstance(inner, ir.OneValue):
        return replace(inner, this=ir.Case((where,), (inner.this,), at=inner.at))
    if not isinstance(inner, ir.Aggregate):
        raise refuse_node(node.this, AGGREGATES)
    if inner.where is not None:
        where = ir.And((*ir.conjuncts(inner.where), *ir.conjuncts(where)), at=where.at)
    return replace(inner, where=where)


def _one_value(bind: Binder, node: exp.Expr) -> Expr:
    """``MAX(x)``, ``MIN(x)`` and ``ANY_VALUE(x)``: `rewrite` knows where x is public."""
    only(node, "this")
    this = bind.expr(node.this)
    if ir.is_constant(this):
        return this
    name = "MAX" if type(node) is exp.Max else "MIN" if type(node) is exp.Min else "ANY_VALUE"
    return ir.OneValue(name, this, at=bind.at(node, this))


# windows


def _window(bind: Binder, node: exp.Expr) -> Expr:
    only(node, "this", "partition_by", "order", "over", "spec", "alias")
    inner, spec = node.this, node
    if node.args.get("alias") is not None:
        name = folded(node.args["alias"].name)
        if name not in bind.scope.windows:
            sentence = f"no window is called {node.args['alias'].name!r}; define it in WINDOW"
            raise fail("window", sentence)
        spec = bind.scope.windows[name]
    kind = type(inner)
    if kind is exp.Anonymous and folded(inner.name) == "ratio_to_report":
        (this,) = map(bind.expr, inner.expressions)
        window_total = _over(bind, "SUM", (this,), node, spec)
        return ir.Binary("/", this, window_total, at=this.at)
    if kind in _RANKS:
        return _over(bind, _RANKS[kind], _buckets(bind, inner), node, spec)
    if kind not in _WINDOWS or type(inner.this) is exp.Distinct:
        if kind is exp.WithinGroup or kind in _QUANTILES:
            advice = "leave out OVER, and write GROUP BY what it is partitioned by"
            raise refuse("window", "a quantile OVER (…)", advice, at=place(node))
        text = inner.sql(dialect="duckdb")
        raise refuse("window", f"{text} OVER (…)", WINDOWS, at=place(node))
    return _over(bind, _WINDOWS[kind], _moved(bind, inner), node, spec)


def _over(
    bind: Binder, name: str, args: tuple[Expr, ...], node: exp.Expr, spec: exp.Expr
) -> ir.Window:
    order = spec.args.get("order")
    frame = spec.args.get("spec")
    if any(argument.has(ir.Window) for argument in args):
        advice = "write the inner one in a sub-select"
        raise refuse("window", "OVER within OVER", advice, at=place(node))
    return ir.Window(
        name,
        args,
        tuple(map(bind.expr, spec.args.get("partition_by") or ())),
        ()
        if order is None
        else tuple(sort_key(bind, order_node) for order_node in order.expressions),
        None if frame is None else _frame(frame, node),
        at=bind.at(node.this, *args),
    )


def _buckets(bind: Binder, node: exp.Expr) -> tuple[Expr, ...]:
    """The number of buckets of NTILE; other ranks have no argument."""
    only(node, "this")
    if type(node) is not exp.Ntile:
        only(node)
        return ()
    count = bind.expr(node.this) if node.this is not None else ir.Null()
    if not isinstance(count, ir.Number) or not count.text.isdigit() or int(count.text[:9]) < 1:
        raise refuse("window", "this NTILE()", "write a number of buckets: NTILE(4)", count)
    return (count,)


def _moved(bind: Binder, node: exp.Expr) -> tuple[Expr, ...]:
    """The argument of a window function; for LAG and LEAD also the offset and the default."""
    only(node, "this", "offset", "default")
    this = bind.expr(node.this)
    if type(node) not in {exp.Lag, exp.Lead}:
        return (this,)
    offset = node.args.get("offset")
    text = "1" if offset is None else offset.name if type(offset) is exp.Literal else "?"
    if not text.isdigit() or len(text) > _MOST_OFFSET:
        advice = "write a whole number of groups: LAG(x, 1)"
        raise refuse("window", "LAG or LEAD by an expression", advice, this)
    default = node.args.get("default")
    more = () if default is None else (bind.expr(default),)
    return (this, ir.Number(text), *more)


def sort_key(bind: Binder, node: exp.Expr, *, alias_first: bool = False) -> ir.SortKey:
    """Build a key of ORDER BY."""
    only(node, "this", "desc", "nulls_first")
    inner = bare(node.this)
    plain = alias_first and type(inner) is exp.Column
    this = bind.scope.column(inner, alias_first=True) if plain else bind.expr(inner)
    descending, first = bool(node.args.get("desc")), bind.scope.nulls_first(node)
    return ir.SortKey(this, descending, first, at=this.at)


def _frame(spec: exp.Expr, node: exp.Expr) -> ir.Frame:
    only(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args.get("kind") or "RANGE")
    ends, units = [], set()
    for end, missing in (("start", "UNBOUNDED"), ("end", "CURRENT ROW")):
        value, side = spec.args.get(end) or missing, spec.args.get(f"{end}_side") or "PRECEDING"
        sign = -1.0 if side == "PRECEDING" else 1.0
        if isinstance(value, str):
            ends.append(sign * float("inf") if value == "UNBOUNDED" else 0.0)
            continue
        unit = ""
        if type(value) is exp.Interval:
            unit = "" if value.args.get("unit") is None else folded(value.args["unit"].name)
            value = value.this
        if type(value) is not exp.Literal or not value.name.isdecimal() or kind == "GROUPS":
            raise refuse("window", "this frame of OVER (…)", ADVICE["frame"][1], at=place(node))
        units.add(unit.removesuffix("s"))
        ends.append(sign * float(value.name[:9]))
    if len(units) > 1 or (kind == "ROWS" and units - {""}):
        raise refuse("window", "this frame of OVER (…)", ADVICE["frame"][1], at=place(node))
    return ir.Frame(kind, ends[0], ends[1], units.pop() if units else "")


FUNCTIONS: dict[type[exp.Expr], Callable[[Binder, exp.Expr], Expr]] = {
    **{exp.FUNCTION_BY_NAME[name]: aggregate for name in NAMES if name in exp.FUNCTION_BY_NAME},
    **dict.fromkeys(_QUANTILES, _quantile),
    **dict.fromkeys((exp.Max, exp.Min, exp.AnyValue), _one_value),
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Median: _median,
    exp.Bracket: _bracket,
    exp.WithinGroup: _within,
    exp.Filter: _filter,
    exp.Window: _window,
}
"""What each aggregate and window function of sqlglot is built by."""
