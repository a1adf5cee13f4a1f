"""Local rows, improved one segment of the cells after the other.

Rows that repeat along the cells (`lrm.solvers.periodic_rows`) are chosen for the mean of all
places. A segment with a margin on both sides is a small problem of its own, whose rows a
descent moves on from there: at both ends, where ranges are fewer, and everywhere, where no two
places are alike. Without it 2,048 random ranges over 4,096 cells have 4.5 % more error.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lrm.clock import UNLIMITED, Clock
from lrm.maps.matrices import SparseMap
from lrm.solvers import settings
from lrm.solvers.gram_operators import gram_operator
from lrm.solvers.sparse_rows import Stage, optimise_sparse_rows, sparse_rows_error

__all__ = ["polish_segments"]


STAGE = Stage(1, 1e-5, 200, 4)
"""Descents over single cells. With 40 rounds in all, 4,096 random ranges ended 0.6 % higher."""


def polish_segments(
    W: sp.csr_array, rows: sp.csr_array, reach: int, *, clock: Clock = UNLIMITED
) -> sp.csr_array:
    """Improve local rows Θ ≥ 0 of ``[I; Θ]·D`` for the ranges W.

    Parameters
    ----------
    W
        The queries, m × cells.
    rows
        Θ, of which each reaches about as far as a query.
    reach
        Cells of the longest query.
    clock
        Ticks once per round.
    """
    cells, unit = W.shape[1], max(reach, settings.SEGMENT_LEAST_REACH)
    count = max(1, cells // (settings.SEGMENT_CORE * unit))
    ends = np.linspace(0, cells, count + 1).astype(int)
    columns = sp.csc_array(W)
    middle = np.asarray(rows @ np.arange(cells)).ravel() / np.asarray(rows.sum(axis=1)).ravel()
    polished = sp.lil_array(rows)
    for number in [0, *range(count - 1, 0, -1)]:
        low, high = (
            max(0, ends[number] - settings.SEGMENT_MARGIN * unit),
            ends[number + 1] + settings.SEGMENT_MARGIN * unit,
        )
        part = sp.csr_array(columns[:, low:high])
        gram = gram_operator(SparseMap(sp.csr_array(part[np.diff(part.indptr) > 0])))
        inside = sp.csr_array(rows[:, low:high])
        touching = np.flatnonzero(np.diff(inside.indptr))
        start = sp.csr_array(inside[touching])
        segment_rows = optimise_sparse_rows(
            gram,
            len(touching),
            (STAGE,),
            rng=np.random.default_rng(0),
            start=start,
            clock=clock,
        )
        in_segment = (middle[touching] >= ends[number]) & (middle[touching] < ends[number + 1])
        polished[touching[in_segment], low:high] = segment_rows.rows[in_segment]
        if clock.must_end():
            break
        inner = number not in {0, count - 1}
        if (
            inner
            and sparse_rows_error(gram, start) - segment_rows.error
            < settings.SEGMENT_WORTH * segment_rows.error
        ):
            break
    result = sp.csr_array(polished)
    return sp.csr_array(result[np.diff(result.indptr) > 0])
