"""Linear queries by column: the answers of one name in all groups, and who needs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.queries.workload.core import Workload


@dataclass(frozen=True, eq=False)
class StatementColumns:
    """The columns of a batch, and those that each of its statements is answered from."""

    of_row: NDArray[np.int64]  # the column of each linear query
    sizes: NDArray[np.int64]
    # The columns of each statement: those it shows, and the inputs of its derived answers.
    statements: tuple[tuple[int, ...], ...]

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean over each column of one number per query."""
        return np.bincount(self.of_row, values, len(self.sizes)) / self.sizes


def statement_columns(workload: Workload, *, by_table: bool = False) -> StatementColumns:
    """Find the columns of a batch of statements.

    With ``by_table``, each table of groups is a column of its own, where several have one name.

    >>> import lrm
    >>> domain = lrm.Domain([lrm.Integers("age", 0, 4)], "people")
    >>> text = "SELECT COUNT(age) AS n FROM people; SELECT AVG(age) AS m FROM people"
    >>> statement_columns(lrm.sql(text, domain)).statements
    ((0,), (0, 1))
    """
    numbers: dict[object, int] = {}
    columns, sizes = [], []
    blocks = workload.labels.tables() if by_table else workload.labels.blocks
    for place, block in enumerate(blocks):
        named = len(block.queries) == 1 and not by_table
        key = (block.line, block.query) if named else place
        columns.append(numbers.setdefault(key, len(numbers)))
        sizes.append(len(block))
    of_row = np.repeat(np.array(columns, dtype=np.int64), sizes)
    statements = []
    for statement in workload.statements:
        members = set(np.unique(of_row[slice(*statement.rows)]).tolist())
        for derived in workload.derived[slice(*statement.derived)]:
            # The queries of one input are of one column.
            members |= {int(of_row[rows.flat[0]]) for rows in derived.input_rows() if rows.size}
        statements.append(tuple(sorted(members)))
    return StatementColumns(of_row, np.bincount(of_row, minlength=len(numbers)), tuple(statements))
