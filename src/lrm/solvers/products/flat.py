"""Small products as one list of merged cells, where a search of the row space may beat products."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.errors import StopSolver
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.values import Reduction, merge_values
from lrm.solvers.products.watch import Watch, forever
from lrm.solvers.progress import OnStep, ignore_step
from lrm.solvers.row_space import optimise_row_space
from lrm.solvers.starts import rotation

__all__ = ["FlatResult", "reduced_queries", "search_flat"]

Floats = NDArray[np.float64]

#: Rows as multiples of the rank. On one-way tables of 10×8×5×2×2 values, 23 rows (the rank) end at
#: 432, 46 rows at 367.7; three times the rank gains nothing more but is found more often.
WIDTHS = (2.0, 1.25, 1.5, 3.0, 2.0, 1.25, 1.0)
#: A first result so far above another strategy is not followed by others.
HOPELESS = 1.25
#: More merged cells, or a larger rank, are not searched.
MOST_CELLS, MOST_RANK = 2000, 60


@dataclass(frozen=True, eq=False)
class FlatResult:
    """A strategy L (r x merged cells, in C order) with columns in the unit L1 ball."""

    reduction: Reduction
    strategy: Floats
    error: float


def reduced_queries(batch: ProductBatch) -> tuple[Reduction, Floats]:
    """The merged table, and k rows over its cells with the same Gram as all queries."""
    reduction = merge_values(batch)
    _, values, vectors = np.linalg.svd(reduction.batch.dense(), full_matrices=False)
    kept = values > 1e-9 * values.max(initial=0.0)
    return reduction, np.asarray(values[kept][:, None] * vectors[kept])


def search_flat(  # noqa: PLR0913 - each is a choice of the caller
    batch: ProductBatch,
    *,
    tries: int | None = None,
    known: float = np.inf,
    seed: int = 0,
    on_step: OnStep = ignore_step,
    remaining: Callable[[], float] = forever,
) -> FlatResult | None:
    """Search the row space of a small product's queries, from random rotations of several widths.

    ``tries`` is 6 to 30 by default, fewer where one takes longer. Returns None where there are
    too many cells, where the rank is too large for the row space to pay, or where the time was
    up before a first result. Where the first result is far above ``known``, the error of some
    other strategy, it is the last. Cost: about half a second per try at rank 23 and 1,600 cells.
    """
    if merge_values(batch).cells > MOST_CELLS:
        return None
    reduction, W = reduced_queries(batch)
    k, n = W.shape
    if not 0 < k <= min(MOST_RANK, n - 1):
        return None
    watch, rng = Watch(on_step, remaining), np.random.default_rng(seed)
    best: FlatResult | None = None
    with contextlib.suppress(StopSolver):
        for number in range(max(6, min(30, 100_000 // W.size)) if tries is None else tries):
            r = min(n, int(np.ceil(WIDTHS[number % len(WIDTHS)] * k)))
            watch(np.inf if best is None else float(np.log(best.error)))
            found = optimise_row_space(W, rotation(W, r, rng), tolerance=1e-5)
            if best is None or found.error < best.error:
                L = found.mixing @ W
                L = L / np.abs(L).sum(axis=0).max()
                B = W @ np.linalg.pinv(L)
                best = FlatResult(reduction, L, float(np.vdot(B, B)))
            if best.error > HOPELESS * known:
                break
    return best
