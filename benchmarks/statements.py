"""The error of each statement beside that under an even split of the budget, by objective.

``python -m benchmarks statements`` plans four batches of 24 to 28 statements
(``benchmarks/reports``) for each objective and noise, and prints the largest ratio, the geometric
mean and CPU seconds. ``--plot FILE`` draws the ratios of the first batch.

``python -m benchmarks statements meet`` gives the statements of ten batches tolerances, finds the
least ε or ρ, and plans again with other seeds and more effort: what they find is beside it.

``python -m benchmarks statements tables`` prints the largest variance of an answer at unit privacy
cost where all tables of some attributes have the same tolerance, with Gaussian noise.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lrm
from benchmarks.product_batches import ADULT, CPS, LOANS
from lrm.plans.goals import OBJECTIVES, Goals, Objective
from lrm.workload import Statement

MOST_ANSWERS = 4_000_000
"""Tables of more answers are left out."""

FOLDER = Path(__file__).parent / "reports"
BATCHES = ("hospital", "flights", "staff", "survey")


def ratios_of(plan: lrm.Plan, goals: Goals | None) -> NDArray[np.float64]:
    """The ratios of a plan, also of one that was made for the total error."""
    if goals is None:
        raise SystemExit("the batch has one statement")
    return np.sqrt(goals.squares_of(plan.measured, plan.reconstruction_map, plan.noise))


def draw(found: dict[str, NDArray[np.float64]], path: Path) -> None:
    """Draw the ratios of the statements of one batch, sorted, one line per objective."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    colours = {"total": "#999999", "balanced": "#0072b2", "worst": "#d55e00"}
    for objective, ratios in found.items():
        places = np.arange(1, len(ratios) + 1)
        ordered = np.sort(ratios)[::-1]
        axes.plot(places, ordered, "o-", ms=4, lw=1.2, color=colours[objective], label=objective)
    axes.axhline(1.0, color="black", lw=0.8, ls="--")
    axes.text(len(places), 1.03, "even split", ha="right", va="bottom", fontsize=9)
    axes.set(xlabel="statement, largest ratio first", ylabel="error / error under an even split")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, measure, print, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks statements", description=__doc__)
    parser.add_argument("batches", nargs="*", default=list(BATCHES), help="of benchmarks/reports")
    parser.add_argument("--noise", default="laplace,gaussian", help="comma-separated")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--plot", type=Path, help="draw the first batch with the first noise")
    chosen = parser.parse_args(arguments)
    if chosen.batches == ["meet"]:
        meet(chosen.noise.split(","), chosen.effort)
        return
    if chosen.batches == ["tables"]:
        largest_variances(chosen.effort)
        return
    columns = f"{'largest':>8}{'mean':>7}{'above 1':>8}{'CPU s':>7}"
    print(f"{'batch':10}{'noise':10}{'objective':10}{columns}")
    for noise in chosen.noise.split(","):
        for batch in chosen.batches:
            found = measure(batch, noise, chosen.effort)
            if chosen.plot is not None:
                draw(found, chosen.plot)
                chosen.plot = None


def measure(batch: str, noise: str, effort: str) -> dict[str, NDArray[np.float64]]:
    """Plan a batch for each objective and print what it comes to."""
    domain = lrm.read_domain(FOLDER / f"{batch}.yaml")
    workload = lrm.read_batch(FOLDER / f"{batch}.sql", domain)
    found: dict[str, NDArray[np.float64]] = {}
    goals = None
    order: tuple[Objective, ...] = ("balanced", "worst", "total")
    for objective in order:
        start = time.process_time()
        plan = lrm.plan(workload, noise=noise, objective=objective, effort=effort)  # type: ignore[arg-type]
        seconds = time.process_time() - start
        goals = plan.even_split if goals is None else goals
        ratios = found[objective] = ratios_of(plan, goals)
        mean = np.exp(np.log(ratios).mean())
        above = int((ratios > 1.0).sum())
        print(
            f"{batch:10}{noise:10}{objective:10}{ratios.max():8.3f}{mean:7.3f}{above:8}{seconds:7.1f}",
            flush=True,
        )
    return {objective: found[objective] for objective in OBJECTIVES}


TOLERANCES = (("hospital", 6), ("hospital", 14), ("flights", 6), ("flights", 14), ("staff", 6))
TOLERANCES += (("staff", 14), ("survey", 6), ("survey", 14), ("shop", 6), ("shop", 14))
"""Batches, and how many of their statements have a tolerance."""


def with_tolerances(batch: str, count: int) -> lrm.Workload:
    """Every so many-th statement of counts of a report must be within 1 to 3 % of 20,000."""
    domain = lrm.read_domain(FOLDER / f"{batch}.yaml")
    workload = lrm.read_batch(FOLDER / f"{batch}.sql", domain)
    counted = [one for one in workload.statements if one.derived[0] == one.derived[1]][:count]
    names = {one.name: 200.0 * (1 + k % 3) for k, one in enumerate(counted)}
    statements = [
        replace(one, within=(("", names[one.name]),) if one.name in names else ())
        for one in workload.statements
    ]
    return replace(workload, statements=tuple(statements))


def meet(noises: Sequence[str], effort: str) -> None:
    """Print the least amount of each batch beside those of other seeds."""
    print(f"{'batch':10}{'noise':10}{'wanted':>6}{'amount':>11}{'others':>24}{'CPU s':>7}")
    for noise in noises:
        for batch, count in TOLERANCES:
            workload = with_tolerances(batch, count)
            start = time.process_time()
            amounts = []
            for seed in range(3):
                plan = lrm.plan(workload, noise=noise, meet=0.95, effort=effort, seed=seed)  # type: ignore[arg-type]
                amounts.append(float(next(iter(plan.meets().privacy.amounts.values()))))
                if seed == 0:
                    seconds = time.process_time() - start
            others = ", ".join(f"{amount / amounts[0]:.4f}" for amount in amounts[1:])
            print(
                f"{batch:10}{noise:10}{count:6}{amounts[0]:11.5g}{others:>24}{seconds:7.1f}",
                flush=True,
            )


def largest_variances(effort: str) -> None:
    """Print the largest variance over all tables of one, two and three attributes."""
    named = {"cps": CPS, "adult": ADULT, "loans": LOANS}
    print(f"{'table':10}{'attributes':>10}{'answers':>10}{'largest':>10}{'CPU s':>7}")
    for name, sizes in named.items():
        domain = lrm.Domain([lrm.Integers(f"a{i}", 0, n - 1) for i, n in enumerate(sizes)], "t")
        for order in (1, 2, 3):
            workload = lrm.marginals(domain, [order])
            if workload.shape[0] > MOST_ANSWERS:
                continue
            start, statements = 0, []
            for i, block in enumerate(workload.labels.tables()):
                rows = start, start + len(block)
                one = Statement(f"s{i}", f"s{i}", (), ("q",), rows, within=(("", 1.0),))
                statements.append(one)
                start = rows[1]
            workload = replace(workload, statements=tuple(statements))
            begun = time.process_time()
            plan = lrm.plan(workload, noise="gaussian", meet=0.95, effort=effort)  # type: ignore[arg-type]
            largest = plan.reconstruction_map.row_squared_norms.max() * plan.sensitivity**2
            seconds = time.process_time() - begun
            answers = workload.shape[0]
            print(f"{name:10}{order:10}{answers:10,}{largest:10.4g}{seconds:7.1f}", flush=True)


if __name__ == "__main__":
    main()
