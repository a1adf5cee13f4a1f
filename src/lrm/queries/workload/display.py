"""How the answers of a statement are displayed: HAVING, ranks, CASE, ORDER BY, LIMIT of noisy ones.

A display changes no answer and drops none: the batch, the plan and the release have every
declared group. It is applied to noisy answers, which are public.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
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
    "IS NOT NULL": lambda _, __: True,  # of an answer that there is
}
NULL = "(null)"
"""The label of the group of NULL."""

Value = float | str
"""What a column has in a group: a number, NaN where there is none, or a text."""

Values = Mapping[str, Mapping[Group, Value]]
"""The columns of the displayed groups, by name."""


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
        compared = "" if self.operation == "IS NOT NULL" else f" {self.value:g}"
        return f"{self.answer} {self.operation}{compared}"

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
    # The place of each label, where an expression of the column is sorted by: several may be equal.
    places: tuple[int, ...] | None = None
    may_lack: ClassVar = ("places",)

    def __post_init__(self) -> None:
        if self.places is not None and len(self.places) != len(self.labels or ()):
            raise WorkloadError("an order must have one place for each label")

    def to_facts(self) -> dict[str, Any]:
        """The key as an object of JSON; most have no places."""
        names = [item.name for item in fields(self) if item.name != "places" or self.places]
        return {name: facts_of(getattr(self, name)) for name in names}

    def sort_keys(
        self, groups: Sequence[Group], values: Mapping[Group, Value]
    ) -> list[tuple[bool, float]]:
        """Numbers that sort the groups by this key; NULL and what is missing are kept separate."""
        labels = self.labels or ()
        places = dict(zip(labels, self.places or range(len(labels)), strict=True))
        texts = sorted({value for value in values.values() if isinstance(value, str)})
        place_of = {text: place for place, text in enumerate(texts)}
        keys: list[tuple[bool, float]] = []
        for group in groups:
            shown = values.get(group)
            value = float(place_of[shown]) if isinstance(shown, str) else shown
            if self.labels is not None:
                label = dict(group).get(self.column)
                is_null = label is None or (label == NULL and self.places is None)
                value = None if is_null else places.get(str(label))
            if value is None or math.isnan(value):
                keys.append((not self.nulls_first, 0.0))
            else:
                keys.append((self.nulls_first, -value if self.descending else value))
        return keys


RankFunction = Literal["rank", "dense_rank", "row_number", "percent_rank", "cume_dist", "ntile"]
"""The window functions of SQL that number rows."""

AddedFunction = Literal["sum", "avg", "min", "max", "count", "stddev", "stddev_pop"]
TakenFunction = Literal["first_value", "last_value", "lag"]
WindowFunction = Literal[AddedFunction, TakenFunction]
"""The window functions that are of a column of the rows."""

_Function = Literal[RankFunction, WindowFunction]
_NUMBERED = frozenset(get_args(RankFunction))


@dataclass(frozen=True)
class Rank:
    """A column that numbers the displayed groups by their noisy answers, or adds these up.

    >>> rank = Rank("r", "rank", (OrderKey("n", descending=True),))
    >>> groups = [(("sex", "f"),), (("sex", "m"),), (("sex", "x"),)]
    >>> answers = {"n": dict(zip(groups, [7.0, 9.5, 7.0]))}
    >>> list(rank.values(groups, answers).values())
    [2.0, 1.0, 2.0]
    >>> running = Rank("s", "sum", (OrderKey("n", descending=True),), of="n")
    >>> list(running.values(groups, answers).values())
    [23.5, 9.5, 23.5]
    """

    name: str
    function: _Function
    order: tuple[OrderKey, ...] = ()  # keys that the groups are numbered by
    # Columns of groups: those that agree in them are numbered for themselves.
    partition: tuple[str, ...] = ()
    buckets: int = 1
    of: str = ""  # the answer or the column of groups that is added up or taken
    # From where to where it reaches, in rows; None where equal ones are together, as in RANGE. Of
    # LAG, how many rows before: negative numbers are after.
    rows: tuple[float, float] | None = None
    may_lack: ClassVar = ("of", "rows")

    def __post_init__(self) -> None:
        known = self.function in get_args(_Function)
        if self.buckets < 1 or not known or bool(self.of) is (self.function in _NUMBERED):
            raise WorkloadError("a rank must have a function of SQL and at least one bucket")
        if any(math.isnan(end) for end in self.rows or ()):
            raise WorkloadError("a frame must reach from one number of rows to another")

    def to_facts(self) -> dict[str, Any]:
        """The column as an object of JSON; those that number have no frame."""
        names = [item.name for item in fields(self)]
        names = names if self.of else [name for name in names if name not in self.may_lack]
        return {name: facts_of(getattr(self, name)) for name in names}

    @property
    def inputs(self) -> frozenset[str]:
        """The columns that it is computed from."""
        keys = {key.column for key in self.order if key.labels is None}
        return frozenset({*keys, *self.partition, *([self.of] if self.of else [])})

    @property
    def valued(self) -> frozenset[str]:
        """The columns of which its values are some."""
        return frozenset([self.of] if self.function in get_args(TakenFunction) else [])

    def values(self, groups: Sequence[Group], answers: Values) -> dict[Group, Value]:
        """The number of each group."""
        keys = list(
            zip(
                *(key.sort_keys(groups, answers.get(key.column, {})) for key in self.order),
                strict=True,
            )
        ) or [()] * len(groups)
        parts: dict[tuple[Any, ...], list[int]] = {}
        for place, group in enumerate(groups):
            agreed = tuple(_part(_value(name, group, answers)) for name in self.partition)
            parts.setdefault(agreed, []).append(place)
        group_numbers: dict[Group, Value] = {}
        for members in parts.values():
            members.sort(key=keys.__getitem__)
            ordered_keys = [keys[place] for place in members]
            numbers: Sequence[Value]
            if self.of:
                column = [_value(self.of, groups[place], answers) for place in members]
                numbers = self._taken(ordered_keys, column)
            else:
                numbers = self._numbers(ordered_keys)
            group_numbers |= {
                groups[place]: number for place, number in zip(members, numbers, strict=True)
            }
        return {group: group_numbers[group] for group in groups}

    def _taken(self, keys: Sequence[tuple[Any, ...]], column: Sequence[Value]) -> list[Value]:
        """What a function takes of the values of groups that are in order."""
        count = len(keys)
        if self.function == "lag":
            far = int((self.rows or (1.0, 1.0))[0])
            places = (place - far for place in range(count))
            return [column[place] if 0 <= place < count else math.nan for place in places]
        start, end = self.rows or (-math.inf, 0.0 if self.order else math.inf)
        lasts = [min(count - 1.0, place + end) for place in range(count)]
        if self.rows is None and self.order:  # RANGE: with those that are equal
            for place in range(count - 2, -1, -1):
                lasts[place] = lasts[place + 1] if keys[place] == keys[place + 1] else place
        firsts = [max(0.0, place + start) for place in range(count)]
        frames = [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]
        if start == -math.inf and self.function in {"sum", "avg", "min", "max", "count"}:
            so_far = [_combined(self.function, ())]
            so_far += _running(self.function, column)
            return [so_far[max(0, last)] for _, last in frames]
        return [_combined(self.function, column[first:last]) for first, last in frames]

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


def _value(name: str, group: Group, answers: Values) -> Value:
    """What a column has in a group: an answer, or the label of a column of groups."""
    if name in answers:
        return answers[name].get(group, math.nan)
    return dict(group).get(name, math.nan)


def _part(value: Value) -> Value:
    """What rows of one partition agree in: NULL, and the label that a total does not have."""
    return NULL if _is_null(value) else value


def _is_null(value: Value) -> bool:
    return value == NULL or (isinstance(value, float) and math.isnan(value))


def _combined(function: str, frame: Sequence[Value]) -> Value:
    if function in {"first_value", "last_value"}:
        return (frame[0] if function == "first_value" else frame[-1]) if frame else math.nan
    numbers = [value for value in frame if isinstance(value, float | int) and not _is_null(value)]
    if function == "count":
        return float(len(numbers))
    if not numbers:
        return math.nan
    if function in {"sum", "avg"}:
        return math.fsum(numbers) / (1 if function == "sum" else len(numbers))
    if function in {"stddev", "stddev_pop"}:
        return _spread(numbers, len(numbers) - (function == "stddev"))
    return min(numbers) if function == "min" else max(numbers)


def _spread(numbers: Sequence[float], count: int) -> float:
    """A standard deviation whose squares are divided by a count."""
    mean = math.fsum(numbers) / len(numbers)
    squares = math.fsum((number - mean) ** 2 for number in numbers)
    return math.sqrt(squares / count) if count else math.nan


def _running(function: str, column: Sequence[Value]) -> Iterator[Value]:
    """What a function is of the first value, of the first two, and so on."""
    total, count, least, most = 0.0, 0, math.inf, -math.inf
    for value in column:
        if not isinstance(value, str) and not math.isnan(value):
            total, count = total + value, count + 1
            least, most = min(least, value), max(most, value)
        some = {"sum": total, "min": least, "max": most}.get(function, math.nan)
        if function == "count":
            yield float(count)
        elif not count:
            yield math.nan
        else:
            yield total / count if function == "avg" else some


Kind = Literal["number", "column", "text", "+", "-", "*", "/", "round", "else", "greatest", "least"]
_TWO: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else math.nan,
    "round": lambda left, digits: _rounded(left, int(digits)),
    "else": lambda left, right: right if math.isnan(left) else left,
    "greatest": max,
    "least": min,
}


def _rounded(value: float, digits: int) -> float:
    """A number to some digits, halves away from 0 as in SQL."""
    if not math.isfinite(value):
        return value
    scaled = abs(value) * 10.0**digits
    if not math.isfinite(scaled):
        return value
    return math.copysign(math.floor(scaled + 0.5) / 10.0**digits, value)


@dataclass(frozen=True)
class Term:
    """A step of arithmetic on displayed columns, in postfix notation."""

    kind: Kind
    text: str = ""  # a text, or the name of a column
    number: float = 0.0
    as_list: ClassVar = True  # in files


def _evaluated(terms: Sequence[Term], group: Group, answers: Values) -> Value:
    """The value of terms in a group; NaN where a number does not exist."""
    stack: list[Value] = []
    for term in terms:
        if term.kind == "number":
            stack.append(term.number)
        elif term.kind == "text":
            stack.append(term.text)
        elif term.kind == "column":
            stack.append(_value(term.text, group, answers))
        else:
            right, left = stack.pop(), stack.pop()
            numeric = not isinstance(left, str) and not isinstance(right, str)
            both = numeric and (term.kind == "else" or not (_is_null(left) or _is_null(right)))
            known = both and not isinstance(left, str) and not isinstance(right, str)
            stack.append(_TWO[term.kind](left, right) if known else math.nan)  # type: ignore[arg-type]
    return stack[0]


@dataclass(frozen=True)
class Branch:
    """What a CASE gives where all of some clauses hold: in each, one of the comparisons."""

    clauses: tuple[tuple[Bound, ...], ...]
    terms: tuple[Term, ...]
    as_list: ClassVar = True  # in files


@dataclass(frozen=True)
class Computed:
    """A column that is computed from the displayed ones: CASE, and arithmetic.

    >>> large = Branch(((Bound("n", ">", 8.0),),), (Term("text", "large"),))
    >>> size = Computed("size", (large,), (Term("text", "small"),))
    >>> groups = [(("sex", "f"),), (("sex", "m"),)]
    >>> list(size.values(groups, {"n": dict(zip(groups, [7.0, 9.5]))}).values())
    ['small', 'large']
    """

    name: str
    branches: tuple[Branch, ...]
    other: tuple[Term, ...]  # what ELSE gives; all of it without branches; nothing for NULL

    def __post_init__(self) -> None:
        for terms in (self.other, *(branch.terms for branch in self.branches)):
            height = 0
            for term in terms:
                height += -1 if term.kind in _TWO else 1
                if height < 1 or not math.isfinite(term.number):
                    raise WorkloadError("a computed column must be arithmetic in postfix notation")
            if terms and height != 1:
                raise WorkloadError("a computed column must be arithmetic in postfix notation")

    @property
    def _terms(self) -> list[Term]:
        return [*self.other, *(term for branch in self.branches for term in branch.terms)]

    @property
    def inputs(self) -> frozenset[str]:
        """The columns that it is computed from."""
        compared = {
            bound.answer
            for branch in self.branches
            for clause in branch.clauses
            for bound in clause
        }
        return frozenset(compared | self.valued)

    @property
    def valued(self) -> frozenset[str]:
        """The columns of which its values are some."""
        return frozenset(term.text for term in self._terms if term.kind == "column")

    @property
    def is_text(self) -> bool:
        """Whether its values are texts."""
        return any(term.kind == "text" for term in self._terms)

    def values(self, groups: Sequence[Group], answers: Values) -> dict[Group, Value]:
        """The value of each group."""
        return {group: self._value(group, answers) for group in groups}

    def _value(self, group: Group, answers: Values) -> Value:
        for branch in self.branches:
            if _holds(branch.clauses, group, answers):
                return _evaluated(branch.terms, group, answers) if branch.terms else math.nan
        return _evaluated(self.other, group, answers) if self.other else math.nan


def _holds(clauses: Sequence[Sequence[Bound]], group: Group, answers: Values) -> bool:
    """Whether the values of a group satisfy some clauses."""

    def holds(bound: Bound) -> bool:
        value = _value(bound.answer, group, answers)
        return not isinstance(value, str) and bound.holds(value)

    return all(any(map(holds, clause)) for clause in clauses)


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
    computed: tuple[Computed, ...] = ()  # columns that follow from the others
    left_out: tuple[str, ...] = ()  # columns of groups that are not displayed
    may_lack: ClassVar = ("ranks", "qualify", "computed", "left_out")

    def __post_init__(self) -> None:
        if not self.queries:
            raise WorkloadError("a display needs the names of its answers")
        numbered = {element.name for element in self.columns}
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
        if len(numbered) < len(self.columns) or len(self._ordered) < len(self.columns):
            raise WorkloadError("a computed column must have its own name, and not follow from it")

    @property
    def columns(self) -> tuple[Rank | Computed, ...]:
        """The columns that are computed from what is displayed."""
        return (*self.ranks, *self.computed)

    @cached_property
    def _ordered(self) -> tuple[Rank | Computed, ...]:
        """The computed columns, each after those that it is computed from."""
        waiting, ordered = list(self.columns), list[Rank | Computed]()
        while waiting:
            names = {column.name for column in waiting}
            ready = [column for column in waiting if column.inputs.isdisjoint(names)]
            if not ready:
                break  # they follow from each other
            ordered += ready
            waiting = [column for column in waiting if column not in ready]
        return tuple(ordered)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The computed columns whose values are texts."""
        numbers = {*self.queries, *self.hidden, *(column.name for column in self.columns)}
        texts: set[str] = set()
        for column in self._ordered:
            labels = {name for name in column.valued if name in texts or name not in numbers}
            if labels or (isinstance(column, Computed) and column.is_text):
                texts.add(column.name)
        return frozenset(texts)

    def shown(self, groups: Sequence[Group], answers: Values) -> list[Group]:
        """The groups that are displayed, in order, by the noisy answers of each query."""
        every = {**answers, **self.rank_values(groups, answers)}
        shown_groups = self._kept(groups, answers, self.having)
        shown_groups = self._kept(shown_groups, every, self.qualify)
        order = list(range(len(shown_groups)))
        for key in reversed(self.order):
            values = every.get(key.column, {}) if key.labels is None else {}
            keys = key.sort_keys(shown_groups, values)
            order.sort(key=keys.__getitem__)
        end = None if self.limit is None else self.offset + self.limit
        return [shown_groups[place] for place in order[self.offset : end]]

    def rank_values(
        self, groups: Sequence[Group], answers: Values
    ) -> dict[str, dict[Group, Value]]:
        """The computed columns of the groups that HAVING leaves."""
        if not self.columns:
            return {}
        having_groups = self._kept(groups, answers, self.having)
        values: dict[str, dict[Group, Value]] = {}
        for column in self._ordered:
            values[column.name] = column.values(having_groups, {**answers, **values})
        return values

    @staticmethod
    def _kept(
        groups: Sequence[Group], answers: Values, clauses: Sequence[Sequence[Bound]]
    ) -> list[Group]:
        """The groups whose answers satisfy some clauses."""
        return [group for group in groups if _holds(clauses, group, answers)]

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
        # Files without such columns keep the digest that they had before there were any.
        without = () if self.ranks or self.qualify else ("ranks", "qualify")
        added = (name for name in ("computed", "left_out") if not getattr(self, name))
        facts: dict[str, Any] = facts_of(self, *without, *added)
        return facts

    @classmethod
    def from_facts(cls, facts: Any) -> Display:
        """Read what `facts` returned; anything else is an error."""
        return read_record(cls, facts)
