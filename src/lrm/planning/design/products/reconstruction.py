"""From measurements over products back to answers, term by term, and how noise travels."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lrm.errors import UnsupportedQuery, WorkloadError
from lrm.planning.design.products.answers import Estimate, term_variances
from lrm.planning.design.products.axes import answerable_terms, on_axes
from lrm.planning.design.products.combine import Combination
from lrm.planning.design.products.information import Information
from lrm.planning.design.products.probing import check_group, check_support, largest_error
from lrm.planning.design.products.row_weights import WeightClasses, add_term_rows, term_sets
from lrm.planning.design.products.strategy import Group, Marginals, ProductStrategy
from lrm.planning.design.products.subsets import masks_of
from lrm.planning.design.reconstruction import (
    BLOCK_ANSWERS,
    Answering,
    Reconstruction,
)
from lrm.planning.limits import BLOCK, MEMORY
from lrm.queries.maps.linear import Floats, Integers, RowWeights
from lrm.queries.maps.products.batch import ProductBatch, Products, box

if TYPE_CHECKING:  # what is measured knows its reconstruction
    from lrm.planning.design.groups import MeasuredGroup
    from lrm.planning.design.measured import Measured


Places = list[dict[int, slice]]
"""The columns of the measurements of each set, group by group."""


@dataclass(frozen=True)
class Piece:
    """A term, or some rows of its factor on its first axis, with the answers it gives.

    ``start`` and ``stop`` are places in the batch; ``rows`` is empty for a whole term.
    """

    term: int
    start: int
    stop: int
    rows: tuple[slice, ...] = ()


@dataclass(frozen=True, eq=False)
class ProductReconstruction(Reconstruction):
    """B of a batch over products, in closed form; nothing has the size of the product.

    Parameters
    ----------
    batch
        The terms, over the original attributes, with weights 1.
    measured
        What is measured for them.
    """

    batch: ProductBatch
    measured: Measured

    def __post_init__(self) -> None:
        covered = np.sort(np.concatenate([group.terms for group in self.measured.groups]))
        if not np.array_equal(covered, np.arange(self.batch.terms)):
            raise WorkloadError("each term of the batch must be answered by one group")
        check_support(self.batch)
        for group in self.measured.groups:
            check_group(self.batch, group)

    @property
    def shape(self) -> tuple[int, int]:
        return self.batch.queries, self.measured.measurement_count

    @cached_property
    def _group_of(self) -> Integers:
        place = np.zeros(self.batch.terms, dtype=np.int64)
        for g, group in enumerate(self.measured.groups):
            place[group.terms] = g
        return place

    @cached_property
    def _number(self) -> Integers:
        """The number of each term among those of its group."""
        number = np.zeros(self.batch.terms, dtype=np.int64)
        for group in self.measured.groups:
            number[group.terms] = np.arange(len(group.terms))
        return number

    def group_of(self, term: int) -> int:
        """The number of the group that answers a term."""
        return int(self._group_of[term])

    @cached_property
    def groups_by_subset(self) -> list[Information]:
        """What the sets of each group tell."""
        return [self.measured.by_subset(group) for group in self.measured.groups]

    @cached_property
    def combination(self) -> Combination | None:
        """How two groups are answered from both; None where each answers its own terms."""
        if not self.measured.combined:
            return None
        return Combination(self.batch, ProductStrategy(self._real_groups(), 0.0, combined=True))

    def _real_groups(self) -> tuple[Group, ...]:
        groups: list[Group] = []
        for group, by_subset in zip(self.measured.groups, self.groups_by_subset, strict=True):
            share = float(by_subset.weights.sum())
            weights, bases = by_subset.weights / share, group.product_bases
            marginals = Marginals(masks_of(group.members), weights, bases)
            error = share**2 * self._group_norm(len(groups))
            groups.append(Group(group.terms, group.axes, marginals, error, share))
        return tuple(groups)

    @cached_property
    def reduced(self) -> list[ProductBatch]:
        """The terms of each group over its axes."""
        groups = self.measured.groups
        return [on_axes(self.batch.take(group.terms), group.axes) for group in groups]

    def products(self, term: int, rows: Sequence[slice] = ()) -> Products:
        """The products that a term is the sum of, over the axes of the group that answers it."""
        return self.reduced[self.group_of(term)].products(int(self._number[term]), rows)

    @property
    def is_blockwise(self) -> bool:
        return True

    def answering(self, measurements: Floats) -> Answering:
        estimates = [
            Estimate(by_subset, [y / w for y, w in zip(tables, by_subset.weights, strict=True)])
            for by_subset, tables in zip(
                self.groups_by_subset, self.measured.split(measurements), strict=True
            )
        ]
        combination, corrections = self.combination, None
        if combination is not None:
            corrections = combination.corrected((estimates[0], estimates[1]))

        def answers(piece: Piece) -> Floats:
            g = self.group_of(piece.term)
            if combination is None or corrections is None:
                return estimates[g].term(self.products(piece.term, piece.rows))
            corrected = combination.term(g, estimates[g], corrections[g], piece.term)
            return self._within_term(piece, corrected)

        return lambda start, stop: _joined(self.pieces(start, stop), answers, start, stop)

    def _within_term(self, piece: Piece, values: Floats) -> Floats:
        """The values of a piece, of those of its whole term."""
        first = int(self.batch.term_ends[piece.term]) - len(values)
        return values[piece.start - first : piece.stop - first]

    def apply(self, measurements: Floats) -> Floats:
        return self.answering(measurements)(0, self.shape[0])

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield the pieces that cover the queries ``start:stop``, in order.

        A term of more than ``BLOCK_ANSWERS`` queries is cut along its first axis; the rows of a
        factor are then written out, so there are few of them over a long axis.
        """
        for term, begin, end in self.batch.terms_in(start, stop):
            if end - begin <= BLOCK_ANSWERS:
                yield Piece(term, begin, end)
                continue
            factors = [next(iter(factors.values())) for _, factors in self.products(term)]
            length, values = len(factors[0]), factors[0].shape[1]
            each = (end - begin) // length
            block, written = BLOCK_ANSWERS // each, BLOCK // values
            plain = all(factor.is_word for factor in factors)
            if written < block and plain and end - begin <= MEMORY // 2:
                yield Piece(term, begin, end)
                continue
            step = max(1, min(block, written))
            for first in range(0, length, step):
                last = min(first + step, length)
                rows = (slice(first, last),)
                piece = Piece(term, begin + first * each, begin + last * each, rows)
                if piece.start < stop and piece.stop > start:
                    yield piece

    def _piece_norms(self, piece: Piece) -> Floats:
        g = self.group_of(piece.term)
        if self.combination is not None:
            return self._within_term(piece, self.combination.term_variances(g, piece.term))
        return term_variances(self.groups_by_subset[g], self.products(piece.term, piece.rows))

    def squared_norms(self, start: int, stop: int) -> Floats:
        return _joined(self.pieces(start, stop), self._piece_norms, start, stop)

    @cached_property
    def row_squared_norms(self) -> Floats:
        return self.squared_norms(0, self.shape[0])

    @cached_property
    def squared_norm(self) -> float:
        return self.weighted_squared_norm(self.batch)

    def weighted_squared_norm(self, batch: ProductBatch) -> float:
        """``‖B‖_F²`` with the weights of ``batch``, which has the terms of this one."""
        if batch is not self.batch and np.array_equal(batch.weights, self.batch.weights):
            return self.squared_norm
        if self.combination is not None:
            if batch is self.batch:
                shares = np.array([group.weight for group in self.combination.groups])
                return self.combination.error(shares)
            rows = (self.combination.term_variances(g, t).sum() for t, g in self._terms())
            return float(sum(w * w * s for w, s in zip(batch.weights, rows, strict=True)))
        return sum(self._group_norm(g, batch) for g in range(len(self.measured.groups)))

    def _terms(self) -> Iterator[tuple[int, int]]:
        """Each term with its group."""
        return enumerate(self._group_of.tolist())

    def _group_norm(self, g: int, batch: ProductBatch | None = None) -> float:
        """``Σ_A v_A/λ_A`` of a group's own terms."""
        group, by_subset = self.measured.groups[g], self.groups_by_subset[g]
        if not len(group.terms):  # of other queries than those of the plan
            return 0.0
        axes_batch = self.reduced[g]
        if batch is not None:
            axes_batch = replace(axes_batch, weights=batch.weights[group.terms])
        return by_subset.error(axes_batch)

    def row_ranges(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of consecutive pieces of up to ``BLOCK_ANSWERS`` together."""
        stop = self.shape[0] if stop is None else stop
        first = last = start
        for piece in self.pieces(start, stop):
            end = min(piece.stop, stop)
            if last > first and end - first > BLOCK_ANSWERS:
                yield first, last
                first = last
            last = end
        if last > first:
            yield first, last

    def answer_ranges(self) -> Iterator[tuple[int, int]]:
        return self.row_ranges()

    @cached_property
    def _weight_classes(self) -> list[WeightClasses]:
        return [WeightClasses(by_subset, self.batch.terms) for by_subset in self.groups_by_subset]

    def row_weights(self, start: int, stop: int) -> Iterator[tuple[int, int, RowWeights | None]]:
        # Entries of B up to which the rows of combined groups are written out for intervals.
        if self.combination is not None and math.prod(self.shape) <= (1 << 20):
            yield start, stop, RowWeights.of_rows(self.rows(start, stop))
            return
        for piece in self.pieces(start, stop):
            first, last = max(piece.start, start), min(piece.stop, stop)
            weights = None
            if self.combination is None:
                classes = self._weight_classes[self.group_of(piece.term)]
                weights = classes.of_term(self.products(piece.term), piece.rows)
            if weights is not None:
                place = weights.place[first - piece.start : last - piece.start]
                weights = replace(weights, place=place)
            yield first, last, weights

    def rows(self, start: int, stop: int) -> Floats:
        return self._rows([(start, stop)], self._places)

    def rows_of(self, ranges: Sequence[tuple[int, int]]) -> Floats:
        if self.combination is not None:
            return self._rows(ranges, self._places)
        group_sets: set[tuple[int, int]] = set()
        for term in {term for span in ranges for term, *_ in self.batch.terms_in(*span)}:
            g = self.group_of(term)
            group_sets.update(
                (g, b) for b in term_sets(self.groups_by_subset[g], self.products(term))
            )
        return self._rows(ranges, self._placed(sorted(group_sets)))

    def alike(self, index: Integers) -> tuple[Integers, Integers]:
        """Kinds of groups of rows, by which rows ask for the same value of a symmetric axis.

        Where an axis has an identity for its basis, and all products of the rows a table or a total
        over it, exchanging two of its values exchanges measurements, and nothing else.
        """
        # Rows of a group up to which groups of one kind are looked for.
        if self.combination is not None or index.shape[1] > 16:
            return super().alike(index)
        terms = np.searchsorted(self.batch.term_ends, index, side="right")
        distinct, of = np.unique(terms, axis=0, return_inverse=True)
        first, kind = [np.zeros(0, dtype=np.int64)], np.empty(len(index), dtype=np.int64)
        for number, row_terms in enumerate(distinct.tolist()):
            groups = np.flatnonzero(of.reshape(-1) == number)
            marks = self._marks(row_terms, index[groups])
            _, begins, same = np.unique(marks, axis=0, return_index=True, return_inverse=True)
            kind[groups] = sum(map(len, first)) + same.reshape(-1)
            first.append(groups[begins])
        return np.concatenate(first), kind

    def _marks(self, terms: Sequence[int], index: Integers) -> Integers:
        """What distinguishes groups of rows of some terms: equal marks, equal kinds."""
        places: dict[tuple[int, int], list[Integers]] = {}
        kinds: dict[tuple[int, int], set[tuple[str, int]]] = {}
        for term, rows in zip(terms, index.T, strict=True):
            g, products = self.group_of(term), self.products(term)
            factors = products[0][1]
            begin = int(self.batch.term_ends[term] - self.batch.term_queries[term])
            shape = [len(factor) for factor in factors.values()]
            # a term over no attribute has one row, and NumPy no place in a table without axes
            row_places = np.unravel_index(rows - begin, shape) if shape else ()
            for i, place in zip(factors, row_places, strict=True):
                places.setdefault((g, i), []).append(place)
                product_kinds = {(product[i].kind, len(product[i])) for _, product in products}
                kinds.setdefault((g, i), set()).update(product_kinds - {("total", 1)})
        columns = [np.zeros(len(index), dtype=np.int64)]
        for axis, axis_places in places.items():
            tables = {kind for kind, _ in kinds[axis]} <= {"identity", "leading"}
            if (
                not tables
                or len(kinds[axis]) > 1
                or not self.groups_by_subset[axis[0]].is_symmetric(axis[1])
            ):
                columns += axis_places
            else:  # the first row of the group that asks for the same value
                columns += [np.argmax(np.array(axis_places) == p, axis=0) for p in axis_places]
        return np.column_stack(columns)

    def _rows(self, ranges: Sequence[tuple[int, int]], places: Places) -> Floats:
        parts = [
            self._term_rows(term, max(start - begin, 0), min(stop, end) - begin, places)
            for start, stop in ranges
            for term, begin, end in self.batch.terms_in(start, stop)
        ]
        if len(parts) == 1:
            return parts[0]
        return np.vstack(parts) if parts else np.zeros((0, _width(places)))

    @cached_property
    def _places(self) -> Places:
        """The columns of every set."""
        groups = enumerate(self.measured.groups)
        return self._placed([(g, b) for g, group in groups for b in range(len(group.heights))])

    def _placed(self, sets: Sequence[tuple[int, int]]) -> Places:
        """Columns for some sets, one after the other."""
        places: Places = [{} for _ in self.measured.groups]
        stop = 0
        for g, b in sets:
            start, stop = stop, stop + self.measured.groups[g].heights[b]
            places[g][b] = slice(start, stop)
        return places

    def _term_rows(self, term: int, start: int, stop: int, places: Places) -> Floats:
        """Rows ``start:stop`` of a term, from the least product that holds them."""
        g, factors = self.group_of(term), self.products(term)[0][1]
        some, first = box(start, stop, [len(factor) for factor in factors.values()])
        products = self.products(term, some)
        height = math.prod(len(factor) for factor in products[0][1].values())
        rows = np.zeros((height, _width(places)))
        add_term_rows(rows, places[g], self.groups_by_subset[g], products)
        if self.combination is not None:
            ends = np.cumsum([sum(group.heights) for group in self.measured.groups]).tolist()
            parts = [rows[:, a:b] for a, b in itertools.pairwise([0, *ends])]
            by_axis = dict(zip(factors, some, strict=False))
            self.combination.add_corrections(parts, g, term, by_axis)
        return rows[start - first : stop - first]

    def matrix(self) -> Floats:
        m, r = self.shape
        if m * r > MEMORY // 2:
            raise WorkloadError(
                f"the reconstruction has {m:,} × {r:,} entries, too many for an array; "
                "use its products"
            )
        return self.rows(0, m)

    @property
    def residual(self) -> float:
        """How far answers without noise lie from the truth: closed forms, so rounding alone."""
        return self.relative_residual

    @cached_property
    def relative_residual(self) -> float:
        """The largest error of answers to a table without noise, relative to their size."""
        try:
            return largest_error(self) if math.isfinite(self.squared_norm) else math.inf
        except np.linalg.LinAlgError:  # a basis that does not distinguish all its values
            return math.inf

    @property
    def digest(self) -> str:
        return "least squares"

    @classmethod
    def over(cls, measured: Measured, batch: ProductBatch) -> ProductReconstruction:
        """The reconstruction of any terms from what is measured.

        Each term is answered by the group of least error that can; a term that none can answer
        is an `UnsupportedQuery`.
        """
        check_support(batch)
        errors = np.stack(
            [_term_errors(batch, group, measured.by_subset(group)) for group in measured.groups]
        )
        if np.any(errors.min(axis=0) == math.inf):
            raise UnsupportedQuery(
                "no measured marginal contains all attributes and values of the query"
            )
        group_of = errors.argmin(axis=0)
        groups = tuple(
            replace(group, terms=np.flatnonzero(group_of == g))
            for g, group in enumerate(measured.groups)
        )
        both = cls(batch, replace(measured, groups=groups))
        try:
            _ = both.combination
        except WorkloadError:  # too large: each term is answered from one group alone
            return cls(batch, replace(measured, groups=groups, combined=False))
        return both


def _joined(
    pieces: Iterable[Piece], numbers: Callable[[Piece], Floats], start: int, stop: int
) -> Floats:
    """The numbers of all pieces in one array, without what is outside of ``start:stop``."""
    values = np.empty(stop - start)
    for piece in pieces:
        first, last = max(piece.start, start), min(piece.stop, stop)
        piece_values = numbers(piece)
        values[first - start : last - start] = piece_values[
            first - piece.start : last - piece.start
        ]
    return values


def _width(places: Places) -> int:
    """Number of columns."""
    return max(
        (columns.stop for group_places in places for columns in group_places.values()), default=0
    )


def _term_errors(batch: ProductBatch, group: MeasuredGroup, by_subset: Information) -> Floats:
    """The error of each term from one group; infinite where it cannot answer."""
    errors = np.full(batch.terms, math.inf)
    kept = answerable_terms(batch, group.axes)
    reduced = on_axes(batch.take(kept), group.axes)
    for number, term in enumerate(kept):
        with contextlib.suppress(UnsupportedQuery):
            errors[term] = term_variances(by_subset, reduced.products(number)).sum()
    return errors
