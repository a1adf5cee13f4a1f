"""Tests of Sections 6.2 to 6.4: mechanisms beside each other as n, m and s vary."""

from __future__ import annotations

from itertools import pairwise

from study.evidence import UNTESTED, Finding, Results, exponent, judge, spelled, spread

__all__: list[str] = []

PAPERS = ("LM", "WM", "HM", "LRM")
"""The mechanisms that the paper goes on with once AMM is dropped."""

_OTHERS = ("LM", "WM", "HM")


def matrix_mechanism_is_worst(results: Results) -> Finding:
    """AMM over the worst of the paper's other mechanisms: above 1 everywhere."""
    checks, numbers = [], []
    for figure in (4, 5, 6):
        mine = results.series(figure, "AMM")
        others = [results.series(figure, label) for label in PAPERS]
        ratios = {
            x: value / max(other[x] for other in others)
            for x, value in mine.items()
            if all(x in other for other in others)
        }
        if ratios:
            checks += [ratio > 1 for ratio in ratios.values()]
            least = results.ratios(figure, "AMM", PAPERS)
            told = f"{spread(ratios.values())} (over the best of them {spread(least.values())})"
            numbers.append(f"{results.workloads(figure)[0]} {told}")
    return judge(checks, f"AMM over the worst of LM, WM, HM and LRM: {'; '.join(numbers)}")


def relative_standing_and_epsilon(results: Results) -> Finding:
    """LRM over ``best`` at ε = 1, 0.1 and 0.01, in figures 2 and 3: the same within a tenth.

    The only two that the paper runs at all of them are LRM's variants. Exact strategies keep
    their ratio by formula; the relaxed program is what can move.
    """
    checks, numbers = [], []
    for label in ("LRM relaxed", "LRM"):
        moved = []
        for figure in (2, 3):
            for workload in results.workloads(figure):
                moved += _movement(results, figure, label, workload)
        checks += [ratio <= 1.1 for ratio in moved]
        if moved:
            numbers.append(f"{label} over best {spread(moved)}")
    return judge(checks, f"largest over least ratio across ε: {'; '.join(numbers)}")


def _movement(results: Results, figure: int, label: str, workload: str) -> list[float]:
    """For each x, how far ε moves the ratio of a mechanism to ``best``."""
    found: dict[float, list[float]] = {}
    for epsilon in (1.0, 0.1, 0.01):
        one = results.series(figure, label, workload=workload, epsilon=epsilon)
        other = results.series(figure, "best", workload=workload, epsilon=epsilon)
        for x, value in one.items():
            if x in other:
                found.setdefault(x, []).append(value / other[x])
    return [max(ratios) / min(ratios) for ratios in found.values() if len(ratios) == 3]


def laplace_best_on_small_domains(results: Results) -> Finding:
    """On WDiscrete with n ≤ m, LM over the best of WM, HM and LRM: at most 1."""
    small = results.scale.default_queries
    ratios = results.ratios(4, "LM", ("WM", "HM", "LRM"), lambda n: n <= small)
    lowrank = results.ratios(4, "LRM", ("LM",), lambda n: n <= small)
    return judge(
        [r <= 1 for r in ratios.values()],
        f"LM over the best other: {spelled(ratios)} (LRM over LM: {spelled(lowrank)})",
    )


def others_linear_in_cells(results: Results) -> Finding:
    """Exponents of LM, WM and HM in n on WDiscrete: 0.8 to 1.2."""
    found = {label: exponent(results.series(4, label)) for label in _OTHERS}
    known = {label: p for label, p in found.items() if p == p}  # noqa: PLR0124 - NaN
    told = ", ".join(f"{label} n^{p:.3g}" for label, p in known.items())
    return judge([0.8 <= p <= 1.2 for p in known.values()], told)


def lowrank_flat_in_cells(results: Results) -> Finding:
    """LRM on WDiscrete beyond the n that stands for 512: at most 1.25 times its error there."""
    start = results.cells_like(512)
    series = results.series(4, "LRM", where=lambda n: n >= start)
    beyond = {
        x: value / series[start] for x, value in series.items() if x > start and start in series
    }
    return judge(
        [r <= 1.25 for r in beyond.values()], f"error over that at {start:g}: {spelled(beyond)}"
    )


def lowrank_best_on_large_domains(results: Results) -> Finding:
    """LRM on WDiscrete over the best of LM, WM, HM, for n above the default: below 1."""
    large = results.ratios(4, "LRM", _OTHERS, lambda n: n > results.scale.default_cells)
    return judge(
        [r < 1 for r in large.values()], f"LRM over the best of LM, WM, HM: {spelled(large)}"
    )


def trees_beat_laplace_on_ranges(results: Results) -> Finding:
    """WM and HM over LM on WRange for n ≥ 512 (at every scale: m cancels): below 1."""
    checks, numbers = [], []
    for label in ("WM", "HM"):
        kept = results.ratios(5, label, ("LM",), lambda n: n >= 512)
        checks += [ratio < 1 for ratio in kept.values()]
        numbers.append(f"{label}/LM {spelled(kept)}")
    return judge(checks, "; ".join(numbers))


def laplace_beats_trees_on_small_ranges(results: Results) -> Finding:
    """WM and HM over LM on WRange for n < 512 (at every scale: m cancels): above 1."""
    checks, numbers = [], []
    for label in ("WM", "HM"):
        kept = results.ratios(5, label, ("LM",), lambda n: n < 512)
        checks += [ratio > 1 for ratio in kept.values()]
        numbers.append(f"{label}/LM {spelled(kept)}")
    return judge(checks, "; ".join(numbers))


def lowrank_best_on_ranges(results: Results) -> Finding:
    """LRM over the best of LM, WM, HM on WRange, from the n that stands for 512: at most 0.8."""
    kept = results.ratios(5, "LRM", _OTHERS, lambda n: n >= results.cells_like(512))
    return judge(
        [r <= 0.8 for r in kept.values()], f"LRM over the best of LM, WM, HM: {spelled(kept)}"
    )


def _lowrank_ratios(results: Results, figure: int, most: float) -> Finding:
    ratios = results.ratios(figure, "LRM", _OTHERS)
    return judge(
        [r <= most for r in ratios.values()], f"LRM over the best of LM, WM, HM: {spelled(ratios)}"
    )


def lowrank_best_on_related(results: Results) -> Finding:
    """LRM on WRelated over the best of LM, WM, HM, at every n: at most 1."""
    return _lowrank_ratios(results, 6, 1.0)


def two_orders_at_the_largest_domain(results: Results) -> Finding:
    """At the largest n of WRelated every other mechanism has 100 times LRM's error."""
    top = results.scale.cells[-1]
    found = {label: results.ratios(6, label, ("LRM",), lambda n: n == top) for label in _OTHERS}
    ratios = {label: series[top] for label, series in found.items() if series}
    told = ", ".join(f"{label} {ratio:.3g}" for label, ratio in ratios.items())
    return judge([ratio >= 100 for ratio in ratios.values()], f"over LRM at n = {top}: {told}")


def lowrank_best_for_few_queries(results: Results) -> Finding:
    """LRM on WRange is the best for m ≤ n/4."""
    few = results.ratios(7, "LRM", _OTHERS, lambda m: m <= results.scale.default_cells / 4)
    return judge([r < 1 for r in few.values()], f"LRM over the best of LM, WM, HM: {spelled(few)}")


def mechanisms_converge(results: Results) -> Finding:
    """Largest over least error of LM, WM, HM, LRM on WRange falls with every step of m."""
    curves = [results.series(7, label) for label in PAPERS]
    shared = [x for x in curves[0] if all(x in curve for curve in curves)]
    gaps = {x: max(c[x] for c in curves) / min(c[x] for c in curves) for x in shared}
    values = list(gaps.values())
    steps = [later < earlier for earlier, later in pairwise(values)]
    return judge(steps, f"largest over least error: {spelled(gaps)}")


def wavelet_best_for_many_queries(results: Results) -> Finding:
    """At m = n = 1024 on WRange (at no smaller n: trees lose there), WM over each other ≤ 1."""
    if results.scale.default_cells < 512:
        return Finding(UNTESTED, f"figure 7 has n = {results.scale.default_cells} at this scale")
    top = results.scale.queries[-1]
    ratios = {
        label: value
        for label in ("LM", "HM", "LRM")
        for value in results.ratios(7, "WM", (label,), lambda m: m == top).values()
    }
    told = ", ".join(f"{label} {ratio:.3g}" for label, ratio in ratios.items())
    return judge([ratio <= 1 for ratio in ratios.values()], f"WM over {told}")


def ranges_lose_their_low_rank(results: Results) -> Finding:
    """rank(W) of WRange over n rises with every step of m, and so does LRM over LM."""
    ranks = results.series(7, "LM", what="rank")
    ratios = results.ratios(7, "LRM", ("LM",))
    checks = [
        later > earlier
        for series in (ranks, ratios)
        for earlier, later in pairwise(series.values())
    ]
    return judge(checks, f"rank(W): {spelled(ranks)}; LRM over LM: {spelled(ratios)}")


def lowrank_best_for_any_queries(results: Results) -> Finding:
    """LRM on WRelated has at most a tenth of any other's error, for every m."""
    return _lowrank_ratios(results, 8, 0.1)


def rank_stays_low(results: Results) -> Finding:
    """The rank of WRelated does not grow with m."""
    ranks = results.series(8, "LM", what="rank")
    values = list(ranks.values())
    checks = [rank == values[0] for rank in values[1:]]
    return judge(checks, f"rank(W) at each m: {spelled(ranks)}")


def rank_is_s(results: Results) -> Finding:
    """rank(W) = s at every point of figure 9."""
    ranks, s = (results.series(9, "LM", what=what) for what in ("rank", "s"))
    told = f"rank(W) at each s over min(m, n): {spelled(ranks)}"
    return judge([rank == s[x] for x, rank in ranks.items()], told)


def two_orders_at_low_rank(results: Results) -> Finding:
    """For s up to 0.2·min(m, n), LRM has at most a hundredth of the best other's error."""
    low = results.ratios(9, "LRM", _OTHERS, lambda s: s <= 0.2)
    return judge(
        [r <= 0.01 for r in low.values()], f"LRM over the best of LM, WM, HM: {spelled(low)}"
    )


def others_stable_in_s(results: Results) -> Finding:
    """Errors of LM, WM, HM vary by at most 1.5 over all s."""
    curves = {label: results.series(9, label) for label in _OTHERS}
    found = {
        label: max(series.values()) / min(series.values())
        for label, series in curves.items()
        if len(series) > 1
    }
    told = ", ".join(f"{label} {ratio:.3g}" for label, ratio in found.items())
    return judge([r <= 1.5 for r in found.values()], f"largest over least error across s: {told}")


def lowrank_grows_with_s(results: Results) -> Finding:
    """LRM's error grows with s, and faster than that of every other mechanism."""
    curves = {label: results.series(9, label) for label in ("LRM", *_OTHERS)}
    if min(map(len, curves.values())) < 3:
        return judge([], "")
    mine, *_ = powers = [exponent(series) for series in curves.values()]
    others = dict(zip(_OTHERS, powers[1:], strict=True))
    told = ", ".join(f"{label} s^{p:.3g}" for label, p in {"LRM": mine, **others}.items())
    return judge([mine > 1.5, all(mine > p for p in others.values())], told)


def advantage_shrinks_with_rank(results: Results) -> Finding:
    """LRM over the best other rises with every second step of s."""
    ratios = results.ratios(9, "LRM", _OTHERS)
    values = list(ratios.values())
    steps = [later > earlier for earlier, later in zip(values, values[2:], strict=False)]
    return judge(steps, f"LRM over the best of LM, WM, HM: {spelled(ratios)}")
