"""``lrm release``: answer a plan's queries on a private table, charged to a ledger."""

import os
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.endings import paying
from lrm.cli.inputs import check_apart, check_output, check_tables
from lrm.cli.options import (
    NEIGHBOURS,
    amount_options,
    check_confidence,
    choice_option,
    confidence_option,
    edition_option,
    json_option,
    limit_option,
    read_amounts,
    whole_option,
)
from lrm.cli.progress import waiting
from lrm.cli.terminal import echo, print_document, print_json
from lrm.errors import AlreadyCharged, FileFormatError, LrmError

if TYPE_CHECKING:
    from lrm.planning.plan import Plan
    from lrm.releases import Preview, Release


@click.command()
@click.argument("plan")
@click.option(
    "--table",
    "tables",
    metavar="TABLE",
    multiple=True,
    help="A .csv or .parquet file, a folder of Parquet files, FILE.duckdb::TABLE, "
    "postgresql://…?table=NAME or spark:TABLE; "
    "of a people with several tables NAME=TABLE, once for each, or one database that has all.",
)
@click.option(
    "--counts",
    metavar="FILE",
    help="Instead of a table: the records in each cell, as .csv, .npy or .parquet.",
)
@amount_options
@click.option("-o", "--output", metavar="FILE", help="Save the release, such as answers.lrm.")
@click.option("--csv", metavar="FILE", help="Also write answers and intervals as CSV.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option(
    "--ledger",
    envvar="LRM_LEDGER",
    metavar="FILE|URL",
    help="Ledger to charge before data is read; also from LRM_LEDGER.",
)
@click.option(
    "--budget", metavar="NAME", help="Budget to charge; by default that of the domain's table."
)
@click.option(
    "--key",
    metavar="TEXT",
    help="Name of a job that may be repeated: it is charged once, whatever happens.",
)
@edition_option
@click.option("--no-ledger", is_flag=True, help="Confirm that nothing records what is spent.")
@click.option("--dry-run", is_flag=True, help="Show cost and errors; spend nothing, read no row.")
@choice_option(
    "--neighbours",
    NEIGHBOURS,
    "For a plan without a domain: a record added or removed (default), or replaced.",
)
@whole_option(
    "--max-rows", "For a plan without a domain: upper bound on the records of one person (1)."
)
@confidence_option
@limit_option("Number of answers to print (20).", default=20)
@json_option
def release(plan: str, **choices: Any) -> None:
    r"""Answer the queries of PLAN on a private table, under differential privacy.

    A plan for pure noise takes --epsilon; one for Gaussian noise --rho, or --epsilon with
    --delta. The ledger is charged before any row is read, and a charge is not returned:
    so plan, table and places to write are checked first. Every release spends anew: two
    releases at 0.1 guarantee 0.2 together. Without a ledger nothing records that sum, so
    --no-ledger must be given explicitly.

    With --key a job can be repeated after any failure: the same key is never charged
    again. If the answers were saved, that is a success. If not, they are lost, since
    a second draw of noise would be a second release for one charge.

    \b
    Example:
      lrm release plan.lrm --table visits.parquet --epsilon 0.1 \
          --ledger budget.sqlite --dry-run
      lrm release plan.lrm --table visits.parquet --epsilon 0.1 \
          --ledger budget.sqlite -o answers.lrm --csv answers.csv
      lrm release plan.lrm --counts counts.csv --epsilon 0.1 \
          -o answers.lrm --no-ledger
    """
    from lrm.planning.plan.file import load_plan
    from lrm.releases import preview
    from lrm.releases import release as make_release
    from lrm.releases.counts_file import CountsFile

    _check_choices(choices)
    _check_places(plan, choices)
    repeated = choices["key"] is not None and os.path.exists(choices["output"] or "")  # noqa: PTH110
    amounts = read_amounts(choices)
    check_confidence(choices["confidence"])
    with waiting("reading the plan"):
        loaded = load_plan(plan)
    arguments = {
        "plan": loaded,
        "data": tables_of(loaded, choices["tables"]) or CountsFile(choices["counts"]),
        **amounts,
        **{name: choices[name] for name in _PASSED_ON},
    }
    if choices["dry_run"]:
        with waiting("checking the table"):
            preview_result = preview(**arguments)
        _print_preview(preview_result, choices)
        return
    if repeated and _is_saved(arguments, choices):
        return
    with paying(choices["ledger"], (choices["output"], choices["csv"])):
        with waiting("counting, and adding noise"):
            try:
                answered = make_release(**arguments, progress=False)
            except AlreadyCharged as reason:  # by another run that began at the same time
                if _says_saved(reason, choices):
                    return
                raise _lost(reason, choices) from None
        with waiting("saving answers"):
            _save(answered, choices)
        _show(answered, choices)
        del answered, arguments, loaded  # which takes milliseconds, and Ctrl-C may come in these


_PASSED_ON = ("ledger", "budget", "neighbours", "max_rows", "key", "edition")
"""Options that are passed on as they are."""


def _is_saved(arguments: dict[str, Any], choices: dict[str, Any]) -> bool:
    """Whether an earlier run of the same job has charged and saved the release; prints it."""
    from lrm.releases import preview

    try:
        preview(**arguments)
    except AlreadyCharged as reason:
        if _says_saved(reason, choices):
            return True
        raise _lost(reason, choices) from None
    check_output(choices["output"], force=choices["force"])
    return False


def _says_saved(reason: AlreadyCharged, choices: dict[str, Any]) -> bool:
    """Say that the release of a key is in its file, if it is."""
    from lrm.releases.file import load_release

    output = choices["output"]
    try:
        saved = load_release(output)
    except LrmError:
        return False
    if saved.ledger_head != reason.head:
        return False
    if choices["csv"] is not None and not os.path.exists(choices["csv"]):  # noqa: PTH110
        _write_csv(saved, choices)
    if choices["as_json"]:
        print_json({"file": output, "ledger_head": reason.head, "repeated": True})
    else:
        echo(f"{output} holds the release of this key; nothing was charged")
    return True


def _lost(reason: AlreadyCharged, choices: dict[str, Any]) -> AlreadyCharged:
    """The error of a key whose answers are not where they should be."""
    sentence = (
        f"{reason}, and its answers are not in {choices['output']}; the noise of a charge is drawn "
        "once: wait for another run with this key, look for the file, or release under another "
        "key, which charges again"
    )
    lost = AlreadyCharged(sentence, reason.head)
    lost.charge = "made"
    return lost


def tables_of(plan: "Plan", tables: tuple[str, ...]) -> str | dict[str, str] | None:
    """The table of a plan; the tables of a people by their names."""
    domain = plan.workload.domain
    if domain is None or domain.level is None:
        if len(tables) > 1:
            raise click.UsageError("the plan reads one table; give --table once")
        return tables[0] if tables else None
    from lrm.releases.sources import is_database_of_people

    if len(tables) == 1 and is_database_of_people(plan, tables[0]):
        return tables[0]
    pairs = [table.partition("=") for table in tables]
    names = ", ".join(table.name for table in domain.level.tables)
    if not all(name and source for name, _, source in pairs):
        raise click.UsageError(f"the plan reads {names}; give each as --table NAME=TABLE")
    if len({name for name, *_ in pairs}) < len(pairs):
        raise click.UsageError("a table is given twice; give each as --table NAME=TABLE once")
    return {name: source for name, _, source in pairs}


def _check_choices(choices: dict[str, Any]) -> None:
    """Refuse options that leave open, or contradict, what is read and what is charged."""
    if bool(choices["tables"]) == (choices["counts"] is not None):
        raise click.UsageError("give --table, or --counts with the counts of the cells")
    if choices["ledger"] is not None and choices["no_ledger"]:
        raise click.UsageError("--no-ledger contradicts --ledger (or LRM_LEDGER); leave one out")
    unpaid = choices["ledger"] is None
    if unpaid and not choices["no_ledger"] and not choices["dry_run"]:
        raise click.UsageError(
            "give the ledger to charge with --ledger (`lrm budget create` makes one), or "
            "--no-ledger to release without a record of what is spent"
        )
    if unpaid and choices["budget"] is not None:
        raise click.UsageError("--budget names a budget of a ledger; add --ledger")
    if unpaid and choices["key"] is not None:
        raise click.UsageError("--key names a charge in a ledger; add --ledger")
    if choices["output"] is None and not choices["dry_run"]:
        raise click.UsageError("give the file for the release with -o")


def _check_places(plan: str, choices: dict[str, Any]) -> None:
    """Refuse places that cannot be written, or that hold an input."""
    outputs = {"--output": choices["output"], "--csv": choices["csv"]}
    inputs = {"PLAN": plan, "--counts": choices["counts"], "--ledger": choices["ledger"]}
    check_apart(outputs, inputs)
    check_tables(outputs, choices["tables"])
    for place in outputs.values():
        force = choices["force"] or choices["dry_run"] or choices["key"] is not None
        check_output(place, force=force)


def _save(answered: "Release", choices: dict[str, Any]) -> None:
    """Write the files."""
    save_release(answered, choices["output"])
    if choices["csv"] is not None:
        _write_csv(answered, choices)


def save_release(answered: "Release", output: str) -> None:
    """Write the file; a release that cannot be saved where it should is saved elsewhere."""
    import tempfile
    from pathlib import Path

    try:
        answered.save(output)
    except FileFormatError as reason:
        rescued = Path(tempfile.mkdtemp(prefix="lrm-")) / Path(output).name
        answered.save(rescued)
        raise FileFormatError(f"{reason}; the release was saved to {rescued} instead") from None


def _write_csv(answered: "Release", choices: dict[str, Any]) -> None:
    from lrm.views.outputs import write_export
    from lrm.views.outputs.export import Export

    write_export(Export(answered, None, choices["confidence"]), choices["csv"], ".csv")


def _show(answered: "Release", choices: dict[str, Any]) -> None:
    """Print the answers; a release that was saved is a success, whatever happens to its view."""
    try:
        _print_release(answered, choices)
    except (BrokenPipeError, click.ClickException):
        raise
    except Exception as reason:  # noqa: BLE001 - the answers are safe, and were charged
        kind = type(reason).__name__
        echo(f"saved to {choices['output']}", err=True)
        echo(f"warning: the answers cannot be shown here ({kind}); the file has them", err=True)


def _print_release(answered: "Release", choices: dict[str, Any]) -> None:
    from lrm.views.release_document import release_document, terminal
    from lrm.views.releases import summary_facts

    output, csv, confidence = choices["output"], choices["csv"], choices["confidence"]
    if choices["as_json"]:
        with waiting("answers"):
            facts = summary_facts(answered, confidence)
        print_json({**facts, "file": output, "csv": csv})
        return
    with waiting("answers"):
        document = release_document(answered, terminal(choices["limit"]), confidence)
    print_document(document)
    for warning in answered.warnings:
        echo(f"warning: {warning}")
    echo("saved to " + " and ".join(name for name in (output, csv) if name))


def _print_preview(preview: "Preview", choices: dict[str, Any]) -> None:
    from lrm.views.budgets import preview_facts
    from lrm.views.documents import preview_document

    confidence = choices["confidence"]
    if choices["as_json"]:
        with waiting("errors"):
            facts = preview_facts(preview, confidence)
        print_json(facts)
        return
    with waiting("errors"):
        document = preview_document(preview, confidence, choices["limit"])
    print_document(document)
