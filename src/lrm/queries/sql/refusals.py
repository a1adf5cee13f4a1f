"""Errors of SQL text: codes, places, and what to write instead."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lrm.errors import SqlError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lrm.queries.sql.expr import Expr
    from lrm.queries.sql.source import Chunk
    from lrm.queries.workload import Label

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
CHOSEN = "which rows are counted must not depend on a noisy answer; write the constant"
PERSONS = (
    "max_rows limits the rows of a person over all groups, so that a group would count only "
    "persons whose row in it was kept; COUNT(*) counts rows. Where the table has one row per "
    "person, COUNT(*) is the number of persons"
)
ONE_ROW = "a single row decides it, which noise must hide; write QUANTILE_DISC({}, {})"
WINDOWS = (
    "SUM, AVG, MIN, MAX, STDDEV, LAG, LEAD, FIRST_VALUE, LAST_VALUE and ranks of answers are: "
    "SUM(COUNT(*)) OVER (…)"
)
_SAME = "a batch must mean the same whenever it is compiled; write the constant"
_SELECTS = "a batch holds only SELECT statements"
_QUANTILE = (
    "a quantile within this formula",
    "quantiles are combined by + - * / and ROUND; select it by itself",
)
ADVICE: dict[str, tuple[str, str]] = {
    "laterals": ("LATERAL", ONE_TABLE),
    "pivots": ("PIVOT", "write one SUM(CASE WHEN … THEN … END) per column"),
    "into": ("INTO", "the batch writes nothing"),
    "distinct": (
        "DISTINCT",
        "select COUNT(*) and GROUP BY the columns: every declared group is answered",
    ),
    "exclude": ("EXCLUDE", "leave it out of the frame, or subtract the answer of the row"),
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
    "approxdistinct": ("APPROX_COUNT_DISTINCT()", DISTINCT),
    "groupconcat": ("STRING_AGG()", "rows are never listed; GROUP BY the column"),
    "logicalor": ("BOOL_OR()", "count the rows with COUNT_IF(condition)"),
    "logicaland": ("BOOL_AND()", "count the rows with COUNT_IF(NOT condition)"),
    "arrayagg": ("ARRAY_AGG()", "rows are never listed; GROUP BY the column"),
    "median": _QUANTILE,
    "quantile": _QUANTILE,
    "percentilecont": _QUANTILE,
    "percentiledisc": _QUANTILE,
    "withingroup": _QUANTILE,
    "grouping": (
        "this GROUPING()",
        "select the column, or CASE WHEN GROUPING(a) = 1 THEN 'all' ELSE a END",
    ),
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
    "window": ("this window function (OVER)", WINDOWS),
    "star": ("SELECT *", AGGREGATES),
    "null": ("NULL as a constant", "write IS NULL: a comparison with NULL is never true"),
    "declare": ("DECLARE", "write the constant where the variable stands"),
    "set": ("SET", "write the constant where the variable stands"),
    "totals": ("WITH TOTALS", "write ROLLUP"),
    "options": ("OPTION", "the text is never executed"),
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

OTHER_NAMES = {
    **dict.fromkeys(("now", "today", "getdate", "getutcdate", "curdate"), "currentdate"),
    **dict.fromkeys(("sysdate", "sysdatetime", "localtimestamp"), "currenttimestamp"),
    **dict.fromkeys(("json_agg", "jsonb_agg", "list", "array_concat_agg"), "arrayagg"),
}
"""Functions that sqlglot does not know, by those whose advice they have."""

CODES: dict[str, str] = {
    "aggregate": "an aggregate that is not a sum over rows",
    "clause": "a clause that is not supported",
    "constant": "a constant of another type than the attribute it is compared with",
    "cut": "a condition or expression that is not constant on a declared cell",
    "dialect": "a dialect that is not known, or a statement that dialects read differently",
    "display": "HAVING, ORDER BY or LIMIT of something else than answers and groups",
    "empty": "a batch without a statement",
    "evaluation": "an expression that fails on a declared value",
    "formula": "arithmetic of aggregates that is not supported",
    "function": "a function that is not on the list of deterministic functions",
    "group-by": "a column that is neither in GROUP BY nor inside an aggregate",
    "importance": "an importance that is not a number above 0",
    "join": "a JOIN that is not to a lookup of the domain by its key",
    "name": "two answers or columns with one name",
    "nested": "an operation on answers of a sub-select that depends on noise",
    "no-answer": "a SELECT that asks for no aggregate",
    "not-select": "a statement that is not a SELECT",
    "null": "a comparison with NULL",
    "quantile": "a quantile of something else than an attribute of numbers",
    "quotes": "a text in double quotes, which are for names",
    "size": "more work, or longer texts, than is allowed",
    "subquery": "a sub-select where none may stand",
    "syntax": "a text that cannot be parsed",
    "unknown-column": "a name that no attribute has",
    "unknown-table": "a table that the domain does not declare",
    "window": "a window function that is not supported",
    "within": "a tolerance that is not a number above 0, or of no answer of the statement",
}
"""Each code with its meaning; `docs/reference/sql-errors.md` has an example of each."""

TOO_DEEP = "the statement is nested too deeply; write it with fewer parentheses and sub-selects"


def fail(code: str, sentence: str, node: Expr | None = None) -> SqlError:
    """Make an error that consists of one sentence."""
    return SqlError(sentence, code=code, at=None if node is None else node.at)


def refuse(
    code: str, found: str, advice: str, node: Expr | None = None, *, at: int | None = None
) -> SqlError:
    """Make the error that names what is not supported and what to write instead."""
    place = at if node is None else node.at
    return SqlError(
        f"{found} is not supported; {advice}", code=code, found=found, advice=advice, at=place
    )


def taken_name(clash: Label) -> SqlError:
    """The error for an answer whose name an earlier one has."""
    sentence = (
        f"the name {clash.name!r} is already taken on line {clash.line}; "
        "give each answer its own name with AS"
    )
    return SqlError(sentence, code="name")


def placed(error: SqlError, chunk: Chunk) -> SqlError:
    """The same error with its line and column in the batch."""
    if error.line is not None:
        return error
    at = 0 if error.at is None else error.at - chunk.start
    lines = chunk.text.count("\n", 0, at)
    column = at - chunk.text.rfind("\n", 0, at) if lines else chunk.column + at
    return error.replaced(line=chunk.line + lines, column=column, at=None)


@contextmanager
def in_statement(chunk: Chunk) -> Iterator[None]:
    """Give errors of a statement their line and column, those about its size too."""
    try:
        yield
    except SqlError as error:
        raise placed(error, chunk) from None
    except WorkloadError as error:
        raise placed(SqlError(str(error), code="size"), chunk) from None
    except RecursionError:
        raise placed(SqlError(TOO_DEEP, code="size"), chunk) from None
