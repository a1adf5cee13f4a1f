"""The command line: parse, call, print.

Nothing here may import more than click and the standard library before a command runs, so that
``lrm --help`` starts in about 0.1 s; each command is a module that is loaded when it is called.
"""

import click

from lrm.cli.group import LazyGroup

__all__ = ["main"]

COMMANDS = {
    "plan": ("lrm.cli.plan:plan", "Choose a strategy for a workload, without data."),
    "compare": ("lrm.cli.compare:compare", "All mechanisms on one workload, side by side."),
    "explain": ("lrm.cli.explain:explain", "The error of a plan, or the epsilon for an error."),
    "release": ("lrm.cli.release:release", "Answer a plan's queries on private counts."),
    "show": ("lrm.cli.show:show", "Show a plan or a release."),
    "budget": ("lrm.cli.budget:budget", "Give tables a privacy budget and see what was spent."),
    "demo": ("lrm.cli.demo:demo", "A whole run on synthetic patients."),
    "completion": ("lrm.cli.completion:completion", "Print the completion script of a shell."),
}
"""Name → module and function, and the line that ``lrm --help`` shows."""


@click.group(
    cls=LazyGroup,
    commands_by_name=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(None, "-V", "--version", package_name="lrm", message="lrm %(version)s")
def main() -> None:
    r"""Answer batches of counting queries under differential privacy.

    Plan first: it needs no data and costs no privacy. Then release, once.

    \b
    Example:
      lrm demo
      lrm compare prefix:64
      lrm plan workload.csv -o plan.lrm
      lrm explain plan.lrm --epsilon 0.1
      lrm release plan.lrm --counts counts.csv --epsilon 0.1 \
          -o answers.lrm --no-ledger

    Exit codes: 0 done, 1 failed, 2 asked wrongly, 130 interrupted.
    """
