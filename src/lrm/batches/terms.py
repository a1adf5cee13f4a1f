"""Answers over the attributes of a domain, collected into one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from lrm.errors import WorkloadError
from lrm.maps.matrices import SparseMap
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.combine import MANY_PRODUCTS, Product, check_rows
from lrm.maps.products.factors import Factor
from lrm.maps.products.map import ProductMap
from lrm.workload import Grouped, Label, Labels, TakenLabels, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.domain import Domain

    Floats = NDArray[np.float64]

__all__ = ["FlatRows", "Names", "Running", "Terms"]


@dataclass(frozen=True, eq=False)
class Running:
    """Running totals of one attribute in place of its cells: rows of weights, and their labels."""

    axis: int
    rows: Floats
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """What an answer and its groups are called.

    Parameters
    ----------
    query, line
        The answer, and where it is written.
    fixed
        Columns that have one label in the group.
    renamed
        Names of attributes that are called otherwise, by position.
    """

    query: str
    line: int | None
    fixed: tuple[tuple[str, str], ...] = ()
    renamed: Mapping[int, str] = field(default_factory=dict)

    def label(
        self,
        domain: Domain,
        axes: Sequence[int],
        running: Running | None = None,
        *,
        hidden: bool = False,
    ) -> Grouped:
        """The label of the answer in each of its groups."""
        groups: list[tuple[str, tuple[str, ...]]] = [(name, (text,)) for name, text in self.fixed]
        for axis in axes:
            labels = domain.attributes[axis].labels
            if running is not None and running.axis == axis:
                labels = running.labels
            groups.append((self.renamed.get(axis, domain.names[axis]), labels))
        return Grouped(self.query, tuple(groups), self.line, hidden)


MAX_WEIGHTS = 1 << 28
"""Weights that one batch may hold: 2 GB. Beyond it an error is better than a full memory."""

MAX_ROWS = 1 << 22
"""Answers of a batch over a single attribute, which are written out."""


@dataclass
class _Answers:
    """Labels of the answers so far."""

    domain: Domain
    labels: list[Grouped] = field(default_factory=list)
    taken: TakenLabels = field(default_factory=TakenLabels)
    weights: int = 0
    count: int = 0

    def _take(self, part: Grouped) -> Label | None:
        self.labels.append(part)
        self.count += part.count
        return self.taken.add(part)

    def _hold(self, weights: int) -> None:
        self.weights += weights
        if self.weights > MAX_WEIGHTS:
            raise WorkloadError(
                f"the batch has more than {MAX_WEIGHTS:,} weights; split it, or declare wider cells"
            )


@dataclass
class FlatRows(_Answers):
    """Answers over a single attribute, as rows of a sparse matrix."""

    indices: list[NDArray[np.int64]] = field(default_factory=list)
    data: list[Floats] = field(default_factory=list)
    lengths: list[NDArray[np.int64]] = field(default_factory=list)

    def add(
        self,
        names: Names,
        axes: Sequence[int],
        products: Sequence[Product],
        running: Running | None = None,
        *,
        hidden: bool = False,
    ) -> Label | None:
        """Append an answer in each of its groups; return a label that it repeats, if any."""
        size = self.domain.size
        weights = np.zeros(size)
        for coefficient, vectors in products:
            weights += coefficient * vectors.get(0, np.ones(1))
        clash = self._take(names.label(self.domain, axes, running, hidden=hidden))
        if self.count > MAX_ROWS:
            raise WorkloadError(f"the batch has more than {MAX_ROWS:,} answers; split it")
        if running is not None:
            check_rows(*running.rows.shape)
            rows = sp.csr_array(running.rows * weights)
            lengths = np.diff(rows.indptr).astype(np.int64)
            cells, data = rows.indices.astype(np.int64), rows.data
        else:
            cells = np.flatnonzero(weights)
            data = weights[cells]
            lengths = (weights != 0).astype(np.int64) if axes else np.array([len(cells)])
        self._hold(len(cells))
        self.indices.append(cells)
        self.data.append(data)
        self.lengths.append(lengths)
        return clash

    def finished(self) -> Workload:
        """Join the rows to one batch."""
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self.lengths))])
        parts = np.concatenate(self.data), np.concatenate(self.indices), indptr
        matrix = sp.csr_array(parts, shape=(self.count, self.domain.size))
        return Workload(matrix, labels=Labels(self.labels), domain=self.domain)


@dataclass
class Terms(_Answers):
    """Answers over two or more attributes, each a sum of products."""

    coefficients: list[float] = field(default_factory=list)
    term_of: list[int] = field(default_factory=list)
    chosen: list[dict[int, int]] = field(default_factory=list)
    factors: list[list[Factor]] = field(default_factory=list)
    most: int = 0
    _known: list[dict[tuple[bool, bytes, bytes], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.factors = [[Factor("total", size)] for size in self.domain.shape]
        self._known = [{} for _ in self.domain.shape]

    def add(
        self,
        names: Names,
        axes: Sequence[int],
        products: Sequence[Product],
        running: Running | None = None,
        *,
        hidden: bool = False,
    ) -> Label | None:
        """Append an answer in each of its groups; return a label that it repeats, if any."""
        clash = self._take(names.label(self.domain, axes, running, hidden=hidden))
        if clash is not None:
            return clash
        number = len(self.labels) - 1
        self.most = max(self.most, len(products))
        rows: dict[int, Floats | None] = dict.fromkeys(axes)
        if running is not None:
            rows[running.axis] = running.rows
        for coefficient, vectors in products or [self._nothing(axes)]:
            row = {axis: self._number(axis, None, rows) for axis in rows}
            whole = coefficient
            for axis, vector in vectors.items():
                if np.all(vector == vector[0]) and vector[0]:
                    whole *= float(vector[0])
                else:
                    row[axis] = self._number(axis, vector, rows)
            self.chosen.append(row)
            self.coefficients.append(whole)
            self.term_of.append(number)
        return None

    def _nothing(self, axes: Sequence[int]) -> Product:
        """The product that weighs no cell."""
        axis = min(axes or range(len(self.domain.shape)), key=lambda one: self.domain.shape[one])
        return 1.0, {axis: np.zeros(self.domain.shape[axis])}

    def _number(self, axis: int, vector: Floats | None, rows: Mapping[int, Floats | None]) -> int:
        """The factor of an attribute: ``rows`` of it, each cell for None, or their sum."""
        own = rows.get(axis)
        asked = b"" if own is None else own.tobytes()
        key = axis in rows, asked, b"" if vector is None else vector.tobytes()
        if key not in self._known[axis]:
            self._known[axis][key] = len(self.factors[axis])
            self.factors[axis].append(self._factor(axis, vector, own, grouped=axis in rows))
        return self._known[axis][key]

    def _factor(
        self, axis: int, vector: Floats | None, own: Floats | None, *, grouped: bool
    ) -> Factor:
        size = self.domain.shape[axis]
        if vector is None:
            if own is None:
                return Factor("identity", size)
            if np.array_equal(own, np.tri(size)):
                return Factor("prefix", size)
        if grouped:
            check_rows(size if own is None else len(own), size)
        self._hold((size if own is None else len(own)) * size if grouped else size)
        if own is not None:
            weighed = own if vector is None else own * vector
        else:
            assert vector is not None  # noqa: S101 - the identity is above
            weighed = np.diag(vector) if grouped else vector[None, :]
        return Factor("rows", size, np.array(weighed))

    def finished(self) -> Workload:
        """Join the terms to one batch."""
        choice = np.zeros((len(self.chosen), len(self.factors)), dtype=np.int32)
        for number, row in enumerate(self.chosen):
            for axis, factor in row.items():
                choice[number, axis] = factor
        batch = ProductBatch(
            tuple(map(tuple, self.factors)),
            choice,
            np.array(self.coefficients),
            np.array(self.term_of, dtype=np.int64),
            np.ones(len(self.labels)),
        )
        queries = ProductMap(batch)
        flat = self.most > MANY_PRODUCTS and queries.is_flat
        return Workload(
            SparseMap(queries.sparse()) if flat else queries,
            labels=Labels(self.labels),
            domain=self.domain,
        )
