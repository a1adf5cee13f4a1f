"""Graphical models of mbi: fitted to released tables, or chosen round by round as AIM does.

AIM is written after its description: R. McKenna, B. Mullins, D. Sheldon and G. Miklau, "AIM: an
adaptive and iterative mechanism for differentially private synthetic data", VLDB 2022, Algorithm 4,
with the values that the paper recommends. The noise is seeded and simulated: this is a study.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mbi import Dataset, Domain, LinearMeasurement
from mbi.clique_utils import downward_closure
from mbi.estimation import MirrorDescent
from mbi.junction_tree import hypothetical_model_size

Clique = tuple[str, ...]
ROUNDS_PER_ATTRIBUTE = 16
MEASURED_SHARE = 0.9
"""Of the budget: the rest selects what is measured."""


def counts(source: Any, clique: Clique) -> np.ndarray:
    """The table of some attributes in rows or in a model."""
    return np.asarray(source.project(clique).datavector(), dtype=np.float64)


def fitted(domain: Domain, tables: list[Any], steps: int, model: Any = None) -> Any:
    """The model that is nearest to noisy tables, from the model before."""
    return MirrorDescent().estimate(domain, tables, iters=steps, warm_start=model)


class NoisyTables:
    """Noisy tables; several of the same attributes are one, their weighted mean."""

    def __init__(self) -> None:
        self.sums: dict[Clique, np.ndarray] = {}
        self.precisions: dict[Clique, float] = {}

    def add(self, clique: Clique, values: np.ndarray, sigma: float) -> None:
        """Add one measurement."""
        weight = sigma**-2
        self.sums[clique] = self.sums.get(clique, 0.0) + weight * values
        self.precisions[clique] = self.precisions.get(clique, 0.0) + weight

    def measurements(self) -> list[Any]:
        """What a model is fitted to."""
        return [
            LinearMeasurement(total / self.precisions[c], c, self.precisions[c] ** -0.5)
            for c, total in self.sums.items()
        ]


class Aim:
    """AIM on one table: what was measured, what is left, and the model so far."""

    def __init__(self, rows: Dataset, job: dict[str, Any], rho: float, seed: int) -> None:
        self.rows, self.domain, self.rho = rows, rows.domain, rho
        self.steps, self.megabytes = job["steps"], job["megabytes"]
        self.random = np.random.default_rng(seed)
        asked = [tuple(table) for table in job["tables"]]
        closure = [self.domain.canonical(clique) for clique in downward_closure(asked)]
        self.weights = {c: sum(len(set(c) & set(table)) for table in asked) for c in closure}
        rounds = ROUNDS_PER_ATTRIBUTE * len(self.domain)
        self.sigma = math.sqrt(rounds / (2 * MEASURED_SHARE * rho))
        self.epsilon = math.sqrt(8 * (1 - MEASURED_SHARE) * rho / rounds)
        self.tables, self.spent, self.model = NoisyTables(), 0.0, None

    def run(self) -> Any:
        """Spend all of ρ; the last model."""
        for clique in self.weights:
            if len(clique) == 1:
                self.measure(clique)
        self.model = fitted(self.domain, self.tables.measurements(), self.steps)
        last = False
        while not last:
            left = self.rho - self.spent
            last = left < 2 * (0.5 / self.sigma**2 + self.epsilon**2 / 8)
            if last:
                self.sigma = math.sqrt(0.5 / (MEASURED_SHARE * left))
                self.epsilon = math.sqrt(8 * (1 - MEASURED_SHARE) * left)
            self.round()
        return self.model

    def measure(self, clique: Clique) -> None:
        """Measure one table, at a cost of 1/(2σ²)."""
        exact = counts(self.rows, clique)
        noisy = exact + self.random.normal(0.0, self.sigma, exact.shape)
        self.tables.add(clique, noisy, self.sigma)
        self.spent += 0.5 / self.sigma**2

    def round(self) -> None:
        """Select the worst table, at a cost of ε²/8; measure it; fit again."""
        self.spent += self.epsilon**2 / 8
        worst = self.selected((self.spent + 0.5 / self.sigma**2) / self.rho)
        before = counts(self.model, worst)
        self.measure(worst)
        self.model = fitted(self.domain, self.tables.measurements(), self.steps, self.model)
        if np.abs(counts(self.model, worst) - before).sum() <= self.noise_of(worst):
            self.sigma /= 2
            self.epsilon *= 2

    def noise_of(self, clique: Clique) -> float:
        """The expected L1 norm of the noise on a table."""
        return math.sqrt(2 / math.pi) * self.sigma * self.domain.size(clique)

    def selected(self, share: float) -> Clique:
        """A table that a small model admits and describes badly, by the exponential mechanism."""
        known = list(self.tables.sums)
        able = [
            clique
            for clique in self.weights
            if clique in self.tables.sums
            or hypothetical_model_size(self.domain, [*known, clique]) <= share * self.megabytes
        ]
        qualities = np.array([self.quality(clique) for clique in able])
        sensitivity = max(self.weights[clique] for clique in able)
        scores = 0.5 * self.epsilon / sensitivity * qualities
        return able[int(np.argmax(scores + self.random.gumbel(size=len(able))))]

    def quality(self, clique: Clique) -> float:
        """How far the model's table is from that of the rows, beyond the noise of measuring it."""
        distance = float(np.abs(counts(self.rows, clique) - counts(self.model, clique)).sum())
        return self.weights[clique] * (distance - self.noise_of(clique))


def answers(source: Any, job: dict[str, Any]) -> list[float]:
    """The cells of all tables that were asked for."""
    return [value for table in job["tables"] for value in counts(source, tuple(table)).tolist()]


def fits(job: dict[str, Any], domain: Domain) -> list[dict[str, Any]]:
    """A model of each release of the job."""
    found = []
    for release in job["releases"]:
        began = time.process_time()
        tables, start = [], 0
        for table, sigma in zip(job["tables"], release["errors"], strict=True):
            stop = start + domain.size(table)
            values = np.array(release["answers"][start:stop])
            tables.append(LinearMeasurement(values, tuple(table), sigma))
            start = stop
        model = fitted(domain, tables, job["steps"])
        made = model.synthetic_data()
        seconds = time.process_time() - began
        found.append({"model": answers(model, job), "rows": answers(made, job), "seconds": seconds})
    return found


def aims(job: dict[str, Any], domain: Domain) -> list[dict[str, Any]]:
    """AIM on the table of the job, once per seed."""
    columns = {name: np.array(values) for name, values in job["columns"].items()}
    found = []
    for seed in job["seeds"]:
        began = time.process_time()
        aim = Aim(Dataset(columns, domain), job, job["rho"], seed)
        model = aim.run()
        made = model.synthetic_data()
        seconds = time.process_time() - began
        found.append({"model": answers(model, job), "rows": answers(made, job), "seconds": seconds})
    return found


def main() -> None:
    """Do the job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    domain = Domain.fromdict(job["sizes"])
    runs = aims(job, domain) if "columns" in job else fits(job, domain)
    Path(sys.argv[2]).write_text(json.dumps({"runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
