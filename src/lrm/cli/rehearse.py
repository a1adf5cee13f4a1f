"""``lrm rehearse``: the page of a release on synthetic rows, before data is read."""

from pathlib import Path
from typing import Any

import click

from lrm.cli.inputs import check_apart, check_output
from lrm.cli.options import (
    amount_options,
    confidence_option,
    json_option,
    read_amounts,
    whole_option,
)
from lrm.cli.terminal import echo, print_json


@click.command()
@click.argument("plan")
@click.option("-o", "--output", metavar="PAGE", help="File for the page, such as rehearsal.html.")
@click.option("--force", is_flag=True, help="Replace PAGE if it exists.")
@amount_options
@whole_option("--rows", "Number of synthetic rows; by default from expected sizes, else 100,000.")
@confidence_option
@json_option
def rehearse(plan: str, output: str | None, **choices: Any) -> None:
    r"""Make the page that a release of PLAN would have, on synthetic rows.

    The rows are drawn uniformly from the declared domain. Their number is the one at which tables
    with a comment -- expected: N have that size in the median. The noise is that of a real
    release at --epsilon (1 by default). It needs no table and no ledger, and costs no privacy:
    use it to see which tables will be usable. Every page and file of it is marked as a rehearsal.

    \b
    Example:
      lrm rehearse plan.lrm --epsilon 0.1 -o rehearsal.html
      lrm rehearse plan.lrm --epsilon 0.1 --rows 20000
    """
    from lrm.planning.plan.file import load_plan
    from lrm.privacy.norms import unit_privacy
    from lrm.views.rehearsal import expected_rows
    from lrm.views.rehearsal import rehearse as make_rehearsal
    from lrm.views.release_page import answers_beside, write_release_page

    place = output or str(Path(plan).with_suffix(".rehearsal.html"))
    check_apart({"--output": place}, {"PLAN": plan})
    check_output(place, force=choices["force"], kinds=(".html", ".htm"))
    loaded = load_plan(plan)
    amounts = read_amounts(choices)
    privacy = loaded.privacy(**amounts) if amounts else unit_privacy(loaded.noise)
    drawn = expected_rows(loaded) if choices["rows"] is None else choices["rows"]
    made = make_rehearsal(loaded, privacy, drawn)
    check_output(answers_beside(made, place), force=choices["force"])
    write_release_page(made, place, choices["confidence"])
    if choices["as_json"]:
        print_json({"rehearsal": True, "page": place, "rows": drawn, "plan": plan})
        return
    echo(f"a rehearsal on {drawn:,} synthetic rows at {privacy.symbols} is in {place}")
    echo("nothing was spent, and no data was read")
