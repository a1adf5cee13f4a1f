"""HAVING, ranks, ORDER BY and LIMIT → how the noisy answers of a statement are displayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import COMPARISONS, Expr
from lrm.batches.sql.formulas import number
from lrm.batches.sql.refusals import refuse
from lrm.batches.sql.render import shown
from lrm.domain import Categories
from lrm.workload import Column
from lrm.workload.display import Bound, Display, OrderKey, Rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrm.batches.sql.plan import Answers, UnionAll
    from lrm.domain import Attribute

__all__ = ["Wanted", "ascending", "union_display", "wanted"]

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_MOST_CLAUSES = 64
_HAVING = "HAVING compares aggregates with numbers; write other conditions in WHERE"
_ORDER = "order by answers or by columns of GROUP BY"


Clause = list[tuple[Expr, str, float]]
"""Comparisons of aggregates with numbers, one of which must hold."""


Groups = Mapping[Expr, tuple[Column, tuple[str, ...]]]
"""Each column of groups, and its labels in ascending order."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """What HAVING, QUALIFY, ORDER BY and LIMIT ask for, in expressions of the statement."""

    having: list[Clause]
    qualify: list[Clause]
    ranks: list[ir.Window]
    order: tuple[ir.SortKey, ...]
    limit: int | None
    offset: int

    @property
    def aggregates(self) -> list[Expr]:
        """The answers that are compared and sorted by."""
        compared = [node for clause in self.having + self.qualify for node, _, _ in clause]
        keys = [sort_key for rank in self.ranks for sort_key in rank.order] + list(self.order)
        sorted_by = [sort_key.this for sort_key in keys if sort_key.has(ir.Aggregate)]
        return [sort_key for sort_key in compared + sorted_by if not _is_rank(sort_key)]

    def display(self, queries: Sequence[str], names: Mapping[Expr, str], groups: Groups) -> Display:
        """Name what is asked for.

        Parameters
        ----------
        queries
            The answers that are displayed.
        names
            The name of each answer and rank.
        groups
            Each column of groups, and its labels in ascending order.
        """
        having, qualify = (
            tuple(
                tuple(Bound(names[node], comparison, value) for node, comparison, value in clause)
                for clause in clauses
            )
            for clauses in (self.having, self.qualify)
        )
        order = _order_keys(self.order, names, groups)
        ranks = tuple(_rank(bound_or_key, names, groups) for bound_or_key in self.ranks)
        keys = [*order, *(key for rank in ranks for key in rank.order)]
        used = {bound_or_key.answer for clause in (*having, *qualify) for bound_or_key in clause}
        used |= {bound_or_key.column for bound_or_key in keys if bound_or_key.labels is None} | {
            bound_or_key.name for bound_or_key in ranks
        }
        hidden = tuple(sorted(used.difference(queries)))
        end = self.limit, self.offset
        return Display(tuple(queries), hidden, having, order, *end, ranks, qualify)


def _order_keys(
    keys: Sequence[ir.SortKey], names: Mapping[Expr, str], groups: Groups
) -> tuple[OrderKey, ...]:
    order_keys = []
    for key in keys:
        flags = key.descending, key.nulls_first
        if key.this in names:
            order_keys.append(OrderKey(names[key.this], None, *flags))
        elif key.this in groups:
            column, labels = groups[key.this]
            order_keys.append(OrderKey(column.name, labels, *flags))
        elif not ir.is_constant(key.this):
            raise refuse("display", f"ORDER BY {shown(key.this)}", _ORDER, key)
    return tuple(order_keys)


def _rank(node: ir.Window, names: Mapping[Expr, str], groups: Groups) -> Rank:
    for group_key in node.partition:
        if group_key not in groups:
            raise refuse(
                "window", f"PARTITION BY {shown(group_key)}", "it is not grouped by", group_key
            )
    function: Any = node.name.lower()
    (buckets,) = node.args or (ir.Number("1"),)
    return Rank(
        names[node],
        function,
        _order_keys(node.order, names, groups),
        tuple(groups[group_key][0].name for group_key in node.partition),
        int(buckets.text) if isinstance(buckets, ir.Number) else 1,
    )


def _is_rank(node: Expr) -> bool:
    return isinstance(node, ir.Window) and node.is_rank


def wanted(answers: Answers) -> Wanted | None:
    """Read ORDER BY, LIMIT and HAVING of a statement; None where it has none of them."""
    ranks = _ranks(answers) if answers.ranked else []
    if not (answers.having or answers.qualify or answers.order or answers.is_cut or ranks):
        return None
    having = [clause for part in answers.having for clause in _compared(part)]
    qualify = [clause for part in answers.qualify for clause in _compared(part)]
    return Wanted(having, qualify, ranks, answers.order, answers.limit, answers.offset)


def _ranks(answers: Answers) -> list[ir.Window]:
    """The ranks of a statement; each must stand by itself."""
    places = [element.expr for element in answers.items] + [
        element.this for element in answers.order
    ]
    if len(answers.sets) > 1:
        advice = "write one statement per set"
        raise refuse("window", "a rank beside several grouping sets", advice, places[0])
    compared = [clause for part in answers.qualify for clause in _compared(part)]
    places += [node for clause in compared for node, _, _ in clause]
    ranks: dict[ir.Window, None] = {}
    for node in places:
        if isinstance(node, ir.Window) and node.is_rank:
            ranks[node] = None
        elif any(_is_rank(element) for element in node.walk()):
            advice = "select it by itself; it numbers the noisy answers that are displayed"
            raise refuse("window", f"a rank within {shown(node)}", advice, node)
    return list(ranks)


def union_display(parts: Sequence[Answers], union: UnionAll) -> Display:
    """How the answers of all SELECTs that UNION ALL joins are displayed together."""
    if any(
        answer_part.having or answer_part.order or answer_part.is_cut or answer_part.ranked
        for answer_part in parts
    ):
        feature = "choosing in a part of UNION ALL and after it"
        raise refuse("display", feature, "choose at the end", at=union.at)
    first = parts[0].items
    texts = [
        {item.alias or "": _text(item.expr) for item in part.items if ir.is_constant(item.expr)}
        for part in parts
    ]
    aggregates = [
        tuple(item.alias or "" for item in part.items if item.expr.has(ir.Aggregate))
        for part in parts
    ]
    queries = aggregates[0]
    named = all(answer_part == queries for answer_part in aggregates)
    if not all(queries) or not named or sum(not some for some in texts) > 1:
        advice = "name the answers by AS, and each part by a text: SELECT 'a' AS part, …"
        feature = "ORDER BY or LIMIT after this UNION ALL"
        raise refuse("display", feature, advice, at=union.at)
    order = []
    for key in union.keys:
        name = key.name
        if key.position is not None and 0 < key.position <= len(first):
            name = first[key.position - 1].alias or ""
        labels = tuple(sorted({some[name] for some in texts if name in some}))
        if name not in queries and not all(name in some for some in texts):
            feature = f"ORDER BY {key.name} after UNION ALL"
            raise refuse("display", feature, "order by an answer", at=key.at)
        kind = None if name in queries else labels
        order.append(OrderKey(name, kind, key.descending, key.nulls_first))
    return Display(queries, (), (), tuple(order), union.count, union.offset)


def _text(node: Expr) -> str:
    return node.value if isinstance(node, ir.Text) else shown(node)


def _compared(node: Expr, *, negated: bool = False) -> list[Clause]:  # noqa: C901 - one per kind
    """A condition of HAVING as clauses that must all hold."""
    if isinstance(node, ir.Not):
        return _compared(node.this, negated=not negated)
    if isinstance(node, ir.And | ir.Or):
        parts = [_compared(operand, negated=negated) for operand in node.items]
        if isinstance(node, ir.And) is not negated:
            return [clause for part in parts for clause in part]
        joined: list[Clause] = [[]]
        for part in parts:
            joined = [operand + two for operand in joined for two in part]
            if len(joined) > _MOST_CLAUSES:
                feature = "a HAVING with this number of cases"
                raise refuse("size", feature, "write it with fewer OR", node)
        return joined
    if isinstance(node, ir.Between):
        ends = [(">=", number(node.low)), ("<=", number(node.high))]
        both = [
            _bound(node.this, comparison, float(end), negated)
            for comparison, end in ends
            if end is not None
        ]
        if len(both) == 2:
            return [both] if negated else [[operand] for operand in both]
    if isinstance(node, ir.Binary) and node.op in COMPARISONS:
        left, right, operation = node.left, node.right, node.op
        if number(left) is not None:
            left, right, operation = right, left, COMPARISONS[operation]
        value = number(right)
        if value is not None:
            return [[_bound(left, operation, float(value), negated)]]
        if left.has(ir.Aggregate) and right.has(ir.Aggregate):  # a > b is a − b > 0
            gap = ir.Binary("-", left, right, at=node.at)
            return [[_bound(gap, operation, 0.0, negated)]]
    raise refuse("display", f"HAVING {shown(node)}", _HAVING, node)


def _bound(node: Expr, operation: str, value: float, negated: bool) -> tuple[Expr, str, float]:
    if not node.has(ir.Aggregate, ir.Window):
        raise refuse("display", f"HAVING with {shown(node)}", _HAVING, node)
    return node, _OPPOSITE[operation] if negated else operation, value


def ascending(attribute: Attribute) -> tuple[str, ...]:
    """The labels of an attribute's cells as ORDER BY sorts them; those of NULL are separate."""
    labels = attribute.labels
    regular: list[Any] = list(zip(labels, range(attribute.regular), strict=False))
    if isinstance(attribute, Categories):
        regular.sort(key=lambda label_pair: attribute.values[label_pair[1]])
    below = [label for label in labels[attribute.regular :] if label == "(below)"]
    after = [label for label in labels[attribute.regular :] if label != "(below)"]
    return (*below, *(label for label, _ in regular), *after)
