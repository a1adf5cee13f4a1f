"""``lrm report``: one HTML page of a plan, a comparison or a release."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option
from lrm.cli.output import echo
from lrm.cli.promises import amount_options, read_amounts

if TYPE_CHECKING:
    from lrm.releases import Release
    from lrm.releases.postprocess import Processed


def chosen_steps(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Read ``a,b`` (a click callback); which steps there are is checked where they are done."""
    del ctx, param
    if value is None:
        return None
    return tuple(part.strip() for part in value.split(",") if part.strip())


post_process_option = click.option(
    "--post-process",
    metavar="A,B",
    callback=chosen_steps,
    help="Post-processed answers too: consistent, non-negative, integer.",
)


def processed_answers(release: "Release", steps: tuple[str, ...] | None) -> "Processed | None":
    """Apply the steps that were asked for, if any were."""
    from lrm.releases.postprocess import process

    return None if steps is None else process(release, steps)


@click.command(short_help="Make one HTML page of a plan, a comparison or a release.")
@click.argument("file")
@click.option(
    "-o",
    "--output",
    metavar="PAGE",
    help="File for the page; by default FILE with the ending .html.",
)
@click.option("--force", is_flag=True, help="Replace PAGE if it exists.")
@amount_options
@click.option(
    "--confidence",
    type=float,
    metavar="X",
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    default=500,
    help="Number of queries to list (500).",
)
@post_process_option
@json_option
def report(file: str, output: str | None, **choices: Any) -> None:
    r"""Make one HTML page of FILE: a plan, a release, or what compare --json printed.

    The page needs no network and no script. It shows what was asked, what it cost, the error of
    every query compared with simpler mechanisms, the answers with their intervals, and what is
    promised and what is not. A plan is shown at --epsilon (1 by default), or at --rho or
    --epsilon with --delta if its noise is Gaussian.

    \b
    Example:
      lrm report answers.lrm -o answers.html
      lrm report answers.lrm --post-process non-negative,integer
      lrm report plan.lrm --epsilon 0.1 -o plan.html
      lrm compare prefix:64 --json > comparison.json
      lrm report comparison.json
    """
    from lrm.cli.output import print_json
    from lrm.cli.output_files import check_apart, check_output
    from lrm.files.writing import write_text

    place = output or str(Path(file).with_suffix(".html"))
    check_apart({"--output": place}, {"FILE": file})
    check_output(place, force=choices["force"], kinds=(".html", ".htm"))
    kind, text = _page(file, choices)
    write_text(place, text)
    if choices["as_json"]:
        print_json({"kind": kind, "file": file, "page": place, "bytes": len(text.encode())})
    else:
        echo(f"a page of this {kind} is in {place}; it opens in any browser, offline")


def _page(file: str, choices: dict[str, Any]) -> tuple[str, str]:
    from lrm.files.archive import archive_format

    kind = archive_format(file)
    if kind == "lrm-release":
        return "release", _release_page(file, choices)
    if choices["post_process"] is not None:
        raise click.UsageError("--post-process repairs answers, which only a release has")
    if kind is None and not _is_archive(file):
        return "comparison", _comparison_page(file, choices)
    return "plan", _plan_page(file, choices)


def _is_archive(file: str) -> bool:
    """Whether it begins as a zip does; then loading it as a plan reports what is wrong."""
    try:
        with Path(file).open("rb") as opened:
            return opened.read(2) == b"PK"
    except OSError:
        return True


def _refuse_amounts(choices: dict[str, Any], kind: str) -> None:
    for name in ("epsilon", "delta", "rho"):
        if choices[name] is not None:
            raise click.UsageError(f"--{name} is for plans; a {kind} has its own amount")


def _release_page(file: str, choices: dict[str, Any]) -> str:
    from lrm.releases.file import load_release
    from lrm.report import release_page

    _refuse_amounts(choices, "release")
    loaded = load_release(file)
    processed = processed_answers(loaded, choices["post_process"])
    return release_page(loaded, choices["confidence"], choices["limit"], processed=processed)


def _plan_page(file: str, choices: dict[str, Any]) -> str:
    from lrm.facts.plans import unit_privacy
    from lrm.plans.file import load_plan
    from lrm.report import plan_page

    loaded = load_plan(file)
    amounts = read_amounts(choices)
    privacy = loaded.privacy(**amounts) if amounts else unit_privacy(loaded.noise)
    return plan_page(loaded, privacy, choices["confidence"], choices["limit"])


def _comparison_page(file: str, choices: dict[str, Any]) -> str:
    from lrm.facts.comparisons import parse_comparison
    from lrm.files.reading import TEXT_LIMIT, read_bytes
    from lrm.report import comparison_page

    _refuse_amounts(choices, "comparison")
    return comparison_page(parse_comparison(read_bytes(file, "file", TEXT_LIMIT), file))
