"""``lrm show``: what a plan or a release says."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option, plot_option
from lrm.cli.output import echo
from lrm.cli.report import post_process_option, processed_answers

if TYPE_CHECKING:
    from lrm.releases import Release


@click.command(short_help="Show a plan or a release.")
@click.argument("file")
@click.option(
    "--confidence", type=float, metavar="X", default=0.95, show_default=True, help="Of intervals."
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", default=20, help="Answers shown (20)."
)
@click.option("--csv", metavar="OUT", help="Write a release's answers and intervals as CSV.")
@click.option(
    "--export", metavar="OUT", help="Write all that a release tells as JSON, measurements too."
)
@post_process_option
@plot_option
@json_option
def show(file: str, **choices: Any) -> None:
    r"""Show FILE, a plan or a release: what it holds, and how accurate it is.

    --plot draws the answers of a release with their intervals. --post-process puts repaired
    answers beside the raw ones in what --csv and --export write; intervals are of the raw ones.

    \b
    Example:
      lrm show plan.lrm
      lrm show answers.lrm --confidence 0.99 --csv answers.csv
      lrm show answers.lrm --plot answers.svg
      lrm show answers.lrm --export answers.json \
          --csv answers.csv --post-process non-negative,integer
    """
    from lrm.cli.output import print_facts, print_json
    from lrm.cli.output_files import check_apart, check_output
    from lrm.cli.plan_facts import plan_fields, plan_lines
    from lrm.errors import FileFormatError
    from lrm.files.archive import archive_format
    from lrm.plans.file import load_plan
    from lrm.releases.file import load_release
    from lrm.report.plots import KINDS

    outputs = {f"--{name}": choices[name] for name in ("plot", "csv", "export")}
    check_apart(outputs, {"FILE": file})
    check_output(choices["plot"], kinds=KINDS)
    check_output(choices["csv"])
    check_output(choices["export"])
    kind = archive_format(file)
    if kind == "lrm-release":
        _show_release(load_release(file), choices)
        return
    if kind != "lrm-plan" and Path(file).is_file():
        raise FileFormatError(
            f"{file} is neither a plan nor a release, or it is damaged; give a file that "
            "`lrm plan -o` or `lrm release -o` wrote"
        )
    plan = load_plan(file)
    if any(outputs.values()) or choices["post_process"]:
        raise click.UsageError(
            "--plot, --csv, --export and --post-process show answers, but a plan has none yet"
        )
    if choices["as_json"]:
        print_json({"kind": "plan", **plan_fields(plan)})
    else:
        print_facts(plan_lines(plan))


def _show_release(release: "Release", choices: dict[str, Any]) -> None:
    from lrm.cli.output import print_json
    from lrm.cli.output_files import write_answers_csv
    from lrm.cli.plan_facts import release_fields
    from lrm.releases.facts import export_json
    from lrm.report.plots import plot_answers

    confidence, limit = choices["confidence"], choices["limit"]
    processed = processed_answers(release, choices["post_process"])
    if processed is not None and not (choices["csv"] or choices["export"]):
        raise click.UsageError("--post-process shows in files: give --csv or --export too")
    if choices["csv"] is not None:
        write_answers_csv(release, choices["csv"], confidence, processed)
    if choices["export"] is not None:
        export_json(release, choices["export"], confidence, processed=processed)
    if choices["plot"] is not None:
        plot_answers(release, choices["plot"], confidence=confidence)
    if choices["as_json"]:
        print_json({"kind": "release", **release_fields(release, confidence)})
    else:
        print_release(release, confidence, limit)


def print_release(release: "Release", confidence: float, limit: int) -> None:
    """Print what a release promises, and its first answers with their intervals."""
    from lrm.cli.output import print_facts
    from lrm.cli.plan_facts import release_lines

    print_facts(release_lines(release))
    print_answers(release, confidence, limit)


def print_answers(release: "Release", confidence: float, limit: int) -> None:
    """Print the first answers with their intervals."""
    from lrm.cli.output import beside, number, print_table

    intervals = release.intervals(confidence)
    count = min(limit, len(release.names))
    rows = []
    for i in range(count):
        error, (low, high) = float(release.standard_errors[i]), intervals[i]
        interval = f"{beside(low, error)} … {beside(high, error)}"
        answer = beside(float(release.answers[i]), error)
        rows.append((release.names[i], answer, number(error), interval))
    if rows:
        columns = ("query", "answer", "standard error", f"{100 * confidence:.4g} % interval")
        print_table(columns, rows, words=("query",))
    if count < len(release.names):
        echo(f"{count:,} of {len(release.names):,} answers shown; --json or --csv has all")
    echo("intervals cover the noise alone; answers are neither rounded nor clipped")
