"""``lrm plan``: choose a strategy for a workload."""

from typing import Any

import click

from lrm.cli.inputs import check_apart, check_output, read_questions
from lrm.cli.options import (
    EFFORTS,
    choice_option,
    confidence_option,
    domain_option,
    edition_option,
    json_option,
    seed_option,
    time_limit_option,
    whole_option,
)
from lrm.cli.terminal import echo, print_document, print_json
from lrm.planning.strategies import MECHANISMS, MechanismName


@click.command()
@click.argument("workload")
@domain_option
@edition_option
@click.option(
    "--noise",
    type=click.Choice(["pure", "laplace", "gaussian", "auto"]),
    default="pure",
    show_default=True,
    help="pure and laplace guarantee epsilon, pure with noise shaped to the batch where that has "
    "less error; gaussian guarantees rho, or epsilon with delta; auto compares pure and gaussian.",
)
@click.option("--epsilon", metavar="AMOUNT", help="auto: the epsilon at which to compare.")
@click.option("--delta", metavar="AMOUNT", help="auto: the delta of Gaussian noise, such as 1e-6.")
@click.option(
    "-m",
    "--mechanism",
    type=click.Choice(list(MECHANISMS)),
    metavar="NAME",
    default="best",
    show_default=True,
    help=f"How the strategy is chosen: {', '.join(MECHANISMS)}.",
)
@click.option(
    "--objective",
    type=click.Choice(["total", "balanced", "worst"]),
    help="What best minimises: the total squared error; the errors of statements relative to an "
    "even split of the budget (the default for several statements); or the largest of these.",
)
@click.option(
    "--meet",
    is_flag=True,
    help="Find the least epsilon or rho at which answers are within the tolerances of their "
    "statements (-- within: 50).",
)
@confidence_option
@click.option("-o", "--output", metavar="FILE", help="Save the plan, for instance as plan.lrm.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@seed_option
@whole_option("--max-records", "Upper bound on the number of records in a table.")
@choice_option("--effort", EFFORTS, "best: how long to search (normal by default).")
@time_limit_option("Seconds until the plan must be ready, with the best so far.")
@whole_option("--rank", "lowrank: number of measurements.")
@click.option(
    "--rank-ratio", type=float, metavar="X", help="lowrank: measurements over rank (1.2)."
)
@click.option("--gamma", type=float, metavar="X", help="lowrank: the paper's relaxation (0.01).")
@click.option("--relaxed", is_flag=True, help="lowrank: keep W ≈ B·L as the paper does (biased).")
@whole_option("--fanout", "hierarchical: fan-out (2).", least=2)
@click.option("--no-root", is_flag=True, help="hierarchical: leave the total out.")
@json_option
def plan(workload: str, mechanism: MechanismName, output: str | None, **choices: Any) -> None:
    r"""Choose a strategy for WORKLOAD and state its error, without data and at no privacy cost.

    WORKLOAD is a batch of questions in SQL or YAML (.sql, .yaml) over the attributes
    of a domain; or a file with one row per query and one column per cell (.csv, .npy, .npz,
    .parquet); or a family: identity:N, total:N, prefix:N, all-ranges:N,
    width-ranges:NxWIDTH, wrange:MxN, wdiscrete:MxN, wrelated:MxN, each of the last
    three with :seed=K. Ctrl-C ends a long search with the best so far.

    \b
    Example:
      lrm plan queries.sql --domain domain.yaml -o plan.lrm
      lrm plan queries.sql --domain domain.yaml --noise gaussian -o plan.lrm
      lrm plan queries.sql --domain domain.yaml --noise auto \
          --epsilon 1 --delta 1e-6
      lrm plan queries.sql --domain domain.yaml --meet -o plan.lrm
      lrm plan workload.csv -o plan.lrm
      lrm plan all-ranges:64 --effort quick
      lrm plan wrange:64x128:seed=3 -m lowrank --rank-ratio 1.4
    """
    from lrm.planning.plan.comparison import choose_noise
    from lrm.planning.plan.planner import plan as make_plan
    from lrm.views.choices import met_facts, noise_blocks, noise_facts
    from lrm.views.plan_document import PlanDetail, plan_document
    from lrm.views.plans import plan_facts
    from lrm.views.progress import ProgressLine

    confidence, meet = choices["confidence"], choices["meet"]
    check_apart({"--output": output}, {"WORKLOAD": workload, "--domain": choices["domain"]})
    check_output(output, force=choices["force"])
    batch = read_questions(workload, choices["domain"], choices["edition"])
    factor = 1 if batch.domain is None else batch.domain.unit.factor
    noise, auto = choices["noise"], choices["noise"] == "auto"
    if auto != (choices["epsilon"] is not None and choices["delta"] is not None):
        raise click.UsageError(
            "--noise auto compares noises at a guarantee: give it --epsilon and --delta, which "
            "other plans do not need"
        )
    options = {
        "objective": choices["objective"],
        "meet": confidence if meet else None,
        "seed": choices["seed"],
        "max_records": choices["max_records"],
        "time_limit": choices["time_limit"],
        **_mechanism_options(choices),
    }
    choice = None
    with ProgressLine("plan", noise, factor) as on_step:
        if auto:
            amounts = choices["epsilon"], choices["delta"]
            choice = choose_noise(batch, *amounts, mechanism=mechanism, on_step=on_step, **options)
            made = choice.best
        else:
            made = make_plan(batch, mechanism, noise=noise, on_step=on_step, **options)
    if output is not None:
        made.save(output)
    met = made.meets(confidence) if meet else None
    if choices["as_json"]:
        more: dict[str, Any] = {} if met is None else {"meets": met_facts(met)}
        if choice is not None:
            more["noises"] = noise_facts(choice, confidence)
        print_json({**plan_facts(made), **more, "file": output})
        return
    more_blocks = [] if choice is None else noise_blocks(choice, confidence)
    print_document(plan_document(made, PlanDetail("facts"), met=met, more=more_blocks))
    if output is None:
        echo("not saved; add -o plan.lrm to keep it")
    else:
        echo(f"saved to {output}")


def _mechanism_options(choices: dict[str, Any]) -> dict[str, Any]:
    """Only the options that were given: the planner refuses those a mechanism does not take."""
    names = ("effort", "rank", "rank_ratio", "gamma", "fanout")
    options = {name: choices[name] for name in names if choices[name] is not None}
    if choices["no_root"]:
        options["root"] = False
    if choices["relaxed"]:
        options["exact"] = False
    return options
