"""``lrm domain``: draft and check the file that declares a table's public facts."""

import re
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.inputs import STANDARD_INPUT, check_apart, check_output, read_declared
from lrm.cli.options import json_option
from lrm.cli.terminal import echo, print_document, print_json
from lrm.errors import TableError

if TYPE_CHECKING:
    from lrm.domain import CsvForm, Domain
    from lrm.domain.people import People
    from lrm.tables.row_check import RowCheck

_FILE_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def _kinds(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str]:
    """Read ``age=integers,day=dates`` (a click callback)."""
    pairs = [part.rpartition("=") for part in (value or "").split(",") if part.strip()]
    for name, _, kind in pairs:
        if not name.strip() or not kind.strip():
            raise click.BadParameter("expected pairs such as age=integers,day=dates", ctx, param)
    return {name.strip(): kind.strip() for name, _, kind in pairs}


@click.group()
def domain() -> None:
    r"""Draft and check the domain file: the public facts of a table.

    It declares attributes and their cells, what happens to values outside, and whom the
    guarantee protects. Write it from public knowledge, never from the rows.

    \b
    Example:
      lrm domain init visits.parquet -o domain.yaml
      lrm domain check domain.yaml
    """


@domain.command(short_help="Draft a domain file from a table's columns.")
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", help="Save the draft, such as domain.yaml.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--kinds",
    metavar="A=KIND,…",
    callback=_kinds,
    help="What columns hold: categories, boolean, integers, bins, numbers or dates.",
)
@click.option("--delimiter", metavar="CHAR", help="CSV only: the character between fields.")
@click.option("--quote", metavar="CHAR", help="CSV only: the character around fields, or none.")
@click.option("--encoding", help="CSV only: such as latin-1; utf-8 by default.")
@click.option("--decimal", metavar="CHAR", help="CSV only: the decimal mark, a point or comma.")
@json_option
def init(table: str, output: str | None, **choices: Any) -> None:
    r"""Draft a domain file for TABLE, for a person to complete.

    Only the names and types of the columns are read, never a value. TABLE is a .csv or
    .parquet file, FILE.duckdb::TABLE, postgresql://HOST/DB?table=NAME or spark:TABLE. A CSV
    file has no types: every column is drafted as categories, unless --kinds says what it holds.

    \b
    Example:
      lrm domain init visits.parquet -o domain.yaml
      lrm domain init visits.csv --kinds age=integers,day=dates -o domain.yaml
      lrm domain init besuche.csv --delimiter ";" --encoding latin-1 --decimal ,
    """
    from lrm.domain.draft import draft
    from lrm.files.writing import write_text
    from lrm.tables import open_table

    check_apart({"--output": output}, {"TABLE": table.partition("::")[0]})
    check_output(output, force=choices["force"])
    form = _csv_form(choices)
    opened = open_table(table, csv=form)
    columns = opened.columns()
    text = draft(columns, _sql_name(opened.name), form, choices["kinds"])
    if output is not None:
        write_text(output, text)
    if choices["as_json"]:
        print_json({"table": opened.name, "columns": columns, "draft": text, "file": output})
        return
    if output is None:
        echo(text, nl=False)
        return
    echo(
        f"saved a draft with {len(columns)} columns to {output}, made from their names and types\n"
        "alone: no value was read. Replace each TODO from public knowledge, then run\n"
        f"lrm domain check {output}"
    )


def _csv_form(choices: dict[str, Any]) -> "CsvForm | None":
    """The form of CSV files that options declare, or None where they declare nothing."""
    from lrm.domain import CsvForm

    keys = ("delimiter", "quote", "encoding", "decimal")
    facts = {key: choices[key] for key in keys if choices[key] is not None}
    if facts.get("quote") == "none":
        facts["quote"] = None
    return CsvForm(**facts) if facts else None


def _sql_name(name: str) -> str | None:
    """The name that SQL batches would use for a file or table, where it is a plain word.

    >>> _sql_name("visits.csv.gz"), _sql_name("public.visits"), _sql_name("part-*.parquet")
    ('visits', 'visits', None)
    """
    ending = next((end for end in _FILE_ENDINGS if name.lower().endswith(end)), None)
    word = name[: -len(ending)] if ending else name.rpartition(".")[2]
    return word if re.fullmatch(r"[A-Za-z_]\w*", word) else None


@domain.command(short_help="Check a domain file.")
@click.argument("file")
@click.option("--table", metavar="TABLE", help="Also check that this table has the columns.")
@click.option(
    "--rows",
    is_flag=True,
    help="For the data owner's eyes only: read the table, and count rows kept and dropped.",
)
@json_option
def check(file: str, table: str | None, *, rows: bool, as_json: bool) -> None:
    r"""Check a domain file, and show its cells and whom the guarantee protects.

    Mistakes and remaining TODOs are reported with their line. With --table the names and
    types of that table's columns are checked as well; no row is read, so that a date or
    number that cannot be read is not noticed. With --rows the table is read: it shows how many
    rows each attribute keeps and drops, exactly and without privacy, and fails where none
    is left. That is for those who may see the table, and must not be published.

    \b
    Example:
      lrm domain check domain.yaml
      lrm domain check domain.yaml --table visits.parquet
      lrm domain check domain.yaml --table visits.csv --rows
      cat domain.yaml | lrm domain check -
    """
    from lrm.domain import Domain
    from lrm.queries.maps.products.tabulation import total
    from lrm.tables import open_table
    from lrm.views.documents import facts_document

    if rows and table is None:
        raise click.UsageError("--rows reads a table; name it with --table")
    declared = read_declared(file)
    if not isinstance(declared, Domain):
        _check_people(declared, file, table, as_json=as_json)
        return
    fits, row_check = "", None
    if table is not None:
        opened = open_table(table)
        opened.check(declared, [total(declared.shape)])  # a domain may have 10^30 cells
        fits = f", and {opened.name} has its columns"
        fits += "" if rows else " (no value was read; --rows does, for the data owner)"
    if rows:
        from lrm.tables.row_check import check_rows

        row_check = check_rows(opened, declared)
    if as_json:
        print_json(
            _fields(declared) | ({} if row_check is None else {"rows": _row_facts(row_check)})
        )
    else:
        print_document(facts_document(_lines(declared)))
        if row_check is not None:
            _print_rows(row_check)
        echo(f"{STANDARD_INPUT if file == '-' else file} is complete{fits}")
    if row_check is not None:
        _check_kept(row_check)


def _check_people(people: "People", file: str, table: str | None, *, as_json: bool) -> None:
    """Show the tables and features of a people."""
    from lrm.domain.people import people_facts
    from lrm.views.documents import facts_document

    if table is not None:
        raise click.UsageError(
            f"{file} declares several tables; lrm release --dry-run checks all that a plan reads"
        )
    if as_json:
        print_json(people_facts(people))
        return
    lines = [("people", people.name), ("protects", people.words)]
    for each in people.tables:
        most = "one row" if each.most is None else f"at most {each.most:,} rows"
        attributes = ", ".join(f"{a.name} ({a.size:,} cells)" for a in each.attributes)
        lines.append((each.name, f"{most} per person ({each.person}); {attributes}"))
    for feature in people.features:
        of = f"{feature.value} of {feature.of}{f'.{feature.column}' if feature.column else ''}"
        lines.append((feature.name, f"{of}, {feature.attribute.size:,} cells"))
    print_document(facts_document(lines))
    echo(f"{STANDARD_INPUT if file == '-' else file} is complete")


OWNER_ONLY = "for the data owner's eyes only: exact and not private; never publish it"


def _row_facts(row_check: "RowCheck") -> dict[str, Any]:
    from dataclasses import asdict

    return {"warning": OWNER_ONLY, **asdict(row_check)}


def _print_rows(row_check: "RowCheck") -> None:
    from lrm.views.blocks import Document, Prose, plain_table

    columns = ("attribute", "kept", "declared", "null", "nan", "outside", "unreadable")
    table = [
        (attribute.name, *(f"{getattr(attribute, name):,}" for name in columns[1:]))
        for attribute in row_check.attributes
    ]
    nobody = "" if row_check.nobody is None else f"; {row_check.nobody:,} rows name no person"
    counted = f"a release would count {row_check.counted:,} of {row_check.rows:,} rows{nobody}"
    title = f"rows, {OWNER_ONLY}:"
    print_document(Document("", (plain_table(title, columns, table), Prose((counted,)))))


def _check_kept(row_check: "RowCheck") -> None:
    """Fail where a release would be spent on nothing, and warn where values cannot be read."""
    if row_check.rows and not row_check.counted:
        lost = [attribute.name for attribute in row_check.attributes if not attribute.kept]
        why = f": none has a declared value of {', '.join(lost)}" if lost else ""
        raise TableError(
            f"no row of the table is in the domain{why}; declare how its values are written "
            "(csv: dates, true, false, decimal; spellings of categories), or null and outside: cell"
        )
    unread = [
        f"{attribute.name} ({attribute.unreadable:,})"
        for attribute in row_check.attributes
        if attribute.unreadable
    ]
    if unread:
        click.echo(f"lrm: warning: values that cannot be read: {', '.join(unread)}", err=True)


def _fields(declared: "Domain") -> dict[str, Any]:
    return {
        "table": declared.table,
        "unit": declared.unit.facts,
        "attributes": [
            {"name": attribute.name, "kind": attribute.kind, "cells": attribute.size}
            for attribute in declared.attributes
        ],
        "cells": declared.size,
    }


def _lines(declared: "Domain") -> list[tuple[str, str]]:
    from lrm.files.spelling import how_many

    return [
        ("table", declared.table or "any name"),
        ("protects", declared.unit.words),
        *[("", limit) for limit in [declared.unit.limit] if limit],
        *(
            (attribute.name, f"{attribute.kind}, {attribute.size:,} cells")
            for attribute in declared.attributes
        ),
        *[("clipped", sentence) for sentence in declared.clipping],
        ("cells", f"{how_many(declared.size)} in all"),
    ]
