"""The README's chart: the budget that other ways need for the accuracy of `lrm`.

``python -m benchmarks readme`` plans three batches of the literature at the normal effort, prints
the table and draws ``docs/img/budget.svg``. All errors are root mean squares per answer under the
same pure ε; since the error of Laplace noise is proportional to 1/ε, a ratio of errors is also the
ratio of the budgets that give equal accuracy.

- *every table by itself*: ε is divided evenly among the tables; each is measured directly or cell
  by cell, whichever has the smaller error.
- *finest tables, added up*: what an expert does by hand. Tables that no other table contains are
  measured with equal shares of ε, and every answer is a sum of cells of one of them.
- *HDMM*: the better of the two optimisers in the public code of the High-Dimensional Matrix
  Mechanism (McKenna, Miklau, Hay and Machanavajjhala, 2018), as that code was run once; these
  errors are constants here.
- *lower bound*: a proven bound on the error of every strategy with Laplace noise.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import lrm
from benchmarks.batches.products import REAL
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap

__all__ = ["main"]

HDMM = {"census": 5.2616, "cps prefixes": 28.736, "loans small prefixes": 208.45}
"""Root mean squared errors of the public code, with noise of variance 1 per unit of sensitivity."""

TITLES = {
    "census": "2010 census: tables of sex, origin, race and age",
    "loans small prefixes": "Loans: all tables of up to 5,000 cells, amounts cumulated",
    "cps prefixes": "Population survey: cumulated income by age, with race, status, sex",
}

WAYS = {
    "separate": ("every table by itself", "#c9c9c9"),
    "by hand": ("finest tables, added up by hand", "#9fb3c8"),
    "HDMM": ("public HDMM code", "#5b84b1"),
    "lrm": ("lrm", "#00796b"),
    "bound": ("lower bound (Laplace noise)", "#d8e6e3"),
}


@dataclass(frozen=True)
class Table:
    """One table of a batch: its attributes, answers, and error per answer of two simple ways."""

    attributes: frozenset[int]
    answers: int
    direct: float
    cells: float


def tables(batch: ProductBatch) -> list[Table]:
    """The different tables of a batch without sums of products."""
    rows = []
    for choice in np.unique(batch.choice, axis=0):
        used = [i for i, chosen in enumerate(choice) if chosen]
        factors = [batch.factors[i][choice[i]].dense() for i in used]
        rows.append(
            Table(
                attributes=frozenset(used),
                answers=math.prod(len(factor) for factor in factors),
                direct=math.prod(np.abs(factor).sum(axis=0).max() for factor in factors) ** 2,
                cells=math.prod((factor**2).sum(axis=1).mean() for factor in factors),
            )
        )
    return rows


def separate(batch: ProductBatch) -> float:
    """Root mean squared error when every table gets the same share of ε."""
    rows = tables(batch)
    total = sum(row.answers * min(row.direct, row.cells) for row in rows)
    return len(rows) * math.sqrt(total / sum(row.answers for row in rows))


def by_hand(batch: ProductBatch) -> float:
    """Root mean squared error when the finest tables are measured and the others added up."""
    rows = tables(batch)
    supports = {row.attributes for row in rows}
    finest = [one for one in supports if not any(one < other for other in supports)]
    total = 0.0
    for row in rows:
        summed = min(
            math.prod(batch.sizes[i] for i in one - row.attributes)
            for one in finest
            if row.attributes <= one
        )
        total += row.answers * row.cells * summed
    return len(finest) * math.sqrt(total / sum(row.answers for row in rows))


def measure(name: str, effort: str) -> dict[str, float]:
    """The errors of all ways on one batch, and the CPU seconds of the plan."""
    batch = REAL[name]()
    begin = time.process_time()
    plan = lrm.plan(
        lrm.Workload(ProductMap(batch)), noise="laplace", objective="total", effort=effort
    )
    seconds = time.process_time() - begin
    error = math.sqrt(plan.strategy_error / batch.queries)
    return {
        "separate": separate(batch),
        "by hand": by_hand(batch),
        "HDMM": HDMM[name],
        "lrm": error,
        "bound": error / math.sqrt(plan.at_most_above_best),
        "seconds": seconds,
        "answers": batch.queries,
    }


def draw(rows: dict[str, dict[str, float]], path: Path) -> None:
    """One panel per batch: bars of the budget for equal accuracy, `lrm` being 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "lrm"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(rows), 1, figsize=(8, 1.6 * len(rows) + 0.4))
    for axis, (name, row) in zip(axes, rows.items(), strict=True):
        for place, (way, (_, colour)) in enumerate(WAYS.items()):
            ratio = row[way] / row["lrm"]
            axis.barh(place, ratio, color=colour, height=0.72)
            axis.text(
                ratio + 0.07,
                place,
                f"{ratio:.{1 if ratio > 2 else 2}f} ×",
                va="center",
                fontsize=8.5,
            )
        axis.set_xlim(0, 7.6)
        axis.set_yticks(range(len(WAYS)), [label for label, _ in WAYS.values()], fontsize=8.5)
        axis.invert_yaxis()
        axis.set_xticks([])
        axis.spines[["top", "right", "bottom"]].set_visible(False)
        axis.set_title(f"{TITLES[name]} ({row['answers']:,} answers)", fontsize=9, loc="left")
    figure.suptitle("Privacy budget needed for the same accuracy", fontsize=11, x=0.01, ha="left")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks readme", description=__doc__)
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--output", type=Path, default=Path("docs/img/budget.svg"))
    options = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    print(
        f"lrm {lrm.__version__}, commit {commit or 'unknown'}, {dt.datetime.now(tz=dt.UTC).date()}"
    )
    rows = {}
    print(f"{'batch':22}" + "".join(f"{head:>11}" for head in WAYS) + f"{'CPU s':>8}")
    for name in TITLES:
        rows[name] = row = measure(name, options.effort)
        print(f"{name:22}" + "".join(f"{row[head]:11.4g}" for head in WAYS), end="")
        print(f"{row['seconds']:8.1f}", flush=True)
    draw(rows, options.output)
    print(f"chart: {options.output}")


if __name__ == "__main__":
    main()
