"""What errors advise to write instead, by what was found."""

from __future__ import annotations

__all__ = ["ADVICE", "AGGREGATES", "DISTINCT", "EXPRESSIONS", "ONE_TABLE", "PREDICATES"]

ONE_TABLE = "a query reads only the declared table"
PREDICATES = (
    "conditions are comparisons, IN, BETWEEN, LIKE, IS NULL and deterministic functions of "
    "attributes and constants, joined by AND OR NOT"
)
AGGREGATES = (
    "answers are COUNT(*), and COUNT, COUNT_IF, SUM, AVG, VARIANCE, STDDEV, quantiles, CORR and "
    "REGR_SLOPE of expressions, with arithmetic between them"
)
EXPRESSIONS = (
    "expressions use comparisons, AND OR NOT, CASE, arithmetic, LIKE, CAST to a plain type and "
    "deterministic functions of numbers, text and dates"
)
DISTINCT = (
    "it is not a sum over rows; GROUP BY the column, and count the groups that are not near 0"
)
_ONE_ROW = "a single row decides it, which noise must hide; ask for QUANTILE_DISC(x, 0.01) or 0.99"
_WINDOWS = (
    "SUM, AVG, LAG, LEAD, FIRST_VALUE, LAST_VALUE and ranks of answers are: SUM(COUNT(*)) OVER (…)"
)
_SAME = "a batch must mean the same whenever it is compiled; write the constant"
_SELECTS = "a batch holds only SELECT statements"
_QUANTILE = ("a quantile within a formula", "ask for each quantile by itself")

ADVICE: dict[str, tuple[str, str]] = {
    "laterals": ("LATERAL", ONE_TABLE),
    "pivots": ("PIVOT", "write one SUM(CASE WHEN … THEN … END) per column"),
    "into": ("INTO", "the batch writes nothing"),
    "distinct": ("DISTINCT", "GROUP BY the columns: every declared group is answered"),
    "sample": ("TABLESAMPLE", "the whole table is counted"),
    "hint": ("a hint", "the text is never executed"),
    "locks": ("FOR UPDATE", "the text is never executed"),
    "grouping_sets": ("this form of GROUPING SETS", "write GROUP BY GROUPING SETS ((…), …)"),
    "alias": ("an alias", "use the declared name"),
    "query": ("a subquery", "list the constants"),
    "unnest": ("UNNEST", "list the constants"),
    "except_": ("EXCLUDE", "name the columns"),
    "subquery": ("a subquery", ONE_TABLE),
    "select": ("a subquery", ONE_TABLE),
    "any": ("ANY", "list the constants: = ANY (ARRAY['a', 'b'])"),
    "min": ("MIN()", _ONE_ROW),
    "max": ("MAX()", _ONE_ROW),
    "approxdistinct": ("APPROX_COUNT_DISTINCT()", DISTINCT),
    "groupconcat": ("STRING_AGG()", "rows are never listed; GROUP BY the column"),
    "mode": ("MODE()", "GROUP BY the column, ORDER BY the count DESC LIMIT 1"),
    "logicalor": ("BOOL_OR()", "count the rows with COUNT_IF(condition)"),
    "logicaland": ("BOOL_AND()", "count the rows with COUNT_IF(NOT condition)"),
    "arrayagg": ("ARRAY_AGG()", "rows are never listed; GROUP BY the column"),
    "median": _QUANTILE,
    "quantile": _QUANTILE,
    "percentilecont": _QUANTILE,
    "percentiledisc": _QUANTILE,
    "withingroup": _QUANTILE,
    "grouping": ("GROUPING()", "select the column: rows without it are totals"),
    "rand": ("RANDOM()", "expressions must be deterministic"),
    "currentdate": ("CURRENT_DATE", _SAME),
    "currenttimestamp": ("CURRENT_TIMESTAMP", _SAME),
    "union": ("UNION", "write UNION ALL, or two statements separated by ;"),
    "intersect": ("INTERSECT", "write one condition with AND"),
    "except": ("EXCEPT", "write one condition with AND NOT"),
    "insert": ("INSERT", _SELECTS),
    "update": ("UPDATE", _SELECTS),
    "delete": ("DELETE", _SELECTS),
    "create": ("CREATE", _SELECTS),
    "drop": ("DROP", _SELECTS),
    "command": ("a command", _SELECTS),
    "window": ("this window function (OVER)", _WINDOWS),
    "star": ("SELECT *", AGGREGATES),
    "null": ("NULL as a constant", "write IS NULL: a comparison with NULL is never true"),
    "placeholder": ("a placeholder", "write the constant"),
    "parameter": ("a parameter", "write the constant"),
    "unnestfunction": ("UNNEST", ONE_TABLE),
    "values": ("VALUES", ONE_TABLE),
    "frame": (
        "this frame",
        "RANGE counts whole numbers, or days as INTERVAL 6 DAY, of a column that is never NULL",
    ),
}
"""What is not supported, by sqlglot's name of the node or argument: its name, and the advice."""
