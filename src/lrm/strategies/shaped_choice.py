"""Rows with a body for their noise, and the integers that they are rounded to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from lrm.errors import ConvergenceError, WorkloadError
from lrm.exact.cells import CellMap
from lrm.exact.measured import Measured
from lrm.exact.reconstruction import Reconstruction
from lrm.exact.rounding import DEFAULT_MAX_RECORDS, FINE_MAX_RECORDS, most_bits
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import DenseMap, SparseMap
from lrm.privacy.budget import Noise
from lrm.solvers.hulls import MARGINS, Hull, verified_body
from lrm.strategies.base import Choice, Problem
from lrm.strategies.shaped_tables import (
    CubeSides,
    TableGroups,
)
from lrm.strategies.split_hulls import Split, split_body


@dataclass(frozen=True, eq=False)
class ShapedChoice(Choice):
    """Rows to measure and a body for their noise, in real numbers.

    Parameters
    ----------
    cell_map, queries
        The merged cells, and the workload over them.
    rows
        What is measured, over merged cells: rows of 0 and 1 for tables.
    shape
        The body: one of tables and their groups, points whose hull it is, or the hull of the
        columns by parts.
    error
        Half of the expected total squared error at ε = 1, before rounding.
    replaced
        Whether the body need only hold half of what replacing a record moves.
    least_error
        A number that it is not below for any noise that is added; 0 where none is known.
    """

    cell_map: CellMap
    queries: LinearMap
    rows: Floats
    shape: TableGroups | CubeSides | Hull | Split
    error: float
    replaced: bool = False
    least_error: float = field(default=0.0, kw_only=True)

    @classmethod
    def of(
        cls,
        problem: Problem,
        rows: Floats,
        shape: TableGroups | CubeSides | Hull | Split,
        error: float,
        least_error: float = 0.0,
    ) -> ShapedChoice:
        """Rows over the merged cells of a problem."""
        merged = problem.merged
        return cls(
            "best", merged.cell_map, merged.queries, rows, shape, error, least_error=least_error
        )

    @property
    def is_simulated(self) -> bool:
        return isinstance(self.shape, Split)

    def rounded(
        self, problem: Problem, noise: Noise, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        del problem, noise
        measured = self._measured(max_records)
        return measured, measured.reconstruct(self.queries)

    def _measured(self, max_records: int | None) -> Measured:
        if isinstance(self.shape, TableGroups | CubeSides):
            bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
            matrix = SparseMap(sp.csr_array(self.rows * 2.0**bits))
            body = self.shape.body(1 << bits)
            return Measured.of_cells(
                matrix, self.cell_map, bits, None, body, replaced=self.replaced
            )
        if np.array_equal(self.rows, np.rint(self.rows)):
            bits = min(24, most_bits(max_records or DEFAULT_MAX_RECORDS))
        else:
            bits = most_bits(max_records or FINE_MAX_RECORDS)
        # Half of a difference must be whole.
        rounded_rows = np.rint(self.rows * 2.0 ** (bits - self.replaced)) * 2.0**self.replaced
        if isinstance(self.shape, Split):
            moved = (rounded_rows * self.cell_map.largest_factors()).T.astype(np.int64)
            try:
                parts = split_body(moved, self.shape, bits)
            except WorkloadError as reason:
                raise ConvergenceError(str(reason)) from None
            return Measured.of_cells(DenseMap(rounded_rows), self.cell_map, bits, None, parts)
        for margin in MARGINS:
            outer = verified_body(self.shape.points * 2.0**bits, margin)
            if outer is not None:
                try:
                    dense = DenseMap(rounded_rows)
                    return Measured.of_cells(
                        dense, self.cell_map, bits, None, outer, replaced=self.replaced
                    )
                except WorkloadError:  # a column is not inside: a wider margin
                    continue
        raise ConvergenceError("the facets of the hull cannot be listed in integers")
