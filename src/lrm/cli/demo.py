"""``lrm demo``: a whole run on synthetic patients."""

from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option
from lrm.cli.output import echo

if TYPE_CHECKING:
    from fractions import Fraction

    from lrm.maps.linear import Floats
    from lrm.releases import Release

EXAMPLES = 6
"""The first queries of the batch are the two introductory examples of the paper."""

SHOWN = (*range(EXAMPLES), 15, 16, 70, 125, 171, 181, 191, 192, 206)
"""Which answers are printed: the examples, and some of every other kind."""


@click.command(short_help="A whole run on synthetic patients.")
@click.option(
    "--epsilon", metavar="AMOUNT", default="0.1", show_default=True, help="Spent on the release."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Of the synthetic table; the noise has none.",
)
@click.option(
    "--effort",
    type=click.Choice(["quick", "normal", "thorough"]),
    default="normal",
    show_default=True,
    help="How long best looks.",
)
@json_option
def demo(epsilon: str, seed: int, effort: str, *, as_json: bool) -> None:
    r"""Plan, compare and release a batch of queries on 200,000 synthetic patients.

    Nobody in the table exists, so the truth can be shown beside the private answers.

    \b
    Example:
      lrm demo
      lrm demo --epsilon 1 --json
    """
    from lrm.cli.compare import run_contest
    from lrm.cli.demo_table import SyntheticPatients, demo_workload
    from lrm.cli.options import MECHANISMS
    from lrm.privacy.amounts import parse_amount
    from lrm.releases import release as make_release

    amount = parse_amount(epsilon, "epsilon")
    batch = demo_workload()
    counts = SyntheticPatients.generate(seed).counts()
    # The table is made up: its true answers are no secret.
    truth = batch.queries.apply(counts.astype(float))
    if not as_json:
        _introduce(batch.shape)
    result = run_contest(batch, mechanisms=MECHANISMS, effort=effort)
    best = next(outcome.plan for outcome in result.outcomes if outcome.mechanism == "best")
    if best is None:
        raise click.ClickException("no plan was found; this should not happen")
    answered = make_release(best, counts, amount)
    if as_json:
        _print_json(result, answered, truth, amount)
        return
    from lrm.cli.comparison_facts import print_comparison
    from lrm.cli.promises import Promise

    print_comparison(result, Promise(epsilon=amount))
    _print_answers(answered, truth, amount)


def _introduce(shape: tuple[int, int]) -> None:
    from lrm.cli.demo_table import PATIENTS

    queries, cells = shape
    echo(
        f"A SYNTHETIC table of {PATIENTS:,} patients: state, age, sex, HIV status\n"
        f"({cells:,} cells). A batch of {queries} counting queries, with the two introductory\n"
        "examples of the paper. First the plans of all mechanisms, which need no data:\n"
    )


def _covered(release: "Release", truth: "Floats") -> int:
    low, high = release.intervals(0.95).T
    return int(((low <= truth) & (truth <= high)).sum())


def _print_answers(release: "Release", truth: "Floats", epsilon: "Fraction") -> None:
    from lrm.cli.output import number, print_table
    from lrm.privacy.amounts import format_amount

    echo(
        f"\nThen one release with {release.plan.mechanism} at ε = {format_amount(epsilon)}: "
        "private answers, their 95 %\nintervals, and the truth, known here alone since the "
        "table is synthetic:\n"
    )
    intervals = release.intervals(0.95)
    rows = [
        (
            release.names[i],
            f"{release.answers[i]:,.1f}",
            f"{release.standard_errors[i]:,.1f}",
            f"{intervals[i, 0]:,.0f} … {intervals[i, 1]:,.0f}",
            f"{truth[i]:,.0f}" + ("" if intervals[i, 0] <= truth[i] <= intervals[i, 1] else " !"),
        )
        for i in SHOWN
    ]
    columns = ("query", "answer", "std. error", "95 % interval", "truth")
    print_table(columns, rows, words=("query",))
    total, covered = len(release.names), _covered(release, truth)
    expected = number(release.plan.expected_squared_error(epsilon), 5)
    seen = number(float(((release.answers - truth) ** 2).sum()), 5)
    echo(
        f"{len(rows)} of {total} answers shown. {covered} of {total} intervals "
        f"({covered / total:.0%}) hold the truth;\nabout 95 % should (! marks one that does not).\n"
        f"Total squared error: {expected} expected, {seen} seen."
    )


def _print_json(result: Any, release: "Release", truth: "Floats", epsilon: "Fraction") -> None:
    from lrm.cli.comparison_facts import comparison_fields
    from lrm.cli.demo_table import PATIENTS
    from lrm.cli.output import print_json
    from lrm.cli.plan_facts import release_fields
    from lrm.cli.promises import Promise

    fields = release_fields(release, 0.95)
    for row, true_answer in zip(fields["answers"], truth.tolist(), strict=True):
        row["synthetic_truth"] = true_answer
    print_json(
        {
            "synthetic": True,
            "patients": PATIENTS,
            "comparison": comparison_fields(result, Promise(epsilon=epsilon)),
            "release": fields,
            "intervals_that_hold_the_truth": _covered(release, truth),
        }
    )
