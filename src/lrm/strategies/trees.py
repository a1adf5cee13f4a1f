"""Trees over the cells in their order: the wavelet and the hierarchical mechanism."""

from __future__ import annotations

from lrm.errors import UsageError
from lrm.exact.cells import CellMap
from lrm.maps.levels import LevelMap
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["haar_tree", "hierarchical", "total_tree", "wavelet"]


def _fanouts(cells: int, fanout: int) -> tuple[int, ...]:
    """The levels of ``fanout`` that it takes to cover ``cells`` leaves."""
    levels = 0
    while fanout**levels < cells:
        levels += 1
    return (fanout,) * levels


def haar_tree(cells: int) -> LevelMap:
    """The Haar wavelet with every coefficient weighted to ±1: sensitivity 1 + log₂ n.

    >>> haar_tree(4).dense()
    array([[ 1., -1.,  0.,  0.],
           [ 0.,  0.,  1., -1.],
           [ 1.,  1., -1., -1.],
           [ 1.,  1.,  1.,  1.]])
    """
    fanouts = _fanouts(cells, 2)
    return LevelMap(cells, fanouts, (0.0, *(1.0,) * len(fanouts), 1.0), contrast=True)


def total_tree(cells: int, fanout: int, *, root: bool = True) -> LevelMap:
    """Totals of all blocks of a tree of one fan-out, all of weight 1."""
    fanouts = _fanouts(cells, fanout)
    top = 1.0 if root or not fanouts else 0.0
    return LevelMap(cells, fanouts, (*(1.0,) * len(fanouts), top))


def wavelet(problem: Problem, search: Search) -> Strategy:
    """Privelet: the Haar wavelet transform with its weights, any n by padding.

    Reference: Xiao, Wang, Gehrke, "Differential privacy via wavelet transforms", ICDE 2010,
    arXiv:0909.5530.
    """
    del search
    cells = problem.cell_count
    return Strategy("wavelet", CellMap.trivial(cells), haar_tree(cells))


def hierarchical(
    problem: Problem, search: Search, *, fanout: int = 2, root: bool = True
) -> Strategy:
    """Totals of all blocks of a tree, made consistent by least squares, any n by padding.

    Reference: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private
    histograms through consistency", VLDB 2010, arXiv:0904.0942.
    """
    del search
    if fanout < 2:
        raise UsageError(f"fanout must be at least 2, not {fanout}")
    cells = problem.cell_count
    tree = total_tree(cells, fanout, root=root)
    facts = {"fanout": fanout, "root": root}
    return Strategy("hierarchical", CellMap.trivial(cells), tree, facts=facts)
