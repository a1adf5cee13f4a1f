"""Discovering the values of a column: which ones enough persons have, under (ρ, δ).

As for a release, all that is public is checked first, then the budget is charged, then rows are
read. Nothing leaves but the values that pass and their noisy numbers of persons.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lrm.domain import Categories, Domain
from lrm.domain.discovery import LONGEST, Discovery
from lrm.domain.people import Declared, People
from lrm.domain.private_tables import PrivateTable
from lrm.errors import UsageError, note_charge
from lrm.privacy.amounts import Amount, parse_amount, spell_amount
from lrm.privacy.budget import LEAST_DELTA, LEAST_RHO, MOST_RHO, ApproxZCDP
from lrm.privacy.discovery import Threshold
from lrm.privacy.periods import example_of
from lrm.privacy.unit import PrivacyUnit
from lrm.releases.making import NOT_GIVEN, NotGiven
from lrm.tables.open_values import OpenValues
from lrm.tables.opening import open_table

if TYPE_CHECKING:
    from lrm.domain.editions import Editions
    from lrm.ledger import Ledger

TWO_WAYS = (
    "pure epsilon cannot publish values that nobody declared, since one that a single person has "
    "would have to be as likely without that person; declare the values in the domain, from a "
    "public list, or count buckets of a public hash of the column (a view with such a column, "
    "declared as integers); with --rho and --delta values are discovered"
)
"""The error where pure ε is asked for."""


@dataclass(frozen=True)
class Discovered:
    """Values that were discovered.

    Parameters
    ----------
    domain
        The declared domain with the values, and the record of how they were discovered.
    attribute
        The name of the attribute.
    persons
        The values in alphabetical order, and about how many persons have each: with noise.
    record
        How they were discovered.
    unit
        Whom the guarantee protects.
    """

    domain: Declared
    attribute: str
    persons: dict[str, int]
    record: Discovery
    unit: PrivacyUnit

    @property
    def sentence(self) -> str:
        """The guarantee, in words."""
        return (
            f"{self.record.guarantee.words(self.unit)}; a value is published if about "
            f"{self.record.least:,} persons or more have it"
        )


def discover(  # noqa: PLR0913 - what is looked for, how, and what is charged
    declared: Declared,
    source: Any,
    attribute: str,
    *,
    most: int,
    rho: Amount,
    delta: Amount,
    table: str | None = None,
    column: str | None = None,
    length: int = 40,
    pattern: str | None = None,
    edition: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
    budget: str | None = None,
) -> Discovered:
    """Discover the values of a text column that enough persons have.

    Parameters
    ----------
    declared
        The domain of the table, or a people. An attribute that it has is given further values.
    source
        The table: what ``lrm.open_table`` takes.
    attribute
        The name of the attribute.
    most
        The most distinct values of a person that count.
    rho, delta
        The guarantee.
    table
        Of a people: the private table.
    column
        The column of the table, where it has another name than the attribute.
    length, pattern
        Longer values are left out, and those that do not match the regular expression as a whole.
    edition
        The edition whose rows are read and whose account is charged.
    ledger, budget
        What is charged, as for ``lrm.release``.

    Examples
    --------
    >>> import lrm, pandas as pd
    >>> frame = pd.DataFrame({"who": range(2000), "tag": ["red", "blue"] * 999 + ["mine", "x"]})
    >>> domain = lrm.Domain([lrm.Categories("size", ["s"])], "t", lrm.PrivacyUnit("who", 1))
    >>> found = discover(domain, frame, "tag", most=1, rho="0.1", delta="1e-9", ledger=None)
    >>> found.domain.attribute("tag").values
    ('blue', 'red')
    """
    guarantee = ApproxZCDP(
        parse_amount(rho, "rho", least=LEAST_RHO, most=MOST_RHO),
        parse_amount(delta, "delta", least=LEAST_DELTA, most=Fraction(1, 2)),
    )
    private = _private_table(declared, table)
    editions = _editions(private, edition)
    unit = declared.unit if edition is None else declared.at(edition).unit
    if unit.neighbours == "substitute" and unit.periods is not None:
        raise UsageError(
            "a person who is replaced in one of several periods may take a value of another "
            "person's rows; discover the values of one edition, or of persons added or removed"
        )
    if isinstance(length, bool) or not 1 <= length <= LONGEST:
        raise UsageError(f"length must be from 1 to {LONGEST:,} characters")
    known = _known(private, attribute, column)
    wanted = OpenValues(
        attribute,
        (attribute if known is None else known.source) if column is None else column,
        most,
        length,
        pattern,
        frozenset() if known is None else frozenset(str(text) for text, _ in known.spelled),
        replace(unit, column=_person(private)),
        editions,
        private.csv,
    )
    opened = open_table(source)
    opened.check_values(wanted)
    threshold = Threshold.of(guarantee, most, replaced=unit.is_replaced)
    name = budget or (declared.name if isinstance(declared, People) else declared.table) or ""
    head = _charge(ledger, name, guarantee, unit, attribute, editions)
    try:
        persons = threshold.published(opened.values(wanted))
    except BaseException as reason:
        if head is not None:
            spent = f"{spell_amount(guarantee.rho, 'up')} rho and its delta"
            sentence = f"the budget of {name!r} was charged {spent}, which it does not get back"
            note_charge(reason, sentence, "made")
        raise
    record = Discovery(
        len(persons),
        guarantee.rho,
        guarantee.delta,
        most,
        threshold.least,
        threshold.noise.scale,
        length,
        pattern,
        None if editions is None else editions.edition,
        head,
    )
    new = _with_values(private, attribute, wanted.column, tuple(persons), record)
    if isinstance(declared, People) and isinstance(private, PrivateTable):
        tables = [new if each.name == private.name else each for each in declared.tables]
        everything = declared.features, declared.lookups, declared.neighbours
        new = People(declared.name, tables, *everything)
    return Discovered(new, attribute, persons, record, unit)


def _private_table(declared: Declared, table: str | None) -> Domain | PrivateTable:
    """What declares the table that is read."""
    if isinstance(declared, Domain):
        return declared
    names = ", ".join(each.name for each in declared.tables)
    private = None if table is None else declared.table(table)
    if private is None:
        raise UsageError(
            f"name the table of {declared.name!r} whose values are looked for: {names}"
        )
    return private


def _person(private: Domain | PrivateTable) -> str | None:
    return private.unit.column if isinstance(private, Domain) else private.person


def _editions(private: Domain | PrivateTable, edition: str | None) -> Editions | None:
    """The edition that is read."""
    editions = private.editions
    if editions is None:
        if edition is not None:
            raise UsageError("the domain has no editions; leave the edition out")
        return None
    if edition is None:
        raise UsageError(
            f"the domain has an edition for each {editions.by}; name the one to read "
            f"(edition=, --edition {example_of(editions.by)})"
        )
    return private.at(edition).editions


def _known(private: Domain | PrivateTable, attribute: str, column: str | None) -> Categories | None:
    """The attribute as it is declared, if it is: then its values need no discovery."""
    known = next((each for each in private.attributes if each.name == attribute), None)
    if known is None:
        return None
    if not isinstance(known, Categories) or known.value_type != "text":
        raise UsageError(f"attribute {attribute!r} is declared as {known.kind}, not as texts")
    if column is not None and column != known.source:
        raise UsageError(f"attribute {attribute!r} is read from column {known.source!r}")
    return known


def _charge(  # noqa: PLR0913, PLR0917 - what is charged, and for what
    ledger: Ledger | str | os.PathLike[str] | NotGiven | None,
    budget: str,
    guarantee: ApproxZCDP,
    unit: PrivacyUnit,
    attribute: str,
    editions: Editions | None,
) -> str | None:
    """Charge the ledger; return its head, or None without a ledger."""
    from lrm.ledger import Ledger  # noqa: PLC0415 - only where one is given

    if isinstance(ledger, NotGiven):
        raise UsageError(
            "discovering values needs ledger=, which is charged for it; pass ledger=None if "
            "nothing is to record what is spent"
        )
    if ledger is None:
        return None
    if not budget:
        raise UsageError("the domain does not name its table; name the budget (budget=, --budget)")
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(os.fspath(ledger))
    names = () if editions is None else editions.names
    entry = book.spend(
        budget, guarantee, unit=unit, purpose=f"values of {attribute}", editions=names
    )
    return entry.head


def _with_values(
    private: Domain | PrivateTable,
    name: str,
    column: str,
    values: tuple[str, ...],
    record: Discovery,
) -> Any:
    """The declaration with the discovered values; as it was where there are none at all."""
    known = next((each for each in private.attributes if each.name == name), None)
    if isinstance(known, Categories):
        extended = Categories(
            name,
            (*map(str, known.values), *values),
            None if known.spellings is None else dict(known.spellings),
            null=known.null,
            outside=known.outside,  # type: ignore[arg-type] # a rule of categories
            column=known.column,
            discovered=(*(known.discovered or ()), record),
        )
        attributes = [extended if each is known else each for each in private.attributes]
    elif values:
        source = None if column == name else column
        attributes = [
            *private.attributes,
            Categories(name, values, column=source, discovered=[record]),
        ]
    else:
        return private
    return replace(private, attributes=tuple(attributes))
