"""``lrm show``: print a plan or a release."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.inputs import check_apart, check_output
from lrm.cli.options import confidence_option, json_option, limit_option, plot_option
from lrm.cli.report import post_process_option, processed_answers
from lrm.cli.terminal import echo, print_document, print_json
from lrm.errors import FileFormatError

if TYPE_CHECKING:
    from lrm.releases import Release

ALL_ROWS = 100_000
"""Rows of a statement that is asked for by name."""


@click.command()
@click.argument("file")
@click.argument("statement", required=False)
@confidence_option
@limit_option("Number of rows to show of each statement (20; all of a named one).")
@click.option(
    "--csv",
    metavar="OUT",
    help="Write a release's answers: to a .csv file, one row each, or to a folder, one wide file "
    "per statement.",
)
@click.option("--xlsx", metavar="OUT", help="Write one sheet per statement of a release.")
@click.option(
    "--export",
    metavar="OUT",
    help="Write everything that a release states as JSON, including measurements.",
)
@post_process_option
@plot_option
@json_option
def show(file: str, statement: str | None, **choices: Any) -> None:
    r"""Show FILE, a plan or a release: what it holds, and how accurate it is.

    STATEMENT shows one table of a release: the name of a statement or of one of its answers, its
    title, or its number; with --json its columns and rows, nothing rounded. --plot draws the
    answers of a release with their intervals. --post-process adds processed answers to what --csv,
    --xlsx and --export write; the raw ones stay, and intervals are for them.

    \b
    Example:
      lrm show plan.lrm
      lrm show answers.lrm by_month
      lrm show answers.lrm --confidence 0.99 --csv answers.csv
      lrm show answers.lrm --csv tables/ --xlsx answers.xlsx
      lrm show answers.lrm --plot answers.svg
      lrm show answers.lrm --export answers.json \
          --csv answers.csv --post-process consistent
    """
    from lrm.files.archive import archive_format
    from lrm.planning.plan.file import load_plan
    from lrm.releases.file import load_release
    from lrm.views.documents import plan_document
    from lrm.views.figures import KINDS
    from lrm.views.plans import plan_facts

    outputs = {f"--{name}": choices[name] for name in ("plot", "csv", "xlsx", "export")}
    check_apart(outputs, {"FILE": file})
    check_output(choices["plot"], kinds=KINDS)
    if choices["csv"] is not None and not _is_folder(choices["csv"]):
        check_output(choices["csv"])
    check_output(choices["xlsx"], kinds=(".xlsx",))
    check_output(choices["export"])
    kind = archive_format(file)
    if kind == "lrm-release":
        _show_release(load_release(file), statement, choices)
        return
    if kind != "lrm-plan" and Path(file).is_file():
        raise FileFormatError(
            f"{file} is neither a plan nor a release, or it is damaged; give a file that "
            "`lrm plan -o` or `lrm release -o` wrote"
        )
    plan = load_plan(file)
    if any(outputs.values()) or choices["post_process"] or statement:
        raise click.UsageError(
            "STATEMENT, --plot, --csv, --xlsx, --export and --post-process show answers, but a "
            "plan has none yet"
        )
    if choices["as_json"]:
        print_json({"kind": "plan", **plan_facts(plan)})
    else:
        print_document(plan_document(plan))


def _is_folder(path: str) -> bool:
    """Whether a path names a folder: it is one, ends in a slash, or has no ending."""
    return path.endswith(("/", "\\")) or Path(path).is_dir() or not Path(path).suffix


def _show_release(release: "Release", statement: str | None, choices: dict[str, Any]) -> None:
    from lrm.views.documents import answers_document, release_document
    from lrm.views.exports import statement_facts
    from lrm.views.releases import summary_facts

    confidence, limit = choices["confidence"], choices["limit"]
    written = _write_files(release, confidence, choices)
    if choices["as_json"] and statement is None:
        print_json({"kind": "release", **summary_facts(release, confidence)})
        return
    if choices["as_json"]:
        print_json({"kind": "release", **statement_facts(release, str(statement), confidence)})
        return
    if statement is None:
        print_document(release_document(release, confidence, 20 if limit is None else limit))
    else:
        most = ALL_ROWS if limit is None else limit
        print_document(answers_document(release, confidence, most, statement))
    if written:
        echo(f"written: {', '.join(written)}")


def _write_files(release: "Release", confidence: float, choices: dict[str, Any]) -> list[str]:
    """Write the files that were asked for; return their names."""
    from lrm.views.exports import export_folder, export_workbook
    from lrm.views.figures import answers_drawing
    from lrm.views.releases import export_csv, export_json

    processed = processed_answers(release, choices["post_process"])
    if processed is not None and not (choices["csv"] or choices["xlsx"] or choices["export"]):
        raise click.UsageError("--post-process shows in files: give --csv, --xlsx or --export too")
    if choices["csv"] is not None:
        export = export_folder if _is_folder(choices["csv"]) else export_csv
        export(release, choices["csv"], confidence, processed=processed)
    if choices["xlsx"] is not None:
        export_workbook(release, choices["xlsx"], confidence, processed=processed)
    if choices["export"] is not None:
        export_json(release, choices["export"], confidence, processed=processed)
    if choices["plot"] is not None:
        answers_drawing(release, confidence).save(choices["plot"])
    return [choices[name] for name in ("csv", "xlsx", "export", "plot") if choices[name]]
