"""Columns of times: what a statement sees of them are the intervals that are their cells.

A comparison with a constant is answered by the ends of cells. A function that looks no closer than
at some unit reads the beginning of that unit: ``HOUR(ts)`` is ``HOUR(DATE_TRUNC('hour', ts))``, and
the beginning is known on every cell within one unit, as it never falls. Whatever else reads such a
column depends on the time within a cell, and raises an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lrm.domain import Dates
from lrm.domain.ordered import MINUTES
from lrm.queries.sql import expr as ir
from lrm.queries.sql.refusals import fail, refuse
from lrm.queries.sql.render import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lrm.domain import Domain
    from lrm.queries.sql.expr import Expr

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""Units of time; what looks at one of them sees nothing of those before it."""

_BY_UNIT = {
    "second": "second seconds %S %-S",
    "minute": "minute minutes %M %-M",
    "hour": "hour hours %H %-H %I %-I %p",
    "day": "day days dayofmonth dow dayofweek weekday isodow dayofweekiso doy dayofyear dayname "
    "last_day lastday %d %-d %e %j %-j %a %A %u %w %U %W",
    "week": "week weeks weekofyear week(monday) yearweek isoyear %V %G",
    "month": "month months monthname %m %-m %b %B",
    "quarter": "quarter quarters",
    "year": "year years decade century millennium %Y %y",
}
_UNIT_OF = {word: unit for unit, words in _BY_UNIT.items() for word in words.split()}
_WORDS = re.compile(r"EXTRACT\((\w+(?:\(\w+\))?) FROM|'([^']*)'|[A-Za-z_]+(?=\()")
_FRAMES = frozenset(
    {"strftime", "date_part", "datepart", "date_diff", "date_trunc", "cast", "upper", "lower"}
)
_SHIFTS = re.compile(r"\(?INTERVAL '?\d+'? ?(hour|minute|second|day|week)s?'?\)?", re.IGNORECASE)


def is_time(node: Expr, domain: Domain) -> bool:
    """Whether an expression is a column of times."""
    return isinstance(node, ir.Attribute) and _times(domain, node.axis)


def _times(domain: Domain, axis: int) -> bool:
    attribute = domain.attributes[axis]
    return isinstance(attribute, Dates) and bool(attribute.time)


def unit_of(node: ir.Call) -> str | None:
    """The least unit of time that a function looks at; None where none is known.

    >>> unit_of(ir.Call("EXTRACT", (ir.Null(),), ("EXTRACT(DOW FROM ", ")")))
    'day'
    >>> unit_of(ir.Call("STRFTIME", (ir.Null(),), ("STRFTIME(", ", '%Y-%m %H:00')")))
    'hour'
    """
    text = "".join(node.pieces) if node.pieces is not None else f"{node.name}("
    units = set()
    for match in _WORDS.finditer(text):
        word = match[1] or match[2] or match[0]
        for part in re.findall(r"%-?[A-Za-z]", word) or [word.lower()]:
            if part in _UNIT_OF:
                units.add(_UNIT_OF[part])
            elif (match[2] is None and part not in _FRAMES) or part.startswith("%"):
                return None
    return min(units, key=UNITS.index, default=None)


def truncates(node: Expr) -> bool:
    """Whether a node is the beginning of a unit or part of a day: it never falls."""
    if isinstance(node, ir.Cast):
        return node.to == "DATE" and not node.safe
    return isinstance(node, ir.Call) and node.name in {"TIMESTAMPTRUNC", "DATETRUNC", "DATEBIN"}


def begins(node: Expr, domain: Domain) -> ir.Attribute | None:
    """The column of times of which a node is the beginning of a unit, if it is one.

    Hours, days and weeks may be added before.
    """
    inner: Expr = node
    if not truncates(inner):
        return None
    inner = inner.children[-1] if inner.children else inner
    if isinstance(inner, ir.Binary) and inner.op in {"+", "-"}:
        shifted = _SHIFTS.fullmatch(shown(inner.right))
        inner = inner.left if shifted else inner
    return inner if isinstance(inner, ir.Attribute) and is_time(inner, domain) else None


def clocked(node: Expr, domain: Domain) -> Expr:
    """The same expression, in which functions of times read the beginning of their unit."""
    if not any(isinstance(domain.attributes[axis], Dates) for axis in node.axes):
        return node

    def put(part: Expr) -> Expr | None:
        if begins(part, domain) is not None:
            return part
        if not isinstance(part, ir.Call):
            return None
        unit = unit_of(part)
        if unit in UNITS[:3] and any(
            isinstance(domain.attributes[axis], Dates) and not _times(domain, axis)
            for axis in part.axes
        ):
            raise _days_alone(part, domain)
        if unit is None or not any(is_time(argument, domain) for argument in part.args):
            return None
        args = tuple(
            ir.Call("TIMESTAMPTRUNC", (argument,), (f"DATE_TRUNC('{unit}', ", ")"))
            if is_time(argument, domain)
            else argument.mapped(put)
            for argument in part.args
        )
        return ir.Call(part.name, args, part.pieces, at=part.at)

    return node.mapped(put)


def _days_alone(node: Expr, domain: Domain) -> Exception:
    name = next(
        domain.names[axis]
        for axis in sorted(node.axes)
        if isinstance(domain.attributes[axis], Dates)
    )
    advice = (
        f"{name!r} is declared as dates, whose hours are not known: declare it with by: hour, or "
        "look at its year, quarter, month, week, day or dow"
    )
    return refuse("function", shown(node), advice, node)


def whole_cells(node: Expr, domain: Domain) -> ir.Attribute | None:
    """The column of times each of whose cells has one value of a node, and no other cell has it.

    ``DATE_TRUNC('hour', ts)`` of a column by hour, or ``CAST(ts AS DATE)`` of one by day: a group
    for each is a group for each cell, with the same label.
    """
    column = begins(node, domain)
    if column is None or (isinstance(node, ir.Cast | ir.Call) and node.children[-1] != column):
        return None
    attribute = domain.attributes[column.axis]
    assert isinstance(attribute, Dates)  # noqa: S101 - `begins` looked
    length = MINUTES if isinstance(node, ir.Cast) else {"hour": 60, "minute": 1}.get(_unit(node))
    return column if attribute.by not in {"month", "year"} and length == attribute.minutes else None


def _unit(node: Expr) -> str:
    """The unit of DATE_TRUNC, or nothing."""
    text = node.pieces[0] if isinstance(node, ir.Call) and node.pieces else ""
    return text.partition("DATE_TRUNC('")[2].partition("'")[0].lower()


def check_group(node: Expr, domain: Domain) -> None:
    """Refuse a column of times by itself as a group: each point in time would be one."""
    if is_time(node, domain):
        advice = f"group by {_example(node, domain)}, CAST({shown(node)} AS DATE) or a part of it"
        raise refuse("group-by", f"GROUP BY {shown(node)}, a column of times,", advice, node)


def depends_on_time(node: Expr, description: str, domain: Domain, outer: Expr) -> Exception:
    """The error for an expression that sees the time within a cell."""
    name = shown(node)
    sentence = (
        f"{description} depends on the time within the cells of {name!r}; compare {name} with "
        f"their ends, or use {_example(node, domain)}, CAST({name} AS DATE) or EXTRACT(HOUR FROM "
        f"{name})"
    )
    return fail("cut", sentence, outer)


def _example(node: Expr, domain: Domain) -> str:
    (axis,) = node.axes
    attribute = domain.attributes[axis]
    assert isinstance(attribute, Dates)  # noqa: S101 - a column of times
    unit = "hour" if attribute.minutes < MINUTES else attribute.by
    return f"date_trunc('{unit}', {shown(node)})"


def grid_of(keys: tuple[Expr, ...], domain: Domain) -> Mapping[Expr, Expr]:
    """What groups are by that are the cells of columns of times: those columns, by their nodes."""
    grid: dict[Expr, Expr] = {}
    for key in keys:
        column = whole_cells(key, domain)
        if column is not None and column not in grid.values():
            grid[key] = column
    return grid


def on_grid(node: Expr, grid: Mapping[Expr, Expr]) -> Expr:
    """An expression of groups, whose beginnings of units are the cells that it is grouped by."""
    if not grid:
        return node
    return node.mapped(lambda part: part if isinstance(part, ir.Aggregate) else grid.get(part))
