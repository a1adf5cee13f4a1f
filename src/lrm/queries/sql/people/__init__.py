"""SQL over the private tables of a people → SQL over one level, and the features that it needs.

A statement is about persons or about events (`lrm.domain.people`). Here its tree is rewritten into
one that reads a single table, which the compiler of single tables then takes:

==============================================================  ===================================
written                                                         read as
==============================================================  ===================================
``FROM customers``                                              persons
``[NOT] EXISTS (SELECT … FROM orders WHERE customer = id …)``   persons, a yes/no feature
``id [NOT] IN (SELECT customer FROM orders …)``                 persons, a yes/no feature
``LEFT JOIN orders … WHERE orders.customer IS NULL``            persons without the feature
``COUNT(DISTINCT customer) FROM orders …``                      persons with a yes/no feature
``FROM (SELECT customer, COUNT(*) … GROUP BY customer)``        persons with orders, features
``… QUALIFY ROW_NUMBER() OVER (PARTITION BY customer …) = 1``   persons, features of their first row
``FROM orders JOIN customers ON customer = id``                 events, with the person's columns
``SUM(amount) / COUNT(DISTINCT customer) FROM orders``          both, each aggregate one of them
==============================================================  ===================================

Whatever is none of these is an error. Nothing is executed.

The statements of a batch may read several levels (`lrm.domain.people.Levels`): each SELECT then has
the condition that its rows are of one of them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.domain.people import Level, Levels, People
from lrm.errors import SqlError
from lrm.queries.sql.compile import compile_batch
from lrm.queries.sql.people.select import table_of
from lrm.queries.sql.people.statements import Lowering
from lrm.queries.sql.refusals import in_statement
from lrm.queries.sql.source import DUCKDB, Chunk, parsed, split

if TYPE_CHECKING:
    from lrm.queries.workload import Workload


def compile_people(text: str, people: People, level: Level | Levels | None = None) -> Workload:
    """Compile a batch of SELECT statements over the tables of a people.

    With ``level``, what they read must be in it: features that it lacks are an error.
    """
    chunks = split(text)
    lowering = Lowering(people, level)
    trees = []
    for chunk in chunks:
        with in_statement(chunk):
            trees.append(lowering.statement(parsed(chunk)))
    level = lowering.level() if level is None else lowering.within(level)
    rewritten, end = [], 0
    for chunk, tree in zip(chunks, trees, strict=True):
        rewritten += [text[end : chunk.start], _written(tree, chunk)]
        end = chunk.start + len(chunk.text)
    return compile_batch("".join([*rewritten, text[end:]]), level.domain)


def reads_tables(text: str, people: People) -> bool:
    """Whether a batch names a private table of a people; not where it cannot be parsed."""
    for chunk in split(text):
        with suppress(SqlError):
            tables = parsed(chunk).find_all(exp.Table)
            if any(table_of(people, table) is not None for table in tables):
                return True
    return False


def _written(tree: exp.Expr, chunk: Chunk) -> str:
    """A tree as text on as many lines as the statement had, so that errors name its lines."""
    plain = tree.sql(dialect=chunk.dialect or DUCKDB, comments=False)
    return plain + "\n" * chunk.text.count("\n")
