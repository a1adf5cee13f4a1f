"""The panel of workloads: the families and sizes on which strategies are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import scipy.sparse as sp

from lrm.queries.workload import Workload, families

__all__ = ["PANEL", "SMALL"]

SIZES = [(64, 128), (128, 256), (256, 512), (256, 1024), (256, 2048)]
LOW_RANK = [(64, 512, 8), (128, 1024, 16), (256, 1024, 26), (256, 4096, 26)]
"""(queries, cells, rank) with cells ≫ rank²: where a low rank pays."""


def _total_and_identity(cells: int) -> Workload:
    return families.stack([families.total(cells), families.identity(cells)])


def _shuffled_ranges(cells: int) -> Workload:
    """All ranges over cells in a hidden order: structure that no tree can use."""
    order = np.random.default_rng(0).permutation(cells)
    return Workload(sp.csr_array(families.all_ranges(cells).queries.dense()[:, order]))


def _panel() -> dict[str, Callable[[], Workload]]:
    rows: dict[str, Callable[[], Workload]] = {
        "intro 3×4": lambda: Workload([[0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]])
    }
    for n in (64, 128, 256, 512):
        rows[f"prefix {n}"] = lambda n=n: families.prefix(n)  # type: ignore[misc]
    for n in (64, 128, 256):
        rows[f"all ranges {n}"] = lambda n=n: families.all_ranges(n)  # type: ignore[misc]
    rows["shuffled ranges 256"] = lambda: _shuffled_ranges(256)
    rows["width-32 ranges 256"] = lambda: families.width_ranges(256, 32)
    rows["identity 256"] = lambda: families.identity(256)
    rows["total + identity 256"] = lambda: _total_and_identity(256)
    for k, (m, n) in enumerate(SIZES):
        rows[f"WRange {m}×{n}"] = lambda m=m, n=n, k=k: families.wrange(m, n, seed=2000 + k)  # type: ignore[misc]
        rows[f"WDiscrete {m}×{n}"] = lambda m=m, n=n, k=k: families.wdiscrete(m, n, seed=1000 + k)  # type: ignore[misc]
        rows[f"WRelated {m}×{n}"] = lambda m=m, n=n, k=k: families.wrelated(m, n, seed=3000 + k)  # type: ignore[misc]
    for k, (m, n, s) in enumerate(LOW_RANK):
        rows[f"WRelated {m}×{n} rank {s}"] = (
            lambda m=m, n=n, s=s, k=k: families.wrelated(m, n, s=s, seed=3100 + k)  # type: ignore[misc]
        )
    return rows


PANEL: Mapping[str, Callable[[], Workload]] = _panel()
"""Name → workload, built when it is its turn."""

SMALL = tuple(
    name
    for name in PANEL
    if name.startswith(("intro", "prefix 64", "all ranges 64", "WRange 64", "WDiscrete 64"))
)
"""A few rows that take seconds."""
