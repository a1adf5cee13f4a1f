"""Answers of a sub-select beside rows or answers with more groups.

``FROM t JOIN (SELECT a, AVG(x) AS m … GROUP BY a) USING (a) … GROUP BY a, b`` has the answer ``m``
in each of the groups of its ``a``: a window ``WITHIN``. If the sub-select is chosen by its answers
(``HAVING``, ``ORDER BY … LIMIT n``), the groups of the statement are, when they are displayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TypeVar

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr, conjuncts
from lrm.queries.sql.plan import (
    Answers,
    Filter,
    Item,
    JoinAnswers,
    Named,
    Plan,
    Project,
    Relation,
    has_rank,
    items_of,
    over_rows,
)
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown

Side = TypeVar("Side", bound=Relation)
"""Answers, or rows beside them."""

_GROUPS = "join answers with the same groups, or with fewer, by all of these"


def check_fewer(inner: Relation, two: Answers, plan: JoinAnswers) -> None:
    """Refuse answers that do not have some of the groups of the other side."""
    several = len(two.sets) > 1 or not two.keys or two.offset > 0
    if isinstance(inner, Answers):
        several = several or inner.is_cut or len(inner.sets) > 1 or not two.keys <= inner.keys
    if several:
        raise refuse("join", "JOIN of answers with different groups", _GROUPS, at=plan.at)
    if any(item.expr.has(ir.GroupCount, ir.Window) for item in two.items):
        advice = "write OVER (…) in the statement itself"
        raise refuse("nested", "JOIN of answers with OVER or AVG() of answers", advice, at=plan.at)


def within(node: Expr, two: Answers) -> Expr:
    """An expression of a sub-select in the groups of the statement around it."""
    keys, where = two.sets[0], (*two.where, *two.later)

    def put(node: Expr) -> Expr | None:
        if isinstance(node, ir.Window) and node.name in ir.RANKS:
            return _rank(node, keys, two)
        compares = isinstance(node, ir.Binary) and node.op in ir.COMPARISONS
        if compares or isinstance(node, ir.And | ir.Or | ir.Not | ir.Between):
            return None
        if not node.has(ir.Aggregate):
            return node
        return ir.Window("WITHIN", (over_rows(node, where),), keys, at=node.at)

    return node.mapped(put)


def _rank(node: ir.Window, keys: tuple[Expr, ...], two: Answers) -> Expr:
    """The number of a group of a sub-select, which is that of all groups in it."""
    order = tuple(replace(key, this=within(key.this, two)) for key in node.order)
    if node.name == "ROW_NUMBER":  # the rows of one group stay together
        order = (*order, *map(ir.SortKey, keys))
    elif node.name != "DENSE_RANK":
        advice = "write ROW_NUMBER() or DENSE_RANK()"
        raise refuse("window", f"a choice by {node.name}()", advice, node)
    return replace(node, name="DENSE_RANK", order=order)


def choices(two: Answers, plan: JoinAnswers) -> tuple[Expr, ...]:
    """The conditions by which a sub-select chooses among its groups."""
    conditions = [within(part, two) for part in (*two.having, *two.qualify)]
    if two.limit is not None:
        if not two.order or plan.left or two.qualify:
            advice = "write JOIN, and ORDER BY … LIMIT n in the sub-select"
            raise refuse("nested", "JOIN of these answers after LIMIT", advice, at=plan.at)
        rank = _rank(ir.Window("ROW_NUMBER", (), (), two.order, at=plan.at), two.sets[0], two)
        conditions.append(ir.Binary("<=", rank, ir.Number(str(two.limit)), at=plan.at))
    if plan.left and conditions:
        advice = "write JOIN: the others would have NULL"
        raise refuse("nested", "LEFT JOIN of answers that are chosen", advice, at=plan.at)
    return tuple(conditions)


def check_all_groups(answers: Answers, part: Expr) -> None:
    """Refuse a choice of groups that are added up, or of which some may be missing."""
    keys = {key for window in _windows(part) for key in window.partition}
    if not keys or not keys <= answers.keys:
        names = ", ".join(map(shown, keys - answers.keys)) or "the columns of the sub-select"
        advice = f"which rows are counted depends on noise; GROUP BY {names} too"
        raise refuse("nested", "adding up what is chosen by answers", advice, part)
    if not has_rank(part):
        return
    axes = frozenset[int]().union(*(key.axes for key in keys))
    inner = {
        condition
        for node in part.walk()
        if isinstance(node, ir.Aggregate)
        for condition in conjuncts(node.where)
    }
    for condition in (*answers.where, *answers.later, *answers.having):
        known = next((key for key in keys if condition == ir.Not(ir.IsNull(key))), None)
        if known is not None and condition not in inner:
            what = f"a choice of the first n by {shown(known)}, which may be NULL,"
            plain = isinstance(known, ir.Attribute | ir.LookedUp)
            text = shown(known) if plain else f"({shown(known)})"
            advice = f"write WHERE {text} IS NOT NULL in the sub-select that chooses"
            raise refuse("nested", what, advice, part)
        if condition.has(ir.Aggregate) or (condition.axes & axes and condition not in inner):
            what = f"the condition {shown(condition)} beside a choice of the first n"
            advice = "write it in the sub-select that chooses, too"
            raise refuse("nested", what, advice, condition)


def _windows(part: Expr) -> Iterator[ir.Window]:
    for node in part.walk():
        if isinstance(node, ir.Window) and node.name == "WITHIN":
            yield node


def pinned(plan: Filter) -> Plan | None:
    """``a JOIN b … WHERE b.y = 2024``, with the condition in ``b``; None for any other condition.

    A column of groups that has one value in a side needs no column of the other to be compared
    with: each side has the answers of its year.
    """
    condition, input_, above = plan.condition, plan.input, []
    while isinstance(input_, Filter):
        above.append(input_.condition)
        input_ = input_.input
    pair = pin_of(condition)
    if pair is None or not isinstance(input_, JoinAnswers) or not isinstance(pair[0], ir.Column):
        return None
    column, alias = pair[0], input_.alias
    if column.table == alias:
        if input_.left:
            return None
        items = tuple(Item(ir.Column(alias, i.name), None, i.name) for i in items_of(input_.other))
        other = Project(Filter(Named(input_.other, alias), condition), items)
        pushed: Plan = replace(input_, other=other)
    else:
        pushed = replace(input_, input=Filter(input_.input, condition))
    for part in reversed(above):
        pushed = Filter(pushed, part)
    return pushed


def unpinned(answers: Side, compared: Collection[Expr]) -> Side:
    """Answers without the groups that have one value, and that are not compared with others."""
    if not isinstance(answers, Answers):
        return answers
    pins = [pin for part in (*answers.where, *answers.later) if (pin := pin_of(part)) is not None]
    values = {
        key: value
        for key, value in pins
        if key in answers.keys and key not in compared and not _decides(key, answers.keys)
    }
    if not values:
        return answers

    def put(node: Expr) -> Expr | None:
        kept = isinstance(node, ir.Aggregate) or (node in answers.keys and node not in values)
        return node if kept else values.get(node)

    return replace(
        answers,
        sets=(tuple(key for key in answers.sets[0] if key not in values),),
        items=tuple(replace(item, expr=item.expr.mapped(put)) for item in answers.items),
        env={name: node.mapped(put) for name, node in answers.env.items()},
    )


def _decides(key: Expr, keys: Collection[Expr]) -> bool:
    """Whether a group may follow from others, or they from it: not the month from the year."""
    others = [other for other in keys if other != key and other.axes & key.axes]
    return any(not _is_part(one) for other in others for one in (key, other))


def _is_part(key: Expr) -> bool:
    return isinstance(key, ir.Call) and key.name in {"YEAR", "MONTH", "QUARTER", "EXTRACT"}


def pin_of(part: Expr) -> tuple[Expr, Expr] | None:
    """The sides of a comparison with a constant by =."""
    if not isinstance(part, ir.Binary) or part.op != "=":
        return None
    sides = (part.left, part.right)
    left, right = sides[::-1] if ir.is_constant(part.left) else sides
    return (left, right) if ir.is_constant(right) and not ir.is_constant(left) else None
