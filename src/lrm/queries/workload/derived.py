"""Derived answers: what is computed from the answers of several linear queries of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.files.records import facts_of, read_record
from lrm.queries.workload.formulas import Formula
from lrm.queries.workload.label_blocks import LabelBlock

Method = Literal["continuous", "lower", "upper"]
"""How a quantile is read from the rows in order."""

Indices = NDArray[np.int64]

MOST_DERIVED = 1 << 22
"""Derived answers of a batch: several groups may share their inputs, so these bound nothing."""


@dataclass(frozen=True)
class Block:
    """Where the groups of a derived answer find one of their inputs among the linear queries."""

    start: int  # the query of the first group
    # How many queries further that of the next group lies, for each attribute of the groups; 0
    # where all its groups share one.
    strides: tuple[int, ...] = ()
    scale: float = 1.0  # what the answer is multiplied by
    as_list: ClassVar = True  # in files

    def rows(self, shape: Sequence[int]) -> Indices:
        """The query of each group, in the order of the groups."""
        row_numbers = np.array([self.start], dtype=np.int64)
        for stride, size in zip(self.strides, shape, strict=True):
            row_numbers = np.add.outer(
                row_numbers, stride * np.arange(size, dtype=np.int64)
            ).reshape(-1)
        return row_numbers

    def check(self, shape: Sequence[int], queries: int) -> None:
        """Refuse a block that leaves the batch."""
        if len(self.strides) != len(shape) or self.start < 0 or min((0, *self.strides)) < 0:
            raise WorkloadError("a derived answer has inputs of another shape than its groups")
        steps = (stride * (size - 1) for stride, size in zip(self.strides, shape, strict=True))
        if self.start + sum(steps) >= queries:
            raise WorkloadError("a derived answer has an input that the batch does not ask")
        if not 1e-100 <= abs(self.scale) <= 1e100:
            raise WorkloadError(
                "numbers of averages and variances must be between 1e-100 and 1e100 in absolute "
                "value, and their squares too; scale the column"
            )


@dataclass(frozen=True)
class _Answer:
    """An answer in every group of its label."""

    label: LabelBlock
    may_lack: ClassVar[tuple[str, ...]] = ()  # fields of which older files know the default alone

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of groups of each attribute."""
        return tuple(len(labels) for _, labels in self.label.axes)

    def facts(self, *, lines: bool = True) -> dict[str, Any]:
        """As JSON holds it, with the line of the label if wanted; defaults keep older digests."""
        defaults = [part.name for part in fields(self) if getattr(self, part.name) == part.default]
        left_out = set(defaults) & set(self.may_lack)
        return {"label": next(self.label.facts(lines=lines)), **facts_of(self, "label", *left_out)}


@dataclass(frozen=True)
class Computed(_Answer):
    """A formula of linear answers, in every group: a rate, an average, a variance."""

    formula: Formula
    inputs: tuple[Block, ...]  # where the inputs are, one block per input of the formula
    # Where numbers in bins are summed by representatives: how far that can move an answer, or what
    # one row adds to it where ``per_row`` is true. None where no bins are summed.
    binning: float | None = None
    per_row: bool = False
    # The formula without what dividing numbers between knots may add to their squares: the answer
    # for the numbers themselves lies between both. None where no such squares are summed.
    undivided: Formula | None = None
    may_lack: ClassVar = ("undivided",)

    def __post_init__(self) -> None:
        if len(self.inputs) != self.formula.inputs:
            raise WorkloadError("a derived answer must have one block per input of its formula")
        if self.binning is not None and not self.binning >= 0:
            raise WorkloadError("the error of binning must be at least 0")
        if self.undivided is not None and (
            self.undivided.inputs != self.formula.inputs or self.undivided.tail != self.formula.tail
        ):
            raise WorkloadError("both formulas of a variance must have the same inputs and ending")

    def check(self, queries: int) -> None:
        """Refuse inputs that a batch of this number of queries does not have."""
        for block in self.inputs:
            block.check(self.shape, queries)

    def input_rows(self) -> list[Indices]:
        """The linear queries of each input."""
        return [block.rows(self.shape) for block in self.inputs]

    def shifted(self, by: int) -> Computed:
        """The same where the linear queries come later in a batch."""
        return replace(self, inputs=tuple(_shifted(block, by) for block in self.inputs))

    @property
    def note(self) -> str:
        """What a reader must know in addition to the noise; empty where there is nothing."""
        notes = []
        if self.undivided is not None:
            notes.append(
                "numbers between knots are divided, which adds to a variance; the interval covers "
                "the answer without that too"
            )
        if self.binning is not None and math.isinf(self.binning):
            notes.append(
                "a bin without an end stands for its representative: no bound on that error"
            )
        elif self.binning is not None:
            of = "each row" if self.per_row else "it"
            moved = f"which moves {of} by at most {self.binning:g}"
            notes.append(f"bins stand for their representatives, {moved}")
        return "; ".join(notes)


@dataclass(frozen=True)
class Quantile(_Answer):
    """A quantile of an ordered attribute in every group, read from its running totals."""

    level: float  # between 0 and 1; one half is the median
    # Where the running totals are: one more stride than the label has attributes, for the cells of
    # the ordered attribute.
    totals: Block
    # lows, highs: the least and the largest value of each cell, ascending; infinite where a cell
    # has no end. A cell of a single value has both the same. A knot has those before and after it:
    # its cell overlaps the next one, and the rows in both are divided between them.
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    attribute: str
    # ``continuous`` lies between two rows, as MEDIAN and QUANTILE_CONT do. ``lower`` is the value
    # of the first row that at least a share ``level`` of the rows does not exceed, as QUANTILE_DISC
    # is; ``upper`` is the same counted from the largest value on.
    method: Method = "lower"
    may_lack: ClassVar = ("method",)

    def __post_init__(self) -> None:
        if not 0 <= self.level <= 1:
            raise WorkloadError(f"the level of a quantile must be from 0 to 1, not {self.level}")
        if self.method not in get_args(Method):
            raise WorkloadError("a quantile must be continuous, lower or upper")
        if not self.lows or len(self.lows) != len(self.highs):
            raise WorkloadError("a quantile needs both ends of at least one cell")
        ends = np.array([self.lows, self.highs])
        if np.isnan(ends).any():
            raise WorkloadError("the cells of a quantile must have numbers as ends")
        rising = np.all(ends[0] <= ends[1]) and np.all(ends[:, :-1] <= ends[:, 1:])
        if not rising or np.any(ends[1, :-2] > ends[0, 2:]):
            raise WorkloadError("the cells of a quantile must be in ascending order")

    def check(self, queries: int) -> None:
        """Refuse inputs that a batch of this number of queries does not have."""
        self.totals.check((*self.shape, len(self.lows)), queries)

    def input_rows(self) -> list[Indices]:
        """The linear queries of the running totals."""
        return [self.totals.rows((*self.shape, len(self.lows)))]

    def shifted(self, by: int) -> Quantile:
        """The same where the linear queries come later in a batch."""
        return replace(self, totals=_shifted(self.totals, by))

    @property
    def note(self) -> str:
        """How fine the answers can be."""
        lows, highs = np.array(self.lows), np.array(self.highs)
        if np.all(lows == highs):
            between = "" if self.method != "continuous" else ", or between two of them"
            return f"exact to one declared value of {self.attribute!r}{between}"
        if np.any(highs[:-1] > lows[1:]):
            return f"exact to the knots of {self.attribute!r} before and after it"
        width = float((highs - lows).max())
        cells = "cells without an end" if math.isinf(width) else f"cells up to {width:g} wide"
        return f"exact to a cell of {self.attribute!r}, which has {cells}"


Derived = Computed | Quantile
"""A derived answer in all of its groups."""


def check_derived(derived: Sequence[Derived], queries: int) -> None:
    """Refuse derived answers that such a batch cannot have, or too many of them."""
    for derived_answer in derived:
        derived_answer.check(queries)
    count = sum(derived_answer.label.count for derived_answer in derived)
    if count > MOST_DERIVED:
        raise WorkloadError(
            f"a batch may have at most {MOST_DERIVED:,} rates, averages and quantiles, not "
            f"{count:,}; group them by fewer attributes"
        )


def _shifted(block: Block, by: int) -> Block:
    return replace(block, start=block.start + by)


def derived_from_facts(facts: Any) -> tuple[Derived, ...]:
    """Read a list of what ``facts()`` returned; anything else is an error."""
    if not isinstance(facts, list):
        raise WorkloadError("derived answers must be a list")
    return tuple(
        read_record(Computed, fact)
        if isinstance(fact, dict) and "formula" in fact
        else read_record(Quantile, fact)
        for fact in facts
    )
