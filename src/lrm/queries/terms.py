"""Answers over the attributes of a domain, collected into one batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.domain.people import Levels
from lrm.errors import WorkloadError
from lrm.queries.maps.linear import LinearMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.combine import MANY_PRODUCTS, WRITTEN_CELLS, Product, check_rows
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.words import make_factor, word_factor
from lrm.queries.workload import Label, LabelBlock, Labels, TakenLabels, Uses, Workload

if TYPE_CHECKING:
    from lrm.domain import Domain

Cells = NDArray[np.intp]
"""Cells of an attribute, or places in a list of them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """What an answer asks of one attribute: in each row, the sum of a range of its cells."""

    axis: int
    order: Cells  # some cells, in the order in which ranges count them
    # first, last: for each row, the first and the last place in ``order`` that it adds up.
    first: Cells
    last: Cells
    labels: Sequence[str]

    @classmethod
    def single(cls, axis: int, cells: Cells, labels: Sequence[str]) -> Rows:
        """One row for each of some cells, whose attribute has these labels."""
        places = np.arange(len(cells))
        return cls(axis, cells, places, places, tuple(labels[cell] for cell in cells))

    def __len__(self) -> int:
        return len(self.first)

    def taken(self, rows: Cells) -> Rows:
        """Some of the rows."""
        labels = tuple(self.labels[row] for row in rows)
        return Rows(self.axis, self.order, self.first[rows], self.last[rows], labels)

    @cached_property
    def key(self) -> bytes:
        """Equal keys mean equal rows, whatever they are called."""
        parts = (self.order, self.first, self.last)
        return b"".join(np.asarray(part, dtype=np.int64).tobytes() for part in parts)

    @property
    def is_prefix(self) -> bool:
        """Whether row k adds up the cells 0 to k."""
        places = np.arange(len(self.order))
        return (
            not self.first.any()
            and np.array_equal(self.last, places)
            and np.array_equal(self.order, places)
        )

    @property
    def single_cells(self) -> Cells | None:
        """The cell of each row where every row is of one; else None."""
        return self.order[self.first] if np.array_equal(self.first, self.last) else None

    @property
    def weights(self) -> int:
        """How many cells all rows add up."""
        return int((self.last - self.first + 1).sum())

    def entries(self) -> tuple[Cells, Cells]:
        """The row and the cell of each weight, row by row."""
        lengths = self.last - self.first + 1
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        places = np.arange(int(lengths.sum())) - np.repeat(starts - self.first, lengths)
        return np.repeat(np.arange(len(self)), lengths), self.order[places]

    def dense(self, size: int) -> Floats:
        """Rows of weights 0 and 1 over all cells."""
        matrix = np.zeros((len(self), size))
        matrix[self.entries()] = 1.0
        return matrix


@dataclass(frozen=True)
class Names:
    """What an answer and its groups are called."""

    query: str  # query, line: the answer, and where it is written
    line: int | None
    fixed: tuple[tuple[str, str], ...] = ()  # columns that have one label in the group
    # Names of attributes that are called otherwise, by position.
    renamed: Mapping[int, str] = field(default_factory=dict)
    # Labels of attributes where all of their cells are added up, by position.
    totals: Mapping[int, str] = field(default_factory=dict)

    def label(
        self,
        domain: Domain,
        axes: Sequence[int],
        rows: Sequence[Rows] = (),
        *,
        hidden: bool = False,
    ) -> LabelBlock:
        """The label of the answer in each of its groups."""
        groups: list[tuple[str, Sequence[str]]] = [(name, (text,)) for name, text in self.fixed]
        for axis, text in self.totals.items():
            if axis not in axes:
                groups.append((self.renamed.get(axis, domain.names[axis]), (text,)))
        axis_labels = {axis_rows.axis: axis_rows.labels for axis_rows in rows}
        for axis in axes:
            labels = axis_labels.get(axis, domain.attributes[axis].labels)
            groups.append((self.renamed.get(axis, domain.names[axis]), labels))
        return LabelBlock(self.query, tuple(groups), self.line, hidden)


MAX_WEIGHTS = 1 << 28
"""Weights that one batch may hold: 2 GB. Beyond it an error is better than a full memory."""

MAX_ROWS = 1 << 22
"""Answers of a batch over a single attribute, which are written out."""


@dataclass
class _Answers(ABC):
    """Labels of the answers so far."""

    domain: Domain
    labels: list[LabelBlock] = field(default_factory=list)
    taken: TakenLabels = field(default_factory=TakenLabels)
    weights: int = 0
    count: int = 0
    used: list[Uses] = field(default_factory=list)

    def add(  # noqa: PLR0913 - what an answer is made of
        self,
        names: Names,
        axes: Sequence[int],
        products: Sequence[Product],
        rows: Sequence[Rows] = (),
        *,
        used: Collection[int],
        hidden: bool = False,
    ) -> Label | None:
        """Append an answer in each of its groups; return a label that it repeats, if any.

        ``used`` are the attributes that its statement uses.
        """
        block = names.label(self.domain, axes, rows, hidden=hidden)
        clash = self.taken.add(block)
        if clash is None:
            self.labels.append(block)
            self.count += block.count
            self.used.append(Uses.alike(block.count, len(self.domain.attributes), used))
            self._append(axes, products, rows)
        return clash

    @abstractmethod
    def _append(
        self, axes: Sequence[int], products: Sequence[Product], rows: Sequence[Rows]
    ) -> None:
        """Append the queries of an answer."""

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

    def _append(
        self, axes: Sequence[int], products: Sequence[Product], rows: Sequence[Rows]
    ) -> None:
        size = self.domain.size
        weights = np.zeros(size)
        for coefficient, vectors in products:
            weights += coefficient * vectors.get(0, np.ones(1))
        if self.count > MAX_ROWS:
            raise WorkloadError(f"the batch has more than {MAX_ROWS:,} answers; split it")
        for axis_rows in rows:
            self._hold(axis_rows.weights)
            row, cells = axis_rows.entries()
            filled = weights[cells] != 0
            lengths = np.bincount(row[filled], minlength=len(axis_rows))
            cells = cells[filled]
        if not rows:
            cells = np.flatnonzero(weights)
            self._hold(len(cells))
            lengths = (weights != 0).astype(np.int64) if axes else np.array([len(cells)])
        data = weights[cells]
        self.indices.append(cells)
        self.data.append(data)
        self.lengths.append(lengths)

    def finished(self) -> Workload:
        """Join the rows to one batch."""
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self.lengths))])
        parts = np.concatenate(self.data), np.concatenate(self.indices), indptr
        matrix = sp.csr_array(parts, shape=(self.count, self.domain.size))
        matrix.sort_indices()
        uses = Uses.joined(self.used)
        return Workload(matrix, labels=Labels(self.labels), domain=self.domain, uses=uses)


@dataclass
class Terms(_Answers):
    """Answers over two or more attributes, each a sum of products."""

    coefficients: list[float] = field(default_factory=list)
    term_of: list[int] = field(default_factory=list)
    chosen: list[dict[int, int]] = field(default_factory=list)
    factors: list[list[LinearMap]] = field(default_factory=list)
    most: int = 0
    _known: list[dict[tuple[bool, bytes, bytes], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.factors = [[word_factor("total", size)] for size in self.domain.shape]
        self._known = [{} for _ in self.domain.shape]

    def _append(
        self, axes: Sequence[int], products: Sequence[Product], rows: Sequence[Rows]
    ) -> None:
        number = len(self.labels) - 1
        self.most = max(self.most, len(products))
        rows_by_axis: dict[int, Rows | None] = {
            **dict.fromkeys(axes),
            **{axis_rows.axis: axis_rows for axis_rows in rows},
        }
        for coefficient, vectors in products or [self._nothing(axes)]:
            row = {axis: self._number(axis, None, rows_by_axis) for axis in rows_by_axis}
            total_factor = coefficient
            for axis, vector in vectors.items():
                if np.all(vector == vector[0]) and vector[0]:
                    total_factor *= float(vector[0])
                else:
                    row[axis] = self._number(axis, vector, rows_by_axis)
            self.chosen.append(row)
            self.coefficients.append(total_factor)
            self.term_of.append(number)

    def _nothing(self, axes: Sequence[int]) -> Product:
        """The product that weighs no cell."""
        axis = min(
            axes or range(len(self.domain.shape)),
            key=lambda candidate: self.domain.shape[candidate],
        )
        return 1.0, {axis: np.zeros(self.domain.shape[axis])}

    def _number(self, axis: int, vector: Floats | None, rows: Mapping[int, Rows | None]) -> int:
        """The factor of an attribute: ``rows`` of it, each cell for None, or their sum."""
        axis_rows = rows.get(axis)
        key = (
            axis in rows,
            b"" if axis_rows is None else axis_rows.key,
            b"" if vector is None else vector.tobytes(),
        )
        if key not in self._known[axis]:
            self._known[axis][key] = len(self.factors[axis])
            self.factors[axis].append(self._factor(axis, vector, axis_rows, grouped=axis in rows))
        return self._known[axis][key]

    def _factor(
        self, axis: int, vector: Floats | None, axis_rows: Rows | None, *, grouped: bool
    ) -> LinearMap:
        size = self.domain.shape[axis]
        if vector is None:
            if axis_rows is None:
                return word_factor("identity", size)
            if axis_rows.is_prefix and len(axis_rows) == size:
                return word_factor("prefix", size)
        if not grouped:
            assert vector is not None  # noqa: S101 - a total needs no factor of its own
            self._hold(size)
            return make_factor(vector[None, :], size)
        count = size if axis_rows is None else len(axis_rows)
        check_rows(count, size)
        self._hold(count * size)
        weighed = np.eye(size) if axis_rows is None else axis_rows.dense(size)
        if vector is not None:
            weighed *= vector
        return make_factor(weighed, size)

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
        few = queries.shape[1] <= WRITTEN_CELLS and queries.is_flat
        # Over several levels the products name the level of each query.
        flat = self.most > MANY_PRODUCTS and few and not isinstance(self.domain.level, Levels)
        return Workload(
            SparseMap(queries.sparse()) if flat else queries,
            labels=Labels(self.labels),
            domain=self.domain,
            uses=Uses.joined(self.used),
        )
