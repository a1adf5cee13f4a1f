"""A race of descents for one workload: which of them to begin, to continue and to leave.

Every kind of descent is a family. Whatever could be done next, another descent of a family or the
next stage of one that has begun, has an expected gain and a cost in work; the race does what gains
most per second, and ends when that is less than a threshold. Work is counted in operations, not in
time, so that the same seed has the same result on every machine.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from lrm.clock import Clock, Step
from lrm.errors import ConvergenceError, StopSolver
from lrm.planning.solvers.exact import ExactPair, checked_pair, factorise
from lrm.queries.maps.linear import Floats


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that was tried: its name, the error it reached, and what it cost."""

    name: str
    error: float
    iterations: int
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a descent is expected to do, before any has been seen.

    Seconds of work, and the ratio of the error after it to that before it.
    """

    cost: float
    ratio: float = 1.0


@dataclass(eq=False)
class DescentKind:
    """Descents of one kind, from different starts.

    Parameters
    ----------
    name
        What the candidates are called.
    begin
        Begins another descent: each step of the iterator runs one stage and yields the error so
        far and the seconds of work that the stage took.
    stages
        What to expect of them.
    hope
        Expected relative gain of the first descent, by what is known when it is asked.
    limit
        How many descents there can be.
    needed
        How many stages a descent that does not win goes through, about; all of them by default.
    """

    name: str
    begin: Callable[[], Iterator[tuple[float, float]]]
    stages: Sequence[Stage]
    hope: Callable[[], float]
    limit: int = 1_000_000
    needed: int | None = None
    runs: list[_Run] = field(default_factory=list)
    seen: list[list[tuple[float, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = [[] for _ in self.stages]

    def close(self) -> None:
        """End the descents that have begun, now rather than whenever garbage is collected."""
        for run in self.runs:
            if isinstance(run.steps, Generator):
                run.steps.close()

    def cost(self, stage: int) -> float:
        """Seconds that a stage takes: the mean of those seen."""
        seen = self.seen[stage]
        return float(np.mean([cost for cost, _ in seen])) if seen else self.stages[stage].cost

    def ratio(self, stage: int) -> float:
        """By which factor a stage changes the error: the mean of those seen, once there are some.

        Descents differ: after one poor stage, the next best run still gets its chance.
        """
        ratios = [ratio for _, ratio in self.seen[stage]]
        expected = self.stages[stage].ratio
        if len(ratios) < 3:  # too few to be believed over what was expected
            return min(expected, float(np.exp(np.mean(np.log([expected, *ratios])))))
        return float(np.mean(ratios))

    def another(self, best: float) -> tuple[float, float]:
        """Expected relative gain and cost of another descent.

        The lowest of m errors is the lowest of m + 1 with a chance of 1/(m + 1), and is then about
        as far below the others as they are from each other. What later stages of the descents so
        far may still gain is no reason for another one. Neither is a family most of whose descents
        found no strategy at all.
        """
        cost = sum(map(self.cost, range(len(self.stages))[: self.needed]))
        m = len(self.runs)
        if m >= self.limit:
            return 0.0, cost
        if m == 0:
            return self.hope(), cost
        errors = sorted(e for run in self.runs if np.isfinite(e := run.expected()))
        if 2 * len(errors) < m + 1:
            return 0.0, cost
        low, *higher_errors = errors
        near = float(np.mean(higher_errors[:2])) - low if higher_errors else 0.1 * low
        return max(0.0, min(best - low, 0.0) + min(near, low)) / (best * (m + 1)), cost


@dataclass(eq=False)
class _Run:
    """A descent that has begun: how many stages it has behind it, and its error."""

    family: DescentKind
    steps: Iterator[tuple[float, float]]
    error: float = np.inf
    done: int = 0

    def expected(self) -> float:
        """The error at its end."""
        rest = range(self.done, len(self.family.stages))
        return self.error * float(np.prod([self.family.ratio(stage) for stage in rest]))

    def continued(self, best: float) -> tuple[float, float]:
        """Expected relative gain and cost of the rest."""
        rest = range(self.done, len(self.family.stages))
        return max(0.0, 1.0 - self.expected() / best), sum(map(self.family.cost, rest))

    def advance(self) -> None:
        """Run the next stage."""
        before = self.error
        self.error, cost = next(self.steps)
        ratio = self.error / before if self.done and before > 0 else 1.0
        # Seconds that a stage takes at least.
        self.family.seen[self.done].append((max(cost, 0.02), ratio))
        self.done += 1


class Race:
    """The candidates of one search on W, and the best of them.

    The best is always there: it begins as the identity.
    """

    def __init__(self, W: Floats, clock: Clock) -> None:
        self.W = np.ascontiguousarray(W, dtype=np.float64)
        self.candidates: list[Candidate] = []
        self.error, self.winner = np.inf, ""
        self.work = 0.0
        self.clock = clock.reporting(self._with_best)
        self._pair: Callable[[], ExactPair]
        self._noted, self._remaining = clock.elapsed(), np.inf
        cells = W.shape[1]
        self.offer("identity", float(np.vdot(W, W)), lambda: self._identity(cells))

    def _identity(self, cells: int) -> ExactPair:
        """Noise on data: ``B = W``; the identity is sparse, as cells may be tens of thousands."""
        return checked_pair(self.W, self.W, sp.eye_array(cells, format="csr"))

    def offer(
        self,
        name: str,
        error: float,
        pair: Callable[[], ExactPair],
        iterations: int = 0,
    ) -> None:
        """Note a candidate, and keep it if it is better than the best.

        ``pair`` makes its exact form, when that is wanted.
        """
        now = self.clock.elapsed()
        self.candidates.append(Candidate(name, float(error), iterations, now - self._noted))
        self._noted = now
        # A smaller relative gain does not count: integer strategies of 30 bits lose as much.
        if error < self.error * (1.0 - 1e-8) or self.error == np.inf:
            self.error, self.winner, self._pair = float(error), name, pair

    def offer_strategy(self, name: str, L: Floats, iterations: int = 0) -> float:
        """Measure a strategy in its exact form and offer it; infinite if it does not answer W."""
        try:
            pair = factorise(self.W, L)
        except ConvergenceError:
            return np.inf
        return self.offer_pair(name, pair, iterations)

    def offer_pair(self, name: str, pair: ExactPair, iterations: int = 0) -> float:
        """Offer a strategy in its exact form, and return its error."""
        self.offer(name, pair.error, lambda: pair, iterations)
        return pair.error

    def _with_best(self, step: Step) -> Step:
        """A report with the best error of the whole race and the time that is left."""
        return replace(step, error=min(self.error, step.error), remaining=self._remaining)

    def best(self) -> ExactPair:
        """The best so far as a pair that passed the exactness check."""
        return self._pair()

    def run(
        self, families: Sequence[DescentKind], threshold: float, patience: float = np.inf
    ) -> None:
        """Race until a second of work is expected to gain less than ``threshold`` of the error.

        A second is worth less the longer a search has taken: after ``patience`` seconds the
        threshold grows with the square of the work.
        """
        try:
            while self.error > 0:
                self.clock.check()
                limit = threshold * max(1.0, self.work / patience) ** 2
                # What takes more than this multiple of the patience of its budget is not begun.
                # With 100, tables over 900 cells took 14 s in place of 2, for nothing (python -m
                # benchmarks products unseen).
                if not self._advance(families, limit, 25 * patience):
                    break
        except StopSolver:
            pass
        finally:
            for family in families:
                family.close()

    def _advance(self, families: Sequence[DescentKind], threshold: float, longest: float) -> bool:
        """Do what is expected to gain most per second; False if nothing is worth its time.

        What takes more than ``longest`` seconds is not begun.
        """
        choices: list[tuple[float, float, _Run | DescentKind]] = []
        for family in families:
            choices.append((*family.another(self.error), family))
            open_runs = [run for run in family.runs if run.done < len(family.stages)]
            choices += [(*run.continued(self.error), run) for run in open_runs]
        choices = [
            c
            for c in choices
            if c[0] > threshold * max(c[1], 0.1) and c[1] < longest  # tiny steps are not worth it
        ]
        if not choices:
            return False
        self._remaining = self.clock.seconds_for(sum(cost for _, cost, _ in choices))
        best_choice = max(choices, key=lambda choice: choice[0] / choice[1])[2]
        if isinstance(best_choice, DescentKind):
            run = _Run(best_choice, best_choice.begin())
            best_choice.runs.append(run)
        else:
            run = best_choice
        run.advance()
        cost = run.family.seen[run.done - 1][-1][0]
        self.work += cost
        self.clock.spend(cost)
        return True
