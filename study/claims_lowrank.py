"""Tests of Section 6.1: what γ, r and ε do to the paper's mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from study.evidence import Finding, Results, exponent, judge, spelled, spread

__all__: list[str] = []

BOTH = ("LRM relaxed", "LRM")
"""The program as the paper prints it, and made exact."""


def insensitive_to_gamma(results: Results) -> Finding:
    """Largest over least error across γ, as printed (relaxed) and made exact: below 1.5."""
    checks, numbers = [], []
    for label in BOTH:
        for workload, series in results.by_workload(2, label).items():
            ratio = max(series.values()) / min(series.values())
            checks.append(ratio <= 1.5)
            numbers.append(f"{label} on {workload} {ratio:.3g}")
    return judge(checks, f"largest over least error across γ: {'; '.join(numbers)}")


def faster_with_gamma(results: Results) -> Finding:
    """Time at the smallest γ over time at the largest, five decades apart: at least 3."""
    checks, numbers = [], []
    for label in BOTH:
        for workload, series in results.by_workload(2, label, "cpu_seconds").items():
            rounds = results.series(2, label, workload=workload, what="rounds")
            least, most = min(series), max(series)
            ratio = series[least] / series[most]
            checks.append(ratio >= 3)
            told = f"{rounds[least]:.0f} and {rounds[most]:.0f} rounds"
            numbers.append(f"{label} on {workload} {ratio:.3g} ({told})")
    return judge(checks, f"time at the least γ over time at the largest: {'; '.join(numbers)}")


def quadratic_in_epsilon(results: Results) -> Finding:
    """Measured error times ε² is the same at ε = 1, 0.1 and 0.01, within each row's tolerance.

    The rows of the exact program are held against 2‖B‖²Δ²/ε²; the relaxed one's expected error
    at 0.01 over that at 1 must be 10⁴ within a tenth.
    """
    exact = [row for row in results.rows if row.figure in (2, 3) and row.label == "LRM"]
    checks = [all(row.agrees for row in exact)] if exact else []
    growth = [value for _, series in _growth(results, "LRM relaxed") for value in series.values()]
    numbers = []
    if exact:
        ratios = [row.error_measured / row.error_expected for row in exact]
        numbers.append(
            f"LRM measured over 2‖B‖²Δ²/ε² {spread(ratios)} (mean {np.mean(ratios):.3f})"
        )
    if growth:
        checks.append(all(0.9 <= value / 1e4 <= 1.1 for value in growth))
        numbers.append(f"LRM relaxed at ε = 0.01 over ε = 1: {spread(growth)}")
    return judge(checks, "; ".join(numbers))


def _growth(results: Results, label: str) -> Iterable[tuple[str, dict[float, float]]]:
    """Expected error at ε = 0.01 over that at ε = 1, along each curve of figures 2 and 3."""
    for figure in (2, 3):
        for workload in results.workloads(figure):
            one, other = (
                results.series(figure, label, workload=workload, epsilon=e) for e in (1.0, 0.01)
            )
            yield (
                f"figure {figure} {workload}",
                {x: other[x] / value for x, value in one.items() if x in other},
            )


def same_shape_at_every_epsilon(results: Results) -> Finding:
    """The curve at ε = 0.01 divided by that at ε = 1: largest over least below 1.5."""
    checks, numbers = [], []
    for label in BOTH:
        found = {}
        for place, series in _growth(results, label):
            if len(series) > 1:
                found[place] = max(series.values()) / min(series.values())
        checks += [ratio <= 1.5 for ratio in found.values()]
        if found:
            numbers.append(f"{label} {spread(found.values())}")
    return judge(checks, f"largest over least quotient of the two curves: {'; '.join(numbers)}")


def worse_below_the_rank(results: Results) -> Finding:
    """Error at r = 0.8·rank over the largest at any other r: above 2 at each ε, 50 somewhere."""
    ratios: dict[str, list[float]] = {}
    for epsilon in (1.0, 0.1, 0.01):
        for workload, series in results.by_workload(3, "LRM relaxed", epsilon=epsilon).items():
            enough = [value for x, value in series.items() if x >= 1]
            if 0.8 in series and enough:
                ratios.setdefault(workload, []).append(series[0.8] / max(enough))
    checks = [ratio > 2 for found in ratios.values() for ratio in found]
    if checks:
        checks.append(max(map(max, ratios.values())) >= 50)
    told = "; ".join(
        f"{workload} {', '.join(f'{ratio:.3g}' for ratio in found)}"
        for workload, found in ratios.items()
    )
    return judge(
        checks, f"error at 0.8·rank over the largest at any r ≥ rank, ε = 1, 0.1, 0.01: {told}"
    )


def stable_above(results: Results) -> Finding:
    """Largest over least error for r ≥ 1.2·rank: below 1.25."""
    numbers = {}
    for workload, series in results.by_workload(3, "LRM").items():
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
    for workload, series in results.by_workload(3, "LRM", "cpu_seconds").items():
        if len(series) < 4:
            continue
        power, straight = _misfit(series, logarithmic=True), _misfit(series, logarithmic=False)
        checks.append(straight < power and exponent(series) > 2.2)
        numbers.append(
            f"{workload} like r^{exponent(series):.2g} (misfit {power:.2g} against {straight:.2g})"
        )
    return judge(checks, "; ".join(numbers))


def _misfit(series: Mapping[float, float], *, logarithmic: bool) -> float:
    """Root mean square of log-time about a line, in r or in log r."""
    x = np.log(list(series)) if logarithmic else np.array(list(series))
    y = np.log(list(series.values()))
    fit = np.polyfit(x, y, 1)
    return float(np.sqrt(np.mean((np.polyval(fit, x) - y) ** 2)))


def good_ranks(results: Results) -> Finding:
    """The least error for r between 1.0 and 1.2·rank is within 10 % of the least at any r."""
    numbers = {}
    for workload, series in results.by_workload(3, "LRM").items():
        near = [value for x, value in series.items() if 1.0 <= x <= 1.2]
        if near and len(series) > len(near):
            numbers[workload] = min(near) / min(series.values())
    told = "; ".join(f"{workload} {ratio:.3g}" for workload, ratio in numbers.items())
    return judge(
        [ratio <= 1.1 for ratio in numbers.values()],
        f"least error with r in 1 to 1.2·rank over the least with any r: {told}",
    )


def linear_in_rank(results: Results) -> Finding:
    """The exponent of LRM's error in the rank s, with m and n held (figure 9): 0.75 to 1.25."""
    series, ratios = results.series(9, "LRM"), results.ratios(9, "LRM", ("LM",))
    return judge(
        [0.75 <= exponent(series) <= 1.25] if len(series) > 2 else [],
        f"error ∝ s^{exponent(series):.3g}, and over LM's ∝ s^{exponent(ratios):.3g} "
        f"({spelled(series)})",
    )
