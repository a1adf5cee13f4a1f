"""diffprivlib: one histogram per grouping, each with an even share of an accountant's ε.

Columns are numbered by their public values. Its counts are never negative: the noise
is truncated at zero.
"""

import csv
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from diffprivlib import BudgetAccountant, tools


def numbered(table: dict[str, list[str]], one: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The columns of an ask as places among their public values, and the edges between them."""
    columns, edges = [], []
    for position, name in enumerate(one["by"]):
        values = list(dict.fromkeys(str(key[position]) for key in one["keys"]))
        places = {value: place for place, value in enumerate(values)}
        columns.append([places.get(value, -1) for value in table[name]])
        edges.append(np.arange(len(values) + 1) - 0.5)
    return np.array(columns).T, edges


def ask(points: Any, edges: list[Any], rows: int, **given: Any) -> list[float]:
    """Counts of all groups, in the order of the keys."""
    if not edges:
        return [float(tools.count_nonzero(np.ones(rows), **given))]
    counts, _ = tools.histogramdd(points, bins=edges, **given)
    return [float(count) for count in counts.ravel()]


def main() -> None:
    """Answer the job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Path(job["table"]).open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    asks = [numbered(table, one) for one in job["asks"]]
    whole = Fraction(str(job["epsilon"]))
    share = float(whole / len(asks))
    runs = []
    for _ in range(job["runs"]):
        # Shares are floats, whose sum may exceed the whole by a rounding error.
        accountant = BudgetAccountant(epsilon=float(whole) * (1 + 1e-9), delta=0)
        given = {"epsilon": share, "accountant": accountant}
        runs.append([ask(points, edges, len(rows), **given) for points, edges in asks])
    Path(sys.argv[2]).write_text(json.dumps({"runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
