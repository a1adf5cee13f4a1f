"""The error of each statement beside that under an even split of the budget, by objective.

``python -m benchmarks statements`` plans five batches of 24 to 28 statements
(``benchmarks/batches/reports``) for each objective and noise, and prints the largest ratio, the
geometric mean and CPU seconds, also as a multiple of those for the total error. ``hospital-counts``
is the 14 statements of the first batch that count, ``hospital-conditions`` all of it and three
conditions on age and length of stay together. ``--plot FILE`` draws the ratios of the first batch.

``python -m benchmarks statements meet`` gives the statements of ten batches tolerances, finds the
least ε or ρ, and plans with other seeds for 0.99 of it: whether one of them still meets is beside
it. Names of batches after ``meet`` are those that are tried. (With Gaussian noise all seeds agree:
the search has no random starts.)

``python -m benchmarks statements tables`` prints the largest variance of an answer at unit privacy
cost where all tables of some attributes have the same tolerance, with Gaussian noise, beside the
least possible one, which ResidualPlanner attains (arXiv:2305.08175): a convex program over the
variances of residuals, solved here by itself.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

import lrm
from benchmarks.batches.products import ADULT, CPS, LOANS
from lrm.planning.plan.goals import OBJECTIVES, Goals, Objective
from lrm.queries.workload import Statement

MOST_ANSWERS = 4_000_000
"""Tables of more answers are left out."""

FOLDER = Path(__file__).parents[1] / "batches" / "reports"
BATCHES = ("hospital", "flights", "staff", "survey", "shop")

WARM = lrm.Domain([lrm.Integers("a", 0, 9), lrm.Integers("b", 0, 9)], "t")
WARMING = "SELECT a, AVG(b) AS m FROM t GROUP BY a; SELECT b, COUNT(*) AS n FROM t GROUP BY b"
"""A batch that is planned first: modules are imported when they are first used."""


def read(batch: str) -> lrm.Workload:
    """A report of ``batches/reports``, with others, or those of its statements that count."""
    name, _, part = batch.partition("-")
    domain = lrm.read_domain(FOLDER / f"{name}.yaml")
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    if part == "conditions":
        text += (FOLDER / f"{batch}.sql").read_text(encoding="utf-8")
    elif part == "counts":
        other = re.compile("AVG|MEDIAN|percent")
        text = ";".join(one for one in text.split(";") if not other.search(one))
    return lrm.sql(text, domain)


def ratios_of(plan: lrm.Plan, goals: Goals | None) -> NDArray[np.float64]:
    """The ratios of a plan, also of one that was made for the total error."""
    if goals is None:
        raise SystemExit("the batch has one statement")
    return np.sqrt(goals.squares_of(plan.measured, plan.reconstruction_map))


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
    parser.add_argument(
        "batches", nargs="*", default=list(BATCHES), help="of benchmarks/batches/reports"
    )
    parser.add_argument("--noise", default="pure,gaussian", help="comma-separated")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--plot", type=Path, help="draw the first batch with the first noise")
    chosen = parser.parse_args(arguments)
    if chosen.batches[0] == "meet":
        meet(chosen.batches[1:] or BATCHES, chosen.noise.split(","), chosen.effort)
        return
    if chosen.batches == ["tables"]:
        largest_variances(chosen.effort)
        return
    columns = f"{'largest':>8}{'mean':>7}{'above 1':>8}{'CPU s':>7}{'of total':>9}"
    print(f"{'batch':20}{'noise':10}{'objective':10}{columns}")
    for noise in chosen.noise.split(","):
        for batch in chosen.batches:
            found = measure(batch, noise, chosen.effort)
            if chosen.plot is not None:
                draw(found, chosen.plot)
                chosen.plot = None


def measure(batch: str, noise: str, effort: str) -> dict[str, NDArray[np.float64]]:
    """Plan a batch for each objective and print what it comes to."""
    found: dict[str, NDArray[np.float64]] = {}
    goals = None
    order: tuple[Objective, ...] = ("balanced", "worst", "total")
    lrm.plan(WARMING, domain=WARM, noise=noise, effort="quick")  # type: ignore[arg-type]
    seconds: dict[str, float] = {}
    for objective in order:
        workload = read(batch)  # nothing is known about it yet
        start = time.process_time()
        plan = lrm.plan(workload, noise=noise, objective=objective, effort=effort)  # type: ignore[arg-type]
        seconds[objective] = time.process_time() - start
        goals = plan.even_split if goals is None else goals
        found[objective] = ratios_of(plan, goals)
    for objective in OBJECTIVES:
        ratios, spent = found[objective], seconds[objective]
        mean, above = np.exp(np.log(ratios).mean()), int((ratios > 1.0).sum())
        print(
            f"{batch:20}{noise:10}{objective:10}{ratios.max():8.3f}{mean:7.3f}{above:8}{spent:7.1f}"
            f"{spent / seconds['total']:9.2f}",
            flush=True,
        )
    return {objective: found[objective] for objective in OBJECTIVES}


TOLERANCES = (("hospital", 6), ("hospital", 14), ("flights", 6), ("flights", 14), ("staff", 6))
TOLERANCES += (("staff", 14), ("survey", 6), ("survey", 14), ("shop", 6), ("shop", 14))
"""Batches, and how many of their statements have a tolerance."""


def with_tolerances(batch: str, count: int) -> lrm.Workload:
    """Every so many-th statement of counts of a report must be within 1 to 3 % of 20,000."""
    workload = read(batch)
    counted = [one for one in workload.statements if one.derived[0] == one.derived[1]][:count]
    names = {one.name: 200.0 * (1 + k % 3) for k, one in enumerate(counted)}
    statements = [
        replace(one, within=(("", names[one.name]),) if one.name in names else ())
        for one in workload.statements
    ]
    return replace(workload, statements=tuple(statements))


def meet(batches: Sequence[str], noises: Sequence[str], effort: str) -> None:
    """Print the least amount of each batch, and whether another seed meets at 0.99 of it."""
    columns = f"{'amount':>11}{'other seeds':>16}{'minimal to 1 %':>16}{'CPU s':>7}"
    print(f"{'batch':10}{'noise':10}{'wanted':>6}{columns}")
    for noise in noises:
        for batch, count in TOLERANCES:
            if batch not in batches:
                continue
            workload, amounts, seconds = with_tolerances(batch, count), [], []
            for seed in (0, 101, 202):
                start = time.process_time()
                plan = lrm.plan(workload, noise=noise, meet=0.95, effort=effort, seed=seed)  # type: ignore[arg-type]
                amounts.append(float(next(iter(plan.meets().privacy.amounts.values()))))
                seconds.append(time.process_time() - start)
            others = ", ".join(f"{amount / amounts[0]:.4f}" for amount in amounts[1:])
            minimal = "yes" if min(amounts) > 0.99 * amounts[0] else "no"
            print(
                f"{batch:10}{noise:10}{count:6}{amounts[0]:11.5g}{others:>16}{minimal:>16}"
                f"{seconds[0]:7.1f}",
                flush=True,
            )


def largest_variances(effort: str) -> None:
    """Print the largest variance over all tables of one, two, three and up to three attributes."""
    named = {"cps": CPS, "adult": ADULT, "loans": LOANS}
    print(f"{'table':8}{'attributes':>10}{'answers':>13}{'least':>10}{'ours':>10}{'CPU s':>7}")
    for name, sizes in named.items():
        for orders in ((1,), (2,), (3,), (0, 1, 2, 3)):
            tables = [t for k in orders for t in itertools.combinations(range(len(sizes)), k)]
            answers = sum(math.prod(sizes[i] for i in table) for table in tables)
            least = least_variance(sizes, tables)
            ours = ""
            if answers <= MOST_ANSWERS:
                begun = time.process_time()
                variance = _our_variance(sizes, orders, effort)
                ours = f"{variance:10.5g}{time.process_time() - begun:7.1f}"
            of = "up to 3" if len(orders) > 1 else str(*orders)
            print(f"{name:8}{of:>10}{answers:13,}{least:10.5g}{ours}", flush=True)


def _our_variance(sizes: Sequence[int], orders: Sequence[int], effort: str) -> float:
    domain = lrm.Domain([lrm.Integers(f"a{i}", 0, n - 1) for i, n in enumerate(sizes)], "t")
    workload = lrm.marginals(domain, list(orders))
    start, statements = 0, []
    for i, block in enumerate(workload.labels.tables()):
        rows = start, start + len(block)
        statements.append(Statement(f"s{i}", f"s{i}", (), ("q",), rows, within=(("", 1.0),)))
        start = rows[1]
    workload = replace(workload, statements=tuple(statements))
    plan = lrm.plan(workload, noise="gaussian", meet=0.95, effort=effort)  # type: ignore[arg-type]
    return float(plan.reconstruction_map.row_squared_norms.max() * plan.sensitivity**2)


def least_variance(sizes: Sequence[int], tables: Sequence[tuple[int, ...]]) -> float:
    """The least possible largest variance of tables at unit privacy cost.

    With a variance x of the residual of attributes A, the cost is Π (n−1)/n over A, divided by x,
    and a table T ⊇ A has x·Π (n−1)/n over A times Π n⁻² over T∖A of it. The largest over T is the
    largest mean by any weights of the tables, whose minimum has a closed form; the best weights
    are those of the largest such minimum, a concave function of them.
    """
    residuals = sorted(
        {some for table in tables for k in range(len(table) + 1) for some in _subsets(table, k)}
    )
    number = {some: place for place, some in enumerate(residuals)}
    rows, columns, values = [], [], []
    for t, table in enumerate(tables):
        for k in range(len(table) + 1):
            for some in _subsets(table, k):
                outside = math.prod(sizes[i] ** -2 for i in table if i not in some)
                inside = math.prod(1 - 1 / sizes[i] for i in some)
                rows.append(t)
                columns.append(number[some])
                values.append(inside * outside)
    shares = sp.csr_array((values, (rows, columns)), shape=(len(tables), len(residuals)))
    costs = np.array([math.prod(1 - 1 / sizes[i] for i in some) for some in residuals])

    def negative(logs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        roots = np.sqrt(costs * (shares.T @ weights))
        slope = shares @ (costs / np.maximum(roots, 1e-300)) / (2 * roots.sum())
        return -math.log(roots.sum()), -weights * (slope - weights @ slope)

    options = {"maxiter": 20000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(negative, np.zeros(len(tables)), jac=True, method="L-BFGS-B", options=options)
    return math.exp(-2 * float(found.fun))


def _subsets(table: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations(table, size)


if __name__ == "__main__":
    main()
