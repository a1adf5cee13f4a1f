"""``lrm query``: further questions to a release, at no further cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option
from lrm.cli.output import echo

if TYPE_CHECKING:
    from lrm.releases import Release
    from lrm.workload import Workload

_SHOWN = 5
"""Queries that are named where a release does not determine them."""


@click.command(short_help="Ask a release further questions, at no cost.")
@click.argument("release")
@click.argument("sql", required=False)
@click.option("--file", metavar="FILE", help="Take the questions from a .sql or .yaml file.")
@click.option("--csv", metavar="OUT", help="Write answers and intervals as CSV too.")
@click.option(
    "--confidence", type=float, metavar="X", default=0.95, show_default=True, help="Of intervals."
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", default=20, help="Answers printed (20)."
)
@json_option
def query(release: str, sql: str | None, file: str | None, **choices: Any) -> None:
    r"""Answer SQL, a text of SELECT statements, from the measurements of RELEASE.

    They are public already, so this costs no privacy and reads no table. A question is
    answered, with its own error, where it is a combination of what was measured; one that is
    not is named and refused.

    \b
    Example:
      lrm query answers.lrm "SELECT COUNT(*) FROM visits WHERE age >= 65"
      lrm query answers.lrm --file further.sql --csv further.csv
    """
    from lrm.cli.output import print_json
    from lrm.cli.output_files import check_apart, check_output, write_answers_csv
    from lrm.cli.plan_facts import release_fields
    from lrm.cli.release_checks import check_confidence
    from lrm.releases.file import load_release

    if (sql is None) == (file is None):
        raise click.UsageError("give the questions as SQL or in a --file")
    confidence, csv = choices["confidence"], choices["csv"]
    check_apart({"--csv": csv}, {"RELEASE": release, "--file": file})
    check_output(csv)
    check_confidence(confidence)
    asked = load_release(release)
    answered = _answered(asked, _compiled(asked, sql, file))
    if csv is not None:
        write_answers_csv(answered, csv, confidence)
    if choices["as_json"]:
        # The plan is the one that was released, not that of the further questions.
        own = {"plan": asked.plan.digest, "file": release, "csv": csv}
        print_json({**release_fields(answered, confidence), **own})
        return
    _print(answered, confidence, choices["limit"])


def _compiled(asked: "Release", sql: str | None, file: str | None) -> "Workload":
    """The questions as weights over the cells of the release's domain."""
    from lrm.batch_file import read_batch
    from lrm.releases import domain_of
    from lrm.sql import compile_sql

    domain = domain_of(asked.plan)
    return compile_sql(sql or "", domain) if file is None else read_batch(Path(file), domain)


def _answered(asked: "Release", batch: "Workload") -> "Release":
    from lrm.errors import UnsupportedQuery
    from lrm.releases.further import answer_further

    try:
        return answer_further(asked, batch)
    except UnsupportedQuery as reason:
        problem = str(reason)
    places = _unsupported(asked, batch)
    if not places:  # each alone would pass: what is said of all of them must do
        raise UnsupportedQuery(problem)
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    raise UnsupportedQuery(
        f"what was measured does not determine {', '.join(places[:_SHOWN])}{more}; ask for sums "
        "of what was measured, or plan a new release that includes it"
    )


def _unsupported(asked: "Release", batch: "Workload") -> list[str]:
    """Name and line of every query that does not follow from the measurements."""
    from lrm.errors import UnsupportedQuery
    from lrm.releases.further import answer_further

    rows: dict[tuple[int | None, str], list[int]] = {}
    for row, label in enumerate(batch.labels):
        rows.setdefault((label.line, label.query), []).append(row)
    matrix = batch.queries.sparse()
    places = []
    for (line, name), own in rows.items():
        try:
            answer_further(asked, matrix[own])
        except UnsupportedQuery:
            places.append(f"{name!r} (line {line})")
    return places


def _print(answered: "Release", confidence: float, limit: int) -> None:
    from lrm.cli.output import print_facts
    from lrm.cli.plan_facts import release_lines
    from lrm.cli.show import print_answers

    print_answers(answered, confidence, limit)
    echo("from the measurements of the release, at no further cost:")
    print_facts(line for line in release_lines(answered) if line[0] == "promise")
