"""Records with numbers by knots, divided into pieces that lie in one cell each.

The rule is that of `lrm.domain.numbers.pieces_of`: unit u of a record lies in the upper cell of
each attribute whose share is above u. A piece starts at 0 or at one of the record's shares, and
ends at the next one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Numbers
from lrm.domain.numbers import RECORD, RECORD_BITS
from lrm.tables.axes import Axis

if TYPE_CHECKING:
    from lrm.tables.dialect import Clause, Dialect

Integers = NDArray[np.signedinteger]


def divided_attributes(axes: Sequence[Axis]) -> dict[int, Numbers]:
    """The attributes that are declared by knots, by their places."""
    return {
        place: axis.attribute
        for place, axis in enumerate(axes)
        if isinstance(axis.attribute, Numbers)
    }


def divided_words(
    numbers: Mapping[int, Numbers], words: Sequence[Integers], counts: Integers | None
) -> tuple[list[Integers], NDArray[np.int64]]:
    """Turn rows, whose words of numbers are positions, into pieces in cells with their units."""
    cells: dict[int, Integers] = {}
    shares: dict[int, Integers] = {}
    for place, attribute in numbers.items():
        position = words[place].astype(np.int64)
        beyond = position - attribute.last_position
        cells[place] = np.where(
            beyond >= 0, beyond + (attribute.regular - 1), position >> RECORD_BITS
        )
        shares[place] = np.where(beyond >= 0, 0, position & (RECORD - 1))
    rows = len(words[0])
    none = np.zeros(rows, dtype=np.int64)
    ends = np.sort(np.stack([none, *shares.values(), none + RECORD]), axis=0)
    pieces: list[list[Integers]] = [[] for _ in words]
    units: list[NDArray[np.int64]] = []
    for start, end in itertools.pairwise(ends):
        some = end > start
        amount = (end - start)[some]
        units.append(amount if counts is None else amount * counts[some])
        for place, word in enumerate(words):
            piece = word
            if place in numbers:
                piece = cells[place] + (start < shares[place])
            pieces[place].append(piece[some])
    return [np.concatenate(parts) for parts in pieces], np.concatenate(units)


def knot_position(axis: Axis, x: str, rest: Sequence[Clause], dialect: Dialect) -> list[Clause]:
    """Clauses of a float64's position among knots: the float64 operations of `Numbers`."""
    attribute = axis.attribute
    assert isinstance(attribute, Numbers)  # noqa: S101 - the caller looked
    knots, last = attribute.knots, str(attribute.last_position)
    clip = attribute.outside == "clip"
    nan, null, invalid = (
        "NULL" if position is None else str(position)
        for position in map(attribute.special_position, ("(nan)", "(null)", "(invalid)"))
    )
    clauses = [(f"{x} < {dialect.number(knots[0])}", "0" if clip else invalid)]
    for place, (low, high) in enumerate(itertools.pairwise(knots)):
        offset, width = f"({x} - {dialect.number(low)})", dialect.number(high - low)
        start = place << RECORD_BITS
        scaled = f"{offset} * {dialect.number(float(RECORD))} / {width}"
        share = f"floor({scaled} + {dialect.number(0.5)})"
        small = f"{offset} * {dialect.number(2.0 * RECORD)} < {width}"
        position = f"CASE WHEN {small} THEN {start} ELSE {start} + {dialect.as_bigint(share)} END"
        clauses.append((f"{x} < {dialect.number(high)}", position))
    # NaN is greater than every number on these engines.
    clauses += [
        (dialect.is_nan(x), nan),
        (f"{x} = {dialect.number(knots[-1])}", last),
        (f"{x} IS NOT NULL", last if clip else invalid),
    ]
    (stored_null, _), (stored, _) = rest
    return [*clauses, (stored_null, null), (stored, invalid)]


def share_sql(attribute: Numbers, word: str, dialect: Dialect) -> tuple[str, str]:
    """SQL of a position's lower cell, and of the share of the cell after it."""
    last = attribute.last_position
    beyond = f"{word} - {last - (attribute.regular - 1)}"
    quotient = dialect.as_bigint(dialect.quotient(word, RECORD))
    cell = f"CASE WHEN {word} >= {last} THEN {beyond} ELSE {quotient} END"
    return cell, f"CASE WHEN {word} >= {last} THEN 0 ELSE {word} % {RECORD} END"


def piece_sql(shares: Sequence[str]) -> str:
    """SQL of the units of the piece that begins at ``start``."""
    ends = ", ".join(
        f"CASE WHEN {share} > start THEN {share} ELSE {RECORD} END" for share in shares
    )
    return f"least({RECORD}, {ends}) - start"
