"""A compiled statement on the cells of true rows, compared with DuckDB's answer on the rows."""

from __future__ import annotations

import decimal
import math
import re

import numpy as np
import sqlglot
from sqlglot import exp

from lrm.domain import Bins
from lrm.planning.derived import Noisy, derived_values
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.sql import sql
from lrm.queries.workload import Quantile


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
        self.connection, self.domain = connection, domain
        self.cells = np.asarray(cells, dtype=np.int64).reshape(-1, len(domain.shape))
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
        if not isinstance(batch.queries, ProductMap):
            return batch.queries.apply(self.joint(tuple(range(len(self.domain.shape)))).ravel())
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

    def exact(self, batch):
        """Answers without noise, by query and group, each with the error that bins may have."""
        return self._ours(batch, self.answers(batch))

    def compare(self, statement, reference=None):
        """Assert that weights times counts are DuckDB's answers, and so is what is displayed.

        ``reference`` asks DuckDB for the same where the statement is in another dialect.
        """
        batch = sql(statement, self.domain)
        statement = reference or statement
        got = self.answers(batch)
        groups = {name for label in batch.shown for name, _ in label.group}
        described = self.connection.execute(_everything(statement)).description
        selected = groups <= {column[0] for column in described}
        if re.search(r"\bmode\(", statement, re.IGNORECASE):
            self._compare_modes(statement, batch, got)
            return
        chosen = re.search(r"\b(JOIN|IN \(SELECT)\b", statement)
        if any(one.left_out or (one.qualify and chosen) for one in batch.display):
            self._compare_columns(statement, batch, got)
            return
        if re.search(r"\bUNION ALL\b", statement) or not selected:
            self._compare_values(statement, batch, got, groups)
            return
        names, every = self._named_rows(_everything(statement), groups)
        ours = self._ours(batch, got)
        hidden = {name for display in batch.display for name in display.hidden}
        shown = [name for name in ours if name not in hidden]
        beside = [name for name in shown if "(" in name]  # what CASE compares is displayed
        for name in [name for name in shown if name not in beside or name in names]:
            place = names.index(name) if name in names else _number(name)
            for group, (value, allowed) in ours[name].items():
                row = every.get(frozenset(group))
                if row is None and "OVER" in statement:
                    continue  # an empty group has a running total, which DuckDB does not list
                want = math.nan if row is None else row[place]
                if math.isnan(want) and allowed is not None:
                    # An empty group has no average; a sum over no rows is 0 here, in SQL NULL.
                    assert math.isnan(value) or row is None or value == 0, (statement, group, value)
                    continue
                want = 0.0 if math.isnan(want) else want
                close = abs(value - want) <= 1e-6 + 1e-9 * abs(want) + (allowed or 0.0)
                assert close, (statement, group, value, want, allowed)
        # Where LAG has no group before, there is no answer, which is NULL in SQL.
        some = {group for group, row in every.items() if not all(map(_is_nan, row))}
        assert some <= {frozenset(group) for own in ours.values() for group in own}, statement
        plain = {
            name: {group: value for group, (value, _) in own.items()} for name, own in ours.items()
        }
        rough = any(error for own in ours.values() for _, error in own.values())
        rough = rough or any(_is_nan(value) for row in every.values() for value in row)
        for display in batch.display:
            first = next(iter(plain.values()))
            present = [group for group in first if frozenset(group) in every]
            if not rough:  # bins, and sums that are NULL in DuckDB, may change the order
                values = {**plain, **display.rank_values(present, plain)}
                self._compare_display(statement, display, present, values, groups)

    def _compare_columns(self, statement, batch, got):
        """Assert that the rows that are displayed are DuckDB's, without the groups left out."""
        (display,) = batch.display
        ours = self._ours(batch, got)
        plain = {
            name: {group: value for group, (value, _) in own.items()} for name, own in ours.items()
        }
        groups = list(dict.fromkeys(group for own in plain.values() for group in own))
        columns = {**plain, **display.rank_values(groups, plain)}
        found = self.connection.execute(statement)
        names = [column[0] for column in found.description]
        theirs = [tuple(map(_value_of, row)) for row in found.fetchall()]
        labelled = {name for group in groups for name, _ in group}
        places = [name for name in names if name not in labelled]
        named = {
            name: name if name in columns else display.queries[place]
            for place, name in enumerate(places)
        }
        rows = [
            tuple(columns[named[n]][group] if n in named else dict(group)[n] for n in names)
            for group in display.shown(groups, plain)
        ]
        assert len(rows) == len(theirs), statement
        if not display.order:
            rows, theirs = (sorted(some, key=str) for some in (rows, theirs))
        for one, two in zip(rows, theirs, strict=True):
            assert all(map(_same, one, two)), (statement, one, two)

    def _compare_modes(self, statement, batch, got):
        """Assert that DuckDB's most frequent values have the largest counts of their groups."""
        counts = {group: value for group, (value, _) in self._ours(batch, got)["rows"].items()}
        (display,) = batch.display
        kept = display.shown(
            list(counts), {"rows": counts, **display.rank_values(list(counts), {"rows": counts})}
        )
        partition = display.ranks[0].partition
        best = {frozenset(dict(group)[name] for name in partition): counts[group] for group in kept}
        names = [name for name, _ in next(iter(counts))]
        found = self.connection.execute(statement)
        columns = [one[0] if one[0] in names else "mode" for one in found.description]
        rows = found.fetchall()
        assert rows
        for row in rows:
            labels = {name: text_of(value) for name, value in zip(columns, row, strict=True)}
            group = tuple((name, labels[name]) for name in names)
            assert counts[group] == best[frozenset(labels[name] for name in partition)], statement

    def _compare_values(self, statement, batch, got, groups):
        """Assert that the same numbers are answered, whatever they are called."""
        found = self.connection.execute(_everything(statement))
        kept = [k for k, column in enumerate(found.description) if column[0] not in groups]
        kinds = (int, float, decimal.Decimal)
        rows = [[row[k] for k in kept if type(row[k]) in kinds] for row in found.fetchall()]
        theirs = sorted(float(one) for row in rows for one in row if one)
        hidden = {name for display in batch.display for name in display.hidden}
        ours = [
            value
            for name, query in self._ours(batch, got).items()
            if name not in hidden
            for group, (value, _) in query.items()
            if value and not math.isnan(value)
        ]
        assert len(ours) == len(theirs), statement
        assert np.allclose(sorted(ours), theirs), statement

    @staticmethod
    def _ours(batch, got):
        """Answers by query and group, with the error that bins may have; None where exact."""
        ours = {}
        ranges = batch.labels.shown_ranges()
        for label, value in (
            pair
            for start, stop in ranges
            for pair in zip(batch.labels[start:stop], got[start:stop], strict=True)
        ):
            ours.setdefault(label.query, {})[label.group] = float(value), None
        noisy = Noisy(lambda start, stop: got[start:stop], None)
        for one in batch.derived:
            values = derived_values(one, 0, one.label.count, noisy)
            for place, (label, value) in enumerate(zip(one.label, values, strict=True)):
                allowed = _allowed(one, place, got)
                ours.setdefault(label.query, {})[label.group] = float(value), allowed
        return ours

    def _compare_display(self, statement, display, present, ours, groups):
        names, theirs = self._named_rows(statement, groups)
        kept = display.shown(present, ours)
        assert len(kept) == len(theirs), statement
        places = names if set(names) <= ours.keys() else display.queries
        for group in kept:  # what is chosen changes no answer
            row = theirs.get(frozenset(group), [])  # none where LIMIT chooses among equals
            for name, want in zip(places, row, strict=False):
                assert _same(ours[name].get(group, math.nan), want), (statement, group, name)
        if display.order:
            key = display.order[0]
            if key.labels is not None:
                assert [dict(group).get(key.column) for group in kept] == [
                    dict(group).get(key.column) for group in theirs
                ], statement
            elif key.column in places:
                place = places.index(key.column)
                ordered = [ours[key.column][group] for group in kept]
                assert np.allclose(ordered, [row[place] for row in theirs.values()]), statement

    def _rows(self, statement, groups):
        return self._named_rows(statement, groups)[1]

    def _named_rows(self, statement, groups):
        """The names of the answers, and those of each group, as DuckDB has them.

        Groups of numbers in bins are added up; a group that is rolled up has no label.
        """
        found = self.connection.execute(statement)
        names = [column[0] for column in found.description]
        binned = {one.name: one for one in self.domain.attributes if isinstance(one, Bins)}
        rolled = re.search(r"\b(ROLLUP|CUBE|GROUPING SETS)\b", statement)
        rolled = rolled and not re.search(r"GROUPING\(\w+\) = 1", statement, re.IGNORECASE)
        rows = {}
        for row in found.fetchall():
            pairs = list(zip(names, row, strict=True))
            labels = {
                name: binned[name].labels[binned[name].cell_of(value)]
                if name in binned
                else text_of(value)
                for name, value in pairs
                if name in groups and not (rolled and value is None)
            }
            key = frozenset(labels.items())
            assert key not in rows or binned.keys() & labels.keys()
            values = [_value_of(v) for name, v in pairs if name not in groups]
            before = rows.get(key)
            rows[key] = (
                [one + two for one, two in zip(before, values, strict=True)] if before else values
            )
        return [name for name in names if name not in groups], rows


def in_duckdb(text):
    """A statement that declares its dialect in DuckDB's, whatever the schema of its table."""
    first, _, rest = text.partition("\n")
    if not first.startswith("-- dialect: "):
        return text
    dialect = first.removeprefix("-- dialect: ")
    tree = sqlglot.parse_one(rest, read=dialect)
    if dialect in {"bigquery", "snowflake", "tsql"}:  # the beginning of a month is a date there
        for node in list(tree.find_all(exp.DateTrunc, exp.TimestampTrunc)):
            node.replace(exp.cast(node.copy(), "DATE"))
    for table in tree.find_all(exp.Table):
        name = exp.to_identifier(table.name.rpartition(".")[2])
        table.replace(exp.Table(this=name, alias=table.args.get("alias")))
    return tree.sql(dialect="duckdb")


def _value_of(value):
    """A value of DuckDB as answers and computed columns have it."""
    if value is None:
        return math.nan
    return text_of(value) if isinstance(value, str | bool) else float(value)


def _is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def _same(one, two):
    if isinstance(one, str) and isinstance(two, float) and not _is_nan(two):
        one = float(one)  # the label of a column of groups
    if isinstance(one, str) or isinstance(two, str):
        return one == two or (one == "(null)" and _is_nan(two))
    return (_is_nan(one) and _is_nan(two)) or bool(np.isclose(one, two))


def _number(name):
    """The place of an answer without a name: q1.3 is the third."""
    return int(name.partition(".")[2] or 1) - 1


def _allowed(one, place, got):
    """How far an exact derived answer may lie from DuckDB's."""
    if isinstance(one, Quantile):  # the cells of the two rows that it lies between
        totals = got[one.totals.rows((*one.shape, len(one.lows))).reshape(-1, len(one.lows))[place]]
        n = totals[-1]
        if not n:
            return math.inf
        near = [
            np.argmax(totals >= np.clip(one.level * (n - 1) + k, 0.5, n)) for k in (-0.01, 1.01)
        ]
        return max(one.highs[near[1]] - one.lows[near[0]], 0.0)
    if one.binning is None:
        return 0.0
    return one.binning * (1e4 if one.per_row else 1.0)


def _everything(statement):
    """The statement without what only orders, filters and cuts its answers."""
    tree = sqlglot.parse_one(statement, read="duckdb")
    if isinstance(tree, exp.Pivot):
        return statement
    tree.set("qualify", None)
    if tree.args.get("distinct") and tree.args["distinct"].args.get("on"):
        tree.set("distinct", None)
    source = tree.args.get("from_")
    adds_up = tree.args.get("group") or not source
    grouped = any(one.this.args.get("group") for one in tree.ctes)
    if not adds_up and (grouped or source.this.find(exp.AggFunc)):
        answers = {
            "n",
            "rate",
            "rn",
            "r",
            "rnk",
        }  # what statements filter answers of sub-selects by
        _keep(tree, "where", lambda one: not {c.name for c in one.find_all(exp.Column)} & answers)
    items = {one.alias: one for one in tree.expressions}
    _keep(tree, "having", lambda one: not _aggregates(one, items))
    for part in ("order", "limit", "offset"):
        tree.set(part, None)
    return tree.sql(dialect="duckdb")


def _aggregates(node, items):
    """Whether a condition reads an aggregate, by its text or by its name."""
    named = (items.get(one.name) for one in node.find_all(exp.Column))
    return any(one is not None and one.find(exp.AggFunc) for one in (node, *named))


def _keep(tree, part, wanted):
    """Keep some of the conditions of a clause that AND joins."""
    clause = tree.args.get(part)
    if clause is not None:
        parts = clause.this.flatten() if isinstance(clause.this, exp.And) else [clause.this]
        kept = [one.copy() for one in parts if wanted(one)]
        tree.set(part, type(clause)(this=exp.and_(*kept)) if kept else None)


def text_of(value):
    """The label of a group."""
    if value is None:
        return "(null)"
    value = value + 0.0 if isinstance(value, float) else value  # -0.0 is in the group of 0.0
    return str(value).lower() if isinstance(value, bool) else str(value)
