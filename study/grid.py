"""Table 1 of the paper: what is varied, what is held, and which figure shows it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from lrm.errors import UsageError
from lrm.planning.solvers.settings import MOST_SPLIT
from lrm.queries.workload import Workload, families
from study.scales import SCALES, Scale

__all__ = [
    "DATASETS",
    "DELTA",
    "FIGURES",
    "MECHANISMS",
    "SCALES",
    "Case",
    "Figure",
    "Mechanism",
    "PlanSpec",
    "Scale",
    "Setting",
    "cases_of",
    "setting_of",
]

DATASETS = ("search_log", "net_trace", "social_network")
WORKLOADS = ("WDiscrete", "WRange", "WRelated")
GAMMAS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
RANK_RATIOS = (0.8, 1.0, 1.2, 1.4, 1.7, 2.1, 2.5, 3.0, 3.6)
S_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
GAMMA, RANK_RATIO, S_RATIO = 0.01, 1.2, 0.5
"""The defaults that Table 1 prints in bold; those of n and m are in each ``Scale``."""


@dataclass(frozen=True)
class Setting:
    """A workload: its family, its sizes, and the seed that makes it."""

    family: str
    queries: int
    cells: int
    s: int | None = None
    seed: int = 0

    def workload(self) -> Workload:
        """Make the workload; equal settings make equal ones."""
        if self.family == "WDiscrete":
            return families.wdiscrete(self.queries, self.cells, seed=self.seed)
        if self.family == "WRange":
            return families.wrange(self.queries, self.cells, seed=self.seed)
        return families.wrelated(self.queries, self.cells, seed=self.seed, s=self.s)

    @property
    def largest_rank(self) -> int:
        """The rank that random queries of this shape have, nearly always."""
        return min(self.queries, self.cells, self.s or self.cells)


@dataclass(frozen=True)
class Mechanism:
    """A series of a figure.

    Parameters
    ----------
    label
        The paper's name, or ours.
    name
        The mechanism that ``lrm.plan`` knows.
    anytime
        Whether a search that is stopped early still gives what the name promises.
    whole
        False for the paper's relaxed program, whose answers are biased.
    noise
        ``"gaussian"`` promises (ε, δ) with δ = ``DELTA`` in place of pure ε; ``"pure"`` is noise
        shaped to the batch, or Laplace noise where none is better.
    """

    label: str
    name: str
    anytime: bool = False
    whole: bool = True
    noise: str = "laplace"


DELTA = "0.000001"
"""The δ of Gaussian series: a weaker promise than that of all others, beside them for scale."""

MECHANISMS = (
    Mechanism("LM", "noise-on-data"),
    Mechanism("NOR", "noise-on-results"),
    Mechanism("WM", "wavelet"),
    Mechanism("HM", "hierarchical"),
    Mechanism("AMM", "matrix"),
    Mechanism("LRM", "lowrank"),
    Mechanism("LRM relaxed", "lowrank", whole=False),
    Mechanism("best", "best", anytime=True),
    Mechanism("shaped", "best", anytime=True, noise="pure"),
    Mechanism("Gaussian", "best", anytime=True, noise="gaussian"),
)
"""Every series; adding a line adds a series that figures can name."""

_BY_LABEL = {mechanism.label: mechanism for mechanism in MECHANISMS}


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: what it varies, on which workloads, data and mechanisms."""

    number: int
    varies: str
    workloads: tuple[str, ...]
    mechanisms: tuple[str, ...]
    data: tuple[str, ...]
    epsilons: tuple[str, ...]
    caption: str


_ALONE = ("LRM", "LRM relaxed", "best")
_BASELINES = ("LM", "NOR", "WM", "HM", "LRM", "best", "Gaussian")
_WITH_AMM = ("LM", "NOR", "WM", "HM", "AMM", "LRM", "best", "Gaussian")
_ALL_EPSILONS = ("1", "0.1", "0.01")


def _figure(number: int, varies: str, workload: str, caption: str, *, amm: bool = False) -> Figure:
    mechanisms = _WITH_AMM if amm else _BASELINES
    if workload == "WRelated":  # the others have no low rank
        mechanisms = (*mechanisms, "shaped")
    return Figure(number, varies, (workload,), mechanisms, DATASETS, ("0.1",), caption)


FIGURES = {
    figure.number: figure
    for figure in (
        Figure(
            2,
            "gamma",
            WORKLOADS,
            _ALONE,
            DATASETS[:1],
            _ALL_EPSILONS,
            "Effect of the relaxation γ on LRM, search log",
        ),
        Figure(
            3,
            "rank_ratio",
            WORKLOADS,
            _ALONE,
            DATASETS[:1],
            _ALL_EPSILONS,
            "Effect of r on LRM, search log",
        ),
        _figure(4, "n", "WDiscrete", "Effect of domain size n on WDiscrete, ε = 0.1", amm=True),
        _figure(5, "n", "WRange", "Effect of domain size n on WRange, ε = 0.1", amm=True),
        _figure(6, "n", "WRelated", "Effect of domain size n on WRelated, ε = 0.1", amm=True),
        _figure(7, "m", "WRange", "Effect of number of queries m on WRange, ε = 0.1"),
        _figure(8, "m", "WRelated", "Effect of number of queries m on WRelated, ε = 0.1"),
        _figure(9, "s", "WRelated", "Effect of the rank s on WRelated, ε = 0.1"),
    )
}
"""The paper's figures 2 to 9, in its order."""


@dataclass(frozen=True)
class PlanSpec:
    """Everything that a plan depends on; neither data nor ε is part of it."""

    setting: Setting
    mechanism: str
    options: tuple[tuple[str, str | float | int | bool], ...] = ()

    def digest(self, code: str = "") -> str:
        """Name of the plan in the cache, for one version of the code."""
        return _digest([asdict(self), code])


@dataclass(frozen=True)
class Case:
    """One point of one series of one figure: all data sets and ε of it share a plan."""

    figure: int
    x: float
    label: str
    plan: PlanSpec
    data: tuple[str, ...]
    epsilons: tuple[str, ...]
    repetitions: int
    scale: str

    @property
    def key(self) -> str:
        """Name of the case in the results."""
        return _digest(asdict(self))

    @property
    def mechanism(self) -> Mechanism:
        """The series that the case belongs to."""
        return _BY_LABEL[self.label]

    @property
    def name(self) -> str:
        """What is planned, for people."""
        setting = self.plan.setting
        spelled = f"{self.label} on {setting.family} {setting.queries}×{setting.cells}"
        spelled += "" if setting.s is None else f", s = {setting.s}"
        return spelled + self._extra()

    def __str__(self) -> str:
        return f"figure {self.figure}: {self.name}"

    def _extra(self) -> str:
        varied = FIGURES[self.figure].varies
        return {"gamma": f", γ = {self.x:g}", "rank_ratio": f", r = {self.x:g}·rank"}.get(
            varied, ""
        )


def _digest(facts: object) -> str:
    spelled = json.dumps(facts, sort_keys=True).encode()
    return hashlib.sha256(spelled).hexdigest()[:20]


def cases_of(scale: Scale, figures: Iterable[int] = tuple(FIGURES)) -> list[Case]:
    """Every case of the grid, in the order of the figures."""
    found: list[Case] = []
    for number in figures:
        if number not in FIGURES:
            raise UsageError(f"the study has figures {', '.join(map(str, FIGURES))}, not {number}")
        figure = FIGURES[number]
        for x, setting, ratio, gamma in _points(scale, figure):
            for label in figure.mechanisms:
                spec = _plan_spec(_BY_LABEL[label], setting, scale, ratio, gamma)
                if spec is not None:
                    found.append(_case(figure, x, label, spec, scale))
    return found


def _case(figure: Figure, x: float, label: str, spec: PlanSpec, scale: Scale) -> Case:
    return Case(
        figure.number, x, label, spec, figure.data, figure.epsilons, scale.repetitions, scale.name
    )


def _points(scale: Scale, figure: Figure) -> Iterator[tuple[float, Setting, float, float]]:
    """Yield x, the setting, r over rank and γ of each point on the axis of a figure."""
    m, n = scale.default_queries, scale.default_cells
    for family in figure.workloads:
        if figure.varies == "gamma":
            yield from ((g, setting_of(family, m, n), RANK_RATIO, g) for g in GAMMAS)
        elif figure.varies == "rank_ratio":
            yield from ((r, setting_of(family, m, n), r, GAMMA) for r in RANK_RATIOS)
        elif figure.varies == "n":
            yield from ((c, setting_of(family, m, c), RANK_RATIO, GAMMA) for c in scale.cells)
        elif figure.varies == "m":
            yield from ((q, setting_of(family, q, n), RANK_RATIO, GAMMA) for q in scale.queries)
        else:
            yield from ((s, setting_of(family, m, n, s), RANK_RATIO, GAMMA) for s in S_RATIOS)


def setting_of(family: str, queries: int, cells: int, s_ratio: float = S_RATIO) -> Setting:
    """A workload of a family and size, with the paper's share of s where it has one."""
    s = max(1, round(s_ratio * min(queries, cells))) if family == "WRelated" else None
    return Setting(family, queries, cells, s)


def _plan_spec(
    mechanism: Mechanism, setting: Setting, scale: Scale, ratio: float, gamma: float
) -> PlanSpec | None:
    """The plan of one point, or None where the mechanism has none there."""
    if mechanism.name == "best":
        effort = ("effort", scale.effort)
        if mechanism.noise == "pure" and setting.largest_rank > MOST_SPLIT:
            return None  # no hull is tried
        noise = () if mechanism.noise == "laplace" else (("noise", mechanism.noise),)
        return PlanSpec(setting, "best", (effort, *noise))
    if mechanism.name != "lowrank":
        return PlanSpec(setting, mechanism.name)
    if mechanism.whole and ratio < 1:
        return None  # fewer measurements than the rank cannot rebuild the workload
    options: list[tuple[str, str | float | int | bool]] = [("gamma", gamma), ("rank_ratio", ratio)]
    if not mechanism.whole:
        options.append(("exact", False))
    return PlanSpec(setting, "lowrank", tuple(options))
