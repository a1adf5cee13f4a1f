"""One HTML page of the whole study: figures, captions, claims, and what did not fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lrm.files.writing import write_text
from lrm.report.elements import (
    Markup,
    figure,
    image,
    paragraph,
    promise,
    section,
    small,
    table,
    text,
)
from lrm.report.page import page
from lrm.study.claims import Judged, evaluate, promises
from lrm.study.convergence import (
    Convergence,
    describe_convergence,
    load_convergence,
    plot_convergence,
)
from lrm.study.costs import Costs
from lrm.study.evidence import HOLDS, IN_PART, NOT, SO_FAR, UNTESTED, Results, is_loose
from lrm.study.figures import draw_figure
from lrm.study.grid import FIGURES, cases_of
from lrm.study.rows import DONE, RowStore

__all__ = ["plot_study"]

_MARKS = {HOLDS: "yes", SO_FAR: "yes", IN_PART: "part", NOT: "no", UNTESTED: "open"}
_MANY = {
    HOLDS: "hold",
    SO_FAR: "hold so far (some points have no rows)",
    IN_PART: "hold in part",
    NOT: "do not hold",
    UNTESTED: "not tested",
}
_KEPT = {True: HOLDS, False: NOT, None: UNTESTED}


def plot_study(folder: Path) -> list[Path]:
    """Draw all figures of the rows in ``folder``, and the page that shows them."""
    results = Results(RowStore(folder).load())
    convergence = load_convergence(folder / "convergence.json")
    place = folder / "figures"
    place.mkdir(parents=True, exist_ok=True)
    shown = sorted({row.figure for row in results.all_rows})
    paths = [path for number in shown for path in draw_figure(number, results, place)]
    if convergence is not None:
        paths += plot_convergence(convergence, place)
    index = folder / "index.html"
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
    drawn = [path for path in paths if path.suffix == ".svg" and "figure" in path.name]
    sections = [
        _made_by(results),
        _summary(judged),
        section("What must hold on every row", _promises(results)),
        section("The paper's claims", _claims(judged)),
        section("Figures", *(_figure(path, left) for path in drawn)),
    ]
    if convergence is not None:
        statements = _convergence(convergence, results, paths)
        sections.append(section("Convergence and complexity", *statements))
    sections += [section("What did not fit", *_left_out(results, left)), _data(results)]
    lead = "Every figure of the paper from stored rows, and its claims put to the test."
    return page("Study", "The Low-Rank Mechanism's study, run again", lead, sections)


def _made_by(results: Results) -> Markup:
    scale = results.scale
    kinds = " · ".join(sorted({row.machine for row in results.all_rows}))
    versions = " · ".join(sorted({row.versions for row in results.all_rows}))
    code = ", ".join(sorted({row.code for row in results.all_rows}))
    commands = f"<code>lrm study run --scale {scale.name}</code> and <code>lrm study plot</code>"
    size = f"{len(results.all_rows):,} rows, {scale.repetitions} repetitions each."
    return Markup(
        paragraph(Markup(f"Made by {commands}: {size}"))
        + paragraph(f"{versions}; code {code}; {kinds}.", "lead")
        + paragraph(
            "Errors are squared L2 distances over the whole batch: lines by formula, markers as "
            "the mean of simulated releases. The noise is simulated from a seed and protects "
            f"nobody. Times are seconds of one core. {scale.note}"
        )
    )


def _summary(judged: Sequence[Judged]) -> Markup:
    counts = Counter(claim.verdict for claim in judged)
    told = ", ".join(f"{counts[v]} {many}" for v, many in _MANY.items() if counts[v])
    return promise([f"Of {len(judged)} claims: {told}."])


def _verdict(verdict: str) -> Markup:
    return Markup(f'<span class="{_MARKS[verdict]}">{verdict}</span>')


def _promises(results: Results) -> Markup:
    rows = [(p.sentence, _verdict(_KEPT[p.kept]), p.numbers) for p in promises(results)]
    columns = ("promise", "kept", "numbers")
    return table("Promises of this implementation", columns, rows, words=columns)


def _claims(judged: Sequence[Judged]) -> Markup:
    rows = []
    for claim in judged:
        where = f"§{claim.section}, {_places(claim)}. Test: {claim.criterion}"
        said = Markup(text(claim.sentence) + small(where))
        found = text(claim.numbers)
        if claim.instead:
            found = Markup(found + small(claim.instead) + f"<b>{text(claim.best)}</b>")
        rows.append((str(claim.number), said, _verdict(claim.verdict), found))
    columns = ("", "claim", "verdict", "numbers; what is true instead, and why")
    return table("Claims of Sections 6.1 to 6.4", columns, rows, words=columns)


def _places(claim: Judged) -> str:
    spelled = ", ".join(map(str, claim.figures))
    return f"figure{'s' if len(claim.figures) > 1 else ''} {spelled}"


def _captioned(path: Path, caption: str) -> Markup:
    return figure(image(path.read_bytes(), caption), caption)


def _figure(path: Path, left: Sequence[_Left]) -> Markup:
    number = int(path.stem.removeprefix("figure"))
    shown = FIGURES[number]
    missing = sum(case.figure == number for case in left)
    parts = [f"Figure {number}. {shown.caption}."]
    parts.append("Lines are expected errors, markers means of simulated releases.")
    if len(shown.workloads) == 1:
        parts.append("The panels agree but for noise: no error of an exact strategy sees the data.")
    if "Gaussian" in shown.mechanisms:
        parts.append("Gaussian promises (ε, 10⁻⁶) in place of pure ε, so it is not a rival.")
    parts.append("A flat time of best is the limit of its search.")
    if missing:
        spelled = "1 point has" if missing == 1 else f"{missing} points have"
        parts.append(f"{spelled} no result (see below).")
    return _captioned(path, " ".join(parts))


def _convergence(result: Convergence, results: Results, paths: Sequence[Path]) -> list[Markup]:
    rows = [
        (said, _verdict(found.verdict), found.numbers) for said, found in result.findings(results)
    ]
    columns = ("statement", "verdict", "numbers")
    listed = table("Statements of Section 5", columns, rows, words=columns)
    path = next(p for p in paths if p.name == "convergence.svg")
    return [listed, _captioned(path, describe_convergence(result))]


def _left_out(results: Results, left: Sequence[_Left]) -> list[Markup]:
    notes = []
    early = {row.case for row in results.rows if row.interrupted}
    if early:
        notes.append(f"{len(early)} searches of best ended at their limit with the best so far.")
    unsettled = {row.case for row in results.rows if is_loose(row)}
    loose = sorted({c.name for c in cases_of(results.scale) if c.key in unsettled})
    if loose:
        notes.append(f"Ended without converging: {'; '.join(loose)}.")
    if not left:
        notes.append("Every case has its rows.")
        return [paragraph(" ".join(notes))]
    # Several figures may wait for one plan: it is named once.
    plans: dict[tuple[str, str], list[_Left]] = {}
    for case in left:
        plans.setdefault((case.name, case.why), []).append(case)
    known = [cases[0].seconds for cases in plans.values() if math.isfinite(cases[0].seconds)]
    notes.append(
        f"{len(left)} cases have no result; their {len(plans)} plans are estimated at "
        f"{_duration(sum(known))} of one core."
    )
    rows = [
        (
            ", ".join(map(str, sorted({case.figure for case in cases}))),
            name,
            why,
            _duration(cases[0].seconds),
        )
        for (name, why), cases in sorted(plans.items(), key=lambda item: item[1][0].figure)
    ]
    columns = ("figure", "case", "why", "estimated CPU time")
    listed = table("Cases without a result", columns, rows, words=columns[:3])
    return [paragraph(" ".join(notes)), listed]


def _duration(seconds: float | None) -> str:
    if seconds is None or seconds != seconds:  # noqa: PLR0124 - NaN
        return "unknown"
    if seconds >= 3 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


def _data(results: Results) -> Markup:
    used = sorted({(row.data, row.data_source) for row in results.rows})
    told = "; ".join(f"{name}: {source}" for name, source in used)
    end = "With exact strategies no error depends on the data."
    return section("Data", paragraph(f"{told}. {end}"))
