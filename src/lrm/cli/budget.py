"""``lrm budget``: give tables a budget, and see what was spent of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lrm.cli.options import NEIGHBOURS, choice_option, json_option, whole_option
from lrm.cli.terminal import echo, print_document, print_json
from lrm.privacy.periods import PERIODS

if TYPE_CHECKING:
    from lrm.ledger import Budget
    from lrm.privacy.unit import PrivacyUnit

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _shared(command: _Command) -> _Command:
    """Add the options that every command of the group has."""
    ledger = click.option(
        "--ledger",
        required=True,
        envvar="LRM_LEDGER",
        metavar="FILE|URL",
        help="The SQLite file or postgresql:// URL of the ledger; also from LRM_LEDGER.",
    )
    return ledger(json_option(command))


@click.group()
def budget() -> None:
    """Give tables a privacy budget, and see what was spent of it.

    A ledger is a SQLite file on a local disk or, for a team, a PostgreSQL database.
    Releases spend from it before they read data. For a PostgreSQL password use
    PGPASSWORD or a .pgpass file, not the URL.

    \b
    Example:
      lrm budget create people --limit 1 --ledger budget.sqlite
      lrm budget show --ledger budget.sqlite
    """  # noqa: D301 - click wants the character itself


@budget.command(short_help="Give a table its budget.")
@click.argument("table")
@click.option(
    "--limit", required=True, metavar="AMOUNT", help="Exact amount, such as 1, 0.5 or 1/3."
)
@choice_option(
    "--accounting",
    "epsilon rho",
    "epsilon for pure releases only, rho for Gaussian and pure ones.",
    default="epsilon",
)
@click.option(
    "--domain", metavar="FILE", help="Domain file that declares whom the budget protects."
)
@click.option(
    "--person", metavar="COLUMN", help="Instead of --domain: the column that identifies the person."
)
@whole_option("--max-rows", "Instead of --domain: upper bound on the rows of one person (1).")
@choice_option(
    "--per",
    " ".join(PERIODS),
    "Instead of --domain: an account for each period, for a person's rows in one of them.",
)
@click.option(
    "--delta-limit",
    metavar="AMOUNT",
    help="Of a budget in rho: the most delta for lrm domain discover, such as 1e-6 (none).",
)
@choice_option("--neighbours", NEIGHBOURS, "One unit added or removed (default), or replaced.")
@_shared
def create(table: str, limit: str, accounting: str, ledger: str, **choices: Any) -> None:
    r"""Give TABLE its budget, once: neither the limit nor whom it protects ever changes.

    By default it protects one row, added or removed. Creates the ledger if there is none.
    With --per month, or a domain with editions, each month has an account of its own with
    this limit: a person who is in k months may lose k times the limit.

    There are two kinds of accounting, and a table keeps its own. In epsilon, releases of
    pure plans add up: 0.1 and 0.2 cost 0.3. In rho (zero-concentrated DP), a Gaussian
    release costs its rho, or the rho of its epsilon and delta, and a pure one
    epsilon²/2. Many small releases cost less in rho: a hundred of epsilon 0.1 cost 10 in
    epsilon and 0.5 in rho. `lrm plan --noise auto` says which noise suits a batch.

    \b
    Example:
      lrm budget create visits --limit 1 --domain domain.yaml \
          --ledger budget.sqlite
      lrm budget create people --limit 1 --person pid --max-rows 3 \
          --ledger budget.sqlite
      lrm budget create visits --limit 0.5 --accounting rho --ledger budget.sqlite
      lrm budget create shop --limit 0.5 --accounting rho --delta-limit 1e-6 \
          --ledger budget.sqlite
      lrm budget create shop --limit 1 --per month --domain shop.yaml \
          --ledger budget.sqlite
    """
    from lrm.ledger import Ledger
    from lrm.privacy.amounts import spell_amount
    from lrm.views.budgets import budget_facts

    delta = choices["delta_limit"]
    made = Ledger.open(ledger).create(
        table, limit, accounting, unit=_unit(choices), delta_limit=delta
    )
    if choices["as_json"]:
        print_json(budget_facts(made))
    else:
        limit = f"{spell_amount(made.limit, 'down')} {made.accounting.value}"
        if made.delta is not None:
            limit += f", and {spell_amount(made.delta.limit, 'down')} delta"
        echo(f"table '{made.table}' may spend {limit}\n{_protected(made)}")


def _unit(choices: dict[str, Any]) -> "PrivacyUnit":
    """The unit that the options declare."""
    from lrm.domain.file import read_domain
    from lrm.privacy.unit import PrivacyUnit

    person, rows, neighbours = choices["person"], choices["max_rows"], choices["neighbours"]
    period = choices["per"]
    if choices["domain"] is not None:
        unit = read_domain(choices["domain"]).unit
        if person or rows or neighbours or (period and period != unit.period):
            raise click.UsageError(
                "the domain declares whom the budget protects; leave out --person, --max-rows, "
                "--neighbours and --per"
            )
        return unit
    if person is not None and rows is None:
        raise click.UsageError("--person needs --max-rows: how many rows may one person have?")
    return PrivacyUnit(person, rows or 1, neighbours or "add-remove", period=period)


@budget.command(short_help="What is left of each budget.")
@click.argument("table", required=False)
@_shared
def show(table: str | None, ledger: str, *, as_json: bool) -> None:
    """Show limit, spent and remaining of TABLE, or of all tables.

    An amount of many digits is shown rounded, after ≈: what was spent up, what remains
    down. --json gives it exactly.

    \b
    Example:
      lrm budget show --ledger budget.sqlite
    """  # noqa: D301 - click wants the character itself
    from lrm.ledger import Ledger
    from lrm.views.budgets import budget_facts
    from lrm.views.documents import budgets_document

    book = Ledger.open(ledger)
    budgets = book.budgets() if table is None else (book.budget(table),)
    if as_json:
        print_json({"budgets": [budget_facts(each) for each in budgets]})
        return
    print_document(budgets_document(budgets))


@budget.command(short_help="Everything that was ever spent.")
@click.argument("table", required=False)
@_shared
def history(table: str | None, ledger: str, *, as_json: bool) -> None:
    """List what was created and spent for TABLE, or for all tables, oldest first.

    \b
    Example:
      lrm budget history people --ledger budget.sqlite
    """  # noqa: D301 - click wants the character itself
    from lrm.ledger import Ledger
    from lrm.views.budgets import entry_facts
    from lrm.views.documents import history_document

    entries = Ledger.open(ledger).history(table)
    if as_json:
        print_json({"entries": [entry_facts(entry) for entry in entries]})
        return
    print_document(history_document(entries))


@budget.command(short_help="Check that the history is unchanged.")
@click.option(
    "--expected-head",
    metavar="HEAD",
    help="A head noted earlier; the history must contain it.",
)
@_shared
def verify(expected_head: str | None, ledger: str, *, as_json: bool) -> None:
    """Check every entry, link and sum of the ledger, and print its head.

    Anyone who can write the ledger can replace it as a whole, for example by an older
    copy. Note the head elsewhere, and pass it here, to detect that as well.

    \b
    Example:
      lrm budget verify --ledger budget.sqlite
    """  # noqa: D301 - click wants the character itself
    from lrm.ledger import Ledger

    head = Ledger.open(ledger).verify(expected_head)
    if as_json:
        print_json({"verified": True, "head": head})
    else:
        echo(f"the history is consistent\nhead {head}")


def _protected(budget: "Budget") -> str:
    """Whom a budget protects, as lines that fit the terminal."""
    from textwrap import fill

    return fill(f"'{budget.table}' protects {budget.unit.words}", 79, subsequent_indent="  ")
