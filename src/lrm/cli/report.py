"""``lrm report``: one HTML page of a plan, a comparison, a release or a series of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.inputs import check_apart, check_output
from lrm.cli.options import (
    amount_options,
    confidence_option,
    json_option,
    limit_option,
    read_amounts,
)
from lrm.cli.progress import waiting
from lrm.cli.terminal import echo, print_json
from lrm.errors import FileFormatError, UsageError

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
    help="Post-processed answers too: consistent, integer.",
)


known_option = click.option(
    "--known",
    metavar="FILE",
    help="Tables that were published exactly elsewhere (YAML): consistent answers have them.",
)


def processed_answers(release: "Release", choices: dict[str, Any]) -> "Processed | None":
    """Apply the steps that were asked for, if any were."""
    from lrm.releases.known import read_known
    from lrm.releases.postprocess import process

    steps = choices["post_process"]
    if steps is None:
        if choices["known"] is not None:
            raise click.UsageError("--known is for --post-process consistent; give both")
        return None
    known = () if choices["known"] is None else read_known(choices["known"])
    with waiting("processing the answers"):
        return process(release, steps, known=known)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="PAGE",
    help="File for the page; by default FILE with the ending .html. Of several FILEs also .md, "
    ".xlsx, .json, or a folder of CSV files.",
)
@click.option(
    "--text",
    metavar="TEXT",
    help="A Markdown file of your own with the title, the text and the names of the statements "
    "that the page of a release shows.",
)
@click.option("--force", is_flag=True, help="Replace PAGE if it exists.")
@amount_options
@confidence_option
@limit_option("Number of answers to list (2,000), or of queries of a plan (100).")
@post_process_option
@known_option
@json_option
def report(files: tuple[str, ...], output: str | None, **choices: Any) -> None:
    r"""Make one HTML page of a plan, comparison, release or series.

    FILE is a plan, a release, or what compare --json printed; several FILEs are a series: the
    releases of one report, one per edition, in any order. Their page has the lines of each
    statement over the editions, and how the answers changed since the edition before and since
    the year before.

    The page needs no network. It shows what was asked, what it cost, the error of every query
    compared with simpler mechanisms, the answers with their intervals, and what is guaranteed and
    what is not. A release of more answers than --limit gets a CSV file of all of them beside
    the page. A plan is shown at --epsilon (1 by default), or at --rho or --epsilon with
    --delta if its noise is Gaussian.

    With --text the page of a release is for publication: it shows your text and the tables that
    lines such as {{ by_month | caption: Admissions | unit: persons }} name, and a CSV file beside
    it has all numbers.

    \b
    Example:
      lrm report answers.lrm -o answers.html
      lrm report answers.lrm --post-process consistent
      lrm report answers.lrm --text page.md -o published.html
      lrm report plan.lrm --epsilon 0.1 -o plan.html
      lrm compare prefix:64 --json > comparison.json
      lrm report comparison.json
      lrm report editions/*.lrm -o series.html
    """
    if len(files) > 1:
        _write_series(files, output, choices)
        return
    (file,) = files
    place = output or str(Path(file).with_suffix(".html"))
    check_apart({"--output": place}, {"FILE": file, "--text": choices["text"]})
    check_output(place, force=choices["force"], kinds=(".html", ".htm"))
    with waiting("writing the page"):
        kind, beside = _write(file, place, choices)
    if choices["as_json"]:
        size = Path(place).stat().st_size
        print_json({"kind": kind, "file": file, "page": place, "bytes": size, "answers": beside})
        return
    echo(f"a page of this {kind} is in {place}; it opens in any browser, offline")
    if beside is not None:
        echo(f"all answers are in {beside}, which belongs to the page")


def _write_series(files: tuple[str, ...], place: str | None, choices: dict[str, Any]) -> None:
    """Write the page, or the tables, of the releases of one report."""
    from lrm.releases.file import load_release
    from lrm.releases.series import Series, is_of_several
    from lrm.views.outputs import is_folder
    from lrm.views.outputs.series_files import check_series_ending, write_series_files

    if place is None:
        raise click.UsageError("name the page of several releases: --output series.html")
    for name in ("text", "post_process", "known", "limit"):
        if choices[name] is not None:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} is for the page of one file, not of several")
    _refuse_amounts(choices, "release")
    check_apart({"--output": place}, {f"FILE {file}": file for file in files})
    if not is_folder(place):
        check_series_ending(place)
        check_output(place, force=choices["force"])
    try:
        series, left = Series(files), []
    except UsageError:
        left = [file for file in files if is_of_several(load_release(file))]
        kept = [file for file in files if file not in left]
        if not left or not kept:
            raise
        series = Series(kept)
    with waiting("comparing the editions"):
        write_series_files(series, place, choices["confidence"])
    if choices["as_json"]:
        facts = {"kind": "series", "files": list(files), "editions": list(series.names)}
        print_json({**facts, "left_out": left, "page": place})
        return
    if left:
        echo(f"left out, since a series has single editions: {', '.join(left)}")
    span = f"{series.names[0]} to {series.names[-1]}"
    echo(f"the series of {len(series.names)} editions, {span}, is in {place}")


def _write(file: str, place: str, choices: dict[str, Any]) -> tuple[str, str | None]:
    """Write the page; return what it is about, and the file of all answers if it needed one."""
    from lrm.files.archive import archive_format

    kind = archive_format(file)
    if kind == "lrm-release":
        return "release", _write_release(file, place, choices)
    if choices["post_process"] is not None:
        raise click.UsageError("--post-process repairs answers, which only a release has")
    if choices["text"] is not None:
        raise click.UsageError("--text is for the page of a release")
    if kind is None and not _is_archive(file):
        _write_comparison(file, place, choices)
        return "comparison", None
    _write_plan(file, place, choices)
    return "plan", None


def _is_archive(file: str) -> bool:
    """Whether it begins as a zip does; then loading it as a plan reports what is wrong."""
    from lrm.files.reading import read_bytes

    try:
        return read_bytes(file, "file").startswith(b"PK")
    except FileFormatError:
        return True


def _refuse_amounts(choices: dict[str, Any], kind: str) -> None:
    for name in ("epsilon", "delta", "rho"):
        if choices[name] is not None:
            raise click.UsageError(f"--{name} is for plans; a {kind} has its own amount")


def _write_release(file: str, place: str, choices: dict[str, Any]) -> str | None:
    from lrm.releases.file import load_release
    from lrm.views.release_document import LISTED
    from lrm.views.release_page import answers_beside, write_release_page

    _refuse_amounts(choices, "release")
    loaded = load_release(file)
    if choices["text"] is not None:
        return _write_publication(loaded, file, place, choices)
    limit = LISTED if choices["limit"] is None else choices["limit"]
    beside = answers_beside(loaded, place, limit)
    check_apart({"the file of all answers": beside}, {"FILE": file})
    check_output(beside, force=choices["force"])
    processed = processed_answers(loaded, choices)
    write_release_page(loaded, place, choices["confidence"], limit, processed=processed)
    return beside


def _write_publication(loaded: "Release", file: str, place: str, choices: dict[str, Any]) -> str:
    from lrm.views.page_text import read_page_text
    from lrm.views.publication import numbers_beside, write_publication

    text = read_page_text(choices["text"])
    beside = numbers_beside(loaded, place)
    check_apart({"the file of all numbers": beside}, {"FILE": file, "--text": choices["text"]})
    check_output(beside, force=choices["force"])
    processed = processed_answers(loaded, choices)
    return write_publication(loaded, place, text, choices["confidence"], processed=processed)


def _write_plan(file: str, place: str, choices: dict[str, Any]) -> None:
    from lrm.planning.plan.file import load_plan
    from lrm.privacy.norms import unit_privacy
    from lrm.views import notebook

    loaded = load_plan(file)
    amounts = read_amounts(choices)
    privacy = loaded.privacy(**amounts) if amounts else unit_privacy(loaded.noise)
    listed = {} if choices["limit"] is None else {"limit": choices["limit"]}
    notebook.write(loaded, place, privacy=privacy, confidence=choices["confidence"], **listed)


def _write_comparison(file: str, place: str, choices: dict[str, Any]) -> None:
    from lrm.files.reading import TEXT_LIMIT, read_bytes
    from lrm.files.writing import write_text
    from lrm.views.comparisons import comparison_page, parse_comparison

    _refuse_amounts(choices, "comparison")
    facts = parse_comparison(read_bytes(file, "file", TEXT_LIMIT), file)
    write_text(place, comparison_page(facts))
