"""SELECTs that read the answers of a sub-select: they choose, filter, order or add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.derivations import is_linear
from lrm.batches.compiler.expressions import Apart, held, shown
from lrm.batches.compiler.places import SEVERAL_SETS, of_groups
from lrm.batches.compiler.refusals import at_line, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "adds_up",
    "apart",
    "beside",
    "check_join",
    "check_sums",
    "chosen",
    "counted",
    "has_answers",
    "known",
    "put_sums",
    "restrict",
    "scalar",
    "split_having",
]

_LONGEST = 18  # digits of LIMIT, a BIGINT
_CUT = ("having", "limit", "offset")
_ONE = "a subquery in an expression must have one aggregate and no groups"
_KEPT = "which groups are kept depends on noise; add up over all groups, and choose at the end"
_SUMS = "only SUM adds up answers by groups: others depend on which groups are empty"


def has_answers(select: exp.Expr) -> bool:
    """Whether a SELECT has aggregates."""
    return select.args.get("group") is not None or any(
        item.find(exp.AggFunc) is not None for item in select.expressions
    )


def adds_up(select: exp.Expr) -> bool:
    """Whether a SELECT over answers has groups or aggregates of its own."""
    return select.args.get("group") is not None or any(
        one.find_ancestor(exp.Window) is None
        for item in select.expressions
        for one in item.find_all(exp.AggFunc)
    )


def check_sums(select: exp.Expr, answers: exp.Expr, columns: Mapping[str, exp.Expr]) -> None:
    """Check that a SELECT over answers only adds them up over groups of its own.

    ``SELECT a, SUM(n) FROM (SELECT a, b, COUNT(*) AS n … GROUP BY a, b) GROUP BY a`` counts rows by
    a. Averages and counts of answers depend on which groups are empty, so that they are refused.
    """
    for part in _CUT:
        if answers.args.get(part) is not None:
            raise refuse(f"adding up answers after {part.upper()}", "filter rows in WHERE", select)
    group = answers.args.get("group")
    if group is not None and any(type(one) in SEVERAL_SETS for one in group.expressions):
        raise refuse("adding up answers of several grouping sets", "group once", select)
    found = {name for name, one in columns.items() if one.find(exp.AggFunc) is not None}
    for node in _within(select, exp.Sum):
        _filter_sum(node)
    for node in _within(select, exp.AggFunc):
        inner = node.this.name.casefold() if type(node.this) is exp.Column else ""
        if type(node) is not exp.Sum or inner not in found:
            raise refuse(f"{node.key.upper()}() of answers", _SUMS, node)
        if not is_linear(columns[inner]):
            raise refuse("a sum of rates or averages", "add up sums and counts", node)
    aliases = {item.alias.casefold() for item in select.expressions if item.alias}
    for column in _within(select, exp.Column):
        own = type(column.parent) is exp.Ordered and column.name.casefold() in aliases
        if column.name.casefold() in found and type(column.parent) is not exp.Sum and not own:
            raise refuse(f"answer {column.name!r} beside sums of answers", _SUMS, column)


def _filter_sum(node: exp.Expr) -> None:
    """Write ``SUM(CASE WHEN a THEN n ELSE 0 END)`` as ``SUM(n) FILTER (WHERE a)``."""
    inner = node.this
    if type(inner) is exp.Case and inner.this is None and len(inner.args["ifs"]) == 1:
        (branch,), other = inner.args["ifs"], inner.args.get("default")
    elif type(inner) is exp.If:
        branch, other = inner, inner.args.get("false")
    else:
        return
    nothing = other is None or type(other) is exp.Null or other == exp.Literal.number(0)
    if not nothing or type(branch.args["true"]) is not exp.Column:
        return
    if type(node.parent) is not exp.Filter:
        only_these = exp.Where(this=branch.this.copy())
        added = exp.Sum(this=branch.args["true"].copy())
        node.replace(exp.Filter(this=added, expression=only_these))


def _within(select: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """All nodes of a kind in the clauses of a SELECT, without what it reads from."""
    clauses = (select.args.get(part) for part in ("where", "group", "having", "order"))
    roots = [*select.expressions, *(one for one in clauses if one is not None)]
    return [node for root in roots for node in root.find_all(kind)]


def put_sums(select: exp.Expr) -> None:
    """Put the aggregates of a sub-select for their sums over its groups."""
    for node in _within(select, exp.Sum):
        if node.this.find(exp.AggFunc) is not None:
            node.replace(node.this)


def apart(select: exp.Expr) -> exp.Expr:
    """The one answer of a SELECT without groups, for an expression that stands elsewhere."""
    if len(select.expressions) != 1:
        raise refuse("a subquery of several columns", _ONE, select)
    return scalar(select, select.expressions[0].unalias())


def scalar(select: exp.Expr, item: exp.Expr) -> exp.Expr:
    """A column of a SELECT that has one row, for an expression that stands elsewhere."""
    for part in ("group", *_CUT):
        if select.args.get(part) is not None:
            raise refuse(f"{part.upper()} in a subquery", _ONE, select.args[part])
    if item.find(exp.AggFunc) is None:
        raise refuse("a subquery without an aggregate", _ONE, select)
    return Apart(this=over_rows(item, select.args.get("where")))


def over_rows(item: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    """An expression of aggregates with WHERE as a FILTER of each."""
    root = exp.Paren(this=item.copy())
    if where is None:
        return item
    for node in list(root.find_all(exp.AggFunc)):
        if any(one is not node for one in node.find_all(exp.AggFunc)):
            continue  # SUM(COUNT(*)) OVER (…): the count is filtered
        place: exp.Expr = node
        for kind in (exp.WithinGroup, exp.Filter):
            if place.parent is not None and type(place.parent) is kind:
                place = place.parent
        if type(place) is exp.Filter:
            both = exp.and_(place.expression.this.copy(), where.this.copy())
            place.set("expression", exp.Where(this=both))
        else:
            place.replace(exp.Filter(this=place.copy(), expression=where.copy()))
    found: exp.Expr = root.this
    return found


def known(node: exp.Expr) -> exp.Expr:
    """The condition that an expression is not NULL."""
    return exp.Not(this=exp.Is(this=held(node.copy()), expression=exp.Null()))


def check_join(
    join: exp.Expr,
    by: set[str],
    groups: Mapping[str, exp.Expr],
    ours: tuple[str, Mapping[str, exp.Expr]],
    name: str,
) -> None:
    """Check that answers are joined by all of their groups, each by itself.

    Parameters
    ----------
    by
        The columns that USING names.
    groups
        The groups of the answers that are joined, which are called ``name``.
    ours
        What the other answers are called, and their columns.
    """
    qualifier, columns = ours
    on = join.args.get("on")
    for part in [] if on is None else on.flatten() if type(on) is exp.And else [on]:
        sides = [part.this, part.expression] if type(part) is exp.EQ else [part]
        pair = {one.table.casefold(): one for one in sides if type(one) is exp.Column}
        mine, theirs = pair.get(qualifier), pair.get(name)
        if mine is None or theirs is None or mine.name.casefold() not in columns:
            raise refuse(f"JOIN ON {shown(part)}", "compare the columns of groups", join)
        own = groups.get(theirs.name.casefold())
        if own is None or columns[mine.name.casefold()] != own:
            raise refuse(f"JOIN ON {shown(part)}", "compare the same columns of groups", join)
        by = by | {theirs.name.casefold()}
    if by != set(groups) or any(columns.get(one) != groups[one] for one in by if on is None):
        raise refuse("JOIN of answers by some of their groups", "name all of them", join)


def beside(one: exp.Expr, two: exp.Expr, *, left: bool) -> tuple[exp.Expr, list[exp.Expr], bool]:
    """Two SELECTs with the same groups as one, the columns of the second in it, and a flag.

    Conditions on groups decide which groups the joined answers have: those of both SELECTs, or with
    ``left`` those of the first. Other conditions filter the rows of each aggregate. Where these
    differ, a group may be missing on one side, so that no sum over groups is known: that is the
    flag.
    """
    way_out = "join answers with the same groups, by all of them"
    for select in (one, two):
        for part in _CUT:
            if select.args.get(part) is not None:
                raise refuse(f"JOIN of answers after {part.upper()}", "choose at the end", select)
    groups = [
        {shown(node) for node in group.expressions}
        for select in (one, two)
        if (group := select.args.get("group")) is not None
    ]
    if len(groups) != 2 or groups[0] != groups[1]:
        raise refuse("JOIN of answers with different groups", way_out, two)
    texts = [
        [shown(select.args[part]) if select.args.get(part) else "" for part in ("where", "qualify")]
        for select in (one, two)
    ]
    if texts[0] == texts[1]:
        return one, [item.copy() for item in two.expressions], False
    split = [_split(select, one.args["group"]) for select in (one, two)]
    kept = [*split[0][0], *([] if left else split[1][0])]
    others = [[shown(part) for part in rest] for _, rest in split]
    over = any(item.find(exp.Window) for each in (one, two) for item in each.expressions)
    columns = []
    for select, (_, rest) in zip((one, two), split, strict=True):
        where = exp.Where(this=exp.and_(*(part.copy() for part in rest))) if rest else None
        if over or (left and select is two):
            # A sum over groups is of its own SELECT's groups, whichever the join leaves.
            where = select.args.get("where")
        columns.append([over_rows(item, where) for item in select.expressions])
    one.set("where", None)
    one.set("qualify", None)
    one.set("expressions", columns[0])
    for condition in {shown(part): part for part in kept}.values():
        restrict(one, "qualify" if over else "where", condition.copy())
    return one, columns[1], others[0] != others[1]


def _split(select: exp.Expr, group: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions of a SELECT on its groups, and all others."""
    clauses = [select.args[part].this for part in ("where", "qualify") if select.args.get(part)]
    parts = [one for clause in clauses for one in conjuncts(clause)]
    own = [of_groups(one, group) for one in parts]
    return (
        [one for one, groups in zip(parts, own, strict=True) if groups],
        [one for one, groups in zip(parts, own, strict=True) if not groups],
    )


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, each without parentheses around it."""
    while type(node) is exp.Paren:
        node = node.this
    if type(node) is not exp.And:
        return [node]
    return [*conjuncts(node.this), *conjuncts(node.expression)]


def chosen(
    select: exp.Expr, answers: exp.Expr, condition: exp.Expr | None, *, over: bool
) -> exp.Expr:
    """The sub-select itself, with what the SELECT around it chooses.

    Parameters
    ----------
    condition
        What further tables in FROM ask of the rows.
    over
        Whether the SELECT adds up over groups: those that were chosen before.
    """
    where = select.args.get("where")
    cut = next((answers.args[part] for part in ("limit", "offset") if answers.args.get(part)), None)
    if over and cut is not None:
        raise refuse("OVER after LIMIT", _KEPT, cut)
    if cut is not None and condition is not None:
        raise refuse("JOIN after LIMIT", "join first, and use LIMIT at the end", cut)
    if cut is not None and any(select.args.get(part) for part in ("where", "order")):
        raise refuse("choosing from answers that LIMIT cuts", "use one LIMIT, at the end", cut)
    totals = any(item.find(exp.Window) is not None for item in answers.expressions)
    answers.set("expressions", select.expressions)
    if where is not None:
        restrict(answers, "having", where.this)
    if select.args.get("order") is not None:
        answers.set("order", select.args["order"])
    _cut_again(answers, select)
    if condition is not None:  # sums over groups come before it
        restrict(answers, "qualify" if totals else "where", condition)
    split_having(answers, "qualify" if totals else "where")
    _check_order(answers, over=over, totals=totals)
    return answers


def _cut_again(answers: exp.Expr, select: exp.Expr) -> None:
    """Let LIMIT and OFFSET of a SELECT count the rows that those of its sub-select leave."""
    if not any(select.args.get(part) for part in ("limit", "offset")):
        return
    limits = [counted(one.args["limit"]) for one in (answers, select) if one.args.get("limit")]
    before, after = (
        counted(one.args["offset"]) if one.args.get("offset") else 0 for one in (answers, select)
    )
    if answers.args.get("limit"):
        limits[0] = max(0, limits[0] - after)
    if limits:
        answers.set("limit", exp.Limit(expression=exp.Literal.number(min(limits))))
    if before + after:
        answers.set("offset", exp.Offset(expression=exp.Literal.number(before + after)))


def counted(node: exp.Expr) -> int:
    """The number of LIMIT or OFFSET."""
    word = "OFFSET" if type(node) is exp.Offset else "LIMIT"
    value = node.args.get("expression") or node.args.get("count")
    options = node.args.get("limit_options")
    ties = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    text = str(value.this) if type(value) is exp.Literal and not value.is_string else ""
    if ties or not text.isdigit() or len(text) > _LONGEST:
        raise at_line(node, f"{word} must be a whole number, such as {word} 10")
    return int(text)


def _check_order(answers: exp.Expr, *, over: bool, totals: bool) -> None:
    """Check that sums over groups come before what is chosen by answers, never after it."""
    later = answers.args.get("qualify")
    if over and later is not None:
        way_out = "write the condition before the first OVER"
        raise refuse(f"OVER after the condition {shown(later.this)}", way_out, later)
    having = answers.args.get("having")
    if having is None:
        return
    if over:
        raise refuse(f"OVER after the condition {shown(having.this)}", _KEPT, having)
    if totals and having.this.find(exp.AggFunc) is None:
        way_out = "write the condition before OVER, or choose rows of the answer afterwards"
        raise refuse(f"WHERE {shown(having.this)} after OVER", way_out, having)


def restrict(select: exp.Expr, part: str, condition: exp.Expr) -> None:
    """Add a condition to WHERE, HAVING or QUALIFY: what is asked of groups after OVER."""
    present = select.args.get(part)
    if present is not None:
        condition = exp.And(this=held(condition), expression=held(present.this))
    clauses = {"where": exp.Where, "having": exp.Having, "qualify": exp.Qualify}
    select.set(part, clauses[part](this=condition))


def split_having(select: exp.Expr, to: str = "where") -> None:
    """Move what HAVING asks of groups alone to WHERE, which is the same for one grouping set."""
    having, group = select.args.get("having"), select.args.get("group")
    if having is None or group is None:
        return
    if any(type(one) in SEVERAL_SETS for one in group.expressions):
        return
    parts = list(having.this.flatten()) if type(having.this) is exp.And else [having.this]
    own = [one for one in parts if one.find(exp.AggFunc) is None and of_groups(one, group)]
    if not own:
        return
    rest = [one.copy() for one in parts if not any(one is another for another in own)]
    select.set("having", exp.Having(this=exp.and_(*rest)) if rest else None)
    for one in own:
        restrict(select, to, exp.Paren(this=one.copy()))
