"""The command line: parse, call, print.

Nothing here may import more than click and the standard library before a command runs, so that
``lrm --help`` starts in about 0.1 s; each command is a module that is loaded when it is called.
"""

import click

from lrm.cli.group import LazyGroup

__all__ = ["main"]

COMMANDS = {
    "domain": (
        "lrm.cli.domain:domain",
        "Draft and complete the file of a table's public facts.",
    ),
    "plan": ("lrm.cli.plan:plan", "Choose a strategy for a workload, without data."),
    "compare": ("lrm.cli.compare:compare", "Compare all mechanisms on one workload."),
    "explain": (
        "lrm.cli.explain:explain",
        "Show the error of a plan, or the epsilon for an error.",
    ),
    "rehearse": (
        "lrm.cli.rehearse:rehearse",
        "Make the page of a release on synthetic rows, before data is read.",
    ),
    "release": ("lrm.cli.release:release", "Answer a plan's queries on a private table."),
    "publish": (
        "lrm.cli.publish:publish",
        "Publish one edition of a report: plan, release, page and files.",
    ),
    "query": ("lrm.cli.query:query", "Ask a release further questions, at no cost."),
    "show": ("lrm.cli.show:show", "Show a plan or a release."),
    "synthesize": (
        "lrm.cli.synthesize:synthesize",
        "Make up rows that are fitted to a release.",
    ),
    "report": (
        "lrm.cli.report:report",
        "Make one HTML page of a plan, comparison, release or series.",
    ),
    "budget": ("lrm.cli.budget:budget", "Give tables a privacy budget and see what was spent."),
    "workbench": (
        "lrm.cli.workbench:workbench",
        "Plan and make a release in the browser.",
    ),
    "demo": ("lrm.cli.demo:demo", "Run everything on a synthetic table."),
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
      lrm domain init visits.parquet -o domain.yaml
      lrm plan queries.sql --domain domain.yaml -o plan.lrm
      lrm explain plan.lrm --epsilon 0.1
      lrm budget create visits --limit 1 --ledger budget.sqlite
      lrm release plan.lrm --table visits.parquet --epsilon 0.1 \
          --ledger budget.sqlite -o answers.lrm
      lrm query answers.lrm "SELECT COUNT(*) FROM visits WHERE age >= 65"

    Exit codes: 0 done, 1 failed, nothing was charged, 2 usage error, 3 failed
    after a budget was charged, 4 failed and nobody can say if it was charged,
    130 interrupted.
    """
