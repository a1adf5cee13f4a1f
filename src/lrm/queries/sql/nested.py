"""Aggregates of the answers of a sub-select: ``SELECT SUM(n) FROM (SELECT …, COUNT(*) AS n …)``.

Sums and averages of linear answers are answers of the rows themselves. A single answer that
conditions choose is that answer. Everything else, such as MAX or an average of averages, is a
window over the displayed answers, of which one row per group is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lrm.queries.sql import expr as ir
from lrm.queries.sql import plan as rel
from lrm.queries.sql.beside import pin_of
from lrm.queries.sql.expr import Expr, conjuncts
from lrm.queries.sql.formulas import is_linear
from lrm.queries.sql.plan import Answers, Env, over_rows
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown

KEPT = "which groups are kept depends on noise; add up over all groups, and choose at the end"
LARGEST = (
    "select it by itself: it is the noisy answer that is displayed first, ORDER BY it DESC LIMIT 1"
)
SUMS = "only SUM and AVG add up answers by groups: others depend on which groups are empty"

UNEVEN = "which groups both sides have depends on the table; add up before joining"
_ONE_OF_ALL = (
    "compare each other column of groups of the sub-select with a constant, and select no MAX, MIN "
    "or AVG of all beside it"
)
_ADDED = frozenset({"SUM", "AVG"})
_SPREADS = {"STDDEV": "STDDEV", "STDDEV_SAMP": "STDDEV", "STDDEV_POP": "STDDEV_POP"}


class Nested:
    """The rules; ``put`` puts what columns stand for in their place."""

    def __init__(self, put: Callable[[Expr, Env], Expr]) -> None:
        self.put = put

    def answers(self, inner: Answers, plan: rel.Aggregate) -> Answers:
        """What FROM offers to a SELECT that aggregates the answers of a sub-select."""
        added = self._added(inner, plan)
        if self._is_over_groups(inner, added, plan):
            return self._over_groups(inner, plan)
        self._check_sums(inner, plan)
        return added

    def over_answers(self, sums: Answers, node: Expr) -> Expr | None:
        """An aggregate of answers; None for anything else."""
        picked = self._picked(sums, node)
        if picked is not None:
            return picked
        if isinstance(node, ir.Aggregate):
            return self._sum(sums, node)
        if not isinstance(node, ir.OneValue):
            return None
        what = f"{node.name}({shown(node.this)}) of answers"
        if sums.over is None:
            raise refuse("nested", f"{what} in a formula", LARGEST, node)
        if isinstance(node.this, ir.Case):
            raise refuse("nested", what, _ONE_OF_ALL, node)
        return ir.Window(node.name, (self.put(node.this, sums.env),), sums.over, at=node.at)

    def _added(self, inner: Answers, plan: rel.Aggregate) -> Answers:
        """The answers of a sub-select, which the statement adds up over groups of its own."""
        where = (*inner.where, *inner.later)
        chosen = inner.is_cut or inner.having or inner.qualify or inner.joined
        single = not chosen and len(inner.sets) == len(plan.sets) == 1
        keys = frozenset(self.put(key, inner.env) for key in plan.sets[0])
        answers = replace(inner, where=where, later=(), grouped=plan.grouped, order=(), sums=True)
        return replace(answers, added=inner.keys - keys if single else None)

    def _is_over_groups(self, inner: Answers, answers: Answers, plan: rel.Aggregate) -> bool:
        """Whether a SELECT over answers combines them as they are displayed."""

        def displays(node: Expr) -> bool:
            if self._picked(answers, node) is not None:
                return False
            if isinstance(node, ir.OneValue):
                return True
            if not isinstance(node, ir.Aggregate) or len(node.args) != 1:
                return False
            answer = None if node.where is not None else _answer(node.args[0], inner)
            if answer is None:
                return False
            return node.name in _SPREADS or (node.name in _ADDED and not is_linear(answer))

        nodes = (node for item in plan.items for node in item.expr.walk())
        return bool(inner.having) or any(map(displays, nodes))

    def _picked(self, answers: Answers, node: Expr) -> Expr | None:
        """``MAX(CASE WHEN year = 2024 THEN n END)`` of answers by year: the answer of that year.

        So is a sum or an average of a single answer. None for anything else.
        """
        parts = _condition_and_value(node)
        answer = None if parts is None else _answer(parts[1], answers)
        if parts is None or answer is None or answers.added is None:
            return None
        bound = [self.put(part, answers.env) for part in parts[0]]
        pins = {pin[0] for part in bound if (pin := pin_of(part)) is not None}
        of_one = answers.added <= pins and not any(
            part.has(ir.Aggregate, ir.Window, ir.Apart) for part in bound
        )
        known = parts[2] or (isinstance(answer, ir.Aggregate) and answer.name == "COUNT")
        summed = isinstance(node, ir.Aggregate) and is_linear(answer)
        if not of_one or not known or summed or answer.has(ir.Window, ir.GroupCount):
            return None
        return over_rows(answer, tuple(bound))

    def _over_groups(self, inner: Answers, plan: rel.Aggregate) -> Answers:
        """Answers of a sub-select that are combined as they are displayed.

        ``SELECT a, MAX(n), MIN(n) FROM (SELECT a, b, COUNT(*) AS n … GROUP BY a, b) GROUP BY a`` is
        one row per ``a`` of ``MAX(COUNT(*)) OVER (PARTITION BY a)``.
        """
        at = next((item.expr for item in plan.items), None)
        keys = tuple(self.put(key, inner.env) for key in plan.sets[0])
        several = len(plan.sets) > 1 or len(inner.sets) > 1
        if several or inner.is_cut or inner.qualify or inner.joined:
            advice = "group once, and choose at the end"
            raise refuse("nested", "MAX() or MIN() of these answers", advice, at)
        if not set(keys) <= set(inner.sets[0]):
            advice = "group by columns of groups of the sub-select"
            raise refuse("nested", "MAX() or MIN() of answers by something else", advice, at)
        others = tuple(key for key in inner.sets[0] if key not in keys)
        rank = ir.Window("ROW_NUMBER", (), keys, tuple(map(ir.SortKey, others)))
        first = ir.Binary("=", rank, ir.Number("1"), at=None if at is None else at.at)
        answers = replace(inner, order=(), sums=True, over=keys, left_out=others)
        return replace(answers, qualify=(first,), grouped=plan.grouped)

    def _check_sums(self, inner: Answers, plan: rel.Aggregate) -> None:
        """Check that a SELECT over answers only adds them up over groups of its own."""
        at = next((plan_item.expr for plan_item in plan.items), None)
        if inner.is_cut or inner.having or inner.qualify:
            word = "LIMIT" if inner.is_cut else "HAVING" if inner.having else "QUALIFY"
            feature = f"adding up answers after {word}"
            raise refuse("nested", feature, "filter rows in WHERE", at)
        if len(inner.sets) > 1:
            feature = "adding up answers of several grouping sets"
            raise refuse("nested", feature, "group once", at)
        if inner.joined:
            feature = "SUM over a JOIN of answers over different rows"
            raise refuse("nested", feature, UNEVEN, at)

    def _sum(self, answers: Answers, node: ir.Aggregate) -> Expr:
        inner = node.args[0] if node.args else None
        where = conjuncts(node.where)
        if isinstance(inner, ir.Case) and len(inner.conditions) == 1:
            other = inner.default
            if other is None or other in {ir.Null(), ir.Number("0")}:
                where = (*where, *conjuncts(inner.conditions[0]))
                inner = inner.results[0]
        key = (inner.table, inner.name) if isinstance(inner, ir.Column) else ("", "")
        inner_answer = answers.env.get(key)
        name = _SPREADS.get(node.name, node.name)
        over = {*_ADDED, "COUNT", *_SPREADS.values()}
        if answers.over is not None and name in over and not where:
            counted = node.name == "COUNT" and not node.args and answers.having
            if counted:
                inner_answer = next(expr for expr in answers.env.values() if expr.has(ir.Aggregate))
            if inner_answer is not None and (counted or node.name != "COUNT"):
                return ir.Window(name, (inner_answer,), answers.over, at=node.at)
        if (
            node.name not in {"SUM", "AVG"}
            or inner_answer is None
            or not inner_answer.has(ir.Aggregate)
        ):
            column = inner_answer is not None and not inner_answer.has(ir.Aggregate)
            advice = "it is a column of groups; select it by itself, or MAX of it"
            raise refuse("nested", f"{shown(node)} over answers", advice if column else SUMS, node)
        if not is_linear(inner_answer):
            raise refuse("nested", "a sum of rates or averages", "add up sums and counts", node)
        total = over_rows(
            inner_answer, tuple(self.put(condition, answers.env) for condition in where)
        )
        if node.name == "SUM":
            return total
        if where:
            advice = "filter the sub-select in WHERE"
            raise refuse("nested", "AVG() of some of the answers", advice, node)
        count = ir.GroupCount(answers.sets[0], at=node.at)
        return ir.Binary("/", total, count, at=node.at)


def _answer(node: Expr, inner: Answers) -> Expr | None:
    """The answer of a sub-select that a column is; None for anything else."""
    answer = inner.env.get((node.table, node.name)) if isinstance(node, ir.Column) else None
    return answer if answer is not None and answer.has(ir.Aggregate) else None


def _condition_and_value(node: Expr) -> tuple[tuple[Expr, ...], Expr, bool] | None:
    """What ``MAX(CASE WHEN a = 1 THEN n END)`` and the like are of, and when.

    With them, whether it is that of any answer, rather than of a count alone, which is never below
    the 0 of ELSE. None for other expressions.
    """
    where: tuple[Expr, ...] = ()
    if isinstance(node, ir.OneValue):
        name, value = node.name, node.this
    elif isinstance(node, ir.Aggregate) and node.name in _ADDED and len(node.args) == 1:
        name, value, where = node.name, node.args[0], conjuncts(node.where)
    else:
        return None
    known = True
    if isinstance(value, ir.Case) and len(value.conditions) == 1:
        zero = value.default == ir.Number("0")
        if (value.only_branch is None and not zero) or (zero and name not in {"SUM", "MAX"}):
            return None
        known = not zero or name == "SUM"
        where = (*where, *conjuncts(value.conditions[0]))
        value = value.results[0]
    return (where, value, known) if where else None
