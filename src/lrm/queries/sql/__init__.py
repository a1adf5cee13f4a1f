"""SQL batches → weights over the cells of a domain. Parsed, never executed.

A batch is a text of ``SELECT`` statements over the declared table. Each is compiled, with
SQL's three-valued logic, to one row of weights per answer and group, so that the answers
are ``matrix @ counts``; rates, averages and quantiles are computed from such linear answers.
Whatever no table of the compiler names is refused by name. What is supported, and what differs from
running the text on the table, is on the page ``docs/reference/sql.md``.

The way of a statement: `source` (text → tokens) → `build` and `bind` (sqlglot's tree → a `plan`
over expressions of `expr`) → `rewrite` (one normal form) → `select` (answers, display) →
`formulas` (linear parts) → `weights` (what one row adds) → products over attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.domain.people import People
    from lrm.queries.workload import Workload

__all__ = ["sql"]


def sql(text: str, domain: Domain | People) -> Workload:
    """Compile a batch of ``SELECT`` statements to weights over ``domain``'s cells.

    Parameters
    ----------
    text
        Statements separated by semicolons. An answer is named by ``AS``, else by its
        statement: ``q3``, or ``q3.1``, ``q3.2`` where it has several. Comments are free, but
        for ``-- importance: 4`` before a statement, which says how much its error counts for.
    domain
        The public domain. Where it names its table, statements must read that table. Statements
        over a `People` read its tables (`lrm.queries.sql.people`).

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
    from lrm.domain.people import People  # noqa: PLC0415
    from lrm.queries.sql.compile import compile_batch  # noqa: PLC0415

    if isinstance(domain, People):
        from lrm.queries.sql.people import compile_people  # noqa: PLC0415

        return compile_people(text, domain)
    if domain.level is not None:  # further queries of a release may name the private tables
        from lrm.queries.sql.people import compile_people, reads_tables  # noqa: PLC0415

        if reads_tables(text, domain.level.people):
            return compile_people(text, domain.level.people, domain.level)
    return compile_batch(text, domain)
