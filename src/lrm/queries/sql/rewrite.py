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

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from lrm.domain import Dates, Domain
from lrm.queries.sql import expr as ir
from lrm.queries.sql import plan as rel
from lrm.queries.sql.atoms import is_binned
from lrm.queries.sql.beside import (
    check_all_groups,
    check_fewer,
    choices,
    pinned,
    unpinned,
    within,
)
from lrm.queries.sql.expr import Expr, conjuncts
from lrm.queries.sql.forms import by_knots, has_fraction, is_whole
from lrm.queries.sql.nested import KEPT, LARGEST, SUMS, UNEVEN, Nested
from lrm.queries.sql.plan import (
    Answers,
    Env,
    Relation,
    Rows,
    completed,
    has_rank,
    has_window,
    is_beside,
    of_groups,
    over_rows,
    side_by_side,
)
from lrm.queries.sql.refusals import CHOSEN, ONE_ROW, refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.times import check_group, grid_of, is_time, on_grid

_ADD_UP = "add up groups: SUM(COUNT(*)) OVER (…) beside GROUP BY"
_ONE = "a subquery in an expression must have one aggregate and no groups"
_ROWS = ir.Aggregate("COUNT")
_NEVER_NULL = frozenset(
    {"EXTRACT", "YEAR", "MONTH", "DAY", "QUARTER", "HOUR", "DAYNAME", "MONTHNAME", "DAYOFWEEKISO"}
) | {"TIMESTAMPTRUNC", "TIMETOSTR", "UPPER", "LOWER", "FLOOR", "ROUND", "COALESCE", "DAYOFWEEK"}
"""Functions that are never NULL where their arguments are not."""

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
    relation = by_knots(rules.one_values(relation), domain)
    notices = [
        (f"{shown(node)} is answered with its fraction, which the dialect would drop", node)
        for node in rules.noticed
    ]
    counted = [node for item in relation.items for node in item.expr.walk() if node == _ROWS]
    if rules.every and counted:
        sentence = (
            "COUNT(*) is 0 for a row of the lookup without rows of the table, where LEFT JOIN "
            "gives 1; COUNT of a column of the table is the same in both"
        )
        notices.append((sentence, counted[0]))
    return replace(completed(relation), notices=tuple(notices))


class _Rules:
    """The rules, for one domain."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.nested = Nested(self.put)
        self.noticed: list[Expr] = []
        self.every = False  # whether a lookup keeps its rows without rows of the table
        self.lookups = {lookup.name: lookup for lookup in domain.lookups}

    def of(self, plan: rel.Plan) -> Relation:
        """Rewrite a plan."""
        return _RULES[type(plan)](self, plan)

    # expressions

    def put(
        self, node: Expr, env: Env, sums: Answers | None = None, around: Relation | None = None
    ) -> Expr:
        """Put what columns and sub-selects stand for in their place.

        With ``sums``, the answers of a sub-select are added up: ``SUM(n)`` is n over all of their
        groups, and no answer may stand outside of an aggregate. ``around`` is what FROM offers.
        """

        def put(inner_node: Expr) -> Expr | None:
            over = None if sums is None else self.nested.over_answers(sums, inner_node)
            if over is not None:
                return over
            if isinstance(inner_node, ir.Column):
                column_expr = env[inner_node.table, inner_node.name]
                if sums is not None and column_expr.has(ir.Aggregate, ir.Window):
                    what = f"answer {inner_node.name!r} next to sums of answers"
                    advice = KEPT if column_expr.has(ir.Window) else SUMS
                    raise refuse("nested", what, advice, inner_node)
                return column_expr
            if isinstance(inner_node, ir.Scalar):
                return self._apart(inner_node, around)
            if isinstance(inner_node, ir.LookedUp):
                key = inner_node.key.mapped(put)
                self._check_key(key, inner_node.lookup, inner_node.at)
                return replace(inner_node, key=key)
            return self._plain(inner_node, put)

        return _bounded(node.mapped(put))

    def _plain(self, node: Expr, put: Callable[[Expr], Expr | None]) -> Expr | None:
        """What an expression is where types are known: a division, a cast, a beginning."""
        if isinstance(node, ir.Binary) and node.op == "div":
            left, right = node.left.mapped(put), node.right.mapped(put)
            is_integer = is_whole(left, self.domain) and is_whole(right, self.domain)
            if is_integer and node.has(ir.Aggregate, ir.Column):
                self.noticed.append(node)
            rows = not (left.has(ir.Aggregate, ir.Apart) or right.has(ir.Aggregate, ir.Apart))
            return ir.Binary("//" if is_integer and rows else "/", left, right, at=node.at)
        if isinstance(node, ir.Cast):
            return self._cast(node, node.this.mapped(put))
        if isinstance(node, ir.Call) and node.name == "DAYTRUNC":
            args = tuple(argument.mapped(put) for argument in node.args)
            truncated = ir.Call("TIMESTAMPTRUNC", args, node.pieces, at=node.at)
            of_time = any(is_time(argument, self.domain) for argument in args)
            return truncated if of_time else ir.Cast(truncated, "DATE", at=node.at)
        if isinstance(node, ir.Call) and node.name == "COALESCE":
            same = {argument.mapped(put) for argument in node.args}  # of both sides of FULL JOIN
            return same.pop() if len(same) == 1 else None
        if isinstance(node, ir.Call) and node.name == "MODE":
            inner = node.args[0].mapped(put)
            if any(is_binned(self.domain.attributes[axis]) for axis in inner.axes):
                advice = "its cells are intervals; GROUP BY it, ORDER BY the count DESC LIMIT 1"
                raise refuse("aggregate", f"MODE({shown(inner)})", advice, node)
            return inner
        return None

    def _cast(self, node: ir.Cast, inner: Expr) -> Expr:
        """A day cast to a day, a time to a time, and a number whose fraction is dropped."""
        if node.to == "DATE" and isinstance(inner, ir.Attribute):
            attribute = self.domain.attributes[inner.axis]
            if isinstance(attribute, Dates) and attribute.by == "day" and not attribute.time:
                return inner
        if node.to == "TIMESTAMP" and is_time(inner, self.domain):
            return inner
        if not node.to.startswith(ir.TRUNCATED):
            return replace(node, this=inner)
        to = node.to.removeprefix(ir.TRUNCATED)
        if not has_fraction(inner, self.domain):
            return ir.Cast(inner, to, node.safe, at=node.at)
        if inner.has(ir.Aggregate, ir.Apart):
            self.noticed.append(ir.Cast(inner, to, at=node.at))
            return inner
        return ir.Cast(ir.Call("TRUNC", (inner,), at=node.at), to, node.safe, at=node.at)

    def _check_key(self, key: Expr, lookup: str, at: int | None) -> None:
        name = self.lookups[lookup].key
        if not isinstance(key, ir.Attribute) or self.domain.names[key.axis] != name:
            advice = f"lookup {lookup!r} is of {name!r}"
            raise refuse("join", f"JOIN by {shown(key)}", advice, at=at)

    def _apart(self, node: ir.Scalar, around: Relation | None) -> Expr:
        inner = self.of(node.plan)
        if len(inner.items) != 1:
            raise refuse("subquery", "a subquery of several columns", _ONE, node)
        if _is_of(around, inner):
            return inner.items[0].expr
        return _scalar(inner, inner.items[0].expr, node.at)

    def _into(self, answers: Answers, node: Expr) -> Expr:
        """An expression of a SELECT over what its FROM offers."""
        sums = answers if answers.sums else None
        return on_grid(self.put(node, answers.env, sums, answers), answers.grid)

    def one_values(self, answers: Answers) -> Answers:
        """Check what stands in ``MAX(x)``: a column of a lookup or of groups, or of one row."""

        def put(node: Expr) -> Expr | None:
            if not isinstance(node, ir.OneValue):
                return None
            if node.this.has(ir.Aggregate, ir.Window):
                if is_beside(node.this) or (node.this.has(ir.Apart) and not node.this.axes):
                    return node.this
                raise refuse("aggregate", f"{node.name}({shown(node.this)})", LARGEST, node)
            grouped = frozenset[int]().union(*(key.axes for keys in answers.sets for key in keys))
            if not node.this.has(ir.LookedUp) and not node.axes <= grouped:
                advice = ONE_ROW.format(shown(node.this), "0.01" if node.name == "MIN" else "0.99")
                raise refuse("aggregate", f"{node.name}({shown(node.this)})", advice, node)
            return node

        items = tuple(replace(item, expr=item.expr.mapped(put)) for item in answers.items)
        order = tuple(replace(key, this=key.this.mapped(put)) for key in answers.order)
        for condition in (*answers.where, *answers.having, *answers.later, *answers.qualify):
            condition.mapped(put)
            if condition.has(ir.OneValue):
                advice = "compare the column itself in WHERE"
                raise refuse("display", f"MAX or MIN of {shown(condition)}", advice, condition)
        return replace(answers, items=items, order=order)

    # rules

    def scan(self, _: rel.Scan) -> Relation:
        return Rows()

    def named(self, plan: rel.Named) -> Relation:
        inner = self.of(plan.input)
        env = {(plan.alias, item.name): item.expr for item in inner.items}
        if isinstance(inner, Rows):
            return replace(inner, items=(), env=env)
        return replace(inner, items=(), env=env, sums=False, over=None)

    def lookup_join(self, plan: rel.LookupJoin) -> Relation:
        inner = self.of(plan.input)
        key = self.put(plan.key, inner.env)
        self._check_key(key, plan.lookup, plan.at)
        self.every = self.every or plan.every
        if plan.left or self._is_complete(plan.lookup):
            return inner
        if isinstance(inner, Answers) and inner.is_cut:
            advice = "join first, and use LIMIT at the end"
            raise refuse("nested", "JOIN after LIMIT", advice, at=plan.at)
        return self._filtered(inner, ir.LookedUp(key, plan.lookup, "", at=plan.at))

    def _is_complete(self, name: str) -> bool:
        """Whether every declared cell of its key has a row in a lookup."""
        return all(present is True for present in self._on_cells(name, None))

    def _on_cells(self, name: str, column: str | None) -> list[Any]:
        """The values of a column of a lookup on the cells of its key."""
        lookup = self.lookups[name]
        return list(lookup.on_cells(self.domain.attribute(lookup.key), column))

    def filter(self, plan: rel.Filter) -> Relation:
        pushed = pinned(plan)
        if pushed is not None:
            return self.of(pushed)
        inner = self.of(plan.input)
        return self._filtered(inner, self.put(plan.condition, inner.env, around=inner))

    def _filtered(self, inner: Relation, condition: Expr) -> Relation:
        answers = isinstance(inner, Answers) and any(
            isinstance(part, ir.Aggregate) for part in _outside(condition)
        )
        if condition.has(ir.Apart) and not answers:
            raise refuse("subquery", "a subquery in a condition", CHOSEN, condition)
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
            after = inner.windows or inner.ranked or has_rank(part)
            inner = self._restricted(inner, part, after=after)
        return inner

    def _restricted(self, inner: Answers, part: Expr, *, after: bool) -> Answers:
        """Answers with one more condition; ``after`` says that it is tested after windows."""
        ranks = inner.ranked or has_rank(part)
        if part.has(ir.Aggregate, ir.Window) or len(inner.sets) > 1:
            if after:
                return replace(inner, qualify=(*inner.qualify, part), ranked=ranks)
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
            replace(item, expr=self.put(item.expr, inner.env, around=inner)) for item in plan.items
        )
        if isinstance(inner, Rows):
            for item in items:
                if item.expr.has(ir.Window):
                    raise refuse("window", "OVER without GROUP BY", _ADD_UP, item.expr)
            return replace(inner, items=items)
        for item in plan.items:
            self._check_window(inner, item.expr)
        windows = inner.windows or any(has_window(item.expr) for item in items)
        ranked = inner.ranked or any(has_rank(item.expr) for item in items)
        return replace(inner, items=items, windows=windows, ranked=ranked)

    def _check_window(self, inner: Answers, over: Expr) -> None:
        """A sum over groups must not come after what chooses groups by noisy answers."""
        if not over.has(ir.Window):
            return
        if inner.is_cut:
            raise refuse("nested", "OVER after LIMIT", KEPT, over)
        if inner.qualify:
            raise refuse("nested", "OVER after a choice by ranks", "choose at the end", over)
        windows = [self.put(part, inner.env) for part in over.walk() if isinstance(part, ir.Window)]
        if inner.having or not any(map(has_window, windows)):
            return  # over the groups that are displayed
        if inner.later:
            feature = f"OVER after the condition {shown(inner.later[0])}"
            raise refuse("nested", feature, "write the condition before the first OVER", over)
        if inner.joined:
            feature = "OVER a JOIN of answers over different rows"
            raise refuse("nested", feature, UNEVEN, over)

    def aggregate(self, plan: rel.Aggregate) -> Relation:
        inner = self.of(plan.input)
        over = False
        if isinstance(inner, Rows):
            answers = Answers(inner.where, (), (), inner.env, plan.grouped)
        else:
            answers = self.nested.answers(inner, plan)
            over = answers.over is not None
        sets = tuple(
            tuple(dict.fromkeys(self._into(answers, entry) for entry in keys)) for keys in plan.sets
        )
        for key in (key for keys in sets for key in keys):
            if key.has(ir.Aggregate, ir.Window) and not is_beside(key):
                raise refuse("clause", f"GROUP BY {shown(key)}", "group by attributes", key)
            if not (isinstance(inner, Answers) and key in inner.sets[0]) and not is_beside(key):
                check_group(key, self.domain)
        answers = replace(answers, grid=grid_of(tuple(chain(*sets)), self.domain))
        sets = tuple(tuple(on_grid(key, answers.grid) for key in keys) for keys in sets)
        items = tuple(replace(entry, expr=self._into(answers, entry.expr)) for entry in plan.items)
        windows = any(has_window(entry.expr) for entry in items)
        ranked = any(has_rank(entry.expr) for entry in items)
        _check_unique(sets)
        if over:
            return replace(answers, items=items, windows=windows, ranked=True)
        answers = replace(answers, sets=sets, items=items, windows=windows, ranked=ranked)
        return self._kept(answers, inner.kept) if isinstance(inner, Rows) else answers

    def _kept(self, answers: Answers, kept: tuple[Expr, ...]) -> Answers:
        """Answers of the groups of which conditions on other answers are true."""
        for part in kept:
            if has_rank(part) and any(item.expr.has(ir.Window) for item in answers.items):
                raise refuse("nested", "OVER beside a choice of the first n", KEPT, part)
        return self._chosen(answers, kept)

    def choose(self, plan: rel.Choose) -> Relation:
        inner = self.of(plan.input)
        if isinstance(inner, Rows) and plan.after:
            raise refuse("window", "QUALIFY without an aggregate", _ADD_UP, plan.condition)
        if isinstance(inner, Rows):
            advice = "HAVING compares aggregates with numbers; write other conditions in WHERE"
            raise refuse("display", "HAVING without an aggregate", advice, plan.condition)
        condition = self._into(inner, plan.condition)
        after = plan.after or inner.over is not None
        after = after or (has_rank(condition) and not has_rank(plan.condition))
        return self._restricted(inner, condition, after=after)

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
            advice = "rows are never listed, nor chosen by their order; count them by GROUP BY"
            raise refuse("clause", f"{word} of rows", advice, at=plan.at)
        counts = [] if inner.limit is None else [max(0, inner.limit - plan.offset)]
        counts += [] if plan.count is None else [plan.count]
        count = min(counts) if counts else None
        return replace(inner, limit=count, offset=inner.offset + plan.offset)

    def cross_answers(self, plan: rel.CrossAnswers) -> Relation:
        inner, other = self.of(plan.input), self.of(plan.other)
        same = _is_of(inner, other)
        added = {
            (plan.alias, item.name): item.expr if same else _scalar(other, item.expr, plan.at)
            for item in other.items
        }
        if same and isinstance(inner, Answers):
            return replace(inner, env={**inner.env, **added}, ranked=True)
        return replace(inner, env={**inner.env, **added})

    def join_answers(self, plan: rel.JoinAnswers) -> Relation:
        left_answers, two = self.of(plan.input), self.of(plan.other)
        advice = "join answers with the same groups, or with fewer, by all of these"
        if not isinstance(two, Answers):
            raise refuse("join", "JOIN of answers", advice, at=plan.at)
        compared = self._compared(plan, left_answers, two)
        left_answers, two = unpinned(left_answers, compared), unpinned(two, compared)
        chosen = two.is_cut or two.having or two.qualify
        if isinstance(left_answers, Rows) or chosen or left_answers.keys > two.keys:
            return self._join_fewer(left_answers, two, plan, compared)
        if left_answers.is_cut or left_answers.having or left_answers.qualify:
            word = "LIMIT" if left_answers.is_cut else "a condition on answers"
            feature = f"JOIN of answers after {word}"
            raise refuse("nested", feature, "choose at the end", at=plan.at)
        if left_answers.keys != two.keys or not two.keys:  # there are none of several sets
            raise refuse("join", "JOIN of answers with different groups", advice, at=plan.at)
        right_env = {(plan.alias, item.name): item.expr for item in two.items}
        for expr in (*left_answers.env.values(), *right_env.values()):
            if expr.has(ir.GroupCount):
                advice = "select it by itself: which groups there are differs"
                raise refuse("nested", "JOIN of AVG() of answers", advice, at=plan.at)
        kinds = (ir.Aggregate, ir.Apart, ir.Number, ir.Text)  # of what is no column of groups
        groups = {expr for expr in right_env.values() if not expr.has(*kinds)} | two.keys
        if compared != groups:
            raise _by_some(groups - compared, plan)
        null = tuple(
            ir.Not(ir.IsNull(key)) for key in left_answers.sets[0] if self._may_be_null(key)
        )
        if plan.both:
            self._check_both(left_answers, two, null, plan)
        joined = side_by_side(left_answers, two, right_env, null, keep_left=plan.left)
        return replace(joined, ranked=left_answers.ranked or two.ranked)

    @staticmethod
    def _check_both(
        left: Answers, two: Answers, null: Collection[Expr], plan: rel.JoinAnswers
    ) -> None:
        """Refuse a FULL JOIN whose sides differ in the groups that they have."""
        sides = [
            {part for part in (*side.where, *side.later) if of_groups(part, side.keys)}
            for side in (left, two)
        ]
        if sides[0] != sides[1]:
            advice = "write the same conditions on columns of groups in both, or LEFT JOIN"
            raise refuse("join", "FULL JOIN of answers with different groups", advice, at=plan.at)
        if null:
            advice = "NULL equals no NULL; write LEFT JOIN, or filter the group of NULL in both"
            raise refuse("join", "FULL JOIN by a column that may be NULL", advice, at=plan.at)

    def _compared(self, plan: rel.JoinAnswers, left: Relation, two: Answers) -> set[Expr]:
        """The columns of groups of both sides that a join compares."""
        right = {(plan.alias, item.name): item.expr for item in two.items}
        compared = set()
        for mine, their in plan.pairs:
            column = self.put(mine, left.env)
            known = isinstance(their, ir.Column) and column == self.put(their, right)
            if not known or column.has(ir.Aggregate):
                feature = f"JOIN ON {shown(mine)} = {shown(their)}"
                raise refuse("join", feature, "compare the same columns of groups", at=plan.at)
            compared.add(column)
        return compared

    def _join_fewer(
        self, inner: Relation, two: Answers, plan: rel.JoinAnswers, pairs: set[Expr]
    ) -> Relation:
        """Rows or answers beside answers with fewer groups, by all of the groups of these.

        Where the other side is chosen by its answers, so are the groups here.
        """
        check_fewer(inner, two, plan)
        known = {(plan.alias, item.name): item.expr for item in two.items}
        if pairs != two.keys:
            raise _by_some(two.keys - pairs, plan)
        conditions = choices(two, plan)
        env = {**inner.env, **{key: within(expr, two) for key, expr in known.items()}}
        joined: Relation = replace(inner, env=env)
        where = () if plan.left else (*two.where, *two.later)
        groups = [part for part in where if of_groups(part, two.keys)]
        if not plan.left:
            groups += [ir.Not(ir.IsNull(key)) for key in two.sets[0] if self._may_be_null(key)]
        if isinstance(joined, Rows):
            kept = (*joined.kept, *conditions)
            return replace(joined, where=(*joined.where, *groups), kept=kept)
        for part in groups:
            joined = self._restricted(joined, part, after=joined.windows or joined.ranked)
        return self._chosen(joined, conditions)

    def _chosen(self, answers: Answers, conditions: Collection[Expr]) -> Answers:
        """Answers of the groups of which conditions on answers of fewer groups are true."""
        for part in conditions:
            check_all_groups(answers, part)
            after = has_rank(part) or answers.windows
            answers = self._restricted(answers, part, after=after)
        return replace(answers, ranked=answers.ranked or any(map(has_rank, conditions)))

    def _may_be_null(self, key: Expr) -> bool:
        """Whether a group may be that of NULL, as far as its form tells."""
        if isinstance(key, ir.LookedUp):
            return any(value is None for value in self._on_cells(key.lookup, key.column or None))
        if isinstance(key, ir.IsNull):
            return False
        attributes = (self.domain.attributes[axis] for axis in key.axes)
        known = isinstance(key, ir.Attribute) or not key.has(ir.LookedUp, ir.Case, ir.Null)
        calls = (part for part in key.walk() if isinstance(part, ir.Call | ir.Cast | ir.Binary))
        known = known and not any(map(_may_make_null, calls))
        return not known or any(each.special_cell("(null)") is not None for each in attributes)


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


def _outside(node: Expr) -> Iterator[Expr]:
    """The parts of an expression that are not in a sub-select of their own."""
    yield node
    for child in () if isinstance(node, ir.Apart) else node.children:
        yield from _outside(child)


def _by_some(missing: Collection[Expr], plan: rel.JoinAnswers) -> Exception:
    """The error for a join that does not compare all columns of groups."""
    names = ", ".join(sorted(map(shown, missing))) or "the others"
    feature = "JOIN of answers by some of their groups"
    return refuse("join", feature, f"compare {names}, too, or write = constant", at=plan.at)


def _may_make_null(node: Expr) -> bool:
    """Whether an operation may be NULL where its operands are not."""
    if isinstance(node, ir.Cast):
        return node.safe
    if isinstance(node, ir.Binary):
        return node.op in {"/", "//", "%", "div"}
    return isinstance(node, ir.Call) and node.name not in _NEVER_NULL


def _is_of(around: Relation | None, inner: Relation) -> bool:
    """Whether a sub-select is ``MAX(n)``, or the like, of the very answers that stand around it."""
    if not isinstance(around, Answers) or not isinstance(inner, Answers) or inner.over != ():
        return False
    chosen = (around.having, around.qualify, inner.having, around.is_cut, around.joined)
    same = set(around.where) == set(inner.where) and set(around.later) == set(inner.later)
    return not any(chosen) and same and around.sets == inner.sets


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

    def put(node: Expr) -> Expr | None:
        if not isinstance(node, ir.GroupCount):
            return None
        return replace(node, where=(*inner.where, *inner.later))

    return ir.Apart(over_rows(item.mapped(put), inner.where), at=at)
