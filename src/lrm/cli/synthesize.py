"""``lrm synthesize``: rows that are fitted to a release."""

from typing import Any

import click

from lrm.cli.inputs import check_apart, check_output
from lrm.cli.options import json_option, whole_option
from lrm.cli.progress import waiting
from lrm.cli.report import known_option
from lrm.cli.terminal import echo, print_json


@click.command()
@click.argument("file")
@click.option(
    "-o",
    "--output",
    metavar="ROWS",
    required=True,
    help="File for the rows: .parquet, with what they are as metadata, or .csv.",
)
@whole_option("--rows", "Number of rows; by default about as many as the table has.", least=1)
@whole_option("--seed", "Seed of the random choices; a new one by default.", least=0)
@known_option
@click.option("--report", metavar="PAGE", help="Also write a page on how near the rows are.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@json_option
def synthesize(file: str, output: str, **choices: Any) -> None:
    r"""Make up rows whose counts are near the answers of FILE, a release.

    The rows are a function of the release alone: they cost no privacy, and have its guarantee. They
    have the declared values of every attribute that the batch asks about. Use them to write and
    test programs and for counts that the batch asked about; relations between columns that no
    statement asks about are not kept.

    \b
    Example:
      lrm synthesize answers.lrm -o rows.parquet
      lrm synthesize answers.lrm -o rows.csv --rows 10000 --seed 7
      lrm synthesize answers.lrm -o rows.parquet --report rows.html
    """
    from lrm.releases.file import load_release
    from lrm.releases.known import read_known

    check_apart({"--output": output, "--report": choices["report"]}, {"FILE": file})
    check_output(output, force=choices["force"], kinds=(".parquet", ".csv"))
    check_output(choices["report"], force=choices["force"], kinds=(".html", ".htm"))
    release = load_release(file)
    known = () if choices["known"] is None else read_known(choices["known"])
    with waiting("making rows"):
        rows = release.synthesize(choices["rows"], choices["seed"], known=known, progress=False)
        rows.write(output)
        if choices["report"] is not None:
            rows.report(choices["report"])
    if choices["as_json"]:
        fits = [
            {"statement": fit.name, "distance": fit.distance, "outside": fit.outside}
            for fit in rows.fits
        ]
        print_json({"kind": "rows", "file": output, **rows.metadata, "statements": fits})
        return
    near = sum(fit.verdict == "within the noise" for fit in rows.fits)
    echo(f"{len(rows):,} made-up rows are in {output} (seed {rows.seed})")
    echo(f"{near} of {len(rows.fits)} statements are within the noise of the released answers")
