"""One SELECT in normal form → its answers, the table they form, and how they are displayed.

HAVING, ranks, ORDER BY and LIMIT choose among noisy answers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from lrm.domain import Numbers
from lrm.domain.lookups import label_text
from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.answers import Answer, Compiled, Grouped, Weighted
from lrm.queries.sql.atoms import undivided
from lrm.queries.sql.cells import Cells
from lrm.queries.sql.displays import (
    Displayed,
    compared,
    first_value,
    is_apart,
    left_out,
    order_keys,
)
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.forms import middle, sums_bins
from lrm.queries.sql.formulas import asked
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
from lrm.queries.sql.plan import Answers, grouped_levels, total_label
from lrm.queries.sql.refusals import AGGREGATES, fail, refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.statistics import Asked, Leaf, Size
from lrm.queries.sql.tables import Truth, all_of, filtered
from lrm.queries.sql.weights import weights
from lrm.queries.terms import Names
from lrm.queries.workload import Column, Kind, Statement
from lrm.queries.workload.display import NULL, Bound, Display

AnyAnswer = Answer | DerivedAnswer | QuantileAnswer
"""An answer of a statement: linear, or computed from linear ones."""


class Select:
    """One SELECT: its columns, and the answers that it compiles to."""

    def __init__(
        self, answers: Answers, cells: Cells, statement: int, part: int, line: int
    ) -> None:
        self.normal, self.cells, self.line = answers, cells, line
        self.statement, self.part = statement, part
        self.variants = groupings(answers)
        self.keys = {key for grouping in self.variants for key in grouping.keys}  # expressions
        self.constants: list[tuple[str, str]] = []
        labelled = ((key, total_label(node)) for key, node in answers.totals.items())
        self.totals = {key: label[1] for key, label in labelled if label is not None}
        self.renamed: dict[int, str] = {}
        self.columns: list[tuple[str | None, Expr]] = []
        self._read_columns()
        self.having, self.qualify = (
            [clause for part in parts for clause in compared(part)]
            for parts in (answers.having, answers.qualify)
        )
        self.cells.warnings.update(answers.notices)
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
        self._check_grouped({*grouped, *(axis for key in self.keys for axis in key.axes)})
        for item in self.normal.items:
            node = item.expr
            if isinstance(node, ir.Attribute) and node.axis in grouped:  # in some sets also a key
                if item.alias is not None:
                    self.renamed[node.axis] = item.alias
                elif item.name != node.name:
                    self.renamed.setdefault(node.axis, item.name)
                continue
            if node in self.keys or grouped_levels(node) is not None:
                continue
            if item.name and isinstance(node, ir.Text | ir.Number):
                text = node.value if isinstance(node, ir.Text) else node.text
                self.constants.append((item.name, text))
                continue
            if isinstance(node, ir.Attribute | ir.LookedUp):
                sentence = f"column {shown(node)!r} must appear in GROUP BY or inside an aggregate"
                raise fail("group-by", sentence, node)
            self.columns.append((item.name or None, node))
        chosen = self.normal.having or self.normal.qualify
        if not self.columns and not chosen and not any(map(_of_answers, self.normal.order)):
            first = self.normal.items[0].expr if self.normal.items else None
            raise refuse("no-answer", "a SELECT without an aggregate", AGGREGATES, first)

    def answers(self, seen: set[str], shared: set[str]) -> list[AnyAnswer]:
        """Compile the answers."""
        cells = self.cells
        self._name_answers(seen, shared)
        split_up = [
            (name, asked(node, partial(middle, cells=cells)))
            for name, node in self.named.items()
            if name not in self.displayed.columns
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
                    for condition in step.of.where:
                        cells.truths(condition)
        cells.merge()
        weighed, where = self._weigh(leaves)
        before = [] if where is None else [where]
        later = [cells.truths(variant) for variant in self.normal.later]
        conditions = [*before, *later]
        all_answers: list[AnyAnswer] = []
        for variant in self.variants:
            values = key_values(variant.keys, cells)
            groups = key_groups(values, variant.keys, cells)
            check_groups(groups, where, cells)
            self.groups |= group_columns(variant, self.renamed, values, cells)
            blocks = [group_blocks(variant.sets, group, conditions, cells) for group in groups]
            wholes = (
                [group_blocks(variant.sets, group, before, cells) for group in groups]
                if later
                else blocks
            )
            by = Grouped(variant.sets, variant.keys, groups, blocks, wholes, conditions)
            all_answers += self._of_groups(by, split_up, weighed, variant.levels)
        self.groups |= self._levels()
        if not all_answers:
            sentence = (
                "the conditions of the statement leave none of its declared groups: it has no rows"
            )
            raise SqlError(sentence, code="no-answer")
        return all_answers

    def _of_groups(
        self,
        by: Grouped,
        split_up: list[tuple[str, Asked]],
        weighed: list[Weighted],
        levels: Labels,
    ) -> list[AnyAnswer]:
        compiled = iter(weighed)
        group_answers: list[AnyAnswer] = []
        for name, answer in split_up:
            leaf_weights = [next(compiled) for _ in answer.leaves]
            totals = {
                key.axis: text
                for key, text in self.totals.items()
                if isinstance(key, ir.Attribute) and key not in self.keys
            }
            named_levels = zip(self._level_names(), levels, strict=True)
            rolled = (
                (self.groups[key][0].name, text)
                for key, text in self.totals.items()
                if key in self.keys and key not in by.keys
            )
            fixed = (*self.constants, *named_levels, *rolled)
            names = Names(name, self.line, fixed, self.renamed, totals)
            made = Compiled(names, answer, leaf_weights, self.cells, by)
            for group, blocks in zip(by.groups, by.blocks, strict=True):
                group_answers += made.answers(group, blocks)
        return group_answers

    def _level_names(self) -> list[str]:
        """What each column ``GROUPING(…)`` is called."""
        items = self.normal.items
        return [
            item.alias or shown(item.expr)
            for item in items
            if grouped_levels(item.expr) is not None
        ]

    def _levels(self) -> dict[Expr, tuple[Column, Labels]]:
        """The columns ``GROUPING(…)`` with their labels, and expressions with that of a total."""
        nodes = [item.expr for item in self.normal.items if grouped_levels(item.expr) is not None]
        columns: dict[Expr, tuple[Column, Labels]] = {}
        for place, (node, name) in enumerate(zip(nodes, self._level_names(), strict=True)):
            labels = tuple(sorted({variant.levels[place] for variant in self.variants}))
            kind: Kind = "boolean" if isinstance(node, ir.Binary) else "integer"
            columns[node] = Column(name, kind), labels
        for key, text in self.totals.items():
            column, labels = self.groups[key]
            _check_total(key, self.normal.totals[key], column)
            if key in self.keys:
                columns[key] = replace(column, labels=(*column.labels, text)), labels
        return columns

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
        self.selected = tuple(self.named)
        self.displayed = Displayed(self.named, query, chosen=bool(self.normal.having))
        for clause in self.having + self.qualify:
            for node, _, _ in clause:
                self.displayed.name(node)
        for key in self.normal.order:
            if key.has(ir.Aggregate):
                self.displayed.name(key.this)

    @property
    def names_by_alias(self) -> dict[str, str]:
        """The name of each answer in the batch, by its alias; without one, by the name itself."""
        pairs = zip(self.columns, self.named, strict=False)
        return {alias or name: name for (alias, _), name in pairs}

    @cached_property
    def display(self) -> Display | None:
        """How the answers are displayed: HAVING, QUALIFY, ORDER BY and LIMIT, in their names."""
        normal, names = self.normal, self.displayed.names
        chosen = self.having or self.qualify or normal.order or normal.is_cut or normal.left_out
        if not (chosen or self.displayed.columns):
            return None
        groups = dict(self.groups)
        places: dict[Expr, tuple[int, ...]] = {}
        for key in normal.order:
            labelled = total_label(key.this)
            rolled = grouped_levels(key.this) or ()
            if labelled is not None and labelled[0] in self.totals:  # a text among the others
                column, labels = groups[labelled[0]]
                groups[key.this] = column, tuple(sorted({*labels, labelled[1]}))
            elif len(rolled) == 1 and rolled[0] in groups and key.this not in groups:
                column, labels = groups[rolled[0]]  # a total has its own label, or none
                own = [self.totals[rolled[0]]] if rolled[0] in self.totals else []
                groups[key.this] = column, (*labels, *own)
                places[key.this] = (*(0 for _ in labels), *(1 for _ in own))
            elif key.this not in groups and key.this not in names and len(normal.sets) == 1:
                ordered = self._ordered(key.this)
                if ordered is not None:
                    column, labels, places[key.this] = ordered
                    groups[key.this] = column, labels
        having, qualify = (
            tuple(tuple(Bound(names[node], op, end) for node, op, end in part) for part in clauses)
            for clauses in (self.having, self.qualify)
        )
        order = order_keys(normal.order, names, groups, places)
        ranks, computed = self.displayed.made(groups)
        every = set(self.named).difference(self.selected)
        without = left_out(groups, normal.left_out)
        parts = (having, order, normal.limit, normal.offset, ranks, qualify, computed, without)
        texts = Display(self.selected or tuple(every), tuple(every), *parts).texts
        queries = tuple(name for name in self.selected if name not in texts)
        if not queries:  # what it is computed from is displayed beside it
            queries = tuple(name for name in self.named if name not in self.displayed.columns)
        return Display(queries, tuple(sorted(every.difference(queries))), *parts)

    def _ordered(self, node: Expr) -> tuple[Column, Labels, tuple[int, ...]] | None:
        """A column of groups of which an expression is a function, and its places in that order."""
        if not node.axes or node.has(ir.Aggregate, ir.Window):
            return None
        for key, (column, labels) in self.groups.items():
            if not node.axes <= key.axes:
                continue
            shown_key = ir.CellLabel(key) if isinstance(key, ir.Attribute) else key
            pairs = self.cells.values(ir.Row((shown_key, node, node)), shown(node))
            several: dict[str, set[Any]] = {}
            for row in pairs.distinct:
                several.setdefault(label_text(row[0]), set()).add(row[1])
            if any(len(values) > 1 for values in several.values()) and not is_apart(node, several):
                continue
            values = {label: first_value(some) for label, some in several.items()}
            rows = {label: value for label, value in values.items() if value is not None}
            order = {value: place for place, value in enumerate(sorted(set(rows.values())))}
            listed = [label for label in labels if label in rows]
            listed += [label for label in rows if label not in labels]
            return column, tuple(listed), tuple(order[rows[label]] for label in listed)
        return None

    def table(self) -> Statement:
        """The table that the answers form: its columns of groups in the order of SELECT."""
        columns_by_name = {column.name: column for column, _ in self.groups.values()}
        order: dict[str, None] = {}
        for item in self.normal.items:
            if item.expr in self.groups:
                order.setdefault(self.groups[item.expr][0].name)
            elif item.name and isinstance(item.expr, ir.Text | ir.Number):
                text = dict(self.constants)[item.name]
                columns_by_name.setdefault(item.name, Column(item.name, labels=(text,)))
                order.setdefault(item.name)
        order |= dict.fromkeys(columns_by_name)
        columns = tuple(columns_by_name[name] for name in order)
        answers = self.selected if self.display is None else self.display.queries
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


def _check_total(key: Expr, node: Expr, column: Column) -> None:
    """COALESCE would call the group of NULL as it calls the total."""
    if isinstance(node, ir.Call) and NULL in column.labels:
        name = shown(key)
        advice = (
            f"{name} may be NULL, which it would call so too; write CASE WHEN GROUPING({name}) = 1 "
            f"THEN 'Total' ELSE {name} END"
        )
        raise refuse("group-by", f"{shown(node)} beside ROLLUP", advice, node)


def _of_answers(node: Expr) -> bool:
    return node.has(ir.Aggregate)
