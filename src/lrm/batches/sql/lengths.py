"""How long the texts of an expression may become: a few words of SQL can ask for gigabytes."""

from __future__ import annotations

import re

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.refusals import refuse

__all__ = ["check_lengths"]

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

    Examples
    --------
    >>> thousand = ir.Call("REPEAT", (ir.Text("x"), ir.Number("1000")))
    >>> check_lengths(ir.Call("REPEAT", (thousand, ir.Number("1000"))))
    Traceback (most recent call last):
    ...
    lrm.errors.SqlError: a text of more than 10,000 characters is not supported; repeat, \
pad, join and replace less
    """
    if any(_is_long(one) for one in node.walk()):
        _length(node)


def _is_long(node: Expr) -> bool:
    if isinstance(node, ir.Binary):
        return node.op == "||"
    return isinstance(node, ir.Call) and node.name in _LONG


def _length(node: Expr) -> int:
    """The most characters that an expression has, by those of its arguments."""
    if isinstance(node, ir.Text | ir.Number):
        return min(len(node.value if isinstance(node, ir.Text) else node.text), LONGEST)
    lengths = [_length(one) for one in node.children]
    found = max([_DECLARED, *lengths])
    if (isinstance(node, ir.Binary) and node.op == "||") or (
        isinstance(node, ir.Call) and node.name in _JOINED
    ):
        found = sum(lengths)
    elif isinstance(node, ir.Call) and node.name in _REPLACED:
        found = (lengths[0] + 1) * ((lengths[2] if len(lengths) > 2 else 0) + 1)
    elif isinstance(node, ir.Call) and node.name == "REPEAT":
        found = lengths[0] * _times(node.args[1])
    elif isinstance(node, ir.Call) and node.name in {"LPAD", "RPAD"}:
        found = max(lengths[0], _times(node.args[1]))
    elif isinstance(node, ir.Call) and node.name == "PRINTF":
        form = node.args[0] if node.args else None
        wide = not isinstance(form, ir.Text) or _WIDE.search(form.value)
        found = LONGEST + 1 if wide else sum(lengths)
    if found > LONGEST:
        what = f"a text of more than {LONGEST:,} characters"
        raise refuse("size", what, "repeat, pad, join and replace less", node)
    return found


def _times(node: Expr) -> int:
    """A number that is written out; of any other one nothing is known."""
    written = isinstance(node, ir.Number) and node.text.isdigit() and len(node.text) < 10
    return int(node.text) if written and isinstance(node, ir.Number) else LONGEST + 1
