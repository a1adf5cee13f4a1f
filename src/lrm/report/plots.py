"""Plots of a comparison, of a plan's errors, and of answers with their intervals."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lrm.errors import UsageError
from lrm.files.writing import write_bytes
from lrm.privacy.budget import ZCDP, Privacy, PureDP
from lrm.showing.spelling import parameter_words, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lrm.plans import Plan
    from lrm.plans.comparison import Comparison, SideBySide
    from lrm.releases import Release

__all__ = [
    "KINDS",
    "mark_bound",
    "plot_answers",
    "plot_comparison",
    "plot_query_errors",
    "plot_side_by_side",
]

KINDS = (".svg", ".png")
"""Endings of the files that can be drawn."""

INK, BEST, OTHER, FAINT = "#1f2430", "#0b6e4f", "#8fa3b8", "#d5dbe3"
"""Dark enough for print; the best is told apart by lightness, not by hue alone."""

MOST_QUERIES = 20_000
"""Beyond this many points a plot shows no more; the queries drawn are spread evenly."""

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


@contextmanager
def _figure(path: str | os.PathLike[str], width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """Give a figure and its axes, and write the file whole once it is drawn."""
    from matplotlib import rc_context  # noqa: PLC0415 - 0.3 s, needed only to draw
    from matplotlib.figure import Figure  # noqa: PLC0415 - a Figure needs no display

    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        raise UsageError(f"plots end in {' or '.join(KINDS)}, but {os.fspath(path)!r} came")
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()
        drawn = io.BytesIO()
        metadata = {"Date": None} if kind == ".svg" else {"Software": None}
        figure.savefig(drawn, format=kind[1:], metadata=metadata)
    write_bytes(Path(path), drawn.getvalue())


def mark_bound(axes: Any, bound: float) -> None:
    """Draw the error that no strategy is below, and say so."""
    axes.axvline(bound, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        "no strategy is below",
        (bound, 1.0),
        (3, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=8,
    )


def plot_comparison(comparison: Comparison, privacy: Privacy, path: str | os.PathLike[str]) -> None:
    """Draw the error of every mechanism as a bar, least first, on a logarithmic axis."""
    planned = [(outcome, outcome.plan) for outcome in comparison.outcomes if outcome.plan]
    if not planned:
        raise UsageError("there is nothing to draw: no mechanism has a plan for this workload")
    planned.sort(key=lambda pair: pair[0].error, reverse=True)
    errors = [_total(plan, privacy) for _, plan in planned]
    bound = planned[0][1].accuracy(privacy).lower_bound
    floor = min([error for error in errors if error > 0] + [bound] if bound > 0 else errors)
    queries, cells = planned[0][1].workload.shape
    with _figure(path, 7.0, 1.3 + 0.42 * len(planned)) as (_, axes):
        colours = [BEST if outcome is comparison.best else OTHER for outcome, _ in planned]
        axes.barh([outcome.mechanism for outcome, _ in planned], errors, color=colours, height=0.66)
        axes.set_xscale("log")
        axes.set_xlim(floor / 1.6, max(errors) * 4)
        for row, (outcome, _) in enumerate(planned):
            factor = comparison.ratio_to_best(outcome)
            times = f"{factor:.3g}×" if factor < 1000 else f"{factor:,.0f}×"
            axes.annotate(
                times, (errors[row], row), (4, 0), textcoords="offset points", va="center"
            )
        if bound > 0:
            mark_bound(axes, bound)
        axes.set_title(f"{queries:,} queries over {cells:,} cells", pad=16)
        axes.set_xlabel(f"expected total squared error at {_guarantee(privacy)}")
        axes.tick_params(axis="y", length=0)


def plot_side_by_side(
    both: SideBySide, pure: Privacy, privacy: Privacy, path: str | os.PathLike[str]
) -> None:
    """Draw two bars for each mechanism: Laplace noise at ``pure``, Gaussian at ``privacy``."""
    series = (
        ("Laplace", both.laplace, pure, OTHER, 0.19),
        ("Gaussian", both.gaussian, privacy, BEST, -0.19),
    )
    names = [outcome.mechanism for outcome in both.laplace.outcomes][::-1]
    place = np.arange(len(names))
    drawn: list[float] = []
    with _figure(path, 7.0, 1.6 + 0.52 * len(names)) as (figure, axes):
        for noise, comparison, promised, colour, shift in series:
            plans = [outcome.plan for outcome in comparison.outcomes][::-1]
            errors = [_total(plan, promised) if plan else np.nan for plan in plans]
            label = f"{noise} noise at {_guarantee(promised)}"
            axes.barh(place + shift, errors, color=colour, height=0.36, label=label)
            drawn += [error for error in errors if error > 0]
        if not drawn:
            raise UsageError("there is nothing to draw: no mechanism has a plan for this workload")
        axes.set_yticks(place, names)
        axes.set_xscale("log")
        axes.set_xlim(min(drawn) / 1.6, max(drawn) * 1.6)
        axes.set_title("Laplace and Gaussian noise")
        axes.set_xlabel("expected total squared error")
        axes.tick_params(axis="y", length=0)
        figure.legend(frameon=False, loc="outside lower right")


def plot_query_errors(plan: Plan, privacy: Privacy, path: str | os.PathLike[str]) -> None:
    """Draw the standard error of every query, largest first."""
    errors = np.sort(plan.accuracy(privacy).standard_errors)[::-1]
    shown = _spread(len(errors))
    edges = np.append(shown, len(errors)) + 0.5
    with _figure(path, 7.0, 3.4) as (_, axes):
        axes.stairs(errors[shown], edges, fill=True, color=FAINT)
        axes.stairs(errors[shown], edges, color=BEST, linewidth=1.6)
        typical = float(np.sqrt(np.mean(errors**2)))
        axes.axhline(typical, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"root mean square {typical:,.3g}",
            (1.0, typical),
            (0, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        axes.set_ylim(0, max(errors.max() * 1.08, 1e-12))
        axes.set_xlim(0.5, len(errors) + 0.5)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_title(f"Error of each query by {plan.mechanism}")
        axes.set_xlabel("queries, from the largest error to the least")
        axes.set_ylabel(f"standard error\nat {_guarantee(privacy)}")


def plot_answers(
    release: Release,
    path: str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    limit: int = 40,
    truth: ArrayLike | None = None,
) -> None:
    """Draw the first ``limit`` answers with their intervals.

    ``truth`` is for synthetic tables only, where it is no secret.
    """
    count = min(limit, len(release.names))
    answers = release.answers[:count]
    low, high = release.intervals(confidence)[:count].T
    place = np.arange(count)[::-1]
    with _figure(path, 7.0, 1.2 + 0.24 * count) as (figure, axes):
        axes.hlines(place, low, high, color=BEST, linewidth=1.4)
        axes.plot(np.concatenate([low, high]), np.tile(place, 2), "|", color=BEST, markersize=6)
        axes.plot(answers, place, "o", color=BEST, markersize=3.2, label="answer")
        if truth is not None:
            true_answers = np.asarray(truth)[:count]
            axes.plot(true_answers, place, "x", color=INK, markersize=5, label="synthetic truth")
            figure.legend(frameon=False, loc="outside lower right", ncols=2)
        axes.set_yticks(place, [_shortened(visible(name)) for name in release.names[:count]])
        axes.set_ylim(-0.8, count - 0.2)
        axes.grid(axis="x", color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        rest = (
            f", the first {count} of {len(release.names):,}" if count < len(release.names) else ""
        )
        axes.set_title(f"Answers with {100 * confidence:.4g} % intervals{rest}")
        axes.set_xlabel("answer")


def _total(plan: Plan, privacy: Privacy) -> float:
    return plan.accuracy(privacy).squared_error


def _guarantee(privacy: Privacy) -> str:
    """The amounts and what they are amounts of: a ρ is no ε, and a δ makes a weaker promise."""
    if isinstance(privacy, PureDP):
        kind = "pure DP"
    else:
        kind = "zero-concentrated DP" if isinstance(privacy, ZCDP) else "approximate DP"
    return f"{parameter_words(privacy)} ({kind})"


def _spread(count: int) -> Any:
    """Indices of at most ``MOST_QUERIES`` points, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_QUERIES)).astype(np.int64))


def _shortened(name: str, most: int = 34) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
