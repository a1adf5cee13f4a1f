"""Drawings of a comparison, of errors, and of answers: as files, and as parts of a page."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike

from lrm.errors import UsageError
from lrm.files.writing import write_bytes
from lrm.maps.linear import Floats
from lrm.privacy.budget import ZCDP, ApproxDP, PureDP
from lrm.releases import Release
from lrm.spelling import number, visible
from lrm.views.comparisons import amount_words, planned_rows
from lrm.workload import AnswerTable

__all__ = [
    "KINDS",
    "Drawing",
    "answers_drawing",
    "comparison_drawing",
    "errors_drawing",
    "side_by_side_drawing",
    "table_drawing",
]

Choices = ParamSpec("Choices")

KINDS = (".svg", ".png")
"""Endings of the files that can be drawn."""

INK, BEST, OTHER, FAINT = "#1f2430", "#0b6e4f", "#8fa3b8", "#d5dbe3"
"""Dark enough for print; the best is distinguished by lightness, not by hue alone."""

MOST_POINTS = 400
"""Points of a curve: more cannot be distinguished at the width of a page."""

WIDE, ON_PAGE = 7.0, 5.4
"""Inches of a file's width, and of a drawing in a page, whose text is as large as the page's."""

_GUARANTEES = {one.key: one.short for one in (PureDP, ZCDP, ApproxDP)}
_DASHES = ((0, (1, 1.2)), (0, (5, 2)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)))
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
_INLINE: dict[Any, Any] = {**_STYLE, "svg.fonttype": "none"}  # text stays text: readable and small

_VARIABLES = {INK: "--ink", BEST: "--best", OTHER: "--other", FAINT: "--line"}
"""The page's own colours, so that drawings are dark on a dark page."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of one panel, to be written to a file or put into a page.

    Parameters
    ----------
    figure, axes
        Those of Matplotlib.
    words
        What it shows, for those who do not see it.
    """

    figure: Any
    axes: Any
    words: str

    @classmethod
    def blank(cls, width: float, height: float, words: str) -> Drawing:
        """Return empty axes, as wide and high as said (in inches)."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - a Figure needs no display

        figure = Figure(figsize=(width, height), layout="constrained")
        return cls(figure, figure.add_subplot(), words)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.svg`` or ``.png`` file, whole or not at all."""
        kind = Path(path).suffix.lower()
        if kind not in KINDS:
            raise UsageError(f"expected a file ending in {' or '.join(KINDS)}, not {path!r}")
        metadata = {"Date": None} if kind == ".svg" else {"Software": None}
        write_bytes(Path(path), self._drawn(_STYLE, format=kind[1:], metadata=metadata))

    def inline(self, name: str) -> str:
        """Return an ``<svg>`` element in the page's colours, whose ids begin with ``name``."""
        unsaid = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawn = self._drawn(_INLINE, format="svg", metadata=unsaid, transparent=True)
        root = ET.fromstring(drawn)  # noqa: S314 - Matplotlib wrote it just now
        for parent in list(root.iter()):
            for child in [child for child in parent if child.tag.endswith("}style")]:
                parent.remove(child)  # it would apply to the whole page, which has its own
            _adapt(parent, name)
        box = root.get("viewBox", "")
        root.attrib.clear()
        root.attrib.update({"class": name, "role": "img", "aria-label": self.words, "viewBox": box})
        return ET.tostring(root, encoding="unicode")

    def _drawn(self, style: dict[Any, Any], **options: Any) -> bytes:
        from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw

        drawn = io.BytesIO()
        with rc_context(style):
            self.figure.savefig(drawn, **options)
        return drawn.getvalue()


def _adapt(element: ET.Element, name: str) -> None:
    """Drop namespaces, which HTML has none of; make ids and references the figure's own."""
    element.tag = element.tag.rpartition("}")[2]
    attributes = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        element.set(key, _adapted(key, value, name))


def _adapted(key: str, value: str, name: str) -> str:
    if key == "style":
        return "; ".join(map(_declaration, value.split(";")))
    if key == "id":
        return f"{name}-{value}"
    mark = "#" if key == "href" else "url(#"
    return f"{mark}{name}-{value.removeprefix(mark)}" if value.startswith(mark) else value


def _declaration(text: str) -> str:
    """Put the page's variable in place of a colour."""
    key, _, value = text.partition(":")
    variable = _VARIABLES.get(value.strip())
    return text.strip() if variable is None else f"{key.strip()}: var({variable})"


def _styled(draw: Callable[Choices, Drawing]) -> Callable[Choices, Drawing]:
    """Draw in the look of the house."""

    @wraps(draw)
    def styled(*args: Choices.args, **kwargs: Choices.kwargs) -> Drawing:
        from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw

        with rc_context(_STYLE):
            return draw(*args, **kwargs)

    return styled


def _guarantee_of(part: Mapping[str, Any]) -> str:
    kind = _GUARANTEES.get(part.get("guarantee", ""))
    return amount_words(part) + (f" ({kind})" if kind else "")


@_styled
def comparison_drawing(part: Mapping[str, Any], width: float = WIDE) -> Drawing:
    """A bar for each mechanism, least error on top, and the bound below which none can be."""
    rows = planned_rows(part)[::-1]
    if not rows:
        raise UsageError("there is nothing to draw: no mechanism has a plan for this workload")
    names = [row["mechanism"] for row in rows]
    values = [float(row["expected_squared_error"]) for row in rows]
    listed = ", ".join(f"{n} {e:.4g}" for n, e in zip(names[::-1], values[::-1], strict=True))
    drawing = Drawing.blank(width, 0.9 + 0.4 * len(rows), f"Error by mechanism: {listed}")
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
    if width == WIDE:
        axes.set_title(f"{part['queries']:,} queries over {part['cells']:,} cells", pad=16)
    axes.set_xlabel(f"expected total squared error at {_guarantee_of(part)}")
    axes.tick_params(axis="y", length=0)
    return drawing


@_styled
def side_by_side_drawing(facts: Mapping[str, Any]) -> Drawing:
    """Two bars for each mechanism: Laplace and Gaussian noise."""
    names = [row["mechanism"] for row in facts["laplace"]["mechanisms"]][::-1]
    drawing = Drawing.blank(WIDE, 1.6 + 0.52 * len(names), "Error by mechanism and noise")
    axes, place, drawn = drawing.axes, np.arange(len(names)), []
    for noise, colour, shift in (("Laplace", OTHER, 0.19), ("Gaussian", BEST, -0.19)):
        part = facts[noise.lower()]
        errors = [row.get("expected_squared_error", np.nan) for row in part["mechanisms"]][::-1]
        label = f"{noise} noise at {_guarantee_of(part)}"
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
def errors_drawing(
    errors: Mapping[str, Floats], at: str, width: float = WIDE, title: str = ""
) -> Drawing:
    """The standard error of every query, largest first: one mechanism filled, baselines dashed.

    Parameters
    ----------
    errors
        Standard errors by mechanism.
    at
        The guarantee, in words.
    width, title
        Those of the drawing.
    """
    ours, *baseline_names = errors
    baselines = f", {', '.join(baseline_names)} as dashed lines" if baseline_names else ""
    words = f"Standard errors from the largest to the least: {ours} as a filled curve{baselines}"
    drawing = Drawing.blank(width, 3.4, words)
    axes, count = drawing.axes, len(errors[ours])
    axes.stairs(*_stairs(errors[ours]), fill=True, color=FAINT)
    look = {"baseline": None, "color": BEST, "linewidth": 2.0}
    handles = [axes.stairs(*_stairs(errors[ours]), **look)]
    for name, dash in zip(baseline_names, _DASHES, strict=False):
        line = axes.stairs(*_stairs(errors[name]), baseline=None, color=INK)
        line.set(linestyle=dash, linewidth=1.1)
        handles.append(line)
    if baseline_names:
        names = [ours, *baseline_names][: len(handles)]
        place = "outside lower center"
        drawing.figure.legend(handles, names, frameon=False, loc=place, ncols=3)
    else:
        typical = float(np.sqrt(np.mean(errors[ours] ** 2)))
        axes.axhline(typical, **_BOUND)
        where = {"xycoords": ("axes fraction", "data"), "ha": "right", **_NOTE}
        axes.annotate(f"root mean square {typical:,.3g}", (1.0, typical), (0, 3), **where)
    _error_scale(axes, list(errors.values()))
    axes.set_xlim(0.5, count + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title(title)
    axes.set_xlabel("queries, from the largest error to the least")
    axes.set_ylabel(f"standard error\nat {at}" if title else f"standard error at {at}")
    return drawing


def _drawn_ends(numbers: dict[str, Floats]) -> tuple[Floats, Floats]:
    """Ends of intervals; those without an end reach past everything that is drawn."""
    low, high = numbers["low"], numbers["high"]
    known = np.concatenate([low, high, numbers["answer"]])
    known = known[np.isfinite(known)] if np.isfinite(known).any() else np.zeros(1)
    past = 0.1 * float(np.ptp(known)) or 1.0
    ends = float(known.min()) - past, float(known.max()) + past
    return np.where(np.isfinite(low), low, ends[0]), np.where(np.isfinite(high), high, ends[1])


def answers_drawing(
    release: Release, confidence: float = 0.95, limit: int = 40, truth: ArrayLike | None = None
) -> Drawing:
    """The first ``limit`` answers with their intervals.

    ``truth`` is for synthetic tables only, where it is no secret.
    """
    title = f"Answers with {100 * confidence:.4g} % intervals"
    total = len(release.plan.workload.shown)
    return table_drawing(release.head(limit, confidence), title, total, truth)


@_styled
def table_drawing(
    table: AnswerTable,
    title: str = "Answers with their intervals",
    total: int | None = None,
    truth: ArrayLike | None = None,
) -> Drawing:
    """The answers of a table, each as a dot on the line of its interval."""
    if "answer" not in table.numbers:
        raise UsageError("there is nothing to draw: a plan has no answers yet")
    labels, numbers, count = table.labels, dict(table.numbers), len(table)
    words = f"The first {count} answers, each as a dot on the line of its interval"
    drawing = Drawing.blank(WIDE, 1.2 + 0.24 * count, words)
    axes, place = drawing.axes, np.arange(count)[::-1]
    low, high = _drawn_ends(numbers)
    axes.hlines(place, low, high, color=BEST, linewidth=1.4)
    axes.plot(np.concatenate([low, high]), np.tile(place, 2), "|", color=BEST, markersize=6)
    axes.plot(numbers["answer"], place, "o", color=BEST, markersize=3.2, label="answer")
    if truth is not None:
        true_answers = np.asarray(truth)[:count]
        axes.plot(true_answers, place, "x", color=INK, markersize=5, label="synthetic truth")
        drawing.figure.legend(frameon=False, loc="outside lower right", ncols=2)
    axes.set_yticks(place, [_shortened(visible(name)) for name in labels.names[:count]])
    axes.set_ylim(-0.8, count - 0.2)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    rest = f", the first {count} of {total:,}" if total is not None and count < total else ""
    axes.set_title(title + rest)
    axes.set_xlabel("answer")
    return drawing


def _log_axis(axes: Any, values: Sequence[float], room: float) -> None:
    """A logarithmic axis around the values, where any is positive."""
    positive = [value for value in values if value > 0]
    if positive:
        axes.set_xscale("log")
        axes.set_xlim(min(positive) / 1.6, max(positive) * room)
        _plain_ticks(axes.xaxis)


def _error_scale(axes: Any, every: Sequence[Floats]) -> None:
    """Logarithmic where a baseline is far away, else from zero."""
    largest = max(float(errors.max()) for errors in every)
    typical = float(np.median(every[0]))
    if len(every) > 1 and typical > 0 and largest > 20 * typical:
        least = min(float(errors[errors > 0].min()) for errors in every if (errors > 0).any())
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
        axes.set_ylim(least / 1.5, largest * 1.5)
    else:
        axes.set_ylim(0, max(largest * 1.08, 1e-12))


def _plain_ticks(axis: Any) -> None:
    """Numbers as the page spells them; by default they would be formulas."""
    axis.set_major_formatter(lambda value, _: number(value))
    axis.set_minor_formatter("")


def _stairs(errors: Floats) -> tuple[Floats, Floats]:
    """Values, largest first, and edges of steps; some of them where there are many."""
    ordered = np.sort(errors)[::-1]
    shown = np.unique(np.linspace(0, len(errors) - 1, min(len(errors), MOST_POINTS)).astype(int))
    return ordered[shown], np.append(shown, len(errors)) + 0.5


def _shortened(name: str, most: int = 34) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
