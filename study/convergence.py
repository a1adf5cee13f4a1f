"""The paper's convergence and complexity statements, measured.

*Theorem 4*: the objective after k rounds is within O(1/β) of the optimum, and β doubles every ten
rounds. *Complexity*: a run costs O(N_in·N_out·(r²m + r²n)).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lrm.clock import Clock, Step
from lrm.errors import FileFormatError, StopSolver
from lrm.files.writing import write_text
from lrm.planning.solvers.lagrangian import Round, Schedule, decompose
from study.evidence import Finding, Results, exponent, judge
from study.figures import draw, readable_axis
from study.grid import RANK_RATIO, WORKLOADS, Scale, setting_of

__all__ = [
    "Convergence",
    "Pace",
    "Trace",
    "describe_convergence",
    "load_convergence",
    "measure_convergence",
    "plot_convergence",
]

PACE_ROUNDS = 3
"""Rounds that are timed; a gradient costs the same early and late."""

PACE_REPEATS = 3
"""Runs of which the median counts."""

NEAR_OPTIMUM = 1.05
"""An objective within this factor of the best known error has found the optimum, nearly."""

MOST_ROUNDS = 200
"""The rounds that the paper speaks of; β has grown a millionfold by then."""

_SHORT_ROUNDS = Schedule(slack=None, alternations=3)


@dataclass(frozen=True)
class Trace:
    """One run of Algorithm 1: β, objective ‖B‖² and residual after every round."""

    workload: str
    queries: int
    cells: int
    measurements: int
    beta: tuple[float, ...]
    objective: tuple[float, ...]
    residual: tuple[float, ...]
    converged: bool
    cpu_seconds: float

    def gap_exponent(self) -> float:
        """The p of ``|‖B_k‖² − ‖B_end‖²| ∝ β^p``, from half of the rounds to the last β but one.

        At the last β the gap to the end vanishes by definition.
        """
        start, series = len(self.beta) // 2, {}
        for beta, objective in zip(self.beta[start:], self.objective[start:], strict=True):
            series[beta] = abs(objective - self.objective[-1])  # the last round of each β
        return exponent({b: gap for b, gap in series.items() if gap > 0 and b < self.beta[-1]})


@dataclass(frozen=True)
class Pace:
    """Seconds of CPU for one gradient of Algorithm 2, on a dense random workload."""

    varied: str
    queries: int
    cells: int
    measurements: int
    seconds: float

    @property
    def x(self) -> int:
        """The value of what varies."""
        sizes = {"m": self.queries, "n": self.cells, "r": self.measurements}
        return sizes[self.varied]


@dataclass(frozen=True)
class Convergence:
    """Traces and paces of one scale."""

    scale: str
    traces: tuple[Trace, ...]
    paces: tuple[Pace, ...]

    def exponents(self) -> dict[str, float]:
        """The fitted power of each of r, m and n in the time of a gradient."""
        return {
            varied: exponent({p.x: p.seconds for p in self.paces if p.varied == varied})
            for varied in ("r", "m", "n")
        }

    def findings(self, results: Results) -> list[tuple[str, Finding]]:
        """The paper's statements of Section 5, beside what was measured."""
        return [
            ("The objective tends to the optimum (Theorem 4).", self._reaches_optimum(results)),
            ("It does so like 1/β, here towards its own last value.", self._rate()),
            (
                f"β doubles every ten rounds, so the algorithm converges within {MOST_ROUNDS}.",
                self._rounds(),
            ),
            (
                "A step costs at most O(r²m + r²n): powers of at most 2 in r, 1 in m and n.",
                _within_powers(
                    {(varied, ""): power for varied, power in self.exponents().items()},
                    {"r": 2.2, "m": 1.2, "n": 1.2},
                    "one gradient",
                ),
            ),
            (
                "So does a run: powers of at most 2 in r, 1 in n, and 3 in m where r grows with m.",
                _within_powers(
                    _run_exponents(results), {"r": 2.2, "n": 1.2, "m": 3.2}, "CPU seconds of LRM"
                ),
            ),
        ]

    def _reaches_optimum(self, results: Results) -> Finding:
        """Test against the best error that is known, which the optimum is at most."""
        ratios = {}
        for trace in self.traces:
            known = results.series(2, "best", workload=trace.workload, epsilon=0.1)
            if known:
                unit = min(known.values()) * 0.1**2 / 2
                ratios[trace.workload] = trace.objective[-1] / unit
        told = ", ".join(f"{workload} {ratio:.3g}" for workload, ratio in ratios.items())
        return judge(
            [ratio <= NEAR_OPTIMUM for ratio in ratios.values()],
            f"last objective over the error of best: {told}; a saddle or local optimum "
            "satisfies the algorithm's conditions too",
        )

    def _rate(self) -> Finding:
        powers = {t.workload: t.gap_exponent() for t in self.traces}
        known = {workload: p for workload, p in powers.items() if math.isfinite(p)}
        told = ", ".join(f"{workload} ∝ β^{p:.2f}" for workload, p in known.items())
        return judge(
            [power <= -0.9 for power in known.values()],
            f"fitted from half of the rounds to the last β but one: {told}",
        )

    def _rounds(self) -> Finding:
        told = ", ".join(
            f"{t.workload} {len(t.beta)} rounds"
            + ("" if t.converged else f" without converging (residual {t.residual[-1]:.3g})")
            for t in self.traces
        )
        return judge([t.converged and len(t.beta) <= MOST_ROUNDS for t in self.traces], told)


def _within_powers(
    powers: Mapping[tuple[str, str], float], limits: Mapping[str, float], what: str
) -> Finding:
    """Hold fitted powers, by variable and place, against the limit of the variable."""
    known = {key: power for key, power in powers.items() if math.isfinite(power)}
    told = ", ".join(f"{varied}^{power:.2f}{place}" for (varied, place), power in known.items())
    return judge(
        [power <= limits[varied] for (varied, _), power in known.items()], f"{what} ∝ {told}"
    )


def _run_exponents(results: Results) -> dict[tuple[str, str], float]:
    """Powers of r (figure 3), n (figures 4 to 6) and m (7 and 8) in the time of whole runs."""
    curves = {
        ("r", f" on {workload}"): series
        for workload, series in results.by_workload(3, "LRM", "cpu_seconds").items()
    }
    for varied, figures in (("n", (4, 5, 6)), ("m", (7, 8))):
        for figure in figures:
            place = f" on {results.workloads(figure)[0]}"
            curves[varied, place] = results.series(figure, "LRM", what="cpu_seconds")
    return {key: exponent(series) for key, series in curves.items() if len(series) > 2}


def measure_convergence(
    scale: Scale,
    *,
    time_limit: float | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Convergence:
    """Run Algorithm 1 on the default sizes, and time its gradients over a range of sizes."""
    traces = []
    with threadpool_limits(1):
        for family in WORKLOADS:
            on_progress(f"convergence on {family}")
            traces.append(_trace(family, scale, time_limit))
        on_progress("time of a gradient")
        paces = tuple(_pace(*point) for point in _pace_points(scale))
    return Convergence(scale.name, tuple(traces), paces)


def _trace(family: str, scale: Scale, limit: float | None) -> Trace:
    m, n = scale.default_queries, scale.default_cells
    setting = setting_of(family, m, n)
    W = setting.workload().queries.dense()
    rank = math.ceil(RANK_RATIO * setting.largest_rank - 1e-9)
    began = time.process_time()

    def until(step: Step) -> None:
        del step
        if limit is not None and time.process_time() - began > limit:
            raise StopSolver

    found = decompose(W, rank, rng=np.random.default_rng(0), clock=Clock(on_step=until))
    spent = time.process_time() - began
    beta, objective, residual = _columns(found.rounds)
    return Trace(family, m, n, rank, beta, objective, residual, found.converged, spent)


def _columns(rounds: Iterable[Round]) -> tuple[tuple[float, ...], ...]:
    rows = [(r.beta, r.objective, r.residual) for r in rounds]
    return tuple(zip(*rows, strict=True))


def _pace_points(scale: Scale) -> list[tuple[str, int, int, int]]:
    """Sizes m, n, r: each varied by factors of two about the default, the others held."""
    # Smaller products than these take no time beside what goes on around them.
    m, n = max(scale.default_queries, 64), max(scale.default_cells, 256)
    r = math.ceil(RANK_RATIO * m)
    steps = (0.5, 1.0, 2.0, 4.0)
    points = [("r", m, n, math.ceil(r * step)) for step in steps]
    points += [("m", math.ceil(m * step), n, 2 * m) for step in steps[:3]]
    return points + [("n", m, math.ceil(n * step), r) for step in steps]


def _pace(varied: str, m: int, n: int, r: int) -> Pace:
    W = np.random.default_rng([m, n, r]).standard_normal((m, n))
    return Pace(varied, m, n, r, median(_seconds_of_gradient(W, r) for _ in range(PACE_REPEATS)))


def _seconds_of_gradient(W: NDArray[np.float64], r: int) -> float:
    """The time of a round over its gradients, with their share of projections and of B."""
    marks: list[float] = []

    def until(step: Step) -> None:
        marks.append(time.process_time())
        if step.iteration > PACE_ROUNDS:
            raise StopSolver

    found = decompose(
        W, r, rng=np.random.default_rng(0), clock=Clock(on_step=until), schedule=_SHORT_ROUNDS
    )
    # From the end of the first round: the singular values before it are no part of a round.
    evaluations = sum(round_.evaluations for round_ in found.rounds[1:])
    return (marks[-1] - marks[0]) / max(1, evaluations)


def describe_convergence(result: Convergence) -> str:
    """The caption: which sizes the traces and the gradients have."""
    first, timed = result.traces[0], {p.varied: p for p in result.paces}
    return (
        f"Algorithm 1 on {first.queries}×{first.cells}, r = {RANK_RATIO}·rank: objective, "
        "residual, and the objective's distance from its last value. Below, the time of one "
        "gradient on random "
        f"workloads (median of {PACE_REPEATS}): r varies at m = {timed['r'].queries}, "
        f"n = {timed['r'].cells}; m at n = {timed['m'].cells}, r = {timed['m'].measurements}; "
        f"n at m = {timed['n'].queries}, r = {timed['n'].measurements}."
    )


def save_convergence(result: Convergence, path: Path) -> None:
    """Write it as JSON: a few kilobytes of numbers that people may want to look at."""
    write_text(path, json.dumps(asdict(result), indent=1))


def load_convergence(path: Path) -> Convergence | None:
    """Read what ``save_convergence`` wrote; None where there is nothing."""
    if not path.exists():
        return None
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        traces: list[dict[str, Any]] = [
            {k: tuple(v) if isinstance(v, list) else v for k, v in t.items()}
            for t in facts["traces"]
        ]
        return Convergence(
            facts["scale"],
            tuple(Trace(**trace) for trace in traces),
            tuple(Pace(**pace) for pace in facts["paces"]),
        )
    except (ValueError, TypeError, KeyError) as reason:
        raise FileFormatError(
            f"{path} holds no convergence of this version; delete it and run "
            "`python -m study run --figures convergence`"
        ) from reason


def plot_convergence(result: Convergence, folder: Path) -> Path:
    """Objective and residual per round above; time of a gradient against r, m, n below."""
    return draw("convergence", folder, (2, 3), lambda _, axes: _paint(axes, result))


_LOOKS = {"WDiscrete": "#4c72b0", "WRange": "#c44e52", "WRelated": "#0b6e4f"}


def _paint(axes: Any, result: Convergence) -> None:
    for trace in result.traces:
        look = {"color": _LOOKS[trace.workload], "label": trace.workload}
        rounds = range(1, len(trace.beta) + 1)
        last = trace.objective[-1]
        axes[0][0].plot(rounds, trace.objective, **look)
        axes[0][1].plot(rounds, trace.residual, **look)
        gaps = [max(abs(o - last) / last, 1e-12) for o in trace.objective[:-1]]
        axes[0][2].plot(trace.beta[:-1], gaps, ".", **look)
    titles = (
        "objective ‖B‖² per round",
        "residual ‖W − BL‖ per round",
        "|objective − last| / last against β",
    )
    for panel, title, x in zip(axes[0], titles, ("round", "round", "β"), strict=True):
        panel.set(title=title, xlabel=x, yscale="log")
        panel.legend(frameon=False)
    axes[0][2].set_xscale("log", base=2)
    for panel, (varied, power) in zip(axes[1], result.exponents().items(), strict=True):
        points = {p.x: 1000 * p.seconds for p in result.paces if p.varied == varied}
        panel.plot(list(points), list(points.values()), "o-", color="#1f2430")
        title = f"one gradient: like ${varied}^{{{power:.2f}}}$"
        panel.set(title=title, xlabel=varied, ylabel="CPU ms")
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        readable_axis(panel)
        panel.set_xticks(list(points), [f"{x:g}" for x in points])
        panel.minorticks_off()
