"""``lrm budget``: give tables a budget, and see what was spent of it."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lrm.ledger import Budget, Entry

_Command = TypeVar("_Command", bound=Callable[..., Any])
_DIGITS_SHOWN = 12


def _shared(command: _Command) -> _Command:
    """Add the options that every command of the group has."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for a machine.")
    ledger = click.option(
        "--ledger",
        required=True,
        envvar="LRM_LEDGER",
        metavar="FILE|URL",
        help="The SQLite file or postgresql:// URL of the ledger; also from LRM_LEDGER.",
    )
    return ledger(as_json(command))


@click.group(short_help="Give tables a privacy budget and see what was spent.")
def budget() -> None:
    r"""Give tables a privacy budget, and see what was spent of it.

    A ledger is a SQLite file on a local disk or, for a team, a PostgreSQL database.
    Releases spend from it before they read data. For a PostgreSQL password use
    PGPASSWORD or a .pgpass file, not the URL.

    \b
    Example:
      lrm budget create people --limit 1 --ledger budget.sqlite
      lrm budget show --ledger budget.sqlite
    """


@budget.command(short_help="Give a table its budget.")
@click.argument("table")
@click.option("--limit", required=True, metavar="AMOUNT", help="Exact, such as 1, 0.5 or 1/3.")
@click.option(
    "--unit",
    type=click.Choice(["epsilon", "rho"]),
    default="epsilon",
    show_default=True,
    help="epsilon for pure releases only, rho for Gaussian and pure ones.",
)
@_shared
def create(table: str, limit: str, unit: str, ledger: str, *, as_json: bool) -> None:
    r"""Give TABLE its budget, once: a limit never changes.

    Makes the ledger if there is none.

    \b
    Example:
      lrm budget create people --limit 1 --ledger budget.sqlite
    """
    from lrm.amounts import format_amount  # noqa: PLC0415 - `lrm --help` stays fast
    from lrm.ledger import Ledger  # noqa: PLC0415 - same

    made = Ledger.open(ledger).create(table, limit, unit)
    if as_json:
        _print_json(_budget_fields(made))
    else:
        click.echo(f"table '{made.table}' may spend {format_amount(made.limit)} {made.unit.value}")


@budget.command(short_help="What is left of each budget.")
@click.argument("table", required=False)
@_shared
def show(table: str | None, ledger: str, *, as_json: bool) -> None:
    r"""Show limit, spent and remaining of TABLE, or of all tables.

    \b
    Example:
      lrm budget show --ledger budget.sqlite
    """
    from lrm.ledger import Ledger  # noqa: PLC0415 - `lrm --help` stays fast

    book = Ledger.open(ledger)
    budgets = book.budgets() if table is None else (book.budget(table),)
    if as_json:
        _print_json({"budgets": [_budget_fields(each) for each in budgets]})
        return
    columns = ("table", "unit", "limit", "spent", "remaining")
    rows = [
        (b.table, b.unit.value, _short(b.limit), _short(b.spent), _short(b.remaining))
        for b in budgets
    ]
    _print_table(columns, rows, numbers={"limit", "spent", "remaining"})


@budget.command(short_help="Everything that was ever spent.")
@click.argument("table", required=False)
@_shared
def history(table: str | None, ledger: str, *, as_json: bool) -> None:
    r"""List what was created and spent for TABLE, or for all tables, oldest first.

    \b
    Example:
      lrm budget history people --ledger budget.sqlite
    """
    from lrm.ledger import Ledger  # noqa: PLC0415 - `lrm --help` stays fast

    entries = Ledger.open(ledger).history(table)
    if as_json:
        _print_json({"entries": [_entry_fields(entry) for entry in entries]})
        return
    columns = ("#", "time (UTC)", "table", "entry", "amount", "unit", "purpose")
    rows = [
        (
            str(e.sequence),
            e.time[:16].replace("T", " "),
            e.table,
            e.kind.value,
            _short(e.amount),
            e.unit.value,
            e.purpose,
        )
        for e in entries
    ]
    _print_table(columns, rows, numbers={"#", "amount"})


@budget.command(short_help="Check that nobody changed the history.")
@click.option(
    "--expected-head",
    metavar="HEAD",
    help="A head noted earlier; the history must contain it.",
)
@_shared
def verify(expected_head: str | None, ledger: str, *, as_json: bool) -> None:
    r"""Check every entry, link and sum of the ledger, and print its head.

    Whoever can write the ledger can replace it as a whole, for example by an older
    copy. Note the head elsewhere, and pass it here, to find that out too.

    \b
    Example:
      lrm budget verify --ledger budget.sqlite
    """
    from lrm.ledger import Ledger  # noqa: PLC0415 - `lrm --help` stays fast

    head = Ledger.open(ledger).verify(expected_head)
    if as_json:
        _print_json({"verified": True, "head": head})
    else:
        click.echo(f"the history is consistent\nhead {head}")


def _budget_fields(budget: "Budget") -> dict[str, str]:
    return {
        "table": budget.table,
        "unit": budget.unit.value,
        "limit": str(budget.limit),
        "spent": str(budget.spent),
        "remaining": str(budget.remaining),
    }


def _entry_fields(entry: "Entry") -> dict[str, str | int]:
    return {
        "sequence": entry.sequence,
        "kind": entry.kind.value,
        "table": entry.table,
        "unit": entry.unit.value,
        "amount": str(entry.amount),
        "promise": entry.promise,
        "purpose": entry.purpose,
        "time": entry.time,
        "digest": entry.digest,
    }


def _short(amount: Any) -> str:
    """Spell an amount for a narrow column; ``≈`` marks what JSON would give exactly."""
    from lrm.amounts import format_amount  # noqa: PLC0415 - `lrm --help` stays fast

    exact = format_amount(amount)
    return exact if len(exact) <= _DIGITS_SHOWN else f"≈{float(amount):.6g}"


def _print_json(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: set[str]
) -> None:
    """Print a table that fits the terminal: long texts wrap, numbers never do."""
    from rich import box  # noqa: PLC0415 - `lrm --help` stays fast
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same
    from rich.text import Text  # noqa: PLC0415 - same

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        wraps = column in {"table", "purpose"}
        table.add_column(
            column,
            justify="right" if column in numbers else "left",
            no_wrap=not wraps,
            overflow="fold",
        )
    for row in rows:
        # Text, not str: a purpose in square brackets is no markup.
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)
