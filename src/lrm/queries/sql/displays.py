"""The displayed columns of a SELECT: HAVING, ranks, CASE, ORDER BY and LIMIT of noisy answers.

What numbers, compares or chooses among the displayed groups is computed from their noisy answers,
by `lrm.queries.workload.display`, and has no interval. Everything else is an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import COMPARISONS, OPPOSITES, Expr
from lrm.queries.sql.formulas import guarded, is_rank, number
from lrm.queries.sql.plan import Answers, UnionAll, grouped_levels
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown
from lrm.queries.workload import Column
from lrm.queries.workload.display import Bound, Branch, Computed, Display, OrderKey, Rank, Term

LONGEST_NAME = 80
"""Characters of an expression by which an answer that is not selected is known."""

_TRUTHS = ir.And | ir.Or | ir.Not | ir.IsNull | ir.Between
_ARITHMETIC = frozenset("+-*/")
_CALLS = {"ROUND": "round", "COALESCE": "else", "GREATEST": "greatest", "LEAST": "least"}


class Displayed:
    """The columns that are computed from displayed answers, and the answers that they need.

    ``named`` are the answers and columns of a SELECT by name, those that are selected first; what
    is only compared or sorted by is added. With ``chosen``, windows look at the groups that HAVING
    keeps, and are displayed too.
    """

    def __init__(self, named: dict[str, Expr], query: str, *, chosen: bool) -> None:
        self.named, self.query, self.chosen = named, query, chosen
        self.names: dict[Expr, str] = {}
        self.columns: dict[str, Expr] = {}
        selected = list(named.items())
        for name, node in selected:
            self.names.setdefault(node, name)
        for name, node in selected:
            if self.is_displayed(node):
                self._note(name, node)

    def is_displayed(self, node: Expr) -> bool:  # noqa: PLR0911 - one per kind
        """Whether an expression is computed from what is displayed, rather than an answer."""
        if isinstance(node, ir.Apart):
            return False
        if isinstance(node, ir.Window):
            return is_rank(node) or (self.chosen and node.name != "WITHIN")
        compares = isinstance(node, ir.Binary) and node.op in COMPARISONS
        if isinstance(node, _TRUTHS) or compares:
            return node.has(ir.Aggregate)
        if isinstance(node, ir.Case):
            divided = guarded(node)
            if divided is None:
                return any(part.has(ir.Aggregate) for part in node.conditions)
            return self.is_displayed(divided[0])
        if isinstance(node, ir.Aggregate):
            return False
        # A quantile has no formula: arithmetic with it is of what is displayed.
        return any(map(_is_quantile, node.children)) or any(map(self.is_displayed, node.children))

    def name(self, node: Expr) -> str:
        """What an answer or a column is called, which is added where it is new."""
        if node not in self.names:
            text = f"{self.query}.{shown(node)[:LONGEST_NAME]}"
            self.names[node] = text if text not in self.named else f"{text}.{len(self.named)}"
            self.named[self.names[node]] = node
            if self.is_displayed(node):
                self._note(self.names[node], node)
        return self.names[node]

    def _note(self, name: str, node: Expr) -> None:
        self.columns[name] = node
        if isinstance(node, ir.Window):
            added_up = node.name in {"SUM", "AVG", *ir.CHOOSING}
            if added_up and not node.args[0].has(ir.Aggregate):
                advice = f"{node.name} is of answers: {node.name}(COUNT(*)) OVER (…)"
                raise refuse("window", f"{shown(node)} of a column of groups", advice, node)
            inputs = [*([] if node.name in ir.RANKS else node.args[:1]), *node.partition]
            for part in (*inputs, *(key.this for key in node.order)):
                if part.has(ir.Aggregate):
                    self.name(part)
            return
        self._computed(name, node, {})

    # columns

    def made(self, groups: Groups) -> tuple[tuple[Rank, ...], tuple[Computed, ...]]:
        """The columns, where the columns of groups are known."""
        ranks = [
            self._rank(name, node, groups)
            for name, node in self.columns.items()
            if isinstance(node, ir.Window)
        ]
        computed = [
            self._computed(name, node, groups)
            for name, node in self.columns.items()
            if not isinstance(node, ir.Window)
        ]
        return tuple(ranks), tuple(computed)

    def _rank(self, name: str, node: ir.Window, groups: Groups) -> Rank:
        for key in node.partition:
            if key not in groups and key not in self.names:
                advice = f"write {shown(key)} in GROUP BY, too"
                raise refuse("window", f"PARTITION BY {shown(key)}", advice, key)
        partition = tuple(self._column(key, groups) for key in node.partition)
        order = order_keys(node.order, self.names, groups, {})
        function: Any = node.name.lower()
        if node.name in ir.RANKS:
            (buckets,) = node.args or (ir.Number("1"),)
            count = int(buckets.text) if isinstance(buckets, ir.Number) else 1
            return Rank(name, function, order, partition, count)
        rows: tuple[float, float] | None = None
        frame = node.frame
        if node.name in {"LAG", "LEAD"}:
            far = float(node.args[1].text) if isinstance(node.args[1], ir.Number) else 1.0
            function, rows = "lag", (far, far) if node.name == "LAG" else (-far, -far)
            if len(node.args) > 2:
                advice = "write COALESCE(…, 0) around it"
                raise refuse("window", f"a default of {node.name}() here", advice, node)
        elif frame is not None and frame.kind == "ROWS":
            rows = (frame.start, frame.end)
        elif frame is not None and not frame.is_running:
            rows = (frame.start, frame.end)
            if rows != (-float("inf"), float("inf")):
                advice = "write ROWS BETWEEN …"
                raise refuse("window", "RANGE over displayed answers", advice, node)
        of = self._column(node.args[0], groups)
        return Rank(name, function, order, partition, of=of, rows=rows)

    def _column(self, node: Expr, groups: Groups) -> str:
        """The name of an answer, or of a column of groups."""
        if node.has(ir.Aggregate):
            return self.name(node)
        if node not in groups:
            if not groups:
                return ""  # they are not known yet
            advice = "write an answer or a column of GROUP BY"
            raise refuse("display", f"{shown(node)} beside displayed answers", advice, node)
        return groups[node][0].name

    def _computed(self, name: str, node: Expr, groups: Groups) -> Computed:
        truth = isinstance(node, _TRUTHS) or (
            isinstance(node, ir.Binary) and node.op in COMPARISONS
        )
        if truth:
            texts = ir.Text("true"), ir.Text("false")  # neither where an answer is NULL
            node = ir.Case((node, ir.Not(node)), texts, at=node.at)
        if not isinstance(node, ir.Case):
            return Computed(name, (), self._terms(node, groups))
        branches = []
        for condition, result in zip(node.conditions, node.results, strict=True):
            clauses = tuple(
                tuple(Bound(self.name(each), op, end) for each, op, end in clause)
                for clause in compared(condition)
            )
            branches.append(Branch(clauses, self._result(result, groups)))
        return Computed(name, tuple(branches), self._result(node.default, groups))

    def _result(self, node: Expr | None, groups: Groups) -> tuple[Term, ...]:
        return () if node is None or isinstance(node, ir.Null) else self._terms(node, groups)

    def _terms(self, node: Expr, groups: Groups) -> tuple[Term, ...]:
        """Arithmetic on displayed columns, in postfix notation."""
        constant = number(node)
        if constant is not None:
            return (Term("number", number=float(constant)),)
        if isinstance(node, ir.Text | ir.Boolean):
            return (Term("text", node.value if isinstance(node, ir.Text) else shown(node).lower()),)
        parts = _operation(node) if self.is_displayed(node) else None
        if parts is None:
            return (Term("column", self._column(node, groups)),)
        step, operands = parts
        terms = self._terms(operands[0], groups)
        for operand in operands[1:]:
            terms = (*terms, *self._terms(operand, groups), Term(step))
        return terms


def _is_quantile(node: Expr) -> bool:
    return isinstance(node, ir.Aggregate) and node.level is not None


def _operation(  # noqa: PLR0911 - one per kind
    node: Expr,
) -> tuple[Any, tuple[Expr, ...]] | None:
    """The step and the operands of arithmetic; None for a column of its own."""
    if isinstance(node, ir.Window | ir.Case | _TRUTHS):
        return None
    if isinstance(node, ir.Negative):
        return "*", (node.this, ir.Number("-1"))
    if isinstance(node, ir.Binary) and node.op in COMPARISONS:
        return None
    if isinstance(node, ir.Binary) and node.op.replace("div", "/") in _ARITHMETIC:
        return node.op.replace("div", "/"), (node.left, node.right)
    digits = ir.rounded_digits(node) if isinstance(node, ir.Cast) else None
    if digits is not None and digits < math.inf:
        return "round", (*node.children, ir.Number(f"{digits:g}"))
    unless = isinstance(node, ir.Call) and node.name == "NULLIF" and number(node.args[1]) == 0
    if digits is not None or unless:
        return "", node.children[:1]  # nothing is divided by 0
    if isinstance(node, ir.Call) and node.name in _CALLS:
        more = (ir.Number("0"),) if node.name == "ROUND" and len(node.args) == 1 else ()
        return _CALLS[node.name], (*node.args, *more)
    advice = "displayed answers are compared, and combined by + - * / and ROUND"
    raise refuse("display", shown(node), advice, node)


def left_out(groups: Groups, hidden: Sequence[Expr]) -> tuple[str, ...]:
    """The names of the columns of groups that are not displayed."""
    return tuple(groups[node][0].name for node in hidden if node in groups)


_MOST_CLAUSES = 64
_HAVING = "answers are compared with numbers and with each other; write other conditions in WHERE"
_ORDER = "order by answers or by columns of GROUP BY"


Clause = list[tuple[Expr, str, float]]
"""Comparisons of aggregates with numbers, one of which must hold."""


Groups = Mapping[Expr, tuple[Column, tuple[str, ...]]]
"""Each column of groups, and its labels in ascending order."""


def first_value(values: set[Any]) -> Any:
    """The least value that is known."""
    return min((value for value in values if value is not None), default=None)


def is_apart(node: Expr, values: Mapping[str, set[Any]]) -> bool:
    """Whether ``MIN(x)`` orders groups as their values do: no two reach into each other."""
    if not isinstance(node, ir.OneValue):
        return False
    known = [some - {None} for some in values.values()]
    ends = sorted((min(some), max(some)) for some in known if some)
    return all(high < low for (_, high), (low, _) in pairwise(ends))


def order_keys(
    keys: Sequence[ir.SortKey],
    names: Mapping[Expr, str],
    groups: Groups,
    places: Mapping[Expr, tuple[int, ...]],
) -> tuple[OrderKey, ...]:
    """The keys of ORDER BY: answers and computed columns by name, and columns of groups."""
    order_keys = []
    for key in keys:
        is_level = grouped_levels(key.this) is not None
        flags = key.descending, key.descending if is_level else key.nulls_first
        if key.this in names:
            order_keys.append(OrderKey(names[key.this], None, *flags))
        elif key.this in groups:
            column, labels = groups[key.this]
            order_keys.append(OrderKey(column.name, labels, *flags, places.get(key.this)))
        elif not ir.is_constant(key.this):
            raise refuse("display", f"ORDER BY {shown(key.this)}", _ORDER, key)
    return tuple(order_keys)


def union_display(
    parts: Sequence[Answers], union: UnionAll, columns: Sequence[Mapping[str, Sequence[str]]]
) -> Display:
    """How the answers of all SELECTs that UNION ALL joins are displayed together.

    ``columns`` are the columns of groups of each SELECT, with their labels in order.
    """
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
    labels_by_part = [
        {name: (text,) for name, text in some.items()} | dict(labels)
        for some, labels in zip(texts, columns, strict=True)
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
        listed = (some.get(name, ()) for some in labels_by_part)
        labels = tuple(dict.fromkeys(label for some in listed for label in some))
        labels = labels if _increases(labels) else tuple(sorted(labels))
        if name not in queries and not all(name in some for some in labels_by_part):
            feature = f"ORDER BY {key.name} after UNION ALL"
            raise refuse("display", feature, "order by an answer", at=key.at)
        kind = None if name in queries else labels
        order.append(OrderKey(name, kind, key.descending, key.nulls_first))
    having = []
    for name, operation, value in union.having:
        if name not in queries:
            feature = f"WHERE {name} after UNION ALL"
            raise refuse("display", feature, "compare an answer with a number", at=union.at)
        having.append((Bound(name, operation, value),))
    return Display(queries, (), tuple(having), tuple(order), union.count, union.offset)


def _increases(labels: Sequence[str]) -> bool:
    """Whether labels are numbers in their order."""
    return all(label.lstrip("-").isdigit() for label in labels) and list(labels) == sorted(
        labels, key=int
    )


def _text(node: Expr) -> str:
    return node.value if isinstance(node, ir.Text) else shown(node)


def compared(node: Expr, *, negated: bool = False) -> list[Clause]:  # noqa: C901, PLR0911 - one per kind
    """A condition of HAVING as clauses that must all hold."""
    if isinstance(node, ir.Not):
        return compared(node.this, negated=not negated)
    if isinstance(node, ir.And | ir.Or):
        parts = [compared(operand, negated=negated) for operand in node.items]
        if isinstance(node, ir.And) is not negated:
            return [clause for part in parts for clause in part]
        joined: list[Clause] = [[]]
        for part in parts:
            joined = [operand + two for operand in joined for two in part]
            if len(joined) > _MOST_CLAUSES:
                feature = "a HAVING with this number of cases"
                raise refuse("size", feature, "write it with fewer OR", node)
        return joined
    if isinstance(node, ir.IsNull) and negated and node.this.has(ir.Aggregate, ir.Window):
        return [[(node.this, "IS NOT NULL", 0.0)]]
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
    raise refuse("display", f"the condition {shown(node)}", _HAVING, node)


def _bound(node: Expr, operation: str, value: float, negated: bool) -> tuple[Expr, str, float]:
    if not node.has(ir.Aggregate, ir.Window):
        raise refuse("display", f"the condition on {shown(node)}", _HAVING, node)
    return node, OPPOSITES[operation] if negated else operation, value
