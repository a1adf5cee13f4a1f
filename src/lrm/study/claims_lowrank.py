"""Tests of Section 6.1: what γ, r and ε do to the paper's mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from lrm.study.evidence import Finding, Results, exponent, judge, spelled, spread

__all__: list[str] = []


def _by_workload(
    results: Results, figure: int, label: str, what: str
) -> dict[str, dict[float, float]]:
    found = {
        w: results.series(figure, label, workload=w, what=what) for w in results.workloads(figure)
    }
    return {workload: series for workload, series in found.items() if len(series) > 1}


def insensitive_to_gamma(results: Results) -> Finding:
    """Largest over least error across γ, as printed (relaxed) and made exact: below 1.5."""
    checks, numbers = [], []
    for label in ("LRM relaxed", "LRM"):
        for workload, series in _by_workload(results, 2, label, "error_expected").items():
            ratio = max(series.values()) / min(series.values())
            checks.append(ratio <= 1.5)
            numbers.append(f"{label} on {workload} {ratio:.3g}")
    return judge(checks, f"largest over least error across γ: {'; '.join(numbers)}")


def faster_with_gamma(results: Results) -> Finding:
    """Time at the smallest γ over time at the largest: at least 1.5."""
    checks, numbers = [], []
    for label in ("LRM relaxed", "LRM"):
        for workload, series in _by_workload(results, 2, label, "cpu_seconds").items():
            ratio = series[min(series)] / series[max(series)]
            checks.append(ratio >= 1.5)
            numbers.append(f"{label} on {workload} {ratio:.3g}")
    return judge(checks, f"time at the least γ over time at the largest: {'; '.join(numbers)}")


def quadratic_in_epsilon(results: Results) -> Finding:
    """Measured error times ε² is the same at every ε, within each row's own tolerance."""
    checks, ratios = [], []
    for row in results.rows:
        if row.figure in (2, 3) and row.label == "LRM":
            checks.append(row.agrees)
            ratios.append(row.error_measured / row.error_expected)
    told = f"measured over 2‖B‖²Δ²/ε² is {spread(ratios)}" if ratios else ""
    return judge(checks, f"{told} (mean {np.mean(ratios):.3f})" if ratios else told)


def same_shape_at_every_epsilon(results: Results) -> Finding:
    """Curves of measured error at two ε, divided: flat within three times their noise."""
    checks, numbers = [], []
    for figure in (2, 3):
        for workload in results.workloads(figure):
            one, other = (
                results.series(figure, "LRM", workload=workload, what="error_measured", epsilon=e)
                for e in (1.0, 0.01)
            )
            shape = [math.log(other[x] / one[x] / 1e4) for x in one if x in other]
            if len(shape) > 1:
                wide = _noise_of(results, figure, workload)
                checks.append(max(map(abs, shape)) <= wide)
                numbers.append(f"figure {figure} {workload} {100 * max(map(abs, shape)):.0f} %")
    return judge(checks, f"largest departure from 10⁴ between ε = 1 and 0.01: {'; '.join(numbers)}")


def _noise_of(results: Results, figure: int, workload: str) -> float:
    """The widest log-ratio that the tolerances of two rows leave."""
    rows = [
        row
        for row in results.rows
        if (row.figure, row.label, row.workload) == (figure, "LRM", workload)
    ]
    high = max(row.tolerance_high / row.error_expected for row in rows)
    return 2 * math.log(high)


def worse_below_the_rank(results: Results) -> Finding:
    """Error at r = 0.8·rank over the largest at any other r: above 2, and 50 somewhere."""
    ratios = {}
    for workload, series in _by_workload(results, 3, "LRM relaxed", "error_expected").items():
        enough = [value for x, value in series.items() if x >= 1]
        if 0.8 in series and enough:
            ratios[workload] = series[0.8] / max(enough)
    checks = [ratio > 2 for ratio in ratios.values()]
    if checks:
        checks.append(max(ratios.values()) >= 50)
    told = "; ".join(f"{workload} {ratio:.3g}" for workload, ratio in ratios.items())
    return judge(checks, f"error at 0.8·rank over the largest at any r ≥ rank: {told}")


def stable_above(results: Results) -> Finding:
    """Largest over least error for r ≥ 1.2·rank: below 1.25."""
    numbers = {}
    for workload, series in _by_workload(results, 3, "LRM", "error_expected").items():
        kept = [value for x, value in series.items() if x >= 1.2]
        if len(kept) > 1:
            numbers[workload] = max(kept) / min(kept)
    told = "; ".join(f"{workload} {ratio:.3g}" for workload, ratio in numbers.items())
    return judge(
        [r <= 1.25 for r in numbers.values()], f"largest over least error for r ≥ 1.2·rank: {told}"
    )


def exponential_time(results: Results) -> Finding:
    """An exponential of r fits the times better than a power, and they outgrow r²."""
    checks, numbers = [], []
    for workload, series in _by_workload(results, 3, "LRM", "cpu_seconds").items():
        if len(series) < 4:
            continue
        power, straight = _misfit(series, logarithmic=True), _misfit(series, logarithmic=False)
        slope = float(np.polyfit(np.log(list(series)), np.log(list(series.values())), 1)[0])
        checks.append(straight[0] < power[0] and slope > 2.2)
        numbers.append(
            f"{workload} like r^{slope:.2g} (misfit {power[0]:.2g} against {straight[0]:.2g})"
        )
    return judge(checks, "; ".join(numbers))


def _misfit(series: Mapping[float, float], *, logarithmic: bool) -> tuple[float, float]:
    """Root mean square of log-time about a line, in r or in log r; and the line's slope."""
    x = np.log(list(series)) if logarithmic else np.array(list(series))
    y = np.log(list(series.values()))
    fit = np.polyfit(x, y, 1)
    return float(np.sqrt(np.mean((np.polyval(fit, x) - y) ** 2))), float(fit[0])


def good_ranks(results: Results) -> Finding:
    """The least error for r between 1.0 and 1.2·rank is within 10 % of the least at any r."""
    numbers = {}
    for workload, series in _by_workload(results, 3, "LRM", "error_expected").items():
        near = [value for x, value in series.items() if 1.0 <= x <= 1.2]
        if near and len(series) > len(near):
            numbers[workload] = min(near) / min(series.values())
    told = "; ".join(f"{workload} {ratio:.3g}" for workload, ratio in numbers.items())
    return judge(
        [ratio <= 1.1 for ratio in numbers.values()],
        f"least error with r in 1 to 1.2·rank over the least with any r: {told}",
    )


def linear_in_rank(results: Results) -> Finding:
    """The exponent of LRM's error in the rank s, other sizes held: 0.75 to 1.25."""
    series = results.series(9, "LRM")
    return judge(
        [0.75 <= exponent(series) <= 1.25] if len(series) > 2 else [],
        f"error ∝ s^{exponent(series):.3g} (figure 9: {spelled(series)})",
    )
