"""What a statement asks for: relational nodes over expressions, and their normal form.

A node's expressions read the columns of the FROM that they stand in, as `Column` nodes whose keys
are ``(alias, column)``. ``HAVING``, ``ORDER BY`` and ``LIMIT`` stand around the SELECT that they
belong to, and read the columns of the same FROM. `rewrite` makes `Answers` of them: aggregates of
rows by groups, and what is displayed of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr, SortKey, conjuncts
from lrm.queries.sql.formulas import is_rank
from lrm.queries.sql.refusals import ADVICE, refuse
from lrm.queries.sql.render import shown


@dataclass(frozen=True)
class Plan:
    """A relational node."""


@dataclass(frozen=True)
class Item:
    """A column of a SELECT: its expression, its alias, and the name that others know it by."""

    expr: Expr
    alias: str | None
    name: str


@dataclass(frozen=True)
class Scan(Plan):
    """All rows of the declared table."""


@dataclass(frozen=True)
class Named(Plan):
    """A sub-select in FROM, under its alias."""

    input: Plan
    alias: str


@dataclass(frozen=True)
class LookupJoin(Plan):
    """The rows of the input with the columns of a lookup; all of them if ``left``.

    If ``every``, all rows of the lookup: groups without rows of the input have the count 0.
    """

    input: Plan
    lookup: str
    key: Expr
    left: bool
    every: bool = False
    at: int | None = None


@dataclass(frozen=True)
class CrossAnswers(Plan):
    """The rows of the input, each joined with the one row of a sub-select."""

    input: Plan
    other: Plan
    alias: str
    at: int | None = None


@dataclass(frozen=True)
class JoinAnswers(Plan):
    """The answers of two sub-selects with the same groups, side by side.

    ``pairs`` are the columns of groups that are compared: of the input, and of the other.
    """

    input: Plan
    other: Plan
    alias: str
    pairs: tuple[tuple[Expr, Expr], ...]
    left: bool
    at: int | None = None
    both: bool = False  # whether the groups of the other stay, too: FULL JOIN


@dataclass(frozen=True)
class Filter(Plan):
    """The rows of the input of which a condition is true: WHERE."""

    input: Plan
    condition: Expr


@dataclass(frozen=True)
class Project(Plan):
    """Expressions of the columns of the input: a SELECT without aggregates."""

    input: Plan
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Aggregate(Plan):
    """Aggregates of the rows of the input, by grouping sets: a SELECT with aggregates."""

    input: Plan
    sets: tuple[tuple[Expr, ...], ...]
    items: tuple[Item, ...]
    grouped: bool


@dataclass(frozen=True)
class Choose(Plan):
    """The answers of which a condition is true: HAVING, or QUALIFY ``after`` window functions."""

    input: Plan
    condition: Expr
    after: bool = False


@dataclass(frozen=True)
class Sort(Plan):
    """The answers in an order."""

    input: Plan
    keys: tuple[SortKey, ...]


@dataclass(frozen=True)
class Limit(Plan):
    """The first answers after some."""

    input: Plan
    count: int | None
    offset: int
    at: int | None = None


@dataclass(frozen=True)
class EndKey:
    """A key of ORDER BY after UNION ALL: a column by its name or its position."""

    name: str
    position: int | None
    descending: bool
    nulls_first: bool
    at: int | None = None


@dataclass(frozen=True)
class UnionAll(Plan):
    """The answers of several SELECTs, one below the other, in an order.

    A statement of one SELECT is one part without an ending.
    """

    parts: tuple[Plan, ...]
    places: tuple[int | None, ...]
    keys: tuple[EndKey, ...] = ()
    count: int | None = None
    offset: int = 0
    at: int | None = None
    # Comparisons of an answer with a number, in a WHERE around it all.
    having: tuple[tuple[str, str, float], ...] = ()

    @property
    def ends(self) -> bool:
        """Whether WHERE, ORDER BY, LIMIT or OFFSET stands around it all."""
        return bool(self.keys or self.having) or self.count is not None or self.offset > 0


def items_of(plan: Plan) -> tuple[Item, ...]:
    """The columns of a SELECT."""
    while not isinstance(plan, Project | Aggregate):
        plan = plan.input  # type: ignore[attr-defined] # Choose, Sort and Limit have one
    return plan.items


def renamed(plan: Plan, names: Sequence[str]) -> Plan:
    """A SELECT whose first columns have other names: ``AS t (a, b)``."""
    if not names:
        return plan
    if not isinstance(plan, Project | Aggregate):
        inner = renamed(plan.input, names)  # type: ignore[attr-defined] # as in `items_of`
        return replace(plan, input=inner)  # type: ignore[call-arg]
    if len(names) > len(plan.items):
        advice = f"the sub-select has {len(plan.items)}"
        raise refuse("clause", f"names of {len(names)} columns", advice)
    pairs = zip(plan.items, names, strict=False)
    own = tuple(replace(item, alias=name, name=name) for item, name in pairs)
    return replace(plan, items=(*own, *plan.items[len(names) :]))


def has_answers(plan: Plan) -> bool:
    """Whether a plan has aggregates."""
    while not isinstance(plan, Aggregate):
        if isinstance(plan, Scan):
            return False
        plan = plan.input  # type: ignore[attr-defined] # all others have one
    return True


Env = Mapping[tuple[str, str], Expr]
"""What the columns of FROM stand for, by sub-select and name."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the declared table: conditions that are all true of them, and columns."""

    where: tuple[Expr, ...] = ()
    items: tuple[Item, ...] = ()
    env: Env = field(default_factory=dict)
    kept: tuple[Expr, ...] = ()  # conditions on noisy answers of their groups


@dataclass(frozen=True, eq=False)
class Answers:
    """Aggregates of rows by groups, and what is displayed of them."""

    where: tuple[Expr, ...]
    # Grouping sets; one that is empty where there is no GROUP BY.
    sets: tuple[tuple[Expr, ...], ...]
    items: tuple[Item, ...]  # columns: groups, and expressions of aggregates
    env: Env
    grouped: bool
    later: tuple[Expr, ...] = ()  # conditions on groups that are tested after windows
    having: tuple[Expr, ...] = ()  # having, order, limit, offset: what is displayed
    order: tuple[ir.SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    qualify: tuple[Expr, ...] = ()  # conditions on answers that are tested after ranks
    windows: bool = False  # whether a column is a sum over groups, or an answer of other groups
    ranked: bool = False  # whether a column is a rank among the groups that are displayed
    joined: bool = False  # whether its columns are of rows that differ: it was joined
    sums: bool = False  # whether expressions of it add up the answers of a sub-select
    # The groups of that sub-select that are added up, where it has a single grouping set.
    added: frozenset[Expr] | None = None
    # Where these are displayed group by group: what the statement itself is grouped by.
    over: tuple[Expr, ...] | None = None
    # What the author of the statement should know, and of which expression.
    notices: tuple[tuple[str, Expr], ...] = ()
    # Groups that are the cells of a column of times, with that column.
    grid: Mapping[Expr, Expr] = field(default_factory=dict)
    left_out: tuple[Expr, ...] = ()  # groups that are not displayed as columns
    # Columns of groups that say something in the rows that add up all of its groups, as written.
    totals: Mapping[Expr, Expr] = field(default_factory=dict)

    @property
    def axes(self) -> frozenset[int]:
        """The attributes that it uses anywhere."""
        every = (
            *self.where,
            *(key for keys in self.sets for key in keys),
            *(item.expr for item in self.items),
            *self.later,
            *self.having,
            *self.order,
            *self.qualify,
        )
        return frozenset[int]().union(*(expression.axes for expression in every))

    @property
    def is_cut(self) -> bool:
        """Whether LIMIT or OFFSET cuts it."""
        return self.limit is not None or self.offset > 0

    @property
    def keys(self) -> frozenset[Expr]:
        """What all of it is grouped by."""
        return frozenset(self.sets[0]) if len(self.sets) == 1 else frozenset()


Relation = Rows | Answers


def of_groups(node: Expr, keys: frozenset[Expr]) -> bool:
    """Whether an expression reads nothing but what is grouped by."""
    waiting = [node]
    while waiting:
        expression = waiting.pop()
        if expression in keys:
            continue
        if isinstance(expression, ir.Attribute | ir.Column | ir.Aggregate | ir.Window):
            return False
        waiting += expression.children
    return True


def completed(answers: Answers) -> Answers:
    """Add to the groups what SELECT computes from them: it has one value in each of them.

    ``SELECT UPPER(a) … GROUP BY a`` is ``GROUP BY a, UPPER(a)``. Where a group is rolled up, such a
    column is not known.
    """
    sets = tuple(
        tuple(group_key for group_key in keys if not is_beside(group_key)) for keys in answers.sets
    )
    answers = replace(answers, sets=sets)
    if not answers.grouped:
        return answers
    every = {key for keys in sets for key in keys}
    added: list[Expr] = []
    totals: dict[Expr, Expr] = {}
    items = list(answers.items)
    answers, sets = _kept_sets(answers, sets)
    for place, item in enumerate(answers.items):
        node = item.expr
        labelled = total_label(node) if len(sets) > 1 else None
        if labelled is not None and labelled[0] in every:
            totals[labelled[0]] = node
            items[place] = replace(item, expr=labelled[0])
            continue
        if grouped_levels(node) is not None:
            continue
        _check_grouping(node)
        plain = isinstance(node, ir.Attribute) or not node.axes
        if plain or node.has(ir.Aggregate, ir.Window, ir.Apart) or node in every:
            continue
        if len(sets) > 1:
            advice = "select the column itself: a row without its label is a total"
            construct = f"{shown(node)} beside ROLLUP, CUBE or GROUPING SETS"
            raise refuse("group-by", construct, advice, node)
        if of_groups(node, answers.keys) or node.has(ir.OneValue):
            added.append(node)
    for node in (*(key.this for key in answers.order), *answers.having):
        labelled = total_label(node)
        if (labelled is None or labelled[0] not in totals) and grouped_levels(node) is None:
            _check_grouping(node)
    sets = (tuple(dict.fromkeys((*sets[0], *added))), *sets[1:])
    return replace(answers, sets=sets, items=tuple(items), totals=totals)


def is_beside(node: Expr) -> bool:
    """Whether a column is an answer of another sub-select: it has one value in each group."""
    within = isinstance(node, ir.Window) and node.name == "WITHIN"
    return isinstance(node, ir.Apart) or within


def _check_grouping(node: Expr) -> None:
    if any(isinstance(part, ir.Call) and part.name == "GROUPING" for part in node.walk()):
        raise refuse("aggregate", *ADVICE["grouping"], node)


def _kept_sets(
    answers: Answers, sets: tuple[tuple[Expr, ...], ...]
) -> tuple[Answers, tuple[tuple[Expr, ...], ...]]:
    """The grouping sets that ``HAVING GROUPING(a) = 0`` leaves."""
    having: list[Expr] = []
    for part in answers.having:
        level = grouped_levels(part.left) if isinstance(part, ir.Binary) else None
        value = part.right if isinstance(part, ir.Binary) and part.op == "=" else None
        if level is None or not isinstance(part, ir.Binary) or not isinstance(value, ir.Number):
            having.append(part)
            continue
        sets = tuple(keys for keys in sets if level_of(part.left, keys) == value.text)
    if not sets:
        advice = "it keeps no grouping set"
        raise refuse("group-by", f"HAVING {shown(answers.having[0])}", advice, answers.having[0])
    return replace(answers, having=tuple(having), sets=sets), sets


def grouped_levels(node: Expr) -> tuple[Expr, ...] | None:
    """The columns of ``GROUPING(a, b)``, and of ``GROUPING(a) = 1``; None for anything else."""
    if isinstance(node, ir.Binary) and node.op == "=" and node.right == ir.Number("1"):
        node = node.left
    return node.args if isinstance(node, ir.Call) and node.name == "GROUPING" else None


def level_of(node: Expr, keys: Collection[Expr]) -> str:
    """What ``GROUPING(a, b)`` is where rows are grouped by some columns, as a label."""
    bits = "".join(str(int(column not in keys)) for column in grouped_levels(node) or ())
    value = int(bits, 2)
    return str(value == 1).lower() if isinstance(node, ir.Binary) else str(value)


def total_label(node: Expr) -> tuple[Expr, str] | None:
    """The column and the text of ``CASE WHEN GROUPING(a) = 1 THEN 'all' ELSE a END``.

    ``COALESCE(a, 'all')`` is the same of a column that is never NULL by itself.
    """
    if isinstance(node, ir.Call) and node.name == "COALESCE" and len(node.args) == 2:
        column, text = node.args
        if isinstance(column, ir.Cast) and column.to.partition("(")[0] in {"TEXT", "VARCHAR"}:
            column = column.this
        return (column, text.value) if isinstance(text, ir.Text) else None
    if not isinstance(node, ir.Case) or len(node.conditions) != 1 or node.default is None:
        return None
    (condition,), (then, other) = node.conditions, node.outcomes
    if isinstance(condition, ir.Call):
        condition = ir.Binary("=", condition, ir.Number("1"))
    if not isinstance(condition, ir.Binary) or not isinstance(condition.left, ir.Call):
        return None
    if condition.right == ir.Number("0"):
        then, other = other, then
    if isinstance(other, ir.Cast) and other.to == "TEXT":
        other = other.this
    grouping = ir.Call("GROUPING", (other,))
    is_total = condition.left == grouping and condition.op == "="
    both = condition.right in {ir.Number("0"), ir.Number("1")}
    known = is_total and both and isinstance(then, ir.Text)
    return (other, then.value) if known and isinstance(then, ir.Text) else None


def has_rank(node: Expr) -> bool:
    """Whether an expression has a window that numbers groups."""
    return node.has(ir.Window) and any(map(is_rank, node.walk()))


def has_window(node: Expr) -> bool:
    """Whether an expression has a window that adds up answers, or takes those of other groups."""
    return node.has(ir.Window) and any(
        isinstance(part, ir.Window) and not is_rank(part) for part in node.walk()
    )


def over_rows(item: Expr, where: tuple[Expr, ...]) -> Expr:
    """An expression of aggregates with conditions as a FILTER of each."""
    if not where:
        return item

    def put(expression: Expr) -> Expr | None:
        if isinstance(expression, ir.Apart):
            return expression
        if isinstance(expression, ir.Aggregate):
            parts = (*conjuncts(expression.where), *where)
            return replace(expression, where=ir.And(parts) if len(parts) > 1 else parts[0])
        return None

    return item.mapped(put)


def side_by_side(
    left: Answers, two: Answers, right_env: Env, null: tuple[Expr, ...], *, keep_left: bool
) -> Answers:
    """Answers with the same groups, side by side.

    Conditions on groups decide which groups there are: those of both sides, or of the left one
    in a LEFT JOIN. Other conditions become FILTERs; where they differ, which groups both sides
    have is not known. ``null`` are conditions that no group is of NULL, which equals no NULL.
    """
    over = left.windows or two.windows
    if keep_left and null:  # the group of NULL has no answer of the right side
        known = ir.And(null) if len(null) > 1 else null[0]
        some = ir.OneValue("MAX", ir.Case((known,), (ir.Number("1"),)))
        right_env = {
            name: ir.Binary("*", node, some) if node.has(ir.Aggregate) else node
            for name, node in right_env.items()
        }
    sides = []
    for each, extra in ((left, () if keep_left else null), (two, () if keep_left else null)):
        # NULL equals no NULL; a window adds up its group all the same.
        where = each.where if each.windows else (*each.where, *extra)
        later = (*each.later, *extra) if each.windows else each.later
        sides.append((where, later))
    if set(sides[0][0]) == set(sides[1][0]) and set(sides[0][1]) == set(sides[1][1]):
        where, later = sides[0]
        env = {**left.env, **right_env}
        return replace(left, where=where, later=later, env=env, windows=over)
    parts = [(*where, *later) for where, later in sides]
    shared = () if over else tuple(part for part in parts[0] if part in parts[1])
    parts = [tuple(part for part in some if part not in shared) for some in parts]
    rest = [tuple(p for p in some if not of_groups(p, left.keys)) for some in parts]
    groups = [tuple(p for p in some if of_groups(p, left.keys)) for some in parts]
    mine = sides[0][0] if over else rest[0]
    right_conditions = sides[1][0] if over else parts[1] if keep_left else rest[1]
    group_conditions = tuple(dict.fromkeys((*groups[0], *(() if keep_left else groups[1]))))
    env = {key: over_rows(expr, mine) for key, expr in left.env.items()}
    env |= {key: over_rows(expr, right_conditions) for key, expr in right_env.items()}
    return replace(
        left,
        where=() if over else (*shared, *group_conditions),
        later=group_conditions if over else (),
        env=env,
        windows=over,
        joined=left.joined or two.joined or set(rest[0]) != set(rest[1]),
    )
