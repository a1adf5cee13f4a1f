"""The dense optimiser of jax-privacy on prefix sums, in an interpreter that has it.

Run by ``python -m benchmarks gaussian --jax-privacy``; imports nothing of this project, so
that the other interpreter needs jax-privacy alone.
"""

from __future__ import annotations

import json
import sys
import time


def main(cells: int) -> None:
    """Optimise with default settings, in float64; print error and time as JSON."""
    import jax
    import numpy as np
    from jax_privacy.matrix_factorization import dense

    with jax.enable_x64():
        wall, cpu = time.perf_counter(), time.process_time()
        strategy = np.asarray(dense.optimize(cells), dtype=np.float64)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rebuilt = np.linalg.solve(strategy.T, np.tri(cells).T).T
    error = float((rebuilt**2).sum() * (strategy**2).sum(axis=0).max())
    print(json.dumps({"error": error, "seconds": wall, "cpu": cpu}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
