"""A batch of SQL → rows of weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sqlglot import exp

from lrm.batches.compiler.aggregates import Weights, filtered, weights
from lrm.batches.compiler.grouping import GroupingSet, grouping_sets
from lrm.batches.compiler.predicates import Known, Scope
from lrm.batches.compiler.refusals import AGGREGATES, in_statement, only, refuse
from lrm.batches.compiler.statements import Statement, statements
from lrm.errors import SqlError
from lrm.workload import Grouped, Labels, TakenLabels, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Domain

__all__ = ["compile_batch"]

MAX_CELLS = 1 << 27
"""Cells of a domain that SQL is compiled over: one pass over them takes about a second."""

MAX_WEIGHTS = 1 << 28
"""Non-zero weights of one batch: 3 GB. Beyond it an error is better than a full memory."""

MAX_ROWS = 1 << 22
"""Answers of one batch."""


Answers = list[tuple[str | None, exp.Expr]]
"""The aggregates of one statement, each with its name if it has one."""


@dataclass
class _Rows:
    """The batch as it grows."""

    domain: Domain
    labels: list[Grouped] = field(default_factory=list)
    taken: TakenLabels = field(default_factory=TakenLabels)
    count: int = 0
    indices: list[NDArray[np.integer]] = field(default_factory=list)
    data: list[NDArray[np.float64]] = field(default_factory=list)
    lengths: list[NDArray[np.int64]] = field(default_factory=list)
    weights: int = 0

    def add(self, query: str, line: int, axes: GroupingSet, cells: _Cells) -> None:
        """Append one row for each group of one grouping set."""
        attributes = [self.domain.attributes[axis] for axis in axes]
        part = Grouped(query, tuple((one.name, tuple(one.labels)) for one in attributes), line)
        rows = len(part)
        self.count += rows
        self.weights += len(cells.indices)
        if self.count > MAX_ROWS:
            raise SqlError(f"line {line}: the batch has more than {MAX_ROWS:,} answers; split it")
        if self.weights > MAX_WEIGHTS:
            raise SqlError(
                f"line {line}: the batch has more than {MAX_WEIGHTS:,} weights; "
                "split it, or declare wider cells"
            )
        clash = self.taken.add(part)
        if clash is not None:
            raise SqlError(
                f"line {line}: the name {clash.name!r} is already taken on line {clash.line}; "
                "give each answer its own name with AS"
            )
        self.labels.append(part)
        indices, data, lengths = cells.by_group(axes, rows)
        self.indices.append(indices)
        self.data.append(data)
        self.lengths.append(lengths)

    def finished(self) -> Workload:
        """Join the parts into one sparse matrix."""
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self.lengths))])
        index_type = np.int32 if self.weights < 2**31 else np.int64
        parts = (
            np.concatenate(self.data),
            np.concatenate(self.indices).astype(index_type, copy=False),
            indptr.astype(index_type),
        )
        matrix = sp.csr_array(parts, shape=(self.count, self.domain.size))
        return Workload(matrix, labels=Labels(self.labels), domain=self.domain)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells that one aggregate weighs, ascending, with their weights."""

    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    shape: tuple[int, ...]

    def by_group(
        self, axes: GroupingSet, rows: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
        """Sort the cells by their group; cells of one group stay ascending."""
        if not axes:
            return self.indices, self.data, np.array([len(self.indices)])
        group = np.zeros(len(self.indices), dtype=np.int64)
        for axis in axes:
            after = math.prod(self.shape[axis + 1 :])
            group *= self.shape[axis]
            group += self.indices // after % self.shape[axis]
        order = np.argsort(group, kind="stable")
        return self.indices[order], self.data[order], np.bincount(group, minlength=rows)


def compile_batch(text: str, domain: Domain) -> Workload:
    """Compile a batch of SELECT statements; see `lrm.sql`."""
    if domain.size > MAX_CELLS:
        raise SqlError(
            f"the domain has {domain.size:,} cells, but SQL is compiled over at most "
            f"{MAX_CELLS:,}; declare fewer attributes or wider cells"
        )
    rows = _Rows(domain)
    known: Known = {}
    for statement in statements(text, domain.table):
        with in_statement(statement.line):
            _compile_statement(statement, rows, known)
    return rows.finished()


def _compile_statement(statement: Statement, rows: _Rows, known: Known) -> None:
    select, domain = statement.select, rows.domain
    scope = Scope(domain, statement.table, known)
    sets = grouping_sets(select.args.get("group"), scope)
    answers = _answers(select, scope, {axis for axes in sets for axis in axes})
    where = select.args.get("where")
    _weigh(answers, where, scope)
    scope.merge()
    compiled = _weigh(answers, where, scope)
    for position, ((alias, _), answer) in enumerate(zip(answers, compiled, strict=True), start=1):
        cells = _cells(answer, scope)
        unnamed = f"q{statement.number}" + (f".{position}" if len(answers) > 1 else "")
        for axes in sets:
            rows.add(alias or unnamed, statement.line, axes, cells)


def _weigh(answers: Answers, where: exp.Expr | None, scope: Scope) -> list[Weights]:
    if where is None:
        return [weights(node, scope) for _, node in answers]
    only(where, "this")
    kept = scope.truths(where.this)
    return [filtered(weights(node, scope), kept) for _, node in answers]


def _answers(select: exp.Select, scope: Scope, grouped: set[int]) -> Answers:
    """Split SELECT's list into group labels (checked) and answers (returned)."""
    answers: Answers = []
    for item in select.expressions:
        alias, node = None, item
        if type(item) is exp.Alias:
            only(item, "this", "alias")
            alias, node = item.alias, item.this
        if type(node) is not exp.Column:
            answers.append((alias, node))
            continue
        name = scope.domain.names[axis := scope.axis(node)]
        if axis not in grouped:
            raise refuse(f"column {name!r} outside GROUP BY", f"add it: GROUP BY {name}", node)
        if alias is not None:
            raise refuse("AS on a group's column", "answers are labelled by the attribute", node)
    if not answers:
        raise refuse("a SELECT without an aggregate", AGGREGATES, select)
    return answers


def _cells(compiled: Weights, scope: Scope) -> _Cells:
    """Spread weights of merged cells over the cells of the domain, touching only those weighed."""
    shape = scope.domain.shape
    if compiled.undecided.any():
        raise scope.explain(compiled.undecided)
    weighed = np.nonzero(compiled.values)
    members, classes = [], []
    for axis, merged in enumerate(scope.classes or ()):
        if compiled.values.shape[axis] == 1:  # not asked about by this aggregate
            merged = np.zeros(shape[axis], dtype=np.intp)  # noqa: PLW2901
        inside = np.zeros(compiled.values.shape[axis], dtype=bool)
        inside[weighed[axis]] = True
        members.append(np.flatnonzero(inside[merged]))
        classes.append(merged[members[-1]])
    part = compiled.values[np.ix_(*classes)]
    indices = np.zeros((1,) * len(shape), dtype=np.int32)
    for size, cells in zip(shape, np.ix_(*members), strict=True):
        indices = indices * np.int32(size) + cells.astype(np.int32)
    found = part != 0.0
    return _Cells(indices[found], part[found], shape)
