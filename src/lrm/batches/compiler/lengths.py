"""How long the texts of an expression may become: a few words of SQL can ask for gigabytes."""

from __future__ import annotations

import re

from sqlglot import exp

from lrm.batches.compiler.refusals import refuse

__all__ = ["check_lengths"]

LONGEST = 10_000
"""Characters of a text on the way to a value."""

_DECLARED = 100
"""Characters that a declared value is taken to have: what counts is how much longer it becomes."""

_JOINED = (exp.Concat, exp.ConcatWs, exp.DPipe)
_REPLACED = (exp.Replace, exp.RegexpReplace)
_WIDE = re.compile(r"[0-9]{4}|\*")


def check_lengths(node: exp.Expr) -> None:
    """Refuse an expression whose texts may become very long.

    Examples
    --------
    >>> import sqlglot
    >>> check_lengths(sqlglot.parse_one("REPEAT(REPEAT('x', 1000), 1000)", dialect="duckdb"))
    Traceback (most recent call last):
    ...
    lrm.errors.SqlError: line 1: a text of more than 10,000 characters is not compiled; repeat, \
pad, join and replace less
    """
    if node.find(exp.Repeat, exp.Pad, exp.Anonymous, *_JOINED, *_REPLACED) is None:
        return
    found: dict[int, int] = {}
    for one in reversed(list(node.walk())):  # arguments come before what they are arguments of
        length = _length(one, found)
        if length > LONGEST:
            what = f"a text of more than {LONGEST:,} characters"
            raise refuse(what, "repeat, pad, join and replace less", one)
        found[id(one)] = length


def _length(node: exp.Expr, found: dict[int, int]) -> int:
    """The most characters that an expression has, by those of its arguments."""
    kind = type(node)
    if kind is exp.Literal:
        return min(len(node.name), LONGEST)
    own = found.get(id(node.this), 0)
    if kind in {exp.Repeat, exp.Pad}:
        times = _times(node.args["times"] if kind is exp.Repeat else node.expression)
        return own * times if kind is exp.Repeat else max(own, times)
    if kind in _REPLACED:
        return (own + 1) * (found.get(id(node.args.get("replacement")), 0) + 1)
    arguments = [found[id(one)] for one in node.iter_expressions()]
    if kind in _JOINED:
        return sum(arguments)
    if kind is exp.Anonymous and node.name.casefold() == "printf":
        wide = _WIDE.search(node.expressions[0].name) if node.expressions else None
        return LONGEST + 1 if wide else sum(arguments)
    return max(_DECLARED, *arguments) if arguments else _DECLARED


def _times(node: exp.Expr) -> int:
    """A number that is written out; of any other one nothing is known."""
    written = type(node) is exp.Literal and node.name.isdigit() and len(node.name) < 10
    return int(node.name) if written else LONGEST + 1
