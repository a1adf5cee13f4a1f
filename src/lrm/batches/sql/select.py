"""One SELECT in normal form → its answers, how they are displayed, and the table they form."""

from __future__ import annotations

from functools import partial

from lrm.batches.sql import expr as ir
from lrm.batches.sql.answers import Answer, Compiled, Grouped, Weighted
from lrm.batches.sql.atoms import undivided
from lrm.batches.sql.cells import Cells
from lrm.batches.sql.displays import wanted
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.forms import middle, sums_bins
from lrm.batches.sql.formulas import asked
from lrm.batches.sql.groups import (
    Labels,
    check_groups,
    group_blocks,
    group_columns,
    groupings,
    key_groups,
    key_values,
    note_groups,
)
from lrm.batches.sql.inputs import DerivedAnswer, QuantileAnswer
from lrm.batches.sql.plan import Answers
from lrm.batches.sql.refusals import AGGREGATES, fail, refuse
from lrm.batches.sql.render import shown
from lrm.batches.sql.statistics import Asked, Leaf, Size
from lrm.batches.sql.tables import Truth, all_of, filtered
from lrm.batches.sql.weights import weights
from lrm.batches.terms import Names
from lrm.domain import Numbers
from lrm.errors import SqlError
from lrm.workload import Column, Statement
from lrm.workload.display import Display

__all__ = ["AnyAnswer", "Select"]

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
        self.constants: list[tuple[str, str]] = []
        self.renamed: dict[int, str] = {}
        self.columns: list[tuple[str | None, Expr]] = []
        self._read_columns()
        self.wanted = wanted(answers)
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
            if node in keys:
                continue
            if item.alias is not None and isinstance(node, ir.Text | ir.Number):
                text = node.value if isinstance(node, ir.Text) else node.text
                self.constants.append((item.alias, text))
                continue
            if isinstance(node, ir.Attribute) and node.axis in grouped:
                if item.alias is not None:
                    self.renamed[node.axis] = item.alias
                elif item.name != node.name:
                    self.renamed.setdefault(node.axis, item.name)
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
            if not (isinstance(node, ir.Window) and node.is_rank)
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
        for node in [] if self.wanted is None else self.wanted.aggregates:
            if node not in self.named.values():
                self.named[f"{query}.sort{len(set(self.named.values())) + 1}"] = node
        for rank in [] if self.wanted is None else self.wanted.ranks:
            if rank not in self.named.values():
                self.named[f"{query}.rank{len(self.named) + 1}"] = rank

    def display(self) -> Display | None:
        """How the answers are displayed."""
        if self.wanted is None:
            return None
        names = {node: name for name, node in reversed(self.named.items())}
        return self.wanted.display(list(self.named)[: len(self.columns)], names, self.groups)

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
