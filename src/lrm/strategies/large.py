"""Strategies for domains on which nothing dense can be built."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from lrm.errors import StopSolver
from lrm.maps.level_errors import level_energies, level_sizes
from lrm.maps.levels import LevelMap
from lrm.maps.linear import Floats, LinearMap
from lrm.solvers.level_weights import contrast_weights, level_starts, level_weights
from lrm.solvers.progress import Step
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["best_tree"]

FANOUTS = range(2, 33)
"""Fan-outs that are tried as they are; a tree of fan-out 2 may skip levels besides."""


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
