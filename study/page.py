"""One Markdown page of the whole study: figures, captions, claims, and what did not fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lrm.files.writing import write_text
from lrm.planning.solvers.settings import MOST_SPLIT
from study.claims import Judged, evaluate, promises
from study.convergence import (
    Convergence,
    describe_convergence,
    load_convergence,
    plot_convergence,
)
from study.costs import Costs
from study.evidence import HOLDS, IN_PART, NOT, SO_FAR, UNTESTED, Results, is_loose
from study.figures import draw_figure, draw_shaped
from study.grid import FIGURES, cases_of
from study.rows import DONE, RowStore

__all__ = ["plot_study"]

_MANY = {
    HOLDS: "hold",
    SO_FAR: "hold so far (some points have no rows)",
    IN_PART: "hold in part",
    NOT: "do not hold",
    UNTESTED: "not tested",
}
_READING = (
    "Lines are expected errors by formula, markers means of simulated releases. The panels of a "
    "figure of several data sets agree up to noise: the error of an exact strategy does not depend "
    "on data. Gaussian noise guarantees (ε, 10⁻⁶) instead of pure ε, so it is not a baseline. "
    "Where the time of best is flat, its search reached the time limit."
)
_SHAPED = "Figures 6, 8 and 9 on the search log, with pure ε alone"
_KEPT = {True: HOLDS, False: NOT, None: UNTESTED}


def plot_study(folder: Path) -> list[Path]:
    """Draw all figures of the rows in ``folder``, and the page that shows them."""
    results = Results(RowStore(folder).load())
    convergence = load_convergence(folder / "convergence.json")
    place = folder / "figures"
    place.mkdir(parents=True, exist_ok=True)
    shown = sorted({row.figure for row in results.all_rows})
    paths = [draw_figure(number, results, place) for number in shown]
    if any(row.label == "shaped" for row in results.rows):
        paths.append(draw_shaped(results, place))
    if convergence is not None:
        paths.append(plot_convergence(convergence, place))
    index = folder / "index.md"
    write_text(index, _page(results, convergence, paths, _left(results)))
    return [*paths, index]


@dataclass(frozen=True)
class _Left:
    """A case without a result: its figure, what it is, why, and how long it would take."""

    figure: int
    name: str
    why: str
    seconds: float


def _left(results: Results) -> list[_Left]:
    """Cases of the figures that were begun which were stopped, failed, or are still to come."""
    begun = sorted({row.figure for row in results.all_rows})
    ended = {row.case: row for row in results.all_rows}
    found, costs = [], Costs(results.all_rows)
    for case in cases_of(results.scale, begun):
        row = ended.get(case.key)
        if row is None:
            seconds = costs.seconds(case.plan)
            found.append(_Left(case.figure, case.name, "not begun: the run ended before", seconds))
        elif row.status != DONE:
            found.append(_Left(case.figure, case.name, row.reason, row.estimated_seconds))
    return found


def _page(
    results: Results,
    convergence: Convergence | None,
    paths: Sequence[Path],
    left: Sequence[_Left],
) -> str:
    judged = evaluate(results)
    parts = [
        "# The Low-Rank Mechanism's study, run again",
        "Every figure of the paper from stored rows, and its claims put to the test.",
        *_made_by(results),
        f"**{_summary(judged)}**",
        "## What must hold on every row",
        _promises(results),
        "## The paper's claims",
        "`python -m study claims --json` prints the test, numbers and full reason of each claim.",
        _claims(judged),
        "## Figures",
        f"{_READING} {_about_shaped(results)}",
        *(_figure(path, left) for path in paths if path.stem.startswith("figure")),
        *(_captioned(path.stem, _SHAPED) for path in paths if path.stem == "shaped"),
    ]
    if convergence is not None:
        parts += ["## Convergence and complexity", *_convergence(convergence, results)]
    parts += ["## What did not fit", _left_out(results, left), "## Data", _data(results)]
    return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; characters that would end a cell are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    escaped = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def _made_by(results: Results) -> list[str]:
    scale = results.scale
    kinds = " · ".join(sorted({row.machine for row in results.all_rows}))
    versions = " · ".join(sorted({row.versions for row in results.all_rows}))
    code = ", ".join(sorted({row.code for row in results.all_rows}))
    commands = f"`python -m study run --scale {scale.name}` and `python -m study plot`"
    size = f"{len(results.all_rows):,} rows, {scale.repetitions} repetitions each."
    reading = (
        "Errors are squared L2 distances over the whole batch. The noise is simulated from a seed "
        f"and protects nobody. Times are seconds of one core. {scale.note}"
    )
    return [f"Made by {commands}: {size}", f"{versions}; code {code}; {kinds}.", reading]


def _summary(judged: Sequence[Judged]) -> str:
    counts = Counter(claim.verdict for claim in judged)
    verdicts = ", ".join(f"{counts[v]} {many}" for v, many in _MANY.items() if counts[v])
    return f"Of {len(judged)} claims: {verdicts}."


def _promises(results: Results) -> str:
    rows = [(p.sentence, _KEPT[p.kept], p.numbers) for p in promises(results)]
    return _table(("statement about this implementation", "verdict", "numbers"), rows)


def _claims(judged: Sequence[Judged]) -> str:
    rows = [
        (str(c.number), f"§{c.section}", c.sentence, c.verdict, c.instead.split(". ")[0])
        for c in judged
    ]
    return _table(("", "section", "claim", "verdict", "what is true instead, and why"), rows)


def _captioned(name: str, caption: str) -> str:
    return f"![{name}](figures/{name}.svg)\n\n*{caption}*"


def _figure(path: Path, left: Sequence[_Left]) -> str:
    number = int(path.stem.removeprefix("figure"))
    missing = sum(case.figure == number for case in left)
    without = f" Points without a result: {missing}." if missing else ""
    return _captioned(path.stem, f"Figure {number}. {FIGURES[number].caption}.{without}")


def _about_shaped(results: Results) -> str:
    has_points = any(case.label == "shaped" for case in cases_of(results.scale))
    return (
        "On WRelated the series shaped is best with noise shaped to the batch, which is pure "
        f"ε too, where the rank is at most {MOST_SPLIT}, the largest for which hulls are tried"
        + ("." if has_points else "; at this scale none has so low a rank.")
    )


def _convergence(result: Convergence, results: Results) -> list[str]:
    rows = [(said, found.verdict, found.numbers) for said, found in result.findings(results)]
    return [
        _table(("statement of Section 5", "verdict", "numbers"), rows),
        _captioned("convergence", describe_convergence(result)),
    ]


def _left_out(results: Results, left: Sequence[_Left]) -> str:
    notes = []
    early = {row.case for row in results.rows if row.interrupted}
    if early:
        notes.append(
            f"Searches of best that ended at their limit with the best so far: {len(early)}."
        )
    unsettled = {row.case for row in results.rows if is_loose(row)}
    if unsettled:
        notes.append(f"{len(unsettled)} runs of AMM and LRM ended without converging.")
    if not left:
        return " ".join([*notes, "Every case has its rows."])
    plans = {case.name: case.seconds for case in left}  # several figures may wait for one plan
    known = [seconds for seconds in plans.values() if math.isfinite(seconds)]
    notes.append(
        f"{len(left)} cases have no result; their {len(plans)} plans are estimated at "
        f"{_duration(sum(known))} of one core, each beyond the limit or after the end of the run."
    )
    return " ".join(notes)


def _duration(seconds: float | None) -> str:
    if seconds is None or seconds != seconds:  # noqa: PLR0124 - NaN
        return "unknown"
    if seconds >= 3 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


def _data(results: Results) -> str:
    used = sorted({(row.data, row.data_source) for row in results.rows})
    sources = "; ".join(f"{name}: {source}" for name, source in used)
    return f"{sources}. With exact strategies no error depends on the data."
