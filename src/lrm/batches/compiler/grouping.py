"""GROUP BY, ROLLUP, CUBE and GROUPING SETS → sets of attributes."""

from __future__ import annotations

import math
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.expressions import CellLabel, shown
from lrm.batches.compiler.refusals import at_line, only, refuse, refuse_node

if TYPE_CHECKING:
    from lrm.batches.compiler.predicates import Scope

__all__ = ["GroupingSet", "Keys", "grouping_sets", "split_keys"]

GroupingSet = tuple[int, ...]
"""Positions of the attributes that one set groups by, ascending."""

_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
_MAX_CUBE = 12  # 4,096 sets: more is surely a mistake
_MAX_SETS = 1 << 14
_WAY_OUT = "group by attributes, ROLLUP, CUBE or GROUPING SETS of them"


Keys = dict[str, tuple[str, exp.Expr]]
"""Expressions that a statement is grouped by: their text, with the name and the expression."""


def split_keys(select: exp.Expr, scope: Scope) -> tuple[exp.Expr | None, Keys]:
    """Tell the expressions that a statement is grouped by from attributes.

    An attribute that an expression reads too is grouped by the labels of its cells, as one of
    the expressions.
    """
    group = select.args.get("group")
    if group is None:
        return None, {}
    only(group, "expressions")
    plain = [node for node in group.expressions if type(node) in {exp.Column, *_SEVERAL}]
    others = [node for node in group.expressions if type(node) not in {exp.Column, *_SEVERAL}]
    if not others:
        return group, {}
    if any(type(node) in _SEVERAL for node in plain):
        raise refuse("an expression beside ROLLUP, CUBE or GROUPING SETS", _WAY_OUT, group)
    named: dict[str, str] = {}
    for one in select.expressions:
        if type(one) is not exp.Alias or one.find(exp.AggFunc) is not None:
            continue
        if named.setdefault(shown(one.this), one.alias) != one.alias:
            raise refuse(f"{shown(one.this)} under two names", "use one of them", one)
    read = {scope.axis(one) for node in others for one in node.find_all(exp.Column)}
    shared = [node for node in plain if scope.axis(node) in read]
    keys = {
        text: (named.get(text, node.name or text), node)
        for node in (*shared, *others)
        if (text := shown(node))
    }
    for text in map(shown, shared):
        keys[text] = keys[text][0], CellLabel(this=keys[text][1])
    kept = exp.Group(expressions=[node for node in plain if node not in shared])
    return (kept if kept.expressions else None), keys


def grouping_sets(group: exp.Expr | None, scope: Scope) -> list[GroupingSet]:
    """Return the grouping sets of a statement, one (the empty set) where it has no GROUP BY.

    Several elements multiply, as the standard says: ``GROUP BY a, ROLLUP (b)`` is
    ``GROUPING SETS ((a, b), (a))``.
    """
    if group is None:
        return [()]
    only(group, "expressions")
    factors = [_element(node, scope) for node in group.expressions]
    count = math.prod(map(len, factors))
    if count > _MAX_SETS:
        raise at_line(group, f"{count:,} grouping sets are more than the {_MAX_SETS:,} compiled")
    sets = [tuple(sorted(set(chain(*parts)))) for parts in product(*factors)]
    seen: set[GroupingSet] = set()
    for axes in sets:
        if axes in seen:
            names = ", ".join(scope.domain.names[axis] for axis in axes)
            raise refuse(f"the grouping set ({names}) twice", "name each set once", group)
        seen.add(axes)
    return sets


def _element(node: exp.Expr, scope: Scope) -> list[GroupingSet]:
    kind = type(node)
    if kind is exp.Rollup:
        units = _units(node, scope)
        return [tuple(chain(*units[:length])) for length in range(len(units), -1, -1)]
    if kind is exp.Cube:
        units = _units(node, scope)
        if len(units) > _MAX_CUBE:
            raise at_line(
                node,
                f"CUBE of {len(units)} attributes has 2^{len(units)} sets; "
                f"at most {_MAX_CUBE} are compiled",
            )
        sizes = range(len(units), -1, -1)
        chosen = chain.from_iterable(combinations(units, size) for size in sizes)
        return [tuple(chain(*parts)) for parts in chosen]
    if kind is exp.GroupingSets:
        only(node, "expressions")
        return list(chain.from_iterable(_element(item, scope) for item in node.expressions))
    return [_unit(node, scope)]


def _units(node: exp.Expr, scope: Scope) -> list[GroupingSet]:
    only(node, "expressions")
    if not node.expressions:
        raise refuse(f"{node.key.upper()} without attributes", _WAY_OUT, node)
    return [_unit(item, scope) for item in node.expressions]


def _unit(node: exp.Expr, scope: Scope) -> GroupingSet:
    if type(node) is exp.Tuple:
        only(node, "expressions")
        return tuple(scope.axis(item) for item in node.expressions)
    if type(node) is exp.Paren:
        only(node, "this")
        return _unit(node.this, scope)
    if type(node) is not exp.Column:
        raise refuse_node(node, _WAY_OUT)
    return (scope.axis(node),)
