"""``lrm compare``: every mechanism on one workload, with either noise."""

from typing import TYPE_CHECKING, Any

import click

from lrm.cli.inputs import check_apart, check_output, read_questions
from lrm.cli.options import (
    EFFORTS,
    amount_options,
    choice_option,
    chosen_mechanisms,
    domain_option,
    edition_option,
    force_option,
    json_option,
    plot_option,
    read_amounts,
    seed_option,
    time_limit_option,
)
from lrm.cli.terminal import echo, print_document, print_json

if TYPE_CHECKING:
    from lrm.planning.plan.comparison import Comparison, Contest
    from lrm.planning.solvers.settings import Effort
    from lrm.privacy.budget import Noise, Privacy


@click.command()
@click.argument("workload")
@domain_option
@edition_option
@choice_option(
    "--noise",
    "pure laplace gaussian both",
    "pure: Laplace, and a row for shaped noise; both: Laplace and Gaussian noise.",
    default="pure",
)
@amount_options
@click.option(
    "--mechanisms",
    metavar="A,B,…",
    callback=chosen_mechanisms,
    help="Mechanisms, separated by commas; all by default.",
)
@seed_option
@choice_option("--effort", EFFORTS, "How long best searches.", default="normal")
@time_limit_option("Seconds per mechanism, which then ends with the best so far.")
@plot_option
@force_option
@json_option
def compare(workload: str, noise: str, plot: str | None, **choices: Any) -> None:
    r"""Plan WORKLOAD (see `lrm plan`) with every mechanism.

    Lists the expected total squared error of each, its ratio to the least of them, the
    number of measurements, and the time. A mechanism that cannot run on a workload of
    this size is listed with its reason. Errors are stated at epsilon 1 (rho 1 for Gaussian
    noise) unless amounts are given.

    \b
    Example:
      lrm compare wrange:64x128
      lrm compare workload.csv --epsilon 0.1 --plot comparison.svg
      lrm compare queries.sql --domain domain.yaml --noise both \
          --epsilon 1 --delta 1e-9
    """
    from lrm.planning.plan.comparison import Contest
    from lrm.views.blocks import Document
    from lrm.views.comparisons import (
        comparison_blocks,
        comparison_facts,
        side_by_side_blocks,
        side_by_side_facts,
    )
    from lrm.views.figures import KINDS, comparison_drawing, side_by_side_drawing

    both = noise == "both"
    stated = _stated(noise, choices)
    check_apart({"--plot": plot}, {"WORKLOAD": workload, "--domain": choices["domain"]})
    check_output(plot, force=choices["force"], kinds=KINDS)
    batch = read_questions(workload, choices["domain"], choices["edition"])
    contest = Contest(batch, time_limit=choices["time_limit"])
    rows = choices["mechanisms"] or contest.rows("pure" if noise == "pure" else "laplace")
    results = [_entered(contest, each, rows, choices["seed"], choices["effort"]) for each in stated]
    if both:
        facts = side_by_side_facts(results, *stated.values())
    else:
        facts = comparison_facts(results[0], *stated.values())
    if plot is not None:
        (side_by_side_drawing if both else comparison_drawing)(facts).save(plot)
    if choices["as_json"]:
        print_json({"workload": workload, **facts, "plot": plot})
        return
    queries, cells = batch.shape
    echo(f"{workload}: {queries:,} queries over {cells:,} cells")
    blocks = side_by_side_blocks(facts) if both else comparison_blocks(facts)
    print_document(Document("", tuple(blocks)))
    if plot is not None:
        echo(f"drawn in {plot}")


def _stated(noise: str, choices: dict[str, Any]) -> "dict[Noise, Privacy]":
    """The noises to compare with, each with the guarantee at which its errors are stated."""
    from lrm.planning.accuracy import privacy_of
    from lrm.privacy.norms import unit_privacy

    amounts = read_amounts(choices)
    if noise == "both":
        if set(amounts) != {"epsilon", "delta"}:
            raise click.UsageError(
                "to compare Laplace and Gaussian noise, give --epsilon and --delta"
            )
        pure = privacy_of("laplace", amounts["epsilon"])
        return {"laplace": pure, "gaussian": privacy_of("gaussian", **amounts)}
    kind: Noise = "gaussian" if noise == "gaussian" else "laplace"
    return {kind: privacy_of(kind, **amounts) if amounts else unit_privacy(kind)}


def _entered(
    contest: "Contest", noise: "Noise", rows: tuple[str, ...], seed: int, effort: "Effort"
) -> "Comparison":
    from lrm.planning.plan.comparison import Comparison
    from lrm.views.progress import ProgressLine

    outcomes = []
    domain = contest.problem.workload.domain
    factor = 1 if domain is None else domain.unit.factor
    for name in rows:
        with ProgressLine(name, noise, factor) as on_step:
            outcomes.append(
                contest.enter(
                    name, norm=contest.norm(noise), seed=seed, on_step=on_step, effort=effort
                )
            )
    return Comparison(tuple(outcomes))
