"""Simulated releases of one small batch, many at a time, to count how often intervals hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import lrm
from lrm.planning.derived import JointNoise, Noisy, derived_numbers, derived_values
from lrm.planning.derived.computed import places
from study.simulate import discrete_laplace

DOMAIN = lrm.Domain(
    [
        lrm.Categories("g", ["a", "b"]),
        lrm.Integers("x", 0, 19),
        lrm.Categories("late", [True, False]),
    ],
    "t",
)
TEXT = """
    SELECT g, COUNT(*) AS n FROM t GROUP BY g;
    SELECT AVG(late::INT) AS share, AVG(x) AS mean FROM t WHERE g = 'a';
    SELECT STDDEV(x) AS sd, VAR_POP(x) AS variance FROM t WHERE g = 'a';
    SELECT AVG(x) FILTER (WHERE late) - AVG(x) FILTER (WHERE NOT late) AS diff FROM t WHERE g = 'a';
    SELECT MEDIAN(x) AS middle, QUANTILE_CONT(x, 0.9) AS p90 FROM t WHERE g = 'a';
    SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS part FROM t GROUP BY g;
"""
BATCH = lrm.sql(TEXT, DOMAIN)


MOST_INPUTS = 4


class Replicated(Noisy):
    """The first group of a derived answer in many releases, as if these were its groups."""

    def __init__(self, accuracy, answers):
        super().__init__(None, accuracy)
        object.__setattr__(self, "many", answers)

    def answers(self, index, scales):
        return self.many[:, index[0]] * scales

    def joint(self, index, scales):
        found = super().joint(index[:1], scales)
        weights = np.broadcast_to(found.weights, (len(self.many), *found.weights.shape[1:]))
        counts = np.broadcast_to(found.counts, (len(self.many), found.counts.shape[1]))
        return JointNoise(weights, counts, self.accuracy)


class Releases:
    """Many releases of a plan on the same counts, with simulated noise of the exact law."""

    def __init__(self, plan, counts, privacy, repetitions, rng):
        self.accuracy = plan.accuracy(privacy)
        law, shape = self.accuracy.law, (repetitions, plan.measurement_count)
        if plan.noise == "laplace":
            noise = discrete_laplace(law, shape, rng).astype(float)
        else:
            noise = np.rint(rng.normal(0.0, law.scale, shape))
        rows = plan.reconstruction_map.rows(0, plan.workload.shape[0])
        domain = plan.workload.domain
        every = np.zeros(domain.size)
        every[domain.declared_cells] = counts
        self.exact = plan.workload.queries.apply(every)
        self.answers = self.exact + noise @ rows.T * self.accuracy.step
        self.plan = plan

    def coverage(self, name, confidence=0.95):
        """How often the interval of a derived answer holds the truth, and how often it is open."""
        one = next(d for d in self.plan.workload.derived if d.label.query == name)
        noisy = Replicated(self.accuracy, self.answers)
        found = derived_numbers(one, 0, 1, noisy, confidence)
        (truth,) = derived_values(one, 0, 1, Noisy(lambda a, b: self.exact[a:b], None))
        inside = (found["low"] <= truth + 1e-9) & (truth - 1e-9 <= found["high"])
        return float(inside.mean()), float(np.isinf(found["high"] - found["low"]).mean())

    def denominator(self, name):
        """The smallest denominator of a formula, in standard errors."""
        one = next(d for d in self.plan.workload.derived if d.label.query == name)
        noisy = Noisy(lambda start, stop: self.exact[start:stop], self.accuracy)
        index, scales = places(one, 0, 1)
        noise = noisy.joint(index, scales)
        _, divisors = one.formula.core.dual(noisy.answers(index, scales).T)
        return min(float((d / noise.deviations(slope.T))[0]) for d, slope in divisors)


def counts_of(per_cell, seed):
    """Counts with so many rows in a cell on average, more of them in the middle."""
    rng = np.random.default_rng(seed)
    shape = np.ones(DOMAIN.shape) * np.exp(-((np.arange(20) - 8.0) ** 2) / 60)[None, :, None]
    return rng.poisson(per_cell * shape).ravel()


PRIVACY = {"laplace": {"epsilon": Fraction(1)}, "gaussian": {"rho": Fraction(1, 10)}}
