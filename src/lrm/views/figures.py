"""Drawings of a comparison, of errors, and of answers, by Matplotlib, as files."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np

from lrm.errors import UsageError
from lrm.files.spelling import in_percent, number, visible
from lrm.files.writing import write_bytes
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.frames import AnswerFrame, column_names
from lrm.queries.workload.statements import spoken_name
from lrm.releases import Release
from lrm.views.answers import frame_table
from lrm.views.charts import chart_range
from lrm.views.comparisons import planned_rows, stated_privacy
from lrm.views.labels import label_texts
from lrm.views.shapes import Curves, usual_curves
from lrm.views.statement_errors import comparable_rows

Choices = ParamSpec("Choices")

KINDS = (".svg", ".png")
"""Endings of the files that can be drawn."""

INK, BEST, OTHER, FAINT = "#1f2430", "#0b6e4f", "#8fa3b8", "#d5dbe3"
"""Dark enough for print; the best is distinguished by lightness, not by hue alone."""

MOST_POINTS = 400
"""Points of a curve: more cannot be distinguished at the width of a page."""

WIDE = 7.0
"""Inches of a drawing's width."""

_BOUND: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": (0, (4, 3))}
_NOTE: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8}

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 160,
    "text.parse_math": False,  # a "$" in a name begins no formula
    "svg.hashsalt": "lrm",  # the same figure is the same file
}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of one or several panels, which a notebook shows and a file can hold."""

    figure: Any
    axes: Any  # of the first panel

    @classmethod
    def blank(cls, height: float, panels: int = 1, columns: int | None = None) -> Drawing:
        """Return empty axes, as high as said (in inches), side by side where there are several."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - a Figure needs no display

        beside = min(panels, columns or panels)
        figure = Figure(figsize=(WIDE * max(1.0, 0.6 * beside), height), layout="constrained")
        grid = figure.subplots(math.ceil(panels / beside), beside, squeeze=False)
        for unused in grid.flat[panels:]:
            unused.remove()
        return cls(figure, grid[0, 0])

    @property
    def panels(self) -> list[Any]:
        """The axes of all panels; those that were given alone."""
        panels = list(self.figure.axes)
        return panels[panels.index(self.axes) :]

    def _repr_png_(self) -> bytes:
        return self._bytes("png")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.svg`` or ``.png`` file, whole or not at all."""
        kind = Path(path).suffix.lower()
        if kind not in KINDS:
            raise UsageError(f"expected a file ending in {' or '.join(KINDS)}, not {path!r}")
        write_bytes(Path(path), self._bytes(kind[1:]))

    def _bytes(self, kind: str) -> bytes:
        from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw

        drawn = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        with rc_context(_STYLE):
            self.figure.savefig(drawn, format=kind, metadata=metadata)
        return drawn.getvalue()


def _styled(draw: Callable[Choices, Drawing]) -> Callable[Choices, Drawing]:
    """Draw in the look of the house."""

    @wraps(draw)
    def styled(*args: Choices.args, **kwargs: Choices.kwargs) -> Drawing:
        from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw

        with rc_context(_STYLE):
            return draw(*args, **kwargs)

    return styled


@_styled
def comparison_drawing(part: Mapping[str, Any]) -> Drawing:
    """A bar for each mechanism, least error on top, and the bound below which none can be."""
    rows = planned_rows(part)[::-1]
    if not rows:
        raise UsageError("there is nothing to draw: no mechanism has a plan for this workload")
    names = [row["mechanism"] for row in rows]
    values = [float(row["expected_squared_error"]) for row in rows]
    drawing = Drawing.blank(0.9 + 0.4 * len(rows))
    axes, least = drawing.axes, values[-1]
    colours = [OTHER] * (len(rows) - 1) + [BEST]
    axes.barh(names, values, color=colours, height=0.66)
    bound = float(part.get("lower_bound") or 0.0)
    _log_axis(axes, [*values, bound], 4)
    for row, value in enumerate(values):
        times = value / least if least > 0 else 1.0
        shown = f"{times:.3g}×" if times < 1000 else f"{times:,.0f}×"
        axes.annotate(shown, (value, row), (4, 0), textcoords="offset points", va="center")
    if bound > 0:
        axes.axvline(bound, **_BOUND)
        place = ("data", "axes fraction")
        axes.annotate("no strategy is below", (bound, 1.0), (3, 2), xycoords=place, **_NOTE)
    axes.set_title(f"{part['queries']:,} queries over {part['cells']:,} cells", pad=16)
    axes.set_xlabel(f"expected total squared error at {stated_privacy(part).described}")
    axes.tick_params(axis="y", length=0)
    return drawing


@_styled
def side_by_side_drawing(facts: Mapping[str, Any]) -> Drawing:
    """Two bars for each mechanism: Laplace and Gaussian noise."""
    names = [row["mechanism"] for row in facts["laplace"]["mechanisms"]][::-1]
    drawing = Drawing.blank(1.6 + 0.52 * len(names))
    axes, place, drawn = drawing.axes, np.arange(len(names)), []
    for noise, colour, shift in (("Laplace", OTHER, 0.19), ("Gaussian", BEST, -0.19)):
        part = facts[noise.lower()]
        errors = [row.get("expected_squared_error", np.nan) for row in part["mechanisms"]][::-1]
        label = f"{noise} noise at {stated_privacy(part).described}"
        axes.barh(place + shift, errors, color=colour, height=0.36, label=label)
        drawn += [error for error in errors if error > 0]
    if not drawn:
        raise UsageError("there is nothing to draw: no mechanism has a plan for this workload")
    axes.set_yticks(place, names)
    _log_axis(axes, drawn, 1.6)
    axes.set_title("Laplace and Gaussian noise")
    axes.set_xlabel("expected total squared error")
    axes.tick_params(axis="y", length=0)
    drawing.figure.legend(frameon=False, loc="outside lower right")
    return drawing


@_styled
def errors_drawing(plan: Plan, accuracy: Accuracy) -> Drawing:
    """The standard error of every count, largest first, and the root mean square of them."""
    (_, several), rows = comparable_rows(plan.workload)
    errors = np.sort(accuracy.standard_errors[rows])[::-1]
    if not len(errors):
        raise UsageError("there is nothing to draw: the batch has no counts")
    drawing = Drawing.blank(3.4)
    axes, count = drawing.axes, len(errors)
    shown = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int))
    steps = errors[shown], np.append(shown, count) + 0.5
    axes.stairs(*steps, fill=True, color=FAINT)
    axes.stairs(*steps, baseline=None, color=BEST, linewidth=2.0)
    typical = float(np.sqrt(np.mean(errors**2)))
    axes.axhline(typical, **_BOUND)
    where = {"xycoords": ("axes fraction", "data"), "ha": "right", **_NOTE}
    axes.annotate(f"root mean square {typical:,.3g}", (1.0, typical), (0, 3), **where)
    axes.set_ylim(0, max(float(errors[0]) * 1.08, 1e-12))
    axes.set_xlim(0.5, count + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title(f"Error of each of {count:,} {several} by {plan.mechanism}")
    axes.set_xlabel(f"{several}, from the largest error to the least")
    axes.set_ylabel(f"standard error\nat {accuracy.privacy.described}")
    return drawing


def _drawn_ends(numbers: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Ends of intervals; those without an end reach past everything that is drawn."""
    low, high = numbers["low"], numbers["high"]
    known = np.concatenate([low, high, numbers["answer"]])
    known = known[np.isfinite(known)] if np.isfinite(known).any() else np.zeros(1)
    past = 0.1 * float(np.ptp(known)) or 1.0
    ends = float(known.min()) - past, float(known.max()) + past
    return np.where(np.isfinite(low), low, ends[0]), np.where(np.isfinite(high), high, ends[1])


def answers_drawing(
    release: Release, confidence: float = 0.95, limit: int = 40, ax: Any = None
) -> Drawing:
    """The first ``limit`` answers with their intervals."""
    title = f"Answers with {in_percent(confidence)} intervals"
    total = len(release.plan.workload.shown)
    return frame_drawing(release.head(limit, confidence), ax, title=title, total=total)


MOST_DRAWN = 60
"""Rows of a frame that are drawn."""


@_styled
def frame_drawing(
    frame: AnswerFrame,
    ax: Any = None,
    *,
    title: str = "Answers with their intervals",
    total: int | None = None,
) -> Drawing:
    """Answers with their intervals: one panel per answer of a statement, each with its own axis.

    Lines where a page has lines, with a panel each. ``title`` is that of the long form, which may
    be the first of ``total`` answers.
    """
    if "answer" not in frame.numbers:
        raise UsageError("there is nothing to draw: a plan has no answers yet")
    curves = None if frame.statement is None else usual_curves(frame_table(frame))
    if curves is not None:
        return _line_drawing(frame, curves, ax)
    is_long = frame.statement is None
    rows = len(frame) if is_long else min(len(frame), MOST_DRAWN)
    names = ["answer"] if is_long else column_names(frame.answers)
    if ax is not None and len(names) > 1:
        raise UsageError(_several_axes(frame, len(names)))
    labels = _row_names(frame, rows)
    drawing = Drawing.blank(1.2 + 0.24 * rows, len(names)) if ax is None else Drawing(ax.figure, ax)
    for place, name in enumerate(names):
        axes = drawing.panels[place]
        _dots(axes, labels, {key: table[:rows, place] for key, table in frame.numbers.items()})
        axes.set_xlabel(spoken_name(name))
        if place:
            axes.set_yticklabels([])
    every = len(frame) if total is None else total
    words = "" if is_long else " rows"
    rest = f", the first {rows} of {every:,}{words}" if rows < every else ""
    drawing.axes.set_title((title if is_long else frame.title) + rest)
    return drawing


def _line_drawing(frame: AnswerFrame, curves: Curves, ax: Any) -> Drawing:
    """Lines with the bands of their intervals, each in a panel, or all on the axes given."""
    count = len(curves.series)
    if ax is not None and len(curves.measures) > 1:
        raise UsageError(_several_axes(frame, len(curves.measures)))
    if ax is None:
        drawing = Drawing.blank(2.4 * math.ceil(count / 2), count, columns=2)
        panels = drawing.panels
    else:
        drawing, panels = Drawing(ax.figure, ax), [ax] * count
    places = np.arange(len(curves.labels))
    ends = {
        measure: chart_range([curve for curve in curves.series if curve.measure == measure])
        for measure in curves.measures
    }
    for axes, curve in zip(panels, curves.series, strict=True):
        low, high = _drawn_ends({"answer": curve.values, "low": curve.low, "high": curve.high})
        colour = BEST if ax is None or count == 1 else None
        (line,) = axes.plot(places, curve.values, color=colour, linewidth=1.4, label=curve.name)
        axes.fill_between(places, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
        axes.set_ylim(*ends[curve.measure])
        axes.set_ylabel(curve.measure)
        axes.set_xlabel(curves.axis)
        axes.yaxis.set_major_formatter(_spelt)
        ticks = sorted({0, len(places) // 2, len(places) - 1})
        axes.set_xticks(ticks, [visible(curves.labels[k]) for k in ticks])
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        if ax is None and curve.name:
            axes.set_title(visible(curve.name), fontsize=9.5)
    if ax is not None and count > 1:
        ax.legend(frameon=False)
    largest = f", the largest {count} of {curves.total} lines" if count < curves.total else ""
    words = visible(frame.title) + largest
    if ax is None:
        drawing.figure.suptitle(words, x=0.01, ha="left", fontsize=11, fontweight="bold")
    else:
        ax.set_title(words)
    return drawing


def _several_axes(frame: AnswerFrame, count: int) -> str:
    return f"{frame.name!r} has {count} answers, each with axes of its own; leave out ax"


def _spelt(value: float, _: int) -> str:
    """A number at an axis."""
    return number(value)


def _row_names(frame: AnswerFrame, rows: int) -> list[str]:
    """What the first rows are called."""
    if frame.statement is None:
        return [label.name for label in frame.labels(rows)]
    texts = [[*label_texts(column), "total"] for column in frame.columns]
    return [
        ", ".join(text[code] for text, code in zip(texts, codes, strict=True)) or frame.title
        for codes in frame.codes[:rows].tolist()
    ]


def _dots(axes: Any, names: Sequence[str], numbers: Mapping[str, Floats]) -> None:
    """One row per answer: a dot, and the line of its interval."""
    count = len(names)
    place = np.arange(count)[::-1]
    low, high = _drawn_ends(numbers)
    axes.hlines(place, low, high, color=BEST, linewidth=1.4)
    axes.plot(np.concatenate([low, high]), np.tile(place, 2), "|", color=BEST, markersize=6)
    axes.plot(numbers["answer"], place, "o", color=BEST, markersize=3.2)
    axes.set_yticks(place, [_shortened(visible(name)) for name in names])
    axes.set_ylim(-0.8, count - 0.2)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(_spelt)


def _log_axis(axes: Any, values: Sequence[float], room: float) -> None:
    """A logarithmic axis around the values, where any is positive."""
    positive = [value for value in values if value > 0]
    if positive:
        axes.set_xscale("log")
        axes.set_xlim(min(positive) / 1.6, max(positive) * room)
        _plain_ticks(axes.xaxis)


def _plain_ticks(axis: Any) -> None:
    """Numbers as the page spells them; by default they would be formulas."""
    axis.set_major_formatter(_spelt)
    axis.set_minor_formatter("")


def _shortened(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"
