"""How the answers of a statement are displayed: HAVING, ranks, ORDER BY, LIMIT of noisy answers.

A display changes no answer and drops none: the batch, the plan and the release have every
declared group. It is applied to noisy answers, which are public.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from lrm.errors import WorkloadError
from lrm.files.records import facts_of, read_record
from lrm.queries.workload.label_blocks import Group

_OPERATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
NULL = "(null)"
"""The label of the group of NULL."""


@dataclass(frozen=True)
class Bound:
    """A comparison of HAVING: of an answer with a number."""

    answer: str
    operation: str
    value: float
    as_list: ClassVar = True  # in files

    def __post_init__(self) -> None:
        if self.operation not in _OPERATIONS:
            raise WorkloadError("a bound of HAVING must be an answer, an operation and a number")
        if not math.isfinite(self.value):
            raise WorkloadError("an answer in HAVING must be compared with a finite number")

    def __str__(self) -> str:
        return f"{self.answer} {self.operation} {self.value:g}"

    def holds(self, value: float) -> bool:
        """Whether an answer satisfies it; one that is not a number does not."""
        return not math.isnan(value) and _OPERATIONS[self.operation](value, float(self.value))


@dataclass(frozen=True)
class OrderKey:
    """A key of ORDER BY: an answer, or a column of groups with its labels in ascending order."""

    column: str
    labels: tuple[str, ...] | None = None
    descending: bool = False
    nulls_first: bool = False

    def sort_keys(
        self, groups: Sequence[Group], values: Mapping[Group, float]
    ) -> list[tuple[bool, float]]:
        """Numbers that sort the groups by this key; NULL and what is missing are kept separate."""
        places = {label: place for place, label in enumerate(self.labels or ())}
        keys: list[tuple[bool, float]] = []
        for group in groups:
            value: float | None = values.get(group)
            if self.labels is not None:
                label = dict(group).get(self.column)
                value = None if label in {None, NULL} else places.get(str(label))
            if value is None or math.isnan(value):
                keys.append((not self.nulls_first, 0.0))
            else:
                keys.append((self.nulls_first, -value if self.descending else value))
        return keys


RankFunction = Literal["rank", "dense_rank", "row_number", "percent_rank", "cume_dist", "ntile"]
"""The window functions of SQL that number rows."""


@dataclass(frozen=True)
class Rank:
    """A column that numbers the displayed groups by their noisy answers.

    >>> rank = Rank("r", "rank", (OrderKey("n", descending=True),))
    >>> groups = [(("sex", "f"),), (("sex", "m"),), (("sex", "x"),)]
    >>> list(rank.values(groups, {"n": dict(zip(groups, [7.0, 9.5, 7.0]))}).values())
    [2.0, 1.0, 2.0]
    """

    name: str
    function: RankFunction
    order: tuple[OrderKey, ...] = ()  # keys that the groups are numbered by
    # Columns of groups: those that agree in them are numbered for themselves.
    partition: tuple[str, ...] = ()
    buckets: int = 1

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.function not in get_args(RankFunction):
            raise WorkloadError("a rank must have a function of SQL and at least one bucket")

    def values(
        self, groups: Sequence[Group], answers: Mapping[str, Mapping[Group, float]]
    ) -> dict[Group, float]:
        """The number of each group."""
        keys = list(
            zip(
                *(key.sort_keys(groups, answers.get(key.column, {})) for key in self.order),
                strict=True,
            )
        ) or [()] * len(groups)
        parts: dict[tuple[Any, ...], list[int]] = {}
        for place, group in enumerate(groups):
            labels = dict(group)
            parts.setdefault(tuple(map(labels.get, self.partition)), []).append(place)
        group_numbers: dict[Group, float] = {}
        for members in parts.values():
            members.sort(key=keys.__getitem__)
            numbers = self._numbers([keys[place] for place in members])
            group_numbers |= {
                groups[place]: number for place, number in zip(members, numbers, strict=True)
            }
        return {group: group_numbers[group] for group in groups}

    def _numbers(self, keys: Sequence[tuple[Any, ...]]) -> list[float]:
        """The numbers of groups that are in order."""
        count = len(keys)
        if self.function == "row_number":
            return [float(place + 1) for place in range(count)]
        if self.function == "ntile":
            size, more = divmod(count, self.buckets)
            sizes = (size + (bucket < more) for bucket in range(min(self.buckets, count)))
            return [
                float(bucket + 1)
                for bucket, bucket_size in enumerate(sizes)
                for _ in range(bucket_size)
            ]
        first = [place for place in range(count) if not place or keys[place] != keys[place - 1]]
        runs = list(zip(first, [*first[1:], count], strict=True))
        numbers: list[float] = []
        for number, (start, stop) in enumerate(runs):
            value = {
                "rank": float(start + 1),
                "dense_rank": float(number + 1),
                "percent_rank": start / (count - 1) if count > 1 else 0.0,
                "cume_dist": stop / count,
            }[self.function]
            numbers += [value] * (stop - start)
        return numbers


@dataclass(frozen=True)
class Display:
    """How the answers of one statement are displayed.

    >>> above = (Bound("n", ">", 5.0),)
    >>> display = Display(("n",), having=(above,), order=(OrderKey("n"),), limit=1)
    >>> groups = [(("sex", "f"),), (("sex", "m"),), (("sex", "x"),)]
    >>> display.shown(groups, {"n": dict(zip(groups, [9.5, 7.25, 1.0]))})
    [(('sex', 'm'),)]
    >>> print(display)
    HAVING n > 5 ORDER BY n LIMIT 1
    """

    queries: tuple[str, ...]  # names of its answers, which share their groups
    hidden: tuple[str, ...] = ()  # names of answers that are only compared or sorted by
    # Clauses that the noisy answers of a group must satisfy, all of them: each is a list of
    # comparisons of which one must hold.
    having: tuple[tuple[Bound, ...], ...] = ()
    order: tuple[OrderKey, ...] = ()  # keys that the groups are sorted by, the first one first
    # limit, offset: how many groups are displayed, and how many are left out before them.
    limit: int | None = None
    offset: int = 0
    ranks: tuple[Rank, ...] = ()  # columns that number the groups which HAVING leaves
    # Clauses like those of HAVING that are tested after the groups were numbered.
    qualify: tuple[tuple[Bound, ...], ...] = ()
    may_lack: ClassVar = ("ranks", "qualify")

    def __post_init__(self) -> None:
        if not self.queries:
            raise WorkloadError("a display needs the names of its answers")
        numbered = {element.name for element in self.ranks}
        known = {*self.queries, *self.hidden} - numbered
        if not {element.answer for clause in self.having for element in clause} <= known:
            raise WorkloadError("HAVING must compare answers of its own statement")
        if (
            not {element.answer for clause in self.qualify for element in clause}
            <= known | numbered
        ):
            raise WorkloadError("QUALIFY must compare answers and ranks of its own statement")
        if min(self.offset, self.limit or 0) < 0:
            raise WorkloadError("LIMIT and OFFSET must be whole numbers from 0 on")

    def shown(
        self, groups: Sequence[Group], answers: Mapping[str, Mapping[Group, float]]
    ) -> list[Group]:
        """The groups that are displayed, in order, by the noisy answers of each query."""
        ranks = self.rank_values(groups, answers)
        shown_groups = self._kept(groups, answers, self.having)
        shown_groups = self._kept(shown_groups, {**answers, **ranks}, self.qualify)
        order = list(range(len(shown_groups)))
        for key in reversed(self.order):
            keys = key.sort_keys(shown_groups, {**answers, **ranks}.get(key.column, {}))
            order.sort(key=keys.__getitem__)
        end = None if self.limit is None else self.offset + self.limit
        return [shown_groups[place] for place in order[self.offset : end]]

    def rank_values(
        self, groups: Sequence[Group], answers: Mapping[str, Mapping[Group, float]]
    ) -> dict[str, dict[Group, float]]:
        """The numbers of the groups that HAVING leaves, by rank."""
        if not self.ranks:
            return {}
        having_groups = self._kept(groups, answers, self.having)
        return {rank.name: rank.values(having_groups, answers) for rank in self.ranks}

    @staticmethod
    def _kept(
        groups: Sequence[Group],
        answers: Mapping[str, Mapping[Group, float]],
        clauses: Sequence[Sequence[Bound]],
    ) -> list[Group]:
        """The groups whose answers satisfy some clauses."""
        return [
            group
            for group in groups
            if all(
                any(bound.holds(answers[bound.answer].get(group, math.nan)) for bound in clause)
                for clause in clauses
            )
        ]

    def __str__(self) -> str:
        parts = []
        for word, bounds in (("HAVING", self.having), ("QUALIFY", self.qualify)):
            if not bounds:
                continue
            clauses = [" OR ".join(map(str, clause)) for clause in bounds]
            several = len(clauses) > 1
            conditions = (
                f"({text})" if several and len(clause) > 1 else text
                for text, clause in zip(clauses, bounds, strict=True)
            )
            parts.append(f"{word} " + " AND ".join(conditions))
        if self.order:
            keys = (key.column + (" DESC" if key.descending else "") for key in self.order)
            parts.append("ORDER BY " + ", ".join(keys))
        if self.limit is not None:
            parts.append(f"LIMIT {self.limit}")
        if self.offset:
            parts.append(f"OFFSET {self.offset}")
        return " ".join(parts)

    @property
    def facts(self) -> dict[str, Any]:
        """The same as values that JSON can hold; `from_facts` reads them."""
        # Files without ranks keep the digest that they had before there were any.
        left_out = () if self.ranks else ("ranks", "qualify")
        facts: dict[str, Any] = facts_of(self, *left_out)
        return facts

    @classmethod
    def from_facts(cls, facts: Any) -> Display:
        """Read what `facts` returned; anything else is an error."""
        return read_record(cls, facts)
