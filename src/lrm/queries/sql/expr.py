"""Expressions of SQL: immutable nodes that are compared by their structure, never by their text.

A node knows where it was written (``at``, characters from the beginning of the statement), which
takes no part in comparisons. `render` is the only way back to SQL; it parenthesises every operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from lrm.queries.sql.plan import Plan

RANKS = frozenset({"RANK", "DENSE_RANK", "ROW_NUMBER", "PERCENT_RANK", "CUME_DIST", "NTILE"})
"""Window functions that number the groups."""

CHOOSING = frozenset({"MIN", "MAX", "COUNT", "STDDEV", "STDDEV_POP"})
"""Other window functions that are of displayed answers."""

COMPARISONS = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operations of comparisons, each with the one that has its sides exchanged."""

OPPOSITES = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
"""The operations of comparisons, each with the one that is true where it is false."""


TRUNCATED = "TRUNCATED "
"""Before the type of a CAST that drops the fraction, until `rewrite` knows whether there is one."""


@dataclass(frozen=True)
class Expr:
    """An expression."""

    at: int | None = field(default=None, compare=False, kw_only=True, repr=False)
    parts: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold expressions: one, none, or several."""

    @property
    def children(self) -> tuple[Expr, ...]:
        """The expressions that this one is made of."""
        child_list: list[Expr] = []
        for name in self.parts:
            value = getattr(self, name)
            if isinstance(value, Expr):
                child_list.append(value)
            elif value is not None:
                child_list.extend(value)
        return tuple(child_list)

    @cached_property
    def size(self) -> int:
        """How many nodes it has, those of repeated parts counted again."""
        return 1 + sum(child.size for child in self.children)

    @cached_property
    def kinds(self) -> frozenset[type[Expr]]:
        """The kinds of its nodes."""
        return frozenset([type(self)]).union(*(child.kinds for child in self.children))

    @cached_property
    def axes(self) -> frozenset[int]:
        """The attributes that it reads."""
        return frozenset[int]().union(*(child.axes for child in self.children))

    def has(self, *kinds: type[Expr]) -> bool:
        """Whether some part is of one of some kinds."""
        return not self.kinds.isdisjoint(kinds)

    def walk(self) -> Iterator[Expr]:
        """The expression and all parts of it, from the outside in."""
        waiting: list[Expr] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def mapped(self, function: Callable[[Expr], Expr | None]) -> Expr:
        """Replace parts from the outside in: None of ``function`` means to look inside."""
        replacement = function(self)
        if replacement is not None:
            return replacement
        changes: dict[str, Any] = {}
        for name in self.parts:
            value = getattr(self, name)
            if isinstance(value, Expr):
                new: Any = value.mapped(function)
                changed = new is not value
            elif value:
                new = tuple(new_child.mapped(function) for new_child in value)
                changed = any(child is not two for child, two in zip(new, value, strict=True))
            else:
                continue
            if changed:
                changes[name] = new
        return replace(self, **changes) if changes else self


@dataclass(frozen=True)
class Unary(Expr):
    """An operation on one expression."""

    this: Expr
    parts = ("this",)


@dataclass(frozen=True)
class Several(Expr):
    """Several expressions together."""

    items: tuple[Expr, ...]
    parts = ("items",)


@dataclass(frozen=True)
class Column(Expr):
    """A column of a sub-select in FROM; `rewrite` puts what it stands for in its place."""

    table: str
    name: str


@dataclass(frozen=True)
class Attribute(Expr):
    """An attribute of the domain."""

    axis: int
    name: str

    @cached_property
    def axes(self) -> frozenset[int]:
        """The attribute itself."""
        return frozenset([self.axis])


@dataclass(frozen=True)
class LookedUp(Expr):
    """A column of a lookup by its key; without a column, whether the key has a row."""

    key: Expr
    lookup: str
    column: str
    parts = ("key",)


class CellLabel(Unary):
    """The label of an attribute's cell."""


@dataclass(frozen=True)
class Number(Expr):
    """A number with its sign, as it is written."""

    text: str


@dataclass(frozen=True)
class Text(Expr):
    """A text."""

    value: str


@dataclass(frozen=True)
class Boolean(Expr):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True)
class Null(Expr):
    """NULL."""


class Negative(Unary):
    """A number with the other sign."""


@dataclass(frozen=True)
class Binary(Expr):
    """A comparison, arithmetic, or another operation of two sides."""

    op: str
    left: Expr
    right: Expr
    parts = ("left", "right")


class And(Several):
    """All conditions hold."""


class Or(Several):
    """One of the conditions holds."""


class Not(Unary):
    """A condition does not hold."""


class IsNull(Unary):
    """Whether an expression is NULL."""


@dataclass(frozen=True)
class In(Expr):
    """Whether an expression is one of several."""

    this: Expr
    items: tuple[Expr, ...]
    parts = ("this", "items")

    @cached_property
    def size(self) -> int:
        """How many nodes it has; a list of constants is one, however long."""
        return 2 + self.this.size + sum(item.size for item in self.items if not is_constant(item))


@dataclass(frozen=True)
class Between(Expr):
    """Whether an expression lies between two others, or is one of them."""

    this: Expr
    low: Expr
    high: Expr
    parts = ("this", "low", "high")


class Row(Several):
    """Several expressions side by side."""


@dataclass(frozen=True)
class Case(Expr):
    """The result of the first condition that is true.

    The ``name`` is that of the column of constants that it stands for, if any.
    """

    conditions: tuple[Expr, ...]
    results: tuple[Expr, ...]
    default: Expr | None = None
    name: str = field(default="", compare=False, kw_only=True, repr=False)
    parts = ("conditions", "results", "default")

    @property
    def outcomes(self) -> tuple[Expr, ...]:
        """The results, and what ELSE gives."""
        return self.results if self.default is None else (*self.results, self.default)

    @property
    def only_branch(self) -> tuple[Expr, Expr] | None:
        """The condition and result of ``CASE WHEN … THEN … END``; None for another CASE."""
        plain = self.default is None or type(self.default) is Null
        return (self.conditions[0], self.results[0]) if plain and len(self.results) == 1 else None


@dataclass(frozen=True)
class Cast(Expr):
    """An expression as another type; ``safe`` gives NULL where that fails."""

    this: Expr
    to: str
    safe: bool = False
    parts = ("this",)


@dataclass(frozen=True)
class Call(Expr):
    """A function of an allow-list.

    Where DuckDB does not write it as ``NAME(a, b)``, the pieces of its text that stand around the
    arguments are given.
    """

    name: str
    args: tuple[Expr, ...] = ()
    pieces: tuple[str, ...] | None = None
    parts = ("args",)


@dataclass(frozen=True)
class Aggregate(Expr):
    """An aggregate of rows; ``where`` is its FILTER, and COUNT(*) has no arguments.

    ``level`` is that of a quantile.
    """

    name: str
    args: tuple[Expr, ...] = ()
    where: Expr | None = None
    level: float | None = None
    distinct: bool = False
    parts = ("args", "where")


@dataclass(frozen=True)
class OneValue(Expr):
    """``MAX``, ``MIN`` or ``ANY_VALUE`` of what has one value in each group: that value."""

    name: str
    this: Expr
    parts = ("this",)


@dataclass(frozen=True)
class SortKey(Expr):
    """A key of ORDER BY."""

    this: Expr
    descending: bool = False
    nulls_first: bool = False
    parts = ("this",)


@dataclass(frozen=True)
class Frame:
    """The frame of a window: from where to where it reaches, negative numbers being before.

    A ``unit`` says that the distances are intervals.
    """

    kind: str
    start: float
    end: float
    unit: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it reaches from the first row to this one."""
        return (self.start, self.end) == (-float("inf"), 0.0)


@dataclass(frozen=True)
class Window(Expr):
    """A function over groups: ``SUM(COUNT(*)) OVER (…)``, ``RANK() OVER (ORDER BY COUNT(*))``.

    The arguments of LAG and LEAD are an expression, how many groups it is taken from, and perhaps
    what stands where there is none. ``WITHIN`` is an answer over all rows of the partition,
    whatever WHERE says.
    """

    name: str
    args: tuple[Expr, ...] = ()
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    parts = ("args", "partition", "order")


@dataclass(frozen=True)
class GroupCount(Expr):
    """How many groups of a sub-select a group has, of those that are declared."""

    keys: tuple[Expr, ...]
    apart: bool = False  # whether they are all groups of the sub-select, whatever stands around it
    where: tuple[Expr, ...] = ()  # then the conditions of the sub-select
    parts = ("keys", "where")


@dataclass(frozen=True)
class Scalar(Expr):
    """A sub-select in an expression; `rewrite` makes `Apart` of it."""

    plan: Plan


class Apart(Unary):
    """An answer over all rows of a sub-select, whatever groups and rows stand around it."""


def rounded_digits(node: Cast) -> float | None:
    """To how many digits CAST rounds a number: infinitely many of floats, None for no number."""
    kind, _, sizes = node.to.partition("(")
    if kind in {"DOUBLE", "REAL", "FLOAT"}:
        return float("inf")
    if kind != "DECIMAL":
        return 0.0 if kind in {"INT", "BIGINT", "SMALLINT", "INTEGER"} else None
    numbers = [float(text) for text in sizes.rstrip(")").split(",") if text.strip()]
    return numbers[1] if len(numbers) > 1 else 0.0 if numbers else 3.0


def is_constant(node: Expr) -> bool:
    """Whether a node is a literal."""
    return isinstance(node, Number | Text | Boolean | Null)


def conjuncts(node: Expr | None) -> tuple[Expr, ...]:
    """The conditions that AND joins."""
    if node is None:
        return ()
    return node.items if type(node) is And else (node,)
