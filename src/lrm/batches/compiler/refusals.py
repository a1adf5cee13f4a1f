"""Refusals: what is not compiled, by name, with what to write instead.

Deny by default: every visitor names the node types and arguments that it takes, and
everything else in the tree is refused here. The names below only make the sentence
better; a construct that is missing from them is refused all the same.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["at_line", "in_statement", "line_of", "only", "refuse", "refuse_node"]

ONE_TABLE = "a query reads only the declared table"
EVERY_GROUP = "every declared group is answered; choose rows of the answer afterwards"
PREDICATES = (
    "conditions are comparisons, IN, BETWEEN, LIKE, IS NULL and deterministic functions of "
    "attributes and constants, joined by AND OR NOT"
)
AGGREGATES = (
    "answers are COUNT(*), and COUNT, COUNT_IF, SUM, AVG, VARIANCE, STDDEV, quantiles, CORR and "
    "REGR_SLOPE of expressions, with arithmetic between them"
)

TOO_DEEP = "the statement is nested too deeply; write it with fewer parentheses and sub-selects"
DISTINCT = "it is no sum over rows; GROUP BY the column, and count the groups that are not near 0"
_ONE_ROW = "a single row decides it, which noise must hide; ask for QUANTILE_DISC(x, 0.01) or 0.99"
_RANKS = (
    "SUM(COUNT(*)) OVER (…) is; ORDER BY and LIMIT rank the displayed answers, and differences of "
    "released answers can be taken afterwards"
)
_SAME = "a batch must mean the same whenever it is compiled; write the constant"

_WAYS_OUT: dict[str, tuple[str, str]] = {
    "joins": ("JOIN", ONE_TABLE),
    "laterals": ("LATERAL", ONE_TABLE),
    "with_": ("WITH", ONE_TABLE),
    "pivots": ("PIVOT", ONE_TABLE),
    "into": ("INTO", "the batch writes nothing"),
    "having": ("HAVING", EVERY_GROUP),
    "qualify": ("QUALIFY", EVERY_GROUP),
    "limit": ("LIMIT", EVERY_GROUP),
    "offset": ("OFFSET", EVERY_GROUP),
    "order": ("ORDER BY", "answers are in the order of the declared cells"),
    "distinct": ("DISTINCT", "GROUP BY the columns: every declared group is answered"),
    "sample": ("TABLESAMPLE", "the whole table is counted"),
    "windows": ("WINDOW", AGGREGATES),
    "hint": ("a hint", "the text is never executed"),
    "locks": ("FOR UPDATE", "the text is never executed"),
    "rollup": ("WITH ROLLUP", "write GROUP BY ROLLUP (…)"),
    "cube": ("WITH CUBE", "write GROUP BY CUBE (…)"),
    "grouping_sets": ("this form of GROUPING SETS", "write GROUP BY GROUPING SETS ((…), …)"),
    "alias": ("an alias", "use the declared name"),
    "query": ("a subquery", "list the constants"),
    "unnest": ("UNNEST", "list the constants"),
    "symmetric": ("BETWEEN SYMMETRIC", "write the smaller constant first"),
    "except_": ("EXCLUDE", AGGREGATES),
    "subquery": ("a subquery", ONE_TABLE),
    "select": ("a subquery", ONE_TABLE),
    "exists": ("EXISTS", "write key IN (SELECT key FROM lookup WHERE …)"),
    "any": ("ANY", "list the constants: = ANY (ARRAY['a', 'b'])"),
    "min": ("MIN()", _ONE_ROW),
    "max": ("MAX()", _ONE_ROW),
    "approxdistinct": ("APPROX_COUNT_DISTINCT()", DISTINCT),
    "mode": ("MODE()", "GROUP BY the column, ORDER BY the count DESC LIMIT 1"),
    "logicalor": ("BOOL_OR()", "count the rows with COUNT_IF(condition)"),
    "logicaland": ("BOOL_AND()", "count the rows with COUNT_IF(NOT condition)"),
    "arrayagg": ("ARRAY_AGG()", "rows are never listed; GROUP BY the column"),
    "median": ("a quantile within a formula", "ask for each quantile by itself"),
    "quantile": ("a quantile within a formula", "ask for each quantile by itself"),
    "percentilecont": ("a quantile within a formula", "ask for each quantile by itself"),
    "percentiledisc": ("a quantile within a formula", "ask for each quantile by itself"),
    "rand": ("RANDOM()", "expressions must be deterministic"),
    "currentdate": ("CURRENT_DATE", _SAME),
    "currenttimestamp": ("CURRENT_TIMESTAMP", _SAME),
    "union": ("UNION", "write two statements, separated by ;"),
    "intersect": ("INTERSECT", "write one condition with AND"),
    "except": ("EXCEPT", "write one condition with AND NOT"),
    "insert": ("INSERT", "a batch holds only SELECT statements"),
    "update": ("UPDATE", "a batch holds only SELECT statements"),
    "delete": ("DELETE", "a batch holds only SELECT statements"),
    "create": ("CREATE", "a batch holds only SELECT statements"),
    "drop": ("DROP", "a batch holds only SELECT statements"),
    "command": ("a command", "a batch holds only SELECT statements"),
    "window": ("this window function (OVER)", _RANKS),
    "withingroup": ("a quantile within a formula", "ask for each quantile by itself"),
    "div": ("division", "multiply by a constant: 0.5 * COUNT(*)"),
    "intdiv": ("integer division of answers", "divide by /, and round the released answer"),
    "star": ("SELECT *", AGGREGATES),
    "null": ("NULL as a constant", "write IS NULL: a comparison with NULL is never true"),
    "placeholder": ("a placeholder", "write the constant"),
    "parameter": ("a parameter", "write the constant"),
    "interval": ("INTERVAL", "write the date itself"),
    "unnestfunction": ("UNNEST", ONE_TABLE),
    "values": ("VALUES", ONE_TABLE),
}


def at_line(node: exp.Expr | None, sentence: str) -> SqlError:
    """Make the error for ``node``, with its line if that is known."""
    line = line_of(node)
    return SqlError(sentence if line is None else f"line {line}: {sentence}")


def line_of(node: exp.Expr | None) -> int | None:
    """The line of the first token in ``node`` that knows it."""
    for inner in node.walk() if node is not None else ():
        line = inner.meta.get("line")
        if line is not None:
            return int(line)
    return None


@contextmanager
def in_statement(line: int) -> Iterator[None]:
    """Name the statement's first line in refusals that know no line of their own."""
    try:
        yield
    except SqlError as error:
        sentence = str(error)
        if re.match(r"line \d+: ", sentence):
            raise
    except RecursionError:
        sentence = TOO_DEEP
    else:
        return
    raise SqlError(f"line {line}: {sentence}")


def refuse(what: str, way_out: str, node: exp.Expr | None = None) -> SqlError:
    """Make the error that refuses a construct by its name."""
    return at_line(node, f"{what} is not compiled; {way_out}")


def refuse_node(node: exp.Expr, way_out: str) -> SqlError:
    """Refuse a node that no visitor takes, named as SQL names it."""
    name, better = _WAYS_OUT.get(node.key, ("", way_out))
    if not name and isinstance(node, exp.Func):
        name = f"{(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()}()"
    return refuse(name or f"{node.sql(dialect='duckdb')!r}", better, node)


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse every argument of ``node`` that is set and not in ``allowed``."""
    for key, value in node.args.items():
        if key in allowed or value is None or value is False or value == []:
            continue
        name, way_out = _WAYS_OUT.get(key, (key.strip("_").upper().replace("_", " "), AGGREGATES))
        raise refuse(name, way_out, _first(value) or node)


def _first(value: object) -> exp.Expr | None:
    values: Iterable[object] = value if isinstance(value, list) else [value]
    return next((item for item in values if isinstance(item, exp.Expr)), None)
