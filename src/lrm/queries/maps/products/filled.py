"""Tables with the cell that no answer displays: what a search for a strategy is about.

A table over declared values leaves out the last cell of an attribute, for rows that its rules drop.
As queries these tables lack the symmetry by which the errors of whole tables are known in closed
form, and a search over them takes several times as long and ends with larger errors. The count of
the last cell costs nothing where the others of its table are measured. So the search is about
tables with it, and each term weighs as much as before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lrm.queries.maps.leading import Leading
from lrm.queries.maps.linear import LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.words import word_factor


def filled(batch: ProductBatch) -> ProductBatch:
    """The batch with one more query for the last value in tables that leave it out.

    Examples
    --------
    >>> from lrm.queries.maps.products.batch import product_batch
    >>> from lrm.queries.maps.words import Identity
    >>> table = product_batch([3, 2], [[Leading(Identity(2)), "total"], ["total", "total"]])
    >>> filled(table).term_queries.tolist(), filled(table).weights.round(3).tolist()
    ([3, 1], [0.816, 1.0])
    """
    if not batch.simple:
        counts = np.bincount(batch.term_of, minlength=batch.terms)
        single = counts[batch.term_of] == 1
    else:
        single = np.ones(len(batch.choice), dtype=bool)
    factors, choice = list(batch.factors), batch.choice
    for axis, choices in enumerate(batch.factors):
        present = batch.present(axis)
        if not np.any(present == 0):  # all terms leave it out: the value is dropped
            continue
        tables = {int(f): _whole(choices[f]) for f in present}
        with_last = {f: table for f, table in tables.items() if table is not None}
        if not with_last:
            continue
        numbers = np.arange(len(choices))
        for f, whole in with_last.items():
            numbers[f] = len(factors[axis])
            factors[axis] = (*factors[axis], whole)
        choice = choice.copy() if choice is batch.choice else choice
        choice[single, axis] = numbers[batch.choice[single, axis]]
    if choice is batch.choice:
        return batch
    full = replace(batch, factors=tuple(factors), choice=choice)
    return replace(full, weights=batch.weights * np.sqrt(batch.term_queries / full.term_queries))


def _whole(factor: LinearMap) -> LinearMap | None:
    """The queries of a table and one of the last value; None for queries that are no such table."""
    if isinstance(factor, Leading):
        return word_factor(factor.inner.kind, factor.shape[1])
    if len(factor) < 2 or factor.is_word or factor.column_absolute_sums()[-1] > 0:
        return None
    rows = factor.dense()
    if not (np.isin(rows, (0.0, 1.0)).all() and np.all(rows[:, :-1].sum(axis=0) == 1.0)):
        return None
    last = np.zeros((1, factor.shape[1]))
    last[0, -1] = 1.0
    return DenseMap(np.vstack([rows, last]))
