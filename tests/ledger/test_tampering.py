"""Whatever is changed behind the ledger's back is seen, or said to be invisible."""

import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import fields
from fractions import Fraction

import psycopg
import pytest
from psycopg import errors

from engines import empty_postgres_database
from lrm.errors import LedgerError
from lrm.ledger import Ledger
from lrm.ledger.entries import Row
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit
from pages import ROOT, blocks

ROW = PrivacyUnit()

TENTH = PureDP(Fraction(1, 10))
COLUMNS = {field.name: field.name for field in fields(Row)} | {"table": "table_name"}
CONTENT = "kind, table_name, accounting, unit, amount, promise, purpose, time"
CHANGES = {
    "sequence": "40",
    "kind": "refund",
    "table": "visits",
    "accounting": "rho",
    "unit": PrivacyUnit(None, 5).text,
    "amount": "1/20",
    "promise": "epsilon=1/20",
    "purpose": "another",
    "time": "2001-01-01T00:00:00.000000+00:00",
    "previous": "a" * 64,
    "digest": "f" * 64,
}


class Intruder:
    """Writes into a ledger's database directly, with or without its triggers."""

    def __init__(self, location):
        self.location = location
        self.sqlite = "://" not in location
        self.prefix = "" if self.sqlite else "lrm_ledger."

    @contextmanager
    def _connection(self):
        if self.sqlite:
            with closing(sqlite3.connect(self.location, isolation_level=None)) as db:
                yield db
        else:
            with psycopg.connect(self.location, autocommit=True) as db:
                yield db

    def drop_triggers(self):
        with self._connection() as db:
            if self.sqlite:
                names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
                for (name,) in names.fetchall():
                    db.execute(f"DROP TRIGGER {name}")
            else:
                for table in ("entries", "head"):
                    db.execute(f"ALTER TABLE lrm_ledger.{table} DISABLE TRIGGER ALL")

    def execute(self, statement):
        with self._connection() as db:
            db.execute(statement.replace("@", self.prefix))


@pytest.fixture
def intruder(location, ledger):
    for number in range(4):
        ledger.spend("people", TENTH, unit=ROW, purpose=f"release {number}")
    return Intruder(location)


def refused_everywhere(ledger):
    for ask in (
        ledger.verify,
        ledger.budgets,
        lambda: ledger.spend("people", TENTH, unit=ROW, purpose="after tampering"),
        lambda: ledger.create("third", 1, "epsilon"),
    ):
        with pytest.raises(LedgerError, match=r"changed from outside: .*; spend nothing from it"):
            ask()


@pytest.mark.parametrize("field", CHANGES)
@pytest.mark.parametrize("sequence", [1, 4, 6])
def test_a_changed_field_is_seen(ledger, intruder, field, sequence):
    intruder.drop_triggers()
    intruder.execute(
        f"UPDATE @entries SET {COLUMNS[field]} = '{CHANGES[field]}' WHERE sequence = {sequence}"
    )
    refused_everywhere(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM @entries WHERE sequence = 6",
        "DELETE FROM @entries WHERE sequence >= 4",
        "DELETE FROM @entries WHERE sequence = 3",
        "DELETE FROM @entries WHERE sequence = 1",
        "DELETE FROM @entries",
        "UPDATE @head SET count = 5",
        "UPDATE @head SET digest = previous FROM @entries WHERE sequence = 6",
        "UPDATE @head SET count = 0",
    ],
)
def test_a_shortened_history_is_seen(ledger, intruder, statement):
    intruder.drop_triggers()
    intruder.execute(statement)
    refused_everywhere(ledger)


def test_a_reordered_history_is_seen(ledger, intruder):
    intruder.drop_triggers()
    for old, new in ((3, 100), (4, 3), (100, 4)):
        intruder.execute(f"UPDATE @entries SET sequence = {new} WHERE sequence = {old}")
    refused_everywhere(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE @entries SET amount = '1/20' WHERE sequence = 4",
        "UPDATE @entries SET purpose = purpose",
        "DELETE FROM @entries WHERE sequence = 6",
        "DELETE FROM @entries",
        "UPDATE @head SET count = 5",
        "UPDATE @head SET version = 2",
        "UPDATE @head SET count = count + 1",
        "DELETE FROM @head",
        "INSERT INTO @head VALUES (2, 1, 0, '')",
        f"INSERT INTO @entries SELECT 7, {CONTENT}, previous, 'x' FROM @entries WHERE sequence = 6",
        f"INSERT INTO @entries SELECT 9, {CONTENT}, digest, 'x' FROM @entries WHERE sequence = 6",
    ],
)
def test_the_database_itself_refuses_changes(ledger, intruder, statement):
    head = ledger.head()
    with pytest.raises((sqlite3.IntegrityError, psycopg.Error), match=r"append-only|head"):
        intruder.execute(statement)
    assert ledger.verify() == head


def test_replace_into_is_refused(tmp_path):
    """SQLite's REPLACE deletes without firing delete triggers."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("people", 1, "epsilon")
    ledger.spend("people", TENTH, unit=ROW, purpose="release")
    row = "2, kind, table_name, accounting, unit, '1/20', promise, purpose, time, previous, digest"
    with pytest.raises(sqlite3.IntegrityError, match="must follow the head"):
        Intruder(str(tmp_path / "ledger.sqlite")).execute(
            f"REPLACE INTO entries SELECT {row} FROM entries WHERE sequence = 2"
        )
    with pytest.raises(sqlite3.IntegrityError, match="one head"):
        Intruder(str(tmp_path / "ledger.sqlite")).execute(
            f"REPLACE INTO head VALUES (1, 1, 0, '{'0' * 64}')"
        )


def test_a_consistent_forgery_is_found_by_its_sums(ledger, intruder):
    """Right digests do not help an entry that spends more than there was."""
    last = ledger._store.read().rows[-1]
    content = "spend", "people", "epsilon", ROW.text, "7/10", "epsilon=7/10", "x", ""
    forged = Row(7, *content, last.digest, "").sealed()
    values = ", ".join(repr(value) for value in forged.values())
    intruder.execute(f"INSERT INTO @entries VALUES ({values})")
    with pytest.raises(LedgerError, match="entry 7 spends more than was left"):
        ledger.verify()


def test_the_digest_of_an_entry_is_the_same_in_every_version():
    """Ledgers outlive the software: a digest that changes would refuse all of them."""
    row = Row(1, "create", "people", "epsilon", ROW.text, "1", "", "", "2026-01-01", "0" * 64, "")
    assert ROW.text == '{"column":null,"max_rows":1,"neighbours":"add-remove"}'
    assert row.sealed().digest == (
        "6742ffb0747fde654f9e088dab18a9dfd162ed45358126357641deebabc3c4eb"
    )


def test_values_of_another_type_are_refused(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("people", 1, "epsilon")
    intruder = Intruder(str(tmp_path / "ledger.sqlite"))
    intruder.drop_triggers()
    for value in ("x'00'", "zeroblob(3)"):
        intruder.execute(f"UPDATE entries SET purpose = {value}")
        refused_everywhere(ledger)


def test_an_older_copy_is_consistent_and_only_a_noted_head_tells(tmp_path):
    """The limit of what a file can prove about itself, as the documentation says."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("people", 1, "epsilon")
    shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "older.sqlite")
    ledger.spend("people", TENTH, unit=ROW, purpose="release")
    noted = ledger.head()
    shutil.copy(tmp_path / "older.sqlite", tmp_path / "ledger.sqlite")
    assert ledger.verify() != noted
    with pytest.raises(LedgerError, match="is not on its chain"):
        ledger.verify(expected_head=noted)


def test_the_role_of_the_page_adds_entries_and_nothing_else():
    url = empty_postgres_database()
    Ledger.open(url).create("people", 1)
    page = ROOT / "docs" / "how-to" / "run-unattended.md"
    (grants,) = [block.text for block in blocks(page) if block.language == "sql"]
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(grants)
        try:
            job = url.replace("//postgres:@", "//reporter@")
            Ledger.open(job).spend("people", TENTH, unit=ROW, purpose="release")
            assert Ledger.open(job).remaining("people") == Fraction(9, 10)
            for change in (
                "DELETE FROM lrm_ledger.entries",
                "DELETE FROM lrm_ledger.head",
                "UPDATE lrm_ledger.entries SET amount = '0'",
                "UPDATE lrm_ledger.head SET count = 0",
            ):
                with psycopg.connect(job) as db, pytest.raises(errors.InsufficientPrivilege):
                    db.execute(change)
        finally:
            owner.execute("DROP OWNED BY reporter; DROP ROLE reporter")
