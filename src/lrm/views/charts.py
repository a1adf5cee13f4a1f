"""Small drawings of tables as SVG in the page's colours: lines with a band, and pyramids.

They are written by hand: a page of fifty of them takes some milliseconds, and their text is text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from lrm.files.csv_cells import READABLE, NumberStyle
from lrm.files.spelling import number, visible
from lrm.queries.maps.linear import Floats

_WIDTH, _HEIGHT = 320, 164
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 20, 34


@dataclass(frozen=True, eq=False)
class Series:
    """Values with their intervals, in order; NaN where one is missing."""

    name: str
    values: Floats
    low: Floats
    high: Floats
    measure: str = ""  # what the values are; series of one measure have the same axis


def _text(value: str) -> str:
    return escape(visible(value))


def _label(  # noqa: PLR0913, PLR0917 - what a text is made of
    kind: str, x: str | float, y: str | float, words: str, anchor: str = "", turned: str = ""
) -> str:
    mark = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}"{mark} x="{x}" y="{y}"{turned}>{_text(words)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) or 1.0))
    if (high - low) / step < 2:
        step /= 2
    elif (high - low) / step > 5:
        step *= 2
    first = math.ceil(low / step)
    return [step * k for k in range(first, math.floor(high / step) + 1)]


def chart_range(series: Sequence[Series]) -> tuple[float, float]:
    """The ends of an axis for all of these lines; 0 is on it."""
    every = np.concatenate(
        [part for curve in series for part in (curve.values, curve.low, curve.high)]
    )
    known = every[np.isfinite(every)]
    low, high = min(0.0, float(known.min(initial=0))), max(0.0, float(known.max(initial=0)))
    return (low, high) if high > low else (0.0, 1.0)


def line_chart(
    labels: Sequence[str],
    series: Sequence[Series],
    words: str,
    axis: str = "",
    style: NumberStyle = READABLE,
) -> str:
    """One panel per series: a line, and its intervals as a band.

    Series of one measure have one scale. ``axis`` is written below each panel.
    """
    measures = {curve.measure for curve in series}
    ends = {
        measure: chart_range([curve for curve in series if curve.measure == measure])
        for measure in measures
    }
    columns = min(len(series), 2)
    rows = math.ceil(len(series) / columns)
    wide = _WIDTH * (2 if columns == 1 else 1)
    parts = [
        _panel(
            labels,
            curve,
            ends[curve.measure],
            ((k % columns) * wide, (k // columns) * _HEIGHT, wide),
            axis,
            style,
        )
        for k, curve in enumerate(series)
    ]
    return _svg(wide * columns, rows * _HEIGHT, words, parts)


def _svg(width: int, height: int, words: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" role="img" aria-label="{_text(words)}" '
        f'viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )


def _panel(  # noqa: PLR0913, PLR0917 - what a panel is made of
    labels: Sequence[str],
    curve: Series,
    ends: tuple[float, float],
    place: tuple[int, int, int],
    axis: str,
    style: NumberStyle,
) -> str:
    (low, high), (x0, y0, width) = ends, place
    inner, tall = width - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    count = max(len(labels) - 1, 1)
    xs = [x0 + _LEFT + inner * k / count for k in range(len(labels))]

    def y(value: float) -> float:
        inside = min(max(value, low), high)
        return y0 + _TOP + tall * (1 - (inside - low) / (high - low))

    out = [_label("name", x0 + _LEFT, y0 + 13, curve.name)]
    out += [
        f'<line class="grid" x1="{x0 + _LEFT}" x2="{x0 + width - _RIGHT}" y1="{y(tick):.1f}" '
        f'y2="{y(tick):.1f}"/>'
        + _label("tick", x0 + _LEFT - 4, f"{y(tick) + 3:.1f}", style.shown(number(tick, 3)), "end")
        for tick in _ticks(low, high)
    ]
    for run in _runs(np.isfinite(curve.low) & np.isfinite(curve.high)):
        up = [f"{xs[k]:.1f},{y(float(curve.high[k])):.1f}" for k in run]
        down = [f"{xs[k]:.1f},{y(float(curve.low[k])):.1f}" for k in reversed(run)]
        out.append(f'<polygon class="band" points="{" ".join(up + down)}"/>')
    for run in _runs(np.isfinite(curve.values)):
        points = " ".join(f"{xs[k]:.1f},{y(float(curve.values[k])):.1f}" for k in run)
        out.append(f'<polyline class="line" points="{points}"/>')
    for k in sorted({0, len(labels) // 2, len(labels) - 1}):
        anchor = "start" if k == 0 else "end" if k == len(labels) - 1 else "middle"
        out.append(_label("tick", f"{xs[k]:.1f}", y0 + _HEIGHT - _BOTTOM + 14, labels[k], anchor))
    if curve.measure:
        middle, left = f"{y0 + _TOP + tall / 2:.0f}", x0 + 11
        turned = f' transform="rotate(-90 {left} {middle})"'
        out.append(_label("axis", left, middle, curve.measure, "middle", turned))
    if axis:
        centre = f"{x0 + _LEFT + inner / 2:.0f}"
        out.append(_label("axis", centre, y0 + _HEIGHT - 6, axis, "middle"))
    return "".join(out)


def _runs(known: NDArray[np.bool_]) -> list[list[int]]:
    """Runs of places that are known."""
    runs: list[list[int]] = [[]]
    for place, is_known in enumerate(known):
        if is_known:
            runs[-1].append(place)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def pyramid(  # noqa: PLR0913 - what it is made of
    labels: Sequence[str],
    left: Series,
    right: Series,
    words: str,
    names: tuple[str, str],
    *,
    style: NumberStyle = READABLE,
) -> str:
    """Two columns of bars, back to back: the last label on top, intervals as whiskers.

    ``names`` are what the labels and the bars are.
    """
    _, high = chart_range([left, right])
    step, half, middle = 16, 220, 90
    height = 44 + step * len(labels)
    centre = half + middle // 2
    out = [
        _label("name", half, 14, left.name, "end"),
        _label("name", half + middle, 14, right.name),
        _label("axis", centre, 14, names[0], "middle"),
    ]
    foot = 24 + step * len(labels)
    for side, sign in ((half, -1), (half + middle, 1)):
        for tick in _ticks(0.0, high)[: 6 if high > 0 else 1]:
            x = side + sign * half * tick / high if high > 0 else side
            anchor = "middle" if tick else "end" if sign < 0 else "start"
            out.append(_label("tick", f"{x:.1f}", foot + 9, style.shown(number(tick, 3)), anchor))
    out.append(_label("axis", centre, foot + 18, names[1], "middle"))
    for place, label in enumerate(labels):
        y = 24 + step * (len(labels) - 1 - place)
        out.append(_label("tick", centre, y + 11, label, "middle"))
        for curve, start, sign in ((left, half, -1), (right, half + middle, 1)):
            sizes = [
                half * min(max(float(part[place]), 0.0), high) / high if high > 0 else 0.0
                for part in (curve.values, curve.low, curve.high)
            ]
            value, low, top = (0.0 if math.isnan(size) else size for size in sizes)
            x = start - value if sign < 0 else start
            ends = sorted((start + sign * low, start + sign * top))
            out.append(
                f'<rect class="bar-{"left" if sign < 0 else "right"}" x="{x:.1f}" y="{y + 2}" '
                f'width="{value:.1f}" height="{step - 4}"/><line class="whisker" '
                f'x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y + step / 2}" y2="{y + step / 2}"/>'
            )
    return _svg(2 * half + middle, height, words, out)


def step_chart(places: Sequence[float], sign: str, words: str) -> str:
    """How many of some positive numbers are at most x, on a logarithmic axis."""
    width, height = 2 * _WIDTH, _HEIGHT
    low = math.floor(math.log10(min(places)) - 0.1)
    high = max(math.ceil(math.log10(max(places)) + 0.1), low + 1)
    total = len(places)

    def x(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return _LEFT + (width - _LEFT - _RIGHT) * share

    def y(count: float) -> float:
        return height - _BOTTOM - (height - _TOP - _BOTTOM) * count / total

    steps = "".join(
        f"H{x(place):.1f}V{y(number_):.1f}" for number_, place in enumerate(sorted(places), start=1)
    )
    lines = [
        f'<line class="grid" x1="{x(10.0**k):.1f}" x2="{x(10.0**k):.1f}" y1="{_TOP}" '
        f'y2="{height - _BOTTOM}"/><text x="{x(10.0**k):.1f}" y="{height - 5}" '
        f'text-anchor="middle">{number(10.0**k)}</text>'
        for k in range(low, high + 1)
    ]
    lines += [
        f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y(count):.1f}" '
        f'y2="{y(count):.1f}"/><text x="{_LEFT - 5}" y="{y(count) + 4:.1f}" '
        f'text-anchor="end">{count}</text>'
        for count in sorted({0, total // 2, total})
    ]
    lines += [
        f'<path class="line" d="M{_LEFT} {y(0):.1f}{steps}H{width - _RIGHT}"/>',
        f'<text class="name" x="{_LEFT}" y="13">usable tables, by {_text(sign)}</text>',
    ]
    return _svg(width, height, words, lines)
