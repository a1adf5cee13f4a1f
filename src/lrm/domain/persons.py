"""Who a row belongs to, and which rows of a person count: one definition for all engines.

**The same person.** A person is named by a text. Two rows belong to one person exactly where
these texts agree byte by byte in UTF-8:

====================  =================================================================
the column holds      the text
====================  =================================================================
text                  as it is: case, blanks and accents matter
whole numbers         decimal digits, so that ``1`` and ``'1'`` are one person
UUIDs                 36 characters in lower case
bytes                 as they are
anything else         none: such a column is refused; such an object belongs to nobody
====================  =================================================================

A row without a name (NULL) belongs to nobody and is dropped. Names of more than 256 bytes are
compared by their SHA-256.

**The rows that count.** Of a person's *m* rows at most *c* count. Where *m* > *c*, the rows are
put in the order of their cells and every (*m*/*c*)-th is taken, from a random place on: row
*t* = 0 … *m*-1 is kept where (*t c* + *o*) mod *m* < *c*. These are exactly *c* rows, and each is
kept with probability *c*/*m* over the offset *o*, whatever its cell. The offset is the SHA-256
of the person's name under a key that is new for every count, so persons choose independently.
Rows that an attribute drops, but that statements without it count, come after all others: the
first *c* are chosen among a person's other rows, and what is left of *c* among these, in the same
way.

**Limits by group.** Where at most *b* rows of a person count in each cell of an attribute, its
*groups*, and in at most *g* of them, this comes before:

1. The rows of each person in each group are chosen as above, at most *b* of them; the name is then
   ``rows:`` + the number of the group in digits + ``:`` + the person's name, so that no two pairs
   of a person and a group have the same.
2. Of each person's groups the first *g* are kept, in the order of the first 60 bits of the SHA-256
   of ``groups:`` + number + ``:`` + name under the key, then of the group's number. Groups that
   have no rows but those that an attribute drops come last.

Of the rows that are left, at most *c* of each person are chosen as above.

For any key, which rows of a person are kept depends on that person's rows alone: adding or
removing a person changes the counts by at most *c* in all. The guarantee therefore holds
whatever the key is, known or not; only the fairness of the choice rests on it.
"""

from __future__ import annotations

import hashlib
import numbers
import secrets
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from lrm.privacy.unit import GroupLimit

LONGEST_NAME = 256
"""Bytes up to which a name is compared as it is: sorting needs no more memory for longer ones."""

DIGEST_REPEATED = 5
"""How often a long name's digest of 64 digits is repeated: longer than any name kept as it is."""

OFFSET_DIGITS = 15
"""Hexadecimal digits of an offset: 60 bits, which are a positive number on every engine."""

_MOST_BITS = 4096  # of a whole number: Python refuses to write out much longer ones


def fresh_key() -> bytes:
    """Return the key of one count, from the operating system; it is used once and not kept."""
    return secrets.token_bytes(16)


def person_name(value: object) -> bytes | None:
    """Return the name of the person a Python value stands for, or None for nobody.

    Examples
    --------
    >>> person_name("Ann"), person_name(1), person_name("1"), person_name(1.0)
    (b'Ann', b'1', b'1', None)
    """
    if isinstance(value, str):
        name = str.encode(value, "utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        name = bytes(value)
    elif isinstance(value, uuid.UUID):
        name = str(value).encode()
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        integer = int(value)
        if integer.bit_length() > _MOST_BITS:
            return None
        name = str(integer).encode()
    else:
        return None
    if len(name) > LONGEST_NAME:
        return hashlib.sha256(name).hexdigest().encode() * DIGEST_REPEATED
    return name


def offset_of(name: bytes, total: int, key: bytes) -> int:
    """Return where a person with ``total`` rows begins to take them, from 0 to ``total - 1``."""
    digest = hashlib.sha256(key + name).hexdigest()
    return int(digest[:OFFSET_DIGITS], 16) % total


def kept_rows(
    name: bytes, cells: Sequence[int], max_rows: int, key: bytes, later: Sequence[int] = ()
) -> list[int]:
    """Return the cells of a person's rows that count.

    ``later`` are the cells of the rows that an attribute drops.

    Examples
    --------
    >>> kept_rows(b"Ann", [7, 7, 3], 3, b"key")
    [3, 7, 7]
    >>> kept_rows(b"Ann", [7, 7, 3, 4], 2, b"key")
    [4, 7]
    >>> kept_rows(b"Ann", [7, 3], 3, b"key", later=[4, 5])
    [3, 7, 4]
    """
    first = _chosen(name, cells, max_rows, key)
    return first + _chosen(name, later, max_rows - len(first), key)


def group_name(name: bytes, group: int, what: bytes = b"rows") -> bytes:
    """What stands for a person in one group, where rows or groups are chosen.

    >>> group_name(b"Ann", 3)
    b'rows:3:Ann'
    """
    return b"%s:%d:%s" % (what, group, name)


def group_order(name: bytes, group: int, key: bytes) -> int:
    """A person's groups are kept in the order of these numbers."""
    return offset_of(group_name(name, group, b"groups"), 1 << 4 * OFFSET_DIGITS, key)


def kept_by_group(  # noqa: PLR0913, PLR0917 - a person's rows, the rule and the key
    name: bytes,
    cells: Sequence[int],
    later: Sequence[int],
    limit: GroupLimit,
    group_of: Callable[[int], int],
    key: bytes,
) -> tuple[list[int], list[int]]:
    """Return the cells of a person's rows that a limit by group leaves, and of dropped ones.

    Examples
    --------
    >>> limit = GroupLimit("month", 1)
    >>> kept_by_group(b"Ann", [10, 11, 20], [12, 30], limit, lambda cell: cell // 10, b"key")
    ([10, 20], [30])
    """
    groups: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for dropped, rows in enumerate((cells, later)):
        for cell in rows:
            groups[group_of(cell)][dropped].append(cell)
    order = sorted(groups, key=lambda g: (not groups[g][0], group_order(name, g, key), g))
    kept: tuple[list[int], list[int]] = ([], [])
    for group in order[: limit.groups]:
        regular, dropped_rows = groups[group]
        rows = kept_rows(group_name(name, group), regular, limit.most, key, dropped_rows)
        kept[0].extend(rows[: len(regular)])
        kept[1].extend(rows[len(regular) :])
    return kept


def kept_values(name: bytes, values: Collection[bytes], most: int, key: bytes) -> list[bytes]:
    """Return which of a person's different values count, where at most ``most`` do.

    Examples
    --------
    >>> len(kept_values(b"Ann", [b"red", b"blue", b"green"], 2, b"key"))
    2
    """
    begin = f"{key.hex()}{len(name)}:".encode() + name
    return sorted(values, key=lambda v: (hashlib.sha256(begin + v).hexdigest(), v))[:most]


def _chosen(name: bytes, cells: Sequence[int], max_rows: int, key: bytes) -> list[int]:
    ordered = sorted(cells)
    total = len(ordered)
    if total <= max_rows:
        return ordered
    offset = offset_of(name, total, key)
    return [
        cell for place, cell in enumerate(ordered) if (place * max_rows + offset) % total < max_rows
    ]
