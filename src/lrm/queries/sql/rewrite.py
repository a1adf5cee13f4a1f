"""Plans → one normal form: Limit(Sort(Choose(Aggregate(Filter(Scan))))), over attributes.

Every relational node is one rule below: what it does to rows, what it does to answers, and what it
must not cross.

========  =======================================  ============================================
node      over rows                                over answers
========  =======================================  ============================================
Filter    joined to WHERE                          of groups: joined to WHERE, unless a window or a
                                                   LIMIT came before; of answers: as HAVING
Project   columns are replaced                     columns are replaced; a window must not come
                                                   after HAVING or LIMIT
Lookup    INNER: Filter by "has a row"             the same
Aggregate grouped                                  only SUM of linear answers, before HAVING, LIMIT
Choose    -                                        of groups: WHERE; of answers: HAVING, no window
Sort      -                                        replaces the order; not after LIMIT
Limit     -                                        after LIMIT: the part of the part
Join      -                                        the same groups; WHERE of groups is kept
========  =======================================  ============================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lrm.domain import Dates, Domain
from lrm.queries.sql import expr as ir
from lrm.queries.sql import plan as rel
from lrm.queries.sql.atoms import is_binned
from lrm.queries.sql.expr import Expr, conjuncts
from lrm.queries.sql.forms import is_whole
from lrm.queries.sql.formulas import is_linear
from lrm.queries.sql.plan import (
    Answers,
    Env,
    Relation,
    Rows,
    completed,
    has_rank,
    has_window,
    of_groups,
    over_rows,
    side_by_side,
)
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown

_ADD_UP = "add up groups: SUM(COUNT(*)) OVER (…) beside GROUP BY"
_ONE = "a subquery in an expression must have one aggregate and no groups"
_KEPT = "which groups are kept depends on noise; add up over all groups, and choose at the end"
_UNEVEN = "which groups both sides have depends on the table; add up before joining"
_SUMS = "only SUM and AVG add up answers by groups: others depend on which groups are empty"

MOST_WRITTEN = 20_000
"""Nodes of an expression, with what its columns stand for: a second's work."""


def normal(plan: rel.Plan, domain: Domain) -> Answers:
    """Rewrite the plan of one SELECT."""
    rules = _Rules(domain)
    relation = rules.of(plan)
    if isinstance(relation, Rows):
        for item in relation.items:
            if item.expr.has(ir.Apart):
                advice = "leave out FROM, or GROUP BY"
                raise refuse("subquery", "a subquery next to columns of rows", advice, item.expr)
        relation = Answers(relation.where, ((),), relation.items, relation.env, grouped=False)
    return replace(completed(relation), divisions=tuple(rules.noticed))


class _Rules:
    """The rules, for one domain."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.noticed: list[Expr] = []
        self.keys = {lookup.name: domain.names.index(lookup.key) for lookup in domain.lookups}

    def of(self, plan: rel.Plan) -> Relation:
        """Rewrite a plan."""
        return _RULES[type(plan)](self, plan)

    # expressions

    def put(self, node: Expr, env: Env, sums: Answers | None = None) -> Expr:
        """Put what columns and sub-selects stand for in their place.

        With ``sums``, the answers of a sub-select are added up: ``SUM(n)`` is n over all of their
        groups, and no answer may stand outside of an aggregate.
        """

        def put(inner_node: Expr) -> Expr | None:
            if sums is not None and isinstance(inner_node, ir.Aggregate):
                return self._sum(sums, inner_node)
            if isinstance(inner_node, ir.Column):
                column_expr = env[inner_node.table, inner_node.name]
                if sums is not None and column_expr.has(ir.Aggregate, ir.Window):
                    what = f"answer {inner_node.name!r} next to sums of answers"
                    raise refuse("nested", what, _SUMS, inner_node)
                return column_expr
            if isinstance(inner_node, ir.Scalar):
                return self._apart(inner_node)
            if isinstance(inner_node, ir.LookedUp):
                key = inner_node.key.mapped(put)
                self._check_key(key, inner_node.lookup, inner_node.at)
                return replace(inner_node, key=key)
            return self._plain(inner_node, put)

        return _bounded(node.mapped(put))

    def _plain(self, node: Expr, put: Callable[[Expr], Expr | None]) -> Expr | None:
        """What an expression is where types are known: a division, and a day cast to a day."""
        if isinstance(node, ir.Binary) and node.op == "div":
            left, right = node.left.mapped(put), node.right.mapped(put)
            is_integer = is_whole(left, self.domain) and is_whole(right, self.domain)
            if is_integer and node.has(ir.Aggregate, ir.Column):
                self.noticed.append(node)
            rows = not (left.has(ir.Aggregate, ir.Apart) or right.has(ir.Aggregate, ir.Apart))
            return ir.Binary("//" if is_integer and rows else "/", left, right, at=node.at)
        if isinstance(node, ir.Cast) and node.to == "DATE":
            inner = node.this.mapped(put)
            if isinstance(inner, ir.Attribute):
                attribute = self.domain.attributes[inner.axis]
                if isinstance(attribute, Dates) and attribute.by == "day":
                    return inner
            return replace(node, this=inner)
        if isinstance(node, ir.Call) and node.name == "MODE":
            inner = node.args[0].mapped(put)
            if any(is_binned(self.domain.attributes[axis]) for axis in inner.axes):
                advice = "its cells are intervals; GROUP BY it, ORDER BY the count DESC LIMIT 1"
                raise refuse("aggregate", f"MODE({shown(inner)})", advice, node)
            return inner
        return None

    def _check_key(self, key: Expr, lookup: str, at: int | None) -> None:
        if not isinstance(key, ir.Attribute) or key.axis != self.keys[lookup]:
            name = self.domain.names[self.keys[lookup]]
            advice = f"lookup {lookup!r} is of {name!r}"
            raise refuse("join", f"JOIN by {shown(key)}", advice, at=at)

    def _apart(self, node: ir.Scalar) -> Expr:
        inner = self.of(node.plan)
        if len(inner.items) != 1:
            raise refuse("subquery", "a subquery of several columns", _ONE, node)
        return _scalar(inner, inner.items[0].expr, node.at)

    def _into(self, answers: Answers, node: Expr) -> Expr:
        """An expression of a SELECT over what its FROM offers."""
        return self.put(node, answers.env, answers if answers.sums else None)

    # rules

    def scan(self, _: rel.Scan) -> Relation:
        return Rows()

    def named(self, plan: rel.Named) -> Relation:
        inner = self.of(plan.input)
        env = {(plan.alias, item.name): item.expr for item in inner.items}
        if isinstance(inner, Rows):
            return Rows(inner.where, (), env)
        return replace(inner, items=(), env=env, sums=False)

    def lookup_join(self, plan: rel.LookupJoin) -> Relation:
        inner = self.of(plan.input)
        key = self.put(plan.key, inner.env)
        self._check_key(key, plan.lookup, plan.at)
        if plan.left or self._is_complete(plan.lookup):
            return inner
        if isinstance(inner, Answers) and inner.is_cut:
            advice = "join first, and use LIMIT at the end"
            raise refuse("nested", "JOIN after LIMIT", advice, at=plan.at)
        return self._filtered(inner, ir.LookedUp(key, plan.lookup, "", at=plan.at))

    def _is_complete(self, name: str) -> bool:
        """Whether every declared cell of its key has a row in a lookup."""
        lookup = next(candidate for candidate in self.domain.lookups if candidate.name == name)
        attribute = self.domain.attributes[self.keys[name]]
        return all(candidate is True for candidate in lookup.on_cells(attribute, None))

    def filter(self, plan: rel.Filter) -> Relation:
        inner = self.of(plan.input)
        return self._filtered(inner, self.put(plan.condition, inner.env))

    def _filtered(self, inner: Relation, condition: Expr) -> Relation:
        if condition.has(ir.Apart):
            raise refuse("subquery", "a subquery in a condition", "write the constant", condition)
        if isinstance(inner, Rows):
            if condition.has(ir.Aggregate, ir.Window):
                feature = f"WHERE {shown(condition)}"
                raise refuse("clause", feature, "compare aggregates in HAVING", condition)
            return replace(inner, where=(*inner.where, *conjuncts(condition)))
        if inner.is_cut:
            advice = "use one LIMIT, at the end"
            feature = "choosing from answers that LIMIT cuts"
            raise refuse("nested", feature, advice, condition)
        for part in conjuncts(condition):
            inner = self._restricted(inner, part, after=inner.windows or inner.ranked)
        return inner

    def _restricted(self, inner: Answers, part: Expr, *, after: bool) -> Answers:
        """Answers with one more condition; ``after`` says that it is tested after windows."""
        ranks = inner.ranked or has_rank(part)
        if part.has(ir.Aggregate, ir.Window) or len(inner.sets) > 1:
            if after and ranks:
                return replace(inner, qualify=(*inner.qualify, part), ranked=True)
            if has_rank(part):
                raise refuse("window", "a rank in HAVING", "write QUALIFY", part)
            return replace(inner, having=(*inner.having, part))
        if not of_groups(part, inner.keys):
            return replace(inner, having=(*inner.having, part))
        if after and inner.ranked:
            construct = f"the condition {shown(part)} after a rank"
            raise refuse("nested", construct, "write it in WHERE, before the rank", part)
        if after:
            return replace(inner, later=(*inner.later, part))
        return replace(inner, where=(*inner.where, part))

    def project(self, plan: rel.Project) -> Relation:
        inner = self.of(plan.input)
        items = tuple(
            replace(plan_item, expr=self.put(plan_item.expr, inner.env)) for plan_item in plan.items
        )
        if isinstance(inner, Rows):
            for item in items:
                if item.expr.has(ir.Window):
                    raise refuse("window", "OVER without GROUP BY", _ADD_UP, item.expr)
            return replace(inner, items=items)
        for item in plan.items:
            self._check_window(inner, item.expr)
        windows = inner.windows or any(has_window(plan_item.expr) for plan_item in plan.items)
        ranked = inner.ranked or any(has_rank(plan_item.expr) for plan_item in plan.items)
        return replace(inner, items=items, windows=windows, ranked=ranked)

    def _check_window(self, inner: Answers, over: Expr) -> None:
        """A sum over groups must not come after what chooses groups by noisy answers."""
        if not over.has(ir.Window):
            return
        if inner.is_cut:
            raise refuse("nested", "OVER after LIMIT", _KEPT, over)
        if inner.qualify:
            raise refuse("nested", "OVER after a choice by ranks", "choose at the end", over)
        if not has_window(over):  # ranks number the groups that are displayed
            return
        if inner.having:
            feature = f"OVER after the condition {shown(inner.having[0])}"
            raise refuse("nested", feature, _KEPT, over)
        if inner.later:
            feature = f"OVER after the condition {shown(inner.later[0])}"
            raise refuse("nested", feature, "write the condition before the first OVER", over)
        if inner.joined:
            feature = "OVER a JOIN of answers over different rows"
            raise refuse("nested", feature, _UNEVEN, over)

    def aggregate(self, plan: rel.Aggregate) -> Relation:
        inner = self.of(plan.input)
        if isinstance(inner, Rows):
            answers = Answers(inner.where, (), (), inner.env, plan.grouped)
        else:
            self._check_sums(inner, plan)
            where = (*inner.where, *inner.later)
            answers = replace(
                inner, where=where, later=(), grouped=plan.grouped, order=(), sums=True
            )
        sets = tuple(
            tuple(dict.fromkeys(self._into(answers, entry) for entry in keys)) for keys in plan.sets
        )
        for key in (key for keys in sets for key in keys):
            if key.has(ir.Aggregate, ir.Window) and not isinstance(key, ir.Apart):
                raise refuse("clause", f"GROUP BY {shown(key)}", "group by attributes", key)
        items = tuple(replace(entry, expr=self._into(answers, entry.expr)) for entry in plan.items)
        windows = any(has_window(entry.expr) for entry in items)
        ranked = any(has_rank(entry.expr) for entry in items)
        _check_unique(sets)
        return replace(answers, sets=sets, items=items, windows=windows, ranked=ranked)

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
            raise refuse("nested", feature, _UNEVEN, at)

    def _sum(self, answers: Answers, node: ir.Aggregate) -> Expr:
        inner = node.args[0] if node.args else None
        where = conjuncts(node.where)
        if isinstance(inner, ir.Case) and len(inner.conditions) == 1:
            other = inner.default
            if other is None or other in {ir.Null(), ir.Number("0")}:
                where = (*where, *conjuncts(inner.conditions[0]))
                inner = inner.results[0]
        inner_answer = (
            answers.env.get((inner.table, inner.name)) if isinstance(inner, ir.Column) else None
        )
        if (
            node.name not in {"SUM", "AVG"}
            or inner_answer is None
            or not inner_answer.has(ir.Aggregate)
        ):
            raise refuse("nested", f"{node.name}() of answers", _SUMS, node)
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

    def choose(self, plan: rel.Choose) -> Relation:
        inner = self.of(plan.input)
        if isinstance(inner, Rows) and plan.after:
            raise refuse("window", "QUALIFY without an aggregate", _ADD_UP, plan.condition)
        if isinstance(inner, Rows):
            advice = "HAVING compares aggregates with numbers; write other conditions in WHERE"
            raise refuse("display", "HAVING without an aggregate", advice, plan.condition)
        condition = self._into(inner, plan.condition)
        if plan.after and condition.has(ir.Apart):
            raise refuse("subquery", "a subquery in a condition", "write the constant", condition)
        if not plan.after and inner.windows and condition.has(ir.Aggregate):
            advice = "sums over groups are of those that HAVING keeps; filter a sub-select instead"
            raise refuse("nested", "OVER beside HAVING", advice, condition)
        return self._restricted(inner, condition, after=plan.after)

    def sort(self, plan: rel.Sort) -> Relation:
        inner = self.of(plan.input)
        if isinstance(inner, Rows):
            return inner  # rows have no order
        if inner.is_cut:
            advice = "use one LIMIT, at the end"
            raise refuse("nested", "ORDER BY after LIMIT", advice, plan.keys[0])
        keys = tuple(replace(key, this=self._into(inner, key.this)) for key in plan.keys)
        over = next((sort_key for sort_key in plan.keys if has_window(sort_key)), None)
        if over is not None and not inner.windows:
            self._check_window(inner, over)
        ranked = inner.ranked or any(map(has_rank, keys))
        return replace(inner, order=keys, ranked=ranked)

    def limit(self, plan: rel.Limit) -> Relation:
        inner = self.of(plan.input)
        if isinstance(inner, Rows):
            word = "OFFSET" if plan.count is None else "LIMIT"
            advice = "a sub-select may filter, rename and compute columns"
            raise refuse("clause", f"{word} in a sub-select", advice, at=plan.at)
        counts = [] if inner.limit is None else [max(0, inner.limit - plan.offset)]
        counts += [] if plan.count is None else [plan.count]
        count = min(counts) if counts else None
        return replace(inner, limit=count, offset=inner.offset + plan.offset)

    def cross_answers(self, plan: rel.CrossAnswers) -> Relation:
        inner, other = self.of(plan.input), self.of(plan.other)
        added = {
            (plan.alias, item.name): _scalar(other, item.expr, plan.at) for item in other.items
        }
        return replace(inner, env={**inner.env, **added})

    def join_answers(self, plan: rel.JoinAnswers) -> Relation:
        left_answers, two = self.of(plan.input), self.of(plan.other)
        advice = "join answers with the same groups, by all of them"
        if not isinstance(left_answers, Answers) or not isinstance(two, Answers):
            raise refuse("join", "JOIN of answers", advice, at=plan.at)
        for each in (left_answers, two):
            if each.is_cut or each.having or each.ranked:
                word = "LIMIT" if each.is_cut else "HAVING" if each.having else "a rank"
                feature = f"JOIN of answers after {word}"
                raise refuse("nested", feature, "choose at the end", at=plan.at)
        if (
            len(left_answers.sets) > 1
            or len(two.sets) > 1
            or left_answers.keys != two.keys
            or not left_answers.keys
        ):
            raise refuse("join", "JOIN of answers with different groups", advice, at=plan.at)
        right_env = {(plan.alias, item.name): item.expr for item in two.items}
        for expr in (*left_answers.env.values(), *right_env.values()):
            if expr.has(ir.GroupCount):
                advice = "select it by itself: which groups there are differs"
                raise refuse("nested", "JOIN of AVG() of answers", advice, at=plan.at)
        compared = set()
        for mine, their in plan.pairs:
            left = self.put(mine, left_answers.env)
            right = self.put(their, right_env) if isinstance(their, ir.Column) else None
            if left != right or left.has(ir.Aggregate):
                feature = f"JOIN ON {shown(mine)} = {shown(their)}"
                raise refuse("join", feature, "compare the same columns of groups", at=plan.at)
            compared.add(left)
        groups = {expr for expr in right_env.values() if not expr.has(ir.Aggregate, ir.Apart)}
        if compared != groups:
            feature = "JOIN of answers by some of their groups"
            raise refuse("join", feature, "name all of them", at=plan.at)
        null = tuple(
            ir.Not(ir.IsNull(key)) for key in left_answers.sets[0] if self._may_be_null(key)
        )
        return side_by_side(left_answers, two, right_env, null, keep_left=plan.left)

    def _may_be_null(self, key: Expr) -> bool:
        """Whether a group may be that of NULL, as far as its form tells."""
        if not isinstance(key, ir.Attribute):
            return True
        return self.domain.attributes[key.axis].special_cell("(null)") is not None


_RULES: dict[type[rel.Plan], Callable[[_Rules, Any], Relation]] = {
    rel.Scan: _Rules.scan,
    rel.Named: _Rules.named,
    rel.LookupJoin: _Rules.lookup_join,
    rel.Filter: _Rules.filter,
    rel.Project: _Rules.project,
    rel.Aggregate: _Rules.aggregate,
    rel.Choose: _Rules.choose,
    rel.Sort: _Rules.sort,
    rel.Limit: _Rules.limit,
    rel.CrossAnswers: _Rules.cross_answers,
    rel.JoinAnswers: _Rules.join_answers,
}


def _bounded(node: Expr) -> Expr:
    """Refuse what has grown too long: columns of columns of columns may grow without end."""
    if node.size > MOST_WRITTEN:
        raise refuse("size", "so long an expression", "its columns stand for too much", node)
    return node


def _check_unique(sets: tuple[tuple[Expr, ...], ...]) -> None:
    seen: set[frozenset[Expr]] = set()
    for keys in sets:
        if frozenset(keys) in seen:
            names = ", ".join(map(shown, keys))
            node = keys[0] if keys else None
            feature = f"the grouping set ({names}) twice"
            raise refuse("clause", feature, "name each set once", node)
        seen.add(frozenset(keys))


def _scalar(inner: Relation, item: Expr, at: int | None) -> Expr:
    """A column of a SELECT that has one row, for an expression that stands elsewhere."""
    if isinstance(inner, Rows) or not item.has(ir.Aggregate):
        raise refuse("subquery", "a subquery without an aggregate", _ONE, at=at)
    clauses = {"GROUP BY": inner.grouped, "HAVING": inner.having, "LIMIT": inner.is_cut}
    clauses |= {"QUALIFY": inner.qualify}
    for name, clause in clauses.items():
        if clause:
            raise refuse("subquery", f"{name} in a subquery", _ONE, at=at)
    return ir.Apart(over_rows(item, inner.where), at=at)
