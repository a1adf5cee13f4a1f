"""``lrm demo``: the way from a table to a page of private answers, on synthetic patients."""

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option, whole_option
from lrm.cli.terminal import echo, print_json
from lrm.errors import FileFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lrm.cli.demo_table import SyntheticPatients

FURTHER = "SELECT COUNT(*) AS western FROM patients WHERE state IN ('CA', 'WA')"


@click.command()
@click.option(
    "--epsilon",
    metavar="AMOUNT",
    default="0.1",
    show_default=True,
    help="Privacy budget that the release spends.",
)
@whole_option("--seed", "Seed of the synthetic table; the noise has none.", least=0, default=0)
@click.option(
    "--folder",
    metavar="DIR",
    help="Folder for the files, created if needed; a new temporary folder by default.",
)
@click.option(
    "--files-only",
    is_flag=True,
    help="Write the table, its domain and the questions, and stop.",
)
@json_option
@click.pass_context
def demo(
    ctx: click.Context, /, epsilon: str, seed: int, folder: str | None, **choices: bool
) -> None:
    r"""Go from a table to private answers, on 200,000 synthetic patients.

    Every step is a command that you can type yourself; the files stay. Nobody in the table
    exists, so the answers can be compared with the truth in the end.

    \b
    Example:
      lrm demo
      lrm demo --epsilon 1 --json
      lrm demo --folder . --files-only
    """
    from lrm.cli.demo_table import write_files
    from lrm.privacy.amounts import parse_amount

    amount = parse_amount(epsilon, "epsilon")
    place = _place(folder)
    table = write_files(place, seed)
    as_json = choices["as_json"]
    facts: dict[str, Any] = {"synthetic": True, "patients": len(table.age), "folder": str(place)}
    if choices["files_only"]:
        if as_json:
            print_json(facts)
        else:
            echo(_files_line(table, folder))
        return
    steps = _steps(epsilon, amount)
    run = ctx.find_root().command.main
    with contextlib.chdir(place):
        if as_json:
            print_json({**facts, "steps": _run_silently(steps, run), **_coverage(table)})
            return
        _show_files(table)
        _run_for_people(steps, run)
        _conclude(table, place.absolute())


def _place(folder: str | None) -> Path:
    """Create the folder for the files; refuse one that holds any of them."""
    import tempfile

    from lrm.cli.demo_table import FILES

    if folder is None:
        return Path(tempfile.mkdtemp(prefix="lrm-demo-"))
    place = Path(folder)
    for name in (*FILES, "plan.lrm", "budget.sqlite", "answers.lrm", "answers.html"):
        if (place / name).exists():
            raise click.UsageError(f"{place / name} exists already; choose another --folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise FileFormatError(f"cannot create the folder {folder}: {reason.strerror}") from None
    return place


def _steps(epsilon: str, amount: Any) -> list[tuple[str, list[str]]]:
    """Return each command after the reason for it."""
    from lrm.privacy.amounts import format_amount

    plan = ["plan", "questions.sql", "--domain", "domain.yaml", "-o", "plan.lrm"]
    budget = ["budget", "create", "patients", "--limit", format_amount(10 * amount)]
    spend = ["release", "plan.lrm", "--table", "patients.csv", "--epsilon", epsilon]
    ledger = ["--ledger", "budget.sqlite"]
    return [
        ("Plan the batch: reads no data, costs no privacy.", plan),
        (
            "Give the table a budget, once for all releases.",
            [*budget, "--domain", "domain.yaml", *ledger],
        ),
        (
            "Release: the budget is charged, then rows are counted, then noise is added.",
            [*spend, *ledger, "-o", "answers.lrm"],
        ),
        ("Ask the release further questions, at no cost.", ["query", "answers.lrm", FURTHER]),
        ("Make a page of it.", ["report", "answers.lrm"]),
    ]


def _run_for_people(steps: list[tuple[str, list[str]]], run: "Callable[..., Any]") -> None:
    """Show each command, and one of the tables that were released."""
    for why, command in steps:
        echo(f"# {why}\n{_typed(command)}")
        with contextlib.redirect_stdout(io.StringIO()):
            run(command, "lrm", standalone_mode=False)
        if command[0] == "release":
            shown = ["show", "answers.lrm", "positive"]
            echo(_typed(shown))
            run(shown, "lrm", standalone_mode=False)


def _run_silently(
    steps: list[tuple[str, list[str]]], run: "Callable[..., Any]"
) -> list[dict[str, Any]]:
    """Run the commands with --json, and collect what they print."""
    done = []
    for _, command in steps:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run([*command, "--json"], "lrm", standalone_mode=False)
        output = json.loads(printed.getvalue())
        done.append({"command": f"lrm {shlex.join(command)}", "output": output})
    return done


def _files_line(table: "SyntheticPatients", folder: str | None) -> str:
    from lrm.cli.demo_table import FILES

    where = "" if folder in {None, "."} else f" in {folder}"
    return f"{FILES[0]} ({len(table.age):,} synthetic patients), {FILES[1]} and {FILES[2]}{where}"


def _typed(command: list[str]) -> str:
    r"""Spell a command as one would type it, in lines of at most 80 characters.

    >>> _typed(["query", "answers.lrm", "SELECT 'x'"])
    '$ lrm query answers.lrm "SELECT \'x\'"'
    """
    words: list[str] = []
    for word in command:
        quoted = f'"{word}"' if "'" in word else shlex.quote(word)
        if words and words[-1].startswith("-") and " " not in words[-1] and word[0] != "-":
            words[-1] += f" {quoted}"  # an option and its value stay on one line
        else:
            words.append(quoted)
    lines = ["$ lrm"]
    for word in words:
        if len(lines[-1]) + len(word) > 76:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def _show_files(table: "SyntheticPatients") -> None:
    from lrm.cli.demo_table import QUESTIONS

    size = f"{len(table.age):,}"
    echo(
        f"# A SYNTHETIC table of {size} patients, its public columns, and what to ask.\n"
        f"$ cat questions.sql\n{QUESTIONS}",
        nl=False,
    )


def _coverage(table: "SyntheticPatients") -> dict[str, int]:
    """Count the answers, and the 95 % intervals that contain the true answer."""
    from lrm.releases.file import load_release

    truth = table.answers()
    low, high = load_release("answers.lrm").intervals(0.95).T
    inside = (low <= truth) & (truth <= high)
    return {"answers": len(truth), "intervals_that_hold_the_truth": int(inside.sum())}


def _conclude(table: "SyntheticPatients", place: Path) -> None:
    from lrm.files.spelling import number
    from lrm.releases.file import load_release
    from lrm.views.baselines import errors_by_mechanism

    release = load_release("answers.lrm")
    facts = _coverage(table)
    held_count, answers = facts["intervals_that_hold_the_truth"], facts["answers"]
    errors = errors_by_mechanism(release.plan, release.accuracy, trees=False)
    typical = {name: float((each**2).mean() ** 0.5) for name, each in errors.items()}
    single_error, together = typical["noise-on-results"], release.accuracy.root_mean_squared_error
    echo(
        f"\n{answers} answers at {release.privacy.symbols}: one by one ±{number(single_error, 3)}, "
        f"planned together ±{number(together, 3)} (typical):\n"
        f"{single_error / together:.1f}× the budget would be needed one by one. "
        "Every table adds up.\n"
        f"The truth is known here: {held_count} of {answers} intervals contain it "
        "(19 of 20 on average).\n"
        "The page with all tables is answers.html; it opens in any browser. Type next:\n"
        f"  cd {shlex.quote(str(place))}\n"
        "  lrm explain plan.lrm --rmse 10   # the epsilon for a wanted error\n"
        "  lrm domain init YOUR.csv -o domain.yaml   # then your own table"
    )
