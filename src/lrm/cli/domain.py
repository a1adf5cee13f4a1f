"""``lrm domain``: draft, check and complete the file that declares a table's public facts."""

import re
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.endings import paying
from lrm.cli.inputs import STANDARD_INPUT, check_apart, check_output, check_tables, read_declared
from lrm.cli.options import edition_option, json_option, whole_option
from lrm.cli.terminal import echo, print_document, print_json
from lrm.errors import TableError

if TYPE_CHECKING:
    from lrm.domain import CsvForm, Domain
    from lrm.domain.people import People
    from lrm.releases.discovering import Discovered
    from lrm.tables.row_check import RowCheck


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
@click.argument("table", nargs=-1, required=True)
@click.option(
    "--people", metavar="NAME", help="Several tables of the same persons, who share this budget."
)
@click.option("-o", "--output", metavar="FILE", help="Save the draft, such as domain.yaml.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--kinds",
    metavar="A=KIND,…",
    callback=_kinds,
    help="What columns hold: categories, boolean, integers, bins, numbers, dates or times.",
)
@click.option("--delimiter", metavar="CHAR", help="CSV only: the character between fields.")
@click.option("--quote", metavar="CHAR", help="CSV only: the character around fields, or none.")
@click.option("--encoding", help="CSV only: such as latin-1; utf-8 by default.")
@click.option("--decimal", metavar="CHAR", help="CSV only: the decimal mark, a point or comma.")
@json_option
def init(table: tuple[str, ...], output: str | None, **choices: Any) -> None:
    r"""Draft a domain file for TABLE, for a person to complete.

    Only the names and types of the columns are read, never a value. TABLE is a .csv or
    .parquet file, a folder of Parquet files, FILE.duckdb::TABLE,
    postgresql://HOST/DB?table=NAME or spark:TABLE. A CSV file has no types, nor have the
    folders of Parquet files: such a column is drafted as categories, unless --kinds says what
    it holds. With --people, TABLE may be a whole database, FILE.duckdb or
    postgresql://HOST/DB, whose catalogue names the tables and their keys.

    \b
    Example:
      lrm domain init visits.parquet -o domain.yaml
      lrm domain init visits.csv --kinds age=integers,day=dates -o domain.yaml
      lrm domain init besuche.csv --delimiter ";" --encoding latin-1 --decimal ,
      lrm domain init customers.parquet orders.csv --people shop -o shop.yaml
      lrm domain init postgresql://HOST/DB --people shop -o shop.yaml
    """
    from lrm.domain.draft import draft, sql_name
    from lrm.files.writing import write_text
    from lrm.tables import open_table

    for place in table:
        check_apart({"--output": output}, {"TABLE": place.partition("::")[0]})
    check_output(output, force=choices["force"])
    form = _csv_form(choices)
    if choices["people"] is not None:
        _init_people(table, output, form, choices)
        return
    if len(table) > 1:
        raise click.UsageError("several tables need --people NAME: the persons that they share")
    opened = open_table(table[0], csv=form)
    columns = opened.columns()
    text = draft(columns, sql_name(opened.name), form, choices["kinds"])
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


def _init_people(
    places: tuple[str, ...], output: str | None, form: "CsvForm | None", choices: dict[str, Any]
) -> None:
    """Draft a file of several tables; of CSV files, the form is that of all of them."""
    from lrm.domain.draft import TABLE_ENDINGS, draft_people, sql_name
    from lrm.files.writing import write_text
    from lrm.tables import open_table
    from lrm.tables.catalogue import persons_by_keys, read_catalogue

    tables, forms = {}, {}
    catalogue = read_catalogue(places[0]) if len(places) == 1 else None
    if catalogue is not None:
        places = tuple(table.address for table in catalogue.values())
    for place in places:
        opened = open_table(place, csv=form)
        name = sql_name(opened.name)
        if name is None or name in tables:
            raise click.UsageError(f"{opened.name} needs a name of its own that is a plain word")
        tables[name] = opened.columns()
        forms[name] = form if place.lower().endswith(TABLE_ENDINGS[:4]) else None
    persons = {} if catalogue is None else persons_by_keys(catalogue)
    text = draft_people(tables, choices["people"], forms, choices["kinds"], persons)
    if output is not None:
        write_text(output, text)
    if choices["as_json"]:
        columns = {name: list(own) for name, own in tables.items()}
        print_json({"people": choices["people"], "tables": columns, "draft": text, "file": output})
    elif output is None:
        echo(text, nl=False)
    else:
        echo(
            f"saved a draft with {len(tables)} tables to {output}, made from names and types of\n"
            "columns alone: no value was read. Replace each TODO from public knowledge, then run\n"
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


@domain.command(short_help="Check a domain file.")
@click.argument("file")
@click.option("--table", metavar="TABLE", help="Also check that this table has the columns.")
@click.option(
    "--rows",
    is_flag=True,
    help="For the data owner's eyes only: read the table, and count rows kept and dropped.",
)
@edition_option
@json_option
def check(file: str, table: str | None, edition: str | None, *, rows: bool, as_json: bool) -> None:
    r"""Check a domain file, and show its cells and whom the guarantee protects.

    Mistakes and remaining TODOs are reported with their line. With --table the names and
    types of that table's columns are checked as well; no row is read, so that a date or
    number that cannot be read is not noticed. With --rows the table is read: it shows how many
    rows each attribute keeps and drops, exactly and without privacy, and fails where none
    is left. That is for those who may see the table, and must not be published. Of a domain
    with editions it counts those of --edition.

    \b
    Example:
      lrm domain check domain.yaml
      lrm domain check domain.yaml --table visits.parquet
      lrm domain check domain.yaml --table visits.csv --rows
      lrm domain check shop.yaml --table orders.csv --rows --edition 2025-03
      cat domain.yaml | lrm domain check -
    """
    from lrm.domain import Domain
    from lrm.queries.maps.products.tabulation import total
    from lrm.tables import open_table
    from lrm.views.documents import facts_document

    if rows and table is None:
        raise click.UsageError("--rows reads a table; name it with --table")
    declared = read_declared(file)
    if edition is not None:
        declared = declared.at(edition)
    if not isinstance(declared, Domain):
        _check_people(declared, file, table, as_json=as_json)
        return
    fits, row_check = "", None
    columns = _dated(declared, rows=rows)
    if table is not None:
        opened = open_table(table)
        opened.check(columns, [total(columns.shape)])  # a domain may have 10^30 cells
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
            _print_rows(row_check, edition)
        echo(f"{STANDARD_INPUT if file == '-' else file} is complete{fits}")
    if row_check is not None:
        _check_kept(row_check)


def _dated(declared: "Domain", *, rows: bool) -> "Domain":
    """The domain of an edition, where none is named: all have the same columns, but other rows."""
    from lrm.privacy.periods import example_of

    editions = declared.editions
    if editions is None or editions.edition is not None:
        return declared
    if rows:
        example = example_of(editions.by)
        raise click.UsageError(f"--rows counts one edition; name it, such as --edition {example}")
    return declared.at(editions.each[0].name)


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
        attributes = ", ".join(f"{a.name} ({a.size:,} cells)" for a in each.attributes)
        lines.append((each.name, f"{each.limit} per person ({each.person}); {attributes}"))
    for feature in people.features:
        of = f"{feature.value} of {feature.of}{f'.{feature.column}' if feature.column else ''}"
        lines.append((feature.name, f"{of}, {feature.attribute.size:,} cells"))
    print_document(facts_document(lines))
    echo(f"{STANDARD_INPUT if file == '-' else file} is complete")


@domain.command(short_help="Release how many rows a limit per person leaves out.")
@click.argument("file")
@click.option(
    "--table",
    "source",
    metavar="NAME=TABLE",
    required=True,
    help="The table of the people, and where it is.",
)
@click.option(
    "--candidates", metavar="LIST", required=True, help="Limits to compare, such as 4,8,16,32."
)
@whole_option("--cap", "The most rows of a person that are counted here (100).")
@click.option("--epsilon", metavar="AMOUNT", required=True, help="The guarantee, such as 0.1.")
@click.option("-o", "--output", metavar="FILE", help="Save the release, such as limits.lrm.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--ledger",
    envvar="LRM_LEDGER",
    metavar="FILE|URL",
    help="Ledger to charge before data is read; also from LRM_LEDGER.",
)
@click.option("--budget", metavar="NAME", help="Budget to charge; by default that of the people.")
@edition_option
@click.option("--no-ledger", is_flag=True, help="Confirm that nothing records what is spent.")
@json_option
def limits(file: str, source: str, candidates: str, **choices: Any) -> None:
    r"""Release how many rows of a table limits per person would leave out.

    FILE declares a people. The result is a release about persons, which is charged. It is printed
    with intervals, next to the error that a count of rows has under each limit; nothing is written
    into FILE. Rows beyond --cap of a person are not counted.

    \b
    Example:
      lrm domain limits shop.yaml --table orders=orders.parquet \
          --candidates 4,8,16,32 --cap 100 --epsilon 0.1 --ledger budget.sqlite
    """
    from lrm.domain.people import People
    from lrm.releases.limits import row_limits
    from lrm.views.limits import limits_document, limits_facts

    check_output(choices["output"], force=choices["force"])
    declared = read_declared(file)
    if not isinstance(declared, People):
        raise click.UsageError(
            f"{file} declares one table; limits are compared for the tables of a people"
        )
    name, equals, place = source.partition("=")
    if choices["edition"] is not None:
        declared = declared.at(choices["edition"])
    if not equals:
        raise click.UsageError("give the table as --table NAME=TABLE")
    if not re.fullmatch(r"\d+(,\d+)*", candidates):
        raise click.UsageError("--candidates must be whole numbers with commas between them")
    if (choices["ledger"] is None) != choices["no_ledger"]:
        raise click.UsageError("give --ledger to charge, or --no-ledger")
    with paying(choices["ledger"], (choices["output"],)):
        found = row_limits(
            declared,
            name,
            place,
            [int(limit) for limit in candidates.split(",")],
            choices["epsilon"],
            cap=choices["cap"] or 100,
            ledger=choices["ledger"],
            budget=choices["budget"],
        )
        if choices["output"] is not None:
            found.release.save(choices["output"])
        if choices["as_json"]:
            print_json({**limits_facts(found), "file": choices["output"]})
        else:
            print_document(limits_document(found))


@domain.command(short_help="Discover the values of a column that nobody knows in advance.")
@click.argument("file")
@click.option(
    "--table",
    "source",
    metavar="TABLE",
    required=True,
    help="The table to read; of a people NAME=TABLE.",
)
@click.option("--attribute", required=True, metavar="NAME", help="The attribute to give values.")
@click.option("--column", metavar="NAME", help="Its column, where that has another name.")
@whole_option("--most", "The most distinct values of a person that count.")
@click.option("--rho", metavar="AMOUNT", help="The guarantee, such as 0.01; with --delta.")
@click.option("--delta", metavar="AMOUNT", help="The probability that it fails, such as 1e-8.")
@click.option("--epsilon", metavar="AMOUNT", help="Not possible; the error names what is.")
@whole_option("--length", "Longer values are left out (40).")
@click.option(
    "--pattern", metavar="REGEX", help="Values that do not match as a whole are left out."
)
@edition_option
@click.option("-o", "--output", metavar="FILE", required=True, help="The new domain file.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--ledger",
    envvar="LRM_LEDGER",
    metavar="FILE|URL",
    help="Ledger to charge before data is read; also from LRM_LEDGER.",
)
@click.option("--budget", metavar="NAME", help="Budget to charge; by default that of the table.")
@click.option("--no-ledger", is_flag=True, help="Confirm that nothing records what is spent.")
@json_option
def discover(file: str, source: str, attribute: str, **choices: Any) -> None:
    r"""Discover the values of a text column, such as merchants or search terms.

    FILE declares the table, or a people. A value is published if enough persons have it, by a
    noisy number of persons and a threshold: it appears verbatim in the new domain file. Each person
    counts in at most --most values. A value that a single person has is published with a
    probability of at most --delta. The ledger needs a budget in rho with a --delta-limit.

    \b
    Example:
      lrm domain discover shop.yaml --table orders.parquet --attribute merchant \
          --most 4 --rho 0.01 --delta 1e-8 -o shop-2.yaml --ledger budget.sqlite
      lrm domain discover shop.yaml --table orders=orders.csv --attribute tag \
          --most 2 --rho 0.01 --delta 1e-8 --pattern "[a-z ]+" --edition 2025-02 \
          -o shop-2.yaml --ledger budget.sqlite
    """
    from lrm.domain import Domain
    from lrm.domain.file import write_domain
    from lrm.releases.discovering import TWO_WAYS
    from lrm.releases.discovering import discover as discover_values

    if choices["epsilon"] is not None:
        raise click.UsageError(TWO_WAYS)
    for name in ("most", "rho", "delta"):
        if choices[name] is None:
            raise click.UsageError(f"give --{name}; for example --most 4 --rho 0.01 --delta 1e-8")
    if (choices["ledger"] is None) != choices["no_ledger"]:
        raise click.UsageError("give --ledger to charge, or --no-ledger")
    output = choices["output"]
    check_apart({"--output": output}, {"FILE": file})
    check_tables({"--output": output}, [source])
    check_output(output, force=choices["force"], kinds=(".yaml", ".yml"))
    declared = read_declared(file)
    table = None
    if not isinstance(declared, Domain):
        table, equals, source = source.partition("=")
        if not equals:
            raise click.UsageError("give the table as --table NAME=TABLE")
    with paying(choices["ledger"], (output,)):
        found = discover_values(
            declared,
            source,
            attribute,
            most=choices["most"],
            rho=choices["rho"],
            delta=choices["delta"],
            table=table,
            column=choices["column"],
            length=choices["length"] or 40,
            pattern=choices["pattern"],
            edition=choices["edition"],
            ledger=choices["ledger"],
            budget=choices["budget"],
        )
        write_domain(found.domain, output)
    _print_discovered(found, output, as_json=choices["as_json"])


def _print_discovered(found: "Discovered", output: str, *, as_json: bool) -> None:
    from lrm.views.blocks import Document, Prose, plain_table

    if as_json:
        facts = {"attribute": found.attribute, "discovered": found.record.facts}
        print_json({**facts, "values": found.persons, "file": output})
        return
    rows = [(value, f"{persons:,}") for value, persons in found.persons.items()]
    half = round(1.96 * found.record.scale)
    table = plain_table("", ("value", f"persons, about ± {half:,}"), rows, words=("value",))
    none = f"no value of {found.attribute!r} has enough persons"
    lines = (found.sentence, f"saved to {output}; plan with it as with any domain file")
    print_document(Document("", (table if rows else Prose((none,)), Prose(lines))))


OWNER_ONLY = "for the data owner's eyes only: exact and not private; never publish it"


def _row_facts(row_check: "RowCheck") -> dict[str, Any]:
    from dataclasses import asdict

    return {"warning": OWNER_ONLY, **asdict(row_check)}


def _print_rows(row_check: "RowCheck", edition: str | None) -> None:
    from lrm.views.blocks import Document, Prose, plain_table

    columns = ("attribute", "kept", "declared", "null", "nan", "outside", "unreadable")
    table = [
        (attribute.name, *(f"{getattr(attribute, name):,}" for name in columns[1:]))
        for attribute in row_check.attributes
    ]
    nobody = "" if row_check.nobody is None else f"; {row_check.nobody:,} rows name no person"
    of = "" if edition is None else f" of {edition}"
    counted = f"a release{of} would count {row_check.counted:,} of {row_check.rows:,} rows{nobody}"
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
