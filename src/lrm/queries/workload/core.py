"""Workload: a batch of named linear queries over the cells of a domain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lrm.domain import Domain
from lrm.errors import WorkloadError
from lrm.files.spelling import how_many, many
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import as_map
from lrm.queries.maps.products.map import ProductMap, products_of
from lrm.queries.workload.derived import Derived, check_derived
from lrm.queries.workload.display import Display
from lrm.queries.workload.label_blocks import LabelBlock
from lrm.queries.workload.labels import Labels, Names, repeated_name
from lrm.queries.workload.statements import Statement, check_statements, statements_of
from lrm.queries.workload.uses import Uses, counted_rest, over_all_rows, unused_axes

EXPLICIT_QUERIES = 1 << 22
"""Above this many queries (4 million), per-query lists are refused."""

MOST_LISTED = 1 << 27
"""Answers that one array holds at most: 1 GB per column."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A batch of linear queries with their labels and importances.

    Parameters
    ----------
    queries
        The linear map: an array, a SciPy sparse matrix, or a structured map. The index of a
        pandas frame gives the names.
    names
        One name per query, all different; q1, q2, … by default.
    labels
        In place of names: the query, the group and the line of each answer.
    importance
        How much a query's squared error counts for when a strategy is chosen
        (1 each by default). It changes no answer and no stated error.
    domain
        The public domain whose cells the columns are, where there is one.
    derived
        Answers that are computed from those of the queries, such as rates and medians.
    display
        How the answers of some queries are displayed: ORDER BY, LIMIT and HAVING of SQL.
    statements
        Which answers form one table, as the statements of SQL do. It changes no answer, and is not
        part of the digest.
    uses
        Which attributes each query uses; all of them by default. A row that an attribute drops
        counts in the queries that do not use it (`over_all_rows`).

    >>> workload = Workload([[1, 1, 0], [0, 1, 1]], names=["young", "old"])
    >>> workload.shape, workload.names[1]
    ((2, 3), 'old')
    """

    queries: LinearMap
    labels: Labels
    importance: Floats | None
    domain: Domain | None
    derived: tuple[Derived, ...]
    display: tuple[Display, ...]
    statements: tuple[Statement, ...]
    uses: Uses | None

    def __init__(  # noqa: PLR0913 - what a batch consists of
        self,
        queries: LinearMap | ArrayLike | sp.sparray,
        *,
        names: Sequence[str] | None = None,
        labels: Labels | None = None,
        importance: ArrayLike | None = None,
        domain: Domain | None = None,
        derived: Iterable[Derived] = (),
        display: Iterable[Display] = (),
        statements: Iterable[Statement] = (),
        uses: Uses | None = None,
    ) -> None:
        checked = as_map(queries)
        m, n = checked.shape
        if domain is not None and domain.size != n:
            raise WorkloadError(
                f"workload covers {how_many(n)} cells but the domain has {how_many(domain.size)}; "
                "was it built for another domain?"
            )
        set_field = object.__setattr__
        set_field(self, "queries", checked)
        query_labels = _frame_labels(queries) if names is None and labels is None else labels
        set_field(self, "labels", _checked_labels(names, query_labels, m))
        set_field(self, "importance", _checked_importance(importance, m))
        set_field(self, "domain", domain)
        set_field(self, "derived", tuple(derived))
        set_field(self, "display", tuple(display))
        set_field(self, "statements", tuple(statements))
        set_field(self, "uses", uses)
        if uses is not None:
            uses.check(m, 0 if domain is None else len(domain.attributes))
        check_derived(self.derived, m)
        check_statements(self.statements, m, len(self.derived), len(self.display))
        if self.derived:
            _ = self.shown  # refuses a name that is taken

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and number of cells."""
        return self.queries.shape

    @property
    def declared_size(self) -> int:
        """Number of cells that are declared: without those of rows that the domain drops."""
        return self.shape[1] if self.domain is None else self.domain.declared.size

    @property
    def products(self) -> ProductMap | None:
        """The queries as products over attributes; None for a list of cells."""
        return products_of(self.queries)

    def is_count(self, row: int) -> bool:
        """Whether a query over a domain counts rows, each once; others are sums."""
        if self.products is None:
            return self.domain is None or bool(
                np.isin(self.queries.rows(row, row + 1), (0, 1)).all()
            )
        batch = self.products.batch
        return bool(batch.counting_terms[np.searchsorted(batch.term_ends, row, side="right")])

    @property
    def names(self) -> Names:
        """One name per query, made from its label."""
        return self.labels.names

    @cached_property
    def shown(self) -> Labels:
        """Labels of all shown answers: queries that are not hidden, then derived answers."""
        if not self.derived:
            return self.labels
        return Labels(
            [
                *self.labels.shown_blocks(),
                *(derived_answer.label for derived_answer in self.derived),
            ]
        )

    @cached_property
    def tables(self) -> tuple[Statement, ...]:
        """The tables of the answers: one per statement, or made from the labels."""
        if self.statements:
            return self.statements
        return statements_of(self.labels, self.derived, self.display, self.domain)

    def __len__(self) -> int:
        """Number of statements."""
        return len(self.tables)

    def __iter__(self) -> Iterator[str]:
        """The names of the statements."""
        return (statement.name for statement in self.tables)

    def __contains__(self, name: object) -> bool:
        """Whether a statement or an answer has this name."""
        if not isinstance(name, str):
            return False
        tables = self.tables
        return any(name == table.name or name in table.answers for table in tables) or (
            name in self.shown.query_names()
        )

    def __bool__(self) -> bool:
        """A batch is true, whatever its number of statements."""
        return True

    @property
    def expected_rows(self) -> list[float | None]:
        """For each derived answer, the rows of a usual group that its statement states."""
        expected: list[float | None] = [None] * len(self.derived)
        for statement in self.tables:
            for place in range(*statement.derived):
                expected[place] = statement.expected
        return expected

    @property
    def unused_axes(self) -> tuple[int, ...]:
        """The attributes whose dropped rows some query counts, as it does not use them."""
        return () if self.domain is None else unused_axes(self.queries, self.uses, self.domain)

    def dropping(self, statement: Statement) -> tuple[str, ...]:
        """The columns whose rules drop rows from a statement: of `over_all_rows`, those it uses."""
        domain = self.domain
        if domain is None:
            return ()
        inputs = [
            rows.ravel()
            for answer in self.derived[slice(*statement.derived)]
            for rows in answer.input_rows()
        ]
        used = np.unique(np.concatenate([np.arange(*statement.rows), *inputs]))
        counted = counted_rest(self.queries, used, domain)
        names = [domain.attributes[axis].source for axis in counted]
        return tuple(name for name in domain.dropping if name not in names)

    def over_all_rows(self, axes: Iterable[int] | None = None) -> Workload:
        """The same queries with a cell for the rows that an attribute drops, where one is needed.

        An attribute gets one if some query does not use it; or, where ``axes`` are given, these
        attributes do, and rows that others drop are in no query.

        Examples
        --------
        >>> from lrm.domain import Categories, Domain
        >>> from lrm.queries.builders import marginals
        >>> domain = Domain([Categories("sex", ["f", "m"])])
        >>> marginals(domain, [[], ["sex"]]).over_all_rows().queries.dense().astype(int).tolist()
        [[1, 1, 1], [1, 0, 0], [0, 1, 0]]
        """
        if self.domain is None:
            return self
        needed = self.unused_axes if axes is None else axes
        new = set(needed).difference(self.domain.rest_axes)
        if not new:
            return self if self.uses is None else replace(self, uses=None)
        return replace(
            self,
            queries=over_all_rows(self.queries, self.uses, self.domain, new),
            domain=self.domain.with_rest({*new, *self.domain.rest_axes}),
            uses=None,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the queries, their labels and importances, of derived answers and displays."""
        return self._digest(self.importance)

    @property
    def unweighted_digest(self) -> str:
        """The digest of the same batch without importances."""
        return self._digest(None)

    def _digest(self, importance: Floats | None) -> str:
        seal = hashlib.sha256(self.queries.digest.encode() + self.labels.digest.encode())
        if importance is not None:
            seal.update(importance.tobytes())
        for derived_answer in self.derived:
            seal.update(json.dumps(derived_answer.facts(lines=False)).encode() + b"\n")
        for display in self.display:
            seal.update(json.dumps(display.facts).encode() + b"\n")
        return seal.hexdigest()

    def __repr__(self) -> str:
        return f"<Workload: {self.extent} ({self.queries.kind})>"

    @property
    def extent(self) -> str:
        """How many queries there are, over how many declared cells, in words."""
        queries, cells = self.shape[0], self.declared_size
        return f"{many(queries, 'query', 'queries')} over {many(cells, 'cell', 'cells')}"

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)


def _checked_labels(names: Sequence[str] | None, labels: Labels | None, count: int) -> Labels:
    if names is not None and labels is not None:
        raise WorkloadError("give either names or labels, not both")
    if names is not None:
        labels = names.labels if isinstance(names, Names) else Labels.named(names)
    if labels is None:
        return Labels.numbered(count)
    if len(labels) != count:
        raise WorkloadError(f"{count} queries need {count} names, got {len(labels)}")
    return labels


def _frame_labels(queries: Any) -> Labels | None:
    """Take the index of a pandas frame for the labels, unless it only counts the rows."""
    index: Any = getattr(queries, "index", None)
    if not hasattr(queries, "to_numpy") or not hasattr(index, "nlevels"):
        return None
    if type(index).__name__ == "RangeIndex":
        return None
    if index.nlevels == 1:
        return Labels.named(index)
    attributes = [str(name or f"level {i + 1}") for i, name in enumerate(index.names)]
    rows = [tuple(map(str, row)) for row in index]
    repeated = repeated_name(rows)
    if repeated is not None:  # counted and not quoted, as in `Labels.named`
        raise WorkloadError(
            f"rows {repeated[0] + 1} and {repeated[1] + 1} of the frame have the same index; every "
            "query needs one of its own"
        )
    return Labels(
        LabelBlock("q", tuple((a, (value,)) for a, value in zip(attributes, row, strict=True)))
        for row in rows
    )


def _checked_importance(importance: ArrayLike | None, count: int) -> Floats | None:
    if importance is None:
        return None
    values = np.array(importance, dtype=np.float64)
    if values.shape != (count,):
        raise WorkloadError(
            f"importance needs one number per query ({count}), but its shape is {values.shape}"
        )
    if not np.all(np.isfinite(values) & (values > 0)):
        raise WorkloadError("importance needs finite numbers above 0; leave a query out instead")
    if np.all(values == 1.0):
        return None
    values.flags.writeable = False
    return values


def check_listable(workload: Workload, most: int = EXPLICIT_QUERIES, hint: str = "") -> None:
    """Refuse a batch with more answers than can be listed one by one."""
    if workload.shape[0] > most:
        advice = hint or f"plan a batch of at most {most:,} queries"
        raise WorkloadError(
            f"a batch of {workload.shape[0]:,} queries is too large to list its answers; {advice}"
        )


def weigh_rows(queries: LinearMap, importance: Floats | None) -> LinearMap:
    """The map whose total squared error is the weighted one: row i times √importanceᵢ."""
    if importance is None:
        return queries
    return queries.scale_rows(np.sqrt(importance))
