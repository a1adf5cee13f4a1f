"""``lrm query``: further questions to a release, at no further cost."""

from typing import Any

import click

from lrm.cli.inputs import check_apart, check_output, read_queries
from lrm.cli.options import (
    check_confidence,
    confidence_option,
    force_option,
    json_option,
    limit_option,
)
from lrm.cli.terminal import echo, print_document, print_json


@click.command()
@click.argument("release")
@click.argument("sql", required=False)
@click.option(
    "--file", metavar="FILE", help="Take the questions from a .sql or .yaml file, or - for stdin."
)
@click.option("--csv", metavar="OUT", help="Also write answers and intervals as CSV.")
@force_option
@confidence_option
@limit_option("Number of answers to print (20).", default=20)
@json_option
def query(release: str, sql: str | None, file: str | None, **choices: Any) -> None:
    r"""Answer SQL, a text of SELECT statements, from the measurements of RELEASE.

    They are public already, so this costs no privacy and reads no table. A question is
    answered, with its own error, where it is a combination of what was measured; any other
    raises an error that names it.

    \b
    Example:
      lrm query answers.lrm "SELECT COUNT(*) FROM visits WHERE age >= 65"
      lrm query answers.lrm --file further.sql --csv further.csv
    """
    from lrm.releases import domain_of
    from lrm.releases.file import load_release
    from lrm.views.documents import facts_document
    from lrm.views.outputs import write_export
    from lrm.views.outputs.export import Export
    from lrm.views.release_document import release_document, terminal
    from lrm.views.releases import summary_facts

    if (sql is None) == (file is None):
        raise click.UsageError("give the questions as SQL or in a --file")
    confidence, csv = choices["confidence"], choices["csv"]
    check_apart({"--csv": csv}, {"RELEASE": release, "--file": file})
    check_output(csv, force=choices["force"])
    check_confidence(confidence)
    loaded_release = load_release(release)
    domain = domain_of(loaded_release.plan)
    answered = loaded_release.query(sql if file is None else read_queries(file, domain))
    if csv is not None:
        write_export(Export(answered, None, confidence), csv, ".csv")
    if choices["as_json"]:
        facts = summary_facts(answered, confidence)
        # The plan is the one that was released, not that of the further questions.
        facts["provenance"]["plan_digest"] = loaded_release.plan.digest
        print_json({**facts, "file": release, "csv": csv})
        return
    detail = terminal(choices["limit"], facts=False)
    print_document(release_document(answered, detail, confidence))
    echo("from the measurements of the release, at no further cost:")
    print_document(facts_document(list(answered.stated.items())))
