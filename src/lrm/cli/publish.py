"""``lrm publish``: everything from statements to the files of one edition, safe to repeat."""

import hashlib
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.endings import paying
from lrm.cli.inputs import check_output, check_tables, read_declared, read_queries
from lrm.cli.options import (
    amount_options,
    check_confidence,
    confidence_option,
    json_option,
    read_amounts,
)
from lrm.cli.progress import waiting
from lrm.cli.release import save_release, tables_of
from lrm.cli.terminal import echo, print_json
from lrm.errors import AlreadyCharged, LrmError, UsageError, note_charge

if TYPE_CHECKING:
    from lrm.domain.people import Declared
    from lrm.ledger import Entry, Ledger
    from lrm.planning.plan import Plan
    from lrm.privacy.budget import Privacy
    from lrm.queries.workload import Workload
    from lrm.releases import Release


@click.command()
@click.argument("statements")
@click.option("--domain", required=True, metavar="FILE", help="Domain file with editions.")
@click.option(
    "--table",
    "tables",
    metavar="TABLE",
    multiple=True,
    required=True,
    help="The table with the rows of all editions, as for lrm release; of a people NAME=TABLE.",
)
@click.option("--edition", required=True, metavar="PERIOD", help="The edition, such as 2025-03.")
@amount_options
@click.option(
    "--noise",
    type=click.Choice(["pure", "laplace", "gaussian"]),
    help="As for lrm plan; by default gaussian with --rho or --delta, else pure.",
)
@click.option(
    "--ledger",
    required=True,
    envvar="LRM_LEDGER",
    metavar="FILE|URL",
    help="Ledger whose account of the edition is charged; also from LRM_LEDGER.",
)
@click.option("--budget", metavar="NAME", help="Budget to charge; by default that of the table.")
@click.option("--folder", required=True, metavar="FOLDER", help="Where the files of editions are.")
@click.option("--text", metavar="TEXT", help="Your text of the page, as for lrm report.")
@click.option(
    "--charge-again",
    is_flag=True,
    help="Publish an edition that was charged and whose answers were lost: a second charge.",
)
@confidence_option
@json_option
def publish(statements: str, **choices: Any) -> None:
    r"""Publish one edition of a report: plan, check, release, page and files in one command.

    STATEMENTS is the report's SQL, the same for every edition. FOLDER gets EDITION.lrm (the
    release), EDITION.html (the page) and EDITION/ (one CSV file per statement, with answers that
    add up next to the released ones). Plans are kept in FOLDER/plans, for editions of equal shape.

    It can be repeated: an edition that was published is not charged again, and files that are
    missing are written from its release. Other statements, another domain or amount are an error
    then: another report needs another FOLDER. An edition that was charged and then lost is named;
    only --charge-again charges a second time.

    \b
    Example:
      lrm publish report.sql --domain shop.yaml --table orders.parquet \
          --edition 2025-03 --epsilon 0.2 --ledger budget.sqlite --folder editions
    """
    from lrm.domain.people import People
    from lrm.ledger import Ledger
    from lrm.planning.accuracy import privacy_of
    from lrm.views.page_text import read_page_text
    from lrm.views.publication import check_names

    edition, folder = choices["edition"], Path(choices["folder"])
    amounts = read_amounts(choices)
    noise = _noise(choices, amounts)
    privacy = privacy_of(noise, **amounts)
    check_confidence(choices["confidence"])
    domain = _domain(choices["domain"], edition)
    batch = read_queries(statements, domain).over_all_rows()
    named = domain.name if isinstance(domain, People) else domain.table
    budget = choices["budget"] or named or ""
    if not budget:
        raise click.UsageError("the domain does not name its table; give --budget")
    if choices["text"] is not None:
        check_names(batch, read_page_text(choices["text"]))  # before anything is charged
    ledger = Ledger.open(choices["ledger"])
    place = folder / f"{edition}.lrm"
    written = (place, place.with_suffix(".html"), folder / edition)
    check_tables({f"the edition's {path.name}": str(path) for path in written}, choices["tables"])
    key = f"{Path(statements).stem}: {edition}, {_report(batch)}"
    last, unused = _charges(ledger, budget, key)
    release = _published(place, ledger, budget)
    if release is not None:
        _check_same(release, batch, privacy, place, _key(release, ledger, budget))
    charged = release is None
    if release is None:
        if last is not None and not choices["charge_again"]:
            raise _lost(last, edition, place)
        folder.mkdir(parents=True, exist_ok=True)
        check_output(str(place))
        plan = _plan(batch, folder / "plans", noise)
        release = _release(plan, choices, amounts, (ledger, budget, unused), place)
    if charged:  # what is there is of a release that was lost
        (folder / f"{edition}.html").unlink(missing_ok=True)
        shutil.rmtree(folder / edition, ignore_errors=True)
    try:
        files = _write_missing(release, folder / edition, choices)
    except LrmError as reason:
        if charged:
            note_charge(reason, f"the release is in {place}; repeat the command", "made")
        raise
    _print(release, place, files, charged=charged, as_json=choices["as_json"])


def _domain(file: str, edition: str) -> "Declared":
    declared = read_declared(file)
    if declared.editions is None:
        raise click.UsageError(
            f"{file} declares no editions; add, for example, editions: {{by: month, date: COLUMN}}"
        )
    return declared.at(edition)


def _noise(choices: dict[str, Any], amounts: dict[str, Any]) -> str:
    gaussian = "rho" in amounts or "delta" in amounts
    return str(choices["noise"] or ("gaussian" if gaussian else "pure"))


def _charges(ledger: "Ledger", budget: str, key: str) -> tuple["Entry | None", str]:
    """The last charge of an edition of a report, if any, and the first key that was not charged.

    Keys of older versions name no report, so that one of them may stand for any.
    """
    last, number, unused = ledger.charged_with(budget, key.rpartition(", ")[0]), 1, key
    while (entry := ledger.charged_with(budget, unused)) is not None:
        last, number = entry, number + 1
        unused = f"{key} ({number})"
    return last, unused


def _published(place: Path, ledger: "Ledger", budget: str) -> "Release | None":
    """The release of an edition that was published before."""
    from lrm.releases.file import load_release

    if not place.exists():
        return None
    release = load_release(place)
    if release.ledger_head not in {entry.head for entry in ledger.history(budget)}:
        raise UsageError(
            f"{place} holds a release that this ledger did not charge; publish in another folder"
        )
    return release


def _report(batch: "Workload") -> str:
    """What distinguishes reports: their statements with importances, and the domain."""
    domain = "" if batch.domain is None else batch.domain.digest
    return hashlib.sha256(f"{batch.digest} {domain}".encode()).hexdigest()[:16]


def _check_same(
    release: "Release", batch: "Workload", privacy: "Privacy", place: Path, key: str
) -> None:
    """Refuse another report or amount than that of the release that is there.

    The weights of its plan are not the importances of its statements: its key tells those.
    """
    there = release.plan.workload
    domains = [each.domain and each.domain.declared.digest for each in (there, batch)]
    if domains[0] != domains[1]:
        several = batch.domain is not None and batch.domain.level is not None
        what = "another domain" + (" or other statements" if several else "")
    elif there.unweighted_digest != batch.unweighted_digest:
        what = "other statements"
    elif _names_report(key) and _report(batch) not in key:
        what = "other importances of the statements"
    elif release.privacy != privacy:
        what = f"{release.privacy.symbols}, not {privacy.symbols}"
    else:
        return
    raise UsageError(
        f"{place} was published before with {what}; nothing was charged. Publish this report in "
        "another --folder, or repeat the command as it was"
    )


def _key(release: "Release", ledger: "Ledger", budget: str) -> str:
    """The key that a release was charged with."""
    return next(e.key for e in ledger.history(budget) if e.head == release.ledger_head)


def _names_report(key: str) -> bool:
    """Whether a key has the digest of a report: those of older versions have none."""
    return re.search(r", [0-9a-f]{16}( \(\d+\))?$", key) is not None


def _lost(entry: "Entry", edition: str, place: Path) -> AlreadyCharged:
    from lrm.privacy.amounts import spell_amount

    amount = f"{spell_amount(entry.amount, 'up')} {entry.accounting.value}"
    lost = AlreadyCharged(
        f"edition {edition} was charged {amount} (entry {entry.sequence}, {entry.time[:19]}), and "
        f"its answers are not in {place}; look for the file, or publish it with a second charge: "
        "--charge-again",
        entry.head,
    )
    lost.charge = "made"
    return lost


def _plan(batch: "Workload", folder: Path, noise: Any) -> "Plan":
    """The plan of an earlier edition of the same report, or a new one, which is kept.

    Its name has all that a plan depends on; labels, such as dates of the edition, are not of it.
    """
    from lrm.planning.plan.file import load_plan
    from lrm.planning.plan.planner import plan as make_plan
    from lrm.views.progress import ProgressLine

    seal = hashlib.sha256(batch.queries.digest.encode())
    seal.update(b"" if batch.importance is None else batch.importance.tobytes())
    seal.update(repr([(s.rows, s.derived, s.answers) for s in batch.statements]).encode())
    file = folder / f"{seal.hexdigest()[:16]}-{noise}.lrm"
    if file.exists():
        kept = load_plan(file).for_batch(batch)
        if kept is not None:
            return kept
    factor = 1 if batch.domain is None else batch.domain.unit.factor
    with ProgressLine("plan", noise, factor) as on_step:
        made = make_plan(batch, noise=noise, on_step=on_step)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(file)
    return made


def _release(
    plan: "Plan",
    choices: dict[str, Any],
    amounts: dict[str, Any],
    charge: tuple["Ledger", str, str],
    place: Path,
) -> "Release":
    """Charge, count, add noise, save."""
    from lrm.releases import release as make_release

    ledger, budget, key = charge
    data = tables_of(plan, choices["tables"])
    with paying(choices["ledger"], (str(place),)):
        with waiting("counting, and adding noise"):
            charged: dict[str, Any] = {"ledger": ledger, "budget": budget, "key": key}
            answered = make_release(plan, data, **amounts, **charged, progress=False)
        save_release(answered, str(place))
    return answered


def _write_missing(release: "Release", base: Path, choices: dict[str, Any]) -> list[str]:
    """Write the page and the tables of an edition where they are missing; return their names."""
    from lrm.releases.postprocess import process
    from lrm.views.outputs import write_export
    from lrm.views.outputs.export import Export

    page, tables = base.with_name(f"{base.name}.html"), base
    missing = [not page.exists(), not (tables.is_dir() and any(tables.iterdir()))]
    if any(missing):
        with waiting("making answers add up"):
            processed = process(release, ("consistent",))
        if missing[0]:
            _write_page(release, page, choices, processed)
        if missing[1]:
            export = Export(release, None, choices["confidence"], processed)
            partial = base.with_name(f".{base.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            write_export(export, partial)
            partial.replace(tables)
    return [str(page), f"{tables}/"]


def _write_page(release: "Release", page: Path, choices: dict[str, Any], processed: Any) -> None:
    from lrm.views.page_text import read_page_text
    from lrm.views.publication import write_publication
    from lrm.views.release_page import write_release_page

    confidence = choices["confidence"]
    with waiting("writing the page"):
        if choices["text"] is None:
            write_release_page(release, str(page), confidence, processed=processed)
        else:
            text = read_page_text(choices["text"])
            write_publication(release, str(page), text, confidence, processed=processed)


def _print(
    release: "Release", place: Path, files: list[str], *, charged: bool, as_json: bool
) -> None:
    if as_json:
        facts = {"release": str(place), "ledger_head": release.ledger_head, "files": files}
        print_json({**facts, "charged": charged})
        return
    done = "published" if charged else "was published before; nothing was charged"
    echo(f"{place.stem} {done}: {place}, {' and '.join(files)}")
    for warning in release.warnings:
        echo(f"warning: {warning}")
