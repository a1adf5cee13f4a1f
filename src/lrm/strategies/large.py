"""Strategies for domains on which nothing dense can be built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, isqrt

import numpy as np

from lrm.errors import StopSolver
from lrm.maps.level_errors import level_energies, level_sizes
from lrm.maps.levels import LevelMap
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import SparseMap
from lrm.solvers.gram_operators import gram_operator
from lrm.solvers.level_weights import contrast_weights, level_starts, level_weights
from lrm.solvers.progress import Step
from lrm.solvers.sparse_rows import Stage, optimise_sparse_rows
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["best_long", "best_tree"]

MOST_ROWS = 512
"""Rows in addition to the cells: more take too long at tens of thousands of cells."""

FEWER = 4
"""How many times fewer blocks there are at each coarser resolution."""

FANOUTS = range(2, 33)
"""Fan-outs that are tried as they are; a tree of fan-out 2 may skip levels besides."""


def row_count(cells: int) -> int:
    """How many rows to measure in addition to the cells.

    >>> row_count(1024), row_count(4096), row_count(65_536)
    (128, 256, 512)
    """
    return min(MOST_ROWS, 4 * isqrt(cells))


def stages(cells: int, rows: int) -> tuple[Stage, ...]:
    """Ever smaller blocks: at first about as many as rows, at last single cells."""
    block = 1
    while cells >= FEWER * block * rows:
        block *= FEWER
    found = [Stage(block, 1e-4, 75, 4)]
    while block > 1:
        block //= FEWER
        found.append(Stage(block, 3e-5, 75, 2) if block > 1 else Stage(1, 3e-5, 40, 1))
    return tuple(found)


def best_long(problem: Problem, search: Search, effort: str) -> Strategy:
    """The better of a weighted tree and of sparse rows in addition to the identity."""
    tree = best_tree(problem, search)
    if effort == "quick" or search.noise != "laplace" or tree.details["interrupted"]:
        return tree
    gram = gram_operator(problem.workload.queries)
    rows = row_count(gram.cells)
    found = optimise_sparse_rows(
        gram, rows, stages(gram.cells, rows), rng=search.rng(), on_step=search.on_step
    )
    candidate = {"name": "sparse rows", "error": found.error, "iterations": found.iterations}
    tried = [*tree.details["candidates"], candidate]
    details = {
        **tree.details,
        "candidates": tried,
        "effort": effort,
        "converged": found.converged,
        "interrupted": found.interrupted,
    }
    if min(one["error"] for one in tried) < found.error:
        return replace(tree, details=details)
    details["winner"] = f"identity and {found.rows.shape[0]} sparse rows"
    return Strategy("best", problem.merged.cell_map, SparseMap(found.strategy()), details=details)


def best_tree(problem: Problem, search: Search) -> Strategy:
    """The best weighted tree over all cells: fan-outs and one weight per level.

    Its error is exact (``lrm.maps.level_errors``), so every uniform tree and the wavelet, with
    and without weights, is a candidate that the result is not worse than.
    """
    queries = problem.workload.queries
    best_error, best, tried = np.inf, None, []
    norm = 1 if search.noise == "laplace" else 2
    interrupted = False
    for number, (error, tree) in enumerate(_candidates(queries, norm), start=1):
        name = f"{'contrasts' if tree.contrast else 'tree'}, fan-out {tree.fanouts[0]}"
        tried.append({"name": name, "error": error, "iterations": 1})
        if error < best_error:
            best_error, best = error, tree
        try:
            search.on_step(Step("weighted trees", number, best_error))
        except StopSolver:
            interrupted = True
            break
    assert best is not None  # noqa: S101 - there is always a tree of fan-out 2
    details = {
        "winner": f"weighted tree, fan-outs {'·'.join(map(str, best.fanouts))}",
        "candidates": tried,
        "converged": not interrupted,
        "interrupted": interrupted,
    }
    return Strategy("best", problem.merged.cell_map, best, details=details)


def _candidates(queries: LinearMap, norm: int) -> Iterator[tuple[float, LevelMap]]:
    n = queries.shape[1]
    for fanout in FANOUTS:
        fanouts = _cover(n, fanout)
        energies, sizes = level_energies(queries, fanouts), _sizes(fanouts)
        levels = len(sizes)
        starts = level_starts(levels) if fanout == 2 else [np.ones(levels)]
        error, weights = level_weights(energies, sizes, starts, norm)
        yield error, LevelMap(n, fanouts, tuple(map(float, weights)))
        if set(fanouts) == {2}:
            error, weights = contrast_weights(energies, np.append(sizes[1:], sizes[-1]), norm)
            yield error, LevelMap(n, fanouts, (0.0, *map(float, weights)), contrast=True)


def _cover(cells: int, fanout: int) -> tuple[int, ...]:
    """Levels of ``fanout`` with a smaller one on top, so that few leaves are too many."""
    fanouts: list[int] = []
    blocks = cells
    while blocks > fanout:
        fanouts.append(fanout)
        blocks = ceil(blocks / fanout)
    return (*fanouts, blocks) if blocks > 1 else tuple(fanouts)


def _sizes(fanouts: tuple[int, ...]) -> Floats:
    return np.array(level_sizes(fanouts), dtype=np.float64)
