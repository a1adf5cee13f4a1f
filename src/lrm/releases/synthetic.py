"""Synthetic rows, fitted to the released answers of a batch.

A function of the release alone: it costs no privacy. The rows have the declared values of
every attribute that the batch asks about; values that no query distinguishes are drawn evenly.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from lrm.clock import Clock, OnStep
from lrm.domain import Bins, Categories, Dates, Integers, Numbers
from lrm.domain.attributes import Attribute
from lrm.domain.ordered import EPOCH
from lrm.errors import UsageError
from lrm.files.writing import writing
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.linear import Integers as WholeNumbers
from lrm.releases.cell_tables import (
    QueryTerm,
    batch_terms,
    merged_attributes,
    value_counts,
)
from lrm.releases.changes import StatementChange, statement_changes
from lrm.releases.consistent import (
    ConsistentTable,
    ConsistentTables,
    KnownCounts,
    consistent_tables,
)
from lrm.releases.known import KnownTable, known_counts, known_words
from lrm.releases.row_fit import Goal, RowFit

if TYPE_CHECKING:
    from lrm.releases.core import Release

MOST_ROWS = 20_000_000
"""Rows that are made at most (about 4 bytes per row and attribute, several times)."""

WITHIN = 1.2
"""Root mean square of (rows − answer) / standard error up to which rows are within the noise."""

UNEVEN = 3.0
"""How unevenly distances may be shared among tables when the search ends; 1 is 0 to 4 % worse."""

ADVICE = (
    "These rows are made up. They are fitted to the published noisy answers and agree with them "
    "about as well as the noise allows. Use them to write and test programs, to draw the "
    "published tables, and for counts that the batch asked about. Do not use them for relations "
    "between columns that no statement asked about, for rare groups, or for standard errors "
    "and tests."
)


@dataclass(frozen=True)
class StatementFit(StatementChange):
    """How near the counts of the rows are to the released answers of one statement."""

    @property
    def verdict(self) -> str:
        """Whether the rows are as near to the answers as these are to the truth."""
        return "within the noise" if self.distance <= WITHIN else "farther than the noise"


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """Rows that are fitted to a release.

    Parameters
    ----------
    release
        The release whose answers the rows are fitted to.
    columns
        Values by column, one per row; None for a missing value.
    counts
        What the rows answer to each query of the batch.
    seed
        The same release, seed and number of rows give the same rows.
    scale
        Number of rows relative to the estimated number of rows of the table.
    drawn
        Columns with values that no query distinguishes, which are drawn evenly among them.
    left_out
        Attributes that no query asks about.
    known
        What was known from elsewhere, with its source, as a sentence; empty for nothing.
    """

    release: Release
    columns: dict[str, Any]
    counts: Floats
    seed: int
    scale: float
    drawn: tuple[str, ...]
    left_out: tuple[str, ...]
    known: str = ""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @cached_property
    def fits(self) -> tuple[StatementFit, ...]:
        """How near the rows are to each statement."""
        values = self.release.shown_values(self.counts / self.scale)
        changes = statement_changes(self.release, values)
        return tuple(StatementFit(each.name, each.distance, each.outside) for each in changes)

    @property
    def metadata(self) -> dict[str, str]:
        """What files of the rows state about them."""
        distance = math.sqrt(np.mean([fit.distance**2 for fit in self.fits])) if self.fits else 0.0
        stated = {
            "synthetic": "true",
            "guarantee": self.release.stated["guarantee"],
            "plan": self.release.plan.digest,
            "seed": str(self.seed),
            "rows": str(len(self)),
            "software": f"lrm {version('lrm')}",
            "distance": f"{distance:.3g} standard errors (root mean square over statements)",
            "advice": ADVICE,
        }
        if self.known:
            stated["known"] = self.known
        if self.drawn:
            stated["drawn evenly within groups"] = ", ".join(self.drawn)
        if self.left_out:
            stated["left out"] = ", ".join(self.left_out)
        return stated

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``; its schema has the metadata."""
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

        return pa.table(dict(self.columns), metadata=self.metadata)

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``; its ``attrs`` are the metadata."""
        frame = self.to_arrow().to_pandas()
        frame.attrs = self.metadata
        return frame

    def to_polars(self) -> Any:
        """The rows as a ``polars.DataFrame``."""
        import polars as pl  # noqa: PLC0415 - an extra

        return pl.from_arrow(self.to_arrow())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a ``.parquet`` file, with metadata, or to a ``.csv`` file."""
        import pyarrow.csv as pc  # noqa: PLC0415 - 0.1 s, for those who ask
        import pyarrow.parquet as pq  # noqa: PLC0415 - same

        ending = Path(path).suffix.lower()
        if ending not in {".parquet", ".csv"}:
            raise UsageError(
                f"rows are written to .parquet or .csv files, not {ending or 'no ending'}"
            )
        with writing(path) as file:
            if ending == ".parquet":
                pq.write_table(self.to_arrow(), file)
            else:
                pc.write_csv(self.to_arrow(), file)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page on how near the rows are to the answers."""
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        notebook.write_rows(self, path)

    def __repr__(self) -> str:
        return f"<SyntheticRows: {len(self):,} rows of {', '.join(self.columns)}>"


def synthesize(
    release: Release,
    rows: int | None = None,
    seed: int | None = None,
    on_step: OnStep | None = None,
    known: Sequence[KnownTable] = (),
) -> SyntheticRows:
    """Make rows whose counts are near the answers of a release.

    Parameters
    ----------
    release
        What was published.
    rows
        Number of rows; by default the estimated number of rows of the table.
    seed
        For the random choices; by default a new one, which the metadata state.
    on_step
        Called in each round; it may raise ``StopSolver`` to end with the rows so far.
    known
        Tables that were published exactly elsewhere: rows are fitted to answers that have them.

    Examples
    --------
    >>> import lrm
    >>> domain = lrm.Domain([lrm.Categories("sex", ["f", "m"])], table="people")
    >>> plan = lrm.plan(lrm.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", domain))
    >>> people = synthesize(lrm.release(plan, [300, 200], epsilon=1), rows=50, seed=1)
    >>> len(people), sorted(set(people.to_arrow()["sex"].to_pylist()))
    (50, ['f', 'm'])
    """
    number = secrets.randbits(32) if seed is None else seed
    if number < 0:
        raise UsageError(f"a seed must be a whole number from 0 on, not {number}")
    with threadpool_limits(1):  # several threads of linear algebra wait for each other: 4 times
        return _rows(release, rows, number, Clock(on_step=on_step), known)


def whole_counts(release: Release, total: float | None = None) -> Floats:
    """What the rows of seed 0 answer to each query: whole numbers of rows, which add up.

    ``total`` is a number of rows that is known from elsewhere.
    """
    if total is not None and total != round(total):
        raise UsageError(f"a known total of whole rows must be a whole number, not {total:,.10g}")
    facts = known_counts(release.plan.workload, ())
    with threadpool_limits(1):
        tables = consistent_tables(release.plan.workload, release.answers, total, facts)
        rows = round(_total(tables)) if total is None else round(total)
        if rows > MOST_ROWS:
            raise UsageError(
                f"whole numbers that add up are counts of rows, up to {MOST_ROWS:,}; the answers "
                f"are about {rows:,}: leave 'integer' out"
            )
        if rows == 0:
            return np.zeros(len(release.answers))
        counts = _Fitted.of(
            release, tables, facts, rows=rows, seed=0, clock=Clock(), near=total is None
        ).counts
    whole = np.rint(counts) + 0.0  # sums of products may miss whole numbers by rounding
    return np.where(np.isclose(counts, whole, rtol=1e-12, atol=1e-9), whole, counts)


def _rows(
    release: Release,
    rows: int | None,
    seed: int,
    clock: Clock,
    known: Sequence[KnownTable],
) -> SyntheticRows:
    """Make the rows."""
    workload = release.plan.workload
    facts = known_counts(workload, known)
    tables = consistent_tables(workload, release.answers, known=facts)
    fitted = _Fitted.of(release, tables, facts, rows=rows, seed=seed, clock=clock, near=not known)
    columns, drawn, left_out = _columns(release, fitted.labels, fitted.fit)
    words = known_words(workload, known)
    return SyntheticRows(
        release, columns, fitted.counts, seed, fitted.scale, drawn, left_out, words
    )


def _total(tables: ConsistentTables) -> float:
    """The number of rows that tables estimate."""
    return max((float(table.counts.sum()) for table in tables.tables), default=0.0)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Rows of merged values after the search, and what they answer to each query."""

    labels: list[WholeNumbers]
    fit: RowFit
    counts: Floats
    scale: float

    @classmethod
    def of(  # noqa: PLR0913 - what rows depend on
        cls,
        release: Release,
        tables: ConsistentTables,
        facts: Sequence[KnownCounts],
        *,
        rows: int | None,
        seed: int,
        clock: Clock,
        near: bool,
    ) -> _Fitted:
        """Rows near the released answers, or near consistent ones, which have what is known."""
        workload = release.plan.workload
        terms = batch_terms(workload, release.answers, workload.importance)
        exact = [term for fact in facts for term in batch_terms(fact.queries, fact.values)]
        labels = merged_attributes(value_counts(workload), [*terms, *exact])
        if not near:
            terms = batch_terms(workload, tables.answers, workload.importance)
        total = _total(tables)
        count = round(total) if rows is None else rows
        if not 1 <= count <= MOST_ROWS:
            raise UsageError(
                f"the number of rows must be from 1 to {MOST_ROWS:,}, not {count:,}"
                + (" (the estimate from the answers); give it" if rows is None else "")
            )
        scale = count / total if total > 0 else 1.0
        merged, empty = (
            [
                replace(t.merged([labels[i] for i in t.axes]), answers=t.answers * scale)
                for t in several
            ]
            for several in (terms, [term for term in exact if not np.any(term.answers)])
        )
        sizes = [int(each.max()) + 1 for each in labels]
        fit = RowFit(sizes, merged, count, seed, empty)
        fit.draw([_over_merged(table, labels) for table in tables.tables])
        goal = _goal(release, tables.answers, merged, scale) if near else None
        fit.improve(clock, _least(terms, tables.answers, scale), goal)
        return cls(labels, fit, np.concatenate([fit.answers(term) for term in merged]), scale)


def _least(terms: Sequence[QueryTerm], answers: Floats, scale: float) -> float:
    """F of the consistent answers, which rows hardly come below, and of rounding to whole rows."""
    weights = np.concatenate([term.weights for term in terms])
    change = np.concatenate([term.answers for term in terms]) - answers
    return float(weights @ ((scale * change) ** 2 + 1 / 12))


def _goal(release: Release, consistent: Floats, terms: Sequence[QueryTerm], scale: float) -> Goal:
    """Where the search ends, so that rows do not follow the noise.

    Consistent answers are nearer to the released ones than the truth is: with x times its squared
    distance. Rows may be 1 + x times as far: x² of the squared errors, of each term up to UNEVEN
    times as many. Where tables form many cycles, rows that come nearer are farther from the truth
    again: 258 after 249 for all pairs of ten columns of a census at epsilon 0.1.
    """
    ends = np.cumsum([len(term.answers) for term in terms])[:-1]
    squares = (consistent - release.answers) ** 2
    errors = release.standard_errors**2
    importance = release.plan.workload.importance
    weights = np.ones(len(squares)) if importance is None else importance
    near, noise = float(weights @ squares), float(weights @ errors)
    share = min(near / noise, 1.0) if noise > 0 else 0.0
    enough = scale**2 * near * (1.0 + share) + float(weights.sum()) / 12
    known = errors > 0
    precisions = np.divide(1.0, errors, out=np.zeros(len(errors)), where=known)
    each = precisions * (scale**2 * (squares + UNEVEN * share**2 * errors) + 1 / 12)
    return Goal(
        enough,
        [replace(t, weights=w) for t, w in zip(terms, np.split(precisions, ends), strict=True)],
        np.array([part.sum() for part in np.split(each, ends)]),
    )


def _over_merged(table: ConsistentTable, labels: list[WholeNumbers]) -> ConsistentTable:
    """The same table, its labels those of merged values in place of values."""
    of_merged = []
    for i, own in zip(table.axes, table.labels, strict=True):
        representatives = np.unique(labels[i], return_index=True)[1]
        of_merged.append(own[representatives])
    return ConsistentTable(table.axes, tuple(of_merged), table.counts)


def _columns(
    release: Release, labels: list[WholeNumbers], fit: RowFit
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Columns of declared values, names of those drawn evenly, and of those left out."""
    workload, domain = release.plan.workload, release.plan.workload.domain
    random = fit.random
    cells = {i: _members(labels[i], fit.values[i], random) for i in fit.attributes}
    merged = {i for i in fit.attributes if int(labels[i].max()) + 1 < len(labels[i])}
    if workload.products is None and domain is not None and len(domain.attributes) > 1:
        grid = labels[0].reshape(domain.shape)
        asked = [i for i in range(len(domain.attributes)) if np.any(grid != grid.take([0], axis=i))]
        places = np.unravel_index(cells[0], domain.shape)
        cells = {i: places[i] for i in asked}
        merged = set(asked) if merged else set()
    if domain is None:
        single = workload.products is None
        names = {i: "cell" if single else f"a{i + 1}" for i in cells}
        return {names[i]: cells[i] for i in cells}, tuple(names[i] for i in sorted(merged)), ()
    columns = {
        domain.names[i]: _values(domain.attributes[i], cells[i], random) for i in sorted(cells)
    }
    drawn = tuple(domain.names[i] for i in sorted(merged))
    return columns, drawn, tuple(name for name in domain.names if name not in columns)


def _members(
    labels: WholeNumbers, classes: WholeNumbers, random: np.random.Generator
) -> WholeNumbers:
    """Values drawn evenly among those that share a merged value."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    offsets = (random.random(len(classes)) * sizes[classes]).astype(np.int64)
    members: WholeNumbers = order[starts[classes] + np.minimum(offsets, sizes[classes] - 1)]
    return members


def _values(attribute: Attribute, cells: WholeNumbers, random: np.random.Generator) -> Any:
    """Declared values that fall into the given cells; null where a cell has none."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    regular = np.minimum(cells, attribute.regular - 1)
    missing = cells >= attribute.regular
    # The cell of what the rules of the attribute drop has missing values where they drop these.
    dropped = attribute.special_cell("(null)") if attribute.null == "drop" else None

    def special(label: str) -> int | None:
        place = attribute.special_cell(label)
        return None if place == dropped else place

    if isinstance(attribute, Categories):
        other = special("(other)")
        values: list[object] = list(attribute.values)
        texts = isinstance(attribute.values[0], str)
        kind = pa.array(values).type
        others = [
            "(other)" if texts and k == other else None for k in range(len(values), attribute.size)
        ]
        return pa.array([*values, *others], type=kind).take(pa.array(cells))
    if isinstance(attribute, Integers | Dates):
        low, high = attribute.starts[regular], attribute.ends[regular]
        whole = low + (random.random(len(cells)) * (high - low + 1)).astype(np.int64)
        for label, value in (
            ("(below)", int(attribute.starts[0]) - 1),
            ("(above)", attribute.last + 1),
        ):
            place = special(label)
            if place is not None:
                whole[cells == place] = value
                missing = missing & (cells != place)
        if isinstance(attribute, Integers):
            return pa.array(whole, mask=missing)
        since = whole - EPOCH * attribute.per_day
        return pa.array(
            since.astype("datetime64[us]" if attribute.time else "datetime64[D]"), mask=missing
        )
    if isinstance(attribute, Bins):
        numbers = _bin_values(attribute)[regular]
    elif isinstance(attribute, Numbers):
        numbers = np.array(attribute.knots, dtype=np.float64)[regular]
    else:
        raise UsageError(f"rows have no values of attribute {attribute.name!r}")
    nan = special("(nan)")
    if nan is not None:
        numbers[cells == nan] = np.nan
        missing = missing & (cells != nan)
    return pa.array(numbers, mask=missing, from_pandas=False)


def _bin_values(attribute: Bins) -> Floats:
    """One number inside each bin: its representative, else its middle or its finite end."""
    edges = np.array(attribute.edges, dtype=np.float64)
    low, high = edges[:-1], edges[1:]
    if attribute.representatives is not None:
        return np.array(attribute.representatives, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(low), middle, high - 1.0)
    return np.where(np.isfinite(high), middle, np.where(np.isfinite(low), low, 0.0))
