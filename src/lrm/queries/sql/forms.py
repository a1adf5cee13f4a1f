"""What the form of an expression tells: whole numbers, longest texts, monotone chains, linear sums.

A chain of monotone functions of one attribute in bins, such as ``FLOOR(delay / 60)``, is constant
on a cell if it is the same on the least and on the largest number of the cell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Numbers
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import Truths, is_binned, is_null
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lrm.queries.sql.cells import Cells
    from lrm.queries.sql.plan import Answers

_SAME = frozenset({"ABS", "COALESCE", "GREATEST", "LEAST", "NULLIF"})
_PARTS = frozenset({"EXTRACT", "YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "DATE_DIFF", "DATE_PART"})
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "INT128", "HUGEINT"})


def is_part(node: Expr) -> bool:
    """Whether an expression is a part of a date, or a number of units between two."""
    return isinstance(node, ir.Call) and node.name in _PARTS


_COUNTED = frozenset({"LENGTH", "STRPOSITION", "ASCII"})


def _looked_up(node: ir.LookedUp, domain: Domain) -> list[Any]:
    """The values of a column of a lookup; whether there is a row is true or false."""
    lookup = next(lookup for lookup in domain.lookups if lookup.name == node.lookup)
    names = [lookup.key_column, *lookup.columns]
    return [row[names.index(node.column)] if node.column else True for row in lookup.rows]


def _is_day(node: Expr, domain: Domain) -> bool:
    """Whether an expression is a day, as far as its form tells."""
    if isinstance(node, ir.Attribute):
        attribute = domain.attributes[node.axis]
        return isinstance(attribute, Dates) and not attribute.time
    return isinstance(node, ir.Cast) and node.to == "DATE"


def is_whole(  # noqa: C901, PLR0911, PLR0912 - one per kind
    node: Expr, domain: Domain
) -> bool:
    """Whether PostgreSQL and SQL Server take an expression for a whole number."""
    if isinstance(node, ir.Number):
        return node.text.lstrip("-").isdigit()
    if isinstance(node, ir.Attribute):
        attribute = domain.attributes[node.axis]
        if isinstance(attribute, Categories):
            return attribute.value_type == "integer"
        return isinstance(attribute, Integers)
    if isinstance(node, ir.LookedUp):
        return all(isinstance(value, int | None) for value in _looked_up(node, domain))
    if isinstance(node, ir.Negative | ir.OneValue):
        return is_whole(node.this, domain)
    if isinstance(node, ir.Binary) and node.op == "-" and _is_day(node.left, domain):
        return _is_day(node.right, domain)  # days between them
    if isinstance(node, ir.Binary) and node.op in {"+", "-", "*", "%", "//"}:
        return is_whole(node.left, domain) and is_whole(node.right, domain)
    if isinstance(node, ir.Case):
        outcomes = [operand for operand in node.outcomes if not isinstance(operand, ir.Null)]
        return bool(outcomes) and all(is_whole(operand, domain) for operand in outcomes)
    if isinstance(node, ir.Cast):
        return node.to.partition("(")[0] in _INTEGERS
    if isinstance(node, ir.Call) and node.name in _COUNTED:
        return True
    if isinstance(node, ir.Call) and node.name in _SAME:
        return all(is_whole(operand, domain) for operand in node.args)
    if is_part(node):
        advice = (
            "whether the fraction is dropped is not known; write CAST(… AS INT) around the part"
        )
        raise refuse("function", "the division of a part of a date", advice, node)
    if isinstance(node, ir.Aggregate):
        return node.name == "COUNT" or (node.name == "SUM" and is_whole(node.args[0], domain))
    if isinstance(node, ir.Window):
        return node.name in {"SUM", "LAG", "LEAD"} and is_whole(node.args[0], domain)
    return isinstance(node, ir.Apart) and is_whole(node.this, domain)


_ROOTS = frozenset({"SQRT", "LN", "EXP", "POWER", "LOG"})
_FLOATS = frozenset({"DOUBLE", "REAL", "FLOAT", "DECIMAL"})


def has_fraction(node: Expr, domain: Domain) -> bool:  # noqa: PLR0911 - one per kind
    """Whether an expression is a number that may have a fraction, as far as its form tells."""
    if isinstance(node, ir.Number):
        return not node.text.lstrip("-").isdigit()
    if isinstance(node, ir.Attribute):
        return isinstance(domain.attributes[node.axis], Bins | Numbers)
    if isinstance(node, ir.LookedUp):
        return any(isinstance(value, float) for value in _looked_up(node, domain))
    if isinstance(node, ir.Cast):
        return node.to.partition("(")[0] in _FLOATS
    if isinstance(node, ir.Aggregate):
        inner = any(has_fraction(argument, domain) for argument in node.args)
        return node.name != "COUNT" and (node.name != "SUM" or inner)
    if isinstance(node, ir.Binary):
        plain = node.op in {"+", "-", "*", "%"}
        return node.op == "/" or (plain and any(has_fraction(s, domain) for s in node.children))
    if isinstance(node, ir.Case):
        return any(has_fraction(outcome, domain) for outcome in node.outcomes)
    if isinstance(node, ir.Call) and node.name not in _SAME:
        return node.name in _ROOTS
    negative = isinstance(node, ir.Negative | ir.Call | ir.Apart | ir.Window)
    return negative and any(has_fraction(child, domain) for child in node.children)


LONGEST = 10_000
"""Characters of a text on the way to a value."""

_DECLARED = 100
"""Characters that a declared value is taken to have: what counts is how much longer it becomes."""

_JOINED = frozenset({"CONCAT", "CONCAT_WS"})
_REPLACED = frozenset({"REPLACE", "REGEXP_REPLACE"})
_LONG = frozenset({*_JOINED, *_REPLACED, "REPEAT", "LPAD", "RPAD", "PRINTF"})
_WIDE = re.compile(r"[0-9]{4}|\*")


def check_lengths(node: Expr) -> None:
    """Refuse an expression whose texts may become very long.

    >>> thousand = ir.Call("REPEAT", (ir.Text("x"), ir.Number("1000")))
    >>> check_lengths(ir.Call("REPEAT", (thousand, ir.Number("1000"))))
    Traceback (most recent call last):
    ...
    lrm.errors.SqlError: a text of more than 10,000 characters is not supported; repeat, \
pad, join and replace less
    """
    if any(_is_long(descendant) for descendant in node.walk()):
        _length(node)


def _is_long(node: Expr) -> bool:
    if isinstance(node, ir.Binary):
        return node.op == "||"
    return isinstance(node, ir.Call) and node.name in _LONG


def _length(node: Expr) -> int:
    """The most characters that an expression has, by those of its arguments."""
    if isinstance(node, ir.Text | ir.Number):
        return min(len(node.value if isinstance(node, ir.Text) else node.text), LONGEST)
    lengths = [_length(child) for child in node.children]
    length = max([_DECLARED, *lengths])
    if (isinstance(node, ir.Binary) and node.op == "||") or (
        isinstance(node, ir.Call) and node.name in _JOINED
    ):
        length = sum(lengths)
    elif isinstance(node, ir.Call) and node.name in _REPLACED:
        length = (lengths[0] + 1) * ((lengths[2] if len(lengths) > 2 else 0) + 1)
    elif isinstance(node, ir.Call) and node.name == "REPEAT":
        length = lengths[0] * _repeats(node.args[1])
    elif isinstance(node, ir.Call) and node.name in {"LPAD", "RPAD"}:
        length = max(lengths[0], _repeats(node.args[1]))
    elif isinstance(node, ir.Call) and node.name == "PRINTF":
        form = node.args[0] if node.args else None
        wide = not isinstance(form, ir.Text) or _WIDE.search(form.value)
        length = LONGEST + 1 if wide else sum(lengths)
    if length > LONGEST:
        what = f"a text of more than {LONGEST:,} characters"
        raise refuse("size", what, "repeat, pad, join and replace less", node)
    return length


def _repeats(node: Expr) -> int:
    """A number that is written out; of any other one nothing is known."""
    written = isinstance(node, ir.Number) and node.text.isdigit() and len(node.text) < 10
    return int(node.text) if written and isinstance(node, ir.Number) else LONGEST + 1


_ONE = frozenset({"FLOOR", "CEIL", "ROUND", "SIGN", "SQRT", "ABS", "TRUNC"})
_SEVERAL = frozenset({"GREATEST", "LEAST", "COALESCE"})
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL"})


def chain(node: Expr) -> ir.Attribute | None:
    """The attribute of which an expression is a chain of monotone functions, if it is one."""
    if (
        len(node.axes) != 1
        or sum(isinstance(descendant, ir.Attribute) for descendant in node.walk()) != 1
    ):
        return None
    inner: Expr | None = node
    while inner is not None and not isinstance(inner, ir.Attribute):
        inner = _inner(inner)
    return inner


def _inner(node: Expr) -> Expr | None:
    """The argument in which a function rises or falls, where the others are constants."""
    parts: tuple[Expr, ...] = ()
    if isinstance(node, ir.Negative):
        parts = (node.this,)
    elif isinstance(node, ir.Binary) and node.op in {"+", "-", "*"}:
        parts = (node.left, node.right)
    elif isinstance(node, ir.Binary) and node.op in {"/", "//"}:
        parts = (node.left,)
    elif isinstance(node, ir.Call) and node.name in _ONE:
        parts = node.args[:1]
    elif isinstance(node, ir.Call) and node.name in _SEVERAL:
        parts = node.args
    elif isinstance(node, ir.Cast) and not node.safe and node.to.partition("(")[0] in _NUMBERS:
        parts = (node.this,)  # TRY_CAST is NULL beyond the ends of a type
    return next((part for part in parts if part.axes), None)


def turning(node: Expr) -> list[Expr]:
    """Conditions that must not change on a cell, for the expression to be monotone on it."""
    return [
        ir.Binary("<", descendant.args[0], ir.Number("0"))
        for descendant in node.walk()
        if isinstance(descendant, ir.Call) and descendant.name == "ABS"
    ]


def sums_bins(node: Expr, cells: Cells) -> bool:
    """Whether an aggregate may add up numbers in bins."""
    sums = (
        descendant
        for descendant in node.walk()
        if isinstance(descendant, ir.Aggregate) and descendant.name == "SUM"
    )
    axes = {axis for descendant in sums for argument in descendant.args for axis in argument.axes}
    return reads_bins(axes, cells)


def reads_bins(axes: Iterable[int], cells: Cells) -> bool:
    """Whether one of some attributes is in bins."""
    return any(is_binned(cells.domain.attributes[axis]) for axis in axes)


def middle(node: Expr, cells: Cells) -> int:
    """A whole number near the middle of a column's numbers; 0 for any other expression."""
    for descendant in node.walk():
        if isinstance(descendant, ir.Attribute) and is_binned(
            cells.domain.attributes[descendant.axis]
        ):
            advice = (
                "products of numbers in bins or by knots are not known; "
                "declare the attribute as integers"
            )
            raise refuse("aggregate", f"a correlation of {descendant.name!r}", advice, node)
    attribute = cells.domain.attributes[node.axis] if isinstance(node, ir.Attribute) else None
    if not isinstance(attribute, Integers):
        return 0
    return int((int(attribute.starts[0]) + attribute.last) // 2)


def by_knots(answers: Answers, domain: Domain) -> Answers:
    """Answers that add up numbers by knots where a column is declared by bins and by knots."""
    twins = {axis: domain.by_knots(axis) for axis in answers.axes}
    if not any(twin is not None for twin in twins.values()):
        return answers

    def added(node: Expr) -> Expr:
        if isinstance(node, ir.Attribute):
            twin = twins[node.axis]
            return node if twin is None else ir.Attribute(twin, node.name, at=node.at)
        if isinstance(node, ir.Case):
            results = tuple(map(added, node.results))
            default = None if node.default is None else added(node.default)
            return replace(node, results=results, default=default)
        if isinstance(node, ir.Binary | ir.Negative | ir.Cast):
            arithmetic = not isinstance(node, ir.Binary) or node.op in {"+", "-", "*", "/"}
            parts = {name: added(getattr(node, name)) for name in node.parts}
            return replace(node, **parts) if arithmetic else node  # type: ignore[arg-type]
        return node

    def put(node: Expr) -> Expr | None:
        if not isinstance(node, ir.Aggregate) or node.name == "COUNT" or node.level is not None:
            return None
        return replace(node, args=tuple(map(added, node.args)))

    def mapped(nodes: tuple[Expr, ...]) -> tuple[Any, ...]:
        return tuple(node.mapped(put) for node in nodes)

    return replace(
        answers,
        items=tuple(replace(item, expr=item.expr.mapped(put)) for item in answers.items),
        having=mapped(answers.having),
        order=mapped(answers.order),
        qualify=mapped(answers.qualify),
    )


@dataclass(frozen=True, eq=False)
class Form:
    """A number that is a sum of columns times constants, and a constant."""

    columns: tuple[tuple[int, float], ...]
    constant: float

    def present(self, cells: Cells) -> list[tuple[int, Truths]]:
        """For each column, the truth of its being NULL."""
        return [(axis, is_null(cells.domain.attributes[axis])) for axis, _ in self.columns]


def linear_form(node: Expr, cells: Cells) -> Form | None:
    """Read an expression as a sum of columns, one of which is in bins; None for any other."""
    linear_sum = _form(node)
    if linear_sum is None:
        return None
    columns: dict[int, float] = {}
    for axis, factor in linear_sum[0]:
        columns[axis] = columns.get(axis, 0.0) + factor
    attributes = [cells.domain.attributes[axis] for axis in columns]
    if not any(map(is_binned, attributes)):
        return None
    if any(isinstance(attribute, Categories | Dates) for attribute in attributes):
        return None
    return Form(tuple(columns.items()), linear_sum[1])


_Sum = tuple["Sequence[tuple[int, float]]", float]


def squares_added(node: Expr, cells: Cells) -> tuple[float, float] | None:
    """What dividing numbers between knots adds to their squares, as `Numbers.squares_added`.

    None where an expression reads no such numbers.
    """
    if not any(isinstance(cells.domain.attributes[axis], Numbers) for axis in node.axes):
        return None
    form = linear_form(node, cells)
    if form is None or len(form.columns) > 1:
        advice = "with numbers by knots it is of a column and its multiples; filter rows by WHERE"
        raise refuse("aggregate", f"a variance of {shown(node)}", advice, node)
    ((axis, factor),) = form.columns
    attribute = cells.domain.attributes[axis]
    assert isinstance(attribute, Numbers)  # noqa: S101 - the one that is read
    slope, offset = attribute.squares_added
    return slope, factor * offset - slope * form.constant


def _form(node: Expr) -> _Sum | None:
    if isinstance(node, ir.Attribute):
        return [(node.axis, 1.0)], 0.0
    if isinstance(node, ir.Number):
        return [], float(node.text)
    if isinstance(node, ir.Negative):
        return _times(_form(node.this), -1.0)
    if isinstance(node, ir.Cast) and node.to in {"DOUBLE", "REAL", "FLOAT"}:
        return _form(node.this)
    if isinstance(node, ir.Binary) and node.op in {"+", "-", "*", "/"}:
        left, right = _form(node.left), _form(node.right)
        if left is not None and right is not None:
            return _joined(node.op, left, right)
    return None


def _joined(step: str, left: _Sum, right: _Sum) -> _Sum | None:
    if step in {"+", "-"}:
        sign = 1.0 if step == "+" else -1.0
        columns = [*left[0], *((axis, sign * coefficient) for axis, coefficient in right[0])]
        return columns, left[1] + sign * right[1]
    if step == "*" and not left[0]:
        left, right = right, left
    if right[0] or (step == "/" and not right[1]):
        return None
    return _times(left, right[1] if step == "*" else 1.0 / right[1])


def _times(form: _Sum | None, factor: float) -> _Sum | None:
    if form is None:
        return None
    return [(axis, coefficient * factor) for axis, coefficient in form[0]], form[1] * factor
