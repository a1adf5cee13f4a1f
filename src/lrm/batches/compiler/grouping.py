"""GROUP BY, ROLLUP, CUBE and GROUPING SETS → sets of attributes and expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.expressions import CellLabel, shown
from lrm.batches.compiler.places import SEVERAL_SETS
from lrm.batches.compiler.refusals import at_line, only, refuse, refuse_node

if TYPE_CHECKING:
    from lrm.batches.compiler.predicates import Scope

__all__ = ["Grouping", "GroupingSet", "Keys", "groupings"]

GroupingSet = tuple[int, ...]
"""Positions of the attributes that one set groups by, ascending."""

Unit = tuple["exp.Expr", ...]
"""Expressions that a set is grouped by together."""

_MAX_CUBE = 12  # 4,096 sets: more is surely a mistake
_MAX_SETS = 1 << 14
_WAY_OUT = "group by attributes, ROLLUP, CUBE or GROUPING SETS of them"


Keys = dict[str, tuple[str, exp.Expr]]
"""Expressions that a statement is grouped by: their text, with the name and the expression."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Grouping sets that share the expressions that they are by."""

    sets: list[GroupingSet]
    keys: Keys


def groupings(select: exp.Expr, scope: Scope) -> list[Grouping]:
    """Return the grouping sets of a statement: one, the empty set, where it has no GROUP BY.

    Several elements multiply, as the standard says: ``GROUP BY a, ROLLUP (b)`` is
    ``GROUPING SETS ((a, b), (a))``.
    """
    group = select.args.get("group")
    if group is None:
        return [Grouping([()], {})]
    only(group, "expressions")
    factors = [_element(node) for node in group.expressions]
    count = math.prod(map(len, factors))
    if count > _MAX_SETS:
        raise at_line(group, f"{count:,} grouping sets are more than the {_MAX_SETS:,} compiled")
    named = _names(select)
    found: dict[tuple[str, ...], Grouping] = {}
    seen: set[tuple[object, ...]] = set()
    for parts in product(*factors):
        axes, keys = _split({shown(node): node for node in chain(*parts)}, named, scope)
        if (axes, tuple(keys)) in seen:
            names = ", ".join([*(scope.domain.names[axis] for axis in axes), *keys])
            raise refuse(f"the grouping set ({names}) twice", "name each set once", group)
        seen.add((axes, tuple(keys)))
        found.setdefault(tuple(keys), Grouping([], keys)).sets.append(axes)
    return list(found.values())


def _names(select: exp.Expr) -> dict[str, str]:
    """The aliases of columns of groups by their texts."""
    named: dict[str, str] = {}
    for one in select.expressions:
        if type(one) is not exp.Alias or one.find(exp.AggFunc) is not None:
            continue
        if named.setdefault(shown(one.this), one.alias) != one.alias:
            raise refuse(f"{shown(one.this)} under two names", "use one of them", one)
    return named


def _split(
    nodes: Mapping[str, exp.Expr], named: Mapping[str, str], scope: Scope
) -> tuple[GroupingSet, Keys]:
    """Tell the expressions of a grouping set from its attributes.

    An attribute that an expression reads too is grouped by the labels of its cells, as one of
    the expressions.
    """
    plain = {text: node for text, node in nodes.items() if type(node) is exp.Column}
    others = {text: node for text, node in nodes.items() if type(node) is not exp.Column}
    read = {scope.axis(one) for node in others.values() for one in node.find_all(exp.Column)}
    shared = {text: node for text, node in plain.items() if scope.axis(node) in read}
    keys: Keys = {
        text: (named.get(text, node.name), CellLabel(this=node)) for text, node in shared.items()
    }
    keys |= {text: (named.get(text, node.name or text), node) for text, node in others.items()}
    axes = {scope.axis(node) for text, node in plain.items() if text not in shared}
    return tuple(sorted(axes)), keys


def _element(node: exp.Expr) -> list[Unit]:
    kind = type(node)
    if kind is exp.Rollup:
        units = _units(node)
        return [tuple(chain(*units[:length])) for length in range(len(units), -1, -1)]
    if kind is exp.Cube:
        units = _units(node)
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
        return list(chain.from_iterable(_element(item) for item in node.expressions))
    return [_unit(node)]


def _units(node: exp.Expr) -> list[Unit]:
    only(node, "expressions")
    if not node.expressions:
        raise refuse(f"{node.key.upper()} without attributes", _WAY_OUT, node)
    return [_unit(item) for item in node.expressions]


def _unit(node: exp.Expr) -> Unit:
    if type(node) is exp.Tuple:
        only(node, "expressions")
        return tuple(chain.from_iterable(_unit(item) for item in node.expressions))
    if type(node) is exp.Paren:
        only(node, "this")
        return _unit(node.this)
    if type(node) in SEVERAL_SETS:
        raise refuse_node(node, _WAY_OUT)
    return (node,)
