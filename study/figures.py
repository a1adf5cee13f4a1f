"""The paper's figures from stored rows. Nothing is computed here but positions."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lrm.files.writing import write_bytes
from study.evidence import Results
from study.grid import DATASETS, FIGURES, Figure

__all__ = ["STYLE", "TITLES", "draw", "draw_figure", "draw_shaped", "readable_axis"]

INK, FAINT = "#1f2430", "#d5dbe3"
TITLES = {
    "search_log": "Search Log",
    "net_trace": "Net Trace",
    "social_network": "Social Network",
}
_AXES = {
    "gamma": "γ",
    "rank_ratio": "r / rank(W)",
    "n": "domain size n",
    "m": "number of queries m",
    "s": "s / min(m, n)",
}

SERIES: dict[str, tuple[str, str, str]] = {
    "LM": ("#4c72b0", "o", "-"),
    "NOR": ("#9aa5b1", "v", "-"),
    "WM": ("#dd8452", "s", "-"),
    "HM": ("#7a4a1e", "D", "-"),
    "AMM": ("#c2b04a", "P", ":"),
    "LRM": ("#c44e52", "^", "-"),
    "LRM relaxed": ("#4c72b0", "v", "-"),
    "best": ("#0b6e4f", "*", "-"),
    "shaped": ("#d1007f", "d", "-"),
    "Gaussian": ("#6a51a3", "x", "--"),
}
"""Colour, marker and dashes; each is distinguished in grey by its marker."""

EPSILONS = {1.0: ("-", "ε = 1"), 0.1: ("--", "ε = 0.1"), 0.01: (":", "ε = 0.01")}

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # each label repeats this list
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",  # letters as letters: a third of the size, and they can be searched
    "svg.hashsalt": "lrm",
}


def draw(
    name: str, folder: Path, panels: tuple[int, int], paint: Callable[[Any, Any], None]
) -> Path:
    """Draw one figure of rows × columns panels as SVG."""
    from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - needs no display

    rows, columns = panels
    path = folder / f"{name}.svg"
    with rc_context(STYLE):
        figure = Canvas(figsize=(3.6 * columns, 0.5 + 2.9 * rows), layout="constrained")
        paint(figure, figure.subplots(rows, columns, squeeze=False))
        drawing = io.BytesIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    write_bytes(path, _smaller(drawing.getvalue().decode()).encode())
    return path


def _smaller(svg: str) -> str:
    """Round coordinates to a hundredth of a point, and leave out indentation."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def draw_figure(number: int, results: Results, folder: Path) -> Path:
    """Draw one of the paper's figures: errors as it has them, and times beside them."""
    figure = FIGURES[number]
    if len(figure.workloads) > 1:
        return draw(
            f"figure{number}", folder, (2, 3), lambda f, a: _one_mechanism(f, a, figure, results)
        )
    return draw(f"figure{number}", folder, (2, 2), lambda f, a: _mechanisms(f, a, figure, results))


def draw_shaped(results: Results, folder: Path) -> Path:
    """Draw figures 6, 8 and 9 with pure noise of low-rank strategies alone, for one data set."""
    labels = ("LM", "LRM", "best", "shaped")

    def paint(canvas: Any, axes: Any) -> None:
        for panel, number in zip(axes.ravel(), (6, 8, 9), strict=True):
            figure = FIGURES[number]
            for label in labels:
                _curve(panel, results, figure, label, name=label)
            panel.set_title(f"Figure {number}")
            _finish(panel, figure, results, "average squared error")
        _legend(canvas, axes, labels)

    return draw("shaped", folder, (1, 3), paint)


def _one_mechanism(canvas: Any, axes: Any, figure: Figure, results: Results) -> None:
    """Figures 2 and 3: a column a workload, error at three ε above, time below."""
    for column, workload in enumerate(figure.workloads):
        top, bottom = axes[0][column], axes[1][column]
        for label in figure.mechanisms:
            for epsilon, (dashes, _) in EPSILONS.items():
                _curve(
                    top,
                    results,
                    figure,
                    label,
                    workload=workload,
                    epsilon=epsilon,
                    dashes=dashes,
                    name=label,
                )
            _curve(
                bottom, results, figure, label, workload=workload, what="cpu_seconds", name=label
            )
        top.set_title(workload)
        _finish(top, figure, results, "average squared error")
        _finish(bottom, figure, results, "time of the plan (CPU s)")
    for dashes, name in EPSILONS.values():
        axes[0][0].plot([], [], color=INK, linestyle=dashes, label=name)
    _legend(canvas, axes, (*figure.mechanisms, *(name for _, name in EPSILONS.values())))


def _mechanisms(canvas: Any, axes: Any, figure: Figure, results: Results) -> None:
    """Figures 4 to 9: a panel a data set, and one of times, which no data set changes."""
    panels = axes.ravel()
    for number, data in enumerate(DATASETS):
        if number:
            panels[number].sharey(panels[0])
        for label in figure.mechanisms:
            _curve(panels[number], results, figure, label, data=data, name=label)
        panels[number].set_title(TITLES[data])
        _finish(panels[number], figure, results, "average squared error")
    for label in figure.mechanisms:
        _curve(panels[3], results, figure, label, what="cpu_seconds", name=label)
    panels[3].set_title("Computation time")
    _finish(panels[3], figure, results, "time of the plan (CPU s)")
    _legend(canvas, axes, figure.mechanisms)


def _curve(  # noqa: PLR0913 - what a curve is
    axes: Any,
    results: Results,
    figure: Figure,
    label: str,
    *,
    name: str,
    workload: str | None = None,
    data: str = DATASETS[0],
    epsilon: float = 0.1,
    what: str = "error_expected",
    dashes: str = "",
) -> None:
    """A line through expected errors with a marker at each measured one; or times."""
    look = {"workload": workload, "data": data, "epsilon": epsilon}
    line = results.series(figure.number, label, what=what, **look)  # type: ignore[arg-type]
    if not line:
        return
    colour, marker, usual = SERIES[label]
    kind = dashes or usual
    points = line
    if what == "error_expected":
        points = results.series(figure.number, label, what="error_measured", **look)  # type: ignore[arg-type]
    front = 3 if label == "best" else 2
    axes.plot(list(line), list(line.values()), color=colour, linestyle=kind, zorder=front)
    size = 8 if marker == "*" else 5
    axes.plot(
        list(points),
        list(points.values()),
        color=colour,
        marker=marker,
        linestyle="",
        markersize=size,
        markeredgewidth=0.9,
        zorder=front,
    )
    axes.plot([], [], color=colour, marker=marker, linestyle=usual, markersize=size, label=name)


def _finish(axes: Any, figure: Figure, results: Results, y_label: str) -> None:
    axes.set_yscale("log")
    ticks = _ticks(figure, results)
    if figure.varies != "s":
        axes.set_xscale("log", base=10 if figure.varies == "gamma" else 2)
    axes.set_xticks(ticks, [_spelled(x) for x in ticks], rotation=0, fontsize=8)
    axes.minorticks_off()
    if "time" in y_label:
        readable_axis(axes)
    axes.set_xlabel(_AXES[figure.varies])
    axes.set_ylabel(y_label)
    if not axes.lines:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no finished rows", transform=axes.transAxes, ha="center")


def readable_axis(axes: Any) -> None:
    """Times that span less than a decade need ticks between its powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: PLC0415 - only to draw

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _ticks(figure: Figure, results: Results) -> Sequence[float]:
    found = sorted({row.x for row in results.all_rows if row.figure == figure.number})
    return found if len(found) <= 8 or figure.varies != "s" else found[::2]


def _spelled(x: float) -> str:
    return f"10$^{{{round(math.log10(x))}}}$" if x < 0.01 else f"{x:g}"


def _legend(canvas: Any, axes: Any, order: Sequence[str]) -> None:
    named: dict[str, Any] = {}
    for panel in axes.ravel():
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(name, handle)
    shown = [name for name in order if name in named]
    if shown:
        handles = [named[name] for name in shown]
        columns = len(shown) if len(shown) <= 8 else math.ceil(len(shown) / 2)
        canvas.legend(handles, shown, loc="outside lower center", ncols=columns, frameon=False)
