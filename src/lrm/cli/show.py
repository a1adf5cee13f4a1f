"""``lrm show``: print a plan or a release."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.inputs import check_apart, check_output
from lrm.cli.options import (
    choice_option,
    confidence_option,
    force_option,
    json_option,
    limit_option,
    plot_option,
)
from lrm.cli.report import known_option, post_process_option, processed_answers
from lrm.cli.terminal import echo, print_document, print_json
from lrm.errors import FileFormatError
from lrm.files.csv_cells import DECIMALS, THOUSANDS, NumberStyle

if TYPE_CHECKING:
    from lrm.releases import Release
    from lrm.views.outputs.export import Export

ALL_ROWS = 100_000
"""Rows of a statement that is asked for by name."""


ALIASES = {"--csv": ".csv", "--xlsx": ".xlsx", "--export": ".json"}
"""Former options for one format each, whatever the ending of the file."""


@click.command()
@click.argument("file")
@click.argument("statement", required=False)
@confidence_option
@limit_option("Number of rows to show of each statement (20; all of a named one).")
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="OUT",
    multiple=True,
    help="Write a release's answers to a file ending in .csv, .parquet, .xlsx, .json, .md or "
    ".html, or to a folder, one CSV file per statement; of STATEMENT its table alone.",
)
@click.option("--csv", metavar="OUT", help="The same as --output OUT, for a .csv file or a folder.")
@click.option("--xlsx", metavar="OUT", help="The same as --output OUT, for an .xlsx file.")
@click.option("--export", metavar="OUT", help="The same as --output OUT, for a .json file.")
@choice_option("--decimal", " ".join(DECIMALS), "Of the numbers of CSV files.", default="point")
@choice_option(
    "--thousands",
    " ".join(THOUSANDS),
    "What separates thousands in CSV files.",
    default="none",
)
@force_option
@post_process_option
@known_option
@plot_option
@json_option
def show(file: str, statement: str | None, **choices: Any) -> None:
    r"""Show FILE, a plan or a release: what it holds, and how accurate it is.

    STATEMENT shows one table of a release: the name of a statement or of one of its answers, its
    title, or its number; with --json its columns and rows, nothing rounded. --plot draws the
    answers of a release, or those of STATEMENT, with their intervals. With --output or --plot the
    names of the files are shown alone. --post-process shows processed answers next to the released
    ones, in the files that are written too; intervals are those of the released ones.

    \b
    Example:
      lrm show plan.lrm
      lrm show answers.lrm by_month
      lrm show answers.lrm --confidence 0.99 -o answers.csv
      lrm show answers.lrm -o tables/ -o answers.xlsx
      lrm show answers.lrm by_month -o by_month.md
      lrm show answers.lrm --post-process consistent
      lrm show answers.lrm --plot answers.svg
      lrm show answers.lrm -o answers.json -o answers.csv \
          --post-process consistent
    """
    from lrm.files.archive import archive_format
    from lrm.planning.plan.file import load_plan
    from lrm.releases.file import load_release
    from lrm.views.figures import KINDS
    from lrm.views.outputs import check_ending, is_folder
    from lrm.views.plan_document import PlanDetail, plan_document
    from lrm.views.plans import plan_facts

    targets = _targets(choices)
    check_apart({**targets, "--plot": choices["plot"]}, {"FILE": file})
    check_output(choices["plot"], force=choices["force"], kinds=KINDS)
    for option, path in targets.items():
        if option not in ALIASES and not is_folder(path):
            check_ending(path)
        if option in {"--xlsx", "--export"} or not is_folder(path):
            kinds = (".xlsx",) if option == "--xlsx" else ()
            check_output(path, force=choices["force"], kinds=kinds)
    kind = archive_format(file)
    if kind == "lrm-release":
        _show_release(load_release(file), statement, targets, choices)
        return
    if kind != "lrm-plan" and Path(file).is_file():
        raise FileFormatError(
            f"{file} is neither a plan nor a release, or it is damaged; give a file that "
            "`lrm plan -o` or `lrm release -o` wrote"
        )
    plan = load_plan(file)
    if targets or choices["plot"] or choices["post_process"] or statement:
        raise click.UsageError(
            "STATEMENT, --output, --plot and --post-process show answers, but a plan has none yet"
        )
    if choices["as_json"]:
        print_json({"kind": "plan", **plan_facts(plan)})
    else:
        print_document(plan_document(plan, PlanDetail("facts")))


def _targets(choices: dict[str, Any]) -> dict[str, str]:
    """The files and folders that were asked for, by the option that named each."""
    named = {f"--output {path}": path for path in choices["outputs"]}
    aliases = {option: choices[option.removeprefix("--")] for option in ALIASES}
    return {**named, **{option: path for option, path in aliases.items() if path is not None}}


def _show_release(
    release: "Release", statement: str | None, targets: dict[str, str], choices: dict[str, Any]
) -> None:
    from lrm.views.outputs.export import Export
    from lrm.views.outputs.json_file import frame_facts
    from lrm.views.release_document import release_document, terminal
    from lrm.views.releases import summary_facts

    confidence, limit = choices["confidence"], choices["limit"]
    processed = processed_answers(release, choices)
    style = NumberStyle(DECIMALS[choices["decimal"]], THOUSANDS[choices["thousands"]])
    export = Export(release, statement, confidence, processed, style)
    written = _write_files(export, targets, choices)
    if choices["as_json"] and statement is None:
        facts = summary_facts(release, confidence, processed=processed)
        print_json({"kind": "release", **facts})
        return
    if choices["as_json"]:
        frame = release.frame(statement, confidence, processed=processed)
        print_json({"kind": "release", **frame_facts(frame)})
        return
    if written:
        echo(f"written: {', '.join(written)}")
        return
    usual = 20 if statement is None else ALL_ROWS
    detail = terminal(usual if limit is None else limit, facts=statement is None)
    document = release_document(
        release, detail, confidence, processed=processed, statement=statement
    )
    print_document(document)


def _write_files(export: "Export", targets: dict[str, str], choices: dict[str, Any]) -> list[str]:
    """Write the files that were asked for; return their names."""
    from lrm.views.figures import answers_drawing, frame_drawing
    from lrm.views.outputs import is_folder, write_export
    from lrm.views.outputs.csv_files import folder_files

    for path in targets.values():
        if is_folder(path) and Path(path).is_dir():
            for file in folder_files(export, Path(path)):
                check_output(str(file), force=choices["force"])
    for option, path in targets.items():
        write_export(export, path, ALIASES.get(option))
    if choices["plot"] is not None and export.statement is None:
        answers_drawing(export.release, choices["confidence"]).save(choices["plot"])
    elif choices["plot"] is not None:
        (frame,) = export.frames()
        frame_drawing(frame).save(choices["plot"])
    return [*targets.values(), *([choices["plot"]] if choices["plot"] else [])]
