"""diffprivlib: one histogram per grouping, each with an even share of an accountant's ε.

Columns are numbered by their public values. Its counts are never negative: the noise
is truncated at zero.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from diffprivlib import BudgetAccountant, tools


def ask(table: Any, accountant: Any, share: float, one: dict[str, Any]) -> list[float]:
    """Counts of all groups, in the order of the keys."""
    given = {"epsilon": share, "accountant": accountant}
    if not one["by"]:
        return [float(tools.count_nonzero(np.ones(len(table)), **given))]
    columns, edges = [], []
    for position, name in enumerate(one["by"]):
        values = list(dict.fromkeys(key[position] for key in one["keys"]))
        places = {str(value): place for place, value in enumerate(values)}
        columns.append([places.get(value, -1) for value in table[name]])
        edges.append(np.arange(len(values) + 1) - 0.5)
    counts, _ = tools.histogramdd(np.array(columns).T, bins=edges, **given)
    return [float(count) for count in counts.ravel()]


def main() -> None:
    """Answer the job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    table = np.genfromtxt(job["table"], delimiter=",", names=True, dtype=None, encoding="utf-8")
    table = table.astype([(name, "U8") for name in table.dtype.names])
    whole = Fraction(str(job["epsilon"]))
    share = float(whole / len(job["asks"]))
    runs = []
    for _ in range(job["runs"]):
        # Shares are floats, whose sum may exceed the whole by a rounding error.
        accountant = BudgetAccountant(epsilon=float(whole) * (1 + 1e-9), delta=0)
        runs.append([ask(table, accountant, share, one) for one in job["asks"]])
    Path(sys.argv[2]).write_text(json.dumps({"runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
