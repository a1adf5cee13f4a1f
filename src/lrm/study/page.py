"""One HTML page of the whole study: figures, captions, claims, and what did not fit."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from lrm.files.writing import write_text
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
from lrm.study.grid import FIGURES, cells_of
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
_CSS = """
body{font:16px/1.5 system-ui,sans-serif;color:#1f2430;max-width:70rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2.5rem}figure{margin:1.5rem 0}
img{width:100%;height:auto}figcaption{font-size:.9rem;color:#4a5260}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .5rem;border-bottom:1px solid #d5dbe3}
.yes,.part,.no,.open{font-weight:600;white-space:nowrap}
.yes{color:#0b6e4f}.part{color:#9a6700}.no{color:#b42318}.open{color:#6b7280}
small{color:#4a5260}code{background:#f2f4f7;padding:0 .2rem}
@media print{body{margin:0;max-width:none}figure,tr{break-inside:avoid}}
"""


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
    page = folder / "index.html"
    write_text(page, _page(results, convergence, paths, _left(results)))
    return [*paths, page]


@dataclass(frozen=True)
class _Left:
    """A cell without a result: its figure, what it is, why, and how long it would take."""

    figure: int
    name: str
    why: str
    seconds: float


def _left(results: Results) -> list[_Left]:
    """Cells of the figures that were begun which were stopped, failed, or are still to come."""
    begun = sorted({row.figure for row in results.all_rows})
    ended = {row.cell: row for row in results.all_rows}
    found, costs = [], Costs(results.all_rows)
    for cell in cells_of(results.scale, begun):
        row = ended.get(cell.key)
        if row is None:
            seconds = costs.seconds(cell.plan)
            found.append(_Left(cell.figure, cell.name, "not begun: the run ended before", seconds))
        elif row.status != DONE:
            found.append(_Left(cell.figure, cell.name, row.reason, row.estimated_seconds))
    return found


def _page(
    results: Results,
    convergence: Convergence | None,
    paths: Sequence[Path],
    left: Sequence[_Left],
) -> str:
    judged = evaluate(results)
    parts = [
        "<h1>The Low-Rank Mechanism's study, run again</h1>",
        _made_by(results),
        _summary(judged),
        "<h2>What must hold on every row</h2>",
        _promises(results),
        "<h2>The paper's claims</h2>",
        _claims(judged),
        "<h2>Figures</h2>",
        *(_figure(path, left) for path in paths if path.suffix == ".svg" and "figure" in path.name),
    ]
    if convergence is not None:
        parts += ["<h2>Convergence and complexity</h2>", _convergence(convergence, results, paths)]
    parts += ["<h2>What did not fit</h2>", _left_out(results, left), _data(results)]
    body = "\n".join(parts)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>lrm study</title><style>{_CSS}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _made_by(results: Results) -> str:
    scale = results.scale
    kinds = " · ".join(sorted({row.machine for row in results.all_rows}))
    versions = " · ".join(sorted({row.versions for row in results.all_rows}))
    code = ", ".join(sorted({row.code for row in results.all_rows}))
    return (
        f"<p>Made by <code>lrm study run --scale {scale.name}</code> and "
        f"<code>lrm study plot</code>: "
        f"{len(results.all_rows):,} rows, {scale.repetitions} repetitions each. "
        f"<small>{escape(versions)}; code {escape(code)}; {escape(kinds)}.</small></p>"
        "<p>Errors are squared L2 distances over the whole batch: lines by formula, markers as the "
        "mean of simulated releases. The noise is simulated from a seed and protects nobody. "
        f"Times are seconds of one core. {escape(scale.note)}</p>"
    )


def _summary(judged: Sequence[Judged]) -> str:
    counts = Counter(claim.verdict for claim in judged)
    told = ", ".join(f"{counts[v]} {many}" for v, many in _MANY.items() if counts[v])
    return f"<p><strong>Of {len(judged)} claims: {told}.</strong></p>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>"


def _verdict(verdict: str) -> str:
    return f"<span class='{_MARKS[verdict]}'>{verdict}</span>"


def _promises(results: Results) -> str:
    rows = [
        (escape(p.sentence), _verdict(_KEPT[p.kept]), escape(p.numbers)) for p in promises(results)
    ]
    return _table(("promise", "kept", "numbers"), rows)


def _claims(judged: Sequence[Judged]) -> str:
    rows = []
    for claim in judged:
        where = f"§{claim.section}, {_places(claim)}. Test: {escape(claim.criterion)}"
        said = f"{escape(claim.sentence)}<br><small>{where}</small>"
        found = escape(claim.numbers)
        if claim.instead:
            found += (
                f"<br><small>{escape(claim.instead)} <strong>{escape(claim.best)}</strong></small>"
            )
        rows.append((str(claim.number), said, _verdict(claim.verdict), found))
    return _table(("", "claim", "verdict", "numbers; what is true instead, and why"), rows)


def _places(claim: Judged) -> str:
    spelled = ", ".join(map(str, claim.figures))
    return f"figure{'s' if len(claim.figures) > 1 else ''} {spelled}"


def _captioned(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    said = escape(caption)
    image = f"<img alt='{said}' src='data:image/svg+xml;base64,{data}'>"
    return f"<figure>{image}<figcaption>{said}</figcaption></figure>"


def _figure(path: Path, left: Sequence[_Left]) -> str:
    number = int(path.stem.removeprefix("figure"))
    figure = FIGURES[number]
    missing = sum(cell.figure == number for cell in left)
    parts = [f"Figure {number}. {figure.caption}."]
    parts.append("Lines are expected errors, markers means of simulated releases.")
    if len(figure.workloads) == 1:
        parts.append("The panels agree but for noise: no error of an exact strategy sees the data.")
    if "Gaussian" in figure.mechanisms:
        parts.append("Gaussian promises (ε, 10⁻⁶) in place of pure ε, so it is no rival.")
    parts.append("A flat time of best is the limit of its search.")
    if missing:
        spelled = "1 point has" if missing == 1 else f"{missing} points have"
        parts.append(f"{spelled} no result (see below).")
    return _captioned(path, " ".join(parts))


def _convergence(result: Convergence, results: Results, paths: Sequence[Path]) -> str:
    rows = [
        (escape(said), _verdict(found.verdict), escape(found.numbers))
        for said, found in result.findings(results)
    ]
    table = _table(("statement of Section 5", "verdict", "numbers"), rows)
    path = next(p for p in paths if p.name == "convergence.svg")
    return table + _captioned(path, describe_convergence(result))


def _left_out(results: Results, left: Sequence[_Left]) -> str:
    notes = []
    early = {row.cell for row in results.rows if row.interrupted}
    if early:
        notes.append(f"{len(early)} searches of best ended at their limit with the best so far.")
    unsettled = {row.cell for row in results.rows if is_loose(row)}
    loose = sorted({c.name for c in cells_of(results.scale) if c.key in unsettled})
    if loose:
        notes.append(f"Ended without converging: {'; '.join(loose)}.")
    if not left:
        notes.append("Every cell has its rows.")
        return f"<p>{escape(' '.join(notes))}</p>"
    # Several figures may wait for one plan: it is named once.
    plans: dict[tuple[str, str], list[_Left]] = {}
    for cell in left:
        plans.setdefault((cell.name, cell.why), []).append(cell)
    known = [cells[0].seconds for cells in plans.values() if math.isfinite(cells[0].seconds)]
    notes.append(
        f"{len(left)} cells have no result; their {len(plans)} plans are estimated at "
        f"{_duration(sum(known))} of one core."
    )
    listed = [
        (
            ", ".join(map(str, sorted({cell.figure for cell in cells}))),
            escape(name),
            escape(why),
            _duration(cells[0].seconds),
        )
        for (name, why), cells in sorted(plans.items(), key=lambda item: item[1][0].figure)
    ]
    head = ("figure", "cell", "why", "estimated CPU time")
    return f"<p>{escape(' '.join(notes))}</p>" + _table(head, listed)


def _duration(seconds: float | None) -> str:
    if seconds is None or seconds != seconds:  # noqa: PLR0124 - NaN
        return "unknown"
    if seconds >= 3 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


def _data(results: Results) -> str:
    used = sorted({(row.data, row.data_source) for row in results.rows})
    told = "; ".join(f"{name}: {source}" for name, source in used)
    return (
        f"<h2>Data</h2><p>{escape(told)}. With exact strategies no error depends on the data.</p>"
    )
