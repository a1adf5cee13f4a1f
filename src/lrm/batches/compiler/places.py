"""Positions, ALL, and columns that follow from groups → the expressions that are grouped by."""

from __future__ import annotations

from sqlglot import exp

from lrm.batches.compiler.expressions import Apart, shown
from lrm.batches.compiler.refusals import at_line, only, refuse

__all__ = ["SEVERAL_SETS", "complete_groups", "drop_scalars", "of_groups", "resolve_places"]

SEVERAL_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
"""What gives a statement several grouping sets."""

_LONGEST = 9  # digits of a position
_LISTS = (exp.Group, *SEVERAL_SETS, exp.Tuple, exp.Paren)
"""What a position may stand in: the lists of GROUP BY, not an expression."""


def resolve_places(select: exp.Expr) -> None:
    """Put expressions for the positions and ALL of GROUP BY and ORDER BY."""
    items = [item.this if type(item) is exp.Alias else item for item in select.expressions]
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None:
        only(group, "expressions", "all", "rollup", "cube", "grouping_sets")
        if group.args.get("all"):
            group.set("all", None)
            plain = [item for item in items if not _is_answer(item)]
            group.set("expressions", [item.copy() for item in plain])
        for node in [one for one in group.find_all(exp.Literal) if _is_listed(one, group)]:
            _put_item(node, items, "GROUP BY")
    for key in order.expressions if order is not None else ():
        place = key.this
        while type(place) is exp.Paren:
            place = place.this
        _put_item(place, items, "ORDER BY")
    if order is not None and shown(order.expressions[0].this).casefold() == "all":
        kind = order.expressions[0].args
        every = [exp.Ordered(**{**kind, "this": item.copy()}) for item in items]
        order.set("expressions", every)


def _is_listed(node: exp.Expr, group: exp.Expr) -> bool:
    """Whether a number stands in GROUP BY by itself: ``GROUP BY a % (2)`` has no position."""
    parent = node.parent
    while parent is not None and parent is not group and isinstance(parent, _LISTS):
        parent = parent.parent
    return parent is group


def _is_answer(item: exp.Expr) -> bool:
    return item.find(exp.AggFunc) is not None or isinstance(item, exp.Literal)


def _put_item(node: exp.Expr, items: list[exp.Expr], clause: str) -> None:
    if type(node) is not exp.Literal or node.is_string or not str(node.this).isdigit():
        return
    text = str(node.this)
    place = int(text[:_LONGEST])
    if not 1 <= place <= len(items):
        shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        raise at_line(node, f"{clause} {shortened}: the SELECT list has {len(items)} items")
    node.replace(items[place - 1].copy())


def drop_scalars(select: exp.Expr) -> None:
    """Leave out of GROUP BY what has one value in the whole statement."""
    group = select.args.get("group")
    if group is not None and any(type(one) is Apart for one in group.expressions):
        kept = [one for one in group.expressions if type(one) is not Apart]
        group.set("expressions", kept)
        if not kept:
            select.set("group", None)


def complete_groups(select: exp.Expr) -> None:
    """Add to GROUP BY what SELECT computes from groups: it has one value in each of them.

    ``SELECT UPPER(a) … GROUP BY a`` is ``GROUP BY a, UPPER(a)``. Where a group is rolled up, such a
    column is not known.
    """
    group = select.args.get("group")
    if group is None:
        return
    several = any(type(one) in SEVERAL_SETS for one in group.expressions)
    known = {shown(one) for one in (group.walk() if several else group.expressions)}
    for item in select.expressions:
        node = item.unalias()
        plain = type(node) is exp.Column or node.find(exp.Column) is None
        if plain or node.find(exp.AggFunc, Apart, exp.Grouping) is not None or shown(node) in known:
            continue
        if several:
            way_out = "select the column itself: a row without its label is a total"
            raise refuse(f"{shown(node)} beside ROLLUP, CUBE or GROUPING SETS", way_out, node)
        if of_groups(node, group):
            group.append("expressions", node.copy())
            known.add(shown(node))


def of_groups(node: exp.Expr, group: exp.Expr) -> bool:
    """Whether an expression reads nothing but what is grouped by."""
    groups = {shown(one) for one in group.expressions}
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if shown(one) in groups:
            continue
        if type(one) is exp.Column:
            return False
        waiting += list(one.iter_expressions())
    return True
