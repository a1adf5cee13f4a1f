"""Drawings of a page: SVG that takes its colours from the page, light or dark."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from lrm.maps.linear import Floats
from lrm.releases import Release
from lrm.report import plots
from lrm.report.elements import Markup
from lrm.report.rivals import Rival
from lrm.showing.spelling import number

__all__ = ["draw_answers", "draw_comparison", "draw_errors"]

MOST_POINTS = 400
"""Points of a curve: more cannot be told apart at the width of a page."""

WIDTH = 5.4
"""Inches: of 72 units each, so that text is as large as that of the page, wide or narrow."""

_COLOURS = {
    plots.INK: "var(--ink)",
    plots.BEST: "var(--best)",
    plots.OTHER: "var(--other)",
    plots.FAINT: "var(--line)",
}
_TEXT: dict[Any, Any] = {
    # Text stays text: readable by machines, and small.
    "svg.fonttype": "none",
}
_DASHES = ((0, (1, 1.2)), (0, (5, 2)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)))


def draw_answers(release: Release, confidence: float, limit: int) -> Markup:
    """The first answers with their intervals."""
    count = min(limit, len(release.names))
    words = f"The first {count} answers, each as a dot on the line of its interval"

    def draw(path: Path) -> None:
        plots.plot_answers(release, path, confidence=confidence, limit=limit)

    return _drawn(draw, "answers", words)


def draw_errors(ours: Rival, others: Sequence[Rival], amount: str) -> Markup:
    """The standard error of every query, largest first, against the rivals."""
    words = (
        f"Standard errors from the largest to the least: {ours.mechanism} as a filled curve, "
        f"{', '.join(rival.mechanism for rival in others) or 'no rival'} as dashed lines"
    )

    def draw(path: Path) -> None:
        with plots._figure(path, WIDTH, 3.4) as (figure, axes):  # noqa: SLF001 - one look for all
            count = len(ours.errors)
            axes.stairs(*_stairs(ours.errors), fill=True, color=plots.FAINT)
            curve = axes.stairs(
                *_stairs(ours.errors), baseline=None, color=plots.BEST, linewidth=2.0
            )
            handles, labels = [curve], [ours.mechanism]
            for rival, dash in zip(others, _DASHES, strict=False):
                line = axes.stairs(*_stairs(rival.errors), baseline=None, color=plots.INK)
                line.set(linestyle=dash, linewidth=1.1)
                handles.append(line)
                labels.append(rival.mechanism)
            every = [rival.errors for rival in (ours, *others)]
            _choose_scale(axes, every)
            axes.set_xlim(0.5, count + 0.5)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_xlabel("queries, from the largest error to the least")
            axes.set_ylabel(f"standard error at {amount}")
            figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=3)

    return _drawn(draw, "errors", words)


def draw_comparison(
    errors: Sequence[tuple[str, float]], bound: float | None, xlabel: str, name: str
) -> Markup:
    """A bar for each mechanism, least error first, and the bound below which none can be."""
    ordered = sorted(errors, key=lambda pair: -pair[1])
    words = "Error by mechanism: " + ", ".join(f"{n} {e:.4g}" for n, e in ordered[::-1])

    def draw(path: Path) -> None:
        with plots._figure(path, WIDTH, 0.9 + 0.36 * len(ordered)) as (_, axes):  # noqa: SLF001
            colours = [plots.OTHER] * (len(ordered) - 1) + [plots.BEST]
            values = [error for _, error in ordered]
            axes.barh([name for name, _ in ordered], values, color=colours, height=0.66)
            positive = [value for value in [*values, bound or 0.0] if value > 0]
            if positive:
                axes.set_xscale("log")
                axes.set_xlim(min(positive) / 1.6, max(positive) * 4)
                _plain_ticks(axes.xaxis)
            for row, value in enumerate(values):
                least = values[-1]
                times = f"{value / least:,.3g}×" if least > 0 else ""
                axes.annotate(times, (value, row), (4, 0), textcoords="offset points", va="center")
            if bound is not None and bound > 0:
                plots.mark_bound(axes, bound)
            axes.set_xlabel(xlabel)
            axes.tick_params(axis="y", length=0)

    return _drawn(draw, name, words)


def _choose_scale(axes: Any, every: Sequence[Floats]) -> None:
    """Logarithmic where a rival is far away, else from zero."""
    largest = max(float(errors.max()) for errors in every)
    typical = float(np.median(every[0]))
    if typical > 0 and largest > 20 * typical:
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


def _drawn(draw: Callable[[Path], None], name: str, words: str) -> Markup:
    """Draw into a file and make of it a part of the page."""
    from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw

    with tempfile.TemporaryDirectory() as folder, rc_context(_TEXT):
        path = Path(folder) / "figure.svg"
        draw(path)
        drawn = path.read_text(encoding="utf-8")
    return _inlined(drawn, name, words)


def _inlined(drawn: str, name: str, words: str) -> Markup:
    svg = drawn[drawn.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', svg)
    head = f'<svg class="{name}" role="img" aria-label="{escape(words)}" {box[0] if box else ""}>'
    svg = head + svg[svg.index(">") + 1 :]
    # Names of parts are unique in a page only with the figure's own name before them.
    svg = svg.replace(' id="', f' id="{name}-').replace("url(#", f"url(#{name}-")
    svg = svg.replace('xlink:href="#', f'href="#{name}-')
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, variable)
    return Markup(svg.replace("fill: #ffffff", "fill: none"))
