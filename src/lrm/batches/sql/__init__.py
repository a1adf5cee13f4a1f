"""SQL batches → weights over the cells of a domain. Parsed, never executed.

A batch is a text of ``SELECT`` statements over the declared table. Each is compiled, with
SQL's three-valued logic, to one row of weights per answer and group, so that the answers
are ``matrix @ counts``. Whatever is not on the list below is refused by name.

- answers: ``COUNT(*)``, ``COUNT(expression)``, ``COUNT_IF``, ``SUM(expression)``, each with
  ``FILTER (WHERE …)``; their sums, differences, constant multiples and quotients by constants;
  names by ``AS``
- derived answers, computed from such linear ones: ``AVG``, ``VARIANCE``, ``STDDEV``, ``CORR``,
  ``REGR_SLOPE``, quotients, products and functions of aggregates, ``MEDIAN``,
  ``QUANTILE_CONT``, ``PERCENTILE_CONT … WITHIN GROUP``
- conditions: ``= <> < <= > >= IN BETWEEN IS NULL`` of an attribute and constants, on cells of
  any kind, with ``AND OR NOT``; any other expression of deterministic functions that has one
  value on every cell, evaluated by DuckDB on the declared values
- groups: ``GROUP BY`` attributes or expressions, ``ROLLUP``, ``CUBE``, ``GROUPING SETS``
- statements: ``WITH``, sub-selects that filter, rename or compute columns or have one row,
  ``UNION ALL``, ``JOIN`` to lookups of the domain
- windows over groups: ``SUM``, ``AVG``, ``LAG``, ``LEAD``, ``FIRST_VALUE``, ``LAST_VALUE``
- ``HAVING``, ranks, ``QUALIFY``, ``ORDER BY``, ``LIMIT`` and ``OFFSET`` of the displayed answers
- other dialects, declared by ``-- dialect: snowflake`` before the first statement

What differs from running the text on the table:

- Rows that the domain drops are in no count: ``COUNT(*)`` counts rows within the domain.
- A group is a declared cell, and every declared group that ``WHERE`` may be true of has an
  answer, empty or not.
- A sum over no rows is 0, where SQL says NULL.
- A constant that cuts through a cell is refused with the nearest edges, never rounded. A text
  that is not declared equals no row, with a warning; it cuts through the cell ``(other)``.
- Expressions see integers as BIGINT, texts as VARCHAR and dates as DATE.
- A column declared as dates is compared by its day.
- Every comparison with an ``(invalid)`` value is unknown, as with NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.workload import Workload

__all__ = ["sql"]


def sql(text: str, domain: Domain) -> Workload:
    """Compile a batch of ``SELECT`` statements to weights over ``domain``'s cells.

    Parameters
    ----------
    text
        Statements separated by semicolons. An answer is named by ``AS``, else by its
        statement: ``q3``, or ``q3.1``, ``q3.2`` where it has several. Comments are free, but
        for ``-- importance: 4`` before a statement, which says how much its error counts for.
    domain
        The public domain. Where it names its table, statements must read that table.

    Raises
    ------
    SqlError
        With the line, what was found there and what to write instead.

    Examples
    --------
    >>> from lrm.domain import Categories, Domain, Integers
    >>> domain = Domain([Categories("state", ["NY", "NJ"]), Integers("age", 0, 3)], "people")
    >>> batch = sql('''
    ...     SELECT COUNT(*) FROM people WHERE age >= 2;
    ...     SELECT state, SUM(age) AS years FROM people GROUP BY ROLLUP (state)''', domain)
    >>> for name, row in zip(batch.names, batch.queries.dense().astype(int)):
    ...     print(row, name)
    [0 0 1 1 0 0 1 1] q1
    [0 1 2 3 0 0 0 0] years[state=NY]
    [0 0 0 0 0 1 2 3] years[state=NJ]
    [0 1 2 3 0 1 2 3] years
    >>> sql("SELECT COUNT(*) FROM people JOIN visits USING (id)", domain)
    Traceback (most recent call last):
    ...
    lrm.errors.SqlError: line 1: JOIN is not supported; a query reads only the declared table
    """
    # sqlglot takes a tenth of a second to import, so it is imported only to compile.
    from lrm.batches.sql.compile import compile_batch  # noqa: PLC0415

    return compile_batch(text, domain)
