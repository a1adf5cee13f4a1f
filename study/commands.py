"""``python -m study``: the paper's experiments, their figures, and its claims put to the test."""

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lrm.cli.group import LazyGroup
from lrm.cli.options import json_option
from lrm.cli.terminal import echo, print_document, print_json
from lrm.files.spelling import visible
from lrm.views.blocks import Document, plain_table
from study.claims import Judged, Promise, evaluate, promises
from study.convergence import measure_convergence, save_convergence
from study.costs import Costs
from study.data import open_datasets
from study.evidence import Results
from study.grid import SCALES, cases_of
from study.page import plot_study
from study.rows import DONE, FAILED, STOPPED, RowStore
from study.runner import Progress, RunResult, run_cases

FIGURES = ("2", "3", "4", "5", "6", "7", "8", "9", "convergence")
DATASETS = ("search_log", "net_trace", "social_network")

_folder = click.option(
    "--out",
    "folder",
    metavar="FOLDER",
    default="build/study",
    show_default=True,
    help="Where rows, plans, figures and the page are kept.",
)


COMMANDS = {
    "run": ("study.commands:run", "Compute the missing rows."),
    "plot": ("study.commands:plot", "Draw the figures and the page from stored rows."),
    "claims": ("study.commands:claims", "Put the paper's claims to the test."),
}


@click.group(
    cls=LazyGroup,
    commands_by_name=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def main() -> None:
    r"""Run the paper's whole study, draw its figures, and judge its claims.

    Rows are kept in Parquet as they finish, so a stopped run goes on where it was; figures and
    claims come from stored rows alone. Noise is simulated: nothing here is a release.

    \b
    Example:
      python -m study run --scale quick --jobs 2
      python -m study plot
      python -m study claims
    """


def _chosen_figures(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[str, ...]:
    if value is None:
        return FIGURES
    names = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    unknown = [name for name in names if name not in FIGURES]
    if unknown or not names:
        given = repr(unknown[0] if unknown else value)
        raise click.BadParameter(
            f"no figure is called {given}; figures are {', '.join(FIGURES)}", ctx, param
        )
    return names


def _chosen_data(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    found = {}
    for text in value:
        name, equals, path = text.partition("=")
        if name not in DATASETS or not equals or not path:
            raise click.BadParameter(
                f"write NAME=PATH with a name of {', '.join(DATASETS)}, not {text!r}", ctx, param
            )
        if name in found:
            raise click.BadParameter(f"{name} was given twice; give it once", ctx, param)
        found[name] = path
    return found


_seconds = click.FloatRange(min=0, min_open=True, max=1e9)


def _a_number(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("expected a number of seconds, got nan", ctx, param)
    return value


@click.command()
@click.option(
    "--figures",
    metavar="2,3,…",
    callback=_chosen_figures,
    help="Which of 2 to 9 and convergence, separated by commas; all by default.",
)
@click.option(
    "--scale",
    type=click.Choice(["quick", "paper", "tiny"]),
    default="quick",
    show_default=True,
    help="paper is the paper's Table 1; quick has every side an eighth of it.",
)
@_folder
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="Processes at a time.",
)
@click.option(
    "--time-limit",
    type=_seconds,
    callback=_a_number,
    metavar="SECONDS",
    help="CPU time for one plan; what does not fit is named with its estimated time. "
    "20 by default for quick and 240 for paper; best has at most 6 and 60.",
)
@click.option(
    "--time-budget",
    type=_seconds,
    callback=_a_number,
    metavar="SECONDS",
    help="After which no further plan is begun; run again to go on. 9000 by default for paper.",
)
@click.option(
    "--data",
    multiple=True,
    metavar="NAME=PATH",
    callback=_chosen_data,
    help="A real data set, one whole number per line; synthetic look-alikes otherwise.",
)
@click.option("--retry", is_flag=True, help="Compute cases again that failed or did not fit.")
@json_option
def run(folder: str, scale: str, figures: tuple[str, ...], **choices: Any) -> None:
    r"""Compute the rows of the chosen figures that FOLDER does not hold yet.

    A failed case is a row with its reason. Ctrl-C loses the plans that are being computed and
    nothing else.

    \b
    Example:
      python -m study run --scale quick --jobs 2
      python -m study run --figures 4,5 --scale paper --time-limit 240
      python -m study run --data search_log=searches.txt --out real
    """
    cases = cases_of(SCALES[scale], [int(name) for name in figures if name.isdigit()])
    # A file that cannot be used is reported before any work.
    open_datasets(choices["data"], cells=max((c.plan.setting.cells for c in cases), default=1))
    place = Path(folder)
    limits = {name: choices[name] for name in ("jobs", "retry")}
    limits["search_limit"] = SCALES[scale].search_limit
    for name in ("time_limit", "time_budget"):
        limits[name] = choices[name] or getattr(SCALES[scale], name)
    line = _Line(quiet=choices["as_json"])
    result = run_cases(cases, place, data=choices["data"], on_progress=line, **limits)
    over = choices["time_budget"] is not None and result.unfinished
    if "convergence" in figures and not over:
        _run_convergence(place, scale, limits["time_limit"], line)
    line.end()
    facts = _run_facts(place, result)
    if choices["as_json"]:
        print_json(facts)
    else:
        _tell(facts)
    if facts["failed"] and not facts["done"]:
        raise SystemExit(1)


def _tell(facts: dict[str, Any]) -> None:
    echo(
        f"{facts['rows']:,} rows in {facts['folder']}: {facts['computed']} cases computed in "
        f"{facts['seconds']:.0f} s, {facts['kept']} kept, {facts['failed']} failed, "
        f"{facts['stopped']} over their limit, {len(facts['unfinished'])} not begun"
    )
    for reason in facts["reasons"]:
        echo(f"failed: {reason}")


def _run_convergence(place: Path, scale: str, limit: float | None, line: "_Line") -> None:

    stored = place / "convergence.json"
    if not stored.exists():
        save_convergence(
            measure_convergence(SCALES[scale], time_limit=limit, on_progress=line.say), stored
        )


def _run_facts(place: Path, result: RunResult) -> dict[str, Any]:
    """Sum a run up, and name the cases that it did not come to."""
    rows = RowStore(place).load()
    costs = Costs(rows)
    ended = {status: {r.case for r in rows if r.status == status} for status in (DONE, STOPPED)}
    failed = {row.case: row.reason for row in rows if row.status == FAILED}
    return {
        "folder": str(place),
        "rows": len(rows),
        "computed": result.computed,
        "kept": result.kept,
        "done": len(ended[DONE]),
        "failed": len(failed),
        "stopped": len(ended[STOPPED]),
        "unfinished": [
            {"case": str(case), "estimated_seconds": costs.seconds(case.plan)}
            for case in result.unfinished
        ],
        "reasons": sorted(set(failed.values())),
        "seconds": result.seconds,
    }


class _Line:
    """Progress on standard error: a line that moves on a terminal, one a minute elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._open = False
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        left = progress.seconds_left
        spelled = f"{left:.0f} s" if left < 180 else f"{left / 60:.0f} min"
        failed = f", {progress.failed} failed" if progress.failed else ""
        text = (
            f"{progress.done}/{progress.total} plans{failed}, about {spelled} left: {progress.last}"
        )
        self.say(text, end=progress.done == progress.total)

    def say(self, text: str, *, end: bool = False) -> None:
        """Show a line, unless there was one just now and output is not a terminal."""
        if self._quiet:
            return
        if self._terminal:
            click.echo(f"\r\033[K{visible(text[:110])}", err=True, nl=end)
            self._open = not end
        elif end or time.monotonic() - self._last > 60:
            self._last = time.monotonic()
            echo(text, err=True)

    def end(self) -> None:
        """Leave the line that moves, so that what follows begins on one of its own."""
        if self._open:
            click.echo(err=True)
            self._open = False


@click.command()
@_folder
@json_option
def plot(folder: str, *, as_json: bool) -> None:
    r"""Draw every figure that FOLDER has rows of, as SVG, and the page of all.

    Nothing is computed: run first.

    \b
    Example:
      python -m study plot
      python -m study plot --out docs/study/paper
    """
    paths = [str(path) for path in plot_study(Path(folder))]
    if as_json:
        print_json({"files": paths})
    else:
        echo(f"drew {len(paths) - 1} files; the page is {paths[-1]}")


@click.command()
@_folder
@json_option
def claims(folder: str, *, as_json: bool) -> None:
    r"""Judge each testable claim of the paper's Sections 6.1 to 6.4 by the rows in FOLDER.

    The exit code is 1 if a promise of this implementation is broken by some row.

    \b
    Example:
      python -m study claims
      python -m study claims --out docs/study/paper --json
    """
    results = Results(RowStore(folder).load())
    judged, kept = evaluate(results), promises(results)
    if as_json:
        print_json(
            {
                "scale": results.scale.name,
                "claims": [asdict(claim) for claim in judged],
                "promises": [asdict(promise) for promise in kept],
            }
        )
    else:
        _print_claims(judged, kept)
    if any(promise.kept is False for promise in kept):
        raise SystemExit(1)


def _print_claims(judged: Sequence[Judged], kept: Sequence[Promise]) -> None:

    columns = ("§", "claim", "verdict", "numbers")
    rows = [(claim.section, claim.sentence, claim.verdict, claim.numbers) for claim in judged]
    words = ("claim", "verdict", "numbers")
    print_document(Document("", (plain_table("", columns, rows, words=words),)))
    said = {True: "kept", False: "BROKEN", None: "not tested"}
    for promise in kept:
        echo(f"{said[promise.kept]}: {promise.sentence} {promise.numbers}")
