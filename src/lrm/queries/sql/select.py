"""One SELECT in normal form → its answers, the table they form, and how they are displayed.

HAVING, ranks, ORDER BY and LIMIT choose among noisy answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lrm.domain import Numbers
from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.answers import Answer, Compiled, Grouped, Weighted
from lrm.queries.sql.atoms import undivided
from lrm.queries.sql.cells import Cells
from lrm.queries.sql.expr import COMPARISONS, OPPOSITES, Expr
from lrm.queries.sql.forms import middle, sums_bins
from lrm.queries.sql.formulas import asked, number
from lrm.queries.sql.groups import (
    Labels,
    check_groups,
    group_blocks,
    group_columns,
    groupings,
    key_groups,
    key_values,
    note_groups,
)
from lrm.queries.sql.inputs import DerivedAnswer, QuantileAnswer
from lrm.queries.sql.plan import Answers, UnionAll, has_rank, total_label
from lrm.queries.sql.refusals import AGGREGATES, fail, refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.statistics import Asked, Leaf, Size
from lrm.queries.sql.tables import Truth, all_of, filtered
from lrm.queries.sql.weights import weights
from lrm.queries.terms import Names
from lrm.queries.workload import Column, Statement
from lrm.queries.workload.display import Bound, Display, OrderKey, Rank

AnyAnswer = Answer | DerivedAnswer | QuantileAnswer
"""An answer of a statement: linear, or computed from linear ones."""

LONGEST_NAME = 80
"""Characters of an expression by which an answer that only HAVING or ORDER BY names is known."""


class Select:
    """One SELECT: its columns, and the answers that it compiles to."""

    def __init__(
        self, answers: Answers, cells: Cells, statement: int, part: int, line: int
    ) -> None:
        self.normal, self.cells, self.line = answers, cells, line
        self.statement, self.part = statement, part
        self.variants = groupings(answers)
        self.constants: list[tuple[str, str]] = []
        self.renamed: dict[int, str] = {}
        self.columns: list[tuple[str | None, Expr]] = []
        self._read_columns()
        self.ranks = _ranks(answers) if answers.ranked else []
        self.having, self.qualify = (
            [clause for part in parts for clause in _compared(part)]
            for parts in (answers.having, answers.qualify)
        )
        for division in answers.divisions:
            warning = (
                f"{shown(division)} is answered with its fraction, which the dialect would drop"
            )
            self.cells.warnings[warning] = division
        self.named: dict[str, Expr] = {}
        self.groups: dict[Expr, tuple[Column, Labels]] = {}

    def _check_grouped(self, axes: set[int]) -> None:
        for axis in sorted(axes):
            attribute = self.cells.domain.attributes[axis]
            if isinstance(attribute, Numbers):
                raise fail("group-by", undivided(attribute, "grouped by"))

    def _read_columns(self) -> None:
        """Split SELECT's list into columns of groups (checked) and answers."""
        grouped = {axis for grouping in self.variants for axes in grouping.sets for axis in axes}
        keys = {key for grouping in self.variants for key in grouping.keys}
        self._check_grouped({*grouped, *(axis for key in keys for axis in key.axes)})
        for item in self.normal.items:
            node = item.expr
            if isinstance(node, ir.Attribute) and node.axis in grouped:  # in some sets also a key
                if item.alias is not None:
                    self.renamed[node.axis] = item.alias
                elif item.name != node.name:
                    self.renamed.setdefault(node.axis, item.name)
                continue
            if node in keys:
                continue
            if item.alias is not None and isinstance(node, ir.Text | ir.Number):
                text = node.value if isinstance(node, ir.Text) else node.text
                self.constants.append((item.alias, text))
                continue
            if isinstance(node, ir.Attribute | ir.LookedUp):
                sentence = f"column {shown(node)!r} must appear in GROUP BY or inside an aggregate"
                raise fail("group-by", sentence, node)
            self.columns.append((item.name or None, node))
        if not self.columns:
            first = self.normal.items[0].expr if self.normal.items else None
            advice = "select what HAVING compares too" if self.normal.having else AGGREGATES
            raise refuse("no-answer", "a SELECT without an aggregate", advice, first)

    def answers(self, seen: set[str], shared: set[str]) -> list[AnyAnswer]:
        """Compile the answers."""
        cells = self.cells
        self._name_answers(seen, shared)
        split_up = [
            (name, asked(node, partial(middle, cells=cells)))
            for name, node in self.named.items()
            if not ir.is_rank(node)
        ]
        leaves = [leaf for _, answer in split_up for leaf in answer.leaves]
        windows = [leaf.window for leaf in leaves if leaf.window is not None]
        if len(self.normal.sets) > 1 and windows:
            advice = "write one statement per set"
            raise refuse("window", "OVER beside several grouping sets", advice, windows[0])
        self._weigh(leaves)
        for part_later in self.normal.later:
            cells.truths(part_later)
        for variant in self.variants:
            key_groups(key_values(variant.keys, cells), variant.keys, cells)
        for _, answer in split_up:
            for step in answer.steps:
                if isinstance(step, Size) and isinstance(step.of, ir.GroupCount):
                    note_groups(step.of.keys, cells)
        cells.merge()
        weighed, where = self._weigh(leaves)
        conditions = [] if where is None else [where]
        conditions += [cells.truths(variant) for variant in self.normal.later]
        all_answers: list[AnyAnswer] = []
        for variant in self.variants:
            values = key_values(variant.keys, cells)
            groups = key_groups(values, variant.keys, cells)
            check_groups(groups, where, cells)
            self.groups |= group_columns(variant, self.renamed, values, cells)
            blocks = [group_blocks(variant.sets, group, conditions, cells) for group in groups]
            later = bool(self.normal.later)
            by = Grouped(variant.sets, variant.keys, groups, blocks, conditions, later)
            all_answers += self._of_groups(by, split_up, weighed)
        if not all_answers:
            sentence = (
                "the conditions of the statement leave none of its declared groups: it has no rows"
            )
            raise SqlError(sentence, code="no-answer")
        return all_answers

    def _of_groups(
        self, by: Grouped, split_up: list[tuple[str, Asked]], weighed: list[Weighted]
    ) -> list[AnyAnswer]:
        compiled = iter(weighed)
        group_answers: list[AnyAnswer] = []
        for name, answer in split_up:
            leaf_weights = [next(compiled) for _ in answer.leaves]
            totals = {
                key.axis: text
                for key, text in self.normal.totals.items()
                if isinstance(key, ir.Attribute)
            }
            names = Names(name, self.line, tuple(self.constants), self.renamed, totals)
            made = Compiled(names, answer, leaf_weights, self.cells, by)
            for group, blocks in zip(by.groups, by.blocks, strict=True):
                group_answers += made.answers(group, blocks)
        return group_answers

    def _name_answers(self, seen: set[str], shared: set[str]) -> None:
        """Give every answer a name: its alias, or its place; those only sorted by come last.

        An alias that several statements use is named with its statement: ``q2.n``.
        """
        several = len(self.columns) > 1
        query = f"q{self.statement + self.part}"
        for position, (alias, node) in enumerate(self.columns, start=1):
            name = alias or query + (f".{position}" if several else "")
            if alias in shared:
                name = f"q{self.statement}.{alias}"
            if name in seen and not self.constants:  # in another SELECT of a UNION ALL
                name = f"{name}.{self.part + 1}"
            if name in self.named:
                sentence = f"two answers are called {name!r}; give each its own name with AS"
                raise fail("name", sentence, node)
            self.named[name] = node
        seen.update(self.named)
        compared = [node for clause in self.having + self.qualify for node, _, _ in clause]
        keys = [*(key for rank in self.ranks for key in rank.order), *self.normal.order]
        compared += [key.this for key in keys if key.has(ir.Aggregate)]
        for node in (*(each for each in compared if not ir.is_rank(each)), *self.ranks):
            if node not in self.named.values():
                text = f"{query}.{shown(node)[:LONGEST_NAME]}"
                self.named[text if text not in self.named else f"{text}.{len(self.named)}"] = node

    @property
    def names_by_alias(self) -> dict[str, str]:
        """The name of each answer in the batch, by its alias; without one, by the name itself."""
        pairs = zip(self.columns, self.named, strict=False)
        return {alias or name: name for (alias, _), name in pairs}

    def display(self) -> Display | None:
        """How the answers are displayed: HAVING, QUALIFY, ORDER BY and LIMIT, in their names."""
        normal = self.normal
        if not (self.having or self.qualify or self.ranks or normal.order or normal.is_cut):
            return None
        names = {node: name for name, node in reversed(self.named.items())}
        groups = dict(self.groups)
        for key in normal.order:
            labelled = total_label(key.this)
            if labelled is not None and labelled[0] in groups:  # a text among the others
                column, labels = groups[labelled[0]]
                groups[key.this] = column, tuple(sorted({*labels, labelled[1]}))
        having, qualify = (
            tuple(tuple(Bound(names[node], op, end) for node, op, end in part) for part in clauses)
            for clauses in (self.having, self.qualify)
        )
        order = _order_keys(normal.order, names, groups)
        ranks = tuple(
            _rank(name, node, names, groups)
            for name, node in self.named.items()
            if isinstance(node, ir.Window) and ir.is_rank(node)
        )
        keys = [*order, *(key for rank in ranks for key in rank.order)]
        used = {bound.answer for clause in (*having, *qualify) for bound in clause}
        used |= {key.column for key in keys if key.labels is None} | {rank.name for rank in ranks}
        queries = tuple(self.named)[: len(self.columns)]
        hidden = tuple(sorted(used.difference(queries)))
        return Display(queries, hidden, having, order, normal.limit, normal.offset, ranks, qualify)

    def table(self) -> Statement:
        """The table that the answers form: its columns of groups in the order of SELECT."""
        columns_by_name = {column.name: column for column, _ in self.groups.values()}
        order: dict[str, None] = {}
        for item in self.normal.items:
            if item.expr in self.groups:
                order.setdefault(self.groups[item.expr][0].name)
            elif item.alias is not None and isinstance(item.expr, ir.Text | ir.Number):
                text = dict(self.constants)[item.alias]
                columns_by_name.setdefault(item.alias, Column(item.alias, labels=(text,)))
                order.setdefault(item.alias)
        order |= dict.fromkeys(columns_by_name)
        columns = tuple(columns_by_name[name] for name in order)
        answers = tuple(self.named)[: len(self.columns)]
        return Statement("", "", columns, answers, line=self.line)

    def _weigh(self, leaves: list[Leaf]) -> tuple[list[Weighted], Truth | None]:
        cells = self.cells
        parts = [cells.truths(condition) for condition in self.normal.where]
        row_truth = all_of(parts) if parts else None
        compiled: list[Weighted] = []
        for leaf in leaves:
            leaf_weights = weights(leaf.node, cells, "square" if leaf.square else "value")
            error = weights(leaf.node, cells, "binning") if sums_bins(leaf.node, cells) else None
            if row_truth is not None and not leaf.apart:
                leaf_weights = filtered(leaf_weights, row_truth)
                error = None if error is None else filtered(error, row_truth)
            compiled.append((leaf_weights, error))
        return compiled, row_truth


_MOST_CLAUSES = 64
_HAVING = "HAVING compares aggregates with numbers; write other conditions in WHERE"
_ORDER = "order by answers or by columns of GROUP BY"


Clause = list[tuple[Expr, str, float]]
"""Comparisons of aggregates with numbers, one of which must hold."""


Groups = Mapping[Expr, tuple[Column, tuple[str, ...]]]
"""Each column of groups, and its labels in ascending order."""


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


def _rank(name: str, node: ir.Window, names: Mapping[Expr, str], groups: Groups) -> Rank:
    for group_key in node.partition:
        if group_key not in groups:
            raise refuse(
                "window", f"PARTITION BY {shown(group_key)}", "it is not grouped by", group_key
            )
    function: Any = node.name.lower()
    (buckets,) = node.args or (ir.Number("1"),)
    return Rank(
        name,
        function,
        _order_keys(node.order, names, groups),
        tuple(groups[group_key][0].name for group_key in node.partition),
        int(buckets.text) if isinstance(buckets, ir.Number) else 1,
    )


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
        if isinstance(node, ir.Window) and ir.is_rank(node):
            ranks[node] = None
        elif has_rank(node):
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
    return node, OPPOSITES[operation] if negated else operation, value
