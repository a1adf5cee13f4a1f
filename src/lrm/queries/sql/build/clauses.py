"""One SELECT: WHERE, GROUP BY, its columns, HAVING, QUALIFY, ORDER BY and LIMIT → a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql import plan as rel
from lrm.queries.sql.bind import Binder
from lrm.queries.sql.bind.aggregates import sort_key
from lrm.queries.sql.bind.scope import bare, flat, folded, only, place, refuse_node, row_count
from lrm.queries.sql.build.joins import From, Known
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import refuse

if TYPE_CHECKING:
    from lrm.queries.sql.build import Builder

_PARTS = (
    *("expressions", "from_", "where", "group", "having", "order", "limit", "offset"),
    *("with_", "joins", "qualify", "windows", "distinct"),
)
_LONGEST_PLACE = 9  # digits of a position
_MAX_CUBE = 12  # 4,096 sets: more is surely a mistake
_MAX_SETS = 1 << 14
Sets = tuple[tuple[Expr, ...], ...]
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True, eq=False)
class Selected:
    """The clauses of a SELECT, built."""

    plan: rel.Plan
    sets: Sets
    items: list[rel.Item]
    keys: tuple[ir.SortKey, ...]
    having: tuple[Expr, ...]
    qualify: tuple[Expr, ...]
    grouped: bool

    @property
    def expressions(self) -> list[Expr]:
        """All that is selected, sorted by and compared."""
        return [*(item.expr for item in self.items), *self.keys, *self.having, *self.qualify]


class Clauses:
    """Builds one SELECT from its clauses."""

    def __init__(
        self, builder: Builder, node: exp.Expr, known: Known, names: Sequence[str | None] = ()
    ) -> None:
        only(node, *_PARTS)
        self.node, self.names = node, names
        self.scope = From(builder, known, node.args.get("where"))
        self.bind = Binder(self.scope)
        for window_node in node.args.get("windows") or []:
            self.scope.windows[folded(window_node.name)] = window_node

    def plan(self) -> rel.Plan:
        """Build it."""
        node = self.node
        source = node.args.get("from_")
        if source is None:
            only(node, "expressions", "with_")
            items = [self._item(element, place_) for place_, element in enumerate(node.expressions)]
            if not all(element.expr.has(ir.Scalar) for element in items):
                raise refuse("clause", "SELECT without FROM", "name the table", at=place(node))
            return rel.Aggregate(rel.Scan(), ((),), tuple(items), grouped=False)
        plan = self.scope.plan(source, node.args.get("joins") or [])
        items = list(
            chain.from_iterable(
                self._items(element, number) for number, element in enumerate(node.expressions)
            )
        )
        where = node.args.get("where")
        if where is not None:
            only(where, "this")
            parts = [element for element in flat(where.this) if id(element) not in self.scope.taken]
            for element in parts:
                chosen = self.scope.chosen(plan, element)
                plan = rel.Filter(plan, self.bind.expr(element)) if chosen is None else chosen
        group, order = node.args.get("group"), node.args.get("order")
        sets = ((),) if group is None else self._sets(group, items)
        having, qualify = self._condition("having"), self._condition("qualify")
        keys = () if order is None else self._order(order, items)
        answers = Selected(plan, sets, items, keys, having, qualify, group is not None)
        answers = self._by_distinct(answers)
        every = answers.expressions
        mode = next((node for part in every for node in part.walk() if _is_mode(node)), None)
        if mode is not None:
            answers = _by_mode(mode, answers)
        return self._ended(answers)

    def _ended(self, answers: Selected) -> rel.Plan:
        """The plan of what is selected, with what is displayed of it."""
        node, items = self.node, tuple(answers.items)
        if answers.grouped or any(
            element.has(ir.Aggregate, ir.OneValue) for element in answers.expressions
        ):
            plan: rel.Plan = rel.Aggregate(answers.plan, answers.sets, items, answers.grouped)
        else:
            plan = rel.Project(answers.plan, items)
        self._check_distinct(answers)
        for part in answers.having:
            plan = rel.Choose(plan, part)
        for part in answers.qualify:
            plan = rel.Choose(plan, part, after=True)
        if answers.keys:
            plan = rel.Sort(plan, answers.keys)
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is not None or offset is not None:
            count = None if limit is None else row_count(limit)
            start = 0 if offset is None else row_count(offset)
            plan = rel.Limit(plan, count, start, place(limit or offset))
        return plan

    def _condition(self, clause: str) -> tuple[Expr, ...]:
        """The conditions of HAVING or QUALIFY that AND joins."""
        node = self.node.args.get(clause)
        if node is None:
            return ()
        only(node, "this")
        return ir.conjuncts(self.bind.expr(node.this))

    def _by_distinct(self, answers: Selected) -> Selected:
        """``DISTINCT ON (a)`` as the first of the groups that agree in ``a``, in their order."""
        distinct = self.node.args.get("distinct")
        on = None if distinct is None else distinct.args.get("on")
        if distinct is None or on is None:
            return answers
        only(distinct, "on")
        if not answers.grouped:
            raise refuse("clause", "DISTINCT ON of rows", "GROUP BY the columns", at=place(on))
        partition = tuple(map(self.bind.expr, on.expressions or [on]))
        return replace(answers, qualify=(*answers.qualify, _is_first(partition, answers.keys)))

    def _check_distinct(self, answers: Selected) -> None:
        """DISTINCT changes nothing where every group has a row of its own."""
        distinct = self.node.args.get("distinct")
        if distinct is None or distinct.args.get("on") is not None:
            return
        shown = {element.expr for element in answers.items}
        single = answers.grouped and len(answers.sets) == 1
        if not single or not shown.issuperset(answers.sets[0]):
            only(self.node, *(element for element in _PARTS if element != "distinct"))
        only(distinct)

    # the columns of SELECT

    def _items(self, node: exp.Expr, number: int) -> list[rel.Item]:
        star = node.this if type(node) is exp.Column else node
        if type(star) is not exp.Star:
            return [self._item(node, number)]
        only(star)
        table = folded(node.table) if type(node) is exp.Column else ""
        items = []
        for source in self.scope.sources:
            if table not in {"", source.alias}:
                continue
            columns = source.columns
            if source.kind == "lookup":
                columns = {
                    k: column for k, column in columns.items() if type(column) is ir.LookedUp
                }
            items += [rel.Item(column, None, name_of(column)) for column in columns.values()]
        if not items:
            raise self.scope.unknown(node)
        return items

    def _item(self, node: exp.Expr, number: int) -> rel.Item:
        alias, inner = None, node
        if type(node) is exp.Alias:
            only(node, "this", "alias")
            alias, inner = node.alias, node.this
        elif number < len(self.names):
            alias = self.names[number]
        expression = self.bind.expr(inner)
        inner = bare(inner)
        name = alias or (name_of(expression) if type(inner) is exp.Column else "")
        if type(inner) is exp.Column and (not name or isinstance(expression, ir.LookedUp)):
            name = alias or inner.name
        if type(inner) is exp.Column and ir.is_constant(expression):
            return rel.Item(expression, name, name)
        if alias is not None:
            self.scope.aliases.setdefault(folded(alias), expression)
        return rel.Item(expression, alias, name)

    # GROUP BY and ORDER BY

    def _sets(self, group: exp.Expr, items: list[rel.Item]) -> Sets:
        """The grouping sets of a statement.

        Several elements multiply, as the standard says: ``GROUP BY a, ROLLUP (b)`` is
        ``GROUPING SETS ((a, b), (a))``.
        """
        if group.args.get("all"):
            only(group, "all")
            return (tuple(member.expr for member in items if not _is_answer(member.expr)),)
        elements = list(group.expressions)
        for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
            set_nodes = group.args.get(part) or []
            if (
                [type(member) for member in set_nodes] == [kind]
                and not set_nodes[0].expressions
                and elements
            ):
                elements = [kind(expressions=elements)]  # WITH ROLLUP
            elif set_nodes:
                only(group, "expressions")
        only(group, "expressions", "rollup", "cube")
        factors = [self._element(node, items) for node in elements]
        count = math.prod(map(len, factors))
        if count > _MAX_SETS:
            sentence = f"{count:,} grouping sets are more than the {_MAX_SETS:,} supported"
            raise SqlError(sentence, code="size", at=place(group))
        return tuple(
            tuple(dict.fromkeys(chain.from_iterable(parts))) for parts in product(*factors)
        )

    def _element(self, node: exp.Expr, items: list[rel.Item]) -> list[tuple[Expr, ...]]:
        kind = type(node)
        if kind is exp.Rollup:
            units = self._units(node, items)
            return [tuple(chain(*units[:length])) for length in range(len(units), -1, -1)]
        if kind is exp.Cube:
            units = self._units(node, items)
            if len(units) > _MAX_CUBE:
                sentence = (
                    f"CUBE of {len(units)} attributes has 2^{len(units)} sets; "
                    f"at most {_MAX_CUBE} are supported"
                )
                raise SqlError(sentence, code="size", at=place(node))
            sizes = range(len(units), -1, -1)
            unit_subsets = chain.from_iterable(combinations(units, size) for size in sizes)
            return [tuple(chain(*parts)) for parts in unit_subsets]
        if kind is exp.GroupingSets:
            only(node, "expressions")
            return [
                grouping_set
                for item in node.expressions
                for grouping_set in self._element(item, items)
            ]
        return [self._unit(node, items)]

    def _units(self, node: exp.Expr, items: list[rel.Item]) -> list[tuple[Expr, ...]]:
        only(node, "expressions")
        advice = "group by attributes, ROLLUP, CUBE or GROUPING SETS of them"
        if not node.expressions:
            construct = f"{node.key.upper()} without attributes"
            raise refuse("clause", construct, advice, at=place(node))
        return [self._unit(item, items) for item in node.expressions]

    def _unit(self, node: exp.Expr, items: list[rel.Item]) -> tuple[Expr, ...]:
        node = bare(node)
        if type(node) is exp.Tuple:
            only(node, "expressions")
            return tuple(
                chain.from_iterable(
                    self._unit(expression, items) for expression in node.expressions
                )
            )
        if type(node) in _SETS:
            advice = "group by attributes, ROLLUP, CUBE or GROUPING SETS of them"
            raise refuse_node(node, advice, "clause")
        position = self._position(node, items, "GROUP BY")
        return (self.bind.expr(node) if position is None else position,)

    def _position(self, node: exp.Expr, items: list[rel.Item], clause: str) -> Expr | None:
        if type(node) is not exp.Literal or node.is_string or not str(node.this).isdigit():
            return None
        text = str(node.this)
        number = int(text[:_LONGEST_PLACE])
        if not 1 <= number <= len(items):
            short = text if len(text) <= _LONGEST_PLACE else f"{text[:_LONGEST_PLACE]}…"
            sentence = f"{clause} {short}: the SELECT list has {len(items)} items"
            raise SqlError(sentence, code="display", at=place(node))
        return items[number - 1].expr

    def _order(self, order: exp.Expr, items: list[rel.Item]) -> tuple[ir.SortKey, ...]:
        only(order, "expressions")
        sort_keys: list[ir.SortKey] = []
        for node in order.expressions:
            only(node, "this", "desc", "nulls_first")
            flags = bool(node.args.get("desc")), self.scope.nulls_first(node)
            inner = bare(node.this)
            position = self._position(inner, items, "ORDER BY")
            if (
                type(inner) is exp.Var
                and folded(inner.name) == "all"
                and not any("all" in element.columns for element in self.scope.sources)
            ):
                sort_keys += [ir.SortKey(element.expr, *flags) for element in items]
            elif position is not None:
                sort_keys.append(ir.SortKey(position, *flags, at=position.at))
            else:
                sort_keys.append(sort_key(self.bind, node, alias_first=True))
        return tuple(sort_keys)


_ROWS = ir.Aggregate("COUNT")


def _is_mode(node: Expr) -> bool:
    return isinstance(node, ir.Aggregate) and node.name == "MODE"


def _is_first(partition: tuple[Expr, ...], order: tuple[ir.SortKey, ...]) -> Expr:
    """Whether a group is the first one of those that agree in some columns."""
    rank = ir.Window("ROW_NUMBER", (), partition, order)
    return ir.Binary("=", rank, ir.Number("1"))


def _by_mode(mode: Expr, answers: Selected) -> Selected:
    """The most frequent value of each group, as the first of the groups by value.

    ``SELECT a, MODE(x) AS m … GROUP BY a`` is ``SELECT a, x AS m, COUNT(*) AS rows … GROUP BY a, x
    QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY COUNT(*) DESC) = 1``.
    """
    (this,), groups = mode.children[:1], answers.sets[0]
    if len(answers.sets) > 1:
        advice = "write one statement per set"
        raise refuse("aggregate", "MODE() with several grouping sets", advice, mode)
    if this in groups:
        raise refuse("aggregate", "MODE() of a column of GROUP BY", "select the column", mode)
    value = ir.Call("MODE", (this,), at=this.at)  # `rewrite` checks it, and puts ``this`` there
    instead = {mode: value}.get
    items = [
        replace(item, expr=value, alias=item.alias or "mode", name=item.name or "mode")
        if item.expr == mode
        else item
        for item in answers.items
    ]
    keys = tuple(replace(key, this=key.this.mapped(instead)) for key in answers.keys)
    rest = [*(item.expr for item in items), *keys, *answers.having, *answers.qualify]
    if any(part.has(ir.Aggregate, ir.Window) for part in rest):
        advice = "select it with the columns of GROUP BY alone"
        raise refuse("aggregate", "MODE() next to other aggregates", advice, mode)
    plan = answers.plan
    for condition in (ir.Not(ir.IsNull(this, at=this.at), at=this.at), *mode.children[1:]):
        plan = rel.Filter(plan, condition)
    return replace(
        answers,
        plan=plan,
        sets=((*groups, value),),
        items=[*items, rel.Item(_ROWS, "rows", "rows")],
        keys=keys,
        qualify=(_is_first(groups, (ir.SortKey(_ROWS, descending=True),)),),
        grouped=True,
    )


def name_of(node: Expr) -> str:
    """The name of a column by itself."""
    if isinstance(node, ir.Attribute | ir.Column):
        return node.name
    return node.column if isinstance(node, ir.LookedUp) else ""


def _is_answer(node: Expr) -> bool:
    return node.has(ir.Aggregate, ir.Window, ir.OneValue) or ir.is_constant(node)
