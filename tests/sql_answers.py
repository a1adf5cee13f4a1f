"""A compiled statement on the cells of true rows, compared with DuckDB's answer on the rows."""

from __future__ import annotations

import math
import re

import numpy as np
import sqlglot

from lrm.batches import sql


class Table:
    """True rows: in DuckDB, and as the cell of each attribute.

    Parameters
    ----------
    connection
        DuckDB, with a table of the rows that the domain does not drop.
    cells
        The cell of each attribute, one column per attribute.
    """

    def __init__(self, connection, domain, cells):
        self.connection, self.domain, self.cells = connection, domain, np.asarray(cells)
        self._joint = {}

    def joint(self, axes):
        """Count the rows by the cells of some attributes."""
        if axes not in self._joint:
            shape = [self.domain.shape[axis] for axis in axes]
            flat = np.zeros(len(self.cells), dtype=np.int64)
            for axis, size in zip(axes, shape, strict=True):
                flat = flat * size + self.cells[:, axis]
            counts = np.bincount(flat, minlength=math.prod(shape))
            self._joint[axes] = counts.reshape(shape).astype(float)
        return self._joint[axes]

    def answers(self, batch):
        """Weights times counts, product by product: the domain may be very large."""
        products = batch.queries.batch
        found = {}
        for choice, coefficient, term in zip(
            products.choice, products.coefficients, products.term_of, strict=True
        ):
            factors = [products.factors[axis][number] for axis, number in enumerate(choice)]
            axes = tuple(axis for axis, one in enumerate(factors) if one.kind != "total")
            values = self.joint(axes)
            for place, axis in enumerate(axes):
                if factors[axis].kind != "identity":
                    rows = np.asarray(factors[axis].dense())
                    values = np.moveaxis(np.tensordot(rows, values, (1, place)), 0, place)
            found[term] = found.get(term, 0.0) + coefficient * values.ravel()
        return np.concatenate([found[term] for term in sorted(found)])

    def compare(self, statement):
        """Assert that weights times counts are DuckDB's answers, and so is what is displayed."""
        batch = sql(statement, self.domain)
        got = self.answers(batch)
        if re.search(r"\bUNION ALL\b", statement):
            theirs = [float(row[-1]) for row in self.connection.execute(statement).fetchall()]
            assert sorted(theirs) == sorted(got[got != 0].tolist())
            return
        groups = {name for label in batch.labels for name, _ in label.group}
        every = self._rows(_everything(statement), groups)
        ours = {}
        for label, value in zip(batch.labels, got, strict=True):
            ours.setdefault(label.query, {})[label.group] = float(value)
        hidden = {name for display in batch.display for name in display.hidden}
        shown = [name for name in ours if name not in hidden]
        for place, name in enumerate(shown):
            for group, value in ours[name].items():
                row = every.get(frozenset(group))
                want = 0.0 if row is None else row[place]
                assert math.isclose(value, want, rel_tol=1e-9, abs_tol=1e-6), (statement, group)
        assert every.keys() <= {frozenset(group) for group in ours[shown[0]]}, statement
        for display in batch.display:
            present = [group for group in ours[shown[0]] if frozenset(group) in every]
            self._compare_display(statement, display, present, ours, groups)

    def _compare_display(self, statement, display, present, ours, groups):
        theirs = self._rows(statement, groups)
        kept = display.shown(present, ours)
        assert len(kept) == len(theirs), statement
        if display.order:
            key = display.order[0]
            if key.labels is not None:
                assert [dict(group).get(key.column) for group in kept] == [
                    dict(group).get(key.column) for group in theirs
                ], statement
            elif key.column in display.queries:
                place = display.queries.index(key.column)
                ordered = [ours[key.column][group] for group in kept]
                assert np.allclose(ordered, [row[place] for row in theirs.values()]), statement

    def _rows(self, statement, groups):
        """The answers of each group as DuckDB has them."""
        found = self.connection.execute(statement)
        names = [column[0] for column in found.description]
        rows = {}
        for row in found.fetchall():
            pairs = list(zip(names, row, strict=True))
            key = frozenset((name, text_of(value)) for name, value in pairs if name in groups)
            assert key not in rows
            rows[key] = [float(value or 0) for name, value in pairs if name not in groups]
        return rows


def _everything(statement):
    """The statement without what only orders, filters and cuts its answers."""
    tree = sqlglot.parse_one(statement, read="duckdb")
    if tree.args["from_"].this.find(sqlglot.exp.AggFunc) or any(
        one.this.args.get("group") for one in tree.ctes
    ):
        tree.set("where", None)
    for part in ("having", "order", "limit", "offset"):
        tree.set(part, None)
    return tree.sql(dialect="duckdb")


def text_of(value):
    """The label of a group."""
    if value is None:
        return "(null)"
    return str(value).lower() if isinstance(value, bool) else str(value)
