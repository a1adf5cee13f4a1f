"""How the answers of a statement are displayed: HAVING, ORDER BY and LIMIT of noisy answers.

A display changes no answer and drops none: the batch, the plan and the release have every
declared group. It is applied to noisy answers, which are public.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lrm.errors import WorkloadError
from lrm.workload.label_parts import Group

__all__ = ["Bound", "Display", "OrderKey"]

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

    def __post_init__(self) -> None:
        if not isinstance(self.answer, str) or self.operation not in _OPERATIONS:
            raise WorkloadError("a bound of HAVING must be an answer, an operation and a number")
        if type(self.value) not in {int, float} or not math.isfinite(self.value):
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

    def __post_init__(self) -> None:
        flags = type(self.descending) is bool and type(self.nulls_first) is bool
        texts = self.labels is None or all(isinstance(label, str) for label in self.labels)
        if not (isinstance(self.column, str) and flags and texts):
            raise WorkloadError("a key of ORDER BY must be a column with its direction")

    def sort_keys(
        self, groups: Sequence[Group], values: Mapping[Group, float]
    ) -> list[tuple[bool, float]]:
        """Numbers that sort the groups by this key; NULL and what is missing are kept separate."""
        places = {label: place for place, label in enumerate(self.labels or ())}
        found: list[tuple[bool, float]] = []
        for group in groups:
            value: float | None = values.get(group)
            if self.labels is not None:
                label = dict(group).get(self.column)
                value = None if label in {None, NULL} else places.get(str(label))
            if value is None or math.isnan(value):
                found.append((not self.nulls_first, 0.0))
            else:
                found.append((self.nulls_first, -value if self.descending else value))
        return found


@dataclass(frozen=True)
class Display:
    """How the answers of one statement are displayed.

    Parameters
    ----------
    queries
        Names of its answers, which share their groups.
    hidden
        Names of answers that are only compared or sorted by.
    having
        Clauses that the noisy answers of a group must satisfy, all of them: each is a list of
        comparisons of which one must hold.
    order
        Keys that the groups are sorted by, the first one first.
    limit, offset
        How many groups are displayed, and how many are left out before them.

    Examples
    --------
    >>> above = (Bound("n", ">", 5.0),)
    >>> display = Display(("n",), having=(above,), order=(OrderKey("n"),), limit=1)
    >>> groups = [(("sex", "f"),), (("sex", "m"),), (("sex", "x"),)]
    >>> display.shown(groups, {"n": dict(zip(groups, [9.5, 7.25, 1.0]))})
    [(('sex', 'm'),)]
    >>> print(display)
    HAVING n > 5 ORDER BY n LIMIT 1
    """

    queries: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    having: tuple[tuple[Bound, ...], ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        if not self.queries or not all(isinstance(one, str) for one in self.queries + self.hidden):
            raise WorkloadError("a display needs the names of its answers")
        if not {one.answer for clause in self.having for one in clause} <= {
            *self.queries,
            *self.hidden,
        }:
            raise WorkloadError("HAVING must compare answers of its own statement")
        for number in (self.offset, 0 if self.limit is None else self.limit):
            if type(number) is not int or number < 0:
                raise WorkloadError("LIMIT and OFFSET must be whole numbers from 0 on")

    def shown(
        self, groups: Sequence[Group], answers: Mapping[str, Mapping[Group, float]]
    ) -> list[Group]:
        """The groups that are displayed, in order, by the noisy answers of each query."""
        kept = [
            group
            for group in groups
            if all(
                any(one.holds(answers[one.answer].get(group, math.nan)) for one in clause)
                for clause in self.having
            )
        ]
        order = list(range(len(kept)))
        for key in reversed(self.order):
            keys = key.sort_keys(kept, answers.get(key.column, {}))
            order.sort(key=keys.__getitem__)
        end = None if self.limit is None else self.offset + self.limit
        return [kept[place] for place in order[self.offset : end]]

    def __str__(self) -> str:
        parts = []
        if self.having:
            clauses = [" OR ".join(map(str, clause)) for clause in self.having]
            several = len(clauses) > 1
            said = (
                f"({text})" if several and len(clause) > 1 else text
                for text, clause in zip(clauses, self.having, strict=True)
            )
            parts.append("HAVING " + " AND ".join(said))
        if self.order:
            keys = (one.column + (" DESC" if one.descending else "") for one in self.order)
            parts.append("ORDER BY " + ", ".join(keys))
        if self.limit is not None:
            parts.append(f"LIMIT {self.limit}")
        if self.offset:
            parts.append(f"OFFSET {self.offset}")
        return " ".join(parts)

    @property
    def facts(self) -> dict[str, Any]:
        """The same as values that JSON can hold; `from_facts` reads them."""
        return {
            "queries": list(self.queries),
            "hidden": list(self.hidden),
            "having": [
                [[one.answer, one.operation, one.value] for one in clause] for clause in self.having
            ],
            "order": [
                {
                    "column": key.column,
                    "labels": None if key.labels is None else list(key.labels),
                    "descending": key.descending,
                    "nulls_first": key.nulls_first,
                }
                for key in self.order
            ],
            "limit": self.limit,
            "offset": self.offset,
        }

    @classmethod
    def from_facts(cls, facts: Any) -> Display:
        """Read what `facts` returned; anything else is a WorkloadError."""
        try:
            order = [
                OrderKey(**{**one, "labels": one["labels"] and tuple(one["labels"])})
                for one in facts["order"]
            ]
            return cls(
                tuple(facts["queries"]),
                tuple(facts["hidden"]),
                tuple(tuple(Bound(*one) for one in clause) for clause in facts["having"]),
                tuple(order),
                facts["limit"],
                facts["offset"],
            )
        except (TypeError, KeyError, AttributeError, OverflowError):
            raise WorkloadError("a display is not of the expected form") from None
