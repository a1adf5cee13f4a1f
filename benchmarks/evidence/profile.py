"""Where the time of ``lowrank`` goes: matrix products, projections, and the rest.

Run with ``python -m benchmarks profile [QUERIES CELLS]`` (256 and 1,024 by default, of
the family WRange). Every line of the solver is timed, and its time goes to what the line
does. Processor time is counted, so that a busy machine does not change the shares.
"""

from __future__ import annotations

import argparse
import linecache
import sys
import time
from collections import defaultdict
from types import FrameType
from typing import Any

from threadpoolctl import threadpool_limits

from lrm.planning.solvers import lagrangian
from lrm.planning.strategies.base import Problem, Search
from lrm.planning.strategies.lowrank import lowrank
from lrm.queries.workload import families

FILES = {lagrangian.__file__}
PROJECTION = {"project_columns_l1", "_thresholds", "_project", "_newton"}


class LineClock:
    """A trace function that gives the time between two lines to the first of them."""

    def __init__(self) -> None:
        self.spent: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._place = ("the rest", "")
        self._since = time.process_time()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> LineClock | None:
        """Note that another line begins; frames outside the solver are not followed."""
        del argument
        if frame.f_code.co_filename not in FILES:
            return None
        self.turn_to(_place(frame, event))
        return self

    def turn_to(self, place: tuple[str, str]) -> None:
        """Close the account of the last line and open that of ``place``."""
        now = time.process_time()
        self.spent[self._place] += now - self._since
        self._place, self._since = place, now


def _place(frame: FrameType, event: str) -> tuple[str, str]:
    """What a line does, and the line itself."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    function = frame.f_code.co_name
    if function in PROJECTION:
        return "projections on the L1 balls", line
    if event == "return":  # the caller's line goes on
        return "the rest", "after a call"
    if "cho_solve" in line or "cho_factor" in line:
        return "solving for B (a product and a Cholesky factor)", line
    if any(product in line for product in (" @ ", "np.matmul", "np.vdot")):
        return "matrix products", line
    return "the rest", line


def main() -> None:
    """Run ``lowrank`` once and print shares, largest first, with the lines that cost most."""
    parser = argparse.ArgumentParser("python -m benchmarks profile", description=__doc__)
    parser.add_argument("queries", type=int, nargs="?", default=256)
    parser.add_argument("cells", type=int, nargs="?", default=1024)
    chosen = parser.parse_args()
    queries, cells = chosen.queries, chosen.cells
    problem = Problem(families.wrange(queries, cells, seed=0))
    k, n = problem.reduced.shape  # reduced beforehand: the solver alone is timed
    clock = LineClock()
    with threadpool_limits(1):
        sys.settrace(clock)
        found = lowrank(problem, Search())
        sys.settrace(None)
    clock.turn_to(("", ""))
    total = sum(clock.spent.values())
    shares: defaultdict[str, float] = defaultdict(float)
    for (kind, _), seconds in clock.spent.items():
        shares[kind] += seconds / total
    sys.stdout.write(
        f"profile_lowrank: {queries} queries over {cells} cells, reduced to {k} x {n}, "
        f"{found.matrix.shape[0]} measurements, {found.details['rounds']} rounds\n"
    )
    for kind, share in sorted(shares.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"{share:6.1%}  {kind}\n")
        lines = [(seconds, line) for (of, line), seconds in clock.spent.items() if of == kind]
        for seconds, line in sorted(lines, reverse=True)[:3]:
            sys.stdout.write(f"        {seconds / total:6.1%}  {line}\n")


if __name__ == "__main__":
    main()
