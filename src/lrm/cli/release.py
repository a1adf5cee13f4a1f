"""``lrm release``: answer a plan's queries on private counts."""

from typing import Any

import click

from lrm.cli.options import json_option


@click.command(short_help="Answer a plan's queries on private counts.")
@click.argument("plan")
@click.option(
    "--counts",
    required=True,
    metavar="FILE",
    help="Records in each cell, in the workload's order: .csv, .npy or .parquet.",
)
@click.option("--epsilon", required=True, metavar="AMOUNT", help="Exact, such as 0.1 or 1/3.")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the release goes.")
@click.option("--csv", metavar="FILE", help="Write answers and intervals as CSV too.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option(
    "--no-ledger",
    is_flag=True,
    help="Say that nothing shall record what is spent.",
)
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "substitute"]),
    help="What the promise hides: a record added or removed (default), or exchanged.",
)
@click.option(
    "--max-rows", type=click.IntRange(min=1), metavar="N", help="Most records of one person (1)."
)
@click.option(
    "--confidence", type=float, metavar="X", default=0.95, show_default=True, help="Of intervals."
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", default=20, help="Answers printed (20)."
)
@json_option
def release(plan: str, counts: str, epsilon: str, output: str, **choices: Any) -> None:
    r"""Answer the queries of PLAN on private counts, under epsilon-differential privacy.

    Every release spends epsilon anew: two releases at 0.1 promise 0.2 together. Without a
    ledger nobody keeps that sum, so --no-ledger must be said out loud.

    \b
    Example:
      lrm release plan.lrm --counts counts.csv --epsilon 0.1 \
          -o answers.lrm --no-ledger
      lrm release plan.lrm --counts counts.npy --epsilon 1/3 -o answers.lrm \
          --csv answers.csv --neighbours substitute --no-ledger
    """
    from lrm.cli.output import print_json
    from lrm.cli.output_files import write_answers_csv
    from lrm.cli.plan_facts import release_fields
    from lrm.cli.show import print_release
    from lrm.counts_file import read_counts
    from lrm.plan_file import load_plan
    from lrm.releases import release as make_release

    _check_said(choices)
    _check_places(plan, counts, output, choices)
    loaded = load_plan(plan)
    # Before the counts are read, everything that is public is checked.
    loaded.privacy(epsilon)
    confidence = choices["confidence"]
    _check_public(loaded.workload.shape[0], confidence)
    answered = make_release(
        loaded,
        read_counts(counts),
        epsilon,
        neighbours=choices["neighbours"],
        max_rows=choices["max_rows"],
    )
    answered.save(output)
    if choices["csv"] is not None:
        write_answers_csv(answered, choices["csv"], confidence)
    if choices["as_json"]:
        fields = release_fields(answered, confidence)
        print_json({**fields, "file": output, "csv": choices["csv"]})
        return
    print_release(answered, confidence, choices["limit"])
    click.echo("saved to " + " and ".join(name for name in (output, choices["csv"]) if name))


def _check_said(choices: dict[str, Any]) -> None:
    if not choices["no_ledger"]:
        raise click.UsageError(
            "a release without a ledger needs --no-ledger said out loud: nothing else records "
            "what is spent"
        )


def _check_places(plan: str, counts: str, output: str, choices: dict[str, Any]) -> None:
    from lrm.cli.output_files import check_apart, check_output

    check_apart({"--output": output, "--csv": choices["csv"]}, {"PLAN": plan, "--counts": counts})
    check_output(output, force=choices["force"])
    check_output(choices["csv"], force=choices["force"])


def _check_public(queries: int, confidence: float) -> None:
    from lrm.errors import BudgetError, WorkloadError
    from lrm.workload import EXPLICIT_QUERIES

    if queries > EXPLICIT_QUERIES:
        raise WorkloadError(
            f"the plan has {queries:,} queries, but at most {EXPLICIT_QUERIES:,} answers can be "
            "written; plan fewer of them"
        )
    if not 0 < confidence < 1:
        raise BudgetError(
            f"confidence must lie between 0 and 1, but {confidence} came; 0.95 is usual"
        )
