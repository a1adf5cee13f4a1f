"""``lrm compare``: every mechanism on one workload, with either noise."""

from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import (
    chosen_mechanisms,
    domain_option,
    json_option,
    plot_option,
    seed_option,
)
from lrm.cli.output import echo
from lrm.cli.promises import Promise, amount_options

if TYPE_CHECKING:
    from lrm.plans.comparison import Comparison, Contest, SideBySide
    from lrm.privacy.budget import Noise
    from lrm.workload import Workload


@click.command(short_help="All mechanisms on one workload, side by side.")
@click.argument("workload")
@domain_option
@click.option(
    "--noise",
    type=click.Choice(["laplace", "gaussian", "both"]),
    default="laplace",
    show_default=True,
    help="both: at equal epsilon, which to take.",
)
@amount_options
@click.option(
    "--mechanisms",
    metavar="A,B,…",
    callback=chosen_mechanisms,
    help="Which, separated by commas; all by default.",
)
@seed_option
@click.option(
    "--effort",
    type=click.Choice(["quick", "normal", "thorough"]),
    default="normal",
    show_default=True,
    help="How long best looks.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End each solver with the best so far.",
)
@plot_option
@json_option
def compare(workload: str, noise: str, plot: str | None, **choices: Any) -> None:
    r"""Plan WORKLOAD (see `lrm plan`) with every mechanism.

    Tells the expected total squared error of each, its ratio to the least of them, the
    number of measurements, and how long it took. A mechanism that cannot run on a workload of
    this size is listed with its reason. Errors are stated at epsilon 1 (rho 1 for Gaussian
    noise) unless amounts are given.

    \b
    Example:
      lrm compare wrange:64x128
      lrm compare workload.csv --epsilon 0.1 --plot comparison.svg
      lrm compare queries.sql --domain domain.yaml --noise both \
          --epsilon 1 --delta 1e-9
    """
    from lrm.accuracy import privacy_of
    from lrm.cli.output_files import check_apart, check_output
    from lrm.cli.questions import read_questions
    from lrm.plans.comparison import Contest, SideBySide
    from lrm.report.plots import KINDS, plot_comparison

    promise = _promise(noise, choices)
    check_apart({"--plot": plot}, {"WORKLOAD": workload, "--domain": choices["domain"]})
    check_output(plot, kinds=KINDS)
    batch = read_questions(workload, choices["domain"])
    contest = Contest(batch, time_limit=choices["time_limit"])
    solving = {name: choices[name] for name in _SOLVING}
    if noise == "both":
        both = SideBySide(
            _entered(contest, "laplace", **solving), _entered(contest, "gaussian", **solving)
        )
        _tell_both(workload, batch, both, promise, plot, as_json=choices["as_json"])
        return
    result = _entered(contest, _as_noise(noise), **solving)
    if plot is not None:
        plot_comparison(result, privacy_of(_as_noise(noise), **promise.amounts), plot)
    _tell(workload, result, promise, plot, as_json=choices["as_json"])


_SOLVING = ("mechanisms", "seed", "effort")


def _as_noise(noise: str) -> "Noise":
    return "gaussian" if noise == "gaussian" else "laplace"


def _promise(noise: str, choices: dict[str, Any]) -> Promise:
    """The amounts at which errors are stated; 1 where none is given."""
    from fractions import Fraction

    from lrm.accuracy import privacy_of

    promise = Promise.read(choices)
    if noise == "both":
        if promise.epsilon is None or promise.delta is None or promise.rho is not None:
            raise click.UsageError(
                "to set Laplace and Gaussian noise side by side give --epsilon and --delta"
            )
        return promise
    if not promise.amounts:
        one = Fraction(1)
        promise = Promise(epsilon=one) if noise == "laplace" else Promise(rho=one)
    privacy_of(_as_noise(noise), **promise.amounts)
    return promise


def _tell_both(  # noqa: PLR0913 - each is a part of what is told
    workload: str,
    batch: "Workload",
    both: "SideBySide",
    promise: Promise,
    plot: str | None,
    *,
    as_json: bool,
) -> None:
    from lrm.accuracy import privacy_of
    from lrm.cli.output import print_json
    from lrm.cli.side_by_side import print_side_by_side, side_by_side_fields
    from lrm.report.plots import plot_side_by_side

    if plot is not None:
        pure = privacy_of("laplace", promise.epsilon)
        plot_side_by_side(both, pure, privacy_of("gaussian", **promise.amounts), plot)
    if as_json:
        print_json({"workload": workload, **side_by_side_fields(both, promise), "plot": plot})
        return
    echo(_title(workload, batch))
    print_side_by_side(both, promise)
    if plot is not None:
        echo(f"drawn in {plot}")


def _tell(
    workload: str, result: "Comparison", promise: Promise, plot: str | None, *, as_json: bool
) -> None:
    from lrm.cli.comparison_facts import comparison_fields, print_comparison
    from lrm.cli.output import print_json

    if as_json:
        print_json({"workload": workload, **comparison_fields(result, promise), "plot": plot})
        return
    if result.best is not None and result.best.plan is not None:
        echo(_title(workload, result.best.plan.workload))
    print_comparison(result, promise)
    if plot is not None:
        echo(f"drawn in {plot}")


def _title(source: str, batch: "Workload") -> str:
    queries, cells = batch.shape
    return f"{source}: {queries:,} queries over {cells:,} cells"


def run_contest(batch: "Workload", *, mechanisms: tuple[str, ...], effort: str) -> "Comparison":
    """Try the mechanisms with Laplace noise one after the other, each under its own bar."""
    from lrm.plans.comparison import Contest

    return _entered(Contest(batch), "laplace", mechanisms=mechanisms, effort=effort)


def _entered(
    contest: "Contest",
    noise: "Noise",
    *,
    mechanisms: tuple[str, ...],
    seed: int = 0,
    effort: str = "normal",
) -> "Comparison":
    from lrm.cli.progress import Watch
    from lrm.plans.comparison import Comparison

    outcomes = []
    for name in mechanisms:
        options = {"effort": effort} if name == "best" else {}
        with Watch(name, noise) as on_step:
            outcomes.append(
                contest.enter(name, noise=noise, seed=seed, on_step=on_step, options=options)
            )
    return Comparison(tuple(outcomes))
